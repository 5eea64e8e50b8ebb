"""Graphs as sparse arrays: the element [i, j] is the weight of the edge from i to j."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.sparse.csgraph.graphs import (
    bellman_ford, connected_components, dijkstra, laplacian, minimum_spanning_tree,
    shortest_path,
)

__all__ = [
    "bellman_ford", "connected_components", "dijkstra", "laplacian",
    "minimum_spanning_tree", "shortest_path",
]
# fmt: on

_public(globals(), __all__)
