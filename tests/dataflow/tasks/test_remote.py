"""Arrays that stay in tasks: handles that are fetched, fed on, donated and freed."""

from __future__ import annotations

import copy
import gc
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow
from fxflow.core.arrays import Array
from fxflow.dataflow import Cluster, RemoteArray, on
from fxflow.errors import ArgumentError, DeletedArrayError
from fxflow.train import checkpoint


def doubled(x: Any) -> Any:
    with on("/task:1"):
        return x * 2


def handle(cluster: Cluster, n: int = 5000) -> RemoteArray:
    found = dataflow.jit(doubled, devices=cluster)(fnp.arange(float(n)))
    assert isinstance(found, RemoteArray)
    return found


def test_a_handle_has_a_type_and_a_device(cluster: Cluster) -> None:
    x = handle(cluster)
    assert (x.shape, x.dtype, x.ndim, x.nbytes) == ((5000,), np.float32, 1, 20_000)
    assert str(x.device) == "task:1 cpu:0"
    assert x.devices() == {x.device}
    assert repr(x) == "RemoteArray(f32[5000] on task:1 cpu:0)"
    assert x.block_until_ready() is x
    assert x.is_ready()


def test_a_handle_becomes_an_array_where_one_is_needed(cluster: Cluster) -> None:
    x, expected = handle(cluster), np.arange(5000.0, dtype="float32") * 2
    np.testing.assert_array_equal(x, expected)
    assert type(x.fetch()) is Array
    np.testing.assert_array_equal(fnp.sin(x), fnp.sin(expected))
    np.testing.assert_array_equal(fxflow.jit(lambda y: y + 1)(x), expected + 1)
    np.testing.assert_array_equal(np.asarray(x + x), expected * 2)
    np.testing.assert_array_equal(2 - x, 2 - expected)
    assert float(x[3]) == 6
    assert x.sum() == expected.sum()
    assert len(x) == 5000
    for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        np.testing.assert_array_equal(again, expected)


def test_a_small_value_comes_by_itself(cluster: Cluster) -> None:
    x = handle(cluster, 3)
    x.block_until_ready()
    assert x._value is not None
    assert str(x) == "[0. 2. 4.]"
    assert f"{x[1]:.2f}" == "2.00"


def test_a_handle_is_fed_on_without_moving(cluster: Cluster) -> None:
    step = dataflow.jit(doubled, devices=cluster)
    x = handle(cluster)
    for _ in range(3):
        x = step(x)
    assert x._value is None
    np.testing.assert_array_equal(x, np.arange(5000.0, dtype="float32") * 16)


def test_a_tree_is_fetched_at_once(cluster: Cluster) -> None:
    tree = {"a": handle(cluster), "b": [handle(cluster, 2), 3.0]}
    got = dataflow.fetch(tree)
    assert type(got["a"]) is Array
    assert got["b"][1] == 3.0
    np.testing.assert_array_equal(got["b"][0], [0, 2])


def test_a_handle_is_saved_and_restored(cluster: Cluster, tmp_path: Path) -> None:
    state = {"w": handle(cluster), "small": handle(cluster, 2), "n": 3}
    checkpoint.save(tmp_path / "a", state)
    for target in (None, state):
        found = checkpoint.restore(
            tmp_path / "a", *([] if target is None else [target])
        )
        np.testing.assert_array_equal(found["w"], state["w"])
        np.testing.assert_array_equal(found["small"], [0, 2])
        assert found["n"] == 3
    assert isinstance(found["w"], RemoteArray)
    assert found["w"].device is state["w"].device
    again = dataflow.jit(doubled, devices=cluster)(found["w"])
    np.testing.assert_array_equal(again, np.asarray(state["w"]) * 2)


def test_a_value_is_sent_to_where_an_array_is(cluster: Cluster) -> None:
    x = handle(cluster)
    y = x.put(np.ones(5000, np.float32))
    assert (repr(y), y.is_ready()) == (repr(x), True)
    np.testing.assert_array_equal(
        dataflow.jit(doubled, devices=cluster)(y), [2.0] * 5000
    )
    with pytest.raises(
        ArgumentError, match=r"is f32\[5000\], and the value is f32\[3\]"
    ):
        x.put(fnp.ones(3))
    x.delete()
    with pytest.raises(DeletedArrayError):
        x.put(y)


def test_functions_of_trees_know_handles(cluster: Cluster) -> None:
    state = [handle(cluster), handle(cluster, 2)]
    assert fxflow.block_until_ready(state)[0].is_ready()
    state[0].copy_to_host_async()
    found = fxflow.device_get(state)
    assert [type(x) for x in found] == [np.ndarray, np.ndarray]
    np.testing.assert_array_equal(found[0], np.arange(5000.0) * 2)
    assert fxflow.eval_shape(lambda x: x, state)[0].shape == (5000,)


def test_a_donated_handle_is_dead(cluster: Cluster) -> None:
    step = dataflow.jit(doubled, devices=cluster, donate_argnums=0)
    x = handle(cluster)
    y = step(x)
    assert x.is_deleted()
    assert "<deleted>" in repr(x)
    for use in (x.fetch, x.block_until_ready, lambda: step(x), lambda: np.asarray(x)):
        with pytest.raises(DeletedArrayError, match=r"f32\[5000\] on task:1 cpu:0"):
            use()
    assert float(y[1]) == 4


def test_a_deleted_handle_is_dead(cluster: Cluster) -> None:
    x = handle(cluster)
    x.delete()
    x.delete()
    with pytest.raises(DeletedArrayError):
        dataflow.fetch([x])


def held(cluster: Cluster) -> int:
    """The number of arrays that tasks hold for the controller."""
    session = cluster._connected()
    states = session.states([0, 1])
    return sum(state.arrays for state in states.values())


def test_tasks_free_what_has_no_handle(cluster: Cluster) -> None:
    gc.collect()
    end = time.monotonic() + 20
    kept = [handle(cluster) for _ in range(3)]
    kept[-1].block_until_ready()
    before = held(cluster)
    assert before >= 3
    del kept
    gc.collect()
    while held(cluster) > before - 3 and time.monotonic() < end:
        time.sleep(0.02)
    assert held(cluster) <= before - 3


def test_handles_of_another_cluster_are_refused(cluster: Cluster) -> None:
    with dataflow.local_cluster(1) as other:

        def f(x: Any) -> Any:
            with on("/task:0"):
                return x + 1

        x = dataflow.jit(f, devices=other)(fnp.zeros(5000))
        match = (
            r"argument x is f32\[5000\].* on task:0 cpu:0 of another cluster than its"
        )
        with pytest.raises(ArgumentError, match=match):
            dataflow.jit(doubled, devices=cluster)(x)
        with pytest.raises(ArgumentError, match=r"argument a is f32.* than argument b"):
            dataflow.jit(lambda b, a: a + b)(handle(cluster), x)
