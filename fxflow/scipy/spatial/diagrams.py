"""Diagrams of Voronoi, in space and on spheres, and intersections of halfspaces.

Which points belong together is found by Qhull on the host, as SciPy has it; vertices,
areas and intersections are functions of the points with derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import number
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.spatial import _simplices as parts
from fxflow.scipy.spatial.triangulations import (
    REMEDY,
    ConvexHull,
    OfPoints,
    require_whole,
)


def _frozen(rows: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, row)) for row in rows)


@register_pytree_node_class
class Voronoi(OfPoints):
    """The regions of space that are nearest to each of some points.

    It is an immutable pytree. Regions are found on the host by Qhull, of points that
    are known: at once, also within `grad`. Under `jit` and `vmap` make the object
    outside and call its `with_points` inside. `vertices` is a function of the points.

    Args:
      points: real array-like[n, d], d ≥ 2.
      furthest_site: whether regions are farthest from the points instead.
      incremental: must be False.
      qhull_options: of Qhull, in place of its own.

    Attributes:
      points: float array[n, d].
      ridge_points: int32[r, 2]: the points on both sides of each face of a region.
      ridge_vertices: for each face the indices of its vertices, -1 for one that is
        infinitely far.
      regions: for each region the indices of its vertices.
      point_region: int32[n]: the region of each point.
      furthest_site: as given.

    Raises:
      ArgumentError: Qhull refuses the points, as if they lie in a line.
      ConcretizationError: points are traced by `jit` or `vmap`.
      ImportError: SciPy is not installed.
      ShapeError: they are not points.

    Example:
      >>> corners = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
      >>> Voronoi(corners).vertices
      Array([[1., 1.]], dtype=float32)

    Source: `scipy.spatial.Voronoi`.
    """

    ridge_points: Array
    point_region: Array
    furthest_site: bool
    _corners: Array
    _ridges: tuple[tuple[int, ...], ...]
    _regions: tuple[tuple[int, ...], ...]
    _ARRAYS = ("ridge_points", "point_region", "_corners")
    _STATIC = ("furthest_site", "_ridges", "_regions")

    def __init__(
        self,
        points: ArrayLike,
        furthest_site: bool = False,
        incremental: bool = False,
        qhull_options: str | None = None,
    ) -> None:
        name = "Voronoi"
        x = self._keep(name, points, incremental)
        found = parts.qhull(
            name, lambda s: s.Voronoi(x, bool(furthest_site), False, qhull_options)
        )
        self.furthest_site = bool(furthest_site)
        self.ridge_points = fnp.asarray(found.ridge_points.astype(np.int32))
        self.point_region = fnp.asarray(found.point_region.astype(np.int32))
        self._ridges, self._regions = map(
            _frozen, (found.ridge_vertices, found.regions)
        )
        around: list[list[int]] = [[] for _ in found.vertices]
        for point, region in enumerate(found.point_region):
            for vertex in found.regions[region] if region >= 0 else ():
                if vertex >= 0:
                    around[vertex].append(point)
        chosen = [np.array(a)[parts.independent(x[a])] for a in around]
        corners = np.array(chosen, np.int32).reshape(-1, x.shape[1] + 1)
        self._corners = fnp.asarray(corners)

    @property
    def vertices(self) -> Array:
        """The corners of regions, float array[v, d]."""
        out: Array = parts.circumcenters(self.points[self._corners])
        return out

    @property
    def ridge_vertices(self) -> list[list[int]]:
        """For each face of a region the indices of its vertices."""
        return [list(row) for row in self._ridges]

    @property
    def regions(self) -> list[list[int]]:
        """For each region the indices of its vertices."""
        return [list(row) for row in self._regions]

    @property
    def ridge_dict(self) -> dict[tuple[int, int], list[int]]:
        """The vertices of the face between two points."""
        pairs = self._host("ridge_points").tolist()
        return {
            (a, b): list(row) for (a, b), row in zip(pairs, self._ridges, strict=True)
        }


# -- halfspaces ------------------------------------------------------------------------


@register_pytree_node_class
class HalfspaceIntersection:
    """The polytope of the points at which linear inequalities hold.

    It is an immutable pytree. Which halfspaces meet in a corner is found on the host by
    Qhull, of arrays that are known: at once, also within `grad`. Under `jit` and `vmap`
    make the object outside and call its `with_halfspaces` inside. `intersections` is a
    function of the halfspaces.

    Args:
      halfspaces: real array-like[m, d + 1]: of each row the inequality
        row[:d] @ x + row[d] ≤ 0.
      interior_point: real array-like[d]: a point strictly inside.
      incremental: must be False.
      qhull_options: of Qhull, in place of its own.

    Attributes:
      halfspaces: float array[m, d + 1].
      interior_point: float array[d].
      dual_facets: the halfspaces that meet in each corner.
      dual_vertices: int32[k]: the halfspaces that bound the polytope.

    Raises:
      ArgumentError: Qhull refuses the halfspaces, as if the point is not inside.
      ConcretizationError: they are traced by `jit` or `vmap`.
      ImportError: SciPy is not installed.
      ShapeError: the shapes are incompatible.

    Example:
      >>> square = np.array([[-1.0, 0, 0], [0, -1, 0], [1, 0, -2], [0, 1, -3]])
      >>> meet = HalfspaceIntersection(square, np.array([1.0, 1.0]))
      >>> meet.intersections.max(0)
      Array([2., 3.], dtype=float32)

    Source: `scipy.spatial.HalfspaceIntersection`.
    """

    halfspaces: Array
    interior_point: Array
    dual_vertices: Array
    _meeting: Array
    _bounded: Array
    _hull: ConvexHull
    _facets: tuple[tuple[int, ...], ...]

    def __init__(
        self,
        halfspaces: ArrayLike,
        interior_point: ArrayLike,
        incremental: bool = False,
        qhull_options: str | None = None,
    ) -> None:
        name = "HalfspaceIntersection"
        require_whole(name, incremental)
        self._set(halfspaces, interior_point)
        remedy = (
            "make the object of known halfspaces outside, and call its "
            "with_halfspaces inside"
        )
        a = parts.known(name, self.halfspaces, remedy)
        inside = parts.known(name, self.interior_point, remedy)
        with np.errstate(all="ignore"):  # an open polytope has a corner at infinity
            found = parts.qhull(
                name, lambda s: s.HalfspaceIntersection(a, inside, False, qhull_options)
            )
        self._facets = _frozen(found.dual_facets)
        d = inside.size
        dual = np.asarray(found.dual_points)
        meeting = [
            np.array(f)[parts.independent(dual[list(f)])[:d]] for f in self._facets
        ]
        self._meeting = fnp.asarray(np.array(meeting, np.int32).reshape(-1, d))
        bounded = np.isfinite(found.intersections).all(1)
        self._bounded = fnp.asarray(bounded)
        self.dual_vertices = fnp.asarray(found.dual_vertices.astype(np.int32))
        self._hull = ConvexHull(fnp.asarray(dual))

    def _set(self, halfspaces: Any, interior_point: Any) -> None:
        name = "HalfspaceIntersection"
        a, inside = promote_inexact(
            name, fnp.asarray(halfspaces), fnp.asarray(interior_point)
        )
        fits = a.aval.ndim == 2 and inside.aval.shape == (a.aval.shape[1] - 1,)
        if not fits or a.aval.shape[1] < 3:
            raise ShapeError(
                f"{name}: expected halfspaces [m, d + 1] and a point [d], d > 1, got "
                f"{a.aval} and {inside.aval}"
            )
        self.halfspaces, self.interior_point = a, inside

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the arrays and the static data."""
        arrays = (
            *(self.halfspaces, self.interior_point, self.dual_vertices),
            *(self._meeting, self._bounded, self._hull),
        )
        return arrays, self._facets

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> HalfspaceIntersection:
        """Rebuilds an object from its parts."""
        out = object.__new__(cls)
        out.halfspaces, out.interior_point, out.dual_vertices = children[:3]
        out._meeting, out._bounded, out._hull = children[3:]
        out._facets = aux
        return out

    def with_halfspaces(
        self, halfspaces: ArrayLike, interior_point: ArrayLike | None = None
    ) -> HalfspaceIntersection:
        """Returns the same corners of other halfspaces, which may be traced.

        Args:
          halfspaces: real array-like[m, d + 1], as many as there are.
          interior_point: real array-like[d]; None is that of this object.

        Raises:
          ShapeError: they have other shapes.
        """
        out = object.__new__(HalfspaceIntersection)
        out.__dict__.update(self.__dict__)
        out._set(
            halfspaces,
            self.interior_point if interior_point is None else interior_point,
        )
        if out.halfspaces.shape != self.halfspaces.shape:
            raise ShapeError(
                "HalfspaceIntersection: other halfspaces must have the shape of "
                f"these, {self.halfspaces.aval}, got {out.halfspaces.aval}"
            )
        return out

    @property
    def ndim(self) -> int:
        """The number of coordinates."""
        return int(self.interior_point.shape[0])

    @property
    def nineq(self) -> int:
        """The number of halfspaces."""
        return int(self.halfspaces.shape[0])

    @property
    def dual_facets(self) -> list[list[int]]:
        """The halfspaces that meet in each corner."""
        return [list(row) for row in self._facets]

    @property
    def intersections(self) -> Array:
        """The corners of the polytope, float array[v, d]; inf where it is open."""
        some = self.halfspaces[self._meeting]
        normal, offset = some[..., :-1], some[..., -1:]
        bounded = self._bounded[:, None]
        eye = fnp.eye(self.ndim, dtype=normal.dtype)
        safe = fnp.where(bounded[..., None], normal, eye)
        found = fnp.linalg.solve(safe, -offset)[..., 0]
        return fnp.where(bounded, found, fnp.inf)

    @property
    def dual_points(self) -> Array:
        """Normals divided by distances from the inner point, float array[m, d]."""
        normal = self.halfspaces[:, :-1]
        apart = fnp.matmul(normal, self.interior_point, precision="highest")
        return -normal / (apart + self.halfspaces[:, -1])[:, None]

    @property
    def dual_equations(self) -> Array:
        """Unit normals and offsets of the dual hull's facets, float[f, d + 1]."""
        corners = self.dual_points[self._meeting]
        across = parts.normals(corners)
        unit = across / fnp.sqrt(fnp.sum(across**2, -1, keepdims=True))
        # The origin, which is the point inside, is in the dual hull.
        offset = -fnp.sum(unit * fnp.mean(corners, 1), -1, keepdims=True)
        return fnp.where(offset > 0, -1, 1) * fnp.concatenate([unit, offset], 1)

    @property
    def dual_volume(self) -> Array:
        """The volume of the hull of the dual points, float array[]."""
        return self._hull.with_points(self.dual_points).volume

    @property
    def dual_area(self) -> Array:
        """The surface of the hull of the dual points, float array[]."""
        return self._hull.with_points(self.dual_points).area


# -- spheres ---------------------------------------------------------------------------


def _around(simplices: np.ndarray[Any, Any], n: int) -> list[list[int]]:
    """Returns the triangles at each point in the order in which they follow."""
    at: list[list[int]] = [[] for _ in range(n)]
    for k, row in enumerate(simplices.tolist()):
        for point in row:
            at[point].append(k)
    out = []
    for point, mine in enumerate(at):
        beside: dict[int, list[int]] = {}
        for k in mine:
            for other in simplices[k].tolist():
                if other != point:
                    beside.setdefault(other, []).append(k)
        order = mine[:1]
        step = next((v for v in simplices[mine[0]].tolist() if v != point), -1)
        while len(order) < len(mine):
            later = [k for k in beside[step] if k != order[-1]]
            order.append(later[0])
            step = next(
                v for v in simplices[later[0]].tolist() if v not in (point, step)
            )
        out.append(order)
    return out


@library()
def _solid_angles(a: Array, b: Array, c: Array) -> Array:
    """Returns the solid angles of triangles of unit vectors[..., 3].

    Source: A. van Oosterom and J. Strackee, The Solid Angle of a Plane Triangle, 1983.
    """
    triple = fnp.sum(a * fnp.cross(b, c), -1)
    rest = 1 + fnp.sum(a * b, -1) + fnp.sum(b * c, -1) + fnp.sum(c * a, -1)
    return fnp.abs(2 * fnp.arctan2(triple, rest))


@register_pytree_node_class
class SphericalVoronoi:
    """The regions of a sphere that are nearest to each of some points on it.

    It is an immutable pytree. Regions are found on the host by Qhull, of points that
    are known: at once, also within `grad`. Under `jit` and `vmap` make the object
    outside and call its `with_points` inside. `vertices` and areas are functions of the
    points.

    Args:
      points: real array-like[n, d], on the sphere.
      radius: of the sphere.
      center: real array-like[d]; None is the origin.
      threshold: how far points may be off the sphere or near each other, as a share of
        the radius.

    Attributes:
      points: float array[n, d].
      radius: as given.
      center: float array[d].
      regions: for each point the indices of its vertices, in space in their order
        around it.

    Raises:
      ArgumentError: points are off the sphere, the same, or all on a circle.
      ConcretizationError: points are traced by `jit` or `vmap`.
      ImportError: SciPy is not installed.
      ShapeError: the shapes are incompatible.

    Example:
      >>> axes = np.concatenate([np.eye(3), -np.eye(3)])
      >>> SphericalVoronoi(axes).calculate_areas().round(3)
      Array([2.094, 2.094, 2.094, 2.094, 2.094, 2.094], dtype=float32)

    Source: `scipy.spatial.SphericalVoronoi`.
    """

    radius: Any
    center: Array
    _hull: ConvexHull
    _regions: tuple[tuple[int, ...], ...]

    def __init__(
        self,
        points: ArrayLike,
        radius: float = 1,
        center: ArrayLike | None = None,
        threshold: float = 1e-06,
    ) -> None:
        name = "SphericalVoronoi"
        x = parts.points_of(name, "points", points)
        d = x.aval.shape[1]
        self.radius = number(name, "radius", radius)
        middle = fnp.zeros(d, x.dtype) if center is None else fnp.asarray(center)
        self.center = middle.astype(x.dtype)
        if self.center.shape != (d,):
            raise ShapeError(
                f"{name}: center must have {d} coordinates, got {self.center.aval}"
            )
        at = parts.known(name, x, REMEDY)
        slack = threshold * self.radius
        if np.linalg.matrix_rank(at - at[:1], tol=slack) < d:
            raise ArgumentError(f"{name}: points lie in a plane")
        off = np.linalg.norm(at - np.asarray(self.center), axis=1) - self.radius
        if np.abs(off).max() >= max(slack, 8 * float(np.finfo(x.dtype).eps)):
            raise ArgumentError(
                f"{name}: points must be on the sphere of radius {self.radius}, one is "
                f"{np.abs(off).max():.3g} off"
            )
        if parts.qhull(name, lambda s: len(s.cKDTree(at).query_pairs(slack))):
            raise ArgumentError(f"{name}: two points are the same")
        self._hull = ConvexHull(x)
        simplices = np.asarray(self._hull.simplices)
        if d == 3:
            regions = _around(simplices, len(at))
        else:
            beside = [(simplices == k).any(1) for k in range(len(at))]
            regions = [np.nonzero(some)[0].tolist() for some in beside]
        self._regions = _frozen(regions)

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the arrays and the static data."""
        return (self._hull, self.radius, self.center), self._regions

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> SphericalVoronoi:
        """Rebuilds an object from its parts."""
        out = object.__new__(cls)
        out._hull, out.radius, out.center = children
        out._regions = aux
        return out

    def with_points(self, points: ArrayLike) -> SphericalVoronoi:
        """Returns the same regions of other points, which may be traced.

        Args:
          points: real array-like[n, d], as many as there are, on the sphere.

        Raises:
          ShapeError: they have the wrong shape.
        """
        out = object.__new__(SphericalVoronoi)
        out.__dict__.update(self.__dict__)
        out._hull = self._hull.with_points(points)
        return out

    @property
    def points(self) -> Array:
        """The points, float array[n, d]."""
        return self._hull.points

    @property
    def vertices(self) -> Array:
        """The corners of regions, float array[v, d]."""
        out: Array = self.radius * self._hull.equations[:, :-1] + self.center
        return out

    @property
    def regions(self) -> list[list[int]]:
        """For each point the indices of its vertices."""
        return [list(row) for row in self._regions]

    def sort_vertices_of_regions(self) -> None:
        """Has no effect: in space regions are sorted.

        Raises:
          ArgumentError: points have not three coordinates.
        """
        if self._hull.ndim != 3:
            raise ArgumentError(
                "SphericalVoronoi: vertices have an order around points in three "
                f"dimensions, got {self._hull.ndim}"
            )

    def calculate_areas(self) -> Array:
        """Returns the areas of the regions; in the plane the arcs between points.

        Returns:
          Float array[n]; the sum is that of the sphere.

        Raises:
          ArgumentError: points have more than three coordinates.
        """
        if self._hull.ndim == 2:
            arcs = self.points[self._hull.simplices] - self.center
            cross = arcs[:, 0, 0] * arcs[:, 1, 1] - arcs[:, 0, 1] * arcs[:, 1, 0]
            angle = fnp.abs(fnp.arctan2(cross, fnp.sum(arcs[:, 0] * arcs[:, 1], -1)))
            far = fnp.sum(arcs[:, 0] * (self.vertices - self.center), -1) < 0
            angle = fnp.where(far, 2 * np.pi - angle, angle)
            return fnp.asarray(self.radius * angle)
        self.sort_vertices_of_regions()
        region = np.repeat(np.arange(len(self._regions)), [*map(len, self._regions)])
        first = np.concatenate([np.array(r) for r in self._regions])
        second = np.concatenate([np.roll(r, 1) for r in self._regions])
        unit = self._hull.equations[:, :-1]
        at = (self.points - self.center) / self.radius
        angles = _solid_angles(at[region], unit[first], unit[second])
        sums = fnp.zeros(len(self._regions), angles.dtype).at[region].add(angles)
        return fnp.asarray(sums * self.radius**2)
