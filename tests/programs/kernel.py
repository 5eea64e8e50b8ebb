"""Kernels in NumPy: graphs that call them run on the host.

Calls of the kernel of `devices.contractions` are computed here; kernels on blocks stay
`kernel_call`, which runs program by program.

What a pass makes of a graph can then be compared node by node, on any processor.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.devices.contractions import _FIELDS, TARGET, Tile
from fxflow.lax.foreign_calls import FfiCall
from fxflow.transforms.passes import convolutions, kernels, packing, rows

TILE = Tile(6, 8, 2)


def contraction(left: Any, right: Any, config: str) -> Any:
    """What the kernel computes of two arrays: f32[parts, rows, columns].

    Args:
      left: rows anywhere in it.
      right: panels in it.
      config: as `Contraction.config` wrote it for `TILE`.
    """
    numbers = re.findall(r"-?\d+", config.partition(": ")[2])
    told = dict(zip(_FIELDS, map(int, numbers), strict=True))
    rows = _places(told, "m", "ma", 4)
    count, columns = told["rows"], told["columns"]
    assert math.prod(told[f"m{i}"] for i in range(4)) == count
    panel, place = np.divmod(np.arange(columns), TILE.columns)
    parts = told["tasks"] // (told["panels"] * told["blocks"])
    out = np.empty((parts, count, columns), np.float32)
    for part in range(parts):
        first, second = divmod(part, told["parts1"])
        a = told["origin_a"] + first * told["pa0"] + second * told["pa1"]
        b = told["origin_b"] + first * told["pb0"] + second * told["pb1"]
        x = left.ravel()[a + rows[:, None] + _places(told, "k", "ka", 3)]
        y = right.ravel()[
            b + _places(told, "k", "kb", 3)[:, None] + panel * told["panel"] + place
        ]
        out[part] = x @ y
    return out


def _places(told: dict[str, int], sizes: str, steps: str, count: int) -> Any:
    """Where each element along some axes is, the last axis fastest."""
    axes = (np.arange(told[f"{sizes}{i}"]) * told[f"{steps}{i}"] for i in range(count))
    return functools.reduce(np.add.outer, axes).ravel()


def in_numpy(change: Callable[[Any, str, Any], None]) -> None:
    """Has passes use the kernel on any processor, and NumPy run it.

    Args:
      change: sets an attribute of a module or a primitive.
    """
    for module in (convolutions, packing):
        change(module, "kernel_tile", lambda: TILE)
    change(kernels, "native_call", lambda params, avals, free: None)
    change(rows, "why_not", lambda params, avals: "")

    def evaluate(left: Any, right: Any, **params: Any) -> list[Any]:
        assert params["target"] == TARGET
        return [contraction(left, right, params["config"])]

    change(FfiCall, "evaluate", evaluate)
