"""Decides which workers are the members of an elastic run: the launcher's side.

The run is a sequence of *epochs*. The members of an epoch are fixed: they have ranks 0
to n - 1, a key-value store, and a service for the runtime. An epoch ends at once when a
member is lost or fails, or when all members have reached an agreed step (to admit a new
worker, or to stop). Then the ready workers form the next epoch:

    ready → form (its members, the step it starts from, where the state is)
          → fetch the state → prepared (all) → go (the service is up) → steps → …

One thread decides, so all agree. A worker that is silent or does not return after an
epoch is *expelled*: it is notified, its connection is closed, and the launcher kills
it. It cannot disturb the others: its remaining connections belong to a past epoch.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fxflow.devices.cluster import Service, StandIn
from fxflow.distributed import protocol
from fxflow.distributed.coordinator import Caller, Group, Server, end_service
from fxflow.distributed.messages.channel import Channel, Message

_TICK = 0.02
#: How often one step may fail without the loss of a worker.
_MOST_FAILURES = 3


@dataclass(eq=False)
class _Worker:
    """What the launcher knows about a worker."""

    number: int
    channel: Channel
    name: str
    address: str
    rank: int = -1
    phase: str = "new"
    holdings: list[Message] = field(default_factory=list)


# -- the state to continue from --------------------------------------------------------


def _covers(holdings: Iterable[Message]) -> bool:
    """Returns whether several workers together hold the complete state."""
    pieces: set[Any] = set()
    sizes: list[int] = []
    for holding in holdings:
        if holding["pieces"] is None:
            return True
        sizes = holding["sizes"]
        for leaf, index in holding["pieces"]:
            pieces.add((leaf, tuple(map(tuple, index))))
    have = [0] * len(sizes)
    for leaf, index in pieces:
        have[leaf] += math.prod(stop - start for start, stop in index)
    return bool(sizes) and have == sizes


#: Among states of the same step, prefer the one that is cheapest to fetch.
_PREFERENCE = {"held": 2, "file": 1, "initial": 0}


def choose_plan(holdings: dict[str, list[Message]]) -> Message:
    """Returns the newest state that the workers hold together.

    Args:
      holdings: each worker's address → the states that it holds: a list of ``{"step",
        "kind", "pieces", "sizes"}``. The kind is ``"held"`` (in memory), ``"file"`` (a
        checkpoint) or ``"initial"``. Pieces are ``[leaf, [[start, stop], …]]``, or
        None for everything; `sizes` are the leaves' numbers of elements.

    Returns:
      ``{"step", "kind", "sources": [[address, pieces], …]}``: the workers that hold
      everything, or if there are none, workers that together do.
    """
    states: dict[tuple[int, str], list[tuple[str, Message]]] = {}
    for address, own in holdings.items():
        for holding in own:
            states.setdefault((holding["step"], holding["kind"]), []).append(
                (address, holding)
            )
    order = sorted(states, key=lambda s: (s[0], _PREFERENCE[s[1]]), reverse=True)
    for step, kind in order:
        having = states[step, kind]
        if not _covers(holding for _, holding in having):
            continue
        sources: list[list[Any]] = [
            [address, None] for address, h in having if h["pieces"] is None
        ]
        if not sources:
            taken: set[str] = set()
            for address, holding in having:
                mine = [p for p in holding["pieces"] if repr(p) not in taken]
                taken.update(map(repr, mine))
                if mine:
                    sources.append([address, mine])
        return {"step": step, "kind": kind, "sources": sources}
    raise AssertionError("every worker has the initial state")


# -- the server ------------------------------------------------------------------------


class Membership(Server):
    """The coordinator of an elastic run.

    Args:
      address: ``host:port`` to listen at; port 0 chooses one.
      minimum: the smallest number of members.
      maximum: the largest number of members; other workers wait as spares.
      wanted: the number of workers that the first epoch waits for.
      token: the run's secret.
      heartbeat_timeout: seconds of silence after which a worker counts as lost.
      regroup_timeout: seconds for workers to return after an epoch was broken.
      start_timeout: seconds to wait for workers while there are too few.
      log: called with each line of the log.

    Attributes:
      outcome: ``"done"``, ``"preempted"`` or ``"failed"``; empty while it runs.
      why: the reason for a failure.
      on_expel: called with the number of a worker to kill, from a thread of this
        server; the launcher sets it.
      epoch: the number of the current epoch; 0 before the first.
    """

    minimum: int
    maximum: int
    wanted: int
    outcome: str
    why: str
    epoch: int

    def __init__(
        self,
        address: str,
        minimum: int,
        maximum: int,
        *,
        wanted: int | None = None,
        token: str = "",
        heartbeat_timeout: float = 3.0,
        regroup_timeout: float = 8.0,
        start_timeout: float = 300.0,
        log: Callable[[str], None] = lambda text: None,
    ) -> None:
        if not 1 <= minimum <= maximum:
            raise ValueError(
                f"elastic: need 1 <= minimum <= maximum, got {minimum} and {maximum}"
            )
        self.minimum, self.maximum = minimum, maximum
        self.wanted = min(maximum, wanted or maximum)
        self.outcome = self.why = ""
        self.on_expel: Callable[[int], None] = lambda number: None
        self.epoch = 0
        self._log = log
        self._regroup, self._start_timeout = regroup_timeout, start_timeout
        self._workers: dict[int, _Worker] = {}
        self._members: list[_Worker] = []
        self._group = Group(0)
        self._service: Service | None = None
        self._stand_ins: list[StandIn] = []
        self._ending: list[threading.Thread] = []
        self._broken = ""
        self._purpose = ""
        self._deadline: float | None = None
        self._short_since: float | None = time.monotonic()
        self._failures: dict[int, int] = {}
        super().__init__(address, token, heartbeat_timeout)
        self._start(self._tick)

    def _tick(self) -> None:
        while not self._stopped.wait(_TICK):
            with self.lock:
                self._advance()

    def service_of(self, first: protocol.Runtime) -> Service | None:
        """Returns the service of the current epoch, if the connection is for it."""
        with self.lock:
            return self._service if first.epoch == self.epoch else None

    # -- workers join and leave --------------------------------------------------------

    def welcome(self, channel: Channel, first: Any) -> None:
        """Admits a worker and serves it."""
        if not isinstance(first, protocol.RegisterWorker):
            raise ValueError(f"a worker must register first, got {first}")
        number = first.worker
        worker = _Worker(number, channel, first.name, first.address)
        with self.lock:
            taken = number in self._workers
            if not taken:
                self._workers[number] = worker
                if self.outcome:
                    channel.post(protocol.written(protocol.End(self.outcome)))
                else:
                    self._log(f"worker {number} ({worker.name}) has joined")
        if taken:
            refusal = protocol.Refused(f"worker {number} has already joined")
            channel.send(protocol.written(refusal))
            return

        def handle(request: Any, message: Message, payload: Any) -> None:
            if react := self._reactions.get(type(request)):
                react(self, worker, request)
                self._advance()
                return
            caller = Caller(worker.rank, channel, message.get("id"), payload)
            current = message.get("epoch") == self.epoch and not self._broken
            if current and worker in self._members:
                self._group.handle(caller, request)
            elif caller.id is not None:
                caller.answer(
                    error="unreachable", processes=[], why="the epoch is over"
                )

        def left(why: str) -> None:
            self._workers.pop(number, None)
            if not self.outcome:
                self._log(
                    f"worker {number} " + (f"is lost: {why}" if why else "has left")
                )
                self._lost(worker, why or "it has left")
                self._advance()

        self.serve_messages(channel, handle, left)

    def _lost(self, worker: _Worker, why: str) -> None:
        if worker in self._members and worker.phase != "out":
            worker.phase = "out"
            self._group.departed[worker.rank] = why
            self._break(
                f"worker {worker.number} ({worker.name}) is lost: {why}", worker
            )

    def _expel(self, worker: _Worker) -> None:
        self._log(f"worker {worker.number} is expelled: it did not return")
        worker.channel.post(protocol.written(protocol.Expelled()))
        worker.channel.finish()
        self._workers.pop(worker.number, None)
        self.on_expel(worker.number)
        self._lost(worker, "it did not return")

    # -- messages of workers -----------------------------------------------------------

    def _on_ready(self, worker: _Worker, message: protocol.Ready) -> None:
        worker.phase = "ready"
        worker.holdings = message.holdings
        if self._deadline is None and worker in self._members:
            self._deadline = time.monotonic() + self._regroup
        if worker not in self._members and self._members:
            self._admit_ready()

    def _on_prepared(self, worker: _Worker, message: protocol.Prepared) -> None:
        if message.epoch != self.epoch or self._broken:
            return
        worker.phase = "prepared"
        if all(m.phase == "prepared" for m in self._members):
            self._service = Service(len(self._members))
            for member in self._members:
                member.phase = "running"
            self._deadline = None
            self._group.broadcast(protocol.Go())
            # A worker may have joined, or received SIGTERM, in the meantime.
            if any(w.phase == "ready" for w in self._workers.values()):
                self._admit_ready()
            self._ask()

    def _admit_ready(self) -> None:
        """Re-forms the group if a ready worker can still join it."""
        if len(self._members) < self.maximum and not self._broken:
            self._hold("reform")

    def _on_failed(self, worker: _Worker, message: protocol.Failed) -> None:
        if message.epoch != self.epoch or self._broken:
            return
        step = message.step
        self._failures[step] = self._failures.get(step, 0) + 1
        if self._failures[step] > _MOST_FAILURES:
            self._fail(
                f"step {step} failed {self._failures[step]} times without a loss of a "
                f"worker; the last time: {message.why}"
            )
            return
        if message.joining and self._service is not None:
            self._stand_ins.append(StandIn(self._service, worker.rank))
        self._break(f"worker {worker.number} failed in step {step}: {message.why}")

    def _on_notice(self, worker: _Worker, message: protocol.Notice) -> None:
        self._log(f"worker {worker.number} received SIGTERM; all will stop at one step")
        self._hold("stop")

    def _on_done(self, worker: _Worker, message: protocol.Done) -> None:
        if message.epoch != self.epoch or self._broken:
            return
        worker.phase = "done"
        if all(member.phase == "done" for member in self._members):
            self.outcome = "preempted" if message.preempted else "done"
            for other in self._workers.values():
                other.channel.post(protocol.written(protocol.End(self.outcome)))

    def _on_error(self, worker: _Worker, message: protocol.Error) -> None:
        self._fail(f"worker {worker.number} ({worker.name}): {message.why}")

    _reactions: ClassVar[dict[type, Callable[[Any, _Worker, Any], None]]] = {
        protocol.Ready: _on_ready,
        protocol.Prepared: _on_prepared,
        protocol.Failed: _on_failed,
        protocol.Notice: _on_notice,
        protocol.Done: _on_done,
        protocol.Error: _on_error,
    }

    # -- epochs ------------------------------------------------------------------------

    def _hold(self, purpose: str) -> None:
        """Makes members agree on a step to stop at; "stop" overrides "reform"."""
        if self._purpose != "stop":
            self._purpose = purpose
            self._ask()

    def _ask(self) -> None:
        running = all(m.phase in ("running", "done") for m in self._members)
        if self._purpose and running and not self._broken:
            self._group.ask_to_stop(self._purpose)

    def _break(self, why: str, lost: _Worker | None = None) -> None:
        """Ends the epoch now."""
        if lost is not None:
            self._failures.clear()
            if self._service is not None:
                # Others may be waiting for data from the lost worker.
                self._stand_ins.append(StandIn(self._service, lost.rank))
        if self._broken or not self._members:
            return
        self._broken = why
        self._deadline = time.monotonic() + self._regroup
        self._group.broadcast(protocol.Abort(why))
        self._group.end(why)

    def _advance(self) -> None:
        """Forms the next epoch if it is due."""
        if self.outcome:
            return
        now = time.monotonic()
        ready = [w for w in self._workers.values() if w.phase == "ready"]
        if self._members:
            if self._deadline is None:
                return  # the epoch is running
            behind = [m for m in self._members if m.phase not in ("ready", "out")]
            if behind and (now < self._deadline or not self._broken):
                return
            for member in behind:
                self._expel(member)
        if len(ready) < self.minimum or (not self.epoch and len(ready) < self.wanted):
            if self._short_since is None:
                self._short_since = now
            waited = now - self._short_since
            if waited < self._start_timeout:
                return
            if len(ready) < self.minimum:
                self._fail(
                    f"{len(ready)} workers are ready, at least {self.minimum} are "
                    f"needed, and no more joined within {self._start_timeout:g} s"
                )
                return
        self._form(ready)

    def _form(self, ready: list[_Worker]) -> None:
        self._end_service()
        old = [w for w in ready if w.rank >= 0]
        new = [w for w in ready if w.rank < 0]
        members = sorted(old, key=lambda w: w.rank)
        members += sorted(new, key=lambda w: w.number)
        for worker in members[self.maximum :]:
            worker.rank = -1
        self._members = members = members[: self.maximum]
        self.epoch += 1
        self._broken = ""
        if self._purpose == "reform":
            self._purpose = ""
        self._deadline = None
        self._group = Group(len(members), self.epoch)
        for rank, worker in enumerate(members):
            worker.rank, worker.phase = rank, "fetching"
            self._group.channels[rank] = worker.channel
        plan = choose_plan({w.address: w.holdings for w in members})
        self._log(
            f"epoch {self.epoch}: workers "
            f"{', '.join(str(w.number) for w in members)} from step {plan['step']}"
        )
        for rank, worker in enumerate(members):
            numbers, names = [w.number for w in members], [w.name for w in members]
            form = protocol.Form(rank, numbers, names, plan)
            worker.channel.post(protocol.written(form, epoch=self.epoch))
        self._short_since = None

    def _end_service(self) -> None:
        """Stops the epoch's service for the runtime, in a thread."""
        service, self._service = self._service, None
        stand_ins, self._stand_ins = self._stand_ins, []
        if service is None:
            return
        thread = threading.Thread(
            target=end_service,
            args=(service, stand_ins),
            name="fxflow-end",
            daemon=True,
        )
        thread.start()
        self._ending = [t for t in self._ending if t.is_alive()] + [thread]

    def _fail(self, why: str) -> None:
        if self.outcome:
            return
        self.outcome, self.why = "failed", why
        self._log(f"failed: {why}")
        for worker in self._workers.values():
            worker.channel.post(protocol.written(protocol.Fail(why)))
        self._group.end(why)

    def give_up(self, why: str) -> None:
        """Ends the run with an error."""
        with self.lock:
            self._fail(why)

    def handle_silence(self, channel: Channel) -> None:
        """Kills a silent worker, which may be stopped and wake up later."""
        with self.lock:
            for number, worker in self._workers.items():
                if worker.channel is channel:
                    self.on_expel(number)

    def stop(self) -> None:
        """Closes the port and all connections."""
        super().stop()
        with self.lock:
            self._end_service()
        # A thread that is in C++ when Python exits would crash the process.
        for thread in self._ending:
            thread.join(5)
