"""Real runs beside simulated ones: staleness bounds, rules, numbers of workers.

    python benchmarks/parameter_server/paced.py                  # all three tables
    python benchmarks/parameter_server/paced.py --tables bounds --seconds 30

Processes started by `fxflow launch` train a perceptron of 784-64-10 on MNIST, in
batches of 64. A step of a worker takes a time drawn from a lognormal distribution with
a mean of 0.1 s (σ 0.5), most of which it sleeps, so that a few processors serve many
workers; worker 0 is slower by a factor. Steps, waiting and staleness are counted
between the moment when all have begun and the end. The simulator is given the times
that steps really took and what one worker alone waits for an answer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "examples"))

from helpers.datasets import load_mnist  # noqa: E402

import fxflow  # noqa: E402
import fxflow.numpy as fnp  # noqa: E402
from fxflow import lax, nn, optim, random  # noqa: E402
from fxflow.distributed import parameter_server as ps  # noqa: E402
from fxflow.distributed.parameter_server import monitor  # noqa: E402
from fxflow.distributed.parameter_server.simulator import (  # noqa: E402
    Compute,
    Network,
    Simulation,
    simulate,
)

MEAN, SIGMA, BATCH, UNITS = 0.1, 0.5, 64, 64
TABLES = ("bounds", "rules", "sizes")
#: Test images that are evaluated during a run; all of them are at the end.
TESTED = 2000
TARGET = 0.90
#: Seconds between two evaluations.
LOOK = 0.25
#: For processes to start and compile; each of them takes a processor that long.
START, START_EACH = 5.0, 1.5


class Rule(NamedTuple):
    """What a run is about: consistency and optimizer."""

    consistency: ps.Consistency
    optimizer: str = "sgd"
    rate: float = 0.3


def rules() -> dict[str, Rule]:
    """All that can be asked for by name."""
    found = {f"ssp({n})": Rule(ps.ssp(n)) for n in range(17)}
    found |= {
        "bsp": Rule(ps.bsp()),
        "fixed": Rule(ps.asynchronous(rate="fixed")),
        "staleness": Rule(ps.asynchronous()),
        "compensated": Rule(ps.asynchronous(rate="fixed", compensation=0.04)),
        "adagrad": Rule(ps.asynchronous(rate="fixed"), "adagrad", 0.02),
    }
    return found


class Told(NamedTuple):
    """What a worker tells: wall-clock times of its steps, and seconds of each.

    Attributes:
      rank: of the worker.
      began: when it could begin.
      ends: of its steps.
      waited: for parameters, in each step.
      computed: in each step.
      curve: time, updates so far, test accuracy.
      accuracy: of all test images at the end.
      staleness: pushes by staleness between beginning and end, as servers counted.
      busy: seconds that the servers took for a message.
    """

    rank: int
    began: float
    ends: list[float]
    waited: list[float]
    computed: list[float]
    curve: list[tuple[float, float, float]]
    accuracy: float
    staleness: dict[str, float]
    busy: float


class Run(NamedTuple):
    """What a run came to, between the moment when all had begun and the end."""

    seconds: float
    throughput: float
    idle: float
    staleness: float
    reached: float | None
    updates: float | None
    accuracy: float
    told: list[Told]


# -- a worker --------------------------------------------------------------------------


def init(key: Any) -> Any:
    """The perceptron."""
    keys = random.split(key)
    return [nn.linear_init(keys[0], 784, UNITS), nn.linear_init(keys[1], UNITS, 10)]


def scores(params: Any, images: Any) -> Any:
    """Before the softmax, f32[n, 10]."""
    inks = fnp.asarray(images, fnp.float32) / 255
    return nn.linear(params[1], nn.relu(nn.linear(params[0], inks)))


def slept(seconds: Any) -> np.ndarray:
    """Sleeps within a compiled step, and returns a zero."""
    time.sleep(float(seconds))
    return np.zeros((), np.float32)


def loss(params: Any, batch: Any) -> Any:
    """The cross entropy, after a pause that begins when parameters are there."""
    images, labels, seconds = batch
    nothing = fxflow.ShapeDtypeStruct((), np.float32)
    # Hangs on the parameters: a program does what hangs on nothing at once.
    begun = lax.stop_gradient(seconds + 0 * params[0]["b"][0])
    images = images + lax.stop_gradient(fxflow.pure_callback(slept, nothing, begun))
    log_p = nn.log_softmax(scores(params, images))
    return -fnp.mean(fnp.take_along_axis(log_p, labels[:, None], 1))


def work(name: str, until: float, slow: float) -> Told:
    """Trains until a time of day, and tells of it."""
    cluster = ps.cluster_of(None)
    assert cluster is not None
    data, rule = load_mnist(), rules()[name]
    rng = np.random.default_rng(cluster.rank)
    factor = slow if cluster.rank == 0 else 1.0
    server = ps.parameter_server(
        loss,
        getattr(optim, rule.optimizer)(rule.rate),
        consistency=rule.consistency,
    )
    state = server.init(init(random.key(0)))

    def batch(seconds: float) -> Any:
        chosen = rng.integers(0, len(data.train_labels), BATCH)
        images = data.train_images[chosen].reshape(BATCH, -1)
        return images, data.train_labels[chosen], np.float32(seconds)

    state, _ = server.step(state, batch(0.0))  # compiles
    server.params(state)
    began = time.time()
    ends, waited, computed, kept = [], [], [], []
    watch = monitor.Monitor(cluster.servers, cluster.keys)
    with watch:
        before = watch.look() if cluster.rank == 1 % len(cluster.trainers) else None
        looked = 0.0
        while time.time() < until:
            first = time.perf_counter()
            params = server.params(state)
            second = time.perf_counter()
            seconds = MEAN * rng.lognormal(-(SIGMA**2) / 2, SIGMA) * factor
            state, _ = server.step(state, batch(seconds))
            third = time.perf_counter()
            if before is not None and time.time() > looked + LOOK:
                looked = time.time()
                kept.append((looked, fxflow.device_get(params)))
            waited.append(second - first)
            computed.append(third - second)
            ends.append(time.time())
        after = watch.look() if before is not None else None
    params = server.params(state)
    server.close()

    images = data.test_images.reshape(len(data.test_images), -1)
    right = fxflow.jit(
        lambda p, x, y: fnp.mean(fnp.argmax(scores(p, x), 1) == y, dtype=fnp.float32)
    )
    part = images[:TESTED], data.test_labels[:TESTED]
    curve = [(at, 0.0, float(right(p, *part))) for at, p in kept]
    accuracy = float(right(params, images, data.test_labels))
    stale, busy = {}, 0.0
    if before is not None and after is not None:
        old = before.total("staleness")
        stale = {s: n - old.get(s, 0) for s, n in after.total("staleness").items()}
        spent = sum(after.total("busy").values()) - sum(before.total("busy").values())
        count = sum(stale.values())
        busy = spent / count if count else 0.0
    return Told(
        cluster.rank, began, ends, waited, computed, curve, accuracy, stale, busy
    )


# -- runs ------------------------------------------------------------------------------


def run(name: str, workers: int, seconds: float, slow: float) -> Run:
    """Starts processes, and adds up what they tell."""
    until = time.time() + START + START_EACH * workers + seconds
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "fxflow", "launch", "--ps", "1"]
        command += ["--workers", str(workers), str(HERE), "--as-worker", name]
        command += ["--until", str(until), "--slow", str(slow), "--folder", folder]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{name}, {workers} workers:\n{done.stderr[-3000:]}")
        texts = [path.read_text() for path in Path(folder).iterdir()]
    told = sorted(Told(*json.loads(text)) for text in texts)
    begin = max(each.began for each in told)
    took = until - begin
    if took < seconds / 2:
        raise SystemExit(f"{name}: starting took too long, {took:.1f} s were left")
    count, idle = 0, 0.0
    for each in told:
        inside = [i for i, end in enumerate(each.ends) if begin < end < until]
        count += len(inside)
        idle += sum(each.waited[i] for i in inside)
    stale = {int(s): n for each in told for s, n in each.staleness.items()}
    total = sum(stale.values())
    pace = count / took
    curve = [point for each in told for point in each.curve]
    good = [at for at, _, accuracy in curve if accuracy >= TARGET]
    reached = good[0] - begin if good else None
    return Run(
        took,
        pace,
        idle / (took * len(told)),
        sum(s * n for s, n in stale.items()) / total if total else 0.0,
        reached,
        reached * pace if reached is not None else None,
        float(np.mean([each.accuracy for each in told])),
        told,
    )


def network_of(alone: Run) -> Network:
    """What messages cost, by what one worker alone has to wait."""
    (told,) = alone.told
    # Two messages of a step, a push and a pull.
    request = told.busy / 2
    trip = float(np.median(told.waited))
    return Network(max(0.0, trip / 2 - request), 1e15, request)


def simulated(name: str, real: Run, slow: float, network: Network) -> Simulation:
    """The same run under a virtual clock, by the times that its steps took."""
    factors = [slow if i == 0 else 1.0 for i in range(len(real.told))]
    samples = [
        seconds / factor
        for each, factor in zip(real.told, factors, strict=True)
        for seconds in each.computed
    ]
    mean = float(np.mean(samples))
    found = simulate(
        rules()[name].consistency,
        workers=len(real.told),
        compute=Compute(mean, "measured", samples=tuple(samples), slow={0: slow}),
        network=network,
        steps=2000,
    )
    return found


# -- tables ----------------------------------------------------------------------------


def show(title: str, assumed: str, head: list[str], rows: Iterable[list[str]]) -> None:
    print(f"\n### {title}\n\n{assumed}\n\n| {' | '.join(head)} |")
    print("|" + " --: |" * len(head), flush=True)
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def beside(real: float, other: float) -> str:
    """Two numbers and by how much the simulated one is off."""
    off = f" ({other / real - 1:+.0%})" if real else ""
    return f"{real:.2f} | {other:.2f}{off}"


def bounds(seconds: float, network: Network) -> Iterator[list[str]]:
    """Idle time and time to an accuracy over the staleness bound."""
    for name in [f"ssp({n})" for n in (0, 1, 2, 3, 4, 6, 8, 12, 16)]:
        real = run(name, 4, seconds, 1.2)
        other = simulated(name, real, 1.2, network)
        yield [
            name,
            f"{real.idle:.1%}",
            f"{other.idle:.1%}",
            beside(real.throughput, other.throughput),
            beside(real.staleness, other.mean_staleness),
            f"{real.reached:.1f}" if real.reached is not None else "never",
            f"{real.updates:.0f}" if real.updates is not None else "never",
        ]


def by_rule(seconds: float, seeds: int) -> Iterator[list[str]]:
    """How fast rules of updates learn."""
    for name in ("bsp", "fixed", "staleness", "compensated", "adagrad"):
        found = [run(name, 4, seconds, 1.2) for _ in range(seeds)]
        times = [real.reached for real in found if real.reached is not None]
        steps = [real.updates for real in found if real.updates is not None]
        yield [
            name,
            f"{np.mean([real.throughput for real in found]):.1f}",
            f"{np.mean([real.staleness for real in found]):.2f}",
            ", ".join(f"{t:.1f}" for t in times) or "never",
            ", ".join(f"{n:.0f}" for n in steps) or "never",
            ", ".join(f"{real.accuracy:.2%}" for real in found),
        ]


def sizes(seconds: float, network: Network) -> Iterator[list[str]]:
    """Throughput and staleness, real and simulated."""
    for workers in (2, 4, 8):
        for name in ("bsp", "ssp(4)", "staleness"):
            real = run(name, workers, seconds, 1.2)
            other = simulated(name, real, 1.2, network)
            yield [
                str(workers),
                name,
                beside(real.throughput, other.throughput),
                beside(real.staleness, other.mean_staleness),
            ]


def main() -> None:
    """Prints the tables, or is a worker of one of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--seconds", type=float, default=25.0, help="of each run")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each rule")
    parser.add_argument("--as-worker", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--slow", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_worker:
        told = work(given.as_worker, given.until, given.slow)
        Path(given.folder, str(os.getpid())).write_text(json.dumps(told))
        return
    load_mnist()
    network = network_of(run("staleness", 1, given.seconds / 2, 1.0))
    print(
        f"A message: {network.latency * 1e3:.2f} ms on its way, "
        f"{network.request * 1e3:.2f} ms of the server."
    )
    pair = ["steps/s", "simulated", "staleness", "simulated"]
    assumed = "4 workers, worker 0 slower by 1.2. "
    made: dict[str, Callable[[], None]] = {
        "bounds": lambda: show(
            "Staleness bounds",
            f"{assumed}Seconds and steps to {TARGET:.0%} of {TESTED} test images.",
            ["bound", "idle", "simulated", *pair, "s", "steps"],
            bounds(given.seconds, network),
        ),
        "rules": lambda: show(
            "Rules of updates",
            f"{assumed}Accuracy is of all test images after {given.seconds:.0f} s.",
            ["rule", "steps/s", "staleness", "s to 90 %", "steps", "accuracy"],
            by_rule(given.seconds, given.seeds),
        ),
        "sizes": lambda: show(
            "Simulated beside real",
            "Worker 0 slower by 1.2.",
            ["workers", "rule", *pair],
            sizes(given.seconds, network),
        ),
    }
    for name in given.tables:
        made[name]()


if __name__ == "__main__":
    main()
