"""Simplices: what Qhull says of points, and values that depend on them smoothly.

Which points belong together is found on the host, of points that are known. Normals,
circumcenters and barycentric coordinates are functions of the points.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ConcretizationError, DtypeError, ShapeError
from fxflow.numpy._operands import promote_inexact

#: Distances from simplices that are in memory at a time.
_AT_ONCE = 1 << 22
#: Fewer pairs of a point and a simplex are compared, without a walk.
_FEW = 1 << 16


def points_of(name: str, what: str, x: Any) -> Array:
    """Returns points[n, d] of real numbers, d ≥ 2.

    Raises:
      DtypeError: they are complex.
      ShapeError: they are not points, or have one coordinate.
    """
    out: Array = promote_inexact(name, fnp.asarray(x))[0]
    if out.aval.ndim != 2 or out.aval.shape[1] < 2:
        raise ShapeError(f"{name}: {what} must be [n, d], d > 1, got {out.aval}")
    if dtypes.is_complex(out.aval.dtype):
        raise DtypeError(f"{name}: {what} must be real, got {out.aval}")
    return out


def known(name: str, points: Array, remedy: str) -> np.ndarray[Any, Any]:
    """Returns the values of points, under transformations by `grad`, too.

    Raises:
      ConcretizationError: they are traced by `jit` or `vmap`.
    """
    values = lax.stop_gradient(points)
    if isinstance(values, Tracer):
        raise ConcretizationError(
            f"{name}: the number of simplices depends on the points, which are traced: "
            f"{remedy}"
        )
    return np.asarray(values, np.float64)


def qhull(name: str, make: Callable[[Any], Any]) -> Any:
    """Returns what a function makes with `scipy.spatial`.

    Raises:
      ArgumentError: Qhull refuses the points.
      ImportError: SciPy is not installed.
    """
    try:
        theirs = importlib.import_module("scipy.spatial")
    except ImportError as error:
        raise ImportError(
            f"{name} needs SciPy, which is not installed: pip install scipy"
        ) from error
    try:
        return make(theirs)
    except (ValueError, theirs.QhullError) as error:
        said = str(error).strip().split("\n")[0]
        raise ArgumentError(f"{name}: Qhull refuses the points: {said}") from None


def independent(points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns the indices of d + 1 of points[n, d] that span the most space.

    The first of them is 0; each other one is the farthest from what is there.
    """
    d = points.shape[1]
    rest = points - points[0]
    chosen = [0]
    for _ in range(d):
        sizes = (rest**2).sum(1)
        sizes[chosen] = -1
        best = int(sizes.argmax())
        chosen.append(best)
        length = np.sqrt(max(sizes[best], 0))
        if length > 0:
            way = rest[best] / length
            rest = rest - (rest @ way)[:, None] * way
    return np.array(chosen)


def solid(corners: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns which simplices[s, d + 1, d] have an inside, bool[s]."""
    size = np.abs(np.linalg.det(corners[:, :-1] - corners[:, -1:]))
    box = np.prod(np.ptp(corners.reshape(-1, corners.shape[2]), 0))
    return np.asarray(size > 1e-12 * box)


def normals(corners: Any, xp: Any = fnp) -> Any:
    """Returns what is orthogonal to facets[f, d, d], [f, d].

    Its length is (d - 1)! times a facet's size; its direction that of the corners.
    `xp` is NumPy for arrays on the host.
    """
    d = corners.shape[-1]
    edges = corners[:, 1:] - corners[:, :1]
    if d == 2:
        return xp.stack([edges[:, 0, 1], -edges[:, 0, 0]], -1)
    if d == 3:
        return xp.cross(edges[:, 0], edges[:, 1])
    columns = []
    for k in range(d):
        rest = [j for j in range(d) if j != k]
        minor = xp.linalg.det(edges[:, :, np.array(rest)])
        columns.append(minor if k % 2 == 0 else -minor)
    return xp.stack(columns, -1)


@library()
def circumcenters(corners: Array) -> Array:
    """Returns the points that are as far from each corner of simplices.

    Args:
      corners: float[v, d + 1, d].

    Returns:
      float[v, d].
    """
    edges = corners[:, 1:] - corners[:, :1]
    half = fnp.sum(edges * edges, -1) / 2
    return corners[:, 0] + fnp.linalg.solve(edges, half[..., None])[..., 0]


@library()
def barycentric_maps(corners: Array, whole: Array) -> Array:
    """Returns inverse matrices of edges from the last corner, [s, d, d].

    Args:
      corners: float[s, d + 1, d].
      whole: bool[s]: which simplices have an inside; those of others are nan.
    """
    edges = fnp.swapaxes(corners[:, :-1] - corners[:, -1:], 1, 2)
    d = corners.aval.shape[2]
    pick = whole[:, None, None]
    safe = fnp.where(pick, edges, fnp.eye(d, dtype=edges.aval.dtype))
    return fnp.where(pick, fnp.linalg.inv(safe), fnp.nan)


@library()
def located(
    x: Array, corners: Array, whole: Array, neighbors: Array | None
) -> tuple[Array, Array]:
    """Returns the simplex of each point, and its barycentric coordinates.

    Args:
      x: float[m, d].
      corners: float[s, d + 1, d].
      whole: bool[s]: which simplices have an inside.
      neighbors: int32[s, d + 1]: the simplex opposite to each corner, -1 for none, if
        the simplices fill a convex hull; None compares all simplices with all points.

    Returns:
      int32[m] and float[m, d + 1]; of points in no simplex one is negative.
    """
    inverse = barycentric_maps(corners, whole)
    base = corners[:, -1]
    m, s = x.aval.shape[0], corners.aval.shape[0]
    fixed: tuple[Array, Array, Array] = lax.stop_gradient((x, inverse, base))
    if neighbors is None or m * s < _FEW:
        at = _compared(*fixed, whole)
    else:
        at, sure = _walked(*fixed, lax.stop_gradient(corners), whole, neighbors)
        at = lax.cond(fnp.all(sure), lambda *_: at, _compared, *fixed, whole)
    shares = _shares(x, inverse, base, at)
    return at, shares


def _shares(x: Array, inverse: Array, base: Array, at: Array) -> Array:
    """Returns the barycentric coordinates of points in simplices."""
    share = fnp.sum(inverse[at] * (x - base[at])[:, None], -1)
    return fnp.concatenate([share, 1 - fnp.sum(share, 1, keepdims=True)], 1)


def _walked(
    x: Array, inverse: Array, base: Array, corners: Array, whole: Array, neighbors: Any
) -> tuple[Array, Array]:
    """Returns the simplices of points, and of which of them this is sure.

    Each point goes from one of √s simplices, the nearest of them, through the side that
    it is farthest behind, until there is none or no simplex beyond it.

    Source: O. Devillers, S. Pion and M. Teillaud, Walking in a triangulation, 2002.
    """
    s, d = base.aval.shape
    some = np.linspace(0, s - 1, math.isqrt(s)).astype(np.int32)
    middles = fnp.mean(corners[some], 1)
    apart: Any = 0.0
    for j in range(d):
        apart = apart + (x[:, j, None] - middles[:, j]) ** 2
    at = fnp.asarray(some)[fnp.argmin(apart, 1)]
    tiny = 100 * float(fnp.finfo(x.dtype).eps)

    def step(state: Any) -> Any:
        at, steps = state[0], state[3]
        shares = _shares(x, inverse, base, at)
        least = fnp.min(shares, 1)
        beyond = neighbors[at, fnp.argmin(shares, 1)]
        inside = (least >= -tiny) | (fnp.isnan(least) & whole[at])
        outside = (beyond < 0) & (least < -1e-3)
        # A simplex without an inside, and a point near the hull: comparisons decide.
        lost = ~whole[at] | ((beyond < 0) & ~inside & ~outside)
        ended = inside | outside | lost
        return (
            fnp.where(ended, at, beyond),
            ended,
            (inside | outside) & ~lost,
            steps + 1,
        )

    none = fnp.zeros(at.shape, bool)
    most = 64 + 8 * round(s ** (1 / d))
    at, _, sure, _ = lax.while_loop(
        lambda c: fnp.any(~c[1]) & (c[3] < most), step, (at, none, none, np.int32(0))
    )
    return at, sure


def _compared(x: Array, inverse: Array, base: Array, whole: Array) -> Array:
    """Returns the simplices that points are in, or the least outside of."""
    d = x.aval.shape[1]
    m, s = x.aval.shape[0], base.aval.shape[0]
    rows = max(min(_AT_ONCE // (s * (d + 1)), m), 1)
    count = -(-m // rows)

    def block(part: Array) -> Array:
        apart = part[:, None] - base
        least: Any = None
        rest: Any = 1.0
        for k in range(d):
            share: Any = 0.0
            for j in range(d):
                share = share + inverse[:, k, j] * apart[:, :, j]
            rest = rest - share
            least = share if least is None else fnp.minimum(least, share)
        inside = fnp.where(whole, fnp.minimum(least, rest), -fnp.inf)
        return fnp.argmax(inside, 1).astype(np.int32)

    parts = fnp.reshape(fnp.pad(x, [(0, count * rows - m), (0, 0)]), (count, rows, d))
    return fnp.reshape(lax.map(block, parts), -1)[:m]


def neighbours_of(simplices: np.ndarray[Any, Any], n: int) -> list[set[int]]:
    """Returns for each of n points those that share a simplex with it."""
    found: list[set[int]] = [set() for _ in range(n)]
    for row in simplices.tolist():
        for a, b in itertools.permutations(row, 2):
            found[a].add(b)
    return found
