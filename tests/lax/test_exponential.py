"""Exponentials: digits near the difficult places."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.errors import DtypeError


def test_exp2_is_exact_at_integers() -> None:
    n = np.arange(-20, 100, dtype="f4")
    for run in (lax.exp2, fxflow.jit(lax.exp2)):
        np.testing.assert_array_equal(np.asarray(run(n)), 2.0 ** n.astype("f8"))


def test_small_arguments() -> None:
    x = np.array([1e-10, -1e-10, 1e-30], "f4")
    for name in ("expm1", "log1p"):
        out = fxflow.jit(getattr(lax, name))(x)
        np.testing.assert_allclose(np.asarray(out), x, 1e-6)


def test_logistic_saturates() -> None:
    x = np.array([-200.0, 0.0, 200.0], "f4")
    np.testing.assert_allclose(np.asarray(lax.logistic(x)), [0, 0.5, 1], atol=1e-30)
    slopes = [float(fxflow.grad(lax.logistic)(v)) for v in (-200.0, 200.0)]
    assert slopes == [0, 0]


def test_integers_are_refused() -> None:
    with pytest.raises(DtypeError, match=r"exp: takes floating point, complex.*i32"):
        lax.exp(np.int32(1))
