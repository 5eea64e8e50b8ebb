"""Handshakes: processes of a run are admitted, others are not."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from fxflow.distributed.messages import handshake
from fxflow.distributed.messages.keys import Keys, new_keys
from fxflow.errors import DistributedError

KEYS = new_keys()


def meeting(
    address: str, listens: Keys | None, connects: Keys | None
) -> tuple[Any, Any]:
    """Returns what both ends get: a connection or an error."""
    listener = handshake.listen(address, listens, "a test")
    found: list[Any] = []

    def admit() -> None:
        connection = listener.accept()[0]
        try:
            handshake.admit(connection, listens, 5)
            found.append(connection)
        except DistributedError as error:
            found.append(error)

    thread = threading.Thread(target=admit)
    thread.start()
    try:
        own: Any = handshake.connect(address, connects, 5, "a test")
    except DistributedError as error:
        own = error
    thread.join()
    listener.close()
    return own, found[0]


def test_both_ends_have_the_keys(tmp_path: Path) -> None:
    for address in (str(tmp_path / "a"), f"ipc://{tmp_path}/b"):
        for keys in (None, KEYS):
            one, other = meeting(address, keys, keys)
            with one, other:
                one.sendall(b"hello")
                assert other.recv(5) == b"hello"


def test_over_tcp_servers_and_clients_have_them() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    one, other = meeting(f"127.0.0.1:{port}", KEYS, KEYS.for_clients())
    with one, other:
        assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("connects", [None, new_keys()], ids=["none", "others"])
def test_other_keys_are_refused(tmp_path: Path, connects: Keys | None) -> None:
    own, other = meeting(str(tmp_path / "a"), KEYS, connects)
    assert "not of this run" in str(own)
    assert "does not have the keys" in str(other)


def test_what_was_overheard_cannot_be_used_again(tmp_path: Path) -> None:
    address = str(tmp_path / "a")
    overheard = b""
    with handshake.listen(address, KEYS, "a test") as listener:
        for times in range(2):
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(address)
                accepted = listener.accept()[0]
                thread = threading.Thread(target=handshake_of, args=(accepted,))
                thread.start()
                begin = one.recv(1 << 12)
                if not times:
                    own = bytes(32)
                    theirs = begin[4:]
                    overheard = own + handshake._proof(KEYS, b"connects", theirs, own)
                one.sendall(overheard)
                answer = one.recv(1 << 12)
                assert answer.startswith(b"no" if times else b"yes")
                thread.join()
                accepted.close()
    assert KEYS.client_secret.encode() not in overheard


def handshake_of(connection: socket.socket) -> None:
    with contextlib.suppress(DistributedError):
        handshake.admit(connection, KEYS, 5)


def test_a_stranger_is_refused_in_time(tmp_path: Path) -> None:
    address = str(tmp_path / "a")
    with handshake.listen(address, None, "a test") as listener:
        for sent, why in ((b"", "closed"), (b"GET / HTTP/1.1\r\n" * 8, "keys")):
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(address)
                one.sendall(sent)
                one.shutdown(socket.SHUT_WR)
                with pytest.raises(DistributedError, match=why):
                    handshake.admit(listener.accept()[0], None, 5)
        with socket.socket(socket.AF_UNIX) as silent:
            silent.connect(address)
            with pytest.raises(DistributedError, match="timed out"):
                handshake.admit(listener.accept()[0], None, 0.05)


def test_another_service_is_not_one_of_fxflow(tmp_path: Path) -> None:
    address = str(tmp_path / "a")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()

        def greet() -> None:
            with listener.accept()[0] as connection:
                connection.sendall(b"220 mail ready" + b" " * 64)

        thread = threading.Thread(target=greet)
        thread.start()
        with pytest.raises(DistributedError, match="not a process of fxflow"):
            handshake.connect(address, None, 5, "a test")
        thread.join()


def test_a_stale_file_is_replaced_and_a_used_one_is_not(tmp_path: Path) -> None:
    address = str(tmp_path / "a")
    handshake.listen(address, None, "a test").close()
    with (
        handshake.listen(address, None, "a test"),
        pytest.raises(DistributedError, match="another process listens there"),
    ):
        handshake.listen(address, None, "a test")


def test_a_process_that_does_not_listen_is_named(tmp_path: Path) -> None:
    with pytest.raises(DistributedError, match="a test does not answer at /") as found:
        handshake.connect(str(tmp_path / "a"), None, 0.05, "a test")
    assert found.value.seconds == 0.05


def test_a_server_may_listen_on_all_interfaces() -> None:
    with handshake.listen("*:0", KEYS, "a test") as listener:
        assert listener.getsockname()[0] == "0.0.0.0"
    with pytest.raises(DistributedError, match="needs keys"):
        handshake.listen("*:0", None, "a test")


def test_without_retries_a_missing_process_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(DistributedError, match="No such file"):
        handshake.connect(str(tmp_path / "a"), None, 1e6, "a test", retry=False)


def test_addresses_beyond_this_machine_need_keys() -> None:
    assert handshake.is_local("/tmp/a")
    assert handshake.is_local("127.0.0.1:7000")
    assert not handshake.is_local("10.0.0.1:7000")
    handshake.require_keys("10.0.0.1:7000", KEYS)
    with pytest.raises(DistributedError, match="needs keys"):
        handshake.require_keys("10.0.0.1:7000", None)
    for address in ("inproc://a", "nowhere", "10.0.0.1:port"):
        with pytest.raises(DistributedError, match="host:port"):
            handshake.parsed(address)
