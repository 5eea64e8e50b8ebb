"""Labels that arrive later, early, twice, too late, and by wrong clocks."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fxflow.errors import ArgumentError, DataError, ShapeError
from fxflow.train.data import LabelJoin

RNG = np.random.default_rng(0)


def clicks(ids: Any, times: Any, values: Any = None) -> dict[str, Any]:
    values = [1] * len(ids) if values is None else values
    return {"id": ids, "t": times, "clicked": values}


def rows(ids: Any, times: Any) -> dict[str, Any]:
    return {"id": ids, "t": times, "x": [10 * i for i in ids]}


def make(window: float = 10.0, skew: float = 0.0) -> LabelJoin:
    return LabelJoin("id", "t", window, {"clicked": 0}, skew)


def test_every_row_is_returned_once_with_its_label() -> None:
    count = 400
    shown = np.sort(RNG.random(count) * 100)
    delays = RNG.exponential(6, count)
    clicked = RNG.random(count) < 0.6
    events = [(t, "row", i) for i, t in enumerate(shown.tolist())]
    # One in five labels is read before its row: its stream is ahead.
    events += [
        (shown[i] + (delays[i] if i % 5 else -0.01), "label", i)
        for i in np.flatnonzero(clicked).tolist()
    ]
    join, found = make(), {}
    for n, (_, kind, i) in enumerate(sorted(events)):
        time = shown[i] if kind == "row" else shown[i] + delays[i]
        made = (
            join.update(rows([i], [time]))
            if kind == "row"
            else join.update(labels=clicks(pa.array([i]), np.array([time])))
        )
        if n % 50 == 0:  # another process goes on
            state = json.loads(json.dumps(join.state))
            join = make()
            join.state = state
        for i, x, label in zip(
            made.get("id", []), made.get("x", []), made.get("clicked", []), strict=True
        ):
            assert i not in found and x == 10 * i
            found[i] = label
    rest = join.finish()
    found |= dict(zip(rest["id"], rest["clicked"], strict=True))
    in_time = clicked & (delays <= 10)
    assert found == {i: int(in_time[i]) for i in range(count)}
    lost = int((clicked & ~in_time).sum())
    assert (
        lost
        and join.counts["late"] + join.counts["unmatched"] + len(join.state["early"])
        == lost
    )
    assert join.counts["repeated"] == join.counts["twice"] == 0


def test_labels_that_do_not_count_are_counted() -> None:
    join = make()
    assert join.update(rows([1, 2, 2], [0, 1, 2])) == {}
    assert join.counts["twice"] == 1
    done = join.update(labels=clicks([1, 1, 2, 9], [3, 4, 11.5, 5]))
    assert done == {"id": [1], "t": [0], "x": [10], "clicked": [1]}
    assert join.counts["repeated"] == join.counts["late"] == 1
    assert join.update(rows([3], [30.0]))["clicked"] == [0]  # that of 2
    assert join.counts["unmatched"] == 1
    assert join.finish()["id"] == [3] and join.finish() == {}


def test_clocks_may_differ_and_wrong_ones_do_not_end_windows() -> None:
    early = clicks([1], [3.0])
    for skew, label in ((0.0, None), (2.0, [1])):
        join = make(skew=skew)
        join.update(rows([1], [4.5]))
        assert join.update(labels=early).get("clicked") == label
    join = make(skew=1.0)
    join.update(rows([1, 2], [5.0, 1e9]), now=6.0)
    assert join.counts["ahead"] == 1 and join.state["latest"] == 7.0
    assert join.update(labels=clicks([1], [8.0]), now=8.0)["clicked"] == [1]
    assert join.update(rows([3], [17.5]), now=18.0) == {}  # the window is until 18
    assert join.update(rows([4], [18.5]), now=18.0)["id"] == [2]


def test_invalid_arguments_are_rejected() -> None:
    for arguments, message in (
        (("id", "t", -1.0, {"c": 0}), "window must be at least 0 seconds, got -1"),
        (("id", "t", 1.0, {}), "absent must have the columns of labels"),
        (("id", "t", 1.0, {"t": 0}), "absent must have the columns of labels"),
    ):
        with pytest.raises(ArgumentError, match=message):
            LabelJoin(*arguments)
    join = make()
    with pytest.raises(DataError, match=r"rows have no column 'id'; they have .'t'."):
        join.update({"t": [1]})
    join = make()
    with pytest.raises(DataError, match="labels have no column 'clicked'"):
        join.update(labels={"id": [1], "t": [1]})
    with pytest.raises(DataError, match="labels: row 1 has the time nan, not seconds"):
        join.update(labels=clicks([1, 2], [1.0, float("nan")]))
    with pytest.raises(ShapeError, match="columns of rows differ in length"):
        join.update({"id": [1, 2], "t": [1]})
