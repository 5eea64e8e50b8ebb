"""Consistent snapshots: what all shards are after the same pushes of each worker.

A worker asks every server to hold what comes from now on, hears the last number of each
worker that each shard has, and names the greatest of them. A shard takes what it still
lacks up to those numbers, keeps references to its arrays (arrays never change) and goes
on: pushes wait no longer than the messages take. Rows of tables are read in blocks
behind, while the table goes on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.errors import LostCutError
from fxflow.distributed.parameter_server.server.shard import Shard
from fxflow.distributed.parameter_server.tables.snapshot import RowBlock

#: Seconds for which pushes are held at most: for a snapshot, and for an evaluator.
_HELD, _GLANCE = 10.0, 2.0
#: Seconds for which rows of a cut are kept to be read.
_KEPT = 60.0
#: Blocks of rows in one answer, at most, and bytes after which there is none more.
_BLOCKS, _BYTES = 16, 4 << 20

Arrays = dict[str, np.ndarray[Any, Any]]


@dataclasses.dataclass
class _Cut:
    """One cut of one shard.

    Attributes:
      which: its number.
      until: when it is given up.
      peer: who makes it.
      upto: the last number of each worker that is part of it; None: not known yet.
      asked: where from, and with which message, it is waited for.
      held: pushes that came after it began.
    """

    which: int
    until: float
    peer: bytes
    upto: Mapping[int, int] | None = None
    asked: tuple[bytes, Message] | None = None
    held: list[tuple[bytes, Message]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class _Rows:
    """The rows of one table in a cut, as they are read."""

    which: int
    blocks: Iterator[RowBlock]
    until: float
    part: int = -1
    last: Arrays = dataclasses.field(default_factory=dict)


class Cuts:
    """The cuts of a server's shards."""

    def __init__(self) -> None:
        self._cuts: dict[int, _Cut] = {}
        self._rows: dict[tuple[int, str], _Rows] = {}

    def begin(
        self, number: int, which: int, now: float, peer: bytes, looks: bool = False
    ) -> None:
        """Holds what comes to a shard from now on; ends what another cut held.

        Args:
          number: of the shard.
          which: the cut's own number.
          now: the time.
          peer: who makes it.
          looks: whether for the parameters only.
        """
        before = self._cuts.get(number)
        held = before.held if before is not None else []
        seconds = _GLANCE if looks else _HELD
        self._cuts[number] = _Cut(which, now + seconds, peer, held=held)

    def ask(
        self, asked: messages.Cut, peer: bytes, message: Message
    ) -> list[tuple[bytes, Message]]:
        """Names the numbers up to which pushes are part of a cut.

        Returns:
          Those of them that were held.

        Raises:
          LostCutError: it was given up, or never began here.
        """
        cut = self._cuts.get(asked.shard)
        if cut is None or cut.which != asked.cut or asked.upto is None:
            raise LostCutError(
                f"the snapshot of shard {asked.shard} was given up after {_HELD:g} s, "
                "or another server serves the shard now: make another one"
            )
        cut.upto = {pair[0]: pair[1] for pair in asked.upto}
        cut.asked = peer, message
        held, cut.held = cut.held, []
        return held

    def holds(self, number: int, peer: bytes, message: Message) -> bool:
        """Returns whether a push waits until a cut is made."""
        cut = self._cuts.get(number)
        if cut is None:
            return False
        upto = cut.upto or {}
        if cut.upto is not None and message.sequence <= upto.get(message.worker, 0):
            return False
        cut.held.append((peer, message))
        return True

    def taken(self, number: int, shard: Shard) -> tuple[bytes, Message] | None:
        """Returns the request that waits for a cut, if the shard is there now."""
        cut = self._cuts.get(number)
        if cut is None or cut.upto is None:
            return None
        lacks = (
            worker in shard.group and shard.ledger.last(worker) < last
            for worker, last in cut.upto.items()
        )
        return None if any(lacks) else cut.asked

    def end(self, number: int) -> list[tuple[bytes, Message]]:
        """Ends a cut; returns the pushes that it held."""
        cut = self._cuts.pop(number, None)
        return [] if cut is None else cut.held

    def late(self, now: float) -> list[int]:
        """Returns shards whose cut is to be given up, and forgets unread rows."""
        self._rows = {k: rows for k, rows in self._rows.items() if rows.until > now}
        return [number for number, cut in self._cuts.items() if cut.until <= now]

    def makers(self) -> list[tuple[int, bytes]]:
        """Returns the shards that are held, and who makes the cut."""
        return [(number, cut.peer) for number, cut in self._cuts.items()]

    # -- rows of tables ----------------------------------------------------------------

    def keep(self, number: int, which: int, shard: Shard, now: float) -> list[str]:
        """Keeps the rows of a shard's tables as they are, for a cut.

        Returns:
          The tables' names.
        """
        for name, table in shard.tables.items():
            self._rows.pop((number, name), None)
            self._rows[number, name] = _Rows(which, table.state(), now + _KEPT)
        return list(shard.tables)

    def rows(self, asked: messages.ReadRows, now: float) -> Arrays:
        """Returns a part of the rows of a cut; the same once more if it is asked again.

        Raises:
          LostCutError: it was not read for too long, or the cut was made elsewhere.
        """
        number, _, name, part, _ = asked
        rows = self._rows.get((number, name))
        here = rows is not None and rows.which == asked.cut
        if rows is None or not here or part not in (rows.part, rows.part + 1):
            raise LostCutError(
                f"the rows of table {name!r} in the snapshot were not read for "
                f"{_KEPT:g} s, another one was begun, or another server serves the "
                "shard now: make another one"
            )
        for (other, _), waiting in self._rows.items():
            if other == number:  # tables are read one after another
                waiting.until = now + _KEPT
        if part > rows.part:
            rows.part, rows.last, size = part, {}, 0
            for i, block in zip(range(_BLOCKS), rows.blocks, strict=False):
                fields = [block.ids, block.rows, *block.state]
                rows.last |= {f"{i}/{j}": values for j, values in enumerate(fields)}
                size += sum(values.nbytes for values in fields)
                if size >= _BYTES:
                    break
        return rows.last
