"""`fori_loop`: a loop over the numbers of a range."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from fxflow._config import config
from fxflow.core import tree
from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.arrays.array import (
    ArrayOrNumber,
    is_arraylike,
    not_an_array,
    read_only,
    unwrapped,
)
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import table
from fxflow.core.ir.trace import Tracer
from fxflow.core.source import located, telling
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.comparison import lt
from fxflow.lax.control_flow.carry import (
    as_type,
    require_structure,
)
from fxflow.lax.control_flow.scan import scan
from fxflow.lax.control_flow.while_loop import while_loop

C = TypeVar("C")
N = TypeVar("N", bound=tuple[Any, ...])


@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Array], Array],
    init_val: ArrayOrNumber,
    *,
    unroll: int | bool | None = None,
) -> Array: ...
@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, C], C],
    init_val: C,
    *,
    unroll: int | bool | None = None,
) -> C: ...
@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, N], N],
    init_val: tuple[Any, ...],
    *,
    unroll: int | bool | None = None,
) -> N: ...
@boundary
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Applies a function for each number of a range: `lower, lower + 1, …`.

    With bounds that are known when tracing (Python numbers) it is a `scan`, so it can
    be differentiated in both directions; else it is a `while_loop`. In Python it would
    be::

        def fori_loop(lower, upper, body_fun, carry):
            for i in range(lower, upper):
                carry = body_fun(i, carry)
            return carry

    Args:
      lower: first number, usually an int.
      upper: what all numbers are less than.
      body_fun: takes a number (of the bounds' dtype) and the carry; returns the next
        carry (same structure, shapes, dtypes).
      init_val: the first carry; a pytree of arrays.
      unroll: how many steps to write out in each round (True: all); only with bounds
        that are known.

    Returns:
      The last carry (`init_val` if the range is empty).

    Raises:
      ArgumentError: a bound is not a real number or not finite, or `unroll` is given
        for traced bounds.
      DtypeError: the bounds' dtypes differ.
      ShapeError, DtypeError, TreeError: the carry changes its type.

    Example:
      >>> int(fori_loop(0, 5, lambda i, total: lax.add(total, i), 0))
      10

      Powers of a matrix by repeated products, and the derivative through the loop:

      >>> def trace_of_power(a):
      ...     power = fori_loop(1, 4, lambda i, p: p @ a, a)
      ...     return fnp.trace(power)
      >>> fxflow.grad(trace_of_power)(fnp.diag(fnp.array([1.0, 2.0]))).tolist()
      [[4.0, 0.0], [0.0, 32.0]]

    Source: StableHLO while.
    """
    require_callable(body_fun, "fori_loop: body_fun")
    lower, upper = unwrapped(lower), unwrapped(upper)
    avals = [_bound(lower, "lower"), _bound(upper, "upper")]
    first, second = avals
    if first.dtype != second.dtype:
        if _yields(first, second):
            lower, first = arith.cast(lower, second.dtype), second
        elif _yields(second, first):
            upper = arith.cast(upper, first.dtype)
        else:
            raise DtypeError(
                f"fori_loop: bounds must have one dtype, got lower {first} and upper "
                f"{second}: convert one with .astype(...)"
            )
    dtype = first.dtype
    if not (isinstance(lower, Tracer) or isinstance(upper, Tracer)):
        start, stop = np.asarray(lower).item(), np.asarray(upper).item()
        if not math.isfinite(start) or not math.isfinite(stop):
            raise ArgumentError(
                f"fori_loop: bounds must be finite, got lower {start} and upper {stop}"
            )
        weak = avals[0].weak_type and avals[1].weak_type
        # A static length makes it a scan, which reverse mode can differentiate.
        return _counted(start, stop, dtype, weak, body_fun, init_val, unroll)
    if unroll is not None and unroll is not False and unroll != 1:
        raise ArgumentError(
            "fori_loop: unroll needs bounds that are known when tracing (Python ints), "
            f"got lower {avals[0]} and upper {avals[1]}"
        )

    def condition(carry: Any) -> Any:
        i, stop, _ = carry
        return lt(i, stop)

    def body(carry: Any) -> Any:
        i, stop, value = carry
        one = arith.constant(1, typeof(i).dtype)
        new = body_fun(i, value)
        leaves, structure = tree.flatten(new)
        with telling(lambda: f"; the body is {located(body_fun)}"):
            require_structure(
                tree.structure(value),
                structure,
                leaves,
                "fori_loop: the body must return a carry of the structure it takes, "
                "but",
            )
        return table["add"].bind(i, one), stop, new

    body.wrapped_by = "fori_loop", body_fun  # type: ignore[attr-defined]
    return while_loop(condition, body, (lower, upper, init_val))[2]


def _bound(value: Any, what: str) -> Aval:
    """Returns the type of a bound.

    Raises:
      ArgumentError: it is not a 0-d real number.
    """
    if not is_arraylike(value):
        raise not_an_array(value, f"fori_loop: {what} is")
    aval = typeof(value)
    real = dtypes.is_integer(aval.dtype) or dtypes.is_floating(aval.dtype)
    if aval.shape or not real:
        raise ArgumentError(f"fori_loop: {what} must be a real number, got {aval}")
    return aval


def _yields(a: Aval, b: Aval) -> bool:
    """Returns whether a bound takes the dtype of the other."""
    # A weak float does not become an integer: it would lose its fraction.
    return a.weak_type and not (
        dtypes.is_floating(a.dtype) and dtypes.is_integer(b.dtype)
    )


def _counted(
    start: float,
    stop: float,
    dtype: Any,
    weak: bool,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    unroll: int | bool | None,
) -> Any:
    """Runs a loop whose bounds are known."""
    length = max(math.ceil(stop - start), 0)
    if config.disable_jit:
        init_val = read_only(init_val)
        for i in range(length):
            init_val = body_fun(start + i, init_val)
        return init_val

    def body(carry: Any, i: Any) -> tuple[Any, None]:
        return body_fun(i, carry), None

    body.wrapped_by = "fori_loop", body_fun  # type: ignore[attr-defined]
    counts = table["iota"].bind(dtype=dtype, shape=(length,), dimension=0)
    if start:
        counts = table["add"].bind(counts, arith.constant(start, dtype))
    if weak:
        counts = as_type(counts, Aval((length,), dtype, True))
    steps = 1 if unroll is None else unroll
    return scan(body, init_val, counts, length=length, unroll=steps)[0]
