"""Interpolation in the triangles between points that lie anywhere."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.interpolate._scattered import Scattered, scaled
from fxflow.scipy.sparse.linalg import cg
from fxflow.scipy.spatial.triangulations import Delaunay

T = TypeVar("T", bound="InTriangles")


class InTriangles(Scattered):
    """Points with values, and their triangulation: a pytree.

    Attributes:
      points: the points, array[n, d].
      values: the values, array[n, ...].
      tri: the triangulation.
      fill_value: the value outside of all triangles.
    """

    tri: Delaunay
    fill_value: Any

    def _set_mesh(
        self, points: Any, values: Any, fill_value: Any, rescale: bool
    ) -> None:
        """Sets points, values and triangles.

        Raises:
          ArgumentError: `rescale` is set, and the triangles are known.
          ConcretizationError: points are traced by `jit` or `vmap`.
          ShapeError: the shapes are incompatible.
        """
        name = type(self).__name__
        mesh = points if isinstance(points, Delaunay) else None
        self._set_points(name, points if mesh is None else mesh.points, values)
        if mesh is not None and rescale:
            raise ArgumentError(
                f"{name}: rescale must be False where points are a triangulation"
            )
        if self.points.shape[1] < 2:
            raise ShapeError(f"{name}: points must have at least two coordinates")
        if mesh is None:
            low, scale = scaled(self.points, rescale)
            made = Delaunay((self.points - low) / scale)
            mesh = made.with_points(self.points)
            # A scale leaves convex what is convex.
            mesh._convex = made._convex
        self.tri, self.fill_value = mesh, fill_value

    @property
    def simplices(self) -> Array:
        """The corners of the triangles, int32[s, d + 1]."""
        return self.tri.simplices

    def _filled(self, out: Array, shares: Array, shape: Any) -> Array:
        """Returns values of points in their shape, the fill value outside."""
        near = 100 * float(np.finfo(shares.dtype).eps)
        outside = ~(fnp.min(shares, 1) >= -near)
        lost = fnp.reshape(outside, (-1, *(1,) * (out.ndim - 1)))
        out = fnp.where(lost, self.fill_value, out)
        return fnp.reshape(out, (*shape, *self.values.shape[1:]))


@register_pytree_node_class
class LinearNDInterpolator(InTriangles):
    """Linear interpolation in the triangles between points.

    It is a pytree: it works under `jit` and `vmap`, and is differentiable in the
    points, the values and the point of evaluation. The triangles come from `Delaunay`,
    which needs concrete points.

    Args:
      points: real array-like[n, d], d ≥ 2, or a `Delaunay`, whose points may be traced
        (see its `with_points`).
      values: array-like[n, ...].
      fill_value: what there is outside of all triangles.
      rescale: whether coordinates are scaled to [0, 1] before the triangulation.

    Attributes:
      points: the points, array[n, d].
      values: the values.
      tri: the triangulation.
      simplices: int32[s, d + 1]: the corners of the triangles.
      fill_value: the value outside.

    Raises:
      ArgumentError: Qhull refuses the points, or `rescale` is set for a triangulation.
      ConcretizationError: points are traced by `jit` or `vmap`.
      ImportError: SciPy is not installed.
      ShapeError: the shapes are incompatible.

    Example:
      >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
      >>> f = LinearNDInterpolator(corners, np.array([0.0, 1.0, 2.0, 3.0]))
      >>> f(np.array([0.25, 0.5])).round(3)
      Array(1.25, dtype=float32)

    Source: `scipy.interpolate.LinearNDInterpolator`.
    """

    def __init__(
        self,
        points: Any,
        values: ArrayLike,
        fill_value: Any = np.nan,
        rescale: bool = False,
    ) -> None:
        self._set_mesh(points, values, fill_value, rescale)

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Returns the arrays."""
        return (self.points, self.values, self.tri, self.fill_value), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Any) -> LinearNDInterpolator:
        """Rebuilds an interpolator from its parts."""
        out = object.__new__(cls)
        out.points, out.values, out.tri, out.fill_value = children
        return out

    def __call__(self, *args: Any) -> Array:
        """Returns values.

        Args:
          *args: real array-like[*s, d], or one array-like[*s] for each coordinate.

        Returns:
          Array[*s, ...].
        """
        xi, shape = self._queries("LinearNDInterpolator", args)
        at, shares = self.tri.barycentric(xi)
        corners = self.values[self.simplices[at]]
        weights = fnp.reshape(shares, (*shares.shape, *(1,) * (corners.ndim - 2)))
        return self._filled(fnp.sum(corners * weights, 1), shares, shape)


# -- cubic -----------------------------------------------------------------------------


@library("maxiter")
def _gradients(
    points: Array,
    values: Array,
    simplices: Array,
    neighbors: Array,
    tol: Any,
    maxiter: int,
) -> Array:
    """Returns the gradients with which edges are bent least, [n, 2, r].

    Along each edge the value is the cubic of the values and slopes at its ends; the sum
    of the integrals of the squares of second derivatives is least, which is a sparse
    linear system of all gradients.

    Args:
      points: float[n, 2].
      values: inexact[n, r].
      simplices: int32[s, 3].
      neighbors: int32[s, 3], which tell edges of one triangle from those of two.
      tol: the relative error at which the solver ends.
      maxiter: of its steps.

    Source: G. Nielson, A method for interpolating scattered data based upon a minimum
    norm network, 1983.
    """
    n = points.aval.shape[0]
    first = fnp.reshape(fnp.roll(simplices, -1, 1), -1)
    second = fnp.reshape(fnp.roll(simplices, -2, 1), -1)
    weight = fnp.where(fnp.reshape(neighbors, -1) < 0, 1, 0.5)
    edge = points[second] - points[first]
    square = fnp.sum(edge * edge, -1)
    some = square > 0
    safe = fnp.where(some, square, 1)
    weight = fnp.where(some, weight / (safe * fnp.sqrt(safe)), 0).astype(points.dtype)
    pull = weight[:, None] * edge

    def gathered(at_first: Array, at_second: Array) -> Array:
        out = fnp.zeros((n, 2, values.aval.shape[1]), values.aval.dtype)
        for at, rows in ((first, at_first), (second, at_second)):
            out = out.at[at].add(pull[:, :, None] * rows[:, None])
        return out

    def bent(g: Array) -> Array:
        ends = [fnp.sum(g[at] * edge[:, :, None], 1) for at in (first, second)]
        return gathered(4 * ends[0] + 2 * ends[1], 2 * ends[0] + 4 * ends[1])

    rise = 6 * (values[second] - values[first])
    own = 4 * pull[:, :, None] * edge[:, None]
    blocks = fnp.zeros((n, 2, 2), points.dtype).at[first].add(own).at[second].add(own)
    # Points that are no corner have no edges.
    lone = fnp.sum(blocks, (1, 2), keepdims=True) == 0
    inverse = fnp.linalg.inv(fnp.where(lone, fnp.eye(2, dtype=points.dtype), blocks))

    def near(g: Array) -> Array:
        return fnp.sum(inverse[..., None] * g[:, None], 2)

    right = gathered(rise, rise)
    out: Array = cg(bent, right, M=near, tol=tol, maxiter=maxiter)[0]
    return out


@library()
def _cubic(
    shares: Array, corners: Array, values: Array, slopes: Array, outer: Array, edge: Any
) -> Array:
    """Returns values of Clough and Tocher's cubics, [m, r].

    A triangle is split at its middle, and each part has the coefficients of a cubic in
    Bernstein's form, whose slope across an outer edge is linear along it.

    Args:
      shares: float[m, 3]: barycentric coordinates.
      corners: float[m, 3, 2].
      values: inexact[m, 3, r].
      slopes: inexact[m, 3, 2, r]: gradients at the corners.
      outer: float[m, 3, 2]: the middles of the neighbors opposite to the corners.
      edge: bool[m, 3]: whether there is no neighbor.

    Source: P. Alfeld, A trivariate Clough-Tocher scheme for tetrahedral data, 1984;
    G. Farin, Triangular Bernstein-Bezier patches, 1986.
    """
    f = [values[:, k] for k in range(3)]

    def along(k: int, j: int) -> Array:
        """Returns the coefficient beside corner k on the way to corner j."""
        way = corners[:, j] - corners[:, k]
        return f[k] + fnp.sum(slopes[:, k] * way[:, :, None], 1) / 3

    beside = {(k, j): along(k, j) for k in range(3) for j in range(3) if k != j}
    # Toward the middle: c2001 and the others.
    inner = [
        (f[k] + beside[k, (k + 1) % 3] + beside[k, (k + 2) % 3]) / 3 for k in range(3)
    ]
    u, v = corners[:, 0] - corners[:, 2], corners[:, 1] - corners[:, 2]
    size = u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
    apart = outer - corners[:, None, 2]
    one = apart[..., 0] * v[:, None, 1] - apart[..., 1] * v[:, None, 0]
    two = u[:, None, 0] * apart[..., 1] - u[:, None, 1] * apart[..., 0]
    one, two = one / size[:, None], two / size[:, None]
    share = [one, two, 1 - one - two]
    across = []
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        a, b = share[i][:, k], share[j][:, k]
        lone = edge[:, k]
        below = fnp.where(lone, 1, 2 - 3 * b - 3 * a)
        g = fnp.where(lone, -0.5, (2 * b + a - 1) / below)[:, None]
        bend = -f[i] + 3 * beside[i, j] - 3 * beside[j, i] + f[j]
        rest = -f[i] + 2 * beside[i, j] - beside[j, i] + inner[i] + inner[j]
        across.append((g * bend + rest) / 2)
    deep = [
        (across[(k + 1) % 3] + across[(k + 2) % 3] + inner[k]) / 3 for k in range(3)
    ]
    middle = (deep[0] + deep[1] + deep[2]) / 3
    least = fnp.min(shares, 1)
    part = [(shares[:, k] - least)[:, None] for k in range(3)]
    m = (3 * least)[:, None]
    out = m**3 * middle
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        b, c, d = part[k], part[i], part[j]
        out = out + b**3 * f[k] + 3 * b**2 * m * inner[k]
        out = out + 3 * b**2 * (c * beside[k, i] + d * beside[k, j])
        out = out + 6 * c * d * m * across[k] + 3 * b * m**2 * deep[k]
    return out


@register_pytree_node_class
class CloughTocher2DInterpolator(InTriangles):
    """Cubic interpolation in the triangles between points, with one slope at edges.

    It is a pytree: it works under `jit` and `vmap`, and is differentiable in the
    points, the values and the point of evaluation. The triangles come from `Delaunay`,
    which needs concrete points.

    Args:
      points: real array-like[n, 2], or a `Delaunay`, whose points may be traced (see
        its `with_points`).
      values: array-like[n, ...].
      fill_value: what there is outside of all triangles.
      tol: the relative error of gradients at the points, which a solver finds.
      maxiter: how many steps it takes at most.
      rescale: whether coordinates are scaled to [0, 1] first.

    Attributes:
      points: the points, array[n, 2].
      values: the values.
      tri: the triangulation.
      simplices: int32[s, 3]: the corners of the triangles.
      grad: the gradients at the points, array[n, ..., 2].
      fill_value: the value outside.

    Raises:
      ArgumentError: Qhull refuses the points, or `rescale` is set for a triangulation.
      ConcretizationError: points are traced by `jit` or `vmap`.
      ImportError: SciPy is not installed.
      ShapeError: the shapes are incompatible.

    Example:
      >>> points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
      >>> f = CloughTocher2DInterpolator(points, points[:, 0] + 2 * points[:, 1])
      >>> f(0.25, 0.5).round(3)
      Array(1.25, dtype=float32)

    Source: `scipy.interpolate.CloughTocher2DInterpolator`.
    """

    _slopes: Array
    _scale: Array

    def __init__(
        self,
        points: Any,
        values: ArrayLike,
        fill_value: Any = np.nan,
        tol: float = 1e-06,
        maxiter: int = 400,
        rescale: bool = False,
    ) -> None:
        name = "CloughTocher2DInterpolator"
        self._set_mesh(points, values, fill_value, rescale)
        if self.points.shape[1] != 2:
            raise ShapeError(
                f"{name}: points must have two coordinates, got {self.points.aval}"
            )
        self._scale = scaled(self.points, rescale)[1]
        flat = fnp.reshape(self.values, (self.points.shape[0], -1))
        self._slopes = _gradients(
            *(self.points / self._scale, flat, self.simplices, self.tri.neighbors),
            *(fnp.asarray(tol, self.points.dtype), natural(name, "maxiter", maxiter)),
        )

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Returns the arrays."""
        arrays = (self.points, self.values, self.tri, self.fill_value)
        return (*arrays, self._slopes, self._scale), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Any) -> CloughTocher2DInterpolator:
        """Rebuilds an interpolator from its parts."""
        out = object.__new__(cls)
        out.points, out.values, out.tri, out.fill_value = children[:4]
        out._slopes, out._scale = children[4:]
        return out

    @property
    def grad(self) -> Array:
        """The gradients at the points, array[n, ..., 2]."""
        slopes = fnp.moveaxis(self._slopes / self._scale[:, None], 1, -1)
        return fnp.reshape(slopes, (*self.values.shape, 2))

    def __call__(self, *args: Any) -> Array:
        """Returns values.

        Args:
          *args: real array-like[*s, 2], or one array-like[*s] for each coordinate.

        Returns:
          Array[*s, ...].
        """
        xi, shape = self._queries("CloughTocher2DInterpolator", args)
        at, shares = self.tri.barycentric(xi)
        own, beside = self.simplices[at], self.tri.neighbors[at]
        x = (self.points / self._scale).astype(shares.dtype)
        flat = fnp.reshape(self.values, (x.shape[0], -1))
        outer = fnp.mean(x[self.simplices[fnp.maximum(beside, 0)]], 2)
        out = _cubic(shares, x[own], flat[own], self._slopes[own], outer, beside < 0)
        out = fnp.reshape(out, (out.shape[0], *self.values.shape[1:]))
        return self._filled(out, shares, shape)
