import gc
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow.distributed.messages import shared_memory
from fxflow.distributed.messages.shared_memory import (
    Block,
    Memories,
    SharedMemory,
    available,
    is_hello,
    is_place,
)
from fxflow.errors import MessageError

pytestmark = pytest.mark.skipif(not available(), reason="no memfd here")

DATA = np.arange(100_000, dtype=np.uint8)


def met() -> tuple[SharedMemory, SharedMemory]:
    """Returns two ends that have proved that they can read."""
    one, two = SharedMemory(), SharedMemory()
    answer = two.meet(shared_memory.read_hello(one.hello()))
    assert answer is not None and is_hello(answer) and not two.ready
    proof = one.meet(shared_memory.read_hello(answer))
    assert one.ready and proof is not None
    assert two.meet(shared_memory.read_hello(proof)) is None
    assert two.ready
    return one, two


@pytest.fixture
def ends() -> Iterator[tuple[SharedMemory, SharedMemory]]:
    before = ours()
    one, two = met()
    yield one, two
    one.close()
    two.close()
    gc.collect()
    assert ours() == before


def ours() -> tuple[int, int]:
    """Returns this process's numbers of open files and mappings of blocks."""
    names = []
    for name in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            continue  # the descriptor of the listing itself
    maps = Path("/proc/self/maps").read_text().count("fxflow-parameter-server")
    return sum("fxflow-parameter-server" in name for name in names), maps


def placed(memory: SharedMemory, data: Any) -> tuple[Block, bytes]:
    found = memory.place([data.data])
    assert found is not None
    assert is_place(found[1])
    return found


def test_arrays_are_used_in_place(ends: Any) -> None:
    one, two = ends
    block, frame = placed(one, DATA)
    assert block.is_unread and not block.is_free
    (found,) = two.find(frame)
    assert not block.is_unread and not block.is_free
    np.testing.assert_array_equal(found, DATA)
    assert not found.flags.writeable and found.ctypes.data % 64 == 0
    part = found[10:20].view(np.uint16)
    del found
    assert not block.is_free  # while a view of a view exists
    del part
    assert block.is_free
    again, frame = placed(one, DATA[:99_000])
    assert again is block
    two.find(frame)


def test_blocks_are_not_overwritten_while_they_are_read(ends: Any) -> None:
    one, two = ends
    kept = [two.find(placed(one, np.full(70_000, i, np.uint8))[1]) for i in range(4)]
    assert one.place([DATA.data]) is None
    assert [(a.min(), a.max()) for (a,) in kept] == [(i, i) for i in range(4)]
    del kept[2]
    _, frame = placed(one, DATA)
    assert (two.find(frame)[0] == DATA).all()
    assert [a.max() for (a,) in kept] == [0, 1, 3]


def test_shared_bytes_are_bounded(ends: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, "_MOST_BYTES", 150_000)
    one, _ = ends
    block, _ = placed(one, DATA)
    assert one.place([DATA.data]) is None
    block.free()
    assert placed(one, DATA)[0] is block


def test_without_memory_there_is_no_block(
    ends: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    one, _ = ends
    monkeypatch.setattr(os, "posix_fallocate", fail)
    before = ours()
    assert one.place([DATA.data]) is None
    assert ours() == before
    memories = Memories(lambda *_: None)
    assert memories.ask(b"w") is None and memories.ask(b"w") is None


def test_idle_blocks_are_freed(ends: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = ends
    before = ours()
    _, frame = placed(one, DATA)
    (kept,) = two.find(frame)
    monkeypatch.setattr(shared_memory, "_IDLE", 0.0)
    assert one.sweep() and two.sweep()
    assert len(one._blocks) == 1  # it is being read
    monkeypatch.setattr(shared_memory, "_KEPT", 0.0)
    assert one.sweep() and two.sweep()
    assert not one._blocks and not two._windows
    np.testing.assert_array_equal(kept, DATA)
    del kept
    assert ours() == before


def test_a_peer_that_returns_with_the_same_descriptor_is_met_again() -> None:
    sent: list[bytes] = []
    ours = Memories(lambda _, frame: sent.append(frame))
    number = -1
    for _ in range(2):
        peer = SharedMemory()
        if number < 0:
            number = peer._challenge.file
        elif peer._challenge.file != number:
            # As if no other file had been opened in the meantime.
            os.dup2(peer._challenge.file, number)
            os.close(peer._challenge.file)
            peer._challenge.file = number
        ours.meet(b"peer", peer.hello())
        proof = peer.meet(shared_memory.read_hello(sent.pop()))
        assert peer.ready and proof is not None
        ours.meet(b"peer", proof)
        memory = ours.ask(b"peer")
        assert memory is not None and memory.ready
        peer.close()
    ours.close()


def test_ends_that_replace_their_challenges_at_the_same_time_meet() -> None:
    """Each receives a challenge that the other has replaced, and keeps its own."""
    to_them: list[bytes] = []
    to_us: list[bytes] = []
    us = Memories(lambda _, frame: to_them.append(frame))
    them = Memories(lambda _, frame: to_us.append(frame))
    try:
        us.ask(b"w")
        them.meet(b"w", to_them.pop())
        us.renew(b"w")
        us.meet(b"w", to_us.pop())  # the answer to a challenge that was replaced
        for _ in range(5):
            while to_them:
                them.meet(b"w", to_them.pop(0))
            while to_us:
                us.meet(b"w", to_us.pop(0))
        assert us.ask(b"w") is not None and them.ask(b"w") is not None
        assert not to_them and not to_us
    finally:
        us.close()
        them.close()


def test_other_machines_do_not_share_memory(ends: Any) -> None:
    one, _ = ends
    two = SharedMemory()
    elsewhere = shared_memory.read_hello(one.hello())._replace(boot=bytes(16))
    assert two.meet(elsewhere) is None and not two.ready
    assert not two.has_timed_out()
    two._begun -= 60
    assert two.has_timed_out()
    two.close()


def test_peers_without_a_proof_are_ignored(ends: Any) -> None:
    one, _ = ends
    two = SharedMemory()
    for proof in (bytes(16), b"x" * 16):
        two.meet(shared_memory.read_hello(one.hello())._replace(proof=proof))
        assert not two.ready
    two.close()


def test_files_that_are_not_blocks_are_refused(ends: Any, tmp_path: Path) -> None:
    one, two = ends
    plain = os.memfd_create("fxflow-parameter-server")
    os.ftruncate(plain, 1 << 16)
    with open(tmp_path / "file", "wb") as file, socket.socket() as other:
        for number in (plain, file.fileno(), other.fileno(), 99_999):
            frame = struct.pack("!4sBI16s", b"fxpm", 2, number, bytes(16))
            with pytest.raises(MessageError, match="cannot open a block"):
                two.find(frame)
            hello = shared_memory.read_hello(one.hello())._replace(challenge=number)
            stranger = SharedMemory()
            assert stranger.meet(hello) is None
            stranger.close()
    os.close(plain)


def test_invalid_places_are_refused(ends: Any) -> None:
    one, two = ends
    block, frame = placed(one, DATA)
    head = frame[:25]
    for place in ((0, block.capacity + 1), (block.capacity, 1), (2**64 - 1, 2**64 - 1)):
        with pytest.raises(MessageError, match="beyond"):
            two.find(head + struct.pack("!QQ", *place))
    with pytest.raises(MessageError, match="another secret"):
        two.find(head[:9] + bytes(16) + frame[25:])
    with pytest.raises(MessageError, match="do not list pieces"):
        two.find(frame[:-1])
    with pytest.raises(MessageError, match="has not shared memory"):
        Memories(lambda *_: None).find(b"w", frame)
    with pytest.raises(MessageError, match="not a hello"):
        Memories(lambda *_: None).meet(b"w", b"fxpm\1")


def test_the_secret_of_a_block_is_not_sent(ends: Any) -> None:
    one, _ = ends
    block, _ = placed(one, DATA)
    stranger = SharedMemory()
    hello = shared_memory.read_hello(one.hello())._replace(challenge=block.file)
    assert stranger.meet(hello) is None and not stranger.ready
    assert block.secret not in stranger.hello()
    stranger.close()


def test_blocks_of_other_users_are_refused(
    ends: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = ends
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    two = SharedMemory()
    assert two.meet(shared_memory.read_hello(one.hello())) is None
    two.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_another_users_process_cannot_open_files(ends: Any) -> None:
    one, _ = ends
    block, _ = placed(one, DATA)
    code = (
        "import os, sys\n"
        "for flags in (os.O_RDONLY, os.O_RDWR):\n"
        "    try: os.open(sys.argv[1], flags)\n"
        "    except PermissionError: print('refused')\n"
    )
    path = f"/proc/{os.getpid()}/fd/{block.file}"
    command = ["/usr/bin/env", "python3", "-c", code, path]
    done = subprocess.run(command, user=65534, capture_output=True, text=True)
    assert done.stdout == "refused\nrefused\n", done.stderr


#: A process that meets this one, then reads or writes; controlled by hexadecimal lines.
PEER = """
import sys, time
import numpy as np
from fxflow.distributed.messages import shared_memory as sm
memory = sm.SharedMemory()
read = lambda: bytes.fromhex(sys.stdin.readline())
tell = lambda frame: print(frame.hex(), flush=True)
tell(memory.meet(sm.read_hello(read())))
memory.meet(sm.read_hello(read()))
if sys.argv[1] == "writes":
    tell(memory.place([np.arange(100000, dtype=np.uint8).data])[1])
else:
    kept = memory.find(read())
    tell(bytes([int(kept[0][7])]))
time.sleep(60)
"""


class Peer:
    """Another process at the other end."""

    def __init__(self, does: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PEER, does],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.memory = SharedMemory()
        self.tell(self.memory.hello())
        proof = self.memory.meet(shared_memory.read_hello(self.hear()))
        assert proof is not None and self.memory.ready
        self.tell(proof)

    def tell(self, frame: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(frame.hex() + "\n")
        self.process.stdin.flush()

    def hear(self) -> bytes:
        assert self.process.stdout is not None
        return bytes.fromhex(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


def test_arrays_survive_a_killed_writer() -> None:
    before = ours()
    peer = Peer("writes")
    frame = peer.hear()
    found = peer.memory.find(frame)
    peer.kill()
    np.testing.assert_array_equal(found[0], DATA)
    assert not peer.memory.sweep()
    peer.memory.close()
    np.testing.assert_array_equal(found[0], DATA)
    del found
    assert ours() == before


def test_unread_arrays_of_a_killed_writer_are_refused() -> None:
    before = ours()
    peer = Peer("writes")
    frame = peer.hear()
    peer.kill()
    with pytest.raises(MessageError, match="cannot open a block"):
        peer.memory.find(frame)
    peer.memory.close()
    assert ours() == before


def test_blocks_of_a_killed_reader_are_not_overwritten() -> None:
    before = ours()
    peer = Peer("reads")
    block, frame = placed(peer.memory, DATA)
    peer.tell(frame)
    assert peer.hear() == b"\7"
    assert not block.is_free
    peer.kill()
    other, _ = placed(peer.memory, DATA)  # what it read is not overwritten
    assert other is not block
    assert not peer.memory.sweep()
    peer.memory.close()
    del block, other
    assert ours() == before


def test_freeing_a_closed_block_does_nothing() -> None:
    block = Block(1)
    block.close()
    block.free()
    assert block.file == -1
