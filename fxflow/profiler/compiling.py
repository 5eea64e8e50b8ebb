"""What a function costs before it runs: tracing, lowering, compiling, and retraces."""

from __future__ import annotations

import dataclasses
import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from fxflow._config import config
from fxflow.core import source, tree
from fxflow.core.boundary import guard_methods
from fxflow.errors import ArgumentError, NonHashableStaticError
from fxflow.profiler.report import shown
from fxflow.transforms.explain import reasons
from fxflow.transforms.jit import JitFunction, jit
from fxflow.transforms.marking import NAMES, Marks, Operation

By = Literal["line", "scope", "operation"]

_NAME = re.compile(r'op_name="([^"]*)"')
_PLACE = re.compile(r'loc\("([^"]*)"')


class CompileRow(NamedTuple):
    """A line of a report.

    Attributes:
      name: of a line, a scope, an operation.
      lowered: operations of StableHLO that belong to it: what XLA is given.
      optimized: instructions of the optimised program, those in fusions included.
      share: of the lowered operations.
    """

    name: str
    lowered: int
    optimized: int
    share: float


@guard_methods
@dataclasses.dataclass(frozen=True, repr=False)
class CompileReport:
    """What it takes to compile a function; `compile_report` makes it.

    Attributes:
      name: of the function.
      tracing: seconds in Python, for the graph.
      lowering: seconds for the passes of fxflow and the text of the program.
      compiling: seconds in XLA.
      counts: for each operation of the graph, how many operations of the lowered
        and instructions of the optimised program come from it.
      retraces: for a jitted function, why each trace after the first was made.
    """

    name: str
    tracing: float
    lowering: float
    compiling: float
    counts: tuple[tuple[Operation, int, int], ...]
    retraces: tuple[str, ...]

    def rows(self, by: By = "line") -> list[CompileRow]:
        """Returns what the program is made of, the most first.

        Args:
          by: `"line"` of the user's program; `"scope"`: each `named_scope` with what is
            inside; or `"operation"`.

        Returns:
          A row for each.

        Raises:
          ArgumentError: `by` is something else.
        """
        if by not in NAMES:
            raise ArgumentError(
                f"compile_report: by is one of {', '.join(NAMES)}, got {by!r}"
            )
        lowered: Counter[str] = Counter()
        optimized: Counter[str] = Counter()
        for operation, before, after in self.counts:
            for name in NAMES[by](operation):
                lowered[name] += before
                optimized[name] += after
        total = sum(before for _, before, _ in self.counts) or 1
        rows = [
            CompileRow(name, count, optimized[name], count / total)
            for name, count in lowered.items()
        ]
        return sorted(rows, key=lambda row: (-row.lowered, -row.optimized, row.name))

    def table(self, by: By = "line", limit: int = 12) -> str:
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
        lines = [f"{'lowered':>8} {'%':>5} {'optimized':>9}  by {by}"]
        for row in rows[:limit]:
            name = shown(row.name) if by == "line" else row.name
            lines.append(
                f"{row.lowered:8} {row.share * 100:5.1f} {row.optimized:9}  {name}"
            )
        if len(rows) > limit:
            lines.append(f"{'':25}  and {len(rows) - limit} more")
        return "\n".join(lines)

    def __str__(self) -> str:
        total = self.tracing + self.lowering + self.compiling
        lines = [
            f"{self.name}: {total:.3g} s to compile: tracing {self.tracing:.3g} s, "
            f"lowering {self.lowering:.3g} s, XLA {self.compiling:.3g} s",
            "XLA does not say how long it works on a line: operations are counted",
            "",
            self.table("line"),
            "",
            self.table("scope"),
        ]
        if self.retraces:
            lines += ["", f"traced {len(self.retraces) + 1} times:"]
            lines += [f"  {i + 2}: {why}" for i, why in enumerate(self.retraces)]
        return "\n".join(lines)

    __repr__ = __str__


def compile_report(
    f: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> CompileReport:
    """Measures what it takes to compile a function, and what the program is made of.

    It compiles the function once, without the cache on disk. XLA's time is one number:
    it does not tell how long it works on a line. Instead the operations are counted
    that each line and scope adds to the program XLA is given, and to the one it makes.

    Args:
      f: function of arrays, jitted or not.
      *args: its arguments.
      **kwargs: its arguments by name.

    Returns:
      A report, to be printed; `rows()` has the numbers.

    Raises:
      ArgumentError: `f` is not a function, or has static arguments.

    Special cases:
      Jitted functions that `f` calls, and parts of loops, which were traced before in
      this process are known, so that tracing takes less time than at first.

    Example:
      >>> def f(x):
      ...     with fxflow.named_scope("square"):
      ...         return x @ x
      >>> found = fxflow.profiler.compile_report(f, fnp.ones((8, 8)))
      >>> found.rows("scope")[0].name
      'square'
    """
    if not callable(f):
        raise ArgumentError(f"compile_report: expected a function, got {f!r}")
    retraces: tuple[str, ...] = ()
    if isinstance(f, JitFunction):
        retraces = tuple(reasons(f._caches.signatures))

    @source.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)

    name = source.name_of(f)
    times = [time.perf_counter()]
    is_static = False
    try:
        traced = jit(call).trace(*args, **kwargs)
        is_static = tree.structure((args, kwargs)) != traced.in_tree
    except NonHashableStaticError:  # numbers are arrays here
        is_static = True
    if is_static:
        raise ArgumentError(
            f"compile_report: {name} has static arguments: report a function that has "
            "them already, such as lambda x: f(x, 3)"
        )
    times.append(time.perf_counter())
    marks = Marks(traced.graph)
    marked = dataclasses.replace(traced, graph=marks.graph)
    start = time.perf_counter()
    lowered = marked.lower()
    times.append(time.perf_counter())
    with config.override(cache=False):
        compiled = lowered.compile()
    end = time.perf_counter()
    before = Counter(map(marks.number, _PLACE.findall(lowered.program.text)))
    after = Counter(map(marks.number, _NAME.findall(compiled.as_text())))
    counts = tuple(
        (operation, before[i], after[i])
        for i, operation in enumerate(marks.operations)
        if before[i] or after[i]
    )
    return CompileReport(
        traced.name,
        times[1] - times[0],
        times[2] - start,
        end - times[2],
        counts,
        retraces,
    )
