"""The calls that carry a derivative: under transforms, in loops, and their limits."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import config, custom_jvp, custom_vjp, jit, lax, make_graph, vmap
from fxflow.errors import NotDifferentiableError

XS = np.arange(4.0, dtype=np.float32)


@custom_jvp
def tenfold(x, y):
    """A rule that is wrong by a factor of ten, so that its use is seen."""
    return lax.mul(x, y)


@tenfold.defjvp
def _(primals, tangents):
    (x, y), (tx, ty) = primals, tangents
    return tenfold(x, y), lax.mul(lax.add(lax.mul(tx, y), lax.mul(x, ty)), 10.0)


@custom_vjp
def scaled(x, y):
    return lax.mul(x, y)


scaled.defvjp(
    lambda x, y: (lax.mul(x, y), (x, y)),
    lambda kept, ct: (lax.mul(ct, lax.mul(kept[1], 10.0)), lax.mul(ct, kept[0])),
)


@pytest.mark.parametrize("f", [tenfold, scaled])
def test_transforms_in_any_order(f):
    assert float(f(2.0, 3.0)) == 6.0
    for gradient in (
        fxflow.grad(f),
        jit(fxflow.grad(f)),
        fxflow.grad(jit(f)),
        jit(fxflow.grad(jit(f))),
    ):
        assert float(gradient(2.0, 3.0)) == 30.0
    many = [10.0 * 2.0] * 4
    assert vmap(fxflow.grad(f), (0, None))(XS, 2.0).tolist() == many
    assert vmap(jit(fxflow.grad(f)), (0, None))(XS, 2.0).tolist() == many
    total = lambda x: lax.reduce_sum(vmap(f, (0, None))(x, 2.0), (0,))
    assert fxflow.grad(total)(XS).tolist() == many
    assert jit(fxflow.grad(jit(total)))(XS).tolist() == many
    assert vmap(f)(XS, XS).tolist() == (XS**2).tolist()


def test_argument_that_is_not_mapped_gets_a_sum():
    total = lambda y: lax.reduce_sum(vmap(scaled, (0, None))(XS, y), (0,))
    assert float(fxflow.grad(total)(2.0)) == XS.sum()
    twice = lambda y: lax.reduce_sum(
        vmap(vmap(scaled, (0, None)), (0, None))(np.stack([XS, XS]), y), (0, 1)
    )
    assert float(fxflow.grad(twice)(2.0)) == 2 * XS.sum()
    assert float(jit(fxflow.grad(twice))(2.0)) == 2 * XS.sum()


def test_second_derivatives_differentiate_the_rule():
    # d/dx = 10 y, and d/dy of that is 10.
    assert float(fxflow.grad(fxflow.grad(tenfold), 1)(2.0, 3.0)) == 10.0
    assert float(fxflow.grad(fxflow.grad(scaled), 1)(2.0, 3.0)) == 10.0
    assert float(fxflow.jvp(fxflow.grad(scaled, 0), (2.0, 3.0), (0.0, 1.0))[1]) == 10.0


def test_inside_loops_and_branches():
    for f in (tenfold, scaled):
        looped = lambda y, f=f: lax.scan(
            lambda c, _: (f(c, y), None), 1.0, None, length=3
        )[0]
        want = {"tenfold": 4440.0, "scaled": 444.0}[f.__name__]
        assert float(fxflow.grad(looped)(2.0)) == want
        assert float(jit(fxflow.grad(looped))(2.0)) == want
        branch = lambda x, f=f: lax.cond(lax.gt(x, 0.0), lambda: f(x, 3.0), lambda: x)
        assert float(jit(fxflow.grad(branch))(2.0)) == 30.0
        assert vmap(fxflow.grad(branch))(XS).tolist() == [1.0, 30.0, 30.0, 30.0]


def test_forward_mode_of_custom_vjp_is_an_error():
    with pytest.raises(NotDifferentiableError, match=r"scaled .* forward mode"):
        fxflow.jvp(scaled, (1.0, 2.0), (1.0, 1.0))
    with pytest.raises(NotDifferentiableError, match="cannot be applied to tangents"):
        fxflow.linearize(scaled, 1.0, 2.0)[1](1.0, 1.0)
    with pytest.raises(NotDifferentiableError, match="cannot be applied to tangents"):
        jit(fxflow.linearize(scaled, 1.0, 2.0)[1])(1.0, 1.0)


def closure(kind):
    def outer(x, y):
        if kind == "jvp":
            inner = custom_jvp(lambda x: lax.mul(x, y))
            inner.defjvp(lambda p, t: (inner(*p), lax.mul(t[0], lax.mul(y, 5.0))))
        else:
            inner = custom_vjp(lambda x: lax.mul(x, y))
            inner.defvjp(
                lambda x: (inner(x), None),
                lambda _, ct: (lax.mul(ct, lax.mul(y, 5.0)),),
            )
        return inner(x)

    return outer


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_rules_that_capture_traced_values(kind):
    f = closure(kind)
    for gradient in (
        fxflow.grad(f),
        jit(fxflow.grad(f)),
        fxflow.grad(jit(f)),
        jit(fxflow.grad(jit(f))),
    ):
        assert float(gradient(2.0, 3.0)) == 15.0
    want = [0.0, 5.0, 10.0, 15.0]
    assert vmap(fxflow.grad(f))(XS, XS).tolist() == want
    assert vmap(fxflow.grad(jit(f)))(XS, XS).tolist() == want
    assert jit(vmap(fxflow.grad(f)))(XS, XS).tolist() == want
    total = lambda x: lax.reduce_sum(jit(vmap(f))(x, XS), (0,))
    assert fxflow.grad(total)(XS).tolist() == want


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_differentiating_a_captured_value_is_an_error(kind):
    with pytest.raises(NotDifferentiableError, match="pass the value as an argument"):
        fxflow.grad(closure(kind), (0, 1))(2.0, 3.0)


def test_linear_transpose_goes_through_the_function():
    halved = custom_jvp(lambda x: lax.mul(x, 0.5))
    halved.defjvp(lambda p, t: (halved(*p), t[0]))
    assert float(fxflow.linear_transpose(halved, 1.0)(3.0)[0]) == 1.5


def test_small_calls_run_on_the_host():
    with config.override(eager="auto"):
        out = vmap(tenfold)(XS, XS)
    assert hasattr(out, "_host")


def test_graph_is_printed_with_the_rule():
    text = str(make_graph(tenfold)(1.0, 2.0))
    assert "custom_jvp[rule=tenfold]" in text
    assert "graph = graph tenfold" in text
