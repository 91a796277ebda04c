"""The settings file as its keys are written: what exists, of which type, within which range.

A key this version does not act on is refused, with a message that says so; accepting it would let an operator believe
in a service nobody starts. Two exceptions are parsed, checked and shown, because a file should not have to change the
day they bind: `mode`/`on_exceed`, and `labels`. `NOT_YET` lists what is known but refused.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from weighlock.budgets.reservation import OnStoreFailure
from weighlock.budgets.windows import Period
from weighlock.planning.carrying import Base64InToolText, ToolMedia
from weighlock.planning.counting import OnCountFailure, When
from weighlock.planning.levers import CutBy, Lever, LocalWork, Older
from weighlock.request import Backend, Content
from weighlock.settings.amounts import bounded, parse_clip, parse_seconds, parse_size
from weighlock.settings.model import (
    Confinement,
    Mode,
    OnExceed,
    OnMimeMismatch,
    OnUnknownModel,
    OnUnknownPrice,
    StoreKind,
    suggest,
)
from weighlock.uploads.policy import DeleteRemote
from weighlock.written import quoted, without_keys

NOT_YET = frozenset(
    {
        "service",
        "observe.prometheus",
    }
)
"""Keys of the whole product, relative to the file or to an endpoint, that nothing reads yet."""

_VARIABLE = re.compile(r"^[A-Z_][A-Z0-9_]*$")
_NAME = re.compile(r"^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$")
_WINDOW = r"^(minute|hour|day|month|rolling [1-9][0-9]{0,7}s)$"


def _number(value: Any) -> Any:
    # Lax integers would take `true` as 1.
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    return bounded(value)


def _name(value: str) -> str:
    if not _NAME.match(value):
        raise ValueError("a name is lower-case words joined by single underscores, as variables spell it")
    if value == "default":
        raise ValueError("`default` is what every endpoint starts from; write it at the top level")
    return value


def _window(value: str) -> str:
    if not re.match(_WINDOW, value):
        nearest = suggest(value, [*(period.value for period in Period), "rolling 3600s"])
        raise ValueError(f"unknown key; {nearest}")
    return value


def _variable(value: str) -> str:
    # Upper case only: a key pasted here by mistake has lower-case letters, and must be neither kept nor repeated.
    if not _VARIABLE.match(value) or without_keys(value) != value:
        raise ValueError("must be the name of a variable, such as GEMINI_API_KEY; a key itself is never written here")
    return value


def _keep_copies(value: Any) -> Any:
    return value if value in ("off", "until_deleted") else parse_seconds(value)


def _clip(value: str) -> str:
    return str(parse_clip(value))


def _timezone(value: str) -> str:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{quoted(value)} is no time zone; write an IANA name such as Europe/Berlin") from None
    return value


Count = Annotated[int, BeforeValidator(_number), Field(ge=0)]
Usd = Annotated[Decimal, BeforeValidator(_number), Field(ge=0)]
Size = Annotated[
    int,
    BeforeValidator(parse_size),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}], "examples": ["100MB", "2GiB"]}),
]
Seconds = Annotated[
    float,
    BeforeValidator(parse_seconds),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}], "examples": [14400, "4h"]}),
]
KeepCopies = Annotated[
    Literal["off", "until_deleted"] | float,
    BeforeValidator(_keep_copies),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}], "examples": ["off", "7d"]}),
]
Name = Annotated[str, AfterValidator(_name)]
TenantName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$")]
WindowName = Annotated[str, AfterValidator(_window), WithJsonSchema({"type": "string", "pattern": _WINDOW})]
WarnAt = Annotated[Decimal, BeforeValidator(_number), Field(gt=0, le=1)]
ClipText = Annotated[
    str,
    AfterValidator(_clip),
    WithJsonSchema(
        {"type": "string", "examples": ["last 60s", "first 2m", "10s-70s", "10s-", "around 95s", "30s around 95s"]}
    ),
]
Level = Literal["low", "medium", "high", "ultra_high"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AccountSection(_Section):
    backend: Backend
    api_key_env: Annotated[str, AfterValidator(_variable)] | None = Field(
        None, description="Environment variable that holds the key."
    )
    api_key_file: str | None = Field(None, description="File that holds the key.")
    project: str | None = Field(None, description="Google Cloud project (Vertex).")
    location: str | None = Field(None, description="Vertex location; left out, the global endpoint.")

    @model_validator(mode="after")
    def _consistent(self) -> AccountSection:
        if self.api_key_env is not None and self.api_key_file is not None:
            raise ValueError("name the key's home once: api_key_env or api_key_file")
        if self.backend is Backend.DEVELOPER and (self.project is not None or self.location is not None):
            raise ValueError("project and location belong to `backend: vertex`")
        return self


class TokensSection(_Section):
    text: Count | None = None
    image: Count | None = None
    video: Count | None = None
    audio: Count | None = None
    document: Count | None = None


class LimitsSection(_Section):
    prompt_tokens: Count | None = Field(None, description="Whole prompt.")
    cost_usd: Usd | None = Field(None, description="USD; the input, and the expected output where one is given.")
    media_parts: Count | None = Field(None, description="Media in one request.")
    bytes: Size | None = Field(None, description="Stored size of the media together.")
    tokens: TokensSection | None = Field(None, description="By modality as sent.")


class WindowSection(_Section):
    cost_usd: Usd | None = None
    prompt_tokens: Count | None = None
    tokens: TokensSection | None = None
    requests: Count | None = None
    timezone: Annotated[str, AfterValidator(_timezone)] | None = Field(None, description="IANA name; UTC if left out.")
    warn_at: WarnAt | None = Field(None, description="Told from this fraction on.")


Windows = dict[WindowName, WindowSection | None]


class SessionSection(_Section):
    cost_usd: Usd | None = None
    prompt_tokens: Count | None = None
    warn_at: WarnAt | None = Field(None, description="Told from this fraction on.")


class WindowsSection(_Section):
    windows: Windows | None = Field(None, description="Over time, inclusive: minute, hour, day, month, rolling 3600s.")


Rate = Annotated[Decimal, BeforeValidator(_number), Field(gt=0, le=24)]


class _ModalitySection(_Section):
    apply: Literal["always"] | None = Field(None, description="Else only where a request is over its limits.")


class ImageSection(_ModalitySection):
    resolution: Level | None = None
    floor: Level | None = Field(None, description="No lever goes below it.")


class DocumentSection(_ModalitySection):
    resolution: Level | None = None
    floor: Level | None = Field(None, description="No lever goes below it.")


class VideoFloorSection(_Section):
    fps: Rate | None = None
    seconds: Annotated[Seconds, Field(gt=0)] | None = None
    resolution: Level | None = None


class VideoSection(_ModalitySection):
    resolution: Level | None = None
    clip: ClipText | None = None
    fps: Rate | None = None
    content: Content | None = Field(
        None, description="What films show: how far the lever `fps` goes where none is given."
    )
    cut: CutBy | None = Field(None, description="Of its file to a window: encoded again, or copied from a key frame.")
    floor: VideoFloorSection | None = Field(None, description="No lever goes below it.")


class AudioFloorSection(_Section):
    seconds: Annotated[Seconds, Field(gt=0)] | None = None


class AudioSection(_ModalitySection):
    clip: ClipText | None = None
    floor: AudioFloorSection | None = Field(None, description="No lever goes below it.")


class MediaSection(_Section):
    image: ImageSection | None = None
    video: VideoSection | None = None
    audio: AudioSection | None = None
    document: DocumentSection | None = None
    levers: list[Lever] | None = Field(None, description="In the order they are moved; left out, every one.")
    strip_metadata: bool | None = Field(None, description="What says where and by whom a medium was made is taken out.")


class HistorySection(_Section):
    keep_media: Count | None = Field(None, description="The newest media of a conversation that always stay.")
    per_tool: bool | None = Field(None, description="So many of each tool; media from none count as of one more.")
    older: Older | None = Field(None, description="Older ones become a note, or go to their lowest resolution.")
    batch: Annotated[int, BeforeValidator(_number), Field(ge=1, le=1000)] | None = Field(
        None, description="How many older ones change together, so that the prompt cache survives."
    )


class OutputTokensSection(_Section):
    expected: Count | None = Field(None, description="Left out, only the input is priced.")


class CountSection(_Section):
    when: When | None = Field(None, description="auto: where the service's count can change the verdict.")
    timeout_s: Annotated[Seconds, Field(gt=0, le=60)] | None = Field(None, description="Of the count, retry included.")
    on_failure: OnCountFailure | None = Field(None, description="Where the service does not say.")


class EndpointSection(_Section):
    account: str | None = None
    model: str | None = Field(None, description="Used when a request names none.")
    models: list[str] | None = Field(None, description="Allow-list.")
    mode: Mode | None = None
    on_exceed: OnExceed | None = None
    on_unknown_model: OnUnknownModel | None = None
    on_unknown_price: OnUnknownPrice | None = None
    mime_mismatch: OnMimeMismatch | None = Field(None, description="A declared type the bytes contradict.")
    tool_media: ToolMedia | None = Field(None, description="Media a tool result cannot carry, such as audio and video.")
    base64_in_tool_text: Base64InToolText | None = Field(None, description="Media a tool returns as base64 text.")
    output_tokens: OutputTokensSection | None = None
    count: CountSection | None = Field(None, description="The service asked before the verdict.")
    limits: LimitsSection | None = Field(None, description="Of one request, inclusive.")
    windows: Windows | None = Field(None, description="Over time, inclusive: minute, hour, day, month, rolling 3600s.")
    session: SessionSection | None = Field(None, description="Of one run of an agent.")
    media: MediaSection | None = None
    local_work: LocalWork | None = Field(None, description="What may be done to the bytes of a medium.")
    prepare_deadline_s: Annotated[Seconds, Field(gt=0)] | None = Field(
        None, description="Past it local work is broken off, and the request goes without it or is refused."
    )
    history: HistorySection | None = Field(None, description="Media re-sent from earlier turns.")
    owner: str | None = None
    labels: dict[str, str | None] | None = Field(None, description="Checked and shown; not sent by this version.")


class RulesSection(_Section):
    overlay: str | None = Field(None, description="Rule file laid over the shipped ones, relative to this file.")


MediaType = Annotated[
    str, Field(pattern=r"^(image|audio|video|application)/(\*|[a-z0-9][a-z0-9.+-]{0,80})$", examples=["video/*"])
]


class InlineBelowSection(_Section):
    developer: Size | None = Field(None, description="Of a whole request, base64 and text counted.")
    vertex: Size | None = Field(
        None, description="The same; Vertex has no Files API, so that past it a receipt says so."
    )
    pdf: Size | None = Field(None, description="Of one PDF, base64 counted.")
    mime: dict[MediaType, Size | None] | None = Field(
        None, description="Of one medium of a type (audio/wav) or kind (video/*), base64 counted."
    )


class UploadsSection(_Section):
    inline_below: InlineBelowSection | None = Field(None, description="What is larger goes by the Files API.")
    keep_copies: KeepCopies | None = Field(
        None,
        description="Of what we would not see again: off, a time since its last use, or until_deleted.",
    )
    copies_cap: Size | None = Field(None, description="Of all copies together.")
    delete_remote: DeleteRemote | None = Field(None, description="When a file leaves the service.")
    quota: Size | None = Field(None, description="Of an account's files at the service.")
    give_up_after: Annotated[Seconds, Field(gt=0)] | None = Field(
        None, description="How long an upload is tried again with nothing more arriving."
    )


class StateSection(_Section):
    store: StoreKind | None = Field(None, description="Of budgets.")
    url_env: Annotated[str, AfterValidator(_variable)] | None = Field(
        None, description="Environment variable that holds the address of a shared store."
    )
    on_failure: OnStoreFailure | None = Field(None, description="While the store of budgets cannot be asked.")
    dir: str | None = Field(None, description="On a local disk, relative to this file; left out, the user's own.")

    @model_validator(mode="after")
    def _consistent(self) -> StateSection:
        if (self.store is StoreKind.REDIS) != (self.url_env is not None):
            raise ValueError("`store: redis` and url_env, the variable that holds its address, belong together")
        return self


class ObserveSection(_Section):
    decision_log: str | None = Field(
        None, description="One JSON line a request: a file, relative to this one; `stdout`; `off`."
    )


class MaxSection(_Section):
    file: Size | None = None
    pixels: Annotated[int, BeforeValidator(_number), Field(gt=0)] | None = None
    duration_s: Annotated[Seconds, Field(gt=0)] | None = None
    pages: Annotated[int, BeforeValidator(_number), Field(gt=0)] | None = None
    frames: Annotated[int, BeforeValidator(_number), Field(gt=0)] | None = None


class SafetySection(_Section):
    confinement: Confinement | None = None
    workers: Annotated[int, BeforeValidator(_number), Field(ge=1, le=256)] | None = None
    max: MaxSection | None = None


class VideoEncodingSection(_Section):
    preset: Literal["ultrafast", "superfast", "veryfast", "faster", "fast", "medium"] | None = Field(
        None, description="Slower ones take more time than a piece of work is given."
    )
    crf: Annotated[int, BeforeValidator(_number), Field(ge=0, le=51)] | None = Field(
        None, description="Constant quality, from the best."
    )


class AudioEncodingSection(_Section):
    bits_per_channel: Annotated[int, BeforeValidator(_number), Field(ge=32_000, le=160_000)] | None = Field(
        None, description="A second, of AAC, MP3 and Opus; left out, the format's own."
    )


class EncodingSection(_Section):
    video: VideoEncodingSection | None = None
    audio: AudioEncodingSection | None = None


class RatesSection(_Section):
    input: Usd = Field(description="USD per 1M tokens of text, image, video and document.")
    audio: Usd | None = Field(None, description="As `input` if left out.")
    cached: Usd | None = None
    output: Usd | None = None


class OverrideSection(RatesSection):
    above_200k: RatesSection | None = Field(None, description="The whole request above 200,000 prompt tokens.")


class PricingSection(_Section):
    discount: Annotated[Decimal, BeforeValidator(_number), Field(ge=0, lt=1)] | None = None
    overrides: dict[str, OverrideSection] | None = None


class SettingsFile(_Section):
    """The settings of weighlock."""

    version: Literal[1]
    include: list[str] | None = Field(None, description="Files with accounts and endpoints, relative to this one.")
    accounts: dict[Name, AccountSection] | None = None
    default: EndpointSection | None = Field(None, description="What every endpoint starts from.")
    endpoints: dict[Name, EndpointSection | None] | None = None
    rules: RulesSection | None = None
    uploads: UploadsSection | None = None
    tenants: dict[TenantName, WindowsSection | None] | None = Field(
        None, description="Of each tenant, all endpoints together; `each` is what every one starts from."
    )
    overall: WindowsSection | None = Field(None, description="Of all endpoints and tenants together.")
    state: StateSection | None = Field(None, description="What is remembered, and where.")
    observe: ObserveSection | None = Field(None, description="Who is told what became of requests.")
    safety: SafetySection | None = None
    pricing: PricingSection | None = None
    encoding: EncodingSection | None = Field(None, description="Of films and sound that have to be encoded again.")
