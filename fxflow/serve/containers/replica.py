"""Starts, calls, monitors and stops one process of a model.

A process that exits, hangs, or exceeds its memory limit is killed and restarted, with
exponential backoff (`Backoff`). The call in flight fails with the reason.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fxflow.distributed.messages.channel import AsyncChannel, Message
from fxflow.distributed.processes import Backoff, Process
from fxflow.errors import ServeError
from fxflow.serve.containers.regions import Region, Stream, aligned, read_outputs
from fxflow.serve.signatures import ModelSignature, nbytes_of, to_bytes

# -- placement -------------------------------------------------------------------------

_VARIABLES = {"cuda": "CUDA_VISIBLE_DEVICES", "rocm": "HIP_VISIBLE_DEVICES"}
_DEVICE = re.compile(r"(cuda|rocm):(\d+(?:,\d+)*)|cpu(?::(\d[\d,-]*))?")


class ProcessPlacement(NamedTuple):
    """The accelerators and cores of a process.

    A device is ``cuda:1`` (or ``cuda:0,1``, ``rocm:0``), the only accelerator that the
    process then sees, whatever library it uses; or ``cpu``; or ``cpu:0-3`` for some of
    the cores, so that processes do not compete for them.

    Attributes:
      environment: environment variables that select the visible accelerators.
      cores: cores that the process may use; empty: all.
    """

    environment: dict[str, str]
    cores: frozenset[int]


def placement_of(device: str) -> ProcessPlacement:
    """Returns the placement for a device's name.

    Args:
      device: a name such as ``cuda:0`` or ``cpu:0-3``; empty: the server's own devices.

    Returns:
      The placement.

    Raises:
      ServeError: `device` is not a device's name.

    Example:
      >>> placement_of("cuda:1")
      ProcessPlacement(environment={'CUDA_VISIBLE_DEVICES': '1'}, cores=frozenset())
      >>> sorted(placement_of("cpu:0-2,5").cores)
      [0, 1, 2, 5]
    """
    if not device:
        return ProcessPlacement({}, frozenset())
    match = _DEVICE.fullmatch(device)
    cores: set[int] = set()
    for part in (match[3] or "").split(",") if match else ():
        if span := re.fullmatch(r"(\d+)(?:-(\d+))?", part):
            cores |= set(range(int(span[1]), int(span[2] or span[1]) + 1))
        elif part:
            match = None
    if match is None or (match[3] and not cores):
        raise ServeError(
            "a device must be like 'cuda:0', 'cuda:0,1', 'rocm:0', 'cpu' or 'cpu:0-3', "
            f"got {device!r}"
        )
    if match[1]:
        return ProcessPlacement({_VARIABLES[match[1]]: match[2]}, frozenset())
    return ProcessPlacement(dict.fromkeys(_VARIABLES.values(), ""), frozenset(cores))


def move(pid: int, placement: ProcessPlacement) -> None:
    """Restricts a process to its cores, if the system supports it.

    Args:
      pid: id of a process that has just started.
      placement: its placement.

    Raises:
      ServeError: there are no such cores.
    """
    if not placement.cores or not hasattr(os, "sched_setaffinity"):
        return
    try:
        os.sched_setaffinity(pid, placement.cores)
    except ProcessLookupError:
        return  # `Replica` handles its exit
    except OSError as error:
        raise ServeError(
            f"the process cannot run on cores {sorted(placement.cores)}: "
            f"{error.strerror}"
        ) from None


_log = logging.getLogger("fxflow.serve")
#: Seconds between two checks of a process's memory.
_MEMORY_INTERVAL = 0.1
#: Seconds that a process has to exit after its connection closed.
_EXIT_TIMEOUT = 0.5
_ANYWHERE = placement_of("")


@dataclass(frozen=True)
class ModelSource:
    """The model that a process loads, and the process's limits.

    Attributes:
      source: ``module:name``, ``path/to/file.py:name`` or ``path/to/model.fx``.
      factory, arguments, inputs, outputs, batched: as for `load_model`.
      max_batch: most rows of a batch.
      memory: most bytes of resident memory of the process; 0: no limit. Enforced only
        on Linux.
      load_timeout: seconds that loading may take, including compilation.
      max_batch_bytes: most bytes of a batch and its results together.
      streams: most open streams of a process; only for generators.
      environment: environment variables of the process.
    """

    source: str
    factory: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    batched: bool = True
    max_batch: int = 64
    memory: int = 0
    load_timeout: float = 120.0
    max_batch_bytes: int = 1 << 28
    streams: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)

    def load_message(self) -> dict[str, Any]:
        """Returns the first message to the process."""
        return {
            "source": self.source,
            "factory": self.factory,
            "arguments": dict(self.arguments),
            "inputs": dict(self.inputs),
            "outputs": list(self.outputs),
            "batched": self.batched,
            "max_batch": self.max_batch,
        }


class BatchResult(NamedTuple):
    """The result of a batch.

    Attributes:
      outputs: the outputs, in order.
      seconds: seconds that the process took.
      age: seconds since the data that it used was read from where it changes; None:
        nothing changes.
    """

    outputs: list[np.ndarray[Any, Any]]
    seconds: float
    age: float | None


class Replica:
    """Keeps one process of a model running.

    Args:
      source: the model to load.
      changed: called when `ready` changes.
      placement: devices and cores of the process.

    Attributes:
      signature: the model's signature; None until it was first ready.
      ready: whether the process can be called.
      reason: why it is not ready.
      starts: number of process starts.
      failed: whether the last process exited before it was ready.
    """

    def __init__(
        self,
        source: ModelSource,
        changed: Callable[[], None] = lambda: None,
        placement: ProcessPlacement = _ANYWHERE,
    ) -> None:
        self._source = source
        self._placement = placement
        self._changed = changed
        self.signature: ModelSignature | None = None
        self.ready: bool = False
        self.reason: str = "it is loading"
        self.starts: int = 0
        self.failed: bool = False
        self._backoff = Backoff()
        #: When it became ready; how long loading took; when it should be ready again.
        self._ready_at: float | None = None
        self._loading = math.inf
        self._expected = math.inf
        self._process: Process | None = None
        self._regions: list[Region] = []
        self._streams: dict[int, Stream] = {}
        self._connection: AsyncChannel | None = None
        self._answer: asyncio.Future[Message] | None = None
        self._calls = 0
        self._closing = False
        self._task: asyncio.Task[None] | None = None
        self._kill_reason = ""

    @property
    def pid(self) -> int | None:
        """The process's id, if there is one."""
        return self._process.pid if self._process else None

    def ready_in(self, now: float) -> float:
        """Estimates the seconds until it is ready, from how long loading took before.

        Args:
          now: the time by `time.monotonic`.

        Returns:
          Seconds; infinity if it was never ready or failed to load again.
        """
        return 0.0 if self.ready else max(0.0, self._expected - now)

    def start(self) -> None:
        """Starts the process and its supervision, in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._supervise())

    async def close(self) -> None:
        """Stops the process; a call in flight fails."""
        self._closing = True
        self.kill("the server is shutting down")
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def kill(self, why: str) -> None:
        """Kills the process.

        Args:
          why: the reason, for the calls that fail.
        """
        if self._process is not None and self._process.poll() is None:
            self._kill_reason = why
            self._process.kill()

    # -- the process -------------------------------------------------------------------

    async def _supervise(self) -> None:
        while not self._closing:
            self._ready_at = None
            try:
                await self._run_once()
            except (ServeError, OSError) as error:
                self.reason = str(error)
                self.failed = self._ready_at is None
            finally:
                self._clean_up()
            now = time.monotonic()
            if self._ready_at is None:
                self._loading = math.inf  # it may never be ready again
            ran = 0.0 if self._ready_at is None else now - self._ready_at
            self._backoff = self._backoff.after(ran)
            self._expected = now + self._backoff.seconds + self._loading
            if self.signature and not self._closing:  # else `start` reports it
                _log.warning(
                    "%s: %s; restarting in %.1f s",
                    *(self._source.source, self.reason, self._backoff.seconds),
                )
            await asyncio.sleep(self._backoff.seconds)

    async def _run_once(self) -> None:
        """Starts a process and waits until it exits."""
        self.starts += 1
        self._kill_reason = ""
        begun = time.monotonic()
        ours, theirs = socket.socketpair()
        limit = self._source.max_batch_bytes
        self._regions = [Region(limit=limit) for _ in range(self._source.streams)]
        files = [region.fd for region in self._regions]
        command = [sys.executable, "-m", "fxflow.serve.containers.worker"]
        command += [str(theirs.fileno()), ",".join(map(str, files)), str(limit)]
        with theirs:
            self._process = Process(
                command,
                {**self._placement.environment, **self._source.environment},
                pass_fds=(theirs.fileno(), *files),
            )
        first: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        def on_message(message: Message) -> None:
            if first.done():
                self._on_message(message)
            else:
                first.set_result(message)

        self._connection = AsyncChannel(on_message)
        await self._connection.open(ours)
        move(self._process.pid, self._placement)
        watch = asyncio.create_task(self._watch(self._process))
        try:
            self._send(self._source.load_message())
            await asyncio.wait(
                [first, self._connection.over],
                timeout=self._source.load_timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not first.done():
                if self._connection.over.done():
                    raise ServeError(await self._exit_reason("while loading"))
                raise ServeError(
                    f"loading took more than {self._source.load_timeout:g} s"
                )
            message = first.result()
            if "failed" in message:
                raise ServeError(f"it cannot be loaded: {message['failed']}")
            self.signature = ModelSignature.from_json(message["ready"])
            self.ready, self.reason = True, ""
            self.failed = False
            self._ready_at = time.monotonic()
            self._loading = self._ready_at - begun
            self._changed()
            await self._connection.over
            # Send nothing more while waiting for the exit status.
            self.ready = False
            self._expected = time.monotonic() + self._loading
            raise ServeError(await self._exit_reason(""))
        finally:
            watch.cancel()

    def _on_message(self, message: Message) -> None:
        if "stream" in message:
            for stream in self._streams.values():
                if stream.number == message["stream"]:
                    stream.on_message(message)
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result(message)

    async def _exit_reason(self, when: str) -> str:
        process = self._process
        assert process is not None
        # The process closes its end of the socket shortly before it exits.
        await asyncio.wait([asyncio.wrap_future(process.ended)], timeout=_EXIT_TIMEOUT)
        code = process.poll()
        how = f"by signal {-code}" if code and code < 0 else f"with status {code}"
        why = self._kill_reason and f": {self._kill_reason}"
        return " ".join(f"its process ended {when} {how}".split()) + why

    def _clean_up(self) -> None:
        """Kills the process, frees its resources, and fails its calls."""
        self.ready = False
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        for region in self._regions:
            region.close()
        self._regions = []
        why = self.reason or self._kill_reason
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ServeError(why, 500))
        for stream in self._streams.values():
            stream.fail(why)
        self._streams = {}
        self._changed()

    async def _watch(self, process: Process) -> None:
        """Kills the process when it exceeds its memory limit."""
        limit = self._source.memory
        while limit and process.poll() is None:
            used = process.memory  # including the shared region, with its own batch
            if used > limit:
                self.kill(
                    f"it used {used >> 20} MiB of memory, and the limit is "
                    f"{limit >> 20} MiB"
                )
                return
            await asyncio.sleep(_MEMORY_INTERVAL)

    # -- calls -------------------------------------------------------------------------

    async def call(
        self, parts: list[list[np.ndarray[Any, Any]]], rows: int, timeout: float
    ) -> BatchResult:
        """Runs one batch; one call at a time.

        Args:
          parts: for each input, the arrays to concatenate.
          rows: total number of rows.
          timeout: seconds after which the process counts as hung and is killed.

        Returns:
          The outputs, and the time.

        Raises:
          ServeError: the model raised, exited or hung, or refuses the inputs (status
            400); or the batch is too large.
        """
        signature = self._ready_signature()
        region = self._regions[0]
        tensors = self._write(region, parts, signature)
        self._calls += 1
        number = self._calls
        loop = asyncio.get_running_loop()
        answer = self._answer = loop.create_future()
        self._send({"call": number, "rows": rows, "tensors": tensors})
        timer = loop.call_later(timeout, self._time_out, answer, timeout)
        try:
            message = await answer
        finally:
            timer.cancel()
            self._answer = None
        if "error" in message:
            status = int(message.get("status", 500))
            words = str(message["message"])
            if status == 500:
                raise ServeError(f"the model failed: {words}", 500)
            raise ServeError(words.removeprefix("ServeError: "), status, 1.0)
        try:
            if message["done"] != number:
                raise ValueError(f"answer {message['done']} to call {number}")
            outputs = read_outputs(region, signature.outputs, message["tensors"])
            return BatchResult(outputs, float(message["seconds"]), message.get("age"))
        except (KeyError, TypeError, ValueError, ServeError) as error:
            self.kill(f"its answer is malformed: {error}")
            raise ServeError(f"the model's answer is malformed: {error}", 500) from None

    def _time_out(self, answer: asyncio.Future[Message], timeout: float) -> None:
        if not answer.done():
            self.kill(f"it did not answer within {timeout:g} s")
            words = f"the model did not answer within {timeout:g} s"
            answer.set_exception(ServeError(words, 504))

    @property
    def streams(self) -> int:
        """The number of open streams."""
        return len(self._streams)

    @property
    def room(self) -> int:
        """The number of streams that can still be opened."""
        return self._source.streams - len(self._streams) if self.ready else 0

    def open(self, arrays: list[np.ndarray[Any, Any]], rows: int) -> Stream:
        """Starts a generator; there must be room.

        Args:
          arrays: the inputs, in order.
          rows: number of rows of each.

        Returns:
          The stream of its results, which the caller ends with `end`.

        Raises:
          ServeError: the process exited, or the inputs are too large.
        """
        signature = self._ready_signature()
        slot = next(k for k in range(len(self._regions)) if k not in self._streams)
        region = self._regions[slot]
        tensors = self._write(region, [[array] for array in arrays], signature)
        self._calls += 1
        stream = Stream(self._calls, slot, region, signature, self._send)
        self._send(
            {"stream": self._calls, "slot": slot, "rows": rows, "tensors": tensors}
        )
        self._streams[slot] = stream
        return stream

    async def end(self, stream: Stream, timeout: float) -> None:
        """Ends a stream, and makes room for another.

        Args:
          stream: the result of `open`.
          timeout: seconds that the process has to end the stream, before it counts as
            hung and is killed.
        """
        stream.stop()
        try:
            async with asyncio.timeout(timeout):
                await stream.over.wait()
        except TimeoutError:
            self.kill(f"it did not end a stream within {timeout:g} s")
            return
        if self._streams.get(stream.slot) is stream:
            del self._streams[stream.slot]

    def _ready_signature(self) -> ModelSignature:
        if not self.ready or self.signature is None:
            raise ServeError(f"the model is not ready: {self.reason}", 503, 1.0)
        return self.signature

    def _send(self, message: Message) -> None:
        if self._connection is not None:
            self._connection.send(message)

    @staticmethod
    def _write(
        region: Region,
        parts: list[list[np.ndarray[Any, Any]]],
        signature: ModelSignature,
    ) -> list[list[Any]]:
        """Copies a batch into the region, and returns where its tensors are."""
        tensors: list[list[Any]] = []
        strings: dict[int, bytes] = {}
        at = 0
        for k, (spec, arrays) in enumerate(zip(signature.inputs, parts, strict=True)):
            shape = arrays[0].shape
            if len(arrays) > 1:
                shape = (sum(len(array) for array in arrays), *shape[1:])
            if spec.datatype == "BYTES":
                strings[k] = b"".join(map(to_bytes, arrays))
                nbytes = len(strings[k])
            else:
                nbytes = nbytes_of(spec.datatype, shape)
            tensors.append([spec.datatype, list(shape), at, nbytes])
            at = aligned(at + nbytes)
        memory = region.view(max(at, 1))
        for k, (spec, arrays) in enumerate(zip(signature.inputs, parts, strict=True)):
            _, shape, offset, nbytes = tensors[k]
            piece = memory[offset : offset + nbytes]
            if k in strings:
                piece[:] = strings[k]
            elif len(arrays) == 1:
                np.frombuffer(piece, spec.dtype).reshape(shape)[...] = arrays[0]
            else:
                np.concatenate(
                    arrays, out=np.frombuffer(piece, spec.dtype).reshape(shape)
                )
        return tensors
