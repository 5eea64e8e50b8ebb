"""`while_loop` and `fori_loop`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow._config import config
from fxflow.core import tree
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.aval import Aval
from fxflow.core.arrays.convert import (
    is_arraylike,
    not_an_array,
    read_only,
    typeof,
    unwrapped,
)
from fxflow.core.boundary import boundary
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import table
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.bodies import trace_body
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.carry import as_type, leaves_of, name_of, require_callable
from fxflow.lax.comparison import lt
from fxflow.lax.scan import scan, traced_with_carry
from fxflow.lax.while_primitive import While


@boundary
def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    """Applies a function again and again while a condition holds.

    It is compiled as one loop. Differentiable in forward mode (`jvp`, `jacfwd`) only.

    Args:
      cond_fun: takes the carry, returns one bool.
      body_fun: takes the carry, returns the next one (same structure, shapes, dtypes).
      init_val: the first carry; a pytree of arrays.

    Returns:
      The first carry for which the condition does not hold.

    Raises:
      ArgumentError: an argument is no function or no array, or the condition is not one
        bool.
      ShapeError, DtypeError, TreeError: the carry changes its type.

    Example:
      >>> int(while_loop(lambda n: lax.lt(n, 100), lambda n: lax.mul(n, 2), 3))
      192

    Source: StableHLO while.
    """
    require_callable(cond_fun, "while_loop: cond_fun")
    require_callable(body_fun, "while_loop: body_fun")
    carry, treedef = leaves_of(init_val, "while_loop: init_val")
    if config.disable_jit:
        known, result = _python_while(cond_fun, body_fun, read_only(init_val))
        if known:
            return result
    avals = [typeof(c) for c in carry]
    while True:
        avals, body = traced_with_carry(
            body_fun,
            "while_loop",
            f"while_{name_of(body_fun)}",
            treedef,
            avals,
            [],
            (),
            None,
        )
        condition = trace_body(
            cond_fun, tree.treedef_tuple([treedef]), avals, name="while_condition"
        )
        outs = condition.graph.out_avals
        # Devices that stop at different steps have different results.
        wider = [a.update(vma=a.vma.union(*(o.vma for o in outs))) for a in avals]
        if wider == avals:
            break
        avals = wider
    if len(outs) != 1 or outs[0].shape or not dtypes.is_bool(outs[0].dtype):
        given = ", ".join(map(str, outs)) or "nothing"
        raise ArgumentError(
            f"while_loop: cond_fun must return one bool (bool[]), got {given}: compare "
            "(x < y), or reduce with .any() or .all()"
        )
    results = While.bind(
        *condition.consts,
        *body.consts,
        *(as_type(c, a) for c, a in zip(carry, avals, strict=True)),
        condition=condition.graph,
        body=body.graph,
        num_condition=len(condition.consts),
        num_body=len(body.consts),
    )
    return treedef.unflatten(results)


def _python_while(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], carry: Any
) -> tuple[bool, Any]:
    """Runs the loop in Python, for debugging, if the condition is not traced."""
    while True:
        going = cond_fun(carry)
        if isinstance(going, Tracer):
            return False, None
        if not going:
            return True, carry
        carry = body_fun(carry)


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
    be differentiated in both directions; else it is a `while_loop`.

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
      ArgumentError: a bound is no real number or not finite, or `unroll` is given for
        traced bounds.
      DtypeError: the bounds' dtypes differ.
      ShapeError, DtypeError, TreeError: the carry changes its type.

    Example:
      >>> int(fori_loop(0, 5, lambda i, total: lax.add(total, i), 0))
      10

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
        return table["add"].bind(i, one), stop, body_fun(i, value)

    return while_loop(condition, body, (lower, upper, init_val))[2]


def _bound(value: Any, what: str) -> Aval:
    """Returns the type of a bound.

    Raises:
      ArgumentError: it is no 0-d real number.
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

    counts = table["iota"].bind(dtype=dtype, shape=(length,), dimension=0)
    if start:
        counts = table["add"].bind(counts, arith.constant(start, dtype))
    if weak:
        counts = as_type(counts, Aval((length,), dtype, True))
    steps = 1 if unroll is None else unroll
    return scan(body, init_val, counts, length=length, unroll=steps)[0]
