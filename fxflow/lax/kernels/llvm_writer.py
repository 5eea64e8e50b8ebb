"""Writing LLVM's IR: instructions, loops, and numbers in memory and in registers."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.lax.kernels.errors import UnsupportedError


class Writer:
    """The text of a function.

    Attributes:
      lines: of the function's body.
      block: the label of the current basic block.
      used: names of helper functions that it calls.
    """

    block: str

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.block = "entry"
        self.used: dict[str, None] = {}
        self._count = 0
        self._slots: list[str] = []

    def name(self, hint: str = "r") -> str:
        """Returns a new name, without the sign in front."""
        self._count += 1
        return f"{hint}{self._count}"

    def op(self, text: str) -> str:
        """Writes an instruction with a result; returns the result's name."""
        register = f"%{self.name()}"
        self.lines.append(f"  {register} = {text}")
        return register

    def do(self, text: str) -> None:
        """Writes an instruction without a result."""
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        """Begins a basic block."""
        self.lines.append(f"{name}:")
        self.block = name

    def jump(self, name: str) -> None:
        """Goes to a basic block, and begins it."""
        self.do(f"br label %{name}")
        self.label(name)

    def slot(self, kind: str) -> str:
        """Returns a variable on the stack: LLVM keeps it in a register."""
        register = f"%{self.name('slot')}"
        self._slots.append(f"  {register} = alloca {kind}")
        return register

    def text(self) -> str:
        """Returns the body of the function."""
        return "\n".join(["entry:", *self._slots, *self.lines])

    @contextmanager
    def loop(self, count: int | str) -> Iterator[str]:
        """Writes a loop; yields the name of the index, an i64.

        Args:
          count: of rounds, at least one where it is known.
        """
        if count == 1:
            yield "0"
            return
        head, latch, end = self.name("head"), self.name("latch"), self.name("end")
        index, following = f"%{self.name('i')}", f"%{self.name('n')}"
        if isinstance(count, str):
            some = self.op(f"icmp sgt i64 {count}, 0")
            before = self.name("before")
            self.do(f"br i1 {some}, label %{before}, label %{end}")
            self.label(before)
        elif count == 0:
            raise UnsupportedError("a loop of no rounds")
        entry = self.block
        self.jump(head)
        self.do(f"{index} = phi i64 [0, %{entry}], [{following}, %{latch}]")
        yield index
        self.jump(latch)
        self.do(f"{following} = add nuw nsw i64 {index}, 1")
        done = self.op(f"icmp eq i64 {following}, {count}")
        self.do(f"br i1 {done}, label %{end}, label %{head}")
        self.label(end)

    @contextmanager
    def loops(self, counts: Sequence[int | str]) -> Iterator[list[str]]:
        """Writes nested loops; yields the names of the indices."""
        if not counts:
            yield []
            return
        with self.loop(counts[0]) as first, self.loops(counts[1:]) as rest:
            yield [first, *rest]

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Writes instructions that run if an i1 holds."""
        then, end = self.name("then"), self.name("end")
        self.do(f"br i1 {condition}, label %{then}, label %{end}")
        self.label(then)
        yield
        self.jump(end)

    def helper(self, name: str) -> str:
        """Returns the name of a helper function, which the module then has."""
        self.used[name] = None
        return f"@{name}"

    # -- integers ----------------------------------------------------------------------

    def sum(self, *terms: str | int) -> str:
        """Returns a sum of i64s."""
        known = sum(int(t) for t in terms if _is_number(t))
        total = ""
        for term in terms:
            if not _is_number(term):
                total = self.op(f"add i64 {total}, {term}") if total else str(term)
        if not total:
            return str(known)
        return self.op(f"add i64 {total}, {known}") if known else total

    def times(self, x: str | int, y: str | int) -> str:
        """Returns a product of i64s."""
        if _is_number(x) and _is_number(y):
            return str(int(x) * int(y))
        if "0" in (str(x), str(y)):
            return "0"
        if str(x) == "1":
            return str(y)
        return str(x) if str(y) == "1" else self.op(f"mul i64 {x}, {y}")


def _is_number(x: str | int) -> bool:
    return isinstance(x, int) or not x.startswith("%")


# -- numbers ---------------------------------------------------------------------------

_MEMORY = {"f4": "float", "f8": "double", "f2": "half", "b1": "i8"}


def is_half(dtype: Any) -> bool:
    """Returns whether numbers are computed in float32, and rounded."""
    return dtypes.is_floating(dtype) and np.dtype(dtype).itemsize == 2


def memory_type(dtype: Any) -> str:
    """Returns LLVM's type of a number in memory.

    Raises:
      UnsupportedError: the dtype has none.
    """
    dtype = np.dtype(dtype)
    if dtype.name == "bfloat16":
        return "i16"
    if (
        dtype.kind in "iu" and dtype.itemsize in (1, 2, 4, 8) and dtype.name[-1] != "4"
    ) or (dtype.name in ("int64", "uint64")):
        return f"i{8 * dtype.itemsize}"
    found = _MEMORY.get(dtype.kind + str(dtype.itemsize))
    if found is None:
        raise UnsupportedError(f"numbers of {dtype.name}")
    return found


def register_type(dtype: Any) -> str:
    """Returns LLVM's type of a number in a register."""
    if dtypes.is_bool(dtype):
        return "i1"
    return "float" if is_half(dtype) else memory_type(dtype)


def load(w: Writer, pointer: str, dtype: Any) -> str:
    """Loads a number."""
    kind = memory_type(dtype)
    value = w.op(f"load {kind}, ptr {pointer}, align {np.dtype(dtype).itemsize}")
    return from_memory(w, value, dtype)


def from_memory(w: Writer, value: str, dtype: Any) -> str:
    """Returns a number as registers hold it."""
    if dtypes.is_bool(dtype):
        return w.op(f"icmp ne i8 {value}, 0")
    if np.dtype(dtype).name == "bfloat16":
        wide = w.op(f"zext i16 {value} to i32")
        high = w.op(f"shl i32 {wide}, 16")
        return w.op(f"bitcast i32 {high} to float")
    if is_half(dtype):
        return w.op(f"fpext half {value} to float")
    return value


def to_memory(w: Writer, value: str, dtype: Any) -> str:
    """Returns a number as memory holds it."""
    if dtypes.is_bool(dtype):
        return w.op(f"zext i1 {value} to i8")
    if np.dtype(dtype).name == "bfloat16":
        bits = w.op(f"bitcast float {value} to i32")
        shifted = w.op(f"lshr i32 {bits}, 16")
        odd = w.op(f"and i32 {shifted}, 1")
        bias = w.op(f"add i32 {odd}, 32767")
        rounded = w.op(f"add i32 {bits}, {bias}")
        quiet = w.op(f"or i32 {bits}, 4194304")
        nan = w.op(f"fcmp uno float {value}, {value}")
        chosen = w.op(f"select i1 {nan}, i32 {quiet}, i32 {rounded}")
        high = w.op(f"lshr i32 {chosen}, 16")
        return w.op(f"trunc i32 {high} to i16")
    if is_half(dtype):
        return w.op(f"fptrunc float {value} to half")
    return value


def store(w: Writer, value: str, pointer: str, dtype: Any) -> None:
    """Stores a number."""
    kind = memory_type(dtype)
    value = to_memory(w, value, dtype)
    w.do(f"store {kind} {value}, ptr {pointer}, align {np.dtype(dtype).itemsize}")


def rounded(w: Writer, value: str, dtype: Any) -> str:
    """Returns a float32 rounded to a dtype of half precision; others as they are."""
    if not is_half(dtype):
        return value
    return from_memory(w, to_memory(w, value, dtype), dtype)


def literal(value: Any, dtype: Any) -> str:
    """Returns a constant as LLVM writes it."""
    if dtypes.is_bool(dtype):
        return "true" if value else "false"
    if dtypes.is_floating(dtype):
        number = float(value)
        if register_type(dtype) == "float":
            number = float(np.float32(number))
        (bits,) = struct.unpack("<Q", struct.pack("<d", number))
        return f"0x{bits:016X}"
    return str(int(value))
