"""Memory that two processes of one machine share, for the large arrays of messages.

A sender copies arrays into a `Block` and sends their positions in a small message. The
receiver uses the arrays in place, and clears the block's flag when the last array that
refers to it is freed. A block is not written to while its flag is set, so a flag that
stays set because the receiver was killed only wastes the block.

Blocks are anonymous files (memfd). Only a process that may inspect another may open its
files under ``/proc``, and the kernel frees them when both processes have ended. A
peer's numbers are not trusted: a file is used only if it is a block of this user, of a
fixed size, with the secret that the message names.

An end writes to shared memory only after the peer has *proved* that it can read it:
each end has an empty `Block`, its challenge, and sends the secret of the other's. If
anything fails (on another machine, in another container, without memory), the arrays
travel through the socket.
"""

from __future__ import annotations

import contextlib
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

if sys.platform == "linux":
    import fcntl

#: Arrays of at least this many bytes per message use shared memory; see
#: `benchmarks/parameter_server/transport.py`.
LEAST = 64 << 10
#: The first bytes of this module's frames.
MARK = b"fxpm"

#: The most blocks (unless the owner says), and bytes in blocks, for one peer; the rest
#: uses the socket.
_MOST_BLOCKS = 4
_MOST_BYTES = 1 << 30
#: Seconds after which an unused block is freed.
_IDLE = 10.0
#: Seconds after which a sender forgets a block that is still being read.
_KEPT = 60.0
#: Seconds for a peer to answer, after which messages to it use the socket.
_ANSWER = 10.0
#: The most peers that are remembered.
_MOST_PEERS = 4096
#: XLA uses arrays at multiples of this without a copy (`buffers.ALIGNMENT`).
_ALIGNMENT = 64
#: A block begins with its secret and the flag, padded to a page.
_SECRET, _FLAG, _BEGIN = 16, 16, mmap.PAGESIZE
_FREE, _WRITTEN, _READ = 0, 1, 2
_NAME = "fxflow-parameter-server"
#: The most pieces of a message.
_MOST_PIECES = 1 << 14

#: Mark, kind of frame, boot id, process id, descriptor of the challenge, proof.
_HELLO = struct.Struct("!4sB16sQI16s")
#: Mark, kind of frame, the block's descriptor and secret; then, for each piece, its
#: position and its number of bytes.
_PLACE = struct.Struct("!4sBI16s")
_PIECE = struct.Struct("!QQ")
_IS_HELLO, _IS_PLACE = 1, 2
_NO_PROOF = bytes(_SECRET)

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def available() -> bool:
    """Returns whether this system supports blocks."""
    return hasattr(os, "memfd_create") and bool(_boot())


class Block:
    """Memory of this process that others may read.

    Args:
      capacity: bytes for arrays.

    Raises:
      OSError: there is too little memory.

    Attributes:
      file: the file descriptor by which other processes find it.
      secret: random bytes, known only to processes that can read the block.
      used: when it was last written to, by `time.monotonic`.
    """

    capacity: int
    file: int
    secret: bytes
    used: float

    def __init__(self, capacity: int) -> None:
        self.capacity, self.used = capacity, time.monotonic()
        self.secret = secrets.token_bytes(_SECRET)
        self.file = _new_file(_BEGIN + capacity)
        try:
            self._map = mmap.mmap(self.file, _BEGIN + capacity)
        except OSError:
            os.close(self.file)
            raise
        self._map[:_SECRET] = self.secret
        self._bytes: Bytes = np.frombuffer(self._map, np.uint8, offset=_BEGIN)

    @property
    def is_free(self) -> bool:
        """Whether no process is reading it or is about to."""
        return self._map[_FLAG] == _FREE

    @property
    def is_unread(self) -> bool:
        """Whether its reader has not yet received what was written."""
        return self._map[_FLAG] == _WRITTEN

    def write(self, pieces: Sequence[Bytes]) -> list[tuple[int, int]]:
        """Copies pieces, which must fit, into the block and sets the flag.

        Returns:
          The position and number of bytes of each piece.
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
        """Clears the flag, because the message was not sent."""
        if self.file >= 0:  # the block may have been closed with its peer
            self._map[_FLAG] = _FREE

    def close(self) -> None:
        """Releases the memory, once its reader no longer uses it either."""
        os.close(self.file)
        self.file = -1
        del self._bytes, self._map


class _Window:
    """A block of another process.

    Args:
      process: the process id.
      file: the block's file descriptor in that process.

    Raises:
      OSError: there is no block, or this process may not read it.
    """

    def __init__(self, process: int, file: int) -> None:
        self._path = f"/proc/{process}/fd/{file}"
        descriptor = _opened(self._path)
        try:
            status = os.fstat(descriptor)
            self._identity = status.st_dev, status.st_ino
            self.capacity = status.st_size - _BEGIN
            self._head = mmap.mmap(descriptor, _BEGIN)
            self._map: mmap.mmap | bytes = b""
            if self.capacity:
                self._map = _mapped(descriptor, self.capacity)
        finally:
            os.close(descriptor)
        self.secret = self._head[:_SECRET]

    def exists(self) -> bool:
        """Returns whether its owner has not closed it."""
        with contextlib.suppress(OSError):
            status = os.stat(self._path)
            return (status.st_dev, status.st_ino) == self._identity
        return False

    def read(self, places: Sequence[tuple[int, int]]) -> list[Bytes]:
        """Returns read-only pieces; the flag is cleared when all of them are freed."""
        whole: Bytes = np.frombuffer(self._map, np.uint8)
        # All views and device arrays refer to `whole`, so it is freed last.
        key = object()
        head = self._head
        head[_FLAG] = _READ

        def free(_: Any) -> None:
            head[_FLAG] = _FREE
            del _leases[key]

        _leases[key] = weakref.ref(whole, free)
        return [whole[at : at + size] for at, size in places]


#: The blocks being read. Their weak references are kept here, not in a window, because
#: arrays may outlive the window.
_leases: dict[object, weakref.ref[Bytes]] = {}


class Hello(NamedTuple):
    """The first frame that one end sends to the other.

    Attributes:
      boot: the machine's boot id, which identifies the machine.
      process: the process id.
      challenge: the file descriptor of its challenge.
      proof: the secret of the other's challenge, if it was read.
    """

    boot: bytes
    process: int
    challenge: int
    proof: bytes


class SharedMemory:
    """The shared memory of one end of a connection; requires `available()`.

    Args:
      most_blocks: the most blocks for the peer; further messages use the socket.

    Attributes:
      ready: whether the peer has proved that it can read this process's blocks.

    Raises:
      OSError: there are too many open files.
    """

    ready: bool

    def __init__(self, most_blocks: int = _MOST_BLOCKS) -> None:
        self.ready = False
        self._most_blocks = most_blocks
        self._begun = time.monotonic()
        self._challenge = Block(0)
        self._peer: Hello | None = None
        self._peer_challenge: _Window | None = None
        self._blocks: list[Block] = []
        self._windows: dict[bytes, _Window] = {}

    def close(self) -> None:
        """Releases all blocks; a block being read is freed after its reader is done."""
        self._forget_peer()
        self._challenge.close()

    def _forget_peer(self) -> None:
        """Releases everything except the challenge."""
        self.ready = False
        for block in self._blocks:
            block.close()
        self._blocks.clear()
        self._windows.clear()
        self._peer = self._peer_challenge = None

    # -- handshake ---------------------------------------------------------------------

    def hello(self) -> bytes:
        """Returns a frame with this end's challenge, and the proof if there is one."""
        peer = self._peer_challenge
        proof = _NO_PROOF if peer is None else peer.secret
        return _HELLO.pack(
            MARK, _IS_HELLO, _boot(), os.getpid(), self._challenge.file, proof
        )

    def is_from_peer(self, hello: Hello) -> bool:
        """Returns whether a hello is from the known peer, if there is one."""
        known = self._peer
        if known is None or self._peer_challenge is None:
            return True
        # The process may have reused the descriptor for another challenge.
        return known[:3] == hello[:3] and self._peer_challenge.exists()

    def replaces_challenge(self, hello: Hello) -> bool:
        """Forgets the peer's challenge if its process sends another one.

        This end keeps its own challenge: the peer may have read its secret by now. If
        each end replaced its challenge whenever the other does, they would never agree.

        Returns:
          Whether the hello is from the same process.
        """
        if self._peer is None or self._peer[:2] != hello[:2]:
            return False
        self._forget_peer()
        return True

    def meet(self, hello: Hello) -> bytes | None:
        """Handles the peer's hello.

        Returns:
          The answer; None if there is nothing to prove.
        """
        if hello.boot != _boot():
            return None
        self.ready |= hmac.compare_digest(hello.proof, self._challenge.secret)
        if self._peer_challenge is not None:
            return None
        try:
            challenge = _Window(hello.process, hello.challenge)
        except (OSError, ValueError):
            return None
        if challenge.capacity:
            # Not a challenge: the secret of a block with arrays must not be revealed.
            return None
        self._peer_challenge, self._peer = challenge, hello
        return self.hello()

    # -- arrays ------------------------------------------------------------------------

    def place(self, frames: Sequence[bytes | memoryview]) -> tuple[Block, bytes] | None:
        """Copies frames into a free block.

        Returns:
          The block, and a frame with their positions; None if there is no memory.
        """
        pieces = [np.frombuffer(frame, np.uint8) for frame in frames]
        block = self._block(sum(_rounded(p.nbytes, _ALIGNMENT) for p in pieces))
        if block is None:
            return None
        parts = [_PLACE.pack(MARK, _IS_PLACE, block.file, block.secret)]
        parts += [_PIECE.pack(*place) for place in block.write(pieces)]
        return block, b"".join(parts)

    def _block(self, size: int) -> Block | None:
        """Returns a free block of at least `size` bytes; None if limits forbid it."""
        free = [block for block in self._blocks if block.is_free]
        most = max(8 * size, _BEGIN)
        fitting = [block for block in free if size <= block.capacity <= most]
        if fitting:
            return min(fitting, key=lambda block: block.capacity)
        # Round up: messages of rows vary in size.
        capacity = _rounded(size, max(_BEGIN, 1 << max(0, int(math.log2(size)) - 2)))
        if free and len(self._blocks) >= self._most_blocks:
            self._drop(min(free, key=lambda block: block.used))
        total = sum(block.capacity for block in self._blocks)
        if len(self._blocks) >= self._most_blocks or total + capacity > _MOST_BYTES:
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
        """Returns the pieces at the positions in a frame, without copying them.

        Raises:
          MessageError: there are no such pieces.
        """
        if self._peer is None:
            raise MessageError("memory", "the peer has not shared memory")
        places = list(_PIECE.iter_unpack(_rest(frame)))
        _, _, file, secret = _PLACE.unpack_from(frame)
        window = self._windows.get(secret)
        if window is None:
            window = self._open(file, secret)
        # Python's integers cannot overflow.
        if any(at + size > window.capacity for at, size in places):
            raise MessageError("memory", "a piece extends beyond the end of its block")
        return window.read(places)

    def _open(self, file: int, secret: bytes) -> _Window:
        assert self._peer is not None
        try:
            window = _Window(self._peer.process, file)
        except (OSError, ValueError) as error:
            raise MessageError("memory", f"cannot open a block: {error}") from None
        if not hmac.compare_digest(window.secret, secret):
            raise MessageError("memory", "a block has another secret")
        self._forget_windows()
        if len(self._windows) >= self._most_blocks:
            del self._windows[next(iter(self._windows))]
        self._windows[secret] = window
        return window

    def _forget_windows(self) -> None:
        for secret, window in list(self._windows.items()):
            if not window.exists():
                del self._windows[secret]

    def sweep(self) -> bool:
        """Frees idle blocks, and forgets blocks that are read for very long.

        Returns:
          False if the peer has closed its challenge.
        """
        now = time.monotonic()
        for block in list(self._blocks):
            if now - block.used > (_IDLE if block.is_free else _KEPT):
                self._drop(block)
        self._forget_windows()
        return self._peer_challenge is None or self._peer_challenge.exists()

    @property
    def is_unread(self) -> bool:
        """Whether the peer has not yet received what was written for it."""
        return any(block.is_unread for block in self._blocks)

    def has_timed_out(self) -> bool:
        """Returns whether the peer did not send a challenge in time."""
        return self._peer_challenge is None and time.monotonic() - self._begun > _ANSWER


class Memories:
    """The memory that one socket shares with each of its peers.

    Args:
      put: sends a peer one frame.
    """

    def __init__(self, put: Callable[[bytes, bytes], object]) -> None:
        self._put = put
        #: None for peers that cannot share memory.
        self._of: dict[bytes, SharedMemory | None] = {}

    def ask(self, peer: bytes) -> SharedMemory | None:
        """Returns the memory shared with a peer; asks the peer at the first call.

        Returns:
          None if memory is not shared, or not yet.
        """
        if peer not in self._of:
            memory = self._begin(peer)
            if memory is not None:
                self._put(peer, memory.hello())
            return None
        memory = self._of[peer]
        return memory if memory is not None and memory.ready else None

    def renew(self, peer: bytes) -> None:
        """Asks a peer again, with new blocks, if it was asked before."""
        if peer in self._of:
            self.drop(peer)
            self.ask(peer)

    def meet(self, peer: bytes, frame: Any) -> None:
        """Handles a hello, and answers it.

        Raises:
          MessageError: the frame is not a hello.
        """
        hello = read_hello(frame)
        memory = self._of.get(peer)
        if memory is None or not (
            memory.is_from_peer(hello) or memory.replaces_challenge(hello)
        ):
            memory = self._begin(peer)
        answer = None if memory is None else memory.meet(hello)
        if answer is not None:
            self._put(peer, answer)

    def find(self, peer: bytes, frame: Any) -> list[Bytes]:
        """Returns the pieces at the positions in a peer's frame.

        Raises:
          MessageError: there are no such pieces.
        """
        memory = self._of.get(peer)
        if memory is None:
            raise MessageError("memory", "the peer has not shared memory")
        return memory.find(frame)

    def sweep(self) -> None:
        """Frees blocks that are idle or whose peers have ended."""
        for peer, memory in list(self._of.items()):
            if memory is None:
                continue
            if not memory.sweep():
                self.drop(peer)
            elif memory.has_timed_out():
                memory.close()
                self._of[peer] = None

    def drop(self, peer: bytes) -> None:
        """Forgets a peer that has ended."""
        memory = self._of.pop(peer, None)
        if memory is not None:
            memory.close()

    @property
    def is_unread(self) -> bool:
        """Whether a peer has not yet received what was written for it."""
        return any(
            memory is not None and memory.is_unread for memory in self._of.values()
        )

    def close(self) -> None:
        """Forgets all peers."""
        for peer in list(self._of):
            self.drop(peer)

    def _begin(self, peer: bytes) -> SharedMemory | None:
        self.drop(peer)
        if len(self._of) >= _MOST_PEERS:
            # Forgetting peers that cannot share memory only means asking them again.
            self._of = {p: m for p, m in self._of.items() if m is not None}
        memory = None
        if available() and len(self._of) < _MOST_PEERS:
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


def read_hello(frame: Any) -> Hello:
    """Returns the hello in a frame that `SharedMemory.hello` made.

    Raises:
      MessageError: the frame is not a hello.
    """
    if len(frame) != _HELLO.size or not is_hello(frame):
        raise MessageError("memory", f"{len(frame)} bytes are not a hello")
    _, _, boot, process, challenge, proof = _HELLO.unpack(frame)
    return Hello(boot, process, challenge, proof)


def _rest(frame: Any) -> Any:
    """Returns the part of a frame that lists the pieces."""
    count, rest = divmod(len(frame) - _PLACE.size, _PIECE.size)
    if rest or not 0 <= count <= _MOST_PIECES:
        raise MessageError("memory", f"{len(frame)} bytes do not list pieces")
    return frame[_PLACE.size :]


def _rounded(size: int, step: int) -> int:
    """Returns `size`, rounded up to a multiple of `step`."""
    return -(-size // step) * step


def _boot() -> bytes:
    """Returns the boot id, which identifies this machine since it was started."""
    if not _boots:
        text = ""
        with contextlib.suppress(OSError):
            text = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
        _boots.append(bytes.fromhex(text.strip().replace("-", ""))[:16])
    return _boots[0]


_boots: list[bytes] = []

if sys.platform == "linux":
    _SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL

    def _new_file(size: int) -> int:
        """Returns the descriptor of a new anonymous file, whose pages are allocated."""
        made = os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            # Allocate now: a page that is missing later would crash the process.
            os.posix_fallocate(made, 0, size)
            # A sealed file cannot shrink, so positions in messages remain valid.
            fcntl.fcntl(made, fcntl.F_ADD_SEALS, _SEALS)
        except OSError:
            os.close(made)
            raise
        return made

    def _opened(path: str) -> int:
        """Returns a descriptor of a block of this user.

        Raises:
          OSError: it is not one, or cannot be opened.
        """
        # Check before opening: opening other files may block or have side effects.
        if not os.readlink(path).startswith(f"/memfd:{_NAME}"):
            raise FileNotFoundError(path)
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if (
                status.st_uid != os.geteuid()
                or status.st_size < _BEGIN
                or fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & _SEALS != _SEALS
            ):
                raise PermissionError(path)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _mapped(descriptor: int, size: int) -> mmap.mmap:
        return mmap.mmap(
            descriptor,
            size,
            flags=mmap.MAP_SHARED | mmap.MAP_POPULATE,
            prot=mmap.PROT_READ,
            offset=_BEGIN,
        )

else:

    def _new_file(size: int) -> int:
        raise OSError("only Linux has anonymous files")

    def _opened(path: str) -> int:
        raise FileNotFoundError(path)

    def _mapped(descriptor: int, size: int) -> mmap.mmap:
        raise OSError("only Linux has anonymous files")
