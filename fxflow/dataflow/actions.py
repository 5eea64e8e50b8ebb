"""Schedules as data: for each device the actions of a pipeline, in order.

The notation is that of `torch.distributed.pipelining`, whose files can be loaded: `2F0`
is the forward part of stage 2 for microbatch 0.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fxflow.dataflow.timelines import Sent, Timeline, Work, at_once, simulate
from fxflow.devices import files
from fxflow.errors import ArgumentError, PlacementError

_ACTION = re.compile(r"(-?\d+)([A-Z_]+?)(\d*)")
_OVERLAPPED = re.compile(r"\(([^()]*)\)OVERLAP_F_B")
#: Actions that follow from the others: what a fragment takes is sent to it, and
#: parameters are where their stage is.
_IMPLIED = {
    *("SEND_F", "RECV_F", "SEND_B", "RECV_B"),
    *("UNSHARD", "RESHARD", "REDUCE_GRAD"),
}


class Action(NamedTuple):
    """A part of the work of a pipeline.

    Attributes:
      stage: from 0.
      kind: "F": forward. "I": the gradient of the stage's input. "W": the gradient of
        its weights. "B": both, or, if the schedule has a "W" of the same stage and
        microbatch, as "I".
      microbatch: from 0.
    """

    stage: int
    kind: str
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"


class Schedule:
    """A table of actions: what each device runs, in order.

    `dataflow.jit(schedule=…)` follows it: the stages in row `i` run on the `i`-th
    device.

    Args:
      rows: for each device its actions in order, as `Action`s or texts such as
        ``"2F0"``; see `Schedule.parse`.

    Attributes:
      rows: for each device its actions.
      name: of schedules, in plans.

    Raises:
      ArgumentError: an action cannot be read, is there twice, or a stage is in two
        rows or lacks.

    Example:
      >>> schedule = Schedule([["0F0", "0F1", "0B0", "0B1"], "1F0 1B0 1F1 1B1".split()])
      >>> schedule.stages, schedule.microbatches
      (2, 2)
      >>> print(schedule)
      0F0 0F1 0B0 0B1
      1F0 1B0 1F1 1B1
    """

    rows: tuple[tuple[Action, ...], ...]

    name = "a table of actions"

    def __init__(
        self, rows: Sequence[Sequence[Action] | Sequence[Action | str]]
    ) -> None:
        self.rows = tuple(
            tuple(action for cell in row for action in _read(cell, f"row {i}"))
            for i, row in enumerate(rows)
        )
        self._row_of: dict[int, int] = {}
        seen: set[Action] = set()
        for i, row in enumerate(self.rows):
            for action in row:
                if action in seen:
                    raise ArgumentError(f"Schedule: {action} is there twice")
                seen.add(action)
                if self._row_of.setdefault(action.stage, i) != i:
                    raise ArgumentError(
                        f"Schedule: stage {action.stage} is in row "
                        f"{self._row_of[action.stage]} and in row {i} ({action}): a "
                        "stage runs on one device"
                    )
        lacking = [s for s in range(self.stages) if s not in self._row_of]
        if lacking or not seen:
            raise ArgumentError(
                f"Schedule: no action of stage {lacking[0]}, but of stage "
                f"{self.stages - 1}"
                if lacking
                else "Schedule: there is no action"
            )
        #: Stages and microbatches whose gradients of weights are apart.
        self._apart = {(a.stage, a.microbatch) for a in seen if a.kind == "W"}

    @property
    def stages(self) -> int:
        """The number of stages."""
        return 1 + max((a.stage for row in self.rows for a in row), default=-1)

    @property
    def microbatches(self) -> int:
        """The number of microbatches."""
        return 1 + max((a.microbatch for row in self.rows for a in row), default=-1)

    @classmethod
    def parse(cls, text: str) -> Schedule:
        r"""Reads a schedule.

        Args:
          text: a line for each device, with the actions in order, between commas or
            spaces: `stage`, kind and `microbatch`, as in ``2F0``. Empty cells (idle
            time), and what is implied, are passed over: ``SEND_F``, ``RECV_F``,
            ``SEND_B``, ``RECV_B``, ``UNSHARD``, ``RESHARD``, ``REDUCE_GRAD``.

        Returns:
          The schedule.

        Raises:
          ArgumentError: an action cannot be read; see `Schedule`.

        Example:
          >>> Schedule.parse("0F0,0SEND_F0,,0B0\n1RECV_F0,1F0,1B0")
          Schedule('0F0 0B0', '1F0 1B0')

        Source: the CSV files of `torch.distributed.pipelining`.
        """
        if not isinstance(text, str):
            raise ArgumentError(f"Schedule.parse takes a text, got {text!r}")
        rows: list[Sequence[Action | str]] = []
        for line in text.splitlines():
            if line.strip():
                cells = next(csv.reader([line])) if "," in line else line.split()
                rows.append(cells)
        return cls(rows)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schedule:
        """Reads a schedule from a file; see `parse`.

        Args:
          path: of the file.

        Returns:
          The schedule.

        Raises:
          ArgumentError: an action cannot be read.
          OSError: the file cannot be read.
        """
        try:
            return cls.parse(Path(path).read_text(encoding="utf-8"))
        except ArgumentError as error:
            raise ArgumentError(f"{os.fspath(path)}: {error}") from None

    def to_csv(self) -> str:
        """Returns the schedule as `torch.distributed.pipelining` reads it.

        Returns:
          A line for each device, with commas between the actions.
        """
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(
            [self._torch(action) for action in row] for row in self.rows
        )
        return text.getvalue()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes `to_csv` to a file, atomically.

        Args:
          path: of the file.

        Raises:
          OSError: the file cannot be written.
        """
        files.write(path, self.to_csv().encode())

    def _torch(self, action: Action) -> str:
        apart = (action.stage, action.microbatch) in self._apart
        return str(
            action._replace(kind="I") if action.kind == "B" and apart else action
        )

    def __str__(self) -> str:
        return "\n".join(" ".join(map(str, row)) for row in self.rows)

    def __repr__(self) -> str:
        rows = ", ".join(repr(" ".join(map(str, row))) for row in self.rows)
        return f"Schedule({rows})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self.rows == other.rows

    def __hash__(self) -> int:
        return hash(self.rows)

    # -- what planning asks ------------------------------------------------------------

    def device(self, stage: int, stages: int, devices: int) -> int:
        """Returns the number of the device of a stage: that of its row.

        Args:
          stage: from 0.
          stages: of the program.
          devices: of the plan.

        Raises:
          PlacementError: the table has other stages, or more rows than devices.
        """
        if stages != self.stages:
            raise PlacementError(
                f"the schedule has {self.stages} stages, the program {stages}"
            )
        if len(self.rows) > devices:
            raise PlacementError(
                f"the schedule has {len(self.rows)} rows, one for each device, and "
                f"there {'is' if devices == 1 else 'are'} {devices}"
            )
        return self._row_of[stage]

    def order(
        self,
        works: Sequence[Work],
        seconds: Callable[[Any], float],
        sent: Sent = at_once,
    ) -> Timeline:
        """Returns when each fragment runs in this order.

        Args:
          works: the fragments, in an order that can be run.
          seconds: that one takes.
          sent: seconds in which the results of one arrive at another.

        Raises:
          PlacementError: an action lacks, or the program has no such part; two rows
            are on one device; the order cannot be run (the message shows the cycle).
        """
        return simulate(works, seconds, rows=self._rows(works), sent=sent)

    def _rows(self, works: Sequence[Work]) -> dict[Any, list[Work]]:
        parts: dict[Action, list[Work]] = {}
        for work in works:
            if work.kind == "O":
                continue
            if work.stage is None or work.microbatch is None:
                raise PlacementError(
                    f"{work.describe()} is in no stage, and a table of actions orders "
                    "stages: give them scopes, as in `with on(stages(4)[0])`"
                )
            action = Action(work.stage, work.kind, work.microbatch)
            parts.setdefault(action, []).append(work)
        count = 1 + max((a.microbatch for a in parts), default=-1)
        stages = 1 + max((a.stage for a in parts), default=-1)
        if count != self.microbatches or stages != self.stages:
            raise PlacementError(
                f"the schedule is for {self.stages} stages and {self.microbatches} "
                f"microbatches, the program has {stages} and {count}"
            )
        left = dict(parts)
        rows: dict[Any, list[Work]] = {}
        for i, row in enumerate(self.rows):
            found = [
                work
                for action in row
                for part in self._parts(action)
                for work in left.pop(part, ())
            ]
            places = {work.place: None for work in found}
            if len(places) > 1 or not rows.keys().isdisjoint(places):
                shown = ", ".join(map(str, places))
                raise PlacementError(
                    f"row {i} of the schedule has stages on {shown}: the stages of a "
                    "row are on one device, which no other row has; leave out the "
                    "mapping from stages to devices, and the schedule decides"
                )
            for place in places:
                rows[place] = found
        for action, (work, *_) in left.items():
            raise PlacementError(f"the schedule lacks {action}: {work.describe()}")
        return rows

    def _parts(self, action: Action) -> Iterator[Action]:
        """Yields what an action stands for, with the kinds of fragments."""
        if action.kind == "B" and (action.stage, action.microbatch) not in self._apart:
            yield action
            yield action._replace(kind="W")
        else:
            yield action._replace(kind="B") if action.kind == "I" else action


def schedule_from(rows: Mapping[Any, Sequence[Work]]) -> Schedule:
    """Returns the order of a pipeline as a table of actions.

    Args:
      rows: the fragments of each device, in order.

    Raises:
      PlacementError: there are no stages.
    """
    table: list[Sequence[Action]] = []
    works = [work for row in rows.values() for work in row]
    backward = {(w.stage, w.microbatch) for w in works if w.kind == "B"}
    trains = any(w.kind in ("B", "W") for w in works)
    for row in rows.values():
        actions: dict[Action, None] = {}
        for work in row:
            if work.stage is None or work.microbatch is None:
                continue
            actions[Action(work.stage, work.kind, work.microbatch)] = None
            if trains and (work.stage, work.microbatch) not in backward:
                # The last stage: one program does both.
                actions[Action(work.stage, "B", work.microbatch)] = None
        if actions:
            table.append(list(actions))
    if not table:
        raise PlacementError("a plan without stages in a loop has no table of actions")
    table.sort(key=lambda row: min(action.stage for action in row))
    return Schedule(table)


def _read(cell: Action | str, where: str) -> Iterator[Action]:
    """Yields the actions in a cell of a table."""
    if isinstance(cell, Action):
        yield cell
        return
    if not isinstance(cell, str):
        raise ArgumentError(f"Schedule: {where}: an action is a text, got {cell!r}")
    text = cell.strip()
    overlapped = _OVERLAPPED.fullmatch(text)
    if overlapped:
        for part in re.split(r"[;,]", overlapped[1]):
            yield from _read(part, where)
        return
    found = _ACTION.fullmatch(text)
    if not text or (found and found[2] in _IMPLIED):
        return
    if found is None or found[2] not in ("F", "B", "I", "W") or not found[3]:
        raise ArgumentError(
            f"Schedule: {where}: {text!r} is not an action: write the stage, F, B, I "
            "or W, and the microbatch, as in '2F0'"
        )
    yield Action(int(found[1]), found[2], int(found[3]))
