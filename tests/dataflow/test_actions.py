"""Tables of actions, in the notation of torch.distributed.pipelining."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import dataflow, train
from fxflow import numpy as fnp
from fxflow.dataflow import Action, Schedule, on, stages
from fxflow.dataflow.actions import schedule_from
from fxflow.dataflow.schedules import SCHEDULES
from fxflow.errors import ArgumentError, PlacementError
from tests.dataflow.works import pipeline

DEVICES = fxflow.local_devices()[:2]
RNG = np.random.default_rng(0)
#: Large enough for the gradients of weights to come apart.
PARAMS = [RNG.normal(size=(32, 32)).astype("f4") / 6 for _ in range(4)]
X = RNG.normal(size=(128, 32)).astype("f4")

TWO = """0F0,0SEND_F0,0F1,0SEND_F1,,0RECV_B0,0B0,0RECV_B1,0B1
1RECV_F0,1F0,1I0,1SEND_B0,1W0,1RECV_F1,1F1,1I1,1W1,1SEND_B1
"""


def network(params: Any, x: Any) -> Any:
    for stage, w in zip(stages(len(params)), params, strict=True):
        with on(stage):
            x = fnp.tanh(x @ w)
    return (x**2).mean()


def test_a_file_of_torch_is_read_and_written(tmp_path: Path) -> None:
    schedule = Schedule.parse(TWO)
    assert schedule.rows[0] == tuple(
        Action(0, kind, m) for kind, m in (("F", 0), ("F", 1), ("B", 0), ("B", 1))
    )
    assert str(schedule) == "0F0 0F1 0B0 0B1\n1F0 1I0 1W0 1F1 1I1 1W1"
    assert (schedule.stages, schedule.microbatches) == (2, 2)
    schedule.save(tmp_path / "two.csv")
    assert (tmp_path / "two.csv").read_text() == (
        "0F0,0F1,0B0,0B1\n1F0,1I0,1W0,1F1,1I1,1W1\n"
    )
    again = Schedule.load(tmp_path / "two.csv")
    assert again == schedule and hash(again) == hash(schedule)


def test_input_gradients_are_written_as_torch_reads_them() -> None:
    schedule = Schedule([["0F0", "0B0", "0W0"]])
    assert schedule.to_csv() == "0F0,0I0,0W0\n"


def test_overlapped_actions_are_two() -> None:
    schedule = Schedule.parse("0F0,(0F1;0B0)OVERLAP_F_B,0B1")
    assert str(schedule) == "0F0 0F1 0B0 0B1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0F0 0G1", "'0G1' is not an action: write the stage"),
        ("0F", "'0F' is not an action"),
        ("0F0 0F0", "0F0 is there twice"),
        ("0F0\n0B0", "stage 0 is in row 0 and in row 1"),
        ("0F0 2F0", "no action of stage 1"),
        ("", "there is no action"),
    ],
)
def test_what_cannot_be_read_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Schedule.parse(text)


def test_the_error_of_a_file_names_it(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("0F0,0X0\n")
    with pytest.raises(ArgumentError, match=r"bad\.csv: .*row 0: '0X0'"):
        Schedule.load(tmp_path / "bad.csv")
    with pytest.raises(ArgumentError, match="takes a text"):
        Schedule.parse(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="an action is a text, got 3"):
        Schedule([[3]])  # type: ignore[list-item]


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_the_order_of_a_schedule_as_a_table_is_the_same_order(name: str) -> None:
    works = pipeline(4, 6)
    timeline = SCHEDULES[name].order(works, lambda w: 1.0)
    rows = {place: [ran.work for ran in row] for place, row in timeline.rows.items()}
    table = schedule_from(rows)
    again = Schedule.parse(table.to_csv()).order(works, lambda w: 1.0)
    assert again.rows == timeline.rows


def test_a_program_follows_a_table() -> None:
    step = train.accumulate_gradients(network, 4)
    order = "0F0 0F2 0F1 0F3 0B0 0B1 0B2 0B3", "1F0 1B0 1F2 1F1 1B1 1B2 1F3 1B3"
    rows = Schedule([row.split() for row in order])
    split = dataflow.jit(step, devices=DEVICES, schedule=rows)
    fxflow.tree.map(
        np.testing.assert_array_equal,
        split(PARAMS[:2], X),
        fxflow.jit(step)(PARAMS[:2], X),
    )
    found = split.plan(PARAMS[:2], X).actions()
    # The last stage computes the gradient of its input with its forward part.
    assert str(found).splitlines() == [
        order[0],
        "1F0 1B0 1W0 1F2 1B2 1F1 1B1 1W1 1W2 1F3 1B3 1W3",
    ]


def test_the_rows_say_where_stages_run() -> None:
    rows = [["0F0", "3F0", "3B0", "0B0"], ["1F0", "2F0", "2B0", "1B0"]]
    rows = [[a[:-1] + str(m) for m in range(2) for a in row] for row in rows]
    step = train.accumulate_gradients(network, 2)
    split = dataflow.jit(step, devices=DEVICES, schedule=Schedule(rows))
    places = {f.stage: f.place.device for f in split.plan(PARAMS, X).fragments}
    a, b = DEVICES
    assert {s: places[s] for s in range(4)} == {0: a, 1: b, 2: b, 3: a}
    fxflow.tree.map(
        np.testing.assert_array_equal, split(PARAMS, X), fxflow.jit(step)(PARAMS, X)
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n2F0 2F1", "has 3 stages, the program 2"),
        ("0F0 0B0\n1F0 1B0", "1 microbatches, the program has 2 and 2"),
        ("0F0 0F1 0B0\n1F0 1B0 1F1 1B1", r"lacks 0B1: 0B1 on cpu:0 .*test_actions"),
        ("0F0 0F1 0B0 0B1\n1F0 1I0 1F1 1B1", r"lacks 1W0: 1W0 on cpu:1 .*test_actions"),
        ("0B0 0F0 0F1 0B1\n1F0 1B0 1F1 1B1", "wait for each other\n  0"),
    ],
)
def test_tables_that_do_not_fit_are_refused(rows: str, message: str) -> None:
    step = train.accumulate_gradients(network, 2)
    split = dataflow.jit(step, devices=DEVICES, schedule=Schedule.parse(rows))
    with pytest.raises(PlacementError, match=message):
        split.plan(PARAMS[:2], X)


def test_a_cycle_is_shown_with_values_and_lines() -> None:
    rows = "0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1"
    step = train.accumulate_gradients(network, 2)
    split = dataflow.jit(step, devices=DEVICES, schedule=Schedule.parse(rows))
    split.plan(PARAMS[:2], X)  # the last stage's backward part is in its forward part
    rows = "0B0 0F0 0F1 0B1\n1F0 1B0 1F1 1B1"
    split = dataflow.jit(step, devices=DEVICES, schedule=Schedule.parse(rows))
    with pytest.raises(PlacementError) as caught:
        split.plan(PARAMS[:2], X)
    text = str(caught.value)
    assert "0F0 on cpu:0 (" in text and "comes after 0B0 on cpu:0 (" in text
    assert text.count("test_actions.py:") >= 3 and "f32[64,32]" in text


def test_a_table_needs_stages() -> None:
    def loop(x: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            for i in range(2):
                with on(f"/device:cpu:{i}"):
                    c = fnp.sin(c + x)
            return c, None

        return fxflow.lax.scan(body, 0.0, x)[0]

    split = dataflow.jit(loop, schedule=Schedule([["0F0"], ["1F0"]]))
    with pytest.raises(PlacementError, match="is in no stage, and a table of actions"):
        split.plan(fnp.ones(3))


def test_more_rows_than_devices() -> None:
    step = train.accumulate_gradients(network, 2)
    rows = Schedule.parse("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1")
    split = dataflow.jit(step, devices=DEVICES[:1], schedule=rows)
    with pytest.raises(
        PlacementError, match=r"2 rows, one for each device.*there is 1"
    ):
        split.plan(PARAMS[:2], X)


def test_a_mapping_must_put_a_row_on_one_device() -> None:
    step = train.accumulate_gradients(network, 2)
    rows = Schedule.parse("0F0 0F1 0B0 0B1 1F0 1F1 1B0 1B1")
    places = dict(zip(stages(2), DEVICES, strict=True))
    split = dataflow.jit(step, devices=places, schedule=rows)
    with pytest.raises(PlacementError, match="row 0 of the schedule has stages on"):
        split.plan(PARAMS[:2], X)


def test_no_table_without_stages() -> None:
    with pytest.raises(PlacementError, match="has no table of actions"):
        schedule_from({})
