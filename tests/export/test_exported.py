"""`Exported` and `deserialize`, also in JAX where it is installed."""

import subprocess

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import export, random
from fxflow.errors import ArgumentError, ExportError
from tests.export.artifacts import JAX_PYTHON


@pytest.fixture(scope="module")
def exported():
    return export.export(fxflow.jit(fnp.tanh))(fnp.ones(3))


def test_an_exported_function_describes_itself(exported):
    assert repr(exported) == "<Exported tanh(f32[3]) -> (f32[3])>"
    assert "stablehlo.tanh" in exported.mlir_module()
    assert exported.mlir_module(serialized=False).operation.name == "builtin.module"
    assert exported.nr_devices == 1 and exported.platforms == ("cpu",)
    assert exported.calling_convention_version == 10
    assert (
        export.minimum_supported_calling_convention_version
        <= exported.calling_convention_version
        <= export.maximum_supported_calling_convention_version
    )
    assert exported.in_shardings_jax(fxflow.make_mesh((1,), ("i",))) == (None,)
    assert exported.out_shardings_jax(fxflow.make_mesh((1,), ("i",))) == (None,)


def test_loaded_functions_have_the_written_derivatives(exported):
    assert exported.has_vjp() and exported.vjp() is exported.vjp()
    for order in range(3):
        loaded = export.deserialize(exported.serialize(vjp_order=order))
        for _ in range(order):
            assert loaded.has_vjp()
            loaded = loaded.vjp()
        assert not loaded.has_vjp()
        with pytest.raises(ExportError, match="without its derivative"):
            loaded.vjp()
        with pytest.raises(ExportError, match="without its derivative"):
            loaded.serialize(vjp_order=1)


def test_derivatives_of_integers_are_float0():
    function = fxflow.jit(lambda x, n: (x * n, n + 1))
    vjp = export.export(function)(1.0, 2).vjp()
    kinds = [str(aval) for aval in (*vjp.in_avals, *vjp.out_avals)]
    assert kinds == ["f32[]", "i32[]", "f32[]", "float0[]", "f32[]", "float0[]"]
    loaded = export.deserialize(vjp.serialize())
    x, n = loaded.call(1.0, 2, 3.0, np.zeros((), fxflow.float0))
    assert float(x) == 6 and n.dtype == fxflow.float0


def test_serialize_refuses_other_values_of_vjp_order(exported):
    for order in (-1, "two"):
        with pytest.raises(ArgumentError, match="vjp_order"):
            exported.serialize(vjp_order=order)


def test_invalid_artifacts_are_refused(exported):
    with pytest.raises(ArgumentError, match=r"expected (the )?bytes"):
        export.deserialize("text")
    for blob in (b"", b"\0" * 100, b"PK\x03\x04" * 30, exported.serialize()[:-1]):
        with pytest.raises(ExportError):
            export.deserialize(blob)
    assert export.deserialize(memoryview(exported.serialize())).fun_name == "tanh"


def waves(x, d):
    return {"y": fnp.sin(x) * d["a"]}, (d["b"].sum(), None)


@pytest.mark.skipif(not JAX_PYTHON, reason="jax is not installed (FXFLOW_JAX_PYTHON)")
@pytest.mark.slow
def test_jax_loads_fxflows_artifacts(tmp_path):
    def save(name, made, order=0):
        (tmp_path / name).write_bytes(made.serialize(order))

    d = {"a": np.float32(2), "b": np.arange(4), "c": np.arange(2)}
    save("waves", export.export(fxflow.jit(waves))(fnp.ones(3), d), 2)
    split = fxflow.jit(lambda key: (random.split(key), random.normal(key, (2,))))
    save("split", export.export(split)(random.key(0)))
    captured = fnp.arange(4.0).reshape(2, 2)
    factor = fxflow.jit(lambda x: fnp.linalg.cholesky(x) + captured)
    everywhere = export.export(factor, platforms=("cpu", "cuda", "tpu"))
    save("everywhere", everywhere(captured), 1)
    where = fxflow.NamedSharding(fxflow.make_mesh((2,), ("i",)), fxflow.P("i"))
    halves = fxflow.jit(lambda x: (x * 2, x.sum()), in_shardings=where)
    save("halves", export.export(halves)(fnp.arange(8.0)), 1)
    done = subprocess.run(
        [JAX_PYTHON, "-m", "tests.export.artifacts", "--load", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.strip() == "loaded", done.stderr[-2000:]
