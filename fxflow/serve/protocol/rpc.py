"""The protocol over gRPC: `inference.GRPCInferenceService`, which grpcio runs.

Errors have the same texts as over HTTP, and the corresponding gRPC codes. The deadline
of a client's call limits its request.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from fxflow.errors import ServeError
from fxflow.serve.protocol import descriptions
from fxflow.serve.protocol.front import (
    DISCONNECTED,
    FAILED,
    Front,
    RequestReport,
    retry_after,
)
from fxflow.serve.protocol.tensors import (
    InferRequest,
    answer_parameters,
    bad,
    check_output,
    scheduling,
)
from fxflow.serve.service import Prediction
from fxflow.serve.signatures import DATATYPES, ModelSignature, from_bytes, to_bytes

_log = logging.getLogger("fxflow.serve")
#: HTTP status → name of the gRPC code.
_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "CANCELLED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
#: Datatype → field of `InferTensorContents`. FP16 and BF16 exist only as raw contents.
_CONTENTS = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    "UINT64": "uint64_contents",
    "INT64": "int64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
Array = np.ndarray[Any, Any]


def inputs_of(request: Any, signature: ModelSignature) -> tuple[dict[str, Array], int]:
    """Returns the arrays of a ModelInferRequest, and its rows.

    Args:
      request: the message.
      signature: the model's signature.

    Returns:
      Arrays by input, and the size of the batch axis.

    Raises:
      ServeError: status 400; the inputs do not match the signature.
    """
    tensors = {}
    for tensor in request.inputs:
        if tensor.datatype not in DATATYPES:
            bad(f"input {tensor.name!r}: unknown datatype {tensor.datatype!r}")
        if tensor.name in tensors:
            bad(f"input {tensor.name!r} is given twice")
        if math.prod(max(size, 0) for size in tensor.shape) > 1 << 40:
            bad(f"input {tensor.name!r}: shape {list(tensor.shape)} is too large")
        tensors[tensor.name] = tensor.datatype, tuple(tensor.shape)
    rows = signature.check_types(tensors)
    raw = request.raw_input_contents
    if raw and len(raw) != len(request.inputs):
        bad(f"{len(request.inputs)} inputs, but {len(raw)} raw_input_contents")
    arrays = {}
    for k, tensor in enumerate(request.inputs):
        datatype, shape = tensors[tensor.name]
        try:
            if raw:
                arrays[tensor.name] = from_bytes(raw[k], datatype, shape)
            else:
                arrays[tensor.name] = _from_contents(tensor.contents, datatype, shape)
        except ServeError as error:
            bad(f"input {tensor.name!r}: {error}")
    return arrays, rows


def _from_contents(contents: Any, datatype: str, shape: tuple[int, ...]) -> Array:
    if datatype not in _CONTENTS:
        bad(f"{datatype} must be in raw_input_contents")
    values = getattr(contents, _CONTENTS[datatype])
    if len(values) != math.prod(shape):
        bad(
            f"{_CONTENTS[datatype]} has {len(values)} elements, but the shape is "
            f"{list(shape)}"
        )
    dtype = DATATYPES[datatype][1]
    if datatype == "BYTES":
        strings = np.empty(len(values), object)
        strings[:] = list(values)
        return strings.reshape(shape)
    try:
        return np.array(list(values), dtype).reshape(shape)
    except OverflowError:
        bad(f"an element is out of range for {datatype}")


#: Triton's parameters for streams. `_FINAL` marks the last response to a request. With
#: `_EMPTY_FINAL` a request asks for an empty final response, if the last result could
#: not be marked because it was not known to be the last.
_FINAL = "triton_final_response"
_EMPTY_FINAL = "triton_enable_empty_final_response"
#: Methods that need no API key.
_OPEN = ("ServerLive", "ServerReady")


def _parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in parameters.items():
        which = value.WhichOneof("parameter_choice")
        if which:
            found[name] = getattr(value, which)
    return found


def _code_of(status: int) -> str:
    return "OK" if status == 200 else _CODES.get(status, "INTERNAL")


@dataclass(slots=True)
class _RpcCall:
    """A call of a method, or one request of a stream.

    Attributes:
      request: the request message.
      context: grpcio's context.
      client: the client that sent it.
    """

    request: Any
    context: Any
    client: str

    @property
    def headers(self) -> dict[str, str]:
        return _headers(self.context)


def _headers(context: Any) -> dict[str, str]:
    return {name: str(v) for name, v in context.invocation_metadata() or ()}


class _Methods:
    """The methods of the gRPC service.

    Args:
      front: the server's models and limits.
      grpc: the `grpc` module.
    """

    def __init__(self, front: Front, grpc: Any) -> None:
        self._front, self._grpc = front, grpc
        self._repository = front.repository
        self._messages = classes()

    def handlers(self) -> dict[str, Any]:
        """Returns grpcio's handlers by the methods' names."""
        methods: dict[str, Callable[[_RpcCall], Awaitable[Any]]] = {
            "ServerLive": self._live,
            "ServerReady": self._ready,
            "ModelReady": self._model_ready,
            "ServerMetadata": self._server,
            "ModelMetadata": self._model,
            "ModelConfig": self._config,
            "ModelStatistics": self._statistics,
            "ModelInfer": self._infer,
            "RepositoryIndex": self._index,
            "RepositoryModelLoad": self._load,
            "RepositoryModelUnload": self._unload,
        }
        made = {
            name: self._grpc.unary_unary_rpc_method_handler(
                self._guarded(method, name),
                response_serializer=lambda message: message.SerializeToString(),
            )
            for name, method in methods.items()
        }
        made["ModelStreamInfer"] = self._grpc.stream_stream_rpc_method_handler(
            self._stream,
            response_serializer=lambda message: message.SerializeToString(),
        )
        return made

    def _guarded(self, method: Callable[[_RpcCall], Awaitable[Any]], name: str) -> Any:
        async def handle(data: bytes, context: Any) -> Any:
            try:
                client = "" if name in _OPEN else self._admit(context)
                with self._held(data):
                    request = self._read(f"{name}Request", data)
                    return await method(_RpcCall(request, context, client))
            except ServeError as error:
                refused = error
            except Exception:
                _log.exception("a request failed")
                refused = ServeError(FAILED)
            await self._refuse(context, refused)

        return handle

    def _admit(self, context: Any) -> str:
        return self._front.admit(context.peer().rpartition(":")[0], _headers(context))

    async def _refuse(self, context: Any, error: ServeError) -> None:
        if error.retry_after:
            context.set_trailing_metadata((("retry-after", retry_after(error)),))
        code = getattr(self._grpc.StatusCode, _CODES.get(error.status, "INTERNAL"))
        await context.abort(code, str(error))

    @contextmanager
    def _held(self, data: bytes) -> Iterator[None]:
        """Counts a message as in flight during the block."""
        self._front.check_size(len(data))
        self._front.hold(len(data))
        try:
            yield
        finally:
            self._front.hold(-len(data))

    # -- messages ----------------------------------------------------------------------

    def _read(self, kind: str, data: bytes) -> Any:
        """Parses a message; grpcio would report a parse error as a server error."""
        try:
            return self._messages[kind].FromString(data)
        except Exception as error:  # the class depends on protobuf's version
            raise ServeError(f"the message is not a {kind}: {error}", 400) from None

    def _message(self, kind: str, /, **fields: Any) -> Any:
        return self._messages[kind](**fields)

    def _from_json(self, kind: str, fields: Mapping[str, Any]) -> Any:
        """Returns a message from nested fields with their JSON names."""
        from google.protobuf import json_format

        return json_format.ParseDict(fields, self._message(kind))

    def _infer_parameters(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for name, value in parameters.items():
            kind = "string_param" if isinstance(value, str) else "double_param"
            if isinstance(value, bool):
                kind = "bool_param"
            found[name] = self._message("InferParameter", **{kind: value})
        return found

    # -- metadata and models -----------------------------------------------------------

    async def _live(self, call: _RpcCall) -> Any:
        return self._message("ServerLiveResponse", live=True)

    async def _ready(self, call: _RpcCall) -> Any:
        return self._message("ServerReadyResponse", ready=self._repository.ready)

    async def _model_ready(self, call: _RpcCall) -> Any:
        up = self._repository.get(call.request.name, call.request.version).ready
        return self._message("ModelReadyResponse", ready=up)

    async def _server(self, call: _RpcCall) -> Any:
        return self._message("ServerMetadataResponse", **self._front.describe())

    async def _model(self, call: _RpcCall) -> Any:
        given = call.request.name, call.request.version
        return self._from_json(
            "ModelMetadataResponse", self._front.describe_model(*given)
        )

    async def _config(self, call: _RpcCall) -> Any:
        given = call.request.name, call.request.version
        config = descriptions.model_config(self._repository, *given)
        return self._from_json("ModelConfigResponse", {"config": config})

    async def _statistics(self, call: _RpcCall) -> Any:
        given = call.request.name, call.request.version
        counted = descriptions.statistics(self._repository, self._front.metrics, *given)
        return self._from_json("ModelStatisticsResponse", counted)

    async def _index(self, call: _RpcCall) -> Any:
        models = self._front.index(ready=call.request.ready)
        return self._from_json("RepositoryIndexResponse", {"models": models})

    async def _load(self, call: _RpcCall) -> Any:
        self._front.check_control()
        await self._repository.load(call.request.model_name)
        return self._message("RepositoryModelLoadResponse")

    async def _unload(self, call: _RpcCall) -> Any:
        self._front.check_control()
        await self._repository.unload(call.request.model_name)
        return self._message("RepositoryModelUnloadResponse")

    # -- predictions -------------------------------------------------------------------

    def _parse_infer(self, call: _RpcCall) -> tuple[Any, InferRequest, dict[str, Any]]:
        """Returns the model for a request, the parsed request, and its parameters."""
        request = call.request
        served = self._repository.get(request.model_name, request.model_version)
        arrays, rows = inputs_of(request, served.signature)
        for output in request.outputs:
            check_output(output.name, served.signature)
        parameters = _parameters(request.parameters)
        priority, timeout = scheduling(parameters)
        context = parameters.get("context", "")
        if not isinstance(context, str):
            bad(f"'context' must be a string, got {context!r}")
        left = call.context.time_remaining()
        if left is not None:
            timeout = max(1e-3, min(timeout or left, left))
        parsed = InferRequest(
            arrays,
            rows,
            request.id,
            outputs=dict.fromkeys((output.name for output in request.outputs), True),
            priority=priority,
            timeout=timeout,
            context=context,
        )
        return served, parsed, parameters

    def _response(
        self,
        served: Any,
        parsed: InferRequest,
        answer: Prediction,
        **parameters: str | float | bool,
    ) -> Any:
        of = answer.provenance
        outputs, raw = [], []
        for spec in served.signature.outputs:
            if parsed.outputs and spec.name not in parsed.outputs:
                continue
            array = answer.outputs[spec.name]
            outputs.append(
                self._message(
                    "ModelInferResponse.InferOutputTensor",
                    name=spec.name,
                    datatype=spec.datatype,
                    shape=array.shape,
                )
            )
            raw.append(to_bytes(np.ascontiguousarray(array)))
        return self._message(
            "ModelInferResponse",
            model_name=served.config.name,
            model_version=served.versions[0] if of is None else of.version,
            id=parsed.id if of is None else of.id,
            parameters=self._infer_parameters(answer_parameters(answer) | parameters),
            outputs=outputs,
            raw_output_contents=raw,
        )

    @contextmanager
    def _reported(self, call: _RpcCall, method: str) -> Iterator[RequestReport]:
        """Reports a request for a prediction at the end of the block."""
        front, headers = self._front, call.headers
        report = RequestReport(
            front.request_id(headers.get("x-request-id", "") or call.request.id),
            method,
            call.request.model_name,
            client=call.client,
            error=FAILED,
        )
        with front.tracing.request(
            f"{SERVICE}/{method}",
            headers,
            rpc__system="grpc",
            fxflow__request_id=report.id,
        ) as report.span:
            try:
                yield report
                report.status, report.error = 200, ""
            except ServeError as error:
                report.status, report.error = error.status, str(error)
                raise
            except asyncio.CancelledError:
                report.status, report.error = 499, DISCONNECTED
                raise
            finally:
                code = _code_of(report.status)
                report.span.set(rpc__grpc__status=code)
                front.report(report, predicts=True, status=code)

    async def _infer(self, call: _RpcCall) -> Any:
        with self._reported(call, "ModelInfer") as report:
            served, parsed, _ = self._parse_infer(call)
            answer = await self._front.answer(served, parsed, report)
            return self._response(served, parsed, answer)

    async def _stream(self, requests: Any, context: Any) -> None:
        try:
            client = self._admit(context)
            async for data in requests:
                await self._answer_one(data, context, client)
        except ServeError as error:
            await self._refuse(context, error)

    async def _answer_one(self, data: bytes, context: Any, client: str) -> None:
        """Answers one request of a stream."""
        call = _RpcCall(self._message("ModelInferRequest"), context, client)
        try:
            with self._held(data):
                call.request = self._read("ModelInferRequest", data)
                with self._reported(call, "ModelStreamInfer") as report:
                    await self._put_results(call, report)
        except ServeError as error:
            if error.status == 408:
                raise
            # An error in one request does not end the stream.
            end = self._end(call.request)
            await self._put(context, error_message=str(error), infer_response=end)

    async def _put_results(self, call: _RpcCall, report: RequestReport) -> None:
        served, parsed, parameters = self._parse_infer(call)
        ends = parameters.get(_EMPTY_FINAL, False)
        if not isinstance(ends, bool):
            bad(f"{_EMPTY_FINAL!r} must be a bool_param, got {ends!r}")
        streamed = served.signature.streamed
        async with aclosing(self._front.answers(served, parsed, report)) as results:
            async for answer in results:
                final = {_FINAL: not streamed}
                response = self._response(served, parsed, answer, **final)
                await self._put(call.context, infer_response=response)
        if ends and streamed:
            await self._put(call.context, infer_response=self._end(call.request))

    def _end(self, request: Any) -> Any:
        """Returns the empty final response to a request."""
        return self._message(
            "ModelInferResponse",
            model_name=request.model_name,
            model_version=request.model_version,
            id=request.id,
            parameters=self._infer_parameters({_FINAL: True}),
        )

    async def _put(self, context: Any, **fields: Any) -> None:
        seconds = self._front.limits.body_timeout
        try:
            async with asyncio.timeout(seconds):
                await context.write(self._message("ModelStreamInferResponse", **fields))
        except TimeoutError:
            raise ServeError(f"no answer was read within {seconds:g} s", 408) from None


async def start_grpc(
    front: Front, address: str, *, certificate: tuple[bytes, bytes] | None = None
) -> tuple[Any, int]:
    """Starts to serve gRPC in the running event loop.

    Args:
      front: the server's models and limits.
      address: address such as ``127.0.0.1:8001``; port 0 picks a free port.
      certificate: key and certificate in PEM; None: no TLS.

    Returns:
      The grpcio server, and the port.

    Raises:
      ServeError: grpcio is not installed, or the address cannot be bound.
    """
    try:
        import grpc
    except ImportError:
        raise ServeError("gRPC needs grpcio: pip install 'fxflow[serve]'") from None
    running = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", front.limits.max_body),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
        ]
    )
    handlers = _Methods(front, grpc).handlers()
    running.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE, handlers),)
    )
    try:
        if certificate is None:
            port = running.add_insecure_port(address)
        else:
            credentials = grpc.ssl_server_credentials([certificate])
            port = running.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise ServeError(f"gRPC cannot listen at {address}: {error}") from None
    await running.start()
    return running, port


# -- messages --------------------------------------------------------------------------
#
# A table of the messages in the protocol's `grpc_service.proto`, and of Triton's for
# the configuration and statistics of a model, with the fields that this server uses.
#
# Source: https://github.com/kserve/open-inference-protocol, `specification/protocol`;
# Triton's `grpc_service.proto` and `model_config.proto`.

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
