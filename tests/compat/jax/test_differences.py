"""Where JAX means something else than fxflow by the same words."""

import warnings

import numpy as np
import pytest

import fxflow
import fxflow.compat.jax as jax
from fxflow import numpy as fnp
from fxflow.compat.jax import config, errors, lax, random, test_util, tree_util
from fxflow.compat.jax import numpy as jnp
from fxflow.errors import ArgumentError, DtypeError


def test_raw_keys():
    key = random.PRNGKey(3)
    assert key.shape == (2,) and key.dtype == jnp.uint32
    assert random.split(key).dtype == jnp.uint32
    typed = fxflow.random.normal(fxflow.random.key(3), (4,))
    np.testing.assert_array_equal(random.normal(key, (4,)), typed)
    np.testing.assert_array_equal(random.key_data(random.wrap_key_data(key)), key)


def test_options_by_their_names():
    assert config.jax_enable_x64 is False and config.x64_enabled is False
    try:
        config.update("jax_enable_x64", True)
        assert fxflow.config.x64 and config.read("jax_enable_x64")
        assert jnp.arange(3.0).dtype == jnp.float64
    finally:
        config.update("jax_enable_x64", False)
    with jax.enable_x64(True):
        assert config.jax_enable_x64
    assert not config.jax_enable_x64
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.log(-1.0)
    with jax.numpy_dtype_promotion("strict"):
        assert config.jax_numpy_dtype_promotion == "strict"
    assert config.jax_numpy_dtype_promotion == "standard"
    with jax.default_matmul_precision("highest"):
        assert fxflow.config.default_matmul_precision == "highest"
    with pytest.raises(AttributeError, match="jax_no_such"):
        config.update("jax_no_such", 1)
    with pytest.raises(AttributeError, match="jax_no_such"):
        _ = config.jax_no_such
    assert set(config.values) >= {"jax_enable_x64", "jax_platforms", "jax_log_compiles"}
    before = fxflow.config.cache_max_bytes
    try:
        for size in (1 << 20, -1):
            config.update("jax_compilation_cache_max_size", size)
            assert config.jax_compilation_cache_max_size == size
        assert fxflow.config.cache_max_bytes > before
    finally:
        fxflow.config.cache_max_bytes = before


def test_64_bits_by_name():
    x = jnp.ones(2)
    assert jax.config.jax_explicit_x64_dtypes == "allow"
    with fxflow.config.override(explicit_x64_dtypes="truncate"):
        assert jax.config.jax_explicit_x64_dtypes == "warn"
        assert jnp.zeros(2, "float64").dtype == x.astype(jnp.float64).dtype == x.dtype
        assert jnp.arange(3, dtype=int).dtype == jnp.arange(3, dtype="int64").dtype
        assert jax.random.normal(jax.random.key(0), dtype=np.float64).dtype == x.dtype
        with jax.enable_x64(True):
            assert jnp.zeros(2, "float64").dtype == np.float64
    assert jnp.zeros(2, "float64").dtype == np.float64


def test_strict_promotion():
    x, i = jnp.ones(2), jnp.ones(2, int)
    with jax.numpy_dtype_promotion("strict"):
        for wrong in (
            lambda: x + i,
            lambda: x + True,
            lambda: i + 1.0,
            lambda: x + 1j,
            lambda: (x > 0) + 1,
            lambda: jnp.concatenate([x, x.astype(jnp.float16)]),
            lambda: jax.jit(lambda a, b: a * b)(x, i),
        ):
            with pytest.raises(DtypeError, match='is "strict"; cast explicitly'):
                wrong()
        assert (x + 1).dtype == (i / 2).dtype == jnp.mean(i).dtype == x.dtype
        assert (jnp.uint8(3) + 1).dtype == jnp.uint8
        assert (x * np.float32(2) + np.ones(2)).dtype == x.dtype
    assert (x + i).dtype == x.dtype


def test_ranks_that_differ():
    m, x = jnp.ones((2, 2)), jnp.ones(2)
    with jax.numpy_rank_promotion("raise"):
        for wrong in (lambda: m + x, lambda: x < m, lambda: jax.jit(jnp.add)(m, x)):
            with pytest.raises(ValueError, match="have different ranks"):
                wrong()
        assert (m + x[None]).shape == (m @ x + 1)[None].repeat(2, 0).shape
        assert jnp.where(m > 0, m, x).shape == m.shape
    with jax.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="ranks"):
        m + x
    assert (m + x).shape == m.shape


def test_jit_takes_where_to_run_and_donates_leniently():
    assert jax.jit(lambda x: x + 1, backend="cpu")(1.0) == 2
    assert jax.jit(lambda x: x + 1, device=jax.devices()[0])(1.0) == 2
    donating = jax.jit(lambda x, y: jnp.sum(x) + y, donate_argnums=(0, 1))
    x, y = jnp.ones(3), jnp.float32(1)
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        assert donating(x, y) == 4
    assert not x.is_deleted() and y.is_deleted()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert donating(x, jnp.float32(2)) == 5
    with pytest.raises(fxflow.errors.DonationError):
        fxflow.jit(lambda x: fnp.sum(x), donate_argnums=0)(x)


def test_control_flow_takes_older_forms():
    assert lax.cond(True, lambda x: x + 1, lambda x: x, operand=1) == 2
    assert lax.cond(False, 1, lambda x: x, 2, lambda x: x * 5) == 10
    assert lax.cond(True, lambda _: 1, lambda _: 2, operand=None) == 1
    assert lax.switch(1, [lambda x: x, lambda x: -x], operand=3) == -3
    out, _ = lax.scan(
        lambda c, x: (c + x, None), 0.0, jnp.ones(3), _split_transpose=True
    )
    assert out == 3
    assert lax.platform_dependent(2.0, cpu=lambda x: x * 3, default=lambda x: x) == 6
    with pytest.raises(NotImplementedError, match="cpu"):
        lax.platform_dependent(2.0, tpu=lambda x: x)


def test_dtypes_are_classes():
    assert isinstance(jnp.ones(2).dtype, jnp.dtype)
    assert isinstance(jnp.finfo(dtype=jnp.float32), jnp.finfo)
    assert isinstance(jnp.iinfo(int_type=jnp.int32), jnp.iinfo)
    assert jax.dtypes.canonicalize_dtype("float64") == np.float32
    assert jax.dtypes.canonicalize_dtype(float) == np.float32
    assert jax.dtypes.result_type(1.0, return_weak_type_flag=True) == (np.float32, True)


def test_shard_map_by_its_older_names():
    mesh = jax.make_mesh((1,), ("x",))
    spec = jax.P("x")
    run = jax.shard_map(
        lambda v: v + 1, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False
    )
    np.testing.assert_array_equal(run(jnp.ones(2)), [2, 2])


def test_callbacks_raise_the_runtime_error():
    def bad(x):
        raise ValueError("the cause")

    def f(x):
        return jax.pure_callback(bad, jax.ShapeDtypeStruct((), np.float32), x)

    with pytest.raises(errors.JaxRuntimeError, match="the cause"):
        jax.jit(f)(1.0).block_until_ready()


def test_prefixed_tree_functions():
    assert tree_util.tree_map(lambda x: x + 1, {"a": 1}) == {"a": 2}
    leaves, treedef = tree_util.tree_flatten((1, [2]))
    assert tree_util.tree_unflatten(treedef, leaves) == (1, [2])
    assert not hasattr(tree_util, "map")
    primal = fxflow.CustomVJPPrimal(1.0, True)
    assert tree_util.tree_leaves(primal) == [primal]


def test_named_call_and_aliases():
    named = jax.named_call(lambda x: jnp.sin(x), name="mine")
    (eqn,) = jax.make_jaxpr(named)(1.0).eqns
    assert str(eqn.source_info.name_stack) == "mine"
    assert jax.jacobian is fxflow.jacrev and jax.remat is jax.checkpoint
    assert jax.host_count() == 1 and jax.host_ids() == [0]
    with pytest.raises(NotImplementedError):
        jnp.einsum("i,i", jnp.ones(2), jnp.ones(2), _dot_general=print)
    same = jnp.einsum("i,i", jnp.ones(2), jnp.ones(2), _dot_general=lax.dot_general)
    assert same == 2


def test_check_grads_finds_a_wrong_derivative():
    test_util.check_grads(lambda x: jnp.sin(x) * x, (jnp.float32(0.7),), order=2)
    wrong = jax.custom_jvp(lambda x: jnp.sin(x))
    wrong.defjvp(lambda p, t: (jnp.sin(p[0]), 3 * t[0]))
    with pytest.raises(AssertionError):
        test_util.check_grads(wrong, (jnp.float32(0.7),), order=1)
    with pytest.raises(ValueError, match="modes"):
        test_util.check_grads(jnp.sin, (1.0,), 1, modes=("up",))


def test_events_and_profiles(tmp_path):
    heard = []
    jax.monitoring.register_event_listener(lambda event, **kw: heard.append(event))
    jax.monitoring.record_event("/mine")
    assert heard == ["/mine"]
    jax.monitoring.clear_event_listeners()
    with jax.profiler.StepTraceAnnotation("step", step_num=1):
        pass
    with jax.profiler.trace(tmp_path):
        pass
    assert list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))


def test_checks_of_values():
    from fxflow.compat.jax.experimental import checkify

    checkify.check(True, "fine")
    with pytest.raises(ValueError, match="x is 3"):
        checkify.check(jnp.bool_(False), "x is {}", 3)
    error, _ = checkify.checkify(lambda x: checkify.check(x > 0, "x is {}", x))(-1.0)
    with pytest.raises(checkify.JaxRuntimeError, match=r"^x is -1.0 \(`check` fail"):
        error.throw()
    with pytest.raises(ArgumentError, match="a program cannot raise"):
        jax.jit(lambda x: checkify.check(x > 0, "no"))(1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda o: o.sgd(0.1),
        lambda o: o.momentum(0.1, 0.9),
        lambda o: o.nesterov(0.1, 0.5),
        lambda o: o.adagrad(0.5),
        lambda o: o.rmsprop(0.05),
        lambda o: o.rmsprop_momentum(0.01),
        lambda o: o.adam(o.exponential_decay(0.2, 50, 0.9)),
        lambda o: o.sm3(0.5),
    ],
)
def test_example_optimizers_descend(make):
    from fxflow.compat.jax.example_libraries import optimizers

    init, update, get_params = make(optimizers)
    params = {"w": jnp.array([[1.0, -2.0]]), "b": jnp.array([3.0])}
    state = init(params)

    def loss(p):
        return sum(jnp.sum(x**2) for x in tree_util.tree_leaves(p))

    @jax.jit
    def step(i, state):
        return update(i, jax.grad(loss)(get_params(state)), state)

    for i in range(40):
        state = step(i, state)
    assert loss(get_params(state)) < 0.5 * loss(params)
    assert tree_util.tree_structure(get_params(state)) == tree_util.tree_structure(
        params
    )


def test_example_layers():
    from fxflow.compat.jax.example_libraries import stax

    init, apply = stax.serial(
        stax.FanOut(2),
        stax.parallel(stax.Dense(4), stax.serial(stax.Dense(4), stax.Tanh)),
        stax.FanInSum,
    )
    shape, params = init(random.PRNGKey(0), (5, 3))
    assert shape == (5, 4) and apply(params, jnp.ones((5, 3))).shape == (5, 4)


def test_example_images():
    from fxflow.compat.jax.example_libraries import stax

    init, apply = stax.serial(
        stax.Conv(4, (3, 3), padding="SAME"),
        stax.BatchNorm(),
        stax.Relu,
        stax.MaxPool((2, 2), strides=(2, 2)),
        stax.FanOut(2),
        stax.parallel(stax.Conv(5, (2, 2), (2, 1)), stax.Conv(5, (2, 2), (2, 1))),
        stax.FanInConcat(),
        stax.AvgPool((2, 2)),
        stax.SumPool((1, 2)),
        stax.Flatten,
        stax.Dropout(0.5, mode="test"),
        stax.Dense(3),
        stax.LogSoftmax,
    )
    key = random.PRNGKey(0)
    x = random.normal(key, (2, 9, 8, 3))
    shape, params = init(key, x.shape)
    # What JAX gives.
    expected = [-4.7655272, -0.4824735, -0.9828931, -5.6388702, -0.4412633, -1.0406648]
    assert shape == (2, 3)
    np.testing.assert_allclose(apply(params, x, rng=key).ravel(), expected, rtol=1e-5)
    init, apply = stax.ConvTranspose(4, (3, 2), (2, 2), padding="SAME")
    shape, params = init(key, x.shape)
    assert shape == apply(params, x).shape == (2, 18, 16, 4)


def test_odeint():
    from fxflow.compat.jax.experimental.ode import odeint

    def f(y, t, a, n):
        return {"x": a * y["v"] * jnp.cos(t), "v": -(y["x"] ** n)}

    def last(a, x, ts):
        y0 = {"x": x, "v": 0.5}
        return odeint(f, y0, ts, a, 3.0, rtol=1e-5, atol=1e-5)["x"][-1]

    ts = jnp.array([0.0, 0.5, 2.0])
    value, grads = jax.value_and_grad(last, (0, 1, 2))(1.3, 1.0, ts)
    # What JAX gives.
    np.testing.assert_allclose(value, 0.8748968, rtol=1e-4)
    np.testing.assert_allclose(grads[0], -0.22084644, rtol=1e-3)
    np.testing.assert_allclose(grads[1], -0.49080792, rtol=1e-3)
    np.testing.assert_allclose(grads[2], [0.8465622, 0, 0.6600591], rtol=1e-3)
    rate = jnp.array(0.5)
    decay = jax.grad(
        lambda c: odeint(lambda y, t: -c * y, 1.0, ts, rtol=1e-5, atol=1e-5)[-1]
    )(rate)
    np.testing.assert_allclose(decay, -2 * np.exp(-1.0), rtol=1e-3)
    with pytest.raises(TypeError, match="take it into the function"):
        odeint(f, {}, ts, "text")
    with pytest.raises(TypeError, match="y0 must be floats, got int32"):
        odeint(lambda y, t: -y, 1, ts)
    with pytest.raises(ValueError, match="t must be a vector of times"):
        odeint(lambda y, t: -y, 1.0, ts[:0])


def test_the_usual_generator():
    assert jax.config.jax_default_prng_impl == "threefry2x32"
    jax.config.update("jax_default_prng_impl", "rbg")
    try:
        key, raw = random.key(3), random.PRNGKey(3)
        assert random.key_impl(key) == "rbg" and raw.shape == (4,)
        same = random.normal(key, (2,))
        np.testing.assert_array_equal(random.normal(raw, (2,)), same)
        assert random.split(raw).shape == (2, 4)
    finally:
        jax.config.update("jax_default_prng_impl", "threefry2x32")


def test_types_stand_for_arrays_in_results():
    y = jax.ShapeDtypeStruct((2,), jnp.int32)
    out = jax.eval_shape(lambda x: (y, x + 1), jax.core.ShapedArray((3,), jnp.float32))
    assert [(o.shape, o.dtype) for o in out] == [((2,), "int32"), ((3,), "float32")]


def test_formats_are_places():
    device = jax.devices()[-1]
    place = jax.sharding.SingleDeviceSharding(device)
    format = jax.experimental.layout.Format(None, place)
    put = jax.device_put({"x": np.ones(2)}, format)["x"]
    assert put.devices() == {device}
    assert place._device_assignment == place._addressable_device_assignment == (device,)


def test_no_dtype_is_float64():
    assert jnp.issubdtype(None, jnp.floating)
    assert not jnp.issubdtype(None, jnp.integer)
    assert jax.dtypes.canonicalize_dtype(None) == jnp.float32


def test_array_like_is_made_of_classes():
    from fxflow.compat.jax.typing import ArrayLike

    assert isinstance(jnp.ones(2), ArrayLike) and isinstance(1.0, ArrayLike)
    assert not isinstance([1.0], ArrayLike)


def test_zero_tangents_of_a_pytree():
    from fxflow.compat.jax.custom_derivatives import SymbolicZero, zero_from_primal

    zeros = zero_from_primal({"a": 1.0, "b": jnp.ones(2)})
    np.testing.assert_array_equal(zeros["b"], [0.0, 0.0])
    zeros = zero_from_primal((1.0, jnp.ones(2)), symbolic_zeros=True)
    assert all(isinstance(z, SymbolicZero) for z in zeros)


def test_private_attributes():
    def interpreter(x):
        trace = jax.extend.core.find_top_trace([x])
        assert x._trace.main is trace.main
        return x

    jax.jvp(interpreter, (1.0,), (1.0,))
    aval = jax.typeof(jnp.arange(3))
    assert aval.to_tangent_aval().dtype == jax.dtypes.float0
    assert not jax.typeof(1.0).strip_weak_type().weak_type
    assert jax.typeof(1.0).str_short(short_dtypes=True) == "f32[]"


def test_lists_of_a_jaxpr():
    from fxflow.compat.jax._src import util

    assert util.safe_map(abs, [-1]) == [1] and util.safe_zip([1], [2]) == [(1, 2)]
    assert util.unzip2([(1, 2), (3, 4)]) == ((1, 3), (2, 4))
    assert util.split_list([1, 2, 3], [1]) == [[1], [2, 3]]
    parts = util.partition_list([True, False, True], [1, 2, 3])
    assert parts == ([2], [1, 3])
    assert util.merge_lists([True, False, True], *parts) == [1, 2, 3]
    with pytest.raises(ValueError):
        util.safe_zip([1], [])


def test_no_mesh_is_empty():
    assert jax.sharding.get_abstract_mesh().empty
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    with jax.set_mesh(mesh):
        assert not jax.sharding.get_abstract_mesh().empty


def test_values_that_are_close():
    from fxflow.compat.jax._src.public_test_util import check_close

    check_close([1.0, jnp.ones(2)], [1.0, jnp.ones(2) + 1e-7])
    check_close(jnp.ones(2), 1.01 * jnp.ones(2), rtol={"float32": 0.1})
    with pytest.raises(AssertionError):
        check_close(jnp.ones(2), 1.01 * jnp.ones(2), rtol={"float64": 0.1})


def test_references_have_the_types_of_jax():
    from fxflow.compat.jax._src.state.types import AbstractRef
    from fxflow.compat.jax.experimental import hijax

    r = jax.new_ref(jnp.zeros(2))
    assert isinstance(r, jax.Ref) and not isinstance(r, jax.Array)
    assert isinstance(jax.typeof(r), AbstractRef)
    jax.jit(lambda r: jax.ref.set(r, 0, 1.0))(r)
    assert jax.freeze(r).tolist() == [1, 0]
    text = str(jax.make_jaxpr(lambda r: r[...])(r))
    assert text.startswith("{ lambda ; a:Ref{f32[2]}.")
    with pytest.raises(NotImplementedError, match="hijax"):
        hijax.HiPrimitive("mine").bind(1.0)


def test_what_stands_for_an_array():
    class Parameter:
        def __init__(self, value):
            self.value = value

        def __jax_array__(self):
            return self.value

    grad = jax.grad(lambda x: jnp.sin(Parameter(x)) * Parameter(x))(1.0)
    assert grad == pytest.approx(np.sin(1.0) + np.cos(1.0))
    assert jnp.ones(2) @ Parameter(jnp.ones(2)) == 2


def test_digits_are_labels_of_axes():
    x, y = jnp.ones((2, 3, 4)), jnp.ones((2, 1, 4))
    assert jnp.einsum("qhd,k1d->hqk", x, y).shape == (3, 2, 2)


def test_no_mesh_is_an_empty_one():
    assert jax.sharding.get_abstract_mesh().empty
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("i",))
    assert mesh.are_all_axes_auto and not mesh.are_all_axes_explicit


def test_the_current_mesh_has_devices():
    mesh = jax.make_mesh((1,), ("x",), (jax.sharding.AxisType.Auto,))
    with jax.set_mesh(mesh):
        where = jax.sharding.NamedSharding(jax.sharding.get_abstract_mesh(), jax.P("x"))
        assert jax.lax.with_sharding_constraint(jnp.ones(2), where).sharding == where


def test_values_that_jax_takes_for_none():
    x = jnp.arange(3.0)
    assert jax.lax.scan(lambda c, y: (c + y, c), 0.0, x, unroll=0)[0] == 3
    assert jax.lax.map(lambda y: y + 1, x, batch_size=0).tolist() == [1, 2, 3]


def test_dtypes_of_dtypes():
    for given in (np.float32, jnp.float32, "float32", np.dtype("f4"), jnp.ones(1)):
        assert jax.lax.dtype(given) == np.float32
    assert jax.lax.dtype(1) == np.int32
    assert jnp.bool_.__name__ == "bool"


def test_contexts_decorate_functions():
    for context in (
        jax.debug_nans(False),
        jax.enable_x64(True),
        jax.disable_jit(),
        jax.numpy_dtype_promotion("strict"),
    ):
        assert context(lambda x: x * 2)(1.5) == 3


def test_attributes_that_packages_read():
    x = jnp.arange(3, dtype=jnp.int16)
    assert not x._committed and jax.device_put(x, jax.devices()[0])._committed
    assert x.byteswap().tolist() == [0, 256, 512]
    policies = jax.checkpoint_policies
    assert policies.checkpoint_dots is policies.dots_saveable
    compiled = jax.jit(jnp.sin).lower(1.0).compile()
    assert "sine" in compiled.runtime_executable().hlo_modules()[0].to_string()


def test_where_fxflow_stays_as_numpy_is():
    assert round(jnp.float32(2.5)).dtype == np.int32  # as JAX's
    assert round(jnp.int8(3)).dtype == np.int8
    assert jnp.abs.__name__ == np.abs.__name__ == "absolute"


def test_meshes_without_devices():
    mesh = jax.sharding.AbstractMesh((2, 4), ("x", "y"))
    manual = mesh.update_axis_types({"y": jax.sharding.AxisType.Manual})
    assert (manual.manual_axes, manual.auto_axes) == (("y",), ("x",))
    where = jax.sharding.NamedSharding(mesh, jax.P("x"))
    struct = jax.ShapeDtypeStruct((2,), jnp.float32, sharding=where)
    assert jax.eval_shape(jnp.sin, struct).shape == (2,)
    with pytest.raises(ValueError, match="there is no current mesh"):
        jax.device_put(jnp.ones(2), where)
    assert not hasattr(jax.vjp(jnp.sin, 1.0)[1], "args_res")
