"""Groups requests into batches: pure decisions, without a clock or I/O.

Reading order: `policies` (the size of batches, and their padding), `queue` (the
requests of a batch, and refusals). These functions run for each request and only
`fxflow.serve` calls them, so they have no API boundary (`core.boundary`), which would
cost as much as they do.
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
