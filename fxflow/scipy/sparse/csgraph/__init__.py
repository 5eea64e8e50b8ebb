"""Graphs as sparse arrays: the element [i, j] is the weight of the edge from i to j."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.sparse.csgraph.dense_graphs import (
    csgraph_from_dense, csgraph_from_masked, csgraph_masked_from_dense,
    csgraph_to_dense, csgraph_to_masked,
)
from fxflow.scipy.sparse.csgraph.flows import (
    MaximumFlow, maximum_flow, min_weight_full_bipartite_matching, yen,
)
from fxflow.scipy.sparse.csgraph.graphs import (
    bellman_ford, connected_components, dijkstra, laplacian, minimum_spanning_tree,
    shortest_path,
)
from fxflow.scipy.sparse.csgraph.paths import (
    construct_dist_matrix, floyd_warshall, johnson,
)
from fxflow.scipy.sparse.csgraph.traversals import (
    breadth_first_order, breadth_first_tree, depth_first_order, depth_first_tree,
    maximum_bipartite_matching, reconstruct_path, reverse_cuthill_mckee,
    structural_rank,
)

__all__ = [
    "MaximumFlow", "bellman_ford", "breadth_first_order", "breadth_first_tree",
    "connected_components", "construct_dist_matrix", "csgraph_from_dense",
    "csgraph_from_masked", "csgraph_masked_from_dense", "csgraph_to_dense",
    "csgraph_to_masked", "depth_first_order", "depth_first_tree", "dijkstra",
    "floyd_warshall", "johnson", "laplacian", "maximum_bipartite_matching",
    "maximum_flow", "min_weight_full_bipartite_matching", "minimum_spanning_tree",
    "reconstruct_path", "reverse_cuthill_mckee", "shortest_path", "structural_rank",
    "yen",
]
# fmt: on

_public(globals(), __all__)
