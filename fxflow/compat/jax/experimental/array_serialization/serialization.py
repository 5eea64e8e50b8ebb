"""`jax.experimental.array_serialization.serialization`: the class that orbax names."""

from fxflow.compat.jax._mirror import listen


class GlobalAsyncCheckpointManagerBase:
    """Base of what writes checkpoints with tensorstore, of which there is none here."""


listen(globals())
