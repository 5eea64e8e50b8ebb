"""What a message costs, there and back, beside a plain socket with the same bytes.

    python benchmarks/parameter_server/transport.py [--seconds 2] [--json FILE]

A push of n bytes goes to another process of this machine, and as many come back as
parameters. The plain socket does the same with `sendall` and `recv_into`, into memory
that is there already. Turns alternate, so that what else the machine does meets all
alike; medians and best of all turns are printed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.keys import Keys, new_keys
from fxflow.distributed.messages.zeromq import Hub

MB = 10**6
SIZES = (16, MB, 10 * MB, 100 * MB)

Turn = Callable[[int], None]


def serve_messages(pipe: Any, address: str, keys: Keys | None) -> None:
    """Answers each push with parameters of its size; ends with a leave."""
    answers = {n: np.ones(n, np.uint8) for n in SIZES}
    with Hub(keys) as hub:
        listener = hub.listen(address)
        pipe.send(listener.address)
        while True:
            hub.wait(60)
            for peer, message in listener.receive():
                if message.kind == "ping":
                    return
                pushed = message.arrays["g"]
                answer = Message("control", arrays={"w": answers[pushed.nbytes]})
                listener.send(peer, answer)


def serve_socket(pipe: Any) -> None:
    """The same without messages: a size, and as many bytes."""
    memory = {n: np.ones(n, np.uint8) for n in SIZES}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pipe.send(listener.getsockname())
        connection, _ = listener.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while n := int.from_bytes(connection.recv(8, socket.MSG_WAITALL), "little"):
            fill(connection, memory[n])
            connection.sendall(memory[n])


def fill(connection: socket.socket, memory: Any) -> None:
    view = memoryview(memory)
    while view:
        view = view[connection.recv_into(view) :]


class Messages:
    """Turns through messages and transport."""

    def __init__(self, name: str, address: str, keys: Keys | None) -> None:
        self.name = name
        self._pushes = {n: np.ones(n, np.uint8) for n in SIZES}
        ours, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(
            target=serve_messages, args=(theirs, address, keys)
        )
        self._process.start()
        self._hub = Hub(keys)
        self._dialer = self._hub.dial(ours.recv(), b"worker")

    def turn(self, n: int) -> None:
        self._dialer.send(Message("control", arrays={"g": self._pushes[n]}))
        while not (came := self._dialer.receive(1)):
            self._hub.wait(60)
        assert came[0].arrays["w"].nbytes == n

    def close(self) -> None:
        self._dialer.send(Message("ping"))
        self._process.join()
        self._hub.close()


class Socket:
    """Turns through a plain socket."""

    name = "plain socket"

    def __init__(self) -> None:
        self._memory = {n: np.ones(n, np.uint8) for n in SIZES}
        ours, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(
            target=serve_socket, args=(theirs,)
        )
        self._process.start()
        self._socket = socket.create_connection(ours.recv())
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def turn(self, n: int) -> None:
        self._socket.sendall(n.to_bytes(8, "little"))
        self._socket.sendall(self._memory[n])
        fill(self._socket, self._memory[n])

    def close(self) -> None:
        self._socket.sendall(bytes(8))
        self._process.join()
        self._socket.close()


def measure(
    turns: dict[str, Turn], seconds: float
) -> dict[str, dict[int, list[float]]]:
    """Seconds of each turn, by way and number of bytes."""
    taken: dict[str, dict[int, list[float]]] = {
        name: {n: [] for n in SIZES} for name in turns
    }
    for n in SIZES:
        for turn in turns.values():
            for _ in range(3 if n > MB else 50):
                turn(n)
        end = time.perf_counter() + seconds * len(turns)
        while time.perf_counter() < end:
            for name, turn in turns.items():
                for _ in range(20 if n == 16 else 1):
                    begin = time.perf_counter()
                    turn(n)
                    taken[name][n].append(time.perf_counter() - begin)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="per size and way")
    parser.add_argument("--json", type=Path, help="where the numbers go, too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ways = [
            Socket(),
            Messages("tcp", "tcp://127.0.0.1:0", None),
            Messages("ipc", f"ipc://{folder}/s", None),
            Messages("tcp, keys", "tcp://127.0.0.1:0", new_keys()),
        ]
        try:
            taken = measure({way.name: way.turn for way in ways}, arguments.seconds)
        finally:
            for way in ways:
                way.close()
    print("| way | 16 B, µs | " + " | ".join(f"{n // MB} MB, GB/s" for n in SIZES[1:]))
    print("| --- " * (1 + len(SIZES)) + "|")
    for name, sizes in taken.items():
        median, best = (
            {n: f(t) for n, t in sizes.items()} for f in (statistics.median, min)
        )
        cells = [f"{median[16] * 1e6:.0f} (best {best[16] * 1e6:.0f})"]
        for n in SIZES[1:]:
            share = statistics.median(taken["plain socket"][n]) / median[n]
            cells.append(
                f"{2 * n / median[n] / 1e9:.2f} (best {2 * n / best[n] / 1e9:.2f}; "
                f"{share:.2f} of the socket)"
            )
        print(f"| {name} | " + " | ".join(cells) + " |")
    if arguments.json:
        arguments.json.write_text(json.dumps(taken))


if __name__ == "__main__":
    sys.exit(main())
