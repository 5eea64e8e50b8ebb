"""Derivatives of functions that are computed by loops of unknown length."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.jvp import jvp


def by_forward(
    function: Callable[..., Any],
    *known: Callable[..., Any] | None,
    derived: Callable[..., Any] | None = None,
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

    Returns:
      The same function, differentiable.
    """
    source = derived or function
    slopes: dict[int, Callable[..., Any]] = {
        i: k for i, k in enumerate(known) if k is not None
    }

    def slope(i: int) -> Callable[..., Any]:
        if i not in slopes:
            slope_of = functools.partial(partial, source, i)
            slopes[i] = by_forward(slope_of, *(None,) * len(known))
        return slopes[i]

    made = custom_jvp(function)
    made.defjvps(
        *(lambda t, out, *args, i=i: t * slope(i)(*args) for i in range(len(known)))
    )
    return made


def partial(function: Callable[..., Any], i: int, *args: Any) -> Any:
    """Returns the derivative of an elementwise function by argument `i`."""
    of_one = lambda x: function(*args[:i], x, *args[i + 1 :])
    return jvp(of_one, (args[i],), (lax.full_like(args[i], 1),))[1]
