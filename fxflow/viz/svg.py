"""A dataflow graph as SVG: the layers of `layers`, moved apart by what is in them."""

from __future__ import annotations

import html
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fxflow.viz.layers import Bridge, ScopeGroup
from fxflow.viz.texts import caption
from fxflow.viz.walk import ARGUMENT, RESULT, Item, colors, place_of

_GAP_X, _GAP_Y, _PAD, _HEAD = 18.0, 34.0, 16.0, 24.0
#: The average width of a letter of 13 pixels' size.
_LETTER = 7.2
_BEND = 6.0
_PASSES = 6

_STYLE = """text{font:13px system-ui,sans-serif;fill:#222;text-anchor:middle}
.small{font-size:10px;fill:#667}.name{text-anchor:start}
rect{fill:#fff;stroke:#9aa7b4}.argument{fill:#e3f3e6;stroke:#6aa576}
.result{fill:#fbe9e0;stroke:#cc8259}.group{fill:#e8eef6;stroke:#6f8fb5}
.open{fill:#f5f8fc;stroke:#6f8fb5}
.bridge{fill:#f4f4f4;stroke:#ccc;stroke-dasharray:3 2}
path{fill:none;stroke:#8894a0;stroke-width:1.1}"""


@dataclass
class _Box:
    """Where a group's children are, from its upper left corner."""

    width: float
    height: float
    at: dict[int, tuple[float, float]]
    sizes: list[tuple[float, float]]
    inner: dict[int, _Box]


def unfolded(root: ScopeGroup, shown: int) -> set[int]:
    """Returns the ids of groups to unfold, the outer first, while there is room."""
    found, count = {id(root)}, len(root.children)
    waiting = deque(c for c in root.children if isinstance(c, ScopeGroup))
    while waiting:
        group = waiting.popleft()
        if count + len(group.children) <= shown:
            count += len(group.children)
            found.add(id(group))
            waiting += [c for c in group.children if isinstance(c, ScopeGroup)]
    return found


def spread(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Returns centres near those wanted, in order and with gaps.

    The sum of squares of the distances is the least there is (pool adjacent violators).

    Args:
      wanted: centres.
      widths: of what is there.
    """
    blocks: list[tuple[float, int]] = []  # sum of wanted left ends, how many
    before = [0.0]
    for centre, width in zip(wanted, widths, strict=True):
        total, count = centre - width / 2 - before[-1], 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            last, more = blocks.pop()
            total, count = total + last, count + more
        blocks.append((total, count))
        before.append(before[-1] + width + _GAP_X)
    left = [total / count for total, count in blocks for _ in range(count)]
    return [
        start + offset + width / 2
        for start, offset, width in zip(left, before, widths, strict=False)
    ]


def _text_of(items: Sequence[Item], child: Any) -> str:
    if isinstance(child, ScopeGroup):
        return f"▸ {child.name}"
    if isinstance(child, Bridge):
        return f"{'from' if child.incoming else 'to'} {child.label}"
    return caption(items, items[child])


def _arranged(items: Sequence[Item], group: ScopeGroup, open_groups: set[int]) -> _Box:
    """Places the children of a group."""
    inner = {
        n: _arranged(items, child, open_groups)
        for n, child in enumerate(group.children)
        if isinstance(child, ScopeGroup) and id(child) in open_groups
    }
    sizes = []
    for n, child in enumerate(group.children):
        if n in inner:
            sizes.append((inner[n].width, inner[n].height))
        else:
            width = max(54.0, _LETTER * len(_text_of(items, child)) + 16)
            sizes.append((width, 20.0 if isinstance(child, Bridge) else 34.0))

    def width_of(child: int) -> float:
        return _BEND if child < 0 else sizes[child][0]

    near: dict[int, list[int]] = {}
    for (a, b, _), bends in zip(group.edges, group.bends, strict=True):
        path = [a, *(-1 - n for n in bends), b]
        for one, other in pairwise(path):
            near.setdefault(one, []).append(other)
            near.setdefault(other, []).append(one)
    level = {child: y for y, row in enumerate(group.rows) for child in row}
    x: dict[int, float] = {}
    for row in group.rows:
        x.update(
            zip(row, spread([0.0] * len(row), list(map(width_of, row))), strict=True)
        )
    for number in range(_PASSES):
        down = number % 2 == 0
        for row in group.rows if down else reversed(group.rows):
            wanted = []
            for child in row:
                others = [
                    x[n]
                    for n in near.get(child, ())
                    if (level[n] < level[child]) is down and level[n] != level[child]
                ]
                wanted.append(sum(others) / len(others) if others else x[child])
            x.update(zip(row, spread(wanted, list(map(width_of, row))), strict=True))
    left = min((x[c] - width_of(c) / 2 for c in x), default=0.0)
    right = max((x[c] + width_of(c) / 2 for c in x), default=0.0)
    whole = max(right - left, _LETTER * len(group.name) + 60) + 2 * _PAD
    shift = (whole - (right - left)) / 2 - left
    at, y = {}, _HEAD + 6
    for row in group.rows:
        height = max(8.0, *(sizes[c][1] for c in row if c >= 0), 0.0)
        at.update({child: (x[child] + shift, y + height / 2) for child in row})
        y += height + _GAP_Y
    return _Box(whole, y - _GAP_Y + _PAD, at, sizes, inner)


def _types(labels: Sequence[str]) -> str:
    if len(labels) == 1:
        return labels[0]
    same = all(label == labels[0] for label in labels)
    return f"{len(labels)} × {labels[0]}" if same else f"{len(labels)} arrays"


def _drawn(
    items: Sequence[Item],
    group: ScopeGroup,
    box: _Box,
    left: float,
    top: float,
    paint: Mapping[str, str],
) -> list[str]:
    """Returns the elements of a group, whose corner is at (left, top)."""
    out = []

    def height(child: int) -> float:
        return 0.0 if child < 0 else box.sizes[child][1] / 2

    for (a, b, labels), bends in zip(group.edges, group.bends, strict=True):
        if a == b:
            continue
        path = [a, *(-1 - n for n in bends), b]
        turn = 1 if box.at[a][1] <= box.at[b][1] else -1
        x, y = left + box.at[a][0], top + box.at[a][1] + turn * height(a)
        data = f"M{x:.1f},{y:.1f}"
        label = x + 0.3 * (left + box.at[path[1]][0] - x), y + turn * 14
        for child in path[1:]:
            to_x = left + box.at[child][0]
            to_y = top + box.at[child][1] - turn * height(child)
            bend = (to_y - y) / 2
            data += f"C{x:.1f},{y + bend:.1f} {to_x:.1f},{to_y - bend:.1f} "
            data += f"{to_x:.1f},{to_y:.1f}"
            x, y = to_x, to_y
        out.append(f'<path d="{data}" marker-end="url(#tip)"/>')
        out.append(_text(*label, _types(labels), "small"))
    for n, child in enumerate(group.children):
        (x, y), (w, h) = box.at[n], box.sizes[n]
        x, y = left + x, top + y
        inner = box.inner.get(n)
        kind, under = "", ""
        if isinstance(child, ScopeGroup):
            kind = "group" if inner is None else "open"
            under = "" if inner else f"{len(child.items)} nodes"
        elif isinstance(child, Bridge):
            kind = "bridge"
        else:
            item = items[child]
            kind = item.operation if item.operation in (ARGUMENT, RESULT) else "item"
            under = " ".join(item.types)
            room = int(w / 5.6)
            under = under if len(under) <= room else f"{under[: room - 1]}…"
        place = (
            place_of(items, child.items if isinstance(child, ScopeGroup) else [child])
            if kind in ("item", "group")
            else ""
        )
        fill = f' style="fill:{paint[place]}"' if place else ""
        rounded = 14 if kind in (ARGUMENT, RESULT) else 6
        out.append(
            f'<rect class="{kind}" x="{x - w / 2:.1f}" y="{y - h / 2:.1f}" '
            f'width="{w:.1f}" height="{h:.1f}" rx="{rounded}"{fill}/>'
        )
        if inner is not None:
            corner = x - w / 2, y - h / 2
            out.append(_text(corner[0] + 10, corner[1] + 16, child.name, "name"))
            out += _drawn(items, child, inner, *corner, paint)
        elif kind == "bridge":
            out.append(_text(x, y + 4, _text_of(items, child), "small"))
        else:
            out.append(_text(x, y - 1, _text_of(items, child), ""))
            out.append(_text(x, y + 12, under, "small"))
    return out


def _text(x: float, y: float, text: str, kind: str) -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}">{html.escape(text)}</text>'


def svg(items: Sequence[Item], root: ScopeGroup, shown: int) -> str:
    """Returns a picture of a graph.

    Args:
      items: of the graph, as `walk` lists them.
      root: its groups, laid out.
      shown: how many boxes are to be seen, if groups can be folded for that.
    """
    box = _arranged(items, root, unfolded(root, shown))
    paint = colors(items)
    parts = _drawn(items, root, box, 0.0, 0.0, paint)
    width, height = round(box.width), round(box.height)
    x = 10.0
    for place, color in paint.items():
        parts.append(
            f'<rect class="key" x="{x:.1f}" y="{height + 4}" width="12" height="12" '
            f'style="fill:{color}"/>'
        )
        parts.append(_text(x + 18, height + 14, place, "name"))
        x += 36 + _LETTER * len(place)
    if paint:
        width, height = max(width, round(x)), height + 24
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">\n<style>{_STYLE}</style>\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
        'markerHeight="6" orient="auto"><path d="M0,0L8,4L0,8z" '
        'style="fill:#8894a0;stroke:none"/></marker></defs>\n'
        f"{_text(10, 16, root.name, 'name')}\n{body}\n</svg>\n"
    )
