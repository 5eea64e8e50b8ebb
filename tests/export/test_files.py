"""`.fx` files: valid, truncated, damaged and mixed up."""

import random

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import P, export
from fxflow.errors import ArgumentError, ExportError
from fxflow.export import files
from tests.export.artifacts import GOLDEN


def predict(params, x):
    hidden = fnp.tanh(x @ params["layers"][0]["w"])
    return hidden @ params["layers"][1]["w"] + params["b"]


PARAMS = {
    "layers": [
        {"w": np.ones((3, 16), np.float32)},
        {"w": np.ones((16, 2), np.float32)},
    ],
    "b": np.arange(2, dtype=np.float32),
}
X = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)


@pytest.fixture(scope="module")
def exported():
    return export.export(fxflow.jit(predict))(PARAMS, X)


def test_with_and_without_parameters(exported, tmp_path):
    path = tmp_path / "model.fx"
    export.save(path, exported)
    bundle = export.load(path)
    assert bundle.params is None and bundle.fxflow_version == fxflow.__version__
    np.testing.assert_allclose(bundle.call(PARAMS, X), predict(PARAMS, X), rtol=1e-5)
    export.save(path, exported, params=PARAMS, vjp_order=1)
    bundle = export.load(path)
    assert repr(bundle).endswith("with parameters>")
    np.testing.assert_allclose(bundle.call(X), predict(PARAMS, X), rtol=1e-5)
    slope = fxflow.jit(fxflow.grad(lambda x: bundle.call(x).sum()))(X)
    expected = fxflow.grad(lambda x: predict(PARAMS, x).sum())(X)
    np.testing.assert_allclose(slope, expected, rtol=1e-5)


def test_parameters_in_a_separate_file(exported, tmp_path):
    path, other = tmp_path / "model.fx", tmp_path / "model.safetensors"
    export.save(path, exported, params=PARAMS, beside=other.name)
    np.testing.assert_allclose(export.load(path).call(X), predict(PARAMS, X), rtol=1e-5)
    package = pytest.importorskip("safetensors.numpy", reason="pip install safetensors")
    assert sorted(package.load_file(other)) == ["b", "layers.0.w", "layers.1.w"]
    whole = other.read_bytes()
    other.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ExportError, match="the digest of the file differs"):
        export.load(path)
    other.write_bytes(whole[:-1])
    with pytest.raises(ExportError, match="is not the file"):
        export.load(path, verify=False)
    other.unlink()
    with pytest.raises(ExportError, match="cannot be read"):
        export.load(path)


def test_parameters_stay_memory_mapped(exported, tmp_path):
    path = tmp_path / "model.fx"
    export.save(path, exported, params=PARAMS)
    # Damage to the parameters is only found with `verify`.
    data = bytearray(path.read_bytes())
    data[data.rindex(PARAMS["b"].tobytes())] ^= 1
    path.write_bytes(data)
    with pytest.raises(ExportError, match="the digest of params differs"):
        export.load(path)
    assert export.load(path, verify=False).params["b"].shape == (2,)


def test_keys_and_several_dtypes(tmp_path):
    function = fxflow.jit(lambda p: (fxflow.random.uniform(p[0]), p[1] + 1, p[2]))
    params = (fxflow.random.key(3), fnp.ones(2, "bfloat16"), np.ones((), np.complex64))
    made = export.export(function)(params)
    export.save(tmp_path / "f.fx", made, params=params)
    for a, b in zip(
        export.load(tmp_path / "f.fx").call(), function(params), strict=True
    ):
        assert a.dtype == b.dtype and (a == b).all()


def test_mismatching_parameters_are_refused(exported, tmp_path):
    path = tmp_path / "model.fx"
    with pytest.raises(ArgumentError, match="structure"):
        export.save(path, exported, params={"b": PARAMS["b"]})
    with pytest.raises(
        ArgumentError, match=r"takes f32\[2\] for b, but params has f32\[3\]"
    ):
        export.save(path, exported, params={**PARAMS, "b": fnp.ones(3)})
    with pytest.raises(ArgumentError, match="beside"):
        export.save(path, exported, beside="a")
    with pytest.raises(ArgumentError, match="beside"):
        export.save(path, exported, params=PARAMS, beside="../a")
    with pytest.raises(ArgumentError, match="expected an Exported"):
        export.save(path, predict)
    nothing = export.export(fxflow.jit(lambda: 1))()
    with pytest.raises(ArgumentError, match="no positional argument"):
        export.save(path, nothing, params=1.0)
    assert not path.exists()


def test_invalid_files_are_refused(exported, tmp_path):
    path = tmp_path / "model.fx"
    for data in (b"", b"PK\x03\x04", bytes(100)):
        path.write_bytes(data)
        with pytest.raises(ExportError, match=r"is not a \.fx file$"):
            export.load(path)
    with pytest.raises(FileNotFoundError):
        export.load(tmp_path / "absent.fx")


def test_files_and_serialized_bytes_are_distinguished(exported, tmp_path):
    path, blob = tmp_path / "model.fx", exported.serialize()
    path.write_bytes(blob)
    with pytest.raises(ExportError, match=r"holds the bytes of Exported\.serialize.*"):
        export.load(path)
    export.save(path, exported)
    with pytest.raises(ExportError, match=r"of a \.fx file, not.*export\.load reads"):
        export.deserialize(path.read_bytes())
    with pytest.raises(ArgumentError, match=r"got the path .*model\.fx'.*export\.load"):
        export.deserialize(path)
    with pytest.raises(ArgumentError, match=r"got bytes; fxflow\.export\.deserialize"):
        export.load(blob)
    with pytest.raises(ArgumentError, match="got bytes; save takes the result"):
        export.save(path, blob)


def test_a_file_keeps_the_names_of_the_arguments(exported, tmp_path):
    path = tmp_path / "model.fx"
    names = ("params.b", "params.layers.0.w", "params.layers.1.w", "x")
    assert exported.in_names == names
    export.save(path, exported)
    assert export.load(path).exported.in_names == names
    # JAX's format has no names.
    bare = export.deserialize(exported.serialize())
    assert bare.in_names == ()
    export.save(path, bare)
    assert export.load(path).exported.in_names == ()


def laid_out(described, *contents):
    return b"".join(files._laid_out(described, contents))


def test_malformed_headers_are_refused(exported, tmp_path):
    path = tmp_path / "model.fx"
    program = ("program", [bytes(exported.serialize())])
    path.write_bytes(laid_out({}, program, ("later", [b"of a later fxflow"])))
    assert export.load(path).params is None
    later = bytearray(path.read_bytes())
    later[8] = 2
    path.write_bytes(later)
    with pytest.raises(ExportError, match="has format version 2"):
        export.load(path)
    path.write_bytes(laid_out({}, ("params", [b"x"])))
    with pytest.raises(ExportError, match="has no program"):
        export.load(path)
    for name in ("../secret", "/etc/passwd", "", None):
        entry = {"name": name, "size": 1, "sha256": ""}
        path.write_bytes(laid_out({"beside": entry}, program))
        with pytest.raises(ExportError, match="does not name a file in its folder"):
            export.load(path)
    path.write_bytes(laid_out({"beside": 3}, program))
    with pytest.raises(ExportError, match="does not name a file"):
        export.load(path)
    other = files.safetensors.encode({"w": np.ones(2)})
    path.write_bytes(laid_out({}, program, ("params", other)))
    with pytest.raises(ExportError, match="not those of the program"):
        export.load(path)


# -- mutations -------------------------------------------------------------------------


def mutated(whole, rng):
    """Returns a randomly damaged file."""
    data = bytearray(whole)
    kind = rng.randrange(6)
    if kind == 0:
        del data[rng.randrange(len(data)) :]
    elif kind == 1:
        data += rng.randbytes(rng.randrange(1, 100))
    elif kind == 2:
        at = rng.randrange(len(data))
        del data[at : at + rng.randrange(1, 64)]
    elif kind == 3:
        at, size = rng.randrange(len(data)), rng.randrange(1, 64)
        data[at : at + size] = rng.randbytes(size)
    else:
        for _ in range(rng.choice([1, 1, 2, 16])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def survive(exported, tmp_path, seed, count):
    """Loads mutations of a file and of an artifact; each raises `ExportError`."""
    path, rng = tmp_path / "model.fx", random.Random(seed)
    export.save(path, exported, params=PARAMS, vjp_order=1)
    wholes = [path.read_bytes(), bytes(exported.serialize(vjp_order=1))]
    for i in range(count):
        whole = wholes[i % 2]
        data = mutated(whole, rng)
        if data == whole:
            continue
        with pytest.raises(ExportError):
            if i % 2:
                export.deserialize(data)
            else:
                path.write_bytes(data)
                export.load(path)


def test_mutations_are_refused(exported, tmp_path):
    survive(exported, tmp_path, seed=11, count=200)


@pytest.mark.soak
def test_many_mutations(exported, tmp_path):
    survive(exported, tmp_path, seed=12, count=10_000)


@pytest.mark.parametrize(
    "name", ["without-table.fx", "with-table.fx", "divided.fx", "folder"]
)
def test_files_of_earlier_versions_are_read(name):
    bundle = export.load(GOLDEN / name)
    if name == "divided.fx":
        assert bundle.exported.nr_devices == 2
        mesh = fxflow.make_mesh((2,), ("i",))
        shardings = bundle.exported.in_shardings_jax(mesh)
        assert [s.spec for s in shardings] == [P("i"), P(None, "i"), P("i")]
        return
    x = np.ones((2, 3), np.float32)
    w = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(bundle.params["w"], w)
    expected = np.tanh(x @ w) + np.array([1, 2], np.float32)
    np.testing.assert_allclose(bundle.call(x), expected, rtol=1e-6)
    assert bundle.exported.platforms == ("cpu", "cuda")
    if name != "without-table.fx":
        params, out = bundle.functions["step"].call(bundle.params, x)
        np.testing.assert_array_equal(params["b"], [2, 3])
        assert float(out["sum"]) == 6
