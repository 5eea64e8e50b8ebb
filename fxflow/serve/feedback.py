"""Joins labels with the requests that they are about, and writes them for training.

A journal keeps the last requests until their label arrives. A joined row is one line of
JSON in a file that a training program reads while it grows: the columns of the request,
and `_label`, `_request`, `_time` (of the request) and `_model`.
"""

from __future__ import annotations

import json
import os
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from fxflow.errors import ServeError
from fxflow.serve.selection.losses import parse_label

Array = np.ndarray[Any, Any]


@contextmanager
def counted_feedback(meter: Any, name: str) -> Iterator[None]:
    """Counts feedback by its result at the end of the block.

    Args:
      meter: a `MetricsSink`.
      name: name of the model or group.
    """
    try:
        yield
    except ServeError as error:
        kinds = {404: "unknown", 409: "repeated", 410: "late"}
        meter.event("feedback", name, kinds.get(error.status, "refused"))
        raise
    meter.event("feedback", name, "joined")


def check_label_by_id(id: str, label: Any, other: Mapping[str, Any]) -> None:
    """Checks that feedback is a label for the id of a request.

    Args:
      id: the id.
      label: the label.
      other: the other members of the feedback.

    Raises:
      ServeError: status 400; it is not.
    """
    if not id or label is None or other:
        raise ServeError(
            "feedback of a model or roll-out must have 'id' and 'label', and nothing "
            "else",
            400,
        )


class JoinedFeedback(NamedTuple):
    """The effect of a label.

    Attributes:
      models: the models whose answers it is about.
      rows: number of rows that were written; 0: there is no file.
    """

    models: list[str]
    rows: int


class _Waiting(NamedTuple):
    """A request that waits for its label."""

    inputs: Mapping[str, Array]
    objects: bool
    rows: int
    at: float
    #: The scores of its rows, by model.
    scores: dict[str, Array]
    answered_by: str


class FeedbackJournal:
    """Requests that wait for their labels.

    Args:
      file: path of the file to which joined rows are appended; None: no file.
      most: most requests; the oldest is dropped first.
      within: seconds after which a label is too late.

    Raises:
      ServeError: the file cannot be written.
    """

    def __init__(self, file: str | None, most: int, within: float) -> None:
        self._most, self._within = most, within
        self._waiting: OrderedDict[str, _Waiting | None] = OrderedDict()
        self._file: int | None = None
        if file is not None:
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                self._file = os.open(file, flags, 0o666)
            except OSError as error:
                raise ServeError(f"feedback: {file}: {error.strerror}") from None

    def __len__(self) -> int:
        return len(self._waiting)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def put(
        self,
        id: str,
        inputs: Mapping[str, Array],
        rows: int,
        *,
        model: str,
        scores: Array,
        objects: bool,
    ) -> None:
        """Adds an answered request; one with the same id is replaced.

        Args:
          id: the request's id.
          inputs: its arrays by name.
          rows: number of its rows.
          model: the model that answered.
          scores: its output, one row for each row of the request.
          objects: whether the input has rows as JSON objects.
        """
        self._waiting.pop(id, None)
        scored = {model: np.array(scores)}
        self._waiting[id] = _Waiting(inputs, objects, rows, time.time(), scored, model)
        while len(self._waiting) > self._most:
            self._waiting.popitem(last=False)

    def put_other(self, id: str, model: str, scores: Array) -> None:
        """Adds the answer of another model to a request, if it still waits.

        Args:
          id: the request's id.
          model: the model.
          scores: its output.
        """
        waiting = self._waiting.get(id)
        if waiting is not None:
            waiting.scores[model] = np.array(scores)

    def join(self, id: str, label: Any) -> tuple[JoinedFeedback, dict[str, Any]]:
        """Joins a label with its request, once.

        Args:
          id: the request's id.
          label: the label of each row.

        Returns:
          The effect, and by model pairs of score and label.

        Raises:
          ServeError: status 404 if there is no such request, 409 if it has a label
            already, 410 if the label is late, 400 if it has another number of rows.
        """
        if id not in self._waiting:
            raise ServeError(
                f"unknown prediction id {id!r}: the last {self._most} predictions are "
                f"kept, for {self._within:g} s",
                404,
            )
        waiting = self._waiting[id]
        if waiting is None:
            raise ServeError(f"request {id!r} has feedback already", 409)
        late = time.time() - waiting.at
        if late > self._within:
            raise ServeError(
                f"feedback for request {id!r} is late: {late:.0f} s after the request, "
                f"of at most {self._within:g} s",
                410,
            )
        labels = parse_label(label, waiting.rows)
        if self._file is not None:
            lines = self._lines(id, waiting, labels)
            os.write(self._file, b"".join(lines))  # appended as a whole
        self._waiting[id] = None
        scored = {
            model: list(
                zip(scores.reshape(waiting.rows, -1)[:, 0], labels, strict=True)
            )
            for model, scores in waiting.scores.items()
        }
        written = waiting.rows if self._file is not None else 0
        return JoinedFeedback(list(waiting.scores), written), scored

    @staticmethod
    def _lines(id: str, waiting: _Waiting, labels: Any) -> list[bytes]:
        lines = []
        for k in range(waiting.rows):
            row: dict[str, Any] = {}
            for name, values in waiting.inputs.items():
                if waiting.objects:
                    found = json.loads(values[k])
                    row |= found if isinstance(found, dict) else {name: found}
                elif values.dtype == object:
                    texts = np.vectorize(_text, otypes=[object])(values[k])
                    row[name] = texts.tolist()
                else:
                    row[name] = values[k].tolist()
            label = labels[k]
            row |= {
                "_label": _text(label) if isinstance(label, bytes) else label.tolist(),
                "_request": id,
                "_time": waiting.at,
                "_model": waiting.answered_by,
            }
            lines.append(json.dumps(row).encode() + b"\n")
        return lines


def _text(value: bytes) -> str:
    return bytes(value).decode("utf-8", "surrogateescape")
