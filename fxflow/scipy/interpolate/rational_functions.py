"""Ratios of polynomials through points, in barycentric form."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.lax.axes import canonical_axis, natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate.polynomials import _barycentric

R = TypeVar("R", bound="_Rational")

_docs = shared("""
    Returns:
      Complex array[m - 1]: m support points give as many, and infinite ones are left
      out where they are known.

    Raises:
      ShapeError: values have more than one axis.
""")


def _zeros(xp: Any, top: Any, points: Any) -> Any:
    """Returns the m - 1 zeros of the sum of top[j] / (z - points[j]), by NumPy or ours.

    With y[j] = 1 / (z - points[j]) and any shift, D = 1 / (points - shift), it holds
    that D y - D 1 (top D y) / (top D 1) = y / (z - shift) for all y orthogonal to
    `top`: an eigenvalue problem in which infinite zeros are 0, not large.
    """
    m = top.shape[0]
    middle = xp.mean(points)
    wide = xp.max(xp.abs(points - middle))
    shift = middle + 1j * xp.where(wide == 0, 1, wide)
    d = 1 / (points - shift)
    first = xp.eye(m, dtype=d.dtype)[0]
    # A reflection takes the conjugate of `top` to the first axis.
    size = xp.sqrt(xp.sum(xp.abs(top) ** 2))
    head = xp.abs(top[0])
    phase = xp.where(head == 0, 1, xp.conj(top[0]) / xp.where(head == 0, 1, head))
    v = xp.conj(top) + phase * size * first
    v = v / xp.sqrt(xp.sum(xp.abs(v) ** 2))
    reflect = xp.eye(m, dtype=v.dtype) - 2 * v[:, None] * xp.conj(v)
    basis = reflect[:, 1:]
    inside = d[:, None] * basis
    inside = inside - d[:, None] * ((top @ inside) / xp.sum(top * d))
    inverse = xp.linalg.eigvals(xp.conj(basis.T) @ inside)
    return shift, inverse


def _finite(top: Array, points: Array) -> Array:
    """Returns the zeros, without infinite ones where they are known."""
    shift, inverse = _zeros(fnp, top, points)
    if not isinstance(inverse, Tracer):
        host = np.abs(np.asarray(inverse))
        eps = float(np.finfo(host.dtype).eps)
        inverse = inverse[np.flatnonzero(host > 4 * eps * host.size * host.max())]
    out: Array = shift + 1 / inverse
    return out


class _Rational:
    """What both interpolators have in common: they are immutable pytrees."""

    _points: Array
    _values: Array
    weights: Array
    axis: int

    def tree_flatten(self) -> tuple[tuple[Any, ...], int]:
        """Returns the arrays, and the axis."""
        return (self._points, self._values, self.weights), self.axis

    @classmethod
    def tree_unflatten(cls: type[R], aux: int, children: Any) -> R:
        """Rebuilds a function from its parts."""
        out = object.__new__(cls)
        out._points, out._values, out.weights = children
        out.axis = aux
        return out

    def __call__(self, z: ArrayLike) -> Array:
        """Returns values of the function.

        Args:
          z: float or complex array-like[*s].

        Returns:
          Array with *s in place of the axis of the points.
        """
        at, points = promote_inexact(type(self).__name__, fnp.asarray(z), self._points)
        weights = self.weights.astype(fnp.result_type(self.weights, at))
        values = self._values.astype(fnp.result_type(self._values, weights))
        out = _barycentric(points, values, weights, at)
        d = at.ndim
        if self.axis and d:
            return fnp.moveaxis(out, range(d), range(self.axis, self.axis + d))
        return out

    def _vector(self, what: str) -> Array:
        if self._values.ndim != 1:
            raise ShapeError(
                f"{type(self).__name__}.{what}: values must be a vector, got "
                f"{self._values.aval}"
            )
        return self._values

    @_docs
    def poles(self) -> Array:
        """Returns the poles."""
        if self.weights.shape[0] < 2:
            return fnp.zeros(0, dtypes.to_complex(self.weights.dtype))
        return _finite(self.weights, self._points)

    @_docs
    def roots(self) -> Array:
        """Returns the zeros."""
        top = self.weights * self._vector("roots")
        if top.shape[0] < 2:
            return fnp.zeros(0, dtypes.to_complex(top.dtype))
        return _finite(top, self._points)

    @_docs
    def residues(self) -> Array:
        """Returns the residues at the poles."""
        values, poles = self._vector("residues"), self.poles()
        inverse = 1 / (poles[:, None] - self._points)
        above = fnp.sum(inverse * (values * self.weights), 1)
        return -above / fnp.sum(inverse**2 * self.weights, 1)


def _samples(name: str, x: Any, y: Any, axis: int) -> tuple[Array, Array, int]:
    x, y = fnp.asarray(x), fnp.asarray(y)
    if x.ndim != 1 or not x.size:
        raise ShapeError(f"{name}: points must be a vector, got {x.aval}")
    axis = canonical_axis(name, axis, y.ndim)
    y = fnp.moveaxis(y, axis, 0)
    if y.shape[0] != x.size:
        raise ShapeError(
            f"{name}: values must have {x.size} elements along axis {axis}, got "
            f"{y.aval}"
        )
    if not isinstance(x, Tracer):
        host = np.asarray(x)
        if not np.isfinite(host).all():
            raise ArgumentError(f"{name}: points must be finite")
    return promote_inexact(name, x)[0], promote_inexact(name, y)[0], axis


@library("d")
def _floater_hormann(x: Array, d: int) -> Array:
    n = x.shape[0]
    start = np.arange(n)[:, None] - np.arange(d, -1, -1)
    used = (start >= 0) & (start < n - d)
    members = np.clip(start, 0, n - 1 - d)[:, :, None] + np.arange(d + 1)
    apart = fnp.abs(x[:, None, None] - x[members])
    own = members == np.arange(n)[:, None, None]
    products = fnp.prod(fnp.where(own, 1, apart), 2)
    sums = fnp.sum(fnp.where(used, 1 / fnp.where(used, products, 1), 0), 1)
    return sums * fnp.asarray((-1.0) ** (np.arange(n) - d), sums.dtype)


@register_pytree_node_class
class FloaterHormannInterpolator(_Rational):
    """The ratio of polynomials through points that has no poles among them.

    It is an immutable pytree: it works under `jit` and `vmap`, and is differentiable in
    the points, the values and the point of evaluation.

    Args:
      points: real array-like[n], all different.
      values: array-like[..., n, ...].
      d: the degree of the polynomials that are blended, less than n.
      axis: the axis of the points.

    Attributes:
      weights: the barycentric weights, array[n].
      axis: as given.

    Raises:
      ArgumentError: `d` is out of range, or points are equal or not finite.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x = np.linspace(0, 4, 9)
      >>> FloaterHormannInterpolator(x, x**2)(np.array([0.3])).round(4)
      Array([0.09], dtype=float32)

    Source: `scipy.interpolate.FloaterHormannInterpolator`. M. S. Floater and K.
    Hormann, Barycentric Rational Interpolation with No Poles and High Rates of
    Approximation, 2007.
    """

    def __init__(
        self, points: ArrayLike, values: ArrayLike, *, d: int = 3, axis: int = 0
    ) -> None:
        name = "FloaterHormannInterpolator"
        x, y, axis = _samples(name, points, values, axis)
        d = natural(name, "d", d, 0)
        if d >= x.size:
            raise ArgumentError(f"{name}: d must be less than {x.size}, got {d}")
        if isinstance(x, Tracer):
            order = fnp.argsort(x)
            x, y = x[order], y[order]
        else:
            host, first = np.unique(np.asarray(x), return_index=True)
            if host.size < x.size:
                raise ArgumentError(f"{name}: points must be different")
            x, y = x[first], y[first]
        self._points, self._values, self.axis = x, y, axis
        self.weights = _floater_hormann(x, d)


def _greedy(
    z: np.ndarray[Any, Any], f: np.ndarray[Any, Any], rtol: float, most: int
) -> tuple[list[int], np.ndarray[Any, Any], list[float]]:
    """Returns support points, their weights, and the errors on the way."""
    left = np.ones(z.size, bool)
    tol = rtol * np.abs(f).max()
    fit, chosen, errors = np.full(z.size, f.mean()), [], []
    weights = np.zeros(0)
    worst = 1 / (3 * np.finfo(np.float64).eps)
    for _ in range(min(most, z.size)):
        places = np.flatnonzero(left)
        chosen.append(int(places[np.argmax(np.abs(f - fit)[left])]))
        left[chosen[-1]] = False
        rows = np.flatnonzero(left)
        c = 1 / (z[rows, None] - z[chosen])
        loewner = (f[rows, None] - f[chosen]) * c
        if rows.size >= len(chosen):
            _, s, vh = np.linalg.svd(loewner, full_matrices=False)
            norms = np.ones(len(chosen))
            if s[-1] == 0 or s[0] / s[-1] > worst:
                norms = np.linalg.norm(loewner, axis=0)
                norms[norms == 0] = 1
                _, s, vh = np.linalg.svd(loewner / norms, full_matrices=False)
            smallest = s == s.min()
            weights = vh.conj()[smallest].sum(0) / np.sqrt(smallest.sum()) / norms
        else:
            _, _, vh = np.linalg.svd(loewner, full_matrices=True)
            null = vh.conj()[rows.size :]
            weights = null.sum(0) / np.sqrt(max(len(null), 1))
        fit = f.copy()
        below = c @ weights
        fine = np.isfinite(below) & (below != 0)
        fit[rows[fine]] = (c @ (weights * f[chosen]))[fine] / below[fine]
        errors.append(float(np.abs(f - fit).max()))
        if errors[-1] <= tol:
            break
    return chosen, weights, errors


@register_pytree_node_class
class AAA(_Rational):
    """A ratio of polynomials near samples, with as few terms as a tolerance asks.

    The support points are chosen on the host, one by one where the error is largest.
    The function is an immutable pytree: it works under `jit`, and is differentiable in
    the place where it is evaluated, its values at the support points and its weights.

    Args:
      x: float or complex array-like[n]: points, all different, in any order.
      y: float or complex array-like[n]: values; those that are not finite are left out.
      rtol: the tolerance, of the largest value; None is eps^0.75.
      max_terms: how many support points there may be.
      clean_up: whether to take out poles with a residue near 0, one time.
      clean_up_tol: what counts as near 0, of the geometric mean of the values.

    Attributes:
      support_points: array[m].
      support_values: array[m].
      weights: array[m].
      errors: the largest error after each term, float array[m].

    Raises:
      ArgumentError: `max_terms` is not positive, or points are not finite.
      ConcretizationError: points or values are traced.
      ShapeError: the arguments are not vectors of one length.

    Example:
      >>> x = np.linspace(-1.0, 1.0, 100)
      >>> f = AAA(x, 1 / (x + 2))
      >>> f.poles().real.round(3)
      Array([-2.], dtype=float32)

    Source: `scipy.interpolate.AAA`. Y. Nakatsukasa, O. Sète and L. N. Trefethen, The
    AAA Algorithm for Rational Approximation, 2018.
    """

    errors: Array

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        rtol: float | None = None,
        max_terms: int = 100,
        clean_up: bool = True,
        clean_up_tol: float = 1e-13,
    ) -> None:
        name = "AAA"
        points, values, _ = _samples(name, x, y, 0)
        if values.ndim != 1:
            raise ShapeError(f"{name}: y must be a vector, got {values.aval}")
        most = natural(name, "max_terms", max_terms)
        if isinstance(points, Tracer) or isinstance(values, Tracer):
            raise ConcretizationError(
                f"{name}: which points support the function depends on their values, "
                "which are traced: fit it outside of jit and grad"
            )
        dtype = fnp.result_type(points, values)
        z = np.asarray(x if isinstance(x, np.ndarray) else points)
        f = np.asarray(y if isinstance(y, np.ndarray) else values)
        wide = np.complex128 if dtypes.is_complex(dtype) else np.float64
        z, f = z.astype(wide), f.astype(wide)
        z, f = z[np.isfinite(f)], f[np.isfinite(f)]
        z, first = np.unique(z, return_index=True)
        f = f[first]
        if not z.size:
            raise ArgumentError(f"{name}: y must have a finite value")
        eps = float(np.finfo(np.float64).eps)
        tol = eps**0.75 if rtol is None else float(rtol)
        chosen, weights, errors = _greedy(z, f, tol, most)
        if clean_up:
            chosen, weights = _cleaned(z, f, chosen, weights, float(clean_up_tol))
        some = weights != 0
        support = np.asarray(chosen)[some]
        self._points = fnp.asarray(z[support], dtype)
        self._values = fnp.asarray(f[support], dtype)
        self.weights = fnp.asarray(weights[some], dtype)
        self.errors = fnp.asarray(np.asarray(errors), dtypes.to_real(dtype))
        self.axis = 0

    def tree_flatten(self) -> tuple[tuple[Any, ...], int]:
        """Returns the arrays, and the axis."""
        return (self._points, self._values, self.weights, self.errors), self.axis

    @classmethod
    def tree_unflatten(cls, aux: int, children: Any) -> AAA:
        """Rebuilds a function from its parts."""
        out = object.__new__(cls)
        out._points, out._values, out.weights, out.errors = children
        out.axis = aux
        return out

    @property
    def support_points(self) -> Array:
        """The support points, array[m]."""
        return self._points

    @property
    def support_values(self) -> Array:
        """The values there, array[m]."""
        return self._values


def _cleaned(
    z: np.ndarray[Any, Any],
    f: np.ndarray[Any, Any],
    chosen: list[int],
    weights: np.ndarray[Any, Any],
    tol: float,
) -> tuple[list[int], np.ndarray[Any, Any]]:
    """Returns support points without those near poles whose residue is near 0."""
    m = len(chosen)
    if m < 2:
        return chosen, weights
    points, values = z[chosen], f[chosen]
    shift, inverse = _zeros(np, weights, points)
    some = np.abs(inverse) > 4e-16 * m * np.abs(inverse).max()
    poles = shift + 1 / inverse[some]
    near = 1 / (poles[:, None] - points)
    residues = (near @ (values * weights)) / (near**2 @ weights)
    distance = np.abs(poles[:, None] - z).min(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.exp(np.log(np.abs(f)).mean())
        spurious = np.abs(residues) / distance < tol * mean
    if not spurious.any():
        return chosen, weights
    closest = np.abs(points[:, None] - poles[spurious]).argmin(0)
    left = [i for j, i in enumerate(chosen) if j not in set(closest.tolist())]
    rows = np.setdiff1d(np.arange(z.size), left)
    c = 1 / (z[rows, None] - z[left])
    _, _, vh = np.linalg.svd((f[rows, None] - f[left]) * c, full_matrices=True)
    return left, vh.conj()[len(left) - 1]
