"""An event loop whose clock jumps to the next timer when nothing else is to be done.

What is awaited in it takes the stated time exactly, and no time in fact, however busy
the machine is. Not for what waits for threads, processes or sockets.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Clock(selectors.DefaultSelector):
    """Advances its time instead of waiting."""

    now = 0.0

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(None if timeout is None else 0)
        if not found and timeout is not None:
            self.now += max(0.0, timeout)
        return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Clock()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs a coroutine function in a loop of its own."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main())


def now() -> float:
    """Returns the time of the running loop."""
    return asyncio.get_running_loop().time()
