"""Serving: predictions within a latency objective, each model in its own process.

See `docs/guides/serving.md` and `docs/design/0008-serving.md`. Reading order:
`signatures` (types of inputs and outputs), `batching`, `containers` (processes),
`cache`, `feedback` (labels of requests), `service` (one model's queue and processes),
`inline` (a model in the server's process), `selection` (selection policies), `store`
(shared states), `selector` and `versions` (several models under one name), `repository`
(all models), `metrics`, `telemetry` (traces), `tables` (models with tables), `protocol`
(HTTP, gRPC), `config` and `command` (`fxflow serve`).
"""

# fmt: off
import typing as _typing

from fxflow.core.boundary import public as _public
from fxflow.serve.containers import Model, ModelSource, load_model
from fxflow.serve.repository import Repository
from fxflow.serve.selector import Selector, SelectorConfig
from fxflow.serve.service import (
    Prediction, PredictionRequest, ModelConfig, ModelService,
)
from fxflow.serve.versions import Versions, VersionsConfig

if _typing.TYPE_CHECKING:
    from fxflow.serve.tables.model import Recommender, load_recommender
    from fxflow.serve.tables.saving import save_recommender

__all__ = [
    "Model", "ModelConfig", "ModelService", "ModelSource", "Prediction",
    "PredictionRequest", "Repository", "load_model",
    "Selector", "SelectorConfig", "Versions", "VersionsConfig",
    # models with tables
    "Recommender", "load_recommender", "save_recommender",
]

_public(
    globals(),
    __all__,
    elsewhere={
        "tables.model": "Recommender load_recommender",
        "tables.saving": "save_recommender",
    },
)
# fmt: on
