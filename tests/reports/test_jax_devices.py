"""Programs after reports of JAX's users: many devices, checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import P, lax, random, train
from fxflow.errors import ArgumentError, AxisError

MESH = fxflow.make_mesh((8,), ("i",))
ROWS = np.arange(8, dtype=np.float32)

MODES = pytest.mark.parametrize(
    "mode", [lambda f: f, fxflow.jit], ids=["eager", "compiled"]
)


@MODES
def test_gradient_of_a_summed_loss_over_devices(mode: Any) -> None:
    """The gradient of the sum of all devices' losses by a shared weight is the sum of
    their gradients, inside of the map and outside (jax#3970)."""

    def loss(w: Any, x: Any) -> Any:
        return lax.psum(fnp.sum((w**2 + 1) * x), "i")

    specs: Any = {"mesh": MESH, "in_specs": (P(), P("i")), "out_specs": P()}
    whole = fxflow.shard_map(loss, **specs)
    expected = 2 * 3 * ROWS.sum()
    assert mode(fxflow.grad(whole))(3.0, ROWS) == expected
    assert mode(fxflow.shard_map(fxflow.grad(loss), **specs))(3.0, ROWS) == expected


@MODES
def test_gradient_of_a_map_of_sums(mode: Any) -> None:
    """Each element is in all eight sums of the mapped function (jax#1633)."""
    total = fxflow.pmap(lambda x: lax.psum(x**2, "i"), "i")
    weights = np.linspace(1, 2, 8, dtype="f")
    slope = fxflow.grad(lambda x: fnp.sum(total(x) * weights))
    np.testing.assert_allclose(mode(slope)(ROWS), 2 * ROWS * weights.sum(), rtol=1e-6)


@MODES
def test_gradient_of_an_exchange_between_devices(mode: Any) -> None:
    """An `all_to_all` that redistributes rows to columns is the identity, and so is
    its derivative (jax#15982)."""
    exchange = fxflow.shard_map(
        lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
        mesh=MESH,
        in_specs=P("i"),
        out_specs=P(None, "i"),
    )
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_array_equal(mode(exchange)(x), x)
    slope = fxflow.grad(lambda v: fnp.sum(exchange(v) ** 2 * x.T))
    np.testing.assert_array_equal(mode(slope)(x), 2 * x * x.T)


@MODES
def test_transposing_the_identity_again_and_again(mode: Any) -> None:
    """Each transpose of the identity over devices is the identity, without a sum
    (jax#17111)."""
    f: Any = fxflow.shard_map(lambda x: x, mesh=MESH, in_specs=P(), out_specs=P())
    kind = fxflow.ShapeDtypeStruct((), np.float32)

    def transposed(f: Any) -> Any:
        return lambda x: fxflow.linear_transpose(f, kind)(x)[0]

    for _ in range(3):
        f = transposed(f)
        assert mode(f)(fnp.float32(3)) == 3
        assert "psum" not in str(fxflow.make_graph(f)(fnp.float32(3)))


def test_unmapped_result_that_differs_between_devices_is_refused() -> None:
    """`out_axes=None` does not take one device's number for all (jax#21671)."""
    with pytest.raises(ArgumentError, match="may differ between devices"):
        fxflow.pmap(lambda x: x, out_axes=None)(ROWS)
    assert fxflow.pmap(lambda x: lax.psum(x, "i"), "i", out_axes=None)(ROWS) == 28


@MODES
def test_map_over_devices_onto_a_later_axis(mode: Any) -> None:
    """`out_axes=1` holds under `jit`, too (jax#5756)."""
    x = np.arange(4).reshape(2, 2)
    np.testing.assert_array_equal(mode(fxflow.pmap(lambda x: x, out_axes=1))(x), x.T)


@MODES
def test_three_nested_maps_over_devices(mode: Any) -> None:
    """Each device of three nested maps gets its own element (jax#1682)."""
    f = fxflow.pmap(fxflow.pmap(fxflow.pmap(lambda x: x + 1)))
    x = np.arange(8.0, dtype="f").reshape(2, 2, 2)
    np.testing.assert_array_equal(mode(f)(x), x + 1)


@MODES
def test_map_over_devices_in_a_loop_over_vectors(mode: Any) -> None:
    """A device map in `lax.map` or `vmap` captures the loop's operand (jax#2822)."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(16, 5)).astype("f"), rng.normal(size=(3, 5)).astype("f")

    def product(v: Any) -> Any:
        rows = fxflow.pmap(lambda z: lax.map(lambda row: fnp.dot(row, v), z))
        return rows(a.reshape(8, 2, 5)).reshape(16)

    for many in (lambda b: lax.map(product, b)), fxflow.vmap(product):
        np.testing.assert_allclose(mode(many)(b), b @ a.T, rtol=1e-5, atol=1e-6)


def test_collective_over_a_name_that_is_not_bound() -> None:
    """The message names the axis that is missing (jax#3120)."""
    with pytest.raises(
        NameError, match=r"unbound axis name 'batch'.*axis_name='batch'"
    ):
        fxflow.pmap(lambda x: lax.psum(x, "batch"))(ROWS)


def test_scalar_beside_mapped_arguments_is_refused_by_name() -> None:
    """A number cannot be mapped: the message says which argument it is (jax#1991)."""
    with pytest.raises(AxisError, match=r"argument times .*0 axes"):
        fxflow.pmap(lambda x, times: x)(np.ones((8, 3)), 10)


@MODES
@pytest.mark.parametrize("mapped", [fxflow.vmap, fxflow.pmap])
def test_summed_gradient_of_a_product_over_an_axis(mode: Any, mapped: Any) -> None:
    """The gradient of a dot product, summed over a named axis, has the mapped axis
    where `out_axes` puts it (jax#6333)."""
    rng = np.random.default_rng(0)
    u, m = rng.normal(size=(8, 2)).astype("f"), rng.normal(size=(3, 2)).astype("f")
    w = rng.normal(size=(8, 3)).astype("f")

    def run(u: Any, w: Any) -> Any:
        def one(m: Any, w: Any) -> Any:
            return lax.psum(fxflow.grad(lambda m: fnp.dot(u, m) * w)(m), "user")

        return fxflow.vmap(one)(m, w)

    got = mode(mapped(run, axis_name="user"))(u, w)
    np.testing.assert_allclose(got, [w.T @ u] * 8, rtol=1e-5, atol=1e-6)


def test_keys_in_a_checkpoint_come_back_by_their_types(tmp_path: Path) -> None:
    """Random keys are restored into the structure of types alone, and without it
    (orbax#2540)."""
    state = {"keys": random.split(random.key(3), 2), "w": fnp.ones(2, "bfloat16")}
    train.checkpoint.save(tmp_path / "a", state)
    types = fxflow.eval_shape(lambda: state)
    for like in (types, None):
        got = train.checkpoint.restore(tmp_path / "a", like)
        assert got["keys"].dtype == state["keys"].dtype
        np.testing.assert_array_equal(
            random.normal(got["keys"][1], 3), random.normal(state["keys"][1], 3)
        )
        assert got["w"].dtype == state["w"].dtype


def test_checkpoint_of_an_integer_counter_is_not_cast(tmp_path: Path) -> None:
    """A counter that float32 cannot hold is not restored as float32
    (asi#2714)."""
    train.checkpoint.save(tmp_path / "a", {"step": fnp.int32(16777217)})
    with pytest.raises(ValueError, match="step"):
        train.checkpoint.restore(tmp_path / "a", {"step": fnp.float32(0)})
    got = train.checkpoint.restore(tmp_path / "a", {"step": fnp.int32(0)})
    assert got["step"] == 16777217
