"""Parts of a training program, each useful alone around any pure step function.

- `data`: pipelines over arrays, files and iterables, with positions that are saved;
- `checkpoint`: states in files, of one process or many, here or in object stores;
- `loop`: what is around a step: checkpoints, logs, hooks, signals;
- `logs`: to the terminal, JSON lines, TensorBoard;
- `metrics`: sums over batches and devices; `averages` of parameters;
- `precision`: mixed precision; `accumulate_gradients`: batches that are too large;
- `summary`: a table of parameters.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.train import averages, checkpoint, data, logs, loop, metrics, precision
from fxflow.train.accumulation import accumulate_gradients
from fxflow.train.summaries import Row, Summary, summary

__all__ = [
    "averages", "checkpoint", "data", "logs", "loop", "metrics", "precision",
    "accumulate_gradients", "Row", "Summary", "summary",
]

_public(globals(), __all__)
# fmt: on
