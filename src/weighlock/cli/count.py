"""`weighlock count`: what the service counts of a request, beside what the rules say and what will be billed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import click

from weighlock.accounts import references_of, registry_of, service_of
from weighlock.cli import render
from weighlock.cli.fit_request import read_request
from weighlock.cli.printable import printable
from weighlock.cli.request_file import FORMS
from weighlock.cli.tenant import demand_tenant
from weighlock.count_report import Bias, biases, biases_list
from weighlock.counting import count_of, covered
from weighlock.errors import ConfigError, CountFailed, ServiceError, StateUnavailable, UnreadableSource
from weighlock.gemini.auth import ApiKey
from weighlock.gemini.count import TokenCounter
from weighlock.gemini.http import Service, Target
from weighlock.io import SyncIo, run
from weighlock.planning.counting import Count, Form, is_unseen
from weighlock.planning.recount import corrected
from weighlock.planning.weigh import Tally, Weighed, by_modality
from weighlock.preflight import Preflight
from weighlock.report import SCHEMA, Report
from weighlock.request import Backend, Modality, Request
from weighlock.scales import Asked, Scales
from weighlock.settings import Settings, load
from weighlock.uploads.policy import DEFAULT_TENANT
from weighlock.uploads.references import References
from weighlock.uploads.repair import references_in

_TIMEOUT_S = 60.0
"""Nobody's request waits for it here, and it may carry media."""
_EXIT_FAILED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One request, checked, counted and corrected."""

    report: Report
    counts: dict[Form, Count]
    failure: ServiceError | None
    """Why a form was not counted."""
    corrected: tuple[Weighed, ...]
    against: str
    biases: tuple[Bias, ...]
    """How counts of what it holds stand to the bill."""

    def rows(self) -> Iterator[tuple[str, Tally | None, int | None, Tally | None]]:
        """Modality, checked, counted under Google's bucket of that name, corrected; the sum last."""
        whole = self.counts.get(Form.WHOLE)
        buckets = whole.by_modality if whole is not None else {}
        sums = by_modality(self.corrected)
        others = [name for name in buckets if name not in tuple(Modality)]
        for name in (*Modality, *others):
            checked = self.report.tokens.get(name) if isinstance(name, Modality) else None
            put_right = sums.get(name) if isinstance(name, Modality) else None
            counted = buckets.get(name)
            if checked is not None or counted is not None or put_right is not None:
                yield str(name), checked, counted, put_right
        total = whole.total if whole is not None else None
        yield "total", Tally.of(self.report.tokens.values()), total, Tally.of(sums.values())

    def as_dict(self) -> dict[str, Any]:
        scale = self.report.scale
        return {
            "schema": SCHEMA,
            "model": scale.model,
            "backend": scale.backend,
            "against": self.against,
            "counts": {
                form: {
                    "total": one.total,
                    "cached": one.cached,
                    "stand_ins": one.stand_ins,
                    "by_modality": {**one.by_modality},
                }
                for form, one in self.counts.items()
            },
            "biases": biases_list(self.biases),
            "error": self.failure and {"code": self.failure.code, "message": self.failure.message},
            "modalities": {
                name: {"checked": _bounds(checked), "counted": counted, "corrected": _bounds(put_right)}
                for name, checked, counted, put_right in self.rows()
            },
        }


def _bounds(tally: Tally | None) -> dict[str, int] | None:
    return None if tally is None else {"low": tally.low, "likely": tally.likely, "high": tally.high}


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH... | REQUEST")
@click.option(
    "--against",
    type=click.Choice(["service", "emulator"]),
    default="service",
    show_default=True,
    help="Who counts: the service, with the account's key, or the emulator on this machine, without one.",
)
@click.option("--endpoint", "-e", help="Whose account and model apply. Default: the `default` section.")
@click.option("--model", "-m", help="Default: the request's, or the endpoint's.")
@click.option("--base-url", metavar="URL", help="A gateway in front of the service, or an emulator.")
@click.option(
    "--tenant", default=DEFAULT_TENANT, show_default=True, callback=demand_tenant, help="Whose request it is."
)
@click.option("--config", type=click.Path(path_type=Path), help="Settings file.")
@click.option("--text", help="Prompt text that goes with the files.")
@click.option("--as", "taken_as", type=click.Choice(["auto", "file", *FORMS]), default="auto", show_default=True)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def count(
    paths: tuple[str, ...],
    against: str,
    endpoint: str | None,
    model: str | None,
    base_url: str | None,
    tenant: str,
    config: Path | None,
    text: str | None,
    taken_as: str,
    form: str,
) -> None:
    """Count a request, or files as one, and set it beside the rules: a count is not the bill.

    Counted twice, whole and without its media; so the media inline in it are sent. What is counted of text is the best
    there is to know of it; what is counted of media is put right by what is known of such counts. A file that is gone
    is uploaded again first, where its bytes are still here. Exit code 1 where something could not be counted.
    """
    if against == "emulator" and base_url is not None:
        raise click.UsageError("--base-url is of the service; the emulator has an address of its own")
    settings = load(config)
    with ExitStack() as stack:
        preflight = stack.enter_context(Preflight(settings, preload=False))
        _, request = read_request(paths, taken_as, text, stack, settings.safety.max_file_bytes)
        asked = Asked(endpoint=endpoint, model=model, tenant=tenant)
        scales = preflight.scales(replace(asked, model=model or request.model))
        report = preflight.weigh_request(request, asked)
        _demand_readable(report)
        io = stack.enter_context(SyncIo())
        if against == "emulator":
            address = stack.enter_context(_emulator())
            service = Service(io, Target(backend=scales.backend, base_url=address, project="p"), ApiKey("emulator"))
        else:
            service = service_of(scales.endpoint.account, io, base_url=base_url)
        compared = _compared(
            preflight.screen(request, asked).request,
            report,
            scales,
            service,
            references=None if against == "emulator" else _references(settings, scales, service, stack),
            tenant=tenant,
            against=against,
        )
    if form == "json":
        render.print_json(compared.as_dict())
    else:
        _print(compared, paths[0])
    if compared.failure is not None:
        click.echo(f"weighlock: {compared.failure.code}: {printable(compared.failure.message)}", err=True)
        sys.exit(_EXIT_FAILED)


def _demand_readable(report: Report) -> None:
    """Raises `UnreadableSource` for a medium that is not there, or whose bytes have no end."""
    for part in report.parts:
        if isinstance(part.error, UnreadableSource) and not is_unseen(part):
            raise UnreadableSource(f"{part.examined.label}: {part.error.message}", **part.error.figures)


def _references(
    settings: Settings, scales: Scales, service: Service, stack: ExitStack
) -> Callable[[], References] | None:
    if service.target.backend is Backend.VERTEX:
        return None

    @cache
    def opened() -> References:
        try:
            registry = stack.enter_context(closing(registry_of(settings)))
        except ConfigError as error:  # as good as none; what was checked is told all the same
            raise StateUnavailable(error.message) from error
        return references_of(settings, registry, scales.endpoint.account.name, service)

    return opened


def _compared(
    request: Request,
    report: Report,
    scales: Scales,
    service: Service,
    *,
    references: Callable[[], References] | None,
    tenant: str,
    against: str,
) -> Compared:
    counter, counts, failure = TokenCounter(service), dict[Form, Count](), None
    try:
        for form in Form:
            if form is Form.WHOLE and against == "emulator":
                _demand_no_files(request)
            counts[form] = run(
                count_of(
                    request,
                    scales.model,
                    form,
                    counter=counter,
                    references=references,
                    tenant=tenant,
                    timeout_s=_TIMEOUT_S,
                )
            )
    except ServiceError as error:
        failure = error
    known = tuple(biases(covered(Form.WHOLE, report), scales.rules))
    put_right = corrected(report.parts, counts.get(Form.TEXT), counts.get(Form.WHOLE), scales.rules)
    return Compared(report=report, counts=counts, failure=failure, corrected=put_right, against=against, biases=known)


def _demand_no_files(request: Request) -> None:
    """Raises `CountFailed` where the emulator, which began a moment ago, would have to have a file."""
    if (name := next((name for name, _ in references_in(request)), None)) is not None:
        raise CountFailed(
            f"not counted whole: {name} is at the account's service, not here; --against service counts it"
        )


@contextmanager
def _emulator() -> Iterator[str]:
    try:
        from weighlock.emulator import Emulator
    except ModuleNotFoundError:
        raise ConfigError("the emulator needs more: pip install 'weighlock[service]'") from None
    with Emulator() as emulator:
        yield emulator.base_url


def _print(compared: Compared, label: str) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from weighlock.cli.table import console

    scale = compared.report.scale
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False)
    table.add_column("modality")
    for name in ("checked", "counted", "corrected"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, checked, counted, put_right in compared.rows():
        said = "" if counted is None else f"{counted:,}"
        table.add_row(printable(name), _in_words(checked), said, _in_words(put_right))
    out = console()
    head = f"{label} · {scale.model} on {scale.backend.value} · counted by the {compared.against}"
    out.print(Text(printable(head), style="bold"))
    out.print(table)
    notes = [
        *_without_media(compared.counts.get(Form.TEXT)),
        *_unseen(compared),
        "checked: by the rules alone · counted: in Google's buckets · corrected: what will be billed, as sent",
    ]
    if compared.against == "emulator":
        notes.append("The emulator counts by the same rules: it proves how, never how much.")
    for words in notes:
        out.print(Text(words, style="dim"))


def _without_media(text: Count | None) -> Iterator[str]:
    if text is not None and text.stand_ins:
        texts = "a short text in its place" if text.stand_ins == 1 else f"{text.stand_ins} short texts in their place"
        yield f"Without its media, {texts}: {text.total:,} counted."


def _unseen(compared: Compared) -> Iterator[str]:
    unseen = sum(map(is_unseen, compared.report.parts))
    if unseen and Form.WHOLE in compared.counts:
        yield f"Media only the service can see, {unseen} here, are weighed by their count."


def _in_words(tally: Tally | None) -> str:
    if tally is None:
        return ""
    return f"{tally.likely:,}" if tally.low == tally.high else f"{tally.likely:,} ({tally.low:,}…{tally.high:,})"
