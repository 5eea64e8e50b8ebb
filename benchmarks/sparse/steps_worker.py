"""One library's training steps of a table of embeddings; `steps.py` starts it.

For each line on its input it makes some steps, and prints the seconds of the fastest.
"""

import itertools
import sys
import time
from typing import Any

import numpy as np

BATCH, IDS, WIDTH, BATCHES = 2048, 26, 8, 16
HIDDEN = (256, 64)
RATES = {"sgd": 0.1, "adagrad": 0.1, "adam": 0.01, "rowwise_adagrad": 0.1, "ftrl": 0.1}


def batches(rows: int, draw: str) -> list[tuple[Any, Any]]:
    """Returns batches of ids, by Zipf's law or uniform, and labels."""
    rng = np.random.default_rng(0)
    found = []
    if draw == "zipf":
        # By the inverse of the continuous distribution's function, cut at `rows`.
        ends = np.array([1.0, rows + 1.0]) ** -0.05
        spread = rng.permutation(rows)
    for _ in range(BATCHES):
        if draw == "zipf":
            u = rng.random((BATCH, IDS))
            rank = (ends[0] + u * (ends[1] - ends[0])) ** (-1 / 0.05)
            ids = spread[np.minimum(rank.astype(np.int64) - 1, rows - 1)]
        else:
            ids = rng.integers(0, rows, (BATCH, IDS))
        found.append((ids, rng.integers(0, 2, BATCH).astype(np.float32)))
    return found


def fxflow_step(model: str, optimizer: str, rows: int, data: Any) -> Any:
    """Returns a function that makes step i."""
    import fxflow.numpy as fnp
    from fxflow import nn, optim, random, train
    from fxflow.distributed.parameter_server import TableSpec

    if model == "bag":
        sizes = [WIDTH, 1]
    else:
        sizes = [IDS * WIDTH, *HIDDEN, 1]

    def loss(layers: Any, rows: Any, y: Any) -> Any:
        x = rows["ads"]
        x = fnp.sum(x, 1) if model == "bag" else x.reshape(BATCH, -1)
        for layer in layers[:-1]:
            x = nn.relu(nn.linear(layer, x))
        logits = nn.linear(layers[-1], x)[:, 0]
        return fnp.mean(nn.softplus(logits) - y * logits)

    spec = TableSpec(
        "ads", WIDTH, getattr(optim, optimizer)(RATES[optimizer]), rows=rows
    )
    trainer = train.table_trainer(loss, optim.sgd(0.1), [spec], non_finite="apply")
    keys = random.split(random.key(0), len(sizes) - 1)
    layers = [
        nn.linear_init(k, n, m) for k, (n, m) in zip(keys, itertools.pairwise(sizes))
    ]
    held = [trainer.init(layers)]

    def step(i: int) -> None:
        ids, y = data[i % BATCHES]
        held[0], metrics = trainer.step(held[0], y, ids={"ads": ids})
        float(metrics.loss)
        held[0].tables["ads"][0].block_until_ready()

    return step


def torch_step(model: str, optimizer: str, rows: int, data: Any) -> Any:
    """Returns a function that makes step i."""
    import torch

    if model == "bag":
        table = torch.nn.EmbeddingBag(rows, WIDTH, mode="sum", sparse=True)
        dense = torch.nn.Linear(WIDTH, 1)
    else:
        table = torch.nn.Embedding(rows, WIDTH, sparse=True)
        sizes = [IDS * WIDTH, *HIDDEN, 1]
        layers: list[Any] = [torch.nn.Flatten()]
        for n, m in itertools.pairwise(sizes):
            layers += [torch.nn.Linear(n, m), torch.nn.ReLU()]
        dense = torch.nn.Sequential(*layers[:-1])
    torch.nn.init.normal_(table.weight, std=0.01)
    made = {
        "sgd": torch.optim.SGD,
        "adagrad": torch.optim.Adagrad,
        "adam": torch.optim.SparseAdam,
    }[optimizer]([table.weight], RATES[optimizer])
    other = torch.optim.SGD(dense.parameters(), 0.1)
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    pairs = [(torch.from_numpy(ids), torch.from_numpy(y)) for ids, y in data]

    def step(i: int) -> None:
        ids, y = pairs[i % BATCHES]
        made.zero_grad()
        other.zero_grad()
        value = loss(dense(table(ids))[:, 0], y)
        value.backward()
        made.step()
        other.step()
        float(value.detach())

    return step


def main() -> None:
    library, model, optimizer, rows, draw, steps = sys.argv[1:]
    make = {"fxflow": fxflow_step, "torch": torch_step}[library]
    step = make(model, optimizer, int(rows), batches(int(rows), draw))
    for i in range(BATCHES):
        step(i)
    print("ready", flush=True)
    for _ in sys.stdin:
        times = []
        for i in range(int(steps)):
            start = time.perf_counter()
            step(i)
            times.append(time.perf_counter() - start)
        print(min(times), flush=True)


if __name__ == "__main__":
    main()
