import random

from fxflow.distributed.stop_agreement import StopDecision, StopPoint


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
