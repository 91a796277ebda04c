"""`/emulator/…`: what a test in another process or language sets and reads. On loopback, like everything here."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from weighlock.converters.json_text import dumps, loads
from weighlock.emulator.behaviours import behaviours
from weighlock.emulator.script import Answer
from weighlock.emulator.service import Service
from weighlock.emulator.weighing import Remote
from weighlock.errors import InputError
from weighlock.request import Json
from weighlock.written import plain

_LONGEST_S = 3.2e9
"""A century."""
Seconds = Annotated[float, Field(ge=0, le=_LONGEST_S)]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Fault(_Asked):
    name: str
    rate: float = 1.0
    count: NonNegativeInt | None = None
    on: str | list[str] = ""
    after_bytes: NonNegativeInt | Literal["random"] | None = None
    skip: NonNegativeInt = 0


class _Faults(_Asked):
    faults: list[_Fault] = []
    seed: int | None = None
    stall_s: Seconds | None = None


class _Clock(_Asked):
    advance_s: float = Field(ge=-_LONGEST_S, le=_LONGEST_S)


class _Answer(_Asked):
    """What `Answer` takes."""

    text: str | None = None
    json_: Any = Field(None, alias="json")
    calls: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    thoughts: NonNegativeInt = 0
    finish_reason: str = "STOP"
    blocked: str | None = None
    usage: dict[str, Any] | None = None

    def answer(self) -> Answer:
        fields = self.model_dump(by_alias=True, exclude_unset=True, exclude={"model", "contains"})
        return Answer(**fields)


class _When(_Answer):
    model: str | None = None
    contains: str | None = None


class _Script(_Asked):
    queue: list[_Answer] = []
    when: list[_When] = []


Known = TypeVar("Known", bound=_Asked)


def admin_routes(service: Service) -> list[Route]:
    """All routes for testers."""
    admin = _Admin(service)
    return [
        Route("/emulator/state", admin.state, methods=["GET"]),
        Route("/emulator/requests", admin.requests, methods=["GET"]),
        Route("/emulator/behaviours", admin.behaviours, methods=["GET"]),
        Route("/emulator/faults", admin.faults, methods=["PUT", "DELETE"]),
        Route("/emulator/clock", admin.clock, methods=["POST"]),
        Route("/emulator/script", admin.script, methods=["PUT", "DELETE"]),
        Route("/emulator/rules", admin.rules, methods=["PUT", "DELETE"]),
        Route("/emulator/remotes", admin.remotes, methods=["PUT"]),
        Route("/emulator/reset", admin.reset, methods=["POST"]),
    ]


class _Admin:
    def __init__(self, service: Service) -> None:
        self.service = service
        self._packaged = service.rules

    async def state(self, request: Request) -> Response:
        """Time, files, faults and how often they happened."""
        now = self.service.clock.now()
        return _told(
            {
                "now": now.isoformat(),
                "files": [file.document(now) | {"project": file.project.name} for file in self.service.files],
                "faults": [
                    {"name": fault.name, "on": list(fault.on), "seen": fault.seen, "happened": fault.happened}
                    for fault in self.service.faults
                ],
                "seed": self.service.faults.seed,
                "requests": len(self.service.journal),
            }
        )

    async def requests(self, request: Request) -> Response:
        """What was asked, and billed; neither keys nor bodies."""
        return _told(
            [
                {
                    "operation": one.operation,
                    "path": one.path,
                    "status": one.status,
                    "fault": one.fault,
                    "body_bytes": one.body_bytes,
                    "usage": one.usage,
                }
                for one in self.service.journal
            ]
        )

    async def behaviours(self, request: Request) -> Response:
        """What is reproduced, and who says so."""
        return _told(
            [
                {"name": one.name, "does": one.does, "sources": list(one.sources), "assumed": one.assumed}
                for one in behaviours().values()
            ]
        )

    async def faults(self, request: Request) -> Response:
        """`{"faults": [{"name", "rate", "count", "on", "after_bytes", "skip"}], "seed", "stall_s"}`, all at once."""
        asked = await _read(request, _Faults) if request.method == "PUT" else _Faults()
        faults = self.service.faults
        faults.clear()
        faults.seed = faults.seed if asked.seed is None else asked.seed
        faults.stall_s = faults.stall_s if asked.stall_s is None else asked.stall_s
        for fault in asked.faults:
            faults.set(**dict(fault))
        return _told({})

    async def clock(self, request: Request) -> Response:
        """`{"advance_s": 172800}`."""
        asked = await _read(request, _Clock)
        try:
            self.service.clock.advance(asked.advance_s)
        except OverflowError:
            raise InputError("advance_s leads beyond the calendar") from None
        return _told({"now": self.service.clock.now().isoformat()})

    async def script(self, request: Request) -> Response:
        """`{"queue": [answer…], "when": [answer with "model" or "contains"…]}`, added to what is there."""
        if request.method == "DELETE":
            self.service.script.clear()
            return _told({})
        asked = await _read(request, _Script)
        for one in asked.queue:
            self.service.script.queue(one.answer())
        for rule in asked.when:
            self.service.script.when(rule.answer(), model=rule.model, contains=rule.contains)
        return _told({})

    async def rules(self, request: Request) -> Response:
        """A rule file in TOML, laid over the rules it bills by; DELETE takes all of them away."""
        if request.method == "DELETE":
            self.service.rules = self._packaged
        else:
            self.service.lay_over(await request.body())
        return _told({})

    async def remotes(self, request: Request) -> Response:
        """The bytes that stand behind `?uri=`, of the body's own type. Nothing is ever fetched."""
        uri, mime = request.query_params.get("uri"), request.headers.get("content-type")
        if not uri or not mime:
            raise InputError("name the address in ?uri= and the type in Content-Type")
        self.service.scale.remotes[uri] = Remote(data=await request.body(), mime=mime)
        return _told({})

    async def reset(self, request: Request) -> Response:
        """Files, script, faults, cache and what was asked are forgotten."""
        self.service.reset()
        return _told({})


async def _read(request: Request, kind: type[Known]) -> Known:
    """
    Raises:
        InputError: the body is not of that kind; the first mistake in it is named.
    """
    try:
        return kind.model_validate(loads(await request.body()))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"])) or f"an object of {', '.join(kind.model_fields)} is expected"
        raise InputError(f"{plain(place)}: {first['msg']}") from None


def _told(document: Json) -> Response:
    return Response(dumps(document), media_type="application/json")
