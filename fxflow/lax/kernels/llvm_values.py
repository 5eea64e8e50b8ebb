"""Values in the compiler of kernels: arrays in memory, and arrays not computed yet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.lax.kernels.llvm_writer import Writer, load, memory_type, store

Shape = tuple[int, ...]
#: Bytes to which memory is aligned.
ALIGNMENT = 64


class Value:
    """An array.

    Attributes:
      shape: its lengths.
      dtype: dtype of its elements.
      steps: how many operations an element takes, about.
      aligned: roots of the memory that an element reads at its own index only.
      other: roots of the memory that it reads elsewhere.
    """

    shape: Shape
    dtype: Any
    steps: int = 0
    aligned: frozenset[str] = frozenset()
    other: frozenset[str] = frozenset()

    @property
    def roots(self) -> frozenset[str]:
        """Roots of all memory that it reads."""
        return self.aligned | self.other

    def at(self, w: Writer, index: Sequence[str]) -> str:
        """Writes what gives an element; returns its register."""
        raise NotImplementedError


class Lazy(Value):
    """An array whose elements are computed where they are used."""

    def __init__(
        self,
        shape: Shape,
        dtype: Any,
        function: Callable[[Writer, Sequence[str]], str],
        steps: int,
        aligned: frozenset[str] = frozenset(),
        other: frozenset[str] = frozenset(),
    ) -> None:
        self.shape: Shape = shape
        self.dtype: Any = dtype
        self.steps: int = steps
        self.aligned: frozenset[str] = aligned
        self.other: frozenset[str] = other
        self._function = function

    def at(self, w: Writer, index: Sequence[str]) -> str:
        """See `Value.at`."""
        return self._function(w, index)


class Buffer(Value):
    """An array in memory.

    Attributes:
      pointer: register with the address of the first element.
      strides: in elements; registers where they are not known.
      root: pointer of the memory that this is a part of.
    """

    pointer: str
    strides: list[int | str]
    root: str

    def __init__(
        self,
        pointer: str,
        shape: Sequence[int],
        strides: Sequence[int | str],
        dtype: Any,
        root: str = "",
    ) -> None:
        self.shape: Shape = tuple(shape)
        self.dtype: Any = dtype
        self.pointer, self.root = pointer, root or pointer
        self.strides = list(strides)
        self.aligned: frozenset[str] = frozenset((self.root,))

    def address(self, w: Writer, index: Sequence[str]) -> str:
        """Writes what gives the address of an element."""
        terms = [w.times(i, s) for i, s in zip(index, self.strides, strict=True)]
        offset = w.sum(*terms)
        if offset == "0":
            return self.pointer
        kind = memory_type(self.dtype)
        return w.op(f"getelementptr inbounds {kind}, ptr {self.pointer}, i64 {offset}")

    def at(self, w: Writer, index: Sequence[str]) -> str:
        """See `Value.at`."""
        return load(w, self.address(w, index), self.dtype)

    def put(self, w: Writer, index: Sequence[str], value: str) -> None:
        """Writes what replaces an element."""
        store(w, value, self.address(w, index), self.dtype)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are adjacent, in order."""
        return self.strides == row_major(self.shape)


def row_major(shape: Sequence[int]) -> list[int]:
    """Returns the strides of adjacent elements, in elements."""
    strides = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return strides[::-1]


class Arena:
    """Memory of a thread for what a program computes.

    Each array is a parameter of the function that computes: LLVM then knows that they
    do not overlap.

    Attributes:
      size: bytes.
      starts: of the arrays.
    """

    size: int

    def __init__(self) -> None:
        self.size = 0
        self.starts: list[int] = []

    def buffer(self, shape: Sequence[int], dtype: Any) -> Buffer:
        """Returns memory for an array."""
        nbytes = math.prod(shape) * int(np.dtype(dtype).itemsize)
        pointer = f"%b{len(self.starts)}"
        self.starts.append(self.size)
        self.size += -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
        return Buffer(pointer, tuple(shape), row_major(shape), dtype)


def computed(w: Writer, value: Value, into: Buffer) -> Buffer:
    """Writes loops that compute all elements of an array into memory."""
    with w.loops(value.shape) as index:
        into.put(w, index, value.at(w, index))
    return into


def constant(dtype: Any, text: str, shape: Shape = ()) -> Lazy:
    """Returns an array of one number, which is in a register."""
    return Lazy(shape, dtype, lambda w, index: text, 0)
