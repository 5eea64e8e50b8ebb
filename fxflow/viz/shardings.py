"""How an array lies over devices, as text and as a picture."""

from __future__ import annotations

import colorsys
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fxflow.dataflow.sharding.plan import ShardingPlan, spec_text
from fxflow.devices.meshes import PartitionSpec
from fxflow.devices.shardings import NamedSharding, Sharding
from fxflow.errors import ArgumentError
from fxflow.viz.figures import new_figure

Cells = dict[tuple[int, int], list[Any]]
Color = Sequence[float]
ColorMap = Callable[[float], Color]


def _cells(
    shape: Sequence[int], sharding: Sharding
) -> tuple[int, int, Cells, tuple[int, ...]]:
    """Returns rows, columns, each part's devices, the shape of a part."""
    ndim = len(shape)
    if ndim > 2:
        raise ArgumentError(
            f"only arrays of at most 2 axes can be drawn, got {list(shape)}: take "
            "a slice, or look at sharding.devices_indices_map(shape)"
        )
    part = sharding.shard_shape(shape)
    counts, tiles = sharding.tiles(ndim)
    rows, columns = {0: (1, 1), 1: (1, *counts), 2: counts}[ndim]
    cells: Cells = {}
    for device, tile in zip(sharding.devices, tiles, strict=True):
        at = {0: (0, 0), 1: (0, *tile), 2: tile}[ndim]
        cells.setdefault(at, []).append(device)  # type: ignore[arg-type]
    return rows, columns, cells, part


def _label(devices: Sequence[Any]) -> str:
    platform = str(devices[0].platform).upper()
    return f"{platform} {','.join(str(d.id) for d in devices)}"


def _hues(fraction: float) -> Color:
    """Returns a light colour of the wheel: red, green, blue from 0 to 1."""
    # Not the whole wheel, on which the last device would look like the first.
    return colorsys.hsv_to_rgb(0.9 * fraction, 0.35, 0.95)


def _colors(sharding: Sharding, color_map: ColorMap) -> dict[Any, Color]:
    """Returns a colour for each device."""
    last = max(1, len(sharding.devices) - 1)
    try:
        return {d: color_map(i / last)[:3] for i, d in enumerate(sharding.devices)}
    except TypeError as error:
        raise ArgumentError(
            "color_map: takes a number from 0 to 1 and returns red, green and blue"
        ) from error


def _painted(text: str, color: Color) -> str:
    """Returns text on a background, as terminals show it; black, or white on dark."""
    red, green, blue = (round(255 * float(c)) for c in color)
    # ITU-R BT.601: how bright the eye finds them.
    bright = 0.299 * red + 0.587 * green + 0.114 * blue > 127
    front = "30" if bright else "97"
    return f"\x1b[{front};48;2;{red};{green};{blue}m{text}\x1b[0m"


def sharding_text(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = False,
    scale: float = 1.0,
    min_width: int = 0,
    max_width: int = 80,
    color_map: ColorMap | None = None,
) -> str:
    """Returns a drawing, in characters, of which device holds which part.

    Args:
      shape: shape of an array of at most 2 axes.
      sharding: its sharding.
      use_color: whether each device has a background colour (copies: the first's), by
        the codes that terminals understand.
      scale: of 1, a part is as wide as the longest name and one line high; of 3, three
        times that.
      min_width: of a part, in characters.
      max_width: of a part, in characters; longer names are cut.
      color_map: from a number between 0 and 1, a device's rank among all, to red,
        green and blue between 0 and 1, such as a colour map of `matplotlib`. None:
        around the colour wheel.

    Returns:
      Several lines. Devices in one cell hold copies of the same part.

    Raises:
      ArgumentError: the array has more than 2 axes, or `scale` or `max_width` is not
        positive.
      PlacementError: it cannot be divided as the sharding asks.

    Example:
      >>> print(sharding_text((4,), fxflow.SingleDeviceSharding("cpu:0")))
      ┌─────┐
      │CPU 0│
      └─────┘
    """
    if scale <= 0 or max_width <= 0:
        raise ArgumentError(
            f"a drawing needs a positive scale and max_width, got {scale}, {max_width}"
        )
    rows, columns, cells, _ = _cells(shape, sharding)
    labels = {at: _label(devices) for at, devices in cells.items()}
    width = round(scale * max(map(len, labels.values())))
    width = min(max(width, min_width, 1), max_width)
    height = min(max(1, round(scale)), max_width)
    colors = _colors(sharding, color_map or _hues)
    bar = "─" * width

    def line(left: str, middle: str, right: str) -> str:
        return left + middle.join([bar] * columns) + right

    def cell(at: tuple[int, int], named: bool) -> str:
        label = labels[at] if named else ""
        if len(label) > width:
            label = label[: width - 1] + "…"
        text = label.center(width)
        return _painted(text, colors[cells[at][0]]) if use_color else text

    lines = [line("┌", "┬", "┐")]
    for row in range(rows):
        for i in range(height):
            named = i == (height - 1) // 2
            texts = [cell((row, column), named) for column in range(columns)]
            lines.append("│" + "│".join(texts) + "│")
        lines.append(line("├", "┼", "┤") if row + 1 < rows else line("└", "┴", "┘"))
    return "\n".join(lines)


def sharding_picture(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    color_map: ColorMap | None = None,
) -> Any:
    """Returns a picture of which device holds which part.

    Args:
      shape: shape of an array of at most 2 axes.
      sharding: its sharding.
      use_color: whether devices have colours; else all parts are white.
      scale: factor of the figure's size.
      color_map: as for `sharding_text`. None: `matplotlib`'s "tab20", by number.

    Returns:
      A `matplotlib` figure: one rectangle for each part, with its devices; the axes
      count elements. Each device has a colour of its own; copies share the first's.

    Raises:
      ArgumentError: the array has more than 2 axes.
      ImportError: matplotlib is not installed (extra `viz`).
    """
    rows, columns, *_ = _cells(shape, sharding)
    figure, (axes,) = new_figure(scale * (1 + 1.2 * columns), scale * (1 + 0.6 * rows))
    if not use_color:
        colors: dict[Any, Any] = dict.fromkeys(sharding.devices, "white")
    elif color_map is None:
        colors = _numbered(sharding)
    else:
        colors = _colors(sharding, color_map)
    part = _paint(axes, shape, sharding, colors)
    height, width = {0: (1, 1), 1: (1, *part), 2: part}[len(part)]
    axes.set_xticks(np.arange(columns + 1) * width)
    axes.set_yticks(np.arange(rows + 1) * height)
    axes.set_title(f"{list(shape)} over {len(sharding.devices)} devices")
    return figure


def sharding_plan_picture(
    plan: ShardingPlan, *, columns: int = 4, max_arrays: int = 24
) -> Any:
    """Returns a picture of how a plan divides a function's arguments.

    Args:
      plan: that `dataflow.auto_sharding` made.
      columns: of drawings.
      max_arrays: that are drawn. Arrays that are alike, such as those of equal layers,
        are drawn once.

    Returns:
      A `matplotlib` figure: a drawing for each array, as `sharding_picture` makes it;
      of an array of more than two axes, the two that are divided most, or longest.

    Raises:
      ImportError: matplotlib is not installed (extra `viz`).
    """
    shown = dict.fromkeys(plan.lines())
    arrays = list(itertools.islice(shown, max(1, max_arrays)))
    columns = max(1, min(columns, len(arrays)))
    rows = -(-len(arrays) // columns)
    figure, all_axes = new_figure(2.8 * columns, 1.9 * rows, rows, columns)
    colors = _numbered(NamedSharding(plan.mesh, PartitionSpec()))
    for axes, (leaf, count) in zip(all_axes, arrays, strict=False):
        shape, sharding, chosen = _two_axes(leaf.aval.shape, leaf.sharding)
        _paint(axes, shape, sharding, colors)
        axes.set_xticks([])
        axes.set_yticks([])
        more = f" (and {count - 1} more)" if count > 1 else ""
        axes.set_title(leaf.label + more, fontsize=8)
        of = "" if len(chosen) == leaf.aval.ndim else f", axes {chosen}"
        axes.set_xlabel(f"{leaf.aval}{of}\n{spec_text(leaf.sharding.spec)}", fontsize=7)
    for axes in all_axes[len(arrays) :]:
        axes.set_axis_off()
    figure.suptitle(f"{plan.name}: {plan.summary()}", fontsize=9)
    return figure


def _two_axes(
    shape: Sequence[int], sharding: NamedSharding
) -> tuple[list[int], NamedSharding, list[int]]:
    """Returns the shape and sharding along two axes, and which they are."""
    names = sharding.padded(len(shape))
    order = sorted(range(len(shape)), key=lambda i: (not names[i], -shape[i], i))
    chosen = sorted(order[:2])
    spec = PartitionSpec(*(names[i] or None for i in chosen))
    return [shape[i] for i in chosen], NamedSharding(sharding.mesh, spec), chosen


def _numbered(sharding: Sharding) -> dict[Any, Color]:
    """Returns a colour of `matplotlib` for each device, by number."""
    from matplotlib import colormaps

    table = colormaps["tab20"]
    return {d: table(i % 20) for i, d in enumerate(sharding.devices)}


def _paint(
    axes: Any, shape: Sequence[int], sharding: Sharding, colors: Mapping[Any, Any]
) -> tuple[int, ...]:
    """Draws the parts of an array; returns the shape of a part."""
    from matplotlib.patches import Rectangle

    rows, columns, cells, part = _cells(shape, sharding)
    height, width = {0: (1, 1), 1: (1, *part), 2: part}[len(part)]
    for (row, column), devices in cells.items():
        corner = column * width, row * height
        color = colors[devices[0]]
        axes.add_patch(Rectangle(corner, width, height, fc=color, ec="black"))
        axes.text(
            corner[0] + width / 2,
            corner[1] + height / 2,
            _label(devices),
            ha="center",
            va="center",
            fontsize=None if len(devices) < 5 else 7,
        )
    axes.set_xlim(0, columns * width)
    # Upside down: row 0 is on top, as NumPy prints it.
    axes.set_ylim(rows * height, 0)
    return part
