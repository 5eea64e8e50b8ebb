"""A kernel as a module of Triton's IR, for NVIDIA GPUs.

A program of the module is one of the kernel's. Programs along summed axes have partial
sums, which XLA adds; if there are many, one program of the module runs several of them
in a loop and adds what they give.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from fxflow.core.arrays import AbstractRef, Aval
from fxflow.core.ir.graph import Graph, Node, any_node
from fxflow.core.ir.ref_index import WHOLE, Index, Slice
from fxflow.lax.kernels.blocks import ARBITRARY, SUM, Block
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.params import KernelParams, require_covered
from fxflow.lax.kernels.triton_body import BodyWriter, State
from fxflow.lax.kernels.triton_products import LEAST
from fxflow.lax.kernels.triton_refs import Memory, Reference, Registers
from fxflow.lax.kernels.triton_scalars import elementwise
from fxflow.lax.kernels.triton_writer import I32, Tile, Writer, memory_type
from fxflow.lax.kernels.uses import Use, uses_of
from fxflow.lax.remat import CALLS, inlined

#: Programs for which a GPU has work: eight for each of an H200's 132 processors.
_PROGRAMS = 1024
#: Multiplications in a product of float32 for which 8 groups of threads have registers
#: enough, and 4 have not.
_MANY = 1 << 16
#: Most elements of a result in registers whose contents a body also reads.
_REGISTERS = 1 << 14
#: Most bytes of partial sums.
_PARTIAL = 1 << 30
#: Bytes of shared memory for what loops read ahead; an A100 has 163 KiB.
_SHARED = 96 << 10


class TritonModule(NamedTuple):
    """The module of a kernel.

    Attributes:
      name: of its function, whose parameters are pointers to operands and results.
      text: of the module.
      programs: the number of them.
      warps: groups of 32 threads in a program.
      stages: rounds of a loop whose reads are in flight together.
      parts: for each result the number of its partial sums, 0 if it is not a sum.
    """

    name: str
    text: str
    programs: int
    warps: int
    stages: int
    parts: tuple[int, ...]


def triton_module(params: KernelParams, in_avals: Sequence[Aval]) -> TritonModule:
    """Returns a kernel as a module.

    Args:
      params: of the kernel.
      in_avals: types of the operands.

    Raises:
      UnsupportedError: the compiler does not know an operation or a dtype, or programs
        run in order.
    """
    return params.graph.remembered(
        ("triton", params, tuple(in_avals)), lambda: _Module(params, in_avals).written()
    )


class _Module:
    """Writes the module of a kernel."""

    def __init__(self, params: KernelParams, in_avals: Sequence[Aval]) -> None:
        self._p, self._avals = params, [*in_avals, *params.outs]
        self._graph = inlined(params.graph, CALLS)
        products = any_node(self._graph, "has product", _is_product)
        self._w = Writer(LEAST if products else 1)
        self._body = BodyWriter(self._w)
        self._uses = uses_of(self._graph)
        self._summed = [g for g, kind in enumerate(params.kinds) if kind == SUM]
        self._shared = False

    def written(self) -> TritonModule:
        """Returns the module."""
        p, w = self._p, self._w
        _require_parallel(p)
        require_covered(p)
        name = re.sub(r"\W", "_", p.graph.name) or "kernel"
        parallel = math.prod(
            n for n, kind in zip(p.grid, p.kinds, strict=True) if kind != SUM
        )
        self._plan(parallel)
        self._programs()
        stages = 1
        if not self._shared and self._body.in_loops:
            stages = max(1, min(3, _SHARED // self._body.in_loops))
        warps = 4 if w.largest <= 1 << 12 else 8 if w.largest <= 1 << 14 else 16
        if w.exact >= _MANY:
            warps = 8
        kinds = ", ".join(
            f"%a{i}: !tt.ptr<{memory_type(a.dtype)}> {{tt.divisibility = 16 : i32}}"
            for i, a in enumerate(self._avals)
        )
        text = "\n".join(
            [
                "module {",
                f"  tt.func public @{name}({kinds}) {{",
                w.text(),
                "    tt.return",
                "  }",
                "}",
            ]
        )
        programs = parallel * self._chunks
        if programs >= 2**31:
            raise UnsupportedError(f"{programs:,} programs")
        return TritonModule(name, text, programs, warps, stages, self._parts)

    # -- sums --------------------------------------------------------------------------

    def _plan(self, parallel: int) -> None:
        """Decides how many programs along summed axes one program runs."""
        p, sums = self._p, self._p.sums()
        total = math.prod(p.grid[g] for g in self._summed)
        own = [[g for g in self._summed if not b.uses(g)] for b in p.out_blocks]
        plain = all(o == self._summed for o, s in zip(own, sums, strict=True) if s)
        self._in_memory = [
            s and not self._fits_registers(i) for i, s in enumerate(sums)
        ]
        self._chunks = total
        if plain and any(sums) and not any(self._in_memory):
            self._chunks = min(total, max(1, _PROGRAMS // parallel))
            self._rounds = -(-total // self._chunks)
            self._chunks = -(-total // self._rounds)
            counts = [self._chunks] * len(own)
        else:
            self._rounds = 1
            counts = [math.prod(p.grid[g] for g in axes) for axes in own]
        self._own = own
        self._parts = tuple(n if s else 0 for n, s in zip(counts, sums, strict=True))
        for n, aval in zip(self._parts, p.outs, strict=True):
            if n * aval.nbytes > _PARTIAL:
                raise UnsupportedError(
                    f"{n:,} partial sums of {aval}, {n * aval.nbytes:,} bytes"
                )

    def _fits_registers(self, out: int) -> bool:
        return math.prod(self._p.out_blocks[out].seen) <= _REGISTERS

    # -- programs ----------------------------------------------------------------------

    def _programs(self) -> None:
        p, w = self._p, self._w
        rest = w.op("tt.get_program_id x : i32")
        ids: list[str] = [w.number(0)] * len(p.grid)
        chunk, rest = self._digit(rest, self._chunks)
        for g in reversed(range(len(p.grid))):
            if p.kinds[g] != SUM:
                ids[g], rest = self._digit(rest, p.grid[g])
        if self._rounds == 1:
            self._set_summed(ids, chunk)
            totals = self._program(ids, chunk)
        else:
            totals = self._several(ids, chunk)
        for i, total in totals.items():
            self._partial(i, ids, chunk).write(w, WHOLE, [], total, False)

    def _digit(self, number: str, n: int) -> tuple[str, str]:
        """Returns the remainder and the quotient of a number."""
        w = self._w
        if n == 1:
            return w.number(0), number
        size = w.number(n)
        digit = w.op(f"arith.remsi {number}, {size} : i32")
        return digit, w.op(f"arith.divsi {number}, {size} : i32")

    def _set_summed(self, ids: list[str], number: str) -> None:
        for g in reversed(self._summed):
            ids[g], number = self._digit(number, self._p.grid[g])

    def _several(self, ids: list[str], chunk: str) -> dict[int, Tile]:
        """Writes a loop over programs along the summed axes; returns their sums."""
        p, w = self._p, self._w
        total = math.prod(p.grid[g] for g in self._summed)
        start = w.op(f"arith.muli {chunk}, {w.number(self._rounds)} : i32")
        stop = w.op(f"arith.addi {start}, {w.number(self._rounds)} : i32")
        stop = w.op(f"arith.minsi {stop}, {w.number(total)} : i32")
        which = [i for i, s in enumerate(p.sums()) if s]
        first = [w.constant(0, p.out_blocks[i].seen, p.outs[i].dtype) for i in which]

        def round_(number: str, sums: Sequence[Tile]) -> list[Tile]:
            self._set_summed(ids, number)
            found = self._program(ids, chunk)
            return [
                elementwise(w, "add", [x, found[i]], Aval(x.shape, x.dtype), {})
                for x, i in zip(sums, which, strict=True)
            ]

        nothing = State(self._body, [], [])
        after = self._body.loop(start, stop, nothing, first, round_)
        return dict(zip(which, after, strict=True))

    def _program(self, ids: Sequence[str], chunk: str) -> dict[int, Tile]:
        """Writes one program; returns its sums that are in registers, by result."""
        p, w = self._p, self._w
        refs: list[Any] = []
        stores: list[tuple[Memory, Registers]] = []
        totals: dict[int, Registers] = {}
        sums = p.sums()
        first = len(p.grid)
        for i, aval in enumerate(self._avals):
            out = i - p.num_inputs
            use = self._uses[first + i]
            if out >= 0 and sums[out] and self._in_memory[out]:
                block = self._partial(out, ids, chunk)
            elif out >= 0 and sums[out]:
                seen = p.out_blocks[out].seen
                totals[out] = Registers(w.constant(0, seen, aval.dtype))
                refs.append(totals[out])
                continue
            else:
                block = self._window(i, ids)
            if not isinstance(self._graph.inputs[first + i].aval, AbstractRef):
                refs.append(block.read(w, WHOLE, []))
                continue
            if out < 0:
                # What a program writes to an operand stays its own.
                if use.writes:
                    refs.append(Registers(block.read(w, WHOLE, [])))
                else:
                    refs.append(block)
                continue
            refs.append(self._result(out, block, use, stores, ids))
        numbers = [Tile(i, (), I32) for i in ids]
        scratch = [Registers(w.constant(0, a.shape, a.dtype)) for a in p.scratch]
        self._body.run(self._graph, [*numbers, *refs, *scratch])
        for block, ref in stores:
            block.write(w, WHOLE, [], ref.tile, False)
        return {i: ref.tile for i, ref in totals.items()}

    def _result(
        self, out: int, block: Memory, use: Use, stores: Any, ids: Sequence[str]
    ) -> Reference:
        """Returns the reference to a block of a result, with its first contents."""
        p, w = self._p, self._w
        source = {o: i for i, o in p.aliases}.get(out)
        dtype = p.outs[out].dtype
        only_written = use.writes and not use.reads
        if (source is None and only_written and use.covers_first) or (
            self._p.sums()[out]
            or not self._fits_registers(out)
            or (only_written and source is None)
        ):
            if use.reads and not block.is_whole:
                raise UnsupportedError(
                    f"a block of {math.prod(block.shape):,} elements that is read and "
                    "written, and reaches over the end of the array"
                )
            if source is not None:
                raise UnsupportedError("a large result that starts with an operand")
            block.is_shared = use.reads or use.writes > 1 or not use.covers_first
            self._shared |= block.is_shared
            if not use.covers_first:
                self._zeros(block, dtype)
            return block
        ref = Registers(w.constant(0, block.shape, dtype))
        if source is not None:
            ref.tile = self._window(source, ids, p.out_blocks[out]).read(w, WHOLE, [])
        stores.append((block, ref))
        return ref

    def _zeros(self, block: Memory, dtype: Any) -> None:
        """Writes zeros to a block, in parts that fit registers."""
        w, shape = self._w, block.shape
        rows = shape[0] if shape else 1
        each = max(1, _REGISTERS // max(1, math.prod(shape[1:])))
        if rows <= each:
            block.write(w, WHOLE, [], w.constant(0, (), dtype), False)
            return
        each = 1 << (each.bit_length() - 1)
        part = Index((Slice(None, each),))

        def round_(i: str, carry: Sequence[Tile]) -> list[Tile]:
            at = w.op(f"arith.muli {i}, {w.number(each)} : i32")
            block.write(w, part, [Tile(at, (), I32)], w.constant(0, (), dtype), False)
            return []

        count = w.number(-(-rows // each))
        shared, block.is_shared = block.is_shared, False
        self._body.loop(w.number(0), count, State(self._body, [], []), [], round_)
        block.is_shared = shared

    # -- blocks ------------------------------------------------------------------------

    def _window(self, i: int, ids: Sequence[str], block: Block | None = None) -> Memory:
        """Returns a program's block of an array."""
        p, w = self._p, self._w
        aval, block = self._avals[i], block or p.blocks[i]
        if isinstance(block.index, Graph):
            found = self._body.run(block.index, [Tile(n, (), I32) for n in ids])
            at: list[Any] = [w.integer(x).value for x in found]
            most: list[int] = [2**31] * len(at)
        else:
            at = [0 if g is None else ids[g] for g in block.index]
            most = [
                n * (1 if g is None else p.grid[g])
                for g, n in zip(block.index, block.lengths, strict=True)
            ]
        starts = []
        for start, n in zip(at, block.lengths, strict=True):
            if start != 0 and n != 1:
                start = w.op(f"arith.muli {start}, {w.number(n)} : i32")
            starts.append(start)
        fits = [m <= n for m, n in zip(most, aval.shape, strict=True)]
        seen = [d for d in range(len(aval.shape)) if d not in block.squeezed]
        shape = tuple(aval.shape)
        return Memory(
            f"%a{i}",
            shape,
            aval.dtype,
            starts,
            fits,
            seen,
            block.lengths,
            isinstance(block.index, Graph),
        )

    def _partial(self, out: int, ids: Sequence[str], chunk: str) -> Memory:
        """Returns a program's block of a partial sum of a result."""
        p, w = self._p, self._w
        number = chunk
        if self._rounds == 1:
            number = w.number(0)
            for g in self._own[out]:
                number = w.op(f"arith.muli {number}, {w.number(p.grid[g])} : i32")
                number = w.op(f"arith.addi {number}, {ids[g]} : i32")
        whole = self._window(p.num_inputs + out, ids)
        return whole.with_axis_in_front(self._parts[out], number)


def _is_product(node: Node) -> bool:
    return node.primitive.name == "dot_general"


def _require_parallel(p: KernelParams) -> None:
    """Checks that no program sees what another one wrote.

    Raises:
      UnsupportedError: some may.
    """
    for g, (n, kind) in enumerate(zip(p.grid, p.kinds, strict=True)):
        if kind == ARBITRARY and n > 1:
            raise UnsupportedError(f"programs in order (axis {g} of the grid)")
