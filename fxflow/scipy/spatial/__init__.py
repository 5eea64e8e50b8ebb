"""Geometry: `fxflow.scipy.spatial`."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.spatial.geometry import (
    distance_matrix, geometric_slerp, minkowski_distance, minkowski_distance_p,
    procrustes,
)
from fxflow.scipy.spatial.kdtree import KDTree as KDTree

__all__ = [
    "KDTree", "distance_matrix", "geometric_slerp", "minkowski_distance",
    "minkowski_distance_p", "procrustes",
]
# fmt: on

_public(globals(), __all__, lazy=("distance", "transform"))
