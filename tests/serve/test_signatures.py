"""Types of inputs, and tensors as bytes."""

import dataclasses
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fxflow.errors import ServeError
from fxflow.serve.signatures import (
    DATATYPES,
    ModelSignature,
    TensorSpec,
    check_alike,
    from_bytes,
    to_bytes,
)

from .fakes import signature as fake_signature

PAIR = ModelSignature(
    (TensorSpec.parse("x", "f32[b,n]"), TensorSpec.parse("mask", "bool[b,n]")),
    (TensorSpec.parse("y", "f32[b]"),),
    batched=True,
    sizes=(1, 2),
)


@pytest.mark.parametrize("name", DATATYPES)
def test_types_survive_printing_and_parsing(name: str) -> None:
    short = DATATYPES[name][0]
    spec = TensorSpec.parse("x", f"{short}[?, 3]")
    assert (spec.datatype, str(spec)) == (name, f"{short}[?,3]")
    assert spec.metadata()["shape"] == [-1, 3]


@pytest.mark.parametrize(
    "text", ["float32[3]", "f32", "f32[-1]", "f32[3", "", "f32[a b]x"]
)
def test_invalid_types_are_refused(text: str) -> None:
    with pytest.raises(ServeError, match=r"must be like 'f32\[batch,784\]'"):
        TensorSpec.parse("x", text)


def test_json() -> None:
    assert ModelSignature.from_json(PAIR.to_json()) == PAIR


def test_valid_types_give_the_batch_size() -> None:
    given = {"x": ("FP32", (4, 7)), "mask": ("BOOL", (4, 7))}
    assert PAIR.check_types(given) == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"z": ("FP32", (4, 7))}, "no input 'z': its inputs are 'mask', 'x'"),
        ({"x": None}, "input 'x' is missing"),
        ({"x": ("FP64", (4, 7))}, "'x' must have datatype FP32, got FP64"),
        ({"x": ("FP32", (4,))}, r"'x' must have shape \[b,n\], got \[4\]"),
        ({"x": ("FP32", (4, -7))}, r"got \[4,-7\]"),
        ({"x": ("FP32", (4, 8))}, "size 'n' is"),
        ({"x": ("FP32", (3, 7))}, "size 'b' is"),
        ({"x": ("FP32", (0, 7)), "mask": ("BOOL", (0, 7))}, "at least 1; got 0"),
    ],
)
def test_mismatching_types_are_refused(change: dict, words: str) -> None:
    given = {"x": ("FP32", (4, 7)), "mask": ("BOOL", (4, 7))} | change
    with pytest.raises(ServeError, match=words) as caught:
        PAIR.check_types({name: value for name, value in given.items() if value})
    assert caught.value.status == 400


@given(st.data(), st.sampled_from(sorted(DATATYPES)))
def test_tensors_survive_serialization(data: st.DataObject, name: str) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
    if name == "BYTES":
        elements = st.binary(max_size=5)
        count = int(np.prod(shape))
        array = np.empty(count, object)
        array[:] = data.draw(st.lists(elements, min_size=count, max_size=count))
        array = array.reshape(shape)
    else:
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        array = rng.integers(0, 2, shape).astype(DATATYPES[name][1])
    back = from_bytes(to_bytes(array), name, shape)
    assert back.dtype == array.dtype and back.shape == shape
    assert (back == array).all()


@pytest.mark.parametrize("seed", range(3))
def test_damaged_strings_are_refused(seed: int) -> None:
    rng = random.Random(seed)
    good = to_bytes(np.array([b"abc", b"", b"defgh"], object))
    refused = 0
    for _ in range(300):
        bad = bytearray(good)
        if rng.random() < 0.5:
            bad = bad[: rng.randrange(len(bad))]
        else:
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        try:
            found = from_bytes(bytes(bad), "BYTES", (3,))
            assert to_bytes(found) == bytes(bad)
        except ServeError as error:
            assert error.status == 400
            refused += 1
    assert refused > 100


def test_invalid_lengths_are_refused() -> None:
    with pytest.raises(ServeError, match=r"FP32\[2\] has 8 bytes, got 7"):
        from_bytes(b"1234567", "FP32", (2,))
    with pytest.raises(ServeError, match="0 or 1"):
        from_bytes(b"\x02", "BOOL", (1,))
    with pytest.raises(ServeError, match="cannot hold the lengths"):
        from_bytes(b"1234", "BYTES", (1 << 40,))


def test_models_that_differ_are_refused() -> None:
    with pytest.raises(ServeError, match=r"differ in outputs: y: INT64\[-1\] and y: F"):
        check_alike("m", {"a": fake_signature(), "b": fake_signature("f32[batch]")})
    alone = dataclasses.replace(fake_signature(), batched=False)
    with pytest.raises(ServeError, match="differ in batched: True and False"):
        check_alike("m", {"a": fake_signature(), "b": alone})
    streamed = dataclasses.replace(fake_signature(), streamed=True)
    with pytest.raises(ServeError, match="differ in streamed: True and False"):
        check_alike("m", {"a": streamed, "b": fake_signature()})
    check_alike("m", {"a": streamed, "b": streamed})
    check_alike("m", {"a": fake_signature("i64[batch]"), "b": fake_signature("i64[n]")})
    check_alike("m", {})
