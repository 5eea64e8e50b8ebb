"""Plans in files: what runs where and in which order, as JSON that can be edited.

A saved plan names the operations of a program by their numbers and holds their text, so
that a plan of another program is refused. `dataflow.jit(plan=…)` follows one.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fxflow.core.ir.graph import Graph, Node, format_graph
from fxflow.core.source import describe
from fxflow.dataflow.cutting import (
    Fragment,
    Fragments,
    Part,
    assembled,
    in_order,
    levels_of,
)
from fxflow.dataflow.placing import Place, copied_to, place_name
from fxflow.dataflow.timelines import simulate
from fxflow.devices import files
from fxflow.errors import ArgumentError, PlacementError

#: The version of the files' format.
VERSION = 1
#: Lines of each kind that `diff` shows.
_SHOWN = 20


class SavedFragment(NamedTuple):
    """A fragment in a saved plan.

    Attributes:
      device: the name of the place.
      operations: their numbers.
      kind: see `Fragment`.
      stage: see `Fragment`.
      microbatch: see `Fragment`.
      round: see `Fragment`.
    """

    device: str
    operations: tuple[int, ...]
    kind: str = "F"
    stage: int | None = None
    microbatch: int | None = None
    round: int = 0

    @property
    def action(self) -> str:
        """A short name: `2B0`, or that of its kind and operations."""
        if self.microbatch is not None and self.stage is not None:
            return f"{self.stage}{self.kind}{self.microbatch}"
        first, *rest = self.operations
        return f"operations {first}…{rest[-1]}" if rest else f"operation {first}"


class SavedPlan:
    """A plan without its program: it can be saved, edited, compared and given back.

    Args:
      name: of the function.
      program: the text of the graph that was cut, line by line: first the arguments,
        then the operations, last the results.
      fragments: in the order in which they are started; the order of those of one
        device is what counts.
      copies: for operations that run on several devices, these, the one first whose
        results other devices take.
      schedule: the name of the schedule by which the order was found.
      notes: of the plan.

    Attributes:
      name: of the function.
      program: see above.
      fragments: see above.
      copies: see above.
      schedule: see above.
      notes: see above.
    """

    name: str
    schedule: str
    program: tuple[str, ...]
    fragments: tuple[SavedFragment, ...]
    copies: dict[int, tuple[str, ...]]
    notes: tuple[str, ...]

    def __init__(
        self,
        name: str,
        program: Sequence[str],
        fragments: Sequence[SavedFragment],
        copies: Mapping[int, Sequence[str]],
        schedule: str,
        notes: Sequence[str],
    ) -> None:
        self.name, self.schedule = name, schedule
        self.program, self.fragments = tuple(program), tuple(fragments)
        self.copies = {op: tuple(where) for op, where in copies.items()}
        self.notes = tuple(notes)

    @classmethod
    def of(
        cls,
        name: str,
        graph: Graph,
        fragments: Sequence[Fragment],
        schedule: str,
        notes: Sequence[str],
    ) -> SavedPlan:
        """Returns a plan without its program.

        Args:
          name: of the function.
          graph: that was cut.
          fragments: its parts.
          schedule: the name of the schedule.
          notes: of the plan.
        """
        made = {v: f for f in fragments for n in f.graph.nodes for v in n.outputs}
        places: dict[int, list[str]] = {}
        for fragment in fragments:
            for origin in fragment.origins:
                places.setdefault(origin, []).append(place_name(fragment.place))
        copies = {}
        for origin, names in sorted(places.items()):
            if len(names) > 1:
                owner = made.get(graph.nodes[origin].outputs[0])
                first = names[0] if owner is None else place_name(owner.place)
                copies[origin] = [first, *(n for n in names if n != first)]
        saved = [
            SavedFragment(
                place_name(f.place), f.origins, f.kind, f.stage, f.microbatch, f.round
            )
            for f in fragments
        ]
        return cls(name, _lines(graph), saved, copies, schedule, notes)

    # -- JSON --------------------------------------------------------------------------

    def to_json(self) -> str:
        """Returns the plan as JSON, a fragment a line.

        Returns:
          JSON with the keys `fxflow_plan` (the version), `name`, `schedule`, `notes`,
          `fragments`, `copies` and `program`.
        """
        head = {"fxflow_plan": VERSION, "name": self.name, "schedule": self.schedule}
        head["notes"] = list(self.notes)
        parts = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in head.items()]
        rows = [
            json.dumps({k: v for k, v in fragment._asdict().items() if v is not None})
            for fragment in self.fragments
        ]
        lists = {"fragments": rows, "program": list(map(json.dumps, self.program))}
        parts += [
            f'  "{name}": [\n    ' + ",\n    ".join(lines) + "\n  ]"
            for name, lines in lists.items()
        ]
        parts.append(f'  "copies": {json.dumps(self.copies)}')
        return "{\n" + ",\n".join(parts) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> SavedPlan:
        """Reads a plan.

        Args:
          text: as `to_json` returns it.

        Returns:
          The plan.

        Raises:
          ArgumentError: it is not such a text, or another version wrote it.
        """
        try:
            data = json.loads(text)
        except (ValueError, TypeError) as error:
            raise ArgumentError(f"a plan is JSON: {error}") from None
        version = data.get("fxflow_plan") if isinstance(data, dict) else None
        if version != VERSION:
            raise ArgumentError(
                "not a saved plan"
                if version is None
                else f"a plan of version {version!r}; this fxflow reads {VERSION}"
            )
        try:
            fragments = [_fragment(row) for row in data["fragments"]]
            copies = {int(op): list(names) for op, names in data["copies"].items()}
            return cls(
                str(data["name"]),
                list(map(str, data["program"])),
                fragments,
                copies,
                str(data["schedule"]),
                list(map(str, data["notes"])),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ArgumentError(
                f"a saved plan has a part that cannot be read: {error!r}"
            ) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes `to_json` to a file, atomically.

        Args:
          path: of the file.

        Raises:
          OSError: the file cannot be written.
        """
        files.write(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SavedPlan:
        """Reads a plan from a file.

        Args:
          path: of the file.

        Returns:
          The plan.

        Raises:
          ArgumentError: it holds no plan.
          OSError: the file cannot be read.
        """
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except ArgumentError as error:
            raise ArgumentError(f"{os.fspath(path)}: {error}") from None

    def __repr__(self) -> str:
        return f"<SavedPlan of {self.name}, {len(self.fragments)} fragments>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SavedPlan) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.name, self.program, self.fragments))

    # -- comparing ---------------------------------------------------------------------

    def diff(self, other: SavedPlan) -> str:
        """Returns what differs in another plan, as text; empty if nothing does.

        Args:
          other: a plan.
        """
        lines = []
        for what in ("name", "schedule"):
            a, b = getattr(self, what), getattr(other, what)
            if a != b:
                lines.append(f"{what}: {a or 'none'} → {b or 'none'}")
        if self.program != other.program:
            changes = [
                line
                for line in difflib.unified_diff(
                    self.program, other.program, n=0, lineterm=""
                )
                if not line.startswith(("---", "+++", "@@"))
            ]
            lines += ["the programs differ:", *_capped([f"  {c}" for c in changes])]
        else:
            lines += _capped(self._moves(other))
        lines += _capped(self._orders(other))
        added = [note for note in other.notes if note not in self.notes]
        removed = [note for note in self.notes if note not in other.notes]
        lines += [f"note: + {note}" for note in added]
        lines += [f"note: - {note}" for note in removed]
        return "\n".join(lines)

    def _moves(self, other: SavedPlan) -> list[str]:
        before, after = self._devices(), other._devices()
        return [
            f"operation {op} ({self.program[op + 1].strip()}): "
            f"{', '.join(before.get(op, ['nowhere']))} → "
            f"{', '.join(after.get(op, ['nowhere']))}"
            for op in sorted(before.keys() | after.keys())
            if before.get(op) != after.get(op)
        ]

    def _devices(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for fragment in self.fragments:
            for op in fragment.operations:
                found.setdefault(op, []).append(fragment.device)
        return {op: sorted(names) for op, names in found.items()}

    def _orders(self, other: SavedPlan) -> list[str]:
        rows, others = self._rows(), other._rows()
        lines = []
        for device in dict.fromkeys((*rows, *others)):
            a, b = rows.get(device, []), others.get(device, [])
            if a == b:
                continue
            at = next(
                (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y),
                min(len(a), len(b)),
            )
            names = [row[at].action if at < len(row) else "the end" for row in (a, b)]
            lines.append(
                f"{device}: {len(a)} → {len(b)} fragments, from number {at}: "
                f"{names[0]} → {names[1]}"
            )
        return lines

    def _rows(self) -> dict[str, list[SavedFragment]]:
        rows: dict[str, list[SavedFragment]] = {}
        for fragment in self.fragments:
            rows.setdefault(fragment.device, []).append(fragment)
        return rows

    # -- giving it back ----------------------------------------------------------------

    def fragments_of(
        self,
        graph: Graph,
        rounds: Sequence[int],
        place: Callable[[str], Place],
        seconds: Callable[[Fragment], float],
    ) -> Fragments:
        """Cuts a graph as the plan says.

        Args:
          graph: the program.
          rounds: of its nodes.
          place: returns the place of a device's name.
          seconds: that a fragment takes.

        Raises:
          PlacementError: the plan is for another program, leaves an operation out or
            has it twice on a device, names no device, or its order cannot be run.
        """
        self._require_same(graph)
        known = {name: self._place(name, place) for name in self._rows()}
        where = self._devices()
        copies: list[list[Place]] = []
        for op, node in enumerate(graph.nodes):
            names = where.get(op, [])
            if not names:
                raise PlacementError(
                    f"plan: operation {op} ({_told(node)}) is in no fragment"
                )
            twice = [n for n in names if names.count(n) > 1]
            if twice:
                raise PlacementError(
                    f"plan: operation {op} ({_told(node)}) is in two fragments on "
                    f"{twice[0]}"
                )
            first = [n for n in self.copies.get(op, ()) if n in names]
            names = [*first, *(n for n in names if n not in first)]
            copies.append([known[name] for name in names])
        unknown = sorted(set(where) - set(range(len(graph.nodes))))
        if unknown:
            raise PlacementError(
                f"plan: no operation {unknown[0]}: the program has {len(graph.nodes)}"
            )
        placed = copied_to(graph, rounds, copies, {}, list(self.notes))
        number = {
            (origin, at): i
            for i, (origin, at) in enumerate(
                zip(placed.origins, placed.places, strict=True)
            )
        }
        # Raises an error if effects would be in several places.
        levels = levels_of(placed, placed.places)
        nodes = [
            [number[op, known[f.device]] for op in sorted(f.operations)]
            for f in self.fragments
        ]
        parts = [
            Part(
                known[f.device],
                numbers,
                f.kind,
                max(levels[i] for i in numbers),
                f.round,
                f.stage,
                f.microbatch,
            )
            for f, numbers in zip(self.fragments, nodes, strict=True)
            if numbers
        ]
        made = assembled(graph, placed, parts)
        # The order of each device counts; the values say which may overlap.
        timeline = simulate(made.fragments, seconds)
        return in_order(made, [work.index for work in timeline.works])

    def _place(self, name: str, place: Callable[[str], Place]) -> Place:
        try:
            return place(name)
        except (PlacementError, ArgumentError) as error:
            raise PlacementError(f"plan: {error}") from None

    def _require_same(self, graph: Graph) -> None:
        lines = _lines(graph)
        if lines == self.program:
            return
        pairs = zip(self.program, lines, strict=False)
        at = next(
            (i for i, (a, b) in enumerate(pairs) if a != b),
            min(len(lines), len(self.program)),
        )
        what, line = "the results", ""
        if at == 0:
            what = "the arguments"
        elif at - 1 < len(graph.nodes):
            what = f"operation {at - 1}"
            line = f" ({describe(graph.nodes[at - 1].source)})"
        was, now = (
            text[at].strip() if at < len(text) else "not there"
            for text in (self.program, lines)
        )
        raise PlacementError(
            f"the plan of {self.name} was made for another program: {what}{line}\n"
            f"  in the plan: {was}\n  in the program: {now}"
        )


def _fragment(row: dict[str, Any]) -> SavedFragment:
    found = SavedFragment(**row)
    operations = tuple(map(int, found.operations))
    if found.kind not in ("F", "B", "W", "O") or not isinstance(found.device, str):
        raise ValueError(f"fragment {row}")
    return found._replace(operations=operations)


def _lines(graph: Graph) -> tuple[str, ...]:
    """Returns a graph's text: its arguments, each operation, its results."""
    # Addresses of Python objects differ from run to run.
    text = re.sub(r" at 0x[0-9a-f]+", "", format_graph(graph))
    head, *operations = text.splitlines()
    # The name of a transformed function has parentheses of its own.
    arguments = head.removeprefix(f"graph {graph.name}")
    lines = [arguments.partition("(")[2].rpartition(")")[0]]
    for line in operations[:-1]:
        if line.startswith("   "):  # of a graph inside the operation
            lines[-1] += "\n" + line
        else:
            lines.append(line[2:])
    return tuple(lines)


def _told(node: Node) -> str:
    return f"{node.primitive.name}, {describe(node.source)}"


def _capped(lines: list[str]) -> list[str]:
    if len(lines) <= _SHOWN:
        return lines
    return [*lines[:_SHOWN], f"… and {len(lines) - _SHOWN} more"]
