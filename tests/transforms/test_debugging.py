"""disable_jit, debug_nans, debug_infs, leak checks."""

import pytest

import fxflow
import fxflow.numpy as fnp
import fxflow.scipy.special as special
from fxflow import grad, jit


def test_disable_jit_runs_python():
    seen = []
    fun = jit(lambda x: seen.append(float(x)) or x * 2)
    with fxflow.disable_jit():
        assert float(fun(2.0)) == 4.0
        assert float(fun(3.0)) == 6.0
    assert seen == [2.0, 3.0]
    with pytest.raises(TypeError):
        fun(1.0)


def test_nans_name_the_operation_and_the_line():
    with (
        fxflow.debug_nans(),
        pytest.raises(FloatingPointError, match=r"log.*test_debug"),
    ):
        fnp.log(-fnp.ones(3))
    fun = jit(lambda x: fnp.log(x) * 2)
    fun(fnp.ones(3))
    with fxflow.debug_nans(), pytest.raises(FloatingPointError, match="log"):
        fun(-fnp.ones(3))
    assert fnp.isnan(fun(-fnp.ones(3))).all()


def test_nans_in_gradients():
    with fxflow.debug_nans(), pytest.raises(FloatingPointError):
        grad(lambda x: fnp.sqrt(x) * 0.0)(0.0)


def test_infinities():
    with fxflow.debug_infs(), pytest.raises(FloatingPointError, match="inf"):
        fnp.ones(3) / 0
    assert fnp.isinf(fnp.ones(3) / 0).all()


def test_leaks():
    kept = []

    def leaky(x):
        kept.append(x)
        return x

    with fxflow.checking_leaks(), pytest.raises(RuntimeError, match="argument x"):
        jit(leaky)(1.0)
    with fxflow.checking_leaks():
        assert float(jit(lambda x: x + 1)(1.0)) == 2.0


def test_infinities_within_a_library_function_are_its_own():
    with fxflow.debug_infs():
        found = special.ndtri(fnp.array([0.1, 0.5]))
        assert abs(float(found[0]) + 1.2815516) < 1e-5
        with pytest.raises(FloatingPointError, match=r"gave inf in f32\[1\]"):
            special.ndtri(fnp.zeros(1))
        with pytest.raises(FloatingPointError, match=r"log at .*test_debugging\.py"):
            fnp.log(0.0)
