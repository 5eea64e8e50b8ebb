"""Labels find their requests once and in time, and are written with their columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.feedback import FeedbackJournal, check_label_by_id, counted_feedback
from tests.serve.fakes import Heard


def put(journal: FeedbackJournal, id: str, *, rows: int = 2) -> None:
    texts = np.array([b'{"site": "a.com", "age": %d}' % k for k in range(rows)], object)
    scores = np.linspace(0.2, 0.8, rows, dtype=np.float32)
    journal.put(id, {"row": texts}, rows, model="m", scores=scores, objects=True)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_joined_rows_are_lines_with_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    journal = FeedbackJournal(str(path), 10, 60.0)
    put(journal, "a")
    journal.put_other("a", "n", np.array([[0.5], [0.6]]))
    joined, scored = journal.join("a", [1, 0])
    assert joined == (["m", "n"], 2)
    assert scored["n"] == [(0.5, 1), (0.6, 0)]
    first, second = lines(path)
    assert first.pop("_time") == second.pop("_time") > 0
    common = {"site": "a.com", "_request": "a", "_model": "m"}
    assert [first, second] == [
        {**common, "age": 0, "_label": 1},
        {**common, "age": 1, "_label": 0},
    ]
    inputs = {"x": np.ones((1, 2), np.float32), "t": np.array([b"\xff"], object)}
    journal.put("b", inputs, 1, model="m", scores=np.zeros(1), objects=False)
    journal.join("b", "cat")
    last = lines(path)[-1]
    assert (last["x"], last["t"], last["_label"]) == ([1.0, 1.0], "\udcff", "cat")
    journal.close(), journal.close()
    # The next server continues the file.
    journal = FeedbackJournal(str(path), 10, 60.0)
    put(journal, "c", rows=1)
    assert journal.join("c", True)[0].rows == 1
    assert len(lines(path)) == 4
    journal.close()


def test_a_label_counts_once_and_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = FeedbackJournal(None, 2, 60.0)
    for id in "abc":
        put(journal, id)
    for status, id, label in [
        (404, "a", [1, 0]),
        (400, "b", [1]),
        (400, "b", [None, 1]),
    ]:
        with pytest.raises(ServeError) as caught:
            journal.join(id, label)
        assert caught.value.status == status
    assert journal.join("b", [1, 0])[0] == (["m"], 0)
    with pytest.raises(ServeError, match="has feedback already"):
        journal.join("b", [1, 0])
    later = journal._waiting["c"].at + 61  # type: ignore[union-attr]
    monkeypatch.setattr("fxflow.serve.feedback.time.time", lambda: later)
    with pytest.raises(
        ServeError, match="is late: 61 s after the request, of at most 60"
    ):
        journal.join("c", [1, 0])
    journal.put_other("a", "n", np.zeros(2))
    assert len(journal) == 2


def test_mistakes_are_named_and_counted(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match=r"feedback: .*No such file"):
        FeedbackJournal(str(tmp_path / "none" / "labels"), 10, 60.0)
    for given in [("", 1, {}), ("a", None, {}), ("a", 1, {"loss": 1})]:
        with pytest.raises(ServeError, match="must have 'id' and 'label'"):
            check_label_by_id(*given)
    heard = Heard()
    for status in (404, 409, 410, 400):
        with pytest.raises(ServeError), counted_feedback(heard, "m"):
            raise ServeError("no", status)
    with counted_feedback(heard, "m"):
        pass
    found = {what for kind, what in heard.events if kind == "feedback"}
    assert found == {"unknown", "repeated", "late", "refused", "joined"}
