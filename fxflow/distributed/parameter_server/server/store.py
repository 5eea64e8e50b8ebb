"""The shards that a server holds, in memory and on disk."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import IO

import numpy as np

from fxflow.distributed.messages.codec import Limits, Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.errors import EntryError
from fxflow.distributed.parameter_server.server.archive import (
    SNAPSHOT_BYTES,
    SNAPSHOT_ENTRIES,
    Archive,
)
from fxflow.distributed.parameter_server.server.shard import Shard
from fxflow.distributed.parameter_server.tables.store import TableState
from fxflow.distributed.parameter_server.views import View
from fxflow.errors import DistributedError

#: The last view that a server was in.
_VIEW = "view.json"


class Store:
    """Shards by number.

    Args:
      server: number of the server, for names of files of tables.
      folder: for the logs; None keeps none.
      limits: of a record.
      snapshot_bytes: of a log before a snapshot takes its place; see `Archive`.
      snapshot_entries: the same, in entries.

    Attributes:
      shards: those that lie here.
    """

    def __init__(
        self,
        server: int,
        folder: Path | None,
        limits: Limits,
        *,
        snapshot_bytes: int = SNAPSHOT_BYTES,
        snapshot_entries: int = SNAPSHOT_ENTRIES,
    ) -> None:
        self._server, self._folder, self._limits = server, folder, limits
        self._snapshot_bytes = snapshot_bytes
        self._snapshot_entries = snapshot_entries
        self.shards: dict[int, Shard] = {}
        self._archives: dict[int, Archive] = {}
        self._turns: dict[int, int] = {}
        self._claimed: IO[str] | None = None

    def open(self, number: int) -> Shard:
        """Returns a shard as its snapshot and log say; an empty one if it has none.

        Raises:
          DistributedError: the snapshot is damaged, or the log cannot be applied again.
        """
        if number not in self.shards:
            try:
                self.shards[number] = self._opened(number)
            except BaseException:
                self.close()
                raise
        return self.shards[number]

    def _opened(self, number: int) -> Shard:
        shard = Shard(self._place(number))
        if self._folder is not None:
            self._claim(self._folder)
            archive = Archive(
                self._folder,
                number,
                self._limits,
                snapshot_bytes=self._snapshot_bytes,
                snapshot_entries=self._snapshot_entries,
            )
            snapshot = archive.snapshot()
            if snapshot is not None:
                shard = self._loaded(number, snapshot)
                for name, block in archive.rows():
                    shard.tables[name].put(block)
                for table in shard.tables.values():
                    table.note_changes()
            try:
                archive.replay(shard)
            except EntryError as error:
                raise DistributedError(
                    f"shard {number} cannot be made again of its log in "
                    f"{self._folder}: {error}. The log has all that was acknowledged: "
                    "start again with more memory or disk"
                ) from error
            self._archives[number] = archive
        return shard

    def _claim(self, folder: Path) -> None:
        """Keeps other processes out of the folder for as long as this one lives.

        Raises:
          DistributedError: another one is there.
        """
        if self._claimed is not None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        claimed = (folder / "lock").open("w")
        try:
            fcntl.flock(claimed, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            claimed.close()
            raise DistributedError(
                f"{folder} is the folder of another server that runs: give each one "
                "of its own"
            ) from None
        self._claimed = claimed

    def kept(self) -> View | None:
        """Returns the last view that was kept; None: none was.

        Raises:
          DistributedError: it is damaged, or another server has the folder.
        """
        if self._folder is not None:
            self._claim(self._folder)
        return kept_view(self._folder)

    def keep(self, view: View) -> None:
        """Writes down the view that is entered: who comes again begins with it.

        Raises:
          DistributedError: it cannot be written to the disk.
        """
        if self._folder is None:
            return
        path = self._folder / _VIEW
        new = path.with_suffix(".new")
        try:
            new.write_text(json.dumps(view.to_json()), encoding="utf-8")
            new.replace(path)
        except OSError as error:
            raise DistributedError(
                f"{path} cannot be written: {error.strerror}"
            ) from error

    @property
    def is_empty(self) -> bool:
        """Whether the folder has no shard."""
        return self._folder is None or not any(self._folder.glob("shard-*"))

    def drop(self, number: int) -> None:
        """Forgets a shard, and removes its files: others have it."""
        archive = self._archives.pop(number, None)
        if archive is not None:
            archive.remove()  # first: it may be reading the tables
        shard = self.shards.pop(number, None)
        if shard is not None:
            shard.close()

    def enter(self, number: int, entry: Message) -> str:
        """Writes down and applies an entry that is due.

        Returns:
          Why a push was not used; empty if it was, or will be.

        Raises:
          EntryError: it cannot be applied; the shard is of no use any more.
          DistributedError: it cannot be written down; nothing has changed.
        """
        archive = self._archives.get(number)
        if archive is None:
            return self.shards[number].apply(entry)
        archive.append(entry)
        dropped = self.shards[number].apply(entry)
        if archive.is_due:
            self._write_snapshot(number, archive)
        return dropped

    def _write_snapshot(self, number: int, archive: Archive) -> None:
        """Begins to write a snapshot, behind."""
        shard, whole = self.shards[number], archive.wants_all_rows
        rows = _rows(shard, whole)
        archive.begin(shard.position, self._state(number, False), rows, whole=whole)

    def state(self, number: int) -> Message:
        """Returns all of a shard as a message, for `load` elsewhere."""
        return self._state(number, True)

    def _state(self, number: int, with_rows: bool) -> Message:
        shard = self.shards[number]
        fields, arrays = shard.state(with_rows=with_rows)
        # As an array: it may be longer than the text of a message.
        said = np.frombuffer(json.dumps(fields).encode(), np.uint8)
        state = messages.State(number, list(shard.position))
        return Message.of(state, arrays={**arrays, "fields": said})

    def load(self, number: int, message: Message) -> None:
        """Puts the state of another copy in the place of a shard, and of its files.

        Raises:
          ValueError: it is not a state.
          DistributedError: it cannot be written to the disk.
        """
        loaded = self._loaded(number, message)
        archive = self._archives.get(number)
        if archive is not None:
            archive.close()  # it may be reading the tables
        before, self.shards[number] = self.shards.get(number), loaded
        if before is not None:
            before.close()
        if archive is not None:
            rows = _rows(loaded, whole=True)
            archive.replace(loaded.position, self._state(number, False), rows)

    def close(self) -> None:
        """Closes what is open."""
        for archive in self._archives.values():
            archive.close()
        for shard in self.shards.values():
            shard.close()
        if self._claimed is not None:
            self._claimed.close()

    def _loaded(self, number: int, message: Message) -> Shard:
        arrays = dict(message.arrays)
        said = arrays.pop("fields", None)
        if said is None:
            raise ValueError("not the state of a shard")
        fields = json.loads(said.tobytes())
        # The shard that it replaces has its tables still, elsewhere.
        self._turns[number] = 1 - self._turns.get(number, 0)
        return Shard.of_state(fields, arrays, self._place(number))

    def _place(self, number: int) -> str:
        turn = "ab"[self._turns.get(number, 0)]
        return f"server-{self._server:04}-shard-{number:04}-{turn}"


def kept_view(folder: Path | None) -> View | None:
    """Returns the last view that a server kept in its folder; None: none was.

    Raises:
      DistributedError: it is damaged.
    """
    path = None if folder is None else folder / _VIEW
    if path is None or not path.exists():
        return None
    try:
        return View.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise DistributedError(
            f"{path} cannot be read: {error}. Put a copy of the folder in its place, "
            "or give the server an empty one if others have its shards"
        ) from error


def _rows(shard: Shard, whole: bool) -> dict[str, TableState]:
    """Returns the rows of a shard's tables as they are, to be read behind.

    Args:
      shard: whose tables.
      whole: whether all of them, or those that changed since the last time.
    """
    found = {}
    for name, table in shard.tables.items():
        if whole:
            table.note_changes()
        found[name] = table.state(changed=not whole)
    return found
