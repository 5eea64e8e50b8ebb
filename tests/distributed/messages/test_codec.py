import itertools
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow.core.arrays import dtypes
from fxflow.distributed.messages import codec
from fxflow.distributed.messages.codec import (
    KINDS,
    SMALL,
    Incoming,
    Limits,
    Message,
    Template,
    decode,
    encode,
)
from fxflow.errors import MessageError

HEAD = struct.Struct("!4sBBQQQI")
SHAPES = [(), (0,), (3, 5), (2, 0, 3), (1,), (1, 1, 1, 1, 1, 1, 1, 2)]


def head(text: bytes = b"", **changed: Any) -> bytes:
    """Returns a valid header, with the given changes."""
    numbers = {
        "mark": codec._MARK,
        "version": codec.VERSION,
        "kind": KINDS.index("control") + 1,
        "worker": 0,
        "sequence": 0,
        "epoch": 0,
        "length": len(text),
    }
    return HEAD.pack(*{**numbers, **changed}.values()) + text


def described(*arrays: Any, fields: Any = None) -> bytes:
    return head(json.dumps([{} if fields is None else fields, list(arrays)]).encode())


def assert_same(got: Message, sent: Message) -> None:
    for name in ("kind", "worker", "sequence", "epoch", "fields"):
        assert getattr(got, name) == getattr(sent, name)
    assert list(got.arrays) == list(sent.arrays)
    for name, array in sent.arrays.items():
        other = got.arrays[name]
        assert (other.dtype, other.shape) == (array.dtype, array.shape), name
        assert other.tobytes() == array.tobytes(), name
        assert not other.flags.writeable
        assert other.flags.aligned and other.flags.c_contiguous


# -- round trips -----------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [7, 1000, codec.CHUNK])
def test_all_dtypes_and_shapes(chunk: int) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        f"{dtype.name}{shape}": rng.integers(0, 2, shape).astype(dtype)
        for dtype in dtypes.ALL
        for shape in SHAPES
    }
    message = Message(
        "control", 7, (1 << 64) - 1, 3, {"ü": [1, -2.5, None, True]}, arrays
    )
    assert_same(decode(encode(message, chunk=chunk)), message)


@pytest.mark.parametrize("kind", ["ping", "control"])
def test_every_kind_survives_encoding(kind: str) -> None:
    (frame,) = encode(Message(kind, sequence=4))
    assert_same(decode([frame]), Message(kind, sequence=4))


def test_large_arrays_are_split_without_copies() -> None:
    large = np.arange(1 << 20, dtype=np.float32)
    columns = np.arange(1 << 16, dtype=np.int32).reshape(256, 256).T
    message = Message("control", arrays={"w": large, "v": columns})
    frames = encode(message, chunk=1 << 20)
    assert [len(frame) for frame in frames[1:]] == [1 << 20] * 4 + [1 << 18]
    for i, frame in enumerate(frames[1:5]):
        assert np.shares_memory(np.frombuffer(frame, np.uint8), large[i << 18 :])
    got = decode(frames)
    assert_same(got, message)
    # A split array is joined in aligned memory; others are views of their frames.
    assert got.arrays["w"].ctypes.data % 64 == 0
    assert np.shares_memory(got.arrays["v"], np.frombuffer(frames[5], np.uint8))


def test_small_arrays_travel_together() -> None:
    arrays = {str(i): np.full(i, i, np.int16) for i in range(100)}
    arrays["large"] = np.ones(SMALL + 1, np.int8)
    arrays["last"] = np.ones((), np.float64)
    message = Message("control", arrays=arrays)
    frames = encode(message)
    assert [len(frame) for frame in frames[1:]] == [2 * 99 * 50, SMALL + 1, 8]
    assert_same(decode(frames), message)
    few = encode(message, chunk=1000)
    assert max(len(frame) for frame in few[1:]) <= 1000
    assert_same(decode(few), message)


@pytest.mark.parametrize("size", [1, 3, 700, 1 << 20])
def test_streams_are_decoded_from_pieces_of_any_size(size: int) -> None:
    arrays = {"w": np.arange(300, dtype=np.int16), "e": np.ones((0, 2), np.int8)}
    sent = [
        Message("ping"),
        Message("control", 1, 2, 3, {"text": "é" * 1000}, arrays),
        Message("control", fields={"x": [1, None]}),
    ]
    data = b"".join(frame for message in sent for frame in encode(message))
    incoming, found = Incoming(), []
    for at in range(0, len(data), size):
        found += incoming.feed(data[at : at + size])
    for got, message in zip(found, sent, strict=True):
        assert_same(got, message)
    assert found[1].arrays["w"].ctypes.data % 64 == 0


def test_streams_allocate_nothing_before_the_description_is_checked() -> None:
    first, *_ = encode(Message("control", arrays={"w": np.ones(100, np.int8)}))
    with pytest.raises(MessageError, match="at most 99 are allowed"):
        list(Incoming(Limits(size=99)).feed(first))
    with pytest.raises(MessageError, match="at most 8 are allowed"):
        list(Incoming(Limits(text=8)).feed(head(length=9)))


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_frames_may_be_split_anywhere(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(0, 40), max_size=6))
    arrays = {str(i): np.arange(n, dtype=np.int64) for i, n in enumerate(lengths)}
    message = Message("control", arrays=arrays)
    first, *rest = encode(message)
    whole = b"".join(rest)
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=9))
    edges = sorted({0, *cuts, len(whole)})
    pieces = [whole[a:b] for a, b in itertools.pairwise(edges)]
    assert_same(decode([first, *pieces]), message)


def test_misaligned_frames_are_copied() -> None:
    message = Message("control", arrays={"w": np.arange(1 << 14, dtype=np.float64)})
    first, body = encode(message)
    shifted = memoryview(b"x" + bytes(body))[1:]
    assert_same(decode([first, shifted]), message)


# -- messages that cannot be encoded ---------------------------------------------------


@pytest.mark.parametrize(
    ("message", "reason", "text"),
    [
        (Message("pusch"), "kind", "there is no message 'pusch': there are hello,"),
        (Message("control", worker=-1), "size", "integers from 0 to"),
        (Message("control", sequence=1 << 64), "size", "integers from 0 to"),
        (Message("control", epoch=0.5), "size", "integers from 0 to"),  # type: ignore[arg-type]
        (Message("control", fields={"x": float("nan")}), "text", "must be JSON values"),
        (Message("control", fields={"x": object()}), "text", "must be JSON values"),
        (Message("control", fields={"x": "\ud800"}), "text", "must be JSON values"),
        (
            Message("control", arrays={"w": np.ones(2, ">f4")}),
            "arrays",
            "'w' has dtype >f4, which XLA does not have",
        ),
        (Message("control", arrays={"w": np.array(["a"])}), "arrays", "has dtype <U1"),
        (Message("control", fields={"x": "x" * (1 << 20)}), "text", "at most 1048576"),
    ],
)
def test_messages_that_cannot_be_encoded_are_refused(
    message: Message, reason: str, text: str
) -> None:
    with pytest.raises(MessageError, match=text) as error:
        encode(message)
    assert error.value.reason == reason


def test_limits_apply_to_encoding_and_decoding() -> None:
    arrays = {"a": np.ones(4, np.float32), "b": np.ones(4, np.float32)}
    message = Message("control", fields={"x": 1}, arrays=arrays)
    frames = encode(message)
    for limits, reason in (
        (Limits(text=10), "text"),
        (Limits(arrays=1), "arrays"),
        (Limits(size=31), "size"),
    ):
        with pytest.raises(MessageError, match="at most") as error:
            encode(message, limits=limits)
        assert error.value.reason == reason
        with pytest.raises(MessageError, match="at most") as error:
            decode(frames, limits=limits)
        assert error.value.reason == reason
    assert_same(decode(frames, limits=Limits(len(frames[0]), 2, 32)), message)


# -- invalid messages ------------------------------------------------------------------

WRONG = {
    "no frame": ([], "mark"),
    "empty": ([b""], "mark"),
    "http": ([b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"], "mark"),
    "mark": ([head(mark=b"fxpz")], "mark"),
    "cut": ([head()[:-1]], "mark"),
    "version": ([head(version=codec.VERSION + 1)], "version"),
    "kind 0": ([head(kind=0)], "kind"),
    "kind 255": ([head(kind=255)], "kind"),
    "text too short": ([head(b"[{},[]]", length=8)], "text"),
    "text too long": ([head(b"[{},[]]", length=6)], "text"),
    "huge text": ([head(length=(1 << 32) - 1)], "text"),
    "no utf-8": ([head(b'[{"a":"\xff"},[]]')], "text"),
    "no json": ([head(b"[{},[]")], "text"),
    "deep": ([head(b"[" * 100_000)], "text"),
    "deep and right": ([described(fields={"a": eval("[" * 60 + "]" * 60)})], "text"),
    "nan": ([head(b'[{"a":NaN},[]]')], "text"),
    "infinity": ([head(b'[{"a":-Infinity},[]]')], "text"),
    "too large a float": ([head(b'[{"a":1e999},[]]')], "text"),
    "too long an integer": ([head(b'[{"a":%s},[]]' % (b"9" * 5000))], "text"),
    "a name twice": ([head(b'[{"a":1,"a":2},[]]')], "text"),
    "half a surrogate": ([head(b'[{"a":"\\ud800"},[]]')], "text"),
    "an object": ([head(b"{}")], "text"),
    "one part": ([head(b"[{}]")], "text"),
    "fields a list": ([head(b"[[],[]]")], "text"),
    "arrays an object": ([head(b"[{},{}]")], "text"),
    "no description": ([described(3)], "arrays"),
    "no shape": ([described(["a", "int8"]), b"x"], "arrays"),
    "no name": ([described([3, "int8", [1]]), b"x"], "arrays"),
    "two of a name": ([described(*[["a", "int8", [1]]] * 2), b"xx"], "arrays"),
    "no dtype": ([described(["a", "object", [1]]), b"x" * 8], "arrays"),
    "a short dtype": ([described(["a", "f4", [1]]), b"x" * 4], "arrays"),
    "dtype a list": ([described(["a", ["int8"], [1]]), b"x"], "arrays"),
    "negative": ([described(["a", "int8", [-1]]), b"x"], "arrays"),
    "two negatives": ([described(["a", "int8", [-1, -1]]), b"x"], "arrays"),
    "a boolean length": ([described(["a", "int8", [True]]), b"x"], "arrays"),
    "a float length": ([described(["a", "int8", [1.0]]), b"x"], "arrays"),
    "shape a number": ([described(["a", "int8", 1]), b"x"], "arrays"),
    "many axes": ([described(["a", "int8", [1] * 33]), b"x"], "arrays"),
    "huge": ([described(["a", "int8", [1 << 62, 4]]), b"x"], "arrays"),
    "huge and empty": ([described(["a", "int8", [1 << 62, 0, 4]])], "arrays"),
    "large, not there": ([described(["a", "int8", [1 << 40]]), b"x"], "size"),
    "one byte more": ([described(["a", "int8", [2]]), b"xxx"], "size"),
    "one byte less": ([described(["a", "int8", [2]]), b"x"], "size"),
    "a frame more": ([described(["a", "int8", [2]]), b"xx", b"x"], "size"),
    "an empty frame": ([described(["a", "int8", [2]]), b"xx", b""], "size"),
    "frames only": ([head(), b"x"], "size"),
    "a strange boolean": ([described(["a", "bool", [2]]), b"\1\2"], "arrays"),
}


@pytest.mark.parametrize("name", WRONG)
def test_invalid_frames_are_refused(name: str) -> None:
    frames, reason = WRONG[name]
    with pytest.raises(MessageError) as error:
        decode(frames)
    assert error.value.reason == reason
    assert len(str(error.value)) < 1000
    assert isinstance(error.value, ValueError)


def test_brackets_in_strings_do_not_count_as_depth() -> None:
    fields = {"a": '[{"\\[[' * 100, "b": [[]] * 100}
    assert decode(encode(Message("control", fields=fields))).fields == fields


def test_errors_name_both_versions() -> None:
    other = codec.VERSION + 1
    match = f"version {other} .* version {codec.VERSION}"
    with pytest.raises(MessageError, match=match):
        decode([head(version=other)])


VALID = encode(
    Message(
        "control",
        1,
        2,
        3,
        {"clock": 3, "names": ["a", {"b": None}]},
        {
            "w": np.ones((3, 4), np.float32),
            "b": np.ones(5, bool),
            "s": np.int8(1)[None],
        },
    ),
    chunk=16,
)


def attempt(frames: list[Any]) -> None:
    attempt_stream(b"".join(frames))
    try:
        message = decode(frames)
    except MessageError:
        return
    # A decoded message can be encoded again, and is the same.
    assert_same(decode(encode(message)), message)


def attempt_stream(data: bytes) -> None:
    """Checks that any bytes, in any pieces, give messages or a `MessageError`."""
    expected = heard(data, 1 << 20)
    for size in (1, 50):
        assert heard(data, size) == expected


def heard(data: bytes, size: int) -> tuple[list[list[bytes]], str]:
    """Returns the messages of a stream in pieces of a size, and its error's reason."""
    incoming, found, why = Incoming(), [], ""
    try:
        for at in range(0, len(data), size):
            found += incoming.feed(data[at : at + size])
    except MessageError as error:
        why = error.reason
    return [[bytes(frame) for frame in encode(message)] for message in found], why


@given(st.lists(st.binary(max_size=80), max_size=4), st.booleans())
@settings(max_examples=100, deadline=None)
def test_random_frames_are_decoded_or_refused(
    frames: list[bytes], marked: bool
) -> None:
    attempt([head()[:6] + frames[0], *frames[1:]] if marked and frames else frames)
    attempt([head(b"".join(frames))])


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([d.name for d in dtypes.ALL]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(
    JSON | st.lists(st.tuples(st.text(max_size=2), JSON, JSON), max_size=3),
    st.lists(st.binary(min_size=1, max_size=9), max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_random_descriptions_are_decoded_or_refused(
    value: Any, frames: list[bytes]
) -> None:
    attempt([head(json.dumps([{}, value]).encode()), *frames])
    attempt([head(json.dumps([value, []]).encode()), *frames])


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_mutated_frames_are_decoded_or_refused(data: st.DataObject) -> None:
    frames = [bytearray(frame) for frame in VALID]
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0, len(frames) - 1))
        frame = frames[i]
        what = data.draw(st.sampled_from(["flip", "cut", "more", "gone", "swap"]))
        at = data.draw(st.integers(0, max(0, len(frame) - 1)))
        if what == "flip" and frame:
            frame[at] = data.draw(st.integers(0, 255))
        elif what == "cut":
            del frame[at:]
        elif what == "more":
            frame += data.draw(st.binary(max_size=4))
        elif what == "gone" and len(frames) > 1:
            del frames[i]
        elif what == "swap":
            j = data.draw(st.integers(0, len(frames) - 1))
            frames[i], frames[j] = frames[j], frames[i]
    attempt([bytes(frame) for frame in frames])


@pytest.mark.parametrize("size", [0, 3, 20_000])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_template_encodes_what_encode_does(size: int, count: int) -> None:
    first = {f"x{i}": np.zeros(size, np.float32) for i in range(count)}
    then = {name: np.arange(size, dtype=np.float32) for name in first}
    template = Template(Message("control", 1, 2, 3, {"a": [1]}, first))
    for sequence in (5, 6):
        expected = encode(Message("control", 1, sequence, 3, {"a": [1]}, then))
        got = template.encode(sequence, list(then.values()))
        assert b"".join(got) == b"".join(expected)
