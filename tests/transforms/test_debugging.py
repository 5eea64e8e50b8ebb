"""disable_jit, debug_nans, debug_infs, leak checks."""

import numpy as np
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


def test_compiles_are_logged(caplog):
    def once(x):
        return x * 41.5

    with fxflow.log_compiles():
        jit(once)(fnp.ones(3))
    said = [record.message.split(" ", 1) for record in caplog.records]
    assert [what for what, _ in said[:2]] == ["traced", "lowered"]
    assert said[0][1].startswith("once(f32[3]) in ")
    assert said[2][0] in ("compiled", "read")
    caplog.clear()
    jit(lambda x: x * 42.5)(fnp.ones(3))
    assert not caplog.records


def test_transfers_are_guarded(caplog):
    x, host = fnp.ones(3), np.ones(3, "f4")
    implicit = {
        "operation": lambda: x + host,
        "jit": lambda: jit(fnp.sin)(host),
    }
    with fxflow.transfer_guard("disallow"):
        for call in implicit.values():
            with pytest.raises(fxflow.errors.TransferError, match="device_put"):
                call()
        there = fxflow.device_put(host, fxflow.devices()[1])
        assert fxflow.device_get(there).tolist() == [1, 1, 1]
        assert (x * 2.0).shape == (3,)
        with fxflow.transfer_guard("allow"):
            assert implicit["jit"]().shape == (3,)
    with fxflow.transfer_guard("disallow_explicit"):
        for call in (
            lambda: fxflow.device_put(host),
            lambda: fxflow.device_put(x, fxflow.devices()[1]),
        ):
            with pytest.raises(fxflow.errors.TransferError, match="disallow_explicit"):
                call()
    with fxflow.transfer_guard_device_to_device("disallow"):
        assert implicit["operation"]().shape == (3,)
        with pytest.raises(fxflow.errors.TransferError, match="device-to-device"):
            jit(fnp.add)(x, there)
    with fxflow.transfer_guard("log"):
        implicit["operation"]()
    assert [
        "host-to-device transfer of f32[3]" in r.message for r in caplog.records
    ] == [True]
    with pytest.raises(ValueError, match="expected one of 'allow'"):
        fxflow.transfer_guard("forbid")
    fxflow.config.transfer_guard = "disallow"
    try:
        with pytest.raises(fxflow.errors.TransferError):
            implicit["operation"]()
    finally:
        fxflow.config.transfer_guard = "allow"
