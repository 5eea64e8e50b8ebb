"""Series and continued fractions that are evaluated from their last term.

XLA compiles a loop on the CPU to one pass over memory for each array that the loop
carries and each test of convergence. From its last term a series takes one array and no
test; how many terms it has is found before, from what the slowest element needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow.core.arrays import dtypes, typeof
from fxflow.core.ir import arith
from fxflow.lax.bitwise import bitwise_and, bitwise_not
from fxflow.lax.comparison import gt, lt
from fxflow.lax.control_flow.while_loop import while_loop
from fxflow.lax.elementwise import add, mul, sub
from fxflow.lax.reduction import reduce_or
from fxflow.lax.rounding import floor

# Terms in one step of the loop.
_UNROLLED = 8
_FIRST, _MOST = 8, 10_000


def count_of_terms(enough: Callable[[Any], Any], dtype: Any) -> Any:
    """Returns how many terms are enough for all elements, as a float.

    Args:
      enough: takes a number of terms, a 0-d float array; returns a bool array.
      dtype: of that number.
    """
    unit = arith.constant(_UNROLLED, dtype)

    def going(n: Any) -> Any:
        short = bitwise_not(enough(n))
        some = reduce_or(short, tuple(range(typeof(short).ndim)))
        return bitwise_and(lt(n, arith.constant(_MOST, dtype)), some)

    def step(n: Any) -> Any:
        # About 5/4 as many.
        more = floor(mul(n, arith.constant(0.25 / _UNROLLED, dtype)))
        return add(n, mul(unit, add(more, arith.constant(1, dtype))))

    return while_loop(going, step, arith.constant(_FIRST, dtype))


def from_last_term(
    term: Callable[[Any, Any], Any], count: Any, last: Any, unrolled: int = _UNROLLED
) -> Any:
    """Returns t(1, t(2, … t(count, last))).

    Args:
      term: takes a number, a 0-d float array, and the value of the terms behind it.
      count: what `count_of_terms` returns.
      last: float array: the value of what is behind the last term.
      unrolled: terms in one step of the loop, a divisor of what `count` is a multiple
        of: with fewer of them the derivatives are shorter programs.
    """
    dtype = typeof(last).dtype
    one, zero = arith.constant(1, dtype), arith.constant(0, dtype)

    def step(carry: Any) -> Any:
        k, value = carry
        for _ in range(unrolled):
            value = term(k, value)
            k = sub(k, one)
        return k, value

    return while_loop(lambda carry: gt(carry[0], zero), step, (count, last))[1]


def digits(dtype: Any) -> float:
    """Returns the logarithm of how many times the result exceeds what is left out."""
    return 37.0 if dtypes.bits(dtype) == 64 else 17.5
