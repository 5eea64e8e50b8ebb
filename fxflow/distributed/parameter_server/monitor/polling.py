"""Concurrent requests to all servers of a run, with the reasons for missing answers.

The requesting process is not a worker: servers neither wait for it nor count it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.messages.zeromq import Dialer, Hub
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.views import View
from fxflow.errors import DistributedError

#: Seconds between two attempts to reach a server that is not connected.
_LOOK = 0.05
#: Nanoseconds after which an unanswered request counts as lost.
_LOST = 10_000_000_000


Request = messages.Stats | messages.Trace | messages.Restart | messages.Plan


class ServerAnswer(NamedTuple):
    """The answer of one server.

    Attributes:
      server: the server's number.
      address: the server's address.
      message: the answer; None if none arrived.
      problem: why no answer arrived; empty if one did.
      asked: the time of the request, by this process's `time.monotonic_ns`.
      heard: the time of the answer; 0 if none arrived.
    """

    server: int
    address: str
    message: Message | None
    problem: str
    asked: int = 0
    heard: int = 0


@dataclasses.dataclass
class _Connection:
    """The connection to one server."""

    dialer: Dialer
    #: The unanswered request, or 0, and its time.
    request: int = 0
    asked: int = 0
    #: Whether to wait for answers: not if the last request timed out.
    answers: bool = True


class ServerPoll:
    """Connections to all servers, for the thread that creates them.

    Args:
      addresses: the servers' addresses, by number; a sequence begins with 0.
      keys: the run's keys; None on this machine.
      patience: seconds after which a server counts as not answering.

    Raises:
      DistributedError: an address is malformed, or needs keys.
      ImportError: pyzmq is missing.
    """

    def __init__(
        self,
        addresses: Sequence[str] | Mapping[int, str],
        keys: Keys | None = None,
        patience: float = 2.0,
    ) -> None:
        if not isinstance(addresses, Mapping):
            addresses = dict(enumerate(addresses))
        self.addresses: dict[int, str] = dict(addresses)
        self._patience = patience
        self._hub = Hub(keys)
        self._requests = 0
        try:
            self._connections = {
                number: _Connection(self._hub.dial(address))
                for number, address in self.addresses.items()
            }
        except BaseException:
            self._hub.close()
            raise

    def ask(self, question: Request) -> list[ServerAnswer]:
        """Sends a request to all servers; waits for their answers or the timeout.

        A stopped server gets no second request before it has answered the first, since
        it would handle them all when it resumes. It is also not waited for again.

        Args:
          question: the request's fields; `request` is set for each server.

        Returns:
          One answer for each server, by number.
        """
        first = self._requests + 1
        end = time.monotonic() + self._patience
        found: dict[int, ServerAnswer] = {}
        while True:
            for number, connection in self._connections.items():
                if number not in found:
                    self._send(connection, question)
            left = max(0.0, end - time.monotonic())
            self._hub.wait(min(_LOOK, left) if self._waits(found) else 0.0)
            for number, connection in self._connections.items():
                answer = self._receive(number, connection, first)
                if answer is not None:
                    found[number] = answer
            if not left or not self._waits(found):
                break
        for number, connection in self._connections.items():
            connection.answers = number in found
        return [
            found.get(number) or self._silent(number, connection)
            for number, connection in self._connections.items()
        ]

    def follow(self, addresses: Sequence[str], peers: Sequence[int]) -> None:
        """Adds servers that have joined, and removes those that have left.

        Args:
          addresses: the addresses of all servers, past ones included, by number.
          peers: the numbers of the current servers.
        """
        for number in peers:
            if number not in self._connections:
                address = self.addresses[number] = addresses[number]
                self._connections[number] = _Connection(self._hub.dial(address))
        for number in {*range(len(addresses))} & self._connections.keys() - {*peers}:
            del self.addresses[number]
            self._connections.pop(number).dialer.close()

    def _waits(self, found: Mapping[int, ServerAnswer]) -> bool:
        """Returns whether an answer of a responsive server is missing."""
        return any(
            connection.answers and number not in found
            for number, connection in self._connections.items()
        )

    def _send(self, connection: _Connection, question: Request) -> None:
        """Sends a request, if the server is connected and has answered the last one."""
        now = time.monotonic_ns()
        if not connection.dialer.connected or now - connection.asked > _LOST:
            connection.request = 0
        if connection.request or not connection.dialer.connected:
            return
        self._requests += 1
        request = question._replace(request=self._requests)
        if connection.dialer.send(Message.of(request)):
            connection.request, connection.asked = self._requests, now

    def _receive(
        self, number: int, connection: _Connection, first: int
    ) -> ServerAnswer | None:
        """Returns a server's answer to request `first` or a later one."""
        found = None
        for message in connection.dialer.receive():
            connection.answers = True
            fields = message.fields
            request = getattr(fields, "request", 0)
            if request != connection.request:
                continue
            connection.request = 0
            if request >= first:
                heard = time.monotonic_ns()
                address = self.addresses[number]
                problem = fields.why if isinstance(fields, messages.Failure) else ""
                answer = None if problem else message
                found = ServerAnswer(
                    number, address, answer, problem, connection.asked, heard
                )
        return found

    def _silent(self, number: int, connection: _Connection) -> ServerAnswer:
        waits = (time.monotonic_ns() - connection.asked) / 1e9
        problem = connection.dialer.problem or f"has not answered for {waits:.1f} s"
        return ServerAnswer(number, self.addresses[number], None, problem)

    def close(self) -> None:
        """Ends the connections."""
        self._hub.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# -- the state of a run ----------------------------------------------------------------

#: What `messages.StatsReply` has of one server.
ServerStats = Mapping[str, Any]
#: Seconds after which a server of a run counts as not answering.
PATIENCE = 5.0
#: Seconds between two looks at a run that changes.
_POLL = 0.1


def await_run(
    servers: Sequence[str],
    keys: Keys | None,
    late: Callable[[dict[int, ServerStats]], str],
    deadline: float,
    awaited: str,
) -> dict[int, ServerStats]:
    """Looks at a run until nothing is late; returns the statistics of the last look.

    Args:
      servers: addresses of some servers.
      keys: the run's keys; None on this machine.
      late: returns what is late, from the statistics of the servers that answer; or "".
      deadline: seconds after which the wait fails.
      awaited: the beginning of the error: "shard 3 has not moved".

    Raises:
      DistributedError: something is late; the error says what.
    """
    end = time.monotonic() + deadline
    while True:
        try:
            stats = run_statistics(servers, keys)
        except DistributedError as error:
            why = str(error)
        else:
            why = late(stats)
            if not why:
                return stats
        if time.monotonic() > end:
            raise DistributedError(f"{awaited} within {deadline:g} s, because {why}")
        time.sleep(_POLL)


def run_statistics(servers: Sequence[str], keys: Keys | None) -> dict[int, ServerStats]:
    """Returns the statistics of all servers of a run that answer, by number.

    Args:
      servers: addresses of some servers; the others are found by the newest view.
      keys: the run's keys; None on this machine.

    Raises:
      DistributedError: no server answers.
    """
    with ServerPoll(servers, keys, patience=PATIENCE) as poll:
        answers = poll.ask(messages.Stats())
        found = _statistics(answers)
        if not found:
            silent = ", ".join(f"{a.address} ({a.problem})" for a in answers)
            raise DistributedError(f"no server of the run answers: {silent}")
        view = newest_view(found)
        if {*view.peers} <= {*found}:
            return found
        poll.follow(view.addresses, view.peers)
        return _statistics(poll.ask(messages.Stats()))


def _statistics(answers: Sequence[ServerAnswer]) -> dict[int, ServerStats]:
    found = [a.message.fields.stats for a in answers if a.message is not None]
    return {stats["server"]: stats for stats in found}


def newest_view(stats: Mapping[int, ServerStats]) -> View:
    """Returns the newest view of the given servers.

    Args:
      stats: the statistics of at least one server.
    """
    newest = max(stats.values(), key=lambda one: int(one["epoch"]))
    return View.from_json(newest["view"])


def missing(
    stats: Mapping[int, ServerStats],
    numbers: Sequence[int],
    before: Mapping[int, int] | None = None,
    shards: Sequence[int] | None = None,
) -> str:
    """Returns what is missing until shards are where they are planned; or "".

    Args:
      stats: the statistics of the servers that answered.
      numbers: the servers that must answer.
      before: incarnations that must have ended, by server.
      shards: the shards; None: all.
    """
    silent = [n for n in numbers if n not in stats]
    if silent:
        return f"servers {silent} do not answer"
    for number, incarnation in (before or {}).items():
        if stats[number]["incarnation"] == incarnation:
            return f"server {number} has not ended"
    view = newest_view(stats)
    for shard in range(len(view.holders)) if shards is None else shards:
        held = view.holders[shard]
        primary = stats.get(held[0])
        of_shard = primary["shards"].get(str(shard)) if primary else None
        if of_shard is None or not of_shard["serves"]:
            return f"server {held[0]} does not serve shard {shard}"
        lacking = sorted({*view.places[shard]} - {*held})
        if lacking:
            return f"servers {lacking} lack shard {shard}"
    return ""
