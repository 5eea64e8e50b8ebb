"""Heartbeats from a thread of their own: a server that compiles is not dead."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from fxflow.distributed.parameter_server.keys import Keys
from fxflow.distributed.parameter_server.messages import Message
from fxflow.distributed.parameter_server.transport import Hub


class Beats:
    """Tells other servers again and again that this one is there.

    Args:
      addresses: of the others.
      keys: of the run.
      every: seconds between two heartbeats.
      say: returns the heartbeat; called in the thread.
    """

    def __init__(
        self,
        addresses: Iterable[str],
        keys: Keys | None,
        every: float,
        say: Callable[[], Message],
    ) -> None:
        self._addresses, self._keys = list(addresses), keys
        self._every, self._say = every, say
        self._end = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="fxflow-parameter-server-beats", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._end.set()
        self._thread.join(10)

    def _run(self) -> None:
        with Hub(self._keys) as hub:
            dialers = [hub.dial(address) for address in self._addresses]
            while not self._end.is_set():
                message = self._say()
                for dialer in dialers:
                    dialer.send(message)
                    dialer.receive()
                hub.wait(self._every)
