"""`/emulator/…`: what a test in another process or language sets and reads. On loopback, like everything here."""

from __future__ import annotations

from collections.abc import Mapping

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

_FAULT_KEYS = {"name", "rate", "count", "on", "after_bytes", "skip"}
_ANSWER_KEYS = set(Answer.__dataclass_fields__)
_WHEN_KEYS = {"model", "contains"}


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
        """What was asked; neither keys nor bodies."""
        return _told(
            [
                {
                    "operation": one.operation,
                    "path": one.path,
                    "status": one.status,
                    "fault": one.fault,
                    "body_bytes": one.body_bytes,
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
        self.service.faults.clear()
        if request.method == "PUT":
            asked = await _object(request, {"faults", "seed", "stall_s"})
            self.service.faults.seed = asked.get("seed", self.service.faults.seed)
            self.service.faults.stall_s = asked.get("stall_s", self.service.faults.stall_s)
            for fault in asked.get("faults", []):
                _demand_keys(fault, _FAULT_KEYS)
                self.service.faults.set(**fault)
        return _told({})

    async def clock(self, request: Request) -> Response:
        """`{"advance_s": 172800}`."""
        asked = await _object(request, {"advance_s"})
        seconds = asked.get("advance_s")
        if not isinstance(seconds, int | float):
            raise InputError("advance_s is a number of seconds")
        self.service.clock.advance(seconds)
        return _told({"now": self.service.clock.now().isoformat()})

    async def script(self, request: Request) -> Response:
        """`{"queue": [answer…], "when": [answer with "model" or "contains"…]}`, added to what is there."""
        if request.method == "DELETE":
            self.service.script.clear()
            return _told({})
        asked = await _object(request, {"queue", "when"})
        for words in asked.get("queue", []):
            _demand_keys(words, _ANSWER_KEYS)
            self.service.script.queue(Answer(**words))
        for words in asked.get("when", []):
            _demand_keys(words, _ANSWER_KEYS | _WHEN_KEYS)
            answer = Answer(**{key: value for key, value in words.items() if key in _ANSWER_KEYS})
            self.service.script.when(answer, model=words.get("model"), contains=words.get("contains"))
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


async def _object(request: Request, known: set[str]) -> dict[str, Json]:
    asked = loads(await request.body())
    _demand_keys(asked, known)
    return dict(asked)


def _demand_keys(asked: Json, known: set[str]) -> None:
    if not isinstance(asked, Mapping) or not set(asked) <= known:
        raise InputError(f"an object of {', '.join(sorted(known))} is expected")


def _told(document: Json) -> Response:
    return Response(dumps(document), media_type="application/json")
