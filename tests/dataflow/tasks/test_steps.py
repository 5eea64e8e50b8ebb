"""Steps under way: waits that end with the step's error, or its source's."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from fxflow.dataflow.tasks import steps
from fxflow.dataflow.tasks.devices import HERE
from fxflow.dataflow.tasks.steps import RemoteStep
from fxflow.errors import DistributedError


class Session:
    """Waits for an event, or says that it took too long."""

    def __init__(self, in_time: bool = True) -> None:
        self.deadline, self.in_time = 1.0, in_time
        self.given_up: list[int] = []

    def wait(self, event: threading.Event) -> bool:
        return self.in_time and event.wait(5)

    def give_up(self, step: RemoteStep) -> None:
        self.given_up.append(step.number)

    def fail(self, step: RemoteStep, error: Any) -> None:
        step.error = error
        step.end()


def step(session: Any, number: int = 0) -> RemoteStep:
    return RemoteStep(session, number, SimpleNamespace(name="f", processes=[1, HERE]))


def test_a_wait_ends_with_the_step() -> None:
    one = step(Session())
    assert (one.waiting, one.ended) == ({1, HERE}, False)
    threading.Timer(0.01, one.end).start()
    one.wait()
    assert one.ended


def test_a_wait_raises_what_the_step_or_its_source_raised() -> None:
    session = Session()
    source, one = step(session), step(session, 1)
    one.sources = (source,)
    one.stop(ValueError("its argument is missing"))
    source.stop(ValueError("the cause"))
    one.wait(raises=False)
    with pytest.raises(ValueError, match="the cause"):
        one.wait()


def test_a_wait_that_is_not_explained_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "ANSWER", 1e-3)
    session = Session(in_time=False)
    with pytest.raises(DistributedError, match="step 3 of f has taken 1 s") as found:
        step(session, 3).wait()
    assert session.given_up == [3]
    assert found.value.processes == (1,)
