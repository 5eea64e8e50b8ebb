"""Products in loops by the kernel: which ones, and that numbers stay."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fxflow
import fxflow.numpy as fnp
from fxflow import config, lax
from fxflow.devices.contractions import TARGET
from fxflow.devices.native import kernel_tile
from tests.transforms.passes.graphs import assert_same

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(
    not kernel_tile(), reason="no kernel for this processor"
)

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32) / shape[0] ** 0.5


def recurrent(w, x, length=20):
    def step(h, _):
        h = fnp.tanh(h @ w)
        return h, fnp.sum(h, axis=-1)

    return lax.scan(step, x, None, length=length)


def calls(f, *args, passes="all"):
    with config.override(passes=passes):
        return fxflow.jit(f).lower(*args).as_text().count(TARGET)


def same(f, *args):
    """The numbers with and without the kernel, and how often it is called."""
    with config.override(passes="none"):
        expected = fxflow.jit(f)(*args)
    got = fxflow.jit(lambda *a: f(*a))(*args)
    assert_same(got, expected, tolerance=1e-4)
    return calls(f, *args)


def test_a_product_in_a_loop():
    args = normal(80, 80), normal(4, 80)
    assert same(recurrent, *args) == 1
    assert calls(recurrent, *args, passes="join_scatters,split_loops") == 0


def test_gradients_of_a_packed_loop_are_the_same():
    def loss(w, x):
        last, sums = recurrent(w, x)
        return fnp.sum(last**2) + fnp.sum(sums)

    assert same(fxflow.grad(loss, argnums=(0, 1)), normal(80, 80), normal(4, 80)) == 2


def test_a_matrix_that_is_used_both_ways():
    def f(w, x):
        return lax.scan(lambda h, _: ((h @ w) @ w.T, None), x, None, length=20)[0]

    assert same(f, normal(70, 90), normal(4, 70)) == 2


def test_vmap_and_vectors():
    w, xs = normal(80, 80), normal(5, 80)
    f = fxflow.vmap(recurrent, in_axes=(None, 0))
    assert same(f, w, xs) == 1
    assert same(recurrent, w, xs[0]) == 0  # 20 rows in all: not worth packing
    assert same(lambda w, x: recurrent(w, x, 100), w, xs[0]) == 1


@pytest.mark.parametrize(
    ("w", "x", "length"),
    [
        (normal(80, 80), normal(200, 80), 20),  # many rows
        (normal(20, 20), normal(4, 20), 20),  # a small matrix
        (normal(80, 80), normal(4, 80), 3),  # few steps
        (normal(80, 80).astype(np.float16), normal(4, 80).astype(np.float16), 20),
        (normal(80, 80), normal(0, 80), 20),
    ],
    ids=["rows", "matrix", "steps", "half", "empty"],
)
def test_other_products_are_left_to_xla(w, x, length):
    assert calls(lambda w, x: recurrent(w, x, length), w, x) == 0


def test_programs_for_elsewhere_are_left_to_xla():
    args = normal(80, 80), normal(4, 80)
    traced = fxflow.jit(recurrent).trace(*args)
    assert TARGET in traced.lower().as_text()
    for platform in ("cpu", "tpu"):
        assert TARGET not in traced.lower(platforms=(platform,)).as_text()
    exported = fxflow.export.export(fxflow.jit(recurrent))(*args)
    assert TARGET not in exported.mlir_module()


def test_loops_in_which_no_step_waits_are_left_to_xla():
    w, xs = normal(80, 80), normal(20, 4, 80)
    assert same(lambda w, xs: lax.map(lambda x: fnp.tanh(x @ w), xs), w, xs) == 0

    def total(w, xs):
        return lax.scan(lambda c, x: (c + fnp.sum(x @ w), None), 0.0, xs)[0]

    assert same(total, w, xs) == 0


def test_a_matrix_that_changes_is_left_to_xla():
    def f(w, x):
        def step(carry, _):
            w, h = carry
            return (w * 0.9, h @ w), None

        return lax.scan(step, (w, x), None, length=20)[0]

    assert same(f, normal(80, 80), normal(4, 80)) == 0


@settings(max_examples=6)
@given(
    st.integers(1, 20),
    st.integers(64, 130),
    st.integers(64, 130),
    st.booleans(),
    st.integers(0, 2**20),
)
def test_any_sizes(rows, units, hidden, reverse, seed):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(units, hidden)).astype(np.float32) / units**0.5
    u = rng.normal(size=(hidden, units)).astype(np.float32) / hidden**0.5
    x = rng.normal(size=(rows, units)).astype(np.float32)

    def f(w, u, x):
        def step(h, _):
            a = fnp.tanh(h @ w)
            h = a @ u
            return h, fnp.sum(a)

        return lax.scan(step, x, None, length=64, reverse=reverse)

    assert same(f, w, u, x) == 2
