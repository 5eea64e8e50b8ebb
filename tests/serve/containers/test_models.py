"""What is served, in this process."""

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow.errors import ServeError
from fxflow.serve.containers.loading import load_model
from fxflow.serve.containers.models import Model
from fxflow.transforms.explain import WARN_FROM

ZOO = "tests.serve.zoo"


def test_padding_does_not_show() -> None:
    model = load_model(f"{ZOO}:linear", factory=True, arguments={"scale": 3.0})
    signature = model.prepare(8)
    assert signature.sizes == (1, 2, 3, 4, 6, 8)
    assert [str(s) for s in signature.outputs] == ["f32[batch,3]"]
    for rows in range(1, 9):
        x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        (y,) = model.run([x], rows)
        np.testing.assert_allclose(y, x * 3)


def test_nothing_is_compiled_after_it_was_prepared() -> None:
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


def test_many_sizes_are_no_reason_for_a_warning() -> None:
    model = Model(lambda x: x, inputs={"x": "f32[b]"})
    assert len(model.prepare(64).sizes) > WARN_FROM  # and warnings are errors here


def test_parameters_are_moved_once() -> None:
    """NumPy's would be copied to the device with each batch."""
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
        ({"x": "f32[3]"}, {}, "first axis of input 'x' is the batch's"),
        ({"x": "f32[b,n]"}, {}, "compiled again for each size"),
        ({"x": "bytes[b]"}, {}, "strings need jit=False"),
    ],
)
def test_types_that_cannot_be(inputs: dict, options: dict, words: str) -> None:
    with pytest.raises(ServeError, match=words):
        Model(lambda x: x, inputs=inputs, **options)


def test_outputs_that_cannot_be() -> None:
    def prepare(f: Any, **options: Any) -> None:
        Model(f, inputs={"x": "f32[b,3]"}, jit=False, **options).prepare(4)

    with pytest.raises(ServeError, match="its first axis has to be the batch's"):
        prepare(lambda x: x[:1])
    with pytest.raises(ServeError, match="names 2, and the function returns 1"):
        prepare(lambda x: x, outputs=["a", "b"])
    with pytest.raises(ServeError, match="has dtype complex64"):
        prepare(lambda x: x.astype(np.complex64))


def test_an_example_takes_the_place_of_zeros() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(x.tolist())
        return x

    model = Model(f, inputs={"x": "f32[b,2]"}, jit=False, example={"x": [1, 2]})
    model.prepare(2)
    assert seen == [[[1, 2]], [[1, 2], [1, 2]]]


def test_sizes_that_are_given() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(len(x))
        return x

    model = Model(f, inputs={"x": "f32[b]"}, jit=False, sizes=[8, 2])
    assert model.prepare(64).sizes == (2, 8) and seen == [2, 8]
    assert model.run([np.ones(3, np.float32)], 3)[0].shape == (3,) and seen[2:] == [8]
    with pytest.raises(ServeError, match="sizes are those of batches"):
        Model(f, inputs={"x": "f32[]"}, batched=False, sizes=[2])


def test_generators_are_tried_by_their_first_results() -> None:
    steps = []

    def endless(x: Any) -> Iterator[Any]:
        while True:
            steps.append(len(x))
            yield {"y": x.sum(1), "step": np.full(len(x), len(steps))}

    model = Model(endless, inputs={"x": "f32[b,2]"}, jit=False)
    signature = model.prepare(8)
    # Later steps may be others than the first: what they compile is compiled now.
    assert signature.streamed and steps == [1] * 4 + [2] * 4
    assert [str(spec) for spec in signature.outputs] == ["f32[b]", "i64[b]"]
    with pytest.raises(ServeError, match="say jit=False, and jit what it does"):
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
