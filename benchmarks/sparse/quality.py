"""Times DLRM to a given AUC with each consistency of the parameter server.

    python benchmarks/sparse/quality.py --small   # about a minute
    python benchmarks/sparse/quality.py --examples 1e6 --ids 1e6 --auc 0.78

The logs are those of `examples/recommenders/clicks.py`. One process holds the tables
itself; the other rows have a server and two workers, processes of this machine that
`fxflow launch` starts. The first worker measures the AUC of examples that are not for
training, once in `--report` steps. Times are those of the wall from the first of these
measurements on, when everything has been compiled, and include them. The best AUC is
that of the true probabilities.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from fxflow.distributed import parameter_server as ps

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from recommenders import click_models, training
from recommenders.clicks import Clicks


def settings_of(given: argparse.Namespace) -> training.Settings:
    """Returns the settings of a run."""
    return training.Settings(
        examples=int(given.examples),
        batch=given.batch,
        rate=given.rate,
        test=int(given.test),
        report=given.report,
        seed=given.seed,
    )


def work(given: argparse.Namespace) -> None:
    """Trains as one of the workers; the first one prints what it measures."""
    cluster, settings = ps.cluster_of(None), settings_of(given)
    first = cluster is None or cluster.rank == 0
    clicks = Clicks(given.ids)
    model = click_models.dlrm(clicks.sizes, limit=int(given.limit))
    stop = settings.examples + settings.test
    # All measure after the same numbers of examples.
    alone = given.workers if cluster is None else 1
    held = list(clicks.batches(settings.examples, stop, 2048))
    started: list[float] = []

    def seen(examples: int, seconds: float, trainer: Any, state: Any) -> bool:
        if first:
            started.append(time.perf_counter())
            found = training.evaluate(model, trainer, state, held)
            auc, loss, error = (float(metric.compute()) for metric in found)
            told = [examples, started[-1] - started[0], auc, loss, error]
            print("measured " + json.dumps(told), flush=True)
        return False

    training.fit(
        model,
        clicks,
        settings._replace(test=2048, report=settings.report * alone),
        consistency=given.as_worker,
        cluster=cluster,
        seen=seen,
    )


def measured(name: str, options: list[str], workers: int) -> list[list[float]]:
    """Returns examples, seconds, AUC, log loss and calibration error as they come."""
    launch = ["-m", "fxflow", "launch", "--ps", "1", "--workers", str(workers)]
    command = [sys.executable, *(launch if name != "none" else [])]
    command += [__file__, *options, "--as-worker", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    told = [line.partition("measured ")[2] for line in done.stdout.splitlines()]
    return [json.loads(text) for text in told if text]


def reached(points: list[list[float]], auc: float) -> tuple[float, float] | None:
    """Returns examples and seconds when the AUC is reached, between two points."""
    for (n, t, low, *_), (m, u, high, *_) in itertools.pairwise(points):
        if low < auc <= high:
            part = (auc - low) / (high - low)
            return n + part * (m - n), t + part * (u - t)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="short defaults")
    parser.add_argument("--examples", type=float, default=500_000)
    parser.add_argument("--ids", type=float, default=100_000)
    parser.add_argument("--limit", type=float, default=100_000, help="rows of a column")
    parser.add_argument("--batch", type=int, default=512, help="of one worker")
    parser.add_argument("--rate", type=float, default=0.002, help="of Adam")
    parser.add_argument("--test", type=float, default=2**15)
    parser.add_argument("--report", type=int, default=30, help="steps of a worker")
    parser.add_argument("--auc", type=float, default=0.77, help="to reach")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1, help="medians are printed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(training.CONSISTENCIES))
    parser.add_argument("--as-worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_worker:
        return work(given)
    if given.small:
        short = {"examples": 60_000.0, "ids": 5000.0, "test": 8192.0, "auc": 0.70}
        parser.set_defaults(**short, report=10)
        given = parser.parse_args()
    names = ["examples", "ids", "limit", "batch", "rate", "test", "report", "workers"]
    clicks, settings = Clicks(given.ids), settings_of(given)
    stop = settings.examples + settings.test
    best = training.best_quality(clicks.batches(settings.examples, stop, 2048))
    print(f"The best AUC is {float(best.scores.compute()):.3f}.\n")
    print(
        f"| consistency | examples/s | examples to AUC {given.auc} | seconds "
        "| last AUC | log loss | calibration error |"
    )
    print("| --- " + 6 * "| --: " + "|")
    found: dict[str, list[list[list[float]]]] = {name: [] for name in given.only}
    for number in range(given.rounds):
        options = [f"--{name}={getattr(given, name)}" for name in names]
        options += [f"--seed={given.seed + number}"]
        for name, runs in found.items():  # in turn, as the machine's pace drifts
            runs.append(measured(name, options, given.workers))
    for name, runs in found.items():
        middle = lambda values: statistics.median(values) if values else None
        ends = [points[-1] for points in runs]
        pace = middle([(p[-1][0] - p[0][0]) / p[-1][1] for p in runs])
        times = [hit for points in runs if (hit := reached(points, given.auc))]
        shown = "not reached | "
        if len(times) > given.rounds // 2:
            shown = " | ".join(
                f"{middle([hit[i] for hit in times]):,.{i}f}" for i in range(2)
            )
        title = "one process" if name == "none" else f"`{name}`"
        auc, loss, error = (middle([end[i] for end in ends]) for i in (2, 3, 4))
        print(
            f"| {title} | {pace:,.0f} | {shown} | {auc:.3f} | {loss:.3f} | {error:.3f} "
            "|",
            flush=True,
        )


if __name__ == "__main__":
    main()
