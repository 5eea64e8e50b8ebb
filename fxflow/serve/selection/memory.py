"""What a selector remembers: predictions that wait for feedback, and states by context.

A record holds the answer of each model to a request, and how the model was chosen.
Feedback finds it by the request's id, or by the same inputs, and counts once. Feedback
that arrives after the record has expired, or for an unknown request, is refused:
learning from a guess of what was answered would be worse than not learning.

A context is a string that requests name: a user, a country, a microphone. A limited
number is remembered; the least recently used one is forgotten first, and starts anew
when it is used again. Where servers share their states, a change is made here at once
and waits until it has been made there: waiting changes of one context are combined, so
that what waits is bounded by the contexts.
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
    def from_json(
        cls, id: str, value: Mapping[str, Any], models: int
    ) -> PredictionRecord:
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
            raise ValueError(f"not a prediction record: {error!r}") from None
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
      >>> choice = Choice(0, 1.0, (0,))
      >>> journal.put(PredictionRecord("r", b"k", "", choice, rows=1, at=0.0))
      >>> record = journal.find("r", now=5.0)
      >>> journal.use(record)
      >>> journal.find("r", now=6.0)
      Traceback (most recent call last):
      fxflow.errors.ServeError: the feedback for request 'r' came already
    """

    def __init__(self, most: int, within: float) -> None:
        self._most, self._within = most, within
        self._records: OrderedDict[str, PredictionRecord] = OrderedDict()
        #: Records that wait for feedback.
        self._by_key: dict[bytes, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, id: object) -> bool:
        return id in self._records

    def put(self, record: PredictionRecord) -> None:
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

    def find(self, id: str, now: float) -> PredictionRecord:
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

    def use(self, record: PredictionRecord) -> None:
        """Notes that the feedback of a record has arrived.

        Args:
          record: one that `find` gave.
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
    """What is sent to the shared states in one go.

    Attributes:
      number: of the exchange; one that was made is not made again.
      changes: by context.
      wanted: contexts whose states are to come back, those of `changes` too.
    """

    number: int
    changes: dict[str, Change]
    wanted: tuple[str, ...]


class Contexts:
    """States by context.

    Args:
      models: how many models there are.
      most: contexts that are remembered.
      shared: whether changes are also to be made elsewhere.
      fresh: seconds for which a state is not asked for again.

    Attributes:
      forgotten: how many contexts were.
      dropped: changes that were never made elsewhere, because they were too many.

    Example:
      >>> contexts = Contexts(models=2, most=10)
      >>> contexts.change("a", Change(1.0, (1.0, 0.0), (0.5, 0.0)))
      >>> contexts.get("a", now=0.0).loss, contexts.get("b", now=0.0).loss
      ((0.5, 0.0), (0.0, 0.0))
    """

    def __init__(
        self, models: int, most: int, *, shared: bool = False, fresh: float = 0.2
    ) -> None:
        self._models, self._most = models, most
        self._shared, self._fresh = shared, fresh
        self.forgotten = self.dropped = 0
        #: In the order of their last use.
        self._states: OrderedDict[str, LossTotals] = OrderedDict()
        self._read: dict[str, float] = {}
        self._waiting: OrderedDict[str, Change] = OrderedDict()
        self._wanted: dict[str, None] = {}
        self._sent: Exchange | None = None
        self._number = 0

    def __len__(self) -> int:
        return len(self._states)

    def known(self, context: str) -> bool:
        """Whether there is a state of this context.

        Args:
          context: its name.
        """
        return context in self._states

    def get(self, context: str, now: float) -> LossTotals:
        """Returns what is known in a context.

        Args:
          context: its name.
          now: the time.

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
          context: its name.
          change: of `Policy.learn`.
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
        """Whether there is something to exchange."""
        return bool(self._sent or self._waiting or self._wanted)

    def exchange(self, most: int = 256) -> Exchange:
        """Returns what to send; the same again until `exchanged` is called.

        Args:
          most: contexts at a time.

        Returns:
          What to send.
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
        """Takes what came back.

        Args:
          states: by context, after the changes that were sent.
          now: the time.
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
