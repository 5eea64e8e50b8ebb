"""Functions of rows become kernels: softmax, normalization, losses, their gradients.

XLA:CPU walks through an array once for each reduction: a softmax is three walks, the
gradients of a layer norm are six. A kernel (`lax.kernels`) takes a few rows at a time,
which stay in the processor's cache. The pass looks for elementwise operations around
reductions of rows, in whatever order a user or a derivative wrote them.

A kernel also adds up its rows (the gradients of a scale and a bias). Its text depends
on what it computes alone: the normalizations of all layers are one kernel.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, dtypes
from fxflow.core.caches import Cache
from fxflow.core.ir.graph import Graph, Literal, Node, Var, renamed
from fxflow.core.ir.staging import trace_closed
from fxflow.devices.shardings import Sharding
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.comparison import lt
from fxflow.lax.creation import broadcasted_iota
from fxflow.lax.elementwise import mul, sub
from fxflow.lax.kernels.blocks import ID, PARALLEL, SUM, Block
from fxflow.lax.kernels.call import KernelCall
from fxflow.lax.kernels.llvm_functions import FUNCTIONS
from fxflow.lax.kernels.llvm_scalars import VECTORIZED
from fxflow.lax.kernels.native import is_enabled, why_not
from fxflow.lax.kernels.params import KernelParams, as_references
from fxflow.lax.remat import CALLS, inlined
from fxflow.lax.reshaping import reshape
from fxflow.lax.select import select
from fxflow.transforms.passes import rewriting
from fxflow.transforms.passes.divisions import divisions, mesh_of
from fxflow.transforms.passes.labels import compare_labels
from fxflow.transforms.passes.rewriting import (
    REDUCTIONS,
    SEARCHES,
    SLOW_IN_XLA,
    begins_chain,
    begins_rows,
    reduced_axes,
    written_out,
)
from fxflow.transforms.passes.selecting import select_by_chunks
from fxflow.transforms.passes.spaces import COLUMN, FULL, NUMBER, ROW, Rows, Space

#: Elements of a block: its intermediate results stay in the first-level cache.
_BLOCK = 8192
#: The shortest rows of which elementwise functions are computed row by row.
_SHORTEST = 64
#: Functions that LLVM vectorizes in a sum, and XLA does not.
_COSTLY = frozenset(FUNCTIONS) | {"logistic"}
#: A device's part of an array may be this much smaller than what is worth a kernel.
_FEWEST_PARTS = 4
#: Most operations of a kernel: what is longer takes too long to compile.
_MOST_NODES = 80


def fuse_rows(graph: Graph) -> Graph:
    """Returns the graph with functions of rows as kernels.

    Args:
      graph: of any operations; graphs inside are left as they are.
    """
    if not is_enabled() or graph.effects:
        return graph
    graph = select_by_chunks(graph)
    start = compare_labels(graph)
    fused = _all_fused(start, lambda _: None)
    return graph if fused is start else fused


def fuse_divided_rows(graph: Graph, shardings: Sequence[Sharding | None]) -> Graph:
    """Returns the graph with functions of divided rows as kernels of each device.

    Args:
      graph: of a program that the partitioner divides.
      shardings: of its inputs; None: each device has the whole array.
    """
    mesh = mesh_of(shardings)
    if not is_enabled() or graph.effects or mesh is None:
        return graph
    start = compare_labels(inlined(graph, CALLS))
    fused = _all_fused(start, lambda g: Rows(mesh, divisions(g, shardings, mesh)))
    return graph if fused is start else fused


def _all_fused(graph: Graph, divided: Callable[[Graph], Rows | None]) -> Graph:
    done: set[Space] = set()
    while True:
        spaces = (_space(node) for node in graph.nodes)
        space = next((s for s in spaces if s is not None and s not in done), None)
        if space is None:
            return graph
        done.add(space)
        graph = _fused(graph, space, divided(graph))


def _space(node: Node) -> Space | None:
    """Returns the rows of which a node begins a function, if it does."""
    if begins_rows(node):
        shape, count = node.inputs[0].aval.shape, len(reduced_axes(node))
        return Space(shape[: len(shape) - count], shape[len(shape) - count :])
    if not begins_chain(node):
        return None
    shape = node.outputs[0].aval.shape
    if len(shape) > 1 and _SHORTEST <= shape[-1] <= _BLOCK:
        return Space(shape[:-1], shape[-1:])
    return Space(shape, ())


def _fused(graph: Graph, space: Space, divided: Rows | None) -> Graph:
    """Returns the graph with the functions of some rows as kernels."""
    readers = _readers(graph)
    made: dict[int, tuple[list[Node], dict[Any, Any]]] = {}
    owner: dict[int, int] = {}
    found = _Groups(graph, space, readers)
    for number, group in enumerate(found.worthwhile()):
        nodes = found.with_free(group)
        kernel = _kernel(nodes, group, graph, space, readers, divided)
        if kernel is not None:
            made[number] = kernel
            owner.update(dict.fromkeys(group, number))
    return _joined(graph, owner, made) if made else graph


# -- which operations ------------------------------------------------------------------


def _part(node: Node, space: Space) -> str:
    """Returns what the result of a node is to the rows; empty: no kernel has it."""
    if len(node.outputs) != 1:
        return ""
    out, name = node.outputs[0].aval, node.primitive.name
    kind = space.kind(out.shape)
    if not kind and name not in REDUCTIONS:
        return ""
    if not all(_is_simple(a) for a in (*(x.aval for x in node.inputs), out)):
        return ""
    if name in VECTORIZED:
        same = all(a.aval.shape in ((), out.shape) for a in node.inputs)
        return kind if same and kind in (FULL, ROW) else ""
    if name == "broadcast_in_dim":
        return kind if kind in (FULL, ROW) and _source(node, space) else ""
    if name == "reshape":
        same = space.kind(node.inputs[0].aval.shape) == kind == ROW
        return kind if same else ""
    if name == "broadcasted_iota" or name == "iota":
        last = node.params["dimension"] == out.ndim - 1 and len(space.tail) == 1
        return kind if last and kind == FULL else ""
    if not space.tail:
        return ""
    if name in REDUCTIONS and space.kind(node.inputs[0].aval.shape) == FULL:
        ndim, axes = node.inputs[0].aval.ndim, reduced_axes(node)
        count = len(space.lead)
        if axes == (*range(count, ndim),):
            return ROW
        if axes == (*range(count),) and name == "reduce_sum":
            wide = dtypes.is_floating(out.dtype) and out.dtype.itemsize == 4
            return COLUMN if wide else ""
    return ""


def _is_simple(aval: Aval) -> bool:
    """Returns whether kernels compute with numbers of such an array quickly."""
    if dtypes.is_key(aval.dtype) or aval.is_symbolic:
        return False
    dtype = np.dtype(aval.dtype)
    if dtypes.is_floating(dtype):
        return dtype.itemsize in (2, 4)
    signed = dtypes.is_integer(dtype) and not dtypes.is_unsigned(dtype)
    return dtypes.is_bool(dtype) or (signed and dtype.itemsize == 4)


def _source(node: Node, space: Space) -> str:
    """Returns what the operand of a broadcast is to the rows; empty: something else."""
    shape, axes = node.inputs[0].aval.shape, tuple(node.params["broadcast_dimensions"])
    full = node.outputs[0].aval.ndim
    lead = len(space.lead)
    if not shape:
        return NUMBER
    if axes == (*range(lead),) and shape == space.lead:
        return ROW
    if axes == (*range(full),) and space.kind(shape) == ROW:
        return ROW
    if space.kind(node.outputs[0].aval.shape) == FULL and full == lead + len(
        space.tail
    ):
        wanted = tuple(n for n in shape if n != 1) == tuple(
            n for n in space.tail if n != 1
        )
        if wanted and axes == (*range(full - len(shape), full),):
            ones = len(shape) - len(space.tail)
            if ones >= 0 and shape == ((1,) * ones + space.tail):
                return COLUMN
    return ""


#: What XLA computes where it is read, rather than to write it to memory.
_AGAIN = frozenset({"broadcast_in_dim", "broadcasted_iota", "iota", "reshape"})


class _Groups:
    """Which operations a kernel may do together.

    The level of a node is how many groups one behind the other it reads. Nodes of one
    level that read each other are a group: nothing outside lies between them. Large
    arrays that are made of numbers, rows and columns alone are free: each group that
    reads one computes it again.
    """

    def __init__(
        self, graph: Graph, space: Space, readers: dict[Any, list[int]]
    ) -> None:
        self._nodes, self._space, self._readers = graph.nodes, space, readers
        self._parts = [_part(node, space) for node in graph.nodes]
        self._levels: dict[Any, int] = {}
        self._maker: dict[Any, int] = {}
        self._free: set[int] = set()
        self._members: list[list[int]] = []
        self._divide()

    def _divide(self) -> None:
        levels = self._levels
        where: dict[Any, int] = {}
        parent: dict[int, int] = {}
        # Arrays that XLA does not write to memory, and no kernel makes.
        elsewhere: set[Any] = set()

        def root(i: int) -> int:
            while parent[i] != i:
                parent[i] = parent[parent[i]]
                i = parent[i]
            return i

        for i, node in enumerate(self._nodes):
            inputs = [a for a in node.inputs if type(a) is Var]
            kind = self._parts[i]
            large = [a for a in inputs if self._kind(a) == FULL]
            fits = bool(kind) and elsewhere.isdisjoint(large)
            if fits and kind == FULL and all(self._is_free(a) for a in large):
                if not any(a in where for a in inputs):
                    self._free.add(i)
                    fits = False
            elif fits and kind != FULL and node.primitive.name not in REDUCTIONS:
                # One number for each row is cheap: it follows what a kernel computes.
                fits = any(a in where for a in inputs)
            if not (fits or i in self._free) and (
                _grows(node)
                or (
                    (inputs and (kind or node.primitive.name == "reshape"))
                    and elsewhere.issuperset(large or inputs)
                )
            ):
                elsewhere.update(node.outputs)
            level = 0
            for a in inputs:
                level = max(level, levels.get(a, 0) + (a in where and not fits))
            if fits:
                parent[i] = i
                for a in inputs:
                    j = where.get(a)
                    if j is not None and levels[a] == level:
                        parent[root(j)] = root(i)
            for v in node.outputs:
                levels[v], self._maker[v] = level, i
                if fits:
                    where[v] = i
        found: dict[int, list[int]] = {}
        for i in parent:
            found.setdefault(root(i), []).append(i)
        self._members = list(found.values())

    def _kind(self, atom: Any) -> str:
        return self._space.kind(atom.aval.shape)

    def _is_free(self, atom: Any) -> bool:
        return self._maker.get(atom) in self._free

    def worthwhile(self) -> list[list[int]]:
        """Returns the groups for which XLA would walk through the rows repeatedly.

        Those of one level that read the same large array are one group. Others join
        them that leave no large array: sums over all rows.
        """
        found: list[list[int]] = []
        first: dict[Any, list[int]] = {}
        rest = []
        for members in self._members:
            if not self._is_worthwhile(members):
                rest.append(members)
            elif not self._join(members, first):
                found.append(members)
        for members in rest:
            if not self._leaves_large(members):
                self._join(members, first, only=True)
        return [group for group in found if len(group) <= _MOST_NODES]

    def _join(
        self, members: list[int], first: dict[Any, list[int]], only: bool = False
    ) -> bool:
        """Adds nodes to a group that reads the same array; returns whether there is."""
        nodes = [self._nodes[i] for i in members]
        inside = {v for n in nodes for v in n.outputs}
        level = self._levels[nodes[0].outputs[0]]
        keys = {
            (level, a)
            for n in nodes
            for a in n.inputs
            if type(a) is Var and self._kind(a) == FULL
            if a not in inside and not self._is_free(a)
        }
        groups = (first[key] for key in keys if key in first)
        fitting = (g for g in groups if len(g) + len(members) <= _MOST_NODES)
        group = next(fitting, None)
        if group is not None:
            group += members
        if group is not None or not only:
            for key in keys:
                first.setdefault(key, members if group is None else group)
        return group is not None

    def _leaves_large(self, members: Sequence[int]) -> bool:
        """Returns whether others read a large array that some nodes make."""
        inside = set(members)
        return any(
            self._kind(v) == FULL and not inside.issuperset(self._readers.get(v, ()))
            for i in members
            for v in self._nodes[i].outputs
        )

    def _is_worthwhile(self, members: Sequence[int]) -> bool:
        """Returns whether large arrays are read again behind a reduction of rows.

        Or whether XLA is slow for another reason: it calls the C library for each
        element, looks for the extrema of rows, or adds up a function, whose loop it
        does not vectorize then.
        """
        behind: set[Any] = set()
        reused = costly = False
        for i in sorted(members):
            node = self._nodes[i]
            reads = any(a in behind for a in node.inputs if type(a) is Var)
            kind = self._parts[i]
            reduces = node.primitive.name in REDUCTIONS and kind == ROW
            if reduces or reads:
                behind.update(node.outputs)
            slow = node.primitive.name in SLOW_IN_XLA
            reused |= (reads or slow) and kind == FULL
            costly = costly or node.primitive.name in _COSTLY
            reused |= reduces and (costly or node.primitive.name != "reduce_sum")
        return reused

    def with_free(self, members: Sequence[int]) -> list[Node]:
        """Returns the nodes of a group with the free ones that they read."""
        found = set(members)
        open_ = list(members)
        while open_:
            for a in self._nodes[open_.pop()].inputs:
                i = self._maker.get(a) if type(a) is Var else None
                if i is not None and i in self._free and i not in found:
                    found.add(i)
                    open_.append(i)
        return [self._nodes[i] for i in sorted(found)]


def _grows(node: Node) -> bool:
    """Returns whether a node makes more numbers than it reads, of few."""
    if node.primitive.name in ("iota", "broadcasted_iota"):
        return True
    name = node.primitive.name
    return name == "broadcast_in_dim" and (
        node.inputs[0].aval.size < node.outputs[0].aval.size
    )


def _readers(graph: Graph) -> dict[Any, list[int]]:
    """Returns which nodes read a variable; -1 stands for the graph's outputs."""
    readers: dict[Any, list[int]] = {}
    for i, node in enumerate(graph.nodes):
        for a in node.inputs:
            if type(a) is Var:
                readers.setdefault(a, []).append(i)
    for a in graph.outputs:
        if type(a) is Var:
            readers.setdefault(a, []).append(-1)
    return readers


# -- kernels ---------------------------------------------------------------------------

_kernels: Cache[Any, KernelParams] = Cache("kernels of rows", 512, by_options=True)


def _kernel(
    nodes: list[Node],
    group: Sequence[int],
    graph: Graph,
    space: Space,
    readers: dict[Any, list[int]],
    divided: Rows | None,
) -> tuple[list[Node], dict[Any, Any]] | None:
    """Returns the nodes that call a kernel in place of a group.

    And what the variables of the group that others read are called then. None if there
    is no such kernel.

    Args:
      nodes: of the group, and the free ones that it reads.
      group: the nodes that the kernel stands for.
      graph: of the nodes.
      space: the rows.
      readers: of the variables of the graph.
      divided: how devices divide the arrays, if they do.
    """
    members = set(group)
    inside = {v for n in nodes for v in n.outputs}
    wanted = {
        v for i in group for v in graph.nodes[i].outputs
        if any(j not in members for j in readers.get(v, ()))
    }  # fmt: skip
    # Broadcasts that others read stay outside, too.
    copies: list[Node] = []
    for n in reversed(nodes):
        if n.primitive.name in _AGAIN and n.outputs[0] in wanted:
            wanted.discard(n.outputs[0])
            wanted.update(a for a in n.inputs if a in inside)
            copies.append(n)
    outs = [v for n in nodes for v in n.outputs if v in wanted]
    nodes = _needed(_distinct(nodes, outs), outs)
    if not outs or any(v.aval.weak_type for v in outs):
        return None
    given = _operands(nodes, space)
    kinds = [_part(_maker(v, nodes), space) for v in outs]
    part = space
    if divided is not None:
        lead = divided.lead(space, given)
        if lead is None:
            return None
        part = Space(lead.part, space.tail)
        if part.rows * part.columns * _FEWEST_PARTS < rewriting.LEAST:
            return None
    params = _params(nodes, space, part, given, outs)
    avals = [a.aval.update(shape=part.canonical(k, part.rows)) for a, k in given]
    if why_not(params, [Aval(a.shape, a.dtype) for a in avals]):
        return None
    # What follows the rows: axes of length 1, or the elements of a row.
    count = len(space.lead)
    shapes = [
        (*part.lead, *v.aval.shape[count:]) if k in (FULL, ROW) else v.aval.shape
        for v, k in zip(outs, kinds, strict=True)
    ]

    def call(*operands: Any) -> list[Any]:
        rows = [reshape(x, a.shape) for x, a in zip(operands, avals, strict=True)]
        results = KernelCall.bind(*rows, **vars(params))
        return [reshape(x, shape) for x, shape in zip(results, shapes, strict=True)]

    if divided is not None:
        assert lead is not None
        call = divided.mapped(call, lead, [k for _, k in given], kinds)
    operands = [a for a, _ in given]
    written, results = written_out(
        trace_closed(call, [a.aval for a in operands], name="rows"), operands
    )
    like = nodes[-1]
    made = [n.replace(source=like.source, scope=like.scope) for n in written]
    names = dict(zip(outs, results, strict=True))
    for n in reversed(copies):
        again = n.replace(
            inputs=renamed(n.inputs, names), outputs=[Var(n.outputs[0].aval)]
        )
        made.append(again)
        names[n.outputs[0]] = again.outputs[0]
    return made, names


def _maker(var: Any, nodes: Sequence[Node]) -> Node:
    return next(n for n in nodes if n.outputs[0] is var)


def _distinct(nodes: Sequence[Node], outs: Sequence[Any]) -> list[Node]:
    """Returns the nodes without those that compute what another has computed.

    LLVM does not see this: they are loops over memory.
    """
    known: dict[Any, Any] = {}
    names: dict[Any, Any] = {}
    kept = []
    for n in nodes:
        n = n.replace(inputs=renamed(n.inputs, names))
        key = n.primitive.name, tuple(map(_operand_key, n.inputs)), repr(n.params)
        (out,) = n.outputs
        same = known.setdefault(key, out)
        if same is out or out in outs or same.aval != out.aval:
            kept.append(n)
        else:
            names[out] = same
    return kept


def _operand_key(atom: Any) -> Any:
    if type(atom) is Literal:
        return atom.aval, np.asarray(atom.value).tobytes()
    return atom


def _needed(nodes: Sequence[Node], outs: Sequence[Any]) -> list[Node]:
    """Returns the nodes that results depend on."""
    needed = set(outs)
    kept = []
    for n in reversed(nodes):
        if n.outputs[0] in needed:
            needed.update(a for a in n.inputs if type(a) is Var)
            kept.append(n)
    return kept[::-1]


def _operands(nodes: Sequence[Node], space: Space) -> list[tuple[Any, str]]:
    """Returns the arrays that nodes read, and what they are to the rows."""
    inside = {v for n in nodes for v in n.outputs}
    found: dict[tuple[Any, str], None] = {}
    for n in nodes:
        for a in n.inputs:
            if type(a) is Var and a not in inside:
                found[a, _operand_kind(n, a, space)] = None
    return list(found)


def _operand_kind(node: Node, atom: Any, space: Space) -> str:
    if node.primitive.name == "broadcast_in_dim":
        return _source(node, space)
    return space.kind(atom.aval.shape)


def _params(
    nodes: Sequence[Node],
    space: Space,
    part: Space,
    given: Sequence[tuple[Any, str]],
    outs: Sequence[Any],
) -> KernelParams:
    """Returns the kernel of some nodes; one for all that compute the same.

    Args:
      nodes: of the group.
      space: the rows of all devices.
      part: those of one device.
      given: the operands.
      outs: the results.
    """
    key = part, *_key(nodes, space, given, outs)
    return _kernels.once(
        key,
        lambda: _kernels.keep(key, _made(nodes, space, part, given, outs)),
        patient=True,
    )


def _rows(space: Space) -> int:
    """Returns the number of rows in a block."""
    cap = 64 if space.tail else _BLOCK
    most = max(1, min(_BLOCK // space.columns, cap, space.rows))
    least = -(-most // 4)
    even = (n for n in range(most, least - 1, -1) if space.rows % n == 0)
    return next(even, most)


def _key(
    nodes: Sequence[Node],
    space: Space,
    given: Sequence[tuple[Any, str]],
    outs: Sequence[Any],
) -> Any:
    """Returns what tells kernels apart."""
    number: dict[Any, Any] = {}
    for atom, kind in given:
        number[atom] = len(number), kind, atom.aval
    parts: list[Any] = []
    for n in nodes:
        inputs = tuple(
            ("literal", a.aval, np.asarray(a.value).tobytes())
            if type(a) is Literal
            else number[a]
            for a in n.inputs
        )
        params = tuple((k, repr(v)) for k, v in n.params.items())
        parts.append((n.primitive.name, inputs, params))
        number[n.outputs[0]] = len(number)
    return (
        space,
        tuple((kind, number[a]) for a, kind in given),
        tuple(parts),
        tuple(number[v] for v in outs),
    )


def _made(
    nodes: Sequence[Node],
    space: Space,
    part: Space,
    given: Sequence[tuple[Any, str]],
    outs: Sequence[Any],
) -> KernelParams:
    """Returns a kernel whose programs compute some rows; see `_params`."""
    kinds = {n.outputs[0]: _part(n, space) for n in nodes}
    rows = _rows(part)

    def compute(program: Any, *values: Any) -> list[Any]:
        env: dict[tuple[Any, str], Any] = dict(zip(given, values, strict=False))
        for n in nodes:
            out = n.outputs[0]
            operands = [
                a.array
                if type(a) is Literal
                else env.get((a, _operand_kind(n, a, space)), env.get((a, "")))
                for a in n.inputs
            ]
            if kinds[out] == COLUMN and part.rows % rows:
                operands = [_there(x, program, part) for x in operands]
            env[out, ""] = _evaluated(n, operands, space, kinds[out], rows)
        return [env[v, ""] for v in outs]

    seen = [
        *(Aval(part.canonical(k, rows), a.aval.dtype) for a, k in given),
        *(Aval(part.canonical(kinds[v], rows), v.aval.dtype) for v in outs),
    ]
    pure = trace_closed(compute, [ID, *seen], name="rows")
    summed = any(kinds[v] == COLUMN for v in outs)
    params = KernelParams(
        graph=pure,
        grid=(-(-part.rows // rows),),
        kinds=(SUM if summed else PARALLEL,),
        blocks=tuple(
            Block(part.canonical(k, rows), part.counted(k))
            for k in (*(k for _, k in given), *(kinds[v] for v in outs))
        ),
        outs=tuple(
            Aval(part.canonical(kinds[v], part.rows), v.aval.dtype) for v in outs
        ),
    )
    return params.replace(graph=as_references(pure, params))


def _there(x: Any, program: Any, space: Space) -> Any:
    """Returns a block with zeros for rows past the end: these must not be added."""
    left = sub(space.rows, mul(program, x.shape[0]))
    there = lt(broadcasted_iota(np.int32, (x.shape[0],), 0), left)
    zero = np.zeros((), x.dtype)
    return select(broadcast_in_dim(there, x.shape, (0,)), x, zero)


def _evaluated(
    node: Node, operands: Sequence[Any], space: Space, kind: str, rows: int
) -> Any:
    """Returns the result of a node for the rows of a block."""
    name = node.primitive.name
    shape = space.canonical(kind, rows)
    if name == "broadcast_in_dim":
        source = _source(node, space)
        if source == ROW and kind == ROW:
            return operands[0]
        axes = {NUMBER: (), ROW: (0,), COLUMN: (1,)}[source]
        return broadcast_in_dim(operands[0], shape, axes)
    if name == "reshape":
        return operands[0]
    if name in ("broadcasted_iota", "iota"):
        return broadcasted_iota(node.outputs[0].aval.dtype, shape, 1)
    params = dict(node.params)
    if name in SEARCHES:
        params["axis"] = 1
    elif name in REDUCTIONS:
        params["axes"] = (0,) if kind == COLUMN else (1,)
    out: Any = node.primitive.bind(*operands, **params)
    return out


# -- the graph afterwards --------------------------------------------------------------


def _joined(
    graph: Graph,
    owner: dict[int, int],
    made: dict[int, tuple[list[Node], dict[Any, Any]]],
) -> Graph:
    """Returns the graph with groups replaced, in an order in which nodes can run."""
    groups: dict[int, list[int]] = {}
    for i, number in owner.items():
        groups.setdefault(number, []).append(i)
    last = {number: max(group) for number, group in groups.items()}
    unit = [last[owner[i]] if i in owner else i for i in range(len(graph.nodes))]
    maker = {v: unit[i] for i, n in enumerate(graph.nodes) for v in n.outputs}
    waits: dict[int, set[int]] = {u: set() for u in unit}
    for i, n in enumerate(graph.nodes):
        for a in n.inputs:
            if type(a) is Var and a in maker and maker[a] != unit[i]:
                waits[unit[i]].add(maker[a])
    followers: dict[int, list[int]] = {}
    for u, before in waits.items():
        for b in before:
            followers.setdefault(b, []).append(u)
    missing = {u: len(before) for u, before in waits.items()}
    ready = [u for u, count in missing.items() if not count]
    heapq.heapify(ready)
    names: dict[Any, Any] = {}
    for _, more in made.values():
        names.update(more)
    nodes: list[Node] = []
    while ready:
        u = heapq.heappop(ready)
        new = made[owner[u]][0] if u in owner else [graph.nodes[u]]
        nodes += [
            n
            if names.keys().isdisjoint(a for a in n.inputs if type(a) is Var)
            else n.replace(inputs=renamed(n.inputs, names))
            for n in new
        ]
        for follower in followers.get(u, ()):
            missing[follower] -= 1
            if not missing[follower]:
                heapq.heappush(ready, follower)
    return graph.replace(nodes=nodes, outputs=renamed(graph.outputs, names))
