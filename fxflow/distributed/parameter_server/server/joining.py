"""Joining a running parameter server: a new server gets its number and the view."""

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

#: Seconds between two requests to a server.
_RETRY = 0.2


def enlist(
    servers: Sequence[str],
    address: str,
    keys: Keys | None = None,
    *,
    folder: Path | None = None,
    deadline: float = 60.0,
) -> tuple[int, View]:
    """Requests admission to a run, and waits until its servers have agreed on it.

    A server that was in the run before and has stored the view sends no request: all
    other servers may have left.

    Args:
      servers: addresses of some running servers, in any order.
      address: where workers and servers will reach the new server.
      keys: the run's keys; None on the loopback interface.
      folder: the new server's folder.
      deadline: seconds after which the request fails.

    Returns:
      The new server's number, and the view that includes it.

    Raises:
      DistributedError: no shard is left for the server, the servers belong to two runs,
        no server answers in time, or those that answer do not agree in time.
    """
    kept = kept_view(folder)
    if kept is not None and address in kept.addresses:
        return kept.addresses.index(address), kept
    time_limit, sent = Deadline(deadline, "a place in the run"), 0.0
    with Hub(keys) as hub:
        request = _JoinRequest(hub, address, servers)
        while True:
            if time.monotonic() - sent >= _RETRY:
                sent = time.monotonic()
                request.send()
            hub.wait(_RETRY)
            found = request.receive()
            if found is not None:
                return found
            time_limit.check(request.awaited)


class _JoinRequest:
    """A request to the given servers, and to all servers in their views.

    The given servers may not include those that decide.
    """

    def __init__(self, hub: Hub, address: str, servers: Sequence[str]) -> None:
        self._hub, self._address = hub, address
        self._dialers: dict[str, Dialer] = {s: hub.dial(s) for s in servers}
        self._view: View | None = None
        self._why = ""

    def send(self) -> None:
        """Sends the request to all of them."""
        for dialer in self._dialers.values():
            dialer.send(Message.of(messages.Enlist(self._address)))

    def receive(self) -> tuple[int, View] | None:
        """Returns the number and the view once a server has sent them; else None."""
        for dialer in list(self._dialers.values()):
            for message in dialer.receive():
                fields = message.fields
                if isinstance(fields, messages.Failure):
                    why = fields.why
                    raise DistributedError(f"the server at {dialer.address}: {why}")
                if isinstance(fields, messages.Enlisted):
                    view = View.from_json(fields.view)
                    self._note(dialer, view, fields.why)
                    if fields.number >= 0:
                        return fields.number, view
        return None

    def _note(self, dialer: Dialer, view: View, why: str) -> None:
        known = self._view
        if known is not None and 0 not in (known.run, view.run):
            if known.run != view.run:
                raise DistributedError(
                    f"the given servers belong to two runs: {dialer.address} is in "
                    f"another run than {', '.join(known.addresses)}. Give the servers "
                    "of one run"
                )
            if known.epoch > view.epoch:
                return
        self._view, self._why = view, why
        for server in view.peers:
            other = view.addresses[server]
            if other != self._address and other not in self._dialers:
                self._dialers[other] = self._hub.dial(other)

    @property
    def awaited(self) -> str:
        """The servers, or the event, that the request waits for."""
        silent = (f"{a} ({d.problem})" for a, d in self._dialers.items() if d.problem)
        return self._why or ", ".join(silent) or ", ".join(self._dialers)
