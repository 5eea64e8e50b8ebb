"""The shards that a server holds, in memory and on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO

import numpy as np

from fxflow.devices import files
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.errors import EntryError
from fxflow.distributed.parameter_server.server.archive import SNAPSHOT_BYTES, Archive
from fxflow.distributed.parameter_server.server.shard import Shard
from fxflow.distributed.parameter_server.tables.store import TableState
from fxflow.distributed.parameter_server.views import View, resumed
from fxflow.errors import DistributedError

#: The file of the last view that a server entered.
_VIEW = "view.json"
#: The name under which tables note changes for the snapshots of logs.
_LOG = "log"


class Store:
    """A server's shards, by number.

    Args:
      server: the server's number, for the names of tables' files.
      folder: the folder of logs and snapshots; None writes none.
      snapshot_bytes: see `Archive`.

    Attributes:
      shards: the shards that this server holds.
    """

    def __init__(
        self, server: int, folder: Path | None, *, snapshot_bytes: int = SNAPSHOT_BYTES
    ) -> None:
        self._server, self._folder = server, folder
        self._snapshot_bytes = snapshot_bytes
        self.shards: dict[int, Shard] = {}
        self._archives: dict[int, Archive] = {}
        #: Shard → which of its two names for files of tables is in use.
        self._slots: dict[int, int] = {}
        self._lock: IO[str] | None = None

    def open(self, number: int) -> Shard:
        """Returns a shard, restored from its snapshot and log if it has them.

        Raises:
          DistributedError: the snapshot is damaged, or the log cannot be replayed.
        """
        if number not in self.shards:
            try:
                self.shards[number] = self._restored(number)
            except BaseException:
                self.close()
                raise
        return self.shards[number]

    def _restored(self, number: int) -> Shard:
        shard = Shard(self._place(number))
        if self._folder is not None:
            self._lock_folder(self._folder)
            archive = Archive(self._folder, number, snapshot_bytes=self._snapshot_bytes)
            snapshot = archive.snapshot()
            if snapshot is not None:
                shard = self._loaded(number, snapshot)
                for name, block in archive.rows():
                    shard.tables[name].put(block)
                for table in shard.tables.values():
                    table.note_changes(_LOG)
            try:
                archive.replay(shard)
            except EntryError as error:
                raise DistributedError(
                    f"shard {number} cannot be restored from its log in "
                    f"{self._folder}: {error}. The log has every acknowledged entry: "
                    "restart the server with more memory or disk"
                ) from error
            self._archives[number] = archive
        return shard

    def _lock_folder(self, folder: Path) -> None:
        """Locks the folder for the lifetime of this process.

        Raises:
          DistributedError: another process has locked it.
        """
        if self._lock is not None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
        try:
            files.lock(lock.fileno())
        except OSError:
            lock.close()
            raise DistributedError(
                f"{folder} is the folder of another running server: give each server "
                "its own folder"
            ) from None
        self._lock = lock

    def kept(self) -> View | None:
        """Returns the last stored view; None if there is none.

        Raises:
          DistributedError: its file is damaged, or another server uses the folder.
        """
        if self._folder is not None:
            self._lock_folder(self._folder)
        return kept_view(self._folder)

    def initial_view(self, view: View) -> tuple[View, bool]:
        """Returns the view that a server begins with, and whether it was in it before.

        If a run continues, that is the last view that the server entered.

        Args:
          view: the view that the server was started with.

        Raises:
          DistributedError: the folder belongs to another run; the store is closed.
        """
        kept = self.kept()
        try:
            if kept is None:
                if view.run and not self.is_empty:
                    raise ValueError("it has shards of another run")
                return view, False
            if not view.run:
                return resumed(view, kept), True
            if view.run != kept.run:
                raise ValueError("it belongs to another run than the given servers")
            return max(view, kept, key=lambda view: view.epoch), True
        except ValueError as error:
            self.close()
            raise DistributedError(
                f"server {self._server} cannot start with the folder {self._folder}: "
                f"{error}"
            ) from None

    def keep(self, view: View) -> None:
        """Stores a view that is entered: a restarted server begins with it.

        Raises:
          DistributedError: it cannot be written to the disk.
        """
        if self._folder is None:
            return
        path = self._folder / _VIEW
        temporary = path.with_suffix(".new")
        try:
            temporary.write_text(json.dumps(view.to_json()), encoding="utf-8")
            temporary.replace(path)
        except OSError as error:
            raise DistributedError(
                f"{path} cannot be written: {error.strerror}"
            ) from error

    @property
    def is_empty(self) -> bool:
        """Whether the folder has no shard."""
        return self._folder is None or not any(self._folder.glob("shard-*"))

    def drop(self, number: int) -> None:
        """Drops a shard that other servers hold, and removes its files."""
        archive = self._archives.pop(number, None)
        if archive is not None:
            archive.remove()  # first: it may be reading the tables
        shard = self.shards.pop(number, None)
        if shard is not None:
            shard.close()

    def append(self, number: int, entry: Message) -> str:
        """Logs and applies an entry that is due.

        Returns:
          Why a push was not used; empty if it was, or will be.

        Raises:
          EntryError: the entry cannot be applied; the shard is no longer usable.
          DistributedError: the entry cannot be logged; nothing has changed.
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
        """Begins to write a snapshot in the background."""
        shard, whole = self.shards[number], archive.wants_all_rows
        rows = _rows(shard, whole)
        archive.begin(shard.position, self._state(number, False), rows, whole=whole)

    def state(self, number: int) -> Message:
        """Returns a shard's whole state as a message, for another server's `load`."""
        return self._state(number, True)

    def _state(self, number: int, with_rows: bool) -> Message:
        shard = self.shards[number]
        fields, arrays = shard.state(with_rows=with_rows)
        # As an array: the JSON may exceed the limit of a message's header.
        text = np.frombuffer(json.dumps(fields).encode(), np.uint8)
        state = messages.State(number, list(shard.position))
        return Message.of(state, arrays={**arrays, "fields": text})

    def load(self, number: int, message: Message) -> None:
        """Replaces a shard, and its files, by the state of another copy.

        Raises:
          ValueError: the message is not a state.
          DistributedError: the state cannot be written to the disk.
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
        """Closes all files and tables."""
        for archive in self._archives.values():
            archive.close()
        for shard in self.shards.values():
            shard.close()
        if self._lock is not None:
            self._lock.close()

    def _loaded(self, number: int, message: Message) -> Shard:
        arrays = dict(message.arrays)
        text = arrays.pop("fields", None)
        if text is None:
            raise ValueError("not the state of a shard")
        fields = json.loads(text.tobytes())
        # The replaced shard still has its tables open, under the other name.
        self._slots[number] = 1 - self._slots.get(number, 0)
        return Shard.of_state(fields, arrays, self._place(number))

    def _place(self, number: int) -> str:
        slot = "ab"[self._slots.get(number, 0)]
        return f"server-{self._server:04}-shard-{number:04}-{slot}"


def kept_view(folder: Path | None) -> View | None:
    """Returns the last view that a server stored in its folder; None if there is none.

    Raises:
      DistributedError: its file is damaged.
    """
    path = None if folder is None else folder / _VIEW
    if path is None or not path.exists():
        return None
    try:
        return View.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise DistributedError(
            f"{path} cannot be read: {error}. Restore a copy of the folder, or give "
            "the server an empty folder if others have its shards"
        ) from error


def _rows(shard: Shard, whole: bool) -> dict[str, TableState]:
    """Returns the current rows of a shard's tables, to be read in the background.

    Args:
      shard: the shard.
      whole: whether to return all rows, or those that changed since the last call.
    """
    found = {}
    for name, table in shard.tables.items():
        if whole:
            table.note_changes(_LOG)
        found[name] = table.state(changed="" if whole else _LOG)
    return found
