"""Meshes in plans of `dataflow.jit`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import P, dataflow
from fxflow import numpy as fnp
from fxflow.dataflow import on
from fxflow.errors import ArgumentError
from tests.dataflow.sharding.networks import accelerator

RNG = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32) * 0.1


def meshes() -> tuple[fxflow.Mesh, fxflow.Mesh]:
    devices = fxflow.devices()
    return fxflow.Mesh(devices[:4], ("x",)), fxflow.Mesh(devices[4:8], ("x",))


def two_stages(params: Any, x: Any) -> Any:
    first, second = meshes()
    with on(first):
        h = fnp.tanh(x @ params["a"])
    with on(second):
        return fnp.mean((h @ params["b"]) ** 2)


PARAMS = {"a": array(16, 32), "b": array(32, 8)}
X = array(4096, 16)


def test_each_stage_is_divided_over_its_mesh() -> None:
    step = dataflow.jit(
        fxflow.value_and_grad(two_stages), place=accelerator(1e-9, operation=0.0)
    )
    value, grads = step(PARAMS, X)
    expected, wanted = fxflow.jit(fxflow.value_and_grad(two_stages))(PARAMS, X)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for name in PARAMS:
        np.testing.assert_allclose(grads[name], wanted[name], rtol=1e-4, atol=1e-7)
    plan = step.plan(PARAMS, X)
    first, second = (plan.meshes[place] for place in plan.places)
    for mesh in (first, second):
        assert any(not s.is_fully_replicated for s in mesh.sharded.inputs)
    assert "values divided" in str(plan)
    assert grads["a"].devices() == set(meshes()[0].flat)


def test_fragments_of_one_mesh_agree() -> None:
    mesh, _ = meshes()
    device = fxflow.devices()[5]

    def f(x: Any) -> Any:
        with on(mesh):
            y = fnp.sin(x @ x.T)
        with on(device):
            total = fnp.sum(y)
        with on(mesh):
            return fnp.cos(y) * total

    x = array(512, 64)
    jitted = dataflow.jit(f, place=accelerator(1e-9, operation=0.0))
    out = jitted(x)
    np.testing.assert_allclose(out, fxflow.jit(f)(x), rtol=1e-3, atol=1e-3)
    assert len(jitted.plan(x).fragments) >= 3
    assert out.sharding.spec != P()


def test_without_it_each_device_has_all() -> None:
    whole = dataflow.jit(two_stages, auto_sharding=False)
    mesh, _ = meshes()
    out = dataflow.jit(on(mesh)(fnp.sin), auto_sharding=False)(X)
    assert out.sharding.is_fully_replicated
    assert whole.plan(PARAMS, X).meshes == {}
    expected = fxflow.jit(two_stages)(PARAMS, X)
    np.testing.assert_allclose(whole(PARAMS, X), expected, rtol=1e-5)
    with pytest.raises(ArgumentError, match="auto_sharding is a bool"):
        dataflow.jit(two_stages, auto_sharding=1)  # type: ignore[call-overload]


def test_constants_of_a_function_are_divided_too() -> None:
    mesh, _ = meshes()
    table = fnp.asarray(array(64, 256))

    def f(x: Any) -> Any:
        with on(mesh):
            return fnp.tanh(x @ table)

    out = dataflow.jit(f, place=accelerator(0.0))(array(4096, 64))
    assert out.sharding.spec == P("x")
