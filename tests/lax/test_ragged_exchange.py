"""Exchange of parts of computed lengths, against a loop over all parts."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import P, grad, jit, jvp, make_mesh, pmap, shard_map, vjp, vmap
from tests.lax.ragged import HAVE, WANT, call, data, meaning, tables


@pytest.mark.parametrize("each", [1, 2])
def test_vmap_and_pmap(each):
    x, y = data(4)
    t = tables(np.random.default_rng(each), 4, each)
    expected = meaning(x, y, t)
    np.testing.assert_array_equal(vmap(call("i"), axis_name="i")(x, y, *t), expected)
    np.testing.assert_array_equal(pmap(call("i"), axis_name="i")(x, y, *t), expected)


def test_groups_agree_with_a_loop():
    groups = [[2, 0], [1, 3]]
    x, y = data(4)
    t = tables(np.random.default_rng(3), 4, 2, groups)
    expected = meaning(x, y, t, groups)
    for over in (vmap, pmap):
        got = over(call("i", groups), axis_name="i")(x, y, *t)
        np.testing.assert_array_equal(got, expected)


def test_two_axes():
    axes = ("j", "i")
    mesh = make_mesh((2, 2), ("i", "j"))
    x, y = data(4)
    t = tables(np.random.default_rng(4), 4)
    expected = meaning(x, y, t)
    spec = P(axes)
    one = lambda *v: call(axes)(*(a[0] for a in v))[None]
    got = shard_map(one, mesh=mesh, in_specs=spec, out_specs=spec)(x, y, *t)
    np.testing.assert_array_equal(got, expected)
    nested = vmap(vmap(call(axes), axis_name="i"), axis_name="j")
    square = [a.reshape(2, 2, *a.shape[1:]) for a in (x, y, *t)]
    np.testing.assert_array_equal(nested(*square), expected.reshape(2, 2, WANT, 2))


def test_another_axis_comes_along():
    x, y = data(4)
    t = tables(np.random.default_rng(5), 4)
    many = lambda v, w, *t: vmap(lambda a: call("i")(a, w, *t))(fnp.stack([v, -v]))
    got = pmap(many, axis_name="i")(x, y, *t)
    np.testing.assert_array_equal(got[:, 0], meaning(x, y, t))
    np.testing.assert_array_equal(got[:, 1], meaning(-x, y, t))


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "key"])
def test_any_dtype(dtype):
    t = tables(np.random.default_rng(6), 4)
    rng = np.random.default_rng(7)
    x = rng.integers(0, 2, (4, HAVE))
    y = rng.integers(0, 2, (4, WANT))
    if dtype == "key":
        keys = lambda a: vmap(vmap(fxflow.random.key))(fnp.asarray(a))
        words = lambda a: np.asarray(fxflow.random.key_data(a))
        got = words(vmap(call("i"), axis_name="i")(keys(x), keys(y), *t))
        np.testing.assert_array_equal(got, meaning(words(keys(x)), words(keys(y)), t))
        return
    x, y = (fnp.asarray(a).astype(dtype) for a in (x, y))
    got = pmap(call("i"), axis_name="i")(x, y, *t)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(
        np.asarray(got), meaning(np.asarray(x), np.asarray(y), t)
    )


@pytest.mark.parametrize("groups", [None, [[2, 0], [1, 3]]])
def test_derivatives_are_those_of_a_linear_map(groups):
    """By each device and around all; parts overlap, so cotangents are added."""
    x, y = data(4)
    rng = np.random.default_rng(8)
    t = tables(rng, 4, 2, groups)
    w = rng.normal(size=y.shape).astype(np.float32)
    linear = lambda v, u: meaning(v, u, t, groups)
    # The cotangents of a linear map, by its columns.
    want_y = linear(np.zeros_like(x), np.ones_like(y)) * w
    want_x = np.zeros_like(x)
    for i in range(4):
        for row in range(HAVE):
            basis = np.zeros_like(x)
            basis[i, row] = 1
            # Exactly what this row adds, each column by itself.
            want_x[i, row] = (linear(basis, np.zeros_like(y)) * w).sum((0, 1))

    def inside(v, u, ct, *t):
        _, pull = vjp(lambda a, b: call("i", groups)(a, b, *t), v, u)
        return pull(ct)

    for over in (vmap, pmap):
        got_x, got_y = over(inside, axis_name="i")(x, y, w, *t)
        np.testing.assert_allclose(got_x, want_x, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got_y, want_y, rtol=1e-6)

    def loss(v):
        return fnp.sum(w * pmap(call("i", groups), axis_name="i")(v, y, *t))

    np.testing.assert_allclose(jit(grad(loss))(x), want_x, rtol=1e-5, atol=1e-6)


def test_tangents():
    x, y = data(2)
    t = tables(np.random.default_rng(9), 2)
    dx, dy = data(2)[0] + 1, data(2)[1] - 1

    def tangent(v, u, dv, du, *t):
        both = jvp(lambda a, b: call("i")(a, b, *t), (v, u), (dv, du))[1]
        first = jvp(lambda a: call("i")(a, u, *t), (v,), (dv,))[1]
        return both, first

    both, first = vmap(tangent, axis_name="i")(x, y, dx, dy, *t)
    np.testing.assert_array_equal(both, meaning(dx, dy, t))
    np.testing.assert_array_equal(first, meaning(dx, 0 * dy, t))


def test_nothing_to_send():
    x, y = np.zeros((2, 0, 3), np.float32), np.ones((2, 4, 3), np.float32)
    none = np.zeros((2, 2), np.int32)
    got = pmap(call("i"), axis_name="i")(x, y, none, none, none, none)
    np.testing.assert_array_equal(got, y)


def test_other_platforms_exchange_full_lengths():
    """GPUs and TPUs have it; elsewhere it is an exchange at full length."""
    mesh = make_mesh((4,), ("i",))
    x, y = data(4)
    t = tables(np.random.default_rng(1), 4)
    spec = P("i")
    one = lambda *v: call("i")(*(a[0] for a in v))[None]
    traced = jit(shard_map(one, mesh=mesh, in_specs=spec, out_specs=spec)).trace(
        x, y, *t
    )
    for platform, native in (("gpu", True), ("tpu", True), ("cpu", False)):
        text = traced.lower(platforms=(platform,)).as_text()
        assert ("@ragged_all_to_all" in text) == native
        assert ('"stablehlo.all_to_all"' in text) != native


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"y": np.zeros((2, 4), np.int32)}, TypeError, "one dtype.*f32.*i32"),
        ({"y": np.zeros((2, 4, 2), np.float32)}, TypeError, "in all axes but the"),
        ({"sizes": np.zeros((2, 2), np.float32)}, TypeError, "send_sizes must be a"),
        ({"sizes": np.zeros((2, 4), np.int32)}, TypeError, "have one length"),
        ({"x": np.zeros(2, np.float32)}, TypeError, "at least one axis"),
        ({"axis": "j"}, NameError, "unbound axis name 'j'"),
        ({"axis": ()}, TypeError, "axis_name is empty"),
        ({"groups": [[0], [0, 1]]}, TypeError, "once"),
    ],
)
def test_operands_axes_and_groups_that_do_not_fit_are_refused(change, error, words):
    table = np.zeros((2, 2), np.int32)
    x = change.get("x", np.zeros((2, 3), np.float32))
    y = change.get("y", np.zeros((2, 4), np.float32))
    sizes = change.get("sizes", table)
    run = call(change.get("axis", "i"), change.get("groups"))
    with pytest.raises(error, match=words):
        vmap(run, axis_name="i")(x, y, table, sizes, table, table)


def test_length_must_be_a_multiple():
    x, y = np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32)
    t = [np.zeros((2, 3), np.int32)] * 4
    with pytest.raises(TypeError, match="a multiple of the 2 indices along 'i'"):
        vmap(call("i"), axis_name="i")(x, y, *t)
