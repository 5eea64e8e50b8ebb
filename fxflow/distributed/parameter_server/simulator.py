"""A parameter server under a virtual clock: the same decisions, without processes.

Workers read, compute and push; servers are queues that serve one request after another.
The same functions of `consistency` as on servers decide which worker may read and what
becomes of a push; a `PlacementPlan` gives the load of each server. Compute times and
the network are distributions and numbers; measured ones predict a real run. With a
`Problem`, the simulator also computes gradients, and the loss at each virtual time.

Simplifications: a push arrives when the last server has it, and one decision then
applies to all servers; acknowledgements take no extra time; a worker requests the next
parameters right after its push, prepares its next step meanwhile, and computes only
when it has both.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from fxflow.distributed.parameter_server.consistency import (
    Consistency,
    Push,
    UpdateDecision,
    WorkerGroup,
    arrive,
    join,
    leave,
    may_read,
)
from fxflow.distributed.parameter_server.placement import PlacementPlan, Tensor, place
from fxflow.errors import ArgumentError

# -- assumptions -----------------------------------------------------------------------


@dataclass(frozen=True)
class Compute:
    """The time that a worker takes for a step.

    Attributes:
      mean: mean seconds, for a worker that is not slow, without stragglers.
      kind: "constant"; "exponential"; "lognormal", with `sigma`; "measured": drawn from
        `samples`, scaled to the mean.
      sigma: standard deviation of the logarithm.
      samples: measured times, in any unit.
      slow: factors of the time of slow workers, by number.
      straggling: probability that a step of any worker takes longer, and the factor.
    """

    mean: float
    kind: str = "constant"
    sigma: float = 0.0
    samples: tuple[float, ...] = ()
    slow: Mapping[int, float] = field(default_factory=dict)
    straggling: tuple[float, float] = (0.0, 1.0)
    _scale: float = field(default=1.0, init=False, repr=False)

    def __post_init__(self) -> None:
        kinds = ("constant", "exponential", "lognormal", "measured")
        if self.kind not in kinds:
            raise ArgumentError(
                f"Compute: kind must be one of {', '.join(kinds)}, got {self.kind!r}"
            )
        if not 0 <= self.mean < math.inf or self.sigma < 0:
            raise ArgumentError(
                f"Compute: mean and sigma must be numbers, 0 or more, got {self}"
            )
        if self.kind == "measured":
            total = math.fsum(self.samples)
            if not total > 0 or min(self.samples) < 0:
                raise ArgumentError(
                    "Compute: 'measured' needs samples, none negative, not all 0"
                )
            object.__setattr__(self, "_scale", self.mean * len(self.samples) / total)

    def draw(self, rng: random.Random, worker: int) -> float:
        """Returns the seconds of one step of a worker."""
        match self.kind:
            case "exponential":
                drawn = self.mean * rng.expovariate(1.0)
            case "lognormal":
                drawn = self.mean * rng.lognormvariate(-(self.sigma**2) / 2, self.sigma)
            case "measured":
                drawn = self._scale * rng.choice(self.samples)
            case _:
                drawn = self.mean
        probability, factor = self.straggling
        if probability and rng.random() < probability:
            drawn *= factor
        return drawn * self.slow.get(worker, 1.0)


@dataclass(frozen=True)
class Network:
    """The cost of messages.

    Attributes:
      latency: seconds from one process to another, one way.
      bandwidth: bytes per second of each process's link, in each direction.
      request: seconds that a server takes for each request.
      apply: seconds that a server takes for each byte of a push.
      duplex: whether a server sends and receives concurrently; if not, it has one
        queue.
    """

    latency: float = 50e-6
    bandwidth: float = 1.25e9
    request: float = 20e-6
    apply: float = 0.0
    duplex: bool = True

    def __post_init__(self) -> None:
        if min(self.latency, self.request, self.apply) < 0 or not self.bandwidth > 0:
            raise ArgumentError(
                f"Network: times must not be negative, bandwidth positive, got {self}"
            )


class ProcessFault(NamedTuple):
    """A fault of a process, or its return.

    Attributes:
      time: time of the fault, in seconds.
      kind: "kill" ends a worker and "stop" halts it; "join" starts, restarts or resumes
        one; "server" halts the servers for `seconds`.
      worker: number of the worker.
      seconds: duration of "server".
    """

    time: float
    kind: str
    worker: int = 0
    seconds: float = 0.0


class Problem(Protocol):
    """A loss to minimize, in NumPy."""

    def init(self) -> np.ndarray[Any, Any]:
        """Returns the initial parameters."""
        ...

    def gradient(
        self, params: np.ndarray[Any, Any], rng: random.Random
    ) -> np.ndarray[Any, Any]:
        """Returns the gradient on a batch drawn by `rng`."""
        ...

    def loss(self, params: np.ndarray[Any, Any]) -> float:
        """Returns the loss on all data."""
        ...


class Quadratic:
    """½ Σ cᵢ xᵢ² with curvatures c from 1/condition to 1, and noisy gradients.

    Args:
      size: number of parameters.
      condition: ratio of the largest curvature to the smallest.
      noise: standard deviation of the noise of each gradient element.
    """

    def __init__(
        self, size: int = 20, condition: float = 10.0, noise: float = 0.1
    ) -> None:
        self.noise = noise
        self.curvature: np.ndarray[Any, Any] = np.geomspace(1 / condition, 1, size)

    def init(self) -> np.ndarray[Any, Any]:
        """Returns ones."""
        return np.ones_like(self.curvature)

    def gradient(
        self, params: np.ndarray[Any, Any], rng: random.Random
    ) -> np.ndarray[Any, Any]:
        """Returns the gradient, with noise."""
        draws = np.random.default_rng(rng.getrandbits(64))
        noise = self.noise * draws.standard_normal(params.shape)
        return np.asarray(self.curvature * params + noise)

    def loss(self, params: np.ndarray[Any, Any]) -> float:
        """Returns the loss without noise."""
        return float(0.5 * np.sum(self.curvature * params**2))


class LogisticRegression:
    """Two overlapping classes of normally distributed points, in batches.

    Args:
      examples: number of points.
      size: number of features.
      batch: number of examples in a gradient.
      seed: seed of the points.
    """

    def __init__(
        self, examples: int = 2000, size: int = 10, batch: int = 16, seed: int = 0
    ) -> None:
        rng = np.random.default_rng(seed)
        self.batch = batch
        self.y: np.ndarray[Any, Any] = rng.integers(0, 2, examples) * 2.0 - 1
        centre = rng.standard_normal(size)
        noise = rng.standard_normal((examples, size))
        self.x: np.ndarray[Any, Any] = noise + self.y[:, None] * centre / 2

    def init(self) -> np.ndarray[Any, Any]:
        """Returns zeros."""
        return np.zeros(self.x.shape[1])

    def gradient(
        self, params: np.ndarray[Any, Any], rng: random.Random
    ) -> np.ndarray[Any, Any]:
        """Returns the gradient on a batch of points."""
        chosen = [rng.randrange(len(self.y)) for _ in range(self.batch)]
        x, y = self.x[chosen], self.y[chosen]
        return np.asarray(-(x.T @ (y / (1 + np.exp(y * (x @ params))))) / self.batch)

    def loss(self, params: np.ndarray[Any, Any]) -> float:
        """Returns the mean loss of all points."""
        return float(np.mean(np.logaddexp(0, -self.y * (self.x @ params))))


# -- results ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Simulation:
    """The result of a simulation.

    Attributes:
      seconds: virtual time at the end.
      finished: whether all steps were made (False: no worker was left to make them).
      updates: number of updates of each server.
      steps: number of workers' steps that are part of updates.
      dropped: number of pushes that were dropped.
      staleness: number of pushes that were applied, by staleness.
      computing: fraction of the workers' time that they computed, or prepared a step
        for which they had the parameters.
      idle: fraction that they waited for others; the rest is messages.
      percentiles: seconds between consecutive pushes of a worker, by percentile.
      losses: virtual time, updates and loss after each update; empty without a problem.
    """

    seconds: float
    finished: bool
    updates: int
    steps: int
    dropped: int
    staleness: Mapping[int, int]
    computing: float
    idle: float
    percentiles: Mapping[int, float]
    losses: tuple[tuple[float, int, float], ...]

    @property
    def throughput(self) -> float:
        """Workers' steps per second."""
        return self.steps / self.seconds if self.seconds else math.inf

    @property
    def mean_staleness(self) -> float:
        """Mean staleness of the pushes that were applied."""
        count = sum(self.staleness.values())
        return sum(s * n for s, n in self.staleness.items()) / count if count else 0.0

    def __str__(self) -> str:
        times = ", ".join(f"{p} % {t:.3g} s" for p, t in self.percentiles.items())
        return (
            f"{self.steps} steps and {self.updates} updates in {self.seconds:.4g} s: "
            f"{self.throughput:.4g} steps/s; computing {self.computing:.1%}, idle "
            f"{self.idle:.1%}; staleness {self.mean_staleness:.2f}, dropped "
            f"{self.dropped}; a step within {times}"
        )


# -- the simulation --------------------------------------------------------------------


def simulate(
    consistency: Consistency,
    *,
    workers: int,
    servers: int | PlacementPlan = 1,
    compute: Compute | float = 0.0,
    prepare: Compute | float = 0.0,
    network: Network | None = None,
    steps: int = 100,
    seed: int = 0,
    faults: Iterable[ProcessFault] = (),
    detection: float = 1.0,
    problem: Problem | None = None,
    learning_rate: float = 0.1,
) -> Simulation:
    """Simulates training until the workers have made `steps` steps each, on average.

    Args:
      consistency: how far apart workers may run.
      workers: number of workers at the start; their numbers are 0, 1, ….
      servers: a plan, whose loads are the bytes of a pull and of a push; or a number of
        servers, whose messages have no bytes of parameters.
      compute: time of a step; a number: every step takes that many seconds.
      prepare: time that a worker takes before each step without needing parameters,
        such as for reading a batch; it overlaps with waiting for others and messages.
      network: cost of messages; None: links of 10 Gbit/s.
      steps: number of steps for each initial worker. It does not matter which workers
        make them; dropped pushes do not count.
      seed: seed of all random numbers; those of worker w depend only on it and on w.
      faults: faults of processes.
      detection: seconds until a silent worker counts as lost.
      problem: problem to train; None: compute no gradients.
      learning_rate: rate of the problem's gradient descent.

    Returns:
      A `Simulation`; equal arguments give equal results.

    Raises:
      ArgumentError: no workers or steps, or a fault of unknown kind.

    Example:
      >>> from fxflow.distributed.parameter_server import asynchronous, bsp
      >>> slow = Compute(0.01, slow={0: 4.0})
      >>> for value in (bsp(), asynchronous()):
      ...     found = simulate(value, workers=4, compute=slow)
      ...     print(f"{found.throughput:.0f} steps/s, {found.idle:.0%} idle")
      100 steps/s, 56% idle
      321 steps/s, 0% idle
    """
    for name, number in (("workers", workers), ("steps", steps)):
        if not isinstance(number, int) or number < 1:
            raise ArgumentError(f"simulate: {name} must be 1 or more, got {number!r}")
    compute, prepare = (
        given if isinstance(given, Compute) else Compute(float(given))
        for given in (compute, prepare)
    )
    if not isinstance(servers, PlacementPlan):
        servers = place([Tensor("nothing", (servers, 0))], servers, strategy="rows")
    run = _Simulator(
        consistency, servers, compute, prepare, network or Network(), seed, detection
    )
    if problem is not None:
        run.training = _Training(consistency, problem, learning_rate)
    for worker in range(workers):
        run.at(0.0, "join", worker)
    for fault in faults:
        if fault.kind not in ("kill", "stop", "join", "server"):
            raise ArgumentError(
                f"simulate: a fault is 'kill', 'stop', 'join' or 'server', got {fault}"
            )
        seconds = fault.seconds
        run.at(fault.time, fault.kind, fault.worker, seconds)
    return run.until(workers * steps)


@dataclass
class _VirtualWorker:
    """The state of a simulated worker.

    Its current activity began at `since`; it has the next batch at `prepared`.
    """

    rng: random.Random
    incarnation: int = 0
    clock: int = 0
    version: int = 0
    halted: bool = False
    alive: bool = False
    killed: bool = False
    since: float = 0.0
    prepared: float = 0.0
    pushed: float | None = None
    deferred: list[str] = field(default_factory=list)


class _ServerQueues:
    """The servers' queues: one for each load, as all requests go to all servers."""

    def __init__(self, plan: PlacementPlan, network: Network) -> None:
        loads = [share.load for share in plan.shares().values() if share.pieces]
        self.network = network
        self.whole = sum(loads) / network.bandwidth
        unique = sorted(set(loads)) or [0.0]
        self.pull = [network.request + b / network.bandwidth for b in unique]
        self.push = [t + b * network.apply for t, b in zip(self.pull, unique)]
        self.sending = [0.0] * len(unique)
        self.receiving = [0.0] * len(unique) if network.duplex else self.sending

    def served(self, now: float, free: list[float], service: list[float]) -> float:
        """Returns when the last server has served a request that arrives now."""
        for i, seconds in enumerate(service):
            free[i] = max(free[i], now) + seconds
        return max(now + self.whole, max(free))

    def halt(self, until: float) -> None:
        for free in (self.sending, self.receiving):
            free[:] = [max(time, until) for time in free]


class _Simulator:
    """A running simulation, with its future events in order of time."""

    def __init__(
        self,
        consistency: Consistency,
        plan: PlacementPlan,
        compute: Compute,
        prepare: Compute,
        network: Network,
        seed: int,
        detection: float,
    ) -> None:
        self.consistency, self.seed = consistency, seed
        self.compute, self.prepare = compute, prepare
        self.detection, self.latency = detection, network.latency
        self.servers = _ServerQueues(plan, network)
        self.training: _Training | None = None
        self.group = WorkerGroup()
        self.workers: dict[int, _VirtualWorker] = {}
        self.blocked: list[int] = []
        self.events: list[tuple[float, int, str, int, int, float]] = []
        self.order = itertools.count()
        self.now, self.steps_taken = 0.0, 0
        self.staleness: Counter[int] = Counter()
        self.spent = {"compute": 0.0, "idle": 0.0, "messages": 0.0}
        self.step_times: list[float] = []

    def at(self, time: float, kind: str, worker: int, seconds: float = 0.0) -> None:
        incarnation = self.workers[worker].incarnation if worker in self.workers else 0
        event = (time, next(self.order), kind, worker, incarnation, seconds)
        heapq.heappush(self.events, event)

    def until(self, steps: int) -> Simulation:
        """Runs until that many steps are part of updates, or no event is left."""
        handlers = {
            "computed": self.on_computed,
            "push": self.on_push,
            "arrived": self.on_arrived,
            "pulled": self.on_pulled,
        }
        while self.events and self.steps_taken < steps:
            self.now, _, kind, number, incarnation, seconds = heapq.heappop(self.events)
            if kind in handlers:
                worker = self.workers[number]
                sent = kind in ("push", "arrived")
                if incarnation < worker.incarnation - (sent and worker.killed):
                    continue  # The worker died; only what it has sent still arrives.
                if worker.halted and not sent:
                    worker.deferred.append(kind)
                else:
                    handlers[kind](number, worker)
            elif kind == "server":
                self.servers.halt(self.now + seconds)
            elif kind == "lost":
                self.on_lost(number, incarnation)
            else:
                self.on_fault(kind, number)
        for number in self.blocked:
            self.spend("idle", self.workers[number])
        return self.result(self.steps_taken >= steps)

    # -- a worker's round --------------------------------------------------------------

    def read(self, number: int, worker: _VirtualWorker) -> None:
        """Answers a pull that has arrived at the servers, or makes it wait."""
        if may_read(self.consistency, self.group, number, worker.clock):
            worker.version = self.group.version
            if self.training is not None:
                self.training.read(number)
            servers = self.servers
            served = servers.served(self.now, servers.sending, servers.pull)
            self.at(served + self.latency, "pulled", number)
        else:
            self.blocked.append(number)

    def on_pulled(self, number: int, worker: _VirtualWorker) -> None:
        self.spend("messages", worker)
        seconds = self.drawn(self.compute, number, worker)
        self.at(max(self.now, worker.prepared) + seconds, "computed", number)

    def drawn(self, time: Compute, number: int, worker: _VirtualWorker) -> float:
        """Returns the seconds of what a worker does between two pushes."""
        local = range(self.consistency.steps)
        return sum(time.draw(worker.rng, number) for _ in local)

    def on_computed(self, number: int, worker: _VirtualWorker) -> None:
        self.spend("compute", worker)
        worker.prepared = self.now + self.drawn(self.prepare, number, worker)
        if self.training is not None:
            self.training.compute(number, worker.clock, worker.rng)
        self.at(self.now + self.latency, "push", number)

    def on_push(self, number: int, worker: _VirtualWorker) -> None:
        servers = self.servers
        served = servers.served(self.now, servers.receiving, servers.push)
        self.at(served, "arrived", number)

    def on_arrived(self, number: int, worker: _VirtualWorker) -> None:
        if number not in self.group:
            return
        self.spend("messages", worker)
        if worker.pushed is not None:
            self.step_times.append(self.now - worker.pushed)
        worker.pushed = self.now
        push = Push(number, worker.clock, worker.version)
        worker.clock += 1
        group, decision = arrive(self.consistency, self.group, push)
        if decision.drop and self.training is not None:
            del self.training.pushed[push.worker, push.clock]
        self.follow(group, decision)
        if worker.alive:
            self.read(number, worker)

    def follow(self, group: WorkerGroup, decision: UpdateDecision) -> None:
        """Applies a decision; workers that waited for it read."""
        before, self.group = self.group, group
        for _, _, staleness in decision.apply:
            self.staleness[staleness] += 1
        self.steps_taken += len(decision.apply) * self.consistency.steps
        if self.training is not None:
            self.training.follow(decision, self.now, group.version)
        renewed = self.consistency.in_rounds and group.version != before.version
        if self.blocked and (renewed or group.slowest != before.slowest):
            waiting, self.blocked = self.blocked, []
            for number in waiting:
                worker = self.workers[number]
                if number in group:
                    self.spend("idle", worker)
                    self.read(number, worker)

    def spend(self, how: str, worker: _VirtualWorker) -> None:
        self.spent[how] += self.now - worker.since
        worker.since = self.now

    # -- faults ------------------------------------------------------------------------

    def on_fault(self, kind: str, number: int) -> None:
        worker = self.workers.get(number)
        if worker is None:
            rng = random.Random(f"{self.seed} {number}")
            worker = self.workers[number] = _VirtualWorker(rng)
        if kind == "join":
            if worker.alive and worker.halted:
                worker.halted = False
                for event in worker.deferred:
                    self.at(self.now, event, number)
                worker.deferred = []
            elif not worker.alive:
                self.start(number, worker)
        elif worker.alive:
            worker.halted = True
            if kind == "kill":
                worker.incarnation += 1
                worker.alive, worker.killed = False, True
            self.at(self.now + self.detection, "lost", number)

    def start(self, number: int, worker: _VirtualWorker) -> None:
        worker.incarnation += 1
        worker.alive, worker.killed, worker.halted = True, False, False
        worker.deferred = []
        worker.since, worker.pushed = self.now, None
        worker.prepared = self.now + self.drawn(self.prepare, number, worker)
        self.blocked = [other for other in self.blocked if other != number]
        group, decision = join(self.consistency, self.group, number)
        worker.clock = group[number].clock
        if self.training is not None:
            self.training.forget(number)
        self.follow(group, decision)
        self.read(number, worker)

    def on_lost(self, number: int, incarnation: int) -> None:
        worker = self.workers[number]
        if worker.incarnation == incarnation and (worker.halted or not worker.alive):
            worker.incarnation += 1
            worker.alive, worker.killed, worker.deferred = False, False, []
            self.blocked = [other for other in self.blocked if other != number]
            self.follow(*leave(self.consistency, self.group, number))

    def result(self, finished: bool) -> Simulation:
        spent = sum(self.spent.values()) or 1.0
        percentiles = (50, 90, 99)
        values = np.percentile(self.step_times or [0.0], percentiles)
        losses = () if self.training is None else tuple(self.training.losses)
        return Simulation(
            seconds=self.now,
            finished=finished,
            updates=self.group.version,
            steps=self.steps_taken,
            dropped=self.group.dropped,
            staleness=dict(sorted(self.staleness.items())),
            computing=self.spent["compute"] / spent,
            idle=self.spent["idle"] / spent,
            percentiles=dict(zip(percentiles, map(float, values))),
            losses=losses,
        )


class _Training:
    """The parameters of a problem: the server's, and those that workers have."""

    def __init__(
        self, consistency: Consistency, problem: Problem, learning_rate: float
    ) -> None:
        self.consistency, self.problem = consistency, problem
        self.rate = learning_rate
        self.params = problem.init()
        self.pulled: dict[int, np.ndarray[Any, Any]] = {}
        self.own: dict[int, np.ndarray[Any, Any]] = {}
        self.pushed: dict[tuple[int, int], tuple[Any, Any]] = {}
        self.losses = [(0.0, 0, problem.loss(self.params))]

    def forget(self, worker: int) -> None:
        self.own.pop(worker, None)

    def read(self, worker: int) -> None:
        self.pulled[worker] = self.params

    def compute(self, worker: int, clock: int, rng: random.Random) -> None:
        """Computes what a worker pushes: a gradient, or its change of parameters."""
        start = self.pulled[worker]
        if self.consistency.pushes == "gradients":
            self.pushed[worker, clock] = self.problem.gradient(start, rng), start
            return
        alpha = self.consistency.alpha
        x = start if alpha is None else self.own.get(worker, start)
        for _ in range(self.consistency.steps):
            x = x - self.rate * self.problem.gradient(x, rng)
        if alpha is None:
            change = x - start
        else:  # The spring moves both ends.
            change = alpha * (x - self.params)
            self.own[worker] = x - change
        self.pushed[worker, clock] = change, start

    def follow(self, decision: UpdateDecision, now: float, version: int) -> None:
        if not decision.apply:
            return
        total = np.zeros_like(self.params)
        for push, weight, _ in decision.apply:
            pushed, start = self.pushed.pop((push.worker, push.clock))
            if self.consistency.pushes == "gradients":
                factor = self.consistency.compensation
                pushed = pushed + factor * pushed**2 * (self.params - start)
                pushed = -self.rate * pushed
            total += weight * pushed
        self.params = self.params + total
        self.losses.append((now, version, self.problem.loss(self.params)))
