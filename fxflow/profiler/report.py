"""Where a step's time goes: by the user's scopes, lines and operations."""

from __future__ import annotations

import dataclasses
import linecache
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from fxflow.core.boundary import guard_methods
from fxflow.devices import profiling
from fxflow.errors import ArgumentError
from fxflow.lax.axes import integer
from fxflow.lax.pytree_transfer import block_until_ready
from fxflow.profiler.programs import Operation, ProfiledProgram
from fxflow.profiler.tracing import record
from fxflow.transforms.marking import NAMES, NO_SCOPE
from fxflow.viz.figures import COLORS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

By = Literal["scope", "line", "operation"]

#: What stands for operations outside of any `named_scope`.


class Row(NamedTuple):
    """A line of a report.

    Attributes:
      name: of a scope, a line, an operation.
      seconds: of a step, in what belongs to it; of a scope, with the scopes inside.
      share: of all that the program spends in operations.
      calls: how often an instruction of it ran in a step.
      flops: a second, estimated.
      bytes: a second, estimated.
    """

    name: str
    seconds: float
    share: float
    calls: float
    flops: float
    bytes: float


class Spent(NamedTuple):
    """What a step spends on one operation.

    Attributes:
      operation: of the function.
      seconds: a step.
      calls: how often instructions of it ran in a step.
      runs: how often it ran in a step: it may be made of several instructions.
    """

    operation: Operation
    seconds: float
    calls: float
    runs: float


@guard_methods
@dataclasses.dataclass(frozen=True, repr=False)
class Report:
    """Where a step's time goes; `report` makes it, and `print` shows it.

    Attributes:
      name: of the function.
      seconds: of a step, the median; not while it is profiled.
      busy: seconds of a profiled step in which an operation of the program ran.
      profiled: seconds of a profiled step.
      runs: how many steps were profiled.
      devices: how many the program runs on; times are means over them.
      spent: what each operation took.
      samples: seconds of each step, of which `seconds` is the median.
    """

    name: str
    seconds: float
    busy: float
    profiled: float
    runs: int
    devices: int
    spent: tuple[Spent, ...]
    samples: tuple[float, ...] = ()

    @property
    def total(self) -> float:
        """Seconds of a step in operations, those that run at once counted each."""
        return sum(item.seconds for item in self.spent)

    def rows(self, by: By = "scope") -> list[Row]:
        """Returns what takes time, the largest first.

        Args:
          by: `"scope"`: each `named_scope` with what is inside; `"line"` of the user's
            program; `"operation"`.

        Returns:
          A row for each.

        Raises:
          ArgumentError: `by` is something else.
        """
        if by not in NAMES:
            raise ArgumentError(f"report: by is one of {', '.join(NAMES)}, got {by!r}")
        found: dict[str, list[Spent]] = {}
        for item in self.spent:
            for name in NAMES[by](item.operation):
                found.setdefault(name, []).append(item)
        total = self.total or 1.0
        rows = []
        for name, items in found.items():
            seconds = sum(item.seconds for item in items)
            per_second = 1 / seconds if seconds else 0.0
            # The estimate is of one run. What is fused runs under another's name.
            rows.append(
                Row(
                    name,
                    seconds,
                    seconds / total,
                    sum(item.calls for item in items),
                    sum(i.operation.flops * i.runs for i in items) * per_second,
                    sum(i.operation.bytes * i.runs for i in items) * per_second,
                )
            )
        return sorted(rows, key=lambda row: -row.seconds)

    def table(self, by: By = "scope", limit: int = 12) -> str:
        """Returns the rows as text.

        Args:
          by: see `rows`.
          limit: how many rows at most.

        Returns:
          A line for each, under a head.

        Raises:
          ArgumentError: `by` is something else.
        """
        rows = self.rows(by)
        lines = [f"{'ms':>9} {'%':>5} {'calls':>6} {'GFLOP/s':>8}  by {by}"]
        for row in rows[:limit]:
            name = shown(row.name) if by == "line" else row.name
            ms, percent, rate = row.seconds * 1e3, row.share * 100, row.flops / 1e9
            lines += [f"{ms:9.3f} {percent:5.1f} {row.calls:6.4g} {rate:8.3g}  {name}"]
        if len(rows) > limit:
            lines.append(f"{'':31}  and {len(rows) - limit} more")
        return "\n".join(lines)

    def picture(self, limit: int = 10) -> Figure:
        """Returns a picture: scopes as a flame graph, and the lines that take most.

        Args:
          limit: how many lines at most.

        Returns:
          A figure of `matplotlib`, which notebooks show and `savefig` writes.

        Raises:
          ImportError: matplotlib is not installed (extra `viz`).
        """
        rows = {row.name: row for row in self.rows("scope")}
        depth = max((name.count("/") + 1 for name in rows), default=1)
        lines = self.rows("line")[:limit]
        figure, axes = new_figure(
            9, 1.4 + 0.4 * depth + 0.3 * len(lines), 2, 1, sharex=True,
            height_ratios=[0.4 * depth + 0.3, 0.3 * len(lines) + 0.3],
        )  # fmt: skip
        figure.suptitle(
            f"{self.name}: {_time(self.seconds)} a step", x=0.01, ha="left", size=11
        )
        _draw_scopes(axes[0], rows, depth, self.total)
        _draw_lines(axes[1], lines)
        return figure

    def __str__(self) -> str:
        many = f" on {self.devices} devices" if self.devices > 1 else ""
        head = (
            f"{self.name}: {_time(self.seconds)} a step{many}; while profiled "
            f"{_time(self.profiled)}, of which {_time(self.busy)} "
            f"({self.busy / max(self.profiled, 1e-12):.0%}) in operations "
            f"({self.runs} steps)"
        )
        kinds: tuple[By, ...] = "scope", "line", "operation"
        return "\n\n".join([head, *(self.table(by) for by in kinds)])

    __repr__ = __str__


def shown(line: str) -> str:
    """Returns `train.py:12  y = x @ w` for a line of a report."""
    found = re.match(r"(.*):(\d+) \(", line)
    if found is None:
        return line
    code = linecache.getline(found[1], int(found[2])).strip()
    return f"{Path(found[1]).name}:{found[2]}  {code[:60]}"


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    return f"{seconds * 1e3:.4g} ms" if seconds < 1 else f"{seconds:.4g} s"


def report(
    f: Callable[..., Any], /, *args: Any, runs: int = 10, **kwargs: Any
) -> Report:
    """Measures where the time of a function goes, by the user's scopes and lines.

    The function is compiled, with nothing changed that could change how fast it is, and
    run; the profile's events are led back to operations of its graph. Gradients count
    for the scopes and lines whose derivative they are. XLA fuses operations: what is
    fused counts for the one that gives the result.

    Args:
      f: function of arrays, jitted or not. Donated arguments are not donated here.
      *args: its arguments.
      runs: how often it is run; a few more come before, to warm up.
      **kwargs: its arguments by name.

    Returns:
      A report, to be printed; `rows()` has the numbers.

    Raises:
      ArgumentError: `runs` is not positive, or `f` is not a function or has static
        arguments.
      RuntimeError: a profile is being recorded: there is one at a time.

    Example:
      >>> def f(x):
      ...     with fxflow.named_scope("square"):
      ...         x = x @ x
      ...     with fxflow.named_scope("order"):
      ...         return fnp.sort(x)
      >>> found = fxflow.profiler.report(f, fnp.ones((256, 256)), runs=3)
      >>> sorted(row.name for row in found.rows("scope"))[-2:]
      ['order', 'square']
    """
    if not callable(f):
        raise ArgumentError(f"report: expected a function, got {f!r}")
    runs = integer("report", "runs", runs)
    if runs < 1:
        raise ArgumentError(f"report: runs must be at least 1, got {runs}")
    program = ProfiledProgram(f, args, kwargs)

    def step() -> float:
        begun = time.perf_counter()
        block_until_ready(program.compiled(*args, **kwargs))
        return time.perf_counter() - begun

    for _ in range(2):
        step()
    samples = tuple(step() for _ in range(runs))
    plain = statistics.median(samples)
    options = profiling.ProfileOptions()
    options.python_tracer_level = 0
    seconds, profile = record("report", lambda: [step() for _ in range(runs)], options)
    devices = len(program.compiled.program.executable.devices)
    spent, busy = _spent(program, profile, runs, devices)
    profiled = sum(seconds) / runs
    return Report(program.name, plain, busy, profiled, runs, devices, spent, samples)


def _spent(
    program: ProfiledProgram, profile: profiling.ProfileData, runs: int, devices: int
) -> tuple[tuple[Spent, ...], float]:
    """Returns what each operation took in a run, and how long any of them ran."""
    times = runs * devices
    events = [e for e in _instructions(profile) if e[0] in program.instructions]
    seen = {name for name, _, _ in events}
    held = {name for name in seen if program.holds(name, seen)}
    seconds: dict[int, float] = {}
    calls: dict[int, Counter[str]] = {}
    intervals = []
    for name, start, duration in events:
        if name in held:
            continue
        node = program.instructions[name].node
        seconds[node] = seconds.get(node, 0.0) + duration
        calls.setdefault(node, Counter())[name] += 1
        intervals.append((start, start + duration))
    spent = tuple(
        Spent(
            program.operations[node],
            total / times * 1e-9,
            calls[node].total() / times,
            max(calls[node].values()) / times,
        )
        for node, total in seconds.items()
    )
    return spent, _covered(intervals) / runs * 1e-9


def _instructions(
    profile: profiling.ProfileData,
) -> Iterator[tuple[str, float, float]]:
    """Yields name, start and duration (ns) of each instruction that was run."""
    for plane in profile.planes:
        for line in plane.lines:
            for event in line.events:
                name = dict(event.stats).get("hlo_op")
                if name is not None and event.duration_ns:
                    yield str(name), event.start_ns, event.duration_ns


def _covered(intervals: list[tuple[float, float]]) -> float:
    """Returns how much of the time at least one of some intervals covers."""
    total, until = 0.0, 0.0
    for start, end in sorted(intervals):
        if end > until:
            total += end - max(start, until)
            until = end
    return total


# -- pictures --------------------------------------------------------------------------


def _draw_scopes(ax: Any, rows: dict[str, Row], depth: int, total: float) -> None:
    """Draws scopes side by side, those inside below those around them."""
    places: dict[str, float] = {"": 0.0}  # where the next scope inside begins
    outer = [name for name in rows if "/" not in name]
    for name, row in sorted(rows.items(), key=lambda item: item[0].count("/")):
        around, _, last = name.rpartition("/")
        left = places[around]
        places[around] = left + row.seconds
        places[name] = left
        color = COLORS[outer.index(name.split("/")[0]) % len(COLORS)]
        level = name.count("/")
        ax.barh(
            depth - level, row.seconds * 1e3, left=left * 1e3, height=0.94,
            color="#bbbbbb" if name == NO_SCOPE else color, edgecolor="white",
            alpha=0.9 - 0.2 * (level % 3),
        )  # fmt: skip
        # Some 90 letters fit beside each other.
        room = int(90 * row.seconds / max(total, 1e-12))
        text = f"{last} {row.share:.0%}"
        if len(text) > room:
            text = last if len(last) <= room else ""
        ax.text(
            (left + row.seconds / 2) * 1e3, depth - level, text,
            ha="center", va="center", size=8.5, color="white",
        )  # fmt: skip
    ax.set_xlim(0, total * 1e3)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("ms by scope", size=9)
    ax.tick_params(labelsize=8)


def _draw_lines(ax: Any, lines: list[Row]) -> None:
    names = [shown(row.name) for row in lines]
    ax.barh(range(len(lines)), [row.seconds * 1e3 for row in lines], color=COLORS[0])
    ax.set_yticks(range(len(lines)), names, family="monospace", size=7.5)
    ax.invert_yaxis()
    ax.set_xlabel("ms by line", size=9)
    ax.tick_params(axis="x", labelsize=8)
    for i, row in enumerate(lines):
        ax.annotate(f" {row.share:.0%}", (row.seconds * 1e3, i), va="center", size=8)
