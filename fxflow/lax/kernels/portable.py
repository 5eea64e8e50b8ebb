"""A kernel as operations on arrays, which any platform runs and any derivative takes.

Axes of the grid whose blocks do not overlap become axes of the arrays: an operand is
reshaped into its blocks, and the body is vectorized over them or, where that would take
much memory, called in a loop. The other axes of the grid are a loop that carries the
results: those that run in order, and those by which a graph chooses blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, typeof
from fxflow.core.interpreters.batching import batch_graph, mapped_type
from fxflow.core.ir.arith import constant, zeros
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.staging import trace_closed
from fxflow.lax.axis_order import transpose
from fxflow.lax.control_flow.scan import scan
from fxflow.lax.creation import iota
from fxflow.lax.dynamic_slicing import dynamic_slice, dynamic_update_slice
from fxflow.lax.elementwise import add, mul
from fxflow.lax.kernels.blocks import ID, Block
from fxflow.lax.kernels.params import KernelParams
from fxflow.lax.padding import pad
from fxflow.lax.reduction import reduce_sum
from fxflow.lax.reshaping import reshape

#: Vectorized programs have at most this many bytes of intermediate results together.
MAX_BYTES = 16 << 20


def portable(params: KernelParams, in_avals: Sequence[Aval]) -> Graph:
    """Returns a kernel as a graph of arrays.

    Args:
      params: of the kernel.
      in_avals: types of its operands.

    Returns:
      A graph from the operands to the results.
    """
    key = ("portable", params, tuple(in_avals))
    return params.graph.remembered(
        key,
        lambda: trace_closed(
            lambda *operands: _run(params, operands), in_avals, name=params.graph.name
        ),
    )


def _run(params: KernelParams, operands: Sequence[Any]) -> list[Any]:
    """Runs a kernel on arrays."""
    if 0 in params.grid:
        return params.initial(operands)
    mapped = params.mapped_axes()
    inputs = [
        Division(b, typeof(x).shape, params.grid, mapped)
        for b, x in zip(params.in_blocks, operands, strict=True)
    ]
    outputs = [
        Division(b, a.shape, params.grid, mapped)
        for b, a in zip(params.out_blocks, params.outs, strict=True)
    ]
    keeps = params.keeps_contents()
    start = [
        division.divide(x)
        for division, x, kept in zip(
            outputs, params.initial(operands), keeps, strict=True
        )
        if kept
    ]
    values = [
        *(iota(np.int32, params.grid[g]) for g in mapped),
        *(d.divide(x) for d, x in zip(inputs, operands, strict=True)),
        *start,
    ]
    given = [d for d, kept in zip(outputs, keeps, strict=True) if kept]
    graph = _one_program(params, mapped, inputs, outputs, [typeof(x) for x in operands])
    nbytes = _nbytes(graph)
    for position in reversed(range(len(mapped))):
        g = mapped[position]
        ids = [i == position for i in range(len(mapped))]
        flags = [*ids, *(g in d.front for d in (*inputs, *given))]
        summed = [g not in d.front for d in outputs]
        loops = nbytes * params.grid[g] > MAX_BYTES
        over = _looped if loops else _vectorized
        graph = over(graph, params.grid[g], flags, summed)
        nbytes *= 1 if loops else params.grid[g]
    results = graph.evaluate(*values)
    return [d.join(x) for d, x in zip(outputs, results, strict=True)]


class Division:
    """An array, laid out for the axes of the grid that are mapped.

    Args:
      block: of a program.
      shape: shape of the array.
      grid: lengths of its axes.
      mapped: axes of the grid that are mapped.

    Attributes:
      front: the mapped axes that count blocks of the array, in order: its leading axes
        when it is divided.
      inner: the shape behind those: a block, but whole axes where a loop chooses it.
    """

    block: Block
    shape: tuple[int, ...]
    grid: Sequence[int]
    front: list[int]
    inner: tuple[int, ...]

    def __init__(
        self,
        block: Block,
        shape: Sequence[int],
        grid: Sequence[int],
        mapped: Sequence[int],
    ) -> None:
        self.block, self.shape, self.grid = block, tuple(shape), grid
        axes = block.axes or (None,) * len(shape)
        self._of = tuple(g if g in mapped else None for g in axes)
        self.front = sorted(g for g in self._of if g is not None)
        chosen = [block.axes is None or g is not None for g in axes]
        self._chosen = [c and m is None for c, m in zip(chosen, self._of, strict=True)]
        self.inner = tuple(
            max(-(-n // length), 1) * length if looped else length
            for n, length, looped in zip(
                shape, block.lengths, self._chosen, strict=True
            )
        )

    @property
    def _split(self) -> list[int]:
        """The lengths of all axes, those that are mapped as two."""
        found = []
        for g, n in zip(self._of, self.inner, strict=True):
            found += [n] if g is None else [self.grid[g], n]
        return found

    @property
    def _order(self) -> list[int]:
        """The axes of `_split`, mapped ones in front."""
        counts: dict[int, int] = {}
        rest = []
        position = 0
        for g in self._of:
            if g is not None:
                counts[g] = position
                position += 1
            rest.append(position)
            position += 1
        return [*(counts[g] for g in self.front), *rest]

    def divide(self, x: Any) -> Any:
        """Returns the array with the mapped axes in front, padded with zeros."""
        whole = [
            n if g is None else self.grid[g] * n
            for g, n in zip(self._of, self.inner, strict=True)
        ]
        x = _resized(x, whole)
        return transpose(reshape(x, self._split), self._order)

    def join(self, x: Any) -> Any:
        """Returns the array of a divided one."""
        order = self._order
        x = transpose(x, [order.index(i) for i in range(len(order))])
        whole = [
            n if g is None else self.grid[g] * n
            for g, n in zip(self._of, self.inner, strict=True)
        ]
        return _resized(reshape(x, whole), self.shape)

    # -- one program -------------------------------------------------------------------

    def starts(self, ids: Sequence[Any]) -> list[Any]:
        """Returns where the block of a program starts, within `inner`."""
        block = self.block
        if isinstance(block.index, Graph):
            at = block.index.evaluate(*ids)
        else:
            at = [None if g is None else ids[g] for g in block.index]
        zero = constant(0, np.dtype(np.int32))
        return [
            mul(i, constant(n, typeof(i).dtype)) if looped else zero
            for i, n, looped in zip(at, block.lengths, self._chosen, strict=True)
        ]

    def take(self, x: Any, starts: Sequence[Any]) -> Any:
        """Returns the block that a program sees, of an array of the shape `inner`."""
        if any(self._chosen):
            x = dynamic_slice(x, starts, self.block.lengths)
        return reshape(x, self.block.seen)

    def put(self, x: Any, part: Any, starts: Sequence[Any]) -> Any:
        """Returns an array of the shape `inner` with a program's block replaced."""
        part = reshape(part, self.block.lengths)
        return dynamic_update_slice(x, part, starts) if any(self._chosen) else part


def _resized(x: Any, shape: Sequence[int]) -> Any:
    """Returns an array padded with zeros, or cropped, at the ends of its axes."""
    aval = typeof(x)
    config = [(0, n - m, 0) for n, m in zip(shape, aval.shape, strict=True)]
    if not any(high for _, high, _ in config):
        return x
    return pad(x, constant(0, aval.dtype), config)


def _one_program(
    params: KernelParams,
    mapped: Sequence[int],
    inputs: Sequence[Division],
    outputs: Sequence[Division],
    in_avals: Sequence[Aval],
) -> Graph:
    """Returns the graph that is mapped: the loop over the other axes of the grid.

    Its inputs are the ids of the mapped axes, operands, and results that keep their
    contents, in the shapes `inner`; its outputs are the results.
    """
    grid, keeps = params.grid, params.keeps_contents()
    loops = [g for g in range(len(grid)) if g not in mapped]
    total = math.prod(grid[g] for g in loops)
    body = params.pure

    def program(*values: Any) -> list[Any]:
        known = dict(zip(mapped, values, strict=False))
        arrays = values[len(mapped) : len(mapped) + len(inputs)]
        contents = iter(values[len(mapped) + len(inputs) :])

        def step(carry: Any, number: Any) -> Any:
            results, scratch = carry
            ids = [known.get(g) for g in range(len(grid))]
            for g in reversed(loops):
                size = constant(grid[g], np.dtype(np.int32))
                ids[g] = number % size
                number = number // size
            blocks = [
                d.take(x, d.starts(ids)) for d, x in zip(inputs, arrays, strict=True)
            ]
            at = [d.starts(ids) for d in outputs]
            before = [
                d.take(x, s) for d, x, s in zip(outputs, results, at, strict=True)
            ]
            # A block that is a sum starts at zero in each program.
            summed = params.sums()
            given = [
                zeros(typeof(b)) if s else b
                for b, s in zip(before, summed, strict=True)
            ]
            after = body.evaluate(*ids, *blocks, *given, *scratch)
            parts, scratch = after[: len(outputs)], after[len(outputs) :]
            parts = [
                add(b, p) if s else p
                for b, p, s in zip(before, parts, summed, strict=True)
            ]
            results = [
                d.put(x, p, s)
                for d, x, p, s in zip(outputs, results, parts, at, strict=True)
            ]
            return (results, scratch), None

        start = [
            next(contents) if kept else zeros(aval.update(shape=d.inner))
            for d, aval, kept in zip(outputs, params.outs, keeps, strict=True)
        ]
        carry: Any = (start, [zeros(a) for a in params.scratch])
        if total == 1:
            (results, _), _ = step(carry, constant(0, np.dtype(np.int32)))
        else:
            (results, _), _ = scan(step, carry, iota(np.int32, total))
        return list(results)

    avals = [
        *(ID for _ in mapped),
        *(a.update(shape=d.inner) for a, d in zip(in_avals, inputs, strict=True)),
        *(
            a.update(shape=d.inner)
            for a, d, kept in zip(params.outs, outputs, keeps, strict=True)
            if kept
        ),
    ]
    return trace_closed(program, avals, name=params.graph.name)


def _nbytes(graph: Graph) -> int:
    """Returns the bytes of the intermediate results of a graph together."""
    return sum(int(v.aval.nbytes) for node in graph.nodes for v in node.outputs)


def _vectorized(
    graph: Graph, size: int, flags: Sequence[bool], summed: Sequence[bool]
) -> Graph:
    """Returns a graph mapped along one more axis, with results summed along it."""
    batched, _ = batch_graph(graph, size, flags, True)

    def run(*values: Any) -> list[Any]:
        outs = batched.evaluate(*values)
        return [
            reduce_sum(x, (0,)) if s else x for x, s in zip(outs, summed, strict=True)
        ]

    return _traced(run, graph, size, flags)


def _looped(
    graph: Graph, size: int, flags: Sequence[bool], summed: Sequence[bool]
) -> Graph:
    """Returns a graph called in a loop along one more axis; see `_vectorized`."""

    def run(*values: Any) -> list[Any]:
        def step(total: Any, row: Any) -> Any:
            rest = iter(row)
            given = [next(rest) if f else x for x, f in zip(values, flags, strict=True)]
            outs = graph.evaluate(*given)
            own = [x for x, s in zip(outs, summed, strict=True) if s]
            total = [add(t, x) for t, x in zip(total, own, strict=True)]
            return total, [x for x, s in zip(outs, summed, strict=True) if not s]

        start = [zeros(a) for a, s in zip(graph.out_avals, summed, strict=True) if s]
        rows = [x for x, f in zip(values, flags, strict=True) if f]
        total, stacked = scan(step, start, rows, length=size)
        sums, parts = iter(total), iter(stacked)
        return [next(sums if s else parts) for s in summed]

    return _traced(run, graph, size, flags)


def _traced(
    run: Callable[..., list[Any]], graph: Graph, size: int, flags: Sequence[bool]
) -> Graph:
    avals = [
        mapped_type(a, size) if f else a
        for a, f in zip(graph.in_avals, flags, strict=True)
    ]
    return trace_closed(run, avals, name=graph.name)
