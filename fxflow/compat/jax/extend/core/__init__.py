"""`jax.extend.core`."""

from typing import Any

from fxflow.compat.jax._mirror import mirror
from fxflow.core.arrays import dtypes as _dtypes
from fxflow.core.ir.trace import state as _state
from fxflow.errors import GraphError as JaxprTypeError


class Effect:
    """Base of what an operation does besides computing its results."""


class Token:
    """What orders side effects; fxflow's own never reach a program."""


class AbstractToken:
    """The type of `Token`."""


Effects = frozenset[Any]
no_effects: frozenset[Any] = frozenset()


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """Returns the dtype of the derivatives of values of a dtype.

    Args:
      primal_dtype: a dtype.

    Returns:
      A `numpy.dtype`.
    """
    return _dtypes.tangent_dtype(primal_dtype)


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """Returns the named axes in scope.

    Returns:
      A list of names.
    """
    return [axis[0] for axis in _state.axes]


__all__ = mirror(globals(), "fxflow.compat.jax.core")
__all__ += ["Effect", "Effects", "JaxprTypeError", "Token", "no_effects"]
