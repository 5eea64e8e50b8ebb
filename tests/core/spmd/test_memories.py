"""Moves between memories: where they are written, and where results are.

A graph with its moves is written as a list: operations by name, and moves as the kind
of memory they go to.
"""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays.aval import type_on
from fxflow.core.ir.graph import subgraphs
from fxflow.core.spmd.memories import (
    FREE,
    Going,
    Move,
    Origin,
    Relaid,
    laid_out,
    wanted_of,
)
from fxflow.devices import buffers
from fxflow.memory import Space

H = "pinned_host"
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def graph_of(fun, *args):
    return fxflow.jit(fun).trace(*args).graph


def steps(graph):
    found = []
    for node in graph.nodes:
        memory = node.params.get("memory")
        if type(memory) is Move:
            found.append(memory.kind or "device")
        elif node.primitive.name != "device_put":
            found.append(node.primitive.name)
            inner = [steps(sub) for _, sub in subgraphs(node.params)]
            if inner:
                found.append(inner if len(inner) > 1 else inner[0])
    return found


def laid(fun, *args, kinds=None, wanted=()):
    graph = graph_of(fun, *args)
    given = kinds or [None] * len(graph.inputs)
    made, outs = laid_out(graph, given, wanted)
    made.check()
    return steps(made), outs


# -- nothing to do ---------------------------------------------------------------------


def test_programs_of_one_memory_stay_as_they_are():
    graph = graph_of(lambda x: fxflow.device_put(fnp.sin(x), "cpu:0"), X)
    assert not graph.facts.names_memory
    assert laid_out(graph, [None], [None]) == (graph, None)
    assert laid_out(graph, [None]) == (graph, None)


# -- arguments and results -------------------------------------------------------------


def test_what_computes_reads_a_copy():
    fun = lambda x, y: (lax.sin(x), lax.mul(x, y))
    assert laid(fun, X, X, kinds=[H, None]) == (["device", "sin", "mul"], [None, None])
    assert laid(fun, X, X, kinds=[H, H]) == (
        ["device", "sin", "device", "mul"],
        [None, None],
    )


def test_results_where_they_are_wanted():
    assert laid(lax.sin, X, wanted=[H]) == (["sin", H], [H])
    assert laid(lambda x: x, X, kinds=[H]) == ([], [H])
    assert laid(lambda x: x, X, kinds=[H], wanted=[None]) == (["device"], [None])
    assert laid(lambda x: x, X, kinds=[H], wanted=[H]) == ([], [H])
    assert laid(lambda x: x, X, kinds=[H], wanted=[Relaid(H)]) == (["device", H], [H])
    assert laid(lambda x: x, X, kinds=[H], wanted=["unpinned_host"]) == (
        ["device", "unpinned_host"],
        ["unpinned_host"],
    )
    # A number that is written into the graph, too.
    assert laid(lambda x: 1.0, X, wanted=[H]) == ([H], [H])


def test_an_input_that_is_laid_out_otherwise():
    mesh = fxflow.make_mesh((2,), ("x",))
    split = fxflow.NamedSharding(mesh, fxflow.P("x"), memory_kind=H)
    whole = fxflow.NamedSharding(mesh, fxflow.P(), memory_kind=H)
    graph = graph_of(lambda x: (x, x, x, lax.sin(x)), X)
    places = [buffers.placement_for(split)]
    assert wanted_of(graph, places, [split, whole, None, whole]) == [
        H,
        Relaid(H),
        FREE,
        H,
    ]
    assert wanted_of(graph, places, ()) == []


# -- what names a memory ---------------------------------------------------------------


def test_there_and_back():
    def fun(x):
        there = fxflow.device_put(lax.sin(x), Space.Host)
        return there, lax.cos(fxflow.device_put(there, Space.Device))

    assert laid(fun, X) == (["sin", H, "device", "cos"], [H, None])
    twice = lambda x: fxflow.device_put(fxflow.device_put(x, Space.Host), Space.Host)
    assert laid(twice, X) == ([H], [H])
    assert laid(twice, X, kinds=[H]) == ([], [H])
    assert laid(lambda x: fxflow.device_put(x, Space.Device), X, kinds=[H]) == (
        ["device"],
        [None],
    )


def test_a_layout_is_changed_in_the_devices_own_memory():
    mesh = fxflow.make_mesh((2,), ("x",))
    there = fxflow.NamedSharding(mesh, fxflow.P("x"), memory_kind=H)
    put = lambda x: fxflow.device_put(x, there)
    assert laid(put, X, kinds=[H]) == (["device", H], [H])
    here = lambda x: lax.with_sharding_constraint(x, there.with_memory_kind(None))
    assert laid(here, X, kinds=[H]) == (["device", H], [H])
    assert laid(lambda x: here(put(x)), X) == ([H, "device", H], [H])


# -- views, slices, updates ------------------------------------------------------------


def test_views_stay_parts_are_read():
    i = np.int32(1)
    assert laid(lambda x: fnp.reshape(x, (1, 2, 3)), X, kinds=[H]) == (["reshape"], [H])
    assert laid(lambda x: fnp.reshape(x, (3, 2)), X, kinds=[H]) == (
        ["device", "reshape"],
        [None],
    )
    named = lambda x: fxflow.checkpoint_name(x, "a")
    assert laid(named, X, kinds=[H]) == (["name"], [H])
    both = lambda x, y: tuple(lax.optimization_barrier((x, y)))
    assert laid(both, X, X, kinds=[H, None]) == (["optimization_barrier"], [H, None])
    part = lambda x: lax.slice(x, (0, 1), (2, 2))
    assert laid(part, X, kinds=[H]) == (["slice", "device"], [None])
    assert laid(lambda x: lax.sin(part(x)), X, kinds=[H]) == (
        ["slice", "device", "sin"],
        [None],
    )
    row = lambda x, i: lax.dynamic_index_in_dim(x, i, 0, False)
    names, outs = laid(row, X, i, kinds=[H, None])
    assert names[-3:] == ["dynamic_slice", "reshape", "device"] and outs == [None]
    # A part that goes to host memory passes through the device's.
    away = lambda x: fxflow.device_put(part(x), Space.Host)
    assert laid(away, X, kinds=[H]) == (["slice", "device", H], [H])


def test_updates_are_written_in_place():
    update = lambda x, u: lax.dynamic_update_slice(x, u, (0, 0))
    assert laid(update, X, X[:1], kinds=[H, None]) == (
        [H, "dynamic_update_slice"],
        [H],
    )
    assert laid(update, X, X[:1], kinds=[None, H]) == (
        ["device", "dynamic_update_slice"],
        [None],
    )
    assert laid(lambda x, u: update(x[:1], u), X, X[:1], kinds=[H, None]) == (
        ["slice", "device", "dynamic_update_slice"],
        [None],
    )


# -- calls, branches, loops ------------------------------------------------------------


def test_calls():
    called = fxflow.jit(lambda x: (lax.sin(x), fxflow.device_put(x, Space.Host)))
    # What it would read whole is copied before, so that it is copied once.
    assert laid(lambda x: called(x), X, kinds=[H]) == (
        ["device", "jit", ["sin", H]],
        [None, H],
    )
    keeps = fxflow.jit(lambda x: x[:1])
    assert laid(lambda x: keeps(x), X, kinds=[H]) == (
        ["jit", ["slice", "device"]],
        [None],
    )
    again = fxflow.checkpoint(lambda x: fxflow.device_put(lax.sin(x), Space.Host))
    assert laid(again, X) == (["checkpoint", ["sin", H]], [H])


def test_custom_derivatives():
    @fxflow.custom_jvp
    def square(x):
        return fxflow.device_put(x * x, Space.Host)

    square.defjvp(lambda p, t: (square(*p), 2 * p[0] * t[0]))
    names, outs = laid(square, X, kinds=[H])
    assert names == ["device", "custom_jvp", ["mul", H]] and outs == [H]


@pytest.mark.parametrize("there", [True, False])
def test_branches(there):
    one = lambda x: fxflow.device_put(lax.sin(x), Space.Host)
    other = (lambda x: x) if there else lax.cos
    fun = lambda p, x: lax.cond(p, one, other, x)
    names, outs = laid(fun, np.True_, X, kinds=[None, H])
    # Copied in the branch that reads it; both leave it in one memory.
    branches = (
        [[], ["device", "sin", H]]
        if there
        else [["device", "cos"], ["device", "sin", H, "device"]]
    )
    assert names[-1] == branches and outs == [H if there else None]


def scanned(body, *xs, length=None):
    return lambda x, *ys: lax.scan(body, x, *(ys or (None,)), length=length)


def test_scans_stack_where_the_body_puts():
    body = lambda c, w: (c * w, fxflow.device_put(c, Space.Host))
    names, outs = laid(scanned(body), X[0], X)
    assert names == ["scan", ["mul", H]] and outs == [None, H]
    # A host array is read slice by slice.
    names, outs = laid(scanned(body), X[0], X, kinds=[None, H])
    assert names == ["scan", ["device", "mul", H]] and outs == [None, H]


def test_constants_of_loops_are_read_before():
    w = X[0]
    fun = lambda x, w: lax.scan(lambda c, _: (c * w, None), x, None, length=3)[0]
    assert laid(fun, w, w, kinds=[None, H]) == (["device", "scan", ["mul"]], [None])
    # One of which only parts are read stays where it is.
    part = lambda x, w: lax.scan(lambda c, _: (c * w[:1], None), x, None, length=3)[0]
    names, _ = laid(part, w, w, kinds=[None, H])
    assert names[0] == "scan" and names[1][:2] == ["slice", "device"]


def test_carries_stay_in_one_memory():
    away = lambda c, _: (fxflow.device_put(lax.sin(c), Space.Host), None)
    for kind, before in ((H, []), (None, [H])):
        assert laid(scanned(away, length=3), X, kinds=[kind]) == (
            [*before, "scan", ["device", "sin", H]],
            [H],
        )
    here = lambda c, _: (lax.sin(c), None)
    assert laid(scanned(here, length=3), X, kinds=[H]) == (
        ["device", "scan", ["sin"]],
        [None],
    )
    swap = lambda c, _: ((c[1], c[0]), None)
    fun = lambda x, y: lax.scan(swap, (x, y), None, length=3)[0]
    assert laid(fun, X, X, kinds=[H, None]) == (["device", "scan", []], [None, None])
    assert laid(fun, X, X, kinds=[H, H]) == (["scan", []], [H, H])


def test_scans_written_out_are_loops_then():
    body = lambda c, _: (c, fxflow.device_put(c, Space.Host))
    fun = lambda x: lax.scan(body, x, None, length=4, unroll=4)
    made, _ = laid_out(graph_of(fun, X), [None])
    assert made.nodes[0].params["unroll"] == 1
    plain, _ = laid_out(graph_of(fun, X), [H])
    assert plain.nodes[-1].params["unroll"] == 1
    graph = graph_of(lambda x: lax.scan(lambda c, _: (c, c), x, None, 4, unroll=4), X)
    kept, _ = laid_out(graph, [None], [None, H])
    assert kept.nodes[0].params["unroll"] == 4


def test_while_loops():
    fun = lambda x: lax.while_loop(
        lambda c: c[0].sum() < 9.0, lambda c: (c[0] + c[1], c[1]), (x, x)
    )
    # What each round reads whole is read once.
    names, outs = laid(fun, X, kinds=[H])
    assert names == ["device", "while", names[-1]] and outs == [None, None]
    away = lambda x: lax.while_loop(
        lambda c: c.sum() < 9.0, lambda c: fxflow.device_put(c + 1, Space.Host), x
    )
    names, outs = laid(away, X)
    assert names[0] == H and outs == [H]
    # The condition looks at a copy.
    assert names[-1][0][0] == "device"


def test_inside_what_knows_no_memories():
    def solve(x):
        matvec = lambda v: fxflow.device_put(
            fxflow.device_put(v, Space.Host) * 2, "cpu:0"
        )
        return lax.custom_linear_solve(matvec, x, lambda _, b: b / 2, symmetric=True)

    names, outs = laid(solve, X[0], kinds=[H])
    assert names[0] == "device" and outs == [None]


# -- derivatives -----------------------------------------------------------------------


def test_where_cotangents_go():
    assert Going(H).turned() == Going(None, H)
    assert Going(None, H).turned() == Going(H, None)
    origin = Origin()
    turned = Going(None, origin).turned()
    assert turned.to.origin is origin and turned.turned().to is None


def test_cotangents_go_back():
    fun = fxflow.grad(lambda x: fnp.sum(lax.sin(fxflow.device_put(x, Space.Device))))
    assert laid(fun, X, kinds=[H])[1] == [H]
    assert laid(fun, X, kinds=[None], wanted=[H])[1] == [H]
    # What else reads it does not matter.
    mixed = fxflow.jit(lambda x: fnp.sum(lax.sin(fxflow.device_put(x, "cpu:0")) * x))
    assert laid(fxflow.grad(mixed), X, kinds=[H])[1] == [None]
    # One graph, two uses.
    called = fxflow.jit(fun)
    both = lambda x, y: (called(x), called(y))
    assert laid(both, X, X, kinds=[H, None])[1] == [H, None]


def test_names_are_only_made_once():
    # The same call twice is one function of the program.
    called = fxflow.jit(lambda x: fxflow.device_put(lax.sin(x), Space.Host))
    graph = graph_of(lambda x, y: (called(x), called(y)), X, X)
    made, _ = laid_out(graph, [None, None])
    first, second = (n.params["graph"] for n in made.nodes)
    assert first is second
    assert type_on(made.out_avals[0]).placement.offloaded is None
