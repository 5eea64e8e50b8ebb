"""What leads a process of a run within an actor of Ray.

Ray gets this module by value, so that an actor's process imports nothing of fxflow: the
process that it starts is one as the launcher's own. Both end together: the kernel kills
the process when the actor's ends, and what is left of its group goes with it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from typing import Any

from fxflow.distributed.processes import Process

#: Seconds that `follow` waits for something to tell.
_WAIT = 1.0
#: Bytes of output that are read at once, and that are kept until they are fetched.
_PIECE, _KEPT = 1 << 16, 1 << 22


class Leader:
    """Starts a process, tells of its output and its end, and passes signals on.

    The body of an actor with several threads: `follow` waits in one of them.
    """

    def __init__(self) -> None:
        #: Which start of the process this is; 0 before the first.
        self._run = 0
        self._process: Process | None = None
        self._pieces: list[tuple[int, bytes]] = []
        self._held = 0
        self._code: int | None = None
        self._changed = threading.Condition()

    def place(self, port: int) -> tuple[str, int]:
        """Returns this machine's address in Ray's network, and a free port.

        Args:
          port: the first that is tried.
        """
        import ray

        host = str(ray.util.get_node_ip_address())
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        for number in range(port, min(port + 4096, 65536)):
            with contextlib.suppress(OSError), socket.socket(family) as probe:
                probe.bind((host, number))
                return host, number
        raise OSError(f"{host} has no free port of at least {port}")

    def begin(self, run: int, order: dict[str, Any]) -> None:
        """Starts the process, unless this run of it has begun.

        Args:
          run: which start this is, from 1.
          order: its `command`, `environment` and `folder`.
        """
        with self._changed:
            if self._run == run:
                return
            self._run, self._code, self._held = run, None, 0
            self._pieces = []
        # The kernel's signal comes when the thread that started the process ends, so
        # that is a thread that waits for it, not one of Ray's.
        threading.Thread(target=self._lead, args=(run, order), daemon=True).start()

    def _lead(self, run: int, order: dict[str, Any]) -> None:
        folder = order["folder"] if os.path.isdir(order["folder"]) else None
        process = Process(
            order["command"], order["environment"], folder=folder, output=True
        )
        if folder is None:
            text = f"{order['folder']}: no such folder; running in {os.getcwd()}\n"
            self._keep(2, text.encode())
        with self._changed:
            self._process = process
            self._changed.notify_all()
        readers = [
            threading.Thread(target=self._read, args=(which, pipe), daemon=True)
            for which, pipe in ((1, process.stdout), (2, process.stderr))
        ]
        for reader in readers:
            reader.start()
        code = process.ended.result()
        process.kill()  # what it left behind
        for reader in readers:
            reader.join(5)
        with self._changed:
            self._code = code
            self._changed.notify_all()

    def _read(self, which: int, pipe: Any) -> None:
        with pipe:
            while piece := pipe.read1(_PIECE):
                self._keep(which, piece)

    def _keep(self, which: int, piece: bytes) -> None:
        with self._changed:
            # It may not be fetched: a pipe that is full holds its writer.
            self._changed.wait_for(lambda: self._held < _KEPT)
            self._pieces.append((which, piece))
            self._held += len(piece)
            self._changed.notify_all()

    def follow(self, run: int) -> tuple[list[tuple[int, bytes]], int | None] | None:
        """Returns what the process has written since, and how it ended.

        Waits a second for that at most.

        Args:
          run: which start of it is meant.

        Returns:
          Pieces of output (stream 1 or 2, bytes), and the exit status as `subprocess`
          has it or None while it runs; None if this run has not begun here: Ray has
          started the actor again.
        """
        with self._changed:
            if self._run != run:
                return None
            self._changed.wait_for(
                lambda: self._pieces or self._code is not None, _WAIT
            )
            pieces, self._pieces, self._held = self._pieces, [], 0
            self._changed.notify_all()
            return pieces, self._code

    def send(self, run: int, number: int) -> None:
        """Sends a signal to the process and what it started.

        Args:
          run: which start of it is meant; another is spared.
          number: of the signal.
        """
        end = time.monotonic() + 5
        with self._changed:
            while self._run == run and self._code is None:
                if self._process is not None and self._process.poll() is None:
                    self._process.send(number)
                    return
                if time.monotonic() > end:
                    return
                self._changed.wait(0.05)  # it is about to begin
