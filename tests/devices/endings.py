"""A process that ends, or forks, while the runtime is working.

    python -m tests.devices.endings KIND SEED [STATUS]

Its last output is "end"; any other output, and any exit status but STATUS, is a fault
of the shutdown.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow as fx
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.devices import process


def large(seed: float, size: int = 40) -> Callable[[Any], Any]:
    """Returns a function that XLA compiles in about a second."""

    def function(x: Any) -> Any:
        for i in range(size):
            x = fnp.sin(x) * (i + seed) + fnp.cos(x @ x)
            x = fnp.sort(x, axis=i % 2)
        return x

    return function


def slow(x: Any) -> Any:
    """Returns a loop that runs for about a second."""
    return lax.fori_loop(0, 20000, lambda i, x: fnp.tanh(x @ x), x)


X = np.ones((32, 32), "f")


def in_background(function: Callable[..., Any], *arguments: Any) -> None:
    started = threading.Event()

    def call() -> None:
        started.set()
        function(*arguments)

    threading.Thread(target=call, daemon=True).start()
    started.wait()


# -- kinds of pending work -------------------------------------------------------------


def compiling(chance: random.Random) -> None:
    in_background(fx.jit(large(chance.random())), X)
    time.sleep(chance.uniform(0, 1.5))


def interrupted(chance: random.Random) -> None:
    timer = threading.Timer(
        chance.uniform(0, 1.0), os.kill, (os.getpid(), signal.SIGINT)
    )
    timer.start()
    try:
        fx.jit(large(chance.random()))(X)
        timer.join()
    except KeyboardInterrupt:
        pass


def running(chance: random.Random) -> Any:
    run = fx.jit(slow).lower(X).compile()
    kept = [run(X * chance.random()) for _ in range(3)]
    return kept if chance.random() < 0.5 else None


def mapped(chance: random.Random) -> Any:
    f = fx.pmap(lambda x: lax.psum(slow(x), "i"), axis_name="i")
    return f(f(np.ones((4, 32, 32), "f")))


def calling(chance: random.Random) -> None:
    reached = threading.Event()

    def callback(x: Any) -> Any:
        reached.set()
        time.sleep(chance.uniform(0, 0.05))
        return x

    def call(_: Any, x: Any) -> Any:
        return fx.pure_callback(callback, fx.ShapeDtypeStruct(X.shape, "float32"), x)

    in_background(fx.jit(lambda x: lax.fori_loop(0, 10**6, call, x)), X)
    reached.wait()
    time.sleep(chance.uniform(0, 0.1))


def looping(chance: random.Random) -> None:
    f = fx.jit(lambda x: fnp.sin(x @ x))
    f(X)
    waits = chance.random() < 0.5

    def loop() -> None:
        y = X
        while True:
            y = f(y)
            if waits:
                y.block_until_ready()

    for _ in range(3):
        in_background(loop)
    time.sleep(chance.uniform(0, 0.2))


def endless(chance: random.Random) -> None:
    """Work that takes longer than the end of the process waits."""
    process.EXIT_SECONDS = 0.2
    in_background(fx.jit(large(chance.random(), 1000)), X)
    time.sleep(chance.uniform(0, 1.0))


KINDS = {
    f.__name__: f
    for f in (compiling, interrupted, running, mapped, calling, looping, endless)
}


def main() -> None:
    kind, seed = sys.argv[1], int(sys.argv[2])
    fx.config.num_cpu_devices = 4
    fx.config.cache = False  # compiling is what is pending
    kept = KINDS[kind](random.Random(seed))
    print("end", flush=True)
    del kept
    if len(sys.argv) > 3:
        sys.exit(int(sys.argv[3]))


if __name__ == "__main__":
    main()
