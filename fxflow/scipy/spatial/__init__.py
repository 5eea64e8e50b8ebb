"""Geometry: `fxflow.scipy.spatial`."""

from fxflow._names import answer as _answer
from fxflow.scipy.spatial.kdtree import KDTree as KDTree

_answer(globals(), ("KDTree",), lazy=("distance", "transform"))
