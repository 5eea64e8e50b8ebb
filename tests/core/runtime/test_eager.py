"""Operations at once: NumPy or XLA, library functions, options that never mix."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, grad, jit, lax, vmap
from fxflow.core.arrays.array import host_of
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import state
from fxflow.core.runtime import eager, execute
from fxflow.core.runtime.eager import EVAL, EvalTrace, graph_plan, runs_on_host
from fxflow.core.runtime.library import library
from fxflow.devices import buffers
from fxflow.errors import LeakedTracerError

HOST = buffers.default_placement()


def graph_of(function, *args):
    arrays = [fnp.asarray(a) for a in args]
    graph, _ = trace_flat(function, [a.aval for a in arrays])
    return graph, arrays


# -- NumPy or XLA ----------------------------------------------------------------------


def on_host(function, *args):
    graph, _ = graph_of(function, *args)
    return runs_on_host(graph, HOST)


def test_small_operations_run_with_numpy():
    assert on_host(lambda x: [lax.add(x, x)], np.ones(10, np.float32))
    result = fnp.ones(10) + 1
    assert not hasattr(result, "_buffer")


def test_large_ones_run_with_xla():
    big = np.ones(1 << 17, np.float32)
    assert not on_host(lambda x: [lax.add(x, x)], big)
    assert hasattr(fnp.asarray(big) + 1, "_buffer")


def test_views_of_any_size_run_with_numpy():
    big = np.ones((1 << 9, 1 << 9), np.float32)
    assert on_host(lambda x: [lax.transpose(x, (1, 0))], big)
    assert on_host(lambda x: [lax.reshape(x, (1 << 18,))], big)
    assert on_host(lambda x: [lax.slice(x, (0, 0), (2, 2))], big)


def test_effects_and_calls_do_not():
    assert not on_host(lambda x: [jit(lax.sin)(x)], np.float32(1))
    like = fxflow.ShapeDtypeStruct((), "float32")
    callback = lambda x: [fxflow.pure_callback(lambda v: v, like, x)]
    assert not on_host(callback, np.float32(1))


def test_the_switch():
    with config.override(eager="xla"):
        assert not on_host(lambda x: [lax.add(x, x)], np.float32(1))
        assert hasattr(fnp.ones(3) + 1, "_buffer")
    assert not hasattr(fnp.ones(3) + 1, "_buffer")


FUNCTIONS = {
    "arithmetic": lambda x, y: (x + y) * x - y / 3,
    "comparison": lambda x, y: (x > y, x == y, fnp.isnan(x)),
    "selection": lambda x, y: fnp.where(x > y, x, y),
    "movement": lambda x, y: fnp.concatenate([x, y[::-1], x[2:5]]),
    "transcendental": lambda x, y: fnp.exp(-fnp.abs(x)) + fnp.tanh(y),
    "integers": lambda x, y: x.astype(int) // 3 + y.astype(int) % 5,
    "shifts": lambda x, y: x.astype("int32") << 40,
    "casts": lambda x, y: (x * 1e12).astype("int32"),
    "specials": lambda x, y: (x / (y - y), fnp.sqrt(x - 10), fnp.log(x - x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_ways_give_the_same(name):
    x = fnp.asarray(np.linspace(-3, 3, 8, dtype=np.float32))
    y = fnp.asarray(np.linspace(4, -1, 8, dtype=np.float32))
    function = FUNCTIONS[name]
    host = fxflow.tree.leaves(function(x, y))
    with config.override(eager="xla"):
        device = fxflow.tree.leaves(function(x, y))
    compiled = fxflow.tree.leaves(jit(function)(x, y))
    for a, b, c in zip(host, device, compiled, strict=True):
        assert a.aval is b.aval is c.aval
        np.testing.assert_allclose(a, b, rtol=2e-6, equal_nan=True)
        np.testing.assert_allclose(a, c, rtol=2e-6, equal_nan=True)


def test_numpy_does_not_warn():
    x = fnp.array([0.0, -1.0])
    # Warnings are errors in this suite.
    assert np.isnan(np.asarray(fnp.log(x) * 0)).all()
    assert np.isinf(np.asarray(1 / x))[0]
    with np.errstate(all="raise"):
        assert np.isinf(np.asarray(1 / x))[0]


@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "u1", "bool"])
def test_reductions_and_choices_are_those_of_programs(dtype):
    x = np.arange(-3, 9).reshape(3, 4).astype(dtype)
    for run in (
        lambda x: lax.reduce_sum(x, (0, 1)) if dtype != "bool" else x.all(),
        lambda x: fnp.sum(x, axis=1),
        lambda x: fnp.prod(x[:0], axis=0),
        lambda x: fnp.where(x > 1, x, x[::-1]),
        lambda x: fnp.where(x > 1, x, 1),
        lambda x: fnp.where(fnp.asarray(True), x, x * 0),
    ):
        eager, compiled = run(fnp.asarray(x)), fxflow.jit(run)(x)
        assert eager.aval == compiled.aval
        np.testing.assert_array_equal(eager, compiled)


def test_operations_in_several_threads():
    failures = []

    def work(n):
        results = [float((fnp.full(3, float(n)) * i / 1.0).max()) for i in range(50)]
        failures.extend((n, i) for i in range(50) if results[i] != n * i)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_a_small_view_does_not_keep_a_large_array():
    big = fnp.asarray(np.arange(1 << 16, dtype=np.float32))
    small = big[3:5]
    assert not np.shares_memory(host_of(small), host_of(big))
    half = big[: 1 << 15]
    assert np.shares_memory(host_of(half), host_of(big))  # not worth a copy


def test_0d_constants_stay_scalars():
    x = fnp.ones((2, 3))
    graph = fxflow.make_graph(lambda x: x * 2.0 + 1)(x)
    assert [n.primitive.name for n in graph.nodes] == ["mul", "add"]
    assert (x * 2.0 + 1).tolist() == [[3.0] * 3] * 2
    assert vmap(lambda r: r * 2.0)(x).tolist() == [[2.0] * 3] * 2


# -- plans -----------------------------------------------------------------------------


def test_a_plan_is_made_once():
    x = fnp.ones(17)
    lax.sin(x)
    count = len(EVAL.plans)
    lax.sin(fnp.zeros(17))
    assert len(EVAL.plans) == count
    lax.sin(fnp.zeros(18))
    assert len(EVAL.plans) == count + 1


def test_plans_of_graphs():
    graph, arrays = graph_of(lambda x: [lax.neg(x), 2.0, x], np.ones(2, np.float32))
    plan = graph_plan(graph, [a._type for a in arrays], "f")
    first, second, third = plan(*arrays)
    assert first.tolist() == [-1.0, -1.0]
    assert float(second) == 2.0 and second.weak_type
    assert third.tolist() == [1.0, 1.0]


def test_results_are_immutable():
    x = fnp.arange(4.0)
    for y in (x + 1, x[1:], x.reshape(2, 2), fnp.sin(x)):
        assert not np.asarray(y).flags.writeable


# -- library functions -----------------------------------------------------------------


@library("axis", "mode")
def scaled(x, y=2.0, *, axis=0, mode="up", extra=None):
    """A function as `fxflow.numpy` holds many."""
    out = lax.mul(x, lax.convert_element_type(y, x.dtype))
    if mode == "down":
        out = lax.neg(out)
    if extra is not None:
        for e in extra:
            out = lax.add(out, e)
    return lax.expand_dims(out, (axis,))


@library()
def several(x, *, tree):
    """Returns a pytree."""
    return {"a": lax.neg(x), "b": (tree, x)}


def test_library_function():
    x = fnp.arange(3.0)
    assert scaled(x).tolist() == [[0.0, 2.0, 4.0]]
    assert scaled(x, 3.0, axis=1).tolist() == [[0.0], [3.0], [6.0]]
    assert scaled(x, mode="down").tolist() == [[-0.0, -2.0, -4.0]]
    assert scaled(x, extra=[x, x]).tolist() == [[0.0, 4.0, 8.0]]
    assert scaled(x, extra=(x,)).tolist() == [[0.0, 3.0, 6.0]]
    assert scaled(x, fnp.array(5.0)).tolist() == [[0.0, 5.0, 10.0]]
    assert scaled(x, np.float32(5.0)).tolist() == [[0.0, 5.0, 10.0]]
    assert scaled.__name__ == "scaled" and "as `fxflow.numpy`" in scaled.__doc__


def test_library_functions_return_trees():
    x = fnp.ones(2)
    out = several(x, tree=3.0)
    assert out["a"].tolist() == [-1.0, -1.0]
    assert float(out["b"][0]) == 3.0 and out["b"][1].tolist() == [1.0, 1.0]
    assert several(x, tree=None)["b"][0] is None


def test_plans_of_a_library_function():
    scaled.plans.clear()
    x = fnp.arange(3.0)
    scaled(x, 2.0)
    scaled(x + 1, 7.5)  # numbers are arguments, not constants
    assert len(scaled.plans) == 1
    scaled(x, 2)  # another type
    scaled(x, 2.0, axis=1)
    scaled(x, 2.0, mode="up")
    assert len(scaled.plans) == 4
    assert scaled(x, 2.0, axis=True).shape == (3, 1)
    assert len(scaled.plans) == 5  # True is not 1


def test_static_arguments_that_cannot_be_hashed():
    @library("shape")
    def filled(x, *, shape):
        return lax.broadcast(x, tuple(shape))

    assert filled(fnp.array(1.0), shape=[2]).tolist() == [1.0, 1.0]
    assert filled(fnp.array(1.0), shape=(2,)).tolist() == [1.0, 1.0]


def test_library_functions_are_inlined_when_traced():
    graph = fxflow.make_graph(lambda x: scaled(x))(fnp.ones(3))
    assert [n.primitive.name for n in graph.nodes] == ["mul", "reshape"]
    slope = grad(lambda x: lax.reduce_sum(scaled(x), (0, 1)))(fnp.ones(3))
    assert slope.tolist() == [2.0, 2.0, 2.0]
    assert vmap(scaled)(fnp.ones((2, 3))).shape == (2, 1, 3)


def test_library_functions_with_leaked_values():
    kept = []
    jit(lambda x: kept.append(x))(1.0)
    with pytest.raises(LeakedTracerError, match="outside the transformed function"):
        scaled(kept[0])
    with pytest.raises(LeakedTracerError):
        scaled(fnp.ones(3), extra=[kept[0]])


def test_captured_arrays_of_library_functions():
    table = fnp.arange(3.0)

    @library()
    def with_table(x):
        return lax.add(x, table)

    assert with_table(fnp.ones(3)).tolist() == [1.0, 2.0, 3.0]
    assert with_table(fnp.zeros(3)).tolist() == [0.0, 1.0, 2.0]


# -- options ---------------------------------------------------------------------------


def test_overrides_belong_to_their_thread():
    seen = {}
    inside, leave = threading.Event(), threading.Event()

    def other():
        with config.override(x64=True):
            seen["other"] = (
                state.trace is EVAL,
                fnp.zeros(2).dtype,
                (1.5 + fnp.array(1)).dtype,
            )
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    seen["main"] = (state.trace is EVAL, fnp.zeros(2).dtype, (1.5 + fnp.array(1)).dtype)
    leave.set()
    thread.join()
    assert seen["other"] == (False, np.float64, np.float64)
    assert seen["main"] == (True, np.float32, np.float32)


def test_plans_under_different_options_never_mix():
    x = fnp.array(1)
    for _ in range(2):
        assert (x + 1.5).dtype == np.float32
        assert fnp.sin(x).dtype == np.float32
        with config.override(x64=True):
            y = fnp.array(1)
            assert y.dtype == np.int64
            assert (y + 1.5).dtype == np.float64
            assert fnp.sin(y).dtype == np.float64
            with config.override(x64=False):
                assert fnp.zeros(1).dtype == np.float32
            assert fnp.zeros(1).dtype == np.float64
        assert fnp.zeros(1).dtype == np.float32


def test_overrides_inside_a_transformation():
    """Plans made under an option are never found without it, nor the other way."""

    def fun(x):
        with config.override(debug_nans=True):
            return fnp.sum(fnp.log(x) * 2.0)

    bad = fnp.array([-1.0, 1.0, 2.5])
    fnp.sum(fnp.log(bad) * 2.0)  # the plans without the check exist
    for transformed in (
        grad(fun),
        lambda x: vmap(fun)(x[None]),
        lambda x: fxflow.jvp(fun, (x,), (x,)),
        lambda x: vmap(grad(fun))(x[None]),
    ):
        with pytest.raises(FloatingPointError, match="gave nan"):
            transformed(bad)
        # And the check is not left behind.
        assert np.isnan(np.asarray(fnp.log(bad) * 2.0)).any()
        assert state.trace is EVAL
        lax.log(fnp.array([-1.0] * 4))


def test_an_error_inside_leaves_the_options_as_they_were():
    with pytest.raises(ZeroDivisionError), config.override(x64=True):
        1 / 0
    assert state.trace is EVAL
    assert fnp.zeros(1).dtype == np.float32


def test_setting_an_option_for_the_process():
    before = fnp.zeros(1).dtype
    config.x64 = True
    try:
        assert fnp.zeros(1).dtype == np.float64
        assert state.trace is EVAL
        assert jit(lambda: fnp.zeros(1))().dtype == np.float64
    finally:
        config.x64 = False
    assert fnp.zeros(1).dtype == before


def test_nan_check_when_eager():
    with (
        fxflow.debug_nans(),
        pytest.raises(FloatingPointError, match=r"log at .*test_eager\.py:\d+ .*nan"),
    ):
        fnp.log(fnp.array(-1.0))
    assert np.isnan(float(fnp.log(fnp.array(-1.0))))


def test_compile_time_evaluation_under_an_override():
    with config.override(x64=True), fxflow.ensure_compile_time_eval():
        assert state.trace is eager.interpreter() is not EVAL
        assert fnp.zeros((3, 5, 7)).dtype == np.float64
    assert fnp.zeros((3, 5, 7)).dtype == np.float32
    assert eager.interpreter() is EVAL


def test_traces_of_overrides_are_their_own():
    with config.override(eager="xla"):
        first = state.trace
        assert isinstance(first, EvalTrace) and first is not EVAL
        lax.sin(1.5)
        plans = eager._overriding[eager.options()].plans
        assert plans and plans is not EVAL.plans
    with config.override(eager="xla"):
        assert state.trace is first
        assert eager._overriding[eager.options()].plans is plans


def test_arrays_where_static_values_are_expected() -> None:
    x = fnp.arange(6.0).reshape(2, 3)
    for _ in range(2):  # the second time, a plan could be found
        assert fnp.sum(x, fnp.array(0)).shape == (3,)
        assert fnp.sum(x, fnp.array(1)).shape == (2,)


def test_only_dtypes_of_which_numpy_agrees_run_on_the_host():
    z, narrow = np.ones(3, np.complex64), np.ones(3, ml_dtypes.int4)
    assert on_host(lambda x: [lax.add(x, x)], z)
    assert not on_host(lambda x: [lax.mul(x, x)], z)
    assert not on_host(lambda x: [lax.abs(x)], z)
    assert not on_host(lambda x: [lax.add(x, x)], narrow)
    assert on_host(lambda x: [lax.reshape(x, (3, 1))], narrow)
    assert on_host(lambda x: [lax.convert_element_type(x, np.int8)], narrow)


def test_narrow_integers_wrap():
    assert (-fnp.array([1], fnp.uint4)).tolist() == [15]
    assert (~fnp.array([1], fnp.uint4)).tolist() == [14]
    assert (-fnp.array([-8], fnp.int4)).tolist() == [-8]
    assert (fnp.array([3], fnp.int4) ** 2).astype(int).tolist() == [-7]
    assert fnp.left_shift(fnp.array([7], "int4"), fnp.array([1], "int4")) == -2
    assert fnp.right_shift(fnp.array([-8], "int4"), fnp.array([1], "int4")) == -4
    assert fnp.array([9], fnp.uint4).astype(fnp.int4).tolist() == [-7]


@pytest.mark.parametrize("how", [lambda f: f, jit])
def test_numbers_keep_64_bits_beside_an_array_that_has_them(how) -> None:
    x, mask = fnp.asarray([1.0, 2.0], "float64"), np.array([True, False])
    for number in (0.1, np.float64(0.1)):
        out = how(lambda m, x, n=number: fnp.where(m, x, n))(mask, x)
        assert out.dtype == "float64"
        assert out[1] == 0.1
    assert how(lambda x: fnp.clip(x, 0.1, 1.1))(x)[1] == fnp.float64(1.1)
    whole = fnp.asarray([1, 2], "int64")
    for number in (1 << 40, np.int64(1 << 40)):
        out = how(lambda m, x, n=number: fnp.where(m, x, n))(mask, whole)
        assert int(out[1]) == 1 << 40


@pytest.mark.parametrize("how", [lambda f: f, jit])
@pytest.mark.parametrize("number", [-1, 256, 1 << 20])
def test_python_ints_that_do_not_fit_are_refused(how, number: int) -> None:
    x = fnp.arange(3, dtype="uint8")
    for function in (
        lambda x: fnp.searchsorted(x, number),
        lambda x: fnp.where(x > 1, x, number),
        lambda x: x + number,
    ):
        with pytest.raises(OverflowError, match=f"{number} does not fit uint8"):
            how(function)(x)
        # A number that fits does not share the plan of one that does not.
    assert how(lambda x: fnp.where(x > 1, x, 255))(x).tolist() == [255, 255, 2]


def test_programs_of_eager_operations_are_bounded(monkeypatch):
    one = execute._PROGRAM_BYTES
    monkeypatch.setattr(eager, "PROGRAM_BYTES", 4 * one + one // 2)
    with config.override(eager="xla"):
        for _ in range(2):  # those that went are compiled again
            for size in range(1, 12):
                assert float(fnp.square(fnp.full(size, 3.0))[-1]) == 9.0
                assert len(eager._programs) <= 4
    plans = [ref() for ref in eager._programs._plans]
    assert plans and all(plan.program is not None for plan in plans)
