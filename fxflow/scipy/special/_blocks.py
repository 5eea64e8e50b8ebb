"""Elementwise functions of several methods, computed in blocks of similar elements.

A program for whole arrays runs each method on all elements, and each loop as often as
the slowest element needs. Sorted by method and number of steps, and in blocks that fit
into the fastest cache, elements run the methods and the steps of their block. Programs
for other devices, or for several, are for whole arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import dtypes
from fxflow.lax.control_flow.platform_dependent import on_one_cpu
from fxflow.numpy._operands import convert

#: Elements of a block, as long as there are not too many blocks: where
#: parallel, few large ones are faster.
BLOCK = 512
_MOST_BLOCKS = 256


def in_blocks(function: Callable[..., Any], key: Callable[..., Any], *args: Any) -> Any:
    """Calls an elementwise function with blocks of similar elements.

    Args:
      function: of arrays of one shape; returns a pytree of arrays of that shape.
      key: of the same arrays: what methods and how many steps an element needs, a whole
        number of 32 bits. Elements of close keys share a block.
      *args: arrays of one shape.
    """
    if args[0].aval.size <= BLOCK:
        return function(*args)
    return on_one_cpu(functools.partial(_by_blocks, function, key), function, *args)


def _by_blocks(
    function: Callable[..., Any], key: Callable[..., Any], *args: Any
) -> Any:
    shape, count = args[0].aval.shape, args[0].aval.size
    flat = [fnp.reshape(a, (count,)) for a in args]
    # Sorts of integers are fast; XLA's scatter on CPUs is not, so back by another one.
    order = fnp.argsort(convert(lax.stop_gradient(key(*flat)), dtypes.int32))
    back = fnp.argsort(order)
    size = max(BLOCK, -(-count // _MOST_BLOCKS))
    blocks = -(-count // size)
    # The last block repeats the last element.
    order = fnp.pad(order, (0, blocks * size - count), mode="edge")
    order = fnp.reshape(order, (blocks, size))
    rows = [fnp.take(a, order, axis=0, mode="clip") for a in flat]
    out = lax.map(lambda row: function(*row), rows)

    def placed(a: Any) -> Any:
        a = fnp.reshape(a, (blocks * size,))
        return fnp.reshape(fnp.take(a, back, axis=0, mode="clip"), shape)

    return tree.map(placed, out)


def where_needed(
    mask: Any, function: Callable[..., Any], count: int, *args: tuple[Any, float]
) -> Any:
    """Calls an elementwise function only if some element needs it.

    Args:
      mask: which elements do.
      function: of arrays, returns a tuple of arrays of that shape.
      count: how many.
      *args: arrays, and numbers that are given in their place where `mask` is false.

    Returns:
      The results; for elements that do not need them they are arbitrary, but finite.
    """
    given = [fnp.where(mask, a, other) for a, other in args]
    nothing = lambda *given: (0 * given[0],) * count
    return lax.cond(fnp.any(mask), lambda *g: tuple(function(*g)), nothing, *given)
