"""Pictures: dataflow graphs, curves, points, and how arrays lie over devices."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.viz.drawings import Drawing, graph
from fxflow.viz.plots import confusion, curves, embedding, memory, pca, smoothed, tsne
from fxflow.viz.shardings import (
    sharding_picture,
    sharding_plan_picture,
    sharding_text,
)

__all__ = [
    # dataflow graphs
    "graph", "Drawing",
    # training
    "curves", "smoothed", "confusion", "embedding", "pca", "tsne",
    # arrays over devices
    "sharding_picture", "sharding_plan_picture", "sharding_text",
    # programs
    "memory",
]

_public(globals(), __all__)
# fmt: on
