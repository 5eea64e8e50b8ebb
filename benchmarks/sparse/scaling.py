"""Workers and servers of a DLRM: measured to eight workers, simulated to a thousand.

    python benchmarks/sparse/scaling.py --seconds 20

The model is that of `dlrm.py` with batches of 256. For the first table a worker sleeps
before each step, for a time drawn from a lognormal distribution with a mean of 0.4 s
(σ 0.5), so that two processors serve eight workers. One worker alone tells how long its
pauses and steps take and how long the servers work for it; from that, and from nothing
else, the simulator predicts the others. The second table, of steps without pauses,
assumes links of 10 Gbit/s and a processor for each process.
"""

import argparse
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parents[2])]

import dlrm_worker  # noqa: E402

from fxflow.distributed import parameter_server as ps  # noqa: E402
from fxflow.distributed.parameter_server import monitor  # noqa: E402
from fxflow.distributed.parameter_server.placement import Tensor  # noqa: E402
from fxflow.distributed.parameter_server.simulator import (  # noqa: E402
    Compute,
    Network,
    simulate,
)

BATCH, MEAN, SIGMA, SERVERS = 256, 0.4, 0.5, 2
RULES = {"asynchronous": ps.asynchronous(), "bsp": ps.bsp(), "ssp(4)": ps.ssp(4)}
#: For processes to start and compile; each of them takes a processor that long.
START, START_EACH = 10.0, 4.0


def work(rule: str, until: float, pace: float) -> dict[str, Any]:
    """Trains until a time of day; tells when steps ended and how long they took."""
    worker = dlrm_worker.FxflowWorker(RULES[rule])
    rank = worker.cluster.rank
    rng = np.random.default_rng([3, rank])
    data = dlrm_worker.Data()
    batches = [data.draw(rng, BATCH) for _ in range(16)]
    for batch in batches[:4]:
        worker.step(batch)
    began, ends, paused, took = time.time(), [], [], []
    with monitor.Monitor(worker.cluster.servers, worker.cluster.keys) as watch:
        before = watch.look()
        while time.time() < until:
            pause = time.perf_counter()
            time.sleep(pace * rng.lognormal(-(SIGMA**2) / 2, SIGMA))
            begin = time.perf_counter()
            paused.append(begin - pause)
            worker.step(batches[len(ends) % len(batches)])
            took.append(time.perf_counter() - begin)
            ends.append(time.time())
        after = watch.look()
    worker.trainer.close()
    busy = sum(after.total("busy").values()) - sum(before.total("busy").values())
    return {
        "began": began,
        "ends": ends,
        "paused": paused,
        "took": took,
        "busy": busy,
    }


def run(rule: str, workers: int, seconds: float, pace: float) -> tuple[float, Any]:
    """Returns steps/s between the moment when all have begun and the end."""
    until = time.time() + START + START_EACH * workers + seconds
    command = [sys.executable, "-m", "fxflow", "launch", "--ps", str(SERVERS)]
    command += ["--workers", str(workers), str(HERE), "--as-worker", rule]
    command += ["--until", str(until), "--pace", str(pace)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    lines = [line.partition("found ")[2] for line in done.stdout.splitlines()]
    found = [json.loads(line) for line in lines if line]
    begin = max(each["began"] for each in found)
    if until - begin < seconds / 2:
        raise SystemExit(f"starting took too long: {until - begin:.1f} s were left")
    ends = [end for each in found for end in each["ends"] if begin < end < until]
    return len(ends) / (until - begin), found


def measured(seconds: list[float]) -> Compute:
    """Returns the distribution of measured times."""
    return Compute(float(np.mean(seconds)), "measured", samples=tuple(seconds))


def plan(servers: int) -> Any:
    """Returns the loads of servers: all layers, and the rows that a batch names."""
    layers = sum(
        n * m + m
        for sizes in (dlrm_worker.BOTTOM, dlrm_worker.TOP)
        for n, m in itertools.pairwise(sizes)
    )
    ids = dlrm_worker.Data().draw(np.random.default_rng(0), BATCH)[1]
    rows = Tensor("rows", (len(np.unique(ids)), dlrm_worker.WIDTH))
    return ps.place([rows, Tensor("layers", (layers,))], servers, strategy="rows")


def main() -> None:
    """Prints the tables, or is a worker."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each run")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--as-worker", choices=RULES, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--pace", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_worker:
        found = work(given.as_worker, given.until, given.pace)
        print("found " + json.dumps(found), flush=True)
        return
    _, [alone] = run("asynchronous", 1, 2 * given.seconds, MEAN)
    # Two messages of a step, a pull and a push, as the simulator has them.
    request = alone["busy"] / len(alone["took"]) / (2 * SERVERS)
    print(f"A step takes a server {2e3 * request:.2f} ms.\n")
    print(
        "| workers | rule | steps/s | predicted | off |\n"
        "| --: | --- | --: | --: | --: |"
    )
    network = Network(0.0, 1e15, request)
    compute, prepare = measured(alone["took"]), measured(alone["paused"])
    for workers in given.workers:
        for rule, consistency in RULES.items():
            pace, _ = run(rule, workers, given.seconds, MEAN)
            other = simulate(
                consistency,
                workers=workers,
                servers=SERVERS,
                compute=compute,
                prepare=prepare,
                network=network,
                steps=2000,
            ).throughput
            print(
                f"| {workers} | {rule} | {pace:.2f} | {other:.2f} "
                f"| {other / pace - 1:+.0%} |",
                flush=True,
            )
    _, [alone] = run("asynchronous", 1, given.seconds, 0.0)
    request = alone["busy"] / len(alone["took"]) / (2 * SERVERS)
    compute = measured(alone["took"])
    print(f"\nWithout pauses a step takes {np.mean(alone['took']) * 1e3:.1f} ms.\n")
    head = " | ".join(f"{rule}, examples/s | idle" for rule in RULES)
    print(f"| workers | servers | {head} |\n|{' --: |' * (2 + 2 * len(RULES))}")
    for workers, servers in ((2, 2), (10, 5), (100, 50), (500, 250), (1000, 500)):
        cells = []
        for consistency in RULES.values():
            other = simulate(
                consistency,
                workers=workers,
                servers=plan(servers),
                compute=compute,
                network=Network(request=request * 2 / servers),
                steps=max(6, min(40, 20_000 // workers)),
            )
            cells += [f"{other.throughput * BATCH:,.0f}", f"{other.idle:.0%}"]
        print(f"| {workers} | {servers} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
