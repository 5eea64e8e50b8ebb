"""Extrema in NumPy, with the zeros that XLA gives.

To XLA +0 is larger than -0, as in IEEE 754-2019's `maximum`; which of the two NumPy
takes depends on the loop that it happens to run. Results without a zero, and integers,
cost one look.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# Up to this size `count_nonzero` takes less time than a reduction, which is vectorized.
_SMALL = 4096


def may_hold_zeros(x: Any) -> bool:
    """Returns whether an array or scalar is of floats and has a zero."""
    if x.dtype.kind in "biu":
        return False
    if not x.ndim:
        return bool(x == 0)
    if x.size <= _SMALL:
        return bool(np.count_nonzero(x) < x.size)
    return not bool(np.logical_and.reduce(x, None))


def winners(x: Any, larger: bool) -> Any:
    """Returns where x is the zero that wins: +0 as the larger, -0 as the smaller."""
    return np.equal(x, 0) & (np.signbit(x) != larger)


def settled(out: Any, won: Any, larger: bool) -> Any:
    """Returns an extremum whose zeros have the sign they should have.

    Args:
      out: the extremum, with zeros of any sign.
      won: where one of the elements was the zero that wins.
      larger: whether it is a maximum.
    """
    zero = np.zeros((), out.dtype)
    plus, minus = zero, np.negative(zero)
    chosen = np.where(won, plus, minus) if larger else np.where(won, minus, plus)
    return np.where(np.equal(out, 0), chosen, out)


def maximum(x: Any, y: Any) -> Any:
    """Returns the larger of two."""
    out = np.maximum(x, y)
    if not y.ndim and y.dtype.kind == "f":
        bound = y.item()
        if bound != 0:
            return out
        if math.copysign(1.0, bound) > 0:  # as of every relu
            return np.add(out, y)
    return _settled_pair(out, x, y, True) if may_hold_zeros(out) else out


def minimum(x: Any, y: Any) -> Any:
    """Returns the smaller of two."""
    out = np.minimum(x, y)
    if not y.ndim and y.dtype.kind == "f" and y.item() != 0:
        return out
    return _settled_pair(out, x, y, False) if may_hold_zeros(out) else out


def _settled_pair(out: Any, x: Any, y: Any, larger: bool) -> Any:
    return settled(out, winners(x, larger) | winners(y, larger), larger)
