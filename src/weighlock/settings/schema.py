"""The settings file as its keys are written: what exists, of which type, within which range.

A key this version does not act on is refused, with a message that says so; accepting it would let an operator believe
in a service nobody starts. One exception is parsed, checked and shown, because a file should not have to change the
day it binds: `mode`/`on_exceed`. `NOT_YET` lists what is known but refused.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from weighlock.budgets.reservation import OnStoreFailure
from weighlock.planning.carrying import Base64InToolText, ToolMedia
from weighlock.planning.counting import OnCountFailure, When
from weighlock.planning.levers import CutBy, Lever, LocalWork, Older
from weighlock.request import Backend, Content
from weighlock.settings.fields import (
    BaseUrl,
    ClipText,
    Count,
    KeepCopies,
    Level,
    Name,
    Seconds,
    Section,
    Size,
    TenantName,
    TimeZone,
    Usd,
    Variable,
    WarnAt,
    WindowName,
    number,
)
from weighlock.settings.model import (
    Confinement,
    Mode,
    OnExceed,
    OnMimeMismatch,
    OnUnknownModel,
    OnUnknownPrice,
    StoreKind,
)
from weighlock.settings.schema_service import ServiceSection
from weighlock.uploads.policy import DeleteRemote

NOT_YET = frozenset({"observe.prometheus"})
"""Keys of the whole product, relative to the file or to an endpoint, that nothing reads yet."""


class AccountSection(Section):
    backend: Backend
    api_key_env: Variable | None = Field(None, description="Environment variable that holds the key.")
    api_key_file: str | None = Field(None, description="File that holds the key.")
    project: str | None = Field(None, description="Google Cloud project (Vertex).")
    location: str | None = Field(None, description="Vertex location; left out, the global endpoint.")
    base_url: BaseUrl | None = Field(None, description="A gateway in the place of Google's own address.")

    @model_validator(mode="after")
    def _consistent(self) -> AccountSection:
        if self.api_key_env is not None and self.api_key_file is not None:
            raise ValueError("name the key's home once: api_key_env or api_key_file")
        if self.backend is Backend.DEVELOPER and (self.project is not None or self.location is not None):
            raise ValueError("project and location belong to `backend: vertex`")
        return self


class TokensSection(Section):
    text: Count | None = None
    image: Count | None = None
    video: Count | None = None
    audio: Count | None = None
    document: Count | None = None


class LimitsSection(Section):
    prompt_tokens: Count | None = Field(None, description="Whole prompt.")
    cost_usd: Usd | None = Field(None, description="USD; the input, and the expected output where one is given.")
    media_parts: Count | None = Field(None, description="Media in one request.")
    bytes: Size | None = Field(None, description="Stored size of the media together.")
    tokens: TokensSection | None = Field(None, description="By modality as sent.")


class WindowSection(Section):
    cost_usd: Usd | None = None
    prompt_tokens: Count | None = None
    tokens: TokensSection | None = None
    requests: Count | None = None
    timezone: TimeZone | None = Field(None, description="IANA name; UTC if left out.")
    warn_at: WarnAt | None = Field(None, description="Told from this fraction on.")


Windows = dict[WindowName, WindowSection | None]


class SessionSection(Section):
    cost_usd: Usd | None = None
    prompt_tokens: Count | None = None
    warn_at: WarnAt | None = Field(None, description="Told from this fraction on.")


class WindowsSection(Section):
    windows: Windows | None = Field(None, description="Over time, inclusive: minute, hour, day, month, rolling 3600s.")


Rate = Annotated[Decimal, BeforeValidator(number), Field(gt=0, le=24)]


class _ModalitySection(Section):
    apply: Literal["always"] | None = Field(None, description="Else only where a request is over its limits.")


class ImageSection(_ModalitySection):
    resolution: Level | None = None
    floor: Level | None = Field(None, description="No lever goes below it.")


class DocumentSection(_ModalitySection):
    resolution: Level | None = None
    floor: Level | None = Field(None, description="No lever goes below it.")


class VideoFloorSection(Section):
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


class AudioFloorSection(Section):
    seconds: Annotated[Seconds, Field(gt=0)] | None = None


class AudioSection(_ModalitySection):
    clip: ClipText | None = None
    floor: AudioFloorSection | None = Field(None, description="No lever goes below it.")


class MediaSection(Section):
    image: ImageSection | None = None
    video: VideoSection | None = None
    audio: AudioSection | None = None
    document: DocumentSection | None = None
    levers: list[Lever] | None = Field(None, description="In the order they are moved; left out, every one.")
    strip_metadata: bool | None = Field(None, description="What says where and by whom a medium was made is taken out.")


class HistorySection(Section):
    keep_media: Count | None = Field(None, description="The newest media of a conversation that always stay.")
    per_tool: bool | None = Field(None, description="So many of each tool; media from none count as of one more.")
    older: Older | None = Field(None, description="Older ones become a note, or go to their lowest resolution.")
    batch: Annotated[int, BeforeValidator(number), Field(ge=1, le=1000)] | None = Field(
        None, description="How many older ones change together, so that the prompt cache survives."
    )


class OutputTokensSection(Section):
    expected: Count | None = Field(None, description="Left out, only the input is priced.")


class CountSection(Section):
    when: When | None = Field(None, description="auto: where the service's count can change the verdict.")
    timeout_s: Annotated[Seconds, Field(gt=0, le=60)] | None = Field(None, description="Of the count, retry included.")
    on_failure: OnCountFailure | None = Field(None, description="Where the service does not say.")


class EndpointSection(Section):
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
    labels: dict[str, str | None] | None = Field(
        None, description="Of the requests the service sends to Vertex: into its bills."
    )


class RulesSection(Section):
    overlay: str | None = Field(None, description="Rule file laid over the shipped ones, relative to this file.")


MediaType = Annotated[
    str, Field(pattern=r"^(image|audio|video|application)/(\*|[a-z0-9][a-z0-9.+-]{0,80})$", examples=["video/*"])
]


class InlineBelowSection(Section):
    developer: Size | None = Field(None, description="Of a whole request, base64 and text counted.")
    vertex: Size | None = Field(
        None, description="The same; Vertex has no Files API, so that past it a receipt says so."
    )
    pdf: Size | None = Field(None, description="Of one PDF, base64 counted.")
    mime: dict[MediaType, Size | None] | None = Field(
        None, description="Of one medium of a type (audio/wav) or kind (video/*), base64 counted."
    )


class UploadsSection(Section):
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


class StateSection(Section):
    store: StoreKind | None = Field(None, description="Of budgets.")
    url_env: Variable | None = Field(None, description="Environment variable that holds the address of a shared store.")
    on_failure: OnStoreFailure | None = Field(None, description="While the store of budgets cannot be asked.")
    dir: str | None = Field(None, description="On a local disk, relative to this file; left out, the user's own.")

    @model_validator(mode="after")
    def _consistent(self) -> StateSection:
        if (self.store is StoreKind.REDIS) != (self.url_env is not None):
            raise ValueError("`store: redis` and url_env, the variable that holds its address, belong together")
        return self


class ObserveSection(Section):
    decision_log: str | None = Field(
        None, description="One JSON line a request: a file, relative to this one; `stdout`; `off`."
    )


class MaxSection(Section):
    file: Size | None = None
    pixels: Annotated[int, BeforeValidator(number), Field(gt=0)] | None = None
    duration_s: Annotated[Seconds, Field(gt=0)] | None = None
    pages: Annotated[int, BeforeValidator(number), Field(gt=0)] | None = None
    frames: Annotated[int, BeforeValidator(number), Field(gt=0)] | None = None


class SafetySection(Section):
    confinement: Confinement | None = None
    workers: Annotated[int, BeforeValidator(number), Field(ge=1, le=256)] | None = None
    max: MaxSection | None = None


class VideoEncodingSection(Section):
    preset: Literal["ultrafast", "superfast", "veryfast", "faster", "fast", "medium"] | None = Field(
        None, description="Slower ones take more time than a piece of work is given."
    )
    crf: Annotated[int, BeforeValidator(number), Field(ge=0, le=51)] | None = Field(
        None, description="Constant quality, from the best."
    )


class AudioEncodingSection(Section):
    bits_per_channel: Annotated[int, BeforeValidator(number), Field(ge=32_000, le=160_000)] | None = Field(
        None, description="A second, of AAC, MP3 and Opus; left out, the format's own."
    )


class EncodingSection(Section):
    video: VideoEncodingSection | None = None
    audio: AudioEncodingSection | None = None


class RatesSection(Section):
    input: Usd = Field(description="USD per 1M tokens of text, image, video and document.")
    audio: Usd | None = Field(None, description="As `input` if left out.")
    cached: Usd | None = None
    output: Usd | None = None


class OverrideSection(RatesSection):
    above_200k: RatesSection | None = Field(None, description="The whole request above 200,000 prompt tokens.")


class PricingSection(Section):
    discount: Annotated[Decimal, BeforeValidator(number), Field(ge=0, lt=1)] | None = None
    overrides: dict[str, OverrideSection] | None = None


class SettingsFile(Section):
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
    service: ServiceSection | None = Field(None, description="The proxy: who may ask it, where it listens.")
