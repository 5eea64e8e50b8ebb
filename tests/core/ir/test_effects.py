"""Effects: kept by pruning, in order through calls, branches and loops."""

from __future__ import annotations

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import io_callback, jit, lax
from fxflow.core.ir.primitive import IO, ORDERED

log: list[float] = []


@pytest.fixture(autouse=True)
def empty_log():
    log.clear()


def note(x, ordered=True):
    io_callback(lambda v: log.append(float(v)), None, x, ordered=ordered)


def test_effects_of_a_graph_are_those_of_its_nodes():
    graph = fxflow.make_graph(lambda x: note(x))(1.0)
    assert graph.effects == {ORDERED}
    graph = fxflow.make_graph(lambda x: note(x, ordered=False))(1.0)
    assert graph.effects == {IO}
    nested = fxflow.make_graph(lambda x: jit(lambda y: note(y))(x))(1.0)
    assert nested.effects == {ORDERED}
    assert fxflow.make_graph(lambda x: x + 1)(1.0).effects == frozenset()


def test_an_effect_without_a_used_result_happens():
    def fun(x):
        note(x)
        return x

    jit(fun)(3.0)
    assert log == [3.0]


def test_order_in_straight_code():
    def fun(x):
        for i in range(6):
            note(x + i)
        return x

    for _ in range(3):
        log.clear()
        jit(fun)(0.0)
        assert log == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_order_through_calls():
    inner = jit(lambda x: (note(x), note(x + 0.5))[0])

    def fun(x):
        note(x)
        inner(x + 1)
        note(x + 2)
        inner(x + 3)
        return x

    jit(fun)(0.0)
    assert log == [0.0, 1.0, 1.5, 2.0, 3.0, 3.5]


def test_order_through_scan():
    def step(carry, x):
        note(carry)
        note(x)
        return carry + 1, None

    def fun(xs):
        note(-1.0)
        out, _ = lax.scan(step, fnp.array(10.0), xs)
        note(-2.0)
        return out

    jit(fun)(fnp.array([0.0, 1.0, 2.0]))
    assert log == [-1.0, 10.0, 0.0, 11.0, 1.0, 12.0, 2.0, -2.0]


def test_order_through_while():
    def fun(n):
        def body(i):
            note(i)
            return i + 1.0

        note(-1.0)
        out = lax.while_loop(lambda i: i < n, body, fnp.array(0.0))
        note(out)
        return out

    jit(fun)(fnp.array(3.0))
    assert log == [-1.0, 0.0, 1.0, 2.0, 3.0]


def test_order_through_branches():
    def fun(which):
        note(-1.0)
        lax.cond(which, lambda: note(1.0), lambda: (note(2.0), note(3.0))[0])
        note(4.0)
        return which

    jitted = jit(fun)
    jitted(True)
    assert log == [-1.0, 1.0, 4.0]
    log.clear()
    jitted(False)
    assert log == [-1.0, 2.0, 3.0, 4.0]


def test_eager_effects_happen_at_once():
    note(1.0)
    assert log == [1.0]
    lax.scan(lambda c, x: (c, note(x)), 0.0, fnp.array([2.0, 3.0]))
    assert log == [1.0, 2.0, 3.0]


def test_programs_one_after_the_other():
    jitted = jit(note)
    for i in range(5):
        jitted(float(i))
    assert log == [0.0, 1.0, 2.0, 3.0, 4.0]
