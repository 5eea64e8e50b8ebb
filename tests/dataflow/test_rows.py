"""Rows: what each process does in a step, as numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest

import fxflow
from fxflow import dataflow
from fxflow.core.arrays import ShapeDtypeStruct
from fxflow.dataflow import on
from fxflow.dataflow.lowering import described, lower
from fxflow.dataflow.rows import Draft, Part, PlaceRow, Rows, granted, lanes_of
from fxflow.dataflow.tasks.devices import HERE, ClusterDevices
from fxflow.devices import buffers

X = ShapeDtypeStruct((4, 4), "float32")


def rows_of(
    f: Any, *args: Any, where: Any = None, donated: Any = None, cluster: Any = None
) -> tuple[Rows, Any]:
    """Returns the rows of a function over two tasks, and the plan."""
    cluster = cluster or ClusterDevices({"worker": 2}, [["cpu", "cpu"], ["cpu"]])
    plan = dataflow.jit(f, devices=cluster).plan(*args)
    drafts = []
    for i, fragment in enumerate(plan.fragments):
        found = lower(fragment, {}, plan)
        text = described("f", fragment)
        drafts.append(
            Draft(
                fragment,
                i,
                found.constants,
                found.inputs,
                found.wheres,
                found.results,
                text,
            )
        )
    places = [
        cluster.devices[w].place if isinstance(w, int) else w
        for w in where or [None] * len(args)
    ]
    return Rows(plan.graph, drafts, places, donated or [False] * len(args)), plan


def chain(x: Any) -> Any:
    with on("/task:0"):
        x = x @ x
    with on("/task:1"):
        return x + 1


def test_a_value_is_sent_from_task_to_task() -> None:
    made, _ = rows_of(chain, X)
    here, first, second = (made.parts[n] for n in (HERE, 0, 1))
    (argument,), (edge,) = here.sends, first.fragments[0].sends
    assert argument[2] == 0
    assert edge[2] == 1
    assert [row.edge for row in second.arrivals] == [edge[0]]
    assert second.arrivals[0].source == 0
    assert second.arrivals[0].shape == [4, 4]
    assert second.fragments[0].needs == [second.arrivals[0].number]
    assert made.source_of(edge[0]) == 0
    assert not here.fragments
    # The result stays in task 1.
    assert second.fragments[0].keeps == [[0, second.fragments[0].results[0], 1]]


def test_a_value_for_several_fragments_is_sent_once_to_each_place() -> None:
    def f(x: Any) -> Any:
        with on("/task:0"):
            y = x @ x
        with on("/task:1"):
            a = fxflow.lax.sin(y)
            b = a @ y
        return b

    made, _ = rows_of(f, X)
    assert sum(len(row.sends) for row in made.parts[0].fragments) == 1


def test_arguments_that_tasks_have_are_loaded_there() -> None:
    made, _ = rows_of(chain, X, where=[0], donated=[True])
    part = made.parts[0]
    assert not made.parts[HERE].sends
    assert part.arguments == [0]
    assert part.donated == [True]
    ((position, slot),) = part.loads[0].loads
    assert position == 0
    assert slot in part.fragments[0].frees


def test_an_argument_in_another_task_goes_there_directly() -> None:
    made, _ = rows_of(chain, X, where=[2])
    assert made.parts[1].arguments == [0]
    ((edge, _, process),) = made.parts[1].loads[0].sends
    assert process == 0
    assert made.parts[0].arrivals[0].edge == edge
    assert made.parts[0].peers == {1}


def test_an_argument_in_another_place_of_the_task_is_copied() -> None:
    made, _ = rows_of(chain, X, where=[1])
    part = made.parts[0]
    assert part.lanes == 2
    assert part.loads[0].tells == [part.fragments[0].lane]
    assert part.fragments[0].needs == [part.loads[0].number]
    assert part.fragments[0].pulls[0][1] == part.loads[0].loads[0][1]


def test_an_argument_that_is_returned_stays_in_its_task() -> None:
    def f(x: Any, y: Any) -> Any:
        with on("/task:0"):
            return x, y @ y, x

    made, _ = rows_of(f, X, X, where=[2, 0], donated=[True, False])
    load = made.parts[1].loads[0]
    ((_, slot),) = load.loads
    assert load.keeps == [[0, slot, 1], [2, slot, 1]]
    assert load.frees == [slot]
    assert made.parts[1].donated == [True]


def test_a_part_survives_being_written_as_lists() -> None:
    made, _ = rows_of(chain, X, where=[1])
    for part in made.parts.values():
        assert Part.of(json.loads(json.dumps(list(part)))) == part
    with pytest.raises(ValueError, match="not a part of a program"):
        Part.of([1, 2])


def test_each_slot_is_freed_once() -> None:
    def f(x: Any) -> Any:
        with on("/task:0/device:cpu:0"):
            y = x @ x
        with on("/task:0/device:cpu:1"):
            z = y @ x
        with on("/task:0/device:cpu:0"):
            return y @ z

    made, _ = rows_of(f, X)
    part = made.parts[0]
    freed = [slot for row in part.fragments for slot in row.frees]
    dropped = [slot for row in part.fragments for slot in row.drops]
    shared = dict(part.shared)
    assert len(set(freed)) == len(freed)
    assert {slot: dropped.count(slot) for slot in dropped} == shared
    assert set(freed) | set(dropped) == set(range(part.slots))


def test_a_window_lets_at_least_one_value_through() -> None:
    users = range(4)
    assert granted([60, 30, 20, 5], users, 0, 100) == 2
    assert granted([60, 30, 20, 5], users, 1, 100) == 4
    assert granted([500, 500], users, 0, 100) == 1
    assert granted([500, 500], users, 1, 100) == 2
    assert granted([], users, 0, 100) == 0


def test_a_window_lets_all_values_of_the_next_fragment_through() -> None:
    sizes, users = [500, 500, 500, 10], [3, 3, 4, 4]
    assert granted(sizes, users, 0, 100) == 2
    assert granted(sizes, users, 2, 100) == 4


def test_places_that_share_devices_share_a_lane() -> None:
    first, second, third = map(buffers.placement, fxflow.local_devices()[:3])
    mesh = fxflow.Mesh(fxflow.local_devices()[:2], ("x",))
    both = buffers.placement_for(fxflow.NamedSharding(mesh, fxflow.P()))
    lanes = lanes_of([first, third, both, second])
    assert lanes[first] == lanes[both] == lanes[second] != lanes[third]


def test_values_on_a_mesh_have_the_places_of_their_parts() -> None:
    def f(w: Any, x: Any) -> Any:
        with on("/task:1"):
            y = x + 1
        with on(mesh):
            return fxflow.lax.tanh(y @ w), w * 2

    w, x = (ShapeDtypeStruct(s, "float32") for s in ((64, 512), (8, 64)))
    cluster = ClusterDevices({"worker": 2}, [["cpu", "cpu"], ["cpu"]])
    mesh = fxflow.Mesh(cluster.devices_of(0), "x")
    divided = cluster.place_of(fxflow.NamedSharding(mesh, fxflow.P(None, "x")))
    made, _ = rows_of(f, w, x, cluster=cluster, where=[divided, None])
    part = made.parts[0]
    whole, columns = PlaceRow(["cpu:0", "cpu:1"], [2], []), [[], [0]]
    assert part.places[part.fragments[0].place] == whole
    # `w` is there already, as the program takes it; `y` comes whole.
    assert part.places[part.loads[0].place] == whole._replace(entries=columns)
    (arrival,) = part.arrivals
    assert part.places[arrival.place] == whole
    assert part.lanes == 1
    assert [str(made.where(v)) for v in made._graph.outputs] == [str(divided)] * 2
    assert all(made.where(v) is divided for v in made._graph.outputs)
    assert all(made.origin(v) is not divided for v in made._graph.outputs)
    again = Part.of(json.loads(json.dumps(list(part))))
    assert again == part
