"""Every error weighlock raises, sorted by what the caller can do about it.

WeighlockError
├─ ConfigError(ValueError)       the operator's: settings, rule file, unknown endpoint
├─ InputError(ValueError)        the caller's: this medium cannot be weighed or sent
│  ├─ MalformedRequest           the request itself: no JSON, a field of the wrong kind, calls without results
│  ├─ UnknownMediaType           nothing recognises the bytes
│  ├─ MimeMismatch               the label and the bytes disagree, and the policy is to refuse
│  ├─ UnsupportedMedia           recognised, but neither the service nor we can take it (encrypted PDF, TIFF, …)
│  ├─ MalformedMedia             recognised, but broken: truncated, empty, inconsistent, or it killed the prober
│  ├─ MediaTooLarge              past a safety bound: bytes, pixels, seconds, frames, pages
│  ├─ TransformFailed            what was asked for could not be made of it, or what came out is not that
│  ├─ UncoveredCall              an entry point of the SDK nobody weighs, and the policy is to refuse
│  └─ UnreadableSource           the file itself: missing, no permission, a FIFO, a directory
├─ Cancelled                     the caller's wish: the work was broken off
├─ BudgetError                   policy: the endpoint's limits
│  ├─ BudgetExceeded             a per-request limit would be broken
│  └─ WindowExhausted            a budget over time (window, session) has no room for it now
└─ ServiceError                  outside: something we depend on did not answer
   ├─ ConfinementUnavailable     `safety.confinement: required`, and a limit is not in force here
   ├─ ProberUnavailable          the worker could not be started, or its queue is full
   ├─ ServiceUnreachable         no answer: no connection, a timeout, one that broke off
   ├─ ServiceRefused             the service answered with an error, or with what is no answer
   ├─ CountFailed                `countTokens` did not say, and the policy is to refuse
   ├─ UploadFailed               a file did not arrive whole
   ├─ FileProcessingFailed       the service took a file and could not read it
   ├─ FileNotReady(TimeoutError) the service is still reading a file, past the deadline
   ├─ StorageFull                the project's file storage has no room
   ├─ BudgetStoreUnavailable     the budgets cannot be asked, and the policy is to admit nothing then
   ├─ StateUnavailable           our own registry cannot be read or written: damaged, locked, disk full
   └─ ReferenceUnrecoverable     a file of the service is gone, and nobody here has its bytes

Messages quote figures and name the knob. They never hold media, keys or full URIs.
"""

from __future__ import annotations

from typing import Any, ClassVar


class WeighlockError(Exception):
    """Base of every error raised on purpose.

    `code` is stable across releases; `figures` holds the numbers and names the message quotes, for machines.
    """

    code: ClassVar[str] = "weighlock_error"
    http_status: ClassVar[int] = 500

    def __init__(self, message: str, **figures: Any) -> None:
        super().__init__(message)
        self.message = message
        self.figures = figures

    def as_problem(self) -> dict[str, Any]:
        """The error as an RFC 9457 problem object."""
        return {
            "type": f"urn:weighlock:{self.code}",
            "title": self.code.replace("_", " "),
            "status": self.http_status,
            "detail": self.message,
            **self.figures,
        }


class ConfigError(WeighlockError, ValueError):
    """The operator's: a settings file, a rule file, an unknown endpoint or model policy."""

    code = "config"


class InputError(WeighlockError, ValueError):
    """The caller's: this medium cannot be weighed or sent as it is."""

    code = "input"
    http_status = 400


class MalformedRequest(InputError):
    """The request itself: no JSON, a field of the wrong kind, a field twice, calls and results that do not match.

    `figures["place"]` is where, as a path in REST JSON (`contents[3].parts[0].text`), where that can be told.
    """

    code = "malformed_request"


class UnknownMediaType(InputError):
    """Nothing recognises the bytes."""

    code = "unknown_media_type"
    http_status = 415


class MimeMismatch(InputError):
    """The declared type and the bytes disagree, and the endpoint's policy is to refuse."""

    code = "mime_mismatch"


class UnsupportedMedia(InputError):
    """Recognised, but neither the service nor we can take it."""

    code = "unsupported_media"
    http_status = 415


class MalformedMedia(InputError):
    """Recognised, but broken: truncated, empty, inconsistent, or it killed the prober."""

    code = "malformed_media"


class MediaTooLarge(InputError):
    """Past a safety bound of the configuration: bytes, pixels, seconds, frames or pages."""

    code = "media_too_large"
    http_status = 413


class TransformFailed(InputError):
    """What was asked for could not be made of this medium, or what came out is not what was asked for."""

    code = "transform_failed"
    http_status = 422


class UncoveredCall(InputError):
    """An entry point of the SDK behind which a model is asked and nobody weighs, and the policy is to refuse."""

    code = "uncovered_call"


class UnreadableSource(InputError):
    """The file itself: missing, no permission, not a regular file."""

    code = "unreadable_source"


class Cancelled(WeighlockError):
    """The caller broke the work off; nothing of it is left."""

    code = "cancelled"
    http_status = 499


class BudgetError(WeighlockError):
    """Policy: the endpoint does not allow it."""

    code = "budget"
    http_status = 429


class BudgetExceeded(BudgetError):
    """A limit of one request is broken, and nothing the endpoint allows brings the request under it.

    `figures` hold the endpoint, its owner, the broken limits, the lowest reachable total and what stands in the way.
    """

    code = "budget_exceeded"
    http_status = 413


class WindowExhausted(BudgetError):
    """A budget over time has no room for the request now.

    `figures` hold the endpoint, the scope and window, what is left of it and `retry_after_s`: `None` where waiting does
    not help.
    """

    code = "window_exhausted"


class ServiceError(WeighlockError):
    """Outside: something we depend on did not answer."""

    code = "service"
    http_status = 503


class ConfinementUnavailable(ServiceError):
    """`safety.confinement: required`, and at least one limit cannot be put in force on this machine."""

    code = "confinement_unavailable"


class ProberUnavailable(ServiceError):
    """The confined worker could not be started, or its queue is full."""

    code = "prober_unavailable"


class ServiceUnreachable(ServiceError):
    """No answer: no connection, a timeout, or one that broke off.

    `figures["unsent"]` says that the request cannot have reached the service.
    """

    code = "service_unreachable"
    http_status = 504


class ServiceRefused(ServiceError):
    """The service answered with an error, or with what is no answer.

    `figures` hold `service_status` (the HTTP status), `service_code` (`RESOURCE_EXHAUSTED`) and `retry_after_s`, each
    `None` where it said none.
    """

    code = "service_refused"
    http_status = 502


class CountFailed(ServiceError):
    """`countTokens` did not say what the request weighs, and the policy is to refuse."""

    code = "count_failed"


class UploadFailed(ServiceError):
    """A file did not arrive whole; nothing of it is left at the service."""

    code = "upload_failed"
    http_status = 502


class FileProcessingFailed(ServiceError):
    """The service took a file and could not read it. Final: the same bytes fail again."""

    code = "file_processing_failed"
    http_status = 422


class FileNotReady(ServiceError, TimeoutError):
    """The service is still reading a file, past the deadline."""

    code = "file_not_ready"
    http_status = 504


class StorageFull(ServiceError):
    """The project's file storage has no room for a file."""

    code = "storage_full"
    http_status = 507


class BudgetStoreUnavailable(ServiceError):
    """The store of budgets cannot be asked, or did not say what it did."""

    code = "budget_store_unavailable"


class StateUnavailable(ServiceError):
    """What weighlock remembers on this machine cannot be read or written."""

    code = "state_unavailable"


class ReferenceUnrecoverable(ServiceError):
    """A file of the service is gone or not ours to see, and nobody here has its bytes."""

    code = "reference_unrecoverable"
    http_status = 410
