"""The protocol over gRPC: `inference.GRPCInferenceService`, which grpcio runs.

Errors have gRPC's codes for HTTP's, and the same words. A client's own deadline, which
gRPC tells, is the request's.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import numpy as np

from fxflow._version import __version__
from fxflow.errors import ServeError
from fxflow.serve.metrics import Metrics
from fxflow.serve.protocol import triton
from fxflow.serve.protocol.http import EXTENSIONS, Limits, key_checker, log_request
from fxflow.serve.protocol.messages import SERVICE, classes
from fxflow.serve.protocol.tensors import bad, provenance_parameters, scheduling
from fxflow.serve.repository import Repository
from fxflow.serve.service import Answer, Origin, answers
from fxflow.serve.signatures import DATATYPES, Signature, from_bytes, to_bytes
from fxflow.serve.telemetry import Span, Tracing

_log = logging.getLogger("fxflow.serve")
#: HTTP's status → the name of gRPC's.
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
#: Datatype → where the contents of a message have it. FP16 and BF16 are raw only.
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


def inputs_of(request: Any, signature: Signature) -> tuple[dict[str, Array], int]:
    """Returns the arrays of a ModelInferRequest, and its rows.

    Args:
      request: the message.
      signature: of the model, which they must fit.

    Returns:
      Arrays by input, and the size of the batch's axis.

    Raises:
      ServeError: status 400; they do not fit.
    """
    tensors = {}
    for tensor in request.inputs:
        if tensor.datatype not in DATATYPES:
            bad(f"input {tensor.name!r}: there is no datatype {tensor.datatype!r}")
        if tensor.name in tensors:
            bad(f"input {tensor.name!r} is given twice")
        if math.prod(max(size, 0) for size in tensor.shape) > 1 << 40:
            bad(f"input {tensor.name!r}: no tensor has shape {list(tensor.shape)}")
        tensors[tensor.name] = tensor.datatype, tuple(tensor.shape)
    rows = signature.check_types(tensors)
    raw = request.raw_input_contents
    if raw and len(raw) != len(request.inputs):
        bad(f"{len(request.inputs)} inputs have {len(raw)} raw contents")
    arrays = {}
    for k, tensor in enumerate(request.inputs):
        datatype, shape = tensors[tensor.name]
        try:
            if raw:
                arrays[tensor.name] = from_bytes(raw[k], datatype, shape)
            else:
                arrays[tensor.name] = _typed(tensor.contents, datatype, shape)
        except ServeError as error:
            bad(f"input {tensor.name!r}: {error}")
    return arrays, rows


def _typed(contents: Any, datatype: str, shape: tuple[int, ...]) -> Array:
    if datatype not in _CONTENTS:
        bad(f"{datatype} must be in raw_input_contents")
    values = getattr(contents, _CONTENTS[datatype])
    if len(values) != math.prod(shape):
        bad(f"{_CONTENTS[datatype]} has {len(values)} elements, shape {list(shape)}")
    dtype = DATATYPES[datatype][1]
    if datatype == "BYTES":
        strings = np.empty(len(values), object)
        strings[:] = list(values)
        return strings.reshape(shape)
    try:
        return np.array(list(values), dtype).reshape(shape)
    except OverflowError:
        bad(f"an element is out of the range of {datatype}")


#: Parameters of Triton's for streams: of an answer, whether it is the request's last;
#: of a request, whether an answer without outputs is to say so where the last result
#: could not, because nobody knew that it was the last.
_FINAL = "triton_final_response"
_EMPTY_FINAL = "triton_enable_empty_final_response"


def _parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in parameters.items():
        which = value.WhichOneof("parameter_choice")
        if which:
            found[name] = getattr(value, which)
    return found


async def start_grpc(
    repository: Repository,
    metrics: Metrics,
    address: str,
    *,
    limits: Limits | None = None,
    keys: Mapping[str, str] | None = None,
    control: bool = False,
    certificate: tuple[bytes, bytes] | None = None,
    tracing: Tracing | None = None,
) -> tuple[Any, int]:
    """Starts to serve gRPC in the running event loop.

    Args:
      repository: the models.
      metrics: what is counted.
      address: such as ``127.0.0.1:8001``; port 0 is any free one.
      limits: what is taken in.
      keys: client → API key; empty: anybody may ask.
      control: whether models can be loaded and unloaded by requests.
      certificate: key and certificate in PEM; None: no TLS.
      tracing: makes the spans of requests.

    Returns:
      grpcio's server, and the port.

    Raises:
      ServeError: grpcio is not installed, or the address cannot be listened at.
    """
    try:
        import grpc
    except ImportError:
        raise ServeError("gRPC needs grpcio: pip install 'fxflow[serve]'") from None
    messages = classes()
    bounds = limits or Limits()
    client_of = key_checker(keys or {})
    spans = tracing or Tracing()

    def said(context: Any) -> dict[str, str]:
        return {name: str(v) for name, v in context.invocation_metadata() or ()}

    def client_name(context: Any) -> str:
        given = said(context)
        client: str = context.peer().rpartition(":")[0]
        if keys:
            kind, _, token = given.get("authorization", "").partition(" ")
            key = token.strip() if kind.lower() == "bearer" else given.get("x-api-key")
            name = client_of(key or "")
            if name is None:
                raise ServeError("an API key is needed: authorization: Bearer KEY", 401)
            client = name
        return client

    def admit(context: Any) -> None:
        client = client_name(context)
        wait = bounds.clients.ask(client, time.monotonic())
        if wait:
            raise ServeError(f"client {client!r} asks too often", 429, wait)

    async def refuse(context: Any, error: ServeError) -> None:
        if error.retry_after:
            seconds = str(max(1, math.ceil(error.retry_after)))
            context.set_trailing_metadata((("retry-after", seconds),))
        code = getattr(grpc.StatusCode, _CODES.get(error.status, "INTERNAL"))
        await context.abort(code, str(error))

    def guarded(handler: Any, name: str) -> Any:
        read = reader(f"{name}Request")

        async def handle(data: bytes, context: Any) -> Any:
            try:
                if name not in ("ServerLive", "ServerReady"):
                    admit(context)
                return await handler(read(data), context)
            except ServeError as error:
                refused = error
            except Exception:
                _log.exception("a request failed")
                refused = ServeError("the server failed; its log says how")
            await refuse(context, refused)

        return handle

    def reader(kind: str) -> Callable[[bytes], Any]:
        """Reads messages; grpcio would call one that it cannot read our failure."""

        def read(data: bytes) -> Any:
            try:
                return messages[kind].FromString(data)
            except Exception as error:  # protobuf's own, which differ by its version
                raise ServeError(f"the message is no {kind}: {error}", 400) from None

        return read

    def made(kind: str, /, **fields: Any) -> Any:
        return messages[kind](**fields)

    def written(parameters: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for name, value in parameters.items():
            kind = "string_param" if isinstance(value, str) else "double_param"
            if isinstance(value, bool):
                kind = "bool_param"
            found[name] = made("InferParameter", **{kind: value})
        return found

    # -- calls -------------------------------------------------------------------------

    async def live(request: Any, context: Any) -> Any:
        return made("ServerLiveResponse", live=True)

    async def ready(request: Any, context: Any) -> Any:
        return made("ServerReadyResponse", ready=repository.ready)

    async def model_ready(request: Any, context: Any) -> Any:
        up = repository.get(request.name, request.version).ready
        return made("ModelReadyResponse", ready=up)

    async def server(request: Any, context: Any) -> Any:
        return made(
            "ServerMetadataResponse",
            name="fxflow",
            version=__version__,
            extensions=EXTENSIONS,
        )

    async def model(request: Any, context: Any) -> Any:
        service = repository.get(request.name, request.version)
        inputs, outputs = (
            [
                made("ModelMetadataResponse.TensorMetadata", **spec.metadata())
                for spec in specs
            ]
            for specs in (service.signature.inputs, service.signature.outputs)
        )
        return made(
            "ModelMetadataResponse",
            name=service.config.name,
            versions=service.versions,
            platform="fxflow",
            inputs=inputs,
            outputs=outputs,
        )

    def parsed(kind: str, fields: Mapping[str, Any]) -> Any:
        from google.protobuf import json_format

        return json_format.ParseDict(fields, made(kind))

    async def config(request: Any, context: Any) -> Any:
        found = triton.model_config(repository, request.name, request.version)
        return parsed("ModelConfigResponse", {"config": found})

    async def statistics(request: Any, context: Any) -> Any:
        given = request.name, request.version
        found = triton.statistics(repository, metrics, *given)
        return parsed("ModelStatisticsResponse", found)

    def asked(request: Any, context: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """What a request is for, its arguments for `submit`, and its parameters."""
        service = repository.get(request.model_name, request.model_version)
        arrays, rows = inputs_of(request, service.signature)
        known = {spec.name for spec in service.signature.outputs}
        wanted = {output.name for output in request.outputs}
        if unknown := wanted - known:
            bad(f"the model has no output {min(unknown)!r}: it has {sorted(known)}")
        parameters = _parameters(request.parameters)
        priority, timeout = scheduling(parameters)
        context_name = parameters.get("context", "")
        if not isinstance(context_name, str):
            bad(f"'context' must be a string, got {context_name!r}")
        left = context.time_remaining()
        if left is not None:
            timeout = max(1e-3, min(timeout or left, left))
        arguments = {
            "inputs": arrays,
            "rows": rows,
            "priority": priority,
            "timeout": timeout,
            "origin": Origin(request.id, client_name(context), context_name),
        }
        return service, arguments, parameters

    def response(
        request: Any, service: Any, found: Answer, **parameters: str | float | bool
    ) -> Any:
        of = found.provenance
        outputs, raw = [], []
        wanted = {output.name for output in request.outputs}
        for spec in service.signature.outputs:
            if wanted and spec.name not in wanted:
                continue
            array = found.outputs[spec.name]
            outputs.append(
                made(
                    "ModelInferResponse.InferOutputTensor",
                    name=spec.name,
                    datatype=spec.datatype,
                    shape=array.shape,
                )
            )
            raw.append(to_bytes(np.ascontiguousarray(array)))
        return made(
            "ModelInferResponse",
            model_name=service.config.name,
            model_version=service.versions[0] if of is None else of.version,
            id=request.id if of is None else of.id,
            parameters=written(
                ({} if of is None else provenance_parameters(of)) | parameters
            ),
            outputs=outputs,
            raw_output_contents=raw,
        )

    @asynccontextmanager
    async def accounted(request: Any, context: Any, method: str) -> AsyncIterator[Span]:
        """Counts, traces and logs a request for a prediction."""
        begun, status, words = time.monotonic(), 500, "the server failed"
        given = said(context)
        name = given.get("x-request-id", "")[:128] or request.id or secrets.token_hex(8)
        model = request.model_name if request.model_name in repository else ""
        version = repository.version(model) if model else ""
        with spans.request(
            f"{SERVICE}/{method}",
            given,
            rpc__system="grpc",
            fxflow__request_id=name,
            fxflow__model=model,
            fxflow__version=version,
        ) as span:
            try:
                yield span
                status, words = 200, ""
            except ServeError as error:
                status, words = error.status, str(error)
                raise
            except asyncio.CancelledError:
                status, words = 499, "the client went away"
                raise
            finally:
                seconds = time.monotonic() - begun
                if model:
                    metrics.request(model, status, seconds)
                code = "OK" if status == 200 else _CODES.get(status, "INTERNAL")
                span.set(rpc__grpc__status=code)
                if words:
                    span.failed(status, words)
                log_request(
                    {
                        "id": name,
                        "method": method,
                        "status": code,
                        "seconds": round(seconds, 6),
                        "client": context.peer(),
                        "model": model,
                        "version": version,
                        "trace": span.trace,
                        "error": words,
                    },
                    status,
                )

    async def infer(request: Any, context: Any) -> Any:
        async with accounted(request, context, "ModelInfer") as span:
            service, arguments, _ = asked(request, context)
            found = await service.submit(**arguments)
            span.answered(found)
            return response(request, service, found)

    async def stream(requests: Any, context: Any) -> None:
        try:
            admit(context)
        except ServeError as error:
            await refuse(context, error)
        read = reader("ModelInferRequest")

        async def put(**fields: Any) -> None:
            try:
                async with asyncio.timeout(bounds.body_timeout):
                    await context.write(made("ModelStreamInferResponse", **fields))
            except TimeoutError:
                words = f"no answer was read within {bounds.body_timeout:g} s"
                raise ServeError(words, 408) from None

        def empty(request: Any) -> Any:
            """The end of a request's answers."""
            return made(
                "ModelInferResponse",
                model_name=request.model_name,
                model_version=request.model_version,
                id=request.id,
                parameters=written({_FINAL: True}),
            )

        async def answer(request: Any, span: Span) -> None:
            service, arguments, parameters = asked(request, context)
            ends = parameters.get(_EMPTY_FINAL, False)
            if not isinstance(ends, bool):
                bad(f"{_EMPTY_FINAL!r} must be a bool_param, got {ends!r}")
            streamed, count = service.signature.streamed, 0
            try:
                async with aclosing(answers(service, **arguments)) as results:
                    async for found in results:
                        count += 1
                        final = {_FINAL: not streamed}
                        await put(
                            infer_response=response(request, service, found, **final)
                        )
            finally:
                if count:
                    span.answered(found)
                    span.set(fxflow__results=count)
            if ends and streamed:
                await put(infer_response=empty(request))

        async def answered(data: bytes) -> None:
            request = made("ModelInferRequest")
            try:
                request = read(data)
                async with accounted(request, context, "ModelStreamInfer") as span:
                    await answer(request, span)
            except ServeError as error:
                if error.status == 408:
                    raise
                # One request's error is not the end of the others.
                await put(error_message=str(error), infer_response=empty(request))

        try:
            async for data in requests:
                await answered(data)
        except ServeError as error:  # which will be read when what was sent is
            await refuse(context, error)

    async def index(request: Any, context: Any) -> Any:
        found = [
            made("RepositoryIndexResponse.ModelIndex", **entry)
            for entry in repository.index()
            if entry["state"] == "READY" or not request.ready
        ]
        return made("RepositoryIndexResponse", models=found)

    def changing(change: Callable[[str], Any], reply: str) -> Any:
        async def handle(request: Any, context: Any) -> Any:
            if not control:
                raise ServeError("this server's models are not loaded by requests", 403)
            await change(request.model_name)
            return made(reply)

        return handle

    calls = {
        "ServerLive": live,
        "ServerReady": ready,
        "ModelReady": model_ready,
        "ServerMetadata": server,
        "ModelMetadata": model,
        "ModelConfig": config,
        "ModelStatistics": statistics,
        "ModelInfer": infer,
        "RepositoryIndex": index,
        "RepositoryModelLoad": changing(repository.load, "RepositoryModelLoadResponse"),
        "RepositoryModelUnload": changing(
            repository.unload, "RepositoryModelUnloadResponse"
        ),
    }
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            guarded(handler, name),
            response_serializer=lambda message: message.SerializeToString(),
        )
        for name, handler in calls.items()
    }
    handlers["ModelStreamInfer"] = grpc.stream_stream_rpc_method_handler(
        stream,
        response_serializer=lambda message: message.SerializeToString(),
    )
    running = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", bounds.max_body),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
        ]
    )
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
