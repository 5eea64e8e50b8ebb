"""Training steps whose state the devices of one program share (ZeRO).

`sharded_optimizer` makes them; all communication is by collectives. `shards` has arrays
in pieces, `sharded_call` runs an optimizer on pieces, `exchange` sums gradients.
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
