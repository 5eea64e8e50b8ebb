"""Primitives: registration refuses what is incomplete; zeros."""

from __future__ import annotations

import importlib
import re

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, make_graph
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.primitive import Primitive, Zero, register, table
from fxflow.errors import NotDifferentiableError

SCALAR = Aval((), np.dtype(np.float32))


class _Complete(Primitive):
    def abstract(self, x):
        return x

    def lower(self, ctx, x):
        return x

    def evaluate(self, x):
        return x

    def batch(self, size, args, mapped):
        return args[0], True


@pytest.fixture(autouse=True)
def table_unchanged():
    before = dict(table)
    yield
    table.clear()
    table.update(before)


def test_register_makes_the_one_instance():
    @register
    class Same(_Complete):
        name = "test_same"
        nondifferentiable = "a test"

    assert isinstance(Same, Primitive)
    assert table["test_same"] is Same
    assert repr(Same) == "test_same"


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({}, "lacks the rules jvp"),
        ({"linear": True}, r"jvp \(or nondifferentiable\), transpose"),
        ({"jvp": lambda *a: None, "linear": True}, "lacks the rules transpose"),
        ({"lower": None, "nondifferentiable": "x"}, "rules lower"),
        ({"abstract": None, "nondifferentiable": "x"}, "abstract"),
        ({"evaluate": None, "nondifferentiable": "x"}, "evaluate"),
        ({"batch": None, "nondifferentiable": "x"}, "batch"),
    ],
)
def test_incomplete(attributes, words):
    # `fxflow.extend` replaces the methods of `Primitive`: None is the one of now.
    attributes = {
        rule: getattr(Primitive, rule) if value is None else value
        for rule, value in attributes.items()
    }
    cls = type("Broken", (_Complete,), {"name": "test_broken", **attributes})
    with pytest.raises(TypeError, match=f"Broken lacks.*{words}|Broken {words}"):
        register(cls)
    assert "test_broken" not in table


def test_a_name_is_taken_once():
    cls = type("Again", (_Complete,), {"name": "sin", "nondifferentiable": "x"})
    with pytest.raises(TypeError, match="two primitives are named 'sin'"):
        register(cls)


def test_why_there_is_no_derivative():
    class Opaque(_Complete):
        name = "test_opaque"
        nondifferentiable = "it is a test"

    opaque = register(Opaque)
    with pytest.raises(
        NotDifferentiableError,
        match="test_opaque cannot be differentiated: it is a test",
    ):
        fxflow.grad(opaque.bind)(1.0)
    assert opaque.bind(1.0) == 1.0
    with pytest.raises(NotDifferentiableError, match="test_opaque is not linear"):
        opaque.transpose(None)


def test_every_primitive_describes_itself():
    for name, primitive in table.items():
        assert primitive.name == name
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), name
        told = "dtypes|Result: i32|LAPACK"
        assert re.search(told, type(primitive).__doc__), name


def test_zero():
    zero = Zero(SCALAR.update(shape=(2, 3)))
    assert (zero.shape, zero.dtype) == ((2, 3), np.float32)
    assert repr(zero) == "Zero(f32[2,3])"


def test_out_avals_are_a_list():
    assert table["sin"].out_avals([SCALAR], {}) == [SCALAR]
    sort = fxflow.make_graph(lambda x: lax.sort_key_val(x, x))(fnp.ones(3)).nodes[0]
    avals = [a.aval for a in sort.inputs]
    assert len(sort.primitive.out_avals(avals, sort.params)) == len(sort.outputs)


def test_defaults_say_what_is_missing():
    base = Primitive()
    for call in (
        base.abstract,
        lambda: base.lower(None),
        lambda: base.batch(1, [], []),
    ):
        with pytest.raises(NotImplementedError):
            call()


F32 = Aval((4,), np.dtype(np.float32))


def test_cost_counts_elements_and_bytes():
    assert table["add"].cost(F32, F32) == {"flops": 4.0, "bytes": 48.0}


def test_host_functions_hold_their_parameters():
    class Scaled(Primitive):
        def evaluate(self, x, factor=1):
            return x * factor

    assert Scaled().host_function()(2) == 2
    assert Scaled().host_function(factor=3)(2) == 6


def test_plans_call_numpy_itself_where_types_say_enough():
    def call(fun, *args):
        (node, *_) = make_graph(fun)(*args).graph.nodes
        return node.primitive.host_call(node)

    x = np.ones((2, 3), "f4")
    assert call(lambda x: lax.reduce_sum(x, (0,)), x)[:3] == (
        np.add.reduce,
        True,
        ((0,), np.dtype("f4")),
    )
    assert call(lambda x: lax.reduce_sum(x, (0, 1)), x).constants[0] is None
    # NumPy has no sum of 16-bit floats as XLA's, and none of no elements in their kind.
    for other in (x.astype(fnp.bfloat16), x[:0]):
        assert not call(lambda x: lax.reduce_sum(x, (0,)), other).constants
    assert call(lax.reduce_max, x, ())[0] is not np.maximum.reduce
    chosen = call(lax.select_n, x > 0, x, x)
    assert chosen == (np.where, False, (), (0, 2, 1))
    assert call(lax.select_n, np.zeros((2, 3), "i4"), x, x).function is not np.where
    assert call(lambda x: lax.reshape(x, (6,)), x).noisy is False


def test_numpy_runs_what_it_computes_alike():
    graph = make_graph(lambda x: fnp.sin(x) + 1)
    (sin, *_) = graph(np.float32(1.0)).nodes
    assert sin.primitive.runs_on_host(sin)
    (sin, *_) = graph(np.complex64(1.0)).nodes
    assert not sin.primitive.runs_on_host(sin)


def test_nothing_is_pruned_hidden_or_passed_on():
    base = Primitive()
    assert base.effects() == frozenset()
    assert base.plan([], {}) is None
    assert base.show({"a": 1}) == {"a": 1}
    assert base.dce("node", [True]) == "node"
    assert base.forwarded() == []


def test_named_axes_are_those_of_the_parameters():
    importlib.import_module("fxflow.lax.collectives")
    assert not table["sin"].uses_axis("i", {})
    assert table["psum"].uses_axis("i", {"axes": ("i", "j")})
    assert not table["psum"].uses_axis("k", {"axes": ("i", "j")})


def test_no_mesh_and_no_memory():
    base = Primitive()
    assert base.mesh({}) is None
    assert not base.names_memory({})
    assert base.memories(None, [], None) is None
    with base.inside({}) as nothing:
        assert nothing is None
    with pytest.raises(NotImplementedError):
        base.batch_named("i", 1, [], [])


def test_results_differ_where_operands_do():
    given = [frozenset("i"), frozenset("j")]
    assert Primitive().vma(given, {}) == {"i", "j"}
