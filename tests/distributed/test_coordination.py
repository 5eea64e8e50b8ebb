import threading
import time
from typing import Any

import pytest

from fxflow.distributed.protocol import Lost, ReportWaiting
from fxflow.errors import DistributedError

from .harness import cluster


def test_reports_of_waiting_are_listed_once_each() -> None:
    with cluster(3) as (_, (first, second, third)):
        assert first.waiting() == []
        for one in (third, second, third):
            one.post(ReportWaiting())
            one.waiting()  # the answer follows the report
        assert first.waiting() == [1, 2]


def test_a_barrier_names_the_late_processes() -> None:
    with cluster(3) as (_, (first, second, _)):
        errors: dict[int, DistributedError] = {}

        def wait(number: int, one: Any) -> None:
            with pytest.raises(DistributedError) as caught:
                one.barrier("start", 0.3)
            errors[number] = caught.value

        thread = threading.Thread(target=wait, args=(1, second))
        thread.start()
        wait(0, first)
        thread.join()
        assert all("'start': process" in str(e) for e in errors.values())
        assert any(e.processes == (2,) for e in errors.values())
        assert all(2 in e.processes and e.seconds == 0.3 for e in errors.values())
        assert ":" in str(errors[0])  # the host and the process id


def test_a_barrier_of_some_processes_does_not_wait_for_others() -> None:
    with cluster(3) as (_, (first, _, third)):
        thread = threading.Thread(target=lambda: third.barrier("b", 5, [2, 0]))
        thread.start()
        first.barrier("b", 5, [0, 2])
        thread.join()
        with pytest.raises(DistributedError, match="process 1 of 3 did not arrive"):
            first.barrier("b", 0.1, [0, 1])


def test_an_answer_that_arrives_at_the_timeout_counts() -> None:
    withdrawn = threading.Event()

    class Slots(dict[int, Any]):
        """Hides a request from the reading thread until it is withdrawn."""

        def pop(self, number: int, default: Any = None) -> Any:
            if threading.current_thread() is not threading.main_thread():
                withdrawn.wait(5)
            return super().pop(number, default)

    with cluster(2) as (_, (first, second)):
        connection = first.connection
        connection._slots = Slots(connection._slots)
        send = connection.channel.send

        def sent(message: Any, payload: Any = b"") -> None:
            send(message, payload)
            if message["op"] == "Cancel":
                withdrawn.set()

        connection.channel.send = sent
        thread = threading.Thread(target=lambda: second.barrier("b", 5))
        thread.start()
        first.barrier("b", 0.3)  # both arrive; the answer is late
        thread.join()


def test_exchange_gathers_the_bytes_of_all_processes() -> None:
    with cluster(3) as (_, members):
        found: dict[int, list[list[bytes]]] = {}

        def run(number: int) -> None:
            found[number] = [
                members[number].exchange("x", bytes([number]) * (number + k))
                for k in range(20)
            ]

        threads = [threading.Thread(target=run, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wanted = [[bytes([n]) * (n + k) for n in range(3)] for k in range(20)]
        assert found == {0: wanted, 1: wanted, 2: wanted}


def test_a_lost_process_ends_waiting_at_once() -> None:
    events: list[Any] = []
    with cluster(2, on_event=lambda m, p: events.append(m)) as (_, (first, second)):
        timer = threading.Timer(0.1, second.close, [False])
        timer.start()
        started = time.monotonic()
        with pytest.raises(DistributedError, match="process 1 will not arrive"):
            first.barrier("b", 30)
        assert time.monotonic() - started < 5
        assert any(isinstance(e, Lost) and e.process == 1 for e in events)
        with pytest.raises(DistributedError, match="process 1 will not arrive"):
            first.barrier("c", 30)


def test_a_process_that_left_does_not_count_as_lost() -> None:
    events: list[Any] = []
    with cluster(2, on_event=lambda m, p: events.append(m)) as (_, (first, second)):
        second.close()
        with pytest.raises(DistributedError, match="will not arrive: it has left"):
            first.barrier("b", 30)
        assert events == []


def test_losing_the_coordinator_fails_requests() -> None:
    reasons: list[str] = []
    with cluster(2, on_lost=reasons.append) as (server, (first, _)):
        timer = threading.Timer(0.1, server.stop)
        timer.start()
        with pytest.raises(DistributedError, match="has lost the coordinator"):
            first.barrier("b", 30)
        with pytest.raises(DistributedError, match="has lost the coordinator"):
            first.waiting()
        deadline = time.monotonic() + 5
        while len(reasons) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(reasons) == 2


def test_requests_on_a_closed_connection_fail() -> None:
    with cluster(1) as (_, (only,)):
        only.close()
        only.close()
        with pytest.raises(DistributedError, match="the connection is closed"):
            only.waiting()
