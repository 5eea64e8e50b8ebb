"""The protocol's messages for gRPC, described here rather than generated.

The table below is the published ``grpc_service.proto`` of the protocol, as far as
servers that are not Triton have it. The descriptors lie in a pool of their own, so that
a process may have another library's as well.

Source: https://github.com/kserve/open-inference-protocol, `specification/protocol`.
"""

from __future__ import annotations

import functools
from typing import Any

from fxflow.errors import ServeError

SERVICE = "inference.GRPCInferenceService"

#: Message → its fields as "number type name"; `*` is repeated, `map` has text for
#: keys, and those behind `|` exclude each other.
MESSAGES: dict[str, str] = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "1 bool live",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "1 bool ready",
    "ModelReadyRequest": "1 string name, 2 string version",
    "ModelReadyResponse": "1 bool ready",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": "1 string name, 2 string version, 3 *string extensions",
    "ModelMetadataRequest": "1 string name, 2 string version",
    "ModelMetadataResponse": (
        "1 string name, 2 *string versions, 3 string platform, "
        "4 *ModelMetadataResponse.TensorMetadata inputs, "
        "5 *ModelMetadataResponse.TensorMetadata outputs"
    ),
    "ModelMetadataResponse.TensorMetadata": (
        "1 string name, 2 string datatype, 3 *int64 shape"
    ),
    "InferParameter": (
        "1 |bool bool_param, 2 |int64 int64_param, 3 |string string_param, "
        "4 |double double_param, 5 |uint64 uint64_param"
    ),
    "InferTensorContents": (
        "1 *bool bool_contents, 2 *int32 int_contents, 3 *int64 int64_contents, "
        "4 *uint32 uint_contents, 5 *uint64 uint64_contents, 6 *float fp32_contents, "
        "7 *double fp64_contents, 8 *bytes bytes_contents"
    ),
    "ModelInferRequest": (
        "1 string model_name, 2 string model_version, 3 string id, "
        "4 map:InferParameter parameters, "
        "5 *ModelInferRequest.InferInputTensor inputs, "
        "6 *ModelInferRequest.InferRequestedOutputTensor outputs, "
        "7 *bytes raw_input_contents"
    ),
    "ModelInferRequest.InferInputTensor": (
        "1 string name, 2 string datatype, 3 *int64 shape, "
        "4 map:InferParameter parameters, 5 InferTensorContents contents"
    ),
    "ModelInferRequest.InferRequestedOutputTensor": (
        "1 string name, 2 map:InferParameter parameters"
    ),
    "ModelInferResponse": (
        "1 string model_name, 2 string model_version, 3 string id, "
        "4 map:InferParameter parameters, "
        "5 *ModelInferResponse.InferOutputTensor outputs, 6 *bytes raw_output_contents"
    ),
    "ModelInferResponse.InferOutputTensor": (
        "1 string name, 2 string datatype, 3 *int64 shape, "
        "4 map:InferParameter parameters, 5 InferTensorContents contents"
    ),
    "ModelStreamInferResponse": (
        "1 string error_message, 2 ModelInferResponse infer_response"
    ),
    "ModelRepositoryParameter": (
        "1 |bool bool_param, 2 |int64 int64_param, 3 |string string_param, "
        "4 |bytes bytes_param"
    ),
    "RepositoryIndexRequest": "1 string repository_name, 2 bool ready",
    "RepositoryIndexResponse": "1 *RepositoryIndexResponse.ModelIndex models",
    "RepositoryIndexResponse.ModelIndex": (
        "1 string name, 2 string version, 3 string state, 4 string reason"
    ),
    "RepositoryModelLoadRequest": (
        "1 string repository_name, 2 string model_name, "
        "3 map:ModelRepositoryParameter parameters"
    ),
    "RepositoryModelLoadResponse": "",
    "RepositoryModelUnloadRequest": (
        "1 string repository_name, 2 string model_name, "
        "3 map:ModelRepositoryParameter parameters"
    ),
    "RepositoryModelUnloadResponse": "",
}


@functools.cache
def classes() -> dict[str, Any]:
    """Returns the class of each message, by name.

    Returns:
      Classes of protobuf.

    Raises:
      ServeError: protobuf is not installed.
    """
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise ServeError("gRPC needs protobuf: pip install 'fxflow[serve]'") from None
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="fxflow/inference.proto", package="inference", syntax="proto3"
    )
    made: dict[str, Any] = {}
    for full in MESSAGES:
        outer, _, inner = full.rpartition(".")
        made[full] = (made[outer].nested_type if outer else file.message_type).add(
            name=inner or full
        )

    def typed(field: Any, kind: str) -> None:
        if kind in MESSAGES:
            field.type, field.type_name = kinds.TYPE_MESSAGE, f".inference.{kind}"
        else:
            field.type = getattr(kinds, f"TYPE_{kind.upper()}")

    for full, text in MESSAGES.items():
        message = made[full]
        for line in filter(None, text.split(", ")):
            number, kind, name = line.split()
            field = message.field.add(name=name, number=int(number))
            field.label = kinds.LABEL_OPTIONAL
            if kind[0] == "*":
                field.label = kinds.LABEL_REPEATED
            if kind[0] == "|":
                if not message.oneof_decl:
                    message.oneof_decl.add(name="parameter_choice")
                field.oneof_index = 0
            if kind.startswith("map:"):
                # A map is a repeated message of key and value.
                entry = f"{name.title()}Entry"
                pair = message.nested_type.add(name=entry)
                pair.options.map_entry = True
                for k, part, of in ((1, "key", "string"), (2, "value", kind[4:])):
                    member = pair.field.add(name=part, number=k)
                    member.label = kinds.LABEL_OPTIONAL
                    typed(member, of)
                field.label = kinds.LABEL_REPEATED
                field.type = kinds.TYPE_MESSAGE
                field.type_name = f".inference.{full}.{entry}"
            else:
                typed(field, kind.lstrip("*|"))
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"inference.{name}")
        )
        for name in MESSAGES
    }
