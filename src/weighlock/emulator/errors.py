"""What the service answers when it refuses: status, canonical name and, where somebody published it, the very words."""

from __future__ import annotations

from collections.abc import Sequence

from weighlock.emulator.behaviours import reproduces
from weighlock.request import Json

INVALID = "Request contains an invalid argument."
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ALREADY_EXISTS",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_TYPES = "type.googleapis.com/google.rpc."


class ApiError(Exception):
    """An answer of the service that is no success."""

    def __init__(self, code: int, message: str, *, status: str | None = None, details: Sequence[Json] = ()) -> None:
        super().__init__(message)
        self.code, self.message, self.details = code, message, details
        self.status = status or _STATUS.get(code, "UNKNOWN")

    def document(self) -> Json:
        """The body of the answer."""
        error: dict[str, Json] = {"code": self.code, "message": self.message, "status": self.status}
        if self.details:
            error["details"] = list(self.details)
        return {"error": error}


def invalid(message: str = INVALID) -> ApiError:
    return ApiError(400, message)


@reproduces("file-forbidden")
def file_forbidden(name: str) -> ApiError:
    """The same words for a file that expired, was deleted, is another project's or never was."""
    return ApiError(403, f"You do not have permission to access the File {name} or it may not exist.")


@reproduces("file-not-active")
def file_not_active(name: str) -> ApiError:
    words = f"The File {name} is not in an ACTIVE state and usage is not allowed."
    return ApiError(400, words, status="FAILED_PRECONDITION")


@reproduces("unsupported-mime")
def unsupported_mime(mime: str) -> ApiError:
    return invalid(f"Unsupported MIME type: {mime}")


@reproduces("unknown-model")
def unknown_model(model: str, version: str, method: str) -> ApiError:
    words = (
        f"models/{model} is not found for API version {version}, or is not supported for {method}. "
        "Call ListModels to see the list of available models and their supported methods."
    )
    return ApiError(404, words)


@reproduces("no-frames")
def no_frames() -> ApiError:
    return invalid("No frames to extract with given parameters. Verify fps, start/end time and video duration.")


@reproduces("prompt-too-long")
def prompt_too_long(tokens: int, most: int) -> ApiError:
    return invalid(f"The input token count ({tokens}) exceeds the maximum number of tokens allowed {most}.")


@reproduces("url-not-fetched")
def not_fetched() -> ApiError:
    return invalid(
        "Cannot fetch content from the provided URL. Please ensure the URL is valid and accessible by Vertex AI. "
        "Vertex AI respects robots.txt rules, so confirm the URL is allowed to be crawled."
    )


@reproduces("tool-media-before-gemini-3")
def no_tool_media() -> ApiError:
    return invalid("Multimodal function responses are not supported for this model")


@reproduces("tool-audio-video-vertex")
def no_such_tool_media(mime: str) -> ApiError:
    return invalid(
        f"Unable to submit request because the mime_type: {mime} is not supported in `function_response.parts`. "
        "Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling"
    )


@reproduces("quota")
def quota_exceeded(quota_id: str, value: int, model: str, retry_s: float) -> ApiError:
    """Out of tokens or requests, with when to come back."""
    violation = {"quotaId": quota_id, "quotaValue": str(value), "quotaDimensions": {"model": model}}
    words = (
        "You exceeded your current quota, please check your plan and billing details. "
        f"Quota exceeded for {quota_id}, limit: {value}, model: {model}. Please retry in {retry_s:g}s."
    )
    return ApiError(
        429,
        words,
        details=[{"@type": f"{_TYPES}QuotaFailure", "violations": [violation]}, retry_info(retry_s)],
    )


def retry_info(seconds: float) -> Json:
    """The detail that says when to come back."""
    return {"@type": f"{_TYPES}RetryInfo", "retryDelay": f"{seconds:g}s"}


@reproduces("storage-quota")
def storage_full(used: int, most: int) -> ApiError:
    return ApiError(429, f"You have exceeded the file storage quota of your project: {used} of {most} bytes are used.")


@reproduces("name-taken")
def name_taken(name: str) -> ApiError:
    return ApiError(409, f"Requested entity already exists: files/{name}")


@reproduces("no-key")
def no_key() -> ApiError:
    words = (
        "Method doesn't allow unregistered callers (callers without established identity). "
        "Please use API Key or other form of API consumer identity to call this API."
    )
    return ApiError(403, words)


@reproduces("wrong-key")
def wrong_key() -> ApiError:
    detail = {"@type": f"{_TYPES}ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
    return ApiError(400, "API key not valid. Please pass a valid API key.", details=[detail])


@reproduces("unknown-field")
def unknown_field(name: str) -> ApiError:
    return invalid(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
