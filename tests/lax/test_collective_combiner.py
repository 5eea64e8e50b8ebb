"""Operations that are held back, and become one."""

from __future__ import annotations

import numpy as np

from fxflow import lax, make_graph
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.graph import Graph, Node, Var
from fxflow.core.ir.staging import trace_flat
from fxflow.lax import collective_combiner as combiner

F32 = Aval((4,), np.dtype(np.float32))


class Fake:
    """An operation that is combined with those of its kind; None stays alone."""

    def __init__(self, kind):
        self.kind = kind


class Program:
    def __init__(self):
        self.nodes: list[Node] = []

    def add(self, kind, *inputs, aval=F32):
        out = Var(aval)
        self.nodes.append(Node(Fake(kind), list(inputs), [out], {}))
        return out

    def written(self, inputs, outputs):
        """The order in which the nodes are done, those that are one in one list."""
        graph = Graph(inputs, self.nodes, outputs, "program")
        order = []
        known = set(inputs)
        for group in combiner.in_groups(graph, lambda node: node.primitive.kind):
            order.append([self.nodes.index(node) for node in group])
            for node in group:
                assert known.issuperset(node.inputs)
            for node in group:
                known.update(node.outputs)
        assert known.issuperset(outputs)
        return order


def test_later_collectives_are_written_with_the_first():
    """As `pmean` of a tree: each sum is divided at once."""
    program, (a, b, c) = Program(), (Var(F32), Var(F32), Var(F32))
    means = [program.add(None, program.add("sum", x)) for x in (a, b, c)]
    assert program.written([a, b, c], means) == [[0, 2, 4], [1], [3], [5]]


def test_those_before_wait_until_they_are_needed():
    """As sums of gradients: each is known only after the one before."""
    program, a = Program(), Var(F32)
    b = program.add(None, a)
    first = program.add("sum", b)
    c = program.add(None, b)
    second = program.add("sum", c)
    out = program.add(None, first)
    assert program.written([a], [out, second]) == [[0], [2], [1, 3], [4]]


def test_one_that_needs_another_comes_after_it():
    program, (a, b) = Program(), (Var(F32), Var(F32))
    first = program.add("sum", a)
    again = program.add("sum", first)
    other = program.add("sum", b)
    # `other` goes with the first it can go with.
    assert program.written([a, b], [again, other]) == [[0, 2], [1]]


def test_kinds_do_not_mix():
    program, (a, b) = Program(), (Var(F32), Var(F32))
    outs = [program.add(kind, x) for x in (a, b) for kind in ("sum", "max", None)]
    assert program.written([a, b], outs) == [[2], [5], [0, 3], [1, 4]]


def test_what_is_alone_is_not_held_back():
    program, a = Program(), Var(F32)
    first = program.add("sum", a)
    out = program.add(None, a)
    assert program.written([a], [first, out]) == [[0], [1]]


def test_unused_collectives_are_not_written():
    program, (a, b) = Program(), (Var(F32), Var(F32))
    program.add("sum", a)
    program.add("sum", b)
    assert program.written([a, b], []) == []


def test_a_group_has_its_limit():
    large = Aval((combiner.LARGEST // 8,), np.dtype(np.float32))
    program, inputs = Program(), [Var(large) for _ in range(5)]
    outs = [program.add("sum", x, aval=large) for x in inputs]
    assert program.written(inputs, outs) == [[0, 1], [2, 3], [4]]


def test_the_combined_graph_computes_the_same():
    def program(x, y):
        a, b = lax.neg(x), lax.neg(y)
        (c,) = lax.scan(lambda c, _: ([lax.neg(v) for v in c], None), [a], None, 2)[0]
        return [lax.add(a, c), lax.sin(b)]

    graph = make_graph(program)(np.ones(3, np.float32), np.ones(2, np.float32)).graph

    def kind(node):
        return "neg" if node.primitive.name == "neg" else None

    def combine(nodes):
        def flat(x, y):
            both = lax.neg(lax.concatenate([x, y], 0))
            return [lax.slice(both, [0], [3]), lax.slice(both, [3], [5])]

        return trace_flat(flat, [n.inputs[0].aval for n in nodes])[0]

    new = combiner.combined(graph, kind, combine)
    assert new is combiner.combined(graph, kind, combine)
    assert [n.primitive.name for n in new.nodes].count("neg") == 1
    values = np.arange(3, dtype=np.float32), np.arange(2, dtype=np.float32)
    for got, want in zip(new.evaluate(*values), graph.evaluate(*values), strict=True):
        np.testing.assert_array_equal(got, want)
