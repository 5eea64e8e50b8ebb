"""Scan fission: products that need not wait for the carry leave the loop.

A loop over time multiplies a few rows at a time, which is the slowest way to multiply.
What it multiplies by the same matrix in each step is multiplied at once instead:

- *before* the loop, where it does not depend on the carry: the products of an LSTM's
  inputs become one large product, whose slices the loop reads;
- *after* it, where the carry does not depend on it: the loop stacks the operands;
- a *sum over the steps* of products, as the reversed scan of a gradient accumulates for
  each weight, becomes one product that contracts the axis of the steps too.

A product of which only a part can leave is divided first (`parts`): `concat(x, h) @ w`
waits for the carry `h`, but `x @ w[:n]` does not.

All that costs memory: what is stacked. No loop may take more for it than `ROOM`, or
than its own operands and results take. A loop in which no step waits for another is
left alone, be it that there is no carry (`lax.map`) or that it is only added to
(gradients of a batch part by part): the user who writes one wants one step in memory at
a time. Values that are the same in each step are XLA's to take out of the loop, and it
does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fxflow.core.arrays import Aval, dtypes
from fxflow.core.interpreters.batching import batch_graph
from fxflow.core.ir.graph import Graph, Node, Var, live_nodes, renamed, subgraphs
from fxflow.core.sizes import is_at_least
from fxflow.lax.axis_order import Transpose
from fxflow.lax.concatenation import Concatenate, Split
from fxflow.lax.control_flow.scan import Scan, ScanParams
from fxflow.lax.dot import DotGeneral
from fxflow.lax.elementwise import Add
from fxflow.lax.families import Elementwise, Structural
from fxflow.lax.gather_scatter.gather import Gather
from fxflow.lax.reduction import ReduceSum, Reduction
from fxflow.lax.remat import CALLS, inlined
from fxflow.lax.reshaping import Reshape
from fxflow.lax.select import SelectN
from fxflow.lax.transfer import DevicePut
from fxflow.transforms.passes.parts import (
    contracted_parts,
    products_of_pieces,
    split_axis,
    sum_of_products,
)
from fxflow.transforms.passes.rewriting import made, uses, written_out

#: Bytes that any loop may take for what it stacks.
ROOM = 64 << 20
#: Rows from which a product is as fast by itself: XLA:CPU's products of 16 rows reach a
#: third of the rate of those of 256, which is its best (docs/design/0012).
FEW = 256
#: Elements of the largest matrix from which a loop is taken apart: an LSTM of 32 units
#: loses more by what is stacked than it gains (docs/design/0012).
LEAST = 1 << 14

# On what a value inside the loop depends, as bits.
_CONST, _SLICE, _CARRY, _FIXED = 1, 2, 4, 8

_MOVABLE = frozenset(p.name for p in (DotGeneral, Concatenate, Split, Gather, SelectN))


def split_loops(graph: Graph) -> Graph:
    """Returns the graph with the products in its scans taken out of them.

    Args:
      graph: of any operations; graphs inside are left as they are.
    """
    names: dict[Var, Any] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if names:
            node = node.replace(inputs=renamed(node.inputs, names))
        loop = _Loop(node) if _may_split(node) else None
        if loop is None or not loop.is_recurrent() or not loop.split():
            nodes.append(node)
            continue
        nodes += loop.result()
        names.update(loop.names)
    if not any(a is not b for a, b in zip(nodes, graph.nodes, strict=False)):
        return graph
    return graph.replace(nodes=nodes, outputs=renamed(graph.outputs, names))


def _may_split(node: Node) -> bool:
    if node.primitive.name != Scan.name:
        return False
    p = ScanParams(**node.params)
    # Whether there is room for values is not known of sizes that a call says.
    if any(a.aval.is_symbolic for a in (*node.inputs, *node.outputs)):
        return False
    return bool(p.length > 1 and p.num_carry) and any(
        n.primitive.name == DotGeneral.name
        and max(math.prod(a.aval.shape) for a in n.inputs) >= LEAST
        for n in inlined(p.graph, CALLS).nodes
    )


@dataclass
class _Carried:
    """A part of the carry: inside, its first value, what it becomes, the result."""

    var: Var
    first: Any
    next: Any
    last: Var


class _Loop:
    """A scan that is being taken apart.

    Attributes:
      consts: from names inside the loop to names outside.
      slices: the same of what is sliced.
      carry: the parts of the carry.
      stacked: for values inside, the name outside of all steps' values.
      ys: values that are stacked, and their names outside.
      before: nodes that come to stand before the loop.
      after: nodes that come to stand after it.
      names: of results of the scan that are now called otherwise.
      room: bytes that may still be taken.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.p = p = ScanParams(**node.params)
        body = inlined(p.graph, CALLS)
        consts, carry, xs = p.split(body.inputs)
        outer = p.split(node.inputs)
        self.consts: dict[Var, Any] = dict(zip(consts, outer[0], strict=True))
        self.slices: dict[Var, Any] = dict(zip(xs, outer[2], strict=True))
        self.carry = [
            _Carried(*parts)
            for parts in zip(
                carry,
                outer[1],
                body.outputs[: p.num_carry],
                node.outputs[: p.num_carry],
                strict=True,
            )
        ]
        self.ys: list[tuple[Any, Var]] = list(
            zip(body.outputs[p.num_carry :], node.outputs[p.num_carry :], strict=True)
        )
        self.stacked: dict[Any, Any] = dict(self.slices)
        for atom, out in self.ys:
            if type(atom) is Var:
                self.stacked.setdefault(atom, out)
        self.nodes = body.nodes
        self.before: list[Node] = []
        self.after: list[Node] = []
        self.names: dict[Var, Any] = {}
        own = sum(a.aval.nbytes for a in (*node.inputs, *node.outputs))
        self.room = max(ROOM, own)
        self.changed = False

    def is_recurrent(self) -> bool:
        """Returns whether a step waits for what another one computes."""
        makers = self.made_by()
        counts = uses(self.nodes, self.outputs())
        return any(
            part.next is not part.var and _terms(part, makers, counts) is None
            for part in self.carry
        )

    def split(self) -> bool:
        """Takes out what can be taken out; returns whether anything was."""
        for step in (
            self.divide_operands,
            self.multiply_before,
            self.sum_products,
            self.divide_results,
            self.multiply_after,
            self.join_after,
            self.sum_stacked,
        ):
            step()
            self.nodes = live_nodes(self.nodes, self.outputs())
        return self.changed

    def outputs(self) -> list[Any]:
        """Returns the results of the body."""
        return [*(c.next for c in self.carry), *(atom for atom, _ in self.ys)]

    def result(self) -> list[Node]:
        """Returns the nodes that stand for the scan."""
        inputs = [*self.consts, *(c.var for c in self.carry), *self.slices]
        body = Graph(inputs, self.nodes, self.outputs(), self.p.graph.name)
        new = self.p.replace(
            graph=body,
            num_consts=len(self.consts),
            num_carry=len(self.carry),
        )
        firsts = (c.first for c in self.carry)
        lasts = (c.last for c in self.carry)
        scan = self.node.replace(
            inputs=[*self.consts.values(), *firsts, *self.slices.values()],
            outputs=[*lasts, *(out for _, out in self.ys)],
            params=vars(new),
        )
        # Constants and slices that only what has left the loop used.
        loop = live_nodes([scan], scan.outputs)
        loop = [n.primitive.dce(n, [True] * len(n.outputs)) for n in loop]
        for old in self.names:
            while self.names[old] in self.names:
                self.names[old] = self.names[self.names[old]]
        return _ordered(
            n.replace(inputs=renamed(n.inputs, self.names))
            for n in (*self.before, *loop, *self.after)
        )

    # -- what depends on what ----------------------------------------------------------

    def dependences(self) -> dict[Var, int]:
        """Returns for each variable inside what it depends on."""
        found = dict.fromkeys(self.consts, _CONST)
        found.update(dict.fromkeys(self.slices, _SLICE))
        found.update((c.var, _CARRY) for c in self.carry)
        for node in self.nodes:
            bits = 0 if _is_movable(node) else _FIXED
            for atom in node.inputs:
                if type(atom) is Var:
                    bits |= found[atom]
            found.update(dict.fromkeys(node.outputs, bits))
        return found

    def made_by(self) -> dict[Var, Node]:
        """Returns the node inside that makes each variable."""
        return {out: node for node in self.nodes for out in node.outputs}

    def ancestors(self, atoms: Iterable[Any]) -> set[int]:
        """Returns the nodes that some values depend on, by id."""
        makers = self.made_by()
        found: set[int] = set()
        waiting = list(atoms)
        while waiting:
            node = makers.get(waiting.pop())
            if node is not None and id(node) not in found:
                found.add(id(node))
                waiting += [a for a in node.inputs if type(a) is Var]
        return found

    def takes(self, avals: Iterable[Aval]) -> bool:
        """Returns whether there is room for all steps' values; takes it if so."""
        wanted = self.p.length * sum(aval.nbytes for aval in avals)
        if not is_at_least(self.room, wanted):
            return False
        self.room -= wanted
        return True

    def stack(self, var: Var) -> Any:
        """Returns the name outside of all steps' values of a variable."""
        known = self.stacked.get(var)
        if known is None:
            aval = var.aval
            known = Var(aval.update(shape=(self.p.length, *aval.shape)))
            self.stacked[var] = known
            self.ys.append((var, known))
        return known

    def for_all_steps(
        self, nodes: list[Node], wanted: list[Var]
    ) -> tuple[list[Node], list[Any]]:
        """Returns nodes that compute values for all steps at once, and their names."""
        inside = {out for node in nodes for out in node.outputs}
        inputs = list(
            dict.fromkeys(
                a
                for node in nodes
                for a in node.inputs
                if type(a) is Var and a not in inside
            )
        )
        mapped = [var not in self.consts for var in inputs]
        outer = [
            self.stacked[var] if m else self.consts[var]
            for var, m in zip(inputs, mapped, strict=True)
        ]
        part = Graph(inputs, nodes, wanted, self.p.graph.name)
        batched, _ = batch_graph(part, self.p.length, mapped, True)
        return written_out(batched, outer)

    def is_small_product(self, node: Node, bits: dict[Var, int]) -> bool:
        """Returns whether a node multiplies a few rows by what is always the same."""
        if node.primitive.name != DotGeneral.name:
            return False
        fixed = [type(a) is not Var or not bits[a] & ~_CONST for a in node.inputs]
        if sum(fixed) != 1:
            return False
        (contracted, batch) = node.params["dimension_numbers"]
        side = fixed.index(False)
        shape = node.inputs[side].aval.shape
        summed = math.prod(shape[i] for i in contracted[side])
        return not batch[0] and math.prod(shape) < FEW * max(summed, 1)

    # -- products in parts -------------------------------------------------------------

    def divide_operands(self) -> None:
        """Divides products of concatenations of which a part may leave the loop."""
        bits, makers = self.dependences(), self.made_by()
        for node in self.nodes:
            if not self.is_small_product(node, bits) or not _sums_exactly(node):
                continue
            side = int(not bits.get(node.inputs[0], 0) & ~_CONST)
            joined = makers.get(node.inputs[side])
            parts = contracted_parts(node, side, joined) if joined else None
            if joined is None or parts is None:
                continue
            late = [bool(bits.get(a, 0) & (_CARRY | _FIXED)) for a in parts]
            if any(late) and not all(late) and self.has_room(node.outputs):
                new = sum_of_products(node, side, joined, late, self.cut)
                self.replace_nodes({id(node): new})

    def divide_results(self) -> None:
        """Divides products whose results are split, if the carry needs a piece only."""
        bits, makers = self.dependences(), self.made_by()
        counts = uses(self.nodes, self.outputs())
        lasts = [c.next for c in self.carry if type(c.next) is Var]
        feeding = self.ancestors(lasts)
        needed = {*lasts}
        for node in self.nodes:
            if id(node) in feeding:
                needed.update(a for a in node.inputs if type(a) is Var)
        for node in self.nodes:
            product = (
                makers.get(node.inputs[0])
                if node.primitive.name == Split.name
                else None
            )
            if product is None or not self.is_small_product(product, bits):
                continue
            side = int(bool(bits.get(product.inputs[0], 0) & ~_CONST))
            early = [v in needed for v in node.outputs]
            if (
                counts[node.inputs[0]] == 1
                and any(early)
                and not all(early)
                and split_axis(product, side, node) is not None
                and self.has_room(node.outputs)
            ):
                new = products_of_pieces(product, side, node, early, self.cut)
                self.replace_nodes({id(product): [], id(node): new})

    def cut(
        self, product: Node, atom: Any, sizes: tuple[int, ...], axis: int
    ) -> tuple[list[Node], Sequence[Any]]:
        """Returns nodes inside that cut an operand of a product, and the pieces."""
        params = {"sizes": sizes, "axis": axis}
        if atom not in self.consts:
            split = made(product, Split, [atom], params)
            return [split], split.outputs
        # XLA would leave the cutting in the loop.
        split = made(product, Split, [self.consts[atom]], params)
        self.before.append(split)
        pieces = [Var(v.aval) for v in split.outputs]
        self.consts.update(zip(pieces, split.outputs, strict=True))
        return [], pieces

    def has_room(self, values: Iterable[Var]) -> bool:
        """Returns whether there is room for all steps' values."""
        wanted = self.p.length * sum(v.aval.nbytes for v in values)
        return is_at_least(self.room, wanted)

    def replace_nodes(self, new: dict[int, list[Node]]) -> None:
        """Puts others in the place of nodes, given by id."""
        self.nodes = [n for node in self.nodes for n in new.get(id(node), [node])]

    # -- before and after --------------------------------------------------------------

    def multiply_before(self) -> None:
        """Takes products before the loop that do not depend on the carry."""
        bits = self.dependences()

        def early(node: Node) -> bool:
            return all(not bits[v] & (_CARRY | _FIXED) for v in node.outputs)

        roots = [n for n in self.nodes if early(n) and self.is_small_product(n, bits)]
        if not roots:
            return
        moved = self.ancestors(v for n in roots for v in n.outputs)
        makers = self.made_by()
        # What adds a bias, say, is no larger than the product, and comes along.
        for node in self.nodes:
            if id(node) in moved or not early(node):
                continue
            if not isinstance(node.primitive, Elementwise):
                continue
            operands = [a for a in node.inputs if type(a) is Var]
            ours = [a for a in operands if a in makers and id(makers[a]) in moved]
            sliced = [a for a in ours if bits[a] & _SLICE]
            size = sum(v.aval.nbytes for v in node.outputs)
            if sliced and is_at_least(sum(a.aval.nbytes for a in sliced), size):
                moved |= self.ancestors(node.outputs)
        nodes = [n for n in self.nodes if id(n) in moved]
        # What does not differ between the steps stays inside, too, if read there.
        gone = {v for n in nodes for v in n.outputs if bits[v] & _SLICE}
        rest = [n for n in self.nodes if gone.isdisjoint(n.outputs)]
        read = uses(rest, self.outputs())
        wanted = [v for n in nodes for v in n.outputs if v in gone and read[v]]
        if not self.takes(v.aval for v in gone):
            return
        added, outs = self.for_all_steps(live_nodes(nodes, wanted), wanted)
        self.before += added
        inside = uses(rest, (c.next for c in self.carry))
        for var, out in zip(wanted, outs, strict=True):
            self.stacked[var] = out
            if inside[var]:
                self.slices[var] = out
        self.take_results(wanted)
        self.nodes = rest
        self.changed = True

    def multiply_after(self) -> None:
        """Takes products after the loop that the carry does not depend on."""
        bits = self.dependences()
        feeding = self.ancestors(c.next for c in self.carry if type(c.next) is Var)
        moved: set[int] = set()
        for root in self.nodes:
            if id(root) in feeding or not self.is_small_product(root, bits):
                continue
            # All that is computed from it must wait, too.
            reached, ids, free = set(root.outputs), {id(root)}, True
            for node in self.nodes:
                if not reached.isdisjoint(node.inputs):
                    reached.update(node.outputs)
                    ids.add(id(node))
                    free = free and _is_movable(node)
            if free:
                moved |= ids
        if not moved:
            return
        makers = self.made_by()
        # What is the same in each step is computed there as well, not stacked.
        waiting = [
            a for n in self.nodes if id(n) in moved for a in n.inputs if type(a) is Var
        ]
        same: list[Var] = [v for v in waiting if v in makers and not bits[v] & ~_CONST]
        moved |= self.ancestors(same)
        nodes = [n for n in self.nodes if id(n) in moved]
        made_here = {v for n in nodes for v in n.outputs}
        needed = dict.fromkeys(
            a
            for n in nodes
            for a in n.inputs
            if type(a) is Var and a not in made_here and a not in self.consts
        )
        new = [v for v in needed if v not in self.stacked]
        large = [v for v in made_here if bits[v] & ~_CONST]
        if not self.takes(v.aval for v in (*large, *new)):
            return
        for var in new:
            self.stack(var)
        wanted = list(
            dict.fromkeys(a for a, _ in self.ys if a in made_here and bits[a] & ~_CONST)
        )
        added, outs = self.for_all_steps(live_nodes(nodes, wanted), wanted)
        self.after += added
        self.stacked.update(zip(wanted, outs, strict=True))
        self.take_results(wanted)
        self.changed = True

    def join_after(self) -> None:
        """Joins after the loop what is joined only to be stacked."""
        if not self.changed:
            return
        makers = self.made_by()
        counts = uses(self.nodes, self.outputs())
        for atom, _ in list(self.ys):
            joined = makers.get(atom) if type(atom) is Var else None
            if joined is None or joined.primitive.name != Concatenate.name:
                continue
            parts = joined.inputs
            if counts[atom] > 1 or any(
                type(a) is not Var or a in self.consts for a in parts
            ):
                continue
            # Without a part that is stacked already, one stack is better than several.
            new = [a for a in dict.fromkeys(parts) if a not in self.stacked]
            if len(new) < len(parts) and self.takes(a.aval for a in new):
                operands = [self.stack(a) for a in parts]
                params = {"dimension": joined.params["dimension"] + 1}
                self.after.append(made(joined, Concatenate, operands, params))
                self.stacked[atom] = self.after[-1].outputs[0]
                self.take_results([atom])

    def take_results(self, wanted: list[Var]) -> None:
        """Gives results of the scan that are computed outside now their new names."""
        kept: list[tuple[Any, Var]] = []
        for atom, out in self.ys:
            if type(atom) is Var and atom in wanted:
                self.names[out] = self.stacked[atom]
            else:
                kept.append((atom, out))
        self.ys = kept

    # -- sums over the steps -----------------------------------------------------------

    def sum_products(self) -> None:
        """Replaces sums of products of a few rows by one product of all rows."""
        bits = self.dependences()

        def total(term: Node) -> Node | None:
            if term.primitive.name != DotGeneral.name:
                return None
            lhs, rhs = term.inputs
            if any(type(a) is not Var or not bits[a] & ~_CONST for a in (lhs, rhs)):
                return None
            (lc, rc), (lb, rb) = term.params["dimension_numbers"]
            rows = math.prod(lhs.aval.shape[i] for i in lc)
            new = {v: v.aval for v in (lhs, rhs) if v not in self.stacked}
            if rows >= FEW or not self.takes(new.values()):
                return None
            numbers = (
                ((0, *(i + 1 for i in lc)), (0, *(i + 1 for i in rc))),
                (tuple(i + 1 for i in lb), tuple(i + 1 for i in rb)),
            )
            operands = [self.stack(lhs), self.stack(rhs)]
            params = term.params | {"dimension_numbers": numbers}
            return made(term, DotGeneral, operands, params)

        self.sum_terms(total)

    def sum_stacked(self) -> None:
        """Replaces sums of what is stacked anyway by a reduction."""

        def total(term: Node) -> Node | None:
            (out, *_), axes, operand = term.outputs, (0,), None
            if out in self.stacked:
                operand = self.stacked[out]
            elif term.primitive.name == ReduceSum.name:
                operand = self.stacked.get(term.inputs[0])
                axes = (0, *(i + 1 for i in term.params["axes"]))
            if operand is None:
                return None
            return made(term, ReduceSum, [operand], {"axes": axes})

        # Worth it only beside a product that left: a loop that only adds is quick.
        if self.changed:
            self.sum_terms(total)

    def sum_terms(self, total: Callable[[Node], Node | None]) -> None:
        """Takes terms of sums over the steps out of the loop.

        Args:
          total: returns the node that sums a term over all steps, or None.
        """
        makers = self.made_by()
        counts = uses(self.nodes, self.outputs())
        kept: list[_Carried] = []
        for part in self.carry:
            terms = _terms(part, makers, counts)
            rest, sums = [], []
            for path in terms or ():
                done = total(path[-1]) if path else None
                if done is None:
                    rest.append(path)
                else:
                    sums.append((path, done))
            if not sums or terms is None:
                kept.append(part)
                continue
            self.changed = True
            result: Any = part.first
            adding = makers[part.next]
            if rest:
                # The terms that stay are still added up in the loop.
                value: Any = part.var
                for atom in (p[0] for p in terms if any(p is r for r in rest)):
                    node = made(adding, Add, [value, atom.outputs[0]], {})
                    self.nodes = [*self.nodes, node]
                    value = node.outputs[0]
                result = Var(part.last.aval)
                kept.append(_Carried(part.var, part.first, value, result))
            for path, done in sums:
                self.after.append(done)
                value = done.outputs[0]
                for node in reversed(path[:-1]):
                    moved = made(node, node.primitive, [value], node.params)
                    self.after.append(moved)
                    value = moved.outputs[0]
                added = made(adding, Add, [result, value], {})
                self.after.append(added)
                result = added.outputs[0]
            self.names[part.last] = result
        self.carry = kept


def _terms(
    part: _Carried, makers: dict[Var, Node], counts: Any
) -> list[list[Node]] | None:
    """Returns what a part of the carry is increased by in each step, or None.

    Returns:
      For each term the nodes that make it, the last first: movements of elements, and
      the node before these.
    """
    if counts[part.var] != 1:
        return None
    terms: list[list[Node]] = []
    found = False
    waiting = [part.next]
    while waiting:
        atom = waiting.pop()
        if atom is part.var:
            found = True
            continue
        node = makers.get(atom) if type(atom) is Var else None
        if node is None or atom.aval.shape != part.var.aval.shape:
            return None
        if node.primitive.name == Add.name and counts[atom] == 1:
            waiting += node.inputs
            continue
        path = [node]
        while node.primitive.name in (Transpose.name, Reshape.name):
            before = makers.get(node.inputs[0])
            if before is None or len(before.outputs) != 1:
                break
            node = before
            path.append(node)
        if len(path[-1].outputs) != 1:
            return None
        terms.append(path)
    return terms if found and terms else None


def _ordered(nodes: Iterable[Node]) -> list[Node]:
    """Returns the nodes in an order that can be run."""
    nodes = list(nodes)
    makers = {out: node for node in nodes for out in node.outputs}
    done: dict[int, Node] = {}
    waiting = nodes[::-1]
    while waiting:
        node = waiting[-1]
        needed = [makers[a] for a in node.inputs if type(a) is Var and a in makers]
        missing = [n for n in needed if id(n) not in done]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        done.setdefault(id(node), node)
    return list(done.values())


def _sums_exactly(product: Node) -> bool:
    """Returns whether partial sums lose nothing that the product itself keeps."""
    dtype = product.outputs[0].aval.dtype
    return not dtypes.is_floating(dtype) or dtypes.bits(dtype) >= 32


def _is_movable(node: Node) -> bool:
    """Returns whether an operation gives the same for all steps at once."""
    primitive = node.primitive
    return (
        (
            isinstance(primitive, Elementwise | Structural | Reduction)
            or primitive.name in _MOVABLE
        )
        and primitive.name != DevicePut.name
        and not node.effects
        and not primitive.axis_params
        and not primitive.names_layout
        and not primitive.names_memory(node.params)
        and not subgraphs(node.params)
    )
