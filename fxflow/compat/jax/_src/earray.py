"""`jax._src.earray`."""

from fxflow.compat.jax._mirror import listen


class EArray:
    """An array of an extended dtype; fxflow's keys are plain arrays."""


listen(globals())
