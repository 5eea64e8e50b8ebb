"""`jax.extend.core`."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as _np

from fxflow.compat.jax._mirror import mirror
from fxflow.compat.jax._jaxprs import jaxpr_as_fun as _jaxpr_as_fun
from fxflow.compat.jax._primitives import Primitive
from fxflow.compat.jax.extend.linear_util import wrap_init as _wrap_init
from fxflow.core.arrays import Array
from fxflow.core.arrays import dtypes as _dtypes
from fxflow.core.interpreters.batching import BatchTrace as _BatchTrace
from fxflow.core.ir.graph import Var as _Var
from fxflow.core.ir.staging import GraphTrace as _GraphTrace
from fxflow.core.ir.trace import state as _state
from fxflow.errors import GraphError as JaxprTypeError
from fxflow.errors import InconclusiveSizeError as InconclusiveDimensionOperation


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


class CallPrimitive(Primitive):
    """A primitive that calls a function of flat values; jaxprs have its operations.

    Args:
      name: as printed.
    """

    multiple_results = True
    call_primitive = True

    def bind(self, fun: Any, *args: Any, **params: Any) -> Any:
        """Calls the function.

        Args:
          fun: a `linear_util.WrappedFun`.
          *args: what it is called with.
          **params: have no effect.
        """
        return call_impl(fun, *args)

    def get_bind_params(self, params: dict[str, Any]) -> tuple[list[Any], Any]:
        """Returns the function that `call_jaxpr` is, and the other parameters."""
        others = dict(params)
        return [_wrap_init(_jaxpr_as_fun(others.pop("call_jaxpr")))], others


def call_impl(f: Any, *args: Any, **params: Any) -> Any:
    """Calls a `linear_util.WrappedFun`.

    Args:
      f: the function.
      *args: its arguments.
      **params: have no effect.

    Returns:
      Its results.
    """
    return f.call_wrapped(*args)


array_types: set[type] = {
    Array, _np.ndarray, *(d.type for d in _dtypes.ALL)
}  # fmt: skip
"""Classes of arrays and of NumPy's scalars."""


def gensym() -> Callable[[Any], Any]:
    """Returns what makes a new variable of a jaxpr from its type.

    Returns:
      A function of a type.
    """
    return _Var


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Returns whether there are named axes in scope.

    Returns:
      A Python bool.
    """
    return bool(_state.axes)


def _traces() -> Iterator[Any]:
    """Yields the current interpreter and those around it, as far as they are known."""
    trace: Any = _state.trace
    while trace is not None:
        yield trace
        trace = getattr(trace, "parent", None)


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Returns whether operations are recorded at last, not run.

    Returns:
      A Python bool.
    """
    return any(isinstance(trace, _GraphTrace) for trace in _traces())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Returns whether operations are vectorized before they are run or recorded.

    Returns:
      A Python bool.
    """
    return any(isinstance(trace, _BatchTrace) for trace in _traces())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """Returns the named axes in scope.

    Returns:
      A list of names.
    """
    return [axis[0] for axis in _state.axes]


__all__ = mirror(globals(), "fxflow.compat.jax.core")
__all__ += [
    "Effect",
    "Effects",
    "InconclusiveDimensionOperation",
    "JaxprTypeError",
    "Token",
    "no_effects",
]
