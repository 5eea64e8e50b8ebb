"""The runner: fragments on the devices of this process, a thread for each device.

The runtime's CPU client starts the programs of one thread one after the other, and lets
programs of two threads overlap on one device. So each device has one thread, which
starts its fragments in the plan's order: devices overlap, and none runs two at once.

A step's values are in slots, one for each value and place that needs it. A thread pulls
what its fragment takes from the slots of other places, once, and drops each value after
its last use.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from fxflow.core.arrays import Array, type_on
from fxflow.core.runtime.execute import Program, buffer_at
from fxflow.dataflow.placing import Place
from fxflow.dataflow.rows import FragmentRow, Part
from fxflow.devices import process
from fxflow.devices.callbacks import in_callback

#: Seconds after which a device's thread ends if it has nothing to do.
IDLE = 5.0


class Launch(NamedTuple):
    """A fragment, ready to be started in every step.

    Attributes:
      number: of the fragment.
      place: where it runs.
      program: compiled for the place.
      constants: what the program takes first.
      row: which slots it reads and writes, and what it waits for.
      wheres: what each of the row's pulls is copied to: the place, or the parts that
        the devices of a mesh have.
      awaited: whether the caller waits for it.
      describe: returns what it is, for messages.
      needs, tells, drops: those of the row.
    """

    number: int
    place: Place
    program: Program
    constants: tuple[Array, ...]
    row: FragmentRow
    wheres: tuple[Place, ...]
    awaited: bool
    describe: Callable[[], str]
    needs: tuple[int, ...]
    tells: tuple[int, ...]
    drops: tuple[int, ...]

    def run(self, step: StepRun) -> None:
        """Starts the fragment's program; its results are computed asynchronously.

        Args:
          step: whose values it takes and to which it adds its results.
        """
        row, arrays, values = self.row, list(self.constants), step.values
        for (slot, source), where in zip(row.pulls, self.wheres, strict=True):
            array = values[slot]
            if array is None and source >= 0:
                array = values[slot] = copied(values[source], where)
            arrays.append(array)
        outs = self.program(arrays)
        for slot, out in zip(row.results, outs, strict=True):
            values[slot] = out
        if row.sends or row.keeps or row.takes:
            step.share(row)
        for slot in row.frees:
            values[slot] = None


def copied(array: Array, place: Place) -> Array:
    """Returns the array at a place: itself if it is there, or a copy."""
    if array._type.placement is place:
        return array
    return Array(buffer_at(array, place), type_on(array.aval, place, True))


class StepRun:
    """One run of all fragments.

    Args:
      values: by slot; those of the arguments are there, the others None.
      threads: that take part.
      shared: how many places read each slot that several read.

    Attributes:
      started: indices of the fragments that have been started.
      done: where the caller waits: for indices of fragments, or None when a thread has
        nothing left to do.
      ended: ids of the rows of which nothing is left to do.
      error: what the first fragment that failed raised.
      stopped: whether the fragments that have not been started are left out.
    """

    __slots__ = (
        *("done", "ended", "error", "left"),
        *("started", "stopped", "threads", "values"),
    )

    left: dict[int, list[None]]
    stopped: bool
    threads: Sequence[Thread]
    values: list[Any]

    def __init__(
        self,
        values: list[Any],
        threads: Sequence[Thread] = (),
        shared: Iterable[tuple[int, int]] = (),
    ) -> None:
        self.values, self.threads = values, threads
        # A list to pop from, which is atomic, for each slot.
        self.left = {slot: [None] * count for slot, count in shared}
        self.started: set[int] = set()
        self.done: SimpleQueue[int | None] = SimpleQueue()
        self.ended: set[int] = set()
        self.error: BaseException | None = None
        self.stopped = False

    def stop(self, error: BaseException | None = None) -> None:
        """Leaves out the fragments that have not been started.

        Args:
          error: why.
        """
        self.error = self.error or error
        self.stopped = True
        for thread in self.threads:
            thread.wake()

    def share(self, row: FragmentRow) -> None:
        """Passes on what other processes need; a step in one process has nothing."""

    def row_ended(self, row: Sequence[Launch]) -> None:
        """Notes that a thread has nothing left to do for the step."""
        self.ended.add(id(row))
        self.done.put(None)

    def run(self, launch: Launch) -> bool:
        """Starts a fragment; returns whether it could be started."""
        try:
            launch.run(self)
        except BaseException as error:
            error.add_note(f"in {launch.describe()}")
            self.stop(error)
            return False
        for slot in launch.drops:
            left = self.left[slot]
            left.pop()
            if not left:
                self.values[slot] = None
        return True


class Thread:
    """Starts the fragments of one device, or of devices that meshes join, in order.

    It ends when it has had nothing to do for a while, and starts again when needed.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._orders: SimpleQueue[tuple[StepRun, Sequence[Launch]] | None] = (
            SimpleQueue()
        )
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._running = False

    def submit(self, step: StepRun, row: Sequence[Launch]) -> None:
        """Adds the row of a step to what the thread has to do."""
        with self._lock:
            self._orders.put((step, row))
            # An interrupt may have kept the thread from being started.
            if not self._running or self._thread is None or self._thread.ident is None:
                name = f"fxflow {self.name}"
                self._thread = threading.Thread(
                    target=self._serve, name=name, daemon=True
                )
                self._running = True
                self._thread.start()

    def wake(self) -> None:
        """Has the thread look again at what it waits for."""
        self._orders.put(None)

    def _serve(self) -> None:
        waiting: deque[tuple[StepRun, Sequence[Launch]]] = deque()
        while True:
            if waiting:
                self._run(*waiting.popleft(), waiting)
                continue
            try:
                order = self._orders.get(timeout=IDLE)
            except Empty:
                with self._lock:
                    if self._orders.empty():
                        self._running = False
                        return
            else:
                if order is not None:
                    waiting.append(order)

    def _run(self, step: StepRun, row: Sequence[Launch], waiting: deque[Any]) -> None:
        started, threads = step.started, step.threads
        for launch in row:
            while not step.stopped and not started.issuperset(launch.needs):
                order = self._orders.get()
                if order is not None:
                    waiting.append(order)
            if step.stopped or not step.run(launch):
                break
            started.add(launch.number)
            for number in launch.tells:
                threads[number].wake()
            if launch.awaited:
                step.done.put(launch.number)
        step.row_ended(row)


_threads: dict[Any, Thread] = {}


def in_lanes(
    part: Part, places: Sequence[Place], launches: Sequence[Any]
) -> list[tuple[Thread, list[Any]]]:
    """Returns what is started in each step, for each lane with the lane's thread.

    All dataflow functions share the threads of devices.

    Args:
      part: of the process.
      places: of the part.
      launches: with the rows of the part, in order.
    """
    devices: list[dict[Any, None]] = [{} for _ in range(part.lanes)]
    rows: list[list[Any]] = [[] for _ in range(part.lanes)]
    for launch in launches:
        rows[launch.row.lane].append(launch)
        devices[launch.row.lane].update(dict.fromkeys(launch.place.devices))
    found = []
    for joined, row in zip(devices, rows, strict=True):
        key = tuple(sorted(joined, key=lambda d: (d.platform, d.id)))
        name = " ".join(f"{d.platform}:{d.id}" for d in key)
        found.append((_threads.setdefault(key, Thread(name)), row))
    return found


def run_step(
    values: list[Any],
    rows: Sequence[tuple[Thread, Sequence[Launch]]],
    shared: Sequence[tuple[int, int]],
    awaited: int,
) -> list[Any]:
    """Runs all fragments once; returns when those that are awaited have been started.

    Args:
      values: by slot; those of the arguments are there.
      rows: the fragments of each thread.
      shared: slots that several places read, and how many.
      awaited: how many fragments give results or have effects.

    Returns:
      The values.

    Raises:
      Exception: what a fragment raised, with a note that names the fragment.
    """
    # A callback holds up its device's thread, which would not come to the fragments of
    # the function that it calls.
    if len(rows) == 1 or in_callback():
        step, launches = StepRun(values, (), shared), list(rows[0][1])
        if len(rows) > 1:
            launches = sorted(launch for _, row in rows for launch in row)
        for launch in launches:
            if not step.run(launch):
                break
    else:
        threads = [thread for thread, _ in rows]
        step = StepRun(values, threads, shared)
        try:
            for thread, row in rows:
                thread.submit(step, row)
            while awaited and not step.stopped:
                awaited -= process.awaited(step.done) is not None
        except BaseException:
            step.stop()
            raise
        finally:
            # Nothing of a step that failed or was interrupted is left running. A row
            # that an interrupt left out ends at once, and so does one that comes twice.
            if step.stopped:
                for thread, row in rows:
                    if id(row) not in step.ended:
                        thread.submit(step, row)
                while len(step.ended) < len(rows):
                    process.awaited(step.done)
    if step.error is not None:
        raise step.error
    return step.values
