"""Interpolation between points that lie anywhere."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate._scattered import Scattered, points_of, scaled
from fxflow.scipy.interpolate.polynomials import interp1d
from fxflow.scipy.interpolate.triangles import (
    CloughTocher2DInterpolator,
    LinearNDInterpolator,
)
from fxflow.scipy.spatial._neighbours import neighbours
from fxflow.scipy.spatial._neighbours import powers as norms
from fxflow.transforms.vmap import vmap

# -- the nearest point -----------------------------------------------------------------


@register_pytree_node_class
class NearestNDInterpolator(Scattered):
    """The value at the nearest point.

    It is a pytree: it works under `jit` and `vmap`, and is differentiable in the
    values.

    Args:
      x: real array-like[n, d]: points.
      y: array-like[n, ...]: values.
      rescale: whether coordinates are scaled to [0, 1] first.

    Attributes:
      points: the points, array[n, d].
      values: the values.
      rescale: as given.

    Raises:
      ShapeError: the shapes are incompatible.

    Example:
      >>> f = NearestNDInterpolator(np.array([[0.0, 0.0], [1.0, 1.0]]), np.arange(2.0))
      >>> f(np.array([0.9, 0.7]))
      Array(1., dtype=float32)

    Source: `scipy.interpolate.NearestNDInterpolator`.
    """

    rescale: bool

    def __init__(self, x: Any, y: ArrayLike, rescale: bool = False) -> None:
        self._set_points("NearestNDInterpolator", x, y)
        self.rescale = bool(rescale)

    def tree_flatten(self) -> tuple[tuple[Any, ...], bool]:
        """Returns the arrays and the static data."""
        return (self.points, self.values), self.rescale

    @classmethod
    def tree_unflatten(cls, aux: bool, children: Any) -> NearestNDInterpolator:
        """Rebuilds an interpolator from its parts."""
        out = object.__new__(cls)
        out.points, out.values = children
        out.rescale = aux
        return out

    def __call__(self, *args: Any) -> Array:
        """Returns values.

        Args:
          *args: real array-like[*s, d], or one array-like[*s] for each coordinate.

        Returns:
          Array[*s, ...].
        """
        xi, shape = self._queries("NearestNDInterpolator", args)
        low, scale = scaled(self.points, self.rescale)
        places = (xi - low) / scale, (self.points - low) / scale
        at = neighbours(*map(lax.stop_gradient, places), 1)[:, 0]
        out = self.values[at]
        lost = fnp.any(xi != xi, 1)
        out = fnp.where(fnp.reshape(lost, (-1, *(1,) * (out.ndim - 1))), fnp.nan, out)
        return fnp.reshape(out, (*shape, *self.values.shape[1:])).astype(out.dtype)


# -- radial functions ------------------------------------------------------------------

# Kernels of the distance r (and of its square), the least degree of the polynomial that
# makes the system solvable, and whether a shape parameter has no effect.
_KERNELS: dict[str, tuple[Any, int, bool]] = {
    "linear": (lambda r, s: -r, 0, True),
    "thin_plate_spline": (
        lambda r, s: s * fnp.log(fnp.where(s > 0, r, 1)),
        1,
        True,
    ),
    "cubic": (lambda r, s: s * r, 1, True),
    "quintic": (lambda r, s: -s * s * r, 2, True),
    "multiquadric": (lambda r, s: -fnp.sqrt(s + 1), 0, False),
    "inverse_multiquadric": (lambda r, s: 1 / fnp.sqrt(s + 1), -1, False),
    "inverse_quadratic": (lambda r, s: 1 / (s + 1), -1, False),
    "gaussian": (lambda r, s: fnp.exp(-s), -1, False),
}


def _kernel(kind: str, square: Array) -> Array:
    some = square > 0
    r = fnp.where(some, fnp.sqrt(fnp.where(some, square, 1)), 0)
    return _KERNELS[kind][0](r, square)  # type: ignore[no-any-return]


def _powers(d: int, degree: int) -> np.ndarray[Any, Any]:
    """Returns the exponents of all monomials up to a degree, [count, d]."""
    rows = [
        np.bincount(np.asarray(c, int), minlength=d)
        for total in range(degree + 1)
        for c in itertools.combinations_with_replacement(range(d), total)
    ]
    return np.array(rows, int).reshape(-1, d)


def _monomials(x: Array, powers: np.ndarray[Any, Any]) -> Array:
    columns = []
    for row in powers:
        out = fnp.ones(x.aval.shape[:1], x.aval.dtype)
        for k, p in enumerate(row):
            for _ in range(p):
                out = out * x[:, k]
        columns.append(out)
    if not columns:
        return fnp.zeros((x.aval.shape[0], 0), x.aval.dtype)
    return fnp.stack(columns, 1)


@library("kernel", "degree")
def _fitted(
    y: Array, d: Array, smoothing: Array, epsilon: Array, kernel: str, degree: int
) -> tuple[Array, Array, Array]:
    """Returns the shift and the scale of coordinates, and the coefficients."""
    low, high = fnp.min(y, 0), fnp.max(y, 0)
    shift, scale = (low + high) / 2, (high - low) / 2
    scale = fnp.where(scale == 0, 1, scale)
    powers = _powers(y.aval.shape[1], degree)
    n, r = y.aval.shape[0], len(powers)
    matrix = _kernel(kernel, norms(y * epsilon, y * epsilon, 2))
    matrix = matrix + fnp.eye(n, dtype=y.aval.dtype) * smoothing
    poly = _monomials((y - shift) / scale, powers)
    corner = fnp.zeros((r, r), y.aval.dtype)
    whole = fnp.concatenate(
        [fnp.concatenate([matrix, poly], 1), fnp.concatenate([poly.T, corner], 1)], 0
    )
    rhs = fnp.pad(d, [(0, r), (0, 0)])
    return shift, scale, fnp.linalg.solve(whole.astype(d.aval.dtype), rhs)


@library("kernel", "degree")
def _radial(
    x: Array, y: Array, fit: Any, epsilon: Array, kernel: str, degree: int
) -> Array:
    shift, scale, c = fit
    near = _kernel(kernel, norms(x * epsilon, y * epsilon, 2))
    poly = _monomials((x - shift) / scale, _powers(y.aval.shape[1], degree))
    rows = fnp.concatenate([near, poly], 1).astype(c.aval.dtype)
    return fnp.matmul(rows, c, precision="highest")


@register_pytree_node_class
class RBFInterpolator(Scattered):
    """A sum of functions of the distance to points, and a polynomial.

    It is a pytree: it works under `jit` and `vmap`, and is differentiable in the
    points, the values, `smoothing`, `epsilon` and the point of evaluation.

    Args:
      y: real array-like[n, d]: points.
      d: array-like[n, ...]: values.
      neighbors: how many of the nearest points a value depends on; None is all.
      smoothing: real array-like[] or [n]: how far values may be missed; 0 for
        interpolation.
      kernel: "thin_plate_spline", "linear", "cubic", "quintic", "multiquadric",
        "inverse_multiquadric", "inverse_quadratic" or "gaussian".
      epsilon: real number: what distances are multiplied by; kernels after "quintic"
        need it.
      degree: degree of the polynomial, -1 for none; None is the least that the kernel
        asks for, and at least 0.

    Attributes:
      points: the points, array[n, d].
      values: the values.
      smoothing: array[n].
      epsilon: the scale.
      kernel: as given.
      degree: degree of the polynomial.
      neighbors: as given.

    Raises:
      ArgumentError: there is no such kernel, `epsilon` is missing, or there are fewer
        points than the polynomial has coefficients.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x = np.array([[0.0], [1.0], [2.0]])
      >>> RBFInterpolator(x, np.array([0.0, 2.0, 4.0]))(np.array([[0.5]])).round(3)
      Array([1.], dtype=float32)

    Source: `scipy.interpolate.RBFInterpolator`. G. E. Fasshauer, Meshfree Approximation
    Methods with Matlab, 2007.
    """

    smoothing: Array
    epsilon: Array
    kernel: str
    degree: int
    neighbors: int | None
    _fit: Any

    def __init__(
        self,
        y: ArrayLike,
        d: ArrayLike,
        neighbors: int | None = None,
        smoothing: ArrayLike = 0.0,
        kernel: str = "thin_plate_spline",
        epsilon: Any = None,
        degree: int | None = None,
    ) -> None:
        name = "RBFInterpolator"
        if fnp.ndim(y) != 2:
            raise ShapeError(f"{name}: y must be points [n, d], got {fnp.shape(y)}")
        self._set_points(name, y, d)
        points, values = promote_inexact(name, self.points, self.values)
        self.points: Array = fnp.real(points)
        self.values: Array = values
        if kernel not in _KERNELS:
            known = ", ".join(f'"{k}"' for k in _KERNELS)
            raise ArgumentError(
                f"{name}: kernel must be one of {known}, got {kernel!r}"
            )
        _, least, free = _KERNELS[kernel]
        if epsilon is None and not free:
            raise ArgumentError(f'{name}: kernel="{kernel}" needs epsilon')
        real = self.points.dtype
        self.epsilon = fnp.asarray(1.0 if epsilon is None else epsilon, real)
        self.degree = (
            max(least, 0) if degree is None else natural(name, "degree", degree, -1)
        )
        self.kernel = kernel
        n, axes = self.points.shape
        self.neighbors = None
        if neighbors is not None:
            self.neighbors = min(natural(name, "neighbors", neighbors), n)
        terms = len(_powers(axes, self.degree))
        if terms > (self.neighbors or n):
            raise ArgumentError(
                f"{name}: a polynomial of degree {self.degree} in {axes} variables "
                f"needs {terms} points, got {self.neighbors or n}"
            )
        soft = fnp.asarray(smoothing, real)
        if soft.shape not in ((), (n,)):
            raise ShapeError(
                f"{name}: smoothing must be one or {n} numbers, got {soft}"
            )
        self.smoothing = fnp.broadcast_to(soft, (n,))
        self._fit = None
        if self.neighbors is None:
            flat = fnp.reshape(self.values, (n, -1))
            self._fit = _fitted(
                *(self.points, flat, self.smoothing, self.epsilon),
                *(self.kernel, self.degree),
            )

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the arrays and the static data."""
        arrays = (self.points, self.values, self.smoothing, self.epsilon, self._fit)
        return arrays, (self.kernel, self.degree, self.neighbors)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> RBFInterpolator:
        """Rebuilds an interpolator from its parts."""
        out = object.__new__(cls)
        out.points, out.values, out.smoothing, out.epsilon, out._fit = children
        out.kernel, out.degree, out.neighbors = aux
        return out

    def __call__(self, x: ArrayLike) -> Array:
        """Returns values.

        Args:
          x: real array-like[m, d].

        Returns:
          Array[m, ...].

        Raises:
          ShapeError: the points have the wrong number of coordinates.
        """
        if fnp.ndim(x) != 2 or fnp.shape(x)[1] != self.points.shape[1]:
            raise ShapeError(
                f"RBFInterpolator: x must be points [m, {self.points.shape[1]}], got "
                f"{fnp.shape(x)}"
            )
        at = promote_inexact("RBFInterpolator", x, self.points)[0]
        kind = (self.kernel, self.degree)
        if self.neighbors is None:
            out = _radial(at, self.points, self._fit, self.epsilon, *kind)
        else:
            flat = fnp.reshape(self.values, (self.values.shape[0], -1))
            near = neighbours(
                lax.stop_gradient(at), lax.stop_gradient(self.points), self.neighbors
            )

            def one(x: Array, index: Array) -> Array:
                y, d = self.points[index], flat[index]
                fit = _fitted(y, d, self.smoothing[index], self.epsilon, *kind)
                return _radial(x[None], y, fit, self.epsilon, *kind)[0]

            out = vmap(one)(at, near)
        return fnp.reshape(out, (at.shape[0], *self.values.shape[1:]))


def griddata(
    points: Any,
    values: ArrayLike,
    xi: Any,
    method: str = "linear",
    fill_value: Any = np.nan,
    rescale: bool = False,
) -> Array:
    """Interpolates between points that lie anywhere.

    Args:
      points: real array-like[n, d], or a tuple of d array-like[n].
      values: array-like[n, ...].
      xi: real array-like[*s, d], or a tuple of d array-like[*s].
      method: "linear" or "cubic", in triangles of known points, or "nearest"; "cubic"
        is for points with one or two coordinates.
      fill_value: what there is outside of the points' hull, but for "nearest".
      rescale: whether coordinates are scaled to [0, 1] first.

    Returns:
      Array[*s, ...].

    Raises:
      ArgumentError: unknown method.
      ConcretizationError: points of triangles are traced by `jit` or `vmap`.
      ShapeError: the shapes are incompatible.

    Example:
      >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
      >>> griddata(corners, np.arange(3.0), np.array([[0.9, 0.2]]), "nearest")
      Array([1.], dtype=float32)

    Source: `scipy.interpolate.griddata`.
    """
    name = "griddata"
    if method not in ("linear", "nearest", "cubic"):
        raise ArgumentError(
            f'{name}: method must be "linear", "nearest" or "cubic", got {method!r}'
        )
    where = points_of(name, "points", points)
    if where.ndim == 1 or where.shape[-1] == 1:
        x = fnp.reshape(where, -1)
        at = fnp.asarray(xi[0] if isinstance(xi, tuple) else xi)
        at = at[..., 0] if where.ndim > 1 and at.ndim > 1 else at
        fill = "extrapolate" if method == "nearest" else fill_value
        return interp1d(x, values, method, 0, fill_value=fill)(at)
    queries = xi if isinstance(xi, tuple) else (xi,)
    if method == "nearest":
        return NearestNDInterpolator(where, values, rescale)(*queries)
    if method == "cubic":
        smooth = CloughTocher2DInterpolator(where, values, fill_value, rescale=rescale)
        return smooth(*queries)
    return LinearNDInterpolator(where, values, fill_value, rescale)(*queries)
