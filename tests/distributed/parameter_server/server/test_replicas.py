"""Servers with copies of the same shards, in threads: if one dies, another serves."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.zeromq import Hub
from fxflow.distributed.parameter_server.consistency import bsp
from fxflow.distributed.parameter_server.server import replicas
from fxflow.distributed.parameter_server.server.replicas import Heartbeats
from fxflow.distributed.parameter_server.worker.client import WorkerClient
from fxflow.errors import DistributedError
from tests.distributed.parameter_server.server.harness import (
    ZEROS,
    Run,
    kill,
    models_of,
    push,
    running,
    totals,
    worker,
)

pytest.importorskip("zmq")


def test_entries_are_on_all_copies_before_they_are_acknowledged(
    tmp_path: Path,
) -> None:
    with running(tmp_path, 3, copies=2) as run, worker(run) as client:
        for n in range(1, 11):
            assert totals(client, push(client)) == [n] * 3
            for shard, held in enumerate(run.now().holders):
                assert len(held) == 2
                for server in held:
                    copy = run.servers[server].shards[shard]
                    assert float(np.asarray(copy.params[0])[0]) == n


@pytest.mark.parametrize("victim", [0, 1])
def test_a_copy_takes_over_and_nothing_is_lost(tmp_path: Path, victim: int) -> None:
    with running(tmp_path, 2) as run, worker(run) as client:
        for _ in range(5):
            client.wait(push(client))
        run.stop(victim)
        began = time.monotonic()
        assert totals(client, push(client)) == [6, 6]
        assert time.monotonic() - began < 10  # 0.6 s on a quiet machine
        assert run.now().holders == ((1 - victim,),) * 2
        # It restarts empty, receives everything, and serves its shard again.
        run.start(victim)
        run.wait(((0, 1), (1, 0)))
        assert totals(client, push(client)) == [7, 7]
        assert [run.sums(shard) for shard in (0, 1)] == [[7, 7]] * 2
        # Then it takes over in turn.
        run.stop(1 - victim)
        assert totals(client, push(client)) == [8, 8]


def test_a_restart_that_no_server_noticed(tmp_path: Path) -> None:
    """A new process at the same address is not the old process."""
    with running(tmp_path, 2) as run, worker(run) as client:
        client.wait(push(client))
        run.stop(1)
        run.start(1)
        assert totals(client, push(client)) == [2, 2]
        run.wait(((0, 1), (1, 0)))
        assert [run.sums(shard) for shard in (0, 1)] == [[2, 2]] * 2


def test_a_busy_server_does_not_judge_others_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages that others sent meanwhile wait to be read."""
    with running(tmp_path, 2) as run, worker(run) as client:
        client.wait(push(client))
        before, server = run.now(), run.servers[0]
        handle = server.handle

        def slow(peer: bytes, message: Message) -> None:
            if message.kind == "push":
                monkeypatch.setattr(server, "handle", handle)
                time.sleep(3.5)  # longer than servers and workers may be silent
            handle(peer, message)

        monkeypatch.setattr(server, "handle", slow)
        assert totals(client, push(client)) == [2, 2]
        time.sleep(0.3)
        assert run.now() == before


def test_a_replaced_server_that_resumes_does_no_harm(tmp_path: Path) -> None:
    """As after SIGSTOP, it resumes in the view that it left."""
    with running(tmp_path, 2) as run, worker(run) as client:
        client.wait(push(client))
        silent = run.servers[0]
        go_on, stopped = threading.Event(), threading.Event()
        receive = silent.listener.receive

        def wait(*args: Any) -> Any:
            stopped.set()
            go_on.wait(20)
            return receive(*args)

        silent.listener.receive = wait  # type: ignore[method-assign]
        heartbeats = silent._replicas._heartbeats
        assert heartbeats is not None
        heartbeats.close()
        stopped.wait(20)
        assert totals(client, push(client)) == [2, 2]
        assert silent.view.holders == ((0, 1), (1, 0))
        # It resumes as if it served shard 0.
        heartbeats = type(heartbeats)(None, 0.1, silent._replicas._heartbeat)
        heartbeats.set_addresses([run.view.addresses[1]])
        silent._replicas._heartbeats = heartbeats
        go_on.set()
        run.wait(((0, 1), (1, 0)))
        for n in range(3, 8):
            assert totals(client, push(client)) == [n, n]
        assert [run.sums(shard) for shard in (0, 1)] == [[7, 7]] * 2


def test_all_servers_restart_from_their_logs(tmp_path: Path) -> None:
    with running(tmp_path, 2, logs=True) as run:
        with worker(run) as client:
            for _ in range(3):
                client.wait(push(client))
        run.stop(1)
        run.stop(0)
        run.start(1)
        run.start(0)
        with worker(run) as client:
            assert totals(client, push(client)) == [4, 4]
            run.wait(((0, 1), (1, 0)))


def lose_a_majority(run: Run, victim: int) -> None:
    """Kills a server and all workers at the same moment, and restarts the server."""
    clients = [WorkerClient(run.view, deadline=30.0) for _ in range(2)]
    for client in clients:
        models = models_of(run.view)
        client.wait(client.begin(models, [[ZEROS]] * len(models)))
    run.until(lambda view: len(view.workers) == 2 and view.holders == view.places)
    for client in clients:
        client.wait(push(client))
    for client in clients:
        kill(client)
    run.stop(victim)
    run.start(victim)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_run_survives_a_majority_that_dies_if_its_log_is_left(
    tmp_path: Path, victim: int
) -> None:
    with running(tmp_path, 2, logs=True, silent_after=0.5) as run:
        lose_a_majority(run, victim)
        with worker(run) as client:
            assert totals(client, push(client)) == [3, 3]
            run.wait(((0, 1), (1, 0)))
            assert [run.sums(shard) for shard in (0, 1)] == [[3, 3]] * 2


def test_a_lost_majority_without_logs_is_reported(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path, 2, silent_after=0.5) as run:
        lose_a_majority(run, 1)
        late = pytest.raises(DistributedError, match="What the run has trained is lost")
        with late, worker(run, deadline=12.0):
            pass
    assert "servers that restarted (1) have no log (--folder" in capfd.readouterr().err


def test_waiting_servers_name_the_absent_ones(tmp_path: Path) -> None:
    with running(tmp_path, 2) as run:
        run.stop(1)
        late = pytest.raises(DistributedError, match=r"waits for servers \[1\]")
        with late, worker(run, deadline=4.0):
            pass


def test_a_first_view_that_only_a_worker_knows(tmp_path: Path) -> None:
    """The server that decided on it sent it to a worker, and died."""
    with running(tmp_path, 2) as run:
        decides = run.servers[0]._replicas
        say = decides._send
        withheld: list[int] = []

        def silent(server: int, message: Any) -> None:
            if message.kind == "view":
                withheld.append(server)
            else:
                say(server, message)

        decides._send = silent  # type: ignore[method-assign]
        client = WorkerClient(run.view, deadline=15.0)
        ticket = client.begin(models_of(run.view), [[ZEROS]] * 2)
        while client.view.epoch == 1:
            time.sleep(0.01)
        run.stop(0)
        # Server 1 learns of the view from the worker, perhaps it has already.
        assert 1 in withheld
        run.start(0)
        client.wait(ticket)
        assert totals(client, push(client)) == [1, 1]
        client.close()


def test_a_worker_continues_after_all_servers_restart(tmp_path: Path) -> None:
    """With logs the run continues; without, the error comes at once."""
    options: dict[str, Any] = {"silent_after": 0.5}
    with running(tmp_path, 2, logs=True, **options) as run, worker(run) as client:
        client.wait(push(client))
        for number in (0, 1):
            run.stop(number)
        for number in (1, 0):
            run.start(number)
        assert totals(client, push(client)) == [2, 2]
    with running(tmp_path, 2, **options) as run, worker(run) as client:
        client.wait(push(client))
        for number in (0, 1):
            run.stop(number)
        for number in (1, 0):
            run.start(number)
        with pytest.raises(DistributedError, match="its state is lost"):
            client.wait(push(client))


def test_rounds_continue_after_a_server_dies(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(running(tmp_path, 2))
        one, two = (stack.enter_context(worker(run, bsp())) for _ in range(2))
        for n in range(1, 4):
            tickets = push(one), push(two)
            assert totals(one, tickets[0]) == totals(two, tickets[1]) == [n, n]
        first = push(one)
        run.stop(0)
        second = push(two)
        assert totals(one, first) == totals(two, second) == [4, 4]


def test_a_copy_replaces_a_server_that_cannot_apply_an_entry(
    tmp_path: Path,
) -> None:
    with running(tmp_path, 2) as run, worker(run) as client:
        assert totals(client, push(client)) == [1.0, 1.0]
        broken = run.servers[0]

        def full(number: int, entry: Any) -> str:
            raise DistributedError("the log cannot be written to: No space left")

        broken._store.append = full  # type: ignore[method-assign]
        ended: list[str] = []
        serve = run.threads[0]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threading, "excepthook", lambda a: ended.append(str(a[1])))
            assert totals(client, push(client)) == [2.0, 2.0]
            serve.join(10)
        (why,) = ended
        assert "server 0 ends: it cannot apply push 2 of worker: the log" in why
        run.wait(((1,), (1,)))
        run.servers.pop(0), run.threads.pop(0)


def test_a_leaving_worker_votes_until_a_view_without_it(tmp_path: Path) -> None:
    with (
        running(tmp_path, 2) as run,
        worker(run) as client,
        contextlib.ExitStack() as s,
    ):
        others = [s.enter_context(worker(run)) for _ in range(2)]
        end = time.monotonic() + 20
        while len(run.now().workers) < 3:
            assert time.monotonic() < end
            time.sleep(0.01)
        # One of five voters dies and two leave, before any server notices the death.
        run.stop(0)
        leaving = [threading.Thread(target=other.close) for other in others]
        for thread in leaving:
            thread.start()
        while run.servers[1]._workers.keys() & {other.number for other in others}:
            time.sleep(0.01)
        run.start(0)
        assert totals(client, push(client)) == [1.0, 1.0]
        for thread in leaving:
            thread.join()


def test_a_lost_copy_receives_no_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, 2) as run, worker(run) as client:
        assert totals(client, push(client)) == [1.0, 1.0]
        # It is first silent, for longer than a probe waits, and then leaves the view.
        monkeypatch.setattr(replicas, "_PROBE_AFTER", 0.0)
        run.stop(1)
        assert totals(client, push(client)) == [2.0, 2.0]
        assert run.threads[0].is_alive()


def test_a_late_heartbeat_of_a_lost_process_is_ignored(tmp_path: Path) -> None:
    with running(tmp_path, 2) as run, worker(run) as client:
        assert totals(client, push(client)) == [1.0, 1.0]
        server = run.servers[0]._replicas
        epoch = run.now().epoch
        late = run.servers[1]._replicas._heartbeat()
        fields = late.fields._replace(incarnation=7, began=late.fields.began - 1)
        server.handle(dataclasses.replace(late, fields=fields))
        assert totals(client, push(client)) == [2.0, 2.0]
        assert server.view.epoch == epoch
        # A silent server does not make another one stale.
        assert server._is_stale(1, 1)
        server._newest[1] = (2, time.monotonic() - 60)
        assert not server._is_stale(1, 1)


def test_a_late_state_undoes_no_entry(tmp_path: Path) -> None:
    with running(tmp_path, 2) as run, worker(run) as client:
        assert totals(client, push(client)) == [1.0, 1.0]
        primary = run.now().primary(0)
        follower = run.servers[1 - primary]
        late = run.servers[primary]._store.state(0)
        assert totals(client, push(client)) == [2.0, 2.0]
        late = dataclasses.replace(late, epoch=run.now().epoch)
        follower._replicas._on_state(late, late.fields)
        assert run.sums(0) == [2.0, 2.0]
        # The state of another primary is loaded: its entries may differ.
        follower._replicas._primary_since[0] += 1
        newer = dataclasses.replace(late, epoch=late.epoch + 1)
        follower._replicas._on_state(newer, newer.fields)
        assert (
            follower.shards[0].position.entries
            < run.servers[primary].shards[0].position.entries
        )


# -- heartbeats ------------------------------------------------------------------------

pytest.importorskip("zmq")


def test_others_receive_heartbeats_until_it_is_closed(tmp_path: Path) -> None:
    threads = threading.active_count()
    with Hub() as hub:
        listeners = [hub.listen(f"ipc://{tmp_path}/{i}") for i in range(2)]
        addresses = [listener.address for listener in listeners]
        beats = Heartbeats(None, 0.01, lambda: Message("ping", epoch=7))
        # One after the other: servers that are added later get heartbeats too.
        for address, listener in zip(addresses, listeners, strict=True):
            beats.set_addresses([address])
            heard = []
            while len(heard) < 3:
                hub.wait(1)
                heard += listener.receive()
            assert {message.epoch for _, message in heard} == {7}
        beats.close()
        assert threading.active_count() == threads
