"""`jax._src.state.types`."""

from fxflow.compat.jax._mirror import listen
from fxflow.core.arrays import AbstractRef
from fxflow.core.ir.references import RefView as TransformedRef

__all__ = ["AbstractRef", "TransformedRef"]

listen(globals())
