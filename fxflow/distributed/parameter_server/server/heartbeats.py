"""Heartbeats, sent from a separate thread so that they continue during long work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.messages.zeromq import Dialer, Hub


class Heartbeats:
    """Sends heartbeats to other servers periodically.

    Args:
      keys: the run's keys.
      every: seconds between two heartbeats.
      message: returns the next heartbeat; called in the thread.
    """

    def __init__(
        self, keys: Keys | None, every: float, message: Callable[[], Message]
    ) -> None:
        self._addresses: list[str] = []
        self._keys, self._every, self._message = keys, every, message
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="fxflow-parameter-server-heartbeats", daemon=True
        )
        self._thread.start()

    def set_addresses(self, addresses: Iterable[str]) -> None:
        """Sets the addresses of the other servers."""
        self._addresses = list(addresses)

    def close(self) -> None:
        """Ends the thread."""
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        dialers: dict[str, Dialer] = {}
        with Hub(self._keys) as hub:
            while not self._stop.is_set():
                addresses, message = self._addresses, self._message()
                for address in dialers.keys() - {*addresses}:
                    dialers.pop(address).close()
                for address in addresses:
                    if address not in dialers:
                        dialers[address] = hub.dial(address)
                    dialers[address].send(message)
                    dialers[address].receive()
                hub.wait(self._every)
