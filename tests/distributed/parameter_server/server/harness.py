"""Runs the servers and workers of a run in threads of one process."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fxflow import optim
from fxflow.distributed.messages.zeromq import Hub
from fxflow.distributed.parameter_server.consistency import asynchronous
from fxflow.distributed.parameter_server.model import Model, make_model
from fxflow.distributed.parameter_server.running import enlist
from fxflow.distributed.parameter_server.server.process import ShardServer
from fxflow.distributed.parameter_server.views import View, first_view
from fxflow.distributed.parameter_server.worker.client import WorkerClient

ZEROS, ONES = np.zeros(3, np.float32), np.ones(3, np.float32)
#: How often each `Work` pushes.
PUSHES = 25
_runs = itertools.count()


class Run:
    """The servers of one run; each can be killed and restarted."""

    def __init__(
        self,
        folder: Path,
        servers: int,
        copies: int = 2,
        logs: bool = False,
        shards: int = 0,
        silent_after: float = 1.5,
        gone_after: float = 60.0,
    ):
        self.number, self.sockets = next(_runs), folder
        folder.mkdir(exist_ok=True)
        addresses = list(map(self.address, range(servers)))
        self.view = first_view(addresses, copies, shards)
        self.folder = folder if logs else None
        # Longer than the default: threads are slow on a busy machine, and the tests
        # count deaths, so no live server may count as lost.
        self.silent_after, self.gone_after = silent_after, gone_after
        self.servers: dict[int, ShardServer] = {}
        self.threads: dict[int, threading.Thread] = {}
        for number in range(servers):
            self.start(number)

    def address(self, number: int) -> str:
        return f"ipc://{self.sockets}/{self.number}-{number}"

    def start(self, number: int) -> None:
        hub, address = Hub(), self.address(number)
        listener = hub.listen(address)
        folder = self.folder and self.folder / f"server-{number}"
        view = self.view
        if number >= len(view.addresses):
            there = [self.address(other) for other in self.servers]
            found, view = enlist(there, address, folder=folder, deadline=30.0)
            assert found == number
        server = ShardServer(
            hub,
            listener,
            number,
            view,
            folder=folder,
            silent_after=self.silent_after,
            gone_after=self.gone_after,
        )
        thread = threading.Thread(target=server.serve)
        thread.start()
        self.servers[number], self.threads[number] = server, thread

    def add(self) -> int:
        """Starts one more server."""
        number = len(self.now().addresses)
        self.start(number)
        return number

    def leave(self, number: int) -> ShardServer:
        """Waits until others hold a server's shards and it has ended."""
        server, thread = self.servers[number], self.threads[number]
        server.leave(20.0)
        thread.join(25)
        del self.servers[number], self.threads[number]
        return server

    def stop(self, number: int) -> None:
        """Ends a server without a message, as a kill would."""
        self.servers.pop(number).stop()
        self.threads.pop(number).join()

    def now(self) -> View:
        return max((s.view for s in self.servers.values()), key=lambda v: v.epoch)

    def wait(self, holders: tuple[tuple[int, ...], ...]) -> None:
        self.until(lambda view: view.holders == holders)

    def until(self, is_so: Callable[[View], bool]) -> View:
        """Waits for a view, and returns it."""
        end = time.monotonic() + 20
        while not is_so(view := self.now()):
            assert time.monotonic() < end, self.described()
            time.sleep(0.01)
        return view

    def until_placed(self, *members: int) -> View:
        """Waits until all shards are in their planned places, on these servers."""
        return self.until(lambda v: v.members == members and v.holders == v.places)

    def sums(self, shard: int) -> list[float]:
        """Returns the first parameter in each copy, once all positions are equal."""
        end = time.monotonic() + 20
        while True:
            view = self.now()
            there = [self.servers[s] for s in view.holders[shard]]
            held = [s.shards[shard] for s in there if s.incarnation in view.servers]
            if len({shard.position for shard in held}) == 1:
                return [float(np.asarray(shard.params[0])[0]) for shard in held]
            assert time.monotonic() < end, self.described()
            time.sleep(0.01)

    def described(self) -> str:
        """Returns the state of each server, for errors."""
        lines = []
        for number, server in self.servers.items():
            replicas = server._replicas
            lines += [
                f"server {number} ({server.incarnation}): {server.view}",
                f"  shards {[(n, s.position) for n, s in server.shards.items()]}",
                *(f"  {n}: {vars(copies)}" for n, copies in replicas._copies.items()),
                f"  {vars(replicas._agreement)}",
            ]
        return "\n".join(lines)


@contextlib.contextmanager
def running(folder: Path, servers: int, **options: Any) -> Iterator[Run]:
    run = Run(folder, servers, **options)
    try:
        yield run
    finally:
        for number in list(run.servers):
            run.stop(number)


@contextlib.contextmanager
def worker(run: Run, consistency: Any = None, **options: Any) -> Iterator[WorkerClient]:
    client = WorkerClient(run.view, deadline=options.pop("deadline", 30.0), **options)
    models = models_of(run.view, consistency)
    try:
        client.wait(client.begin(models, [[ZEROS]] * len(models)))
        yield client
    finally:
        client.close()


def models_of(view: View, consistency: Any = None) -> list[Model]:
    # The parameters are the sum of the pushes.
    rule = consistency or asynchronous(rate="fixed")
    model = make_model(["w"], [ZEROS], optim.sgd(-1.0), rule)
    return [model] * len(view.holders)


def kill(client: WorkerClient) -> None:
    """Ends a worker's client without a message, as a kill would."""
    client._fail(RuntimeError("killed"))
    client._orders.put(("die",))  # an unknown order ends its thread
    client._hub.wake()


def push(client: WorkerClient) -> Any:
    return client.push([[ONES]] * len(client.view.holders))


def totals(client: WorkerClient, ticket: Any) -> list[float]:
    return [float(params[0][0]) for _, params in client.wait(ticket)]


class Work(threading.Thread):
    """A worker that pushes ones, and may die before it is done."""

    def __init__(
        self,
        run: Run,
        dies_at: int = 0,
        stays_until: threading.Event | None = None,
        rests: float = 0.0,
    ) -> None:
        super().__init__()
        self.run_, self.dies_at, self.stays_until = run, dies_at, stays_until
        self.rests = rests
        self.pushed = self.acknowledged = 0
        self.number = 0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            client = WorkerClient(self.run_.view, deadline=60.0)
            self.number = client.number
            models = models_of(self.run_.view)
            client.wait(client.begin(models, [[ZEROS]] * len(models)))
            while self.pushed < PUSHES:
                self.pushed += 1
                ticket = push(client)
                if self.pushed == self.dies_at:
                    kill(client)
                    return
                client.wait(ticket)
                self.acknowledged = self.pushed
                time.sleep(self.rests)
            if self.stays_until is not None:
                self.stays_until.wait(60)
            client.close()
        except Exception as error:
            self.error = error
