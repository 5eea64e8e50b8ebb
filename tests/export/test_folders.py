"""Folders of plain files: for fxflow and for other tools, damaged and mixed up."""

import json
import os
import random

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import export
from fxflow.errors import ArgumentError, ExportError, FxflowError

STATE = {"w": np.ones(3, np.float32), "n": np.zeros((), np.int32)}
X = np.arange(3, dtype=np.float32)


def step(state, x):
    return {"w": state["w"] + x, "n": state["n"] + 1}, {"sum": x.sum()}


@pytest.fixture(scope="module")
def functions():
    init = export.export(fxflow.jit(lambda n: {"w": fnp.ones(3) * n, "n": 0 * n}))
    return {
        "init": init(np.int32(2)),
        "step": export.export(fxflow.jit(step))(STATE, X),
    }


@pytest.fixture
def folder(functions, tmp_path):
    path = tmp_path / "model"
    export.save(path, functions, params=STATE, folder=True)
    return path


def test_a_folder_is_loaded_like_a_file(folder, functions):
    bundle = export.load(folder)
    assert repr(bundle) == "<Bundle of init, step with parameters>"
    assert bundle.fxflow_version == fxflow.__version__
    assert bundle.functions["step"].in_names == ("state.n", "state.w", "x")
    state, out = bundle.functions["step"].call(bundle.params, X)
    np.testing.assert_array_equal(state["w"], [1, 2, 3])
    assert int(state["n"]) == 1 and float(out["sum"]) == 3
    # It is replaced as a whole.
    export.save(folder, functions["step"], params=state, folder=True)
    assert not (folder / "init.jax").exists()
    assert export.load(folder, verify=False).params["w"].tolist() == [1, 2, 3]
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    assert not (folder / "replaced").exists()


def test_files_of_others_are_kept(folder, functions, tmp_path):
    (folder / "notes").write_text("mine")
    with pytest.raises(ArgumentError, match="has notes, which save did not write"):
        export.save(folder, functions["step"], params=STATE, folder=True)
    assert (folder / "notes").read_text() == "mine"
    mine = tmp_path / "mine"
    mine.mkdir()
    for text in (
        "{}",
        "[]",
        "mine",
        '{"functions": []}',
        '{"functions": [{"name": 1}]}',
    ):
        (mine / "signature.json").write_text(text)
        with pytest.raises(ArgumentError, match="is not a folder that save wrote"):
            export.save(mine, functions["step"], folder=True)
        assert (mine / "signature.json").read_text() == text


def test_a_link_to_a_folder_stays_one(folder, functions, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(folder, target_is_directory=True)
    export.save(link, functions["step"], folder=True)
    assert link.is_symlink() and list(export.load(folder).functions) == ["step"]
    assert sorted(path.name for path in folder.iterdir()) == [
        *("signature.bin", "signature.json", "step.jax", "step.mlirbc")
    ]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_an_interrupted_save(folder, functions, monkeypatch, count, after):
    rename, calls = os.rename, []

    def interrupted(old, new):
        calls.append(new)
        if len(calls) != count or after:
            rename(old, new)
        if len(calls) == count:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export.save(folder, functions["step"], folder=True)
    monkeypatch.undo()
    saved = count == 2 and after
    assert list(export.load(folder).functions) == (
        ["step"] if saved else list(functions)
    )
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    export.save(folder, functions["step"], folder=True)


def test_names(functions, tmp_path):
    path = tmp_path / ("é" * 125)
    export.save(path, {"шаг 模": functions["step"]}, folder=True)
    assert list(export.load(path).functions) == ["шаг 模"]
    for folder in (False, True):
        with pytest.raises(ArgumentError, match=r"a text of 1 to 255 char.*\\udc80"):
            export.save(path, {"a\udc80": functions["step"]}, folder=folder)


def test_other_tools_read_the_files(folder, functions):
    step = functions["step"]
    assert (folder / "step.mlirbc").read_bytes() == step.mlir_module_serialized
    loaded = export.deserialize((folder / "step.jax").read_bytes())
    assert loaded.in_avals == step.in_avals
    signature = json.loads((folder / "signature.json").read_text())
    assert signature["params"] == [
        {"name": "n", "dtype": "int32", "shape": []},
        {"name": "w", "dtype": "float32", "shape": [3]},
    ]
    inputs, outputs = (signature["functions"][1][k] for k in ("inputs", "outputs"))
    assert [(given["name"], given["param"], given["taken"]) for given in inputs] == [
        ("state.n", "n", True),
        ("state.w", "w", True),
        ("x", None, True),
    ]
    assert [(out["name"], out["param"]) for out in outputs] == [
        ("n", "n"),
        ("w", "w"),
        ("output.sum", None),
    ]
    assert signature["functions"][0]["platforms"] == ["cpu"]
    package = pytest.importorskip("safetensors.numpy", reason="pip install safetensors")
    arrays = package.load_file(folder / "params.safetensors")
    assert sorted(arrays) == ["n", "w"]
    # Parameters that another tool wrote are taken if they fit.
    package.save_file({**arrays, "w": X}, folder / "params.safetensors")
    np.testing.assert_array_equal(export.load(folder).params["w"], X)
    package.save_file({**arrays, "w": X[:2]}, folder / "params.safetensors")
    with pytest.raises(ExportError, match=r"w is f32\[2\], but the program takes f32"):
        export.load(folder)


def test_functions_as_onnx(functions, tmp_path):
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "model"
    export.save(path, functions["step"], folder=True, onnx=["step"])
    model = onnx.load(path / "step.onnx")
    assert [given.name for given in model.graph.input] == ["state.n", "state.w", "x"]
    assert export.load(path).params is None


def test_what_is_refused(functions, folder, tmp_path):
    step = functions["step"]
    for options in ({"beside": "a"}, {"compiled": True}):
        with pytest.raises(ArgumentError, match=f"excludes {next(iter(options))}"):
            export.save(folder, step, params=STATE, folder=True, **options)
    with pytest.raises(ArgumentError, match="'a/b' must be usable as a file name"):
        export.save(folder, {"a/b": step}, folder=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "notes").write_text("mine")
    for name in ("mine", "notes"):
        with pytest.raises(ArgumentError, match="is not a folder that save wrote"):
            export.save(tmp_path / name, step, folder=True)
    with pytest.raises(ExportError, match=r"it has no signature\.json"):
        export.load(tmp_path / "mine")
    with pytest.raises(FileNotFoundError):
        export.save(tmp_path / "absent" / "model", step, folder=True)
    assert export.load(folder).params["w"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "name, change, message",
    [
        ("signature.json", b"{", "is damaged"),
        ("signature.json", b"[]", "is damaged"),
        ("signature.json", b'{"version": 2}', "has format version 2"),
        ("signature.json", b"[" * 100_000, "is damaged"),
        (
            "signature.json",
            b'{"version": 1, "functions": [], "params": []}',
            "lists no functions",
        ),
        (
            "signature.json",
            b'{"version":1,"functions":[{"name":"../x","inputs":[]}],"params":[]}',
            "the function '../x'",
        ),
        ("step.jax", None, r"has no step\.jax"),
        ("step.jax", b"", "artifact"),
        ("params.safetensors", None, r"has no params\.safetensors"),
        ("params.safetensors", b"", "cut off"),
    ],
)
def test_damaged_folders_are_refused(folder, name, change, message):
    if change is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(change)
    with pytest.raises(ExportError, match=message):
        export.load(folder)


def test_mutations_are_refused(folder):
    """Changed bytes of programs and parameters are found; those of names may do."""
    draw = random.Random(0)
    for name in ("step.jax", "params.safetensors", "signature.json"):
        whole = (folder / name).read_bytes()
        refused = 0
        for _ in range(40):
            data = bytearray(whole)
            if draw.random() < 0.3:
                data = data[: draw.randrange(len(data))]
            else:
                data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            (folder / name).write_bytes(data)
            try:
                export.load(folder)
            except FxflowError as error:
                assert isinstance(error, ExportError), error
                refused += 1
        (folder / name).write_bytes(whole)
        assert refused == 40 if name == "step.jax" else refused > 10
    data = bytearray((folder / "params.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "params.safetensors").write_bytes(data)
    with pytest.raises(ExportError, match="the digest of the arrays differs"):
        export.load(folder)
    assert export.load(folder, verify=False).params["n"].shape == ()
