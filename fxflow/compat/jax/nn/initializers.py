"""`jax.nn.initializers`."""

from fxflow.compat.jax._mirror import mirror

RENAMED = {
    "kaiming_normal": "he_normal",
    "kaiming_uniform": "he_uniform",
    "xavier_normal": "glorot_normal",
    "xavier_uniform": "glorot_uniform",
}

__all__ = mirror(globals(), "fxflow.nn.initializers", renamed=RENAMED)
