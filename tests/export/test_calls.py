"""Calls of exported functions: alone, and within every transformation."""

from dataclasses import replace

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import export, lax, random
from fxflow.errors import ArgumentError, ExportError, ShapeError
from tests.export.artifacts import DTYPES, golden


def waves(x, d):
    return {"y": fnp.sin(x) * d["a"]}, (d["b"].sum(), None)


D = {"a": np.float32(2), "b": np.arange(4), "c": np.arange(2)}


@pytest.fixture(scope="module", params=["fxflow", "jax"])
def loaded(request):
    """The same function exported by fxflow and by JAX, with two derivatives."""
    if request.param == "jax":
        return export.deserialize(golden("waves"))
    made = export.export(fxflow.jit(waves))(fnp.ones(3), D)
    return export.deserialize(made.serialize(vjp_order=2))


@pytest.fixture(scope="module")
def x():
    return fnp.arange(3.0)


def test_a_loaded_program_returns_the_results_of_the_traced_one(loaded, x):
    result, (total, nothing) = loaded.call(x, D)
    np.testing.assert_allclose(result["y"], 2 * np.sin(x), rtol=1e-6)
    assert int(total) == 6 and nothing is None
    assert loaded.module_kept_var_idx == (0, 1, 2)  # d["c"] is not used


def test_within_jit_and_twice(loaded, x):
    @fxflow.jit
    def twice(x):
        y = loaded.call(x, D)[0]["y"]
        return loaded.call(y, D)[0]["y"]

    np.testing.assert_allclose(twice(x), 2 * np.sin(2 * np.sin(x)), rtol=1e-6)
    # One copy of the program, with two calls.
    text = twice.lower(x).as_text()
    assert text.count("private @call_exported_waves") == 1
    assert text.count("call @call_exported_waves") == 2


def test_within_vmap(loaded):
    xs = fnp.arange(6.0).reshape(2, 3)
    scales = {**D, "a": fnp.array([1.0, 3.0])}
    axes = (0, {"a": 0, "b": None, "c": None})
    result = fxflow.vmap(loaded.call, in_axes=axes)(xs, scales)[0]["y"]
    np.testing.assert_allclose(result, np.sin(xs) * [[1], [3]], rtol=1e-6)
    slope = fxflow.vmap(fxflow.grad(lambda x: loaded.call(x, D)[0]["y"].sum()))(xs)
    np.testing.assert_allclose(slope, 2 * np.cos(xs), rtol=1e-6)


def test_derivatives_of_two_orders(loaded, x):
    first = fxflow.grad(lambda x: loaded.call(x, D)[0]["y"].sum())
    second = fxflow.jit(fxflow.grad(lambda x: first(x).sum()))
    np.testing.assert_allclose(first(x), 2 * np.cos(x), rtol=1e-6)
    np.testing.assert_allclose(second(x), -2 * np.sin(x), atol=1e-6)
    with pytest.raises(ExportError, match="without its derivative"):
        fxflow.grad(lambda x: second(x).sum())(x)


def test_within_scan_and_checkpoint(loaded, x):
    step = lambda x, _: (loaded.call(x, D)[0]["y"], None)
    end = lax.scan(step, x, None, length=3)[0]
    expected = np.asarray(x)
    for _ in range(3):
        expected = 2 * np.sin(expected)
    np.testing.assert_allclose(end, expected, rtol=1e-5)
    again = fxflow.checkpoint(lambda x: loaded.call(x, D)[0]["y"].sum())
    np.testing.assert_allclose(fxflow.grad(again)(x), 2 * np.cos(x), rtol=1e-6)


def test_within_pmap_and_shard_map(loaded):
    xs = fnp.arange(6.0).reshape(2, 3)
    run = lambda x: loaded.call(x, D)[0]["y"]
    np.testing.assert_allclose(fxflow.pmap(run)(xs), 2 * np.sin(xs), rtol=1e-6)
    mesh = fxflow.make_mesh((2,), ("i",))
    spec = fxflow.P("i")
    parts = fxflow.shard_map(
        lambda x: run(x[0])[None], mesh=mesh, in_specs=spec, out_specs=spec
    )
    np.testing.assert_allclose(parts(xs), 2 * np.sin(xs), rtol=1e-6)
    # And in a program that the compiler partitions.
    whole = fxflow.device_put(fnp.arange(3.0), fxflow.NamedSharding(mesh, fxflow.P()))
    np.testing.assert_allclose(fxflow.jit(run)(whole), 2 * np.sin(whole), rtol=1e-6)


def test_a_loaded_function_can_be_exported(loaded, x):
    outer = export.export(fxflow.jit(lambda x: loaded.call(x, D)[0]["y"] + 1))(x)
    again = export.deserialize(outer.serialize())
    np.testing.assert_allclose(again.call(x), 2 * np.sin(x) + 1, rtol=1e-6)


def test_mismatching_arguments_are_refused(loaded, x):
    with pytest.raises(ArgumentError, match="of the structure"):
        loaded.call(x)
    with pytest.raises(
        ShapeError, match=r"f32\[3\] as argument args\[0\], got f32\[4\]"
    ):
        loaded.call(fnp.ones(4), D)
    with pytest.raises(ShapeError, match=r"got f32\[3,1\]"):
        loaded.call(fnp.ones((3, 1)), D)
    with pytest.raises(ArgumentError, match=r"i32\[4\] as argument args\[1\]\['b'\]"):
        loaded.call(x, {**D, "b": fnp.ones(4)})
    with pytest.raises(ArgumentError, match=r"args\[1\]\['a'\]"):
        loaded.call(x, {**D, "a": "two"})
    with pytest.raises(TypeError, match=r"waves cannot be .* for reverse mode only"):
        fxflow.jvp(lambda x: loaded.call(x, D)[0]["y"], (x,), (x,))


# -- artifacts of JAX ------------------------------------------------------------------


def test_jax_artifacts_with_typed_keys():
    key = random.key(5)
    keys, values = export.deserialize(golden("split")).call(key)
    expected = random.key_data(random.split(key))
    np.testing.assert_array_equal(random.key_data(keys), expected)
    np.testing.assert_allclose(values, random.normal(key, (2,)), rtol=1e-6)


def test_jax_artifacts_for_several_platforms():
    loaded = export.deserialize(golden("everywhere"))
    assert loaded.platforms == ("cpu", "cuda", "tpu")
    matrix = fnp.array([[4.0, 2.0], [2.0, 3.0]])
    np.testing.assert_allclose(
        loaded.call(matrix), np.linalg.cholesky(matrix), rtol=1e-6
    )


def test_jax_artifacts_with_all_dtypes():
    loaded = export.deserialize(golden("dtypes"))
    args = [fnp.ones(2, name) for name in DTYPES.split()]
    assert [a.dtype.name for a in loaded.call(*args)] == DTYPES.split()


def test_jax_artifacts_with_symbolic_sizes():
    loaded = export.deserialize(golden("sizes"))
    assert str(loaded.in_avals[0]) == "f32[b,2*t]"
    assert export.is_symbolic_dim(loaded.in_avals[0].shape[0])
    for b, t in ((2, 3), (4, 1)):
        x, y = fnp.ones((b, 2 * t)), fnp.zeros(b)
        flat, joined = fxflow.jit(loaded.call)(x, y)
        np.testing.assert_array_equal(flat, np.full(2 * b * t, 2))
        np.testing.assert_array_equal(joined, [1] * b + [0] * b)
        slope = fxflow.grad(lambda x, y=y: loaded.call(x, y)[0].sum())(x)
        np.testing.assert_array_equal(slope, np.ones((b, 2 * t)))
    with pytest.raises(ShapeError, match="there is no t"):
        loaded.call(fnp.ones((2, 5)), fnp.zeros(2))
    with pytest.raises(ShapeError, match="is 3, but b is 2 for b = 2, t = 3"):
        loaded.call(fnp.ones((2, 6)), fnp.zeros(3))


def test_jax_artifacts_for_several_devices():
    loaded = export.deserialize(golden("halves"))
    mesh = fxflow.make_mesh((2,), ("i",))
    (where,) = loaded.in_shardings_jax(mesh)
    x = fxflow.device_put(fnp.arange(8.0), where)
    double, total = loaded.call(x)
    np.testing.assert_array_equal(double, 2 * np.arange(8))
    assert double.sharding == where and float(total) == 28
    slope = fxflow.jit(fxflow.grad(lambda x: loaded.call(x)[0].sum()))(x)
    np.testing.assert_array_equal(slope, np.full(8, 2))
    with pytest.raises(ExportError, match="exported for 2 devices, but is called on 1"):
        loaded.call(fnp.arange(8.0))


# -- programs that cannot be called ----------------------------------------------------


def test_effects_are_refused(loaded, x):
    with pytest.raises(ExportError, match=r"has effects \(Debug\)"):
        replace(loaded, unordered_effects=("Debug",)).call(x, D)


def test_other_platforms_are_refused(loaded, x):
    elsewhere = replace(loaded, platforms=("tpu",))
    with pytest.raises(ExportError, match="was exported for tpu, but is called on cpu"):
        elsewhere.call(x, D)
    anyway = replace(
        elsewhere, disabled_safety_checks=(export.DisabledSafetyCheck.platform(),)
    )
    np.testing.assert_allclose(anyway.call(x, D)[0]["y"], 2 * np.sin(x), rtol=1e-6)


def test_programs_that_contradict_their_types_are_refused(loaded, x):
    other = export.export(fxflow.jit(lambda x: x))(fnp.ones(7)).mlir_module_serialized
    with pytest.raises(ExportError, match="but its types are"):
        replace(loaded, mlir_module_serialized=other).call(x, D)
    with pytest.raises(ExportError, match="the program in the artifact"):
        replace(loaded, mlir_module_serialized=b"nonsense").call(x, D)
