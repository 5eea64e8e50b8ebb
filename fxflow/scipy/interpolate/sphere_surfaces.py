"""Splines on the sphere, of the polar angle θ and the azimuth φ.

A spline is periodic in φ; at a pole it has one value, and, where its slope is
continuous, θ's derivative there is α cos φ + β sin φ.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate.bsplines import _design
from fxflow.scipy.interpolate.scattered_surfaces import (
    least_coefficients,
    smooth_coefficients,
)
from fxflow.scipy.interpolate.smoothing_splines import _jumps, _through
from fxflow.scipy.interpolate.surfaces import FittedSurface, on_host, scipy_of

_TURN = 2 * math.pi


# -- the space of splines --------------------------------------------------------------


class _Pole(NamedTuple):
    """What a spline is near a pole.

    Attributes:
      smooth: whether the slope is continuous.
      flat: whether it is 0.
    """

    smooth: bool = True
    flat: bool = False


_Poles = tuple[_Pole, _Pole]


def _smooth_poles(base: Array) -> _Poles:
    """Returns poles with slopes, which are 0 if nothing depends on φ."""
    pole = _Pole(flat=base.shape[0] == 2)
    return pole, pole


def _whole(base: Array, count: int) -> Array:
    """Returns knots of φ with `count` more before and after, periodic ones.

    Args:
      base: float[p + 1]: from the first one to the same one after a turn.
      count: how many more.
    """
    p = base.shape[0] - 1
    at = np.arange(-count, p + count + 1)
    return base[at % p] + fnp.asarray(_TURN * (at // p), base.dtype)


def _theta_knots(inner: Array) -> Array:
    ends = [fnp.full(4, v, inner.dtype) for v in (0.0, math.pi)]
    return fnp.concatenate([ends[0], inner, ends[1]])


def _folded(p: int, count: int, first: int = 0) -> Any:
    """Returns which of p periodic coefficients each of `count` coefficients is."""
    return np.eye(p)[(np.arange(count) + first) % p]


def _around(base: Array, phi: Array) -> Array:
    """Returns the values of p periodic B-splines, float[m, p]."""
    p = base.shape[0] - 1
    rows = _design(_whole(base, 3), base[0] + fnp.mod(phi - base[0], _TURN), 3)
    return fnp.matmul(
        rows, fnp.asarray(_folded(p, p + 3), rows.dtype), precision="highest"
    )


def _waves(base: Array, rows: Array) -> tuple[Array, Array]:
    """Returns the coefficients of the splines through cos and sin at the knots.

    Args:
      base: the knots of a turn.
      rows: the values of B-splines there.
    """
    at = base[:-1]
    both = fnp.linalg.solve(rows, fnp.stack([fnp.cos(at), fnp.sin(at)], 1))
    return both[:, 0], both[:, 1]


def _edges(poles: _Poles, n: int) -> tuple[int, int]:
    """Returns the first row of free coefficients, and the first after them."""
    return 1 + poles[0].smooth, n - 1 - poles[1].smooth


def _near_poles(base: Array, rows: Array, n: int, poles: _Poles) -> list[list[Array]]:
    """Returns the coefficients of both poles' values and slopes, each float[n, p]."""
    one = fnp.ones(base.shape[0] - 1, base.dtype)
    waves = _waves(base, rows) if any(pole.smooth for pole in poles) else ()
    out = []
    for pole, places in zip(poles, ((0, 1), (n - 1, n - 2)), strict=True):
        zero = fnp.zeros((n, one.shape[0]), base.dtype)
        value = zero.at[places[0]].set(one)
        parts = [value.at[places[1]].set(one) if pole.smooth else value]
        if pole.smooth and not pole.flat:
            parts += [zero.at[places[1]].set(v) for v in waves]
        out.append(parts)
    return out


def _basis(base: Array, rows: Array, n: int, poles: _Poles) -> Array:
    """Returns the splines of a space by their coefficients, float[n, p, q].

    The first one and the last one have the value 1 at a pole.
    """
    p = base.shape[0] - 1
    first, last = _near_poles(base, rows, n, poles)
    low, high = _edges(poles, n)
    free = np.eye(n * p)[:, low * p : high * p].reshape(n, p, -1)
    sides = [fnp.stack(v, -1) for v in (first, last[::-1])]
    return fnp.concatenate([sides[0], fnp.asarray(free, base.dtype), sides[1]], -1)


def _jump_rows(tt: Array, base: Array) -> tuple[Array, Array]:
    """Returns the rows that give the jumps along θ, and those along φ."""
    p = base.shape[0] - 1
    fold = fnp.asarray(_folded(p, p + 4, -1), base.dtype)
    along = fnp.matmul(_jumps(_whole(base, 4)[: p + 8], 3), fold, precision="highest")
    return _jumps(tt, 3), along


def _jumps_of(tt: Array, base: Array, basis: Array) -> Array:
    """Returns the rows that give the jumps of splines of a space."""
    of_theta, of_phi = _jump_rows(tt, base)
    down = fnp.tensordot(of_theta, basis, 1, precision="highest")
    along = fnp.tensordot(of_phi, basis, ((1,), (1,)), precision="highest")
    q = basis.shape[-1]
    return fnp.concatenate([fnp.reshape(v, (-1, q)) for v in (down, along)])


def _design_of(
    tt: Array, base: Array, theta: Array, phi: Array, poles: _Poles
) -> tuple[Array, Array]:
    """Returns the basis of a space, and its splines' values at points, float[m, q]."""
    m = theta.shape[0]
    both = _around(base, fnp.concatenate([phi, base[:-1]]))
    basis = _basis(base, both[m:], tt.shape[0] - 4, poles)
    products = _design(tt, theta, 3)[:, :, None] * both[:m, None]
    rows = fnp.reshape(products, (m, -1))
    flat = fnp.reshape(basis, (rows.shape[1], -1))
    return basis, fnp.matmul(rows, flat, precision="highest")


@library("poles")
def _least(
    tt: Array, base: Array, points: Any, eps: Any, poles: _Poles
) -> tuple[Array, Array]:
    """Returns the coefficients that are nearest to points, and the sum of squares."""
    theta, phi, r, w = points
    basis, rows = _design_of(tt, base, theta, phi, poles)
    rows = rows * w[:, None]
    c, total = least_coefficients(rows, r * w, eps)
    return fnp.tensordot(basis, c, 1, precision="highest"), total


@library("poles", "exact")
def _smooth(
    tt: Array,
    base: Array,
    points: Any,
    values: Any,
    s: Array,
    poles: _Poles,
    exact: tuple[bool, bool],
) -> tuple[Array, Array]:
    """Returns the coefficients with the smallest jumps, and the sum of squares.

    Args:
      tt: knots of θ.
      base: knots of φ, a turn.
      points: angles, values and weights.
      values: at the poles, or None for each.
      s: the sum of squares to leave.
      poles: what the spline is near them.
      exact: which of the poles' values are exact; others count as points.
    """
    theta, phi, r, w = points
    basis, rows = _design_of(tt, base, theta, phi, poles)
    rows = rows * w[:, None]
    right = r * w
    q = rows.shape[1]
    jumps = _jumps_of(tt, base, basis)
    fixed = fnp.zeros(q, r.dtype)
    kept = np.ones(q, bool)
    for value, is_exact, at in zip(values, exact, (0, q - 1), strict=True):
        if value is None:
            continue
        if is_exact:
            kept[at] = False
            fixed = fixed.at[at].set(value)
        else:
            rows = fnp.concatenate([rows, fnp.eye(q, dtype=r.dtype)[at][None]])
            right = fnp.concatenate([right, value[None]])
    index = np.flatnonzero(kept)
    right = right - fnp.matmul(rows, fixed, precision="highest")
    aim = -fnp.matmul(jumps, fixed, precision="highest")
    c, total = smooth_coefficients(rows[:, index], right, jumps[:, index], s, aim)
    c = fixed.at[index].set(c)
    return fnp.tensordot(basis, c, 1, precision="highest"), total


@library("poles")
def _through_grid(
    tt: Array, base: Array, theta: Array, r: Array, values: Any, poles: _Poles
) -> Array:
    """Returns the coefficients through values on a grid, with the smallest jumps.

    Args:
      tt: knots of θ, as many as the grid allows.
      base: knots of φ: those of the grid, and the first one after a turn.
      theta: float[m].
      r: float[m, p].
      values: at the poles, or None for each.
      poles: what the spline is near them.
    """
    n = tt.shape[0] - 4
    low, high = _edges(poles, n)
    rows, around = _design(tt, theta, 3), _around(base, base[:-1])
    lines = fnp.linalg.solve(around, r.T).T

    def completed(lines: Array, near: Array) -> Array:
        """The coefficients, of which those near the poles are known."""
        right = lines - fnp.matmul(rows, near, precision="highest")
        free = fnp.linalg.solve(rows[:, low:high], right)
        return near.at[low:high].set(free)

    found = completed(lines, fnp.zeros((n, r.shape[1]), r.dtype))
    open_ = []
    for value, (of_value, *of_slope) in zip(
        values, _near_poles(base, around, n, poles), strict=True
    ):
        parts = [completed(fnp.zeros_like(lines), v) for v in (of_value, *of_slope)]
        if value is not None:
            found = found + value * parts.pop(0)
        open_ += parts
    if not open_:
        return found
    of_theta, of_phi = _jump_rows(tt, base)

    def jumps(c: Array) -> Array:
        down = fnp.matmul(of_theta, c, precision="highest")
        along = fnp.matmul(c, of_phi.T, precision="highest")
        return fnp.concatenate([fnp.ravel(down), fnp.ravel(along)])

    q, upper = fnp.linalg.qr(fnp.stack([jumps(c) for c in open_], 1))
    best = fnp.linalg.solve(upper, fnp.matmul(q.T, jumps(found), precision="highest"))
    return found - fnp.tensordot(best, fnp.stack(open_), 1, precision="highest")


# -- splines ---------------------------------------------------------------------------


class _Sphere(FittedSurface):
    """A spline on the sphere: `tx` and `ty` are the knots of θ and of φ."""

    def _fill(self, tt: Array, base: Array, c: Array, total: Array) -> None:
        self.tx, self.ty, self.degrees, self.fp = tt, _whole(base, 3), (3, 3), total
        p = base.shape[0] - 1
        self.c = c[:, np.arange(p + 3) % p]

    def _angles(self, theta: Any, phi: Any) -> tuple[Array, Array]:
        name = self._name
        theta, phi = promote_inexact(name, fnp.asarray(theta), fnp.asarray(phi))
        if not isinstance(theta, Tracer):
            host = np.asarray(theta)
            if ((host < 0) | (host > np.nextafter(host.dtype.type(math.pi), 4))).any():
                raise ArgumentError(f"{name}: theta must be from 0 to π, got {theta}")
        first = self.ty[3]
        return theta, first + fnp.mod(phi - first, _TURN)

    def ev(
        self, theta: ArrayLike, phi: ArrayLike, dtheta: int = 0, dphi: int = 0
    ) -> Array:
        """Returns values at points.

        Args:
          theta: real array-like[*s]: polar angles, from 0 to π.
          phi: real array-like[*s]: azimuths, any.
          dtheta: the order of the derivative with respect to θ.
          dphi: with respect to φ.

        Returns:
          Array[*s].

        Raises:
          ArgumentError: a polar angle is not from 0 to π.
        """
        theta, phi = self._angles(theta, phi)
        return super().ev(theta, phi, dtheta, dphi)

    def __call__(
        self,
        theta: ArrayLike,
        phi: ArrayLike,
        dtheta: int = 0,
        dphi: int = 0,
        grid: bool = True,
    ) -> Array:
        """Returns values on a grid, or at points.

        Args:
          theta: real array-like[m]: polar angles, from 0 to π.
          phi: real array-like[n]: azimuths, any.
          dtheta: the order of the derivative with respect to θ.
          dphi: with respect to φ.
          grid: whether each θ is combined with each φ.

        Returns:
          Array[m, n], or of the broadcast shape of points.

        Raises:
          ArgumentError: a polar angle is not from 0 to π.
        """
        if not grid:
            return self.ev(theta, phi, dtheta, dphi)
        theta, phi = self._angles(theta, phi)
        return super().__call__(theta, phi, dtheta, dphi)


def _points(name: str, theta: Any, phi: Any, r: Any, w: Any) -> tuple[Array, ...]:
    """Returns angles, values and weights, vectors of one length.

    Raises:
      ArgumentError: an angle is out of range, or a weight is not positive.
      ShapeError: their lengths differ.
    """
    arrays = promote_inexact(
        name, *(fnp.ravel(fnp.asarray(v)) for v in (theta, phi, r))
    )
    weights = fnp.asarray(w, arrays[0].dtype)
    if not weights.ndim:
        weights = fnp.broadcast_to(weights, arrays[0].shape)
    found = (*arrays, weights)
    if len({v.shape for v in found}) != 1 or not found[0].size:
        listed = ", ".join(str(v.aval) for v in found)
        raise ShapeError(
            f"{name}: theta, phi, r and w must have one length, not 0, got {listed}"
        )
    for what, v, most in (("theta", found[0], math.pi), ("phi", found[1], _TURN)):
        _require_between(name, what, v, most)
    if not isinstance(weights, Tracer) and not (np.asarray(weights) > 0).all():
        raise ArgumentError(f"{name}: weights must be positive, got {w}")
    return found


def _require_between(name: str, what: str, v: Array, most: float) -> None:
    if isinstance(v, Tracer):
        return
    host = np.asarray(v)
    if not ((host >= 0) & (host <= np.nextafter(host.dtype.type(most), 7))).all():
        raise ArgumentError(
            f"{name}: {what} must be from 0 to {'π' if most < 4 else '2π'}, got {v}"
        )


def _inner(name: str, what: str, knots: Any, most: float, dtype: Any) -> Array:
    """Returns inner knots.

    Raises:
      ArgumentError: they do not ascend, or are not inside of 0 … most.
      ShapeError: the knots are not a vector.
    """
    t = fnp.asarray(knots, dtype)
    if t.ndim != 1:
        raise ShapeError(f"{name}: {what} must be a vector of knots, got {t.aval}")
    if not isinstance(t, Tracer):
        host = np.concatenate([[0.0], np.asarray(t, float), [most]])
        if (np.diff(host) <= 0).any():
            raise ArgumentError(
                f"{name}: {what} must ascend inside of 0 … "
                f"{'π' if most < 4 else '2π'}, got {knots}"
            )
    return t


def _turned(inner: Array) -> Array:
    """Returns the knots of φ of a turn from 0."""
    ends = [fnp.full(1, v, inner.dtype) for v in (0.0, _TURN)]
    return fnp.concatenate([ends[0], inner, ends[1]])


@register_pytree_node_class
class LSQSphereBivariateSpline(_Sphere):
    """The spline on the sphere, on given knots, that is nearest to points.

    It is a pytree: it works under `jit` and `vmap`, and is differentiable in the
    angles, the values, the weights and the knots. It and its slope are continuous at
    the poles, too.

    Args:
      theta: real array-like[m]: polar angles, from 0 to π.
      phi: real array-like[m]: azimuths, from 0 to 2π.
      r: real array-like[m]: values.
      tt: real array-like[p]: inner knots of θ, ascending.
      tp: real array-like[q]: inner knots of φ, ascending.
      w: real array-like[m]: weights of the differences, positive; or one for all.
      eps: singular values below this share of the greatest count as 0; None is the
        dtype's precision times the number of rows.

    Attributes:
      tx: all knots of θ.
      ty: all knots of φ.
      c: the coefficients, array[p + 4, q + 4].
      degrees: 3 and 3.
      fp: the weighted sum of squares of what is left.

    Raises:
      ArgumentError: an angle or a knot is out of range, or knots do not ascend.
      ShapeError: the shapes are incompatible.

    Example:
      >>> t, p = (v.ravel() for v in np.meshgrid(np.arange(4.0), np.arange(7.0)))
      >>> f = LSQSphereBivariateSpline(t, p, np.sin(t) * np.cos(p), [1.5], [2.0, 4.0])
      >>> f.ev([0.0, 0.0], [1.0, 2.0], dtheta=1).round(1)  # cos φ
      Array([ 0.5, -0.4], dtype=float32)

    Source: `scipy.interpolate.LSQSphereBivariateSpline`; P. Dierckx, Algorithms for
    smoothing data on the sphere with tensor product splines, 1984.
    """

    def __init__(
        self,
        theta: ArrayLike,
        phi: ArrayLike,
        r: ArrayLike,
        tt: ArrayLike,
        tp: ArrayLike,
        w: ArrayLike = 1.0,
        eps: float | None = None,
    ) -> None:
        name = "LSQSphereBivariateSpline"
        points = _points(name, theta, phi, r, w)
        dtype = points[0].dtype
        knots = _theta_knots(_inner(name, "tt", tt, math.pi, dtype))
        base = _turned(_inner(name, "tp", tp, _TURN, dtype))
        if eps is None:
            eps = float(np.finfo(dtype).eps) * points[0].size
        poles = _smooth_poles(base)
        self._fill(knots, base, *_least(knots, base, points, eps, poles))


@register_pytree_node_class
class SmoothSphereBivariateSpline(_Sphere):
    """The smoothest spline on the sphere that leaves a given sum of squares.

    The knots depend on the points: SciPy finds them on the host, of points that are
    known (also within `grad`); the coefficients on them are functions of all arguments
    with derivatives. It is a pytree. It and its slope are continuous at the poles, too.

    Args:
      theta: real array-like[m]: polar angles, from 0 to π.
      phi: real array-like[m]: azimuths, from 0 to 2π.
      r: real array-like[m]: values.
      w: real array-like[m]: weights of the differences, positive; or one for all.
      s: the weighted sum of squares of what is left, not negative; 0 is the nearest
        spline on the knots.
      eps: for the choice of knots: see `LSQSphereBivariateSpline`.

    Attributes:
      tx: the knots of θ.
      ty: those of φ.
      c: the coefficients, array[nt, np].
      degrees: 3 and 3.
      fp: the weighted sum of squares of what is left.

    Raises:
      ArgumentError: an angle is out of range, or `s` is negative.
      ConcretizationError: points are traced by `jit` or `vmap`: give knots to
        `LSQSphereBivariateSpline`.
      ImportError: SciPy is not installed.
      ShapeError: the shapes are incompatible.

    Example:
      >>> t, p = (v.ravel() for v in np.meshgrid(np.arange(4.0), np.arange(7.0)))
      >>> f = SmoothSphereBivariateSpline(t, p, np.cos(t), s=0.01)
      >>> f.ev(0.5, 2.5).round(1)
      Array(0.9, dtype=float32)

    Source: `scipy.interpolate.SmoothSphereBivariateSpline`; P. Dierckx, Algorithms for
    smoothing data on the sphere with tensor product splines, 1984.
    """

    def __init__(
        self,
        theta: ArrayLike,
        phi: ArrayLike,
        r: ArrayLike,
        w: ArrayLike = 1.0,
        s: Any = 0.0,
        eps: float = 1e-16,
    ) -> None:
        name = "SmoothSphereBivariateSpline"
        points = _points(name, theta, phi, r, w)
        dtype = points[0].dtype
        target = fnp.asarray(s, dtype)
        host = on_host(name, "give knots to LSQSphereBivariateSpline", *points, target)
        if not host[4] >= 0:
            raise ArgumentError(f"{name}: s must not be negative, got {s}")
        try:
            found = scipy_of(name).SmoothSphereBivariateSpline(
                *host[:4], s=float(host[4]), eps=eps
            )
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{name}: {error}") from None
        tt, tp = (fnp.asarray(t, dtype) for t in found.get_knots())
        base = tp[3:-3]
        poles = _smooth_poles(base)
        if host[4] == 0 or (tt.shape[0] == 8 and base.shape[0] == 2):
            rounding = float(np.finfo(dtype).eps) * points[0].size
            c, total = _least(tt, base, points, rounding, poles)
        else:
            none = (None, None), target, poles, (False, False)
            c, total = _smooth(tt, base, points, *none)
        self._fill(tt, base, c, total)


def _pair(name: str, what: str, given: Any) -> tuple[Any, Any]:
    """Returns what is given for both poles.

    Raises:
      ArgumentError: it is neither one nor a pair.
    """
    if not isinstance(given, tuple | list):
        return given, given
    if len(given) != 2:
        raise ArgumentError(f"{name}: {what} must be one or two, got {given!r}")
    return given[0], given[1]


@register_pytree_node_class
class RectSphereBivariateSpline(_Sphere):
    """The spline on the sphere through values on a grid of angles, or near them.

    It is a pytree: it works under `jit`, `vmap` and `grad`. What the values leave open,
    such as those at the poles if they are not given, is what makes the jumps of the
    third derivatives smallest.

    With s > 0 the knots depend on the values: SciPy finds them on the host, of values
    that are known (also within `grad`); the coefficients on them are functions of all
    arguments with derivatives.

    Args:
      u: real array-like[m]: polar angles, strictly ascending inside of 0 … π.
      v: real array-like[n]: azimuths, strictly ascending; the first one is from -π to
        π, and the last one within a turn after it.
      r: real array-like[m, n]: values.
      s: the sum of squares of what is left; 0 is the spline through the values.
      pole_continuity: whether the slope is continuous at the poles, too; or a pair for
        θ = 0 and θ = π.
      pole_values: the values at the poles, or a pair; None where there is none.
      pole_exact: whether these are met exactly if s > 0, or count like those of the
        grid; or a pair.
      pole_flat: whether the slope at the poles is 0; or a pair.

    Attributes:
      tx: the knots of θ.
      ty: those of φ.
      c: the coefficients, array[nt, np].
      degrees: 3 and 3.
      fp: the sum of squares of what is left.

    Raises:
      ArgumentError: angles do not ascend or are out of range, `s` is negative, a pole
        is flat without a continuous slope, or exact without a value.
      ConcretizationError: s > 0, and an argument is traced by `jit` or `vmap`: give
        knots to `LSQSphereBivariateSpline`.
      ImportError: s > 0, and SciPy is not installed.
      ShapeError: the shapes are incompatible.

    Example:
      >>> u, v = np.linspace(0.4, 2.8, 7), np.linspace(-3.0, 3.0, 8)
      >>> f = RectSphereBivariateSpline(u, v, np.sin(u)[:, None] * np.cos(v))
      >>> f.ev(1.5, 0.5).round(2)
      Array(0.88, dtype=float32)

    Source: `scipy.interpolate.RectSphereBivariateSpline`, which chooses open values
    otherwise; P. Dierckx, Algorithms for smoothing data on the sphere with tensor
    product splines, 1984.
    """

    def __init__(
        self,
        u: ArrayLike,
        v: ArrayLike,
        r: ArrayLike,
        s: Any = 0.0,
        pole_continuity: Any = False,
        pole_values: Any = None,
        pole_exact: Any = False,
        pole_flat: Any = False,
    ) -> None:
        name = "RectSphereBivariateSpline"
        u, v, r = promote_inexact(name, *(fnp.asarray(a) for a in (u, v, r)))
        if u.ndim != 1 or v.ndim != 1 or r.shape != (u.size, v.size):
            raise ShapeError(
                f"{name}: u, v and r must be float[m], float[n] and float[m, n], got "
                f"{u.aval}, {v.aval} and {r.aval}"
            )
        if u.size < 4 or v.size < 4:
            raise ShapeError(
                f"{name}: u and v must have at least 4 angles, got {u.aval}, {v.aval}"
            )
        _require_grid(name, u, v)
        smooth = _pair(name, "pole_continuity", pole_continuity)
        flat = _pair(name, "pole_flat", pole_flat)
        exact = _pair(name, "pole_exact", pole_exact)
        values = _pair(name, "pole_values", pole_values)
        for i in range(2):
            if flat[i] and not smooth[i]:
                raise ArgumentError(
                    f"{name}: a flat pole must have a continuous slope: pole_flat="
                    f"{pole_flat}, pole_continuity={pole_continuity}"
                )
            if exact[i] and values[i] is None:
                raise ArgumentError(
                    f"{name}: an exact pole must have a value: pole_exact="
                    f"{pole_exact}, pole_values={pole_values}"
                )
        poles = (
            _Pole(bool(smooth[0]), bool(flat[0])),
            _Pole(bool(smooth[1]), bool(flat[1])),
        )
        ends = tuple(None if a is None else fnp.asarray(a, r.dtype) for a in values)
        if not _through(s):
            target = fnp.asarray(s, r.dtype)
            self._smoothed(u, v, r, target, poles, ends, tuple(map(bool, exact)))
            return
        low, high = 1 - poles[0].smooth, u.size - 1 + poles[1].smooth
        tt = _theta_knots(u[low:high])
        base = fnp.concatenate([v, v[:1] + _TURN])
        c = _through_grid(tt, base, u, r, ends, poles)
        self._fill(tt, base, c, fnp.zeros((), r.dtype))

    def _smoothed(
        self, u: Array, v: Array, r: Array, s: Array, poles: Any, ends: Any, exact: Any
    ) -> None:
        name = "RectSphereBivariateSpline"
        given = [e for e in ends if e is not None]
        host = on_host(
            name, "give knots to LSQSphereBivariateSpline", u, v, r, s, *given
        )
        if not host[3] > 0:
            raise ArgumentError(f"{name}: s must not be negative, got {s}")
        known = iter(map(float, host[4:]))
        try:
            found = scipy_of(name).RectSphereBivariateSpline(
                *host[:3],
                float(host[3]),
                [p.smooth for p in poles],
                [None if e is None else next(known) for e in ends],
                list(exact),
                [p.flat for p in poles],
            )
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{name}: {error}") from None
        tt, tp = (fnp.asarray(t, r.dtype) for t in found.get_knots())
        base = tp[3:-3]
        theta, phi = (fnp.ravel(a) for a in fnp.meshgrid(u, v, indexing="ij"))
        points = (theta, phi, fnp.ravel(r), fnp.ones(r.size, r.dtype))
        c, total = _smooth(tt, base, points, ends, s, poles, exact)
        self._fill(tt, base, c, total)


def _require_grid(name: str, u: Array, v: Array) -> None:
    if not isinstance(u, Tracer):
        host = np.concatenate([[0.0], np.asarray(u, float), [math.pi]])
        if not (np.diff(host) > 0).all():
            raise ArgumentError(f"{name}: u must ascend inside of 0 … π, got {u}")
    if not isinstance(v, Tracer):
        host = np.asarray(v, float)
        if not (np.diff(host) > 0).all() or not (
            -math.pi - 1e-6 <= host[0] < math.pi and host[-1] < host[0] + _TURN
        ):
            raise ArgumentError(
                f"{name}: v must ascend within a turn from an angle of -π … π, got {v}"
            )
