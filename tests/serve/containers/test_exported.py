"""`.fx` files as models: one size of a batch or several, names, what does not fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import ShapeDtypeStruct, export
from fxflow.errors import ExportError, ServeError
from fxflow.serve.containers.loading import load_model

PARAMS = {"w": np.arange(6, dtype=np.float32).reshape(3, 2)}


@fxflow.jit
def scores(params: Any, x: Any) -> Any:
    return fnp.tanh(x @ params["w"])


def saved(path: Path, rows: int, function: Any = scores, **options: Any) -> str:
    x = ShapeDtypeStruct((rows, 3), np.float32)
    exported = export.export(function)(PARAMS, x)
    export.save(path, exported, params=PARAMS, **options)
    return str(path)


@pytest.mark.parametrize("compiled", [False, True])
def test_several_sizes(tmp_path: Path, compiled: bool) -> None:
    for rows in (1, 4):
        saved(
            *(tmp_path / f"m-{rows}.fx", rows),
            **{"compiled": True} if compiled else {"beside": "m.safetensors"},
        )
    model = load_model(
        f"{tmp_path}/m-*.fx", arguments={"compiled": compiled}, outputs=["scores"]
    )
    signature = model.prepare(64)
    assert [(s.name, str(s)) for s in signature.inputs] == [("x", "f32[batch,3]")]
    assert [(s.name, str(s)) for s in signature.outputs] == [("scores", "f32[batch,2]")]
    assert signature.sizes == (1, 4)
    for rows in range(1, 5):
        x = np.random.default_rng(rows).normal(size=(rows, 3)).astype(np.float32)
        (y,) = model.run([x], rows)
        np.testing.assert_allclose(y, np.tanh(x @ PARAMS["w"]), rtol=1e-5, atol=1e-6)


def test_names_and_what_has_no_batch(tmp_path: Path) -> None:
    @fxflow.jit
    def apart(one: Any, *, two: Any) -> Any:
        return {"sum": one["a"] + one["b"], "two": two * 2}

    row = ShapeDtypeStruct((2,), np.float32)
    exported = export.export(apart)(
        {"a": row, "b": row}, two=ShapeDtypeStruct((), "i4")
    )
    path = tmp_path / "apart.fx"
    export.save(path, exported)
    model = load_model(str(path), batched=False)
    signature = model.prepare(1)
    assert [(s.name, str(s)) for s in signature.inputs] == [
        ("a", "f32[2]"),
        ("b", "f32[2]"),
        ("two", "i32[]"),
    ]
    one = np.ones(2, np.float32)
    total, two = model.run([one, one, np.int32(4)], 1)
    assert total.tolist() == [2, 2] and two == 8
    with pytest.raises(ServeError, match="the first axis of all inputs has to be"):
        load_model(str(path))


def test_two_arguments_with_the_same_members(tmp_path: Path) -> None:
    @fxflow.jit
    def both(old: Any, new: Any, x: Any) -> Any:
        return old["w"] + new["w"] + x

    row = ShapeDtypeStruct((4, 2), np.float32)
    path = str(tmp_path / "both.fx")
    export.save(path, export.export(both)({"w": row}, {"w": row}, row))
    names = [spec.name for spec in load_model(path).prepare(4).inputs]
    assert names == ["old.w", "new.w", "x"]


def test_a_program_that_does_not_know_its_parameters(tmp_path: Path) -> None:
    x = ShapeDtypeStruct((2, 3), np.float32)
    bare = export.deserialize(export.export(scores)(PARAMS, x).serialize())
    path = str(tmp_path / "bare.fx")
    export.save(path, bare, params=PARAMS)
    assert [spec.name for spec in load_model(path).prepare(2).inputs] == ["input"]


def test_inputs_name_the_arguments(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.fx", 2)
    model = load_model(path, inputs={"x": "f32[b,3]"})
    assert str(model.prepare(8).inputs[0]) == "f32[b,3]"
    for wrong in ("f32[b,4]", "f64[b,3]", "f32[2,3]"):
        with pytest.raises(ServeError, match=r"takes x: f32\[batch,3\]"):
            load_model(path, inputs={"x": wrong})


def test_files_that_are_not_one_model(tmp_path: Path) -> None:
    saved(tmp_path / "m-1.fx", 1)
    saved(tmp_path / "m-2.fx", 1)
    with pytest.raises(ServeError, match="differ in the batch's size, and in nothing"):
        load_model(f"{tmp_path}/m-*.fx")
    (tmp_path / "m-2.fx").write_bytes((tmp_path / "m-1.fx").read_bytes()[:-9])
    with pytest.raises(ExportError, match="is damaged"):
        load_model(f"{tmp_path}/m-*.fx")


def test_an_open_size_of_the_batch(tmp_path: Path) -> None:
    x = ShapeDtypeStruct(export.symbolic_shape("b, 3"), np.float32)
    path = str(tmp_path / "open.fx")
    export.save(path, export.export(scores)(PARAMS, x), params=PARAMS)
    model = load_model(path)
    assert model.prepare(6).sizes == (1, 2, 3, 4, 6)
    rows = np.ones((5, 3), np.float32)
    np.testing.assert_allclose(
        model.run([rows], 5)[0], np.tanh(rows @ PARAMS["w"]), rtol=1e-5
    )
