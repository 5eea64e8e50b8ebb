"""The predictions that were made, until it is known how good they were.

A record says what each model answered to a request, and how it was chosen. Feedback
finds it by the request's id, or by the same inputs. It counts once. What comes later
than a record is kept, or for what was never asked, is refused with words: learning from
a guess of what was answered would be worse than not learning.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fxflow.errors import ServeError
from fxflow.serve.selection.policies import Choice

Array = np.ndarray[Any, Any]


@dataclass
class Record:
    """One request that was answered.

    Attributes:
      id: of the request.
      key: of its inputs.
      context: in which it was asked.
      choice: who was asked.
      rows: of the request.
      at: when it was answered.
      answers: of each model, by number, as the loss needs them; late ones are added.
      used: whether its feedback came.
    """

    id: str
    key: bytes
    context: str
    choice: Choice
    rows: int
    at: float
    answers: dict[int, Array] = field(default_factory=dict)
    used: bool = False

    def to_json(self) -> dict[str, Any]:
        """Returns what other servers need to join feedback with it."""
        answers = {
            str(k): [
                item.decode("utf-8", "surrogateescape")
                if isinstance(item, bytes)
                else item
                for item in array.ravel().tolist()
            ]
            for k, array in self.answers.items()
        }
        return {
            "key": self.key.hex(),
            "context": self.context,
            "choice": list(self.choice),
            "rows": self.rows,
            "at": self.at,
            "answers": answers,
            "shapes": {str(k): list(a.shape) for k, a in self.answers.items()},
        }

    @classmethod
    def from_json(cls, id: str, value: Mapping[str, Any], models: int) -> Record:
        """Returns what `to_json` has written.

        Args:
          id: of the request.
          value: what JSON gave.
          models: how many models there are.

        Returns:
          The record.

        Raises:
          ValueError: it was not written by `to_json`.
        """
        try:
            model, probability, awake = value["choice"]
            choice = Choice(int(model), float(probability), tuple(map(int, awake)))
            answers = {}
            for k, flat in value["answers"].items():
                if any(isinstance(item, str) for item in flat):
                    array = np.empty(len(flat), object)
                    array[:] = [t.encode("utf-8", "surrogateescape") for t in flat]
                else:
                    array = np.asarray(flat)
                answers[int(k)] = array.reshape(value["shapes"][k])
            record = cls(
                id,
                bytes.fromhex(value["key"]),
                str(value["context"]),
                choice,
                int(value["rows"]),
                float(value["at"]),
                answers,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"it is no record of a prediction: {error!r}") from None
        numbers = {*answers, *choice.awake, max(choice.model, 0)}
        if not all(0 <= k < models for k in numbers) or not (
            0 < choice.probability <= 1 + 1e-9 and math.isfinite(record.at)
        ):
            raise ValueError("it is a record of other models")
        return record


class Journal:
    """Records by id and by inputs.

    Args:
      most: records that are kept; the oldest go first.
      within: seconds after which feedback is too late.

    Example:
      >>> journal = Journal(most=10, within=60.0)
      >>> journal.put(Record("r", b"k", "", Choice(0, 1.0, (0,)), rows=1, at=0.0))
      >>> record = journal.find("r", now=5.0)
      >>> journal.use(record)
      >>> journal.find("r", now=6.0)
      Traceback (most recent call last):
      fxflow.errors.ServeError: the feedback for request 'r' came already
    """

    def __init__(self, most: int, within: float) -> None:
        self._most, self._within = most, within
        self._records: OrderedDict[str, Record] = OrderedDict()
        #: Those whose feedback has not come.
        self._by_key: dict[bytes, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, id: object) -> bool:
        return id in self._records

    def put(self, record: Record) -> None:
        """Keeps a record; an id that comes again stands for the later request.

        Args:
          record: of a request that was answered.
        """
        self._drop(record.id)
        self._records[record.id] = record
        self._by_key.setdefault(record.key, {})[record.id] = None
        while len(self._records) > self._most:
            self._drop(next(iter(self._records)))

    def last(self, key: bytes) -> str | None:
        """Returns the id of the last request with these inputs that has no feedback.

        Args:
          key: of the inputs.

        Returns:
          The id; None if there is none.
        """
        return next(reversed(self._by_key.get(key, {})), None)

    def find(self, id: str, now: float) -> Record:
        """Returns the record of a request whose feedback comes.

        Args:
          id: of the request.
          now: the time.

        Returns:
          The record.

        Raises:
          ServeError: status 404 if there is none, 410 if it is too old, 409 if its
            feedback came before.
        """
        record = self._records.get(id)
        if record is None:
            raise ServeError(
                f"no prediction with id {id!r} is known: the last {self._most} are, "
                f"for {self._within:g} s",
                404,
            )
        if record.used:
            raise ServeError(f"the feedback for request {id!r} came already", 409)
        if now - record.at > self._within:
            raise ServeError(
                f"the feedback for request {id!r} comes {now - record.at:.0f} s after "
                f"it, and is waited for {self._within:g} s",
                410,
            )
        return record

    def use(self, record: Record) -> None:
        """Notes that the feedback of a record has come.

        Args:
          record: one that `find` gave.
        """
        record.used = True
        self._forget_key(record)

    def _drop(self, id: str) -> None:
        old = self._records.pop(id, None)
        if old is not None:
            self._forget_key(old)

    def _forget_key(self, record: Record) -> None:
        ids = self._by_key.get(record.key, {})
        ids.pop(record.id, None)
        if not ids:
            self._by_key.pop(record.key, None)
