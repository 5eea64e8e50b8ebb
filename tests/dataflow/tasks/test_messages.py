"""Messages of tasks: each survives the codec, and wrong fields are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fxflow.dataflow.tasks import messages
from fxflow.distributed.messages.codec import (
    Incoming,
    Message,
    Templates,
    decode,
    encode,
)
from fxflow.errors import MessageError

ALL = [
    messages.Meet(-1, "s", "1", "2", "worker", 0, ["cpu"], ["/tmp/a"], 60.0, "", [8]),
    messages.Register("f", [1, [2]], [[0, {"a": 1}, [], []]]),
    messages.Registered("why"),
    messages.Run(),
    messages.Value(4),
    messages.Want(5),
    messages.Done(),
    messages.Failed("why", 1, -1),
    messages.Stop(),
    messages.Free([1], [2]),
    messages.Fetch(7),
    messages.Fetched(7, ""),
    messages.Renew("b", [0, 2]),
    messages.Hold(7, [["cpu:0"], None, []]),
    messages.Doing(),
    messages.DoingOk([[1, 2, 3, -1, 0.5]], "f", 3),
]


@pytest.mark.parametrize("fields", ALL, ids=lambda fields: type(fields).__name__)
def test_each_survives_the_codec(fields: Any) -> None:
    sent = Message.of(fields, 2, 3)
    got = decode(encode(sent, limits=messages.LIMITS), limits=messages.LIMITS)
    assert (got.fields, got.worker, got.sequence) == (fields, 2, 3)


def test_all_kinds_are_listed() -> None:
    kinds = {type(fields) for fields in ALL}
    defined = {
        value
        for value in vars(messages).values()
        if isinstance(value, type) and value.__module__ == messages.__name__
    }
    assert kinds == defined


def test_wrong_fields_are_refused() -> None:
    frames = encode(Message.of(messages.Value(444)))
    with pytest.raises(MessageError, match="'value' has the fields"):
        decode([bytes(frames[0]).replace(b"444", b'"x"')])


def test_messages_of_one_form_share_a_template() -> None:
    templates = Templates()
    for sequence in (5, 6):
        for edge in (1, 2):
            array = np.full(edge, sequence, np.int32)
            fields = messages.Value(edge)
            sent = templates.encode(edge, fields, 7, sequence, {"x": array})
            (got,) = Incoming().feed(b"".join(sent))
            assert (got.fields, got.worker, got.sequence) == (fields, 7, sequence)
            np.testing.assert_array_equal(got.arrays["x"], array)
    assert len(templates._known) == 2
