"""Predictions and the feedback for them."""

import json

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.selection.journal import Journal, Record
from fxflow.serve.selection.policies import Choice

CHOICE = Choice(0, 0.5, (0, 1))


def record(id: str, key: bytes = b"k", at: float = 0.0) -> Record:
    return Record(id, key, "c", CHOICE, 1, at)


def test_feedback_counts_once() -> None:
    journal = Journal(most=10, within=60.0)
    journal.put(record("a"))
    journal.use(journal.find("a", 1.0))
    assert journal.last(b"k") is None
    for id, status, words in (
        ("a", 409, "came already"),
        ("b", 404, "no prediction with id 'b'"),
    ):
        with pytest.raises(ServeError, match=words) as caught:
            journal.find(id, 1.0)
        assert caught.value.status == status


def test_late_feedback_is_refused() -> None:
    journal = Journal(most=10, within=60.0)
    journal.put(record("a", at=100.0))
    assert journal.find("a", 160.0).id == "a"
    with pytest.raises(ServeError, match="comes 61 s after it, and") as caught:
        journal.find("a", 161.0)
    assert caught.value.status == 410


def test_bounded_by_the_oldest() -> None:
    journal = Journal(most=3, within=60.0)
    for k in range(10):
        journal.put(record(str(k), key=b"%d" % k))
    assert len(journal) == 3
    assert journal.last(b"1") is None and journal.last(b"9") == "9"
    assert "6" not in journal and "7" in journal
    journal.put(record("8", key=b"other"))  # the id again
    assert len(journal) == 3 and journal.last(b"8") is None
    assert len(journal._by_key) == 3


def test_the_last_request_with_the_same_inputs() -> None:
    journal = Journal(most=3, within=60.0)
    for id in "abc":
        journal.put(record(id))
    found = []
    while (id := journal.last(b"k")) is not None:
        journal.use(journal.find(id, 0.0))
        found.append(id)
    assert found == ["c", "b", "a"]
    journal.put(record("d"))  # a goes
    assert journal.last(b"k") == "d" and len(journal) == 3


def test_as_json() -> None:
    made = record("a")
    made.answers = {
        0: np.array([[0.25, 0.75]], np.float32),
        1: np.array([b"caf\xc3", b"x"], object),
    }
    text = json.dumps(made.to_json())
    found = Record.from_json("a", json.loads(text), models=2)
    assert found.choice == CHOICE and found.key == b"k" and found.context == "c"
    assert found.answers[0].tolist() == [[0.25, 0.75]]
    assert found.answers[1].tolist() == [b"caf\xc3", b"x"]


@pytest.mark.parametrize(
    "change",
    [
        {"choice": [5, 0.5, [0, 1]]},
        {"choice": [0, 0.0, [0, 1]]},
        {"choice": [0, float("nan"), [0, 1]]},
        {"choice": None},
        {"answers": {"7": [1]}, "shapes": {"7": [1]}},
        {"answers": {"0": [1, 2, 3]}, "shapes": {"0": [2, 2]}},
        {"at": float("inf")},
        {"key": "zz"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_others_wrote_is_checked(change: dict) -> None:
    with pytest.raises(ValueError):
        Record.from_json("a", record("a").to_json() | change, models=2)
