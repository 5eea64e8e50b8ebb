"""Derivatives of functions that are computed by loops of unknown length."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.ir.primitive import Zero
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.jvp import jvp
from fxflow.transforms.vmap import vmap

#: Positions of the operands by which a function is differentiated, in rising order.
Order = tuple[int, ...]


def by_forward(
    function: Callable[..., Any],
    *known: Callable[..., Any] | None,
    derived: Callable[..., Any] | None = None,
    together: bool = False,
) -> Callable[..., Any]:
    """Makes an elementwise function differentiable in reverse, any number of times.

    A `while_loop` has forward derivatives only. For a function of each element by
    itself they are all that is needed: a tangent is multiplied by the derivative, a
    function of the operands that is made in the same way.

    Args:
      function: of float arrays of one shape; returns one of that shape.
      *known: for each operand the derivative with respect to it, a function of the
        operands, or None where it is computed.
      derived: what is differentiated in its place, if that is longer: a series that
        ends may have derivatives that do not.
      together: whether derivatives with respect to several operands are those of one
        program, along a new axis. It is smaller than one for each, but where one is
        finite and another is not, both may be nan.

    Returns:
      The same function, differentiable.
    """
    source = derived or function
    slopes = {i: k for i, k in enumerate(known) if k is not None}

    @functools.cache
    def stacked(orders: tuple[Order, ...]) -> Callable[..., Any]:
        """Returns derivatives of one order, along a new first axis."""
        made = custom_jvp(lambda *args: _derivatives(source, orders, together, args))

        def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            moved = _moved(tangents, slopes)
            further = tuple(sorted({_with(o, i) for o in orders for i in moved}))
            higher: Any = stacked(further)(*primals) if further else ()
            out = made(*primals)
            total = Zero(out.aval.tangent())
            for i, t in enumerate(tangents):
                if type(t) is Zero:
                    continue
                if i in slopes:
                    rates = _derivatives(slopes[i], orders, together, primals)
                else:
                    rows = [further.index(_with(o, i)) for o in orders]
                    rates = fnp.stack([higher[row] for row in rows])
                total = _sum(total, t * rates)
            return out, total

        made.defjvp(rule, symbolic_zeros=True)
        return made

    made = custom_jvp(function)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        moved = _moved(tangents, slopes)
        rates = dict(slopes)
        if moved:
            found = stacked(tuple((i,) for i in moved))(*primals)
            rates |= {i: lambda *_, k=k: found[k] for k, i in enumerate(moved)}
        out = made(*primals)
        total = Zero(out.aval.tangent())
        for i, t in enumerate(tangents):
            if type(t) is not Zero:
                total = _sum(total, t * rates[i](*primals))
        return out, total

    made.defjvp(rule, symbolic_zeros=True)
    return made


def _moved(tangents: Sequence[Any], known: Any) -> list[int]:
    """Returns the operands that move and whose derivatives are to be computed."""
    moving = (i for i, t in enumerate(tangents) if type(t) is not Zero)
    return [i for i in moving if i not in known]


def _with(order: Order, i: int) -> Order:
    return tuple(sorted((*order, i)))


def _sum(total: Any, part: Any) -> Any:
    return part if type(total) is Zero else total + part


def _derivatives(
    function: Callable[..., Any],
    orders: Sequence[Order],
    together: bool,
    args: Sequence[Any],
) -> Any:
    """Returns derivatives of an elementwise function along a new first axis."""
    if together and len(orders) > 1:
        return _along_axis(function, orders, args)
    rows = []
    for order in orders:
        of = function
        for i in order:
            of = functools.partial(partial, of, i)
        rows.append(of(*args))
    return fnp.stack(rows)


def _along_axis(
    function: Callable[..., Any], orders: Sequence[Order], args: Sequence[Any]
) -> Any:
    """Returns what `_derivatives` does, from one program along the new axis."""
    used = sorted({i for order in orders for i in order})

    def directional(of: Callable[..., Any], direction: Any, *moving: Any) -> Any:
        ones = [lax.full_like(x, 1) for x in moving]
        tangents = tuple(d * one for d, one in zip(direction, ones, strict=True))
        return jvp(of, moving, tangents)[1]

    def along(directions: Any) -> Any:
        def of(*moving: Any) -> Any:
            at = dict(zip(used, moving, strict=True))
            return function(*(at.get(i, x) for i, x in enumerate(args)))

        for direction in directions:
            of = functools.partial(directional, of, direction)
        return of(*(args[i] for i in used))

    # For each time that it is differentiated, in which directions.
    basis = [
        [fnp.asarray([float(o[k] == i) for o in orders], args[i].dtype) for i in used]
        for k in range(len(orders[0]))
    ]
    return vmap(along)(basis)


def partial(function: Callable[..., Any], i: int, *args: Any) -> Any:
    """Returns the derivative of an elementwise function by argument `i`."""
    of_one = lambda x: function(*args[:i], x, *args[i + 1 :])
    return jvp(of_one, (args[i],), (lax.full_like(args[i], 1),))[1]


def gradient(
    function: Callable[..., Any], wanted: Sequence[int], *args: Any
) -> list[Any]:
    """Returns derivatives of an elementwise function, computed by one program."""
    orders = [(i,) for i in wanted]
    found = _derivatives(function, orders, True, args)
    return [found[k] for k in range(len(orders))]
