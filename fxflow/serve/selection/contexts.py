"""What is known in each context, and what of it other servers are still to be told.

A context is a text that requests name: a user, a country, a microphone. So many are
remembered; the one that was used longest ago is forgotten first, and begins again if it
comes back. Where servers share their states, a change is made here at once and waits
until it was made there too: changes of one context that wait are put together, so what
waits is bounded by the contexts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from fxflow.serve.selection.policies import Change, State


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
        self._states: OrderedDict[str, State] = OrderedDict()
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

    def get(self, context: str, now: float) -> State:
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
            state = State.start(self._models)
        self._set(context, state)
        return state

    def change(self, context: str, change: Change) -> None:
        """Changes a state.

        Args:
          context: its name.
          change: of `Policy.learn`.
        """
        state = self._states.get(context, State.start(self._models))
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

    def exchanged(self, states: Mapping[str, State], now: float) -> None:
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

    def _set(self, context: str, state: State) -> None:
        self._states[context] = state
        self._states.move_to_end(context)
        while len(self._states) > self._most:
            oldest, _ = self._states.popitem(last=False)
            self._read.pop(oldest, None)
            self.forgotten += 1
