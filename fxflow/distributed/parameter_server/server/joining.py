"""How a server that joins a run gets a number and the view."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.messages.zeromq import Dialer, Hub
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.deadlines import Deadline
from fxflow.distributed.parameter_server.server.store import kept_view
from fxflow.distributed.parameter_server.views import View
from fxflow.errors import DistributedError

#: How often servers are asked, in seconds.
_ASK = 0.2


def enlist(
    servers: Sequence[str],
    address: str,
    keys: Keys | None = None,
    *,
    folder: Path | None = None,
    deadline: float = 60.0,
) -> tuple[int, View]:
    """Asks the servers of a run to admit a new server, until they have agreed on it.

    A server that was in the run before, and has kept the view, asks no other: all of
    them may have left.

    Args:
      servers: addresses of some running servers, in any order.
      address: at which workers and servers will reach the new server.
      keys: of the run; None on the loopback.
      folder: of the new server.
      deadline: seconds after which it gives up.

    Returns:
      The new server's number, and the view that has it.

    Raises:
      DistributedError: there is no shard for it, the servers belong to two runs, no
        server answers in time, or those that answer do not agree on it.
    """
    kept = kept_view(folder)
    if kept is not None and address in kept.addresses:
        return kept.addresses.index(address), kept
    time_limit, asked = Deadline(deadline, "a place in the run"), 0.0
    with Hub(keys) as hub:
        request = _JoinRequest(hub, address, servers)
        while True:
            if time.monotonic() - asked >= _ASK:
                asked = time.monotonic()
                request.send()
            hub.wait(_ASK)
            found = request.receive()
            if found is not None:
                return found
            time_limit.check(request.late)


class _JoinRequest:
    """A request to the given servers, and to those that their views name.

    The servers that decide may not be among the given ones.
    """

    def __init__(self, hub: Hub, address: str, servers: Sequence[str]) -> None:
        self._hub, self._address = hub, address
        self._dialers: dict[str, Dialer] = {s: hub.dial(s) for s in servers}
        self._view: View | None = None
        self._why = ""

    def send(self) -> None:
        """Asks all of them."""
        for dialer in self._dialers.values():
            dialer.send(Message.of(messages.Enlist(self._address)))

    def receive(self) -> tuple[int, View] | None:
        """Returns the number and the view, once a server has answered with them."""
        for dialer in list(self._dialers.values()):
            for message in dialer.receive():
                said = message.fields
                if isinstance(said, messages.Failure):
                    why = said.why
                    raise DistributedError(f"the server at {dialer.address}: {why}")
                if isinstance(said, messages.Enlisted):
                    view = View.from_json(said.view)
                    self._note(dialer, view, said.why)
                    if said.number >= 0:
                        return said.number, view
        return None

    def _note(self, dialer: Dialer, view: View, why: str) -> None:
        known = self._view
        if known is not None and 0 not in (known.run, view.run):
            if known.run != view.run:
                raise DistributedError(
                    f"the given servers belong to two runs: {dialer.address} is in "
                    f"another than {', '.join(known.addresses)}. Give those of one"
                )
            if known.epoch > view.epoch:
                return
        self._view, self._why = view, why
        for server in view.peers:
            other = view.addresses[server]
            if other != self._address and other not in self._dialers:
                self._dialers[other] = self._hub.dial(other)

    @property
    def late(self) -> str:
        """What the request waits for."""
        silent = (f"{a} ({d.problem})" for a, d in self._dialers.items() if d.problem)
        return self._why or ", ".join(silent) or ", ".join(self._dialers)
