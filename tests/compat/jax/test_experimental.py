"""Modules of `jax.experimental`, with numbers that JAX 0.10.2 gives."""

import numpy as np
import pytest

from fxflow.compat import jax
from fxflow.compat.jax import numpy as jnp
from fxflow.compat.jax.experimental import jet as jet_rules_of
from fxflow.compat.jax.experimental import random, topologies
from fxflow.compat.jax.experimental.compilation_cache import compilation_cache
from fxflow.compat.jax.experimental.compute_on import compute_on, compute_on2
from fxflow.compat.jax.experimental.custom_partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)
from fxflow.compat.jax.experimental.jet import jet, jet2
from fxflow.compat.jax.experimental.layout import Layout, with_layout_constraint
from fxflow.compat.jax.experimental.rnn import (
    get_num_params_in_lstm,
    init_lstm_weight,
    lstm,
    swap_lstm_gates,
)
from fxflow.compat.jax.experimental.serialize_executable import (
    deserialize_and_load,
    serialize,
)
from fxflow.compat.jax.extend.core import Primitive

SIZES = (3, 4, 2, True)


def test_jet():
    _, found = jet(lambda x: x**3, (2.0,), ([1.0, 1.0, 0.0],), ignored=True)
    assert [float(f) for f in found] == [12.0, 24.0, 42.0]
    _, found = jet2(lambda x: x**3, (2.0,), ([1.0, 1.0, 0.0],))
    assert [float(f) for f in found] == [12.0, 18.0, 13.0]


def _client(name, function):
    primitive = Primitive(name)
    primitive.def_impl(function)
    primitive.def_abstract_eval(lambda x: x)
    return primitive


def test_rules_of_jet_for_primitives_of_clients():
    series = [1.0, 0.3, -0.2, 0.5]
    sine = _client("own_sin", jnp.sin)
    thrice = _client("own_thrice", lambda x: 3 * x)
    steps = _client("own_steps", jnp.floor)
    product = _client("own_product", lambda x: x * jnp.exp(x))
    given = _client("own_given", jnp.cos)
    taken = []

    def rule(primals, terms, **params):
        taken.append(len(terms[0]))
        return jet_rules_of.jet(jnp.cos, primals, terms)

    jet_rules_of.def_deriv(sine, jnp.cos)
    jet_rules_of.deflinear(thrice)
    jet_rules_of.defzero(steps)
    jet_rules_of.def_comp(product, lambda x: x * jnp.exp(x))
    jet_rules_of.jet_rules[given] = rule
    for primitive, function in (
        *((sine, jnp.sin), (thrice, lambda x: 3 * x), (steps, jnp.floor)),
        *((product, lambda x: x * jnp.exp(x)), (given, jnp.cos)),
    ):
        want = jet(lambda x, f=function: x * f(jnp.sin(x)), (0.7,), (series,))
        found = jet(lambda x, p=primitive: x * p.bind(jnp.sin(x)), (0.7,), (series,))
        np.testing.assert_allclose(found[0], want[0], rtol=1e-6)
        np.testing.assert_allclose(found[1], want[1], rtol=1e-5, atol=1e-5)
    assert max(taken) == 4
    assert jet_rules_of.fact(4) == 24


def test_lstm():
    assert get_num_params_in_lstm(*SIZES) == 736
    weights = init_lstm_weight(jax.random.key(0), *SIZES)
    np.testing.assert_allclose(weights[:2], [0.447667, 0.47857988], rtol=1e-6)
    zeros = jnp.zeros((4, 2, 4))
    lengths = jnp.array([5, 3])
    x = jnp.ones((2, 5, 3))
    y, h, c = lstm(x, zeros, zeros, weights, lengths, *SIZES[:3], 0.0, SIZES[3])
    assert y.shape == (2, 5, 8)
    assert h.shape == c.shape == (4, 2, 4)
    sums = [float(a.sum()) for a in (y, h, c)]
    np.testing.assert_allclose(sums, [4.080948, 2.273596, 4.5586004], rtol=1e-5)
    assert not np.any(y[1, 3:])
    with pytest.raises(NotImplementedError, match=r"dropout must be 0, got 0\.5"):
        lstm(x, zeros, zeros, weights, lengths, *SIZES[:3], 0.5, SIZES[3])


def test_lstm_gates():
    swapped = swap_lstm_gates(jnp.arange(736.0), *SIZES)
    assert swapped[:24].tolist() == list(range(24))
    assert swapped[24:48].tolist() == [*range(36, 48), *range(24, 36)]


def test_compute_on():
    with compute_on("device_host"):
        assert float(jnp.ones(()) * 2) == 2.0
    assert float(compute_on("gpu_stream:1")(jax.jit(lambda x: x + 1))(1.0)) == 2.0
    with pytest.raises(ValueError, match="'moon' is not one of"), compute_on("moon"):
        pass


def test_custom_partitioning():
    @custom_partitioning
    def double(x):
        return x * 2

    double.def_partition(lambda *a: a, sharding_rule="i -> i")
    assert jax.jit(double)(jnp.ones(2)).tolist() == [2.0, 2.0]
    assert double.__name__ == "double"


def test_rules_of_custom_partitioning():
    row = ArrayMapping(BATCHING, CompoundFactor("b", "c"), "d")
    rule = SdyShardingRule(
        (row,), (ArrayMapping("d"),), reduction_factors=("b",), b=2, c=3
    )
    assert rule.operand_mappings == (row,) and rule.factor_sizes == {"b": 2, "c": 3}
    for match, make in {
        "at least two": lambda: CompoundFactor("b"),
        "should be a name": lambda: ArrayMapping("b", "1"),
        "whole dimension": lambda: SdyShardingRule((ArrayMapping("a"),), (), a=3),
        "must specify": lambda: SdyShardingRule((row,), (), b=2),
        "not used": lambda: SdyShardingRule((), (), reduction_factors=("z",)),
    }.items():
        with pytest.raises(ValueError, match=match):
            make()


def test_results_of_what_is_computed_elsewhere():
    host, device = jax.memory.Space.Host, jax.memory.Space.Device
    f = compute_on2(compute_type="device_host", out_memory_spaces=(host, device))(
        lambda x: (x * 2, x + 1)
    )
    for found in (f(jnp.ones(2)), jax.jit(f)(jnp.ones(2))):
        assert [v.tolist() for v in found] == [[2, 2], [2, 2]]
        kinds = [v.sharding.memory_kind for v in found]
        assert kinds[0] == "pinned_host" != kinds[1]


def test_layouts_are_the_compilers():
    x = {"a": jnp.ones((2, 3)), "b": jnp.ones((1, 1))}
    assert with_layout_constraint(x, Layout((1, 0))) is x
    with pytest.raises(TypeError, match=r"is not a Layout of f32\[2,3\]"):
        jax.jit(lambda x: with_layout_constraint(x, Layout((0,))))(x["a"])


def test_topologies():
    here = topologies.get_attached_topology("cpu")
    assert here.devices == jax.devices("cpu")
    mesh = topologies.make_mesh(here, (2, len(here.devices) // 2), ("x", "y"))
    assert mesh.shape["x"] == 2
    with pytest.raises(NotImplementedError, match="topology not implemented for cpu"):
        topologies.get_topology_desc("", "cpu")


def test_a_generator_with_a_state():
    rng = random.stateful_rng(42)
    assert jax.random.key_data(rng.key()).tolist() == [1832780943, 270669613]
    assert jax.random.key_data(rng.key()).tolist() == [64467757, 2916123636]
    np.testing.assert_allclose(rng.uniform(), 0.6672406, 1e-6)
    normal = [-0.2818947, -1.367489, -1.6350379]
    np.testing.assert_allclose(rng.normal(size=3), normal, 1e-5)
    assert rng.integers(10, size=(2,)).tolist() == [9, 2]
    np.testing.assert_allclose(rng.random(2), [0.41425955, 0.02341676], 1e-6)
    rng = random.stateful_rng(42)
    draw = jax.jit(lambda rng: rng.uniform())
    np.testing.assert_allclose([draw(rng), draw(rng)], [0.5302608, 0.72766423], 1e-6)
    mapped = jax.vmap(lambda rng, x: x + rng.uniform())(rng.split(3), jnp.arange(3.0))
    np.testing.assert_allclose(mapped, [0.10681784, 1.2974217, 2.0777168], 1e-6)
    np.testing.assert_allclose(rng.spawn(2)[1].uniform(), 0.6546724, 1e-6)
    with pytest.raises(ValueError, match="split stateful generator"):
        rng.split(2).key()
    with pytest.raises(TypeError, match="requires an explicit seed"):
        jax.jit(lambda: random.stateful_rng().uniform())()


def test_the_cache_on_disk(tmp_path):
    before = jax.config.jax_compilation_cache_dir
    try:
        compilation_cache.set_cache_dir(tmp_path)
        assert jax.config.jax_compilation_cache_dir == str(tmp_path)
        compilation_cache.reset_cache()
        assert jax.jit(lambda x: x + 1)(1) == 2
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_compiled_programs_as_bytes():
    def f(x, unused, *, y):
        return {"a": x + y, "b": jnp.linalg.qr(jnp.eye(2) + y)[0]}

    compiled = jax.jit(f).lower(jnp.ones(2), 0, y=1.0).compile()
    data, in_tree, out_tree = serialize(compiled)
    assert isinstance(data, bytes)
    loaded = deserialize_and_load(data, in_tree, out_tree)
    for have, want in zip(
        jax.tree.leaves(loaded(jnp.ones(2), 0, y=2.0)),
        jax.tree.leaves(f(jnp.ones(2), 0, y=2.0)),
        strict=True,
    ):
        np.testing.assert_allclose(have, want, 1e-6)
    assert isinstance(loaded, jax.stages.Compiled)
    assert loaded.as_text() == compiled.as_text()
    with pytest.raises(TypeError, match=r"f32\[2\] as argument x, got f32\[3\]"):
        loaded(jnp.ones(3), 0, y=2.0)
    with pytest.raises(NotImplementedError, match="comes from bytes itself"):
        serialize(loaded)
    large = jnp.arange(10_000.0)
    captures = jax.jit(lambda x: x + large).lower(1.0).compile()
    with pytest.raises(NotImplementedError, match="captures arrays"):
        serialize(captures)
    second = jax.devices()[1]
    there = deserialize_and_load(data, in_tree, out_tree, "cpu", [second])
    out = there(*jax.device_put((jnp.ones(2), 0), second), y=2.0)
    assert out["a"].devices() == {second}
