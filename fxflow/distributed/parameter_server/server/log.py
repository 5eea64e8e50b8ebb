"""A log on disk: what a server acknowledged, so that it outlives the process.

A file is a row of records: length, checksum, the frames of one message. What a killed
process left half written is at the end, and cut off when the file is read. Records are
written before they are acknowledged; that outlives the process. `sync=True` also
outlives the machine's loss of power.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from fxflow.distributed.parameter_server.messages import (
    Limits,
    Message,
    decode,
    encode,
)
from fxflow.errors import DistributedError, MessageError

_RECORD = struct.Struct("!4sIQ")
_MARK = b"fxpl"
_FRAME = struct.Struct("!Q")


class Log:
    """Appends messages to a file.

    Args:
      path: of the file; what is in it stays.
      sync: whether each record waits for the disk.
    """

    def __init__(self, path: Path, *, sync: bool = False) -> None:
        self.path, self._sync = path, sync
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = path.open("ab", buffering=0)

    def append(self, message: Message, *, limits: Limits) -> None:
        """Writes a message at the end.

        Raises:
          DistributedError: the disk is full, or the file cannot be written to.
        """
        start = self._file.tell()
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
            if self._sync:
                os.fsync(self._file.fileno())
        except OSError as error:
            # Half a record would hide all that come after it.
            self._file.truncate(start)
            raise DistributedError(
                f"the log {self.path} cannot be written to: {error.strerror}; the "
                "server acknowledges nothing that it might lose"
            ) from error

    def close(self) -> None:
        """Ends the file."""
        self._file.close()


def read(path: Path, *, limits: Limits) -> Iterator[Message]:
    """Yields the messages of a log, and cuts off what is not whole at its end.

    Args:
      path: of the file; nothing is yielded if there is none.
      limits: of one message.
    """
    if not path.exists():
        return
    with path.open("r+b") as file:
        while True:
            start = file.tell()
            frames = _record(file)
            try:
                message = None if frames is None else decode(frames, limits=limits)
            except MessageError:
                message = None
            if message is None:
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
