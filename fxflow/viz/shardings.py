"""How an array lies over devices, as text and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.errors import ArgumentError
from fxflow.devices.shardings import Sharding

Cells = dict[tuple[int, int], list[Any]]


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
    counts, places = sharding.tiles(ndim)
    rows, columns = {0: (1, 1), 1: (1, *counts), 2: counts}[ndim]
    cells: Cells = {}
    for device, place in zip(sharding.devices, places, strict=True):
        at = {0: (0, 0), 1: (0, *place), 2: place}[ndim]
        cells.setdefault(at, []).append(device)  # type: ignore[arg-type]
    return rows, columns, cells, part


def _label(devices: Sequence[Any]) -> str:
    platform = str(devices[0].platform).upper()
    return f"{platform} {','.join(str(d.id) for d in devices)}"


def sharding_text(shape: Sequence[int], sharding: Sharding) -> str:
    """Returns a drawing, in characters, of which device holds which part.

    Args:
      shape: of an array of at most 2 axes.
      sharding: its sharding.

    Returns:
      Several lines. Devices in one cell hold copies of the same part.

    Raises:
      ArgumentError: the array has more than 2 axes.
      PlacementError: it cannot be divided as the sharding asks.

    Example:
      >>> import fxflow
      >>> print(sharding_text((4,), fxflow.SingleDeviceSharding("cpu:0")))
      ┌─────┐
      │CPU 0│
      └─────┘
    """
    rows, columns, cells, _ = _cells(shape, sharding)
    labels = {at: _label(devices) for at, devices in cells.items()}
    width = max(map(len, labels.values()))
    bar = "─" * width

    def line(left: str, middle: str, right: str) -> str:
        return left + middle.join([bar] * columns) + right

    lines = [line("┌", "┬", "┐")]
    for row in range(rows):
        texts = [labels[row, column].center(width) for column in range(columns)]
        lines.append("│" + "│".join(texts) + "│")
        lines.append(line("├", "┼", "┤") if row + 1 < rows else line("└", "┴", "┘"))
    return "\n".join(lines)


def sharding_picture(shape: Sequence[int], sharding: Sharding) -> Any:
    """Returns a picture of which device holds which part.

    Args:
      shape: of an array of at most 2 axes.
      sharding: its sharding.

    Returns:
      A `matplotlib` figure: one rectangle for each part, with its devices; the axes
      count elements. Each device has a colour of its own; copies share the first's.

    Raises:
      ArgumentError: the array has more than 2 axes.
      ImportError: matplotlib is not installed (extra `examples`).
    """
    rows, columns, cells, part = _cells(shape, sharding)
    try:
        from matplotlib import colormaps
        from matplotlib.figure import Figure
        from matplotlib.patches import Rectangle
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib: pip install fxflow[examples]"
        ) from error
    height, width = {0: (1, 1), 1: (1, *part), 2: part}[len(part)]
    figure = Figure(figsize=(1 + 1.2 * columns, 1 + 0.6 * rows))
    axes = figure.add_subplot()
    colours = colormaps["tab20"]
    numbers = {device: i for i, device in enumerate(sharding.devices)}
    for (row, column), devices in cells.items():
        corner = column * width, row * height
        colour = colours(numbers[devices[0]] % 20)
        axes.add_patch(Rectangle(corner, width, height, fc=colour, ec="black"))
        axes.text(
            corner[0] + width / 2,
            corner[1] + height / 2,
            _label(devices),
            ha="center",
            va="center",
        )
    axes.set_xlim(0, columns * width)
    axes.set_ylim(rows * height, 0)
    axes.set_xticks(np.arange(columns + 1) * width)
    axes.set_yticks(np.arange(rows + 1) * height)
    axes.set_title(f"{list(shape)} over {len(sharding.devices)} devices")
    return figure
