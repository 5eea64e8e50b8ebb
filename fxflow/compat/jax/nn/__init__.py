"""`jax.nn`."""

from fxflow.compat.jax._mirror import mirror

RENAMED = {
    "hard_swish": "hard_silu",
    "swish": "silu",
    "normalize": "standardize",
}

__all__ = mirror(globals(), "fxflow.nn", renamed=RENAMED)
