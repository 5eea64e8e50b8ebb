"""What operations that hold graphs need to know about them."""

from __future__ import annotations

import numpy as np

import fxflow
from fxflow import checkpoint, custom_jvp, jit, lax, vmap
from fxflow.core.arrays.array import as_array
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir import higher_order as ho
from fxflow.core.ir.primitive import Zero
from fxflow.core.ir.staging import trace_flat
from fxflow.lax.collectives import axis_index, psum

SCALAR = Aval((), np.dtype(np.float32))


def traced(function, count, aval=SCALAR):
    graph, consts = trace_flat(function, [aval] * count)
    assert not consts
    return graph


def test_flow():
    graph = traced(lambda a, b, c: [lax.add(a, b), lax.sin(c), b, 1.0], 3)
    assert ho.flow(graph, [True, False, False]) == [True, False, False, False]
    assert ho.flow(graph, [False, True, False]) == [True, False, True, False]
    to_int = traced(
        lambda x: [
            lax.convert_element_type(lax.convert_element_type(x, np.int32), np.float32)
        ],
        1,
    )
    assert ho.flow(to_int, [True]) == [True]
    assert ho.flow(to_int, [True], ho.carries_tangent) == [False]


def test_carry_flow_goes_around_until_nothing_changes():
    graph = traced(lambda w, a, b, c: [b, c, lax.mul(c, w)], 4)
    assert ho.carry_flow(graph, [True, False, False, False], 1, 3) == [True] * 3
    assert ho.carry_flow(graph, [False, True, False, False], 1, 3) == [
        True,
        False,
        False,
    ]


def test_inputs_of_a_graph_are_reordered():
    graph = traced(lambda a, b: [lax.sub(a, b)], 2)
    a, b = graph.inputs
    swapped = graph.replace(inputs=[b, a])
    assert float(swapped.evaluate(1.0, 3.0)[0]) == 2.0
    x, y, z = (as_array(np.ones(2, np.float32)) for _ in range(3))
    captured, consts = trace_flat(lambda: [lax.add(x, y)], [])
    wanted = [z, y, x]
    wider = ho.with_consts(captured, consts, wanted)
    wider.check()
    assert len(wider.inputs) == 3
    assert ho.with_consts(captured, consts, consts) is captured


def test_zeros_are_appended_to_results():
    graph = traced(lambda a: [a], 1)
    nodes, atoms = ho.append_zeros(graph, [SCALAR, Aval((2, 3), np.dtype(np.int32))])
    both = graph.replace(nodes=nodes, outputs=atoms)
    both.check()
    zero, zeros = both.evaluate(1.0)
    assert float(zero) == 0.0
    assert np.asarray(zeros).tolist() == [[0] * 3] * 2


def test_axes_and_effects():
    graph = traced(lambda a: [lax.sin(a)], 1)
    assert not ho.uses_axis(graph, "i")
    assert graph.effects == frozenset()


def test_host_evaluation():
    graph = traced(lambda a: [lax.add(lax.mul(a, 2.0), 1.0), 3.0], 1)
    out = ho.run_host(graph, [np.float32(2.0)])
    assert [float(x) for x in out] == [5.0, 3.0]


def test_lists():
    zero = Zero(SCALAR)
    assert ho.live_flags([1.0, zero]) == [True, False]
    assert ho.chosen("abc", [True, False, True]) == ["a", "c"]
    first, second = ho.spread(["a"], [False, True], [SCALAR, SCALAR])
    assert type(first) is Zero
    assert second == "a"
    assert ho.split_at([1, 2, 3, 4], 1, 2) == [[1], [2, 3], [4]]


def test_move_axis():
    x = as_array(np.zeros((2, 3, 4), np.float32))
    assert ho.move_axis(x, 0, 1).shape == (3, 2, 4)
    assert ho.move_axis(x, 2, 0).shape == (4, 2, 3)
    assert ho.move_axis(x, 1, 1) is x


def test_named_axis_inside_a_loop():
    xs = np.arange(4.0, dtype=np.float32)

    def run(x):
        step = lambda c, _: (lax.add(c, psum(c, "i")), None)
        return lax.scan(step, x, None, length=2)[0]

    # The sum s of 4 slices becomes s + 4 s in each step; each slice gains it.
    got = vmap(run, axis_name="i")(xs)
    first = xs + xs.sum()
    np.testing.assert_allclose(got, first + first.sum())


def test_named_axis_inside_branches_and_calls():
    xs = np.arange(4.0, dtype=np.float32)

    def branch(x):
        first = lax.eq(axis_index("i"), 0)
        return lax.cond(first, lambda: psum(x, "i"), lambda: lax.neg(x))

    got = vmap(branch, axis_name="i")(xs)
    assert got.tolist() == [6.0, -1.0, -2.0, -3.0]

    def until(x):
        return lax.while_loop(
            lambda c: lax.lt(psum(c, "i"), 100.0), lambda c: lax.mul(c, 2.0), x
        )

    assert vmap(until, axis_name="i")(xs).tolist() == (xs * 32).tolist()

    share = custom_jvp(lambda x: lax.div(x, psum(x, "i")))
    share.defjvp(lambda p, t: (share(*p), lax.mul(t[0], psum(p[0], "i"))))
    assert vmap(share, axis_name="i")(xs).tolist() == (xs / 6).tolist()
    slopes = vmap(fxflow.grad(share), axis_name="i")(xs)
    assert slopes.tolist() == [6.0] * 4
    total = lambda xs: lax.reduce_sum(vmap(share, axis_name="i")(xs), (0,))
    assert jit(fxflow.grad(total))(xs).tolist() == [6.0] * 4
    again = checkpoint(lambda x: lax.mul(x, psum(x, "i")))
    total = lambda xs: lax.reduce_sum(vmap(again, axis_name="i")(xs), (0,))
    assert jit(fxflow.grad(total))(xs).tolist() == [12.0] * 4


def test_the_cost_of_a_graph_with_collectives_inside():
    mesh = fxflow.make_mesh((2,), ("d",))
    spec = fxflow.P("d")
    f = fxflow.shard_map(
        lambda x: lax.sin(psum(x, "d")), mesh=mesh, in_specs=spec, out_specs=fxflow.P()
    )
    graph = fxflow.make_graph(f)(np.ones((4, 3), np.float32)).graph
    assert ho.graph_cost(graph)["flops"] >= 2 * 3
