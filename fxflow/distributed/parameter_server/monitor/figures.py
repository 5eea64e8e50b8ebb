"""Readings of the servers' counts, the rates between two readings, and their table.

`Monitor` reads the counts; pure functions turn the `Figures` that it returns into a
table, Prometheus's text or scalars for logs.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from fxflow.devices.memory import bytes_text
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


# -- as text ---------------------------------------------------------------------------

#: Width of the longest bar of the histogram, in characters.
_BAR = 24
#: Maximum number of members shown for a family.
_MAX_MEMBERS = 6
#: Share of a server's time from which a shard is shown.
_BUSY = 0.01


def table(figures: Figures, now: float | None = None) -> str:
    """Returns figures as a table of text.

    Rates are those between the last two readings, and ``-`` after the first.

    Args:
      figures: what `Monitor.look` returned.
      now: the time in the first line, in seconds since 1970; None: the current time.

    Returns:
      The lines of the table, each with its newline.
    """
    clock = time.strftime("%H:%M:%S", time.localtime(now))
    servers, workers = figures.servers, figures.workers
    over = f", over {figures.seconds:.1f} s" if figures.seconds else ""
    parts = [
        [f"{clock}  {_count(servers, 'server')}, {_count(workers, 'worker')}{over}"],
        _aligned(_SERVER_HEADS, [_server_row(s) for s in servers]),
        [
            f"server {s.number} at {s.address} does not answer: {s.problem}"
            for s in servers
            if s.problem
        ],
    ]
    parts += [_busiest_shards(servers), _moving_shards(servers)]
    if workers:
        rows = [
            [w.name, str(w.clock), _rate(w.rate, figures), f"{w.silent:.1f} s ago"]
            for w in workers
        ]
        parts.append(_aligned(["worker", "clock", "steps/s", "heard"], rows))
    parts.append(_staleness(figures))
    parts.append(_lists(figures))
    return "\n".join("\n".join(part) for part in parts if part) + "\n"


def _count(things: Sequence[object], what: str) -> str:
    return f"{len(things)} {what}{'' if len(things) == 1 else 's'}"


# -- servers ---------------------------------------------------------------------------

_SERVER_HEADS = [
    "server",
    "load",
    "pushes/s",
    "updates/s",
    "in/s",
    "out/s",
    "version",
    "holds",
    "waiting",
    "shards",
]


def _server_row(server: ServerFigures) -> list[str]:
    if not server.stats:
        return [str(server.number), *["-"] * (len(_SERVER_HEADS) - 1)]
    served = server.served

    def if_known(count: Callable[[], str]) -> str:
        return count() if server.rates else "-"

    def all_of(family: str) -> float:
        return sum(v for (name, _), v in server.rates.items() if name == family)

    return [
        str(server.number),
        if_known(lambda: f"{server.load:.0%}"),
        if_known(lambda: _short(server.rate("pushes"))),
        if_known(lambda: _short(server.rate("updates"))),
        if_known(lambda: bytes_text(all_of("received_bytes"))),
        if_known(lambda: bytes_text(all_of("sent_bytes"))),
        " ".join(str(shard["version"]) for _, shard in served) or "-",
        bytes_text(sum(shard["bytes"] for _, shard in served)),
        str(server.stats["waiting"]),
        " ".join(str(number) for number, _ in served) or "none",
    ]


def _busiest_shards(servers: Sequence[ServerFigures]) -> list[str]:
    """Returns a line with the shards that take the most time of their servers."""
    loads = [
        (shard.get("load", 0.0), number, figures.number)
        for figures in servers
        for number, shard in figures.served
    ]
    busiest = sorted((one for one in loads if one[0] >= _BUSY), reverse=True)
    if not busiest or len(loads) == len(servers):
        return []  # the load of the server says the same
    listed = (f"{n} on server {s} {load:.0%}" for load, n, s in busiest[:_MAX_MEMBERS])
    return [f"busiest shards: {', '.join(listed)}"]


def _moving_shards(servers: Sequence[ServerFigures]) -> list[str]:
    """Returns a line with the shards that are moving to other servers, if any."""
    moves = [
        f"{number} to server {server}"
        for figures in servers
        for number, shard in figures.served
        for server in shard["places"]
        if server not in shard["holders"]
    ]
    return [f"moving shards: {', '.join(moves)}"] if moves else []


# -- staleness -------------------------------------------------------------------------


def bins(counts: Mapping[str, float]) -> dict[str, float]:
    """Returns a histogram of staleness in the bins 0, 1, 2, 3-4, 5-8, ...

    Args:
      counts: staleness, as text → its count.
    """
    found: dict[int, float] = {}
    for staleness, count in counts.items():
        if not count:
            continue
        value = int(staleness)
        # The bin's upper end, a power of two.
        end = value if value < 2 else 1 << (value - 1).bit_length()
        found[end] = found.get(end, 0.0) + count
    ends = [0, 1]
    while ends[-1] < max(found, default=0):
        ends.append(2 * ends[-1])
    return {
        str(end) if end < 3 else f"{end // 2 + 1}-{end}": found.get(end, 0.0)
        for end in ends
    }


def _staleness(figures: Figures) -> list[str]:
    recent = figures.rate("staleness")
    counts = recent if sum(recent.values()) else figures.total("staleness")
    total = sum(counts.values())
    if not total:
        return []
    when = "now" if counts is recent else "since the start"
    rows = []
    for name, count in bins(counts).items():
        share = count / total
        rows.append([name, f"{share:.1%}", "█" * round(share * _BAR)])
    return _aligned(["staleness", "pushes", when], rows)


# -- by reason, by kind, by filter -----------------------------------------------------


_BYTES = {
    "in by kind": "received_bytes",
    "out by kind": "sent_bytes",
    "push by filter": "push",
    "pull by filter": "pull",
}


def _lists(figures: Figures) -> list[str]:
    """Returns a line for each family with nonzero values."""
    found = []
    dropped = {**figures.total("dropped"), **figures.total("dropped_messages")}
    if dropped:
        now = {**figures.rate("dropped"), **figures.rate("dropped_messages")}
        entries = [
            f"{name} {count:.0f} ({_rate(now.get(name, 0.0), figures)}/s)"
            for name, count in _largest(dropped)
        ]
        found.append(["dropped", ", ".join(entries)])
    for title, family in _BYTES.items():
        rates = figures.rate(family)
        entries = [
            f"{name} {bytes_text(rate)}/s" for name, rate in _largest(rates) if rate
        ]
        if entries:
            found.append([title, ", ".join(entries)])
    return _aligned([], found)


def _largest(counts: Mapping[str, float]) -> list[tuple[str, float]]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ordered[:_MAX_MEMBERS]


# -- text ------------------------------------------------------------------------------


def _aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns lines with aligned columns: numbers to the right, except in the first."""
    if not rows:
        return []
    lines = [list(heads), *rows] if heads else list(rows)
    columns = []
    for i, column in enumerate(zip(*lines, strict=True)):
        width = max(map(len, column))
        right = i and any(cell[0].isdigit() for cell in column if cell)
        columns.append([c.rjust(width) if right else c.ljust(width) for c in column])
    return ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]


def _rate(value: float, figures: Figures) -> str:
    return _short(value) if figures.seconds else "-"


def _short(value: float) -> str:
    """Returns a number with three significant digits, or as an integer if >= 100."""
    if not value:
        return "0"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


# -- the terminal ----------------------------------------------------------------------


def redrawn(text: str, before: int) -> tuple[str, int]:
    """Returns what to write to a terminal to replace its last text by a new one.

    Args:
      text: the new lines.
      before: the number of lines of the last text; 0: none.

    Returns:
      What to write, and its number of lines. Lines are cut to the terminal's width and
      height; otherwise the cursor could not return.
    """
    width, height = shutil.get_terminal_size()
    lines = [line[:width] for line in text.splitlines()][: height - 1]
    back = f"\x1b[{before}A" if before else ""
    return back + "\x1b[J" + "".join(f"{line}\n" for line in lines), len(lines)
