"""The nearest of points, found by blocks of all distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library

#: Distances that are in memory at a time.
_AT_ONCE = 1 << 22


#: Lengths of the axes of a periodic box, 0 for others; None for no axis.
Box = tuple[float, ...] | None


def nearest_image(apart: Any, length: float) -> Any:
    """Returns differences modulo a length, in ±length / 2; as they are if it is 0."""
    return apart - length * fnp.round(apart / length) if length else apart


def powers(x: Array, y: Array, p: float, box: Box = None) -> Array:
    """Returns sums of p-th powers of differences, [m, n]; for p = inf the greatest."""
    out: Any = 0.0
    for k in range(x.aval.shape[-1]):
        apart = x[:, None, k] - y[None, :, k]
        apart = nearest_image(apart, box[k]) if box else apart
        if p == 2:
            out = out + lax.square(apart)
        elif np.isinf(p):
            out = fnp.maximum(out, fnp.abs(apart))
        else:
            out = out + (fnp.abs(apart) if p == 1 else fnp.abs(apart) ** p)
    return fnp.broadcast_to(out, (x.aval.shape[0], y.aval.shape[0]))


@library("k", "p", "box")
def neighbours(
    x: Array, y: Array, k: int, p: float = 2.0, box: Box = None
) -> tuple[Array, Array]:
    """Returns the k nearest points of `y` for each of `x`, and `powers` of distances.

    Args:
      x: float[m, d].
      y: float[n, d].
      k: how many, at most n.
      p: the order of the Minkowski norm.
      box: lengths of a periodic box.

    Returns:
      float[m, k] and int32[m, k], the nearest first.
    """
    m, n = x.aval.shape[0], max(y.aval.shape[0], 1)
    rows = max(min(_AT_ONCE // n, m), 1)

    def block(part: Array) -> tuple[Array, Array]:
        far = powers(part, y, p, box)
        if k == 1:
            at = fnp.argmin(far, 1)[:, None].astype(np.int32)
            return fnp.take_along_axis(far, at, 1), at
        low, at = lax.top_k(-far, k)
        return -low, at

    if rows >= m:
        return block(x)
    count = -(-m // rows)
    wide = fnp.pad(x, [(0, count * rows - m), (0, 0)])
    parts = fnp.reshape(wide, (count, rows, x.aval.shape[1]))
    far, at = lax.map(block, parts)
    return fnp.reshape(far, (-1, k))[:m], fnp.reshape(at, (-1, k))[:m]
