"""A dataflow function cut over the tasks of a cluster, for one signature."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import Array, ArrayType, Aval, as_array, type_on
from fxflow.core.arrays.array import forget, host_of
from fxflow.core.ir.graph import Literal, Var
from fxflow.core.runtime.execute import Program
from fxflow.dataflow.lowering import drafted
from fxflow.dataflow.measuring import Times
from fxflow.dataflow.placing import Place
from fxflow.dataflow.plan import Plan
from fxflow.dataflow.rows import ProgramRow, Rows, granted
from fxflow.dataflow.runner import copied
from fxflow.dataflow.tasks.devices import HERE, TaskPlace
from fxflow.dataflow.tasks.executor import DIRECT, PartStep, Prepared, is_there
from fxflow.dataflow.tasks.messages import NUMBERS, Register, Run
from fxflow.dataflow.tasks.remote import RemoteArray
from fxflow.dataflow.tasks.session import Session
from fxflow.dataflow.tasks.steps import RemoteStep
from fxflow.distributed.messages.codec import Message, Templates
from fxflow.distributed.program_text import require_harmless
from fxflow.errors import DistributedError, PlacementError
from fxflow.lax.transfer import copied as copied_array
from fxflow.transforms.stages import Runner, Traced, require_donated_once

#: Numbers of values to free are sent in multiples, so that few messages differ in form.
_FREES = 16


class _Slot(NamedTuple):
    """An output that this process has: an argument, or computed here."""

    slot: int
    passed_on: bool


class ClusterProgram:
    """A traced function whose fragments run in tasks, and some in this process.

    Args:
      traced: the function.
      plan: of the function.
      session: returns the connection to the tasks.
      arg_types: of the leaves of the function's arguments.

    Attributes:
      traced: the function.
      plan: what runs where.
      name: of the function.
      number: of the program in its session.
      tasks: numbers of the tasks that take part.
      processes: these, and this process's if it has fragments.
      results: the number of outputs.
      here: this process's part; None if it has nothing to do.
    """

    traced: Traced
    plan: Plan
    name: str
    number: int
    tasks: list[int]
    processes: list[int]
    results: int
    templates: Templates

    def __init__(
        self,
        traced: Traced,
        plan: Plan,
        session: Callable[[], Session],
        arg_types: Sequence[ArrayType],
    ) -> None:
        self.traced, self.plan, self.name = traced, plan, plan.name
        self._find_session = session
        self._session: Session | None = None
        self._lock = threading.Lock()
        self.number = -1
        graph = plan.graph
        self._values = [as_array(c) for c in traced.arrays.consts]
        self._consts = dict(zip(graph.inputs, self._values, strict=False))
        self._lowered, self._drafts = drafted(plan, self._consts)
        places = [t.placement for t in arg_types]
        self._rows = rows = Rows(graph, self._drafts, places, traced.arrays.donated)
        self.tasks = sorted(n for n in rows.parts if n != HERE)
        here = rows.parts[HERE]
        self.processes = [*self.tasks, *([HERE] if here.fragments else [])]
        self.results = len(graph.outputs)
        #: What is the same in each step of the messages that it sends.
        self.templates = Templates()
        self.here: Prepared | None = None
        self._answers: dict[int, str] = {}
        self._answered = threading.Condition()
        #: What each output is: a value, or where it comes from.
        self._outputs: list[Any] = []
        for i, atom in enumerate(graph.outputs):
            if isinstance(atom, Literal):
                self._outputs.append(atom.array)
            elif atom in self._consts:
                self._outputs.append(self._consts[atom])
            else:
                place = rows.origin(atom)
                if type(place) is TaskPlace:
                    self._outputs.append(type_on(atom.aval, rows.where(atom), True))
                else:
                    # Arguments and what is returned before have other owners.
                    passed_on = place is None or atom in graph.outputs[:i]
                    self._outputs.append(_Slot(rows.slots[atom, place], passed_on))
        donated = traced.arrays.donated
        self._donated = [i for i, gives in enumerate(donated) if gives]
        self._used = {i for t in self.tasks for i in rows.parts[t].arguments}
        self._bounded = {
            process
            for process, sizes, users, _ in here.windows
            if granted(sizes, users, 0, here.window) < len(sizes)
        }

    def __del__(self) -> None:
        session = getattr(self, "_session", None)
        if session is not None:
            session.drop_program(self.number)

    # -- what messages say -------------------------------------------------------------

    def text_of(self, fragment: int) -> str:
        """Returns what a fragment is."""
        if 0 <= fragment < len(self._drafts):
            return self._drafts[fragment].text()
        return f"the arguments of {self.name}"

    def type_of(self, edge: int) -> str:
        """Returns the type of the value of an edge."""
        return str(self._rows.edges[edge][0].aval)

    def source_of(self, edge: int) -> int:
        """Returns the number of the process that sends a value."""
        return self._rows.source_of(edge)

    # -- registration ------------------------------------------------------------------

    def answered(self, task: int, error: str) -> None:
        """Notes that a task has its part, or why not."""
        with self._answered:
            self._answers.setdefault(task, error)
            self._answered.notify_all()

    def unregister(self) -> None:
        """Records that a task no longer has its part: the next call sends it again."""
        session, self._session = self._session, None
        if session is not None:
            session.drop_program(self.number)

    def _register(self, session: Session) -> None:
        """Sends each task its part, and compiles this process's own."""
        session.require_alive(self.tasks)
        self._answers = {}
        self.number, self.templates = session.new_program(self), Templates()
        for task in self.tasks:
            session._post(task, self._message(task), True)
        self.here = self._prepared_here()
        end = time.monotonic() + session.deadline
        while True:
            with self._answered:
                left = min(0.5, max(0.0, end - time.monotonic()))
                self._answered.wait_for(
                    lambda: self._answers.keys() >= set(self.tasks), timeout=left
                )
                missing = set(self.tasks) - self._answers.keys()
            session.require_alive(self.tasks)
            for task, error in self._answers.items():
                if error:
                    raise DistributedError(
                        f"{session.cluster.task_name(task)}: {error}", [task]
                    )
            if not missing:
                return
            # Compiling takes long; a task that does it answers.
            if session.states(sorted(missing)).keys() >= missing:
                end = time.monotonic() + session.deadline
            if time.monotonic() > end:
                names = ", ".join(map(session.cluster.task_name, sorted(missing)))
                raise DistributedError(
                    f"no answer from {names}, which had to compile a part of "
                    f"{self.name}, within "
                    f"{session.deadline:g} s",
                    missing,
                    session.deadline,
                )

    def _message(self, task: int) -> Message:
        part, places = self._rows.parts[task], self._rows.places[task]
        at = {place: i for i, place in enumerate(places)}
        arrays: dict[str, np.ndarray[Any, Any]] = {}
        order: dict[int, int] = {}
        programs: list[ProgramRow] = []
        fragments = []
        for row in part.fragments:
            if row.program not in order:
                order[row.program] = len(order)
                found, place = self._lowered[row.program], places[row.place]
                text = found.program.text_without_locations
                self._check(text, row.number)
                arrays[f"p{len(programs)}"] = np.frombuffer(text.encode(), np.uint8)
                options = found.program.options_for(place.device)
                programs.append(
                    ProgramRow(
                        row.place,
                        {**options, **(self.traced.options or {})},
                        _types(found.program.in_avals, found.wheres, at),
                        _types(found.program.out_avals, found.results, at),
                    )
                )
            for number in row.constants:
                arrays[f"c{number}"] = host_of(self._values[number])
            fragments.append(row._replace(program=order[row.program]))
        part = part._replace(fragments=fragments)
        return Message.of(
            Register(self.name, list(part), programs), self.number, arrays=arrays
        )

    def _check(self, text: str, fragment: int) -> None:
        try:
            require_harmless(text, self.name)
        except DistributedError as error:
            raise PlacementError(f"{self.text_of(fragment)}: {error}") from None

    def _prepared_here(self) -> Prepared | None:
        part, places = self._rows.parts[HERE], self._rows.places[HERE]
        if not part.fragments and not self._bounded:
            return None
        programs: dict[int, Program] = {}
        awaited, texts = set(), {}
        outputs = {a for a in self.plan.graph.outputs if type(a) is Var}
        for row in part.fragments:
            if row.program not in programs:
                found = self._lowered[row.program].program
                programs[row.program] = found.compile(self.traced.options)
            draft = self._drafts[row.number]
            gives = not outputs.isdisjoint(draft.fragment.results)
            if gives or draft.fragment.graph.effects:
                awaited.add(row.number)
            texts[row.number] = draft.text
        order = {number: i for i, number in enumerate(programs)}
        fragments = [r._replace(program=order[r.program]) for r in part.fragments]
        return Prepared(
            self.number,
            self.name,
            part._replace(fragments=fragments),
            places,
            list(programs.values()),
            lambda number, place: copied(self._values[number], place),
            awaited,
            texts,
        )

    # -- calls -------------------------------------------------------------------------

    def post_runs(
        self,
        step: RemoteStep,
        base: int,
        arrays: Sequence[Any],
        frees: Callable[[int], list[int]],
    ) -> list[list[int]]:
        """Sends each task the step, with small arguments.

        Args:
          step: the step.
          base: number of its first result.
          arrays: the arguments.
          frees: returns numbers of values that a task need not keep.

        Returns:
          The other arguments that tasks need: edge, slot and process.
        """
        session = step.session
        part = self._rows.parts[HERE]
        small: dict[int, dict[str, np.ndarray[Any, Any]]] = {}
        rest = []
        for row in part.sends:
            edge, slot, process = row
            array = arrays[slot]
            direct = array.nbytes <= DIRECT and process not in self._bounded
            if direct and is_there(array):
                small.setdefault(process, {})[str(edge)] = host_of(array)
            else:
                rest.append(row)
        for task in self.tasks:
            numbers = [base, step.times is not None]
            numbers += [arrays[i]._number for i in self._rows.parts[task].arguments]
            freed = frees(task)
            if freed:
                numbers += freed + [-1] * (-len(freed) % _FREES)
            sent = {NUMBERS: np.array(numbers, np.int64), **small.get(task, {})}
            header = Run(), self.number, step.number
            frames = self.templates.encode((len(numbers), *sent), *header, sent)
            session._post_frames(task, frames)
        return rest

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """Begins a step; returns handles of results that tasks compute.

        Args:
          arrays: the leaves of the arguments.
        """
        return self._begun(arrays)[0]

    def timed(self, arrays: Sequence[Any]) -> tuple[list[Any], Times]:
        """Runs a step to its end; returns the results, and when each fragment ran.

        Each process counts from when its part of the step began.

        Args:
          arrays: the leaves of the arguments.
        """
        outs, step = self._begun(arrays, {})
        step.wait()
        return outs, step.times or {}

    def _begun(
        self, arrays: Sequence[Any], times: Times | None = None
    ) -> tuple[list[Any], RemoteStep]:
        """Begins a step; returns its results and the step."""
        if self._donated:
            require_donated_once(self.traced, arrays)
        session = self._find_session()
        if session is not self._session:
            with self._lock:
                if session is not self._session:
                    with session.expecting():
                        self._register(session)
                    self._session = session
        step, part, outs = session.begin(self, arrays, times)
        if part is not None and part.program.awaited:
            self._await(session, step, part)
        values = arrays if part is None else part.values
        for i, out in enumerate(outs):
            if type(out) is _Slot:
                array = values[out.slot]
                outs[i] = copied_array(array) if out.passed_on else array
            elif type(out) is Array:  # a constant
                outs[i] = copied_array(out)
        for i in self._donated:
            array = arrays[i]
            if isinstance(array, Array):
                forget(array)
            elif i in self._used:
                array._given_up()
            else:
                array.delete()
        return outs, step

    def handles(self, step: RemoteStep, base: int) -> list[Any]:
        """Returns the results of a step that begins, with handles for those of tasks.

        Args:
          step: the step.
          base: number of its first result.
        """
        outs: list[Any] = []
        for position, source in enumerate(self._outputs):
            if type(source) is ArrayType:
                made = RemoteArray(step.session, base + position, source, step)
                step.results[position] = weakref.ref(made)
                outs.append(made)
            else:
                outs.append(source)
        return outs

    @staticmethod
    def _await(session: Session, step: RemoteStep, part: PartStep) -> None:
        """Waits until this process's results are being computed."""
        left = part.program.awaited
        try:
            while left and not part.stopped:
                left -= session.wait_queue(part.done, step) is not None
        except BaseException as error:
            step.stop(error)
            raise
        if part.stopped:
            step.wait()

    def runner(self, arg_types: Sequence[ArrayType]) -> Runner:
        """Returns the way to run it from the short path; see `Compiled.runner`."""
        unflatten = self.traced.arrays.out_tree.unflatten
        return lambda leaves, _: unflatten(self.run(leaves)), True


def _types(
    avals: Sequence[Aval], wheres: Sequence[Place], at: Mapping[Place, int]
) -> list[list[Any]]:
    """Returns dtypes, shapes and the numbers of places as lists."""
    bodies = [aval.physical for aval in avals]
    return [
        [body.dtype.name, list(body.shape), at[where]]
        for body, where in zip(bodies, wheres, strict=True)
    ]
