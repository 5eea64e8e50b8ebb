"""The memory of a selector: predictions that wait for feedback, and states by context.

A record holds each model's answer to a request, and how the model was chosen. Feedback
finds it by the request's id or by the same inputs, and counts once. Feedback for an
unknown request, or after the record has expired, is refused: learning from a guess of
the answer would be worse than not learning.

A context is a string that requests name: a user, a country, a microphone. Their number
is bounded: the least recently used one is dropped, and starts afresh when it is used
again. If servers share their states, changes apply here at once, and are pending until
they are sent; pending changes of one context are combined, so their number is bounded
by that of the contexts.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fxflow.errors import ServeError
from fxflow.serve.selection.policies import Change, Choice, LossTotals

Array = np.ndarray[Any, Any]


@dataclass
class PredictionRecord:
    """The record of an answered request.

    Attributes:
      id: the request's id.
      key: hash of its inputs and context.
      context: the request's context.
      choice: the models that were called.
      rows: rows of the request.
      at: Unix time of the request.
      answers: the deciding output of each model, by number; late answers are added.
      used: whether it has received feedback.
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
        """Returns the record as a JSON object, for other servers."""
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
    def from_json(
        cls, id: str, value: Mapping[str, Any], models: int
    ) -> PredictionRecord:
        """Returns the record that `to_json` wrote.

        Args:
          id: the request's id.
          value: the JSON object.
          models: number of models.

        Returns:
          The record.

        Raises:
          ValueError: `value` is not a record of these models.
        """
        try:
            model, probability, ready = value["choice"]
            choice = Choice(int(model), float(probability), tuple(map(int, ready)))
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
            raise ValueError(f"not a prediction record: {error!r}") from None
        numbers = {*answers, *choice.ready, max(choice.model, 0)}
        if not all(0 <= k < models for k in numbers) or not (
            0 < choice.probability <= 1 + 1e-9 and math.isfinite(record.at)
        ):
            raise ValueError("the record is of other models")
        return record


class Journal:
    """Stores records by id and by inputs.

    Args:
      most: most records; the oldest is dropped first.
      within: seconds after which feedback is too late.

    Example:
      >>> journal = Journal(most=10, within=60.0)
      >>> choice = Choice(0, 1.0, (0,))
      >>> journal.put(PredictionRecord("r", b"k", "", choice, rows=1, at=0.0))
      >>> record = journal.find("r", now=5.0)
      >>> journal.use(record)
      >>> journal.find("r", now=6.0)
      Traceback (most recent call last):
      fxflow.errors.ServeError: request 'r' has feedback already
    """

    def __init__(self, most: int, within: float) -> None:
        self._most, self._within = most, within
        self._records: OrderedDict[str, PredictionRecord] = OrderedDict()
        #: Key → ids of records without feedback, oldest first.
        self._by_key: dict[bytes, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, id: object) -> bool:
        return id in self._records

    def put(self, record: PredictionRecord) -> None:
        """Adds a record, which replaces an older one with the same id.

        Args:
          record: the record.
        """
        self._drop(record.id)
        self._records[record.id] = record
        self._by_key.setdefault(record.key, {})[record.id] = None
        while len(self._records) > self._most:
            self._drop(next(iter(self._records)))

    def last(self, key: bytes) -> str | None:
        """Returns the id of the last request with these inputs that has no feedback.

        Args:
          key: hash of the inputs and context.

        Returns:
          The id, or None if there is no such request.
        """
        return next(reversed(self._by_key.get(key, {})), None)

    def find(self, id: str, now: float) -> PredictionRecord:
        """Returns a record that can receive feedback.

        Args:
          id: the request's id.
          now: Unix time.

        Returns:
          The record.

        Raises:
          ServeError: status 404 if there is none, 410 if it is too old, 409 if it has
            feedback already.
        """
        record = self._records.get(id)
        if record is None:
            raise ServeError(
                f"unknown prediction id {id!r}: the last {self._most} predictions are "
                f"kept, for {self._within:g} s",
                404,
            )
        if record.used:
            raise ServeError(f"request {id!r} has feedback already", 409)
        if now - record.at > self._within:
            raise ServeError(
                f"feedback for request {id!r} is late: {now - record.at:.0f} s after "
                f"the request, of at most {self._within:g} s",
                410,
            )
        return record

    def use(self, record: PredictionRecord) -> None:
        """Marks a record as having received feedback.

        Args:
          record: a record from `find`.
        """
        record.used = True
        self._forget_key(record)

    def _drop(self, id: str) -> None:
        old = self._records.pop(id, None)
        if old is not None:
            self._forget_key(old)

    def _forget_key(self, record: PredictionRecord) -> None:
        ids = self._by_key.get(record.key, {})
        ids.pop(record.id, None)
        if not ids:
            self._by_key.pop(record.key, None)


# -- states by context -----------------------------------------------------------------


class Exchange(NamedTuple):
    """One exchange with the shared states.

    Attributes:
      number: sequence number; the store applies each number once.
      changes: changes by context.
      wanted: contexts whose states to return, including those of `changes`.
    """

    number: int
    changes: dict[str, Change]
    wanted: tuple[str, ...]


class Contexts:
    """Stores states by context.

    Args:
      models: number of models.
      most: most contexts; the least recently used is dropped first.
      shared: whether to collect changes for a shared store.
      fresh: seconds for which a state read from the store is not read again.

    Attributes:
      forgotten: number of contexts dropped.
      dropped: number of pending changes dropped because there were too many.

    Example:
      >>> contexts = Contexts(models=2, most=10)
      >>> contexts.change("a", Change(1.0, (1.0, 0.0), (0.5, 0.0)))
      >>> contexts.get("a", now=0.0).loss, contexts.get("b", now=0.0).loss
      ((0.5, 0.0), (0.0, 0.0))
    """

    forgotten: int
    dropped: int

    def __init__(
        self, models: int, most: int, *, shared: bool = False, fresh: float = 0.2
    ) -> None:
        self._models, self._most = models, most
        self._shared, self._fresh = shared, fresh
        self.forgotten = self.dropped = 0
        #: Least recently used first.
        self._states: OrderedDict[str, LossTotals] = OrderedDict()
        self._read: dict[str, float] = {}
        self._waiting: OrderedDict[str, Change] = OrderedDict()
        self._wanted: dict[str, None] = {}
        self._sent: Exchange | None = None
        self._number = 0

    def __len__(self) -> int:
        return len(self._states)

    def known(self, context: str) -> bool:
        """Returns whether there is a state of this context.

        Args:
          context: the context's name.
        """
        return context in self._states

    def get(self, context: str, now: float) -> LossTotals:
        """Returns the state of a context, which becomes the most recently used.

        Args:
          context: the context's name.
          now: the time, in seconds.

        Returns:
          The state.
        """
        if self._shared and now - self._read.get(context, -1e9) > self._fresh:
            self._wanted[context] = None
            while len(self._wanted) > self._most:
                del self._wanted[next(iter(self._wanted))]
        state = self._states.get(context)
        if state is None:
            state = LossTotals.start(self._models)
        self._set(context, state)
        return state

    def change(self, context: str, change: Change) -> None:
        """Changes a state.

        Args:
          context: the context's name.
          change: from `SelectionPolicy.learn`.
        """
        state = self._states.get(context, LossTotals.start(self._models))
        self._set(context, state.after(change))
        if self._shared:
            before = self._waiting.pop(context, None)
            self._waiting[context] = before.then(change) if before else change
            if len(self._waiting) > self._most:
                self._waiting.popitem(last=False)
                self.dropped += 1

    # -- sharing -----------------------------------------------------------------------

    @property
    def pending(self) -> bool:
        """Whether anything remains to be exchanged."""
        return bool(self._sent or self._waiting or self._wanted)

    def exchange(self, most: int = 256) -> Exchange:
        """Returns the next exchange, unchanged until `exchanged` is called.

        Args:
          most: most contexts in one exchange.

        Returns:
          The exchange.
        """
        if self._sent is None:
            self._number += 1
            changes: dict[str, Change] = {}
            while self._waiting and len(changes) < most:
                context, change = self._waiting.popitem(last=False)
                changes[context] = change
            wanted = dict.fromkeys(changes)
            for context in list(self._wanted):
                if len(wanted) >= most:
                    break
                del self._wanted[context]
                wanted[context] = None
            self._sent = Exchange(self._number, changes, tuple(wanted))
        return self._sent

    def exchanged(self, states: Mapping[str, LossTotals], now: float) -> None:
        """Completes an exchange.

        Args:
          states: states by context, after the changes that were sent.
          now: the time, in seconds.
        """
        self._sent = None
        for context, state in states.items():
            later = self._waiting.get(context)
            if context in self._states:
                self._states[context] = state.after(later) if later else state
                self._read[context] = now

    def _set(self, context: str, state: LossTotals) -> None:
        self._states[context] = state
        self._states.move_to_end(context)
        while len(self._states) > self._most:
            oldest, _ = self._states.popitem(last=False)
            self._read.pop(oldest, None)
            self.forgotten += 1
