"""Training steps whose state is sharded over the devices of one program (ZeRO).

`sharded_optimizer` makes them; they communicate only by collectives. `shards` defines
sharded arrays and sums gradients, `sharded_call` runs an optimizer on shards.
"""

from fxflow.distributed.zero.optimizer import (
    ShardedOptimizer,
    ShardedState,
    StepMetrics,
    sharded_optimizer,
)
from fxflow.distributed.zero.shards import Sharded

__all__ = [
    "Sharded",
    "ShardedOptimizer",
    "ShardedState",
    "StepMetrics",
    "sharded_optimizer",
]
