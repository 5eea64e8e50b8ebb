"""An open-loop load generator over HTTP: requests leave when they are due.

    python benchmarks/serving/load.py plan.json

The plan is a JSON object (see `Plan`), the report another on standard output. Arrivals
are Poisson or evenly spaced and drawn beforehand, whatever the server does; latency
counts from when a request was *to be* sent, so that one which had to wait for a free
connection counts its wait (no coordinated omission). A request that got no answer with
status 200 counts as one that took forever. One thread over epoll, with requests that
are bytes before the clock starts: the generator shares the machine with the server, so
its own cost is in the report.
"""

import base64
import json
import os
import resource
import select
import socket
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

#: In a body: replaced by the request's number.
MARK = b"##########"
NEVER = float("inf")


@dataclass(frozen=True)
class Plan:
    """What is asked, how often, and for how long.

    Attributes:
      port: of the server, on this machine.
      path: of the route.
      bodies: in base64; each request takes the next one. `MARK` becomes its number,
        which an answer must then have, too.
      headers: of all requests.
      rate: requests a second.
      seconds: of sending.
      warm: seconds at the beginning whose requests do not count.
      poisson: whether arrivals are Poisson, otherwise evenly spaced.
      seed: of the arrivals.
      connections: the most at once; a request that finds none free waits for one.
      patience: seconds for which it waits at the most, as clients do; then it is given
        up, with status -2.
      closed: requests in flight of a closed loop instead, which finds the capacity.
      grace: seconds after the last request in which answers are waited for.
      series: whether the report has each request: intended second, latency, status.
    """

    port: int
    path: str
    bodies: list[str]
    headers: dict[str, str] = field(default_factory=dict)
    rate: float = 100.0
    seconds: float = 5.0
    warm: float = 0.0
    poisson: bool = True
    seed: int = 0
    connections: int = 512
    patience: float = NEVER
    closed: int = 0
    grace: float = 5.0
    series: bool = False


def arrivals(plan: Plan) -> np.ndarray:
    """When requests are due, in seconds from the start."""
    if plan.closed:
        return np.zeros(0)
    count = int(plan.rate * plan.seconds)
    if not plan.poisson:
        return np.arange(count) / plan.rate
    gaps = np.random.default_rng(plan.seed).exponential(1 / plan.rate, 2 * count + 50)
    due = np.cumsum(gaps)
    return due[due < plan.seconds]


class Connection:
    """A connection that is kept, with at most one request on it."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.number = -1
        self.rest = memoryview(b"")
        self.got = b""

    def begin(self, number: int, request: bytes) -> bool:
        """Sends; whether all went out."""
        self.number, self.got = number, b""
        self.rest = memoryview(request)
        return self.push()

    def push(self) -> bool:
        """Sends more of the request; whether all went out."""
        try:
            while self.rest:
                self.rest = self.rest[self.socket.send(self.rest) :]
        except BlockingIOError:
            return False
        return True

    def pull(self) -> tuple[int, bytes] | None:
        """Reads; status and body when the answer is complete.

        Raises:
          OSError: the connection is over, or an answer without a request arrives.
        """
        part = self.socket.recv(1 << 18)
        if not part:
            raise ConnectionResetError("closed by the server")
        if self.number < 0:
            raise ConnectionAbortedError("an answer without a request")
        self.got += part
        end = self.got.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = self.got[:end].lower()
        body = self.got[end + 4 :]
        at = head.find(b"\r\ncontent-length:")
        if at < 0:
            if b"\r\ntransfer-encoding: chunked" not in head:
                raise ConnectionAbortedError("an answer without a length")
            if not body.endswith(b"0\r\n\r\n"):
                return None
            return int(head[9:12]), body
        length = int(head[at + 17 :].split(b"\r\n", 1)[0])
        if len(body) < length:
            return None
        if len(body) > length:
            raise ConnectionAbortedError("an answer without a request")
        return int(head[9:12]), body


class Run:
    """One plan being carried out."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.requests = [self._rendered(base64.b64decode(b)) for b in plan.bodies]
        self.due = arrivals(plan)
        self.latency: list[float] = []
        self.status: list[int] = []
        self.faults: Counter[str] = Counter()
        self.lateness: list[float] = []
        self._poll = select.epoll()
        self._open: dict[int, Connection] = {}
        self._free: list[Connection] = []
        self._waiting: deque[int] = deque()

    def _rendered(self, body: bytes) -> tuple[bytes, bytes, bytes]:
        """The request, cut where its number goes."""
        lines = [f"POST {self.plan.path} HTTP/1.1", "Host: localhost"]
        lines += [f"{name}: {value}" for name, value in self.plan.headers.items()]
        lines += [f"Content-Length: {len(body)}", "", ""]
        return ("\r\n".join(lines).encode() + body).partition(MARK)

    # -- connections -------------------------------------------------------------------

    def _connected(self) -> Connection | None:
        if self._free:
            return self._free.pop()
        if len(self._open) >= (self.plan.closed or self.plan.connections):
            return None
        connection = Connection(self.plan.port)
        self._open[connection.socket.fileno()] = connection
        self._poll.register(connection.socket, select.EPOLLIN)
        return connection

    def _drop(self, connection: Connection, why: str) -> None:
        if connection.number >= 0:
            self._finish(connection.number, 0)
            self.faults[why] += 1
        elif why != "closed by the server":
            self.faults[why] += 1
        if connection in self._free:
            self._free.remove(connection)
        del self._open[connection.socket.fileno()]
        connection.socket.close()

    # -- requests ----------------------------------------------------------------------

    def _send(self, number: int) -> None:
        try:
            connection = self._connected()
        except OSError as error:
            self.faults[type(error).__name__] += 1
            self._finish(number, 0)
            return
        if connection is None:
            self._waiting.append(number)
            return
        before, mark, after = self.requests[number % len(self.requests)]
        request = before + (b"%010d" % number if mark else b"") + after
        try:
            if not connection.begin(number, request):
                both = select.EPOLLIN | select.EPOLLOUT
                self._poll.modify(connection.socket, both)
        except OSError as error:
            self._drop(connection, type(error).__name__)

    def _finish(self, number: int, status: int) -> None:
        if self.status[number] >= 0:
            self.faults["answered twice"] += 1
        taken = time.perf_counter() - self.start - self.intended[number]
        self.latency[number] = taken
        self.status[number] = status
        self.pending -= 1

    def _event(self, descriptor: int, what: int) -> None:
        connection = self._open.get(descriptor)
        if connection is None:
            return
        try:
            if what & select.EPOLLOUT and connection.push():
                self._poll.modify(connection.socket, select.EPOLLIN)
            if not what & ~select.EPOLLOUT:
                return
            answer = connection.pull()
        except BlockingIOError:
            return
        except OSError as error:
            self._drop(connection, str(error) or type(error).__name__)
            return
        if answer is None:
            return
        status, body = answer
        number = connection.number
        if self.requests[number % len(self.requests)][1] and (
            status == 200 and b"%010d" % number not in body
        ):
            self.faults["another request's answer"] += 1
        self._finish(number, status)
        connection.number = -1
        self._free.append(connection)
        latest = time.perf_counter() - self.start - self.plan.patience
        while self._waiting:
            number = self._waiting.popleft()
            if self.intended[number] >= latest:
                self._send(number)
                break
            self._finish(number, -2)

    def _expect(self, intended: float) -> int:
        self.intended.append(intended)
        self.latency.append(NEVER)
        self.status.append(-1)
        self.pending += 1
        return len(self.intended) - 1

    def go(self) -> dict[str, Any]:
        """Carries it out and returns the report."""
        plan = self.plan
        self.pending = 0
        self.intended: list[float] = []
        due = self.due.tolist()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.start = time.perf_counter() + 0.05
        while time.perf_counter() < self.start:
            time.sleep(0.001)
        at = 0
        while True:
            now = time.perf_counter() - self.start
            while at < len(due) and due[at] <= now:
                self.lateness.append(now - due[at])
                self._send(self._expect(due[at]))
                at += 1
                now = time.perf_counter() - self.start
            if plan.closed and now < plan.seconds:
                while self.pending < plan.closed:
                    self._send(self._expect(now))
            sent = at == len(due) and now >= plan.seconds
            if sent and (not self.pending or now > plan.seconds + plan.grace):
                break
            next_due = due[at] if at < len(due) else max(plan.seconds, now + 0.05)
            for descriptor, what in self._poll.poll(min(0.05, max(0, next_due - now))):
                self._event(descriptor, what)
        for connection in list(self._open.values()):
            connection.socket.close()
        after = resource.getrusage(resource.RUSAGE_SELF)
        cpu = (after.ru_utime + after.ru_stime) - (usage.ru_utime + usage.ru_stime)
        return self._report(cpu)

    def _report(self, cpu: float) -> dict[str, Any]:
        plan = self.plan
        counted = [k for k, due in enumerate(self.intended) if due >= plan.warm]
        statuses = Counter(self.status[k] for k in counted)
        good = sorted(self.latency[k] for k in counted if self.status[k] == 200)
        span = plan.seconds - plan.warm
        report: dict[str, Any] = {
            "asked": len(counted),
            "statuses": {str(k): n for k, n in sorted(statuses.items())},
            "unanswered": statuses[-1],
            "faults": dict(self.faults),
            "good_per_second": len(good) / span,
            "cpu_us_per_request": cpu / max(1, len(self.intended)) * 1e6,
            "generator_late_ms": 1e3 * quantile(sorted(self.lateness), 0.99),
            "connections": len(self._open),
        }
        for share in (0.5, 0.9, 0.99, 0.999):
            # A request that failed took forever.
            report[f"p{100 * share:g}"] = 1e3 * quantile(good, share, len(counted))
            report[f"good_p{100 * share:g}"] = 1e3 * quantile(good, share)
        if plan.series:
            report["series"] = [
                [round(self.intended[k], 6), round(self.latency[k], 6), self.status[k]]
                for k in counted
            ]
        return report


def quantile(ascending: list[float], share: float, count: int = 0) -> float:
    """The least value that so large a share of `count` values does not exceed.

    Args:
      ascending: values in order.
      share: in (0, 1].
      count: of all values; those that are not in the list are infinite.
    """
    count = count or len(ascending)
    if not count:
        return 0.0
    place = max(0, int(np.ceil(share * count)) - 1)
    return ascending[place] if place < len(ascending) else NEVER


def main() -> None:
    # Where it shares a core with the server, it is not to interrupt it for each answer.
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    given = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps(Run(Plan(**given)).go()))


if __name__ == "__main__":
    main()
