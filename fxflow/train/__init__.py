"""Parts of a training program that work with any pure step function, alone or together.

- `data`: pipelines over arrays, files and iterables, whose positions can be saved;
- `checkpoint`: saves and restores states, in local files or object stores;
- `loop`: runs steps, with checkpoints, logs, hooks and signals;
- `logs`: logs to the terminal, JSON lines and TensorBoard;
- `metrics`: sums over batches and devices; `averages`: averages of parameters;
- `precision`: mixed precision; `accumulate_gradients`: batches that are too large;
- `table_trainer`: models with tables of embeddings, in one process or on servers;
- `summary`: a table of parameters.
"""

# fmt: off
import typing as _typing

from fxflow.core.boundary import public as _public
from fxflow.train import averages, checkpoint, data, logs, loop, metrics, precision
from fxflow.train.accumulation import accumulate_gradients
from fxflow.train.summaries import Row, Summary, summary

if _typing.TYPE_CHECKING:
    from fxflow.train.tables import TableTrainer, TrainerState, table_trainer

__all__ = [
    "averages", "checkpoint", "data", "logs", "loop", "metrics", "precision",
    "accumulate_gradients", "Row", "Summary", "summary",
    "TableTrainer", "TrainerState", "table_trainer",
]

_public(
    globals(),
    __all__,
    elsewhere={"tables": "TableTrainer TrainerState table_trainer"},
)
# fmt: on
