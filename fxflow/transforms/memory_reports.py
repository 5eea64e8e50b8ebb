"""What makes the peak of a program's memory, by the user's lines and scopes."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from fxflow.core.boundary import guard_methods
from fxflow.devices.memory import ADVICE, bytes_text, memory_limit, on_exhaustion
from fxflow.errors import ArgumentError, OutOfMemoryError
from fxflow.transforms.copies import HloInstruction, HloProgram
from fxflow.transforms.liveness import live_at_peak
from fxflow.transforms.marking import OTHER, Marks, Operation, scopes

#: Label of an array that the function captures.
CAPTURED = "(captured)"
By = Literal["line", "scope", "operation", "kind"]

# How many instructions away the origin of one without a name is looked for.
_FAR = 4
_PASSES_ON = {"bitcast", "copy", "copy-done", "copy-start", "get-tuple-element"}

#: Bytes of an element of the largest dtype, complex128.
LARGEST_ITEM = 16
#: Elements of all values of a program that fits into every device: 32 MB at most.
SMALL_PROGRAM = 2**21


class HeldBuffer(NamedTuple):
    """A buffer that is live when the program needs most memory.

    Attributes:
      nbytes: its size.
      type: such as `f32[64,64]`, or `tuple`.
      kind: `"argument"`, `"result"`, `"temporary"` or `"constant"`.
      label: name of the argument, or `"(captured)"`; of others "".
      operation: that made it, with its scope and line.
    """

    nbytes: int
    type: str
    kind: str
    label: str
    operation: Operation


class MemoryRow(NamedTuple):
    """A line of a report.

    Attributes:
      name: of a line, a scope, an operation, a kind.
      nbytes: held at the peak by what belongs to it; of a scope, with scopes inside.
      share: of all that is held.
      buffers: the number of buffers.
    """

    name: str
    nbytes: int
    share: float
    buffers: int


@guard_methods
@dataclass(frozen=True, repr=False)
class MemoryReport:
    """What a program holds in memory at its peak; `print` shows it.

    `Compiled.memory_report` makes it, and `viz.memory` draws it.

    Attributes:
      name: of the function.
      nbytes: that a call needs on each device: arguments, results and temporaries.
      sizes: XLA's sums, as `Compiled.memory_analysis` has them.
      buffers: what is held when the temporaries need most, the largest first.
    """

    name: str
    nbytes: int
    sizes: dict[str, int]
    buffers: tuple[HeldBuffer, ...]

    def rows(self, by: By = "line") -> list[MemoryRow]:
        """Returns what takes memory, the largest first.

        Args:
          by: `"line"` of the user's program, an argument by its name; `"scope"`: each
            `named_scope` with what is inside; `"operation"`; or `"kind"`.

        Returns:
          A row for each.

        Raises:
          ArgumentError: `by` is something else.
        """
        if by not in _NAMES:
            raise ArgumentError(
                f"memory_report: by is one of {', '.join(_NAMES)}, got {by!r}"
            )
        found: dict[str, list[HeldBuffer]] = {}
        for buffer in self.buffers:
            for name in _NAMES[by](buffer):
                found.setdefault(name, []).append(buffer)
        total = sum(b.nbytes for b in self.buffers) or 1
        rows = []
        for name, held in found.items():
            nbytes = sum(b.nbytes for b in held)
            rows.append(MemoryRow(name, nbytes, nbytes / total, len(held)))
        return sorted(rows, key=lambda row: -row.nbytes)

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
        lines = [f"{'size':>10} {'%':>5} {'buffers':>7}  by {by}"]
        for row in rows[:limit]:
            size, percent = bytes_text(row.nbytes), row.share * 100
            lines.append(f"{size:>10} {percent:5.1f} {row.buffers:7}  {row.name}")
        if len(rows) > limit:
            lines.append(f"{'':24}  and {len(rows) - limit} more")
        return "\n".join(lines)

    def largest(self, limit: int = 5) -> str:
        """Returns the largest buffers as text, a line for each.

        Args:
          limit: how many at most.

        Returns:
          Size, type, and the line or the argument.
        """
        lines = []
        for buffer in self.buffers[:limit]:
            (name,) = _line(buffer)
            scope = "/".join(buffer.operation.scope)
            inside = f", in {scope}" if scope else ""
            what = "" if buffer.label else f"{buffer.operation.name}: "
            lines.append(
                f"{bytes_text(buffer.nbytes):>10}  {buffer.type}  {what}{name}{inside}"
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        head = (
            f"{self.name} needs {bytes_text(self.nbytes)} on each device: arguments "
            f"{bytes_text(self.sizes.get('argument_size_in_bytes', 0))}, results "
            f"{bytes_text(self.sizes.get('output_size_in_bytes', 0))}, temporaries "
            f"{bytes_text(self.sizes.get('temp_size_in_bytes', 0))}"
        )
        kinds: tuple[By, ...] = "line", "scope", "kind"
        tables = (self.table(by) for by in kinds)
        return "\n\n".join([head, *tables, f"the largest\n{self.largest()}"])

    __repr__ = __str__


def _line(buffer: HeldBuffer) -> list[str]:
    if buffer.label == CAPTURED:
        return ["a captured array"]
    return [f"the argument {buffer.label}" if buffer.label else buffer.operation.line]


def _scopes(buffer: HeldBuffer) -> Iterable[str]:
    if buffer.label and not buffer.operation.scope:
        return ["(arguments)"]
    return scopes(buffer.operation)


_NAMES: dict[str, Callable[[HeldBuffer], Iterable[str]]] = {
    "line": _line,
    "scope": _scopes,
    "operation": lambda b: ["argument" if b.label else b.operation.name],
    "kind": lambda b: [b.kind],
}


def need(sizes: dict[str, int]) -> int:
    """Returns the bytes that a call needs on each device.

    Args:
      sizes: as `Compiled.memory_analysis` has them.
    """
    names = "argument", "output", "temp"
    total = sum(sizes.get(f"{name}_size_in_bytes", 0) for name in names)
    return total - sizes.get("alias_size_in_bytes", 0)


def report_of(traced: Any, compile: Callable[[Any], Any]) -> MemoryReport:
    """Returns the report of a program.

    Args:
      traced: the function, `Traced`.
      compile: compiles one, to a `Compiled`.
    """
    marks = Marks(traced.graph)
    compiled = compile(dataclasses.replace(traced, graph=marks.graph))
    labels = [""] * len(compiled.constants)
    labels += [traced.labels[i] for i in compiled.lowered.kept]
    sizes = compiled.memory_analysis()
    program = _Origins(compiled.as_text(), marks)
    assigned = compiled.program.executable.assigned_buffers()
    buffers = []
    for one in live_at_peak(assigned, program.program):
        label = ""
        if one.kind == "argument" and one.parameter is not None:
            label = labels[one.parameter] or CAPTURED
        number = program.number(one.computation, one.instruction, one.item)
        operation = OTHER if label else marks.operations[number]
        buffers.append(HeldBuffer(one.nbytes, one.type, one.kind, label, operation))
    return MemoryReport(traced.name, need(sizes), sizes, tuple(buffers))


def require_room(compiled: Any) -> None:
    """Refuses to run a program that needs more memory than a device has.

    Args:
      compiled: a `Compiled` that is not known to fit; it remembers that it does.

    Raises:
      OutOfMemoryError: it does not; the error says what makes the peak.
    """
    traced = compiled.traced.arrays
    device = compiled.program.executable.devices[0]
    limit = memory_limit(device)
    # XLA's sums take a look at the whole program: only where they may be too large.
    most = LARGEST_ITEM * traced.graph.facts.size
    if limit and len(compiled.program.executable.devices) * limit < most:
        sizes = compiled.memory_analysis()
        if need(sizes) > limit:
            raise OutOfMemoryError(
                f"{traced.name} needs {bytes_text(need(sizes))} on each device, and "
                f"{device} has {bytes_text(limit)}. {_largest(compiled)}"
            )
    compiled.has_room = True


def _largest(compiled: Any) -> str:
    """Returns sentences for an error: what a program holds at its peak, what to do."""
    return (
        "The largest of what it holds at its peak:\n"
        f"{compiled.memory_report().largest()}\n{ADVICE.capitalize()}; "
        "memory_report() of the compiled program has all of it"
    )


# -- when the runtime runs out ---------------------------------------------------------

# The runtime says how many bytes it could not allocate, often after the call, but not
# for which program: those that are alive are compared with that number.
# `stages.Compiled` enters each one here.
programs: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
numbers = itertools.count()
#: By how much sizes may differ: the runtime rounds what it allocates and prints.
_TOLERANCE = 0.01


def _allocates(compiled: Any, nbytes: float) -> bool:
    """Returns whether one of the blocks of memory of a program has a size, about."""
    executable = compiled.program.executable
    if need(executable.memory_analysis()) < nbytes * (1 - _TOLERANCE):
        return False
    blocks: dict[int, int] = {}
    for part in executable.assigned_buffers():
        if part.kind in ("result", "temporary"):
            end = part.offset + part.nbytes
            blocks[part.allocation] = max(end, blocks.get(part.allocation, 0))
    return any(abs(b - nbytes) <= _TOLERANCE * nbytes for b in blocks.values())


def _told(nbytes: float) -> str:
    """Returns the report of the newest program that allocates a number of bytes."""
    for reference in reversed(programs.valuerefs()):
        compiled = reference()
        # Whatever goes wrong here, the error that is being explained is more important.
        with contextlib.suppress(Exception):
            if compiled is not None and _allocates(compiled, nbytes):
                needs = bytes_text(need(compiled.memory_analysis()))
                return (
                    f"{compiled.traced.name} allocates that much: it needs {needs} on "
                    f"each device. {_largest(compiled)}"
                )
    return ""


on_exhaustion(_told)


def aval_bytes(aval: Any) -> int:
    """Returns the bytes of a value of a type; 0 if they are unknown."""
    return 0 if aval.is_symbolic else int(aval.nbytes)


class _Origins:
    """Leads instructions of a program back to marked operations.

    Args:
      hlo: text of the program.
      marks: that it was compiled with.
    """

    def __init__(self, hlo: str, marks: Marks) -> None:
        self.program, self.marks = HloProgram(hlo), marks
        self.other = len(marks.operations) - 1

    def number(self, where: str, name: str, index: int | None = None) -> int:
        """Returns the number of the operation that made a buffer.

        Args:
          where: the computation.
          name: of the instruction.
          index: which item, if it gives a tuple.
        """
        return self._number(where, name, index, 0)

    def _number(self, where: str, name: str, index: int | None, far: int) -> int:
        inside = self.program.computations.get(where, {})
        found = inside.get(name)
        if found is None:
            return self.other
        known = self.marks.number(found.op_name)
        if far >= _FAR:
            return known
        if found.operation == "while" and index is not None:
            # What the body puts there says more than the loop.
            body = found.called("body")
            root = self.program.roots.get(body)
            if root is not None and root.operation == "tuple":
                made = self._number(body, root.operands[index], None, far + 1)
                return known if made == self.other else made
        loop = self._loop_with(inside, name) if index is None else None
        if loop is not None:
            made = self._number(where, *loop, far + 1)
            if made != self.other:
                return made
        if found.operation == "fusion":
            known = self._in_fusion(where, found, known, far)
        if known != self.other:
            return known
        if found.operation in _PASSES_ON and found.operands:
            item = found.number if found.operation == "get-tuple-element" else None
            made = self._number(where, found.operands[0], item, far + 1)
            if made != self.other:
                return made
        # What the compiler added is there for what uses it.
        for user in inside.values():
            if name in user.operands:
                place = self._loop_of(inside, user, name) or (user.name, None)
                used = self._number(where, place[0], place[1], far + 1)
                if used != self.other:
                    return used
        return self.other

    def _loop_with(
        self, inside: dict[str, HloInstruction], name: str
    ) -> tuple[str, int] | None:
        """Returns the loop that a value is only the beginning of, and which item."""
        users = [user for user in inside.values() if name in user.operands]
        if len(users) != 1 or users[0].operation not in ("tuple", "copy", "bitcast"):
            return None
        (user,) = users
        if user.operation != "tuple":
            return self._loop_with(inside, user.name)
        return self._loop_of(inside, user, name)

    def _loop_of(
        self, inside: dict[str, HloInstruction], user: HloInstruction, name: str
    ) -> tuple[str, int] | None:
        """Returns the loop that a tuple goes into, and the place of a value in it."""
        for loop in inside.values() if user.operation == "tuple" else ():
            if loop.operation == "while" and user.name in loop.operands:
                return loop.name, user.operands.index(name)
        return None

    def _in_fusion(
        self, around: str, fusion: HloInstruction, known: int, far: int
    ) -> int:
        """Returns what a fusion computes: what it writes into an array, if it does."""
        where = fusion.called("calls")
        root = self.program.roots.get(where)
        inside = self.program.computations.get(where, {})
        if known == self.other and root is not None:
            known = self.marks.number(root.op_name)
        if root is not None and root.operation == "dynamic-update-slice":
            name = root.operands[1]
            for _ in range(_FAR):
                part = inside.get(name)
                if part is None:
                    break
                if part.operation == "parameter":
                    outside = fusion.operands[part.number_of_parameter]
                    made = self._number(around, outside, None, far + 1)
                    return known if made == self.other else made
                made = self.marks.number(part.op_name)
                if made not in (known, self.other):
                    return made
                if not part.operands:
                    break
                name = part.operands[0]
        return known
