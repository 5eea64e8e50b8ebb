"""Operations that are held back, and written as one."""

from __future__ import annotations

import numpy as np

from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.graph import Node, Var
from fxflow.core.spmd import joining

F32 = Aval((4,), np.dtype(np.float32))


class Fake:
    """An operation that joins those of its kind; None stays alone."""

    def __init__(self, kind):
        self.kind = kind

    def joins(self, module, node):
        return self.kind


class Program:
    def __init__(self):
        self.nodes: list[Node] = []

    def add(self, kind, *inputs, aval=F32):
        out = Var(aval)
        self.nodes.append(Node(Fake(kind), list(inputs), [out], {}))
        return out

    def written(self, inputs, outputs):
        """The order in which the nodes are written, those that are one in one list."""
        order = []
        names = dict.fromkeys(inputs, "")
        held = joining.Held(self.nodes, None)

        def write(group):
            order.append([self.nodes.index(node) for node in group])
            for node in group:
                assert all(x in names for x in node.inputs)
                names.update(dict.fromkeys(node.outputs, ""))

        for node in self.nodes:
            for group in held.needed(node.inputs, names):
                write(group)
            if not held.holds(node):
                write([node])
        for group in held.needed(outputs, names):
            write(group)
        assert all(x in names for x in outputs)
        return order


def test_those_to_come_are_written_with_the_first():
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


def test_what_nobody_needs_is_not_written():
    program, (a, b) = Program(), (Var(F32), Var(F32))
    program.add("sum", a)
    program.add("sum", b)
    assert program.written([a, b], []) == []


def test_a_group_has_its_limit():
    large = Aval((joining.LARGEST // 8,), np.dtype(np.float32))
    program, inputs = Program(), [Var(large) for _ in range(5)]
    outs = [program.add("sum", x, aval=large) for x in inputs]
    assert program.written(inputs, outs) == [[0, 1], [2, 3], [4]]
