"""The executor: one process's part of the steps."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.core.arrays import as_array
from fxflow.dataflow.tasks.executor import Handles, Worker, alias, is_there
from fxflow.errors import DistributedError


def test_a_worker_calls_in_order_and_starts_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fxflow.dataflow.tasks.executor.IDLE", 0.01)
    worker, got = Worker("a test"), list[int]()
    for _ in range(2):
        over = threading.Event()
        for i in range(3):
            worker.call(lambda i=i: got.append(i))
        worker.call(over.set)
        assert over.wait(10)
        while worker._running:
            time.sleep(1e-3)
    assert got == [0, 1, 2] * 2


def held(*numbers: int) -> Handles:
    handles = Handles()
    for number in numbers:
        handles.keep(number, as_array(float(number)))
    return handles


def test_a_value_is_kept_while_a_step_will_take_it() -> None:
    handles = held(1, 2)
    handles.expect([1])
    handles.free([1, 2])
    assert len(handles) == 1
    assert float(handles.take(1, donated=False)) == 1
    assert not len(handles)


def test_a_value_may_be_freed_before_it_is_computed() -> None:
    handles = held()
    handles.expect([1])
    handles.free([1, 2])
    handles.keep(1, as_array(1.0))
    handles.keep(2, as_array(2.0))
    assert len(handles) == 1
    assert float(handles.take(1, donated=False)) == 1
    assert not len(handles)


def test_a_donated_value_is_dropped_with_its_last_use() -> None:
    handles = held(1)
    handles.expect([1])
    handles.expect([1])
    handles.take(1, donated=True)
    assert len(handles) == 1
    handles.take(1, donated=False)
    assert not len(handles)


def test_a_value_that_was_never_computed_is_an_error() -> None:
    handles = held()
    handles.expect([5])
    with pytest.raises(DistributedError, match="compute an argument failed"):
        handles.take(5, donated=False)


def test_a_failed_step_gives_its_arguments_back() -> None:
    handles = held(1)
    handles.expect([1])
    handles.give_back([1])
    assert float(handles.get(1) or 0) == 1
    handles.free([1])
    assert not len(handles)
    handles.free([7])
    handles.forget(range(5, 9))
    handles.keep(7, as_array(7.0))
    assert handles.get(7) is not None


def test_readiness_is_known_without_waiting() -> None:
    handles = held(1)
    assert handles.are_ready([1])
    assert not handles.are_ready([1, 2])
    assert is_there(as_array(np.zeros(3)))


def test_an_alias_outlives_the_array() -> None:
    for array in (as_array(np.arange(3.0, dtype="float32")), fnp.arange(3.0) + 1):
        expected = np.array(array)
        other = alias(array)
        del array
        np.testing.assert_array_equal(np.array(other), expected)


def test_an_edge_beyond_the_window_waits_for_room(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller's arguments, of which the task has room for one at a time."""
    import fxflow
    from fxflow import dataflow
    from fxflow.dataflow import on

    def f(xs: Any) -> Any:
        total = fnp.zeros((300,))
        for i, (x, y) in enumerate(zip(xs[::2], xs[1::2], strict=True)):
            with on(f"/task:{i % 2}"):
                total = fnp.sin(total + x * y) @ fnp.ones((300, 300))
        return total

    xs = [np.full(300, float(i), np.float32) for i in range(16)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fxflow.dataflow.rows.WINDOW", 2000)
        got = dataflow.jit(f, devices=cluster)(xs)
    np.testing.assert_allclose(got, fxflow.jit(f)(xs), rtol=1e-6)
