"""Tasks: what they refuse, and that what others send cannot end them."""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow
from fxflow.dataflow import Cluster, on
from fxflow.dataflow.rows import PlaceRow
from fxflow.dataflow.tasks import worker
from fxflow.dataflow.tasks.messages import Meet
from fxflow.devices import buffers
from fxflow.errors import PlacementError


def meet(**changes: Any) -> Meet:
    own = Meet(0, "", "1.0", "0.10", "worker", 0, ["cpu"], [], 60.0, "", [8])
    return own._replace(**changes)


def test_versions_must_agree() -> None:
    assert worker.disagreement(meet(), meet(number=1)) == ""
    for changed in ({"version": "1.1"}, {"jaxlib": "0.11"}):
        told = worker.disagreement(meet(), meet(**changed))
        assert "install the same versions everywhere" in told
        assert next(iter(changed.values())) in told


def test_a_task_tells_its_devices() -> None:
    platforms = [device.platform for device in worker.own_devices()]
    assert platforms.count("cpu") >= 4


def test_an_error_is_sent_with_its_notes() -> None:
    error = ValueError("this")
    error.add_note("in fragment 1")
    assert worker.told_of(error) == "ValueError: this\nin fragment 1"


def test_received_arrays_are_used_as_they_are() -> None:
    host = np.arange(6, dtype="float32").reshape(2, 3)
    array = worker.array_at(host, buffers.placement(buffers.default_placement().device))
    assert np.shares_memory(np.asarray(array), host)
    kind = worker.type_of(["float32", [2, 3], 0], [array._type.placement])
    assert kind.aval is array.aval.strong()
    assert kind.placement is array._type.placement


def test_strangers_do_not_disturb_a_task(cluster: Cluster) -> None:
    def f(x: Any) -> Any:
        with on("/task:0"):
            return x + 1

    step = dataflow.jit(f, devices=cluster)
    assert float(step(1.0)) == 2
    strangers = []
    for sent in (b"", b"GET / HTTP/1.1\r\n\r\n" * 10, b"\0" * 64 + b"garbage" * 100):
        one = socket.socket(socket.AF_UNIX)
        one.connect(cluster.addresses[0])
        one.sendall(sent)
        strangers.append(one)
    assert float(step(fnp.float32(2.0))) == 3
    for one in strangers:
        one.close()
    assert float(step(3.0)) == 4


def test_a_wrong_program_is_an_error_of_its_registration(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def f(x: Any) -> Any:
        with on("/task:0"):
            return x + 1

    from fxflow.dataflow.tasks.program import ClusterProgram
    from fxflow.errors import DistributedError

    made = ClusterProgram._message

    def broken(self: Any, task: int) -> Any:
        message = made(self, task)
        text = np.frombuffer(b"module @broken { nothing }", np.uint8)
        message.arrays["p0"] = text
        return message

    monkeypatch.setattr(ClusterProgram, "_message", broken)
    with pytest.raises(DistributedError, match="task:0: "):
        dataflow.jit(f, devices=cluster)(1.0)
    monkeypatch.undo()
    assert float(dataflow.jit(f, devices=cluster)(1.0)) == 2


def test_a_place_is_found_by_its_row() -> None:
    own = fxflow.local_devices()
    assert worker.place_here(PlaceRow(["cpu:1"], None, [])).device is own[1]
    mesh = worker.place_here(PlaceRow(["cpu:2", "cpu:0"], [2, 1], [[], [0]]))
    assert mesh.devices == (own[2], own[0])
    assert mesh.sharding.shard_shape((3, 4)) == (3, 2)
    assert not worker.place_here(PlaceRow(["cpu:1"], [], [])).is_single
    # A row is that of the place that it describes.
    assert PlaceRow.of(mesh) == PlaceRow(["cpu:2", "cpu:0"], [2, 1], [[], [0]])


@pytest.mark.parametrize(
    ("row", "match"),
    [
        ([["cpu:99"], None, []], r"no device 'cpu:99': the task has cpu:0 cpu:1 "),
        ([["/job:w/task:1/cpu:0"], None, []], "no device '/job"),
        ([[], [0], []], "no device"),
        ([[3], None, []], "not a place: "),
        ([["cpu:0", "cpu:1"], None, []], "not a mesh of cpu:0 cpu:1: sizes None"),
        ([["cpu:0", "cpu:1"], [3], []], r"not a mesh of cpu:0 cpu:1: sizes \[3\]"),
        ([["cpu:0", "cpu:1"], [-1, -2], []], "not a mesh"),
        ([["cpu:0", "cpu:1"], [2.0], []], "not a mesh"),
        ([["cpu:0", "cpu:0"], [2], []], "occurs twice"),
        ([["cpu:0", "cpu:1"], [2], [[1]]], "no axis"),
        ([["cpu:0", "cpu:1"], [2], [[0], [0]]], "twice"),
        ([["cpu:0", "cpu:1"], [2], [["x"]]], "not a mesh"),
        ([["cpu:0", "cpu:1"], [2], 7], "not a place: "),
        ([["cpu:0"], [1] * 99, []], "not a mesh"),
        (["cpu:0"], "not a place: "),
        (7, "not a place: "),
    ],
)
def test_a_row_that_is_not_of_a_place_is_refused(row: Any, match: str) -> None:
    with pytest.raises((PlacementError, ValueError), match=match):
        worker.place_here(PlaceRow.read(row))


def test_a_type_must_fit_its_place() -> None:
    places = [worker.place_here(PlaceRow(["cpu:0", "cpu:1"], [2], [[0]]))]
    assert worker.type_of(["float32", [4], 0], places).placement is places[0]
    for listed, match in (
        (["float32", [3], 0], "cannot be divided into 2"),
        (["float32", [], 0], "at least 1 axes"),
        (["float32", [4], 1], "no place 1: there are 1"),
        (["float32", [4], -1], "no place -1"),
    ):
        with pytest.raises(PlacementError, match=match):
            worker.type_of(listed, places)
