"""`jax.ad_checkpoint`."""

from fxflow import checkpoint_name, checkpoint_policies
from fxflow.compat.jax._api import checkpoint
from fxflow.compat.jax._mirror import listen
from fxflow.debug import print_saved_residuals
from fxflow.lax.remat import Offload as Offloadable

remat = checkpoint
# What a policy returns, which fxflow also takes as bools.
Saveable: bool = True
Recompute: bool = False

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
]

listen(globals())
