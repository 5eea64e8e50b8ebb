"""`jax.extend.source_info_util`."""

from fxflow.compat.jax._mirror import listen


def register_exclusion(path: str) -> None:
    """Does nothing: fxflow leaves only its own frames out."""


listen(globals())
