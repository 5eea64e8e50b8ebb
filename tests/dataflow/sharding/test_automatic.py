"""Which shardings are chosen, and what happens to bad input."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import NamedSharding, P, dataflow, optim
from fxflow import numpy as fnp
from fxflow.dataflow import auto_sharding
from fxflow.errors import ArgumentError, PlacementError
from tests.dataflow.sharding.networks import (
    accelerator,
    experts,
    perceptron,
    perceptron_loss,
    perceptron_step,
    perceptron_types,
    step,
    struct,
    token_types,
    transformer,
    transformer_types,
)

BLOCK = {
    "qkv": P(None, None, "x"),
    "out": P("x"),
    "up": P(None, "x"),
    "down": P("x"),
}


def mesh_of(*lengths: int) -> fxflow.Mesh:
    return fxflow.make_mesh(lengths, ("x", "y")[: len(lengths)])


def kinds(plan: Any) -> dict[str, float]:
    """How often each kind of collective runs."""
    found: dict[str, float] = {}
    for (kind, _), (count, _) in plan.collectives.items():
        found[kind] = found.get(kind, 0) + count
    return found


# -- the splits that are known ---------------------------------------------------------


def test_a_small_model_divides_the_batch() -> None:
    plan = auto_sharding(perceptron_step, mesh_of(8), costs=accelerator())(
        perceptron_types(64, 256), struct(1 << 16, 64), struct(1 << 16, 64)
    )
    params, x, y = plan.in_specs
    assert set(params.values()) == {P()}
    assert x == y == P("x")
    assert kinds(plan) == {"all-reduce": 4}
    assert plan.check().error < 0.01


def test_a_large_transformer_on_few_tokens_is_divided_as_megatron() -> None:
    params = transformer_types(12, 2048, 16, 8192, 1000, 8)
    plan = auto_sharding(transformer, mesh_of(8), costs=accelerator())(
        params, token_types(1, 8)
    )
    specs, tokens = plan.in_specs
    assert all(block == BLOCK for block in specs["blocks"])
    assert tokens == P()
    assert kinds(plan)["all-reduce"] - 24 in (0, 1)


def test_two_axes_divide_the_batch_and_the_model() -> None:
    params = transformer_types(1, 1024, 16, 4096, 1024, 256)
    plan = auto_sharding(step, mesh_of(4, 2), costs=accelerator())(
        params, token_types(16, 257)
    )
    specs, tokens = plan.in_specs
    assert len({axis for axis in tokens if axis}) == 1
    (batch,) = (axis for axis in tokens if axis)
    other = {"x": "y", "y": "x"}[batch]
    block = {k: P(*(other if n == "x" else n for n in s)) for k, s in BLOCK.items()}
    assert all(found == block for found in specs["blocks"])
    check = plan.check()
    assert check.error < 0.05, check


def adam(state: Any, x: Any, y: Any) -> Any:
    params, memory = state
    gradients = fxflow.grad(perceptron_loss)(params, x, y)
    updates, memory = optim.adamw(1e-3).update(gradients, memory, params)
    return optim.apply_updates(params, updates), memory


def test_parameters_are_stored_in_parts_if_memory_is_short() -> None:
    params = perceptron_types(1024, 4096)
    state = params, fxflow.eval_shape(optim.adamw(1e-3).init, params)
    x = struct(16384, 1024)
    free, short = (
        auto_sharding(
            adam, mesh_of(8), costs=accelerator(), memory=limit, donate_argnums=0
        )(state, x, x)
        for limit in (1 << 40, 100_000_000)
    )
    assert set(fxflow.tree.leaves(free.in_specs[0])) == {P()}
    assert free.memory > 100_000_000 >= short.memory
    (specs, memory), *batch = short.in_specs
    assert batch == [P("x")] * 2
    stored = [s for s in fxflow.tree.leaves(specs) if any(s)]
    assert stored
    assert kinds(short)["all-gather"] >= len(stored)
    assert short.num_constraints > 0
    assert memory[0].mu == memory[0].nu == specs == short.out_specs[0]
    check = short.check()
    assert check.error < 0.05, check
    assert check.compiled_memory < free.check().compiled_memory


def word_loss(params: Any, words: Any, right: Any) -> Any:
    x = params["table"][words]
    logits = fnp.tanh(x) @ params["table"].T
    found = fnp.take_along_axis(logits, right[:, None], 1)[:, 0]
    return fnp.mean(fxflow.nn.logsumexp(logits, -1) - found)


def test_a_large_vocabulary_is_divided() -> None:
    params = {"table": struct(1 << 18, 512)}
    words = struct(64, dtype="int32")
    plan = auto_sharding(fxflow.grad(word_loss), mesh_of(8), costs=accelerator())(
        params, words, words
    )
    assert plan.in_specs[0]["table"] == P("x")
    assert plan.out_specs["table"] == P("x")
    _, nbytes = plan.collectives["all-reduce", 1]
    assert nbytes < 1e6  # never the table


def test_experts_are_divided() -> None:
    params = {
        "gate": struct(512, 16),
        "up": struct(16, 512, 2048),
        "down": struct(16, 2048, 512),
    }
    plan = auto_sharding(experts, mesh_of(8), costs=accelerator())(
        params, struct(64, 512)
    )
    specs = plan.in_specs[0]
    assert specs["up"] == specs["down"] == P("x")
    assert plan.check().error < 0.05


def test_the_cost_is_at_most_that_of_the_division_by_hand() -> None:
    params = transformer_types(4, 2048, 16, 8192, 1024, 64)
    tokens = token_types(4, 65)
    costs = accelerator()
    found = auto_sharding(step, mesh_of(8), costs=costs)(params, tokens)
    mesh = mesh_of(8)
    specs = {"tokens": P("x"), "places": P(), "blocks": [BLOCK] * 4}
    given = fxflow.tree.map(
        lambda spec: NamedSharding(mesh, spec),
        specs,
        is_leaf=lambda s: isinstance(s, P),
    )
    jitted = fxflow.jit(step, in_shardings=(given, NamedSharding(mesh, P())))
    hand = auto_sharding(jitted, mesh, costs=costs)(params, tokens)
    assert hand.in_specs[0] == specs
    assert found.seconds <= 1.02 * hand.seconds
    assert found.bound <= found.seconds


# -- speed -----------------------------------------------------------------------------


def test_equal_layers_are_decided_once() -> None:
    sizes = []
    for layers in (2, 6):
        params = transformer_types(layers, 256, 4, 1024, 256, 32)
        plan = auto_sharding(step, mesh_of(8), costs=accelerator())(
            params, token_types(8, 33)
        )
        sizes.append(len(plan._sharded.model.choices))
        blocks = plan.in_specs[0]["blocks"]
        assert all(block == blocks[0] for block in blocks)
    assert sizes[0] == sizes[1]


def test_twelve_layers_on_eight_devices_take_a_moment() -> None:
    params = transformer_types(12, 768, 12, 3072, 50304, 1024)
    make = auto_sharding(step, mesh_of(4, 2), costs=accelerator())
    make(transformer_types(1, 64, 2, 64, 64, 8), token_types(2, 9))  # imports SciPy
    start = time.process_time()
    make(params, token_types(8, 1025))
    assert time.process_time() - start < 4.0  # half of it on a machine of its own


# -- values ----------------------------------------------------------------------------


def test_values_are_those_of_one_device() -> None:
    rng = np.random.default_rng(0)
    params = fxflow.tree.map(
        lambda t: rng.standard_normal(t.shape).astype(t.dtype) * 0.1,
        perceptron_types(16, 32),
    )
    x, y = rng.standard_normal((2, 32, 16)).astype(np.float32)
    expected = fxflow.jit(perceptron_step)(params, x, y)
    plans = [
        auto_sharding(perceptron_step, mesh_of(2, 2), memory=limit)(params, x, y)
        for limit in (None, 8_000)
    ]
    assert plans[1].num_constraints > plans[0].num_constraints == 0
    for plan in plans:
        found = plan.jit()(params, x, y)
        for one, other in zip(*map(fxflow.tree.leaves, (expected, found)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_loops_and_branches_are_divided() -> None:
    def f(weights: Any, x: Any) -> Any:
        def layer(h: Any, w: Any) -> Any:
            return fnp.tanh(h @ w["a"]) @ w["b"], fnp.sum(h)

        h, sums = fxflow.lax.scan(layer, x, weights)
        h = fxflow.lax.cond(sums[0] > 0, fnp.sin, fnp.cos, h)
        h = fxflow.lax.fori_loop(0, 3, lambda i, h: h * 0.5 + i, h)
        return fnp.sum(h, 1), sums

    rng = np.random.default_rng(1)
    weights = {
        "a": rng.standard_normal((3, 8, 16)).astype(np.float32),
        "b": rng.standard_normal((3, 16, 8)).astype(np.float32),
    }
    x = rng.standard_normal((32, 8)).astype(np.float32)
    expected = fxflow.jit(f)(weights, x)
    mesh = mesh_of(4)
    jitted = fxflow.jit(f, in_shardings=(None, NamedSharding(mesh, P("x"))))
    plan = auto_sharding(jitted, mesh)(weights, x)
    assert plan.out_specs[0] == P("x")
    assert plan.collectives["all-reduce", 1] == (3, 12)  # a sum in each round
    found = plan.jit()(weights, x)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_arguments_that_are_divided_stay_so() -> None:
    mesh = mesh_of(4)
    rows = NamedSharding(mesh, P("x"))
    jitted = fxflow.jit(perceptron, in_shardings=(None, rows))
    plan = auto_sharding(jitted, mesh, costs=accelerator())(
        perceptron_types(64, 128), struct(8, 64)
    )
    assert plan.in_specs[1] == P("x")
    assert "as given" in str(plan)


def test_constraints_inside_are_followed() -> None:
    mesh = mesh_of(2, 4)
    rows = NamedSharding(mesh, P("y"))

    def f(params: Any, x: Any) -> Any:
        x = fxflow.lax.with_sharding_constraint(x, rows)
        return perceptron(params, x)

    types = perceptron_types(2048, 16384), struct(8, 2048)
    plan = auto_sharding(f, mesh, costs=accelerator())(*types)
    assert plan.in_specs[1] == P("y")
    assert plan.in_specs[0]["up"] == P(None, "x")
    free = auto_sharding(perceptron, mesh, costs=accelerator())(*types)
    assert free.in_specs[1] != P("y") and free.seconds < plan.seconds


# -- bad input -------------------------------------------------------------------------


def test_a_mesh_without_axes_is_refused() -> None:
    with pytest.raises(PlacementError, match="no axes to divide"):
        auto_sharding(perceptron, fxflow.Mesh(fxflow.devices()[0], ()))
    with pytest.raises(ArgumentError, match="second argument is a mesh"):
        auto_sharding(perceptron, 8)  # type: ignore[arg-type]
    explicit = fxflow.make_mesh(
        (2,), ("x",), axis_types=fxflow.sharding.AxisType.Explicit
    )
    with pytest.raises(PlacementError, match=r"AxisType\.Auto"):
        auto_sharding(perceptron, explicit)


def test_memory_that_is_too_small_names_the_largest_leaf() -> None:
    make = auto_sharding(perceptron, mesh_of(8), memory=1_000_000)
    with pytest.raises(PlacementError) as caught:
        make(perceptron_types(4096, 1 << 14), struct(8, 4096))
    text = str(caught.value)
    assert "does not fit in 1,000,000 bytes" in text and "too many" in text
    assert "33,554,432 bytes" in text


@pytest.mark.parametrize("memory", [0, -1, 1.5, True, "1GB"])
def test_memory_is_a_number_of_bytes(memory: Any) -> None:
    with pytest.raises(ArgumentError, match="memory is the bytes on each device"):
        auto_sharding(perceptron, mesh_of(2), memory=memory)


def test_leaves_that_are_not_arrays_are_named() -> None:
    with pytest.raises(ArgumentError, match=r"argument x .* not an array"):
        auto_sharding(perceptron, mesh_of(2))(perceptron_types(4, 4), "text")
    jitted = fxflow.jit(lambda x, n: x * n, static_argnums=1)
    with pytest.raises(ArgumentError, match="has static arguments"):
        auto_sharding(jitted, mesh_of(2))(struct(4), 3)
    ref = fxflow.new_ref(fnp.ones(4))
    with pytest.raises(ArgumentError, match="references"):
        auto_sharding(lambda r: r[...], mesh_of(2))(ref)
    (n,) = fxflow.export.symbolic_shape("n")
    with pytest.raises(ArgumentError, match="x has the type"):
        auto_sharding(fnp.sin, mesh_of(2))(struct(n))


def test_lengths_that_no_axis_divides_stay_whole() -> None:
    plan = auto_sharding(perceptron, mesh_of(8), costs=accelerator(0.0))(
        perceptron_types(7, 9), struct(1023, 7)
    )
    assert set(fxflow.tree.leaves(plan.in_specs)) == {P()}
    assert {leaf.why for leaf in plan.leaves} == {"no mesh axis divides its axes"}


def test_shardings_that_do_not_go_together_are_refused() -> None:
    mesh = mesh_of(4)
    rows = NamedSharding(mesh, P("x"))
    jitted = fxflow.jit(lambda a, b: fnp.sin(a) + fnp.cos(b), in_shardings=(rows, rows))
    assert dataflow.auto_sharding(jitted, mesh)(struct(8), struct(8))
    jitted = fxflow.jit(lambda a, b: a[:, None] * b, in_shardings=(rows, rows))
    with pytest.raises(PlacementError, match="same mesh axis"):
        auto_sharding(jitted, mesh)(struct(8), struct(8))
