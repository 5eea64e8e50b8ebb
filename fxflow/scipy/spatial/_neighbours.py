"""The nearest of points, found by a tree or by blocks of all distances."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.kernels.gallery.trees import tree_neighbours
from fxflow.transforms.jit import jit

#: Distances that are in memory at a time.
_AT_ONCE = 1 << 22
#: So many distances are worth compiling a kernel for a tree, which finds neighbours in
#: time that doubles with each axis, and keeps each place's in order one by one.
_LEAST, _AXES, _FEW = 1 << 18, 6, 64

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


@functools.partial(jit, static_argnames=("k", "p", "box"))
def neighbours(x: Array, y: Array, k: int, p: float = 2.0, box: Box = None) -> Array:
    """Returns which k points of `y` are the nearest for each of `x`.

    Args:
      x: float[m, d].
      y: float[n, d].
      k: how many, at most n.
      p: the order of the Minkowski norm.
      box: lengths of a periodic box.

    Returns:
      int32[m, k], the nearest first, of equally near ones the first. Points whose
      distance is NaN are the last ones, or n stands for them.
    """
    (m, d), n = x.aval.shape, y.aval.shape[0]
    small = d > _AXES or k > _FEW or m * n < _LEAST or n < 8 * k
    fits = x.dtype == y.dtype and x.dtype in (np.float32, np.float64)
    if small or not fits or p not in (1, 2, np.inf) or box:
        return _by_distances(x, y, k, p, box)
    plain = lambda x, y: _by_distances(x, y, k, p, box)
    return tree_neighbours(x, y, k, p, reference=plain)


def _by_distances(x: Array, y: Array, k: int, p: float, box: Box) -> Array:
    """Returns the same, by all distances."""
    m, n = x.aval.shape[0], max(y.aval.shape[0], 1)
    rows = max(min(_AT_ONCE // n, m), 1)

    def block(part: Array) -> Array:
        far = powers(part, y, p, box)
        far = fnp.where(far != far, fnp.inf, far)
        if k == 1:
            return fnp.argmin(far, 1)[:, None].astype(np.int32)
        return lax.top_k(-far, k)[1]

    if rows >= m:
        return block(x)
    count = -(-m // rows)
    wide = fnp.pad(x, [(0, count * rows - m), (0, 0)])
    at = lax.map(block, fnp.reshape(wide, (count, rows, x.aval.shape[1])))
    return fnp.reshape(at, (-1, k))[:m]
