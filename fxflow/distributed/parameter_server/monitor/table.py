"""Figures as a text table, and its redrawing on a terminal."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence

from fxflow.distributed.parameter_server.monitor.figures import Figures, ServerFigures

#: Width of the longest bar of the histogram, in characters.
_BAR = 24
#: Maximum number of members shown for a family.
_MAX_MEMBERS = 6


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
    parts.append(_moving_shards(servers))
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
        if_known(lambda: _size(all_of("received_bytes"))),
        if_known(lambda: _size(all_of("sent_bytes"))),
        " ".join(str(shard["version"]) for _, shard in served) or "-",
        _size(sum(shard["bytes"] for _, shard in served)),
        str(server.stats["waiting"]),
        " ".join(str(number) for number, _ in served) or "none",
    ]


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
        entries = [f"{name} {_size(rate)}/s" for name, rate in _largest(rates) if rate]
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


def _size(nbytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if nbytes < 1000:
            return f"{_short(nbytes)} {unit}"
        nbytes /= 1000
    return f"{_short(nbytes)} TB"


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
