"""The protocol over gRPC, with a client of another project."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.metrics import Metrics
from fxflow.serve.protocol.front import Front, RequestLimits
from fxflow.serve.protocol.rpc import ENUMS, MESSAGES, SERVICE, classes, start_grpc
from fxflow.serve.repository import Repository
from fxflow.serve.selector import SelectorConfig
from fxflow.serve.service import ModelConfig

from ..clients import triton

pytest.importorskip("google.protobuf", reason="pip install 'fxflow[serve]'")
grpc = pytest.importorskip("grpc", reason="pip install 'fxflow[serve]'")

KEY = "0123456789abcdef"
ZOO = "tests.serve.zoo"
MODELS = [
    ModelConfig("linear", ModelSource(f"{ZOO}:doubling", max_batch=4), slo=2.0),
    ModelConfig(
        "shouting", ModelSource(f"{ZOO}:shouting", inputs={"text": "bytes[b]"}), slo=2.0
    ),
]


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, int]]:
    """Two servers in a thread, one open and one with keys."""
    found: dict[str, int] = {}
    up = threading.Event()
    stop: list[Any] = []

    async def main() -> None:
        ending = asyncio.Event()
        stop.append((asyncio.get_running_loop(), ending))
        repository, metrics = Repository(MODELS), Metrics()
        # One of the two models does not exist.
        group = SelectorConfig("mixed", ("linear", "absent"), slo=5.0)
        faults = await repository.configure(MODELS, [group])
        assert not faults, faults
        servers = []
        for name, options in {
            "open": {"control": True, "limits": RequestLimits(max_body=20_000)},
            "keyed": {"keys": {"alice": KEY}},
        }.items():
            server, found[name] = await start_grpc(
                Front(repository, metrics, **options),  # type: ignore[arg-type]
                "127.0.0.1:0",
            )
            servers.append(server)
        up.set()
        await ending.wait()
        for server in servers:
            await server.stop(1)
        await repository.drain()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert up.wait(90)
    yield found
    loop, ending = stop[0]
    loop.call_soon_threadsafe(ending.set)
    thread.join()


def call(port: int, name: str, reply: str, metadata: Any = (), **fields: Any) -> Any:
    made = classes()
    kind = "ModelInferRequest" if name == "ModelInfer" else f"{name}Request"
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        method = channel.unary_unary(
            f"/{SERVICE}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=made[reply].FromString,
        )
        return method(made[kind](**fields), metadata=metadata, timeout=30)


def tensor(**changes: Any) -> Any:
    made = classes()
    contents = made["InferTensorContents"](fp32_contents=[1, 2, 3])
    fields = {"name": "x", "datatype": "FP32", "shape": [1, 3], "contents": contents}
    return made["ModelInferRequest.InferInputTensor"](**fields | changes)


def infer(port: int, *inputs: Any, model: str = "linear", **fields: Any) -> Any:
    fields = {"model_name": model, "inputs": inputs, **fields}
    return call(port, "ModelInfer", "ModelInferResponse", **fields)


def test_typed_contents(ports: dict[str, int]) -> None:
    reply = infer(ports["open"], tensor(), id="7")
    assert (reply.model_name, reply.model_version, reply.id) == ("linear", "1", "7")
    found = np.frombuffer(reply.raw_output_contents[0], np.float32)
    assert found.tolist() == [2, 4, 6] and list(reply.outputs[0].shape) == [1, 3]


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"model": "none"}, "NOT_FOUND", "unknown model 'none'"),
        ({"shape": [1, 2]}, "INVALID_ARGUMENT", "must have shape [batch,3]"),
        ({"datatype": "FP31"}, "INVALID_ARGUMENT", "unknown datatype 'FP31'"),
        (
            {"shape": [2, 3]},
            "INVALID_ARGUMENT",
            "but the shape is [2, 3]",
        ),
        ({"shape": [2**60, 3]}, "INVALID_ARGUMENT", "is too large"),
        ({"raw": [b"abc"]}, "INVALID_ARGUMENT", "has 12 bytes, got 3"),
        ({"raw": [b"", b""]}, "INVALID_ARGUMENT", "but 2 raw_input_contents"),
        ({"raw": [bytes(30_000)]}, "RESOURCE_EXHAUSTED", "larger than max"),
        ({"outputs": ["z"]}, "INVALID_ARGUMENT", "no output 'z'"),
    ],
)
def test_invalid_requests_are_refused(
    ports: dict[str, int], changes: dict[str, Any], code: str, words: str
) -> None:
    wanted = classes()["ModelInferRequest.InferRequestedOutputTensor"]
    model = changes.pop("model", "linear")
    raw = changes.pop("raw", [])
    outputs = [wanted(name=name) for name in changes.pop("outputs", [])]
    with pytest.raises(grpc.RpcError) as caught:
        infer(
            ports["open"],
            tensor(**changes),
            model=model,
            raw_input_contents=raw,
            outputs=outputs,
        )
    assert caught.value.code().name == code
    assert words in caught.value.details()


def test_groups_answer_with_models_and_confidence(ports: dict[str, int]) -> None:
    parameter = classes()["InferParameter"]
    context = {"context": parameter(string_param="al")}
    reply = infer(ports["open"], tensor(), model="mixed", parameters=context)
    assert np.frombuffer(reply.raw_output_contents[0], np.float32)[0] == 2
    assert len(reply.id) == 32 and reply.model_version == "1"
    assert reply.parameters["models"].string_param == "linear"
    assert reply.parameters["confidence"].double_param == 0.5
    context = {"context": parameter(int64_param=3)}
    with pytest.raises(grpc.RpcError, match="'context' must be a string"):
        infer(ports["open"], tensor(), model="mixed", parameters=context)


def test_keys_and_control(ports: dict[str, int]) -> None:
    port, fields = ports["keyed"], {"repository_name": ""}
    with pytest.raises(grpc.RpcError, match="an API key is required"):
        call(port, "RepositoryIndex", "RepositoryIndexResponse", **fields)
    key = (("authorization", f"Bearer {KEY}"),)
    found = call(port, "RepositoryIndex", "RepositoryIndexResponse", key, **fields)
    assert [m.state for m in found.models] == ["READY"] * 3
    assert call(port, "ServerLive", "ServerLiveResponse").live
    with pytest.raises(grpc.RpcError, match="does not let requests load"):
        call(
            port,
            "RepositoryModelUnload",
            "RepositoryModelUnloadResponse",
            key,
            model_name="linear",
        )


def test_tritonclient(ports: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The unmodified client of another project."""
    module = triton(monkeypatch, "grpc")
    refused = triton(monkeypatch, "utils").InferenceServerException
    client = module.InferenceServerClient(f"127.0.0.1:{ports['open']}")
    try:
        assert client.is_server_live() and client.is_server_ready()
        assert client.is_model_ready("linear", "1")
        assert client.get_server_metadata().name == "fxflow"
        assert client.get_model_metadata("linear").inputs[0].shape == [-1, 3]
        assert len(client.get_model_repository_index().models) == 3
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        given = module.InferInput("x", [2, 3], "FP32")
        given.set_data_from_numpy(x)
        wanted = module.InferRequestedOutput("y")
        result = client.infer(
            "linear",
            [given],
            outputs=[wanted],
            priority=1,
            timeout=5_000_000,
            client_timeout=20,
        )
        np.testing.assert_array_equal(result.as_numpy("y"), x * 2)
        text = module.InferInput("text", [2], "BYTES")
        text.set_data_from_numpy(np.array([b"ab", b"c"], object))
        result = client.infer("shouting", [text])
        assert result.as_numpy("loud").tolist() == [b"AB", b"C"]
        with pytest.raises(refused, match="no input 'text'"):
            client.infer("linear", [text])

        answers: queue.Queue[Any] = queue.Queue()
        client.start_stream(lambda result, error: answers.put((result, error)))
        for model in ("linear", "none", "linear"):
            client.async_stream_infer(model, [given], request_id=model)
        found = [answers.get(timeout=30) for _ in range(3)]
        client.stop_stream()
        assert "unknown model 'none'" in str(found[1][1])
        for result, error in (found[0], found[2]):
            assert error is None
            np.testing.assert_array_equal(result.as_numpy("y"), x * 2)

        client.unload_model("shouting")
        assert not client.is_server_ready()
        client.load_model("shouting")
        assert client.is_server_ready()
    finally:
        client.close()


def test_bytes_that_are_not_a_message_are_refused(ports: dict[str, int]) -> None:
    kind = classes()["ModelStreamInferResponse"]
    good = classes()["ModelInferRequest"](model_name="linear", inputs=[tensor()])
    with grpc.insecure_channel(f"127.0.0.1:{ports['open']}") as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary(f"/{SERVICE}/ModelInfer")(b"\xff\xff", timeout=30)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "is not a ModelInferRequest" in caught.value.details()
        stream = channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")
        answers = stream(iter([b"\xff\xff", good.SerializeToString()]), timeout=30)
        bad, fine = map(kind.FromString, answers)
        assert "is not a ModelInferRequest" in bad.error_message
        assert not fine.error_message and fine.infer_response.outputs[0].name == "y"


# -- messages --------------------------------------------------------------------------

pytest.importorskip("google.protobuf", reason="pip install 'fxflow[serve]'")


def test_messages_survive_serialization() -> None:
    request = classes()["ModelInferRequest"](model_name="m", id="7")
    request.parameters["priority"].int64_param = 1
    tensor = request.inputs.add(name="x", datatype="FP32", shape=[2, 3])
    tensor.contents.fp32_contents.extend([1, 2.5])
    back = classes()["ModelInferRequest"].FromString(request.SerializeToString())
    assert back == request
    assert back.parameters["priority"].WhichOneof("parameter_choice") == "int64_param"


def test_fields_are_the_published_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    service_pb2 = triton(monkeypatch, "grpc.service_pb2")
    config_pb2 = triton(monkeypatch, "grpc.model_config_pb2")
    for name, text in ENUMS.items():
        theirs = config_pb2
        for part in name.split("."):
            theirs = getattr(theirs, part)
        assert list(theirs.items()) == [(n, k) for k, n in enumerate(text.split())]
    for name in MESSAGES:
        top = name.partition(".")[0]
        theirs = service_pb2 if hasattr(service_pb2, top) else config_pb2
        for part in name.split("."):
            theirs = getattr(theirs, part)
        fields = theirs.DESCRIPTOR.fields_by_name
        for field in classes()[name].DESCRIPTOR.fields:
            other = fields[field.name]
            assert (field.number, field.type) == (other.number, other.type), name
            kind, other_kind = field.message_type, other.message_type
            assert (kind and kind.full_name) == (other_kind and other_kind.full_name)
