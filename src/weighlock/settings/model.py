"""The settings as plain frozen values. Nothing here reads a file or the environment."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from weighlock.budgets.reservation import OnStoreFailure
from weighlock.budgets.windows import Period, Rolling, Session, Window
from weighlock.codecs.encoding import Encoding
from weighlock.errors import ConfigError
from weighlock.planning.carrying import Base64InToolText, ToolMedia
from weighlock.planning.cost import Contract
from weighlock.planning.counting import CountPolicy
from weighlock.planning.levers import EVERY_LEVER, CutBy, Floor, Lever, LocalWork, Older
from weighlock.planning.limits import Limits
from weighlock.planning.placement import InlineBelow
from weighlock.request import Backend, Clip, Content, MediaResolution, Modality
from weighlock.settings.serving import Serving
from weighlock.uploads.policy import UploadPolicy
from weighlock.written import listed, quoted

BUILT_IN = "built in"
"""Origin of a value nobody gave."""
INHERITED = " (default)"
"""End of the origin of a value an endpoint takes from the default."""
EACH = "each"
"""Among the tenants: what every one of them starts from."""

Windows = Mapping[Period | Rolling, Window]


class Mode(StrEnum):
    """Whether decisions bind."""

    OBSERVE = "observe"
    """Decided and reported, not applied."""
    ENFORCE = "enforce"


class OnExceed(StrEnum):
    """What happens to a request over its limits."""

    SHAPE = "shape"
    REJECT = "reject"
    WARN = "warn"


class OnUnknownModel(StrEnum):
    """A model no rule table knows."""

    HIGH = "high"
    """Weighed by the dearest known rule, and flagged."""
    REJECT = "reject"


class OnUnknownPrice(StrEnum):
    """A model nobody prices. Asked only where a USD limit applies."""

    REJECT = "reject"
    IGNORE = "ignore"


class OnMimeMismatch(StrEnum):
    """A declared type the bytes contradict."""

    CORRECT = "correct"
    REJECT = "reject"


class StoreKind(StrEnum):
    """What budgets are kept in."""

    SQLITE = "sqlite"
    """For all processes of this host."""
    MEMORY = "memory"
    """For this process, until it ends."""
    REDIS = "redis"
    """For all hosts that share it."""


class Confinement(StrEnum):
    """How much of the prober's confinement must be in force."""

    BEST_EFFORT = "best_effort"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who pays, and where requests go. Names where the key is; never holds it."""

    name: str
    backend: Backend
    api_key_env: str | None = None
    api_key_file: Path | None = None
    project: str | None = None
    location: str | None = None
    """Vertex location; `None` is the global endpoint."""
    base_url: str | None = None
    """A gateway or an emulator in the place of Google's own address."""


BUILT_IN_ACCOUNT = Account(name="developer", backend=Backend.DEVELOPER, api_key_env="GEMINI_API_KEY")
"""Who pays where the file names no account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaSettings:
    """What an endpoint wants of media of one modality, where the caller asks for nothing. `None` is the default."""

    always: bool = True
    """Whether it is sent so always (`apply: always`), or only once a request is over its limits."""
    resolution: MediaResolution | None = None
    clip: Clip | None = None
    """Video and audio."""
    fps: float | None = None
    """Frames sampled a second, 0 < fps ≤ 24. Video only."""
    content: Content | None = None
    """Where no `fps` is given: how far that lever goes at once, and where it stops. Video only."""
    cut: CutBy | None = None
    """How its file is cut to a window. Video only."""
    floor: Floor | None = None
    """Below which no lever goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Media re-sent from earlier turns."""

    keep_media: int = 8
    """The newest ones of a conversation that the history lever leaves alone."""
    per_tool: bool = False
    """Whether so many of each tool; what no tool returned counts as of one more."""
    older: Older = Older.NOTE
    batch: int = 4
    """How many change together, so that the prompt's prefix breaks rarely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTokens:
    """What a request is priced for beyond its prompt."""

    expected: int | None = None
    """Tokens of answer and thinking; 0 prices the input alone. `None` is what the last answers were, once 20 are known,
    and until then 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One named use of Gemini, with `default` already merged in."""

    name: str
    account: Account
    model: str
    """Used when a request names none."""
    models: tuple[str, ...] | None = None
    """Allow-list; `None` admits every model."""
    mode: Mode = Mode.OBSERVE
    on_exceed: OnExceed = OnExceed.SHAPE
    on_unknown_model: OnUnknownModel = OnUnknownModel.HIGH
    on_unknown_price: OnUnknownPrice = OnUnknownPrice.REJECT
    mime_mismatch: OnMimeMismatch = OnMimeMismatch.CORRECT
    tool_media: ToolMedia = ToolMedia.FILTER
    base64_in_tool_text: Base64InToolText = Base64InToolText.LIFT
    output_tokens: OutputTokens = field(default_factory=OutputTokens)
    count: CountPolicy = field(default_factory=CountPolicy)
    limits: Limits = field(default_factory=Limits)
    windows: Windows = field(default_factory=lambda: MappingProxyType({}))
    session: Session = field(default_factory=Session)
    """Of one run of an agent."""
    media: Mapping[Modality, MediaSettings] = field(default_factory=lambda: MappingProxyType({}))
    levers: tuple[Lever, ...] = EVERY_LEVER
    """In the order they are moved to make a request fit."""
    strip_metadata: bool = False
    """Whether what says where, when and by whom a medium was made is taken out before it is sent."""
    local_work: LocalWork = LocalWork.BYTES_ONLY
    prepare_deadline_s: float = 10.0
    """Our share of the caller's wait: past it what is left of the local work is not done."""
    history: History = field(default_factory=History)
    owner: str | None = None
    """Whom a refusal names."""
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def allows(self, model: str) -> bool:
        """Whether the allow-list admits this model; resource paths (`models/…`, Vertex) and `@version` aside."""
        return self.models is None or admits(self.models, model)


def admits(models: Iterable[str], model: str) -> bool:
    """Whether an allow-list names this model; resource paths and `@version` aside."""
    return _bare(model) in {_bare(known) for known in models}


def _bare(model: str) -> str:
    return model.rpartition("/")[2].partition("@")[0].lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Safety:
    """Bounds on what a medium may ask of this machine, checked before it is decoded."""

    confinement: Confinement = Confinement.BEST_EFFORT
    workers: int = 2
    max_file_bytes: int = 2_000_000_000
    max_pixels: int = 100_000_000
    max_duration_s: float = 14_400.0
    max_pages: int = 1_000
    max_frames: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploads:
    """What goes by reference instead of inline."""

    inline_below: InlineBelow = field(default_factory=InlineBelow)
    policy: UploadPolicy = field(default_factory=UploadPolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where what is remembered is kept."""

    dir: Path | None = None
    """Of what is kept on this machine; `None` is the user's own place for such things."""
    store: StoreKind = StoreKind.SQLITE
    """Of budgets."""
    url_env: str | None = None
    """Environment variable that holds the address of a shared store."""
    on_failure: OnStoreFailure = OnStoreFailure.REJECT


@dataclass(frozen=True, slots=True, kw_only=True)
class Observe:
    """Who is told what became of requests."""

    decision_log: Path | Literal["stdout"] | None = None
    """One JSON line a request, never content; `None` writes none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything an operator said, and where."""

    accounts: Mapping[str, Account]
    default: Endpoint
    endpoints: Mapping[str, Endpoint] = field(default_factory=lambda: MappingProxyType({}))
    uploads: Uploads = field(default_factory=Uploads)
    tenants: Mapping[str, Windows] = field(default_factory=lambda: MappingProxyType({}))
    """Budgets of a tenant, all endpoints together, with those of each already merged in; `each` is any other's."""
    overall: Windows = field(default_factory=lambda: MappingProxyType({}))
    """Budgets of all endpoints and tenants together."""
    state: State = field(default_factory=State)
    observe: Observe = field(default_factory=Observe)
    safety: Safety = field(default_factory=Safety)
    pricing: Contract = field(default_factory=Contract)
    encoding: Encoding = field(default_factory=Encoding)
    """How films and sound are encoded, where they have to be."""
    service: Serving = field(default_factory=Serving)
    rules_overlay: Path | None = None
    files: tuple[Path, ...] = field(default=(), compare=False)
    """Every file read, the main one first."""
    origin: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), compare=False)
    """Key path (`endpoints.bug_triage.limits.cost_usd`) → where its value came from."""

    def endpoint(self, name: str | None = None) -> Endpoint:
        """The endpoint of that name; what every endpoint starts from for `None` and `default`.

        Raises:
            ConfigError: no such endpoint; the message names the nearest.
        """
        if name is None or name == self.default.name:
            return self.default
        try:
            return self.endpoints[name]
        except KeyError:
            raise ConfigError(
                f"unknown endpoint {quoted(name)}; {suggest(name, self.endpoints)}", endpoint=name
            ) from None

    def asking(self, base_url: str, api_key_env: str | None = None) -> Settings:
        """With every account behind one address; with `api_key_env`, its key is there for all of them."""
        accounts = {name: replace(one, base_url=base_url) for name, one in self.accounts.items()}
        if api_key_env is not None:
            accounts = {
                name: replace(one, api_key_env=api_key_env, api_key_file=None) for name, one in accounts.items()
            }
        default, *endpoints = (
            replace(one, account=accounts[one.account.name]) for one in (self.default, *self.endpoints.values())
        )
        return replace(
            self,
            accounts=MappingProxyType(accounts),
            default=default,
            endpoints=MappingProxyType({one.name: one for one in endpoints}),
        )

    def tenant(self, name: str) -> Windows:
        """The budgets of a tenant; those of each, where it is not named."""
        return self.tenants.get(name, self.tenants.get(EACH, MappingProxyType({})))


def suggest(word: str, known: Iterable[str]) -> str:
    """The end of a message about a word nobody knows: the nearest one, or all there are."""
    words = sorted(known)
    near = difflib.get_close_matches(word.lower(), words, n=1, cutoff=0.6)
    if near:
        return f"did you mean {quoted(near[0])}?"
    return f"known: {listed(words)}" if words else "none is known"
