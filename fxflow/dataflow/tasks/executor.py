"""The executor: one process's part of the steps, in a task or in the controller.

Each device has the runner's thread, which starts fragments in order. Where a part is so
cheap that waking threads would take longer, the thread that receives messages starts
them itself. A value goes to another process as soon as it is computed, by a thread that
waits for it, or at once if it is small and there. The receiver of a value has a slot
for it, so no order of sends can deadlock; beyond a window of bytes (`rows.WINDOW`) it
waits at the sender until the receiver has used earlier ones.
"""

from __future__ import annotations

import copy
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, type_on
from fxflow.core.arrays.array import from_host, host_of
from fxflow.core.runtime.execute import Program
from fxflow.dataflow.measuring import Times, timed
from fxflow.dataflow.placing import Place
from fxflow.dataflow.rows import ArrivalRow, FragmentRow, LoadRow, Part, granted
from fxflow.dataflow.runner import IDLE, Launch, StepRun, in_lanes
from fxflow.dataflow.tasks.locks import DeferringLock
from fxflow.dataflow.tasks.messages import Value, Want
from fxflow.devices import buffers
from fxflow.distributed.messages.codec import Message, Templates
from fxflow.errors import DistributedError, MessageError

#: Values up to this size are sent by the thread that started their fragment, if they
#: are there already: another thread would take longer to wake up.
DIRECT = 32 << 10


class Worker:
    """A thread that calls functions in order; it ends when it has nothing to do."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()
        self._running = False

    def call(self, function: Callable[[], None]) -> None:
        """Adds a function, which must not raise."""
        with self._lock:
            self._calls.put(function)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                self._calls.get(timeout=IDLE)()
            except Empty:
                with self._lock:
                    if self._calls.empty():
                        self._running = False
                        return


class Handles:
    """The arrays that stay in this process between steps, by number."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrays: dict[int, Array] = {}
        self._uses: dict[int, int] = {}
        self._dead: set[int] = set()

    def __len__(self) -> int:
        return len(self._arrays)

    def expect(self, numbers: Sequence[int]) -> None:
        """Records that a step that was submitted will take values."""
        with self._lock:
            for number in numbers:
                self._uses[number] = self._uses.get(number, 0) + 1

    def take(self, number: int, donated: bool) -> Array:
        """Returns a value for a step.

        Args:
          number: of the value.
          donated: whether it is given up.

        Raises:
          DistributedError: the step that was to compute it failed.
        """
        with self._lock:
            array = self._arrays.get(number)
            self._used(number, donated)
        if array is None:
            raise DistributedError("the step that was to compute an argument failed")
        return array

    def _used(self, number: int, donated: bool = False) -> None:
        left = self._uses.get(number, 1) - 1
        if left > 0:
            self._uses[number] = left
            if donated:
                self._dead.add(number)
            return
        self._uses.pop(number, None)
        if donated or number in self._dead:
            self._dead.discard(number)
            self._arrays.pop(number, None)

    def give_back(self, numbers: Sequence[int]) -> None:
        """Records that a step that failed will not take values."""
        with self._lock:
            for number in numbers:
                self._used(number)

    def keep(self, number: int, array: Array) -> None:
        """Keeps a value that a step has computed."""
        with self._lock:
            if number in self._dead and number not in self._uses:
                self._dead.discard(number)
            else:
                self._arrays[number] = array

    def get(self, number: int) -> Array | None:
        """Returns a value; None if there is none."""
        return self._arrays.get(number)

    def free(self, numbers: Sequence[int]) -> None:
        """Drops values that are not needed, or will not be once they are computed."""
        with self._lock:
            for number in numbers:
                if number in self._uses or number not in self._arrays:
                    self._dead.add(number)
                else:
                    del self._arrays[number]

    def forget(self, numbers: range) -> None:
        """Forgets the results of a step that failed."""
        with self._lock:
            for number in numbers:
                self._dead.discard(number)
                self._arrays.pop(number, None)

    def are_ready(self, numbers: Sequence[int]) -> bool:
        """Returns whether values are there and computed."""
        found = map(self._arrays.get, numbers)
        return all(array is not None and is_there(array) for array in found)


def is_there(array: Array) -> bool:
    """Returns whether the elements can be read without waiting."""
    return hasattr(array, "_host") or buffers.is_ready(array._buffer)


class Load:
    """The arguments that a place has already, as the first thing that its lane does."""

    row: LoadRow
    place: Place
    number: int
    tells: tuple[int, ...]
    drops: tuple[int, ...]

    awaited = False
    needs: tuple[int, ...] = ()

    def __init__(self, row: LoadRow, place: Place, donated: Sequence[bool]) -> None:
        self.row, self.place, self.number = row, place, row.number
        self.tells, self.drops = tuple(row.tells), tuple(row.drops)
        self._donated = donated

    def run(self, step: Any) -> None:
        """Puts the values in their slots, and sends what other processes need."""
        values, handles = step.values, step.handles
        for position, slot in self.row.loads:
            values[slot] = step.executor.handles.take(
                handles[position], self._donated[position]
            )
            step.untaken.discard(position)
        step.send(self.row.sends)
        step.keep(self.row.keeps)
        for slot in self.row.frees:
            values[slot] = None

    def describe(self) -> str:
        """Returns what it is, for messages."""
        return f"the arguments on {self.place}"


class Prepared:
    """A part whose programs are compiled.

    Args:
      number: of the program.
      name: of the program.
      part: what this process does in a step.
      places: of the part.
      programs: compiled.
      constants: captured values: for each program row's place, by number.
      awaited: numbers of the fragments that the caller waits for.
      texts: what each fragment is, if its row does not say.
    """

    number: int
    name: str
    part: Part
    shared: list[tuple[int, int]]
    awaited: int
    bounded: set[int]
    kept: list[int]
    templates: Templates
    source_of: dict[int, int]

    def __init__(
        self,
        number: int,
        name: str,
        part: Part,
        places: Sequence[Place],
        programs: Sequence[Program],
        constants: Callable[[int, Place], Array],
        awaited: set[int] = frozenset(),  # type: ignore[assignment]
        texts: Mapping[int, Callable[[], str]] | None = None,
    ) -> None:
        self.number, self.name, self.part = number, name, part
        self.launches: list[Any] = [
            Load(row, places[row.place], part.donated) for row in part.loads
        ]
        for row in part.fragments:
            program, first = programs[row.program], len(row.constants)
            wheres = program.placements
            held = zip(row.constants, wheres[:first], strict=True)
            self.launches.append(
                Launch(
                    row.number,
                    places[row.place],
                    program,
                    tuple(constants(number, where) for number, where in held),
                    row,
                    wheres[first:],
                    row.number in awaited,
                    texts[row.number] if texts else _constant(row.text),
                    tuple(row.needs),
                    tuple(row.tells),
                    tuple(row.drops),
                )
            )
        self.shared = [(slot, readers) for slot, readers in part.shared]
        self._places = places
        self.rows = in_lanes(part, places, self.launches)
        self.awaited = len(awaited)
        self.arrivals: dict[int, tuple[ArrivalRow, Any]] = {}
        self.incoming: dict[int, list[ArrivalRow]] = {}
        for arrival in part.arrivals:
            aval = Aval(tuple(arrival.shape), dtypes.dtype(arrival.dtype))
            kind = type_on(aval, places[arrival.place], True)
            self.arrivals[arrival.edge] = arrival, kind
            self.incoming.setdefault(arrival.source, []).append(arrival)
        #: By process: edges in the order in which it uses them, and the first window.
        self.windows: dict[int, tuple[dict[int, int], int]] = {}
        for process, sizes, users, edges in part.windows:
            order = {edge: i for i, edge in enumerate(edges)}
            self.windows[process] = order, granted(sizes, users, 0, part.window)
        #: Processes that send more than the first window.
        self.bounded = {
            source
            for source in self.incoming
            if self.granted(source, 0) < len(self.incoming[source])
        }
        kept = [keep for row in part.fragments for keep in row.keeps]
        kept += [keep for row in part.loads for keep in row.keeps]
        self.kept = [position for position, _, _ in kept]
        #: What is the same in each step of the messages that it sends.
        self.templates = Templates()
        self.source_of = {row.edge: row.source for row in part.arrivals}

    def timed(self, times: Times) -> Prepared:
        """Returns the part with fragments that note when they run, from now."""
        found = copy.copy(self)
        found.launches = timed(self.launches, times, time.perf_counter())
        found.rows = in_lanes(self.part, self._places, found.launches)
        return found

    def granted(self, source: int, taken: int) -> int:
        """Returns how many of its values a process may have sent.

        Args:
          source: the process.
          taken: how many of the first ones have been used here.
        """
        rows = self.incoming[source]
        sizes, users = [row.nbytes for row in rows], [row.user for row in rows]
        return granted(sizes, users, taken, self.part.window)


def _constant(text: str) -> Callable[[], str]:
    return lambda: text


class PartStep(StepRun):
    """One step of a part.

    Args:
      executor: that runs it.
      program: the part.
      number: of the step.
      base: number of its first result.
      handles: numbers of the arguments that this process has.
      values: those of the arguments that the caller gives.

    Attributes:
      position: of the next fragment, where the receiving thread starts them.
      threaded: whether the lanes' threads start them.
      small: small results, by position.
      sending: edges whose values are not computed or not sent yet.
      over: whether everything has been started, and not all has been sent.
      times: when each fragment ran, if that is measured.
      moved: when something last happened, by `time.monotonic`.
    """

    __slots__ = (
        "base", "executor", "granted", "handles", "held", "lanes", "moved", "number",
        "over", "position", "program", "reported", "sending", "small", "taken",
        "threaded", "times", "untaken", "window",
    )  # fmt: skip

    base: int
    executor: Executor
    handles: Sequence[int]
    lanes: int
    moved: float
    number: int
    over: bool
    position: int
    program: Prepared
    reported: bool
    threaded: bool
    untaken: set[int]

    def __init__(
        self,
        executor: Executor,
        program: Prepared,
        number: int,
        base: int,
        handles: Sequence[int],
        values: Sequence[Any],
    ) -> None:
        empty = [None] * (program.part.slots - len(values))
        super().__init__([*values, *empty], (), program.shared)
        self.executor, self.program, self.number = executor, program, number
        self.base, self.handles = base, handles
        self.untaken = set(range(len(handles)))
        self.position, self.threaded, self.reported = 0, False, False
        self.lanes = len(program.rows)
        self.small: dict[int, Array] = {}
        #: Values that wait for the receiver's room, by process and position.
        self.held: dict[int, dict[int, tuple[int, Array]]] = {}
        self.window: dict[int, int] = {}
        self.taken: dict[int, set[int]] = {}
        self.granted: dict[int, int] = {}
        self.sending: set[int] = set()
        self.over = False
        self.times: Times | None = None
        self.moved = time.monotonic()

    def share(self, row: FragmentRow) -> None:
        """Passes on what other processes need, and keeps what stays here."""
        if row.sends:
            self.send(row.sends)
        self.keep(row.keeps)
        if row.takes and self.program.bounded:
            self.executor.took(self, row.takes)

    def keep(self, rows: Sequence[Sequence[int]]) -> None:
        """Keeps results: position, slot and whether it is small of each."""
        for position, slot, small in rows:
            array = self.values[slot]
            self.executor.handles.keep(self.base + position, array)
            if small:
                self.small[position] = array

    def send(self, rows: Sequence[Sequence[int]]) -> None:
        """Sends values: edge, slot and process of each."""
        for edge, slot, process in rows:
            self.executor.send(self, process, edge, self.values[slot])

    def run(self, launch: Any) -> bool:
        """Starts a fragment; returns whether it could be started."""
        self.moved = time.monotonic()
        return super().run(launch)

    def row_ended(self, row: Sequence[Any]) -> None:
        """Notes that a lane has nothing left to do for the step."""
        super().row_ended(row)
        self.executor.lane_ended(self)

    def stop(self, error: BaseException | None = None) -> None:
        """Leaves out the fragments that have not been started; tells why once."""
        super().stop(error)
        if error is not None:
            self.executor.failed(self, error)

    def waits_for(self) -> tuple[int, int] | None:
        """Returns the next fragment, and the edge that it waits for or -1.

        None if all have been started.
        """
        started, arrivals = self.started, self.program.part.arrivals
        for launch in self.program.launches:
            if launch.number not in started:
                missing = set(launch.needs) - started
                edges = [row.edge for row in arrivals if row.number in missing]
                if edges or not missing:
                    return launch.number, edges[0] if edges else -1
        return None

    def computes(self) -> int:
        """Returns the number of a fragment whose results may not be there yet; or -1.

        All have been started.
        """
        rows = self.program.part.fragments
        for edge in sorted(self.sending):
            for row in rows:
                if any(edge == sent[0] for sent in row.sends):
                    return row.number
        return rows[-1].number if rows else -1


class Executor:
    """Runs the parts of one process.

    Args:
      post: sends a message to a process; may be called by any thread, and told whether
        that thread may wait.
      post_frames: sends a process a small message that is encoded already.
      on_failed: called once with a step that failed here, and the error.
      on_done: called with a step whose results are computed, and the small ones.
      deadline: seconds that a fragment waits for a value at most.

    Attributes:
      handles: the arrays that stay here.
      steps: that have begun and not ended.
    """

    handles: Handles

    def __init__(
        self,
        post: Callable[[int, Message, bool], None],
        post_frames: Callable[[int, list[bytes | memoryview]], None],
        on_failed: Callable[[PartStep, BaseException, int, int], None],
        on_done: Callable[[PartStep, dict[str, np.ndarray[Any, Any]]], None],
        deadline: float,
    ) -> None:
        self._post, self._on_failed, self._on_done = post, on_failed, on_done
        self._post_frames = post_frames
        self.deadline = deadline
        self.handles = Handles()
        self.steps: dict[int, PartStep] = {}
        self._lock = DeferringLock()
        self._latest = -1
        self._early: dict[int, list[tuple[int, np.ndarray[Any, Any]]]] = {}
        self._inline: deque[PartStep] = deque()
        self._threaded = 0
        self._senders: dict[Any, Worker] = {}
        self._finisher = Worker("fxflow finish")

    # -- steps -------------------------------------------------------------------------

    def begin(
        self,
        program: Prepared,
        number: int,
        base: int = 0,
        handles: Sequence[int] = (),
        values: Sequence[Any] = (),
        arrived: Mapping[int, np.ndarray[Any, Any]] | None = None,
        sends: Sequence[Sequence[int]] = (),
        times: Times | None = None,
    ) -> PartStep:
        """Begins a step; steps are begun in the order of their numbers.

        Args:
          program: the part.
          number: of the step.
          base: number of its first result.
          handles: numbers of the arguments that this process has.
          values: those of the arguments that the caller gives.
          arrived: values that came with the step, by edge.
          sends: arguments that other processes need: edge, slot, process.
          times: gets the times of the fragments, if they are to be measured.
        """
        if times is not None:
            program = program.timed(times)
        step = PartStep(self, program, number, base, handles, values)
        step.times = times
        self.handles.expect(handles)
        with self._lock:
            self.steps[number], self._latest = step, number
            early = self._early.pop(number, [])
        for edge, host in [*(arrived or {}).items(), *early]:
            self._arrive(step, edge, host)
        step.send(sends)
        with self._lock:
            # A fragment whose time is measured holds up its thread.
            cheap = program.part.cheap and not self._threaded and times is None
            if cheap and self.handles.are_ready(handles):
                self._inline.append(step)
                self._advance()
            else:
                while self._inline:
                    self._submit(self._inline.popleft())
                self._submit(step)
        return step

    def _submit(self, step: PartStep) -> None:
        """Leaves the rest of a step to the lanes' threads."""
        rows = step.program.rows
        if step.position:
            left = {id(x) for x in step.program.launches[step.position :]}
            rows = [(t, [x for x in row if id(x) in left]) for t, row in rows]
        self._threaded += 1
        step.threads = [thread for thread, _ in rows]
        step.threaded = True
        for thread, row in rows:
            thread.submit(step, row)
        if not rows:
            self._end(step)

    def _advance(self) -> None:
        """Starts what can be started of the cheap steps, in order."""
        while self._inline:
            step = self._inline[0]
            launches, started = step.program.launches, step.started
            while step.position < len(launches) and not step.stopped:
                launch = launches[step.position]
                if not started.issuperset(launch.needs):
                    return
                step.position += 1
                if step.run(launch):
                    started.add(launch.number)
                    if launch.awaited:
                        step.done.put(launch.number)
            self._inline.popleft()
            step.done.put(None)
            self._end(step)

    def lane_ended(self, step: PartStep) -> None:
        """Notes that a lane's thread has nothing left to do for a step."""
        with self._lock:
            step.lanes -= 1
            if not step.lanes:
                self._end(step)

    def _end(self, step: PartStep) -> None:
        if step.threaded:
            self._threaded -= 1
        if step.stopped:
            self.handles.give_back([step.handles[i] for i in step.untaken])
        step.over = True
        self.settle(step)

    def settle(self, step: PartStep) -> None:
        """Ends a step that has started and sent everything, once it is computed."""
        with self._lock:
            waits = step.sending or any(step.held.values())
            if not step.over or (waits and not step.stopped):
                return
            step.over = False
        found = [self.handles.get(step.base + i) for i in step.program.kept]
        results = [array for array in found if array is not None]
        if step.stopped or all(map(is_there, results)):
            self._computed(step, results)
        else:
            self._finisher.call(lambda: self._computed(step, results))

    def _computed(self, step: PartStep, results: Sequence[Array]) -> None:
        small: dict[str, np.ndarray[Any, Any]] = {}
        try:
            if not step.stopped:
                for array in results:
                    array.block_until_ready()
                small = {str(i): host_of(array) for i, array in step.small.items()}
        except BaseException as error:
            step.stop(error)
        with self._lock:
            self.steps.pop(step.number, None)
        if not step.stopped:
            self._lock.afterwards(lambda: self._on_done(step, small))

    def failed(self, step: PartStep, error: BaseException) -> None:
        """Notes that a step failed here; it is reported once."""
        with self._lock:
            first, step.reported = not step.reported, True
        if first:
            at = step.waits_for() or (-1,)
            self._lock.afterwards(lambda: self._on_failed(step, error, at[0], -1))

    def stop(self, number: int) -> None:
        """Leaves out what has not been started of a step that failed elsewhere."""
        with self._lock:
            step = self.steps.get(number)
            if step is None:
                self._early.pop(number, None)
                return
            step.reported = True
        step.stop()
        with self._lock:
            self._advance()
        # Its lanes may have ended before, while values waited to be sent.
        self.settle(step)

    def stop_all(self) -> None:
        """Stops every step, and drops all arrays."""
        for number in list(self.steps):
            self.stop(number)
        self.handles = Handles()
        self._early.clear()

    # -- values ------------------------------------------------------------------------

    def arrive(self, number: int, edge: int, host: np.ndarray[Any, Any]) -> None:
        """Notes a value from another process.

        Args:
          number: of the step.
          edge: its edge.
          host: the value.
        """
        with self._lock:
            step = self.steps.get(number)
            if step is None:
                if number > self._latest:
                    self._early.setdefault(number, []).append((edge, host))
                return
        self._arrive(step, edge, host)
        if not step.threaded:
            with self._lock:
                self._advance()

    def _arrive(self, step: PartStep, edge: int, host: np.ndarray[Any, Any]) -> None:
        found = step.program.arrivals.get(edge)
        if found is None:
            raise MessageError("arrays", f"no value {edge} in {step.program.name}")
        row, kind = found
        if host.dtype != kind.aval.dtype or host.shape != kind.aval.shape:
            raise MessageError(
                "arrays",
                f"value {edge} is {host.dtype}{list(host.shape)}, not {row.text}",
            )
        place = kind.placement
        if place.is_host:
            array = from_host(host, kind)
        else:
            array = Array(buffers.put(kind.aval, host, place), kind)
        step.values[row.slot] = array
        step.moved = time.monotonic()
        step.started.add(row.number)
        if step.threaded:
            for lane in row.tells:
                step.threads[lane].wake()

    def send(self, step: PartStep, process: int, edge: int, array: Array) -> None:
        """Sends a value to a process, now or when it has room.

        Args:
          step: of the value.
          process: its number.
          edge: of the value.
          array: the value.
        """
        order, window = step.program.windows[process]
        position = order[edge]
        if position >= step.window.get(process, window):
            with self._lock:
                if position >= step.window.get(process, window):
                    step.held.setdefault(process, {})[position] = edge, array
                    return
        self.send_value(step, process, edge, array)

    def send_value(self, step: Any, process: int, edge: int, array: Array) -> None:
        """Sends a value to a process that has room.

        Args:
          step: of the value.
          process: its number.
          edge: of the value.
          array: the value.
        """
        header = Value(edge), step.program.number, step.number
        if array.nbytes <= DIRECT and is_there(array):
            encode = step.program.templates.encode
            self._post_frames(process, encode(edge, *header, {"": host_of(array)}))
            return
        place = array._type.placement
        if place.is_single and hasattr(array, "_buffer"):
            buffers.start_copy_to_host(array._buffer)
        sender = self._senders.get(place)
        if sender is None:
            sender = self._senders.setdefault(place, Worker(f"fxflow send {place}"))
        # The caller may donate its own array meanwhile.
        held = alias(array)
        step.sending.add(edge)

        def send() -> None:
            try:
                if not step.stopped:
                    arrays = {"": host_of(held)}
                    self._post(process, Message.of(*header, arrays=arrays), True)
            except BaseException as error:
                step.stop(error)
            step.sending.discard(edge)
            if isinstance(step, PartStep):
                self.settle(step)

        sender.call(send)

    def took(self, step: PartStep, edges: Sequence[int]) -> None:
        """Makes room for more values of a process, when some have been used."""
        for edge in edges:
            source = step.program.source_of[edge]
            if source not in step.program.bounded:
                continue
            with self._lock:
                order = step.program.incoming[source]
                taken = step.taken.setdefault(source, set())
                taken.add(edge)
                count = 0
                while count < len(order) and order[count].edge in taken:
                    count += 1
                before = step.granted.get(source) or step.program.granted(source, 0)
                more = max(before, step.program.granted(source, count))
                step.granted[source] = more
            if more > before:
                header = Want(more), step.program.number, step.number
                self._post(source, Message.of(*header), False)

    def wanted(self, number: int, process: int, count: int) -> None:
        """Sends what a process has room for now.

        Args:
          number: of the step.
          process: its number.
          count: of its values that may have been sent.
        """
        with self._lock:
            step = self.steps.get(number)
            if step is None:
                return
            step.window[process] = max(count, step.window.get(process, 0))
            held = step.held.get(process, {})
            ready = [held.pop(i) for i in sorted(held) if i < count]
        for edge, array in ready:
            self.send_value(step, process, edge, array)
        self.settle(step)

    # -- trouble -----------------------------------------------------------------------

    def check_deadlines(self) -> None:
        """Fails the oldest step if it has waited for a value too long."""
        step = next(iter(list(self.steps.values())), None)
        if step is None or step.stopped:
            return
        if time.monotonic() - step.moved <= self.deadline:
            return
        at = step.waits_for()
        if at is None or at[1] < 0:
            return
        with self._lock:
            first, step.reported = not step.reported, True
        late = DistributedError("a value is late", seconds=self.deadline)
        StepRun.stop(step, late)
        if first:
            self._on_failed(step, late, *at)
        with self._lock:
            self._advance()

    def doing(self) -> list[list[float]]:
        """Returns program, step, fragment, awaited edge or -1, and seconds, by step."""
        now, found = time.monotonic(), []
        for step in list(self.steps.values()):
            at = step.waits_for() or (step.computes(), -1)
            waited = now - step.moved
            found.append([step.program.number, step.number, *at, round(waited, 3)])
        return found


def alias(array: Array) -> Array:
    """Returns another array with the same memory, which outlives a donation."""
    if hasattr(array, "_buffer"):
        return Array(array._buffer, array._type)
    return from_host(host_of(array), array._type)
