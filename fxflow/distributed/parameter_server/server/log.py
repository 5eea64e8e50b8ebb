"""A log on disk of the entries that a server acknowledged.

A file is a sequence of records: length, checksum, the frames of one message. A record
that a killed process left incomplete is at the end, and truncated when the file is
read. Records are written before they are acknowledged, so they survive the process;
after `sync` they also survive a power cut.
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
_MARK = b"fxpl"
_FRAME = struct.Struct("!Q")


class EntryLog:
    """Appends messages to a file.

    Args:
      path: of the file; existing records stay.

    Attributes:
      size: of the file, in bytes.
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
        check = 0
        pieces: list[bytes | memoryview] = []
        for frame in frames:
            size = _FRAME.pack(len(frame))
            pieces += [size, frame]
            check = zlib.crc32(frame, zlib.crc32(size, check))
        total = sum(map(len, pieces))
        pieces.insert(0, _RECORD.pack(_MARK, check, total))
        try:
            for piece in pieces:
                view = memoryview(piece)
                while view:
                    view = view[os.write(self._file.fileno(), view) :]
        except OSError as error:
            # An incomplete record would hide all that follow it.
            self._file.truncate(self.size)
            raise DistributedError(
                f"the log {self.path} cannot be written to: {error.strerror}; the "
                "server acknowledges nothing that it might lose"
            ) from error
        self.size += sum(map(len, pieces))

    def sync(self) -> None:
        """Waits until everything written is on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def read(path: Path, *, limits: Limits, repair: bool = True) -> Iterator[Message]:
    """Yields the messages of a log, up to an incomplete record.

    Args:
      path: of the file; without one, nothing is yielded.
      limits: of one message.
      repair: whether to truncate an incomplete record, so that more may be appended.

    Raises:
      DistributedError: another version of fxflow has written it.
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
                        "Continue with that one, or start with an empty folder"
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
    mark, check, total = _RECORD.unpack(head)
    left = os.fstat(file.fileno()).st_size - file.tell()
    if mark != _MARK or total > left:
        return None
    body = memoryview(bytearray(total))
    if file.readinto(body) != total or zlib.crc32(body) != check:  # type: ignore[attr-defined]
        return None
    frames = []
    at = 0
    while at < total:
        (size,) = _FRAME.unpack(body[at : at + _FRAME.size])
        at += _FRAME.size
        frames.append(body[at : at + size])
        at += size
    return frames
