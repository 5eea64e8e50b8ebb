"""Encodes messages as frames or bytes, and decodes them; no I/O, and no pickle.

A message has a kind from a fixed table, three numbers (worker, sequence number, epoch
of the view; 0 if unused), fields, and arrays. The fields of most kinds are a
`NamedTuple` (`fields_of`), whose types are checked; those of other kinds a dictionary.
The frames are:

- frame 0: mark, version, kind, the three numbers, the length of a text; then the text,
  as JSON: ``[fields, [[name, dtype, shape], ...]]``, or empty if there are neither. A
  `NamedTuple` becomes a list;
- other frames: the elements of all arrays, in C order, one array after another. The
  sender chooses the frame boundaries: `encode` splits large arrays into chunks without
  copying them, and joins small ones.

A stream carries the same bytes one after another: the header and the description
determine where a message ends.

A socket may deliver any bytes. `decode` and `Incoming` check the whole description
before they allocate memory, and either return a message or raise `MessageError`.
"""

from __future__ import annotations

import functools
import json
import math
import operator
import struct
import types
import typing
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.devices.buffers import aligned_empty
from fxflow.errors import MessageError

#: The version of the format and of all fields; change it with any type of `fields_of`.
#: Messages of another version are refused with an error that names both versions.
VERSION = 9

#: The kinds of messages. A kind's number is its position, so only append to them.
# fmt: off
KINDS = (
    "hello", "welcome", "refuse", "error", "ping", "pong", "heartbeat", "leave",
    "model", "model_ok", "pull", "params", "push", "ack", "pull_rows", "rows",
    "push_rows", "entry", "entry_ok", "view", "vote", "vote_ok", "cut", "cut_ok",
    "stats", "stats_ok", "snapshot", "snapshot_ok", "state", "join", "joined", "read",
    "prepare", "promise", "trace", "trace_ok", "enlist", "enlisted", "control", "alive",
    "memory", "placed", "meet", "register", "registered", "run", "value", "want",
    "done", "failed", "stop", "free", "fetch", "fetched", "doing", "doing_ok", "renew",
    "hold", "describe", "described", "read_params", "restart", "restart_ok",
    "save", "saved", "plan", "planned",
)
# fmt: on

#: Bytes of a chunk; see `benchmarks/parameter_server/transport.py`.
CHUNK = 2 << 20
#: Arrays of at most this many bytes share a frame with their neighbors.
SMALL = 32 << 10

#: Arrays of at most this many bytes per message need not be aligned: a copy of them
#: costs nothing.
_TINY = 512

_MARK = b"fxfm"
_HEAD = struct.Struct("!4sBBQQQI")
_NUMBERS = {kind: number for number, kind in enumerate(KINDS, 1)}
_DTYPES = {dtype.name: dtype for dtype in dtypes.ALL}
_DTYPE_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
#: XLA's programs have at most this many axes; NumPy allows more.
_MOST_AXES = 32
#: The deepest nesting of lists and dictionaries in the text.
_MOST_DEPTH = 32
_MOST_UINT64 = (1 << 64) - 1
#: The most elements of an array, not counting axes of length 0.
_MOST_ELEMENTS = 1 << 48

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One message.

    Attributes:
      kind: one of `KINDS`.
      worker: the number of the worker that sends or receives it.
      sequence: the worker's number of the message.
      epoch: the epoch of the view in which it was sent.
      fields: an instance of the kind's type (`fields_of`), or else a dictionary of JSON
        values: strings as keys, no tuples, no NaN.
      arrays: NumPy arrays by name; read-only in a decoded message.
    """

    kind: str
    worker: int = 0
    sequence: int = 0
    epoch: int = 0
    fields: Any = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)

    @staticmethod
    def of(
        fields: Any,
        worker: int = 0,
        sequence: int = 0,
        epoch: int = 0,
        arrays: dict[str, Array] | None = None,
    ) -> Message:
        """Returns a message; the type of its fields determines its kind."""
        kind = _KINDS[type(fields)]
        return Message(kind, worker, sequence, epoch, fields, arrays or {})


T = TypeVar("T", bound=type)
_TYPES: dict[str, type] = {}
_KINDS: dict[type, str] = {}


def fields_of(kind: str) -> Callable[[T], T]:
    """Returns a decorator that makes a `NamedTuple` the fields' type of a kind.

    Args:
      kind: one of `KINDS`.
    """

    def register(cls: T) -> T:
        assert kind in _NUMBERS and kind not in _TYPES, kind
        _TYPES[kind], _KINDS[cls] = cls, kind
        return cls

    return register


class Limits(NamedTuple):
    """The largest message that is encoded or decoded.

    Attributes:
      text: bytes of the fields and the arrays' description. Longer texts, such as
        programs, travel as arrays of bytes.
      arrays: the number of arrays.
      size: bytes of all arrays together.
    """

    text: int = 1 << 20
    arrays: int = 1 << 14
    size: int = 1 << 36


LIMITS = Limits()


# -- encoding --------------------------------------------------------------------------


def encode(
    message: Message, *, limits: Limits = LIMITS, chunk: int = CHUNK
) -> list[bytes | memoryview]:
    """Returns a message as frames.

    Args:
      message: the message. The frames refer to its large arrays, which must not change
        until they are sent.
      limits: the receiver's limits.
      chunk: the most bytes in a frame of elements.

    Returns:
      Frame 0 and the frames of the elements.

    Raises:
      MessageError: the kind is unknown, a number is negative or too large, JSON cannot
        represent the fields, XLA lacks an array's dtype, or the message is too large.
    """
    if message.kind not in _NUMBERS:
        raise MessageError("kind", f"there is no message {message.kind!r}: {_kinds()}")
    text = b""
    if message.kind in _TYPES and type(message.fields) is not _TYPES[message.kind]:
        raise MessageError(
            "text", f"message {message.kind!r} has the fields {message.fields!r:.200}"
        )
    if message.fields or message.arrays:
        described = [
            [name, _name_of(name, array), array.shape]
            for name, array in message.arrays.items()
        ]
        try:
            text = _ENCODER.encode([message.fields, described]).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise MessageError(
                "text",
                f"the fields of a message {message.kind!r} must be JSON values "
                f"({error}); got {message.fields!r:.200}",
            ) from None
    _check_text(len(text), limits)
    _check_count(len(message.arrays), limits)
    _check_size(sum(array.nbytes for array in message.arrays.values()), limits)
    try:
        head = _HEAD.pack(
            _MARK,
            VERSION,
            _NUMBERS[message.kind],
            message.worker,
            message.sequence,
            message.epoch,
            len(text),
        )
    except struct.error:
        raise MessageError(
            "size",
            f"worker, sequence and epoch must be integers from 0 to {_MOST_UINT64}; "
            f"got {message.worker!r}, {message.sequence!r} and {message.epoch!r}",
        ) from None
    return [head + text, *_frames(message.arrays.values(), chunk)]


class Template:
    """Encodes messages that differ in their numbers and their elements only.

    Args:
      message: one of them.
      limits: the receiver's limits.

    Raises:
      MessageError: it cannot be encoded.

    Example:
      >>> template = Template(Message("control", arrays={"x": np.zeros(2)}))
      >>> data = b"".join(template.encode(7, [np.ones(2)]))
      >>> (message,) = Incoming().feed(data)
      >>> message.sequence, message.arrays["x"].tolist()
      (7, [1.0, 1.0])
    """

    def __init__(self, message: Message, *, limits: Limits = LIMITS) -> None:
        first = bytes(encode(message, limits=limits)[0])
        self._worker, self._epoch = message.worker, message.epoch
        self._number, self._text = _NUMBERS[message.kind], first[_HEAD.size :]

    def encode(
        self, sequence: int, arrays: Sequence[Array], *, chunk: int = CHUNK
    ) -> list[bytes | memoryview]:
        """Returns a message as frames of a stream.

        Args:
          sequence: its number.
          arrays: of the dtypes and shapes of the first message's, in their order.
          chunk: the most bytes in a frame of elements.
        """
        head = _HEAD.pack(
            _MARK,
            VERSION,
            self._number,
            self._worker,
            sequence,
            self._epoch,
            len(self._text),
        )
        if sum(array.nbytes for array in arrays) <= SMALL:
            elements = [array.tobytes() for array in arrays]
            return [b"".join([head, self._text, *elements])]
        return [head + self._text, *_frames(arrays, chunk)]


class Templates:
    """Encodes messages that occur again and again: a `Template` for each form."""

    def __init__(self) -> None:
        self._known: dict[Any, Template] = {}

    def encode(
        self,
        key: Any,
        fields: Any,
        worker: int,
        sequence: int,
        arrays: dict[str, Array],
    ) -> list[bytes | memoryview]:
        """Returns a message as frames of a stream; see `Message.of`.

        Args:
          key: of the form: equal only for messages that differ at most in `sequence`
            and in the elements of the arrays.
          fields, worker, sequence, arrays: of the message.
        """
        template = self._known.get(key)
        if template is None:
            template = Template(Message.of(fields, worker, arrays=arrays))
            self._known[key] = template
        return template.encode(sequence, [*arrays.values()])


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _frames(arrays: Any, chunk: int) -> Iterator[bytes | memoryview]:
    joined: list[memoryview] = []
    waiting = 0
    for array in arrays:
        if not array.nbytes:
            continue
        # As bytes: memoryview has no format for the small floats of ml_dtypes.
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        if flat.nbytes <= SMALL:
            if waiting + flat.nbytes > chunk and joined:
                yield b"".join(joined)
                joined, waiting = [], 0
            joined.append(flat)
            waiting += flat.nbytes
            continue
        if joined:
            yield b"".join(joined)
            joined, waiting = [], 0
        for start in range(0, flat.nbytes, chunk):
            yield flat[start : start + chunk]
    if joined:
        yield b"".join(joined)


def _name_of(name: str, array: Array) -> str:
    found = _DTYPE_NAMES.get(array.dtype)
    if found is None:
        raise MessageError(
            "arrays",
            f"array {name!r} has dtype {array.dtype}, which XLA does not have",
        )
    return found


# -- decoding --------------------------------------------------------------------------


def decode(frames: Sequence[bytes | memoryview], *, limits: Limits = LIMITS) -> Message:
    """Decodes a message from frames.

    Args:
      frames: frames that `encode` made, or any other bytes.
      limits: the largest message allowed.

    Returns:
      The message. Its arrays are read-only. A large array that has a frame for itself
      is a view of the frame. Others are joined in new memory, aligned to 64 bytes so
      that the CPU's runtime can use it without another copy.

    Raises:
      MessageError: the frames are not a message of this version, or exceed `limits`.
    """
    if not frames:
        raise MessageError("mark", "a message has at least one frame; got none")
    first, body = frames[0], frames[1:]
    kind, worker, sequence, epoch, length = _read_head(first, limits)
    if len(first) != _HEAD.size + length:
        raise MessageError(
            "text",
            f"frame 0 has {len(first)} bytes, but by its header {_HEAD.size + length}",
        )
    fields, plan = _read_text(kind, bytes(first[_HEAD.size :]), limits)
    given = 0
    for frame in body:
        if not len(frame):
            raise MessageError("size", "a frame of elements is empty")
        given += len(frame)
    _check_size(given, limits)
    if (wanted := sum(part.nbytes for part in plan)) != given:
        raise MessageError(
            "size",
            f"the arrays take {wanted} bytes, the frames of elements have {given}",
        )
    return Message(kind, worker, sequence, epoch, fields, _arrays(plan, body))


class Incoming:
    """Decodes the messages of a stream, from pieces of any size.

    Args:
      limits: the largest message allowed.

    Attributes:
      missing: memory for the next bytes of the stream, never empty. A transport may
        read into it, then call `advance`.
      idle: whether no message is incomplete.

    Example:
      >>> data = b"".join(encode(Message("ping")) + encode(Message("control")))
      >>> incoming = Incoming()
      >>> [message.kind for message in incoming.feed(data)]
      ['ping', 'control']
    """

    missing: memoryview
    idle: bool

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._begin()

    def _begin(self) -> None:
        self._parts = _parts(self._limits)
        self.missing = next(self._parts)
        self.idle = True

    def advance(self, count: int) -> Message | None:
        """Records that the first bytes of `missing` were filled.

        Args:
          count: the number of bytes.

        Returns:
          The message that ends with them, or None.

        Raises:
          MessageError: the bytes are not part of a message within the limits.
        """
        self.idle = False
        self.missing = self.missing[count:]
        if self.missing:
            return None
        try:
            self.missing = next(self._parts)
        except StopIteration as end:
            self._begin()
            message: Message = end.value
            return message
        return None

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[Message]:
        """Yields the messages that the next bytes of the stream complete.

        Raises:
          MessageError: the bytes are not part of a message within the limits.
        """
        rest = memoryview(data)
        while rest:
            if self.idle and (whole := _small(rest, self._limits)):
                message, count = whole
                yield message
                rest = rest[count:]
                continue
            count = min(len(rest), len(self.missing))
            self.missing[:count] = rest[:count]
            rest = rest[count:]
            if (ended := self.advance(count)) is not None:
                yield ended


def _small(data: memoryview, limits: Limits) -> tuple[Message, int] | None:
    """Returns the message at the beginning of `data`, and its length.

    Returns None if the message is incomplete or large. Most messages are small, and for
    them this takes half the time of `_parts`.
    """
    if len(data) < _HEAD.size:
        return None
    kind, worker, sequence, epoch, length = _read_head(data, limits)
    end = _HEAD.size + length
    if len(data) < end:
        return None
    fields, plan = _read_text(kind, bytes(data[_HEAD.size : end]), limits)
    if not plan:
        return Message(kind, worker, sequence, epoch, fields), end
    size = sum(part.nbytes for part in plan)
    if size > _TINY or len(data) < end + size:
        return None
    arrays = _arrays(plan, [data[end : end + size]] if size else [])
    return Message(kind, worker, sequence, epoch, fields, arrays), end + size


def _parts(limits: Limits) -> Generator[memoryview, None, Message]:
    """Yields memory to fill with each part of a message; returns the message."""
    first = bytearray(_HEAD.size)
    yield memoryview(first)
    kind, worker, sequence, epoch, length = _read_head(first, limits)
    text = bytearray(length)
    if text:
        yield memoryview(text)
    fields, plan = _read_text(kind, bytes(text), limits)
    _check_size(sum(part.nbytes for part in plan), limits)
    arrays = {}
    for part in plan:
        flat = aligned_empty((part.nbytes,), np.uint8)
        if part.nbytes:
            yield flat.data
        arrays[part.name] = _finished(flat.view(part.dtype), part)
    return Message(kind, worker, sequence, epoch, fields, arrays)


def _read_head(
    first: bytes | bytearray | memoryview, limits: Limits
) -> tuple[str, int, int, int, int]:
    """Returns kind, worker, sequence, epoch, and the length of the text."""
    if len(first) < _HEAD.size or bytes(first[: len(_MARK)]) != _MARK:
        raise MessageError(
            "mark",
            f"{len(first)} bytes, which do not begin with {_MARK!r} and a header, are "
            "not a message of fxflow",
        )
    _, version, number, worker, sequence, epoch, length = _HEAD.unpack_from(first)
    if version != VERSION:
        raise MessageError(
            "version",
            f"the peer uses version {version} of the format, this process version "
            f"{VERSION}: install the same fxflow in all processes of the run",
        )
    if not 0 < number <= len(KINDS):
        raise MessageError("kind", f"there is no message number {number}: {_kinds()}")
    _check_text(length, limits)
    return KINDS[number - 1], worker, sequence, epoch, length


def _read_text(kind: str, text: bytes, limits: Limits) -> tuple[Any, list[_Part]]:
    known = _KNOWN.get((kind, text, limits))
    if known is not None:
        return known
    nothing: Any = [] if kind in _TYPES else {}
    fields, described = _parse(text) if text else (nothing, [])
    found = typed(kind, fields), _plan(described, limits)
    # Messages that differ in their numbers and elements only are many.
    if (
        len(text) <= _SHORT
        and kind in _TYPES
        and all(type(value) is int for value in fields)
    ):
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[kind, text, limits] = found
    return found


#: Texts that were read, with fields that are numbers, so that they cannot be changed.
_KNOWN: dict[tuple[str, bytes, Limits], tuple[Any, list[_Part]]] = {}
_MOST_KNOWN, _SHORT = 4096, 256


class _Part(NamedTuple):
    """The description of an array, before memory is allocated."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    nbytes: int


def _parse(data: bytes) -> tuple[dict[str, Any] | list[Any], list[Any]]:
    try:
        text = data.decode()
        if text.count("[") + text.count("{") > _MOST_DEPTH:
            _check_depth(text)
        value = _DECODER.decode(text)
        if "\\u" in text:
            # A string with half a surrogate pair cannot be encoded.
            _ENCODER.encode(value).encode()
    except (ValueError, RecursionError) as error:
        if isinstance(error, MessageError):
            raise
        raise MessageError(
            "text", f"the text is not the JSON of a message: {error}"
        ) from None
    if not (
        type(value) is list
        and len(value) == 2
        and type(value[0]) in (dict, list)
        and type(value[1]) is list
    ):
        raise MessageError(
            "text", "the text must hold fields and descriptions of arrays"
        )
    return value[0], value[1]


def typed(kind: str, fields: Any) -> Any:
    """Returns a message's fields in the type of its kind, after checking them.

    Args:
      kind: the message's kind.
      fields: the fields from JSON: a list if the kind has a type, else a dictionary.

    Raises:
      MessageError: the fields do not fit the type.
    """
    cls = _TYPES.get(kind)
    if cls is None:
        if type(fields) is dict:
            return fields
    elif type(fields) is list:
        kinds = cls, *map(type, fields)
        if kinds in _FITTING:
            return cls(*fields)
        checks = _checks(cls)
        fits = len(fields) == len(checks)
        if fits and all(map(operator.call, checks, fields)):
            if list not in kinds and dict not in kinds:
                _FITTING.add(kinds)
            return cls(*fields)
    raise MessageError("text", f"message {kind!r} has the fields {fields!r:.200}")


#: Tuples of a fields' type and its values' types that are known to fit.
_FITTING: set[tuple[type, ...]] = set()


@functools.cache
def _checks(cls: type) -> list[Callable[[Any], bool]]:
    """Returns a function for each field of a `NamedTuple` that checks its value."""
    return list(map(_check_of, typing.get_type_hints(cls).values()))


def _check_of(hint: Any) -> Callable[[Any], bool]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return lambda value: True
    if origin is types.UnionType:
        either = [*map(_check_of, arguments)]
        return lambda value: any(check(value) for check in either)
    if origin is list:
        item = _check_of(arguments[0])
        return lambda value: type(value) is list and all(map(item, value))
    if origin is dict:  # JSON's keys are strings
        item = _check_of(arguments[1])
        return lambda value: type(value) is dict and all(map(item, value.values()))
    if hint is float:
        return lambda value: type(value) is float or type(value) is int
    return lambda value: type(value) is hint


def _check_depth(text: str) -> None:
    """Checks the nesting of brackets outside strings; the decoder checks the rest."""
    depth, quoted, escaped = 0, False, False
    for char in text:
        if quoted:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                quoted = False
        elif char == '"':
            quoted = True
        elif char in "[{":
            depth += 1
            if depth > _MOST_DEPTH:
                raise MessageError("text", f"it is nested more than {_MOST_DEPTH} deep")
        elif char in "]}":
            depth -= 1


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text:.40} is too large")
    return number


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


_DECODER = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_float=_finite, parse_constant=_no_constant
)


def _plan(described: list[Any], limits: Limits) -> list[_Part]:
    _check_count(len(described), limits)
    plan, names = [], set()
    for one in described:
        if type(one) is not list or len(one) != 3:
            raise MessageError(
                "arrays", "an array is described by name, dtype and shape"
            )
        name, dtype_name, shape = one
        if type(name) is not str or name in names:
            raise MessageError("arrays", f"array {name!r:.80}: not a distinct name")
        names.add(name)
        dtype = _DTYPES.get(dtype_name) if type(dtype_name) is str else None
        if dtype is None:
            raise MessageError(
                "arrays", f"array {name!r:.80}: not a dtype of XLA: {dtype_name!r:.80}"
            )
        count = _count(shape)
        if count is None:
            raise MessageError(
                "arrays", f"array {name!r:.80}: not a shape: {shape!r:.80}"
            )
        plan.append(_Part(name, dtype, tuple(shape), count * dtype.itemsize))
    return plan


def _count(shape: Any) -> int | None:
    """Returns the number of elements of a shape; None if it is not a shape."""
    if type(shape) is not list or len(shape) > _MOST_AXES:
        return None
    count, bound = 1, 1
    for length in shape:
        if type(length) is not int or length < 0:
            return None
        count *= length
        # NumPy also multiplies the axes other than those of length 0.
        bound *= length or 1
        if bound > _MOST_ELEMENTS:
            return None
    return count


def _arrays(plan: list[_Part], body: Sequence[bytes | memoryview]) -> dict[str, Array]:
    arrays = {}
    index, offset = 0, 0  # the frame to read next, and the position in it
    for part in plan:
        name, dtype, _, nbytes = part
        left = len(body[index]) - offset if nbytes else 0
        if nbytes > left:
            flat = aligned_empty((nbytes,), np.uint8)
            start = 0
            while start < nbytes:
                frame = body[index]
                count = min(nbytes - start, len(frame) - offset)
                chunk = np.frombuffer(frame, np.uint8, count, offset)
                flat[start : start + count] = chunk
                start += count
                offset += count
                if offset == len(frame):
                    index, offset = index + 1, 0
            array = flat.view(dtype)
        elif nbytes:
            array = np.frombuffer(body[index], dtype, nbytes // dtype.itemsize, offset)
            if nbytes <= SMALL or offset or nbytes < left or not array.flags.aligned:
                # A copy is aligned, and does not keep a larger frame alive.
                array = array.copy()
            offset += nbytes
            if nbytes == left:
                index, offset = index + 1, 0
        else:
            array = np.empty(0, dtype)
        arrays[name] = _finished(array, part)
    return arrays


def _finished(array: Array, part: _Part) -> Array:
    """Returns a message's array from its elements, checked and read-only."""
    if part.dtype is dtypes.bool_ and part.nbytes and array.view(np.uint8).max() > 1:
        raise MessageError("arrays", f"array {part.name!r:.80}: booleans are 0 or 1")
    array = array.reshape(part.shape)
    array.flags.writeable = False
    return array


# -- limits ----------------------------------------------------------------------------


def _check_text(length: int, limits: Limits) -> None:
    if length > limits.text:
        raise MessageError(
            "text",
            f"the text has {length} bytes, at most {limits.text} are allowed: long "
            "texts travel as arrays of bytes",
        )


def _check_count(count: int, limits: Limits) -> None:
    if count > limits.arrays:
        raise MessageError(
            "arrays",
            f"{count} arrays in a message, at most {limits.arrays} are allowed",
        )


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.size:
        raise MessageError(
            "size", f"the arrays have {size} bytes, at most {limits.size} are allowed"
        )


def _kinds() -> str:
    return "there are " + ", ".join(KINDS)
