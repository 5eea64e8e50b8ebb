"""What filters save, what they cost, and what a model learns through them.

    python benchmarks/parameter_server/filters.py  # all filters, some minutes
    python benchmarks/parameter_server/filters.py --only int8 --epochs 1

A perceptron of 784-256-10 (203,530 numbers) on the complete MNIST, Adam, two workers at
their own pace and two servers, all in threads of one process. Every row of the table is
the mean over seeds, with their range; times of a code are medians of calls on this
model, in ms.
"""

import argparse
import dataclasses
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, optim, random
from fxflow.distributed.parameter_server import (
    LocalServers,
    TrafficReport,
    asynchronous,
    filters,
    parameter_server,
)
from fxflow.distributed.parameter_server.filters import Filter

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from helpers.datasets import load_mnist

WORKERS, BATCH, RATE = 2, 128, 1e-3
FILTERS: dict[str, tuple[str | Filter, str]] = {
    "exact": ("f32", "f32"),
    "exact, pull bf16": ("f32", "bf16"),
    "exact, pull f16": ("f32", "f16"),
    "float16": ("f16", "f32"),
    "bfloat16": ("bf16", "f32"),
    "int8": ("int8", "f32"),
    "one_bit": ("one_bit", "f32"),
    "top_k 10 %": (filters.top_k(0.1), "f32"),
    "top_k 1 %": (filters.top_k(0.01), "f32"),
    "top_k 1 %, int8": (filters.top_k(0.01, values="int8"), "f32"),
    "significance 1 rms": (filters.significance(1, 0.1, relative=True), "f32"),
    "groups": (
        filters.by_group({"*/b": "f32", "0/w": filters.top_k(0.01)}),
        "f32",
    ),
    "int8, pull bf16": ("int8", "bf16"),
}


def init(seed: int) -> Any:
    keys = random.split(random.key(seed))
    sizes = (784, 256), (256, 10)
    return [
        {"b": fnp.zeros(n), "w": random.normal(key, (m, n)) * (2 / m) ** 0.5}
        for key, (m, n) in zip(keys, sizes, strict=True)
    ]


def logits(params: Any, x: Any) -> Any:
    hidden = nn.relu(x @ params[0]["w"] + params[0]["b"])
    return hidden @ params[1]["w"] + params[1]["b"]


def loss(params: Any, batch: Any) -> Any:
    x, y = batch
    told = nn.log_softmax(logits(params, x))
    return -fnp.mean(fnp.take_along_axis(told, y[:, None], axis=1))


def trained(
    code: str | Filter, pull: str, data: Any, epochs: int, seed: int
) -> tuple[float, float, TrafficReport]:
    """Returns the test accuracy, the ms of a step, and one worker's traffic."""
    x, y, test_x, test_y = data
    steps = len(x) * epochs // (BATCH * WORKERS)
    local = LocalServers(2)
    found: list[Any] = [None] * WORKERS
    errors: list[Exception] = []

    def work(i: int) -> None:
        server = parameter_server(
            loss,
            optim.adam(RATE),
            consistency=asynchronous(rate="fixed"),
            exchange=code,
            pull=pull,
            cluster=dataclasses.replace(local.cluster, index=i),
        )
        try:
            order = np.random.default_rng([seed, i])
            state = server.init(init(seed))
            # The first step compiles.
            for step in range(steps):
                rows = order.integers(0, len(x), BATCH)
                state, _ = server.step(state, (x[rows], y[rows]))
                if step == 0:
                    start = time.perf_counter()
            params = server.params(state)
            each = (time.perf_counter() - start) / (steps - 1)
            found[i] = params, each, server.traffic()
        except Exception as error:
            errors.append(error)
        finally:
            server.close()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    local.close()
    if errors:
        raise errors[0]
    params, each, traffic = found[-1]
    right = fxflow.jit(logits)(params, test_x).argmax(-1) == test_y
    return float(right.mean()) * 100, each * 1e3, traffic


def milliseconds(call: Callable[[], Any], rounds: int = 30) -> float:
    fxflow.block_until_ready(call())
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        fxflow.block_until_ready(call())
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def coding(code: str | Filter, data: Any) -> tuple[float, float]:
    """Returns the ms to encode and to decode a gradient."""
    batch = data[0][:BATCH], data[1][:BATCH]
    slopes = fxflow.jit(fxflow.grad(loss))(init(0), batch)
    named = {f"{i}/{n}": g for i, layer in enumerate(slopes) for n, g in layer.items()}
    code = filters.filter_of(code)
    encode, decode = fxflow.jit(code.encode), fxflow.jit(code.decode)
    residual = code.init(named)
    sent = encode(named, residual)[0]
    return (
        milliseconds(lambda: encode(named, residual)),
        milliseconds(lambda: decode(sent, named)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=FILTERS, default=list(FILTERS))
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    mnist = load_mnist()
    data = (
        mnist.train_images.reshape(-1, 784).astype(np.float32) / 255,
        mnist.train_labels.astype(np.int32),
        mnist.test_images.reshape(-1, 784).astype(np.float32) / 255,
        mnist.test_labels.astype(np.int32),
    )
    columns = "filter", "push B/step", "×", "pull B/step", "encode", "decode", "step"
    print(f"| {' | '.join(columns)} | test % | range |")
    print("| --- |" + " --: |" * 8)
    for name in args.only:
        code, pull = FILTERS[name]
        encode, decode = coding(code, data)
        runs = [trained(code, pull, data, args.epochs, s) for s in range(args.seeds)]
        rights = [right for right, _, _ in runs]
        step = statistics.mean(each for _, each, _ in runs)
        traffic = runs[0][2]
        print(
            f"| {name} | {traffic.push_bytes:,} | {traffic.push_ratio:.1f} "
            f"| {traffic.pull_bytes:,} | {encode:.2f} | {decode:.2f} | {step:.1f} "
            f"| {statistics.mean(rights):.2f} | {max(rights) - min(rights):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
