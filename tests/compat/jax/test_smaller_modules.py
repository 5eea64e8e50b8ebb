"""What is small and has a meaning of its own, with what JAX 0.10.2 gives."""

import logging

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow.compat import jax
from fxflow.compat.jax import api_util, debug, dlpack
from fxflow.compat.jax import numpy as jnp
from fxflow.compat.jax.example_libraries import optimizers, stax
from fxflow.compat.jax.experimental import mesh_utils, multihost_utils
from fxflow.compat.jax.experimental.shard_alike import shard_alike
from fxflow.compat.jax.extend import random as keys
from fxflow.compat.jax.extend.core import Primitive
from fxflow.compat.jax.interpreters import ad, batching
from fxflow.compat.jax.interpreters.partial_eval import dce_jaxpr
from fxflow.compat.jax.lax import linalg
from fxflow.errors import ConcretizationError

P = jax.sharding.PartitionSpec


def mesh_of(*shape):
    names = ("x", "y")[: len(shape)]
    return jax.sharding.Mesh(mesh_utils.create_device_mesh(shape), names)


def test_arrays_of_hosts_and_of_all():
    mesh = mesh_of(4, 2)
    tree = {"a": np.arange(16.0, dtype="f").reshape(8, 2), "b": np.ones(3, "f")}
    specs = {"a": P("x", "y"), "b": None}
    whole = multihost_utils.host_local_array_to_global_array(tree, mesh, specs)
    assert whole["a"].sharding.spec == P("x", "y") and len(whole["a"].devices()) == 8
    back = multihost_utils.global_array_to_host_local_array(whole, mesh, specs)
    for name, value in tree.items():
        np.testing.assert_array_equal(np.asarray(whole[name]), value)
        np.testing.assert_array_equal(np.asarray(back[name]), value)
    # One process has all, and another layout is brought about.
    other = multihost_utils.global_array_to_host_local_array(whole["a"], mesh, P("y"))
    assert other.sharding.spec == P("y")
    np.testing.assert_array_equal(np.asarray(other), tree["a"])


def test_hybrid_meshes():
    class Device:
        def __init__(self, number, process, part):
            self.id, self.process_index, self.slice_index = number, process, part

    devices = [Device(i, i // 2, i // 4) for i in range(8)][::-1]
    make = mesh_utils.create_hybrid_device_mesh
    found = make((2, 2), (2, 1), devices)
    numbers = np.vectorize(lambda d: d.id)(found)
    assert numbers.tolist() == [[3, 2], [1, 0], [7, 6], [5, 4]]
    found = make((1, 2), (2, 2), devices, process_is_granule=True)
    numbers = np.vectorize(lambda d: d.id)(found)
    assert numbers.tolist() == [[1, 0, 3, 2], [5, 4, 7, 6]]
    with pytest.raises(ValueError, match="slices or processes 2 must equal"):
        make((2, 1), (4, 1), devices)


def test_smap():
    with jax.set_mesh(mesh_of(4, 2)):
        x = jnp.arange(8.0)

        @jax.smap(in_axes=(0, None), out_axes=0, axis_name="x")
        def f(x, y):
            return x * jax.lax.axis_index("x") + y

        np.testing.assert_array_equal(
            np.asarray(jax.jit(f)(x, 1.0)), np.arange(8) * (np.arange(8) // 2) + 1
        )
        with pytest.raises(ValueError, match="counted from the end"):
            jax.smap(f, out_axes=-1, axis_name="x")


def test_copies_begin():
    tree = {"a": jnp.ones(3), "b": "no array"}
    assert jax.copy_to_host_async(tree) is tree
    assert jax.process_indices() == [0]


def test_log(caplog):
    with caplog.at_level(logging.INFO, "fxflow"):
        jax.block_until_ready(jax.jit(lambda x: debug.log("x is {}", x))(3))
        fxflow.effects_barrier()
    assert caplog.messages == ["x is 3"]


def test_shardings_are_inspected():
    found = []
    x = jax.device_put(np.ones(8, "f"), jax.sharding.NamedSharding(mesh_of(8), P("x")))
    debug.inspect_array_sharding({"x": x}, callback=found.append)
    assert found == [x.sharding]
    with pytest.raises(ConcretizationError, match=r"f32\[8\] is traced"):
        jax.jit(lambda x: debug.inspect_array_sharding(x, callback=print))(x)


def test_dtypes_to_exchange():
    names = ("bool", "int4", "float32", "bfloat16", "float8_e4m3fn", "complex64")
    found = [dlpack.is_supported_dtype(name) for name in names]
    assert found == [True, False, True, True, False, True]


def test_donations():
    given = jax.tree_util.tree_structure((((1, 2), 3), {"a": 1, "b": (2, 3)}))
    found = api_util.donation_vector((0,), ("b",), given)
    assert found == (True, True, False, False, True, True)
    given = jax.tree_util.tree_structure(((1, 2), 3))
    assert api_util.donation_vector((1,), (), given, kws=False) == (False, False, True)
    assert api_util.rebase_donate_argnums((3, 4), (0, 1)) == (1, 2)
    with pytest.raises(ValueError, match=r"cannot intersect: \[1\]"):
        api_util.rebase_donate_argnums((1,), (0, 1))


def test_algorithms_are_taken():
    x = np.array([[2.0, 1.0], [1.0, 3.0]], "f")
    for algorithm in linalg.SvdAlgorithm:
        u, s, vt = linalg.svd(x, algorithm=algorithm)
        np.testing.assert_allclose(np.asarray((u * s) @ vt), x, 1e-5)
    v, w = linalg.eigh(x, implementation=linalg.EighImplementation.QDWH)
    np.testing.assert_allclose(np.asarray(v * w @ v.T), x, 1e-5)
    kind = linalg.EigImplementation.LAPACK
    w = linalg.eig(x, implementation=kind, enable_eigvec_derivs=True)[0]
    np.testing.assert_allclose(np.sort(np.asarray(w).real), np.linalg.eigvalsh(x), 1e-5)
    assert linalg.cholesky_p.name == "cholesky"


def test_bilinear():
    product = Primitive("weighted_product")
    product.def_impl(lambda x, y, *, by: x * y * by)
    product.def_abstract_eval(lambda x, y, *, by: x)
    ad.defbilinear(
        product,
        lambda t, x, y, *, by: t * y * by,
        lambda t, x, y, *, by: t * x * by,
    )
    x, y = jnp.array([1.0, 2.0]), jnp.array([3.0, 5.0])

    def f(x, y):
        return product.bind(x, y, by=2.0)

    primal, tangent = jax.jvp(f, (x, y), (jnp.ones(2), jnp.array([0.0, 1.0])))
    assert primal.tolist() == [6.0, 20.0] and tangent.tolist() == [6.0, 14.0]
    (by_x,) = jax.linear_transpose(lambda x: f(x, y), x)(jnp.ones(2))
    (by_y,) = jax.linear_transpose(lambda y: f(x, y), y)(jnp.ones(2))
    assert by_x.tolist() == [6.0, 10.0] and by_y.tolist() == [2.0, 4.0]


def test_reducer():
    total = Primitive("total")
    total.def_impl(lambda x, *, axes: jnp.sum(x, axes))
    total.def_abstract_eval(
        lambda x, *, axes: jax.core.ShapedArray(
            tuple(n for i, n in enumerate(x.shape) if i not in axes), x.dtype
        )
    )
    batching.defreducer(total)
    x = np.arange(24.0, dtype="f").reshape(2, 3, 4)
    for axis in (0, 1, 2):
        for axes in ((0,), (1,), (0, 1)):
            have = jax.vmap(lambda x, a=axes: total.bind(x, axes=a), in_axes=axis)(x)
            want = np.moveaxis(x, axis, 0).sum(tuple(a + 1 for a in axes))
            np.testing.assert_allclose(np.asarray(have), want)


def test_jaxprs_without_what_is_not_wanted():
    closed = jax.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(y) + 1))(1.0, 2.0)
    found, used = dce_jaxpr(closed.jaxpr, [False, True])
    assert used == [False, True] and len(found.eqns) == 2
    assert jax.core.eval_jaxpr(found, closed.consts, 2.0)[0] == jnp.cos(2.0) + 1
    kept, used = dce_jaxpr(closed.jaxpr, [False, False], instantiate=[True, False])
    assert used == [True, False] and kept.eqns == []


def test_optimizers_and_activations():
    init, update, params = optimizers.adamax(0.1)
    state = init(jnp.array([1.0, 2.0]))
    for k in range(4):
        state = update(k, jnp.array([0.3, -0.2]) * (k + 1), state)
    np.testing.assert_allclose(np.asarray(params(state)), [0.68889844, 2.3111014], 1e-6)
    marked = optimizers.unpack_optimizer_state(state)
    assert isinstance(marked, optimizers.JoinPoint)
    assert optimizers.pack_optimizer_state(marked).tree_def == state.tree_def
    steps = optimizers.piecewise_constant([2, 5], [1.0, 2.0, 3.0])
    assert [float(steps(i)) for i in range(7)] == [1, 1, 1, 2, 2, 2, 3]
    with pytest.raises(ValueError, match="one shorter"):
        optimizers.piecewise_constant([2], [1.0])
    decay = optimizers.polynomial_decay(1.0, 4, 0.1, 2.0)
    np.testing.assert_allclose([decay(i) for i in (0, 1, 5)], [1, 0.60625, 0.1], 1e-5)
    assert stax.relu(-1.0) == 0 and stax.logsoftmax is stax.log_softmax


def test_gradients_are_added_to_references():
    def step(x, total):
        _, pull = jax.vjp(lambda x, y: jnp.sin(x) * y, x, 2.0)
        return pull.with_refs(total, jax.ad.DontWant())(1.0)

    total = jax.new_ref(10.0)
    assert step(1.0, total) == (jax.ad.GradRef(), jax.ad.DidntWant())
    np.testing.assert_allclose(total[...], 11.080605, 1e-6)
    assert jax.jit(step)(1.0, total) == (jax.ad.GradRef(), jax.ad.DidntWant())
    np.testing.assert_allclose(total[...], 12.16121, 1e-6)


def test_policies_of_checkpoint():
    asked = []

    def policy(primitive, *_, **__):
        asked.append(primitive)
        kept = primitive is jax.lax.dot_general_p
        return jax.ad_checkpoint.Saveable if kept else jax.ad_checkpoint.Recompute

    def products(policy):
        f = jax.checkpoint(lambda x: jnp.sum(jnp.sin(x @ x)), policy=policy)
        text = jax.jit(jax.value_and_grad(f)).lower(jnp.ones((2, 2))).as_text()
        return text.count("stablehlo.dot_general")

    assert products(policy) == products(None) - 1
    assert jax.lax.sin_p in asked
    both = jax.checkpoint_policies.save_from_both_policies
    named = jax.checkpoint_policies.save_only_these_names("x")
    assert products(both(policy, named)) == products(policy)
    offloaded = jax.ad_checkpoint.Offloadable("device", "pinned_host")
    assert (offloaded.src, offloaded.dst) == ("device", "pinned_host")


def test_keys_by_their_generator():
    words, counts = np.array([1, 2], "u4"), np.arange(5, dtype="u4")
    want = [2052595727, 3504730591, 2527474599, 1880214352, 1914734168]
    assert keys.threefry_2x32(words, counts).tolist() == want
    assert keys.threefry_2x32(words, counts.reshape(5, 1)).shape == (5, 1)
    with pytest.raises(TypeError, match="a key has 2 words"):
        keys.threefry_2x32(counts, counts)
    made = keys.random_seed(jnp.arange(2), keys.rbg_prng_impl)
    assert made.shape == (2,) and jax.random.key_impl(made) == "rbg"
    assert (keys.seed_with_impl("rbg", 1) == made[1]).all()


def test_the_registry_of_containers():
    leaves, treedef = jax.tree_util.default_registry.flatten({"a": 1})
    assert leaves == [1] and treedef == jax.tree_util.tree_structure({"a": 0})


def test_shard_alike():
    x, y = shard_alike(fnp.ones(3), np.zeros(3, "f4"))
    assert isinstance(y, fxflow.Array) and y.sharding == x.sharding
    a, b = fxflow.jit(shard_alike)(x, y)
    assert a.tolist() == [1, 1, 1] and b.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="must be the same"):
        shard_alike(x, fnp.ones(2))
    with pytest.raises(ValueError, match="takes arrays"):
        shard_alike(x, "y")


def test_rng_uniform():
    draw = fxflow.jit(lambda a, b: jax.lax.rng_uniform(a, b, (50,)))
    for low, high in ((2.0, 3.0), (-4, 9)):
        first, second = np.asarray(draw(low, high)), np.asarray(draw(low, high))
        assert first.dtype == np.asarray(fnp.asarray(low)).dtype
        assert (first >= low).all() and (first < high).all()
        assert (first != second).any()
    assert jax.lax.rng_uniform_p.bind(0.0, 1.0, shape=(2,)).shape == (2,)
    with pytest.raises(TypeError, match="two scalars of one dtype"):
        jax.lax.rng_uniform(0, 1.0, (2,))
    with pytest.raises(TypeError, match="floats or integers"):
        jax.lax.rng_uniform(True, False, (2,))
