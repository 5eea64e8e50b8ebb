"""`jax.core`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fxflow.compat.jax._jaxprs import (
    Atom,
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    check_jaxpr,
    eval_jaxpr,
    jaxpr_as_fun,
    jaxprs_in_params,
    new_jaxpr_eqn,
    subjaxprs,
)
from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax._primitives import Primitive
from fxflow.core.arrays import Aval, dtypes, is_arraylike, typeof
from fxflow.core.ir.trace import Trace, Tracer, axis_size_of, state
from fxflow.core.runtime.eager import EvalTrace, interpreter
from fxflow.transforms.inspection import ensure_compile_time_eval

eval_context = ensure_compile_time_eval
Value = Any
ParamDict = dict[str, Any]
# Clients list their classes of arrays here. Nothing reads it: fxflow asks the class.
pytype_aval_mappings: dict[Any, Any] = {np.ndarray: typeof}


class _OfTypes(type):
    """Makes instances of fxflow's type of arrays instances of JAX's classes."""

    def __instancecheck__(cls, instance: Any) -> bool:
        known = cls.__module__ == __name__ and isinstance(instance, Aval)
        return known or type.__instancecheck__(cls, instance)


class AbstractValue(metaclass=_OfTypes):
    """Base of types."""


class _ShapedArray(_OfTypes):
    """Makes a call of the class fxflow's type, of which there is one object each."""

    def __call__(
        cls, shape: Any, dtype: Any, weak_type: bool = False, **options: Any
    ) -> Any:
        return Aval(tuple(map(int, shape)), dtypes.dtype(dtype), weak_type)


class ShapedArray(AbstractValue, metaclass=_ShapedArray):
    """The type of an array: shape, dtype, weak type."""


def get_aval(x: Any) -> Aval:
    """Returns the type of a value.

    Args:
      x: array, or what may stand for one.

    Returns:
      An `Aval`.
    """
    return typeof(x)


def raise_to_shaped(aval: Any, weak_type: bool | None = None) -> Any:
    """Returns a type without what is known of the value: the type itself.

    Args:
      aval: a type.
      weak_type: has no effect.

    Returns:
      The type.
    """
    return aval


def physical_aval(aval: Any) -> Any:
    """Returns the type that the compiler sees.

    Args:
      aval: a type.

    Returns:
      An `Aval`; of a key, that of its words.
    """
    return aval.physical


def mapped_aval(size: int, axis: int | None, aval: Aval) -> Aval:
    """Returns the type without one axis.

    Args:
      size: length of the axis.
      axis: the axis; None: no axis.
      aval: a type.

    Returns:
      An `Aval`.
    """
    if axis is None:
        return aval
    shape = list(aval.shape)
    del shape[axis]
    return Aval(tuple(shape), aval.dtype, aval.weak_type)


def unmapped_aval(size: int, axis: int | None, aval: Aval, *more: Any) -> Aval:
    """Returns the type with one more axis.

    Args:
      size: length of the axis.
      axis: where; None is nowhere.
      aval: a type.
      *more: have no effect.

    Returns:
      An `Aval`.
    """
    if axis is None:
        return aval
    shape = list(aval.shape)
    shape.insert(axis, size)
    return Aval(tuple(shape), aval.dtype, aval.weak_type)


def valid_jaxtype(x: Any) -> bool:
    """Returns whether a value is an array or may stand for one.

    Args:
      x: any value.

    Returns:
      A Python bool.
    """
    return bool(is_arraylike(x))


def concrete_or_error(force: Any, val: Any, context: str = "") -> Any:
    """Returns a value made concrete; a traced one raises its own error.

    Args:
      force: `int`, `float`, … or None.
      val: a value.
      context: has no effect.

    Returns:
      What `force` returns.
    """
    return val if force is None else force(val)


def is_concrete(x: Any) -> bool:
    """Returns whether a value is known.

    Args:
      x: any value.

    Returns:
      A Python bool.
    """
    return not isinstance(x, Tracer)


def trace_state_clean() -> bool:
    """Returns whether nothing is being traced.

    Returns:
      A Python bool.
    """
    return isinstance(state.trace, EvalTrace)


class OpaqueTraceState:
    """Which interpreter was current; two compare equal if it was the same."""

    def __init__(self) -> None:
        self._trace = state.trace

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._trace is other._trace

    def __hash__(self) -> int:
        return id(self._trace)


def get_opaque_trace_state(convention: str = "") -> OpaqueTraceState:
    """Returns a mark of the current interpreter.

    Args:
      convention: has no effect.

    Returns:
      An `OpaqueTraceState`.
    """
    return OpaqueTraceState()


def find_top_trace(values: Any = ()) -> Any:
    """Returns the current interpreter.

    Args:
      values: have no effect.

    Returns:
      A `Trace`.
    """
    return state.trace


@contextmanager
def set_current_trace(trace: Any, check_leaks: bool = False) -> Iterator[None]:
    """Makes another interpreter the current one within a block.

    Args:
      trace: the interpreter; None runs operations at once.
      check_leaks: has no effect.

    Returns:
      A context manager.
    """
    before = state.trace
    state.trace = interpreter() if trace is None else trace
    try:
        yield
    finally:
        state.trace = before


@contextmanager
def take_current_trace() -> Iterator[Any]:
    """Gives the current interpreter, and runs operations at once within a block.

    Returns:
      A context manager.
    """
    before = state.trace
    state.trace = interpreter()
    try:
        yield before
    finally:
        state.trace = before


def axis_frame(name: Any) -> int:
    """Returns the size of a named axis.

    Args:
      name: of the axis.

    Returns:
      A Python integer.
    """
    return axis_size_of(name)


def max_dim(a: Any, b: Any) -> Any:
    """Returns the larger of two lengths.

    Args:
      a: a length.
      b: a length.

    Returns:
      A Python integer.
    """
    return max(a, b)


def min_dim(a: Any, b: Any) -> Any:
    """Returns the smaller of two lengths.

    Args:
      a: a length.
      b: a length.

    Returns:
      A Python integer.
    """
    return min(a, b)


__all__ = [
    "AbstractValue",
    "Atom",
    "ClosedJaxpr",
    "DebugInfo",
    "DropVar",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "ParamDict",
    "Primitive",
    "ShapedArray",
    "Trace",
    "Tracer",
    "Value",
    "Var",
    "axis_frame",
    "check_jaxpr",
    "concrete_or_error",
    "ensure_compile_time_eval",
    "eval_context",
    "eval_jaxpr",
    "find_top_trace",
    "get_aval",
    "get_opaque_trace_state",
    "is_concrete",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "max_dim",
    "min_dim",
    "new_jaxpr_eqn",
    "physical_aval",
    "pytype_aval_mappings",
    "raise_to_shaped",
    "set_current_trace",
    "subjaxprs",
    "take_current_trace",
    "trace_state_clean",
    "unmapped_aval",
    "valid_jaxtype",
]

listen(globals())
