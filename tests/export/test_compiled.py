"""Compiled programs in files: used only where they fit."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import export
from fxflow.devices import cache
from fxflow.errors import ArgumentError, ExportError
from fxflow.export import compiled as module
from tests.export.artifacts import golden

PARAMS = {"w": np.diag([4.0, 9.0]).astype(np.float32), "unused": np.ones(3, np.int32)}
X = np.ones(2, np.float32)


def function(params, x):
    return fnp.linalg.cholesky(params["w"]) @ x, fnp.tanh(x)


@pytest.fixture(scope="module")
def exported():
    return export.export(fxflow.jit(function))(PARAMS, X)


@pytest.fixture
def path(exported, tmp_path):
    export.save(tmp_path / "f.fx", exported, params=PARAMS, vjp_order=1, compiled=True)
    return tmp_path / "f.fx"


def test_a_compiled_program_runs_without_lowering(path, monkeypatch):
    bundle = export.load(path, compiled=True)
    assert bundle.is_compiled
    monkeypatch.setattr(export.Exported, "call", None)
    root, curve = bundle.call(X)
    np.testing.assert_allclose(root, [2, 3], rtol=1e-6)
    np.testing.assert_allclose(curve, np.tanh(X), rtol=1e-6)


def test_the_disk_cache_is_not_read(exported, tmp_path, monkeypatch):
    """A program from the disk cache would be written without its machine code."""
    asked = []
    monkeypatch.setattr(cache, "load", asked.append)
    with fxflow.config.override(cache=True, cache_dir=str(tmp_path / "cache")):
        fxflow.jit(lambda x: x * 41)(X)
        assert asked
        asked.clear()
        export.save(tmp_path / "f.fx", exported, params=PARAMS, compiled=True)
    assert not asked


def test_other_calls_use_the_portable_program(path):
    bundle = export.load(path, compiled=True)
    slope = fxflow.grad(lambda x: bundle.call(x)[1].sum())(fnp.asarray(X))
    np.testing.assert_allclose(slope, 1 - np.tanh(X) ** 2, rtol=1e-5)
    other = fxflow.device_put(X, fxflow.local_devices()[1])
    np.testing.assert_allclose(bundle.call(other)[0], [2, 3], rtol=1e-6)
    assert bundle.call(other)[0].devices() == other.devices()
    with pytest.raises(ValueError, match=r"f32\[2\] as argument args\[1\]"):
        bundle.call(np.ones(3, np.float32))


def test_a_compiled_program_is_used_only_on_request(path):
    bundle = export.load(path)
    assert not bundle.is_compiled
    np.testing.assert_allclose(bundle.call(X)[0], [2, 3], rtol=1e-6)


def test_programs_for_other_machines_are_ignored(path, monkeypatch):
    monkeypatch.setattr(module, "_key", lambda *_: "another machine")
    bundle = export.load(path, compiled=True)
    assert not bundle.is_compiled
    np.testing.assert_allclose(bundle.call(X)[0], [2, 3], rtol=1e-6)


def test_damage_is_found(exported, path):
    data = bytearray(path.read_bytes())
    table = int.from_bytes(data[-16:-8], "little")  # the part after it
    data[table - 100] ^= 1
    path.write_bytes(data)
    with pytest.raises(ExportError, match="the digest of compiled differs"):
        export.load(path, verify=False, compiled=True)
    described, _ = module.compiled(exported)
    with pytest.raises(ExportError, match="cannot be loaded"):
        module.ready(exported, described, b"nonsense")
    with pytest.raises(ExportError, match="is corrupt"):
        module.ready(exported, None, b"")


def test_symbolic_sizes_are_not_compiled_ahead(tmp_path):
    sizes = export.deserialize(golden("sizes"))
    with pytest.raises(ArgumentError, match="static sizes"):
        export.save(tmp_path / "f.fx", sizes, compiled=True)


def test_a_function_without_arguments(tmp_path):
    made = export.export(fxflow.jit(lambda: fnp.arange(3)))()
    export.save(tmp_path / "f.fx", made, compiled=True)
    bundle = export.load(tmp_path / "f.fx", compiled=True)
    np.testing.assert_array_equal(bundle.call(), [0, 1, 2])
