"""Data without their trends, beside SciPy's."""

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, AxisError
from fxflow.scipy.signal import detrend

X = np.random.default_rng(0).normal(size=(4, 9, 3)) + 5


@pytest.mark.parametrize("kind", ["linear", "l", "constant", "c"])
def test_detrend_agrees_with_scipy(kind: str) -> None:
    with fxflow.config.override(x64=True):
        for axis in (0, 1, -1):
            for bp in (0, 2, [1, 2], np.array([3])):
                for x in (X, X + 1j * X[::-1]):
                    got = detrend(x, axis, kind, bp)
                    np.testing.assert_allclose(
                        got, want.detrend(x, axis, kind, bp), 1e-9, 1e-10
                    )
    x = X.astype(np.float32)
    np.testing.assert_allclose(
        detrend(x, 1, kind), want.detrend(x, 1, kind), 1e-4, 1e-5
    )


def test_dtypes_and_transforms() -> None:
    assert detrend(np.arange(5)).dtype == np.float32
    assert detrend(np.arange(5.0, dtype=np.float16)).dtype == np.float16
    assert detrend(np.zeros((2, 0))).shape == (2, 0)
    np.testing.assert_allclose(detrend(np.ones(1)), 0)
    with fxflow.config.override(x64=True):
        slope = fxflow.grad(lambda x: (detrend(x, 1) ** 2).sum() / 2)(X)
        np.testing.assert_allclose(slope, detrend(X, 1), 1e-9, 1e-10)  # a projection
        each = fxflow.jit(fxflow.vmap(detrend))(X)
        np.testing.assert_allclose(each, detrend(X), 1e-9, 1e-10)


def test_invalid_types_breakpoints_and_axes_are_refused() -> None:
    with pytest.raises(ArgumentError, match="type"):
        detrend(X, type="square")
    with pytest.raises(ArgumentError, match="bp"):
        detrend(X, bp=7)
    with pytest.raises(ArgumentError, match="overwrite_data"):
        detrend(X, overwrite_data=True)  # type: ignore[arg-type]
    with pytest.raises(AxisError):
        detrend(X, 3)
