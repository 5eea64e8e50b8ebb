"""Text of Triton's IR (the dialects `tt`, `arith`, `math` and `scf` of MLIR).

An array is a tensor in registers whose lengths are powers of two. What is behind the
end of an axis holds any number: reductions, products and writes leave it out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.lax.kernels.errors import UnsupportedError

Shape = tuple[int, ...]
I32, I64 = np.dtype(np.int32), np.dtype(np.int64)
F32, BOOL = np.dtype(np.float32), np.dtype(np.bool_)
#: How a bool is stored.
BYTE = np.dtype(np.int8)
#: Most elements of a tensor: more do not fit the registers of a program.
MOST = 1 << 16
_FLOATS = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}


def element_type(dtype: Any) -> str:
    """Returns the type of a number in registers.

    Raises:
      UnsupportedError: there is none.
    """
    dtype = np.dtype(dtype)
    if dtypes.is_bool(dtype):
        return "i1"
    if dtype.name in _FLOATS:
        return _FLOATS[dtype.name]
    if not dtypes.is_integer(dtype) or dtype.name not in dtypes_of_integers:
        raise UnsupportedError(f"the dtype {dtype.name}")
    return f"i{8 * dtype.itemsize}"


dtypes_of_integers: frozenset[str] = frozenset(
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
)


def memory_type(dtype: Any) -> str:
    """Returns the type of a number in memory, where a bool is a byte."""
    return "i8" if dtypes.is_bool(dtype) else element_type(dtype)


def is_half(dtype: Any) -> bool:
    """Returns whether numbers of a dtype are computed in float32."""
    return np.dtype(dtype).name in ("float16", "bfloat16")


def literal(value: Any, dtype: Any) -> str:
    """Returns a constant as MLIR writes it; floats by their bits."""
    if dtypes.is_bool(dtype):
        return "true" if value else "false"
    dtype = np.dtype(dtype)
    if dtypes.is_floating(dtype):
        with np.errstate(over="ignore"):
            number = np.asarray(value).astype(dtype)
        bits = number.view(f"u{dtype.itemsize}")
        return f"0x{int(bits):0{2 * dtype.itemsize}X}"
    return str(int(np.asarray(value).astype(dtype).view(f"i{dtype.itemsize}")))


def typed_as(shape: Sequence[int], element: str) -> str:
    """Returns the type of a tensor of exactly these lengths."""
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


class Tile:
    """An array in registers.

    Attributes:
      value: its name in the text.
      shape: without the padding; a number has none.
      dtype: dtype of its elements.
      ramp: (start, step) if element i along its only axis is start + i * step, where
        start is a number's name.
    """

    __slots__ = ("dtype", "ramp", "shape", "value")

    shape: tuple[int, ...]
    value: str

    def __init__(
        self, value: str, shape: Sequence[int], dtype: Any, ramp: Any = None
    ) -> None:
        self.value, self.shape = value, tuple(shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.ramp: tuple[str, int] | None = ramp


class Results(NamedTuple):
    """Names of the results of an operation.

    Attributes:
      head: what is written in front of the operation.
      names: one for each result.
    """

    head: str
    names: list[str]


def _listed(kinds: Sequence[str]) -> str:
    return kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"


class Writer:
    """Writes a function.

    Args:
      least: the least length of an axis that is not 1.

    Attributes:
      largest: the most elements of a tensor so far.
      loaded: bytes of all reads so far.
      exact: the most multiplications in a product of float32 so far.
    """

    largest: int
    loaded: int

    def __init__(self, least: int = 1) -> None:
        self._least, self.largest, self.loaded = least, 1, 0
        self.exact = 0
        self._first: list[str] = []
        self._lines: list[str] = []
        self._constants: dict[str, str] = {}
        #: Names of operations in the regions around what is written, outermost first.
        self._known: list[dict[str, str]] = [{}]
        self._count = 0

    # -- shapes and types --------------------------------------------------------------

    def padded(self, shape: Sequence[int]) -> Shape:
        """Returns lengths as powers of two.

        Raises:
          UnsupportedError: an array is empty, or it does not fit the registers.
        """
        if 0 in shape:
            raise UnsupportedError("an empty array")
        found = tuple(
            1 if n == 1 else max(self._least, 1 << (n - 1).bit_length()) for n in shape
        )
        size = math.prod(found)
        if size > MOST:
            raise UnsupportedError(
                f"an array of {size:,} elements in one program (at most {MOST:,})"
            )
        self.largest = max(self.largest, size)
        return found

    def type(self, shape: Sequence[int], dtype: Any) -> str:
        """Returns the type of an array in registers."""
        return self.typed(shape, element_type(dtype))

    def typed(self, shape: Sequence[int], element: str) -> str:
        """Returns the type of a tensor, or of a number, of a given element type."""
        if not len(shape):
            return element
        return typed_as(self.padded(shape), element)

    def of(self, x: Tile) -> str:
        """Returns the type of an array in registers."""
        return self.type(x.shape, x.dtype)

    # -- lines -------------------------------------------------------------------------

    def name(self) -> str:
        """Returns an unused name."""
        self._count += 1
        return f"%{self._count}"

    def do(self, line: str) -> None:
        """Writes a line."""
        self._lines.append(line)

    def op(self, line: str) -> str:
        """Writes an operation with one result, once; returns the result's name."""
        for known in self._known:
            if line in known:
                return known[line]
        name = self.name()
        self._lines.append(f"{name} = {line}")
        # What is read may have been written in between.
        if not line.startswith("tt.load"):
            self._known[-1][line] = name
        return name

    def first(self, line: str) -> str:
        """Writes an operation at the start of the function, once."""
        if line not in self._constants:
            name = self._constants[line] = self.name()
            self._first.append(f"{name} = {line}")
        return self._constants[line]

    @contextmanager
    def region(self) -> Iterator[list[str]]:
        """Collects lines for a region of an operation in a list."""
        before, self._lines = self._lines, []
        self._known.append({})
        try:
            yield self._lines
        finally:
            self._lines = before
            self._known.pop()

    def nested(self, lines: Sequence[str]) -> None:
        """Writes the lines of a region."""
        self._lines += [f"  {line}" for line in lines]

    def text(self) -> str:
        """Returns the lines."""
        return "\n".join(f"    {line}" for line in (*self._first, *self._lines))

    def reduce(
        self,
        xs: Sequence[Tile],
        axis: int,
        kinds: Sequence[str],
        combine: Callable[[Sequence[str], Sequence[str]], list[str]],
    ) -> list[str]:
        """Writes a reduction of several arrays of one shape together.

        Args:
          xs: the arrays.
          axis: axis of the arrays.
          kinds: types of the results.
          combine: writes how two elements of each become one.
        """
        return self._combined("reduce", f"axis = {axis} : i32", xs, kinds, combine)

    def scan(self, x: Tile, axis: int, reverse: bool, combine: Any) -> str:
        """Writes a running reduction along an axis; see `reduce`."""
        how = f"axis = {axis} : i32, reverse = {str(bool(reverse)).lower()}"
        return self._combined("scan", how, [x], [self.of(x)], combine)[0]

    def _combined(
        self,
        name: str,
        how: str,
        xs: Sequence[Tile],
        kinds: Sequence[str],
        combine: Any,
    ) -> list[str]:
        elements = [element_type(x.dtype) for x in xs]
        first, second = [self.name() for _ in xs], [self.name() for _ in xs]
        with self.region() as lines:
            results = combine(first, second)
        given = zip((*first, *second), (*elements, *elements), strict=True)
        values = ", ".join(x.value for x in xs)
        outs = self.results(len(xs))
        self.do(f'{outs.head}"tt.{name}"({values}) <{{{how}}}> ({{')
        self.do(f"^bb0({', '.join(f'{v}: {t}' for v, t in given)}):")
        self.nested(lines)
        self.do(f"  tt.{name}.return {', '.join(results)} : {', '.join(elements)}")
        types = ", ".join(self.of(x) for x in xs)
        self.do(f"}}) : ({types}) -> {_listed(kinds)}")
        return outs.names

    def results(self, count: int) -> Results:
        """Returns names for an operation's results."""
        if not count:
            return Results("", [])
        name = self.name()
        if count == 1:
            return Results(f"{name} = ", [name])
        return Results(f"{name}:{count} = ", [f"{name}#{i}" for i in range(count)])

    # -- values ------------------------------------------------------------------------

    def number(self, value: Any, dtype: Any = I32) -> str:
        """Returns a constant number."""
        kind = element_type(dtype)
        text = literal(value, dtype)
        if kind == "i1":
            return self.first(f"arith.constant {text}")
        return self.first(f"arith.constant {text} : {kind}")

    def full(self, value: Any, shape: Sequence[int], dtype: Any) -> str:
        """Returns a constant array, or number."""
        if not len(shape):
            return self.number(value, dtype)
        kind = self.type(shape, dtype)
        return self.first(f"arith.constant dense<{literal(value, dtype)}> : {kind}")

    def constant(self, value: Any, shape: Sequence[int], dtype: Any) -> Tile:
        """Returns a constant array, or number."""
        return Tile(self.full(value, shape, dtype), shape, dtype)

    def iota(self, shape: Sequence[int], axis: int) -> str:
        """Returns the position of each element along an axis, as i32."""
        padded = self.padded(shape)
        n = padded[axis]
        if n == 1:
            return self.full(0, shape, I32)
        value = self.first(
            f"tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32>"
        )
        if len(shape) == 1:
            return value
        thin = tuple(n if i == axis else 1 for i in range(len(shape)))
        old, new = f"tensor<{n}xi32>", f"tensor<{'x'.join(map(str, thin))}xi32>"
        value = self.first(f"tt.reshape {value} : {old} -> {new}")
        if thin == padded:
            return value
        return self.first(f"tt.broadcast {value} : {new} -> {self.type(shape, I32)}")

    def splat(self, value: str, shape: Sequence[int], element: str) -> str:
        """Returns an array of one number, whose element type is given."""
        if not len(shape):
            return value
        return self.op(f"tt.splat {value} : {element} -> {self.typed(shape, element)}")

    def spread(self, x: Tile, shape: Sequence[int]) -> str:
        """Returns a number, or an array with axes of length 1, in another shape."""
        if x.shape == tuple(shape):
            return x.value
        if not x.shape:
            return self.splat(x.value, shape, element_type(x.dtype))
        new = self.type(shape, x.dtype)
        if self.padded(x.shape) == self.padded(shape):
            return x.value
        return self.op(f"tt.broadcast {x.value} : {self.of(x)} -> {new}")

    def both(self, x: str, y: str, shape: Sequence[int]) -> str:
        """Returns where two masks hold; either may be empty."""
        if not x or not y:
            return x or y
        return self.op(f"arith.andi {x}, {y} : {self.type(shape, BOOL)}")

    def below(
        self, index: str, bound: Any, shape: Sequence[int], dtype: Any = I32
    ) -> str:
        """Returns a mask: where an index is less than a constant."""
        return self.op(
            f"arith.cmpi slt, {index}, {self.full(bound, shape, dtype)} : "
            f"{self.type(shape, dtype)}"
        )

    def inside(self, shape: Sequence[int], axes: Sequence[int] | None = None) -> str:
        """Returns a mask of what is not padding along axes; empty without padding."""
        found = ""
        padded = self.padded(shape)
        for axis in range(len(shape)) if axes is None else axes:
            if padded[axis] != shape[axis]:
                at = self.iota(shape, axis)
                found = self.both(found, self.below(at, shape[axis], shape), shape)
        return found

    def select(self, mask: str, x: str, y: str, kind: str) -> str:
        """Returns elements of one value where a mask holds, and those of another.

        Args:
          mask: of the shape of the values.
          x: where it holds.
          y: elsewhere.
          kind: type of the values.
        """
        if not kind.startswith("tensor"):
            return self.op(f"arith.select {mask}, {x}, {y} : {kind}")
        masks = f"{kind[: kind.rindex('x') + 1]}i1>"
        return self.op(f"arith.select {mask}, {x}, {y} : {masks}, {kind}")

    def masked(self, x: Tile, axes: Sequence[int], other: Any) -> str:
        """Returns an array with another number in the padding along some axes."""
        mask = self.inside(x.shape, axes)
        if not mask:
            return x.value
        return self.select(
            mask, x.value, self.full(other, x.shape, x.dtype), self.of(x)
        )

    def wide(self, x: Tile) -> str:
        """Returns an integer array as i32, or i64 if it has 64 bits."""
        bits = 8 * x.dtype.itemsize
        if bits == 64 or x.dtype == I32:
            return x.value
        sign = "extui" if not dtypes.is_signed(x.dtype) else "extsi"
        if bits == 32:
            return x.value
        return self.op(
            f"arith.{sign} {x.value} : {self.of(x)} to {self.type(x.shape, I32)}"
        )

    def integer(self, x: Tile) -> Tile:
        """Returns integers as i32; larger ones saturate, so that they stay outside."""
        dtype = x.dtype
        if dtype.itemsize < 4 or dtype == I32:
            return Tile(self.wide(x), x.shape, I32, x.ramp)
        kind, signed = self.of(x), dtypes.is_signed(dtype)
        most = self.full(2**31 - 1, x.shape, dtype)
        value = self.op(
            f"arith.min{'s' if signed else 'u'}i {x.value}, {most} : {kind}"
        )
        if dtype.itemsize == 4:
            return Tile(value, x.shape, I32)
        if signed:
            least = self.full(-(2**31), x.shape, dtype)
            value = self.op(f"arith.maxsi {value}, {least} : {kind}")
        value = self.op(f"arith.trunci {value} : {kind} to {self.type(x.shape, I32)}")
        return Tile(value, x.shape, I32)
