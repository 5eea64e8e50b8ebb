"""`jax.ad_checkpoint`."""

from fxflow import checkpoint, checkpoint_name, checkpoint_policies
from fxflow.compat.jax._mirror import listen

remat = checkpoint

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "remat"]

listen(globals())
