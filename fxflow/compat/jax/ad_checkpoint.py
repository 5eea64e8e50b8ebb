"""`jax.ad_checkpoint`."""

from fxflow import checkpoint, checkpoint_name, checkpoint_policies
from fxflow.compat.jax._mirror import listen
from fxflow.debug import print_saved_residuals

remat = checkpoint

__all__ = [
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
]

listen(globals())
