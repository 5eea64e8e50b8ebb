"""Gantt charts of timelines as SVG."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from typing import Any

from fxflow.dataflow.tables import time_text
from fxflow.dataflow.timelines import Ran, Timeline

_WIDTH, _ROW, _GAP, _PAD = 960.0, 24.0, 6.0, 12.0
#: The average widths of letters of 12 and of 10 pixels' size.
_LETTER, _SMALL = 6.8, 5.8

#: Colours that colour-blind readers tell apart (Okabe & Ito 2008).
_COLORS = {"F": "#56b4e9", "B": "#e69f00", "W": "#009e73", "O": "#bbbbbb"}
_NAMES = {"F": "forward", "B": "backward", "W": "gradients of weights", "O": "other"}

_STYLE = """text{font:12px system-ui,sans-serif;fill:#222}
.small{font-size:10px}.title{font-weight:600}.end{text-anchor:end}
.middle{text-anchor:middle}rect{stroke:#fff;stroke-width:.5}
.row{fill:#f2f4f6;stroke:none}line{stroke:#ccd3da}"""


def gantt(
    charts: Sequence[tuple[str, Timeline]],
    name: Callable[[Any], str],
    label: Callable[[Any], str],
) -> str:
    """Returns Gantt charts under each other, on one scale of time.

    Args:
      charts: titles and timelines.
      name: of a place.
      label: of what ran; shown where there is room, and with its times on hovering.

    Returns:
      SVG. A bar is a fragment, in the colour of its kind, darker in every other round.
    """
    whole = max((timeline.seconds for _, timeline in charts), default=0.0) or 1.0
    places = {place: name(place) for _, t in charts for place in t.rows}
    left = _PAD + _LETTER * max(map(len, places.values()), default=0) + 8
    scale = (_WIDTH - left - _PAD) / whole
    out: list[str] = []
    y = _PAD
    for title, timeline in charts:
        bubble = f"{timeline.bubble:.0%} idle"
        told = f"{title}: {time_text(timeline.seconds)}, {bubble}"
        out.append(_text(_PAD, y + 12, told, "title"))
        y += 22
        for place, row in timeline.rows.items():
            out.append(_text(left - 8, y + _ROW / 2 + 4, places[place], "end"))
            out.append(
                f'<rect class="row" x="{left:.1f}" y="{y:.1f}" '
                f'width="{whole * scale:.1f}" height="{_ROW:.0f}"/>'
            )
            out += [_bar(ran, left, y, scale, label(ran.work)) for ran in row]
            y += _ROW + _GAP
        out += _axis(left, y, scale, whole)
        y += 30
    x = left
    kinds = {ran.work.kind for _, t in charts for row in t.rows.values() for ran in row}
    for kind, color in _COLORS.items():
        if kind in kinds:
            out.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="12" height="12" fill="{color}"/>'
            )
            out.append(_text(x + 16, y + 10, _NAMES[kind], "small"))
            x += 30 + _SMALL * len(_NAMES[kind])
    height = y + 12 + _PAD
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {_WIDTH:.0f} {height:.0f}">\n'
        f"<style>{_STYLE}</style>\n" + "\n".join(out) + "\n</svg>\n"
    )


def _bar(ran: Ran, left: float, y: float, scale: float, label: str) -> str:
    x, width = left + ran.start * scale, max((ran.end - ran.start) * scale, 0.5)
    shade = ' fill-opacity="0.65"' if ran.work.round % 2 else ""
    color = _COLORS.get(ran.work.kind, _COLORS["O"])
    told = f"{label}: {time_text(ran.start)} to {time_text(ran.end)}"
    bar = (
        f'<rect x="{x:.2f}" y="{y:.1f}" width="{width:.2f}" height="{_ROW:.0f}" '
        f'fill="{color}"{shade}><title>{html.escape(told)}</title></rect>'
    )
    if width < _SMALL * len(label) + 4:
        return bar
    return bar + _text(x + width / 2, y + _ROW / 2 + 4, label, "small middle")


def _axis(left: float, y: float, scale: float, whole: float) -> list[str]:
    """Returns a line with about five marks at round times."""
    step = 10 ** math.floor(math.log10(whole / 2))
    step = next(step * k for k in (1, 2, 5, 10) if whole / (step * k) <= 6)
    out = []
    for i in range(int(whole / step + 1e-9) + 1):
        x = left + i * step * scale
        out.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x:.1f}" y2="{y + 4:.1f}"/>')
        out.append(_text(x, y + 15, time_text(i * step), "small middle"))
    return out


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{html.escape(text)}</text>'
