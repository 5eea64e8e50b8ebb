"""Splines as sums of B-splines: evaluation, interpolation, least squares."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate._intervals import (
    Extrapolate,
    beyond,
    extrapolation,
    spread,
)
from fxflow.scipy.interpolate._spline_systems import nearest, through
from fxflow.scipy.interpolate.piecewise import _samples, _smooth_slopes
from fxflow.transforms.jit import jit


def _interval(t: Array, x: Array, k: int) -> Array:
    """Returns the index of the knot before each point, between the base knots."""
    last = t.aval.size - k - 2
    return fnp.clip(fnp.searchsorted(t, x, side="right") - 1, k, last)


def _weights(t: Any, x: Any, k: int, i: Any, xp: Any = fnp) -> list[Any]:
    """Returns the k + 1 B-splines that are not 0 at points (de Boor's recursion).

    `xp` is NumPy for arrays on the host.
    """
    rows = [xp.ones_like(x)]
    for d in range(1, k + 1):
        new: list[Any] = [0.0] * (d + 1)
        for r in range(d):
            right, left = t[i + r + 1], t[i + 1 - d + r]
            width = right - left
            some = width != 0
            part = xp.where(some, rows[r] / xp.where(some, width, 1), 0)
            new[r] = new[r] + (right - x) * part
            new[r + 1] = (x - left) * part
        rows = new
    return rows


@library("k", "extrapolate")
def _evaluated(t: Array, c: Array, x: Array, k: int, extrapolate: Any) -> Array:
    """Returns the spline at points, array[*points, ...]."""
    n = t.aval.size - k - 1
    if extrapolate == "periodic":
        x = t[k] + fnp.mod(x - t[k], t[n] - t[k])
    i = _interval(t, x, k)
    out: Any = 0.0
    for j, weight in enumerate(_weights(t, x, k, i)):
        rows = c[i - k + j]
        out = out + rows * spread(weight, rows, 0)
    return beyond(out, t[k], t[n], x, extrapolate)


@library("k")
def _derived(t: Array, c: Array, k: int) -> Array:
    """Returns the coefficients of a derivative."""
    n = t.aval.size - k - 1
    width = t[k + 1 : k + n] - t[1:n]
    some = spread(width != 0, c[1:n], 0)
    return fnp.where(
        some, k * fnp.diff(c[:n], axis=0) / fnp.where(some, spread(width, c, 0), 1), 0
    )


@library("k")
def _integrated(t: Array, c: Array, k: int) -> Array:
    """Returns the coefficients of the integral from the first knot."""
    n = t.aval.size - k - 1
    width = (t[k + 1 : k + 1 + n] - t[:n]) / (k + 1)
    sums = fnp.cumsum(c[:n] * spread(width, c, 0), 0)
    return fnp.concatenate([fnp.zeros_like(c[:1]), sums], 0)


@register_pytree_node_class
class BSpline:
    """A spline: a sum of B-splines on knots.

    It is an immutable pytree: it works under `jit` and `vmap`, and is differentiable in
    the knots, the coefficients and the point of evaluation.

    Args:
      t: real array-like[n + k + 1]: knots, ascending; equal ones are allowed.
      c: float or complex array-like[≥ n, ...]: coefficients.
      k: the degree.
      extrapolate: whether the outermost polynomials go on beyond the base interval,
        t[k] to t[n], otherwise it is nan there; "periodic" for a periodic function.
      axis: of `c`, that of the coefficients; the points of a result stand there.

    Attributes:
      t: the knots.
      c: the coefficients, array[n, ...], their axis first.
      k: the degree.
      extrapolate: as given.
      axis: as given.

    Raises:
      ArgumentError: the knots descend, or `extrapolate` is invalid.
      ShapeError: there are fewer than 2 k + 2 knots, or too few coefficients.

    Example:
      >>> f = BSpline(np.arange(6.0), np.array([0.0, 1.0, 0.0]), 2)
      >>> f(np.array([2.5]))
      Array([0.75], dtype=float32)

    Source: `scipy.interpolate.BSpline`; C. de Boor, A Practical Guide to Splines, 1978.
    """

    t: Array
    c: Array
    k: int
    extrapolate: bool | str
    axis: int

    def __init__(
        self,
        t: ArrayLike,
        c: ArrayLike,
        k: int,
        extrapolate: Extrapolate = True,
        axis: int = 0,
    ) -> None:
        name = "BSpline"
        k = natural(name, "k", k, 0)
        (t,) = promote_inexact(name, fnp.asarray(t))
        c = promote_inexact(name, fnp.asarray(c), t)[0]
        if t.aval.ndim != 1 or t.aval.size < 2 * k + 2:
            raise ShapeError(
                f"{name}: t must be a vector of at least {2 * k + 2} knots for degree "
                f"{k}, got {t.aval}"
            )
        if not c.aval.ndim:
            raise ShapeError(f"{name}: c must have an axis of coefficients")
        axis = canonical_axis(name, axis, c.aval.ndim)
        c = fnp.moveaxis(c, axis, 0)
        n = t.aval.size - k - 1
        if c.aval.shape[0] < n:
            raise ShapeError(
                f"{name}: {t.aval.size} knots of degree {k} need {n} coefficients, got "
                f"{c.aval.shape[0]}"
            )
        if not isinstance(t, Tracer):
            knots = np.asarray(t)
            if (np.diff(knots) < 0).any() or not np.isfinite(knots).all():
                raise ArgumentError(f"{name}: t must be finite and must not descend")
            if knots[k] == knots[n]:
                raise ArgumentError(f"{name}: the base interval t[k] … t[n] is empty")
        how = extrapolation(name, True if extrapolate is None else extrapolate)
        self._set(t, c[:n], k, how, axis)

    def _set(self, t: Any, c: Any, k: int, extrapolate: bool | str, axis: int) -> None:
        self.t, self.c, self.k = t, c, k
        self.extrapolate, self.axis = extrapolate, axis

    @classmethod
    def _of(cls, t: Any, c: Any, k: int, extrapolate: bool | str, axis: int) -> BSpline:
        out = object.__new__(cls)
        out._set(t, c, k, extrapolate, axis)
        return out

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the arrays and the static data."""
        return (self.t, self.c), (self.k, self.extrapolate, self.axis)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> BSpline:
        """Rebuilds a spline from its parts."""
        return cls._of(*children, *aux)

    @property
    def tck(self) -> tuple[Array, Array, int]:
        """The knots, the coefficients and the degree."""
        return self.t, self.c, self.k

    @classmethod
    def basis_element(cls, t: ArrayLike, extrapolate: Extrapolate = True) -> BSpline:
        """Returns the B-spline on given knots.

        Args:
          t: real array-like[k + 2]: the knots.
          extrapolate: as for `BSpline`.

        Returns:
          BSpline of degree k.
        """
        (t,) = promote_inexact("BSpline.basis_element", fnp.asarray(t))
        k = t.aval.size - 2
        ends = [fnp.broadcast_to(v, (k,)) for v in (t[0] - 1, t[-1] + 1)]
        knots = fnp.concatenate([ends[0], t, ends[1]])
        c = np.zeros(2 * k + 1)
        c[k] = 1
        return cls(knots, fnp.asarray(c, t.dtype), k, extrapolate)

    @classmethod
    def design_matrix(
        cls, x: ArrayLike, t: ArrayLike, k: int, extrapolate: bool = False
    ) -> Array:
        """Returns the values of all B-splines at points.

        Args:
          x: real array-like[m].
          t: real array-like[n + k + 1]: the knots.
          k: the degree.
          extrapolate: whether points beyond the base interval are allowed.

        Returns:
          Float array[m, n]. (SciPy's is sparse.)

        Raises:
          ArgumentError: a point lies beyond, and `extrapolate` is not set.
        """
        name = "BSpline.design_matrix"
        x, t = promote_inexact(name, fnp.asarray(x), fnp.asarray(t))
        n = t.aval.size - k - 1
        if not extrapolate and not isinstance(x, Tracer) and not isinstance(t, Tracer):
            points, knots = np.asarray(x), np.asarray(t)
            if points.size and not (
                points.min() >= knots[k] and points.max() <= knots[n]
            ):
                raise ArgumentError(
                    f"{name}: points lie beyond the base interval, {knots[k]} to "
                    f"{knots[n]}: set extrapolate=True"
                )
        return _design(t, x, natural(name, "k", k, 0))

    def __call__(self, x: ArrayLike, nu: int = 0, extrapolate: Any = None) -> Array:
        """Returns values, or those of a derivative.

        Args:
          x: real array-like[*s].
          nu: the order of the derivative.
          extrapolate: in place of the object's own.

        Returns:
          Array with *s in place of the axis of the coefficients.

        Raises:
          ArgumentError: `nu` is negative, or `extrapolate` is invalid.
        """
        how = self.extrapolate if extrapolate is None else extrapolate
        how = extrapolation("BSpline", how)
        nu = natural("BSpline", "nu", nu, 0)
        at, _ = promote_inexact("BSpline", fnp.asarray(x), self.t)
        if nu > self.k:
            zero = self._of(self.t, fnp.zeros_like(self.c), *self._rest())
            return zero(at, 0, how)
        f = self.derivative(nu) if nu else self
        out = _evaluated(f.t, f.c, at, f.k, how)
        d = at.aval.ndim
        if self.axis and d:
            return fnp.moveaxis(out, range(d), range(self.axis, self.axis + d))
        return out

    def _rest(self) -> tuple[int, bool | str, int]:
        return self.k, self.extrapolate, self.axis

    def derivative(self, nu: int = 1) -> BSpline:
        """Returns the spline of a derivative.

        Args:
          nu: its order, at most the degree; that of a negative one is an integral.

        Returns:
          BSpline of degree k - nu.

        Raises:
          ArgumentError: `nu` is above the degree.
        """
        if nu < 0:
            return self.antiderivative(-nu)
        if nu > self.k:
            raise ArgumentError(
                f"BSpline: nu must be at most the degree, {self.k}, got {nu}"
            )
        t, c, k = self.tck
        for _ in range(nu):
            c = _derived(t, c, k)
            t, k = t[1:-1], k - 1
        return self._of(t, c, k, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> BSpline:
        """Returns the spline of an integral.

        Args:
          nu: how often to integrate; a negative one differentiates.

        Returns:
          BSpline of degree k + nu, 0 at the first knot.
        """
        if nu < 0:
            return self.derivative(-nu)
        t, c, k = self.tck
        for _ in range(nu):
            c = _integrated(t, c, k)
            t, k = fnp.concatenate([t[:1], t, t[-1:]]), k + 1
        how = False if self.extrapolate == "periodic" else self.extrapolate
        return self._of(t, c, k, how, self.axis)

    def integrate(self, a: ArrayLike, b: ArrayLike, extrapolate: Any = None) -> Array:
        """Returns the integral from one point to another.

        Args:
          a: real number: the lower bound.
          b: real number: the upper bound.
          extrapolate: in place of the object's own; without it, what lies beyond the
            base interval is 0.

        Returns:
          Array[...].

        Raises:
          ArgumentError: `extrapolate` is invalid.
        """
        how = self.extrapolate if extrapolate is None else extrapolate
        how = extrapolation("BSpline", how)
        a, b, t = promote_inexact("BSpline", a, b, self.t)
        n = t.aval.size - self.k - 1
        bounds = fnp.stack([a, b])
        first, last = t[self.k], t[n]
        whole = self.antiderivative()

        def at(x: Array) -> Array:
            return _evaluated(whole.t, whole.c, x, whole.k, True)

        if how == "periodic":
            turns = fnp.floor((bounds - first) / (last - first))
            ends = at(bounds - turns * (last - first))
            one = at(last) - at(first)
            return ends[1] - ends[0] + (turns[1] - turns[0]) * one
        if how is False:
            bounds = fnp.clip(bounds, first, last)
        ends = at(bounds)
        return ends[1] - ends[0]


@library("k")
def _design(t: Array, x: Array, k: int) -> Array:
    n = t.aval.size - k - 1
    i = _interval(t, x, k)
    out = fnp.zeros((x.aval.size, n), x.aval.dtype)
    rows = np.arange(x.aval.size)
    for j, weight in enumerate(_weights(t, x, k, i)):
        out = out.at[rows, i - k + j].add(weight)
    return out


# -- interpolation ---------------------------------------------------------------------


@functools.partial(jit, static_argnames="k")
def _collocated(t: Array, x: Array, y: Array, k: int, first: Any, last: Any) -> Array:
    """Returns the coefficients of the spline through samples, and with derivatives.

    Args:
      t: knots.
      x: points.
      y: values[m, r].
      k: the degree.
      first: rows of the derivatives at the first point: weights[d, k + 1], values.
      last: likewise at the last point.
    """
    n = t.aval.size - k - 1
    i = _interval(t, x, k)
    body = fnp.stack(_weights(t, x, k, i), -1)
    before, after = first[0].aval.shape[0], last[0].aval.shape[0]
    weights = fnp.concatenate([first[0], body, last[0]], 0)
    ends = [fnp.full(before, 0, i.aval.dtype), fnp.full(after, n - k - 1, i.aval.dtype)]
    start = fnp.concatenate([ends[0], i - k, ends[1]])
    rhs = fnp.concatenate([first[1], y, last[1]], 0)
    return through(weights, start, rhs)


def _derivative_rows(t: Array, k: int, orders: list[int], right: bool) -> Array:
    """Returns what derivatives at an end are, in the k + 1 coefficients there."""
    n = t.aval.size - k - 1
    rows = []
    for order in orders:
        c = fnp.eye(n, dtype=t.aval.dtype)
        c = c[n - k - 1 :] if right else c[: k + 1]
        # A spline of these coefficients alone: its derivative at the end.
        knots = t[n - k - 1 :] if right else t[: 2 * k + 2]
        local = fnp.eye(k + 1, dtype=t.aval.dtype)
        degree = k
        for _ in range(order):
            local = _derived(knots, local, degree)
            knots, degree = knots[1:-1], degree - 1
        end = knots[-degree - 1] if right else knots[degree]
        rows.append(_evaluated(knots, local, end, degree, True))
    if not rows:
        return fnp.zeros((0, k + 1), t.aval.dtype)
    return fnp.stack(rows)


@library("ends", "periodic")
def _cubic(
    t: Array, x: Array, y: Array, given: Any, ends: Any, periodic: bool
) -> Array:
    """Returns the coefficients of a cubic spline through samples.

    A coefficient is the polar form of the spline at three knots in a row (L. Ramshaw,
    Blossoming, 1987): of the value, the slope and the second derivative at the middle
    one, which a tridiagonal system gives at the points.

    Args:
      t: knots, each of which is a point.
      x: points.
      y: values[n, r].
      given: values of derivatives at both ends.
      ends: for each end "not-a-knot", "periodic", 1 or 2.
      periodic: whether the spline is.
    """
    n = x.aval.size
    slopes = _smooth_slopes(x, y, given, ends)
    h = fnp.diff(x)[:, None]
    secant = fnp.diff(y, axis=0) / h
    bends = (6 * secant - 4 * slopes[:-1] - 2 * slopes[1:]) / h
    last = (2 * slopes[-2:-1] + 4 * slopes[-1:] - 6 * secant[-1:]) / h[-1:]
    bends = fnp.concatenate([bends, last], 0)
    count = t.aval.size - 4
    if periodic:
        at = (np.arange(count) - 1) % (n - 1)
    else:
        cut = [int(e == "not-a-knot") for e in ends]
        inner = np.arange(1 + cut[0], n - 1 - cut[1])
        at = np.concatenate([[0, 0], inner, [n - 1, n - 1]])
    middle = t[2 : 2 + count]
    u = (t[1 : 1 + count] - middle)[:, None]
    w = (t[3 : 3 + count] - middle)[:, None]
    return y[at] + slopes[at] * (u + w) / 3 + bends[at] * u * w / 6


_NAMED = {"clamped": (1, 0.0), "natural": (2, 0.0)}


def _conditions(name: str, bc: Any, shape: tuple[int, ...]) -> list[tuple[int, Any]]:
    """Returns the derivatives at an end, (order, value)."""
    if bc is None or bc == "not-a-knot":
        return []
    if isinstance(bc, str):
        if bc not in _NAMED:
            known = ", ".join(f'"{b}"' for b in (*_NAMED, "not-a-knot", "periodic"))
            raise ArgumentError(f"{name}: bc_type must be one of {known}, got {bc!r}")
        return [_NAMED[bc]]
    found = []
    for order, value in bc:
        if fnp.shape(value) not in ((), shape):
            raise ShapeError(
                f"{name}: a derivative at an end must have shape {shape}, got "
                f"{fnp.shape(value)}"
            )
        found.append((natural(name, "a derivative's order", order, 0), value))
    return found


def _repeated(x: Array, inner: Array, k: int) -> Array:
    ends = [fnp.broadcast_to(v, (k + 1,)) for v in (x[0], x[-1])]
    return fnp.concatenate([ends[0], inner, ends[1]])


def _periodic(x: Array, y: Array, k: int) -> tuple[Array, Array]:
    """Returns the knots and the coefficients of a periodic spline."""
    n = x.aval.size
    knots = x
    if k % 2 == 0:
        knots = fnp.concatenate([x[:1], (x[1:-1] + x[:-2]) / 2, x[-1:]])
    period = x[-1] - x[0]
    steps = np.arange(-k, n + k)
    turns = np.floor_divide(steps, n - 1)
    t = knots[steps - turns * (n - 1)] + fnp.asarray(turns, x.dtype) * period
    # Where the last knot is the first one of the next turn, it is the last one itself.
    t = t.at[k + n - 1].set(knots[-1])
    if k == 3:
        return t, _cubic(t, x, y, [0.0, 0.0], ("periodic", "periodic"), True)
    wide = _design(t, x[:-1], k)
    count = wide.aval.shape[1]
    fold = np.zeros((count, n - 1))
    fold[np.arange(count), np.arange(count) % (n - 1)] = 1
    matrix = fnp.matmul(wide, fnp.asarray(fold, wide.aval.dtype), precision="highest")
    c = fnp.linalg.solve(matrix.astype(y.dtype), y[:-1])
    return t, c[np.arange(count) % (n - 1)]


def _knots(
    name: str, points: Array, k: int, left: list[Any], right: list[Any]
) -> Array:
    """Returns the knots that the points and the conditions at the ends ask for."""
    n = points.aval.size
    if left or right:
        # Even degrees have their knots between the points.
        inner = points[1:-1] if k % 2 else (points[1:] + points[:-1]) / 2
        extra = n + len(left) + len(right) - (k + 1) - inner.aval.size
        cut = -extra
        if cut > 0:
            low = cut - cut // 2 if not left else cut // 2
            inner = inner[low : inner.aval.size - (cut - low)]
        return _repeated(points, inner, k)
    if n < k + 1:
        raise ShapeError(f"{name}: degree {k} needs at least {k + 1} points, got {n}")
    half = (k + 1) // 2 if k % 2 else k // 2
    inner = points if k % 2 else (points[1:] + points[:-1]) / 2
    return _repeated(points, inner[half : inner.aval.size - half], k)


def _through(
    name: str,
    points: Array,
    knots: Array,
    values: Array,
    k: int,
    left: list[Any],
    right: list[Any],
    axis: int,
    own: bool,
) -> BSpline:
    """Returns the spline through samples; `own` says that the points are its knots."""
    n, shape = points.aval.size, values.aval.shape[1:]
    size = knots.aval.size - k - 1
    points, knots, values = promote_inexact(name, points, knots, values)
    points, knots = fnp.real(points), fnp.real(knots)
    flat = fnp.reshape(values, (n, -1))
    kinds = [one[0][0] if len(one) == 1 else one for one in (left, right)]
    simple = all(kind in (1, 2, []) for kind in kinds)
    if k == 3 and own and simple and (n > 4 or (left and right)):
        given = [
            fnp.broadcast_to(fnp.asarray(one[0][1], flat.dtype), shape) if one else 0.0
            for one in (left, right)
        ]
        ends = tuple(kind or "not-a-knot" for kind in kinds)
        c = _cubic(knots, points, flat, given, ends, False)
        return BSpline._of(knots, fnp.reshape(c, (size, *shape)), k, True, axis)

    def rows(conditions: list[tuple[int, Any]], at_right: bool) -> tuple[Array, Array]:
        orders = [order for order, _ in conditions]
        given = [
            fnp.reshape(fnp.broadcast_to(fnp.asarray(v, flat.dtype), shape), (1, -1))
            for _, v in conditions
        ]
        empty = fnp.zeros((0, flat.aval.shape[1]), flat.dtype)
        found = fnp.concatenate(given, 0) if given else empty
        return _derivative_rows(knots, k, orders, at_right), found

    c = _collocated(knots, points, flat, k, rows(left, False), rows(right, True))
    c = fnp.reshape(c, (size, *shape))
    return BSpline._of(knots, c, k, True, axis)


def make_interp_spline(
    x: ArrayLike,
    y: ArrayLike,
    k: int = 3,
    t: ArrayLike | None = None,
    bc_type: Any = None,
    axis: int = 0,
    check_finite: bool = True,
) -> BSpline:
    """Returns the spline through samples.

    It is differentiable in `x`, `y`, `t` and the derivatives at the ends.

    Args:
      x: real array-like[n]: points, strictly ascending.
      y: array-like[..., n, ...]: values.
      k: the degree.
      t: real array-like: the knots, as many as the samples and conditions ask for; None
        is the points, or those that "not-a-knot" leaves of them.
      bc_type: the ends: None or "not-a-knot"; "clamped", slope 0; "natural", second
        derivative 0; "periodic", where y[0] is y[-1]; or for each end one of them or a
        list of (order, value), derivatives there.
      axis: the axis of the points.
      check_finite: has no effect: samples that are known must be finite.

    Returns:
      BSpline.

    Raises:
      ArgumentError: `x` does not ascend, a sample is not finite, there is no such
        `bc_type`, or the number of conditions does not fit.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x = np.arange(6.0)
      >>> make_interp_spline(x, x**3)(np.array([0.5, 2.5])).round(3)
      Array([ 0.125, 15.625], dtype=float32)

    Source: `scipy.interpolate.make_interp_spline`.
    """
    name = "make_interp_spline"
    k = natural(name, "k", k, 0)
    points, (values,), axis = _samples(name, fnp.asarray(x), fnp.asarray(y), axis)
    shape = values.aval.shape[1:]
    n = points.aval.size
    if isinstance(bc_type, str) and bc_type == "periodic":
        if t is not None:
            raise ArgumentError(f"{name}: a periodic spline has knots of its own")
        if not isinstance(values, Tracer):
            edge = np.asarray(values)
            if not np.allclose(edge[0], edge[-1], 1e-15, 1e-15):
                raise ArgumentError(
                    f"{name}: y[0] and y[-1] of a periodic spline must be equal"
                )
        if k > 1:
            if n <= k:
                raise ShapeError(f"{name}: degree {k} needs at least {k + 1} points")
            knots, c = _periodic(points, fnp.reshape(values, (n, -1)), k)
            c = fnp.reshape(c, (c.aval.shape[0], *shape))
            return BSpline._of(knots, c, k, "periodic", axis)
        bc_type = None
    both = (
        [bc_type] * 2 if bc_type is None or isinstance(bc_type, str) else list(bc_type)
    )
    if len(both) != 2:
        raise ArgumentError(
            f"{name}: bc_type must be one for each end, got {bc_type!r}"
        )
    left, right = (_conditions(name, one, shape) for one in both)
    if k < 2 and t is None:
        if left or right:
            raise ArgumentError(f"{name}: degree {k} has no conditions at the ends")
        if k == 0:
            knots = fnp.concatenate([points, points[-1:]])
        else:
            knots = fnp.concatenate([points[:1], points, points[-1:]])
        return BSpline._of(knots, values, k, True, axis)
    if t is not None:
        (knots,) = promote_inexact(name, fnp.asarray(t))
    else:
        knots = _knots(name, points, k, left, right)
    size = knots.aval.size - k - 1
    if size != n + len(left) + len(right):
        raise ArgumentError(
            f"{name}: {size} coefficients need as many samples and conditions, got {n} "
            f"and {len(left) + len(right)}"
        )
    return _through(name, points, knots, values, k, left, right, axis, t is None)


def make_lsq_spline(
    x: ArrayLike,
    y: ArrayLike,
    t: ArrayLike,
    k: int = 3,
    w: ArrayLike | None = None,
    axis: int = 0,
    check_finite: bool = True,
    *,
    method: str = "qr",
) -> BSpline:
    """Returns the spline on given knots that is nearest to samples.

    Args:
      x: real array-like[m]: points, ascending.
      y: array-like[..., m, ...]: values.
      t: real array-like[n + k + 1]: the knots.
      k: the degree.
      w: real array-like[m]: weights of the differences; None is 1.
      axis: the axis of the points.
      check_finite: has no effect.
      method: "qr", or "norm-eq", normal equations, which are faster and less exact.

    Returns:
      BSpline.

    Raises:
      ArgumentError: unknown method, or `x` does not ascend.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x = np.linspace(0.0, 1.0, 20)
      >>> t = np.array([0.0, 0, 0, 0.5, 1, 1, 1])
      >>> make_lsq_spline(x, x**2, t, 2)(0.3).round(3)
      Array(0.09, dtype=float32)

    Source: `scipy.interpolate.make_lsq_spline`.
    """
    name = "make_lsq_spline"
    if method not in ("qr", "norm-eq"):
        raise ArgumentError(f'{name}: method must be "qr" or "norm-eq", got {method!r}')
    points, (values,), axis = _samples(name, fnp.asarray(x), fnp.asarray(y), axis)
    spline = BSpline(t, fnp.zeros(max(fnp.size(t) - k - 1, 0)), k)
    points, knots, values = promote_inexact(name, points, spline.t, values)
    points, knots = fnp.real(points), fnp.real(knots)
    flat = fnp.reshape(values, (values.aval.shape[0], -1))
    if w is not None:
        weights = fnp.asarray(w, points.dtype)
        if weights.aval.shape != points.aval.shape:
            raise ShapeError(f"{name}: w must have the shape of x, got {weights.aval}")
        w = weights
    c = _nearest(knots, points, flat, w, spline.k, method == "qr")
    c = fnp.reshape(c, (c.aval.shape[0], *values.aval.shape[1:]))
    return BSpline._of(knots, c, spline.k, True, axis)


@functools.partial(jit, static_argnames=("k", "exact"))
def _nearest(t: Array, x: Array, y: Array, w: Any, k: int, exact: bool) -> Array:
    """Returns the coefficients of the spline that is nearest to samples."""
    i = _interval(t, x, k)
    rows = fnp.stack(_weights(t, x, k, i), -1)
    if w is not None:
        rows, y = rows * w[:, None], y * w[:, None]
    return nearest(rows, i - k, y, t.aval.size - k - 1, exact)
