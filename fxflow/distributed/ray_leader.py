"""Runs a process of a run in a Ray actor.

Ray receives this module by value, so that actors do not import fxflow. An actor starts
its process as the launcher starts one. When the actor's process ends, the kernel kills
the process and the rest of its group.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from typing import Any

from fxflow.distributed.processes import Process

#: The longest time in seconds that `follow` waits.
_WAIT = 1.0
#: The most bytes of output that are read at once, and that are kept for `follow`.
_PIECE, _KEPT = 1 << 16, 1 << 22


class Leader:
    """Starts a process, returns its output and exit status, and forwards signals.

    It is the class of an actor with several threads: `follow` waits in one of them.
    """

    def __init__(self) -> None:
        #: The number of the process's last start; 0 before the first.
        self._run = 0
        self._process: Process | None = None
        self._pieces: list[tuple[int, bytes]] = []
        self._held = 0
        self._code: int | None = None
        self._changed = threading.Condition()

    def place(self, port: int) -> tuple[str, int]:
        """Returns this machine's address in Ray's network, and a free port.

        Args:
          port: the first port that is tried.
        """
        import ray

        host = str(ray.util.get_node_ip_address())
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        for number in range(port, min(port + 4096, 65536)):
            with contextlib.suppress(OSError), socket.socket(family) as probe:
                probe.bind((host, number))
                return host, number
        raise OSError(f"{host} has no free port of at least {port}")

    def begin(self, run: int, spec: dict[str, Any]) -> None:
        """Starts the process, unless start number `run` has already happened.

        Args:
          run: the number of this start, from 1.
          spec: its `command`, `environment` and `folder`.
        """
        with self._changed:
            if self._run == run:
                return
            self._run, self._code, self._held = run, None, 0
            self._pieces = []
        # The kernel kills the process when the thread that started it ends. So start it
        # in a thread that waits for it, not in one of Ray's threads.
        threading.Thread(target=self._lead, args=(run, spec), daemon=True).start()

    def _lead(self, run: int, spec: dict[str, Any]) -> None:
        folder = spec["folder"] if os.path.isdir(spec["folder"]) else None
        process = Process(
            spec["command"], spec["environment"], folder=folder, output=True
        )
        if folder is None:
            text = f"{spec['folder']}: no such folder; running in {os.getcwd()}\n"
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
        process.kill()  # its remaining descendants
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
            # Like a full pipe, block the process until its output is fetched.
            self._changed.wait_for(lambda: self._held < _KEPT)
            self._pieces.append((which, piece))
            self._held += len(piece)
            self._changed.notify_all()

    def follow(self, run: int) -> tuple[list[tuple[int, bytes]], int | None] | None:
        """Returns the process's new output and its exit status.

        Waits for either for at most a second.

        Args:
          run: the number of the start.

        Returns:
          Pieces of output (stream 1 or 2, bytes), and the exit status as `subprocess`
          reports it (None while the process runs). None instead of both if this actor
          did not make that start, because Ray has restarted the actor.
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
        """Sends a signal to the process and its descendants.

        Args:
          run: the number of the start; a process of another start is not signalled.
          number: the signal's number.
        """
        end = time.monotonic() + 5
        with self._changed:
            while self._run == run and self._code is None:
                if self._process is not None and self._process.poll() is None:
                    self._process.send(number)
                    return
                if time.monotonic() > end:
                    return
                self._changed.wait(0.05)  # it is about to start
