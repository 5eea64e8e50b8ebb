import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import zmq

from fxflow.distributed.messages import codec, zeromq
from fxflow.distributed.messages.codec import Limits, Message
from fxflow.distributed.messages.keys import Keys, new_keys
from fxflow.distributed.messages.zeromq import (
    Dialer,
    Hub,
    Listener,
    Traffic,
    Waiting,
)
from fxflow.distributed.parameter_server.worker.tickets import Deadline
from fxflow.errors import DistributedError

KEYS = new_keys()
OTHER_KEYS = new_keys()
LOOPBACK = "tcp://127.0.0.1:0"


@pytest.fixture
def hubs() -> Iterator[Callable[..., Hub]]:
    with contextlib.ExitStack() as stack:
        yield lambda *args, **kwargs: stack.enter_context(Hub(*args, **kwargs))


def until(*hubs: Hub, true: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Serves the hubs until `true()` returns a true value, and returns it."""
    deadline = Deadline(seconds, "what a test waits for")
    while not (found := true()):
        deadline.check()
        for hub in hubs:
            hub.wait(0.005)
    return found


def heard(end: Any, *hubs: Hub, seconds: float = 10.0) -> Any:
    """Returns the next message of an end."""
    return until(*hubs, true=lambda: end.receive(1), seconds=seconds)[0]


def assert_talks(listener: Listener, dialer: Dialer, *hubs: Hub) -> bytes:
    """Sends a message in each direction; returns the dialer's identity."""
    weights = np.arange(300_000, dtype=np.float32)
    assert dialer.send(Message("control", 1, 2, 3, {"a": [1]}, {"w": weights}))
    peer, message = heard(listener, *hubs)
    assert (message.kind, message.worker, message.fields) == ("control", 1, {"a": [1]})
    np.testing.assert_array_equal(message.arrays["w"], weights)
    assert listener.send(peer, Message("control", arrays={"w": weights[:5]}))
    answer = heard(dialer, *hubs)
    assert answer.kind == "control"
    np.testing.assert_array_equal(answer.arrays["w"], weights[:5])
    return bytes(peer)


def assert_comes_to_share(
    end: Any, listener: Listener, dialer: Dialer, *hubs: Hub
) -> None:
    """Sends messages until one uses shared memory, usually a few."""
    for _ in range(30):
        assert_talks(listener, dialer, *hubs)
        if end.traffic.shared_bytes["control"] >= 1_200_000:
            return
    raise AssertionError(f"nothing is shared: {end.traffic.shared_bytes}")


def descriptors() -> tuple[int, int]:
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


# -- traffic ---------------------------------------------------------------------------


def test_traffic_is_counted_by_name() -> None:
    traffic = Traffic()
    traffic.sent["push"] += 1
    traffic.shared_bytes["push"] += 5
    told = traffic.to_dict()
    assert told["sent"] == {"push": 1} and told["shared_bytes"] == {"push": 5}
    assert told["dropped"] == told["received"] == {}


def test_waiting_counts_bytes_until_they_are_sent() -> None:
    waiting = Waiting()
    assert not waiting
    one, two = SimpleNamespace(done=False), SimpleNamespace(done=True)
    waiting.add(one, 3)
    waiting.add(two, 4)
    assert waiting and waiting.size() == 7  # they are sent in order
    one.done = True
    assert waiting.size() == 0 and not waiting


# -- messages in both directions -------------------------------------------------------


@pytest.mark.parametrize("keys", [None, KEYS], ids=["open", "keys"])
@pytest.mark.parametrize("scheme", ["tcp", "v6", "ipc", "inproc"])
def test_messages_travel_in_both_directions(
    scheme: str, keys: Keys | None, hubs: Callable[..., Hub], tmp_path: Path
) -> None:
    address = {
        "tcp": "localhost:0",
        "v6": "tcp://[::1]:0",
        "ipc": f"ipc://{tmp_path}/s",
        "inproc": f"inproc://test-{keys is not None}",
    }[scheme]
    server, client = hubs(keys), hubs(keys and keys.for_clients())
    listener = server.listen(address)
    assert not listener.address.endswith(":0")
    dialer = client.dial(listener.address, b"worker 1")
    assert assert_talks(listener, dialer, server, client) == b"worker 1"
    assert until(client, true=lambda: dialer.connected)
    assert dialer.problem == ""
    assert listener.traffic.to_dict() == {
        "sent": {"control": 1},
        "sent_bytes": dict(dialer.traffic.received_bytes),
        "received": {"control": 1},
        "received_bytes": dict(dialer.traffic.sent_bytes),
        "shared_bytes": {},
        "dropped": {},
    }
    assert dialer.traffic.sent_bytes["control"] > 1_200_000


def test_one_wait_serves_all_sockets(hubs: Callable[..., Hub]) -> None:
    hub = hubs()
    one, two = hub.listen(LOOPBACK), hub.listen(LOOPBACK)
    dialer, idle = hub.dial(one.address), hub.dial(two.address)
    dialer.send(Message("ping"))
    ready = until(hub, true=lambda: hub.wait(0.1))
    assert ready == [one]
    ((peer, _),) = one.receive()
    assert not one.receive() and not idle.receive()
    one.send(peer, Message("control"))
    assert until(hub, true=lambda: hub.wait(0.1)) == [dialer]


def test_waiting_times_out(hubs: Callable[..., Hub]) -> None:
    hub = hubs()
    hub.listen(LOOPBACK)
    begin = time.monotonic()
    assert hub.wait(0.05) == []
    assert 0.04 < time.monotonic() - begin < 5
    hub.wait(0)


def test_another_thread_wakes_a_hub(hubs: Callable[..., Hub]) -> None:
    hub = hubs()
    hub.listen(LOOPBACK)
    hub.wake()
    hub.wake()
    assert hub.wait(60) == []
    timer = threading.Timer(0.05, hub.wake)
    timer.start()
    assert hub.wait(60) == []
    timer.join()
    for _ in range(100_000):  # more than a socket holds
        hub.wake()
    assert hub.wait(60) == []
    begin = time.monotonic()
    hub.wait(0.02)
    assert time.monotonic() - begin >= 0.02
    hub.close()
    hub.wake()


def test_many_messages_do_not_starve_other_peers(hubs: Callable[..., Hub]) -> None:
    hub = hubs()
    listener = hub.listen(LOOPBACK)
    dialer = hub.dial(listener.address)
    for i in range(30):
        assert dialer.send(Message("control", sequence=i))
    got: list[int] = []
    while len(got) < 30:
        assert hub.wait(5) == [listener]
        some = listener.receive(most=7)
        assert len(some) <= 7
        got += [message.sequence for _, message in some]
    assert got == list(range(30))


# -- authentication --------------------------------------------------------------------


def test_other_machines_need_keys(hubs: Callable[..., Hub]) -> None:
    with pytest.raises(DistributedError, match=r"listening at .* needs keys"):
        hubs().listen("*:5")
    with pytest.raises(DistributedError, match=r"connecting to .* needs keys"):
        hubs().dial("10.0.0.1:5")


def test_unusable_addresses_are_refused(
    hubs: Callable[..., Hub], tmp_path: Path
) -> None:
    hub = hubs(KEYS)
    taken = hub.listen(LOOPBACK).address
    with pytest.raises(DistributedError, match=f"cannot listen at {taken}"):
        hub.listen(taken)
    with pytest.raises(DistributedError, match="cannot listen at"):
        hub.listen(f"ipc://{tmp_path}/no/such/folder")
    with pytest.raises(DistributedError, match=r"cannot listen at no\.such\.host"):
        hub.listen("no.such.host.invalid:0".replace(".invalid", ""))
    with pytest.raises(DistributedError, match="identity"):
        hub.dial(taken, b"x" * 256)


def test_a_worker_cannot_be_a_server(hubs: Callable[..., Hub]) -> None:
    with pytest.raises(DistributedError, match="the servers' secret key"):
        hubs(KEYS.for_clients()).listen(LOOPBACK)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (OTHER_KEYS, "another run's"),
        (
            Keys(
                KEYS.server_public, OTHER_KEYS.client_public, OTHER_KEYS.client_secret
            ),
            "it rejects these client keys",
        ),
        (None, "only one end has keys"),
    ],
    ids=["another server's", "another client's", "none"],
)
def test_peers_with_other_keys_are_refused(
    keys: Keys | None, problem: str, hubs: Callable[..., Hub]
) -> None:
    server, client, wrong = hubs(KEYS), hubs(KEYS), hubs(keys)
    listener = server.listen(LOOPBACK)
    dialer = client.dial(listener.address)
    assert_talks(listener, dialer, server, client)
    stranger = wrong.dial(listener.address)
    stranger.send(Message("control", arrays={"w": np.ones(1 << 20)}))
    until(server, wrong, true=lambda: listener.traffic.dropped["stranger"])
    until(server, wrong, true=lambda: problem in stranger.problem)
    assert not stranger.connected
    assert listener.receive() == []
    assert_talks(listener, dialer, server, client)


def test_keys_at_one_end_only_are_refused(hubs: Callable[..., Hub]) -> None:
    server, client, wrong = hubs(), hubs(), hubs(KEYS)
    listener = server.listen(LOOPBACK)
    stranger = wrong.dial(listener.address)
    stranger.send(Message("control"))
    until(server, wrong, true=lambda: "one end has keys" in stranger.problem)
    assert listener.receive() == []
    assert_talks(listener, client.dial(listener.address), server, client)


@pytest.mark.parametrize("keys", [None, KEYS], ids=["open", "keys"])
@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x00" * 100_000,
        b"\xff" * 100_000,
        # A frame of 2^62 bytes and one of 10, in ZeroMQ's first protocol.
        b"\xff" + (1 << 62).to_bytes(8, "big") + b"\0" * 1000,
        b"\x0a\0123456789",
        b"",
    ],
)
def test_unauthenticated_connections_are_refused(
    said: bytes, keys: Keys | None, hubs: Callable[..., Hub]
) -> None:
    server, client = hubs(keys), hubs(keys)
    listener = server.listen(LOOPBACK)
    dialer = client.dial(listener.address)
    assert_talks(listener, dialer, server, client)
    host, port = listener.address.removeprefix("tcp://").split(":")
    for _ in range(3):
        with socket.create_connection((host, int(port))) as stranger:
            with contextlib.suppress(OSError):
                stranger.sendall(said)
            if said:
                server.wait(0.01)
    assert_talks(listener, dialer, server, client)
    until(server, true=lambda: listener.traffic.dropped["stranger"] >= 3)
    assert listener.receive() == []


def raw(listener: Listener) -> Any:
    """A ZeroMQ socket that connects, for bytes that `Dialer` would not send."""
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.setsockopt(zmq.LINGER, 0)
    dealer.connect(listener.address)
    return context, dealer


def test_malformed_messages(hubs: Callable[..., Hub]) -> None:
    server, client = hubs(limits=Limits(size=2 << 20)), hubs()
    listener = server.listen(LOOPBACK)
    dialer = client.dial(listener.address)
    context, dealer = raw(listener)
    try:
        good, body = codec.encode(Message("control", arrays={"w": np.ones(3)}))
        for frames in (
            [b""],
            [codec._MARK],
            [b"GET / HTTP/1.1"],
            [good],
            [good, bytes(body) + b"x"],
            [body, good],
            codec.encode(Message("control", arrays={"w": np.ones(1 << 19)})),
        ):
            dealer.send_multipart(frames)
        until(server, true=lambda: listener.receive() or sum(_dropped(listener)) == 7)
        assert dict(listener.traffic.dropped) == {"mark": 4, "size": 3}
        assert_talks(listener, dialer, server, client)
        # A frame that is too long closes the connection and takes no memory.
        dealer.send(b"x" * (5 << 20))
        dealer.send_multipart([good, body])
        assert heard(listener, server)[1].kind == "control"
        assert sum(_dropped(listener)) == 7
    finally:
        dealer.close()
        context.term()


def _dropped(end: Any) -> list[int]:
    return list(end.traffic.dropped.values())


def test_messages_of_another_version_are_refused(
    hubs: Callable[..., Hub], monkeypatch: Any
) -> None:
    hub = hubs()
    listener = hub.listen(LOOPBACK)
    context, dealer = raw(listener)
    try:
        (frame,) = codec.encode(Message("ping"))
        later = frame[:4] + bytes([frame[4] + 1]) + frame[5:]
        dealer.send(later)
        until(hub, true=lambda: listener.receive() or listener.traffic.dropped)
        assert listener.traffic.dropped == {"version": 1}
        # The answer has this version, so the peer's error names both.
        assert dealer.poll(5000)
        (answer,) = dealer.recv_multipart()
        assert codec.decode([answer]).kind == "ping"
    finally:
        dealer.close()
        context.term()
    dialer = hub.dial(listener.address, b"x")
    dialer.send(Message("ping"))
    heard(listener, hub)
    listener._socket.send_multipart([b"x", later])
    with pytest.raises(DistributedError, match=r"127.0.0.1:\d+: the peer uses"):
        heard(dialer, hub)


# -- peers that restart ----------------------------------------------------------------


@pytest.mark.parametrize("keys", [None, KEYS], ids=["open", "keys"])
def test_a_dialer_reconnects_to_a_restarted_server(
    keys: Keys | None, hubs: Callable[..., Hub]
) -> None:
    first, client = hubs(keys), hubs(keys)
    listener = first.listen(LOOPBACK)
    dialer = client.dial(listener.address, b"w")
    assert_talks(listener, dialer, first, client)
    first.close()
    until(client, true=lambda: not dialer.connected)
    assert dialer.problem == "the connection was lost"
    assert dialer.send(Message("control", sequence=9))  # waits for the connection
    second = hubs(keys)
    listener = second.listen(listener.address)
    peer, message = heard(listener, second, client)
    assert (peer, message.sequence) == (b"w", 9)
    assert assert_talks(listener, dialer, second, client) == b"w"
    assert until(client, true=lambda: dialer.connected)


def test_a_restarted_worker_replaces_its_old_connection(
    hubs: Callable[..., Hub],
) -> None:
    server, client = hubs(), hubs()
    listener = server.listen(LOOPBACK)
    old = client.dial(listener.address, b"w")
    assert_talks(listener, old, server, client)
    new = client.dial(listener.address, b"w")  # before the old connection is given up
    new.send(Message("ping"))
    assert heard(listener, server)[0] == b"w"
    assert_talks(listener, new, server, client)
    assert old.receive() == []


def test_messages_to_absent_peers_are_dropped(hubs: Callable[..., Hub]) -> None:
    server, client = hubs(), hubs()
    listener = server.listen(LOOPBACK)
    assert not listener.send(b"absent", Message("control"))
    assert listener.traffic.dropped == {"gone": 1}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        dialer = client.dial(f"127.0.0.1:{free.getsockname()[1]}")
    assert dialer.send(Message("ping"))
    assert client.wait(0.05) == []
    assert not dialer.connected
    assert dialer.problem == "no process answers there yet"


def test_messages_to_a_peer_that_does_not_read_are_bounded(
    hubs: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zeromq, "_MOST_WAITING", 32 << 20)
    monkeypatch.setattr(zeromq, "_MOST_UNREAD", 1)
    server, client = hubs(), hubs()
    listener = server.listen(LOOPBACK)
    deaf, other = client.dial(listener.address, b"deaf"), client.dial(listener.address)
    assert_talks(listener, deaf, server, client)
    large = np.ones(4 << 20, np.uint8)
    params = Message("control", arrays={"w": large})
    begin = time.monotonic()
    # The kernel and both ends hold a bounded number of messages.
    taken = 0
    while listener.send(b"deaf", params):
        taken += 1
        assert taken < 50
    assert listener.traffic.dropped == {"slow": 1}
    assert time.monotonic() - begin < 5
    assert_talks(listener, other, server, client)
    # When it reads again, it is served again.
    for _ in range(taken):
        assert heard(deaf, client).arrays["w"].nbytes == large.nbytes
    assert until(server, true=lambda: listener.send(b"deaf", params))
    # The number of small messages is bounded.
    taken = 0
    while listener.send(b"deaf", Message("control", fields={"x": "x" * 5000})):
        taken += 1
        assert taken < 20_000
    assert listener.traffic.dropped["slow"] >= 2
    assert_talks(listener, other, server, client)


def test_peers_that_left_are_forgotten(hubs: Callable[..., Hub]) -> None:
    server, client = hubs(), hubs()
    listener = server.listen(LOOPBACK)
    for i in range(5):
        dialer = client.dial(listener.address, b"w%d" % i)
        assert_talks(listener, dialer, server, client)
        assert listener.send(
            b"w%d" % i, Message("control", arrays={"w": np.ones(9**5)})
        )
        assert heard(dialer, client).kind == "control"
        dialer.close()
    assert len(listener._waiting) < 5


def test_messages_to_a_server_that_does_not_read_are_bounded(
    hubs: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zeromq, "_MOST_UNSENT", 3)
    client = hubs()
    dialer = client.dial("127.0.0.1:9")
    sent = [dialer.send(Message("control", sequence=i)) for i in range(5)]
    assert sent == [True] * 3 + [False] * 2
    assert dialer.traffic.dropped == {"slow": 2}


# -- closing ---------------------------------------------------------------------------


def test_closed_hubs_leave_nothing_behind(tmp_path: Path) -> None:
    def once() -> None:
        for address in (LOOPBACK, f"ipc://{tmp_path}/s", "inproc://left"):
            with Hub(KEYS) as server, Hub(KEYS) as client:
                listener = server.listen(address)
                dialer = client.dial(listener.address)
                client.dial("127.0.0.1:9").send(Message("ping"))
                assert_talks(listener, dialer, server, client)
                dialer.close()
                dialer.close()
                server.close()
                server.close()
                assert listener.closed and dialer.closed

    once()  # pyzmq starts its own thread once
    before = descriptors()
    for _ in range(8):
        once()
    files, threads = descriptors()
    # Other parts of this process may start threads, but not in each round.
    assert files == before[0] and threads < before[1] + 8
    assert os.listdir(tmp_path) == []


def test_lingering_messages_are_sent(hubs: Callable[..., Hub]) -> None:
    server = hubs()
    listener = server.listen(LOOPBACK)
    client = hubs()
    dialer = client.dial(listener.address)
    assert_talks(listener, dialer, server, client)  # a handshake needs the hub
    dialer.send(Message("control", arrays={"w": np.ones(1 << 20)}))
    dialer.close(linger=5)
    closing = threading.Thread(target=client.close)
    closing.start()
    assert heard(listener, server)[1].arrays["w"].sum() == 1 << 20
    closing.join(2)
    assert not closing.is_alive()


# -- shared memory ---------------------------------------------------------------------


def pair(hubs: Callable[..., Hub], keys: Keys | None = None) -> tuple[Any, ...]:
    """A listener and a dialer that share memory, and their hubs."""
    server, client = hubs(keys), hubs(keys and keys.for_clients())
    listener = server.listen(LOOPBACK)
    dialer = client.dial(listener.address, b"w")
    for _ in range(2):  # the first message asks for memory
        assert_talks(listener, dialer, server, client)
    return listener, dialer, server, client


@pytest.mark.parametrize("keys", [None, KEYS], ids=["open", "keys"])
def test_large_arrays_use_shared_memory(
    keys: Keys | None, hubs: Callable[..., Hub]
) -> None:
    listener, dialer, _, client = pair(hubs, keys)
    assert dialer.traffic.shared_bytes == {"control": 1_200_000}
    assert listener.traffic.shared_bytes == {"control": 1_200_000}
    assert listener.traffic.sent_bytes == dialer.traffic.received_bytes
    assert listener.traffic.received_bytes == dialer.traffic.sent_bytes
    # Large, small and empty arrays of odd sizes in one message, in both directions.
    arrays = {
        "a": np.arange(100_001, dtype=np.uint8).reshape(100_001, 1),
        "b": np.float32(3).reshape(()),
        "c": np.zeros((0, 3), np.int64),
        "d": np.random.default_rng(0).normal(size=(300, 301)),
        "e": np.ones(70_001, np.bool_),
    }
    for _ in range(20):
        assert listener.send(b"w", Message("control", arrays=arrays))
        came = heard(dialer, client).arrays
        assert list(came) == list(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(came[name], array, strict=True)
            assert not came[name].flags.writeable
        assert came["d"].ctypes.data % 64 == 0  # XLA uses it without a copy
    assert listener.traffic.shared_bytes["control"] >= 19 * 800_000
    assert listener.traffic.dropped == dialer.traffic.dropped == {}


def test_arrays_being_read_are_not_overwritten(hubs: Callable[..., Hub]) -> None:
    listener, dialer, server, client = pair(hubs)
    kept = []
    for i in range(12):
        assert dialer.send(Message("control", arrays={"w": np.full(9**5, float(i))}))
        kept.append(heard(listener, server)[1].arrays["w"])
    # Four used memory; then there was no more room.
    assert dialer.traffic.shared_bytes["control"] == 1_200_000 + 4 * 8 * 9**5
    for i, array in enumerate(kept):
        assert array.min() == array.max() == i
    del kept, array
    before = dialer.traffic.shared_bytes["control"]
    assert_talks(listener, dialer, server, client)
    assert dialer.traffic.shared_bytes["control"] == before + 1_200_000


def test_memory_is_shared_again_after_a_reconnect(hubs: Callable[..., Hub]) -> None:
    listener, dialer, server, client = pair(hubs)
    assert dialer.send(Message("control", arrays={"w": np.ones(9**5)}))
    kept = heard(listener, server)[1].arrays["w"]
    dialer.close()
    again = client.dial(listener.address, b"w")
    assert_comes_to_share(again, listener, again, server, client)
    assert kept.sum() == 9**5
    address = listener.address
    server.close()
    other = hubs()
    listener = other.listen(address)
    until(client, true=lambda: not again.connected)
    assert_comes_to_share(listener, listener, again, other, client)
    assert kept.sum() == 9**5


def test_malformed_places_are_dropped(hubs: Callable[..., Hub]) -> None:
    listener, dialer, server, client = pair(hubs)
    context, dealer = raw(listener)
    try:
        for frame in (b"", b"short", bytes(16), bytes(28), bytes(44), bytes(45)):
            dealer.send(b"fxpm\1" + frame)
            dealer.send_multipart([b"fxpm\2" + frame, b"x"])
        dealer.send(b"fxpm")
        until(server, true=lambda: listener.receive() or sum(_dropped(listener)) >= 12)
        assert set(listener.traffic.dropped) <= {"memory", "mark"}
        assert_talks(listener, dialer, server, client)
    finally:
        dealer.close()
        context.term()


GOES = """
import sys, time
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.zeromq import Hub

with Hub() as hub:
    listener = hub.listen(sys.argv[1])
    with Hub() as other:
        dialer = other.dial(listener.address)
        dialer.send(Message("control"))
        while not listener.receive():
            hub.wait(0.01)
        while dialer.send(Message("control")):
            pass
        time.sleep(0.2)
    time.sleep(3)
    hub.wait(1)
    print(len(listener.receive()) > 0)
"""


@pytest.mark.parametrize("kind", ["ipc", "tcp"])
def test_a_peer_that_ends_while_its_messages_wait_does_no_harm(
    tmp_path: Path, kind: str
) -> None:
    address = f"ipc://{tmp_path}/a" if kind == "ipc" else LOOPBACK
    command = [sys.executable, "-c", GOES, address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
