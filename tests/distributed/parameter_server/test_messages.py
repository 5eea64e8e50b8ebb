"""The fields of each kind of message, and invalid fields."""

import json
import types
import typing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow.distributed.messages import codec
from fxflow.distributed.messages.codec import Message, decode, encode
from fxflow.distributed.parameter_server import messages
from fxflow.errors import MessageError

TYPES = sorted(
    (c for c in vars(messages).values() if isinstance(c, type) and c in codec._KINDS),
    key=lambda cls: cls.__name__,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1, 1) | st.text("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner),
    max_leaves=5,
)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Returns a strategy for values of a field's type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        return st.one_of([*map(values, arguments)])
    if origin is list:
        return st.lists(values(arguments[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(st.text("ab"), values(arguments[1]), max_size=3)
    if hint is Any:
        return JSON
    return {
        int: st.integers(-(1 << 62), 1 << 62),
        float: st.floats(allow_nan=False, allow_infinity=False),
        str: st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        bool: st.booleans(),
        type(None): st.none(),
    }[hint]


def frame(kind: str, fields: Any) -> bytes:
    text = json.dumps([fields, []]).encode()
    number = codec.KINDS.index(kind) + 1
    numbers = codec._MARK, codec.VERSION, number, 0, 0, 0, len(text)
    return codec._HEAD.pack(*numbers) + text


@pytest.mark.parametrize("cls", TYPES, ids=lambda cls: cls.__name__)
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_decode_returns_the_encoded_fields(cls: Any, data: st.DataObject) -> None:
    fields = cls(*(data.draw(values(h)) for h in typing.get_type_hints(cls).values()))
    message = decode(encode(Message.of(fields, 1, 2, 3)))
    assert type(message.fields) is cls and message.fields == fields
    assert message.kind == codec._KINDS[cls]


@pytest.mark.parametrize("cls", TYPES, ids=lambda cls: cls.__name__)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_invalid_fields_are_rejected(cls: Any, data: st.DataObject) -> None:
    """Any JSON in place of the fields gives a `MessageError`, or valid fields."""
    hints = list(typing.get_type_hints(cls).values())
    given = [data.draw(values(hint)) for hint in hints]
    at = data.draw(st.integers(0, len(given)))
    given[at : at + data.draw(st.integers(0, 1))] = data.draw(
        st.lists(JSON, max_size=1)
    )
    try:
        message = decode([frame(codec._KINDS[cls], given)])
    except MessageError as error:
        assert error.reason == "text"
        return
    assert list(message.fields) == given
    assert decode(encode(message)).fields == message.fields


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"shard": 0},
        [],
        [0, 0],
        [0, 0, 0, 0, False, 0, 0.0, "", None],
        [True, 0, 0, 0, False, 0, 0.0, ""],
        [0, 0.0, 0, 0, False, 0, 0.0, ""],
        [0, 0, 0, 0, 0, 0, 0.0, ""],
        [0, 0, 0, 0, False, 0, "x", ""],
        [0, 0, 0, 0, False, 0, 0.0, None],
    ],
)
def test_a_push_with_wrong_fields_is_rejected(fields: Any) -> None:
    with pytest.raises(MessageError, match="message 'push' has the fields"):
        decode([frame("push", fields)])


def test_an_integer_is_a_valid_float() -> None:
    given = [0, 0, 0, 0, False, 0, 2, ""]
    assert decode([frame("push", given)]).fields.deadline == 2


def test_encode_rejects_wrong_fields() -> None:
    with pytest.raises(MessageError, match="message 'pull' has the fields"):
        encode(Message("pull", fields={"shard": 0}))
