"""Splines of two variables near scattered points: least squares, and smooth ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate.bsplines import _design
from fxflow.scipy.interpolate.smoothing_splines import _jumps, solved_for_sum
from fxflow.scipy.interpolate.surfaces import (
    BivariateSpline,
    FittedSurface,
    on_host,
    scipy_of,
)


def _points(name: str, x: Any, y: Any, z: Any, w: Any) -> list[Array]:
    """Returns coordinates, values and weights, vectors of one length.

    Raises:
      ShapeError: they are not.
    """
    arrays = promote_inexact(name, *(fnp.ravel(fnp.asarray(v)) for v in (x, y, z)))
    weights = fnp.ones_like(arrays[0]) if w is None else fnp.ravel(fnp.asarray(w))
    arrays = promote_inexact(name, *arrays, weights)
    if len({v.aval.size for v in arrays}) != 1 or not arrays[0].aval.size:
        listed = ", ".join(str(v.aval) for v in arrays)
        raise ShapeError(
            f"{name}: x, y, z and w must have one length, not 0, got {listed}"
        )
    return list(arrays)


def _box(name: str, bbox: Any, x: Array, y: Array) -> list[Any]:
    """Returns the ends of both intervals."""
    if len(bbox) != 4:
        raise ArgumentError(f"{name}: bbox must be four numbers or None, got {bbox!r}")
    own = (fnp.min(x), fnp.max(x), fnp.min(y), fnp.max(y))
    return [e if b is None else b for b, e in zip(bbox, own, strict=True)]


def _with_ends(inner: Any, low: Any, high: Any, k: int, dtype: Any) -> Array:
    ends = [fnp.broadcast_to(fnp.asarray(e, dtype), (k + 1,)) for e in (low, high)]
    return fnp.concatenate([ends[0], fnp.asarray(inner, dtype), ends[1]])


@library("kx", "ky")
def _products(tx: Array, ty: Array, x: Array, y: Array, kx: int, ky: int) -> Array:
    """Returns the values of all products of B-splines at points, [m, nx ny]."""
    first, second = _design(tx, x, kx), _design(ty, y, ky)
    rows = first[:, :, None] * second[:, None]
    return fnp.reshape(rows, (x.aval.size, -1))


@library("kx", "ky")
def _least_squares(
    tx: Array,
    ty: Array,
    x: Array,
    y: Array,
    z: Array,
    w: Array,
    eps: Any,
    kx: int,
    ky: int,
) -> tuple[Array, Array]:
    """Returns the least coefficients that are nearest, and the sum of squares."""
    return least_coefficients(_products(tx, ty, x, y, kx, ky) * w[:, None], z * w, eps)


def least_coefficients(rows: Array, right: Array, eps: Any) -> tuple[Array, Array]:
    """Returns the least coefficients that are nearest, and the sum of squares.

    Args:
      rows: float[m, n]: the weighted design.
      right: float[m]: the weighted values.
      eps: singular values below this share of the greatest count as 0.
    """
    # Cells without points leave coefficients open: the least ones are taken.
    inverse = fnp.linalg.pinv(rows, rtol=eps)
    c = fnp.matmul(inverse, right, precision="highest")
    missed = right - fnp.matmul(rows, c, precision="highest")
    return c, fnp.sum(missed * missed)


@library("kx", "ky")
def _smoothed(
    tx: Array,
    ty: Array,
    x: Array,
    y: Array,
    z: Array,
    w: Array,
    s: Array,
    kx: int,
    ky: int,
) -> tuple[Array, Array]:
    """Returns the coefficients with the smallest jumps, and the sum of squares."""
    rows = _products(tx, ty, x, y, kx, ky) * w[:, None]
    eyes = [
        fnp.eye(t.aval.size - k - 1, dtype=rows.dtype) for t, k in ((tx, kx), (ty, ky))
    ]
    jumps = [
        fnp.kron(_jumps(tx, kx), eyes[1]),
        fnp.kron(eyes[0], _jumps(ty, ky)),
    ]
    return smooth_coefficients(rows, z * w, fnp.concatenate(jumps, 0), s)


def smooth_coefficients(
    rows: Array, right: Array, jumps: Array, s: Array, aim: Array | None = None
) -> tuple[Array, Array]:
    """Returns the coefficients with the smallest jumps, and the sum of squares.

    Args:
      rows: float[m, n]: the weighted design.
      right: float[m]: the weighted values.
      jumps: float[j, n]: rows that give the jumps.
      s: float[]: the sum of squares to leave.
      aim: float[j]: what the rows shall give; None is 0.
    """
    # A square matrix of rows, also where there are fewer points than coefficients.
    lack = max(rows.shape[1] - rows.shape[0], 0)
    q, r = fnp.linalg.qr(fnp.pad(rows, [(0, lack), (0, 0)]))
    right = fnp.pad(right[:, None], [(0, lack), (0, 0)])
    top = fnp.matmul(q.T, right, precision="highest")
    rest = right - fnp.matmul(q, top, precision="highest")
    aim = None if aim is None else aim[:, None]
    c, total = solved_for_sum(r, top, fnp.sum(rest * rest), jumps, s, aim)
    return c[:, 0], total


class _Scattered(FittedSurface):
    """A spline near scattered points."""

    def _fit(self, knots: Any, points: Any, degrees: tuple[int, int], eps: Any) -> None:
        self.tx, self.ty = knots
        self.degrees = degrees
        if eps is None:
            eps = float(np.finfo(self.tx.dtype).eps) * points[0].aval.size
        x, y, z, w = points
        c, self.fp = _least_squares(self.tx, self.ty, x, y, z, w, eps, *degrees)
        self.c = fnp.reshape(c, (self.tx.shape[0] - degrees[0] - 1, -1))


@register_pytree_node_class
class LSQBivariateSpline(_Scattered):
    """The spline of two variables on given knots that is nearest to points.

    It is a pytree: it works under `jit` and `vmap`, and is differentiable in the
    coordinates, the values, the weights and the knots. Beyond the knots it keeps the
    value at their edge.

    Args:
      x: real array-like[m]: the first coordinates.
      y: real array-like[m]: the second ones.
      z: real array-like[m]: the values.
      tx: real array-like[p]: inner knots of the first variable, ascending.
      ty: real array-like[q]: those of the second one.
      w: real array-like[m]: weights of the differences; None is 1.
      bbox: the ends of both intervals; None is the least and the greatest coordinate.
        (SciPy's own intervals are wider; in between the splines are the same.)
      kx: the degree in the first variable.
      ky: in the second one.
      eps: singular values below this share of the greatest count as 0; None is the
        dtype's precision times the number of rows.

    Attributes:
      tx: all knots of the first variable.
      ty: those of the second one.
      c: the coefficients, array[nx, ny]; where points leave them open, the least ones.
      degrees: both degrees.
      fp: the weighted sum of squares of what is left.

    Raises:
      ArgumentError: knots are not inside of the intervals, or do not ascend.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x, y = (v.ravel() for v in np.meshgrid(np.arange(4.0), np.arange(5.0)))
      >>> f = LSQBivariateSpline(x, y, x * y, [], [], kx=1, ky=1)
      >>> f.ev(1.5, 2.0).round(3)
      Array(3., dtype=float32)

    Source: `scipy.interpolate.LSQBivariateSpline`.
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        z: ArrayLike,
        tx: ArrayLike,
        ty: ArrayLike,
        w: ArrayLike | None = None,
        bbox: Any = (None, None, None, None),
        kx: int = 3,
        ky: int = 3,
        eps: float | None = None,
    ) -> None:
        name = "LSQBivariateSpline"
        points = _points(name, x, y, z, w)
        kx, ky = natural(name, "kx", kx), natural(name, "ky", ky)
        ends = _box(name, bbox, points[0], points[1])
        dtype = points[0].dtype
        knots = []
        for what, inner, pair, k in (
            ("tx", tx, ends[:2], kx),
            ("ty", ty, ends[2:], ky),
        ):
            if fnp.ndim(inner) != 1:
                raise ShapeError(
                    f"{name}: {what} must be a vector of knots, got {fnp.shape(inner)}"
                )
            low, high = pair
            t = _with_ends(inner, low, high, k, dtype)
            if not isinstance(t, Tracer) and (np.diff(np.asarray(t)[k:-k]) <= 0).any():
                raise ArgumentError(
                    f"{name}: {what} must ascend inside of {low} … {high}, got {inner}"
                )
            knots.append(t)
        self._fit(knots, points, (kx, ky), eps)


@register_pytree_node_class
class SmoothBivariateSpline(_Scattered):
    """The smoothest spline of two variables that leaves a given sum of squares.

    The knots depend on the points: SciPy finds them on the host, of points that are
    known (also within `grad`); the coefficients on them are functions of all arguments
    with derivatives. It is a pytree. Beyond the knots the value at their edge stands.

    Args:
      x: real array-like[m]: the first coordinates.
      y: real array-like[m]: the second ones.
      z: real array-like[m]: the values.
      w: real array-like[m]: weights of the differences; None is 1.
      bbox: the ends of both intervals; None is the least and the greatest coordinate.
      kx: the degree in the first variable, 1 to 5.
      ky: in the second one.
      s: the weighted sum of squares of what is left, positive; None is m.
      eps: as for `LSQBivariateSpline`.

    Attributes:
      tx: the knots of the first variable.
      ty: those of the second one.
      c: the coefficients, array[nx, ny].
      degrees: both degrees.
      fp: the weighted sum of squares of what is left.

    Raises:
      ArgumentError: there are too few points for the degrees, or `s` is not positive.
      ConcretizationError: points are traced by `jit` or `vmap`: give knots to
        `LSQBivariateSpline`.
      ImportError: SciPy is not installed.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x, y = (v.ravel() for v in np.meshgrid(np.arange(5.0), np.arange(5.0)))
      >>> SmoothBivariateSpline(x, y, x * y).ev(1.5, 2.0).round(3)
      Array(3., dtype=float32)

    Source: `scipy.interpolate.SmoothBivariateSpline`; P. Dierckx, Curve and Surface
    Fitting with Splines, 1993.
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        z: ArrayLike,
        w: ArrayLike | None = None,
        bbox: Any = (None, None, None, None),
        kx: int = 3,
        ky: int = 3,
        s: Any = None,
        eps: float = 1e-16,
    ) -> None:
        name = "SmoothBivariateSpline"
        points = _points(name, x, y, z, w)
        kx, ky = natural(name, "kx", kx), natural(name, "ky", ky)
        m = points[0].aval.size
        target = fnp.asarray(float(m) if s is None else s, points[0].dtype)
        knots = _found_knots(name, points, bbox, (kx, ky), target, eps)
        self.tx, self.ty = (fnp.asarray(t, points[0].dtype) for t in knots)
        self.degrees = (kx, ky)
        if self.tx.shape[0] == 2 * kx + 2 and self.ty.shape[0] == 2 * ky + 2:
            rounding = float(np.finfo(self.tx.dtype).eps) * m
            self._fit((self.tx, self.ty), points, (kx, ky), rounding)
            return
        x, y, z, w = points
        c, self.fp = _smoothed(self.tx, self.ty, x, y, z, w, target, kx, ky)
        self.c = fnp.reshape(c, (self.tx.shape[0] - kx - 1, -1))


def _found_knots(
    name: str, points: Any, bbox: Any, degrees: Any, s: Any, eps: float
) -> list[np.ndarray[Any, Any]]:
    """Returns the knots that SciPy chooses on the host.

    Raises:
      ArgumentError: SciPy refuses the points.
      ConcretizationError: points are traced.
      ImportError: SciPy is not installed.
    """
    x, y, z, w, total = on_host(name, "give knots to LSQBivariateSpline", *points, s)
    if not total > 0:
        raise ArgumentError(f"{name}: s must be positive, got {s}")
    theirs = scipy_of(name)
    ends = _box(name, bbox, fnp.asarray(x), fnp.asarray(y))
    box = [b if b is None else float(e) for b, e in zip(bbox, ends, strict=True)]
    kx, ky = degrees
    xb, xe, yb, ye = box
    try:
        (tx, ty, *_), _, code, said = theirs.bisplrep(
            *(x, y, z, w, xb, xe, yb, ye, kx, ky),
            s=float(total),
            eps=eps,
            full_output=1,
            quiet=1,
        )
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name}: {error}") from None
    if code >= 10:
        raise ArgumentError(f"{name}: {str(said).strip()}")
    return [np.asarray(tx), np.asarray(ty)]


# -- tuples ----------------------------------------------------------------------------


def bisplrep(
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    w: ArrayLike | None = None,
    xb: float | None = None,
    xe: float | None = None,
    yb: float | None = None,
    ye: float | None = None,
    kx: int = 3,
    ky: int = 3,
    task: int = 0,
    s: Any = None,
    eps: float = 1e-16,
    tx: ArrayLike | None = None,
    ty: ArrayLike | None = None,
    full_output: int = 0,
    nxest: int | None = None,
    nyest: int | None = None,
    quiet: int = 1,
) -> Any:
    """Returns the spline of two variables near scattered points, as a list.

    Args:
      x: real array-like[m]: the first coordinates.
      y: real array-like[m]: the second ones.
      z: real array-like[m]: the values.
      w: real array-like[m]: weights of the differences; None is 1.
      xb: the first end of the first variable; None is the least coordinate.
      xe: its last end.
      yb: the first end of the second variable.
      ye: its last end.
      kx: the degree in the first variable.
      ky: in the second one.
      task: 0, or -1 for given knots.
      s: the weighted sum of squares of what is left; None is m - √(2 m).
      eps: has no effect for points that determine the coefficients.
      tx: real array-like: all knots of the first variable, for task=-1.
      ty: those of the second one.
      full_output: whether to return the sum of squares, 0 and "", too.
      nxest: has no effect: there may be as many knots as needed.
      nyest: likewise.
      quiet: has no effect.

    Returns:
      The knots, the coefficients array[nx ny], and the degrees: [tx, ty, c, kx, ky].

    Raises:
      ArgumentError: unknown task, knots are missing, or there are too few points.
      ConcretizationError: points are traced, and there are no knots.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x, y = (v.ravel() for v in np.meshgrid(np.arange(5.0), np.arange(5.0)))
      >>> bisplev(1.5, 2.0, bisplrep(x, y, x * y, s=0.1)).round(3)
      Array(3., dtype=float32)

    Source: `scipy.interpolate.bisplrep`.
    """
    name = "bisplrep"
    box = (xb, xe, yb, ye)
    if task not in (-1, 0):
        raise ArgumentError(
            f"{name}: task must be 0 or -1, got {task!r}: no call goes on from another"
        )
    made: Any
    if task == 0:
        if s is None:
            m = fnp.size(x)
            s = m - math.sqrt(2 * m)
        made = SmoothBivariateSpline(x, y, z, w, box, kx, ky, s, eps)
    else:
        if tx is None or ty is None:
            raise ArgumentError(f"{name}: task -1 needs knots, tx= and ty=")
        points = _points(name, x, y, z, w)
        knots = [fnp.asarray(t, points[0].dtype) for t in (tx, ty)]
        degrees = (natural(name, "kx", kx), natural(name, "ky", ky))
        for what, t, k in zip(("tx", "ty"), knots, degrees, strict=True):
            if t.aval.ndim != 1 or t.aval.size < 2 * k + 2:
                raise ShapeError(
                    f"{name}: {what} must be a vector of at least {2 * k + 2} knots, "
                    f"got {t.aval}"
                )
        made = object.__new__(LSQBivariateSpline)
        made._fit(knots, points, degrees, None)
    tck = [made.tx, made.ty, made.get_coeffs(), *made.degrees]
    return (tck, made.fp, 0, "") if full_output else tck


def bisplev(x: ArrayLike, y: ArrayLike, tck: Any, dx: int = 0, dy: int = 0) -> Array:
    """Returns values of a spline of two variables on a grid.

    Args:
      x: real array-like[] or [m]: the first coordinates.
      y: real array-like[] or [n]: the second ones.
      tck: knots, coefficients and degrees, [tx, ty, c, kx, ky].
      dx: the order of the derivative with respect to the first variable.
      dy: with respect to the second one.

    Returns:
      Array[m, n]; an axis of one coordinate is left out if the first one is alone.

    Raises:
      ArgumentError: `tck` is not such a list, or an order is above the degree.
      ShapeError: the shapes are incompatible.

    Example:
      >>> t = np.array([0.0, 0.0, 1.0, 1.0])
      >>> tck = [t, t, np.array([0.0, 1.0, 2.0, 3.0]), 1, 1]
      >>> bisplev(np.array([0.0, 0.5]), np.array([0.0, 1.0]), tck)
      Array([[0., 1.],
             [1., 2.]], dtype=float32)

    Source: `scipy.interpolate.bisplev`.
    """
    name = "bisplev"
    if not isinstance(tck, tuple | list) or len(tck) != 5:
        raise ArgumentError(f"{name}: tck must be [tx, ty, c, kx, ky], got {tck!r}")
    tx, ty, c = promote_inexact(name, *(fnp.asarray(v) for v in tck[:3]))
    kx, ky = natural(name, "kx", tck[3], 0), natural(name, "ky", tck[4], 0)
    sizes = (tx.aval.size - kx - 1, ty.aval.size - ky - 1)
    if c.aval.size != sizes[0] * sizes[1] or min(sizes) < 1:
        raise ShapeError(
            f"{name}: knots {tx.aval} and {ty.aval} of degrees {kx} and {ky} need "
            f"{sizes[0]} · {sizes[1]} coefficients, got {c.aval}"
        )
    f = BivariateSpline._of(tx, ty, fnp.reshape(c, sizes), (kx, ky))
    out = f(fnp.atleast_1d(fnp.asarray(x)), fnp.atleast_1d(fnp.asarray(y)), dx, dy)
    if out.shape[0] > 1:
        return out
    return out[0] if out.shape[1] > 1 else out[0, 0]
