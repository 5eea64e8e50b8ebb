"""Work that several threads ask for at once, and one does.

The others wait. They must not wait for ever: the one may itself wait for them, since
what it runs is the user's (a traced function may start threads and join them, or take a
lock that a waiting one holds). So they wait as long as it moves; one that has not moved
for a while may be stuck, and then the work is done again, which is never wrong.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

# Seconds after which a thread that stands where it stood is taken to be stuck.
PATIENCE = 1.0


class Turn:
    """A thread at work."""

    __slots__ = ("done", "thread")

    done: threading.Event
    thread: int

    def __init__(self) -> None:
        self.done = threading.Event()
        self.thread = threading.get_ident()

    def ended(self, patient: bool) -> bool:
        """Waits; returns whether the work has ended.

        Args:
          patient: whether to wait for a thread that does not move, too.
        """
        # The work has led back to itself: waiting would never end.
        if self.thread == threading.get_ident():
            return False
        before = None
        while not self.done.wait(PATIENCE):
            # No frame: the thread has ended. The same one as before: it is stuck.
            frame = sys._current_frames().get(self.thread)
            position = None if frame is None else (id(frame), frame.f_lasti)
            if frame is None or (position == before and not patient):
                return False
            before = position
        return True


def once(
    turns: dict[Any, Turn],
    key: Any,
    find: Callable[[], T | None],
    make: Callable[[], T],
    *,
    patient: bool = False,
) -> T:
    """Returns what one thread makes for all.

    Args:
      turns: who is at work, by key.
      key: what is wanted.
      find: returns it if it is there.
      make: makes it, and puts it where `find` looks.
      patient: whether `make` runs nothing of the user's, and so can wait for nobody.
    """
    while True:
        found = find()
        if found is not None:
            return found
        mine = Turn()
        turn = turns.setdefault(key, mine)
        if turn is mine:
            break
        if not turn.ended(patient):
            return make()
    try:
        found = find()  # it may have been made since the first look
        return make() if found is None else found
    finally:
        # In this order: a thread that wakes up must not find the turn that has ended.
        del turns[key]
        mine.done.set()
