"""What a step costs that computes nothing: push, update, pull.

    python benchmarks/parameter_server/null_step.py
    python benchmarks/parameter_server/null_step.py --workers 1 2 --sizes 4 1000000

One server and some workers, each a process (`fxflow launch --ps 1 --workers n`);
`asynchronous()`, plain SGD, parameters of one tensor. The gradient is a constant, so a
step is what the server and the wire cost. A plain socket echoes as many bytes both ways
beside it. Times are of a worker's steps: median, and the tenth from below; and CPU
time of all threads of a worker and of the server for each step, which other work on the
machine changes less.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

STEPS = 1000


def work(size: int) -> None:
    """A worker: makes steps and prints their times."""
    from fxflow import optim
    from fxflow.distributed.parameter_server import (
        asynchronous,
        messages,
        parameter_server,
    )

    server = parameter_server(
        lambda w, batch: (w * batch).sum(), optim.sgd(0.1), consistency=asynchronous()
    )
    state = server.init(np.zeros(max(1, size // 4), np.float32))
    one = np.float32(1)
    count = max(10, min(STEPS, 2_000_000_000 // max(size, 1)))
    for _ in range(5):
        state, _ = server.step(state, one)
    client = server._run.client
    pid = client.ask({0: messages.Hello(0)})[0].fields.pid
    times, cpu = [], [-time.process_time(), -processor_time(pid)]
    for _ in range(count):
        start = time.perf_counter()
        state, _ = server.step(state, one)
        times.append(time.perf_counter() - start)
    cpu = [cpu[0] + time.process_time(), cpu[1] + processor_time(pid)]
    server.close()
    print(json.dumps([times, [seconds / count for seconds in cpu]]), flush=True)


def processor_time(pid: int) -> float:
    """Returns the CPU seconds of a process of this machine."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def launched(workers: int, size: int) -> tuple[list[float], float, float]:
    """Returns the times of all workers' steps, in seconds, and CPU seconds of a step.

    Those are the worker's and the server's; workers are assumed to run side by side.
    """
    command = [
        *(sys.executable, "-m", "fxflow", "launch", "--ps", "1"),
        *("--workers", str(workers), "--timeout", "300"),
        *(__file__, "--as-worker", str(size)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    lines = [line.partition("] ")[2] for line in done.stdout.splitlines()]
    found = [json.loads(line) for line in lines]
    worker, server = np.mean([cpu for _, cpu in found], axis=0)
    return sorted(t for times, _ in found for t in times), worker, server / workers


def echoed(size: int) -> list[float]:
    """Returns the times in which a plain socket takes bytes there and back."""
    listener = socket.create_server(("127.0.0.1", 0))

    def echo() -> None:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        buffer = memoryview(bytearray(size))
        with connection:
            while read(connection, buffer):
                connection.sendall(buffer)

    def read(connection: socket.socket, buffer: memoryview) -> bool:
        at = 0
        while at < len(buffer):
            got = connection.recv_into(buffer[at:])
            if not got:
                return False
            at += got
        return True

    thread = threading.Thread(target=echo, daemon=True)
    thread.start()
    data = memoryview(bytearray(size))
    times = []
    with socket.create_connection(listener.getsockname()) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(max(10, min(STEPS, 1_000_000_000 // max(size, 1)))):
            start = time.perf_counter()
            connection.sendall(data)
            read(connection, data)
            times.append(time.perf_counter() - start)
    thread.join()
    listener.close()
    return sorted(times)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    sizes = [4, 1_000_000, 10_000_000, 100_000_000]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes)
    parser.add_argument("--as-worker", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_worker is not None:
        work(given.as_worker)
        return
    root = str(Path(__file__).resolve().parents[2])
    os.environ["PYTHONPATH"] = root
    print(
        "| bytes | workers | a step, ms | tenth | plain socket, ms | of it | "
        "worker CPU, ms | server CPU, ms |"
    )
    print("| --: | --: | --: | --: | --: | --: | --: | --: |")
    for size in given.sizes:
        plain = echoed(size)
        socket_ms = plain[len(plain) // 2] * 1e3
        for workers in given.workers:
            found, worker, server = launched(workers, size)
            times = [t * 1e3 for t in found]
            median, tenth = times[len(times) // 2], times[len(times) // 10]
            share = socket_ms / median
            print(
                f"| {size:,} | {workers} | {median:.3g} | {tenth:.3g} | "
                f"{socket_ms:.3g} | {share:.2f} | {worker * 1e3:.3g} | "
                f"{server * 1e3:.3g} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
