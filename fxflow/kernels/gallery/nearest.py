"""The nearest of several centers for each point: no array of all distances.

A program multiplies a block of points with all centers, and looks for the least of the
products while they are in the processor's cache.
"""

from __future__ import annotations

from typing import Any

import fxflow.numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.kernels.body import dot
from fxflow.kernels.notation import kernel, like

#: Points of a program.
_POINTS = 64
#: Distances for which a kernel is worth compiling.
_LEAST = 1 << 14


def nearest(points: Any, centers: Any) -> Array:
    """Returns which center is nearest to each point.

    It is the one with the least |c|² / 2 - p · c, with the mean of the centers as the
    origin. If the distances of two centers differ by no more than the rounding errors
    of these, either may be found.

    Args:
      points: float[n, d].
      centers: float[k, d], of the same dtype, at least one.

    Returns:
      int32[n]; the first of equal ones.
    """
    origin = fnp.mean(centers, 0)
    origin = fnp.where(fnp.isfinite(origin), origin, 0)
    centers = fnp.subtract(centers, origin)
    halves = fnp.multiply(fnp.sum(fnp.square(centers), 1), 0.5)
    large = typeof(points).shape[0] * typeof(centers).shape[0] >= _LEAST
    run: Any = _nearest if large else _plain
    out: Array = run(points, origin, centers, halves)
    return out


def _plain(points: Any, origin: Any, centers: Any, halves: Any) -> Any:
    """Returns what the kernel does, with all products at once."""
    products = fnp.matmul(points - origin, centers.T, precision="highest")
    scores = fnp.where(fnp.isposinf(halves), fnp.inf, halves - products)
    return fnp.argmin(scores, 1).astype(dtypes.int32)


@kernel(
    f"n:{_POINTS} d, d, k d, k -> n:{_POINTS}",
    out=lambda points, origin, centers, halves: like(
        points, dtypes.int32, shape=points.shape[:1]
    ),
    reference=_plain,
    name="nearest",
    platforms=("cpu",),
)
def _nearest(points: Any, origin: Any, centers: Any, halves: Any, out: Any) -> None:
    lengths = halves[...]
    products = dot(points[...] - origin[...], centers[...].T)
    scores = fnp.where(lengths == fnp.inf, fnp.inf, lengths - products)
    out[...] = fnp.argmin(scores, 1).astype(out.dtype)
