"""Compiled graphs: where they run, what they return, what is checked."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, jit, lax, pure_callback
from fxflow.core.arrays.array import buffer_of
from fxflow.core.ir.staging import trace_flat
from fxflow.core.runtime import execute
from fxflow.core.runtime.execute import (
    buffer_at,
    check_finite,
    compile_graph,
    in_kind,
)
from fxflow.devices import buffers, faults
from fxflow.errors import NonFiniteError


def program(function, *args, name="program"):
    arrays = [fnp.asarray(a) for a in args]
    graph, consts = trace_flat(function, [a.aval for a in arrays])
    assert not consts
    return compile_graph(graph, [a._type for a in arrays], name=name), arrays


def test_a_program_runs_and_knows_its_types():
    run, arrays = program(lambda x, y: [lax.add(x, y), x], np.ones(3), np.ones(3))
    total, same = run(arrays)
    assert total.tolist() == [2.0, 2.0, 2.0] and same.tolist() == [1.0, 1.0, 1.0]
    assert total.aval is arrays[0].aval
    assert "stablehlo.add" in run.text
    assert run.placements == (buffers.default_placement(),) * 2
    assert [p.aval for p in run.out_types] == [arrays[0].aval] * 2


def test_programs_of_one_result_and_of_none():
    run, arrays = program(lambda x: [lax.sin(x)], np.float32(0))
    assert [float(v) for v in run(arrays)] == [0.0]
    nothing, arrays = program(lambda x: [], np.float32(0))
    assert nothing(arrays) == []


def test_weak_types_and_keys_come_back():
    run, arrays = program(lambda x: [lax.mul(x, 2)], 3)
    (out,) = run(arrays)
    assert out.weak_type and int(out) == 6
    key = fxflow.random.key(0)
    run, _ = program(lambda k: [k], key)
    (same,) = run([key])
    assert same.aval is key.aval


def test_a_program_that_calls_python_is_waited_for():
    def fail(x):
        raise RuntimeError("from the callback")

    like = fxflow.ShapeDtypeStruct((), "float32")
    run, arrays = program(lambda x: [pure_callback(fail, like, x)], np.float32(0))
    with pytest.raises(RuntimeError, match="from the callback"):
        run(arrays)


def test_buffers_of_other_places():
    x = fnp.ones(3)
    assert buffer_at(x, buffers.default_placement()) is buffer_of(x)


def test_check_finite():
    nan, inf = fnp.array([1.0, np.nan]), fnp.array([1.0, np.inf])
    check_finite("f", [nan, inf])
    with config.override(debug_nans=True):
        check_finite("f", [inf, fnp.arange(3)])
        with pytest.raises(NonFiniteError, match=r"f gave nan in f32\[2\]"):
            check_finite("f", [nan])
    with (
        config.override(debug_infs=True),
        pytest.raises(FloatingPointError, match=r"f gave inf in f32\[2\]"),
    ):
        check_finite("f", [inf])


def test_compiler_options():
    graph, _ = trace_flat(lambda x: [lax.sin(x)], [fnp.ones(2).aval])
    arg_types = [fnp.ones(2)._type]
    options = {"xla_cpu_enable_fast_math": False}
    run = compile_graph(graph, arg_types, name="f", options=options)
    assert run([fnp.zeros(2)])[0].tolist() == [0.0, 0.0]


def test_large_arguments():
    x = fnp.ones((300, 300))
    np.testing.assert_allclose(np.asarray(jit(lambda x: x * 2)(x)), 2.0)


def test_memories_of_results_from_the_disk_cache(tmp_path):
    there = fxflow.devices()[0]
    one = fxflow.SingleDeviceSharding(there, memory_kind="pinned_host")
    for from_cache in (False, True):
        fun = fxflow.jit(lambda x: x * 3.25, out_shardings=one)
        with config.override(cache=True, cache_dir=str(tmp_path)):
            compiled = fun.lower(fnp.ones(7)).compile()
        assert compiled.program.executable.from_cache == from_cache
        assert compiled(fnp.ones(7)).sharding == one
    place = buffers.default_placement()
    assert in_kind(place, None) is place
    assert in_kind(place, "pinned_host") is buffers.placement_for(one)


@pytest.fixture
def options(monkeypatch):
    """With which options a function of arrays of some shapes is compiled."""
    seen = []

    def watched(text, *args, options=None, **more):
        seen.append(dict(options or {}))
        return compile_text(text, *args, options=options, **more)

    compile_text = execute.compile_text
    monkeypatch.setattr(execute, "compile_text", watched)
    monkeypatch.delenv("XLA_FLAGS", raising=False)

    def compiled_with(function, *shapes, given=None):
        args = [fxflow.ShapeDtypeStruct(s, np.float32) for s in shapes]
        lowered = fxflow.jit(function).lower(*args)
        with config.override(cache=False):
            lowered.compile(given)
        return seen.pop()

    return compiled_with


def test_options_of_large_convolutions(options, monkeypatch):
    monkeypatch.setattr(faults, "jaxlib_version", "0.10.2")
    # Else the kernel computes them, where there is one.
    monkeypatch.setattr(config, "passes", "none")

    def convolve(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "VALID")

    name = "xla_cpu_experimental_ynn_fusion_type"
    large = (8, 96, 32, 32), (256, 96, 5, 5)
    assert options(convolve, *large)[name] == "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"
    inside = options(fxflow.checkpoint(convolve), *large)
    assert inside[name] == "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"
    assert options(convolve, (1, 3, 8, 8), (4, 3, 3, 3)) == {}
    given = {name: "LIBRARY_FUSION_TYPE_DOT"}
    assert options(convolve, *large, given=given) == given
    monkeypatch.setenv("XLA_FLAGS", f"--{name}=individual_dot")
    assert options(convolve, *large) == {}
    monkeypatch.delenv("XLA_FLAGS")
    monkeypatch.setattr(faults, "jaxlib_version", "0.11.2")
    assert options(convolve, *large) == {}


def test_options_of_loops(options, monkeypatch):
    def running(xs):
        return lax.scan(lambda c, x: (c + x, c), xs[0], xs)

    name = "xla_cpu_scheduler_type"
    known = {name: "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
    assert options(running, (3, 2)) == options(jit(running), (3, 2)) == known
    assert options(fnp.sin, (3, 2)) == {}
    given = {name: "CPU_SCHEDULER_TYPE_CONCURRENCY_OPTIMIZED"}
    assert options(running, (3, 2), given=given) == given
    monkeypatch.setenv("XLA_FLAGS", f"--{name}=cpu_scheduler_type_default")
    assert options(running, (3, 2)) == {}


def test_a_graph_that_is_called_often_is_looked_at_once():
    def convolve(x):
        return lax.conv_general_dilated(x, np.ones((2, 2, 3, 3), "f4"), (1, 1), "SAME")

    def doubled(inner):
        return jit(lambda x: inner(x) + inner(x))

    function = jit(convolve)
    for _ in range(40):  # called 2**40 times
        function = doubled(function)
    graph = fxflow.make_graph(function)(np.ones((1, 2, 4, 4), "f4")).graph
    most = execute._most_flops(graph, "conv_general_dilated")
    assert most == 2 * (2 * 4 * 4) * (2 * 3 * 3)
