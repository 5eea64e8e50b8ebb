"""`custom_jvp`: how rules are given and called, and what is said of wrong ones."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import fxflow
from fxflow import custom_jvp, jit, lax, vmap
from fxflow.core.ir.staging import trace_flat
from fxflow.errors import ArgumentError, DtypeError, ShapeError, TreeError
from fxflow.transforms.custom_function import SymbolicZero

XS = np.arange(3.0, dtype=np.float32)


def test_stable_function():
    @custom_jvp
    def log1pexp(x):
        """The logarithm of one plus an exponential."""
        return lax.log(lax.add(1.0, lax.exp(x)))

    @log1pexp.defjvp
    def _(primals, tangents):
        (x,), (t,) = primals, tangents
        return log1pexp(x), lax.mul(t, lax.logistic(x))

    assert log1pexp.__name__ == "log1pexp"
    assert "logarithm" in log1pexp.__doc__
    assert float(fxflow.grad(log1pexp)(100.0)) == 1.0
    assert float(fxflow.grad(fxflow.grad(log1pexp))(0.0)) == 0.25
    assert float(fxflow.jvp(jit(log1pexp), (100.0,), (1.0,))[1]) == 1.0


def test_functions_and_options_as_fixed_arguments():
    @functools.partial(custom_jvp, nondiff_argnums=(0, 2))
    def apply(f, x, factor):
        return lax.mul(f(x), float(factor))

    @apply.defjvp
    def _(f, factor, primals, tangents):
        (x,), (t,) = primals, tangents
        return apply(f, x, factor), lax.mul(t, 100.0 * factor)

    assert float(fxflow.grad(apply, 1)(lax.sin, 1.0, 3)) == 300.0
    assert float(jit(lambda x: fxflow.grad(apply, 1)(lax.sin, x, 3))(1.0)) == 300.0
    many = vmap(lambda x: fxflow.grad(apply, 1)(lax.sin, x, 3))(XS)
    assert many.tolist() == [300.0] * 3


def test_fixed_arguments_by_name_keywords_and_defaults():
    @functools.partial(custom_jvp, nondiff_argnames="kind")
    def f(x, y=2.0, kind="mul"):
        return lax.mul(x, y) if kind == "mul" else lax.add(x, y)

    @f.defjvp
    def _(kind, primals, tangents):
        (x, y), (tx, _) = primals, tangents
        return f(x, y, kind), lax.mul(tx, 7.0 if kind == "mul" else 8.0)

    assert float(fxflow.grad(f)(1.0)) == 7.0
    assert float(fxflow.grad(lambda x: f(x, kind="add"))(1.0)) == 8.0
    assert float(f(y=4.0, x=3.0)) == 12.0


def test_one_rule_for_each_argument():
    f = custom_jvp(lambda x, y, n: lax.mul(lax.mul(x, y), n))
    f.defjvps(lambda t, out, x, y, n: lax.mul(t, 5.0), None, None)
    by_x, by_y = fxflow.grad(f, (0, 1))(2.0, 3.0, 4.0)
    assert (float(by_x), float(by_y)) == (5.0, 0.0)
    assert float(jit(fxflow.grad(f, 1))(2.0, 3.0, 4.0)) == 0.0


def test_symbolic_zeros():
    seen = []

    @custom_jvp
    def f(x, y):
        return lax.mul(x, y)

    def rule(primals, tangents):
        seen.append(tuple(type(t) is SymbolicZero for t in tangents))
        (x, y), (tx, ty) = primals, tangents
        zero = next(t for t in tangents if type(t) is SymbolicZero)
        assert zero.shape == () and zero.dtype == np.float32
        return f(x, y), lax.mul(tx, y) if type(ty) is SymbolicZero else lax.mul(x, ty)

    f.defjvp(rule, symbolic_zeros=True)
    assert float(fxflow.grad(f)(2.0, 3.0)) == 3.0
    assert float(fxflow.grad(f, 1)(2.0, 3.0)) == 2.0
    assert seen == [(False, True), (True, False)]


def test_rule_may_give_a_zero_and_integers_have_none():
    f = custom_jvp(lambda x, n: (lax.mul(x, 2.0), n))

    @f.defjvp
    def _(primals, tangents):
        (x, n), (tx, tn) = primals, tangents
        assert tn.dtype == fxflow.core.arrays.dtypes.float0
        return f(x, n), (lax.mul(tx, 3.0), tn)

    gradient = fxflow.grad(lambda x: f(x, 4)[0])
    assert float(gradient(1.0)) == float(jit(gradient)(1.0)) == 3.0
    flat = custom_jvp(lambda x: lax.floor(x))
    flat.defjvp(lambda p, t: (flat(*p), SymbolicZero(p[0].aval)), symbolic_zeros=True)
    assert float(fxflow.grad(flat)(1.5)) == 0.0


def test_methods_have_rules():
    class Layer:
        def __init__(self, gain):
            self.gain = gain

        @functools.partial(custom_jvp, nondiff_argnums=0)
        def apply(self, x):
            return lax.mul(x, self.gain)

        @apply.defjvp
        def _rule(self, primals, tangents):
            return self.apply(*primals), lax.mul(tangents[0], 10.0 * self.gain)

    layer = Layer(3.0)
    assert float(layer.apply(2.0)) == 6.0
    assert float(fxflow.grad(layer.apply)(2.0)) == 30.0
    layer.gain = 5.0
    assert float(fxflow.grad(layer.apply)(2.0)) == 50.0, "an object may change"


def wrong(result):
    f = custom_jvp(lambda x: {"a": lax.sin(x)})
    f.defjvp(lambda primals, tangents: result(f, primals[0], tangents[0]))
    return lambda: fxflow.jvp(f, (XS,), (XS,))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            wrong(lambda f, x, t: f(x)),
            ArgumentError,
            r"pair \(result, tangent\), got dict",
        ),
        (
            wrong(lambda f, x, t: (x, {"a": t})),
            TreeError,
            "the result that the rule of <lambda> at .* returns must have the struct",
        ),
        (
            wrong(lambda f, x, t: (f(x), (t,))),
            TreeError,
            "the tangent that the rule of <lambda> at .* returns must have the struct",
        ),
        (
            wrong(lambda f, x, t: (f(x), {"a": lax.reduce_sum(t, (0,))})),
            ShapeError,
            r"tangent .* must be f32\[3\], got f32\[\]",
        ),
        (
            wrong(lambda f, x, t: (f(x), {"a": lax.convert_element_type(t, np.int32)})),
            DtypeError,
            r"must be f32\[3\], got i32\[3\].*astype",
        ),
        (
            wrong(lambda f, x, t: ({"a": lax.reduce_sum(x, (0,))}, {"a": t})),
            ShapeError,
            "the result that the rule",
        ),
        (
            wrong(lambda f, x, t: (f(x), {"a": "no"})),
            ArgumentError,
            "which is not an array",
        ),
        (lambda: custom_jvp(lax.sin)(1.0), ArgumentError, "has no rule: set one with"),
        (lambda: custom_jvp(3), ArgumentError, "custom_jvp takes a function"),
        (
            lambda: custom_jvp(lambda x: x, nondiff_argnames="y"),
            ArgumentError,
            r"has no argument 'y' \(nondiff_argnames\): it has x",
        ),
    ],
)
def test_rules_with_wrong_results_or_tangents_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_errors_of_arguments():
    f = custom_jvp(lambda x, k=None: x)
    f.defjvp(lambda p, t: (f(*p), t[0]))
    with pytest.raises(ArgumentError, match=r"at args\[1\].*nondiff_argnums"):
        fxflow.grad(lambda x: f(x, "sin"))(1.0)
    with pytest.raises(ArgumentError, match="2 rules were given for 1 arguments"):
        g = custom_jvp(lambda x: x)
        g.defjvps(None, None)
        fxflow.grad(g)(1.0)
    with pytest.raises(ArgumentError, match="do not go with nondiff_argnums"):
        custom_jvp(lambda f, x: x, nondiff_argnums=0).defjvps(None)
    keyword_only = custom_jvp(lambda x, *, k: x)
    keyword_only.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(ArgumentError, match="k can only be given by keyword"):
        keyword_only(1.0, k=2)


def test_nothing_is_called_where_nothing_differentiates():
    """A library function's eager plan is run as it is: a call would cost more."""
    x = fxflow.numpy.ones(3)
    graph, _ = trace_flat(
        lambda x: [fxflow.nn.softmax(x)], [fxflow.typeof(x)], final=True
    )
    assert "custom_jvp" not in {node.primitive.name for node in graph.nodes}
    graph, _ = trace_flat(lambda x: [fxflow.nn.softmax(x)], [fxflow.typeof(x)])
    assert "custom_jvp" in {node.primitive.name for node in graph.nodes}
