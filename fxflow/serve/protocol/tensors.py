"""Parses requests and writes answers, as JSON followed by optional binary tensors.

Everything is checked before memory is allocated for it: first the sizes in the header,
then the types against the model's signature, then the elements.
"""

from __future__ import annotations

import functools
import json
import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fxflow.errors import ServeError
from fxflow.serve.service import Prediction
from fxflow.serve.signatures import (
    DATATYPES,
    ModelSignature,
    TensorSpec,
    from_bytes,
    to_bytes,
)

Array = np.ndarray[Any, Any]
_LARGEST = 1 << 40
_CONSTANT = re.compile(rb"\b(NaN|Infinity)\b")


def _constant(name: str) -> NoReturn:
    raise ValueError(name)


_decoder = json.JSONDecoder(parse_constant=_constant)


def _plain_loads(text: bytes | memoryview, /) -> Any:
    return _decoder.decode(bytes(text).decode())


def _plain_dumps(value: Any, /) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


try:
    # A quarter of the time of `json`, as nearly all of a body is numbers.
    import orjson

    dumps: Callable[[Any], bytes] = orjson.dumps
    _loads: Callable[[bytes | memoryview], Any] = orjson.loads
except ImportError:
    dumps, _loads = _plain_dumps, _plain_loads


@dataclass(slots=True)
class InferRequest:
    """A request for a prediction.

    Attributes:
      inputs: arrays by name, checked against the signature.
      rows: number of rows.
      id: id of the request, which its answer repeats.
      outputs: name → whether to return it as binary data; empty: all outputs.
      binary: whether outputs that are not listed are binary.
      priority: smaller goes first; 0 is the default.
      timeout: the client's timeout in seconds; 0: none.
      context: the context in which a group chooses models.
    """

    inputs: dict[str, Array]
    rows: int
    id: str = ""
    outputs: dict[str, bool] = field(default_factory=dict)
    binary: bool = False
    priority: int = 0
    timeout: float = 0.0
    context: str = ""


def bad(message: str) -> NoReturn:
    """Refuses a request.

    Args:
      message: the reason.

    Raises:
      ServeError: always, with status 400.
    """
    raise ServeError(message, 400)


def parse_json(text: bytes | memoryview) -> Any:
    """Parses JSON, without NaN and infinities.

    Args:
      text: JSON in UTF-8.

    Returns:
      The value.

    Raises:
      ServeError: status 400; `text` is not JSON.
    """
    try:
        return _loads(text)
    except (ValueError, RecursionError) as error:
        if found := _CONSTANT.search(bytes(text)):
            name = found[1].decode()
            bad(f"{name} is not JSON: send such numbers as binary data")
        bad(f"the body is not JSON: {error}")


def _get(value: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    found = value.get(name, default)
    if found is None:
        return default
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        bad(f"{name!r} must be of type {kind.__name__}, got {_short(found)}")
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."


def _shape_of(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(size) is int for size in value):
        bad(f"input {name!r}: shape must be a list of integers, got {_short(value)}")
    if any(size < 0 for size in value) or math.prod(value) > _LARGEST:
        bad(f"input {name!r}: shape {_short(value)} is negative or too large")
    return tuple(value)


class _InferHeader(NamedTuple):
    """The parsed JSON of an infer request, checked against the signature.

    Attributes:
      inputs: each input's name, datatype, shape, binary size (-1: none), and entry.
      rows, id, outputs, binary, priority, timeout, context: as for `InferRequest`.
    """

    inputs: tuple[tuple[str, str, tuple[int, ...], int, dict[str, Any]], ...]
    rows: int
    id: str
    outputs: dict[str, bool]
    binary: bool
    priority: int
    timeout: float
    context: str


def parse_infer(
    body: bytes, header_length: int | None, signature: ModelSignature
) -> InferRequest:
    """Parses the body of an infer request.

    Args:
      body: JSON, followed by binary tensors.
      header_length: bytes of the JSON; None: all.
      signature: the model's signature.

    Returns:
      The request.

    Raises:
      ServeError: status 400; it is malformed or does not match the signature.
    """
    if header_length is not None and not 0 <= header_length <= len(body):
        bad(
            f"Inference-Header-Content-Length is {header_length}, but the body has "
            f"{len(body)} bytes"
        )
    split = len(body) if header_length is None else header_length
    if header_length is None or split > _SHORT_HEAD:
        head = _parse_head(body[:split], signature)
    else:
        head = _known_head(body[:split], signature)
    rest = memoryview(body)[split:]
    inputs: dict[str, Array] = {}
    for name, datatype, shape, size, entry in head.inputs:
        if size >= 0:
            if size > len(rest):
                bad(
                    f"input {name!r} has {size} binary bytes, but only {len(rest)} are "
                    "left after the header"
                )
            try:
                inputs[name] = from_bytes(rest[:size], datatype, shape)
            except ServeError as error:
                bad(f"input {name!r}: {error}")
            rest = rest[size:]
        else:
            inputs[name] = from_json(
                *(name, entry["data"], datatype, shape),
                bools=_may_have_bools(body[:split]),
                objects=signature.objects,
            )
    if len(rest):
        bad(f"{len(rest)} bytes are left after the last binary tensor")
    return InferRequest(inputs, *head[1:])


def _parse_head(text: bytes, signature: ModelSignature) -> _InferHeader:
    head = parse_json(text)
    if not isinstance(head, dict):
        bad(f"the body must be an object, got {_short(head)}")
    given = _get(head, "inputs", list, [])
    tensors: dict[str, tuple[str, tuple[int, ...]]] = {}
    entries: dict[str, dict[str, Any]] = {}
    for entry in given:
        if not isinstance(entry, dict):
            bad(f"an input must be an object, got {_short(entry)}")
        name = _get(entry, "name", str, "")
        datatype = _get(entry, "datatype", str, "")
        if datatype not in DATATYPES:
            bad(f"input {name!r}: unknown datatype {datatype!r}")
        if name in tensors:
            bad(f"input {name!r} is given twice")
        tensors[name] = datatype, _shape_of(name, entry.get("shape"))
        entries[name] = entry
    rows = signature.check_types(tensors)
    inputs = []
    for name, entry in entries.items():
        size = _get(_get(entry, "parameters", dict, {}), "binary_data_size", int, -1)
        if size >= 0 and "data" in entry:
            bad(f"input {name!r} has both 'data' and 'binary_data_size'")
        if size < 0 and "data" not in entry:
            bad(f"input {name!r} has neither 'data' nor 'binary_data_size'")
        inputs.append((name, *tensors[name], size, entry))
    parameters = _get(head, "parameters", dict, {})
    outputs: dict[str, bool] = {}
    binary = _get(parameters, "binary_data_output", bool, False)
    for entry in _get(head, "outputs", list, []):
        if not isinstance(entry, dict):
            bad(f"an output must be an object, got {_short(entry)}")
        name = _get(entry, "name", str, "")
        check_output(name, signature)
        options = _get(entry, "parameters", dict, {})
        if options.get("classification"):
            bad("'classification' is not supported: request the output itself")
        outputs[name] = _get(options, "binary_data", bool, binary)
    priority, timeout = scheduling(parameters)
    return _InferHeader(
        tuple(inputs),
        rows,
        _get(head, "id", str, ""),
        outputs,
        binary,
        priority,
        timeout,
        _get(parameters, "context", str, ""),
    )


#: Most bytes of a JSON header to cache: clients that send binary tensors without an id
#: repeat the same header.
_SHORT_HEAD = 1024
_known_head = functools.lru_cache(maxsize=512)(_parse_head)


def check_output(name: str, signature: ModelSignature) -> None:
    """Checks that a model has an output.

    Args:
      name: name of the output.
      signature: the model's signature.

    Raises:
      ServeError: status 400; there is no such output.
    """
    known = sorted(spec.name for spec in signature.outputs)
    if name not in known:
        listed = ", ".join(map(repr, known))
        bad(f"the model has no output {name!r}: its outputs are {listed}")


def scheduling(parameters: Mapping[str, Any]) -> tuple[int, float]:
    """Returns the priority and the timeout among a request's parameters.

    Args:
      parameters: Triton's ``priority`` (1 is the most urgent, 0 the default) and
        ``timeout`` in microseconds.

    Returns:
      The priority, where smaller goes first and 0 is the default, and the timeout in
      seconds (0: none).

    Raises:
      ServeError: status 400; one of them is out of range.
    """
    priority = _get(parameters, "priority", int, 0)
    timeout = _get(parameters, "timeout", int, 0)
    if not 0 <= priority <= 9:
        bad(
            f"'priority' must be 1 (urgent) to 9, or 0 for the default, 5; got "
            f"{priority}"
        )
    if timeout < 0:
        bad(f"'timeout' must be microseconds, got {timeout}")
    return (priority or 5) - 5, timeout / 1e6


def _flat(name: str, value: Any, depth: int) -> list[Any]:
    if not isinstance(value, list):
        bad(f"input {name!r}: data must be a list, got {_short(value)}")
    for _ in range(depth):
        if not value or not isinstance(value[0], list):
            break
        flat: list[Any] = []
        for part in value:
            if not isinstance(part, list) or len(part) != len(value[0]):
                bad(f"input {name!r}: lists in data have different lengths")
            flat += part
        value = flat
    found: list[Any] = value
    return found


def _may_have_bools(text: bytes | memoryview) -> bool:
    """Returns whether JSON may have `true` or `false`: numbers have no r and no l.

    Finding a single byte takes a tenth of the time of finding a word.
    """
    return b"r" in text or b"l" in text


def _is_finite(array: Array) -> bool:
    # `all` takes longer than `isfinite`.
    return bool(np.count_nonzero(np.isfinite(array)) == array.size)


def _check_kinds(name: str, flat: list[Any], datatype: str, allowed: set[type]) -> None:
    if not set(map(type, flat)) <= allowed:
        wrong = next(x for x in flat if type(x) not in allowed)
        bad(f"input {name!r} is {datatype}, but has an element {_short(wrong)}")


def from_json(
    name: str,
    data: Any,
    datatype: str,
    shape: tuple[int, ...],
    *,
    bools: bool = True,
    objects: bool = False,
) -> Array:
    """Converts a flat or nested list from JSON to a tensor.

    Args:
      name: name of the tensor, for errors.
      data: parsed JSON.
      datatype: a datatype of the protocol.
      shape: the tensor's shape.
      bools: whether `data` may have bools; if not, floats are packed without checking
        each type, which doubles the time.
      objects: whether an object may stand for its text, in a tensor of strings.

    Returns:
      An array.

    Raises:
      ServeError: status 400; the number of elements, or an element's type or range, is
        wrong.

    Example:
      >>> from_json("x", [[1, 2], [3, 4]], "FP32", (2, 2)).tolist()
      [[1.0, 2.0], [3.0, 4.0]]
    """
    if not shape and not isinstance(data, list):
        data = [data]
    flat = _flat(name, data, len(shape))
    if len(flat) != math.prod(shape):
        bad(f"input {name!r} has {len(flat)} elements, but shape {list(shape)}")
    dtype = DATATYPES[datatype][1]
    allowed: set[type] = {int}
    if datatype == "BYTES":
        allowed = {str}
        if objects:
            flat = [dumps(x).decode() if type(x) is dict else x for x in flat]
    elif datatype == "BOOL":
        allowed = {bool}
    elif dtype.kind not in "iu":
        allowed = {int, float}
    if bools or float not in allowed:
        _check_kinds(name, flat, datatype, allowed)
    if datatype == "BYTES":
        strings = np.empty(len(flat), object)
        try:
            strings[:] = [text.encode() for text in flat]
        except UnicodeEncodeError:
            bad(f"input {name!r} has a lone surrogate, which UTF-8 cannot encode")
        return strings.reshape(shape)
    try:
        if float in allowed:
            # A third of the time of NumPy, which checks each element's type.
            code = "f" if datatype == "FP32" else "d"
            array = np.frombuffer(struct.pack(f"{len(flat)}{code}", *flat), code)
            if array.dtype != dtype:
                with np.errstate(over="ignore"):
                    array = array.astype(dtype)
            if not _is_finite(array):
                raise OverflowError
        else:
            array = np.array(flat, dtype)
    except (OverflowError, ValueError, struct.error):
        _check_kinds(name, flat, datatype, allowed)
        bad(f"input {name!r} has an element that {datatype} cannot hold")
    return array.reshape(shape)


def to_json(spec: TensorSpec, array: Array) -> list[Any]:
    """Returns a tensor as a flat list for JSON.

    Args:
      spec: specification of the output.
      array: its value.

    Returns:
      The elements.

    Raises:
      ServeError: status 422; JSON cannot represent an element.
    """
    if spec.datatype == "BYTES":
        try:
            return [bytes(item).decode() for item in array.ravel()]
        except UnicodeDecodeError:
            raise ServeError(
                f"output {spec.name!r} is not valid UTF-8: request it as binary data",
                422,
            ) from None
    if spec.datatype == "BF16":
        array = array.astype(np.float32)
    if array.dtype.kind == "f" and not _is_finite(array):
        raise ServeError(
            f"output {spec.name!r} is not finite, which JSON cannot represent: request "
            "it as binary data",
            422,
        )
    found: list[Any] = array.ravel().tolist()
    return found


def write_infer(
    request: InferRequest,
    outputs: Mapping[str, Array],
    signature: ModelSignature,
    model: str,
    version: str,
    parameters: Mapping[str, Any] | None = None,
) -> tuple[bytes, int | None]:
    """Returns the body of an answer.

    Args:
      request: the request.
      outputs: arrays by name.
      signature: the model's signature.
      model, version: name and version of the model.
      parameters: parameters of the answer.

    Returns:
      The body, and the bytes of its JSON if binary tensors follow.

    Raises:
      ServeError: status 422; JSON cannot represent an output.
    """
    entries, tail = [], []
    for spec in signature.outputs:
        if request.outputs and spec.name not in request.outputs:
            continue
        array = outputs[spec.name]
        entry: dict[str, Any] = {
            "name": spec.name,
            "datatype": spec.datatype,
            "shape": list(array.shape),
        }
        if request.outputs.get(spec.name, request.binary):
            data = to_bytes(array)
            entry["parameters"] = {"binary_data_size": len(data)}
            tail.append(data)
        else:
            entry["data"] = to_json(spec, array)
        entries.append(entry)
    head: dict[str, Any] = {"model_name": model, "model_version": version}
    if request.id:
        head["id"] = request.id
    if parameters:
        head["parameters"] = dict(parameters)
    text = dumps(head | {"outputs": entries})
    return b"".join([text, *tail]), len(text) if tail else None


def parse_plain(body: bytes, signature: ModelSignature) -> InferRequest:
    """Parses the body of the plain route.

    Args:
      body: an object of nested lists by input; for a single input, only the lists.
      signature: the model's signature, which determines the datatypes.

    Returns:
      The request.

    Raises:
      ServeError: status 400; the body does not match the signature.
    """
    return plain_inputs(parse_json(body), signature, bools=_may_have_bools(body))


def plain_inputs(
    value: Any, signature: ModelSignature, *, bools: bool = True
) -> InferRequest:
    """Converts the JSON of the plain route to a request.

    Args:
      value: an object of nested lists by input; for a single input, only the lists.
      signature: the model's signature, which determines the datatypes.
      bools: as for `from_json`.

    Returns:
      The request.

    Raises:
      ServeError: status 400; `value` does not match the signature.
    """
    if not isinstance(value, dict):
        if len(signature.inputs) != 1:
            names = ", ".join(repr(spec.name) for spec in signature.inputs)
            bad(f"the body must be an object with {names}")
        value = {signature.inputs[0].name: value}
    specs = {spec.name: spec for spec in signature.inputs}
    tensors: dict[str, tuple[str, tuple[int, ...]]] = {}
    for name, data in value.items():
        shape: list[int] = []
        at = data
        while isinstance(at, list) and len(shape) < 32:
            shape.append(len(at))
            at = at[0] if at else None
        datatype = specs[name].datatype if name in specs else ""
        tensors[name] = datatype, tuple(shape)
    rows = signature.check_types(tensors)
    inputs = {
        name: from_json(
            *(name, value[name], *tensors[name]), bools=bools, objects=signature.objects
        )
        for name in tensors
    }
    return InferRequest(inputs, rows)


def parse_generate(body: bytes, signature: ModelSignature) -> InferRequest:
    """Parses the body of Triton's generate extension.

    Args:
      body: an object of inputs by name, some of which may be in its ``parameters``. If
        lists are nested less deeply than an input has axes, leading axes of size 1 are
        added.
      signature: the model's signature.

    Returns:
      The request.

    Raises:
      ServeError: status 400; the body does not match the signature.
    """
    value = parse_json(body)
    if not isinstance(value, dict):
        bad(f"the body must be an object, got {_short(value)}")
    axes = {spec.name: len(spec.shape) for spec in signature.inputs}
    given: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for name, item in (
        *((k, v) for k, v in value.items() if k != "parameters"),
        *_get(value, "parameters", dict, {}).items(),
    ):
        if name in given:
            bad(f"{name!r} is given twice")
        (given if name in axes else options)[name] = item
    known = {"id", "priority", "timeout", "context"}
    if unknown := options.keys() - known:
        bad(
            f"the model has no input or parameter {min(unknown)!r}: its inputs are "
            f"{', '.join(map(repr, axes))}"
        )
    for name, item in given.items():
        depth, at = 0, item
        while isinstance(at, list) and depth < axes[name]:
            depth, at = depth + 1, at[0] if at else None
        for _ in range(axes[name] - depth):
            item = [item]
        given[name] = item
    request = plain_inputs(given, signature, bools=_may_have_bools(body))
    request.priority, request.timeout = scheduling(options)
    request.id = _get(options, "id", str, "")
    request.context = _get(options, "context", str, "")
    return request


def write_generate(
    outputs: Mapping[str, Array],
    signature: ModelSignature,
    model: str,
    version: str,
    id: str = "",
) -> dict[str, Any]:
    """Returns a result in the format of Triton's generate extension.

    Args:
      outputs: arrays by name.
      signature: the model's signature.
      model, version: name and version of the model.
      id: the request's id, or empty.

    Returns:
      Outputs by name: a single element, or a flat list of several.

    Raises:
      ServeError: status 422; JSON cannot represent an output.
    """
    found: dict[str, Any] = {"model_name": model, "model_version": version}
    if id:
        found["id"] = id
    for spec in signature.outputs:
        flat = to_json(spec, outputs[spec.name])
        found[spec.name] = flat[0] if len(flat) == 1 else flat
    return found


def answer_parameters(answer: Prediction) -> dict[str, Any]:
    """Returns an answer's provenance and age as parameters of the protocol.

    Args:
      answer: the answer.

    Returns:
      Strings and numbers by name; ``confidence`` is the minimum over all rows.
    """
    found: dict[str, Any] = {}
    if answer.age is not None:
        found["table_age"] = round(answer.age, 3)
    if (of := answer.provenance) is None:
        return found
    found["models"] = ",".join(of.models)
    if of.late:
        found["late"] = ",".join(of.late)
    if of.confidence is not None:
        found["confidence"] = round(float(of.confidence.min(initial=1.0)), 6)
    return found


def parse_feedback(body: bytes, signature: ModelSignature) -> dict[str, Any]:
    """Parses the body of feedback.

    Args:
      body: an object with ``id`` or ``inputs``, with ``label``, ``loss`` or
        ``losses``, and optionally with ``context``.
      signature: the models' signature.

    Returns:
      Arguments for `Selector.feedback`.

    Raises:
      ServeError: status 400; a member is unknown or has the wrong type.
    """
    value = parse_json(body)
    if not isinstance(value, dict):
        bad(f"the body must be an object, got {_short(value)}")
    known = {"id", "inputs", "label", "loss", "losses", "context"}
    if unknown := value.keys() - known:
        bad(
            f"feedback has no member {min(unknown)!r}; members: "
            f"{', '.join(sorted(known))}"
        )
    found = {k: v for k, v in value.items() if v is not None}
    for name, kind in (("id", str), ("context", str), ("losses", dict)):
        _get(found, name, kind, None)
    if "inputs" in found:
        parsed = plain_inputs(found["inputs"], signature)
        found |= {"inputs": parsed.inputs, "rows": parsed.rows}
    return found


def write_plain(
    outputs: Mapping[str, Array], signature: ModelSignature
) -> dict[str, list[Any]]:
    """Returns the answer of the plain route.

    Args:
      outputs: arrays by name.
      signature: the model's signature.

    Returns:
      Nested lists by output.

    Raises:
      ServeError: status 422; JSON cannot represent an output.
    """
    found = {}
    for spec in signature.outputs:
        flat = to_json(spec, outputs[spec.name])
        nested = np.empty(len(flat), object)
        nested[:] = flat
        found[spec.name] = nested.reshape(outputs[spec.name].shape).tolist()
    return found
