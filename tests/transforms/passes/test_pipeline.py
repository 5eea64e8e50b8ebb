"""The pipeline: which passes run, on which graphs, and what it leaves alone."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, kernels, lax, make_graph
from fxflow.core.runtime import eager
from fxflow.core.runtime.library import library
from fxflow.sharding import Mesh, NamedSharding, PartitionSpec
from fxflow.transforms.passes.pipeline import PASSES, chosen_passes, optimized

X = np.ones((6, 2), np.float32)


def twice(x):
    return x.at[np.array([1, 2])].add(1.0).at[np.array([2, 3])].add(2.0)


def scatters(text):
    return text.count('"stablehlo.scatter"(')


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("all", tuple(PASSES)),
        ("none", ()),
        ("", ()),
        ("split_loops", ("split_loops",)),
        ("split_loops, join_scatters", ("join_scatters", "split_loops")),
        (", ".join(reversed(PASSES)), tuple(PASSES)),
    ],
)
def test_option(given, names):
    with config.override(passes=given):
        assert chosen_passes() == names


def test_unknown_pass():
    with pytest.raises(
        ValueError, match=r"expected all, none, or some of join_sc.*'x'"
    ):
        config.override(passes="x")


def test_switch():
    jitted = fxflow.jit(twice)
    assert scatters(jitted.lower(X).as_text()) == 1
    with config.override(passes="none"):
        assert scatters(jitted.lower(X).as_text()) == 2
        assert scatters(jitted.trace(X).lower().as_text()) == 2
    assert scatters(jitted.lower(X).as_text()) == 1


def test_what_is_traced_is_as_written():
    graph = fxflow.jit(twice).trace(X).graph
    assert str(graph).count("scatter_add") == 2


def test_nothing_to_do_is_the_same_graph():
    graph = make_graph(lambda x: fnp.sin(x) * 2)(X).graph
    assert optimized(graph) is graph
    once = make_graph(lambda x: x.at[0].add(1.0))(X).graph
    assert optimized(once) is once


def test_captured_values_stay_captured():
    captured = fnp.asarray(X[:2])
    jitted = fxflow.jit(
        lambda x: x.at[fnp.array([1, 2])].add(captured).at[fnp.array([0, 1])].add(1.0)
    )
    expected = X.copy()
    np.add.at(expected, [1, 2], 1.0)
    np.add.at(expected, [0, 1], 1.0)
    np.testing.assert_array_equal(np.asarray(jitted(X)), expected)


def test_references_are_optimized_too():
    ref = fxflow.new_ref(fnp.asarray(X))

    @fxflow.jit
    def f(x):
        ref[...] = twice(ref[...])
        inner = fxflow.new_ref(x)
        inner[...] = twice(inner[...])
        return inner[...]

    expected = np.asarray(twice(fnp.asarray(X)))
    np.testing.assert_array_equal(np.asarray(f(X)), expected)
    np.testing.assert_array_equal(np.asarray(ref[...]), expected)


def test_several_devices_get_the_program_as_written():
    mesh = Mesh(np.array(fxflow.devices()[:2]), ("x",))
    where = NamedSharding(mesh, PartitionSpec("x"))
    assert scatters(fxflow.jit(twice, in_shardings=where).lower(X).as_text()) == 2
    assert scatters(fxflow.jit(twice, out_shardings=where).lower(X).as_text()) == 2
    inside = fxflow.jit(lambda x: fxflow.lax.with_sharding_constraint(twice(x), where))
    assert scatters(inside.lower(X).as_text()) == 2
    put = fxflow.device_put(X, where)
    assert scatters(fxflow.jit(twice).lower(put).as_text()) == 2


@pytest.mark.parametrize("check", [False, True])
def test_functions_of_rows_in_a_shard_map_are_kernels_of_each_device(check):
    pytest.importorskip("llvmlite")
    mesh = Mesh(np.array(fxflow.devices()[:2]), ("x",))
    rows = PartitionSpec("x")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(256 * mesh.size, 256)).astype(np.float32)
    scale = fxflow.device_put(
        np.linspace(0, 1, 256, dtype=np.float32), NamedSharding(mesh, PartitionSpec())
    )

    def loss(x, scale):
        e = fnp.exp(x - fnp.max(x, 1, keepdims=True))
        return fnp.sum((e / fnp.sum(e, 1, keepdims=True) * scale) ** 2)

    def slopes(x, scale):
        by_x, by_scale = fxflow.grad(loss, argnums=(0, 1))(x, scale)
        # With checks, the gradient of what all devices hold is their sum.
        return by_x, by_scale if check else fxflow.lax.psum(by_scale, "x")

    def run(passes):
        f = fxflow.shard_map(
            slopes,
            mesh=mesh,
            in_specs=(rows, PartitionSpec()),
            out_specs=(rows, PartitionSpec()),
            check=check,
        )
        with config.override(passes=passes):
            lowered = fxflow.jit(f).lower(put, scale)
            return lowered.as_text(), lowered.compile()(put, scale)

    put = fxflow.device_put(x, NamedSharding(mesh, rows))
    text, found = run("all")
    assert "fxflow_kernel_" in text
    plain, expected = run("compile_kernels")
    assert "fxflow_kernel_" not in plain
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_kernels_of_eager_functions_are_compiled(monkeypatch):
    """Those of library functions, and of loops: as in jitted programs."""
    pytest.importorskip("llvmlite")
    seen = []
    compile = eager.compile_graph
    monkeypatch.setattr(
        eager, "compile_graph", lambda g, *a, **k: seen.append(g) or compile(g, *a, **k)
    )

    @kernels.kernel("i:8 v -> i:8 v", out=kernels.like)
    def double(x, y):
        y[...] = 2 * x[...]

    whole = library()(lambda x: double(x) + 1)
    loop = lambda x: lax.scan(lambda c, _: (double(c), None), x, None, length=2)[0]
    x = np.arange(34.0, dtype=np.float32).reshape(17, 2)
    for run, want in ((whole, 2 * x + 1), (loop, 4 * x)):
        for passes in ("all", "none"):
            seen.clear()
            with config.override(passes=passes):
                np.testing.assert_array_equal(run(x), want)
            names = frozenset().union(*(graph.facts.names for graph in seen))
            assert ("kernel_call" in names) == (passes == "none")
