"""The controller: its connections to all tasks, the steps under way, their errors."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, ArrayType, Aval, type_on
from fxflow.core.arrays.array import from_host, host_of
from fxflow.dataflow.measuring import Times
from fxflow.dataflow.rows import PlaceRow
from fxflow.dataflow.tasks.devices import HERE, ClusterDevices
from fxflow.dataflow.tasks.executor import Executor, PartStep, Worker
from fxflow.dataflow.tasks.messages import (
    TIMES,
    Doing,
    DoingOk,
    Done,
    Failed,
    Fetch,
    Fetched,
    Free,
    Hold,
    Registered,
    Renew,
    Stop,
    Value,
    Want,
)
from fxflow.dataflow.tasks.remote import HELD, RemoteArray, require_no_other
from fxflow.dataflow.tasks.steps import ANSWER, MOST_STEPS, Fetching, RemoteStep
from fxflow.devices import buffers
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.stream import Receiver, Stream
from fxflow.errors import DistributedError, TaskLostError

#: Seconds without an answer after which a task is lost, if something is awaited of it.
SILENCE = 10.0


class Session:
    """The connections of a controller to its tasks.

    A task that is lost may join again (`renew`, `join`); what others hold stays there.

    Args:
      cluster: the tasks.
      streams: connected to the tasks, by their numbers; the cluster's `missing` names
        the others.
      deadline: seconds that a wait lasts at most.
      reason: returns why a task ended, if that is known.

    Attributes:
      lost: why each task that is lost is.
    """

    cluster: ClusterDevices
    deadline: float
    streams: dict[int, Stream]
    closed: bool
    executor: Executor

    def __init__(
        self,
        cluster: ClusterDevices,
        streams: Mapping[int, Stream],
        deadline: float,
        reason: Callable[[int], str] = lambda number: "",
    ) -> None:
        self.cluster, self.deadline = cluster, deadline
        self._answer_time = min(ANSWER, deadline / 4)
        #: When all tasks were last asked what they are doing.
        self._asked_all = 0.0
        self.streams: dict[int, Stream] = {}
        self.lost: dict[int, str] = dict(cluster.missing)
        #: By task that joined again: its first result since then, and the reason why
        #: those before it are lost.
        self._joined: dict[int, tuple[int, str]] = {}
        self.closed = False
        self._reason = reason
        self._number_of: dict[Stream, int] = {}
        self._lock = threading.RLock()
        self._steps: dict[int, RemoteStep] = {}
        self._numbers, self._results = itertools.count(), 0
        self._programs = itertools.count()
        self._registered: weakref.WeakValueDictionary[int, Any] = (
            weakref.WeakValueDictionary()
        )
        self._dropped: deque[int] = deque()
        self._fetching: dict[int, list[Fetching]] = {}
        self._freed: dict[int, deque[int]] = {}
        #: How many threads wait for tasks to take their parts.
        self._expecting = 0
        #: When each task last sent something, and when it was last asked to.
        self._heard: dict[int, float] = {}
        self._asked: dict[int, float] = {}
        self._states: dict[int, DoingOk] = {}
        self._renewed: set[int] = set()
        self._answered = threading.Condition()
        self._explainer = Worker("fxflow explain")
        self._moved = time.monotonic()
        self.executor = Executor(
            self._post, self._post_frames, self._failed_here, self._done_here, deadline
        )
        self._receiver = Receiver(self._on_message, self._on_end, self._on_tick)
        self._add(streams)
        self._thread = threading.Thread(
            target=self._receiver.run, name="fxflow cluster", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Ends all steps and connections."""
        with self._lock:
            self.closed = True
            for step in list(self._steps.values()):
                self.fail(step, self._closed_error)
            for waiting in list(self._fetching.values()):
                for fetching in waiting:
                    fetching.error = "the cluster was closed"
                    fetching.event.set()
        self.executor.stop_all()
        for stream in self.streams.values():
            stream.flush(1.0)
        self._receiver.stop()
        if threading.current_thread() is not self._thread:
            self._thread.join(5)

    def _closed_error(self) -> Exception:
        return DistributedError("the cluster was closed")

    def require_alive(self, tasks: Sequence[int]) -> None:
        """Checks that tasks are connected.

        Raises:
          TaskLostError: one is lost.
          DistributedError: the cluster was closed.
        """
        if self.closed:
            raise self._closed_error()
        if self.lost:
            for task in tasks:
                if task in self.lost:
                    raise self.cluster.lost_error(task, self.lost[task])

    # -- lost tasks --------------------------------------------------------------------

    @property
    def alive(self) -> list[int]:
        """The numbers of the tasks that are not lost."""
        return sorted(task for task in self.streams if task not in self.lost)

    def _add(self, streams: Mapping[int, Stream]) -> None:
        """Reads connections to tasks."""
        for task, stream in streams.items():
            self.streams[task], self._number_of[stream] = stream, task
            self._freed[task] = deque()
            self._heard[task], self._asked[task] = time.monotonic(), 0.0
            self._receiver.add(stream)

    def _remove(self, stream: Stream) -> None:
        """Ends a connection; only in the receiver's thread."""
        self._number_of.pop(stream, None)
        self._receiver.remove(stream)

    def renew(self, name: str, seconds: float) -> list[int]:
        """Gives the session another name in the tasks that answer; others are lost.

        The tasks end their connections to those that are lost, and accept none of the
        old name: a task that was stopped and wakes up does not take part.

        Args:
          name: new.
          seconds: that a task has to answer.

        Returns:
          The numbers of the tasks that answered.
        """
        while True:
            alive = self.alive
            with self._answered:
                self._renewed.clear()
            for task in alive:
                self._post(task, Message.of(Renew(name, alive)))
            with self._answered:
                self._answered.wait_for(partial(self._have_renewed, alive), seconds)
                silent = {*alive} - self._renewed - self.lost.keys()
            for task in silent:
                self._lose(task, f"it did not answer within {seconds:g} s")
                self._receiver.call(partial(self._remove, self.streams[task]))
            if alive == self.alive:
                return alive

    def _have_renewed(self, tasks: Sequence[int]) -> bool:
        """Returns whether all of some tasks have answered `Renew`, or are lost."""
        return {*tasks} <= self._renewed | self.lost.keys()

    def join(self, streams: Mapping[int, Stream]) -> None:
        """Takes in tasks that were lost; they hold nothing.

        Args:
          streams: connected to them, by their numbers.
        """
        with self._lock:
            self._add(streams)
            for task in streams:
                self._joined[task] = self._results, self.lost.pop(task, "")
            for program in list(self._registered.values()):
                if not streams.keys().isdisjoint(program.tasks):
                    program.unregister()

    def require_held(self, array: RemoteArray) -> None:
        """Checks that a task has not been lost since it computed an array.

        Raises:
          TaskLostError: it has.
          DistributedError: the cluster was closed.
        """
        if self.closed:
            raise self._closed_error()
        task, name = array.task, self.cluster.task_name(array.task)
        if task in self.lost:
            raise TaskLostError(
                f"{name} is lost, and this {array.aval} with it: {self.lost[task]}",
                task,
            )
        first, why = self._joined.get(task, (0, ""))
        if array._number < first:
            told = f": {why}" if why else ""
            here = " Its value is here: pass fetch() of it." if array._value else ""
            raise TaskLostError(
                f"{name} was lost, and this {array.aval} with it{told}. The task has "
                f"connected again, without what it held before.{here}",
                task,
            )

    # -- waits -------------------------------------------------------------------------

    def wait(self, event: threading.Event) -> bool:
        """Waits for an event; any step that ends meanwhile extends the deadline.

        Returns:
          Whether it came in time.
        """
        begun = time.monotonic()
        while True:
            left = max(begun, self._moved) + self.deadline - time.monotonic()
            if left <= 0:
                return False
            if event.wait(left):
                return True

    def give_up(self, step: RemoteStep) -> None:
        """Fails a step that takes too long, with what its tasks are doing."""
        with self._lock:
            first, step.late = not (step.ended or step.late), True
        if first:
            self._explainer.call(lambda: self._explain(step))

    def _explain(self, step: RemoteStep) -> None:
        program = step.program
        states = self.states(program.tasks, recent=True)
        # A process that has given up told it; the others tell it now.
        waits = dict(step.waits)
        for task, state in states.items():
            for _, number, fragment, edge, _ in state.states:
                if number == step.number and edge >= 0:
                    waits.setdefault(task, (int(fragment), int(edge)))
        if waits:
            # The last of those that wait for each other.
            process, seen = next(iter(waits)), set[int]()
            while True:
                fragment, edge = waits[process]
                source = program.source_of(edge)
                seen.add(process)
                if source not in waits or source in seen:
                    break
                process = source
            told = (
                f"{program.text_of(fragment)} has waited {self.deadline:g} s for "
                f"{program.type_of(edge)} of {self._named(source)}, which "
                f"{self._is_doing(source, states, program)}"
            )
            late = [source]
        else:
            late = sorted(step.waiting - {HERE})
            doing = "; ".join(
                f"{self.cluster.task_name(t)} {self._is_doing(t, states, program)}"
                for t in late
            )
            told = f"step {step.number} of {program.name} has taken "
            told += f"{self.deadline:g} s: {doing or 'this process has not ended it'}"
        silent = [t for t in program.tasks if t not in {*states, *late}]
        if silent:
            names = ", ".join(map(self.cluster.task_name, silent))
            told += f"; no answer from {names}"
            late += silent
        told += " (a wait lasts at most the deadline of the cluster)"
        seconds, processes = self.deadline, tuple(t for t in late if t >= 0)
        self.fail(step, lambda: DistributedError(told, processes, seconds))

    def states(
        self, tasks: Sequence[int], *, recent: bool = False
    ) -> dict[int, DoingOk]:
        """Returns what tasks are doing; those that do not answer are missing.

        Args:
          tasks: their numbers.
          recent: whether answers to questions of a moment ago are good enough.
        """
        asked = {task for task in tasks if task not in self.lost}
        since = time.monotonic() - self._asked_all
        if not recent or since > 2 * self._answer_time:
            self._ask_all()
        left = self._asked_all + self._answer_time - time.monotonic()
        with self._answered:
            self._answered.wait_for(lambda: self._states.keys() >= asked, max(left, 0))
            return dict(self._states)

    def _ask_all(self) -> None:
        """Asks all tasks what they are doing."""
        with self._answered:
            self._states.clear()
            self._asked_all = time.monotonic()
        for task in self.alive:
            self._post(task, Message.of(Doing()), False)

    def _ask_in_time(self) -> None:
        """Asks before a wait ends, so that its error comes at the deadline."""
        step = next(iter(list(self._steps.values())), None)
        if step is not None:
            now = time.monotonic()
            ends = max(step.begun, self._moved) + self.deadline
            late = now >= ends - 1.5 * self._answer_time
            if late and now - self._asked_all >= self._answer_time:
                self._ask_all()

    def wait_queue(self, queue: SimpleQueue[Any], step: RemoteStep) -> Any:
        """Returns the next item of a queue; the step fails if none comes in time."""
        begun = time.monotonic()
        while True:
            left = max(begun, self._moved) + self.deadline - time.monotonic()
            try:
                return queue.get(timeout=max(0.0, left))
            except Empty:
                if left <= 0:
                    self.give_up(step)
                    return None

    def _named(self, process: int) -> str:
        return "this process" if process == HERE else self.cluster.task_name(process)

    def _is_doing(self, process: int, states: dict[int, DoingOk], program: Any) -> str:
        if process == HERE:
            found = self.executor.doing()
        elif process in self.lost:
            return f"is lost: {self.lost[process]}"
        elif process not in states:
            return "does not answer"
        elif states[process].compiling:
            return f"compiles {states[process].compiling}"
        else:
            found = states[process].states
        for number, _, fragment, edge, seconds in found:
            other = self._registered.get(int(number)) or program
            text = other.text_of(int(fragment))
            if edge < 0:
                return f"has run {text} for {seconds:.1f} s"
            source = self._named(other.source_of(int(edge)))
            return f"waits in {text} for {other.type_of(int(edge))} of {source}"
        return "has nothing to do"

    # -- programs and steps ------------------------------------------------------------

    def new_program(self, program: Any) -> int:
        """Returns the number of a program, whose answers go to it.

        Args:
          program: has a method `answered`.
        """
        number = next(self._programs)
        self._registered[number] = program
        return number

    def drop_program(self, number: int) -> None:
        """Records that a program is not needed any more; called by destructors."""
        self._registered.pop(number, None)
        self._dropped.append(number)

    def begin(
        self, program: Any, arrays: Sequence[Any], times: Times | None = None
    ) -> tuple[RemoteStep, PartStep | None, list[Any]]:
        """Begins a step.

        Args:
          program: that it runs.
          arrays: the arguments.
          times: gets the times of the fragments, if they are to be measured.

        Returns:
          The step, this process's part of it if it has one, and the results as far as
          they are known.

        Raises:
          TaskLostError: a task that the program needs is lost.
        """
        require_no_other(arrays, self)
        while len(self._steps) >= MOST_STEPS:
            with self._lock:
                oldest = next(iter(self._steps.values()), None)
            if oldest is not None:
                oldest.wait(raises=False)
        with self._lock:
            self.require_alive(program.tasks)
            if self._joined:
                for array in arrays:
                    if isinstance(array, RemoteArray):
                        self.require_held(array)
            step = RemoteStep(self, next(self._numbers), program, times)
            step.sources = tuple(
                {
                    x._step: None
                    for x in arrays
                    if isinstance(x, RemoteArray)
                    and not (x._step.ended and x._step.error is None)
                }
            )
            base, self._results = self._results, self._results + program.results
            self._steps[step.number] = step
            outs = program.handles(step, base)
            sends = program.post_runs(step, base, arrays, self._frees)
            part = None
            if program.here is not None:
                part = self.executor.begin(
                    program.here, step.number, values=arrays, sends=sends, times=times
                )
            else:
                for edge, slot, process in sends:
                    self.executor.send_value(step, process, edge, arrays[slot])
        return step, part, outs

    def _frees(self, task: int) -> list[int]:
        freed, found = self._freed[task], []
        while freed:
            found.append(freed.popleft())
        return found

    def fail(self, step: RemoteStep, error: Callable[[], BaseException]) -> None:
        """Ends a step with an error, in all processes.

        Args:
          step: the step.
          error: makes the error.
        """
        with self._lock:
            if step.ended:
                return
            step.error = step.error or error
            self._stop(step)

    def _stop(self, step: RemoteStep) -> None:
        self._steps.pop(step.number, None)
        header = Stop(), step.program.number, step.number
        for task in step.program.tasks:
            if task not in self.lost:
                self._post(task, Message.of(*header), False)
        self.executor.stop(step.number)
        step.end()

    def _finished(self, step: RemoteStep, process: int) -> None:
        with self._lock:
            step.waiting.discard(process)
            if not step.waiting and not step.ended:
                self._steps.pop(step.number, None)
                self._moved = time.monotonic()
                step.end()

    def _failed_here(
        self, part: PartStep, error: BaseException, fragment: int, edge: int
    ) -> None:
        step = self._steps.get(part.number)
        if step is None:
            return
        if edge >= 0:
            step.waits[HERE] = fragment, edge
            self.give_up(step)
        else:
            self.fail(step, lambda: error)

    def _done_here(self, part: PartStep, small: Any) -> None:
        step = self._steps.get(part.number)
        if step is not None:
            self._finished(step, HERE)

    # -- values ------------------------------------------------------------------------

    def fetched(self, arrays: Sequence[RemoteArray]) -> list[Array]:
        """Returns the values of arrays that tasks hold.

        Raises:
          DistributedError: a step failed, or a task is lost.
        """
        asked = []
        for array in arrays:
            array._step.wait()
            asked.append(self.ask(array) if array._value is None else None)
        found = []
        for array, fetching in zip(arrays, asked, strict=True):
            value = array._value
            if value is None:
                value = restored(self._answer(fetching, array), array.aval)
                array._asked = None
            found.append(value)
        return found

    def ask(self, array: RemoteArray) -> Fetching:
        """Asks for the value of an array that is computed, if that was not done."""
        task, number = array.task, array._number
        with self._lock:
            fetching: Fetching | None = array._asked
            if fetching is not None:
                return fetching
            self.require_held(array)
            fetching = array._asked = Fetching(task)
            self._fetching.setdefault(number, []).append(fetching)
        self._post(task, Message.of(Fetch(number)), False)
        return fetching

    def put(self, value: Array, kind: ArrayType) -> RemoteArray:
        """Returns an array of a task with a value of this process.

        Args:
          value: with the dtype and shape of `kind`.
          kind: its type, with a place of a task.

        Raises:
          DistributedError: the task is lost, or has no room.
        """
        task: int = kind.placement.device.number
        with self._lock:
            self.require_alive([task])
            number, self._results = self._results, self._results + 1
            array = RemoteArray(self, number, kind, HELD)
            array._asked = fetching = Fetching(task)
            self._fetching[number] = [fetching]
        hold = Hold(number, list(PlaceRow.of(kind.placement)))
        self._post(task, Message.of(hold, arrays={"": host_of(value)}), True)
        if not self.wait(fetching.event):
            fetching.error = f"no answer within {self.deadline:g} s"
        array._asked = None
        self.require_held(array)
        if fetching.error:
            name = self.cluster.task_name(task)
            raise DistributedError(f"{name}: {fetching.error}", [task], self.deadline)
        return array

    def _answer(
        self, asked: Fetching | None, array: RemoteArray
    ) -> np.ndarray[Any, Any]:
        """Waits for a value that was asked for."""
        assert asked is not None
        if not self.wait(asked.event):
            asked.error = (
                f"{array!r} did not come within {self.deadline:g} s: the task does not "
                "answer"
            )
        if asked.error or asked.host is None:
            self.require_held(array)
            raise DistributedError(asked.error, [asked.task], self.deadline)
        return asked.host

    def released(self, task: int, number: int) -> None:
        """Records that a task need not keep a value; called by destructors."""
        if number >= self._joined.get(task, (0,))[0]:
            self._freed[task].append(number)

    # -- what arrives ------------------------------------------------------------------

    def _post(self, process: int, message: Message, waits: bool = False) -> None:
        self.streams[process].post(message, waits=waits)

    def _post_frames(self, process: int, frames: list[bytes | memoryview]) -> None:
        self.streams[process].post_frames(frames)

    def _on_message(self, stream: Stream, message: Message) -> None:
        task, fields = self._number_of[stream], message.fields
        if self.streams[task] is not stream or task in self.lost:
            return
        self._heard[task] = time.monotonic()
        step = self._steps.get(message.sequence)
        match fields:
            case Done():
                if step is not None:
                    rows = message.arrays.pop(TIMES, None)
                    if rows is not None and step.times is not None:
                        for number, begin, end in rows.tolist():
                            step.times[int(number)] = begin, end
                    self._keep_small(step, message.arrays)
                    self._finished(step, task)
            case Value(edge):
                (host,) = message.arrays.values()
                self.executor.arrive(message.sequence, edge, host)
            case Want(count):
                self.executor.wanted(message.sequence, task, count)
            case Failed(error, fragment, edge):
                if step is None:
                    return
                if edge >= 0:
                    step.waits[task] = fragment, edge
                    self.give_up(step)
                    return
                text = f"{self.cluster.task_name(task)}: {error}"
                self.fail(step, lambda: DistributedError(text, [task]))
            case Fetched(number, error):
                waiting = self._fetching.pop(number, [])
                for fetching in waiting:
                    fetching.host = next(iter(message.arrays.values()), None)
                    fetching.error = error
                    fetching.event.set()
            case Registered(error):
                program = self._registered.get(message.worker)
                if program is not None:
                    program.answered(task, error)
            case DoingOk():
                with self._answered:
                    self._states[task] = fields
                    self._answered.notify_all()
            case Renew():
                with self._answered:
                    self._renewed.add(task)
                    self._answered.notify_all()

    def _keep_small(
        self, step: RemoteStep, arrays: dict[str, np.ndarray[Any, Any]]
    ) -> None:
        for position, host in arrays.items():
            reference = step.results.get(int(position))
            array = None if reference is None else reference()
            if array is not None:
                array._value = restored(host, array.aval)

    def _on_end(self, stream: Stream, why: str) -> None:
        task = self._number_of.pop(stream)
        if not self.closed and self.streams[task] is stream:
            self._lose(task, self._reason(task) or why)

    def _lose(self, task: int, told: str) -> None:
        """Fails everything that needs a task that is lost."""
        error = partial(self.cluster.lost_error, task, told)
        with self._lock:
            self.lost[task] = told
            for step in list(self._steps.values()):
                if task in step.program.tasks:
                    self.fail(step, error)
            for waiting in list(self._fetching.values()):
                for fetching in waiting:
                    if fetching.task == task:
                        fetching.event.set()
            for program in list(self._registered.values()):
                if task in program.tasks:
                    program.answered(task, told)
        with self._answered:
            self._answered.notify_all()

    def _on_tick(self) -> None:
        self.executor.check_deadlines()
        programs = [self._dropped.popleft() for _ in range(len(self._dropped))]
        self._check_silence()
        self._ask_in_time()
        for task, freed in self._freed.items():
            if (freed or programs) and task not in self.lost:
                with self._lock:
                    self._post(task, Message.of(Free(self._frees(task), programs)))

    @contextlib.contextmanager
    def expecting(self) -> Iterator[None]:
        """Makes tasks that do not answer count as lost while a block runs."""
        with self._lock:
            self._expecting += 1
        try:
            yield
        finally:
            with self._lock:
                self._expecting -= 1

    def _check_silence(self) -> None:
        """Loses tasks that do not answer while something is awaited of them.

        Their connection stays open if they are stopped, or their machine is.
        """
        if not (self._steps or self._fetching or self._expecting):
            return
        now, most = time.monotonic(), SILENCE
        for task, heard in list(self._heard.items()):
            if task in self.lost or now - heard < most / 4:
                continue
            if self._asked[task] <= heard:
                self._asked[task] = now
                self._post(task, Message.of(Doing()))
            elif now - self._asked[task] > most:
                self._lose(task, f"it has not answered for {now - heard:.1f} s")
                self._remove(self.streams[task])


def restored(host: np.ndarray[Any, Any], aval: Aval) -> Array:
    """Returns an array of this process with elements that came from a task.

    Args:
      host: the elements as programs see them; not written to any more.
      aval: the type of the array.
    """
    kind = type_on(aval)
    if kind.placement.is_host:
        return from_host(host, kind)
    return Array(buffers.put(aval.physical, host, kind.placement), kind)
