"""Programs over several devices: propagation, constraints, `in_shardings`, donation."""

import copy
import pickle

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, lax, make_mesh
from fxflow.devices import PlacementError
from fxflow.errors import ArgumentError, DeletedArrayError, DonationError

MESH = fxflow.make_mesh((4, 2), ("x", "y"))
HOST = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)


def on(*entries):
    return NamedSharding(MESH, P(*entries))


@pytest.fixture(scope="module")
def array():
    return fxflow.device_put(HOST, on("x", "y"))


@pytest.mark.parametrize(
    ("function", "spec"),
    [
        (lambda x: x + 1, P("x", "y")),
        (lambda x: 2 * x - x, P("x", "y")),
        (lambda x: x.T, P("y", "x")),
        (lambda x: fnp.sum(x, axis=0), P("y")),
        (lambda x: x.at[0, 0].set(3), None),
        (lambda x: x[2:5, 1], None),
        (lambda x: x[np.array([1, 1, 7])], None),
        (lambda x: fnp.concatenate([x, x]), None),
        (lambda x: fnp.sort(x, axis=1), None),
        (lambda x: fnp.cumsum(x, 1), None),
        (lambda x: fnp.linalg.qr(x)[1], None),
        (lambda x: fnp.where(x > 0, x, 0), P("x", "y")),
        (lambda x: x @ x.T, None),
        (lambda x: x.reshape(-1), None),
    ],
)
def test_eager_operations_propagate(array, function, spec) -> None:
    got = function(array)
    np.testing.assert_allclose(got, function(fnp.asarray(HOST)), rtol=2e-5, atol=1e-5)
    assert got.sharding.mesh == MESH
    if spec is not None:
        assert got.sharding.spec == spec


def test_jitted_functions_propagate(array) -> None:
    traced = []

    @fxflow.jit
    def f(x, y):
        traced.append(x)
        return {"sum": x.sum(), "dot": x @ y}

    for _ in range(3):
        out = f(array, np.ones(8, np.float32))
    assert len(traced) == 1
    assert out["dot"].sharding.is_equivalent_to(on("x"), 1)
    assert out["sum"].sharding.is_fully_replicated
    np.testing.assert_allclose(out["dot"], HOST.sum(1), rtol=1e-5, atol=1e-5)
    # The same function on one device is another program.
    assert f(fnp.asarray(HOST), fnp.ones(8))["sum"].sharding.num_devices == 1


def test_in_and_out_shardings() -> None:
    f = fxflow.jit(
        lambda a, b: (a["w"] * 2, b),
        in_shardings=({"w": on("x"), "c": None}, on()),
        out_shardings=(on(None, "x"), on()),
    )
    for value in (HOST, fnp.asarray(HOST), fxflow.device_put(HOST, on("x"))):
        for _ in range(2):
            double, three = f({"w": value, "c": 1.0}, 3.0)
            assert double.sharding == on(None, "x") and three.sharding == on()
            np.testing.assert_array_equal(double, HOST * 2)
    with pytest.raises(ArgumentError, match=r"argument a\['w'\] f32\[8,8\] lies on"):
        f({"w": fxflow.device_put(HOST, on("y")), "c": 1.0}, 3.0)
    with pytest.raises(ArgumentError, match="in_shardings is for positional"):
        fxflow.jit(lambda a: a, in_shardings=on("x"))(a=HOST)
    with pytest.raises(PlacementError, match="cannot be divided into 4"):
        fxflow.jit(lambda a: a, in_shardings=on("x"))(np.ones(3))
    with pytest.raises(ArgumentError, match="in_shardings: expected a Sharding"):
        fxflow.jit(lambda a: a, in_shardings=7)(HOST)


def test_shardings_count_inside_other_transforms() -> None:
    f = fxflow.jit(lambda a: a * 2, out_shardings=on("y"))
    outer = fxflow.jit(lambda a: f(a))
    assert outer(HOST).sharding.spec == P("y")
    slope = fxflow.grad(lambda a: fnp.sum(f(a) ** 2))(fnp.asarray(HOST))
    np.testing.assert_allclose(slope, 8 * HOST, rtol=1e-6)


def test_constraints(array) -> None:
    f = fxflow.jit(lambda a: lax.with_sharding_constraint(a * 2, on(None, "x")))
    assert f(HOST).sharding == on(None, "x")
    assert lax.with_sharding_constraint(HOST, on("y")).sharding == on("y")
    two = lax.with_sharding_constraint((array, HOST), (on("y"), None))
    assert two[0].sharding == on("y") and two[1].sharding.num_devices == 1
    open_axis = lax.with_sharding_constraint(array, on(P.UNCONSTRAINED, "x"))
    np.testing.assert_array_equal(open_axis, HOST)
    mapped = fxflow.vmap(lambda v: lax.with_sharding_constraint(v, on("y")))(array)
    np.testing.assert_array_equal(mapped, HOST)
    slope = fxflow.grad(lambda a: fnp.sum(f(a) * HOST))(array)
    np.testing.assert_allclose(slope, 2 * HOST)
    with pytest.raises(PlacementError, match="cannot be divided into 4"):
        lax.with_sharding_constraint(np.ones(3), on("x"))


@pytest.mark.parametrize(
    ("shape", "spec"), [((7, 5), P(("x", "y"))), ((3, 2, 5), P("y", None, "x"))]
)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: fnp.sum(x, 0),
        lambda x: fnp.sort(x, 0)[::-1],
        lambda x: fnp.cumsum(x, 1) / 3,
        lambda x: fxflow.nn.softmax(x, axis=1).T,
        fxflow.grad(lambda x: fnp.sum(x**3)),
        lambda x: lax.scan(lambda c, v: (c + v, c), x[0] * 0, x)[1],
    ],
)
def test_constraints_pad_what_does_not_divide(function, shape, spec) -> None:
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)

    def inside(x):
        x = lax.with_sharding_constraint(x, NamedSharding(MESH, spec))
        return lax.with_sharding_constraint(function(x * 2), on("y"))

    got = fxflow.jit(inside)(x)
    np.testing.assert_allclose(got, fxflow.jit(function)(2 * x), rtol=1e-5, atol=1e-5)
    assert got.sharding.shard_shape(got.shape)


def test_specs_that_end_in_none_are_shorter_ones() -> None:
    mesh = make_mesh((2,), ("x",))
    long, short = NamedSharding(mesh, P("x", None)), NamedSharding(mesh, P("x"))
    two = fxflow.device_put(np.ones((8, 2), np.float32), long)
    one = fxflow.device_put(np.ones(8, np.float32), short)
    assert two.sharding == long and one.sharding == short
    assert len(one.sharding.spec) == len(two.sharding.spec) == 1
    # What the first of equal shardings is like must not count for the others.
    for function in (lambda a: a + 1, fxflow.jit(lambda a: fnp.tile(a, 2))):
        for array in (two, one):
            np.testing.assert_array_equal(function(array), function(np.array(array)))
    for given in (long, short):
        f = fxflow.jit(lambda a: 2 * a, in_shardings=given, out_shardings=given)
        assert f(two).sharding == short
        assert lax.with_sharding_constraint(two, given).sharding == short
    assert fxflow.jit(lambda a: 2 * a, in_shardings=two.sharding)(one).sharding == short
    scalar = fxflow.device_put(1.0, NamedSharding(mesh, P()))
    fxflow.device_put(one, NamedSharding(mesh, P(None)))
    assert (scalar + 1).tolist() == 2.0 and scalar.sharding.spec == P()


def test_bare_specs_mean_the_current_mesh() -> None:
    f = fxflow.jit(lambda a: lax.with_sharding_constraint(a + 1, P("x")))
    other = fxflow.make_mesh((2, 4), ("x", "y"))
    for _ in range(2):
        with fxflow.set_mesh(MESH):
            assert f(HOST).sharding == on("x")
        with fxflow.set_mesh(other):
            assert f(HOST).sharding == NamedSharding(other, P("x"))
        with pytest.raises(PlacementError, match="no current mesh"):
            f(HOST + 0)
    with fxflow.set_mesh(MESH):
        put = fxflow.device_put({"a": HOST, "b": HOST}, {"a": P("x"), "b": P()})
    assert put["a"].sharding == on("x") and put["b"].sharding == on()


def test_donation(array) -> None:
    f = fxflow.jit(lambda a, b: (a + b, b), donate_argnums=0)
    value = fxflow.device_put(HOST, on("x", "y"))
    for i in range(4):
        before = value
        value, _ = f(value, 1.0)
        assert before.is_deleted() and not value.is_deleted()
        np.testing.assert_allclose(value, HOST + i + 1, rtol=1e-6)
    with pytest.raises(DonationError, match="cannot be reused"):
        fxflow.jit(lambda a: a.sum(), donate_argnums=0)(value)


def test_control_flow_and_random_numbers(array) -> None:
    out = lax.while_loop(lambda c: c[0, 0] < 5, lambda c: c + 1, array)
    assert out.sharding.spec == P("x", "y")
    total, _ = lax.scan(lambda c, row: (c + row, None), fnp.zeros(8), array)
    np.testing.assert_allclose(total, HOST.sum(0), rtol=1e-4, atol=1e-5)
    draw = lambda key: fxflow.random.normal(key, (8, 8))
    key = fxflow.random.key(3)
    spread = fxflow.jit(draw, out_shardings=on("x", "y"))(key)
    assert spread.sharding == on("x", "y")
    np.testing.assert_array_equal(spread, fxflow.jit(draw)(key))
    keys = fxflow.device_put(fxflow.random.split(key, 8), on("x"))
    assert fxflow.vmap(fxflow.random.uniform)(keys).sharding == on("x")
    assert fxflow.random.key_data(keys[3]).tolist() == (
        fxflow.random.key_data(fxflow.random.split(key, 8)[3]).tolist()
    )


def test_callbacks_run_once(array) -> None:
    calls = []

    def sine(value):
        calls.append(value.shape)
        return np.sin(value)

    f = fxflow.jit(lambda a: fxflow.pure_callback(sine, a, a) + 1)
    np.testing.assert_allclose(f(array), np.sin(HOST) + 1, rtol=1e-6)
    assert calls == [(8, 8)]


def test_arrays_keep_their_place(array) -> None:
    assert copy.deepcopy(array).sharding == array.sharding
    assert array.copy().sharding == array.sharding
    restored = pickle.loads(pickle.dumps(array))
    assert restored.sharding.num_devices == 1
    np.testing.assert_array_equal(restored, HOST)
    assert fnp.zeros((8, 4), device=on("x")).sharding == on("x")
    assert array.device == array.sharding and len(array.devices()) == 8
    assert [s.device for s in array.global_shards] == list(MESH.flat)
    with pytest.raises(BufferError, match="several devices"):
        np.from_dlpack(array)


def test_devices_that_do_not_go_together(array) -> None:
    with pytest.raises(ArgumentError, match=r"committed to different devices.*cpu:1"):
        array + fxflow.device_put(HOST, "cpu:1")
    with pytest.raises(ArgumentError, match="committed to different devices"):
        array + fxflow.device_put(HOST, NamedSharding(fxflow.make_mesh((2,), "x"), P()))
    # Another mesh of the same devices in the same order is fine.
    flat = NamedSharding(fxflow.make_mesh((8,), ("d",)), P("d"))
    np.testing.assert_array_equal(array + fxflow.device_put(HOST, flat), HOST + HOST)


def test_stages_keep_the_shardings() -> None:
    spec = fxflow.ShapeDtypeStruct((8, 8), "float32", sharding=on("x"))
    lowered = fxflow.jit(lambda a: a.T @ a).lower(spec)
    assert 'sdy.mesh @mesh = <["x"=4, "y"=2]>' in lowered.as_text()
    compiled = lowered.compile()
    assert "all-reduce" in compiled.as_text()
    assert compiled.memory_analysis()["argument_size_in_bytes"] == 8 * 8 * 4 // 4
    got = compiled(fxflow.device_put(HOST, on("x")))
    np.testing.assert_allclose(got, HOST.T @ HOST, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(compiled(HOST), HOST.T @ HOST, rtol=1e-5, atol=1e-5)


def test_stages_go_by_where_arguments_are(array) -> None:
    f = fxflow.jit(lambda a: a.sum())
    whole, half = HOST.nbytes, HOST.nbytes // 2

    def size(value):
        sizes = f.lower(value).compile().memory_analysis()
        return sizes["argument_size_in_bytes"]

    assert size(fxflow.ShapeDtypeStruct((8, 8), "float32", sharding=on("y"))) == half
    assert size(fxflow.ShapeDtypeStruct((8, 8), "float32")) == whole
    assert size(array) == whole // 8
    assert size(HOST) == whole


def test_a_mesh_of_one_device() -> None:
    mesh = fxflow.make_mesh((1,), ("x",))
    value = fxflow.device_put(HOST, NamedSharding(mesh, P("x")))
    np.testing.assert_array_equal(value * 2, HOST * 2)
    total = fxflow.shard_map(
        lambda a: lax.psum(a.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P()
    )
    np.testing.assert_allclose(total(value), HOST.sum(), rtol=1e-4)


def test_memory_that_arrays_share_is_donated_for_all():
    """`device_put` to where an array is shares its memory, as in JAX."""
    alone = make_mesh((1,), ("x",))
    first = fxflow.jit(lambda v: v * 2)(np.arange(4.0, dtype=np.float32))
    second = fxflow.device_put(first, NamedSharding(alone, P("x")))
    total = fxflow.jit(lambda a, b: a + b)
    kept = total(first, np.ones(4, np.float32))
    fxflow.jit(lambda v: v + 1, donate_argnums=0)(second)
    assert first.is_deleted() and second.is_deleted()
    for use in [
        lambda: np.asarray(first),
        lambda: total(first, kept),
        lambda: fxflow.jit(lambda v: v - 1)(first),
    ]:
        with pytest.raises(DeletedArrayError, match=r"memory of this f32\[4\]"):
            use()


# -- memories --------------------------------------------------------------------------


def there(*entries):
    return NamedSharding(MESH, P(*entries), memory_kind="pinned_host")


def test_arguments_and_results_in_host_memory(array) -> None:
    double = lambda x: 2 * x
    away = fxflow.jit(double, out_shardings=there("y"))(array)
    assert away.sharding == there("y")
    np.testing.assert_array_equal(away, 2 * HOST)
    # They enter there; what computes with them is in the devices' own memory.
    back = fxflow.jit(double)(away)
    assert back.sharding == on("y")
    assert fxflow.jit(lambda x: x)(away).sharding == there("y")
    both = fxflow.jit(double, in_shardings=there("y"), out_shardings=there("x"))
    for value in (HOST, fnp.asarray(HOST), fxflow.device_put(HOST, there("y"))):
        got = both(value)
        assert got.sharding == there("x")
        np.testing.assert_array_equal(got, 2 * HOST)
    spread = fxflow.jit(lambda x: x, out_shardings=there())(away)
    assert spread.sharding == there()
    np.testing.assert_array_equal(spread, away)
    own = fxflow.jit(lambda x: x, out_shardings=on("y"))(away)
    assert own.sharding == on("y")


def test_one_device_and_its_memories() -> None:
    one = fxflow.SingleDeviceSharding("cpu:0", memory_kind="pinned_host")
    away = fxflow.jit(lambda x: 2 * x, out_shardings=one)(HOST)
    assert away.sharding == one and away.devices() == {fxflow.devices()[0]}
    again = fxflow.jit(lambda x: x + 1, in_shardings=one, out_shardings=one)
    assert again(away).sharding == again(HOST).sharding == one
    np.testing.assert_array_equal(again(away), 2 * HOST + 1)
    text = again.lower(away).as_text()
    assert text.count('mhlo.memory_kind = "pinned_host"') == 2
    # Arrays in the other memory come to a compiled program by themselves.
    compiled = fxflow.jit(lambda x: x + 1).lower(away).compile()
    np.testing.assert_array_equal(compiled(HOST), HOST + 1)
    inner = fxflow.jit(lambda x: x * 3, in_shardings=one, out_shardings=one)
    assert fxflow.jit(lambda x: inner(x))(HOST).sharding == one
    assert fxflow.jit(lambda x: inner(x) + 1)(HOST).sharding.memory_kind == "device"


def test_results_wanted_on_one_device_are_there() -> None:
    third = fxflow.SingleDeviceSharding("cpu:3")
    got = fxflow.jit(lambda x: x + 1, out_shardings=third)(HOST)
    assert got.devices() == {fxflow.devices()[3]} and got.committed
    elsewhere = fxflow.device_put(HOST, "cpu:1")
    with pytest.raises(ArgumentError, match=r"different devices.*cpu:1.*cpu:3"):
        fxflow.jit(lambda x: x + 1, out_shardings=third)(elsewhere)


def test_a_memory_that_in_shardings_does_not_say(array) -> None:
    f = fxflow.jit(lambda x: x, in_shardings=there("x", "y"))
    with pytest.raises(ArgumentError, match=r"says.*memory_kind='pinned_host'"):
        f(array)
    with pytest.raises(ArgumentError, match=r"lies on.*memory_kind='pinned_host'"):
        fxflow.jit(lambda x: x, in_shardings=on("x"))(fxflow.device_put(HOST, there()))
    with pytest.raises(PlacementError, match="no memory of kind 'fast'"):
        fxflow.jit(lambda x: x, out_shardings=on("x").with_memory_kind("fast"))


def test_donated_memory_is_of_one_kind() -> None:
    one = fxflow.SingleDeviceSharding("cpu:0", memory_kind="pinned_host")
    for where in (one, there("x")):
        given = fxflow.device_put(HOST, where)
        put = lambda x, where=where: fxflow.device_put(x + 1, where)
        got = fxflow.jit(put, donate_argnums=0)(given)
        assert given.is_deleted() and got.sharding == where
        np.testing.assert_array_equal(got, HOST + 1)
        with pytest.raises(DonationError, match="in pinned_host memory cannot be"):
            fxflow.jit(lambda x: x + 1, donate_argnums=0)(
                fxflow.device_put(HOST, where)
            )


def test_an_optimizer_whose_state_is_in_host_memory() -> None:
    def step(w, m, x):
        m = 0.9 * m + fxflow.grad(lambda w: fnp.mean((x @ w) ** 2))(w)
        return w - 0.1 * m, m

    where = (on("x"), there("x"))
    offloaded = fxflow.jit(
        step, in_shardings=(*where, None), out_shardings=where, donate_argnums=(0, 1)
    )
    w, m = fxflow.device_put((HOST, np.zeros_like(HOST)), where)
    want = HOST, np.zeros_like(HOST)
    for _ in range(3):
        w, m = offloaded(w, m, HOST)
        want = fxflow.jit(step)(*want, HOST)
    assert m.sharding == there("x") and w.sharding == on("x")
    np.testing.assert_allclose(w, want[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(m, want[1], rtol=1e-4, atol=1e-5)


def test_arrays_of_one_value(array):
    """They are made part by part, and like others where those are."""
    for make in (fnp.zeros, fnp.ones, fnp.empty):
        assert make((8, 4), device=on("x")).sharding == on("x")
    sevens = fnp.full((8, 4), 7, "int8", device=on("x", "y"))
    assert sevens.sharding == on("x", "y") and (np.asarray(sevens) == 7).all()
    rows = fnp.full((8, 4), np.arange(4.0), device=on("x"))
    np.testing.assert_array_equal(rows, np.tile(np.arange(4.0), (8, 1)))
    for like in (fnp.zeros_like, fnp.ones_like, fnp.empty_like):
        assert like(array).sharding == array.sharding
        assert like(array, "int32").sharding == array.sharding
        assert like(array, shape=(3,)).sharding.device_set == {fxflow.devices()[0]}
        assert like(array, device="cpu:3").device == fxflow.devices()[3]
    halves = fnp.full_like(array, 0.5)
    assert halves.sharding == array.sharding and (np.asarray(halves) == 0.5).all()
    assert lax.full((8,), 1.0, sharding=on("x")).sharding == on("x")
    assert lax.full_like(array, 1, sharding=on("y")).sharding == on("y")
    state = fxflow.optim.adam(0.1).init({"w": array})
    assert [x.sharding for x in fxflow.tree.leaves(state) if x.ndim] == [
        on("x", "y")
    ] * 2
    with pytest.raises(PlacementError, match="cannot be divided into 4"):
        fnp.zeros((7,), device=on("x"))


OPEN = P(P.UNCONSTRAINED)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda x: fxflow.jit(lambda x: x, in_shardings=on(None, None))(x),
            "in_shardings: .*at least 2 axes, got one of 1",
        ),
        (
            lambda x: fxflow.jit(lambda x: [x], out_shardings=[on(None, None)])(x),
            "out_shardings: .*at least 2 axes, got one of 1",
        ),
        (
            lambda x: fxflow.jit(lambda x: x, out_shardings=on(*OPEN))(x),
            "out_shardings is .*leaves an axis of f32",
        ),
        (
            lambda x: fxflow.jit(lambda x: x, in_shardings=on(*OPEN))(x),
            "in_shardings is .*leaves an axis of f32",
        ),
        (
            lambda x: fxflow.jit(lambda x: x[:7], out_shardings=on("x"))(x),
            "out_shardings: axis 0 .*cannot be divided into 4",
        ),
        (
            lambda x: fxflow.jit(fxflow.jit(lambda x: x[:7], out_shardings=on("x")))(x),
            "out_shardings: axis 0 .*cannot be divided into 4",
        ),
        (
            lambda x: fxflow.jit(lambda x: fxflow.device_put(x[:7], on("x")))(x),
            "axis 0 .*cannot be divided into 4",
        ),
        (
            lambda x: lax.with_sharding_constraint(x, on(None, None)),
            "at least 2 axes, got one of 1",
        ),
    ],
)
def test_what_shardings_cannot_say(call, words) -> None:
    with pytest.raises(PlacementError, match=words):
        call(np.ones(8, np.float32))
