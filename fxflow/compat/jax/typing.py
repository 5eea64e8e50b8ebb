"""`jax.typing`."""

from fxflow.compat.jax._mirror import listen
from fxflow.numpy._operands import ArrayLike, DTypeLike

__all__ = ["ArrayLike", "DTypeLike"]

listen(globals())
