"""What the body of a kernel may call, besides all other functions of arrays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.ir.ref_index import Slice
from fxflow.core.ir.trace import named_axes
from fxflow.errors import ArgumentError
from fxflow.lax.control_flow.cond import cond
from fxflow.lax.control_flow.fori_loop import fori_loop
from fxflow.lax.dot import dot_general


class _Programs(threading.local):
    """The kernels whose bodies are being traced in a thread, innermost last."""

    def __init__(self) -> None:
        self.stack: list[tuple[Sequence[Any], Sequence[int]]] = []


_programs = _Programs()


@contextmanager
def in_program(ids: Sequence[Any], grid: Sequence[int]) -> Iterator[None]:
    """Says which program the code of a block is of.

    Args:
      ids: of the program.
      grid: the numbers of programs.
    """
    _programs.stack.append((ids, grid))
    # Functions that are traced for one grid are not found traced for another.
    axes = [(f"axis {g} of the grid", n) for g, n in enumerate(grid)]
    known = [(name, n) for name, n in axes if isinstance(n, int)]
    try:
        with named_axes(known):
            yield
    finally:
        _programs.stack.pop()


def _program(what: str, axis: int) -> tuple[Sequence[Any], Sequence[int]]:
    if not _programs.stack:
        raise ArgumentError(f"{what}: called outside of the body of a kernel")
    ids, grid = _programs.stack[-1]
    if not isinstance(axis, int) or not -len(grid) <= axis < len(grid):
        raise ArgumentError(
            f"{what}: axis must be an integer below {len(grid)}, the number of axes of "
            f"the grid, got {axis!r}"
        )
    return ids, grid


def program_id(axis: int) -> Array:
    """Returns which program this is along an axis of the grid.

    Args:
      axis: axis of the grid.

    Returns:
      `s32[]`.

    Raises:
      ArgumentError: there is no such axis, or no kernel.
    """
    ids, _ = _program("program_id", axis)
    found: Array = ids[axis]
    return found


def num_programs(axis: int) -> int:
    """Returns how many programs there are along an axis of the grid.

    Args:
      axis: axis of the grid.

    Returns:
      The number, an int.

    Raises:
      ArgumentError: there is no such axis, or no kernel.
    """
    _, grid = _program("num_programs", axis)
    return grid[axis]


def ds(start: Any, size: int) -> Slice:
    """A part of an axis that starts at a computed element: `ref[ds(start, size)]`.

    Elements past the end of the axis read as zero; writes to them are dropped.

    Args:
      start: an integer, or a 0-d integer array.
      size: the length, an int.

    Returns:
      An index for one axis of a reference.

    Raises:
      ArgumentError: the start is not an integer, or the length is not a positive int.

    Example:
      >>> ref = fxflow.new_ref(fnp.arange(5))
      >>> ref[ds(3, 4)]
      Array([3, 4, 0, 0], dtype=int32)
    """
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ArgumentError(f"ds: size must be a positive int, got {size!r}")
    if isinstance(start, int):
        if start < 0:
            raise ArgumentError(f"ds: start must not be negative, got {start}")
        return Slice(start, size)
    start = fnp.asarray(start)
    if start.ndim or not dtypes.is_integer(start.dtype):
        raise ArgumentError(f"ds: start must be a 0-d integer, got {typeof(start)}")
    return Slice(start, size)


def when(condition: Any) -> Callable[[Callable[[], None]], None]:
    """Runs a function of no arguments if a condition holds; a decorator.

    Args:
      condition: bool[].

    Returns:
      The decorator.

    Example:
      >>> ref = fxflow.new_ref(0)
      >>> @when(ref[...] == 0)
      ... def _():
      ...     ref[...] = 5
      >>> int(ref[...])
      5
    """

    def run(function: Callable[[], None]) -> None:
        def called() -> None:
            function()

        cond(condition, called, lambda: None)

    return run


def loop(lower: Any, upper: Any) -> Callable[[Callable[[Any], None]], None]:
    """Calls a function with each integer of a range; a decorator.

    Args:
      lower, upper: the bounds, ints or 0-d integer arrays.

    Returns:
      The decorator.

    Example:
      >>> ref = fxflow.new_ref(0)
      >>> @loop(0, 4)
      ... def _(i):
      ...     ref[...] += i
      >>> int(ref[...])
      6
    """

    def run(function: Callable[[Any], None]) -> None:
        def step(i: Any, carry: Any) -> Any:
            function(i)
            return carry

        fori_loop(lower, upper, step, None)

    return run


def load(ref: Any, index: Any = ..., *, mask: Any = None, other: Any = 0) -> Array:
    """Returns a part of a reference, with another value where a mask does not hold.

    Args:
      ref: the reference.
      index: of the part.
      mask: bool, broadcasts to the part; None: all of it.
      other: what takes the place of the elements where the mask is False.

    Returns:
      The part.
    """
    value: Array = ref[index]
    return value if mask is None else fnp.where(mask, value, value.dtype.type(other))


def store(ref: Any, index: Any, value: Any, *, mask: Any = None) -> None:
    """Writes to a part of a reference, where a mask holds.

    Args:
      ref: the reference.
      index: of the part.
      value: broadcasts to the part.
      mask: bool, broadcasts to the part; None: all of it.
    """
    ref[index] = value if mask is None else fnp.where(mask, value, ref[index])


def dot(a: Any, b: Any, *, precision: Any = "highest") -> Array:
    """Returns the product of two matrices; sums of half precision are in float32.

    Args:
      a: `[m, k]`.
      b: `[k, n]`.
      precision: see `lax.dot_general`; full precision by default.

    Returns:
      `[m, n]`: `f32` for operands of half precision, else of their dtype.
    """
    kind = typeof(a).dtype
    half = dtypes.is_floating(kind) and kind.itemsize < 4
    result = np.dtype(np.float32) if half else None
    numbers = (((1,), (0,)), ((), ()))
    return dot_general(
        a, b, numbers, precision=precision, preferred_element_type=result
    )


def wide_dtype(dtype: Any) -> Any:
    """Returns the dtype in which numbers, or products of them, are added up.

    Args:
      dtype: of floats.
    """
    return dtypes.float32 if dtype.itemsize < 4 else dtype


def cdiv(a: Any, b: Any) -> Any:
    """Returns `a / b`, rounded up.

    Args:
      a, b: ints or integer arrays.

    Returns:
      An int, or an integer array.

    Example:
      >>> cdiv(7, 2)
      4
    """
    return -(-a // b)
