"""Re-planning: places that follow the measured times of steps.

In the first steps of a function that is placed by cost, and in a few later ones, each
fragment's time is measured. The measured times correct the model, by which a thread in
the background plans again, with more effort. If the new plan is faster by more than the
model's error it is compiled there, and the next step runs by it: a step never changes
its plan midway, and values are the same by every plan, to rounding.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from fxflow.core.arrays import Array
from fxflow.dataflow.assignment import EFFORT
from fxflow.dataflow.costs import Costs
from fxflow.dataflow.measuring import Times
from fxflow.dataflow.plan import Plan

#: Steps that are measured: these, and then every `EVERY`th.
FIRST = (2, 3, 4)
EVERY = 512
#: How much more effort planning in the background is worth.
_THOROUGH = 8


class Runs(Protocol):
    """What runs the fragments of a plan: `Partitioned`, `ClusterProgram`."""

    plan: Plan

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Runs the fragments once."""
        ...

    def timed(self, arrays: Sequence[Array]) -> tuple[list[Array], Times]:
        """Runs the fragments once; returns also when each ran."""
        ...


class Replanned:
    """A function in fragments whose plan follows the measured times of its steps.

    Args:
      plan: to begin with.
      make: compiles the fragments of a plan.
      replan: returns a plan by what was measured, with this effort.
      costs: the model, which learns.

    Attributes:
      current: runs the next step.
    """

    def __init__(
        self,
        plan: Plan,
        make: Callable[[Plan], Any],
        replan: Callable[[int], Plan],
        costs: Costs,
    ) -> None:
        self.current: Any = make(plan)
        self._make, self._replan, self._costs = make, replan, costs
        self._steps, self._next = 0, FIRST[0]
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._measured: list[float] = []
        self._planned: float | None = None  # seconds of a step when it was planned

    @property
    def plan(self) -> Plan:
        """The plan by which the next step runs, with the seconds of measured steps."""
        plan: Plan = self.current.plan
        return plan

    @property
    def traced(self) -> Any:
        """The function."""
        return self.current.traced

    def __getattr__(self, name: str) -> Any:
        if name == "current":
            raise AttributeError(name)
        return getattr(self.current, name)

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Runs a step.

        Args:
          arrays: the leaves of the arguments.
        """
        current = self.current
        self._steps += 1
        if self._steps < self._next:
            outs: list[Array] = current.run(arrays)
            return outs
        return self._sampled(current, arrays)

    def runner(self, arg_types: Sequence[Any]) -> Any:
        """Returns the way to run it from the short path; see `Compiled.runner`.

        Args:
          arg_types: of the leaves of the arguments.
        """
        unflatten = self.traced.arrays.out_tree.unflatten
        return lambda leaves, _: unflatten(self.run(leaves)), True

    def _sampled(self, current: Any, arrays: Sequence[Array]) -> list[Array]:
        """Runs a step and measures its fragments."""
        with self._lock:
            step = self._steps
            self._next = next((n for n in FIRST if n > step), step + EVERY)
        outs: list[Array]
        outs, times = current.timed(arrays)
        plan = current.plan
        learned = [(plan.fragments[n], t) for n, t in sorted(times.items())]
        with self._lock:
            for fragment, (begin, end) in learned:
                self._costs.learn(fragment.graph, fragment.place, end - begin)
            if learned:
                seconds = max(t[1] for _, t in learned) - min(t[0] for _, t in learned)
                if plan.measured is None:
                    self._measured.clear()
                self._measured.append(seconds)
                plan.measured = min(self._measured[-len(FIRST) :])
            if step >= FIRST[-1] and self._thread is None and self._is_news(plan):
                self._planned = plan.measured
                # It ends with the work that is under way, also if Python exits.
                self._thread = threading.Thread(
                    target=self._improve, args=(current,), name="fxflow planning"
                )
                self._thread.start()
        return outs

    def _is_news(self, plan: Plan) -> bool:
        """Returns whether steps take another time than when the plan was made."""
        before, now = self._planned, plan.measured
        if before is None or now is None:
            return True
        error = max(self._costs.error(p.device) for p in plan.places)
        return abs(now / before - 1) > 2 * error

    def _improve(self, current: Any) -> None:
        """Plans again, and swaps the plan if that is worth it."""
        plan: Plan = current.plan
        try:
            found = self._replan(_THOROUGH * EFFORT)
            error = max(self._costs.error(p.device) for p in plan.places)
            if found.seconds < plan.seconds * (1 - error):
                made = self._make(found)
                with self._lock:
                    self.current, self._planned = made, None
                    self._steps, self._next = 0, FIRST[0]
        except Exception as failed:
            plan.notes.append(f"planning from measured times failed: {failed}")
        finally:
            self._thread = None

    def wait(self) -> None:
        """Waits until no planning is under way."""
        thread = self._thread
        if thread is not None:
            thread.join()
