"""Models, run in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import ShapeDtypeStruct, export
from fxflow.errors import ExportError, ServeError
from fxflow.serve.containers.loading import load_model
from fxflow.serve.containers.models import Model
from fxflow.transforms.explain import WARN_FROM

ZOO = "tests.serve.zoo"


def test_padding_does_not_change_results() -> None:
    model = load_model(f"{ZOO}:linear", factory=True, arguments={"scale": 3.0})
    signature = model.prepare(8)
    assert signature.sizes == (1, 2, 3, 4, 6, 8)
    assert [str(s) for s in signature.outputs] == ["f32[batch,3]"]
    for rows in range(1, 9):
        x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        (y,) = model.run([x], rows)
        np.testing.assert_allclose(y, x * 3)


def test_nothing_is_compiled_after_prepare() -> None:
    traced = []

    def f(x: Any) -> Any:
        traced.append(x.shape)
        return x

    model = Model(f, inputs={"x": "f32[b]"})
    model.prepare(5)
    before = len(traced)
    assert before == 5
    for rows in range(1, 6):
        model.run([np.ones(rows, np.float32)], rows)
    assert len(traced) == before


def test_many_sizes_give_no_warning() -> None:
    model = Model(lambda x: x, inputs={"x": "f32[b]"})
    assert len(model.prepare(64).sizes) > WARN_FROM  # and warnings are errors here


def test_parameters_are_transferred_once() -> None:
    """NumPy parameters would otherwise be copied to the device with each batch."""
    weights = {"w": np.eye(3, dtype=np.float32)}
    model = Model(lambda p, x: x @ p["w"], weights, inputs={"x": "f32[b,3]"})
    model.prepare(2)
    ((kept,),) = (params.values() for params in model._params)
    assert isinstance(kept, fxflow.Array)
    assert model.run([np.ones((2, 3), np.float32)], 2)[0].tolist() == [[1, 1, 1]] * 2


def test_callables_and_strings() -> None:
    model = load_model(f"{ZOO}:shouting", inputs={"text": "bytes[b]"})
    signature = model.prepare(4)
    assert {s.name: s.datatype for s in signature.outputs} == {
        "loud": "BYTES",
        "length": "INT32",
    }
    loud, length = model.run([np.array([b"a", b"bc"], object)], 2)
    assert loud.tolist() == [b"A", b"BC"] and length.tolist() == [1, 2]


def test_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    fitted = linear_model.LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0])
    model = Model(fitted.predict, inputs={"x": "f64[n,1]"}, jit=False)
    model.prepare(4)
    assert model.run([np.array([[2.0]])], 1)[0].tolist() == pytest.approx([5.0])


@pytest.mark.parametrize(
    ("inputs", "options", "words"),
    [
        ({}, {}, "at least one input"),
        ({"x": "f32[3]"}, {}, "first axis of input 'x' is the batch axis"),
        ({"x": "f32[b,n]"}, {}, "compiled again for each size"),
        ({"x": "bytes[b]"}, {}, "strings need jit=False"),
    ],
)
def test_invalid_input_types_are_refused(
    inputs: dict, options: dict, words: str
) -> None:
    with pytest.raises(ServeError, match=words):
        Model(lambda x: x, inputs=inputs, **options)


def test_invalid_outputs_are_refused() -> None:
    def prepare(f: Any, **options: Any) -> None:
        Model(f, inputs={"x": "f32[b,3]"}, jit=False, **options).prepare(4)

    with pytest.raises(ServeError, match="its first axis must be the batch axis"):
        prepare(lambda x: x[:1])
    with pytest.raises(ServeError, match="2 names, but the function returns 1"):
        prepare(lambda x: x, outputs=["a", "b"])
    with pytest.raises(ServeError, match="has dtype complex64"):
        prepare(lambda x: x.astype(np.complex64))


def test_an_example_replaces_zeros() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(x.tolist())
        return x

    model = Model(f, inputs={"x": "f32[b,2]"}, jit=False, example={"x": [1, 2]})
    model.prepare(2)
    assert seen == [[[1, 2]], [[1, 2], [1, 2]]]


def test_given_sizes_replace_the_default() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(len(x))
        return x

    model = Model(f, inputs={"x": "f32[b]"}, jit=False, sizes=[8, 2])
    assert model.prepare(64).sizes == (2, 8) and seen == [2, 8]
    assert model.run([np.ones(3, np.float32)], 3)[0].shape == (3,) and seen[2:] == [8]
    with pytest.raises(ServeError, match="sizes must be batch sizes"):
        Model(f, inputs={"x": "f32[]"}, batched=False, sizes=[2])


def test_generators_run_for_their_first_results() -> None:
    steps = []

    def endless(x: Any) -> Iterator[Any]:
        while True:
            steps.append(len(x))
            yield {"y": x.sum(1), "step": np.full(len(x), len(steps))}

    model = Model(endless, inputs={"x": "f32[b,2]"}, jit=False)
    signature = model.prepare(8)
    # Later steps may differ from the first; they are compiled now.
    assert signature.streamed and steps == [1] * 4 + [2] * 4
    assert [str(spec) for spec in signature.outputs] == ["f32[b]", "i64[b]"]
    with pytest.raises(ServeError, match="set jit=False, and jit the function"):
        Model(endless, inputs={"x": "f32[b,2]"})
    silent = load_model(f"{ZOO}:silent", inputs={"x": "f32[b]"})
    with pytest.raises(ServeError, match="yields nothing for its example"):
        silent.prepare(1)


def test_results_of_a_generator_are_checked() -> None:
    def changing(x: Any) -> Iterator[Any]:
        yield x
        if x[0] == 2:
            yield x.astype(np.int32)
        if x[0] == 3:
            yield x[:0]

    model = Model(changing, inputs={"x": "f32[b]"}, jit=False)
    model.prepare(1)

    async def results(value: float) -> None:
        async for (y,) in model.stream([np.array([value], np.float32)], 1):
            assert y.tolist() == [value]

    asyncio.run(results(1))
    for value, words in ((2, "must be f32.b., got int32"), (3, r"shape \(0,\) for 1")):
        with pytest.raises(ServeError, match=words):
            asyncio.run(results(value))


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
def test_files_of_several_sizes_form_one_model(tmp_path: Path, compiled: bool) -> None:
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


def test_names_of_inputs_and_models_without_batches(tmp_path: Path) -> None:
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
    with pytest.raises(ServeError, match="the first axis of all inputs must be"):
        load_model(str(path))


def test_two_arguments_with_the_same_keys(tmp_path: Path) -> None:
    @fxflow.jit
    def both(old: Any, new: Any, x: Any) -> Any:
        return old["w"] + new["w"] + x

    row = ShapeDtypeStruct((4, 2), np.float32)
    path = str(tmp_path / "both.fx")
    export.save(path, export.export(both)({"w": row}, {"w": row}, row))
    names = [spec.name for spec in load_model(path).prepare(4).inputs]
    assert names == ["old.w", "new.w", "x"]


def test_a_program_without_names_of_parameters(tmp_path: Path) -> None:
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


def test_files_that_do_not_form_one_model_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "m-1.fx", 1)
    saved(tmp_path / "m-2.fx", 1)
    with pytest.raises(ServeError, match="differ in the batch size, and in nothing"):
        load_model(f"{tmp_path}/m-*.fx")
    (tmp_path / "m-2.fx").write_bytes((tmp_path / "m-1.fx").read_bytes()[:-9])
    with pytest.raises(ExportError, match="is damaged"):
        load_model(f"{tmp_path}/m-*.fx")


def test_a_program_with_an_open_batch_size(tmp_path: Path) -> None:
    x = ShapeDtypeStruct(export.symbolic_shape("b, 3"), np.float32)
    path = str(tmp_path / "open.fx")
    export.save(path, export.export(scores)(PARAMS, x), params=PARAMS)
    model = load_model(path)
    assert model.prepare(6).sizes == (1, 2, 3, 4, 6)
    rows = np.ones((5, 3), np.float32)
    np.testing.assert_allclose(
        model.run([rows], 5)[0], np.tanh(rows @ PARAMS["w"]), rtol=1e-5
    )


ZOO = "tests.serve.zoo"


def test_a_model_from_a_python_file(tmp_path: Path) -> None:
    (tmp_path / "served_beside.py").write_text("factor = 5\n")
    path = tmp_path / "served_model.py"
    path.write_text(
        "from served_beside import factor\ndef times(x):\n    return x * factor\n"
    )
    model = load_model(f"{path}:times", inputs={"x": "i64[]"}, batched=False)
    model.prepare(1)
    assert model.run([np.array(3)], 1)[0] == 15


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("zoo", {}, "'file.py:name' or 'model.fx', got 'zoo'"),
        (f"{ZOO}:none", {}, "there is no 'none'"),
        ("none.py:f", {}, "there is no file 'none.py'"),
        (f"{ZOO}:negative", {}, "give the types of its inputs"),
        (f"{ZOO}:__doc__", {}, "is not a model, but a str"),
        ("none.fx", {}, "there is no file 'none.fx'"),
        ("none.fx", {"factory": True}, "it takes no factory"),
        ("none.fx", {"arguments": {"a": 1}}, "it takes no argument 'a'"),
        (f"{ZOO}:doubling", {"arguments": {"a": 1}}, "is not called"),
    ],
)
def test_sources_that_are_not_models_are_refused(
    source: str, options: dict, words: str
) -> None:
    with pytest.raises(ServeError, match=words):
        load_model(source, **options)
