import socket
import time
from collections.abc import Callable

import pytest

from fxflow.distributed.addresses import Address
from fxflow.distributed.coordination import Coordination
from fxflow.distributed.coordinator import Coordinator, listing
from fxflow.distributed.protocol import (
    AskWaiting,
    Hold,
    InStep,
    Judge,
    Late,
    Notice,
    SayWaiting,
    Until,
)
from fxflow.errors import DistributedError
from tests.distributed.harness import cluster


def wait_for(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    assert true()


def test_processes_are_listed_in_words() -> None:
    assert listing([]) == "no process"
    assert listing([2]) == "process 2"
    assert listing({3, 1}) == "processes 1, 3"


def test_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(DistributedError, match=rf"{port}: the port is in use"):
            Coordinator(f"127.0.0.1:{port}", 1)
    with pytest.raises(DistributedError, match="does not have that address"):
        Address("203.0.113.7", 0).listen()


def test_a_coordinator_of_no_processes_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Coordinator("127.0.0.1:0", 0)


def test_peers_without_the_token_are_refused() -> None:
    server = Coordinator("127.0.0.1:0", 2, token="secret")
    address = f"127.0.0.1:{server.port}"
    try:
        for arguments, why in (
            ((0, 2, "wrong"), "another run's token"),
            ((0, 3, "secret"), "expects 3 processes, the coordinator expects 2"),
            ((2, 2, "secret"), "process_id 2 is not in 0 to 1"),
        ):
            number, count, token = arguments
            with pytest.raises(DistributedError, match=why):
                Coordination.join(address, number, count, timeout=5, token=token)
        with socket.create_connection(("127.0.0.1", server.port)) as scan:
            scan.sendall(b"\x00" * 64)
            assert scan.recv(10) == b""
    finally:
        server.stop()


def test_a_process_id_that_is_taken_is_refused() -> None:
    with (
        cluster(1) as (server, _),
        pytest.raises(DistributedError, match=r"process_id 0 is taken by \S+:\d+"),
    ):
        Coordination.join(f"127.0.0.1:{server.port}", 0, 1, timeout=5)


def test_processes_that_never_join_are_named() -> None:
    server = Coordinator("127.0.0.1:0", 3)
    try:
        with pytest.raises(
            DistributedError,
            match=r"processes 1, 2 of 3 did not join within 0.3 s; process 0 did",
        ) as caught:
            Coordination.join(f"127.0.0.1:{server.port}", 0, 3, timeout=0.3)
        assert caught.value.processes == (1, 2)
        # It has left, so its number is free again.
        time.sleep(0.1)
        with pytest.raises(DistributedError, match="processes 1, 2 of 3"):
            Coordination.join(f"127.0.0.1:{server.port}", 0, 3, timeout=0.3)
    finally:
        server.stop()


def test_a_silent_process_counts_as_lost() -> None:
    with cluster(2, heartbeat=0.4) as (server, (first, second)):
        assert not server.group.departed
        # Like a stopped process: its connection stays open.
        second.connection._timeout = 1e9
        second.connection.channel.send = lambda *_: None  # type: ignore[method-assign]
        with pytest.raises(DistributedError, match=r"no heartbeat arrived for 0\.4 s"):
            first.barrier("b", 10)
        assert server.group.departed.keys() == {1}


def test_all_processes_stop_at_the_farthest_step() -> None:
    heard: list[object] = []
    with cluster(3, on_event=lambda event, epoch: heard.append(event)) as found:
        processes = found[1]
        for process in processes[:2]:
            process.post(Notice())  # the second request changes nothing
        wait_for(lambda: len(heard) == 3)
        assert heard == [Hold()] * 3
        processes[0].post(InStep(5))
        processes[1].post(InStep(8))
        processes[1].post(InStep(10))  # it has received `Hold`
        time.sleep(0.1)
        assert len(heard) == 3
        processes[2].post(InStep(0))
        wait_for(lambda: len(heard) == 6)
        assert heard[3:] == [Until(8, "stop")] * 3


def test_the_others_agree_on_a_step_after_a_process_left() -> None:
    heard: list[object] = []
    with cluster(2, on_event=lambda event, epoch: heard.append(event)) as found:
        first, second = found[1]
        first.post(Notice())
        first.post(InStep(1))
        wait_for(lambda: len(heard) == 2)
        second.close()
        wait_for(lambda: len(heard) == 3)
        assert heard[2] == Until(1, "stop")


def test_late_processes_are_reported_to_all() -> None:
    heard: list[object] = []
    with cluster(2, on_event=lambda event, epoch: heard.append(event)) as found:
        first, _ = found[1]
        first.post(AskWaiting())
        wait_for(lambda: len(heard) == 2)
        first.post(Judge([1], "it is late"))
        wait_for(lambda: len(heard) == 4)
        assert heard[0] == SayWaiting()
        assert heard[3] == Late([1], "it is late")
