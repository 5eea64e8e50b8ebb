"""Newton's method with a fixed matrix, for the equations of implicit methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.scipy.integrate._ode.methods import Problem, chosen, size_of
from fxflow.scipy.integrate._ode.stepping import any_slice
from fxflow.scipy.linalg import lu_factor, lu_solve


class Solved(NamedTuple):
    """What Newton's method found.

    Attributes:
      x: the solution.
      converged: whether it is one.
      number: how many iterations were made.
      rate: the last ratio of two corrections; nan after one iteration.
    """

    x: Array
    converged: Array
    number: Array
    rate: Array


def tolerance(p: Problem) -> Array:
    """Returns how large, relative to the tolerances, an error of the solution may be.

    That is Hairer and Wanner's.
    """
    tiny = float(np.finfo(p.rtol.dtype).eps)
    return fnp.maximum(10 * tiny / p.rtol, fnp.minimum(0.03, fnp.sqrt(p.rtol)))


def newton(
    correction: Callable[[Array], Array],
    x: Array,
    scale: Array,
    enough: Array,
    most: int,
) -> Solved:
    """Adds corrections while they get smaller fast enough.

    Args:
      correction: of x, to what is to be added.
      x: the initial guess.
      scale: what corrections are measured by.
      enough: how small the estimated error must become.
      most: how many iterations are made at most.
    """

    def body(carry: Any) -> Any:
        x, _, _, count, before, _ = carry
        change = correction(x)
        size = size_of(change / scale)
        rate = size / before  # nan at first: comparisons with it do not hold
        slow = (rate >= 1) | (rate ** (most - count) / (1 - rate) * size > enough)
        stops = slow | ~fnp.isfinite(size)
        done = ~stops & ((size == 0) | (rate / (1 - rate) * size < enough))
        new = fnp.where(stops, x, x + change)
        return new, ~(stops | done), done, count + 1, size, rate

    nan = fnp.full_like(enough, fnp.nan)
    start = x, fnp.asarray(True), fnp.asarray(False), np.int32(0), nan, nan
    x, _, done, count, _, rate = lax.while_loop(
        lambda carry: carry[1] & (carry[3] < most), body, start
    )
    return Solved(x, done, count, rate)


def renewed(needed: Any, make: Callable[[], Any], old: Any) -> Any:
    """Returns what is made anew where that is needed, else what there was."""

    def new() -> Any:
        which = fnp.asarray(needed)
        return tree.map(lambda a, b: chosen(which, a, b), make(), old)

    return lax.cond(any_slice(fnp.asarray(needed)), new, lambda: old)


def refined(residual: Callable[[Array], Array], x: Array, matrix: Array) -> Array:
    """Returns a known root with its first and second derivatives.

    Each step of Newton's method, even with a matrix that is fixed, makes derivatives of
    one more order right.

    Args:
      residual: of a vector, 0 at the root.
      x: the root, a constant.
      matrix: the derivative of the residual there, a constant.
    """
    factors = lu_factor(lax.stop_gradient(matrix))
    x = lax.stop_gradient(x)
    for _ in range(2):
        x = x - lu_solve(factors, residual(x))
    return x
