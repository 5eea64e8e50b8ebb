"""Functions over tasks have the values of one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow, kernels, lax, train
from fxflow.dataflow import (
    Cluster,
    Costs,
    Rates,
    RemoteArray,
    on,
    replanning,
    stages,
)
from fxflow.dataflow.rates import Link, kind_of
from fxflow.errors import PlacementError

LOCAL = ["cpu:0", "cpu:1", "cpu:2", "cpu:3"]


def network(params: Any, x: Any) -> Any:
    for stage, w in zip(stages(len(params)), params, strict=True):
        with on(stage):
            x = fnp.tanh(x @ w)
    return fnp.mean(x**2)


PARAMS = [fnp.sin(fnp.arange(64.0 * 64).reshape(64, 64) + i) / 8 for i in range(4)]
X = fnp.cos(fnp.arange(32.0 * 64).reshape(32, 64))


def same(a: Any, b: Any) -> None:
    for x, y in zip(fxflow.tree.leaves(a), fxflow.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_processes_give_the_bits_of_devices(cluster: Cluster) -> None:
    f = fxflow.value_and_grad(network)
    same(
        dataflow.jit(f, devices=cluster)(PARAMS, X),
        dataflow.jit(f, devices=LOCAL)(PARAMS, X),
    )


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "zb-h1"])
def test_a_pipeline_gives_the_bits_of_devices(cluster: Cluster, schedule: str) -> None:
    f = train.accumulate_gradients(network, 4)
    same(
        dataflow.jit(f, devices=cluster, schedule=schedule)(PARAMS, X),
        dataflow.jit(f, devices=LOCAL, schedule=schedule)(PARAMS, X),
    )


def test_state_stays_in_its_task_between_steps(cluster: Cluster) -> None:
    def update(params: Any, x: Any) -> Any:
        value, grads = fxflow.value_and_grad(network)(params, x)
        return [w - 0.1 * g for w, g in zip(params, grads, strict=True)], value

    step = dataflow.jit(update, devices=cluster, donate_argnums=0)
    here = dataflow.jit(update, devices=LOCAL)
    params, expected = list(map(fnp.array, PARAMS)), PARAMS
    losses = []
    for _ in range(4):
        params, value = step(params, X)
        expected, other = here(expected, X)
        losses.append((float(value), float(other)))
    assert [str(w.device) for w in params] == [
        "task:0 cpu:0", "task:0 cpu:1", "task:1 cpu:0", "task:1 cpu:1",
    ]  # fmt: skip
    assert all(w._value is None for w in params)
    assert [a for a, _ in losses] == [b for _, b in losses]
    same(params, expected)
    # A call with state in tasks and one with state here are two signatures.
    assert len(step._caches.compiled) == 2


def test_this_process_runs_fragments_too(cluster: Cluster) -> None:
    def f(x: Any) -> Any:
        with on("/task:0"):
            y = fnp.sin(x)
        with on(fxflow.devices()[1]):
            z = fxflow.pure_callback(np.cos, y, y)
        with on("/task:1"):
            w = z @ y
        with on(fxflow.devices()[1]):
            return w + 1, z

    got = dataflow.jit(f, devices=cluster)(X[0])
    assert not any(isinstance(a, RemoteArray) for a in got)
    assert got[0].devices() == {fxflow.devices()[1]}
    np.testing.assert_allclose(got[0], fxflow.jit(f)(X[0])[0], rtol=1e-6)


def test_outputs_may_be_arguments_constants_and_the_same_value(
    cluster: Cluster,
) -> None:
    large = fnp.arange(3000.0)

    def f(x: Any, n: Any) -> Any:
        with on("/task:1"):
            y = x + large
        return {"y": y, "again": y, "x": x, "large": large, "one": 1.0, "n": n}

    step = dataflow.jit(f, devices=cluster, donate_argnums=1)
    first = step(fnp.ones(3000), fnp.zeros(3))
    second = step(first["y"], first["n"])
    assert second["x"] is not first["y"]
    same(second["x"], first["y"])
    same(second["again"], fnp.arange(3000.0) * 2 + 1)
    same(second["large"], large)
    assert second["one"] == 1.0


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint32", "bfloat16", "float16", "complex64", "int4"]
)
def test_dtypes_travel(cluster: Cluster, dtype: str) -> None:
    def f(x: Any) -> Any:
        with on("/task:0"):
            y = fnp.concatenate([x, x])
        with on("/task:1"):
            return y[::-1]

    x = fnp.asarray([0, 1, 1, 0, 1], dtype)
    same(dataflow.jit(f, devices=cluster)(x), fxflow.jit(f)(x))


def test_shapes_without_elements_and_keys_travel(cluster: Cluster) -> None:
    def f(key: Any, empty: Any) -> Any:
        with on("/task:0"):
            keys = fxflow.random.split(key)
            wide = fnp.concatenate([empty, empty], axis=1)
        with on("/task:1"):
            return fxflow.random.normal(keys[1], (3,)), wide, keys

    step = dataflow.jit(f, devices=cluster)
    got = step(fxflow.random.key(1), fnp.zeros((0, 2)))
    want = fxflow.jit(f)(fxflow.random.key(1), fnp.zeros((0, 2)))
    same(got[0], want[0])
    assert got[1].shape == (0, 4)
    same(fxflow.random.key_data(got[2].fetch()), fxflow.random.key_data(want[2]))


def test_loops_and_branches_run_in_tasks(cluster: Cluster) -> None:
    def f(x: Any, n: Any) -> Any:
        with on("/task:0"):
            x = lax.fori_loop(0, 5, lambda i, c: fnp.sin(c) + i, x)
        with on("/task:1"):
            return lax.cond(
                n > 0, lambda y: fnp.linalg.inv(y + 5 * fnp.eye(4)), fnp.sin, x
            )

    x = fnp.ones((4, 4))
    for n in (1, -1):
        same(dataflow.jit(f, devices=cluster)(x, n), fxflow.jit(f)(x, n))


def test_custom_kernels_are_refused_with_the_line(cluster: Cluster) -> None:
    def f(x: Any) -> Any:
        with on("/task:0"):
            return fxflow.ffi.ffi_call("of_this_process", x)(x)

    with pytest.raises(PlacementError, match=r"which begins with .*test_program\.py"):
        dataflow.jit(f, devices=cluster)(fnp.ones(3))


def test_a_measured_step_is_a_timeline_of_all_processes(cluster: Cluster) -> None:
    def f(x: Any) -> Any:
        with on("/task:0"):
            x = fnp.sin(x)
        with on("/task:1"):
            return x @ x

    step = dataflow.jit(f, devices=cluster)
    x = fnp.ones((64, 64))
    timeline, plan = step.measure(x), step.plan(x)
    ran = {r.work.index: r for row in timeline.rows.values() for r in row}
    assert [str(place) for place in timeline.rows] == ["task:0 cpu:0", "task:1 cpu:0"]
    assert len(ran) == len(plan.fragments) == 2
    assert all(r.end > r.start >= 0 for r in ran.values())


def test_places_by_cost_follow_the_times_that_tasks_measure(cluster: Cluster) -> None:
    """Tasks measure that products are slower than the model says."""

    def branches(x: Any) -> Any:
        total = fnp.zeros(())
        for i in range(4):
            y = x + i
            for _ in range(8):
                y = fnp.tanh(y @ x)
            total = total + fnp.mean(y)
        return total

    x = fnp.cos(fnp.arange(256.0 * 256).reshape(256, 256)) / 16
    rates = Rates({"contraction": 1e15, "elementwise": 1e15}, {"elementwise": 1e15})
    kind = kind_of(fxflow.local_devices()[0])
    costs = Costs({kind: rates}, {"process": Link(1e-5, 1e10)})
    step = dataflow.jit(branches, devices=cluster.devices, place=costs)
    assert len(step.plan(x).places) == 1
    values = [float(step(x)) for _ in range(replanning.FIRST[-1])]
    (running,) = step._caches.compiled.values()
    assert isinstance(running, replanning.Replanned)
    running.wait()
    assert len(step.plan(x).places) == 4
    values += [float(step(x)) for _ in range(replanning.FIRST[-1])]
    running.wait()
    np.testing.assert_allclose(values, float(branches(x)), rtol=1e-5)
    assert "measured" in str(step.plan(x))


def test_what_this_process_compiles_by_itself_runs_in_tasks_by_xla(
    cluster: Cluster,
) -> None:
    @kernels.kernel("i:8 v -> i:8 v", out=lambda x: x)
    def doubled(x: Any, o: Any) -> None:
        o[...] = x[...] * 2

    def f(x: Any, image: Any, weights: Any) -> Any:
        with on("/task:1"):
            rows = fxflow.nn.softmax(doubled(x))
            return rows, lax.conv_general_dilated(image, weights, (1, 1), "SAME")

    args = fnp.cos(fnp.arange(2.0**17)).reshape(256, 512), fnp.ones((8, 16, 28, 28))
    args = *args, fnp.ones((32, 16, 3, 3)) / 100
    for got, want in zip(
        dataflow.jit(f, devices=cluster)(*args), f(*args), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-5)
