"""Interpolation between points that lie anywhere."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate.polynomials import interp1d
from fxflow.scipy.spatial._neighbours import neighbours
from fxflow.scipy.spatial._neighbours import powers as norms
from fxflow.transforms.vmap import vmap

#: Distances from simplices that are in memory at a time.
_AT_ONCE = 1 << 22


def _points(name: str, what: str, x: Any) -> Array:
    if isinstance(x, tuple | list) and len(x) and all(fnp.ndim(v) for v in x):
        arrays = [fnp.asarray(v) for v in x]
        if isinstance(x, tuple):
            x = fnp.stack(fnp.broadcast_arrays(*arrays), -1)
    out: Array = promote_inexact(name, fnp.asarray(x))[0]
    if not out.aval.ndim:
        raise ShapeError(
            f"{name}: {what} must have an axis of coordinates, got {out.aval}"
        )
    return out


# -- the nearest point -----------------------------------------------------------------


def _scaled(points: Array, rescale: bool) -> tuple[Array, Array]:
    """Returns an offset and a scale that make coordinates alike."""
    if not rescale:
        d = points.aval.shape[1]
        return fnp.zeros(d, points.dtype), fnp.ones(d, points.dtype)
    low, high = fnp.min(points, 0), fnp.max(points, 0)
    return low, fnp.where(high > low, high - low, 1)


class _Scattered:
    """Points with values."""

    points: Array
    values: Array

    def _set_points(self, name: str, x: Any, y: Any) -> None:
        points = _points(name, "x", x)
        (values,) = promote_inexact(name, fnp.asarray(y))
        if points.aval.ndim == 1:
            points = points[:, None]
        n = points.aval.shape[0]
        fits = points.aval.ndim == 2 and values.aval.ndim and values.aval.shape[0] == n
        if not fits or not n:
            raise ShapeError(
                f"{name}: expected points [n, d] and values [n, ...], n > 0, got "
                f"{points.aval} and {values.aval}"
            )
        self.points, self.values = points, values

    def _queries(self, name: str, args: tuple[Any, ...]) -> tuple[Array, Any]:
        """Returns points as rows, and the shape of the points in the result."""
        d = self.points.shape[1]
        if len(args) > 1:
            xi = fnp.stack(fnp.broadcast_arrays(*map(fnp.asarray, args)), -1)
        else:
            xi = _points(name, "xi", args[0])
            if d == 1 and (xi.ndim == 1 or xi.shape[-1] != 1):
                xi = xi[..., None]
        if xi.shape[-1] != d:
            raise ShapeError(f"{name}: points must have {d} coordinates, got {xi.aval}")
        xi = promote_inexact(name, xi, self.points)[0]
        return fnp.reshape(xi, (-1, d)), xi.shape[:-1]


@register_pytree_node_class
class NearestNDInterpolator(_Scattered):
    """The value at the nearest point.

    It is a pytree: `jit`, `vmap` and `grad`, by the values, go through it.

    Args:
      x: real array-like[n, d]: points.
      y: array-like[n, ...]: values.
      rescale: whether coordinates are scaled to [0, 1] first.

    Attributes:
      points: the points, array[n, d].
      values: the values.
      rescale: as given.

    Raises:
      ShapeError: the shapes do not fit.

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
        """Returns the arrays, and the rest."""
        return (self.points, self.values), self.rescale

    @classmethod
    def tree_unflatten(cls, aux: bool, children: Any) -> NearestNDInterpolator:
        """Returns an interpolator of its parts."""
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
        low, scale = _scaled(self.points, self.rescale)
        at = neighbours((xi - low) / scale, (self.points - low) / scale, 1)[1][:, 0]
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
class RBFInterpolator(_Scattered):
    """A sum of functions of the distance to points, and a polynomial.

    It is a pytree: `jit`, `vmap` and `grad` go through it, by the points, the values,
    `smoothing`, `epsilon` and where it is evaluated.

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
      degree: of the polynomial, -1 for none; None is the least that the kernel asks
        for, and at least 0.

    Attributes:
      points: the points, array[n, d].
      values: the values.
      smoothing: array[n].
      epsilon: the scale.
      kernel: as given.
      degree: of the polynomial.
      neighbors: as given.

    Raises:
      ArgumentError: there is no such kernel, `epsilon` is missing, or there are fewer
        points than the polynomial has coefficients.
      ShapeError: the shapes do not fit.

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
        """Returns the arrays, and the rest."""
        arrays = (self.points, self.values, self.smoothing, self.epsilon, self._fit)
        return arrays, (self.kernel, self.degree, self.neighbors)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> RBFInterpolator:
        """Returns an interpolator of its parts."""
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
          ShapeError: the points have another number of coordinates.
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
            )[1]

            def one(x: Array, index: Array) -> Array:
                y, d = self.points[index], flat[index]
                fit = _fitted(y, d, self.smoothing[index], self.epsilon, *kind)
                return _radial(x[None], y, fit, self.epsilon, *kind)[0]

            out = vmap(one)(at, near)
        return fnp.reshape(out, (at.shape[0], *self.values.shape[1:]))


# -- triangles -------------------------------------------------------------------------


@library()
def _located(x: Array, corners: Array) -> tuple[Array, Array]:
    """Returns the simplex of each point, and its barycentric coordinates.

    Args:
      x: float[m, d].
      corners: float[s, d + 1, d].

    Returns:
      int32[m] and float[m, d + 1]; of points in no simplex one is negative.
    """
    d = x.aval.shape[1]
    edges = corners[:, :d] - corners[:, d:]
    inverse = fnp.linalg.inv(fnp.swapaxes(edges, 1, 2))
    base = corners[:, d]
    m, s = x.aval.shape[0], corners.aval.shape[0]
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
        return fnp.argmax(fnp.minimum(least, rest), 1).astype(np.int32)

    parts = fnp.reshape(fnp.pad(x, [(0, count * rows - m), (0, 0)]), (count, rows, d))
    at = fnp.reshape(lax.map(block, lax.stop_gradient(parts)), -1)[:m]
    apart = x - base[at]
    share = fnp.sum(inverse[at] * apart[:, None], -1)
    return at, fnp.concatenate([share, 1 - fnp.sum(share, 1, keepdims=True)], 1)


@register_pytree_node_class
class LinearNDInterpolator(_Scattered):
    """Linear interpolation in the triangles between points.

    It is a pytree: `jit`, `vmap` and `grad` go through it, by the values and where it
    is evaluated. The triangles come from SciPy's Delaunay, on the host: points are
    known (not traced), and SciPy has to be installed.

    Args:
      points: real array-like[n, d], d ≥ 2.
      values: array-like[n, ...].
      fill_value: what there is outside of all triangles.
      rescale: whether coordinates are scaled to [0, 1] before the triangulation.

    Attributes:
      points: the points, array[n, d].
      values: the values.
      simplices: int32[s, d + 1]: the corners of the triangles.
      fill_value: the value outside.

    Raises:
      ArgumentError: points are traced, or SciPy is not installed.
      ShapeError: the shapes do not fit.

    Example:
      >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
      >>> f = LinearNDInterpolator(corners, np.array([0.0, 1.0, 2.0, 3.0]))
      >>> f(np.array([0.25, 0.5])).round(3)
      Array(1.25, dtype=float32)

    Source: `scipy.interpolate.LinearNDInterpolator`.
    """

    simplices: Array
    fill_value: Any

    def __init__(
        self,
        points: Any,
        values: ArrayLike,
        fill_value: Any = np.nan,
        rescale: bool = False,
    ) -> None:
        name = "LinearNDInterpolator"
        self._set_points(name, points, values)
        if isinstance(self.points, Tracer):
            raise ArgumentError(
                f"{name}: triangles depend on the points, which are traced: make the "
                "interpolator outside"
            )
        low, scale = _scaled(self.points, rescale)
        where = np.asarray((self.points - low) / scale, np.float64)
        if where.shape[1] < 2:
            raise ShapeError(f"{name}: points must have at least two coordinates")
        self.simplices = fnp.asarray(_triangulated(name, where).astype(np.int32))
        self.fill_value = fill_value

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Returns the arrays."""
        return (self.points, self.values, self.simplices, self.fill_value), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Any) -> LinearNDInterpolator:
        """Returns an interpolator of its parts."""
        out = object.__new__(cls)
        out.points, out.values, out.simplices, out.fill_value = children
        return out

    def __call__(self, *args: Any) -> Array:
        """Returns values.

        Args:
          *args: real array-like[*s, d], or one array-like[*s] for each coordinate.

        Returns:
          Array[*s, ...].
        """
        xi, shape = self._queries("LinearNDInterpolator", args)
        at, shares = _located(xi, self.points[self.simplices])
        near = 100 * float(np.finfo(xi.dtype).eps)
        outside = ~(fnp.min(shares, 1) >= -near)
        corners = self.values[self.simplices[at]]
        weights = fnp.reshape(shares, (*shares.shape, *(1,) * (corners.ndim - 2)))
        out = fnp.sum(corners * weights, 1)
        lost = fnp.reshape(outside, (-1, *(1,) * (out.ndim - 1)))
        out = fnp.where(lost, self.fill_value, out)
        return fnp.reshape(out, (*shape, *self.values.shape[1:]))


def _triangulated(name: str, points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    try:
        from scipy.spatial import Delaunay
    except ImportError as error:
        raise ArgumentError(
            f"{name}: triangles come from SciPy, which is not installed: pip install "
            "scipy"
        ) from error
    found = Delaunay(points)
    corners = points[found.simplices]
    edges = corners[:, :-1] - corners[:, -1:]
    # Flat ones at the hull have no inside.
    size = np.abs(np.linalg.det(edges)) / np.prod(np.ptp(points, 0))
    return np.asarray(found.simplices[size > 1e-12])


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
      method: "linear", in triangles of known points, or "nearest".
      fill_value: what there is outside of the points' hull, for "linear".
      rescale: whether coordinates are scaled to [0, 1] first.

    Returns:
      Array[*s, ...].

    Raises:
      ArgumentError: there is no such method, or "linear" of traced points.
      ShapeError: the shapes do not fit.

    Example:
      >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
      >>> griddata(corners, np.arange(3.0), np.array([[0.9, 0.2]]), "nearest")
      Array([1.], dtype=float32)

    Source: `scipy.interpolate.griddata`.
    """
    name = "griddata"
    if method not in ("linear", "nearest"):
        raise ArgumentError(
            f'{name}: method must be "linear" or "nearest", got {method!r}'
        )
    where = _points(name, "points", points)
    if where.ndim == 1 or where.shape[-1] == 1:
        x = fnp.reshape(where, -1)
        at = fnp.asarray(xi[0] if isinstance(xi, tuple) else xi)
        at = at[..., 0] if where.ndim > 1 and at.ndim > 1 else at
        fill = "extrapolate" if method == "nearest" else fill_value
        return interp1d(x, values, method, 0, fill_value=fill)(at)
    queries = xi if isinstance(xi, tuple) else (xi,)
    if method == "nearest":
        return NearestNDInterpolator(where, values, rescale)(*queries)
    return LinearNDInterpolator(where, values, fill_value, rescale)(*queries)
