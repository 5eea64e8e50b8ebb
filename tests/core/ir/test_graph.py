"""The graph: printing, checking, evaluating, pruning."""

from __future__ import annotations

import re
import textwrap

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import checkpoint, io_callback, jit, lax, make_graph
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir import graph as graph_module
from fxflow.core.ir.graph import (
    Graph,
    Literal,
    Node,
    Var,
    format_graph,
    graph_name,
    last_uses,
    live_nodes,
    prune,
    subgraphs,
    used_inputs,
)
from fxflow.core.ir.primitive import table
from fxflow.core.ir.staging import trace_flat
from fxflow.errors import GraphError, ShapeError

F32 = np.dtype(np.float32)
SCALAR = Aval((), F32)
VECTOR = Aval((3,), F32)


def traced(function, *avals):
    graph, consts = trace_flat(function, avals or (SCALAR,))
    assert not consts
    return graph


def text(source):
    return textwrap.dedent(source).strip()


# -- printing --------------------------------------------------------------------------


def test_straight_code():
    graph = traced(lambda x, y: [lax.mul(lax.sin(x), y), 2.0], VECTOR, VECTOR)
    assert str(graph) == text(
        """
        graph graph(a: f32[3], b: f32[3]) {
          c: f32[3] = sin a
          d: f32[3] = mul c b
          return d, 2.0:f32[]~
        }
        """
    )
    assert repr(graph) == ("<Graph graph(f32[3], f32[3]) -> (f32[3], f32[]~), 2 nodes>")


def test_parameters_and_literals():
    graph = traced(lambda x: [lax.reduce_sum(lax.mul(x, 2.0), (0,))], VECTOR)
    assert str(graph) == text(
        """
        graph graph(a: f32[3]) {
          b: f32[3] = mul a 2.0:f32[]
          c: f32[] = reduce_sum[axes=(0,)] b
          return c
        }
        """
    )


def test_nested_graphs():
    def inner(x):
        return lax.cos(x)

    graph = make_graph(lambda x: jit(inner)(lax.sin(x)))(1.0)
    assert str(graph) == text(
        """
        graph lambda_(a: f32[]~) {
          b: f32[]~ = sin a
          c: f32[]~ = jit b
            graph = graph inner(d: f32[]~) {
              e: f32[]~ = cos d
              return e
            }
          return c
        }
        """
    )


def test_captured_values_are_inputs():
    table_ = fnp.arange(3.0)
    graph, consts = trace_flat(lambda x: [lax.add(x, table_)], [VECTOR])
    assert graph.num_consts == 1 and consts == [table_]
    assert str(graph).startswith("graph graph(a: f32[3], b: f32[3]) {")


def test_effects_without_results():
    graph = traced(lambda x: [io_callback(print, None, x) or x])
    lines = str(graph).splitlines()
    assert lines[1] == "  python_callback[function=print, effect=io] a"


def test_lines_on_request():
    def fun(x):
        return [lax.sin(x)]

    graph = traced(fun)
    line = fun.__code__.co_firstlineno + 1
    expected = f"  b: f32[] = sin a  # {__file__}:{line} (fun)"
    assert format_graph(graph, lines=True).splitlines()[1] == expected


def test_names_go_on_after_z():
    def fun(x):
        for _ in range(30):
            x = lax.neg(x)
        return [x]

    lines = str(traced(fun)).splitlines()
    assert lines[26].split(":")[0].strip() == "aa"
    assert lines[27].split(":")[0].strip() == "ab"
    names = [line.split(":")[0].strip() for line in lines[1:31]]
    assert len(set(names)) == 30


def test_long_graphs_print_in_linear_time():
    def fun(x):
        for _ in range(3000):
            x = lax.neg(x)
        return [x]

    assert str(traced(fun)).count("neg") == 3000


# -- evaluating ------------------------------------------------------------------------


def test_evaluate():
    graph = traced(lambda x, y: [lax.sub(x, y), x], SCALAR, SCALAR)
    out = graph.evaluate(fnp.array(5.0), fnp.array(3.0))
    assert [float(v) for v in out] == [2.0, 5.0]
    assert [float(v) for v in graph(5.0, 3.0)] == [2.0, 5.0]
    with pytest.raises(ValueError):
        graph.evaluate(1.0)


def test_evaluate_under_a_transformation():
    graph = traced(lambda x: [lax.sin(x)])
    gradient = fxflow.grad(lambda x: graph.evaluate(x)[0])(1.0)
    assert float(gradient) == pytest.approx(np.cos(1.0))


def test_values_are_dropped_after_their_last_use():
    graph = traced(lambda x: [lax.exp(lax.cos(lax.sin(x)))])
    first, second, third = last_uses(graph)
    assert first == [graph.inputs[0]]
    assert second == list(graph.nodes[0].outputs)
    assert third == list(graph.nodes[1].outputs)
    assert last_uses(graph) is last_uses(graph)


def test_literals_are_arrays_of_their_type():
    literal = Literal(np.float32(2.0), Aval((), F32, True))
    assert literal.array.aval is literal.aval
    assert literal.array is literal.array
    assert repr(literal) == "2.0:f32[]~"
    assert repr(Var(VECTOR)) == "Var(f32[3])"


# -- pruning ---------------------------------------------------------------------------


def test_unused_nodes_are_never_recorded():
    graph = traced(lambda x: (lax.sin(x), [lax.cos(x)])[1])
    assert [n.primitive.name for n in graph.nodes] == ["cos"]


def test_prune_by_outputs():
    graph = traced(lambda x, y: [lax.sin(x), lax.cos(y)], SCALAR, SCALAR)
    assert prune(graph) is graph
    half = prune(graph, [False, True])
    assert [n.primitive.name for n in half.nodes] == ["cos"]
    assert len(half.inputs) == 2
    assert used_inputs(half) == [False, True]
    half.check()


def test_facts_reach_into_calls_and_loops():
    def f(x):
        def step(carry, _):
            return fxflow.jit(lambda c: io_callback(print, None, c) or c)(carry), None

        return lax.scan(step, x, length=2)[0]

    facts = make_graph(f)(1.0).graph.facts
    assert {"scan", "jit", "python_callback"} <= facts.names
    assert facts.effects and facts.mesh is None
    assert not facts.has_refs and not facts.names_memory


def test_the_first_mesh_that_an_operation_names():
    mesh = fxflow.make_mesh((2, 2), ("x", "y"))
    aval = Aval((4, 2), np.dtype("float32"))

    def constrained(x):
        return [
            lax.with_sharding_constraint(x, fxflow.NamedSharding(mesh, fxflow.P("x")))
        ]

    graph, _ = trace_flat(constrained, [aval])
    assert graph.mesh is mesh
    graph, _ = trace_flat(lambda x: [fxflow.jit(constrained)(x)[0]], [aval])
    assert graph.mesh is mesh
    graph, _ = trace_flat(lambda x: [lax.sin(x)], [aval])
    assert graph.mesh is None


def test_effects_stay():
    graph = traced(lambda x: [io_callback(print, None, x) or x, lax.sin(x)])
    kept = prune(graph, [False, False])
    assert [n.primitive.name for n in kept.nodes] == ["python_callback"]
    assert live_nodes(graph.nodes, []) == kept.nodes


def test_pruning_reaches_into_calls():
    @jit
    def inner(x, y):
        return lax.sin(x), lax.exp(lax.cos(y))

    graph = traced(lambda x, y: list(inner(x, y)), SCALAR, SCALAR)
    half = prune(graph, [True, False])
    (node,) = half.nodes
    assert [n.primitive.name for n in node.params["graph"].nodes] == ["sin"]
    assert len(node.inputs) == len(node.outputs) == 1
    half.check()


# -- checking --------------------------------------------------------------------------


def node(name, inputs, outputs, **params):
    return Node(table[name], inputs, outputs, params)


def test_well_formed():
    a, b = Var(SCALAR), Var(SCALAR)
    Graph([a], [node("sin", [a], [b])], [b]).check()


def bad_graphs():
    a, b, c = Var(SCALAR), Var(SCALAR), Var(SCALAR)
    v = Var(VECTOR)
    sin = table["sin"]
    inner = Graph([a], [node("sin", [c], [b])], [b], "inner")
    return {
        "undefined": ([a], [node("sin", [c], [b])], [b], "sin.*undefined variable"),
        "undefined-output": ([a], [], [c], "return uses an undefined variable"),
        "later": (
            [a],
            [node("sin", [c], [b]), node("sin", [a], [c])],
            [b],
            "undefined variable",
        ),
        "twice": (
            [a],
            [node("sin", [a], [b]), node("cos", [a], [b])],
            [b],
            "cos.*defines a variable again",
        ),
        "wrong-type": (
            [a],
            [node("sin", [a], [v])],
            [v],
            r"sin.*gives \[f32\[\]\], not \[f32\[3\]\]",
        ),
        "no-atom": ([a], [node("sin", [3.0], [b])], [b], "sin.*holds float"),
        "value-returned": ([a], [], [1.0], "return holds float"),
        "inside": (
            [a],
            [Node(table["jit"], [a], [b], {"graph": inner})],
            [b],
            "inner: sin.*undefined variable",
        ),
        "primitive": ([a], [Node(sin, [a], [b, c], {})], [b], "gives"),
    }


@pytest.mark.parametrize("name", bad_graphs())
def test_malformed(name):
    inputs, nodes, outputs, words = bad_graphs()[name]
    with pytest.raises(GraphError, match=words):
        Graph(inputs, nodes, outputs, "wrong").check()


def test_operands_that_do_not_fit():
    a, v = Var(Aval((2,), F32)), Var(VECTOR)
    with pytest.raises(ShapeError, match=r"f32\[2\], f32\[3\]"):
        Graph([a, v], [node("add", [a, v], [Var(VECTOR)])], []).check()


# -- the rest --------------------------------------------------------------------------


def test_subgraphs():
    graph = traced(lambda x: [lax.cond(lax.gt(x, 0.0), lax.sin, lax.cos, x)])
    found = subgraphs(graph.nodes[-1].params)
    assert len(found) == 2
    assert all(isinstance(g, Graph) for _, g in found)


def test_replace_makes_a_copy():
    graph = traced(lambda x: [lax.sin(x)])
    (old,) = graph.nodes
    new = old.replace(scope=("a",))
    assert new.scope == ("a",) and old.scope == ()
    assert new.primitive is old.primitive and new.inputs == old.inputs


def test_memo_lives_with_the_graph():
    graph = traced(lambda x: [lax.sin(x)])
    assert graph.effects == frozenset()
    assert "facts" in graph.memo
    assert graph.in_avals == [SCALAR] and graph.out_avals == [SCALAR]


def test_names_of_graphs_leave_out_lines():
    assert graph_name("grad(<lambda> at /a/b.py:12)") == "grad(lambda_)"
    assert graph_name("loss") == "loss"


def test_variables_are_letters():
    def chain(x):
        for _ in range(26 + 26 * 26):
            x = lax.sin(x)
        return [x]

    names = re.findall(r"(\w+): f32\[\] = sin", str(traced(chain)))
    assert [names[i] for i in (0, 24, 25, 700, 701)] == ["b", "z", "aa", "zz", "aaa"]


def test_forwarded() -> None:
    def f(x, y, z):
        call = jit(lambda a, b: (b, a + 1.0))(x, y)
        branch = lax.cond(x > 0, lambda a, b: (a, b), lambda a, b: (a, -b), y, z)
        loop = lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1], c[2] * 2.0), (0, y, z)
        )
        scanned = lax.scan(lambda c, _: ((c[0], c[1] + x), c[0]), (y, z), length=2)
        again = checkpoint(lambda a: (a, fnp.sin(a)))(branch[0])
        return z, 1.0, *call, *branch, *loop, *scanned[0], scanned[1], *again

    graph = make_graph(f)(1.0, 2.0, 3.0).graph
    assert graph_module.forwarded(graph) == [
        *(2, None),
        *(1, None),
        *(1, None),
        *(None, 1, None),
        *(1, None, None),
        *(1, None),
    ]
