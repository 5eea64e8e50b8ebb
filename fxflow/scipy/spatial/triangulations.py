"""Triangulations and hulls of points.

The simplices are found by Qhull on the host, as SciPy has it; volumes, areas, normals
and barycentric coordinates are functions of the points with derivatives.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.spatial import _simplices as parts

T = TypeVar("T", bound="OfPoints")


REMEDY = "make the object of known points outside, and call its with_points inside"


def require_whole(name: str, incremental: bool) -> None:
    """Refuses triangulations that grow.

    Raises:
      ArgumentError: `incremental` is set.
    """
    if incremental:
        raise ArgumentError(
            f"{name}: incremental must be False: the object is immutable, make one of "
            "all points"
        )


class OfPoints:
    """Points, and what Qhull says of them: a pytree.

    Attributes:
      points: the points, float array[n, d].
    """

    points: Array
    #: Names of the arrays besides the points, and of what is static.
    _ARRAYS: tuple[str, ...] = ()
    _STATIC: tuple[str, ...] = ()

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the arrays and the static data."""
        arrays = tuple(getattr(self, name) for name in ("points", *self._ARRAYS))
        return arrays, tuple(getattr(self, name) for name in self._STATIC)

    @classmethod
    def tree_unflatten(cls: type[T], aux: Any, children: Any) -> T:
        """Rebuilds an object from its parts."""
        out = object.__new__(cls)
        for name, value in zip(("points", *cls._ARRAYS), children, strict=True):
            setattr(out, name, value)
        for name, value in zip(cls._STATIC, aux, strict=True):
            setattr(out, name, value)
        return out

    def _keep(
        self, name: str, points: ArrayLike, incremental: bool
    ) -> np.ndarray[Any, Any]:
        """Keeps the points; returns them as Qhull takes them."""
        require_whole(name, incremental)
        self.points = parts.points_of(name, "points", points)
        return parts.known(name, self.points, REMEDY)

    def with_points(self: T, points: ArrayLike) -> T:
        """Returns the same simplices of other points, which may be traced.

        It is the way into `jit` and `vmap`: simplices found outside, values inside.

        Args:
          points: real array-like[n, d], as many as there are.

        Raises:
          ShapeError: they have the wrong shape.
        """
        name = type(self).__name__
        moved = promote_inexact(name, fnp.asarray(points))[0]
        if moved.aval.shape != self.points.shape:
            raise ShapeError(
                f"{name}: other points must have the shape of these, "
                f"{self.points.aval}, got {moved.aval}"
            )
        out = object.__new__(type(self))
        out.__dict__.update(self.__dict__)
        out.points = moved
        return out

    @property
    def npoints(self) -> int:
        """The number of points."""
        return int(self.points.shape[0])

    @property
    def ndim(self) -> int:
        """The number of coordinates."""
        return int(self.points.shape[1])

    @property
    def min_bound(self) -> Array:
        """The least of each coordinate, float array[d]."""
        return fnp.min(self.points, 0)

    @property
    def max_bound(self) -> Array:
        """The greatest of each coordinate, float array[d]."""
        return fnp.max(self.points, 0)

    def _host(self, name: str) -> np.ndarray[Any, Any]:
        """Returns an array of indices, which has to be known."""
        values = getattr(self, name)
        if isinstance(values, Tracer):
            raise ConcretizationError(
                f"{type(self).__name__}: sizes depend on {name}, which is traced: do "
                "not pass the object to jit as an argument, close over it"
            )
        return np.asarray(values)


@register_pytree_node_class
class Delaunay(OfPoints):
    """The triangulation whose triangles have no point in their circumcircles.

    It is an immutable pytree. Simplices are found on the host by Qhull, of points that
    are known: at once, also within `grad`. Under `jit` and `vmap` make the object
    outside and call its `with_points` inside.

    Args:
      points: real array-like[n, d], d ≥ 2.
      furthest_site: whether circumcircles contain all points instead.
      incremental: must be False.
      qhull_options: of Qhull, in place of its own.

    Attributes:
      points: float array[n, d].
      simplices: int32[s, d + 1]: indices of the corners; triangles counterclockwise.
      neighbors: int32[s, d + 1]: the simplex opposite to each corner, -1 for none.
      coplanar: int32[c, 3]: points that are no corner because of rounding, with the
        nearest simplex and corner.

    Raises:
      ArgumentError: Qhull refuses the points, as if they lie in a line.
      ConcretizationError: points are traced by `jit` or `vmap`.
      ImportError: SciPy is not installed.
      ShapeError: they are not points.

    Example:
      >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
      >>> mesh = Delaunay(corners)
      >>> mesh.simplices.shape
      (2, 3)
      >>> mesh.find_simplex(np.array([[0.9, 0.9], [3.0, 3.0]])) >= 0
      Array([ True, False], dtype=bool)

    Source: `scipy.spatial.Delaunay`.
    """

    simplices: Array
    neighbors: Array
    coplanar: Array
    furthest_site: bool
    _solid: Array
    _ARRAYS = ("simplices", "neighbors", "coplanar", "_solid")
    _STATIC = ("furthest_site", "_convex")
    #: Whether the simplices fill the convex hull: of other points they need not.
    _convex: bool

    def __init__(
        self,
        points: ArrayLike,
        furthest_site: bool = False,
        incremental: bool = False,
        qhull_options: str | None = None,
    ) -> None:
        name = "Delaunay"
        x = self._keep(name, points, incremental)
        found = parts.qhull(
            name,
            lambda s: s.Delaunay(x, bool(furthest_site), False, qhull_options),
        )
        self.furthest_site = bool(furthest_site)
        self.simplices = fnp.asarray(found.simplices.astype(np.int32))
        self.neighbors = fnp.asarray(found.neighbors.astype(np.int32))
        self.coplanar = fnp.asarray(found.coplanar.astype(np.int32).reshape(-1, 3))
        self._solid = fnp.asarray(parts.solid(x[found.simplices]))
        self._convex = not furthest_site and qhull_options is None

    def with_points(self, points: ArrayLike) -> Delaunay:
        """Returns the same simplices of other points, which may be traced.

        Args:
          points: real array-like[n, d], as many as there are.

        Raises:
          ShapeError: they have the wrong shape.
        """
        out = super().with_points(points)
        out._convex = False
        return out

    @property
    def nsimplex(self) -> int:
        """The number of simplices."""
        return int(self.simplices.shape[0])

    @property
    def transform(self) -> Array:
        """Affine maps to barycentric coordinates, float array[s, d + 1, d].

        The coordinates of x in a simplex with the map t, without the last one, are
        t[:d] @ (x - t[d]); nan if the simplex has no inside.
        """
        corners = self.points[self.simplices]
        inverse = parts.barycentric_maps(corners, self._solid)
        last = fnp.where(self._solid[:, None], corners[:, -1], fnp.nan)
        return fnp.concatenate([inverse, last[:, None]], 1)

    @property
    def vertex_to_simplex(self) -> np.ndarray[Any, Any]:
        """Some simplex that has the point as a corner, int32[n], -1 for none."""
        simplices = self._host("simplices")
        out = np.full(self.npoints, -1, np.int32)
        out[simplices.ravel()] = np.repeat(np.arange(len(simplices)), self.ndim + 1)
        return out

    @property
    def convex_hull(self) -> np.ndarray[Any, Any]:
        """The facets of the hull, int32[f, d]: indices of their corners."""
        simplices, neighbors = self._host("simplices"), self._host("neighbors")
        at, corner = np.nonzero(neighbors == -1)
        keep = np.arange(self.ndim + 1) != corner[:, None]
        return np.asarray(simplices[at][keep].reshape(-1, self.ndim))

    @property
    def vertex_neighbor_vertices(
        self,
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Points that share an edge: those of k are indices[starts[k]:starts[k + 1]].

        They are `starts`, int32[n + 1], and `indices`, int32[edges].
        """
        sets = parts.neighbours_of(self._host("simplices"), self.npoints)
        starts = np.cumsum([0, *map(len, sets)]).astype(np.int32)
        return starts, np.array([k for s in sets for k in sorted(s)], np.int32)

    def barycentric(self, xi: ArrayLike) -> tuple[Array, Array]:
        """Returns the simplices of points, and the shares of their corners.

        Args:
          xi: real array-like[*s, d].

        Returns:
          int32[*s] and float[*s, d + 1]. The shares of a point add to 1; outside of all
          simplices one is negative.

        Raises:
          ShapeError: points have the wrong number of coordinates.
        """
        name = "Delaunay"
        x, points = promote_inexact(name, fnp.asarray(xi), self.points)
        d = self.ndim
        if not x.aval.ndim or x.aval.shape[-1] != d:
            raise ShapeError(f"{name}: points must have {d} coordinates, got {x.aval}")
        shape = x.aval.shape[:-1]
        rows = fnp.reshape(x, (-1, d))
        beside = self.neighbors if self._convex else None
        corners = points[self.simplices]
        at, shares = parts.located(rows, corners, self._solid, beside)
        return fnp.reshape(at, shape), fnp.reshape(shares, (*shape, d + 1))

    def find_simplex(
        self, xi: ArrayLike, bruteforce: bool = False, tol: float | None = None
    ) -> Array:
        """Returns the simplices that contain points.

        Each point goes from simplex to simplex; where that fails, and of `with_points`,
        all simplices are compared with all points, in blocks.

        Args:
          xi: real array-like[*s, d].
          bruteforce: has no effect.
          tol: how far outside, in barycentric coordinates, still counts as inside; None
            is 100 times the precision of the dtype.

        Returns:
          int32[*s], -1 for points outside.

        Raises:
          ShapeError: points have the wrong number of coordinates.
        """
        at, shares = self.barycentric(xi)
        slack = 100 * float(np.finfo(shares.dtype).eps) if tol is None else tol
        return fnp.where(fnp.min(shares, -1) >= -slack, at, -1)


@register_pytree_node_class
class ConvexHull(OfPoints):
    """The convex hull of points.

    It is an immutable pytree. Facets are found on the host by Qhull, of points that are
    known: at once, also within `grad`. Under `jit` and `vmap` make the object outside
    and call its `with_points` inside. `volume`, `area` and `equations` are functions of
    the points.

    Args:
      points: real array-like[n, d], d ≥ 2.
      incremental: must be False.
      qhull_options: of Qhull, in place of its own.

    Attributes:
      points: float array[n, d].
      vertices: int32[v]: the points on the hull; in the plane counterclockwise.
      simplices: int32[f, d]: indices of the corners of facets.
      neighbors: int32[f, d]: the facet opposite to each corner.
      coplanar: int32[c, 3]: points that are no corner because of rounding, with the
        nearest facet and corner.
      good: bool[f], which facets are seen from a point, with Qhull's option QG; else
        None.

    Raises:
      ArgumentError: Qhull refuses the points, as if they lie in a line.
      ConcretizationError: points are traced by `jit` or `vmap`.
      ImportError: SciPy is not installed.
      ShapeError: they are not points.

    Example:
      >>> square = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0], [1, 1]])
      >>> hull = ConvexHull(square)
      >>> hull.volume, hull.area
      (Array(4., dtype=float32), Array(8., dtype=float32))
      >>> import fxflow as fx
      >>> fx.grad(lambda p: ConvexHull(p).volume)(square)[3]
      Array([1., 1.], dtype=float32)

    Source: `scipy.spatial.ConvexHull`.
    """

    vertices: Array
    simplices: Array
    neighbors: Array
    coplanar: Array
    good: Array | None
    _sides: Array
    _planes: Array
    _ARRAYS = (
        *("vertices", "simplices", "neighbors", "coplanar", "good", "_sides"),
        "_planes",
    )

    def __init__(
        self,
        points: ArrayLike,
        incremental: bool = False,
        qhull_options: str | None = None,
    ) -> None:
        name = "ConvexHull"
        x = self._keep(name, points, incremental)
        found = parts.qhull(name, lambda s: s.ConvexHull(x, False, qhull_options))
        for what in ("vertices", "simplices", "neighbors"):
            setattr(self, what, fnp.asarray(getattr(found, what).astype(np.int32)))
        self.coplanar = fnp.asarray(found.coplanar.astype(np.int32).reshape(-1, 3))
        good = found.good
        self.good = None if good is None else fnp.asarray(np.asarray(good, bool))
        corners = x[found.simplices]
        across = parts.normals(corners, np)
        size = np.sqrt((across**2).sum(1))
        edge = np.sqrt(((corners[:, 1:] - corners[:, :1]) ** 2).sum(-1)).prod(1)
        side = np.sign((across * found.equations[:, :-1]).sum(1))
        # Slivers in the face of a hull have no direction of their own.
        self._sides = fnp.asarray(np.where(size > 1e-9 * edge, side, 0), x.dtype)
        self._planes = fnp.asarray(found.equations)

    @property
    def nsimplex(self) -> int:
        """The number of facets."""
        return int(self.simplices.shape[0])

    def _across(self) -> tuple[Array, Array]:
        """Returns normals that point outward, and the corners of facets."""
        corners = self.points[self.simplices]
        sides = self._sides.astype(corners.dtype)
        return parts.normals(corners) * sides[:, None], corners

    @property
    def equations(self) -> Array:
        """Unit normals and offsets of facets, float array[f, d + 1].

        The product of a normal with a point inside, and the offset added, is negative.
        """
        across, corners = self._across()
        some = (self._sides != 0)[:, None]
        square = fnp.where(some, fnp.sum(across**2, -1, keepdims=True), 1)
        unit = across / fnp.sqrt(square)
        offset = -fnp.sum(unit * fnp.mean(corners, 1), -1, keepdims=True)
        planes = self._planes.astype(unit.dtype)
        return fnp.where(some, fnp.concatenate([unit, offset], 1), planes)

    @property
    def volume(self) -> Array:
        """The volume inside, float array[]; in the plane the area."""
        across, corners = self._across()
        middle = lax.stop_gradient(fnp.mean(self.points, 0))
        height = fnp.sum(across * (corners[:, 0] - middle), -1)
        return fnp.sum(height) / math.factorial(self.ndim)

    @property
    def area(self) -> Array:
        """The size of the surface, float array[]; in the plane the perimeter."""
        across, _ = self._across()
        some = self._sides != 0
        square = fnp.where(some, fnp.sum(across**2, -1), 1)
        size = fnp.where(some, fnp.sqrt(square), 0)
        return fnp.sum(size) / math.factorial(self.ndim - 1)


def tsearch(tri: Delaunay, xi: ArrayLike) -> Array:
    """Returns the simplices that contain points.

    Args:
      tri: a triangulation.
      xi: real array-like[*s, d].

    Returns:
      int32[*s], -1 for points outside.

    Raises:
      ArgumentError: `tri` is not a `Delaunay`.
      ShapeError: points have the wrong number of coordinates.

    Example:
      >>> mesh = Delaunay(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
      >>> tsearch(mesh, np.array([[0.2, 0.2], [0.8, 0.8]]))
      Array([ 0, -1], dtype=int32)

    Source: `scipy.spatial.tsearch`.
    """
    if not isinstance(tri, Delaunay):
        raise ArgumentError(f"tsearch: tri must be a Delaunay, got {tri!r}")
    return tri.find_simplex(xi)
