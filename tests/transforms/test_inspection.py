"""make_graph, eval_shape, named_scope, named_call."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import (
    ShapeDtypeStruct,
    eval_shape,
    jit,
    lax,
    make_graph,
    named_call,
    named_scope,
)
from fxflow.core.ir.graph import subgraphs
from fxflow.core.source import line_number
from fxflow.errors import ArgumentError


def test_graphs_print_check_and_run():
    table = fnp.arange(3.0)
    graph = make_graph(lambda x, *, k: fnp.sin(x) * table + k)(fnp.ones(3), k=2.0)
    graph.check()
    text = str(graph)
    assert "sin" in text and "f32[3]" in text and text.count("\n") >= 5
    np.testing.assert_allclose(
        graph(fnp.ones(3), k=2.0), np.sin(1.0) * np.arange(3) + 2, rtol=1e-6
    )
    assert "test_inspection.py" in graph.to_text(lines=True)


def test_dead_code_is_removed_and_static_arguments_work():
    def fun(x, n):
        fnp.exp(x)
        return x * n

    graph = make_graph(fun, static_argnums=1)(1.0, 3)
    assert [n.primitive.name for n in graph.nodes] == ["mul"]


def test_library_functions_are_inlined():
    names = {n.primitive.name for n in make_graph(fnp.var)(fnp.ones(4)).nodes}
    assert "jit" not in names


def test_captured_numbers():
    number = fnp.asarray(2.0)
    made = make_graph(lambda x: x * number)(1.0)
    assert "mul a 2.0:f32[]" in str(made) and not made.consts
    made = make_graph(lambda x: x * number, literals=False)(1.0)
    assert made.consts[0] is number and made(3.0) == 6.0


def test_eval_shape():
    out = eval_shape(
        lambda p: {"y": p["w"] @ p["x"]},
        {
            "w": ShapeDtypeStruct((2, 3), "f4"),
            "x": ShapeDtypeStruct((3,), "f4"),
        },
    )
    assert out == {"y": ShapeDtypeStruct((2,), "f4")}
    # Nothing is computed: this array would not fit in memory.
    huge = ShapeDtypeStruct((1 << 20, 1 << 20), "f4")
    assert eval_shape(lambda x: x.sum(), huge).shape == ()


def test_named_scopes_appear_in_programs():
    def fun(x):
        with named_scope("outer"), named_scope("inner"):
            return fnp.sin(x)

    assert "outer/inner/sin" in jit(fun).lower(1.0).as_text()
    decorated = named_scope("deco")(lambda x: fnp.sin(x))
    assert "deco/sin" in jit(decorated).lower(1.0).as_text()
    with pytest.raises(TypeError, match="string"):
        named_scope(3)


def test_named_calls():
    def fun(x):
        """Sine."""
        return fnp.sin(x)

    for name, scope in ((None, "fun"), ("other", "other")):
        named = named_call(fun, name=name)
        assert f"{scope}/sin" in jit(named).lower(1.0).as_text()
        assert (named.__name__, named.__doc__) == ("fun", "Sine.")
    assert float(named(0.0)) == 0.0
    with pytest.raises(TypeError, match="string"):
        named_call(fun, name=3)
    with pytest.raises(ArgumentError, match="named_call takes a function"):
        named_call(fun(1.0))


def test_compile_time_evaluation():
    @jit
    def fun(x):
        with fxflow.ensure_compile_time_eval():
            n = int(fnp.arange(4).sum())
        return x * n

    assert float(fun(2.0)) == 12.0


def test_values_that_are_not_functions_or_arrays_are_refused():
    with pytest.raises(TypeError, match="not an array"):
        make_graph(lambda x: x)("a")
    with pytest.raises(TypeError, match="takes a function"):
        make_graph(1.0)


def test_compile_time_eval_leaves_traced_values_to_the_trace():
    def f(x):
        with fxflow.ensure_compile_time_eval():
            n = int(fnp.sum(fnp.arange(4)))
            inner = fxflow.jit(lambda v: v + 1)(fnp.ones(2))
            assert float(inner[0]) == 2.0
            return fnp.sin(x) * n

    assert np.allclose(fxflow.jit(f)(2.0), 6 * np.sin(2.0))
    assert np.allclose(fxflow.grad(f)(2.0), 6 * np.cos(2.0))
    assert np.allclose(fxflow.vmap(f)(fnp.ones(3)), 6 * np.sin(1.0))


def named(graph):
    """Scope and line of each node, in graphs inside too."""
    for node in graph.nodes:
        yield node.primitive.name, node.scope, line_number(node.source)
        for _, inner in subgraphs(node.params):
            yield from named(inner)


def test_derived_operations_keep_scope_and_line():
    @fxflow.jit
    def inner(x):
        with fxflow.named_scope("inner"):
            return fnp.cos(x)

    def body(carry, _):
        with fxflow.named_scope("body"):
            return fnp.sin(carry), None

    def f(x):
        with fxflow.named_scope("outer"):
            x = fnp.tanh(x)
        x = inner(lax.scan(body, x, length=3)[0])
        return fnp.sum(x)

    first = f.__code__.co_firstlineno
    batched = fxflow.vmap(fxflow.grad(f))
    for transformed, given in (
        (fxflow.grad(f), fnp.ones(3)),
        (batched, fnp.ones((2, 3))),
    ):
        found = set(named(make_graph(transformed)(given).graph))
        assert {(s, n - first) for name, s, n in found if name == "mul" and s} == {
            (("inner",), inner.__wrapped__.__code__.co_firstlineno - first + 3),
            (("body",), body.__code__.co_firstlineno - first + 2),
            (("outer",), 2),
        }
        assert ("neg", ("inner",), first - 6) in found


def test_the_user_s_own_rule_keeps_its_lines():
    @fxflow.custom_jvp
    def f(x):
        return fnp.sin(x)

    @f.defjvp
    def rule(primals, tangents):
        return f(*primals), fnp.exp(tangents[0])

    found = set(named(make_graph(lambda x: fxflow.jvp(f, (x,), (x,)))(1.0).graph))
    assert ("exp", (), rule.__code__.co_firstlineno + 2) in found
