import time

import pytest

from fxflow.distributed import protocol
from fxflow.distributed.coordinator import Group
from fxflow.distributed.membership import Membership, choose_plan
from fxflow.distributed.messages.channel import dial

WHOLE = {"pieces": None, "sizes": []}


def held(step: int, kind: str = "held", **more: object) -> dict[str, object]:
    return {"step": step, "kind": kind, **WHOLE, **more}


def half(step: int, number: int) -> dict[str, object]:
    place = [[4 * number, 4 * number + 4]]
    return held(step, pieces=[[0, place], [1, []]], sizes=[8, 1])


def test_the_newest_complete_state_is_chosen() -> None:
    plan = choose_plan({"a": [held(4), held(3)], "b": [held(5), held(4)]})
    assert plan == {"step": 5, "kind": "held", "sources": [["b", None]]}


def test_states_in_memory_are_preferred_to_files_and_the_initial_state() -> None:
    own = [held(0, "initial"), held(6, "file"), held(6)]
    assert choose_plan({"a": own})["kind"] == "held"
    assert choose_plan({"a": own[:2]})["step"] == 6
    assert choose_plan({"a": own[:1]}) == {
        "step": 0,
        "kind": "initial",
        "sources": [["a", None]],
    }


def test_parts_of_several_workers_make_a_complete_state() -> None:
    plan = choose_plan(
        {
            "a": [held(0, "initial"), half(4, 0), half(5, 0)],
            "b": [held(0, "initial"), half(4, 1), half(3, 1)],
        }
    )
    assert (plan["step"], plan["kind"]) == (4, "held")
    # The leaf that both have comes from one of them.
    assert plan["sources"] == [["a", [[0, [[0, 4]]], [1, []]]], ["b", [[0, [[4, 8]]]]]]


def test_an_older_state_is_chosen_if_a_part_is_lost() -> None:
    own = [held(0, "initial"), held(2, "file"), half(4, 0), half(5, 0)]
    plan = choose_plan({"a": own, "b": [held(2, "file")]})
    assert (plan["step"], plan["kind"]) == (2, "file")
    assert plan["sources"] == [["a", None], ["b", None]]


@pytest.mark.parametrize("bounds", [(0, 1), (3, 2)])
def test_invalid_bounds_are_refused(bounds: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="1 <= minimum <= maximum"):
        Membership("127.0.0.1:0", *bounds)


def test_giving_up_ends_the_run() -> None:
    said: list[str] = []
    server = Membership("127.0.0.1:0", 1, 2, log=said.append)
    server.give_up("no member is left")
    server.give_up("again")
    server.stop()
    assert (server.outcome, server.why) == ("failed", "no member is left")
    assert said == ["failed: no member is left"]


def test_too_few_workers_end_the_wait() -> None:
    server = Membership("127.0.0.1:0", 2, 2, start_timeout=0.1)
    end = time.monotonic() + 5
    while not server.outcome and time.monotonic() < end:
        time.sleep(0.01)
    server.stop()
    assert server.why.startswith("0 workers are ready, at least 2 are needed")


def test_answers_outside_an_epoch_are_ignored() -> None:
    """A late answer may arrive after its epoch."""
    said: list[str] = []
    server = Membership("127.0.0.1:0", 2, 2, log=said.append)
    line = dial(f"127.0.0.1:{server.port}", 10, "", "launcher")
    try:
        line.send(protocol.written(protocol.RegisterWorker(0, "a", "h:1")))
        for kind in Group.handlers.keys() - {protocol.Notice}:
            request = kind(*[0] * len(kind._fields))
            line.send(protocol.written(request, epoch=7))
        line.send(protocol.written(protocol.ListWaiting(), id=1, epoch=7))
        answer, _ = line.receive()
        assert (answer["re"], answer["error"]) == (1, "unreachable")
        assert said == ["worker 0 (a) has joined"]
    finally:
        line.close()
        server.stop()
