"""Trains a DLRM with one system on this machine; `dlrm.py` starts it.

    python dlrm_worker.py SYSTEM SECONDS SERVERS WORKERS

The model of Naumov et al. 2019 (arXiv 1906.00091) at a small size: 13 numbers through
layers of 64 and 16; 26 rows of 16 numbers; the products of all pairs of these 27
vectors; layers of 64 and 1. Rows are updated by Adagrad, layers by SGD. Labels follow
a known model, in which each id has a weight. Prints one JSON object.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

BATCH, NUMBERS, IDS, WIDTH = 2048, 13, 26, 16
ROWS = 40_000  # of each of the 26 columns
BOTTOM, TOP = (NUMBERS, 64, WIDTH), (WIDTH + 27 * 26 // 2, 64, 1)
RATE, ROW_RATE = 0.1, 0.05
HELD = 20_000
#: Seconds between two evaluations of the first worker, whose time does not count.
EVERY = 2.0
PAIRS = np.triu_indices(27, 1)

Batch = tuple[np.ndarray, np.ndarray, np.ndarray]


# -- data and quality ------------------------------------------------------------------


class Data:
    """Examples: numbers f32[n,13], ids i64[n,26] below 26 × 40,000, labels f32[n]."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self._weights = 0.35 * rng.normal(size=(IDS, ROWS)).astype(np.float32)
        self._slopes = 0.2 * rng.normal(size=NUMBERS).astype(np.float32)
        self._order = np.stack([rng.permutation(ROWS) for _ in range(IDS)])

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """Draws examples; ids follow Zipf's law with exponent 1.05."""
        columns = np.arange(IDS)
        low = 1 - (ROWS + 1.0) ** -0.05
        rank = (1 - rng.random((count, IDS)) * low) ** -20
        which = self._order[columns, np.minimum(rank.astype(np.int64) - 1, ROWS - 1)]
        numbers = rng.normal(size=(count, NUMBERS)).astype(np.float32)
        logits = numbers @ self._slopes + self._weights[columns, which].sum(1) - 1
        labels = rng.random(count) < 1 / (1 + np.exp(-logits))
        return numbers, which + columns * ROWS, labels.astype(np.float32)

    def batches(self, rank: int) -> Iterator[Batch]:
        """Yields the batches of a worker: new ones, drawn ahead of time in turn."""
        rng = np.random.default_rng([1, rank])
        held = [self.draw(rng, BATCH) for _ in range(256)]
        return itertools.cycle(held)

    def held(self) -> Batch:
        """Returns examples that no worker trains on."""
        return self.draw(np.random.default_rng(2), HELD)


def area_under_curve(scores: np.ndarray, labels: np.ndarray) -> float:
    """Returns the probability that a click scores above another example."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = np.arange(1, len(scores) + 1)
    ones = labels.sum()
    return float(
        (ranks[labels == 1].sum() - ones * (ones + 1) / 2)
        / (ones * (len(labels) - ones))
    )


def train(
    rank: int,
    seconds: float,
    step: Callable[[Batch], object],
    scores: Callable[[Batch], np.ndarray],
) -> dict[str, Any]:
    """Makes steps for some seconds; the first worker evaluates now and then."""
    data = Data()
    batches, held = data.batches(rank), data.held()
    for _ in range(5):
        step(next(batches))
    if rank == 0:
        scores(held)
    spent = count = 0.0
    curve, due = [], EVERY
    while spent < seconds:
        started = time.perf_counter()
        step(next(batches))
        spent, count = spent + time.perf_counter() - started, count + BATCH
        if rank == 0 and spent >= due:
            curve.append((round(spent, 2), area_under_curve(scores(held), held[2])))
            due += EVERY
    return {"pace": count / spent, "curve": curve}


# -- fxflow ----------------------------------------------------------------------------


class FxflowWorker:
    """A worker of a launched run.

    Args:
      consistency: of the workers; None: `asynchronous()`.
    """

    def __init__(self, consistency: Any = None) -> None:
        import fxflow
        import fxflow.numpy as fnp
        from fxflow import nn, optim, random
        from fxflow.distributed import parameter_server as ps
        from fxflow.train import table_trainer

        def mlp(layers: Any, x: Any) -> Any:
            for layer in layers[:-1]:
                x = nn.relu(nn.linear(layer, x))
            return nn.linear(layers[-1], x)

        def logits_of(params: Any, rows: Any, numbers: Any) -> Any:
            dense = nn.relu(mlp(params["bottom"], numbers))
            every = fnp.concatenate([dense[:, None], rows["ids"]], axis=1)
            products = fnp.einsum("bik,bjk->bij", every, every)[:, PAIRS[0], PAIRS[1]]
            return mlp(params["top"], fnp.concatenate([dense, products], axis=1))[:, 0]

        def loss(params: Any, rows: Any, batch: Any) -> Any:
            numbers, labels = batch
            logits = logits_of(params, rows, numbers)
            return fnp.mean(nn.softplus(logits) - labels * logits)

        def layers(key: Any, sizes: Any) -> Any:
            keys = random.split(key, len(sizes) - 1)
            pairs = zip(keys, itertools.pairwise(sizes))
            return [nn.linear_init(key, n, m) for key, (n, m) in pairs]

        cluster = ps.cluster_of(None)
        assert cluster is not None
        # As PyTorch's: gradients of rows are tiny, and a larger ε would slow them down.
        optimizer = optim.adagrad(ROW_RATE, 0.0, eps=1e-20)
        self.trainer: Any = table_trainer(
            loss,
            optim.sgd(RATE),
            [ps.TableSpec("ids", WIDTH, optimizer, rows=IDS * ROWS)],
            consistency=consistency or ps.asynchronous(),
            non_finite="apply",
            cluster=cluster,
        )
        self.cluster = cluster
        keys = random.split(random.key(0), 2)
        first = {"bottom": layers(keys[0], BOTTOM), "top": layers(keys[1], TOP)}
        self._state = self.trainer.init(first)
        self._predict = fxflow.jit(logits_of)

    def step(self, batch: Batch) -> None:
        """Makes a step, and waits for its loss."""
        numbers, ids, labels = batch
        self._state, metrics = self.trainer.step(
            self._state, (numbers, labels), ids={"ids": ids}
        )
        float(metrics.loss)

    def scores(self, batch: Batch) -> np.ndarray:
        """Returns logits by the servers' parameters and rows."""
        params = self.trainer.params(self._state)
        rows = self.trainer.rows({"ids": batch[1]})
        return np.asarray(self._predict(params, rows, batch[0]))


def work_fxflow(seconds: float) -> dict[str, Any]:
    worker = FxflowWorker()
    found = train(worker.cluster.rank, seconds, worker.step, worker.scores)
    traffic = worker.trainer.traffic()
    sent = sum(traffic.sent.values()) + sum(traffic.received.values())
    worker.trainer.close()
    return {**found, "bytes": sent}


def run_fxflow(seconds: float, servers: int, workers: int) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "fxflow", "launch", "--ps", str(servers)]
    command += ["--workers", str(workers), __file__, "as-worker", str(seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    told = [line.partition("found ")[2] for line in done.stdout.splitlines()]
    return [json.loads(text) for text in told if text]


# -- PyTorch ---------------------------------------------------------------------------


def torch_layers(sizes: Any, last: Any) -> Any:
    from torch import nn

    layers: list[Any] = []
    for n, m in itertools.pairwise(sizes):
        layers += [nn.Linear(n, m), nn.ReLU()]
    return nn.Sequential(*(layers if last else layers[:-1]))


def torch_dense() -> Any:
    """The layers, from numbers and rows to logits."""
    import torch

    class Dense(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bottom, self.top = torch_layers(BOTTOM, True), torch_layers(TOP, False)
            self.pairs = tuple(map(torch.as_tensor, PAIRS))

        def forward(self, numbers: Any, rows: Any) -> Any:
            dense = self.bottom(numbers)
            every = torch.cat([dense[:, None], rows], 1)
            products = torch.bmm(every, every.transpose(1, 2))
            products = products[:, self.pairs[0], self.pairs[1]]
            return self.top(torch.cat([dense, products], 1))[:, 0]

    torch.manual_seed(0)
    return Dense()


def torch_table(rows: int) -> Any:
    import torch

    table = torch.nn.Embedding(rows, WIDTH, sparse=True)
    torch.nn.init.normal_(table.weight, std=0.01)
    return table


def torch_batch(batch: Batch) -> Any:
    import torch

    return tuple(map(torch.as_tensor, batch))


def torch_loss(logits: Any, labels: Any) -> Any:
    import torch

    return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)


class TorchServer:
    """A part of the table; the first one also holds the layers. Called by RPC."""

    lock = table = rows = dense = layers = None

    @classmethod
    def begin(cls, columns: int, dense: bool) -> None:
        import torch

        cls.lock, cls.table = threading.Lock(), torch_table(columns * ROWS)
        cls.rows = torch.optim.Adagrad([cls.table.weight], ROW_RATE)
        if dense:
            cls.dense = torch_dense()
            cls.layers = torch.optim.SGD(cls.dense.parameters(), RATE)

    @classmethod
    def pull(cls, ids: Any) -> Any:
        import torch

        with torch.no_grad():
            return cls.table(ids)

    @classmethod
    def pull_dense(cls) -> list[Any]:
        return [p.detach() for p in cls.dense.parameters()]

    @classmethod
    def push(cls, ids: Any, gradients: Any, dense: list[Any]) -> None:
        import torch

        with cls.lock:
            size = cls.table.weight.shape
            given = torch.sparse_coo_tensor(
                ids.reshape(1, -1), gradients.reshape(-1, WIDTH), size
            )
            cls.table.weight.grad = given
            cls.rows.step()
            if dense:
                for parameter, gradient in zip(cls.dense.parameters(), dense):
                    parameter.grad = gradient
                cls.layers.step()


class Shards:
    """The table of one worker's view: columns over servers, called asynchronously.

    Args:
      call: `call(server, name, *args)` starts a call of a `TorchServer`.
      wait: returns what a call has returned.
      servers: number of servers.
    """

    def __init__(self, call: Any, wait: Any, servers: int) -> None:
        self._call, self._wait = call, wait
        self._parts = np.array_split(np.arange(IDS), servers)
        self._model = torch_dense()

    def _pulled(self, ids: Any) -> Any:
        """Pulls rows and layers, all calls at once."""
        import torch

        self._local = [ids[:, p] - int(p[0]) * ROWS for p in self._parts]
        rows = [self._call(i, "pull", x) for i, x in enumerate(self._local)]
        dense = self._wait(self._call(0, "pull_dense"))
        with torch.no_grad():
            for parameter, value in zip(self._model.parameters(), dense):
                parameter.copy_(torch.as_tensor(value))
        return torch.cat([torch.as_tensor(self._wait(r)) for r in rows], 1)

    def step(self, batch: Batch) -> None:
        numbers, ids, labels = torch_batch(batch)
        rows = self._pulled(ids).requires_grad_()
        self._model.zero_grad()
        torch_loss(self._model(numbers, rows), labels).backward()
        dense = [p.grad for p in self._model.parameters()]
        done = []
        for i, part in enumerate(self._parts):
            own = rows.grad[:, int(part[0]) : int(part[-1]) + 1].contiguous()
            args = self._local[i], own, [] if i else dense
            done.append(self._call(i, "push", *args))
        for each in done:
            self._wait(each)

    def scores(self, batch: Batch) -> np.ndarray:
        import torch

        numbers, ids, _ = torch_batch(batch)
        with torch.no_grad():
            found: np.ndarray = self._model(numbers, self._pulled(ids)).numpy()
        return found


def columns_of(server: int, servers: int) -> int:
    return len(np.array_split(np.arange(IDS), servers)[server])


def _rpc_process(rank: int, settings: Any, told: Any) -> None:
    from torch.distributed import rpc

    seconds, servers, workers, port = settings
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if rank < servers:
        TorchServer.begin(columns_of(rank, servers), dense=rank == 0)
    rpc.init_rpc(f"task{rank}", rank=rank, world_size=servers + workers)
    if rank >= servers:

        def call(server: int, name: str, *args: Any) -> Any:
            return rpc.rpc_async(f"task{server}", getattr(TorchServer, name), args=args)

        shards = Shards(call, lambda future: future.wait(), servers)
        told.put(train(rank - servers, seconds, shards.step, shards.scores))
    rpc.shutdown()


def _ddp_process(rank: int, settings: Any, told: Any) -> None:
    import torch
    from torch import distributed

    seconds, _, workers, port = settings
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    distributed.init_process_group("gloo", rank=rank, world_size=workers)
    wrap = torch.nn.parallel.DistributedDataParallel
    table, dense = torch_table(IDS * ROWS), wrap(torch_dense())
    rows = torch.optim.Adagrad([table.weight], ROW_RATE)
    layers = torch.optim.SGD(dense.parameters(), RATE)
    table = wrap(table)

    def step(batch: Batch) -> None:
        numbers, ids, labels = torch_batch(batch)
        rows.zero_grad()
        layers.zero_grad()
        torch_loss(dense(numbers, table(ids)), labels).backward()
        rows.step()
        layers.step()

    def scores(batch: Batch) -> np.ndarray:
        numbers, ids, _ = torch_batch(batch)
        with torch.no_grad():
            found: np.ndarray = dense.module(numbers, table.module(ids)).numpy()
        return found

    told.put(train_together(distributed, rank, workers, seconds, step, scores))
    distributed.destroy_process_group()


def train_together(
    distributed: Any, rank: int, workers: int, seconds: float, step: Any, scores: Any
) -> dict[str, Any]:
    """`train` where all processes make the same calls: the first one says which."""
    import torch

    def say(what: int) -> int:
        said = torch.tensor([what])
        distributed.broadcast(said, 0)
        return int(said)

    def first_step(batch: Batch) -> None:
        say(1)
        step(batch)

    def first_scores(batch: Batch) -> np.ndarray:
        say(2)
        found: np.ndarray = scores(batch)
        return found

    if rank == 0:
        found = train(0, seconds, first_step, first_scores)
        say(0)
        return {**found, "pace": found["pace"] * workers}
    data = Data()
    batches, held = data.batches(rank), data.held()
    while what := say(0):
        step(next(batches)) if what == 1 else scores(held)
    return {}


def _torchrec_process(rank: int, settings: Any, told: Any) -> None:
    import torch
    import torchrec
    from torch import distributed
    from torchrec.distributed.model_parallel import DistributedModelParallel
    from torchrec.optim.apply_optimizer_in_backward import (
        apply_optimizer_in_backward,
    )

    seconds, _, workers, port = settings
    os.environ.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        RANK=str(rank),
        WORLD_SIZE=str(workers),
        LOCAL_RANK=str(rank),
    )
    distributed.init_process_group("gloo", rank=rank, world_size=workers)
    names = [f"c{i}" for i in range(IDS)]
    configs = [
        torchrec.EmbeddingBagConfig(
            name=f"t{name}",
            embedding_dim=WIDTH,
            num_embeddings=ROWS,
            feature_names=[name],
            init_fn=lambda weight: torch.nn.init.normal_(weight, std=0.01),
        )
        for name in names
    ]

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = torchrec.EmbeddingBagCollection(configs)
            self.dense = torch_dense()

        def forward(self, numbers: Any, ids: Any) -> Any:
            rows = self.tables(ids).to_dict()
            return self.dense(numbers, torch.stack([rows[n] for n in names], 1))

    whole = Whole()
    apply_optimizer_in_backward(
        torchrec.optim.RowWiseAdagrad, whole.tables.parameters(), {"lr": ROW_RATE}
    )
    model = DistributedModelParallel(whole, device=torch.device("cpu"))
    layers = torch.optim.SGD(
        [p for n, p in model.named_parameters() if "dense" in n], RATE
    )
    columns = np.arange(IDS) * ROWS

    def keyed(ids: Any) -> Any:
        values = torch.as_tensor((ids - columns).T.reshape(-1).copy())
        lengths = torch.ones(len(values), dtype=torch.int32)
        return torchrec.KeyedJaggedTensor(keys=names, values=values, lengths=lengths)

    def step(batch: Batch) -> None:
        layers.zero_grad()
        numbers, labels = torch.as_tensor(batch[0]), torch.as_tensor(batch[2])
        torch_loss(model(numbers, keyed(batch[1])), labels).backward()
        layers.step()

    def scores(batch: Batch) -> np.ndarray:
        with torch.no_grad():
            logits = model(torch.as_tensor(batch[0]), keyed(batch[1]))
        found: np.ndarray = logits.numpy()
        return found

    told.put(train_together(distributed, rank, workers, seconds, step, scores))
    distributed.destroy_process_group()


def run_torch(process: Any, count: int, settings: Any) -> list[dict[str, Any]]:
    import socket

    from torch import multiprocessing

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told = multiprocessing.get_context("spawn").SimpleQueue()
    multiprocessing.spawn(process, ((*settings, port), told), nprocs=count)
    found = []
    while not told.empty():
        found.append(told.get())
    return [one for one in found if one]


# -- Ray -------------------------------------------------------------------------------


def run_ray(seconds: float, servers: int, workers: int) -> list[dict[str, Any]]:
    import ray

    class Server:
        def __init__(self, number: int) -> None:
            TorchServer.begin(columns_of(number, servers), dense=number == 0)

        def pull(self, ids: Any) -> Any:
            import torch

            return TorchServer.pull(torch.as_tensor(ids)).numpy()

        def pull_dense(self) -> Any:
            return [p.numpy() for p in TorchServer.pull_dense()]

        def push(self, ids: Any, gradients: Any, dense: Any) -> None:
            import torch

            given = (torch.as_tensor(np.array(x)) for x in (ids, gradients))
            TorchServer.push(*given, [torch.as_tensor(np.array(x)) for x in dense])

    class Worker:
        def work(self, rank: int, held: list[Any]) -> dict[str, Any]:
            def call(server: int, name: str, *args: Any) -> Any:
                plain = [
                    [x.numpy() for x in a] if isinstance(a, list) else a.numpy()
                    for a in args
                ]
                return getattr(held[server], name).remote(*plain)

            shards = Shards(call, lambda ref: writable(ray.get(ref)), servers)
            return train(rank, seconds, shards.step, shards.scores)

    def writable(found: Any) -> Any:
        if isinstance(found, list):
            return [np.array(x) for x in found]
        return None if found is None else np.array(found)

    ray.init(num_cpus=servers + workers, include_dashboard=False, logging_level="error")
    held = [ray.remote(Server).remote(i) for i in range(servers)]
    each = [ray.remote(Worker).remote() for _ in range(workers)]
    found = ray.get([w.work.remote(i, held) for i, w in enumerate(each)])
    ray.shutdown()
    return found


def main() -> None:
    if sys.argv[1] == "as-worker":
        print("found " + json.dumps(work_fxflow(float(sys.argv[2]))), flush=True)
        return
    system, seconds = sys.argv[1], float(sys.argv[2])
    servers, workers = int(sys.argv[3]), int(sys.argv[4])
    settings = seconds, servers, workers
    found = {
        "fxflow": lambda: run_fxflow(*settings),
        "torch RPC": lambda: run_torch(_rpc_process, servers + workers, settings),
        "torch DDP": lambda: run_torch(_ddp_process, workers, settings),
        "TorchRec": lambda: run_torch(_torchrec_process, workers, settings),
        "Ray": lambda: run_ray(*settings),
    }[system]()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
