import json

import pytest

from fxflow.distributed import protocol
from fxflow.distributed.protocol import Bye, Done, Meet, Refused, read, written


@pytest.mark.parametrize(
    "content", [Refused("a", "late"), Meet("b", [0, 2]), Done(3, False), Bye()]
)
def test_messages_are_read_as_written(content: object) -> None:
    message = json.loads(json.dumps(written(content, id=7, epoch=3)))
    assert (message["id"], message["epoch"]) == (7, 3)
    found = read(message)
    assert (type(found), found) == (type(content), content)


def test_defaults_are_filled_in_and_other_fields_ignored() -> None:
    assert read({"op": "Meet", "key": "a", "later": 1}) == Meet("a", None)


def test_invalid_messages_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown message written"):
        read({"op": "written"})
    with pytest.raises(ValueError, match="unknown message None"):
        read({"re": 1})
    with pytest.raises(TypeError, match="epoch"):
        read({"op": "Done", "preempted": True})


def test_every_class_can_be_read() -> None:
    classes = {
        name
        for name, value in vars(protocol).items()
        if isinstance(value, type) and value.__module__ == protocol.__name__
    }
    assert classes == protocol._CLASSES.keys()
