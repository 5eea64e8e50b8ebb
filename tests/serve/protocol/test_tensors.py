"""Requests and answers as JSON and binary data; invalid requests are refused."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.protocol import tensors
from fxflow.serve.protocol.tensors import (
    from_json,
    parse_generate,
    parse_infer,
    parse_plain,
    write_generate,
    write_infer,
    write_plain,
)
from fxflow.serve.signatures import ModelSignature, TensorSpec

PAIR = ModelSignature(
    (TensorSpec.parse("x", "f32[b,2]"), TensorSpec.parse("s", "bytes[b]")),
    (TensorSpec.parse("y", "f32[b]"), TensorSpec.parse("t", "bytes[b]")),
    batched=True,
)
X = {"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [1, 2.5, 3, 4]}
S = {"name": "s", "datatype": "BYTES", "shape": [2], "data": ["a", "é"]}


def body(**changes: Any) -> bytes:
    return json.dumps({"inputs": [X, S]} | changes).encode()


def test_json() -> None:
    text = body(id="7", parameters={"priority": 1, "timeout": 5000})
    request = parse_infer(text, None, PAIR)
    assert request.inputs["x"].tolist() == [[1, 2.5], [3, 4]]
    assert request.inputs["s"].tolist() == [b"a", "é".encode()]
    assert (request.rows, request.id) == (2, "7")
    assert (request.priority, request.timeout) == (-4, 0.005)


def test_binary_in_and_out() -> None:
    x = {"name": "x", "datatype": "FP32", "shape": [2, 2]}
    x["parameters"] = {"binary_data_size": 16}
    head = body(
        inputs=[x, S],
        outputs=[
            {"name": "t", "parameters": {"binary_data": True}},
            {"name": "y"},
        ],
    )
    data = np.arange(4, dtype=np.float32)
    request = parse_infer(head + data.tobytes(), len(head), PAIR)
    assert request.inputs["x"].ravel().tolist() == data.tolist()
    outputs = {
        "y": np.array([1, np.pi], np.float32),
        "t": np.array([b"ab", b""], object),
    }
    text, split = write_infer(request, outputs, PAIR, "m", "1")
    assert split is not None and text[split:] == b"\x02\0\0\0ab\0\0\0\0"
    answer = json.loads(text[:split])
    assert answer["outputs"][0]["data"] == outputs["y"].tolist()
    assert answer["outputs"][1]["parameters"] == {"binary_data_size": 10}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "must be an object"),
        (b"{}", "input 's', 'x' is missing"),
        (body(inputs=[X, S, X]), "given twice"),
        (body(inputs=[3]), "must be an object, got 3"),
        (body(inputs={}), "'inputs' must be of type list"),
        (body(inputs=[X | {"datatype": "FP31"}, S]), "unknown datatype 'FP31'"),
        (body(inputs=[X | {"datatype": "FP64"}, S]), "must have datatype FP32"),
        (body(inputs=[X | {"shape": [2, 3]}, S]), r"must have shape \[b,2\]"),
        (
            body(inputs=[X | {"shape": [2, -2]}, S]),
            "is negative or too large",
        ),
        (
            body(inputs=[X | {"shape": [10**9] * 9}, S]),
            "is negative or too large",
        ),
        (body(inputs=[X | {"shape": [True, 2]}, S]), "a list of integers"),
        (body(inputs=[X | {"data": [1, 2, 3]}, S]), "has 3 elements"),
        (body(inputs=[X | {"data": [[1, 2], [3]]}, S]), "different lengths"),
        (body(inputs=[X | {"data": 5}, S]), "data must be a list"),
        (body(inputs=[X | {"data": ["1", 2, 3, 4]}, S]), "has an element '1'"),
        (body(inputs=[X | {"data": [True, 2, 3, 4]}, S]), "has an element True"),
        (body(inputs=[X | {"data": [1e39, 2, 3, 4]}, S]), "FP32 cannot hold"),
        (body(inputs=[X | {"data": [10**400, 2, 3, 4]}, S]), "FP32 cannot|infinity"),
        (body().replace(b"2.5", b"NaN"), "NaN is not JSON"),
        (body(inputs=[{k: X[k] for k in X if k != "data"}, S]), "neither 'data'"),
        (
            body(inputs=[X | {"parameters": {"binary_data_size": 16}}, S]),
            "both 'data' and",
        ),
        (body(inputs=[X, S | {"data": ["\ud800", ""]}]), "surrogate"),
        (body(outputs=[{"name": "z"}]), "no output 'z': its outputs are 't', 'y'"),
        (body(parameters={"priority": 10}), "'priority' must be"),
        (body(parameters={"timeout": -1}), "microseconds"),
        (body(parameters={"timeout": "soon"}), "of type int, got 'soon'"),
        (body(id=5), "'id' must be of type str"),
    ],
)
@pytest.mark.parametrize("loads", ["_loads", "_plain_loads"])
def test_requests_that_do_not_fit_the_signature_are_refused(
    text: bytes, words: str, loads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensors, "_loads", getattr(tensors, loads))
    with pytest.raises(ServeError, match=words) as caught:
        parse_infer(text, None, PAIR)
    assert caught.value.status == 400


def test_header_lengths() -> None:
    with pytest.raises(ServeError, match="Content-Length is 9999"):
        parse_infer(body(), 9999, PAIR)
    with pytest.raises(ServeError, match="3 bytes are left after"):
        parse_infer(body() + b"abc", len(body()), PAIR)


@pytest.mark.parametrize(
    ("datatype", "data", "fits"),
    [
        ("UINT8", [0, 255], True),
        ("UINT8", [-1, 0], False),
        ("INT8", [0, 128], False),
        ("UINT64", [2**64 - 1, 1], True),
        ("INT64", [2**63, 1], False),
        ("INT32", [1.0, 2], False),
        ("BOOL", [True, False], True),
        ("BOOL", [1, 0], False),
        ("FP16", [65504, 1], True),
        ("FP16", [70000, 1], False),
        ("BF16", [1e38, 1], True),
        ("FP64", [1e308, 1], True),
    ],
)
def test_integers_out_of_range_are_refused(
    datatype: str, data: list[Any], fits: bool
) -> None:
    if fits:
        found = from_json("x", data, datatype, (2,))
        assert [pytest.approx(v, rel=0.01) for v in found.tolist()] == data
    else:
        with pytest.raises(ServeError):
            from_json("x", data, datatype, (2,))


@pytest.mark.parametrize("datatype", ["FP16", "BF16", "FP32", "FP64"])
def test_floats_are_packed_without_type_checks(datatype: str) -> None:
    rng = np.random.default_rng(0)
    exponents = rng.integers(-30, 4, 200)
    data = [*(rng.standard_normal(200) * 10.0**exponents).tolist(), 3, -0.0, 10**15]
    if datatype == "FP16":
        data.pop()
    shape = (len(data),)
    quick, slow = (
        from_json("x", data, datatype, shape, bools=bools) for bools in (False, True)
    )
    assert quick.dtype == slow.dtype and quick.tobytes() == slow.tobytes()
    for wrong in ("1", None, [1], 1e300 * 1e10, 10**400):
        with pytest.raises(ServeError, match="has an element"):
            from_json("x", [1, wrong], datatype, (2,), bools=False)


def test_bools_are_refused_as_floats() -> None:
    signature = ModelSignature((TensorSpec.parse("x", "f32[b,1]"),), (), batched=True)
    for value in (b"true", b"false"):
        for parse, text in (
            (parse_plain, b"[[%b]]"),
            (parse_plain, b'{"x": [[1.5], [%b]]}'),
            (parse_generate, b'{"x": %b}'),
        ):
            with pytest.raises(ServeError, match="has an element"):
                parse(text % value, signature)
    assert parse_plain(b"[[1], [0.5]]", signature).inputs["x"].tolist() == [[1], [0.5]]


def test_plain_json_is_parsed_and_written() -> None:
    request = parse_plain(b'{"x": [[1, 2]], "s": ["q"]}', PAIR)
    assert request.inputs["x"].tolist() == [[1, 2]] and request.rows == 1
    outputs = {"y": np.float32([3]), "t": np.array([b"q"], object)}
    assert write_plain(outputs, PAIR) == {"y": [3.0], "t": ["q"]}
    with pytest.raises(ServeError, match="an object with 'x', 's'"):
        parse_plain(b"[[1, 2]]", PAIR)
    with pytest.raises(ServeError, match="different lengths"):
        parse_plain(b'{"x": [[1, 2], [3]], "s": ["q", "r"]}', PAIR)
    with pytest.raises(ServeError, match="no input 'z'"):
        parse_plain(b'{"z": 1}', PAIR)
    for array, words in ((np.float32([np.nan]), "not finite"),):
        with pytest.raises(ServeError, match=words) as caught:
            write_plain({"y": array, "t": outputs["t"]}, PAIR)
        assert caught.value.status == 422


@pytest.mark.parametrize("seed", range(4))
def test_mutations_are_refused_or_parsed(seed: int) -> None:
    rng = random.Random(seed)
    x = {"name": "x", "datatype": "FP32", "shape": [2, 2]}
    x["parameters"] = {"binary_data_size": 16}
    head = body(inputs=[x, S], outputs=[{"name": "t"}], parameters={"timeout": 3})
    good = head + bytes(16)
    refused = 0
    for _ in range(1500):
        text = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(len(text))
            match rng.randrange(3):
                case 0:
                    text[place] = rng.randrange(256)
                case 1:
                    del text[place : place + rng.randint(1, 5)]
                case 2:
                    text[place:place] = rng.choice([b"0", b"9", b'"', b"-", b"{", b"["])
        try:
            request = parse_infer(bytes(text), len(head), PAIR)
            assert request.inputs["x"].shape == (request.rows, 2)
        except ServeError as error:
            assert error.status == 400
            refused += 1
    assert refused > 500


def test_headers_are_cached_with_their_signature() -> None:
    one, other = (
        ModelSignature((TensorSpec.parse("x", kind),), (), batched=True)
        for kind in ("f32[b,2]", "f32[b,3]")
    )
    x = {"name": "x", "datatype": "FP32", "shape": [1, 2]}
    x["parameters"] = {"binary_data_size": 8}
    head = body(inputs=[x], parameters={"priority": 1})
    known = tensors._known_head.cache_info().currsize
    for value in (1, 2):
        data = np.full(2, value, np.float32).tobytes()
        request = parse_infer(head + data, len(head), one)
        assert request.inputs["x"].tolist() == [[value, value]]
        assert (request.rows, request.priority) == (1, -4)
        # Binary data and header are still checked against each other.
        with pytest.raises(ServeError, match="8 binary bytes, but only 7 are left"):
            parse_infer(head + data[1:], len(head), one)
        with pytest.raises(ServeError, match=r"must have shape \[b,3\]"):
            parse_infer(head + data, len(head), other)
    assert tensors._known_head.cache_info().currsize == known + 1
    # Long headers are not cached, which bounds the cache.
    long = body(inputs=[x], id="i" * 2000)
    parse_infer(long + data, len(long), one)
    assert tensors._known_head.cache_info().currsize == known + 1


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1], "must be an object"),
        ({"x": [1, 2], "parameters": 3}, "'parameters' must be of type dict"),
        ({"x": [1, 2], "parameters": {"x": 1}}, "'x' is given twice"),
        ({"x": [1, 2], "s": "a", "y": 1}, "no input or parameter 'y'"),
        ({"x": [1, 2], "s": ["a", "b"]}, "size 'b' is 1 in input 'x' and 2"),
        ({"x": [{"a": 1}, 2], "s": "a"}, "has an element"),
        ({"x": [[], []], "s": "a"}, "must have shape"),
        ({"x": [1, 2], "s": "a", "id": 7}, "'id' must be of type str"),
    ],
    ids=range(8),
)
def test_invalid_generate_requests_are_refused(value: Any, words: str) -> None:
    with pytest.raises(ServeError, match=words) as caught:
        parse_generate(json.dumps(value).encode(), PAIR)
    assert caught.value.status == 400


def test_generate() -> None:
    value = {"x": [1, 2], "id": "i", "parameters": {"s": "é", "priority": 2}}
    request = parse_generate(json.dumps(value).encode(), PAIR)
    assert request.inputs["x"].tolist() == [[1, 2]] and request.rows == 1
    assert request.inputs["s"].tolist() == ["é".encode()]
    assert (request.id, request.priority) == ("i", -3)
    outputs = {"y": np.array([1.5], np.float32), "t": np.array([b"a", b"b"], object)}
    assert write_generate(outputs, PAIR, "m", "1", "i") == {
        "model_name": "m",
        "model_version": "1",
        "id": "i",
        "y": 1.5,
        "t": ["a", "b"],
    }
