"""The walk over a graph that pictures are made from."""

import fxflow
from fxflow import lax
from fxflow import numpy as fnp
from fxflow.viz.walk import ARGUMENT, CONSTANT, RESULT, walk


def walked(function, *args):
    items = walk(fxflow.make_graph(function)(*args).graph)
    assert len({item.path for item in items}) == len(items)
    for index, item in enumerate(items):
        assert all(source < index for source, _ in item.inputs)
    return {"/".join(item.path): item for item in items}


def test_scopes_costs_and_lines():
    def f(x, w):
        with fxflow.named_scope("dense"):
            return fnp.sum(x @ w * 2.0)

    found = walked(f, fnp.ones((3, 4)), fnp.ones((4, 5)))
    product = found["dense/dot_general"]
    assert product.flops == 2 * 3 * 4 * 5 and product.bytes == 4 * (12 + 20 + 15)
    assert str(product.avals[0]) == "f32[3,5]" and product.source[0] is f.__code__
    assert ("dimension_numbers", "(((1,), (0,)), ((), ()))") in product.params
    assert found["argument_0"].operation == ARGUMENT
    assert found["dense/constant"].operation == CONSTANT
    assert found["dense/constant"].label == "2.0"
    assert found["result_0"].operation == RESULT


def test_a_jitted_function_is_a_scope_within_the_scope_of_its_call():
    @fxflow.jit
    def inner(x):
        with fxflow.named_scope("deep"):
            return fnp.cos(x)

    def f(x):
        with fxflow.named_scope("outer"):
            return inner(x)

    # The scope that the function was traced in is not named twice.
    assert "outer/inner/deep/cos" in walked(f, fnp.ones(3))


def test_bodies_stand_beside_what_runs_them():
    def f(x):
        x, _ = lax.scan(lambda c, _: (lax.sin(c), None), x, length=7)
        return lax.cond(x[0] > 0, lax.exp, lax.cos, x)

    found = walked(f, fnp.ones(3))
    assert found["scan/graph/sin"].runs == 7 and found["cond/cond"].runs == 1
    assert {"cond/branches/exp", "cond/branches_1/cos"} <= set(found) or {
        "cond/branches/cos",
        "cond/branches_1/exp",
    } <= set(found)
    assert found["scan/scan"].flops == 0  # its body's
    assert found["scan/graph/result_0"].operation == RESULT
