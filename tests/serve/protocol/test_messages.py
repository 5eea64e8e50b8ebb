"""The message descriptions against those of another project."""

import pytest

from fxflow.serve.protocol.messages import ENUMS, MESSAGES, classes

from ..clients import triton

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
