"""Requests to all servers of a run at once; those that do not answer are named.

The process that asks is not a worker: servers neither wait for it nor count it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.messages.zeromq import Dialer, Hub
from fxflow.distributed.parameter_server import messages

#: Seconds between two attempts to reach a server that is not connected.
_LOOK = 0.05
#: Nanoseconds after which a request counts as lost.
_LOST = 10_000_000_000


class ServerAnswer(NamedTuple):
    """The answer of one server.

    Attributes:
      server: its number.
      address: where it was asked.
      message: the answer; None if none arrived.
      problem: why none arrived; empty if one did.
      asked: time of the request, by this process's `time.monotonic_ns`.
      heard: time of the answer; 0 without one.
    """

    server: int
    address: str
    message: Message | None
    problem: str
    asked: int = 0
    heard: int = 0


@dataclasses.dataclass
class _Line:
    """The connection to one server."""

    dialer: Dialer
    #: The unanswered request, 0 if there is none, and its time.
    request: int = 0
    asked: int = 0
    #: Whether to wait for it: not if it let the last request time out.
    answers: bool = True


class ServerPoll:
    """Connections to all servers; belong to the thread that made them.

    Args:
      addresses: of the servers, by number; a sequence begins with 0.
      keys: of the run; None on this machine.
      patience: seconds after which a server that has not answered is named.

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
            self._lines = {
                number: _Line(self._hub.dial(address))
                for number, address in self.addresses.items()
            }
        except BaseException:
            self._hub.close()
            raise

    def ask(self, question: messages.Stats | messages.Trace) -> list[ServerAnswer]:
        """Asks all servers, and waits until each has answered or time is up.

        A stopped server is not asked a second time before it has answered, since it
        would find all requests when it resumes; nor is it waited for again.

        Args:
          question: its number is set for each server.

        Returns:
          One answer for each server, by number.
        """
        first = self._requests + 1
        end = time.monotonic() + self._patience
        found: dict[int, ServerAnswer] = {}
        while True:
            for number, line in self._lines.items():
                if number not in found:
                    self._speak(line, question)
            left = max(0.0, end - time.monotonic())
            self._hub.wait(min(_LOOK, left) if self._waits(found) else 0.0)
            for number, line in self._lines.items():
                answer = self._hear(number, line, first)
                if answer is not None:
                    found[number] = answer
            if not left or not self._waits(found):
                break
        for number, line in self._lines.items():
            line.answers = number in found
        return [
            found.get(number) or self._silent(number, line)
            for number, line in self._lines.items()
        ]

    def follow(self, addresses: Sequence[str], peers: Sequence[int]) -> None:
        """Includes servers that have joined, and leaves out those that have left.

        Args:
          addresses: of all servers that ever were, by number.
          peers: the numbers of those of the run.
        """
        for number in peers:
            if number not in self._lines:
                address = self.addresses[number] = addresses[number]
                self._lines[number] = _Line(self._hub.dial(address))
        for number in {*range(len(addresses))} & self._lines.keys() - {*peers}:
            del self.addresses[number]
            self._lines.pop(number).dialer.close()

    def _waits(self, found: Mapping[int, ServerAnswer]) -> bool:
        """Returns whether a server that does answer has not yet."""
        return any(
            line.answers and number not in found for number, line in self._lines.items()
        )

    def _speak(self, line: _Line, question: messages.Stats | messages.Trace) -> None:
        """Asks a server, unless it is not there or has a question already."""
        now = time.monotonic_ns()
        if not line.dialer.connected or now - line.asked > _LOST:
            line.request = 0
        if line.request or not line.dialer.connected:
            return
        self._requests += 1
        fields = question._replace(request=self._requests)
        if line.dialer.send(Message.of(fields)):
            line.request, line.asked = self._requests, now

    def _hear(self, number: int, line: _Line, first: int) -> ServerAnswer | None:
        """Returns what a server answered to a question not before `first`."""
        found = None
        for message in line.dialer.receive():
            line.answers = True
            said = message.fields
            request = getattr(said, "request", 0)
            if request != line.request:
                continue
            line.request = 0
            if request >= first:
                heard = time.monotonic_ns()
                address = self.addresses[number]
                problem = said.why if isinstance(said, messages.Failure) else ""
                answer = None if problem else message
                found = ServerAnswer(
                    number, address, answer, problem, line.asked, heard
                )
        return found

    def _silent(self, number: int, line: _Line) -> ServerAnswer:
        waits = (time.monotonic_ns() - line.asked) / 1e9
        problem = line.dialer.problem or f"has not answered for {waits:.1f} s"
        return ServerAnswer(number, self.addresses[number], None, problem)

    def close(self) -> None:
        """Ends the connections."""
        self._hub.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
