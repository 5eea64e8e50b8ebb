"""Random invalid requests, from a seed."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

#: What stands in for any part of a JSON document.
JUNK: list[Any] = [
    *(None, True, False, 0, -1, 3, 2**31, 2**63, 10**30, 1e308, -0.0, 0.1),
    *("", "x", "FP32", "BYTES", "\u0000", "é" * 50, "x" * 3000, "__class__"),
    *([], {}, [[]], [None], [[1, 2], [3]], {"a": {"b": []}}, [0] * 500, [[[[1]]]]),
]
#: Written as they are, where JSON has no such value.
RAW = ["NaN", "-Infinity", "1e999", "01", "'x'", '"\\ud800"', "[" * 3000, "{", "\x00"]
HEADERS = [
    *("Content-Type: text/plain", "Content-Type: application/grpc", "Content-Type:"),
    *("Content-Encoding: gzip", "Content-Encoding: br, br", "Accept: image/png"),
    *("Inference-Header-Content-Length: 5", "Inference-Header-Content-Length: -1"),
    "Inference-Header-Content-Length: 99999999999999999999999999",
    *("Inference-Header-Content-Length: ²", "Expect: 100-continue"),
    *("Content-Length: 7", "Content-Length: -5", "Content-Length: 1e3"),
    *("Content-Length: 99999999999", "Content-Length: 9" + "0" * 40),
    *("Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked"),
    *("Host: " + "h" * 5000, "No colon here", ": empty", "X-Key: \x01", "é: é"),
    *("Connection: close", "Connection: Upgrade\r\nUpgrade: websocket", "X: " * 2000),
]
PATHS = [
    *("/", "/v2", "/v2/models/none/infer", "/v2/models/linear/versions/9/infer"),
    *("/v2/models/linear/versions//infer", "/v2/models//infer", "/predict/"),
    *("/predict/%00", "/predict/%ff%fe", "/predict/../../etc/passwd", "*", "//", "é"),
    *("/v2/models/linear", "/v2/repository/index", "/v2/repository/models/linear/load"),
    *("/predict/linear?" + "a=b&" * 1000, "/" + "x" * 9000, "/v2/models/linear/infer/"),
    *("/v2/models/linear/generate_stream", "/v2/models/linear/versions/1/generate"),
    *("/v2/models/shouting/infer", "/metrics", "/openapi.json", "http://other/v2"),
]
METHODS = ["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "BREW", "post", "", "é"]


def document(rng: random.Random) -> Any:
    """Returns a valid body."""
    rows = rng.randint(1, 3)
    x: dict[str, Any] = {"name": "x", "datatype": "FP32", "shape": [rows, 3]}
    x["data"] = [rng.choice([1, 2.5, -3e5]) for _ in range(3 * rows)]
    found: dict[str, Any] = {"inputs": [x], "id": "7"}
    if rng.random() < 0.5:
        found["outputs"] = [{"name": "y", "parameters": {"binary_data": True}}]
    if rng.random() < 0.5:
        found["parameters"] = {"priority": 3, "timeout": 10**6}
    return found


def places(value: Any) -> list[tuple[Any, Any]]:
    """Yields each part of a document, as its container and key."""
    found = []
    items: Any = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, part in items:
        found.append((value, key))
        found += places(part)
    return found


def changed(rng: random.Random, value: Any) -> bytes:
    """Returns a document's text with one part replaced, missing, or not JSON."""
    holder, key = rng.choice(places(value))
    match rng.randrange(4):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[rng.choice(["", "data", "x", "shape"])] = holder.pop(key)
        case 2:
            holder[key] = "RAW"
            return json.dumps(value).replace('"RAW"', rng.choice(RAW), 1).encode()
        case _:
            holder[key] = rng.choice(JUNK)
    return json.dumps(value).encode()


def broken(rng: random.Random, data: bytes) -> bytes:
    """Returns bytes with some changed, removed, added or moved."""
    for _ in range(rng.randint(1, 3)):
        at, to = sorted(rng.randint(0, len(data)) for _ in range(2))
        match rng.randrange(5):
            case 0:
                data = data[:at] + rng.randbytes(rng.randint(1, 8)) + data[at:]
            case 1:
                data = data[:at] + data[to:]
            case 2:
                data = data[:at]
            case 3:
                data = data[:to] + data[at:]
            case _ if data:
                place = rng.randrange(len(data))
                flipped = bytes([data[place] ^ (1 << rng.randrange(8))])
                data = data[:place] + flipped + data[place + 1 :]
    return data


def http_request(rng: random.Random) -> tuple[bytes, bool]:
    """Returns a request's bytes, and whether it is complete and must be answered."""
    path, method = "/v2/models/linear/infer", "POST"
    value = document(rng)
    headers = ["Host: localhost", "Content-Type: application/json"]
    body = json.dumps(value).encode()
    if rng.random() < 0.3:
        rows = value["inputs"][0]["shape"][0]
        value["inputs"][0].pop("data")
        value["inputs"][0]["parameters"] = {"binary_data_size": 12 * rows}
        tail = rng.choice([rng.randbytes(12 * rows), struct.pack("3f", 1, 2, 3) * rows])
        head = json.dumps(value).encode()
        if rng.random() < 0.5:
            head = changed(rng, value)
        if rng.random() < 0.5:
            tail = broken(rng, tail)
        body = head + tail
        headers.append(f"Inference-Header-Content-Length: {len(head)}")
    elif rng.random() < 0.2:
        path = "/predict/" + rng.choice(["linear", "shouting", "none"])
        body = json.dumps(rng.choice([[[1, 2, 3]], [1, 2, 3], ["a"], *JUNK])).encode()
    kind = rng.randrange(8)
    if kind == 0:
        body = changed(rng, document(rng))
    elif kind == 1:
        body = broken(rng, body)
    elif kind == 2:
        path = rng.choice(PATHS)
    elif kind == 3:
        method = rng.choice(METHODS)
    elif kind == 4:
        body = b" " * rng.choice([0, 1, 20_000, 70_000])
    sure = True
    length = [f"Content-Length: {len(body)}"]
    if kind == 5:
        extra = rng.choice(HEADERS)
        headers.insert(rng.randint(0, len(headers)), extra)
        sure = False
        if rng.random() < 0.5:
            length = []
    text = "\r\n".join([f"{method} {path} HTTP/1.1", *headers, *length, "", ""])
    whole = text.encode("utf-8") + body
    if kind == 6:
        whole, sure = broken(rng, whole), False
    if kind == 7:  # half a request
        whole, sure = whole[: rng.randint(0, len(whole) - 1)], False
    return whole, sure


def grpc_message(rng: random.Random, messages: dict[str, Any]) -> bytes:
    """Returns the bytes of an invalid ModelInferRequest, or random bytes."""
    request = messages["ModelInferRequest"](model_name="linear", id="7")
    rows = rng.randint(1, 3)
    tensor = request.inputs.add(name="x", datatype="FP32", shape=[rows, 3])
    raw = rng.random() < 0.5
    if raw:
        request.raw_input_contents.append(struct.pack("3f", 1, 2, 3) * rows)
    else:
        tensor.contents.fp32_contents.extend([1.0, 2.0, 3.0] * rows)
    match rng.randrange(14):
        case 0:
            return broken(rng, request.SerializeToString())
        case 1:
            return rng.randbytes(rng.randint(0, 300))
        case 2:
            request.model_name = rng.choice(["", "none", "é", "x" * 3000])
        case 3:
            request.model_version = rng.choice(["2", "\0", "1" * 500])
        case 4:
            shapes = [[], [-1, 3], [2**62, 2**62], [0, 3], [rows, 4], [1] * 3000]
            tensor.shape[:] = rng.choice([*shapes, [3 * rows], [2**63 - 1]])
        case 5:
            tensor.datatype = rng.choice(["", "FP31", "INT64", "BYTES", "FP16"])
        case 6:
            tensor.name = rng.choice(["", "y", "x" * 3000])
        case 7:
            request.raw_input_contents.append(rng.randbytes(rng.choice([0, 1, 12, 13])))
        case 8:
            tensor.contents.int64_contents.append(-1)
        case 9:
            request.inputs.add(name=rng.choice(["x", "z"]), datatype="FP32", shape=[1])
        case 10:
            name = rng.choice(["priority", "timeout", "other"])
            value = request.parameters[name]
            match rng.randrange(5):
                case 0:
                    value.int64_param = rng.choice([-1, 2**63 - 1, 5])
                case 1:
                    value.string_param = "x"
                case 2:
                    value.double_param = float("nan")
                case 3:
                    value.bool_param = True
                case 4:
                    value.uint64_param = 2**64 - 1
        case 11:
            request.outputs.add(name=rng.choice(["", "y", "z"]))
        case 12:
            request.raw_input_contents[:] = [rng.randbytes(rng.choice([3, 11, 80_000]))]
        case 13:
            tensor.contents.fp32_contents.append(float("nan"))
    return bytes(request.SerializeToString())
