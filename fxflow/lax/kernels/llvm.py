"""A kernel as a module of LLVM's IR for the CPU.

A task is all programs of one place on the parallel axes of the grid; along the other
axes it runs them in order. Blocks that reach over the end of an array are copied to
memory padded with zeros, and back; others are read and written where they are.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import Aval
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.higher_order import graph_cost
from fxflow.devices.pool import frame
from fxflow.lax.kernels.blocks import PARALLEL, SUM, Block
from fxflow.lax.kernels.in_place import Pair
from fxflow.lax.kernels.llvm_body import BodyWriter
from fxflow.lax.kernels.llvm_functions import helpers
from fxflow.lax.kernels.llvm_products import functions, is_own
from fxflow.lax.kernels.llvm_scalars import scalar
from fxflow.lax.kernels.llvm_values import (
    Arena,
    Buffer,
    computed,
    constant,
    row_major,
)
from fxflow.lax.kernels.llvm_writer import (
    Writer,
    literal,
    memory_type,
)
from fxflow.lax.kernels.params import KernelParams, require_covered
from fxflow.lax.kernels.uses import uses_of

#: Most parts in which programs along a summed axis run: a thread that wakes late leaves
#: small ones to the others. Where the partial sums take much memory, there are fewer.
_CHUNKS, _FEW_CHUNKS, _PARTIAL = 16, 4, 1 << 19
#: Work of a task, in operations and bytes, for which one more thread is worth waking.
_WORK = 50_000.0


class KernelModule(NamedTuple):
    """The module of a kernel.

    Attributes:
      target: the name of the function that XLA calls.
      text: of the module.
      chunks: parts in which programs along a summed axis run; results that are sums
        have one more axis in front, of their partial sums, if there are several.
    """

    target: str
    text: str
    chunks: int = 1


def kernel_module(
    params: KernelParams,
    in_avals: Sequence[Aval],
    lanes: int,
    pairs: Sequence[Pair] = (),
) -> KernelModule:
    """Returns a kernel as a module.

    Args:
      params: of the kernel.
      in_avals: types of the operands.
      lanes: numbers of float32 in a vector of the processor.
      pairs: operands, and the results that have their memory; see `in_place`.

    Returns:
      The module, whose name follows from its text.

    Raises:
      UnsupportedError: the compiler does not know an operation or a dtype.
    """
    return params.graph.remembered(
        ("llvm", params, tuple(in_avals), lanes, tuple(pairs)),
        lambda: _Module(params, in_avals, lanes, pairs).written(),
    )


class _Module:
    """Writes the module of a kernel."""

    def __init__(
        self,
        params: KernelParams,
        in_avals: Sequence[Aval],
        lanes: int,
        pairs: Sequence[Pair],
    ) -> None:
        self._p, self._avals = params, [*in_avals, *params.outs]
        self._w, self._arena = Writer(), Arena()
        self._body = BodyWriter(self._w, self._arena, lanes)
        self._held = {out for _, out in pairs}
        cost = graph_cost(params.pure)
        self._work = (cost["flops"] + cost["bytes"] / 8) * params.num_programs
        self._chunks = self._parts()

    def written(self) -> KernelModule:
        """Returns the module."""
        p = self._p
        require_covered(p)
        self._task()
        tasks = math.prod(p.grid[g] for g in self._axes(parallel=True)) * self._chunks
        threads = int(min(tasks, self._work // _WORK))
        body = "\n".join(
            [
                helpers([name for name in self._w.used if not is_own(name)]),
                functions(self._w.used),
                self._programs(),
            ]
        )
        body = _once(body)
        arrays = len(self._avals)
        size = self._arena.size
        draft = frame("TARGET", arrays, tasks, threads, size) + body
        digest = hashlib.sha256(draft.encode()).hexdigest()[:24]
        target = f"fxflow_kernel_{digest}"
        text = _once(frame(target, arrays, tasks, threads, size) + body)
        return KernelModule(target, text, self._chunks)

    def _parts(self) -> int:
        """Returns the number of parts in which programs along a summed axis run."""
        p = self._p
        summed = [g for g, k in enumerate(p.kinds) if k == SUM]
        tasks = math.prod(p.grid[g] for g in self._axes(parallel=True))
        if not summed or p.is_in_order() or tasks > 1:
            return 1
        outs = zip(p.outs, p.sums(), strict=True)
        nbytes = sum(a.nbytes for a, is_sum in outs if is_sum)
        most = min(_CHUNKS, max(_FEW_CHUNKS, _PARTIAL // max(nbytes, 1)))
        return int(max(1, min(most, p.grid[summed[0]], self._work // _WORK)))

    def _programs(self) -> str:
        """Returns the function of a task, and the one that it calls with addresses."""
        lines, names = [], []
        for i in range(len(self._avals)):
            lines += [
                f"  %p{i} = getelementptr ptr, ptr %arrays, i64 {i}",
                f"  %a{i} = load ptr, ptr %p{i}",
            ]
            names.append(f"%a{i}")
        for i, start in enumerate(self._arena.starts):
            lines.append(f"  %b{i} = getelementptr i8, ptr %arena, i64 {start}")
            names.append(f"%b{i}")
        given = ", ".join(f"ptr noalias {name}" for name in names)
        passed = ", ".join(f"ptr {name}" for name in names)
        return "\n".join(
            [
                f"define internal void @programs(i64 %t, {given}) {{",
                self._w.text(),
                "  ret void",
                "}",
                "define internal void @task(ptr %arrays, ptr noalias %arena, i64 %t) {",
                *lines,
                f"  call void @programs(i64 %t, {passed})",
                "  ret void",
                "}",
            ]
        )

    def _axes(self, *, parallel: bool) -> list[int]:
        kinds = self._p.kinds
        return [g for g, k in enumerate(kinds) if (k == PARALLEL) == parallel]

    def _task(self) -> None:
        """Writes the programs of a task."""
        p, w = self._p, self._w
        arrays = []
        for i, aval in enumerate(self._avals):
            shape = tuple(aval.shape)
            arrays.append(Buffer(f"%a{i}", shape, row_major(shape), aval.dtype))
        ids: list[str] = ["0"] * len(p.grid)
        rest = "%t"
        chunk = "0"
        if self._chunks > 1:
            chunk = w.op(f"urem i64 {rest}, {self._chunks}")
            rest = w.op(f"udiv i64 {rest}, {self._chunks}")
            for i, summed in enumerate(p.sums()):
                if summed:
                    whole = arrays[p.num_inputs + i]
                    offset = w.times(chunk, math.prod(whole.shape))
                    kind = memory_type(whole.dtype)
                    whole.pointer = w.op(
                        f"getelementptr {kind}, ptr {whole.pointer}, i64 {offset}"
                    )
        for g in reversed(self._axes(parallel=True)):
            ids[g] = w.op(f"urem i64 {rest}, {p.grid[g]}")
            rest = w.op(f"udiv i64 {rest}, {p.grid[g]}")
        loops = self._axes(parallel=False)
        scratch = [self._arena.buffer(a.shape, a.dtype) for a in p.scratch]
        for buffer in scratch:
            _fill(w, buffer)
        first = self._first_contents()
        counts: list[int | str] = [p.grid[g] for g in loops]
        start = "0"
        if self._chunks > 1:
            # The chunk's part of the first summed axis.
            at = next(i for i, g in enumerate(loops) if p.kinds[g] == SUM)
            most = -(-p.grid[loops[at]] // self._chunks)
            start = w.times(chunk, most)
            left = w.op(f"sub i64 {p.grid[loops[at]]}, {start}")
            w.helper("llvm.smin.i64")
            counts[at] = w.op(f"call i64 @llvm.smin.i64(i64 {left}, i64 {most})")
            loops = [loops[at], *loops[:at], *loops[at + 1 :]]
            counts = [counts[at], *counts[:at], *counts[at + 1 :]]

        def use(numbers: Sequence[str]) -> None:
            for g, number in zip(loops, numbers, strict=True):
                ids[g] = number
            if self._chunks > 1:
                ids[loops[0]] = w.sum(numbers[0], start)

        sums = p.sums()
        if self._chunks > 1:
            for i, summed in enumerate(sums):
                if summed:
                    _fill(w, arrays[p.num_inputs + i])
        else:
            # Programs of one task may see what others of it wrote.
            early = [i for i in first if sums[i] or p.is_in_order()]
            with w.loops(counts if early else []) as numbers:
                use(numbers if early else ["0"] * len(loops))
                for i in early:
                    self._begin(arrays, i, ids)
        late = [i for i in first if not (sums[i] or p.is_in_order())]
        with w.loops(counts) as numbers:
            use(numbers)
            for i in late:
                self._begin(arrays, i, ids)
            self._program(arrays, scratch, ids)

    def _first_contents(self) -> list[int]:
        """Returns the results whose blocks have contents before the first program."""
        p = self._p
        keeps, sums = p.keeps_contents(), p.sums()
        _, _, uses, _ = p.split(uses_of(p.graph))
        return [
            i
            for i, use in enumerate(uses)
            if keeps[i] or sums[i] or p.is_in_order() or not use.covers_first
            if i not in self._held
        ]

    def _begin(self, arrays: Sequence[Buffer], i: int, ids: Sequence[str]) -> None:
        """Writes the first contents of a program's block of a result."""
        p, w = self._p, self._w
        block = p.out_blocks[i]
        target = self._window(arrays[p.num_inputs + i], block, ids)
        source = {out: operand for operand, out in p.aliases}.get(i)
        zero = constant(p.outs[i].dtype, literal(0, p.outs[i].dtype))
        start = target.view
        value: Any = zero
        if source is not None:
            value = self._window(arrays[source], block, ids).view
        with w.loops(target.lengths) as index, w.when(target.inside(w, index)):
            start.put(w, index, value.at(w, index if source is not None else []))

    def _program(
        self, arrays: Sequence[Buffer], scratch: Sequence[Buffer], ids: Sequence[str]
    ) -> None:
        """Writes one program."""
        p, w = self._p, self._w
        numbers = [constant(np.dtype(np.int32), _truncated(w, i)) for i in ids]
        values: list[Any] = []
        after: list[tuple[Buffer, _Window, bool]] = []
        sums = p.sums()
        written = _operands_written(p)
        for i, (array, block) in enumerate(zip(arrays, p.blocks, strict=True)):
            window = self._window(array, block, ids)
            out = i - p.num_inputs
            summed = out >= 0 and sums[out]
            if not summed and window.is_whole and i not in written:
                values.append(window.seen(window.view))
                continue
            room = self._arena.buffer(window.lengths, array.dtype)
            if summed:
                _fill(w, room)
            else:
                window.copy_in(w, room)
            values.append(window.seen(room))
            if out >= 0:
                after.append((room, window, summed))
        first = len(numbers) + p.num_inputs
        _, _, uses, _ = p.split(uses_of(p.graph))
        last = {first + i for i in self._held if uses[i].writes == 1}
        self._body.run(p.graph, [*numbers, *values, *scratch], last)
        for room, window, summed in after:
            window.copy_out(w, room, added=summed)

    def _window(self, array: Buffer, block: Block, ids: Sequence[str]) -> _Window:
        """Returns the block of a program in an array."""
        w = self._w
        if isinstance(block.index, Graph):
            numbers = [constant(np.dtype(np.int32), _truncated(w, i)) for i in ids]
            found = self._body.run(block.index, numbers)
            at: list[str] = []
            for value in found:
                register = value.at(w, [])
                at.append(w.op(f"sext i32 {register} to i64"))
        else:
            at = ["0" if g is None else ids[g] for g in block.index]
        starts = [w.times(i, n) for i, n in zip(at, block.lengths, strict=True)]
        grid = self._p.grid
        whole = []
        for k, (n, length) in enumerate(zip(array.shape, block.lengths, strict=True)):
            if isinstance(block.index, Graph):
                whole.append(False)
                continue
            g = block.index[k]
            most = length if g is None else length * grid[g]
            whole.append(most <= n)
        return _Window(w, array, block, starts, whole)


class _Window:
    """The block of a program in an array.

    Attributes:
      lengths: of the block, squeezed axes included.
      view: the block where it is in the array.
      is_whole: whether it never reaches over an end of the array.
    """

    def __init__(
        self,
        w: Writer,
        array: Buffer,
        block: Block,
        starts: Sequence[str],
        whole: Sequence[bool],
    ) -> None:
        self.lengths, self._block, self._whole = block.lengths, block, whole
        self.is_whole = all(whole)
        self._bounds = []
        for start, n, fits in zip(starts, array.shape, whole, strict=True):
            self._bounds.append((start, n, fits))
        offset = w.sum(
            *(w.times(s, k) for s, k in zip(starts, array.strides, strict=True))
        ) if starts else "0"  # fmt: skip
        kind = memory_type(array.dtype)
        pointer = array.pointer
        if offset != "0":
            pointer = w.op(f"getelementptr {kind}, ptr {pointer}, i64 {offset}")
        self.view = Buffer(
            pointer, block.lengths, array.strides, array.dtype, array.root
        )

    def seen(self, buffer: Buffer) -> Buffer:
        """Returns a buffer of the block without squeezed axes."""
        kept = [i for i in range(len(self.lengths)) if i not in self._block.squeezed]
        return Buffer(
            buffer.pointer,
            [self.lengths[i] for i in kept],
            [buffer.strides[i] for i in kept],
            buffer.dtype,
            buffer.root,
        )

    def inside(self, w: Writer, index: Sequence[str]) -> str:
        """Returns an i1: whether an element of the block is in the array."""
        found = ""
        for i, (start, n, fits) in zip(index, self._bounds, strict=True):
            if fits:
                continue
            at = w.sum(i, start)
            for test in (f"icmp sge i64 {at}, 0", f"icmp slt i64 {at}, {n}"):
                here = w.op(test)
                found = w.op(f"and i1 {found}, {here}") if found else here
        return found or "true"

    def copy_in(self, w: Writer, room: Buffer) -> None:
        """Writes a copy of the block, with zeros past the ends."""
        if not self.is_whole:
            _fill(w, room)
        with w.loops(self.lengths) as index, w.when(self.inside(w, index)):
            room.put(w, index, self.view.at(w, index))

    def copy_out(self, w: Writer, room: Buffer, *, added: bool) -> None:
        """Writes what a program left back to the array, or adds it."""
        with w.loops(self.lengths) as index, w.when(self.inside(w, index)):
            value = room.at(w, index)
            if added:
                value = _added(w, self.view.at(w, index), value, room.dtype)
            self.view.put(w, index, value)


def _added(w: Writer, x: str, y: str, dtype: Any) -> str:
    aval = Aval((), dtype)
    return scalar(w, "add", [x, y], [aval, aval], aval, {})


def _fill(w: Writer, buffer: Buffer) -> None:
    """Writes zeros to memory."""
    zero = literal(0, buffer.dtype)
    computed(w, constant(buffer.dtype, zero, buffer.shape), buffer)


def _truncated(w: Writer, number: str) -> str:
    return number if not number.startswith("%") else w.op(f"trunc i64 {number} to i32")


def _operands_written(p: KernelParams) -> set[int]:
    """Returns the positions of operands that the body writes to."""
    _, uses, _, _ = p.split(uses_of(p.graph))
    return {i for i, use in enumerate(uses) if use.writes}


def _once(text: str) -> str:
    """Returns a module's text with each declaration once."""
    seen: set[str] = set()
    lines = []
    for line in text.split("\n"):
        if line.startswith("declare "):
            name = line[: line.index("(")]
            if name in seen:
                continue
            seen.add(name)
        lines.append(line)
    return "\n".join(lines)
