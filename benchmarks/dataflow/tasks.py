"""What a step over tasks costs, and what a value between two of them does.

    python benchmarks/dataflow/tasks.py [--rounds 200] [--json FILE]

A null step adds 1 to a number in each task, whose results stay there; it ends when all
results are computed. A hop is one fragment and the edge to it: a number goes to and fro
between two tasks in one step. The large value is an argument in task 0 that a fragment
of task 1 takes; a step without it is subtracted. The plain socket sends the same bytes
between two processes, into memory that is there already. Turns alternate, so that what
else the machine does meets all alike; the least of all turns is printed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("FXFLOW_NUM_CPU_DEVICES", "2")

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow
from fxflow.dataflow import on

MB = 10**6
HOPS = 40


def null_step(cluster: Any, count: int) -> Callable[[], None]:
    """Returns a step with a null fragment in each of some tasks."""

    def f(xs: Any) -> Any:
        found = []
        for i, x in enumerate(xs):
            with on(f"/task:{i}"):
                found.append(x + 1)
        return found

    step = dataflow.jit(f, devices=cluster, donate_argnums=0)
    state = [step([fnp.zeros(()) for _ in range(count)])]

    def turn() -> None:
        state[0] = step(state[0])
        for x in state[0]:
            x.block_until_ready()

    return turn


def hops(where: list[str], count: int, devices: Any = None) -> Callable[[], None]:
    """Returns a step in which a number goes from place to place."""

    def f(x: Any) -> Any:
        for i in range(count):
            with on(where[i % len(where)]):
                x = x + 1
        return x

    step = dataflow.jit(f, devices=devices)
    state = [step(fnp.zeros(()))]

    def turn() -> None:
        state[0] = step(state[0])
        state[0].block_until_ready()

    return turn


def large_value(cluster: Any, nbytes: int) -> Callable[[], None]:
    """Returns a step in which a value of task 0 goes to task 1."""
    with_value = fnp.zeros(nbytes // 4)

    def make(x: Any) -> Any:
        with on("/task:0"):
            return x + 1

    def f(x: Any) -> Any:
        with on("/task:1"):
            return x[0] + 1

    x = dataflow.jit(make, devices=cluster)(with_value)
    step = dataflow.jit(f, devices=cluster)

    def turn() -> None:
        step(x).block_until_ready()

    return turn


def _answer(pipe: Any, nbytes: int) -> None:
    memory = memoryview(bytearray(nbytes))
    with socket.create_connection(pipe.recv()) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            left = memory
            while left:
                count = connection.recv_into(left)
                if not count:
                    return
                left = left[count:]
            connection.sendall(b"\1")


def plain_socket(nbytes: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """Returns a turn that sends bytes through a socket, and a function to end it."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_answer, args=(there, nbytes), daemon=True
    )
    process.start()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here.send(listener.getsockname())
        connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = memoryview(bytearray(nbytes))

    def turn() -> None:
        connection.sendall(data)
        connection.recv(1)

    def end() -> None:
        connection.close()
        process.join(10)

    return turn, end


def least(turns: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Returns the least microseconds of each turn, which alternate."""
    found = dict.fromkeys(turns, float("inf"))
    for turn in turns.values():
        for _ in range(5):
            turn()
    for _ in range(rounds):
        for name, turn in turns.items():
            begun = time.perf_counter()
            turn()
            found[name] = min(found[name], time.perf_counter() - begun)
    return {name: seconds * 1e6 for name, seconds in found.items()}


def measured(rounds: int) -> dict[str, float]:
    """Returns microseconds by name."""
    here = [f"/device:cpu:{i}" for i in (0, 1)]
    tasks = ["/task:0", "/task:1"]
    plain = {"4 B": plain_socket(4), "10 MB": plain_socket(10 * MB)}
    with dataflow.local_cluster(8) as cluster:
        found = least(
            {
                "jit": jitted(),
                "here, 20 fragments": hops(here, 20),
                "here, 40 fragments": hops(here, 40),
                "null step, 2 tasks": null_step(cluster, 2),
                "null step, 4 tasks": null_step(cluster, 4),
                "null step, 8 tasks": null_step(cluster, 8),
                "hops, 2": hops(tasks, 2, cluster),
                "hops, many": hops(tasks, 2 + HOPS, cluster),
                "value, 4 B": large_value(cluster, 4),
                "value, 10 MB": large_value(cluster, 10 * MB),
                "socket, 4 B": plain["4 B"][0],
                "socket, 10 MB": plain["10 MB"][0],
            },
            rounds,
        )
    for _, end in plain.values():
        end()
    found["null fragment, one process"] = (
        found["here, 40 fragments"] - found["here, 20 fragments"]
    ) / 20
    found["edge and fragment, 4 B"] = (found["hops, many"] - found["hops, 2"]) / HOPS
    found["edge, 10 MB"] = found["value, 10 MB"] - found["value, 4 B"]
    return found


def jitted() -> Callable[[], None]:
    """Returns a call of a null function of `fxflow.jit`."""
    f = fxflow.jit(lambda x: x + 1)
    state = [f(fnp.zeros(()))]

    def turn() -> None:
        state[0] = f(state[0])
        state[0].block_until_ready()

    return turn


def table(found: dict[str, float]) -> str:
    """Returns the figures as Markdown."""
    two, eight = found["null step, 2 tasks"], found["null step, 8 tasks"]
    rows = [
        ("a call of `jit`", found["jit"], ""),
        ("null fragment, one process", found["null fragment, one process"], "≤ 30 µs"),
        ("null step over 2 tasks", two, "≤ 400 µs"),
        ("null step over 4 tasks", found["null step, 4 tasks"], ""),
        ("null step over 8 tasks", eight, f"{eight / two:.1f} × of 2 tasks (≤ 2)"),
        ("edge of 4 B, with its fragment", found["edge and fragment, 4 B"], "≤ 60 µs"),
        ("edge of 10 MB", found["edge, 10 MB"], "≥ 2 × as fast as a socket"),
        ("plain socket, 4 B and an answer", found["socket, 4 B"], ""),
        ("plain socket, 10 MB", found["socket, 10 MB"], ""),
    ]
    lines = ["| what | µs | bar |", "| --- | ---: | --- |"]
    lines += [f"| {what} | {us:,.0f} | {bar} |" for what, us, bar in rows]
    return "\n".join(lines)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = measured(options.rounds)
    print(table(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
