"""`checkpoint`: same results, all arguments, errors (what it keeps: test_remat)."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import checkpoint, jit, lax, vmap
from fxflow import checkpoint_policies as policies
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime import bodies
from fxflow.errors import ArgumentError, TracerBoolConversionError
from fxflow.memory import Space
from fxflow.transforms.checkpoint import checkpoint_name

XS = np.array([0.3, 1.1, 2.0], np.float32)


def f(x):
    return lax.exp(checkpoint_name(lax.sin(lax.sin(x)), "inner"))


ALL = [
    None,
    policies.everything_saveable,
    policies.nothing_saveable,
    policies.dots_saveable,
    policies.dots_with_no_batch_dims_saveable,
    policies.save_only_these_names("inner"),
    policies.save_any_names_but_these("inner"),
    policies.save_anything_except_these_names("inner"),
    policies.save_from_both_policies(
        policies.dots_saveable, policies.save_only_these_names("inner")
    ),
    policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["other"],
        names_which_can_be_offloaded=["inner"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
    policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
]


def _words(policy: object) -> str:
    """Returns what a policy prints, without addresses: each process names it so."""
    return re.sub(r"<function (\w+) at 0x\w+>", r"\1", str(policy))


@pytest.mark.parametrize("policy", ALL, ids=_words)
def test_results_and_derivatives_do_not_change(policy):
    g = checkpoint(f, policy=policy)
    x = XS[1]
    assert float(g(x)) == float(f(x))
    want = float(fxflow.grad(f)(x))
    for gradient in (fxflow.grad(g), jit(fxflow.grad(g)), fxflow.grad(jit(g))):
        np.testing.assert_allclose(float(gradient(x)), want, rtol=1e-5)
    np.testing.assert_allclose(
        float(fxflow.grad(fxflow.grad(g))(x)),
        float(fxflow.grad(fxflow.grad(f))(x)),
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        vmap(fxflow.grad(g))(XS), vmap(fxflow.grad(f))(XS), rtol=1e-5
    )
    y, t = fxflow.jvp(g, (x,), (1.0,))
    np.testing.assert_allclose([float(y), float(t)], [float(f(x)), want], rtol=1e-5)


def test_decorator_with_options_and_closures():
    def loss(w):
        @checkpoint(prevent_cse=False)
        def layer(x):
            """The layer."""
            return lax.mul(lax.sin(x), w)

        assert layer.__doc__ == "The layer."
        return layer(layer(2.0))

    h = 1e-3
    slope = (float(loss(0.7 + h)) - float(loss(0.7 - h))) / (2 * h)
    np.testing.assert_allclose(float(fxflow.grad(loss)(0.7)), slope, rtol=1e-3)


def test_static_arguments_and_keywords():
    def run(x, kind, scale=1.0, power=2):
        out = lax.sin(x) if kind == "sin" else lax.cos(x)
        return lax.mul(lax.integer_pow(out, power), scale)

    by_number = checkpoint(run, static_argnums=1, static_argnames=("power",))
    gradient = jit(fxflow.grad(lambda x: by_number(x, "sin", scale=3.0, power=1)))
    np.testing.assert_allclose(float(gradient(0.0)), 3.0)
    by_name = checkpoint(run, static_argnames=("kind", "power"))
    np.testing.assert_allclose(float(fxflow.grad(by_name)(0.0, "sin", 3.0, 1)), 3.0)
    negative = checkpoint(lambda x, n: lax.integer_pow(x, n), static_argnums=-1)
    assert float(fxflow.grad(negative)(3.0, 2)) == 6.0


def test_a_function_is_traced_where_nothing_is_differentiated():
    traced = fxflow.new_ref(0)

    def inner(x, y=1.0):
        assert isinstance(x, Tracer) and isinstance(y, Tracer)
        traced[...] += 1
        return x * y, x

    out, same = checkpoint(inner)(3.0, y=2.0)
    assert (float(out), float(same), int(traced[...])) == (6.0, 3.0, 1)
    assert type(same) is fxflow.Array
    # A function that cannot be traced raises so, differentiated or not.
    relu = checkpoint(lambda x: x if x > 0 else 0.0)
    for call in (relu, fxflow.grad(relu)):
        with pytest.raises(TracerBoolConversionError, match="argument x of <lambda>"):
            call(1.0)
    with pytest.raises(ArgumentError, match="static_argnums"):
        checkpoint(lambda x, kind: x)(1.0, "sin")


def test_a_function_without_state_is_traced_once(monkeypatch):
    calls, trace_flat = [], bodies.trace_flat

    def counted(*args, **kwargs):
        calls.append(kwargs["name"])
        return trace_flat(*args, **kwargs)

    monkeypatch.setattr(bodies, "trace_flat", counted)
    for _ in range(3):
        checkpoint(lambda x, scale: lax.sin(x) * scale, static_argnums=1)(XS, 2)
    assert len(calls) == 1


def test_trees():
    g = checkpoint(lambda d: {"y": lax.mul(d["a"], d["b"][0])})
    out = fxflow.grad(lambda d: g(d)["y"])({"a": 2.0, "b": (3.0,)})
    assert (float(out["a"]), float(out["b"][0])) == (3.0, 2.0)


def test_policies_compare_and_print():
    make = policies.save_only_these_names
    assert make("a", "b") == make("b", "a")
    assert hash(make("a")) == hash(make("a"))
    assert make("a") != policies.save_any_names_but_these("a")
    assert repr(make("a")) == "save_only_these_names('a')"


def test_invalid_functions_policies_and_names_are_refused():
    with pytest.raises(ArgumentError, match="checkpoint takes a function"):
        checkpoint(3)
    with pytest.raises(ArgumentError, match="checkpoint: policy"):
        checkpoint(f, policy=3)
    with pytest.raises(ArgumentError, match="has no argument 'kind'"):
        checkpoint(f, static_argnames="kind")
    with pytest.raises(ArgumentError, match="static_argnums if it is an option"):
        jit(lambda x: checkpoint(lambda x, k: x)(x, "sin"))(1.0)
    with pytest.raises(ArgumentError, match="names must be strings"):
        policies.save_only_these_names(1)
    with pytest.raises(ArgumentError, match="name must be a string"):
        checkpoint_name(1.0, 2)
    with pytest.raises(ArgumentError, match="checkpoint_name: got"):
        checkpoint_name(["a"], "a")


def test_offloading_policies_keep_what_they_name():
    where = {"offload_src": "device", "offload_dst": "pinned_host"}
    both = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["a"], names_which_can_be_offloaded=["b"], **where
    )
    saved = policies.save_only_these_names("a", "b")

    def layer(x):
        y = checkpoint_name(lax.sin(x), "a")
        return checkpoint_name(lax.exp(lax.sin(y)), "b")

    def costs(policy):
        both = fxflow.value_and_grad(checkpoint(layer, policy=policy))
        text = str(fxflow.make_graph(both)(1.0))
        return text.count("= sin "), text.count("= exp ")

    assert costs(both) == costs(saved) != costs(None)
    with pytest.raises(ArgumentError, match="a is in both lists"):
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"], **where
        )
    with pytest.raises(ArgumentError, match="pinned_host"):
        policies.offload_dot_with_no_batch_dims(None, "pinned_host")
    swapped = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["b"], names_which_can_be_offloaded=["a"], **where
    )
    assert both != swapped
    dots = policies.offload_dot_with_no_batch_dims
    assert dots("device", "pinned_host") == dots("device", "pinned_host")
    assert dots("device", "pinned_host") != dots("device", "unpinned_host")


OFFLOADING = [
    policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["hidden"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
    policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
]
OFFLOADING.append(policies.save_from_both_policies(*OFFLOADING))


@pytest.mark.parametrize("policy", OFFLOADING, ids=str)
def test_offloaded_values_move_to_the_host_and_back(policy):
    def layer(x, w):
        return lax.sin(checkpoint_name(fnp.tanh(x) @ w, "hidden")), None

    def loss(ws, layer):
        return fnp.sum(lax.scan(layer, fnp.ones((2, 3)), ws)[0])

    ws = fnp.asarray(np.random.default_rng(0).normal(size=(4, 3, 3)), "float32")
    kept = checkpoint(layer, policy=policy)
    want = fxflow.grad(loss)(ws, layer)
    gradient = lambda ws: fxflow.grad(loss)(ws, kept)
    there = fxflow.device_put(ws, Space.Host)
    for value in (gradient(ws), jit(gradient)(ws), jit(gradient)(there)):
        np.testing.assert_allclose(value, want, rtol=1e-4, atol=1e-6)
    text = jit(gradient).lower(ws).as_text()
    # Once away in the forward loop, once back in the other; a product is computed once.
    assert text.count('_xla_buffer_placement = "pinned_host"') == 1
    assert text.count('_xla_buffer_placement = "device"') == 1
    saved = checkpoint(layer, policy=policies.dots_saveable)
    plain = jit(lambda ws: fxflow.grad(loss)(ws, saved)).lower(ws).as_text()
    assert text.count("stablehlo.dot_general") == plain.count("stablehlo.dot_general")


def test_offloaded_values_outside_of_jit():
    layer = checkpoint(
        lambda x: lax.sin(checkpoint_name(lax.sin(x), "hidden")), policy=OFFLOADING[0]
    )
    y, back = fxflow.vjp(layer, fnp.ones(3))
    residuals = [x for x in fxflow.tree.leaves(back) if x.aval.ndim]
    kinds = [x.sharding.memory_kind for x in residuals]
    assert sorted({*kinds}) == ["device", "pinned_host"]
    assert y.sharding.memory_kind == "device"
    want = np.cos(np.sin(1.0)) * np.cos(1.0)
    np.testing.assert_allclose(back(fnp.ones(3))[0], [want] * 3, rtol=1e-6)
