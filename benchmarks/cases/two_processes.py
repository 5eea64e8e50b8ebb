"""Sums over two processes on this machine, against gloo's own.

Each library has a pair of processes for these cases, with one CPU device each (`Pair`).
fxflow and JAX add by `psum` in a `pmap`, PyTorch by `all_reduce`. All of them use gloo
over TCP; PyTorch does little else. `psum` gives new arrays and PyTorch writes over the
ones it has, so there are two measurements of it: in place, and of a copy.

All processes make the same calls, so the number of calls is fixed.
"""

import contextlib
import functools
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

from .library import Case, Cases

PROCESSES = 2
SIZES = {"1 KB": 2**10, "1 MB": 2**20, "64 MB": 2**26}
#: The parameters of a perceptron: many small arrays, 0.94 MB together.
TREE = [(784, 256), (256,), (256, 128), (128,), (128, 10), (10,)]


# -- what is measured, in each process of a pair ---------------------------------------


def looped(call: Callable[[], Any], count: int) -> Callable[[], float]:
    """Measures `count` calls, each of which waits for its result."""
    for _ in range(2):
        call()

    def measure() -> float:
        started = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - started) / count

    return measure


def repeats(size: int) -> int:
    return 100 if size < 2**16 else 20 if size < 2**22 else 3


class Arrays:
    """fxflow or JAX."""

    def __init__(self, name: str, rank: int, address: str) -> None:
        from .library import load

        self.library = load(name)
        self.library.root.distributed.initialize(address, PROCESSES, rank)

    def all_reduce(self, size: int, *how: str) -> Callable[[], float]:
        """A sum of arrays of `size` bytes; the result is a new array in any case."""
        return looped(self.summing([(size // 4,)]), repeats(size))

    def all_reduce_tree(self, *how: str) -> Callable[[], float]:
        """A sum of several arrays."""
        return looped(self.summing(TREE), repeats(2**20))

    def summing(self, shapes: Any) -> Callable[[], Any]:
        root, lax = self.library.root, self.library.lax
        function = root.pmap(lambda xs: lax.psum(xs, "i"), "i")
        xs = [numpy.ones((1, *shape), numpy.float32) for shape in shapes]
        xs = root.pmap(lambda xs: [x * 1 for x in xs])(xs)  # where it wants them
        return lambda: root.block_until_ready(function(xs))


class Torch:
    """PyTorch with its gloo backend."""

    def __init__(self, name: str, rank: int, address: str) -> None:
        import torch
        import torch.distributed

        self.torch = torch
        torch.distributed.init_process_group(
            "gloo", init_method=f"tcp://{address}", rank=rank, world_size=PROCESSES
        )

    def all_reduce(self, size: int, *how: str) -> Callable[[], float]:
        """A sum of arrays of `size` bytes, in place or of a `copy`."""
        return looped(self.summing([(size // 4,)], *how), repeats(size))

    def all_reduce_tree(self, *how: str) -> Callable[[], float]:
        """A sum of several arrays."""
        return looped(self.summing(TREE, *how), repeats(2**20))

    def summing(self, shapes: Any, how: str = "in_place") -> Callable[[], Any]:
        # Zeros: in place, ones would grow until they overflow.
        xs = [self.torch.zeros(shape) for shape in shapes]
        reduce = self.torch.distributed.all_reduce

        def call() -> None:
            for x in xs:
                reduce(x.clone() if how == "copy" else x)

        return call


def joined(library: str, rank: int, address: str) -> Any:
    """Joins the other process; what it returns has the measurements."""
    return (Torch if library == "torch" else Arrays)(library, rank, address)


def builder(name: str) -> Callable[[Any], Callable[[], float]]:
    """The measurement of a name: a method's name and its arguments, by spaces."""
    what, *rest = name.split()
    given = [int(n) if n.isdigit() else n for n in rest]
    return lambda side: getattr(side, what)(*given)


# -- the processes ---------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Pair:
    """Two processes of a library that measure by name, together."""

    def __init__(self, library: str, python: str = sys.executable) -> None:
        self.library, self.python = library, python
        self.start()

    def start(self) -> None:
        here = Path(__file__).resolve().parent.parent
        environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
        for several in ("XLA_FLAGS", "FXFLOW_NUM_CPU_DEVICES"):
            environment.pop(several, None)
        if self.library == "fxflow":
            environment["PYTHONPATH"] = str(here.parent)
        address = f"127.0.0.1:{free_port()}"
        script = str(here / "processes_worker.py")
        self.processes = [
            subprocess.Popen(
                [self.python, script, self.library, str(rank), address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=here,
                env=environment,
            )
            for rank in range(PROCESSES)
        ]

    def measure(self, name: str) -> float:
        """Seconds of one call, of the slower process."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps(name) + "\n")
            process.stdin.flush()
        lines = []
        for process in self.processes:
            assert process.stdout is not None
            lines.append(process.stdout.readline())
        if not all(lines):
            for process in self.processes:
                process.kill()
            ends = self.stop()
            self.start()  # for the next one
            raise RuntimeError(f"{name}: exit statuses {ends}")
        return max(float(json.loads(line)) for line in lines)

    def stop(self) -> list[int]:
        """Ends both; returns their exit statuses."""
        for process in self.processes:
            assert process.stdin is not None and process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.close()
        return [process.wait() for process in self.processes]


@functools.cache
def pair(library: str) -> Pair:
    return Pair(library)


CASES = {
    **{
        f"all-reduce {size}, 2 processes": f"all_reduce {count}"
        for size, count in SIZES.items()
    },
    **{
        f"all-reduce {size}, 2 processes, of a copy": f"all_reduce {count} copy"
        for size, count in SIZES.items()
    },
    "all-reduce 6 arrays of 0.9 MB, 2 processes": "all_reduce_tree",
}


def cases(library: str) -> Cases:
    def case(name: str) -> Case:
        def prepare() -> Callable[[], float]:
            return lambda: pair(library).measure(name)

        return Case("ms", prepare, 1.0, most_rounds=10)

    return {title: case(name) for title, name in CASES.items()}
