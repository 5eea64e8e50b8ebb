"""How requests become batches: decisions that are told the time and do no I/O.

To be read in this order: `sizes` (what a batch is padded to), `pace` (how long one
takes), `policies` (how large one may be), `waiting` (which requests it takes, and who
is refused). Only `fxflow.serve` calls them, for each request: so there is no boundary
around them, which would cost as much as they do.
"""

# fmt: off
from fxflow.serve.batching.pace import Lateness, Pace
from fxflow.serve.batching.policies import AIMD, Fixed, Policy, Quantile, policy_named
from fxflow.serve.batching.sizes import padded, sizes_up_to
from fxflow.serve.batching.waiting import Decision, Queue, Refused, Waiting

__all__ = [
    "AIMD", "Fixed", "Policy", "Quantile", "policy_named",
    "Lateness", "Pace", "padded", "sizes_up_to",
    "Decision", "Queue", "Refused", "Waiting",
]

# fmt: on
