"""What servers are doing: their counts, and rates from two readings of them.

`Monitor` reads them; pure functions make everything else (the table, Prometheus's text,
scalars for logs) from the `Figures` that it returns.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.monitor.asking import ServerAnswer, ServerPoll
from fxflow.distributed.parameter_server.views import View


class WorkerFigures(NamedTuple):
    """One worker.

    Attributes:
      name: such as ``"worker 0"``.
      clock: its pushes since it joined, plus the clock at which it joined
        (`consistency.join`); the lowest value that a server reports.
      rate: of its clock, per second.
      silent: seconds since any server last heard it.
    """

    name: str
    clock: int
    rate: float
    silent: float


class ServerFigures(NamedTuple):
    """One server.

    Attributes:
      number: of the server.
      address: its address.
      problem: why it did not answer; empty if it did.
      counts: its numbers since it began, by `flat_counts`; empty if it did not answer.
      rates: of those, per second, since the last reading.
      stats: its whole answer (`server.process.ShardServer.stats`).
    """

    number: int
    address: str
    problem: str
    counts: dict[tuple[str, str], float]
    rates: dict[tuple[str, str], float]
    stats: dict[str, Any]

    def rate(self, family: str, member: str = "") -> float:
        """Returns a rate per second; 0 if there is none."""
        return self.rates.get((family, member), 0.0)

    @property
    def load(self) -> float:
        """The fraction of time in which its thread was answering messages."""
        return sum(v for (family, _), v in self.rates.items() if family == "busy")

    @property
    def served(self) -> list[tuple[int, dict[str, Any]]]:
        """The shards that it serves, with their numbers."""
        shards = self.stats.get("shards", {})
        return [(int(n), shard) for n, shard in shards.items() if shard["serves"]]


class Figures(NamedTuple):
    """What all servers are doing.

    Attributes:
      seconds: between the two readings; 0 after only one: rates are unknown.
      servers: by number, including those that did not answer.
      workers: by name.
    """

    seconds: float
    servers: list[ServerFigures]
    workers: list[WorkerFigures]

    def total(self, family: str) -> dict[str, float]:
        """Returns the numbers of a family since the servers began, by member."""
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
    """Returns the counters of a server, by family and member.

    The families: `pushes`, `updates`, `repeated`, `dropped` (by reason), `staleness`
    (by staleness), of the shards that it serves; `sent`, `received` (messages by kind),
    `sent_bytes`, `received_bytes`, `shared_bytes` (of both, by memory),
    `dropped_messages` (by reason), `push`, `pull` (bytes by filter), `busy` (seconds by
    kind), `cpu` (seconds).

    Args:
      stats: of a server.
    """
    found: Counter[tuple[str, str]] = Counter()
    for shard in stats["shards"].values():
        if not shard["serves"]:  # its server has the same numbers
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
    """Reads the counts of the servers of a run, from any machine that can reach them.

    Belongs to the thread that made it.

    Args:
      addresses: of the servers, by number. A sequence begins with 0 and includes
        servers that join later; a dictionary is all servers.
      keys: of the run; None on this machine.
      patience: seconds after which a server counts as not answering; the others are
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
        #: Server → its counts, its incarnation, and their time.
        self._before: dict[int, tuple[dict[tuple[str, str], float], int, float]] = {}
        self._clocks: dict[str, int] = {}
        self._looked = 0.0

    def look(self) -> Figures:
        """Returns what the servers have done since the last reading."""
        now = time.monotonic()
        seconds = now - self._looked if self._looked else 0.0
        self._looked = now
        found = []
        for answer in self._servers.ask(messages.Stats()):
            stats: dict[str, Any] = {}
            if answer.message is not None:
                stats = answer.message.fields.stats
            found.append(self._server(answer, stats))
        said = [server.stats for server in found if server.stats]
        if self._follows and said:
            newest = max(said, key=lambda stats: int(stats["epoch"]))
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
        at = float(stats["seconds"])  # by its own clock: it may have been busy
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
            for worker, told in server.stats.get("workers", {}).items():
                names[worker] = told["name"] or names.get(worker) or f"worker {worker}"
                silent[worker] = min(silent.get(worker, told["heard"]), told["heard"])
            for _, shard in server.served:
                for worker, clock in shard["clocks"].items():
                    clocks[worker] = min(clocks.get(worker, clock), clock)
        # The exited process of a restarted worker stays known for a while.
        latest = {names[w]: w for w in sorted(silent, key=silent.__getitem__)[::-1]}
        found = []
        for name in sorted(latest, key=_in_order):
            worker = latest[name]
            clock = clocks.get(worker, 0)
            grown = clock - self._clocks.get(worker, clock)
            rate = max(0.0, grown / seconds) if seconds else 0.0
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
    """Returns what sorts `worker 2` before `worker 10`."""
    job, _, index = name.rpartition(" ")
    return job, int(index) if index.isdigit() else -1, name


# -- numbers for logs ------------------------------------------------------------------


def scalars(figures: Figures, prefix: str = "servers") -> dict[str, float]:
    """Returns what servers are doing as numbers, for any `log(step, values)`.

    Numbers a second, where there were two looks; of what grows all the time the rate
    is what can be drawn. Servers that do not answer have none.

    Args:
      figures: of `Monitor.look`.
      prefix: of all names.

    Returns:
      `pushes_per_second`, `updates_per_second`, `bytes_in_per_second`,
      `bytes_out_per_second`, `staleness` (the mean), `load/0` of each server,
      `clock/worker 0` of each worker, `dropped/reason` so far, `push/filter` and
      `pull/filter` in bytes a second.

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
