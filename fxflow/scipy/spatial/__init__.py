"""Geometry: `fxflow.scipy.spatial`."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.spatial.diagrams import (
    HalfspaceIntersection, SphericalVoronoi, Voronoi,
)
from fxflow.scipy.spatial.geometry import (
    distance_matrix, geometric_slerp, minkowski_distance, minkowski_distance_p,
    procrustes,
)
from fxflow.scipy.spatial.kdtree import KDTree as KDTree
from fxflow.scipy.spatial.triangulations import ConvexHull, Delaunay, tsearch

__all__ = [
    "ConvexHull", "Delaunay", "HalfspaceIntersection", "KDTree", "SphericalVoronoi",
    "Voronoi", "cKDTree", "distance_matrix", "geometric_slerp", "minkowski_distance",
    "minkowski_distance_p", "procrustes", "tsearch",
]
# fmt: on

#: SciPy's older name.
cKDTree = KDTree

_public(globals(), __all__, lazy=("distance", "transform"))
