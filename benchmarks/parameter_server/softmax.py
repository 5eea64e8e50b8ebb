"""Whole and sampled softmax with 1, 2 and 4 servers: words a second.

    python benchmarks/parameter_server/softmax.py --seconds 15

Two workers train an LSTM of 128 units over 40,000 words, 16 texts of 10 words a step,
made-up words whose frequencies fall as Zipf's do; asynchronous, Adagrad on the servers.
The vectors of words are rows of a table. So are those of the softmax where it is
sampled (512 drawn words besides the labels); where it is whole each worker pulls all
of it, 20 MB, and pushes its whole gradient. Workers and servers are processes of this
machine, started by `fxflow launch`. The sum of the workers' words is printed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import nn, optim, random
from fxflow.distributed import parameter_server as ps

WORDS, UNITS, BATCH, LENGTH, DRAWN, RATE = 40_000, 128, 16, 10, 512, 0.1
WARM = 3
KINDS = ("full", "sampled")


def init(key: Any, kind: str) -> Any:
    """What lies with the servers as a whole."""
    keys = random.split(key)
    params: dict[str, Any] = {"lstm": nn.lstm_init(keys[0], UNITS, UNITS)}
    if kind == "full":
        params["softmax"] = nn.linear_init(keys[1], UNITS, WORDS)
    return params


def tables(kind: str) -> list[ps.TableSpec]:
    """What lies there by rows; a row of the softmax has its bias at the end."""
    widths = {"in": UNITS} | ({"out": UNITS + 1} if kind == "sampled" else {})
    return [
        ps.TableSpec(name, width, optim.adagrad(RATE)) for name, width in widths.items()
    ]


def loss(params: Any, rows: Any, labels: Any) -> Any:
    """The mean cross entropy of labels i32[LENGTH, BATCH]."""
    carry = nn.lstm_state(params["lstm"], BATCH)
    _, ys = nn.lstm(params["lstm"], carry, rows["in"], time_major=True)
    ys, labels = ys.reshape(-1, UNITS), labels.reshape(-1)
    if "softmax" in params:
        log_p = nn.log_softmax(nn.linear(params["softmax"], ys))
        return -fnp.mean(fnp.take_along_axis(log_p, labels[:, None], 1))
    weights, bias = rows["out"][:, :-1], rows["out"][:, -1]
    true = fnp.sum(ys * weights[: labels.size], 1) + bias[: labels.size]
    drawn = ys @ weights[labels.size :].T + bias[labels.size :]
    return fnp.mean(nn.logsumexp(fnp.c_[true, drawn], axis=1) - true)


def work(kind: str, seconds: float) -> float:
    """Words a second of this worker."""
    cluster = ps.cluster_of(None)
    rng = np.random.default_rng(cluster.rank if cluster else 0)
    shares = np.cumsum(1 / np.arange(1, WORDS + 1))
    shares /= shares[-1]
    server = ps.parameter_server(
        loss,
        optim.adagrad(RATE),
        consistency=ps.asynchronous(rate="fixed"),
        tables=tables(kind),
    )
    state = server.init(init(random.key(0), kind))
    number, started = 0, 0.0
    while number <= WARM or time.perf_counter() < started + seconds:
        words = np.searchsorted(shares, rng.random((LENGTH + 1, BATCH)))
        ids = {"in": words[:-1]}
        if kind == "sampled":
            drawn = np.searchsorted(shares, rng.random(DRAWN))
            ids["out"] = np.concatenate([words[1:].reshape(-1), drawn])
        state, _ = server.step(state, words[1:].astype(np.int32), ids=ids)
        if number == WARM:  # what is before compiles
            started = time.perf_counter()
        number += 1
    pace = (number - 1 - WARM) * LENGTH * BATCH / (time.perf_counter() - started)
    server.close()
    return pace


def main() -> None:
    """Prints the table, or is a worker of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3, help="the median is printed")
    parser.add_argument("--servers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--as-worker", choices=KINDS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_worker:
        print(f"pace {work(given.as_worker, given.seconds)}", flush=True)
        return
    print("| servers | softmax | words/s | of each round |\n| --: | --- | --: | --- |")
    for servers in given.servers:
        found: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for _ in range(given.rounds):
            for kind, paces in found.items():  # in turn, as the machine's pace drifts
                command = [sys.executable, "-m", "fxflow", "launch"]
                command += ["--ps", str(servers), "--workers", str(given.workers)]
                command += [__file__, "--as-worker", kind]
                command += ["--seconds", str(given.seconds)]
                done = subprocess.run(
                    command, stdout=subprocess.PIPE, text=True, check=True
                )
                told = [line.partition("pace ")[2] for line in done.stdout.splitlines()]
                paces.append(sum(float(text) for text in told if text))
        for kind, paces in found.items():
            rounds = ", ".join(f"{pace:,.0f}" for pace in sorted(paces))
            print(
                f"| {servers} | {kind} | {np.median(paces):,.0f} | {rounds} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
