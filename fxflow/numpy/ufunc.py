"""`ufunc`: functions that act on each element, with NumPy's methods of them.

A call on concrete arrays looks up one plan by the types and places of its arguments;
under a trace the function just runs. `x + 1.0` with a Python number is the same plan
with a 0-d constant of the array's dtype.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.core import dtypes
from fxflow.core.array import Array, from_host
from fxflow.core.aval import Aval
from fxflow.core.eager import EVAL, library, on_forget
from fxflow.core.errors import ArgumentError
from fxflow.core.placed import Placed, placed_on
from fxflow.core.promotion import lub
from fxflow.core.trace import state
from fxflow.numpy._operands import SCALARS

_new = object.__new__


class ufunc:
    """A function that acts on each element of its arguments, which are broadcast.

    Attributes:
      nin: number of arguments.
      nout: number of results.
      nargs: both together.
      identity: what leaves an element unchanged, or None.

    Source: `numpy.ufunc`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        nin: int,
        nout: int = 1,
        identity: Any = None,
        doc: str = "",
    ) -> None:
        self.function = function
        self.nin, self.nout, self.nargs = nin, nout, nin + nout
        self.identity = identity
        self.__name__ = self.__qualname__ = name
        self.__doc__ = doc or function.__doc__
        self.__wrapped__ = function
        named = _named(function, name)
        self._eager = library()(named)
        self._plans: dict[Any, Any] = self._eager.plans  # type: ignore[attr-defined]

    def __call__(self, *args: Any) -> Any:
        """Applies the function."""
        if len(args) != self.nin:
            raise ArgumentError(
                f"{self.__name__} takes {self.nin} arguments, got {len(args)}"
            )
        if state.trace is EVAL:
            return self._eager(*args)
        return self.function(*args)

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r}>"

    def __reduce__(self) -> str:
        return self.__name__


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Returns the function under the name that graphs and messages show."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return function(*args)

    call.__name__ = name
    return call


class Unary(ufunc):
    """A ufunc of one argument."""

    def __call__(self, x: Any, /) -> Any:
        """Applies the function to each element."""
        if state.trace is EVAL:
            try:
                plan = self._plans[(x._placed,)]
            except (AttributeError, KeyError):
                plan = self._eager
            return plan(x)
        return self.function(x)


class Binary(ufunc):
    """A ufunc of two arguments."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, nin=2, **options)
        self._scalar_plans: dict[Any, Any] = {}
        on_forget(self._scalar_plans.clear)

    def __call__(self, x: Any, y: Any, /) -> Any:
        """Applies the function to each pair of elements."""
        if state.trace is EVAL:
            try:
                plan = self._plans[x._placed, y._placed]
            except (AttributeError, KeyError):
                plan = self._slow
            return plan(x, y)
        return self.function(x, y)

    def _slow(self, x: Any, y: Any) -> Any:
        """Applies the function to concrete arguments that have no plan yet."""
        if type(x) is Array and type(y) in SCALARS:
            constant = self._constant(x, y)
            if constant is not None:
                return self(x, constant)
        elif type(y) is Array and type(x) in SCALARS:
            constant = self._constant(y, x)
            if constant is not None:
                return self(constant, y)
        return self._eager(x, y)

    def _constant(self, array: Array, number: Any) -> Array | None:
        """Returns a Python number as a weak array of the dtype it gets beside `array`.

        None for what the general way is to refuse.
        """
        key = (array._placed, type(number))
        known = self._scalar_plans.get(key)
        if known is None:
            known = self._scalar_plans[key] = _scalar_type(array, number)
            if known is None:
                return None
        dtype, placed = known
        try:
            host = np.array(number, dtype)
        except OverflowError:
            dtypes.of_python(number, dtype)  # says it in words
            raise
        made: Array = _new(Array)
        made._host = host
        made._placed = placed
        return made


def _scalar_type(array: Array, number: Any) -> tuple[Any, Placed] | None:
    aval = array.aval
    if dtypes.is_key(aval.dtype):
        return None
    kind = type(number)
    weak = kind is not bool
    dtype, _ = lub((aval.dtype, dtypes.default(kind)), (aval.weak_type, weak))
    if kind is bool and dtype != np.bool_:
        weak = True
    own = dtypes.default(kind)
    # A number that makes the array change its dtype keeps its own.
    if dtype != aval.dtype:
        dtype = own
    return dtype, placed_on(Aval((), dtype, weak), array._placed.placement)


def scalar_array(value: Any, placed: Placed) -> Array:
    """Returns a Python number as an array of a known 0-d type."""
    return from_host(np.array(value, placed.aval.dtype), placed)
