"""`platform_dependent`: one branch is lowered, whatever is done to the function."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.errors import CompileError
from fxflow.lax.control_flow.platform_dependent import on_one_cpu


def scaled(x):
    return lax.platform_dependent(
        x, tpu=fnp.sin, cuda=lambda x: x * 3, default=lambda x: x * x
    )


def test_the_platform_here():
    assert float(scaled(3.0)) == float(fxflow.jit(scaled)(3.0)) == 9.0
    assert float(fxflow.grad(scaled)(3.0)) == 6.0
    assert fxflow.vmap(fxflow.grad(scaled))(fnp.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("function", [scaled, fxflow.grad(fxflow.jit(scaled))])
def test_each_platform_gets_its_own(function):
    traced = fxflow.jit(function).trace(1.0)
    texts = {p: traced.lower(platforms=(p,)).as_text() for p in ("cpu", "gpu", "tpu")}
    assert ["sine" in t or "cosine" in t for t in texts.values()] == [0, 0, 1]
    assert ["dense<3.0>" in t for t in texts.values()] == [0, 1, 0]
    assert not any("stablehlo.case" in t for t in texts.values())


def test_cuda_goes_before_rocm():
    fun = lambda x: lax.platform_dependent(
        x, rocm=lambda x: x - 1, cuda=lambda x: x + 1, cpu=lambda x: x
    )
    text = fxflow.jit(fun).trace(1.0).lower(platforms=("gpu",)).as_text()
    assert "stablehlo.add" in text and "subtract" not in text


def test_captured_values_and_trees():
    y = fnp.arange(3.0)
    fun = lambda x: lax.platform_dependent(
        x, cpu=lambda x: (x["a"] * y, y), default=lambda x: (x["a"], x["a"])
    )
    out = fxflow.jit(fun)({"a": fnp.ones(3)})
    assert out[0].tolist() == [0, 1, 2]


def test_missing_and_differing_branches_are_refused():
    with pytest.raises(CompileError, match=r"no branch for the platform 'cpu', only"):
        lax.platform_dependent(1.0, tpu=fnp.sin)
    with pytest.raises(TypeError, match="needs a function"):
        lax.platform_dependent(1.0)
    with pytest.raises(TypeError, match="default"):
        lax.platform_dependent(1.0, default=3)
    with pytest.raises(ValueError, match="cpu differs from tpu"):
        lax.platform_dependent(1.0, tpu=lambda x: x, cpu=lambda x: (x,))


def test_programs_for_several_devices_or_platforms_have_no_algorithm_of_one_cpu():
    rows = fxflow.make_mesh((2,), ("x",))
    x = np.float32([3, 1, 2, 0])
    divided = fxflow.device_put(x, fxflow.NamedSharding(rows, fxflow.P("x")))
    fun = lambda x: on_one_cpu(lambda x: fnp.sort(x)[::-1] * 0 + x, lambda x: x + 0, x)
    traced = fxflow.jit(fun).trace(x)
    texts = [traced.lower(platforms=(p,)).as_text() for p in ("cpu", "gpu")]
    texts.append(fxflow.jit(fun).lower(divided).as_text())
    assert ["stablehlo.sort" in t for t in texts] == [True, False, False]
    assert fxflow.jit(fun)(divided).tolist() == fun(x).tolist() == [3, 1, 2, 0]


def test_types_that_are_divided_are_for_several_devices():
    explicit = (fxflow.sharding.AxisType.Explicit,)
    with fxflow.set_mesh(fxflow.make_mesh((2,), ("x",), axis_types=explicit)):
        x = fxflow.device_put(np.float32([1, 0]), fxflow.P("x"))
        assert on_one_cpu(fnp.sort, lambda x: x + 1, x).tolist() == [2, 1]
