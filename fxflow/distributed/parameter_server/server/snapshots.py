"""Consistent snapshots: the state of all shards after the same pushes of each worker.

To make a *cut*, a worker first requests that every server hold later pushes. Each shard
answers with the last push that it has of each worker, and the worker sends all shards
the maxima. A shard applies its pushes up to these, keeps references to its arrays
(arrays never change), and continues. So pushes wait only for these messages. Rows of
tables are then read in blocks, while pushes continue.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.errors import LostCutError
from fxflow.distributed.parameter_server.server.saving import RowWriter
from fxflow.distributed.parameter_server.server.shard import Shard
from fxflow.distributed.parameter_server.tables.store import TableState

#: Maximum seconds for which pushes are held: for a snapshot, and for an evaluator.
_HELD, _HELD_TO_EVALUATE = 10.0, 2.0
#: Seconds for which unread rows of a cut are kept.
_KEPT = 60.0
#: Maximum number of blocks of rows in one answer, and bytes that end it earlier.
_BLOCKS, _BYTES = 16, 4 << 20

#: The name under which tables note changes for snapshots that servers write.
_SAVES = "saves"

Arrays = dict[str, np.ndarray[Any, Any]]


@dataclasses.dataclass
class _Cut:
    """One cut of one shard.

    Attributes:
      cut: the cut's number.
      until: the time at which it expires.
      peer: the address of its requester.
      upto: worker → its last push that is part of the cut; None: not known yet.
      request: the address and the message to answer once the shard has reached it.
      held: pushes that arrived after it began.
    """

    cut: int
    until: float
    peer: bytes
    upto: Mapping[int, int] | None = None
    request: tuple[bytes, Message] | None = None
    held: list[tuple[bytes, Message]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class _Rows:
    """The rows of one table in a cut, and how far they were read."""

    cut: int
    blocks: TableState
    until: float
    part: int = -1
    save: str = ""
    whole: bool = True
    last: Arrays = dataclasses.field(default_factory=dict)


class Cuts:
    """The cuts of a server's shards."""

    def __init__(self) -> None:
        self._cuts: dict[int, _Cut] = {}
        self._rows: dict[tuple[int, str], _Rows] = {}
        #: Shard → the cut and name of the last snapshot that it saves, and the writer.
        self._writers: dict[int, tuple[int, str, RowWriter]] = {}
        #: Shard → the last cut whose rows it keeps, and its tables.
        self._kept: dict[int, tuple[int, list[str]]] = {}

    def begin(
        self, number: int, cut: int, now: float, peer: bytes, params_only: bool = False
    ) -> None:
        """Begins to hold a shard's pushes, in place of an earlier cut.

        Args:
          number: the shard's number.
          cut: the cut's number.
          now: the current time.
          peer: the requester's address.
          params_only: whether the cut is of the parameters only.
        """
        before = self._cuts.get(number)
        held = before.held if before is not None else []
        seconds = _HELD_TO_EVALUATE if params_only else _HELD
        self._cuts[number] = _Cut(cut, now + seconds, peer, held=held)

    def define(
        self, fields: messages.Cut, peer: bytes, message: Message
    ) -> list[tuple[bytes, Message]]:
        """Defines which pushes are part of a cut.

        Returns:
          The pushes that were held, to be handled again.

        Raises:
          LostCutError: the cut has expired, or never began on this server.
        """
        cut = self._cuts.get(fields.shard)
        if cut is None or cut.cut != fields.cut or fields.upto is None:
            raise LostCutError(
                f"the snapshot of shard {fields.shard} was given up after {_HELD:g} s, "
                "or another server serves the shard now: make another one"
            )
        cut.upto = {pair[0]: pair[1] for pair in fields.upto}
        cut.request = peer, message
        held, cut.held = cut.held, []
        return held

    def hold(self, number: int, peer: bytes, message: Message) -> bool:
        """Holds a push if it is not part of a current cut; returns whether it did."""
        cut = self._cuts.get(number)
        if cut is None:
            return False
        upto = cut.upto or {}
        if cut.upto is not None and message.sequence <= upto.get(message.worker, 0):
            return False
        cut.held.append((peer, message))
        return True

    def completed(self, number: int, shard: Shard) -> tuple[bytes, Message] | None:
        """Returns the request to answer, if the shard has reached its cut."""
        cut = self._cuts.get(number)
        if cut is None or cut.upto is None:
            return None
        lacks = (
            worker in shard.group and shard.ledger.last(worker) < last
            for worker, last in cut.upto.items()
        )
        return None if any(lacks) else cut.request

    def end(self, number: int) -> list[tuple[bytes, Message]]:
        """Ends a cut; returns the pushes that it held."""
        cut = self._cuts.pop(number, None)
        return [] if cut is None else cut.held

    def expired(self, now: float) -> list[int]:
        """Returns the shards whose cuts have expired, and drops rows left unread."""
        self._rows = {k: rows for k, rows in self._rows.items() if rows.until > now}
        return [number for number, cut in self._cuts.items() if cut.until <= now]

    def requesters(self) -> list[tuple[int, bytes]]:
        """Returns the shards with a cut, and the addresses of its requesters."""
        return [(number, cut.peer) for number, cut in self._cuts.items()]

    # -- rows of tables ----------------------------------------------------------------

    def keep(self, cut: messages.Cut, shard: Shard, now: float) -> list[str]:
        """Keeps the current rows of a shard's tables for a cut.

        Returns:
          The tables' names.
        """
        number, whole = cut.shard, True
        if cut.save:
            writer = self._writers.get(number)
            whole = not cut.since or writer is None or writer[1] != cut.since
            whole = whole or writer is None or writer[2].failed
        for name, table in shard.tables.items():
            self._rows.pop((number, name), None)
            if cut.save and whole:
                table.note_changes(_SAVES)
            rows = table.state(changed="" if whole else _SAVES)
            until = now + _KEPT
            kept = _Rows(cut.cut, rows, until, save=cut.save, whole=whole)
            self._rows[number, name] = kept
        self._kept[number] = cut.cut, list(shard.tables)
        return list(shard.tables)

    def save(self, asked: messages.SaveRows) -> messages.RowsSaved:
        """Begins to write the rows of a cut; later calls return how far that is.

        Raises:
          LostCutError: the rows were dropped, or another server has them.
          DistributedError: the files cannot be written.
        """
        number = asked.shard
        writer = self._writers.get(number)
        if writer is None or writer[0] != asked.cut:
            mine = [key for key in self._rows if key[0] == number]
            kept = {key[1]: self._rows.pop(key) for key in mine}
            saves = all(k.cut == asked.cut and k.save for k in kept.values())
            if not saves or self._kept.get(number) != (asked.cut, list(kept)):
                raise LostCutError(
                    f"the rows of shard {number} in the snapshot were not saved for "
                    f"{_KEPT:g} s, or another snapshot was begun: make another one"
                )
            if writer is not None:
                writer[2].close()
            names = {k.save for k in kept.values()} or {""}
            whole = all(k.whole for k in kept.values())
            folder = Path(asked.folder) / f"shard-{number:04}"
            rows = {name: k.blocks for name, k in kept.items()}
            writer = asked.cut, names.pop(), RowWriter(folder, rows, whole)
            self._writers[number] = writer
        tables = writer[2].result()
        return messages.RowsSaved(number, asked.request, writer[2].written, tables)

    def close(self) -> None:
        """Ends the threads that write rows."""
        for _, _, writer in self._writers.values():
            writer.close()

    def rows(self, read: messages.ReadRows, now: float) -> Arrays:
        """Returns the next part of a cut's rows, or the last part again.

        Raises:
          LostCutError: the rows were left unread for too long, or another server has
            them.
        """
        number, _, name, part, _ = read
        rows = self._rows.get((number, name))
        here = rows is not None and rows.cut == read.cut
        if rows is None or not here or part not in (rows.part, rows.part + 1):
            raise LostCutError(
                f"the rows of table {name!r} in the snapshot were not read for "
                f"{_KEPT:g} s, another one was begun, or another server serves the "
                "shard now: make another snapshot"
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
