"""A write-ahead log: the entries that a server acknowledges, on disk.

A file is a sequence of records, each with a checksum, a length and the frames of one
message. A process that is killed may leave an incomplete last record, which the next
read truncates. Records are written before entries are acknowledged, so they survive the
process; after `sync` they also survive a power cut.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from fxflow.distributed.messages.codec import (
    Limits,
    Message,
    decode,
    encode,
)
from fxflow.errors import DistributedError, MessageError

_RECORD = struct.Struct("!4sIQ")
_MAGIC = b"fxpl"
_FRAME = struct.Struct("!Q")


class EntryLog:
    """Appends messages to a file.

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

    def append(self, message: Message, *, limits: Limits) -> None:
        """Appends a message.

        Raises:
          DistributedError: the disk is full, or the file cannot be written to.
        """
        frames = encode(message, limits=limits)
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


def read(path: Path, *, limits: Limits, repair: bool = True) -> Iterator[Message]:
    """Yields the messages of a log, up to an incomplete record.

    Args:
      path: the file's path; a missing file has no messages.
      limits: the limits of one message.
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
                message = None if frames is None else decode(frames, limits=limits)
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
