"""The same 10 MB model by fxflow, by PyTorch's RPC and by Ray: steps a second.

    python benchmarks/parameter_server/others.py --python VENV/bin/python

`VENV` is an environment with torch and ray; `--systems fxflow` needs none. One server
and some workers, each a process of this machine. A perceptron of 784-1600-768-10
(2.49 million float32), batches of 32 made-up images (`--images`), SGD at 0.01,
asynchronous: each worker sends its whole gradient, which the server applies at once,
and gets all parameters back. PyTorch and Ray are used as their parameter-server
examples do (`rpc_sync` of update-and-fetch; an actor whose workers `ray.wait` takes in
turn).

A worker counts its steps for some seconds after it has warmed up; the table has sums.
"""

import argparse
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

SIZES = (784, 1600, 768, 10)
RATE, WARM = 0.01, 5
#: Images of a batch, for all processes of a measurement.
IMAGES = "FXFLOW_BENCHMARK_IMAGES"
SYSTEMS = ("fxflow", "torch", "ray")


def batch() -> tuple[np.ndarray, np.ndarray]:
    """What each step trains on."""
    rng = np.random.default_rng(0)
    count = int(os.environ[IMAGES])
    images = rng.random((count, SIZES[0]), np.float32)
    return images, rng.integers(0, SIZES[-1], count)


def pace_of(step, seconds: float) -> float:
    """Steps a second over `seconds`, after some that do not count."""
    for _ in range(WARM):
        step()
    started, count = time.perf_counter(), 0
    while time.perf_counter() < started + seconds:
        step()
        count += 1
    return count / (time.perf_counter() - started)


# -- fxflow ----------------------------------------------------------------------------


def work_fxflow(seconds: float) -> float:
    """A worker of a launched run."""
    import fxflow
    import fxflow.numpy as fnp
    from fxflow import nn, optim
    from fxflow.distributed.parameter_server import asynchronous, parameter_server

    def loss(params, given):
        x, labels = given
        for number, (weights, bias) in enumerate(params):
            x = x @ weights + bias
            x = nn.relu(x) if number < len(params) - 1 else x
        return -fnp.mean(fnp.sum(nn.one_hot(labels, 10) * nn.log_softmax(x), axis=1))

    rng = np.random.default_rng(0)
    params = [
        (rng.normal(0, n**-0.5, (n, m)).astype(np.float32), np.zeros(m, np.float32))
        for n, m in itertools.pairwise(SIZES)
    ]
    server = parameter_server(loss, optim.sgd(RATE), consistency=asynchronous())
    state = [server.init(params)]
    images, labels = batch()
    given = images, labels.astype(np.int32)

    def step() -> None:
        state[0], _ = server.step(state[0], given)

    pace = pace_of(step, seconds)
    fxflow.block_until_ready(server.params(state[0]))
    server.close()
    return pace


def run_fxflow(workers: int, seconds: float) -> list[float]:
    """Each worker's pace."""
    command = [sys.executable, "-m", "fxflow", "launch", "--ps", "1", "--workers"]
    command += [str(workers), __file__, "--as-worker", "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = [line.partition("pace ")[2] for line in done.stdout.splitlines()]
    return [float(text) for text in told if text]


# -- PyTorch ---------------------------------------------------------------------------


def torch_model():
    """The perceptron."""
    from torch import nn

    first, second, third, last = SIZES
    return nn.Sequential(
        *(nn.Linear(first, second), nn.ReLU(), nn.Linear(second, third)),
        *(nn.ReLU(), nn.Linear(third, last)),
    )


class TorchServer:
    """Holds the model; called by `rpc_sync`."""

    model = lock = optimizer = None

    @classmethod
    def begin(cls) -> None:
        import torch

        cls.model, cls.lock = torch_model(), threading.Lock()
        cls.optimizer = torch.optim.SGD(cls.model.parameters(), RATE)

    @classmethod
    def fetch(cls) -> list:
        return [p.detach() for p in cls.model.parameters()]

    @classmethod
    def update_and_fetch(cls, gradients: list) -> list:
        with cls.lock:
            for parameter, gradient in zip(cls.model.parameters(), gradients):
                parameter.grad = gradient
            cls.optimizer.step()
        return cls.fetch()


def torch_gradients(model, weights, given) -> list:
    """The gradients at some weights."""
    import torch

    with torch.no_grad():
        for parameter, weight in zip(model.parameters(), weights):
            parameter.copy_(weight)
    model.zero_grad()
    torch.nn.functional.cross_entropy(model(given[0]), given[1]).backward()
    return [parameter.grad for parameter in model.parameters()]


def _torch_process(rank: int, workers: int, port: int, seconds: float, told) -> None:
    import torch
    from torch.distributed import rpc

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    TorchServer.begin()
    rpc.init_rpc(f"task{rank}", rank=rank, world_size=workers + 1)
    if rank:
        given = tuple(map(torch.as_tensor, batch()))
        model = torch_model()
        weights = [rpc.rpc_sync("task0", TorchServer.fetch)]

        def step() -> None:
            gradients = torch_gradients(model, weights[0], given)
            update = TorchServer.update_and_fetch
            weights[0] = rpc.rpc_sync("task0", update, args=(gradients,))

        told.put(pace_of(step, seconds))
    rpc.shutdown()


def run_torch(workers: int, seconds: float) -> list[float]:
    """Each worker's pace."""
    from torch import multiprocessing

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told = multiprocessing.get_context("spawn").SimpleQueue()
    arguments = workers, port, seconds, told
    multiprocessing.spawn(_torch_process, arguments, nprocs=workers + 1)
    return [told.get() for _ in range(workers)]


# -- Ray -------------------------------------------------------------------------------


def run_ray(workers: int, seconds: float) -> list[float]:
    """The pace of all workers, which the driver takes in turn."""
    import ray
    import torch

    class ShardServer:
        def __init__(self) -> None:
            self.model = torch_model()
            self.optimizer = torch.optim.SGD(self.model.parameters(), RATE)

        def apply(self, gradients: list) -> list:
            for parameter, gradient in zip(self.model.parameters(), gradients):
                parameter.grad = torch.tensor(gradient)
            self.optimizer.step()
            return self.fetch()

        def fetch(self) -> list:
            return [p.detach().numpy() for p in self.model.parameters()]

    class Worker:
        def __init__(self) -> None:
            self.model = torch_model()
            self.given = tuple(map(torch.as_tensor, batch()))

        def compute(self, weights: list) -> list:
            weights = [torch.tensor(w) for w in weights]
            return [g.numpy() for g in torch_gradients(self.model, weights, self.given)]

    ray.init(num_cpus=workers + 1, include_dashboard=False, logging_level="error")
    server = ray.remote(ShardServer).remote()
    each = [ray.remote(Worker).remote() for _ in range(workers)]
    weights = server.fetch.remote()
    pending = {worker.compute.remote(weights): worker for worker in each}

    def step() -> None:
        [ready], _ = ray.wait(list(pending))
        worker = pending.pop(ready)
        pending[worker.compute.remote(server.apply.remote(ready))] = worker

    pace = pace_of(step, seconds)
    ray.shutdown()
    return [pace]


def main() -> None:
    """Prints the table, or is a worker of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="has torch and ray")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--images", type=int, default=32, help="of a batch")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=3, help="the median is printed")
    parser.add_argument("--as-worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--one", choices=SYSTEMS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_worker:
        print(f"pace {work_fxflow(given.seconds)}", flush=True)
        return
    if given.one:
        run = {"fxflow": run_fxflow, "torch": run_torch, "ray": run_ray}[given.one]
        print(json.dumps(sum(run(given.workers[0], given.seconds))), flush=True)
        return
    root = str(Path(__file__).resolve().parents[2])
    print("| workers | system | steps/s | of each round |\n| --: | --- | --: | --- |")
    for workers in given.workers:
        paces: dict[str, list[float]] = {name: [] for name in given.systems}
        # In turn: what else runs on the machine should hit all alike.
        for _ in range(given.rounds):
            for name, found in paces.items():
                python = sys.executable if name == "fxflow" else given.python
                command = [python, __file__, "--one", name, "--workers", str(workers)]
                done = subprocess.run(
                    [*command, "--seconds", str(given.seconds)],
                    env={
                        **os.environ,
                        "PYTHONPATH": root,
                        IMAGES: str(given.images),
                    },
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
                found.append(json.loads(done.stdout.splitlines()[-1]))
        for name, found in paces.items():
            rounds = ", ".join(f"{pace:.1f}" for pace in sorted(found))
            print(
                f"| {workers} | {name} | {np.median(found):.1f} | {rounds} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
