"""The page of `weighlock preview`: one HTML file that needs no script and nothing from anywhere else."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape

from weighlock.cli.printable import printable
from weighlock.media.facts import VideoFacts
from weighlock.media.tokens import TokenRange, weakest
from weighlock.planning.weigh import CostRange, Tally, Weighed
from weighlock.report import Report, facts_in_words, settings_in_words
from weighlock.request import Modality


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What there is to show of one picture, or of one film whose frames lie on a sheet, row by row."""

    report: Report
    data: bytes
    mime: str
    size_px: tuple[int, int]
    """Of the picture, or of one frame."""
    cell_px: int | None
    """Assumed pixels of a token's side; `None` where not even that is known, and it is shown as large as it is."""
    frame_tokens: tuple[int, int, int]
    """Low, likely and high of the picture, or of one frame."""
    notes: tuple[str, ...] = ()
    """What was lost on the way."""
    columns: int = 1
    sampled: int = 0
    """Frames the service is expected to take."""
    fps: float = 0.0
    instants_s: tuple[float, ...] = ()
    """Of each frame that is shown, from the beginning of the film; none of a picture."""

    @property
    def part(self) -> Weighed:
        return self.report.parts[0]

    @property
    def is_film(self) -> bool:
        return isinstance(self.part.examined.facts, VideoFacts)


def sentences(found: Preview) -> Iterator[str]:
    """What the page says, in a few lines for a terminal."""
    scale = found.report.scale
    yield f"{found.part.examined.label} · {facts_in_words(found.part)}"
    yield f"{scale.resolved_model} on {scale.backend.value} · {_settings(found)}"
    yield _seen(found)
    if found.is_film:
        yield _shown(found)
    yield f"{_tokens(found)} · {_usd(found.report)}"
    yield from found.notes
    yield from _remarks(found.part)


def page(found: Preview) -> bytes:
    """The whole page, as UTF-8."""
    name = _safe(found.part.examined.label)
    body = "\n".join((_head(found, name), _figures(found), _pictures(found, name), _foot(found)))
    style = _STYLE + (_sheet_style(found) if found.is_film else "")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{name} as the model sees it</title>
<style>
{style}</style>
</head>
<body>
{body}
</body>
</html>
""".encode()


_STYLE = """\
:root { color-scheme: light dark; --ink: #1c1e21; --dim: #5c636b; --back: #fbfbfa; --line: #d9dcdf; --mark: #8a4b00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e3; --dim: #a2a8ae; --back: #16181a; --line: #383c40; --mark: #f0b060; }
}
body { margin: 0; padding: 1rem; color: var(--ink); background: var(--back); font: 1rem/1.45 system-ui, sans-serif; }
h1 { margin: 0 0 .2rem; font-size: 1.3rem; overflow-wrap: anywhere; }
.ask { margin: .8rem 0; font-size: 1.1rem; font-weight: 600; }
.dim, figcaption { color: var(--dim); }
.dim { margin: .2rem 0; max-width: 46rem; overflow-wrap: anywhere; }
.mark { margin: .2rem 0; color: var(--mark); max-width: 46rem; overflow-wrap: anywhere; }
table { margin: .6rem 0; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child { text-align: left; font-weight: 400; }
@media (max-width: 28rem) { table { font-size: .85rem; } th, td { padding-right: .5rem; } }
thead th { color: var(--dim); font-weight: 400; }
.seen { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1rem 0; }
figure { margin: 0; max-width: 100%; }
.look { overflow-x: auto; max-width: 100%; }
.look img { display: block; max-width: none; }
figcaption { font-size: .85rem; font-variant-numeric: tabular-nums; }
"""


def _sheet_style(found: Preview) -> str:
    width, height = found.size_px
    return (
        f".frame {{ width: {width}px; height: {height}px; background-image: url({_data_uri(found)}); "
        "background-repeat: no-repeat; }\n"
    )


def _head(found: Preview, name: str) -> str:
    scale = found.report.scale
    what = _safe(facts_in_words(found.part))
    model = f"{_safe(scale.resolved_model)} on {scale.backend.value} · endpoint {_safe(scale.endpoint)}"
    lines = [
        f"<h1>{name}</h1>",
        f'<p class="dim">{what} · {model} · {_safe(_settings(found))}</p>',
        '<p class="ask">Can you still read the error code?</p>',
        f'<p class="dim">{_safe(_seen(found).capitalize())}. {_safe(_shown(found)) + ". " if found.is_film else ""}'
        "Look at it at 100 % zoom: a pixel here is a pixel there.</p>",
    ]
    told = (*found.notes, *_remarks(found.part), *filter(None, [scale.model_note, found.report.refusal]))
    return "\n".join([*lines, *(f'<p class="mark">{_safe(one)}</p>' for one in told)])


def _figures(found: Preview) -> str:
    tokens = found.part.tokens
    rows = [_row("one frame" if found.is_film else "the picture", found.frame_tokens)]
    if found.is_film:
        rows += [_row(_name_of(one), _bounds(one)) for one in tokens]
        rows.append(_row("in all, tokens", _bounds(found.part.total)))
    rows.append(_usd_row(found.report))
    head = '<thead><tr><th scope="col">tokens</th><th scope="col">low</th><th scope="col">likely</th>'
    return f'<table>\n{head}<th scope="col">high</th></tr></thead>\n<tbody>\n{"".join(rows)}</tbody>\n</table>'


def _row(name: str, figures: Sequence[int | str]) -> str:
    cells = "".join(f"<td>{one:,}</td>" if isinstance(one, int) else f"<td>{escape(one)}</td>" for one in figures)
    return f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>\n'


def _usd_row(report: Report) -> str:
    cost = report.costs[0]
    if cost is None:
        return '<tr><th scope="row">USD</th><td colspan="3">no price is known</td></tr>\n'
    return _row("USD", [_dollars(one) for one in (cost.low, cost.likely, cost.high)])


def _pictures(found: Preview, name: str) -> str:
    width, height = found.size_px
    if not found.is_film:
        image = f'<img src="{_data_uri(found)}" width="{width}" height="{height}" alt="{name}, as small as it is seen">'
        return f'<div class="seen"><figure><div class="look">{image}</div></figure></div>'
    drawn = []
    for number, at_s in enumerate(found.instants_s):
        row, column = divmod(number, found.columns)
        place = f"background-position: {-column * width}px {-row * height}px"
        at = _clock(at_s)
        frame = f'<div class="frame" role="img" aria-label="frame at {at}" style="{place}"></div>'
        drawn.append(f'<figure><div class="look">{frame}</div><figcaption>{at}</figcaption></figure>')
    return '<div class="seen">\n' + "\n".join(drawn) + "\n</div>"


def _foot(found: Preview) -> str:
    scale, part = found.report.scale, found.part
    confidence = weakest(one.confidence for one in part.tokens).value
    rules = " + ".join(dict.fromkeys(one.rule_id for one in part.tokens))
    price = f" · prices: {scale.price_source}" if scale.price_source else ""
    unreadable = (
        "If it cannot be read: a higher resolution, a shorter clip at more frames a second, or a crop. "
        "If it can: is a lower resolution enough?"
    )
    rests_on = f"tokens {confidence}, rule {rules} of {scale.rule_date}{price} · made offline by weighlock"
    return f'<p class="dim">{escape(unreadable)}</p>\n<p class="dim">{_safe(rests_on)}</p>'


def _data_uri(found: Preview) -> str:
    return f"data:{found.mime};base64,{base64.b64encode(found.data).decode()}"


def _safe(words: str) -> str:
    return escape(printable(words))


# ---- in words


def _settings(found: Preview) -> str:
    return settings_in_words(found.part) or "the service's default settings"


def _seen(found: Preview) -> str:
    size = f"{found.size_px[0]}×{found.size_px[1]} px"
    if found.cell_px is None:
        return f"shown at {size}; how small the model sees it is not known"
    return f"seen at {size} (assumed: a token is {found.cell_px} × {found.cell_px} px)"


def _shown(found: Preview) -> str:
    taken, shown = found.sampled, len(found.instants_s)
    if taken == 1:
        return "1 frame is sampled"
    which = "all are shown" if shown == taken else f"{shown:,} of them are shown, evenly spread"
    return f"{taken:,} frames are sampled at {found.fps:g} fps; {which}"


def _tokens(found: Preview) -> str:
    each = f" ({found.frame_tokens[1]:,} a frame)" if found.is_film else ""
    told = []
    for one in found.part.tokens:
        bounds = "" if one.low == one.high else f" [{one.low:,}…{one.high:,}]"
        told.append(f"{_name_of(one)} {one.likely:,}{bounds}{each if one.modality is Modality.VIDEO else ''}")
    total = f" = {found.part.total.likely:,}" if len(told) > 1 else ""
    return f"{' + '.join(told)}{total} tokens"


def _name_of(tokens: TokenRange) -> str:
    return {Modality.VIDEO: "frames", Modality.AUDIO: "sound"}.get(tokens.modality, tokens.modality.value.lower())


def _bounds(tally: Tally | TokenRange) -> tuple[int, int, int]:
    return tally.low, tally.likely, tally.high


def _usd(report: Report) -> str:
    cost: CostRange | None = report.costs[0]
    return "no price is known" if cost is None else _dollars(cost.likely)


def _dollars(amount: Decimal) -> str:
    """Four decimals, and of less than a cent three figures; cents from a dollar on."""
    return f"${amount:.2f}" if amount >= 1 else f"${amount:.{max(4, 2 - amount.adjusted())}f}" if amount else "$0"


def _remarks(part: Weighed) -> Iterator[str]:
    yield from part.refused
    yield from part.notes
    yield from (one.detail for one in part.examined.anomalies)


def _clock(at_s: float) -> str:
    """`2:05`, or `2:05.5` between seconds."""
    tenths = round(at_s * 10)
    minutes, rest = divmod(tenths, 600)
    seconds, tenth = divmod(rest, 10)
    return f"{minutes}:{seconds:02d}" + (f".{tenth}" if tenth else "")
