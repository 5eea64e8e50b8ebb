"""Readings of the servers' counts, and the rates between two readings.

`Monitor` reads the counts; pure functions turn the `Figures` that it returns into a
table, Prometheus's text or scalars for logs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.monitor.polling import ServerAnswer, ServerPoll
from fxflow.distributed.parameter_server.views import View


class WorkerFigures(NamedTuple):
    """The figures of one worker.

    Attributes:
      name: its name, such as ``"worker 0"``.
      clock: its pushes since it joined, plus the clock at which it joined
        (`consistency.join`); the lowest value that a server reports.
      rate: the increase of its clock per second.
      silent: seconds since its last message to any server.
    """

    name: str
    clock: int
    rate: float
    silent: float


class ServerFigures(NamedTuple):
    """The figures of one server.

    Attributes:
      number: its number.
      address: its address.
      problem: why it did not answer; empty if it did.
      counts: its counts since it started (`flat_counts`); empty if it did not answer.
      rates: the increase of the counts per second since the last reading.
      stats: its whole answer (`server.process.ShardServer.stats`).
    """

    number: int
    address: str
    problem: str
    counts: dict[tuple[str, str], float]
    rates: dict[tuple[str, str], float]
    stats: dict[str, Any]

    def rate(self, family: str, member: str = "") -> float:
        """Returns a rate per second; 0 if it is unknown."""
        return self.rates.get((family, member), 0.0)

    @property
    def load(self) -> float:
        """The fraction of time that its thread spent on messages."""
        return sum(v for (family, _), v in self.rates.items() if family == "busy")

    @property
    def served(self) -> list[tuple[int, dict[str, Any]]]:
        """The shards that it serves, with their numbers."""
        shards = self.stats.get("shards", {})
        return [(int(n), shard) for n, shard in shards.items() if shard["serves"]]


class Figures(NamedTuple):
    """The figures of all servers and workers.

    Attributes:
      seconds: the time between the last two readings; 0 after the first, when rates are
        unknown.
      servers: the servers by number, including those that did not answer.
      workers: the workers by name.
    """

    seconds: float
    servers: list[ServerFigures]
    workers: list[WorkerFigures]

    def total(self, family: str) -> dict[str, float]:
        """Returns the counts of a family since the servers started, by member."""
        return self._sum(family, [server.counts for server in self.servers])

    def rate(self, family: str) -> dict[str, float]:
        """Returns the rates of a family per second, by member."""
        return self._sum(family, [server.rates for server in self.servers])

    def _sum(
        self, family: str, found: Sequence[Mapping[tuple[str, str], float]]
    ) -> dict[str, float]:
        total: dict[str, float] = {}
        for counts in found:
            for (name, member), value in counts.items():
                if name == family:
                    total[member] = total.get(member, 0.0) + value
        return total


def flat_counts(stats: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """Returns the counts of a server, by family and member.

    The families are: of the shards that it serves, `pushes`, `updates`, `repeated`,
    `dropped` (by reason) and `staleness` (by staleness); `sent` and `received`
    (messages by kind); `sent_bytes`, `received_bytes` and `shared_bytes` (those of both
    in shared memory); `dropped_messages` (by reason); `push` and `pull` (bytes by
    filter); `busy` (seconds by kind); `cpu` (seconds).

    Args:
      stats: the server's statistics (`ShardServer.stats`).
    """
    found: Counter[tuple[str, str]] = Counter()
    for shard in stats["shards"].values():
        if not shard["serves"]:  # the shard's primary reports the same counts
            continue
        for family in ("pushes", "updates", "repeated"):
            found[family, ""] += shard[family]
        for family in ("dropped", "staleness"):
            for member, value in shard[family].items():
                found[family, str(member)] += value
    for family, counts in stats["traffic"].items():
        name = "dropped_messages" if family == "dropped" else family
        for member, value in counts.items():
            found[name, member] = value
    for way, counts in stats["filters"].items():
        for member, value in counts.items():
            found[way, member] = value
    for member, value in stats["busy"].items():
        found["busy", member] = value
    found["cpu", ""] = stats["cpu"]
    return {key: float(value) for key, value in found.items()}


class Monitor:
    """Reads the counts of a run's servers, from any machine that can reach them.

    Only the thread that creates a monitor may use it.

    Args:
      addresses: the servers' addresses, by number. With a sequence, which begins with
        0, the monitor follows servers that join and leave; with a dictionary it reads
        only the given ones.
      keys: the run's keys; None on this machine.
      patience: seconds after which a server counts as not answering, and the others are
        reported without it.

    Raises:
      DistributedError: an address is malformed, or needs keys.
      ImportError: pyzmq is missing.

    Example:
      >>> from fxflow.distributed.parameter_server import LocalServers, monitor
      >>> local = LocalServers(2)
      >>> with monitor.Monitor(local.cluster.servers) as watched:
      ...     figures = watched.look()
      >>> [server.problem for server in figures.servers], figures.workers
      (['', ''], [])
      >>> local.close()
    """

    def __init__(
        self,
        addresses: Sequence[str] | Mapping[int, str],
        keys: Keys | None = None,
        patience: float = 2.0,
    ) -> None:
        self._servers = ServerPoll(addresses, keys, patience)
        self._follows = not isinstance(addresses, Mapping)
        #: Server → its last counts, its incarnation, and the time of the counts.
        self._before: dict[int, tuple[dict[tuple[str, str], float], int, float]] = {}
        self._clocks: dict[str, int] = {}
        self._looked = 0.0

    def look(self) -> Figures:
        """Returns the counts of all servers, and the rates since the last reading."""
        now = time.monotonic()
        seconds = now - self._looked if self._looked else 0.0
        self._looked = now
        found = []
        for answer in self._servers.ask(messages.Stats()):
            stats: dict[str, Any] = {}
            if answer.message is not None:
                stats = answer.message.fields.stats
            found.append(self._server(answer, stats))
        answers = [server.stats for server in found if server.stats]
        if self._follows and answers:
            newest = max(answers, key=lambda stats: int(stats["epoch"]))
            view = View.from_json(newest["view"])
            self._servers.follow(view.addresses, view.peers)
        workers = self._workers(found, seconds)
        return Figures(seconds, found, workers)

    def _server(self, answer: ServerAnswer, stats: dict[str, Any]) -> ServerFigures:
        number, address = answer.server, answer.address
        if not stats:
            self._before.pop(number, None)
            return ServerFigures(number, address, answer.problem, {}, {}, {})
        counts = flat_counts(stats)
        at = float(stats["seconds"])  # by the server's clock: it may answer late
        rates: dict[tuple[str, str], float] = {}
        before, incarnation, then = self._before.get(number, ({}, 0, 0.0))
        if before and incarnation == stats["incarnation"] and at > then:
            rates = {
                key: max(0.0, value - before.get(key, 0.0)) / (at - then)
                for key, value in counts.items()
            }
        self._before[number] = counts, stats["incarnation"], at
        return ServerFigures(number, address, "", counts, rates, stats)

    def _workers(
        self, servers: Sequence[ServerFigures], seconds: float
    ) -> list[WorkerFigures]:
        silent: dict[str, float] = {}
        clocks: dict[str, int] = {}
        names: dict[str, str] = {}
        for server in servers:
            for worker, seen in server.stats.get("workers", {}).items():
                names[worker] = seen["name"] or names.get(worker) or f"worker {worker}"
                silent[worker] = min(silent.get(worker, seen["heard"]), seen["heard"])
            for _, shard in server.served:
                for worker, clock in shard["clocks"].items():
                    clocks[worker] = min(clocks.get(worker, clock), clock)
        # Servers keep the exited process of a restarted worker for a while.
        latest = {names[w]: w for w in sorted(silent, key=silent.__getitem__)[::-1]}
        found = []
        for name in sorted(latest, key=_in_order):
            worker = latest[name]
            clock = clocks.get(worker, 0)
            increase = clock - self._clocks.get(worker, clock)
            rate = max(0.0, increase / seconds) if seconds else 0.0
            found.append(WorkerFigures(name, clock, rate, silent[worker]))
        self._clocks = clocks
        return found

    def close(self) -> None:
        """Ends the connections."""
        self._servers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _in_order(name: str) -> tuple[str, int, str]:
    """Returns a sort key that puts `worker 2` before `worker 10`."""
    job, _, index = name.rpartition(" ")
    return job, int(index) if index.isdigit() else -1, name


# -- numbers for logs ------------------------------------------------------------------


def scalars(figures: Figures, prefix: str = "servers") -> dict[str, float]:
    """Returns figures as scalars by name, for any `log(step, values)`.

    Rates need two readings. Servers that do not answer contribute nothing.

    Args:
      figures: what `Monitor.look` returned.
      prefix: the prefix of all names.

    Returns:
      `answering` (the number of servers that answer), `pushes_per_second`,
      `updates_per_second`, `bytes_in_per_second`, `bytes_out_per_second`, `staleness`
      (the mean), `load/0` for each server, `clock/worker 0` for each worker,
      `dropped/reason` (the total), `push/filter` and `pull/filter` (bytes per second).

    Example:
      >>> from fxflow.distributed.parameter_server import LocalServers, monitor
      >>> local = LocalServers(1)
      >>> with monitor.Monitor(local.cluster.servers) as watched:
      ...     print(monitor.scalars(watched.look()))
      {'servers/answering': 1.0}
      >>> local.close()
    """
    answering = [server for server in figures.servers if server.stats]
    found = {"answering": float(len(answering))}
    if figures.seconds:
        for name in ("pushes", "updates"):
            found[f"{name}_per_second"] = sum(figures.rate(name).values())
        for way, name in (("in", "received_bytes"), ("out", "sent_bytes")):
            found[f"bytes_{way}_per_second"] = sum(figures.rate(name).values())
        for server in answering:
            found[f"load/{server.number}"] = server.load
        for way in ("push", "pull"):
            for code, rate in figures.rate(way).items():
                found[f"{way}/{code}"] = rate
    counts = figures.rate("staleness")
    if not sum(counts.values()):
        counts = figures.total("staleness")
    if total := sum(counts.values()):
        found["staleness"] = sum(int(s) * n for s, n in counts.items()) / total
    for reason, count in figures.total("dropped").items():
        found[f"dropped/{reason}"] = count
    for worker in figures.workers:
        found[f"clock/{worker.name}"] = float(worker.clock)
    return {f"{prefix}/{name}": value for name, value in found.items()}
