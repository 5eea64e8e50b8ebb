"""Models with tables of embeddings: their files, their rows, their predictions.

`artifacts` reads the folder of a model, which `saving` writes: the dense part as a
program, the features as JSON, the tables as memory-mapped arrays. `rows` and `servers`
have where rows come from: these files, or the servers that train the model. `model`
makes ids of raw columns, reads their rows, and runs the dense part.
"""

# fmt: off
import typing as _typing

from fxflow.core.boundary import public as _public

if _typing.TYPE_CHECKING:
    from fxflow.serve.tables.artifacts import RecommenderFiles
    from fxflow.serve.tables.model import Recommender, load_recommender
    from fxflow.serve.tables.saving import save_recommender

__all__ = [
    "Recommender", "RecommenderFiles", "load_recommender", "save_recommender",
]

_public(
    globals(),
    __all__,
    # Only the processes of such models need these.
    elsewhere={
        "artifacts": "RecommenderFiles",
        "model": "Recommender load_recommender",
        "saving": "save_recommender",
    },
)
# fmt: on
