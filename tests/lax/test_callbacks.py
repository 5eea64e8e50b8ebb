"""Calls of Python from programs: values, order, vectorization, errors."""

from __future__ import annotations

import collections
import threading

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import (
    ShapeDtypeStruct,
    grad,
    io_callback,
    jit,
    jvp,
    lax,
    pure_callback,
    tree,
    vmap,
)
from fxflow.debug import callback as debug_callback
from fxflow.errors import ArgumentError, NotDifferentiableError

F32 = ShapeDtypeStruct((), "float32")
TWO = ShapeDtypeStruct((2,), "float32")
BOTH = pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])


def host_sin(x):
    return np.sin(np.asarray(x))


# -- values ----------------------------------------------------------------------------


@BOTH
def test_pure_callback(wrap):
    out = wrap(lambda x: pure_callback(host_sin, TWO, x) * 2)(fnp.array([0.5, 1.0]))
    np.testing.assert_allclose(out, 2 * np.sin([0.5, 1.0]), rtol=1e-6)


@BOTH
def test_structures(wrap):
    def host(tree, *, scale):
        a, b = tree["a"], tree["b"]
        return {"sum": np.asarray(a + b) * scale, "pair": (np.int32(3), True)}

    result = {
        "sum": TWO,
        "pair": (ShapeDtypeStruct((), "int32"), ShapeDtypeStruct((), "bool")),
    }
    tree = {"a": fnp.ones(2), "b": fnp.ones(2)}
    out = wrap(lambda t, s: pure_callback(host, result, t, scale=s))(tree, 2.0)
    assert out["sum"].tolist() == [4.0, 4.0]
    assert int(out["pair"][0]) == 3 and out["pair"][1].dtype == bool


@BOTH
def test_what_the_function_is_given(wrap):
    seen = []

    def host(x):
        seen.append((type(x), x.shape, x.dtype))
        return x

    wrap(lambda x: pure_callback(host, TWO, x))(fnp.ones(2))
    assert seen == [(fxflow.Array, (2,), np.float32)]


@BOTH
@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (2.5, 2.5),
        (2, 2.0),
        (np.float32(2.5), 2.5),
        (np.array(2.5, np.float32), 2.5),
    ],
)
def test_numbers_take_the_declared_dtype(wrap, returned, expected):
    assert float(wrap(lambda: pure_callback(lambda: returned, F32))()) == expected


@BOTH
def test_lists_take_the_declared_dtype(wrap):
    out = wrap(lambda: pure_callback(lambda: [1, 2], TWO))()
    assert out.tolist() == [1.0, 2.0] and out.dtype == np.float32


@BOTH
def test_callbacks_give_every_dtype(wrap):
    for dtype in ("bool", "int8", "uint16", "int64", "float16", "float64", "complex64"):
        like = ShapeDtypeStruct((3,), dtype)
        host = lambda d=dtype: np.array([0, 1, 1], d)
        out = wrap(lambda like=like, host=host: pure_callback(host, like))()
        assert out.dtype == like.dtype and out.tolist() == [0, 1, 1]


@BOTH
def test_empty_arrays_and_transposed_ones(wrap):
    none = ShapeDtypeStruct((0, 3), "float32")
    assert wrap(lambda: pure_callback(lambda: np.zeros((0, 3), "f"), none))().shape == (
        0,
        3,
    )
    flipped = ShapeDtypeStruct((3, 2), "float32")
    x = fnp.arange(6.0).reshape(2, 3)
    out = wrap(lambda x: pure_callback(lambda v: np.asarray(v).T, flipped, x))(x)
    assert out.tolist() == x.T.tolist()


def test_large_operands_may_be_kept():
    kept = []
    fun = jit(lambda x: io_callback(kept.append, None, x))
    for i in range(3):
        fun(fnp.full(50_000, float(i)))
    assert [float(k[0]) for k in kept] == [0.0, 1.0, 2.0]


def test_operations_inside_a_callback():
    def host(x):
        return jit(lambda v: fnp.sin(v) * 2)(x)

    out = jit(lambda x: pure_callback(host, F32, x))(1.0)
    assert float(out) == pytest.approx(2 * np.sin(1.0), rel=1e-6)


# -- effects ---------------------------------------------------------------------------


@BOTH
def test_io_callback_is_called_once_each_time(wrap):
    seen = []
    fun = wrap(lambda x: io_callback(lambda v: seen.append(float(v)), None, x))
    for i in range(3):
        fun(float(i))
    assert seen == [0.0, 1.0, 2.0]


@BOTH
def test_io_callback_with_results(wrap):
    counter = iter(range(10))
    fun = wrap(
        lambda: io_callback(lambda: next(counter), ShapeDtypeStruct((), "int32"))
    )
    assert [int(fun()) for _ in range(3)] == [0, 1, 2]


def test_unused_pure_callbacks_are_dropped():
    seen = []

    def fun(x):
        pure_callback(lambda v: seen.append(1) or v, F32, x)
        return x

    jit(fun)(1.0)
    assert seen == []


def test_state_threaded_through_a_loop():
    seen = []

    def body(i, c):
        io_callback(lambda v: seen.append(int(v)), None, i, ordered=True)
        return c + 1

    assert float(jit(lambda: lax.fori_loop(0, 4, body, 0.0))()) == 4.0
    assert seen == [0, 1, 2, 3]


def test_inside_scan_and_cond():
    def step(c, x):
        return c + pure_callback(host_sin, F32, x), None

    total, _ = jit(lambda xs: lax.scan(step, 0.0, xs))(fnp.array([0.5, 1.0]))
    assert float(total) == pytest.approx(np.sin(0.5) + np.sin(1.0), rel=1e-6)
    seen = []

    def branch(x):
        io_callback(lambda v: seen.append(float(v)), None, x)
        return x

    jit(lambda x: lax.cond(x > 0, branch, lambda v: -v, x))(-1.0)
    assert seen == []
    jit(lambda x: lax.cond(x > 0, branch, lambda v: -v, x))(2.0)
    assert seen == [2.0]


def test_effects_barrier():
    assert fxflow.effects_barrier() is None


# -- vectorization ---------------------------------------------------------------------

ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)


@BOTH
@pytest.mark.parametrize(
    ("method", "calls", "shapes"),
    [
        ("sequential", 3, [(2,), ()]),
        ("sequential_unrolled", 3, [(2,), ()]),
        ("expand_dims", 1, [(3, 2), (1,)]),
        ("broadcast_all", 1, [(3, 2), (3,)]),
    ],
)
def test_vmap_methods(wrap, method, calls, shapes):
    seen = []

    def host(x, y):
        seen.append([x.shape, y.shape])
        y = np.asarray(y)
        return np.asarray(x) * y.reshape(y.shape + (1,) * (x.ndim - y.ndim))

    def fun(x, y):
        return pure_callback(host, TWO, x, y, vmap_method=method)

    out = wrap(vmap(fun, (0, None)))(ROWS, 2.0)
    np.testing.assert_array_equal(out, 2 * ROWS)
    assert seen == [shapes] * calls


def test_vmap_needs_a_method():
    with pytest.raises(ArgumentError, match=r"host_sin.*vmap_method=.*'sequential'"):
        vmap(lambda x: pure_callback(host_sin, TWO, x))(ROWS)
    with pytest.raises(ArgumentError, match=r"vmap_method is one of .*got 'fast'"):
        pure_callback(host_sin, TWO, ROWS[0], vmap_method="fast")


def test_unmapped_callbacks_are_called_once():
    seen = []

    def fun(x):
        return x + pure_callback(lambda: seen.append(1) or 2.0, F32)

    assert vmap(fun)(fnp.arange(3.0)).tolist() == [2.0, 3.0, 4.0]
    assert len(seen) == 1


@BOTH
def test_vmap_of_io(wrap):
    seen = []
    fun = lambda x: io_callback(lambda v: seen.append(float(v)), None, x)
    wrap(vmap(fun))(fnp.arange(3.0))
    assert sorted(seen) == [0.0, 1.0, 2.0]
    with pytest.raises(ArgumentError, match="slices have no order"):
        vmap(lambda x: io_callback(print, None, x, ordered=True))(fnp.ones(2))


def test_vmap_twice():
    def fun(x):
        return pure_callback(host_sin, F32, x, vmap_method="expand_dims")

    np.testing.assert_allclose(vmap(vmap(fun))(ROWS), np.sin(ROWS), rtol=1e-6)


# -- derivatives -----------------------------------------------------------------------


def test_no_derivative():
    with pytest.raises(NotDifferentiableError, match=r"Python code.*custom_jvp"):
        grad(lambda x: pure_callback(host_sin, F32, x))(1.0)
    with pytest.raises(NotDifferentiableError):
        jvp(lambda x: io_callback(host_sin, F32, x), (1.0,), (1.0,))


def test_derivative_by_custom_jvp():
    @fxflow.custom_jvp
    def sine(x):
        return pure_callback(host_sin, F32, x)

    sine.defjvp(lambda p, t: (sine(*p), t[0] * fnp.cos(p[0])))
    assert float(grad(sine)(0.5)) == pytest.approx(np.cos(0.5), rel=1e-6)
    assert float(jit(grad(sine))(0.5)) == pytest.approx(np.cos(0.5), rel=1e-6)


def test_integer_results_have_none_to_give():
    count = lambda x: pure_callback(
        lambda v: np.int32(v > 0), ShapeDtypeStruct((), "int32"), x
    )
    assert float(grad(lambda x: x * count(x))(2.0)) == 1.0
    assert float(grad(lambda x: x * lax.stop_gradient(x))(2.0)) == 2.0


def test_debug_callbacks_are_seen_through():
    seen = []

    def fun(x):
        debug_callback(lambda v: seen.append(float(v)), x)
        return x * x

    assert float(grad(fun)(3.0)) == 6.0
    assert seen == [3.0]
    assert float(jit(grad(fun))(4.0)) == 8.0
    assert seen == [3.0, 4.0]
    vmap(fun)(fnp.array([1.0, 2.0]))
    assert sorted(seen) == [1.0, 2.0, 3.0, 4.0]
    jit(vmap(grad(fun)))(fnp.array([5.0, 6.0]))
    assert sorted(seen) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


# -- errors ----------------------------------------------------------------------------


class Mine(Exception):
    pass


def test_exceptions_of_the_host_function_are_raised_unchanged():
    def fail(x):
        raise Mine("from the host")

    for fun in (
        lambda x: pure_callback(fail, F32, x),
        lambda x: io_callback(fail, F32, x),
        lambda x: io_callback(fail, F32, x, ordered=True),
        lambda x: lax.scan(lambda c, _: (pure_callback(fail, F32, c), 0.0), x, None, 2),
    ):
        for wrap in (lambda f: f, jit):
            with pytest.raises(Mine, match="from the host"):
                wrap(fun)(1.0)
    # And the process goes on.
    assert float(jit(lambda x: x + 1)(1.0)) == 2.0


def test_the_traceback_leads_into_the_callback():
    def culprit(x):
        raise Mine("here")

    with pytest.raises(Mine) as info:
        jit(lambda x: pure_callback(culprit, F32, x))(1.0)
    assert any(entry.name == "culprit" for entry in info.traceback)


@BOTH
@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (np.ones(3, np.float32), r"result 0 was declared float32\[2\].*float32\[3\]"),
        (np.ones(2, np.float64), r"float32\[2\].*float64\[2\]"),
        (np.ones(2, np.int32), r"float32\[2\].*int32\[2\]"),
        (1.0, r"declared float32\[2\].*float32\[\]"),
        ((np.ones(2, "f"), np.ones(2, "f")), r"declared float32\[2\].*float32\[2, 2\]"),
        ({"a": np.ones(2, "f")}, "structure|declared|float"),
        (None, "callback culprit returned the structure"),
        ("text", "text|float|declared"),
    ],
)
def test_results_other_than_declared(wrap, returned, words):
    def culprit():
        return returned

    with pytest.raises((ValueError, TypeError), match=words):
        wrap(lambda: pure_callback(culprit, TWO))()


@BOTH
def test_results_in_other_containers(wrap):
    pair = collections.namedtuple("pair", "a b")
    declared = {"a": F32, "b": (F32, pair(F32, F32))}
    one, two, three, four = (np.float32(i) for i in range(1, 5))
    for returned in (
        {"a": one, "b": [two, (three, four)]},
        collections.OrderedDict(b=(two, [three, four]), a=one),
    ):
        out = wrap(lambda r=returned: pure_callback(lambda: r, declared))()
        assert tree.structure(out) == tree.structure(declared)
        assert [float(x) for x in tree.leaves(out)] == [1.0, 2.0, 3.0, 4.0]
    assert float(wrap(lambda: pure_callback(lambda: [one], F32))()) == 1.0
    for returned in ({"a": one, "c": [two, (three, four)]}, {"a": one, "b": [two]}):
        with pytest.raises(ValueError, match="returned the structure"):
            wrap(lambda r=returned: pure_callback(lambda: r, declared))()


def test_the_culprit_is_named():
    def culprit():
        return np.ones(3, np.float32)

    with pytest.raises(ValueError, match="callback culprit: result 0"):
        jit(lambda: pure_callback(culprit, TWO))()
    with pytest.raises(
        ValueError, match=r"callback <lambda> at .* returned the structure"
    ):
        pure_callback(lambda: None, F32)
    with pytest.raises(ValueError, match="callback culprit returned the structure"):
        pure_callback(culprit, (TWO, TWO))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pure_callback(3, F32), "pure_callback takes a function, got int"),
        (lambda: io_callback("f", F32), "io_callback takes a function, got str"),
        (lambda: debug_callback(None), "debug.callback takes a function"),
        (lambda: pure_callback(host_sin, F32, "a"), "argument of host_sin is 'a'"),
        (lambda: pure_callback(host_sin, "float32", 1.0), "ShapeDtypeStructs, got 'fl"),
        (lambda: pure_callback(host_sin, 1.0, 1.0), "ShapeDtypeStructs, got 1.0"),
    ],
)
def test_invalid_functions_arguments_and_result_types_are_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()


def test_shown_in_graphs():
    graph = fxflow.make_graph(lambda x: pure_callback(host_sin, F32, x))(1.0)
    assert "python_callback[function=host_sin] a" in str(graph)


# -- several devices -------------------------------------------------------------------


@pytest.fixture
def mesh():
    return fxflow.make_mesh((4, 2), ("x", "y"))


def test_results_of_a_call_reach_every_device(mesh):
    where = fxflow.NamedSharding(mesh, fxflow.P("x"))
    x = fxflow.device_put(np.arange(8, dtype=np.float32), where)
    got = jit(lambda x: pure_callback(lambda v: np.asarray(v) * 2, x, x))(x)
    # Returned as it is, without an operation of the program on it.
    for shard in got.addressable_shards:
        np.testing.assert_array_equal(shard.data, 2 * np.arange(8)[shard.index])


def test_results_of_an_ordered_call_reach_every_device(mesh):
    where = fxflow.NamedSharding(mesh, fxflow.P("x"))
    x = fxflow.device_put(np.arange(8, dtype=np.float32), where)

    @jit
    def f(x):
        first = io_callback(lambda v: np.asarray(v) + 1, x, x, ordered=True)
        return first, io_callback(lambda v: np.asarray(v) * 2, x, x, ordered=True)

    for got, expected in zip(f(x), (np.arange(8) + 1, np.arange(8) * 2), strict=True):
        for shard in got.addressable_shards:
            np.testing.assert_array_equal(shard.data, expected[shard.index])


@pytest.mark.parametrize("how", ["sharding", "device", "name"])
def test_the_device_that_calls(mesh, how):
    device = fxflow.devices()[3]
    caller = {
        "sharding": fxflow.SingleDeviceSharding(device),
        "device": device,
        "name": "cpu:3",
    }[how]
    where = fxflow.NamedSharding(mesh, fxflow.P("x"))
    x = fxflow.device_put(np.arange(8, dtype=np.float32), where)
    calls = []

    def double(v):
        calls.append(np.shape(v))
        return np.asarray(v) * 2

    f = jit(lambda x: pure_callback(double, x, x, sharding=caller))
    np.testing.assert_array_equal(f(x), 2 * np.arange(8))
    assert calls == [(8,)]
    assert "device_ids=[3]>" in f.lower(x).as_text()
    assert "first_device" not in f.lower(x).as_text()
    # One device, and eagerly: there is nothing to choose.
    np.testing.assert_array_equal(f(np.float32([1, 2])), [2, 4])
    eager = pure_callback(double, x, x, sharding=caller)
    np.testing.assert_array_equal(eager, 2 * np.arange(8))


def test_a_device_that_cannot_call(mesh):
    whole = fxflow.NamedSharding(mesh, fxflow.P())
    with pytest.raises(ArgumentError, match="over 8 devices"):
        pure_callback(host_sin, F32, 1.0, sharding=whole)
    with pytest.raises(ArgumentError, match="sharding: expected a Sharding"):
        pure_callback(host_sin, F32, 1.0, sharding=3)
    few = fxflow.Mesh(np.array(fxflow.devices()[:2]), ("x",))
    x = fxflow.device_put(np.float32(1), fxflow.NamedSharding(few, fxflow.P()))
    with pytest.raises(ArgumentError, match="does not run on"):
        jit(lambda x: pure_callback(host_sin, F32, x, sharding="cpu:5"))(x)


def test_partitioned(mesh):
    where = fxflow.NamedSharding(mesh, fxflow.P("x"))
    x = fxflow.device_put(np.arange(8, dtype=np.float32), where)
    seen = []

    def note(v, whole):
        assert np.shape(whole) == ()
        seen.append(np.asarray(v).tolist())

    @jit
    def f(x):
        debug_callback(note, x * 2, x.sum(), partitioned=True)
        return x

    f(x)
    # Each of the two devices that hold a part calls with it.
    parts = [[4.0 * i, 4.0 * i + 2] for i in range(4)]
    assert sorted(seen) == sorted(parts * 2)
    seen.clear()
    debug_callback(note, x, 1.0, partitioned=True)
    f(np.float32([1, 2]))  # on one device
    assert seen == [list(range(8)), [2.0, 4.0]]


def test_partitioned_inside_vmap_and_grad(mesh):
    where = fxflow.NamedSharding(mesh, fxflow.P("x"))
    x = fxflow.device_put(np.arange(8, dtype=np.float32).reshape(4, 2), where)
    seen = []

    def loss(row):
        debug_callback(lambda r: seen.append(r.shape), row, partitioned=True)
        return fnp.sum(row**2)

    got = jit(vmap(grad(loss)))(x)
    np.testing.assert_array_equal(got, 2 * np.arange(8).reshape(4, 2))
    assert set(seen) == {(2,)}


def test_partitioned_has_no_order():
    with pytest.raises(ArgumentError, match="have no order"):
        debug_callback(print, 1.0, ordered=True, partitioned=True)


def test_each_of_many_programs_that_fail_at_once_raises_its_own():
    like = ShapeDtypeStruct((), "float32")
    together, found = threading.Barrier(24), {}

    def fail(x):
        raise ValueError(f"number {int(x)}")

    failing = jit(lambda x: pure_callback(fail, like, x))
    failing.lower(np.float32(0)).compile()

    def run(i):
        together.wait()
        try:
            failing(np.float32(i))
        except Exception as error:
            found[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {i: str(e) for i, e in found.items()} == {
        i: f"number {i}" for i in range(24)
    }
    assert {type(e) for e in found.values()} == {ValueError}
