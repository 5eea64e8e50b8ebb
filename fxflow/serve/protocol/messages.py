"""The protocol's gRPC messages, built from a table rather than generated.

The table has the messages of the protocol's ``grpc_service.proto``, and Triton's
messages for the configuration and statistics of a model, with the fields that apply to
this server. The descriptors are in a separate pool, so that a process can also load
another library's.

Source: https://github.com/kserve/open-inference-protocol, `specification/protocol`;
Triton's `grpc_service.proto` and `model_config.proto`.
"""

from __future__ import annotations

import functools
from typing import Any

from fxflow.errors import ServeError

SERVICE = "inference.GRPCInferenceService"

#: Enumeration → its names, numbered from 0.
ENUMS: dict[str, str] = {
    "DataType": (
        "TYPE_INVALID TYPE_BOOL TYPE_UINT8 TYPE_UINT16 TYPE_UINT32 TYPE_UINT64 "
        "TYPE_INT8 TYPE_INT16 TYPE_INT32 TYPE_INT64 TYPE_FP16 TYPE_FP32 TYPE_FP64 "
        "TYPE_STRING TYPE_BF16"
    ),
    "ModelInstanceGroup.Kind": "KIND_AUTO KIND_GPU KIND_CPU KIND_MODEL",
}

#: Message → its fields as "number type name": `*` marks a repeated field, `map:` a map
#: from strings, and `|` the members of a oneof.
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
    "ModelConfigRequest": "1 string name, 2 string version",
    "ModelConfigResponse": "1 ModelConfig config",
    "ModelConfig": (
        "1 string name, 2 string platform, 17 string backend, 4 int32 max_batch_size, "
        "5 *ModelInput input, 6 *ModelOutput output, "
        "11 ModelDynamicBatching dynamic_batching, "
        "7 *ModelInstanceGroup instance_group, "
        "19 ModelTransactionPolicy model_transaction_policy, "
        "24 ModelResponseCache response_cache"
    ),
    "ModelInput": (
        "1 string name, 2 DataType data_type, 4 *int64 dims, 8 bool optional"
    ),
    "ModelOutput": "1 string name, 2 DataType data_type, 3 *int64 dims",
    "ModelDynamicBatching": (
        "1 *int32 preferred_batch_size, 2 uint64 max_queue_delay_microseconds"
    ),
    "ModelInstanceGroup": (
        "1 string name, 4 ModelInstanceGroup.Kind kind, 2 int32 count"
    ),
    "ModelTransactionPolicy": "1 bool decoupled",
    "ModelResponseCache": "1 bool enable",
    "ModelStatisticsRequest": "1 string name, 2 string version",
    "ModelStatisticsResponse": "1 *ModelStatistics model_stats",
    "ModelStatistics": (
        "1 string name, 2 string version, 3 uint64 last_inference, "
        "4 uint64 inference_count, 5 uint64 execution_count, "
        "6 InferStatistics inference_stats, 7 *InferBatchStatistics batch_stats"
    ),
    "StatisticDuration": "1 uint64 count, 2 uint64 ns",
    "InferStatistics": (
        "1 StatisticDuration success, 2 StatisticDuration fail, "
        "3 StatisticDuration queue, 4 StatisticDuration compute_input, "
        "5 StatisticDuration compute_infer, 6 StatisticDuration compute_output, "
        "7 StatisticDuration cache_hit, 8 StatisticDuration cache_miss"
    ),
    "InferBatchStatistics": (
        "1 uint64 batch_size, 2 StatisticDuration compute_input, "
        "3 StatisticDuration compute_infer, 4 StatisticDuration compute_output"
    ),
}


@functools.cache
def classes() -> dict[str, Any]:
    """Returns the class of each message, by name.

    Returns:
      Protobuf message classes.

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

    for full, names in ENUMS.items():
        outer, _, inner = full.rpartition(".")
        enum = (made[outer] if outer else file).enum_type.add(name=inner or full)
        for place, name in enumerate(names.split()):
            enum.value.add(name=name, number=place)

    def typed(field: Any, kind: str) -> None:
        if kind in MESSAGES:
            field.type, field.type_name = kinds.TYPE_MESSAGE, f".inference.{kind}"
        elif kind in ENUMS:
            field.type, field.type_name = kinds.TYPE_ENUM, f".inference.{kind}"
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
                # A map is a repeated message with a key and a value.
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
