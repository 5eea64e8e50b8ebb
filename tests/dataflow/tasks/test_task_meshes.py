"""Meshes of the devices of a task: a stage of a pipeline that is divided itself."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import Mesh, NamedSharding, P, dataflow, lax, train
from fxflow.dataflow import Cluster, RemoteArray, on, stages
from fxflow.errors import DistributedError
from fxflow.train import checkpoint
from tests.dataflow.tasks import harness
from tests.dataflow.tasks.harness import Tasks

S = stages(2)
X = fnp.cos(fnp.arange(16.0 * 32).reshape(16, 32))
#: Wide enough that dividing the hidden units pays.
PARAMS = [
    {
        "up": fnp.sin(fnp.arange(32.0 * 512).reshape(32, 512) + i) / 8,
        "down": fnp.cos(fnp.arange(32.0 * 512).reshape(512, 32) + i) / 8,
    }
    for i in range(2)
]


def meshes(cluster: Cluster) -> list[Mesh]:
    return [Mesh(cluster.devices_of(task), "x") for task in range(2)]


def here() -> list[Mesh]:
    """The meshes of as many devices of this process."""
    own = fxflow.local_devices()
    return [Mesh(own[:2], "x"), Mesh(own[2:4], "x")]


def network(params: Any, x: Any) -> Any:
    for stage, w in zip(S, params, strict=True):
        with on(stage):
            x = x + fnp.tanh(x @ w["up"]) @ w["down"]
    return fnp.mean(x**2)


def update(params: Any, x: Any) -> Any:
    value, grads = train.accumulate_gradients(network, 4)(params, x)
    return fxflow.tree.map(lambda w, g: w - 0.1 * g, params, grads), value


def same(a: Any, b: Any) -> None:
    for x, y in zip(fxflow.tree.leaves(a), fxflow.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def close(a: Any, b: Any) -> None:
    for x, y in zip(fxflow.tree.leaves(a), fxflow.tree.leaves(b), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("auto_sharding", [True, False])
def test_tensor_parallel_stages_have_the_numbers_of_jit(
    cluster: Cluster, auto_sharding: bool
) -> None:
    f = fxflow.value_and_grad(network)
    options: Any = {"auto_sharding": auto_sharding}
    step = dataflow.jit(f, devices=meshes(cluster), **options)
    value, grads = step(PARAMS, X)
    close((value, grads), fxflow.jit(f)(PARAMS, X))
    # The programs and their division are those of meshes in one process.
    same((value, grads), dataflow.jit(f, devices=here(), **options)(PARAMS, X))
    up = P(None, "x") if auto_sharding else P()
    down = P("x") if auto_sharding else P()
    for mesh, stage in zip(meshes(cluster), grads, strict=True):
        assert stage["up"].sharding == NamedSharding(mesh, up)
        assert stage["down"].sharding == NamedSharding(mesh, down)
        assert stage["up"].devices() == set(mesh.flat)
    text = str(step.plan(PARAMS, X))
    assert "task:1 mesh of cpu:0 cpu:1" in text
    assert ("2 all-reduce of" in text) == auto_sharding


def test_a_pipeline_keeps_its_state_on_the_meshes(cluster: Cluster) -> None:
    devices = dict(zip(S, meshes(cluster), strict=True))
    step = dataflow.jit(update, devices=devices, donate_argnums=0, schedule="1f1b")
    whole = fxflow.jit(update)
    params: Any = fxflow.tree.map(fnp.array, PARAMS)
    expected: Any = PARAMS
    for _ in range(3):
        before = params
        params, value = step(params, X)
        expected, loss = whole(expected, X)
        close(value, loss)
    held = fxflow.tree.leaves(params)
    assert all(isinstance(w, RemoteArray) and w._value is None for w in held)
    assert all(w.is_deleted() for w in fxflow.tree.leaves(before))
    assert params[1]["up"].sharding.spec == P(None, "x")
    # What it takes is there already: only the batch and values between stages are sent.
    sent = {e.var.aval.shape for e in step.plan(params, X).edges if e.source is None}
    assert sent == {(16, 32), (32, 512), (512, 32)}
    (made,) = [
        p for (_, *types), p in step._caches.compiled.items() if types[0].committed
    ]
    assert not [row for row in made._rows.parts[-1].sends if row[1] < len(held)]
    close(params, expected)
    timeline = step.measure(params, X)
    assert {str(place) for place in timeline.rows} == {
        f"task:{task} mesh of cpu:0 cpu:1" for task in (0, 1)
    }


def test_a_shard_map_runs_on_a_task(cluster: Cluster) -> None:
    def f(mesh: Mesh, x: Any) -> Any:
        def part(x: Any) -> Any:
            return lax.psum(x, "x") * 2 + lax.axis_index("x")

        with on(mesh):
            y = fnp.sin(x)
        return fxflow.shard_map(part, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(y)

    mesh, own = meshes(cluster)[1], here()[1]
    step = dataflow.jit(lambda x: f(mesh, x))
    got = step(X)
    same(got, dataflow.jit(lambda x: f(own, x))(X))
    close(got, fxflow.jit(lambda x: f(own, x))(X))
    # Fed back, from a sharding that the function did not choose.
    close(step(got), fxflow.jit(lambda x: f(own, f(own, x)))(X))


def test_values_pass_between_meshes_and_devices_of_all_processes(
    cluster: Cluster,
) -> None:
    first, second = (cluster.devices_of(task) for task in range(2))
    grid = Mesh(np.array(first[::-1]).reshape(2, 1), ("a", "b"))
    alone, point = Mesh(second[1:], "z"), Mesh(np.array(second[1]), ())
    large = fnp.arange(32.0 * 64).reshape(32, 64) / 999

    def f(x: Any, w: Any) -> Any:
        with on(grid):
            y = fnp.tanh(x @ w) @ large
        with on(alone):
            z = fnp.sin(y)
        with on(first[1]):
            q = z + fnp.sum(y)
        with on(here()[1]):  # of this process
            r = fnp.cos(q @ q.T)
        with on(point):
            return y, z, q, r, r @ r, x

    w = fnp.sin(fnp.arange(32.0 * 32).reshape(32, 32))
    got = dataflow.jit(f)(X, w)
    close(got, fxflow.jit(f)(X, w))
    places = [str(x._type.placement) for x in (*got[:3], got[4])]
    assert places == [
        "task:0 mesh of cpu:1 cpu:0", "task:1 mesh of cpu:1", "task:0 cpu:1",
        "task:1 mesh of cpu:1",
    ]  # fmt: skip
    assert got[3].devices() == set(here()[1].flat)


def test_keys_narrow_numbers_and_empty_arrays_are_divided(cluster: Cluster) -> None:
    one, other = meshes(cluster)

    def f(key: Any, empty: Any, x: Any) -> Any:
        with on(one):
            keys = fxflow.random.split(key, 4)
            found = fxflow.vmap(lambda k: fxflow.random.normal(k, (6,)))(keys)
            wide = fnp.concatenate([empty, empty], axis=1)
            x = x.astype("int4")
        with on(other):
            # The constant has no argument: its place is the mesh all the same.
            return keys, found + 1, wide, x + 1, fnp.asarray([1, 2, 3, 4], "int4") + 1

    arguments = fxflow.random.key(1), fnp.zeros((0, 2)), fnp.arange(4)
    keys, *got = dataflow.jit(f)(*arguments)
    expected, *want = fxflow.jit(f)(*arguments)
    same(fxflow.random.key_data(keys.fetch()), fxflow.random.key_data(expected))
    close(got, want)
    assert got[-1].devices() == set(other.flat)


def test_device_put_names_a_mesh_or_a_device_of_a_task(cluster: Cluster) -> None:
    mesh, device = meshes(cluster)[0], cluster.devices_of(1)[1]

    def f(x: Any) -> Any:
        y = fnp.sin(fxflow.device_put(x, NamedSharding(mesh, P("x"))))
        y = lax.with_sharding_constraint(y, NamedSharding(mesh, P(None, "x")))
        return y, fxflow.device_put(y, device) + 1

    y, z = dataflow.jit(f)(X)
    close((y, z), (fnp.sin(X), fnp.sin(X) + 1))
    assert y.devices() == set(mesh.flat)
    assert z.device is device


def test_an_array_on_a_mesh_is_a_handle(cluster: Cluster, tmp_path: Path) -> None:
    mesh, _ = meshes(cluster)

    @dataflow.jit
    def f(w: Any, x: Any) -> Any:
        with on(mesh):
            return w * 2, fnp.tanh(x @ w)

    w, _ = f(PARAMS[0]["up"], X)
    assert repr(w) == "RemoteArray(f32[32,512] on task:0 mesh of cpu:0 cpu:1)"
    assert w.sharding == w.device == NamedSharding(mesh, P(None, "x"))
    assert w.task == 0
    # Without a scope, operations run where a committed argument is.
    total, moved = dataflow.jit(lambda w: (fnp.sum(w), w + 1))(w)
    plain = dataflow.jit(lambda w: (fnp.sum(w), w + 1), auto_sharding=False)(w)
    close((total, moved), (fnp.sum(w.fetch()), w.fetch() + 1))
    close(plain, (total, moved))
    assert moved.devices() == total.devices() == set(mesh.flat)
    checkpoint.save(tmp_path / "w", {"w": w})
    same(checkpoint.restore(tmp_path / "w")["w"], w)
    w.delete()
    with pytest.raises(fxflow.errors.DeletedArrayError, match="mesh of cpu:0 cpu:1"):
        f(w, X)


def test_a_saved_plan_names_the_meshes(cluster: Cluster, tmp_path: Path) -> None:
    f = fxflow.value_and_grad(network)
    step = dataflow.jit(f, devices=meshes(cluster))
    plan = step.plan(PARAMS, X)
    plan.save(tmp_path / "plan.json")
    assert '"task:0 mesh of cpu:0 cpu:1"' in (tmp_path / "plan.json").read_text()
    again = dataflow.jit(f, devices=meshes(cluster), plan=tmp_path / "plan.json")
    assert not plan.diff(again.plan(PARAMS, X))
    same(again(PARAMS, X), step(PARAMS, X))


def test_placement_by_cost_may_choose_meshes(cluster: Cluster) -> None:
    def f(x: Any, w: Any) -> Any:
        with on(S[0]):
            y = fnp.tanh(x @ w)
        return fnp.sum(y @ w.T)

    step = dataflow.jit(f, devices=meshes(cluster), place="cost")
    w = PARAMS[0]["up"]
    for _ in range(5):  # some of which are measured
        close(step(X, w), fxflow.jit(f)(X, w))
    assert step.plan(X, w).measured
    assert [str(p) for p in step.plan(X, w).places] == ["task:0 mesh of cpu:0 cpu:1"]


@pytest.mark.parametrize(
    ("row", "match"),
    [
        (
            [["cpu:0", "cpu:7"], [2], [[0]]],
            "no device 'cpu:7': the task has cpu:0 cpu:1",
        ),
        ([["cpu:0", "cpu:1"], [3], []], r"not a mesh of cpu:0 cpu:1: sizes \[3\]"),
    ],
)
def test_a_task_refuses_a_place_that_it_does_not_have(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, row: Any, match: str
) -> None:
    from fxflow.dataflow.tasks.program import ClusterProgram

    made = ClusterProgram._message
    mesh, _ = meshes(cluster)

    def broken(self: Any, task: int) -> Any:
        message = made(self, task)
        message.fields.part[2] = [row, *message.fields.part[2][1:]]
        return message

    step = dataflow.jit(on(mesh)(lambda x: x + 1))
    monkeypatch.setattr(ClusterProgram, "_message", broken)
    with pytest.raises(DistributedError, match=f"task:0: PlacementError: {match}"):
        step(X)
    monkeypatch.undo()
    close(step(X), X + 1)


@pytest.mark.slow
@pytest.mark.parametrize("returns", [True, False])
def test_an_elastic_loop_waits_for_a_mesh_or_does_without(returns: bool) -> None:
    def loss(weights: Any, x: Any) -> Any:
        for stage, w in zip(S, weights, strict=True):
            with on(stage):
                x = x + fnp.roll(x, 1, axis=1) * w
        return fnp.mean(x)

    def step(weights: Any, x: Any) -> Any:
        grads = fxflow.grad(loss)(weights, x)
        return [fnp.round((w - g) * 16) / 16 for w, g in zip(weights, grads)]

    start = [np.full(harness.WIDTH, 0.25, np.float32)] * 2
    expected, whole = start, fxflow.jit(step)
    for index in range(12):
        expected = whole(expected, harness.batch(index))
    with Tasks(2) as tasks:
        cluster = tasks.cluster
        restart = threading.Timer(2.0, lambda: tasks.start(1))
        trouble: list[Any] = [lambda: tasks.kill(1), *[restart.start] * returns]
        functions: dict[Any, Any] = {}

        def placed() -> Any:
            """Returns the function over all tasks, or over those that are left."""
            there = (
                sorted({d.number for d in cluster.devices}) if not returns else [0, 1]
            )
            if tuple(there) not in functions:
                own = [Mesh(cluster.devices_of(task), "x") for task in there]
                functions[tuple(there)] = dataflow.jit(step, devices=own)
            return functions[tuple(there)]

        def next_step(weights: Any, index: int) -> Any:
            while index == 7 and trouble:
                trouble.pop(0)()
            return placed()(weights, harness.batch(index))

        found = dataflow.elastic(
            next_step, start, 12, cluster=cluster, snapshot_every=5
        )
        same(found.state, expected)
        assert set(functions) == ({(0, 1)} if returns else {(0, 1), (0,)})
        assert bool(cluster.missing) != returns
        if returns:
            restart.join()
