"""Memory that two processes of one machine share, for the large arrays of messages.

A sender copies arrays into a `Block` and names its place in a small message; the
receiver uses them where they lie, and clears the block's flag when the last array that
refers to it is freed. Nothing is written to a block while its flag is set, so a flag
that stays set (a killed receiver's) only wastes the block.

Blocks are anonymous files (memfd). Only processes that may inspect another may open its
files under ``/proc``, and the files end with both processes. Nothing here trusts a
peer's numbers: a file is used if it is such a block of this user, of a fixed size, with
the secret that the message names.

An end may send by memory once the peer has *proved* that it can read: each has a
`Block` of no bytes, its door, and tells the other's secret. Where anything fails,
on other machines, in other containers or without memory, messages use the socket.
"""

from __future__ import annotations

import contextlib
import fcntl
import hmac
import math
import mmap
import os
import secrets
import struct
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fxflow.errors import MessageError

#: Arrays of a message with at least this many bytes go by memory; see
#: `benchmarks/parameter_server/transport.py`.
LEAST = 64 << 10
#: Begins the frames of this module.
MARK = b"fxpm"

#: Blocks and bytes for one peer; what does not fit goes by the socket.
_MOST_BLOCKS = 4
_MOST_BYTES = 1 << 30
#: Seconds after which an unused block is freed.
_IDLE = 10.0
#: Seconds after which a block that is still read is left to its reader.
_KEPT = 60.0
#: Seconds after which a peer that does not answer shares no memory; peers remembered.
_MEET, _MOST_MET = 10.0, 4096
#: Where XLA takes arrays without a copy: at multiples of this (`buffers.ALIGNMENT`).
_ALIGNMENT = 64
#: A block begins with its secret, the flag, and room up to the next page.
_SECRET, _FLAG, _BEGIN = 16, 16, mmap.PAGESIZE
_FREE, _WRITTEN, _READ = 0, 1, 2
_NAME = "fxflow-parameter-server"
#: Pieces of a message: its arrays are at most as many.
_MOST_PIECES = 1 << 14

#: Mark, what it is; this machine's boot, process and file of the door, proof.
_HELLO = struct.Struct("!4sB16sQI16s")
#: Mark, what it is; file and secret of the block. Then place and bytes of each piece.
_PLACE = struct.Struct("!4sBI16s")
_PIECE = struct.Struct("!QQ")
_IS_HELLO, _IS_PLACE = 1, 2
_NO_PROOF = bytes(_SECRET)

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def available() -> bool:
    """Returns whether this system has what blocks are made of."""
    return hasattr(os, "memfd_create") and bool(_boot())


class Block:
    """Memory of this process that others may read.

    Args:
      capacity: bytes for arrays.

    Raises:
      OSError: there is not as much.

    Attributes:
      file: number by which other processes find it.
      secret: known only to processes that have read it.
      used: when it was last written to, by `time.monotonic`.
    """

    capacity: int
    file: int
    secret: bytes
    used: float

    def __init__(self, capacity: int) -> None:
        self.capacity, self.used = capacity, time.monotonic()
        self.secret = secrets.token_bytes(_SECRET)
        self.file = os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            # Now: a page that is missing later would end the process.
            os.posix_fallocate(self.file, 0, _BEGIN + capacity)
            # So that no reader finds its end before the place that a message names.
            fcntl.fcntl(self.file, fcntl.F_ADD_SEALS, _SEALS)
            self._map = mmap.mmap(self.file, _BEGIN + capacity)
        except OSError:
            os.close(self.file)
            raise
        self._map[:_SECRET] = self.secret
        self._bytes: Bytes = np.frombuffer(self._map, np.uint8, offset=_BEGIN)

    @property
    def is_free(self) -> bool:
        """Whether no process reads it, or has yet to."""
        return self._map[_FLAG] == _FREE

    @property
    def is_unread(self) -> bool:
        """Whether its reader has not yet seen what was written."""
        return self._map[_FLAG] == _WRITTEN

    def write(self, pieces: Sequence[Bytes]) -> list[tuple[int, int]]:
        """Copies pieces, for which there is room, and sets the flag.

        Returns:
          Place and bytes of each.
        """
        self._map[_FLAG] = _WRITTEN
        self.used = time.monotonic()
        places, at = [], 0
        for piece in pieces:
            self._bytes[at : at + piece.nbytes] = piece
            places.append((at, piece.nbytes))
            at += _rounded(piece.nbytes, _ALIGNMENT)
        return places

    def free(self) -> None:
        """Clears the flag of what was not sent."""
        if self.file >= 0:  # the peer may have ended, and its blocks with it
            self._map[_FLAG] = _FREE

    def close(self) -> None:
        """Gives it back; a reader keeps what it reads."""
        os.close(self.file)
        self.file = -1
        del self._bytes, self._map


class _Window:
    """A block of another process.

    Args:
      process: its number.
      file: that of the block there.

    Raises:
      OSError: it is not there, no block, or none that this process may read.
    """

    def __init__(self, process: int, file: int) -> None:
        self._path = f"/proc/{process}/fd/{file}"
        # Before it is opened: to open other files can do things, or wait.
        if not os.readlink(self._path).startswith(f"/memfd:{_NAME}"):
            raise FileNotFoundError(self._path)
        found = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            status = os.fstat(found)
            seals = fcntl.fcntl(found, fcntl.F_GET_SEALS)
            if (
                status.st_uid != os.geteuid()
                or status.st_size < _BEGIN
                or seals & _SEALS != _SEALS
            ):
                raise PermissionError(self._path)
            self._identity = status.st_dev, status.st_ino
            self.capacity = status.st_size - _BEGIN
            self._head = mmap.mmap(found, _BEGIN)
            self._map: mmap.mmap | bytes = b""
            if self.capacity:
                self._map = mmap.mmap(
                    found,
                    self.capacity,
                    flags=mmap.MAP_SHARED | mmap.MAP_POPULATE,
                    prot=mmap.PROT_READ,
                    offset=_BEGIN,
                )
        finally:
            os.close(found)
        self.secret = self._head[:_SECRET]

    def is_there(self) -> bool:
        """Returns whether its owner has it still."""
        with contextlib.suppress(OSError):
            status = os.stat(self._path)
            return (status.st_dev, status.st_ino) == self._identity
        return False

    def read(self, places: Sequence[tuple[int, int]]) -> list[Bytes]:
        """Returns pieces, read-only; the flag is cleared when all of them are freed."""
        whole: Bytes = np.frombuffer(self._map, np.uint8)
        # Its views refer to it, theirs and the device's arrays do: it goes last.
        key = object()
        head = self._head
        head[_FLAG] = _READ

        def free(_: Any) -> None:
            head[_FLAG] = _FREE
            del _leases[key]

        _leases[key] = weakref.ref(whole, free)
        return [whole[at : at + size] for at, size in places]


#: What is being read. A weak reference must itself be kept; not by a window, which the
#: arrays may outlive.
_leases: dict[object, weakref.ref[Bytes]] = {}


class Hello(NamedTuple):
    """What one end tells the other of itself.

    Attributes:
      boot: of the machine, which tells machines apart.
      process: number of the process.
      door: file of its door.
      proof: the secret of the other's door, if it was read.
    """

    boot: bytes
    process: int
    door: int
    proof: bytes


class SharedMemory:
    """One end of a connection, as far as memory goes. Made where `available`.

    Attributes:
      ready: whether the peer has proved that it reads what is written here.

    Raises:
      OSError: there are no more files.
    """

    ready: bool

    def __init__(self) -> None:
        self.ready = False
        self._begun = time.monotonic()
        self._door = Block(0)
        self._peer: Hello | None = None
        self._of_peer: _Window | None = None
        self._blocks: list[Block] = []
        self._windows: dict[bytes, _Window] = {}

    def close(self) -> None:
        """Frees blocks that no process reads, and the others when their readers end."""
        self._forget_peer()
        self._door.close()

    def _forget_peer(self) -> None:
        """Gives back all but the door."""
        self.ready = False
        for block in self._blocks:
            block.close()
        self._blocks.clear()
        self._windows.clear()
        self._peer = self._of_peer = None

    # -- meeting -----------------------------------------------------------------------

    def hello(self) -> bytes:
        """Returns the frame that says where the door is, and proves what was read."""
        proof = _NO_PROOF if self._of_peer is None else self._of_peer.secret
        return _HELLO.pack(
            MARK, _IS_HELLO, _boot(), os.getpid(), self._door.file, proof
        )

    def is_of(self, said: Hello) -> bool:
        """Returns whether a hello is of the peer that is known, or of the first."""
        known = self._peer
        if known is None or self._of_peer is None:
            return True
        # Another door of the same process may have the number of one that is closed.
        return known[:3] == said[:3] and self._of_peer.is_there()

    def turns_to(self, said: Hello) -> bool:
        """Forgets the peer's door for another one of the same process.

        This end's own door stays: the peer may have read its secret by now, and if both
        ends took another door whenever they hear of one, they would never meet.

        Returns:
          Whether it is the same process.
        """
        if self._peer is None or self._peer[:2] != said[:2]:
            return False
        self._forget_peer()
        return True

    def meet(self, said: Hello) -> bytes | None:
        """Takes the peer's hello.

        Returns:
          The answer; None if there is nothing to prove.
        """
        if said.boot != _boot():
            return None
        self.ready |= hmac.compare_digest(said.proof, self._door.secret)
        if self._of_peer is not None:
            return None
        try:
            door = _Window(said.process, said.door)
        except (OSError, ValueError):
            return None
        if door.capacity:
            # Not a door: this process must not reveal the secret of a block.
            return None
        self._of_peer, self._peer = door, said
        return self.hello()

    # -- arrays ------------------------------------------------------------------------

    def place(self, frames: Sequence[bytes | memoryview]) -> tuple[Block, bytes] | None:
        """Copies frames into memory that no process reads.

        Returns:
          The block, and the frame that says where they are; None: there is no memory.
        """
        pieces = [np.frombuffer(frame, np.uint8) for frame in frames]
        block = self._block(sum(_rounded(p.nbytes, _ALIGNMENT) for p in pieces))
        if block is None:
            return None
        parts = [_PLACE.pack(MARK, _IS_PLACE, block.file, block.secret)]
        parts += [_PIECE.pack(*place) for place in block.write(pieces)]
        return block, b"".join(parts)

    def _block(self, size: int) -> Block | None:
        """Returns a block with room for `size` bytes, if there may be one."""
        free = [block for block in self._blocks if block.is_free]
        most = max(8 * size, _BEGIN)
        fitting = [block for block in free if size <= block.capacity <= most]
        if fitting:
            return min(fitting, key=lambda block: block.capacity)
        # A little more: messages of rows differ in size each time.
        capacity = _rounded(size, max(_BEGIN, 1 << max(0, int(math.log2(size)) - 2)))
        if free and len(self._blocks) >= _MOST_BLOCKS:
            self._drop(min(free, key=lambda block: block.used))
        there = sum(block.capacity for block in self._blocks)
        if len(self._blocks) >= _MOST_BLOCKS or there + capacity > _MOST_BYTES:
            return None
        try:
            block = Block(capacity)
        except OSError:
            return None
        self._blocks.append(block)
        return block

    def _drop(self, block: Block) -> None:
        self._blocks.remove(block)
        block.close()

    def find(self, frame: Any) -> list[Bytes]:
        """Returns the pieces whose places a frame says; nothing is copied.

        Raises:
          MessageError: they are not there.
        """
        if self._peer is None:
            raise MessageError("memory", "memory of a peer that has shown none")
        places = list(_PIECE.iter_unpack(_rest(frame)))
        _, _, file, secret = _PLACE.unpack_from(frame)
        window = self._windows.get(secret)
        if window is None:
            window = self._open(file, secret)
        # Python's integers: no sum is too large for the comparison.
        if any(at + size > window.capacity for at, size in places):
            raise MessageError("memory", "a place beyond the end of a block")
        return window.read(places)

    def _open(self, file: int, secret: bytes) -> _Window:
        assert self._peer is not None
        try:
            window = _Window(self._peer.process, file)
        except (OSError, ValueError) as error:
            raise MessageError("memory", f"a block is not there: {error}") from None
        if not hmac.compare_digest(window.secret, secret):
            raise MessageError("memory", "a block has another secret")
        self._forget_windows()
        if len(self._windows) >= _MOST_BLOCKS:
            del self._windows[next(iter(self._windows))]
        self._windows[secret] = window
        return window

    def _forget_windows(self) -> None:
        for secret, window in list(self._windows.items()):
            if not window.is_there():
                del self._windows[secret]

    def sweep(self) -> bool:
        """Frees blocks that were idle for long, or are read for very long.

        Returns:
          Whether the peer is there still, if it was ever met.
        """
        now = time.monotonic()
        for block in list(self._blocks):
            if now - block.used > (_IDLE if block.is_free else _KEPT):
                self._drop(block)
        self._forget_windows()
        return self._of_peer is None or self._of_peer.is_there()

    @property
    def is_unread(self) -> bool:
        """Whether the peer has not seen yet what was written for it."""
        return any(block.is_unread for block in self._blocks)

    def is_strange(self) -> bool:
        """Returns whether the peer was not met in time."""
        return self._of_peer is None and time.monotonic() - self._begun > _MEET


class Memories:
    """What one socket's end shares with its peers.

    Args:
      put: sends a peer one frame.
    """

    def __init__(self, put: Callable[[bytes, bytes], object]) -> None:
        self._put = put
        #: None for peers that share none.
        self._of: dict[bytes, SharedMemory | None] = {}

    def ask(self, peer: bytes) -> SharedMemory | None:
        """Returns where to write for a peer; asks it if it was never asked.

        Returns:
          None: not now.
        """
        if peer not in self._of:
            memory = self._begin(peer)
            if memory is not None:
                self._put(peer, memory.hello())
            return None
        memory = self._of[peer]
        return memory if memory is not None and memory.ready else None

    def renew(self, peer: bytes) -> None:
        """Asks a peer again, with other blocks, if it was ever asked."""
        if peer in self._of:
            self.drop(peer)
            self.ask(peer)

    def meet(self, peer: bytes, frame: Any) -> None:
        """Takes a hello, and answers it.

        Raises:
          MessageError: it is not one.
        """
        said = _said(frame)
        memory = self._of.get(peer)
        if memory is None or not (memory.is_of(said) or memory.turns_to(said)):
            memory = self._begin(peer)
        answer = None if memory is None else memory.meet(said)
        if answer is not None:
            self._put(peer, answer)

    def find(self, peer: bytes, frame: Any) -> list[Bytes]:
        """Returns the pieces whose places a frame of a peer says.

        Raises:
          MessageError: they are not there.
        """
        memory = self._of.get(peer)
        if memory is None:
            raise MessageError("memory", "memory of a peer that has shown none")
        return memory.find(frame)

    def sweep(self) -> None:
        """Frees blocks that peers have left, or have not used for long."""
        for peer, memory in list(self._of.items()):
            if memory is None:
                continue
            if not memory.sweep():
                self.drop(peer)
            elif memory.is_strange():
                memory.close()
                self._of[peer] = None

    def drop(self, peer: bytes) -> None:
        """Forgets a peer that has ended."""
        memory = self._of.pop(peer, None)
        if memory is not None:
            memory.close()

    @property
    def is_unread(self) -> bool:
        """Whether a peer has not seen yet what was written for it."""
        return any(
            memory is not None and memory.is_unread for memory in self._of.values()
        )

    def close(self) -> None:
        """Forgets all peers."""
        for peer in list(self._of):
            self.drop(peer)

    def _begin(self, peer: bytes) -> SharedMemory | None:
        self.drop(peer)
        if len(self._of) >= _MOST_MET:
            # Peers that share none may be asked again.
            self._of = {p: m for p, m in self._of.items() if m is not None}
        memory = None
        if available() and len(self._of) < _MOST_MET:
            with contextlib.suppress(OSError):
                memory = SharedMemory()
        self._of[peer] = memory
        return memory


def is_hello(frame: Any) -> bool:
    """Returns whether a frame is what `SharedMemory.hello` makes."""
    return bool(frame[:5] == MARK + bytes([_IS_HELLO]))


def is_place(frame: Any) -> bool:
    """Returns whether a frame is what `SharedMemory.place` makes."""
    return bool(frame[:5] == MARK + bytes([_IS_PLACE]))


def _said(frame: Any) -> Hello:
    if len(frame) != _HELLO.size or not is_hello(frame):
        raise MessageError("memory", f"{len(frame)} bytes are not a hello")
    _, _, boot, process, door, proof = _HELLO.unpack(frame)
    return Hello(boot, process, door, proof)


def _rest(frame: Any) -> Any:
    """Returns the part of a frame that lists pieces."""
    count, rest = divmod(len(frame) - _PLACE.size, _PIECE.size)
    if rest or not 0 <= count <= _MOST_PIECES:
        raise MessageError("memory", f"{len(frame)} bytes list no places")
    return frame[_PLACE.size :]


def _rounded(size: int, step: int) -> int:
    """Returns the least multiple that is not smaller."""
    return -(-size // step) * step


def _boot() -> bytes:
    """Returns what tells this machine, since it was started, from all others."""
    if not _boots:
        text = ""
        with contextlib.suppress(OSError):
            text = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
        _boots.append(bytes.fromhex(text.strip().replace("-", ""))[:16])
    return _boots[0]


_boots: list[bytes] = []
_SEALS = 0
if sys.platform == "linux":
    _SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
