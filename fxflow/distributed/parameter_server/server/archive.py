"""A shard on disk: a snapshot, and the log of the entries after it.

A single log would grow, and take longer to read, for as long as the run lasts.
Therefore snapshots replace the log from time to time. Files have generations:

- ``shard-0003.000007.log``: the entries since generation 7 began;
- ``shard-0003.000007.state``: the shard at that moment, without the rows of its tables;
- ``shard-0003.000007.rows``: rows of its tables; the state lists the generations of
  rows that belong to the snapshot.

All have the record format of `EntryLog`, with checksums. Rows are streamed, so neither
memory nor a header has to hold all of them.

A generation begins with its log, which gets all later entries. A thread writes its
snapshot, from immutable arrays and a cut of the tables, and removes older files after
it has renamed the snapshot to its final name. So whenever the process dies, the newest
snapshot (if any) and all later logs exist.

Tables may be much larger than what changes in them. A snapshot therefore has only the
rows that changed since the previous one, and refers to the older files. When these
changes take more space than the last full set of rows, all rows are written again. So
the bytes written stay proportional to the bytes of the updates.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from fxflow.devices import files
from fxflow.distributed.messages.codec import Message, decode, encode
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.server.ledger import Position
from fxflow.distributed.parameter_server.server.shard import Shard
from fxflow.distributed.parameter_server.tables.cuts import RowBlock
from fxflow.distributed.parameter_server.tables.store import TableState
from fxflow.errors import DistributedError, MessageError

#: Minimum bytes of a log before a snapshot replaces it: they take a second to read.
SNAPSHOT_BYTES = 64 << 20
#: Entries of a log before a snapshot replaces it: they take seconds to replay.
_SNAPSHOT_ENTRIES = 50_000


class _Cancelled(Exception):
    """A snapshot was cancelled."""


class Archive:
    """The files of one shard, for one process at a time.

    They take the space of a snapshot and a log of `snapshot_bytes` (or of the
    snapshot's size, if that is larger), and twice that while a snapshot is written. If
    the log also becomes full meanwhile, entries wait for the snapshot.

    Args:
      folder: the folder of the files; created if it does not exist.
      number: the shard's number.
      snapshot_bytes: bytes of a log before a snapshot replaces it.
    """

    def __init__(
        self, folder: Path, number: int, *, snapshot_bytes: int = SNAPSHOT_BYTES
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._bytes = folder, snapshot_bytes
        self._stem = f"shard-{number:04}"
        for unfinished in folder.glob(f"{self._stem}.*.new"):
            unfinished.unlink()
        #: The generations of the snapshot and of the current log.
        self._first = self._last = max(self._generations("state"), default=0)
        #: The generations of the snapshot's rows; the first has all rows.
        self._runs: list[int] = []
        #: Bytes of the snapshot's state; more after a snapshot that failed.
        self._written = 0
        self._log: EntryLog | None = None
        #: Entries since the last snapshot, or attempt at one, began.
        self._since = 0
        self._thread: threading.Thread | None = None
        self._cancelled = False

    # -- reading -----------------------------------------------------------------------

    def snapshot(self) -> Message | None:
        """Returns the snapshot's state; None if there is no snapshot.

        Raises:
          DistributedError: the snapshot is damaged.
        """
        path = self._path(self._first, "state")
        message = next(self._messages(path), None)
        if path.exists():
            if message is None:
                raise self._damaged(path)
            self._runs = list(message.fields.runs or [])
            self._written = path.stat().st_size
        self._remove_before(self._first)
        for unfinished in set(self._generations("rows")) - set(self._runs):
            self._path(unfinished, "rows").unlink()
        return message

    def rows(self) -> Iterator[tuple[str, RowBlock]]:
        """Yields the snapshot's rows by table; later rows replace earlier ones.

        Raises:
          DistributedError: a file is damaged.
        """
        for generation in self._runs:
            path, count = self._path(generation, "rows"), 0
            end = None
            for message in self._messages(path):
                if message.kind != "rows":
                    end = message.fields.records
                    break
                ids, rows, *state = message.arrays.values()
                count += 1
                yield message.fields.table, RowBlock(ids, rows, tuple(state))
            if end != count:
                raise self._damaged(path)

    def replay(self, shard: Shard) -> None:
        """Applies the entries after the snapshot, and continues the last log.

        Args:
          shard: the shard in the state of the snapshot.
        """
        generations = [g for g in self._generations("log") if g >= self._first]
        has_head = False
        for generation in sorted(generations):
            path = self._path(generation, "log")
            entries = read_log(path)
            head = next(entries, None)
            if head is not None and head.fields.at != list(shard.position):
                # A power cut: the previous log lacks its last entries.
                for unusable in (g for g in generations if g >= generation):
                    self._path(unusable, "log").unlink()
                break
            self._last, self._since, has_head = generation, 0, head is not None
            for entry in entries:
                shard.apply(entry)
                self._since += 1
        self._log = EntryLog(self._path(self._last, "log"))
        if not has_head:
            self._begin_log(self._log, shard.position)

    def _messages(self, path: Path) -> Iterator[Message]:
        return read_log(path, repair=False)

    def _damaged(self, path: Path) -> DistributedError:
        return DistributedError(
            f"the snapshot {path} is damaged, so the entries after it are useless: "
            f"restore a copy of the folder; or remove {self._stem}.* if other servers "
            "hold the shard too, or to restart the run from the beginning"
        )

    # -- writing -----------------------------------------------------------------------

    def append(self, entry: Message) -> None:
        """Appends an entry to the log.

        Raises:
          DistributedError: the disk is full, or the file cannot be written to.
        """
        if self._log is None:
            raise DistributedError(
                f"the log of {self._stem} in {self._folder} could not be written to: "
                "the server acknowledges no entry that it might lose"
            )
        self._log.append(entry)
        self._since += 1

    @property
    def is_due(self) -> bool:
        """Whether a snapshot should replace the log."""
        assert self._log is not None
        large = self._log.size >= max(self._bytes, self._written)
        if self._thread is not None and (large or not self._thread.is_alive()):
            self._thread.join()
            self._thread = None
        return self._thread is None and (large or self._since >= _SNAPSHOT_ENTRIES)

    @property
    def wants_all_rows(self) -> bool:
        """Whether the next snapshot should have all rows, not only changed ones."""
        if not self._runs:
            return True
        first, *more = [self._size(g) for g in self._runs]
        return sum(more) > max(first, self._bytes)

    def begin(
        self,
        position: Position,
        state: Message,
        rows: Mapping[str, TableState],
        *,
        whole: bool,
    ) -> None:
        """Begins a generation; a thread writes its snapshot.

        Args:
          position: the shard's position.
          state: the shard's state without rows.
          rows: the rows of its tables: all, or those changed since the last snapshot.
          whole: whether `rows` has all rows.
        """
        assert self._log is not None
        generation = self._last + 1
        try:
            # After a power cut, no entry may exist without those before it.
            self._log.sync()
            log = EntryLog(self._path(generation, "log"))
            self._begin_log(log, position)
        except (OSError, DistributedError) as error:
            self._path(generation, "log").unlink(missing_ok=True)
            self._report_failure(error)
            return
        self._log.close()
        self._log, self._last, self._since = log, generation, 0
        runs = [] if whole else self._runs
        self._thread = threading.Thread(
            target=self._write,
            args=(generation, state, rows, runs),
            name=f"snapshot of {self._stem}",
            daemon=True,
        )
        self._thread.start()

    def replace(
        self, position: Position, state: Message, rows: Mapping[str, TableState]
    ) -> None:
        """Replaces all files by the state of another copy.

        Args:
          position: the position of that copy.
          state: its state without rows.
          rows: all rows of its tables.

        Raises:
          DistributedError: the disk is full, or the folder cannot be written to.
        """
        self.close()
        self._last += 1
        try:
            self._finish(self._last, state, rows, [])
        except OSError as error:
            raise DistributedError(
                f"the state of {self._stem} cannot be written to {self._folder}: "
                f"{error.strerror}"
            ) from error
        self._log = EntryLog(self._path(self._last, "log"))
        self._begin_log(self._log, position)
        self._since = 0

    def close(self) -> None:
        """Closes the files, and cancels a snapshot that is being written."""
        self._cancelled = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._cancelled = False
        if self._log is not None:
            self._log.close()
            self._log = None

    def remove(self) -> None:
        """Closes and removes the files."""
        self.close()
        for kind in ("log", "state", "rows"):
            for generation in self._generations(kind):
                self._path(generation, kind).unlink()

    def _begin_log(self, log: EntryLog, position: Position) -> None:
        head = Message.of(messages.EntryAck(-1, -1, list(position), gap=False))
        log.append(head)

    def _write(
        self,
        generation: int,
        state: Message,
        rows: Mapping[str, TableState],
        runs: list[int],
    ) -> None:
        """Writes a snapshot, in the thread."""
        try:
            self._finish(generation, state, rows, runs)
        except _Cancelled:
            pass
        except Exception as error:  # else the changed rows would be lost
            self._report_failure(error)

    def _report_failure(self, error: Exception) -> None:
        """Reports a snapshot that could not be written; the log continues.

        The next snapshot writes all rows: the record of changed rows is lost.
        """
        self._runs = []
        # Otherwise each entry would try again.
        self._since, self._written = 0, 2 * max(self._written, self._bytes)
        print(
            f"fxflow: a snapshot of {self._stem} was not written, its log continues: "
            f"{str(error) or repr(error)}",
            file=sys.stderr,
            flush=True,
        )

    def _finish(
        self,
        generation: int,
        state: Message,
        rows: Mapping[str, TableState],
        runs: list[int],
    ) -> None:
        if rows:
            self._write_rows(self._path(generation, "rows"), rows)
            runs = [*runs, generation]
        path = self._path(generation, "state")
        temporary = path.with_suffix(".new")
        temporary.unlink(missing_ok=True)
        file = EntryLog(temporary)
        try:
            fields = state.fields._replace(runs=runs)
            message = Message.of(fields, arrays=state.arrays)
            file.append(message)
            file.sync()
            size = file.size
        finally:
            file.close()
        self._check_cancelled()
        temporary.replace(path)
        files.sync(self._folder)
        self._first, self._runs, self._written = generation, runs, size
        self._remove_before(generation)

    def _write_rows(self, path: Path, rows: Mapping[str, TableState]) -> None:
        path.unlink(missing_ok=True)
        file, count = EntryLog(path), 0
        try:
            for name, blocks in rows.items():
                for block in blocks:
                    values = [block.ids, block.rows, *block.state]
                    arrays = {str(i): value for i, value in enumerate(values)}
                    message = Message.of(messages.Rows(table=name), arrays=arrays)
                    file.append(message)
                    count += 1
                    self._check_cancelled()
            end = Message.of(messages.State(records=count))
            file.append(end)
            file.sync()
        finally:
            file.close()

    def _check_cancelled(self) -> None:
        if self._cancelled:
            raise _Cancelled

    # -- files -------------------------------------------------------------------------

    def _path(self, generation: int, kind: str) -> Path:
        return self._folder / f"{self._stem}.{generation:06}.{kind}"

    def _size(self, generation: int) -> int:
        return self._path(generation, "rows").stat().st_size

    def _generations(self, kind: str) -> list[int]:
        found = self._folder.glob(f"{self._stem}.*.{kind}")
        return [int(path.name.split(".")[1]) for path in found]

    def _remove_before(self, generation: int) -> None:
        """Removes the files that the snapshot of a generation replaces."""
        for kind in ("log", "state", "rows"):
            for old in self._generations(kind):
                if old < generation and (kind != "rows" or old not in self._runs):
                    self._path(old, kind).unlink()


# -- log -------------------------------------------------------------------------------

_RECORD = struct.Struct("!4sIQ")
_MAGIC = b"fxpl"
_FRAME = struct.Struct("!Q")


class EntryLog:
    """A write-ahead log: appends messages to a file.

    A file is a sequence of records, each with a checksum, a length and the frames of
    one message. A process that is killed may leave an incomplete last record, which the
    next read truncates. Records are written before entries are acknowledged, so they
    survive the process; after `sync` they also survive a power cut.

    Args:
      path: the file's path; existing records stay.

    Attributes:
      size: the file's size in bytes.
    """

    size: int

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = path.open("ab", buffering=0)
        self.size = self._file.tell()

    def append(self, message: Message) -> None:
        """Appends a message.

        Raises:
          DistributedError: the disk is full, or the file cannot be written to.
        """
        frames = encode(message)
        checksum = 0
        pieces: list[bytes | memoryview] = []
        for frame in frames:
            size = _FRAME.pack(len(frame))
            pieces += [size, frame]
            checksum = zlib.crc32(frame, zlib.crc32(size, checksum))
        total = sum(map(len, pieces))
        pieces.insert(0, _RECORD.pack(_MAGIC, checksum, total))
        try:
            for piece in pieces:
                view = memoryview(piece)
                while view:
                    view = view[os.write(self._file.fileno(), view) :]
        except OSError as error:
            # An incomplete record would hide all records after it.
            self._file.truncate(self.size)
            raise DistributedError(
                f"the log {self.path} cannot be written to: {error.strerror}; the "
                "server acknowledges no entry that it might lose"
            ) from error
        self.size += sum(map(len, pieces))

    def sync(self) -> None:
        """Waits until all records are on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def read_log(path: Path, *, repair: bool = True) -> Iterator[Message]:
    """Yields the messages of a log, up to an incomplete record.

    Args:
      path: the file's path; a missing file has no messages.
      repair: whether to truncate an incomplete record, so that more can be appended.

    Raises:
      DistributedError: another version of fxflow wrote the file.
    """
    if not path.exists():
        return
    with path.open("r+b" if repair else "rb") as file:
        while True:
            start = file.tell()
            frames = _record(file)
            try:
                message = None if frames is None else decode(frames)
            except MessageError as error:
                if error.reason == "version":
                    raise DistributedError(
                        f"{path} was written by another version of fxflow: {error}. "
                        "Use that version, or start with an empty folder"
                    ) from None
                message = None
            if message is None:
                if repair:
                    file.truncate(start)
                return
            yield message


def _record(file: BinaryIO) -> list[memoryview] | None:
    head = file.read(_RECORD.size)
    if len(head) < _RECORD.size:
        return None
    magic, checksum, total = _RECORD.unpack(head)
    remaining = os.fstat(file.fileno()).st_size - file.tell()
    if magic != _MAGIC or total > remaining:
        return None
    body = memoryview(bytearray(total))
    if file.readinto(body) != total or zlib.crc32(body) != checksum:  # type: ignore[attr-defined]
        return None
    frames = []
    offset = 0
    while offset < total:
        (size,) = _FRAME.unpack(body[offset : offset + _FRAME.size])
        offset += _FRAME.size
        frames.append(body[offset : offset + size])
        offset += size
    return frames
