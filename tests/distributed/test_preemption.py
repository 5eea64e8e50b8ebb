import os
import random
import signal
import threading
import time
from typing import Any

import pytest

from fxflow import config
from fxflow.devices.cluster import set_failure
from fxflow.distributed.coordinator import StopDecision
from fxflow.distributed.preemption import Agreement, StopPoint, noticing
from fxflow.distributed.protocol import Hold, InStep, Notice, Until
from fxflow.errors import DistributedError


class Recorder:
    """Records what a process sends to the coordinator."""

    def __init__(self) -> None:
        self.posted: list[Any] = []

    def post(self, message: Any) -> None:
        self.posted.append(message)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def agreement(recorder: Recorder) -> Any:
    before = signal.getsignal(signal.SIGTERM)
    result = Agreement()
    result.attach(recorder)  # type: ignore[arg-type]
    yield result
    result.close()
    assert signal.getsignal(signal.SIGTERM) is before


def wait_until(true: Any) -> None:
    end = time.monotonic() + 10
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    assert true()


def test_a_signal_sets_the_event() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with noticing() as notice:
        assert not notice.is_set()
        os.kill(os.getpid(), signal.SIGTERM)
        assert notice.wait(5)
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_coordinator_is_notified_of_the_signal(
    agreement: Agreement, recorder: Recorder
) -> None:
    agreement.listen()
    assert not agreement.reached(0)
    os.kill(os.getpid(), signal.SIGTERM)
    wait_until(lambda: recorder.posted == [Notice()])


def test_the_process_stops_at_the_agreed_step(
    agreement: Agreement, recorder: Recorder
) -> None:
    assert [agreement.reached(step) for step in range(3)] == [False] * 3
    agreement.handle(Hold())
    agreement.handle(Hold())
    assert recorder.posted == [InStep(3)]
    timer = threading.Timer(0.2, agreement.handle, [Until(5, "stop")])
    timer.start()
    started = time.monotonic()
    # It begins no step before the decision.
    assert not agreement.reached(3)
    assert time.monotonic() - started > 0.15
    assert [agreement.reached(step) for step in (4, 5, 6)] == [False, True, False]
    assert (agreement.begun, agreement.then) == (4, "stop")


def test_steps_may_be_skipped(agreement: Agreement) -> None:
    assert not agreement.reached(10)
    agreement.handle(Hold())
    agreement.handle(Until(11, "stop"))
    assert [agreement.reached(step) for step in (20, 30)] == [True, False]


def test_events_before_attach_are_handled(recorder: Recorder) -> None:
    agreement = Agreement()
    agreement.handle(Hold())
    agreement.attach(recorder)  # type: ignore[arg-type]
    assert recorder.posted == [InStep(0)]


def test_a_missing_decision_times_out(agreement: Agreement) -> None:
    agreement.handle(Hold())
    with (
        config.override(collective_timeout=1),
        pytest.raises(DistributedError, match=r"did not agree on a step .* 1 s"),
    ):
        agreement.reached(0)


def test_a_lost_process_ends_the_wait(agreement: Agreement) -> None:
    agreement.handle(Hold())

    def lose() -> None:
        set_failure(DistributedError("process 1 is lost", [1]))
        agreement.wake()

    timer = threading.Timer(0.1, lose)
    timer.start()
    try:
        with pytest.raises(DistributedError, match="process 1 is lost"):
            agreement.reached(0)
    finally:
        timer.join()
        set_failure(None)


# -- the decision ----------------------------------------------------------------------


def test_the_farthest_process_decides() -> None:
    decision = StopDecision()
    assert [decision.ask(), decision.ask()] == [True, False]
    decision.report(0, 5)
    decision.report(1, 8)
    decision.report(1, 10)  # only the first report counts
    assert decision.decide({0, 1, 2}) is None
    decision.report(2, 0)
    assert decision.decide({0, 1, 2}) == 8
    assert decision.decide({0, 1, 2}) is None


def test_a_process_that_ended_is_not_waited_for() -> None:
    decision = StopDecision()
    decision.ask()
    decision.report(0, 1)
    assert decision.decide({0, 1}) is None
    assert decision.decide(set()) is None
    assert decision.decide({0}) == 1


def test_reports_before_the_hold_do_not_count() -> None:
    decision = StopDecision()
    decision.report(0, 3)
    decision.ask()
    assert decision.decide({0}) is None


def test_until_is_the_first_step_that_does_not_run() -> None:
    point = StopPoint(3)
    assert point.begin(3)
    point.is_held = True
    assert (point.is_open, point.next) == (True, 4)
    point.until = 5
    assert not point.is_open
    assert [point.begin(step) for step in (4, 5, 6)] == [True, False, False]
    assert point.next == 5


def test_all_run_the_same_steps_in_any_order_of_events() -> None:
    for seed in range(50):
        draw = random.Random(seed)
        points = [StopPoint() for _ in range(draw.randint(1, 5))]
        ran: list[list[int]] = [[] for _ in points]
        decision, decided = StopDecision(), []
        decision.ask()
        holding = list(range(len(points)))  # receive the request to hold, in any order
        while any(point.until is None for point in points):
            rank = draw.randrange(len(points))
            point = points[rank]
            if holding and draw.random() < 0.1:
                asked = holding.pop(draw.randrange(len(holding)))
                points[asked].is_held = True
                decision.report(asked, points[asked].next)
                found = decision.decide(set(range(len(points))))
                decided += [] if found is None else [found]
            elif decided and draw.random() < 0.3:
                point.until = decided[0]
            elif not point.is_open and point.begin(point.next):
                ran[rank].append(point.next - 1)
        for point, steps in zip(points, ran, strict=True):
            while point.begin(point.next):
                steps.append(point.next - 1)
        assert ran == [list(range(decided[0]))] * len(points), f"seed {seed}"
