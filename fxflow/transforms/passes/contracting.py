"""What passes share that leave products to the kernel of `devices.contractions`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, dtypes, typeof
from fxflow.devices.contractions import TARGET, Contraction, Tile
from fxflow.lax.axis_order import transpose
from fxflow.lax.foreign_calls import FfiCall
from fxflow.lax.padding import pad
from fxflow.lax.reshaping import reshape


def contract(left: Any, right: Any, contraction: Contraction, tile: Tile) -> Any:
    """Returns what the kernel computes: f32[parts, rows, columns].

    Args:
      left: f32 array, rows anywhere in it.
      right: f32 array, panels in it.
      contraction: what is computed of them.
      tile: of the processor.
    """
    rows = math.prod(axis.size for axis in contraction.rows)
    shape = contraction.part_count, rows, contraction.columns
    (out,) = FfiCall.bind(
        left,
        right,
        target=TARGET,
        out_avals=(Aval(shape, dtypes.float32),),
        has_side_effect=False,
        vmap_method=None,
        in_layouts=tuple(tuple(range(typeof(x).ndim)) for x in (left, right)),
        out_layouts=((0, 1, 2),),
        aliases=(),
        config=contraction.config(tile),
        api_version=4,
    )
    return out


def packed(matrix: Any, columns: int) -> Any:
    """Returns a matrix in panels, f32[panels * k, columns].

    Args:
      matrix: f32[k, n].
      columns: of a panel; what is missing in the last one is zero.
    """
    sums, count = typeof(matrix).shape
    panels = -(-count // columns)
    if missing := panels * columns - count:
        matrix = pad(matrix, np.float32(0), ((0, 0, 0), (0, missing, 0)))
    lines = transpose(reshape(matrix, (sums, panels, columns)), (1, 0, 2))
    # XLA would choose the order of three axes in memory itself, and change it later.
    return reshape(lines, (panels * sums, columns))
