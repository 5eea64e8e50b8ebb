"""How requests become batches: decisions that are passed the time and do no I/O.

To be read in this order: `policies` (how large a batch may be, and what it is padded
to), `queue` (which requests it takes, and which are refused). Only `fxflow.serve` calls
them, for each request: so there is no boundary around them, which would cost as much as
they do.
"""

# fmt: off
from fxflow.serve.batching.policies import (
    AIMD, BatchPolicy, Fixed, QuantileRegression, batch_policy, padded, sizes_up_to,
)
from fxflow.serve.batching.queue import (
    Lateness, NextBatch, Pace, Queue, QueueEntry, Refusal,
)

__all__ = [
    "AIMD", "BatchPolicy", "Fixed", "QuantileRegression", "batch_policy", "padded",
    "sizes_up_to",
    "Lateness", "NextBatch", "Pace", "Queue", "QueueEntry", "Refusal",
]

# fmt: on
