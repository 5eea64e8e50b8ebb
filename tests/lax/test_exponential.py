"""Exponentials: digits near the difficult places."""

from __future__ import annotations

from typing import Any

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


def test_log1p_of_64_bits_is_exact_everywhere() -> None:
    with fxflow.config.override(x64=True):
        x = np.linspace(-0.999, 1.5, 9001)
        out = np.asarray(fxflow.jit(lax.log1p)(x))
        np.testing.assert_allclose(out, np.log1p(x), 4e-16)
        ends = fxflow.jit(lax.log1p)(np.array([-1, -2, np.inf, -np.inf, np.nan, -0.0]))
        assert [*map(repr, np.asarray(ends).tolist())] == [
            "-inf", "nan", "inf", "nan", "nan", "-0.0"
        ]  # fmt: skip


def test_logistic_saturates() -> None:
    x = np.array([-200.0, 0.0, 200.0], "f4")
    np.testing.assert_allclose(np.asarray(lax.logistic(x)), [0, 0.5, 1], atol=1e-30)
    slopes = [float(fxflow.grad(lax.logistic)(v)) for v in (-200.0, 200.0)]
    assert slopes == [0, 0]


def _logistic_slope(x: Any) -> Any:
    return np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))) ** 2


@pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_slopes_do_not_cancel(dtype: str, run: Any) -> None:
    """1 plus or minus the result, which tends to 1, has lost its digits."""
    with fxflow.config.override(x64=True):
        x = np.array([-40, -9, -4, -1, 1, 4, 9, 40], dtype)
        wide = x.astype("f8")
        least = 4 * float(np.finfo(dtype).tiny)
        for f, slope, bend in (
            (lax.expm1, np.exp, np.exp),
            (
                lax.logistic,
                _logistic_slope,
                lambda x: -_logistic_slope(x) * np.tanh(x / 2),
            ),
        ):
            with np.errstate(all="ignore"):
                wants = [
                    np.minimum(g(wide), np.inf).astype(dtype) for g in (slope, bend)
                ]
            first = fxflow.vmap(fxflow.grad(f))
            second = fxflow.vmap(fxflow.grad(fxflow.grad(f)))
            backward = fxflow.vmap(fxflow.jacrev(fxflow.jacfwd(f)))
            for got, want in zip((first, second, backward), (*wants, wants[1])):
                with np.errstate(all="ignore"):
                    out = np.asarray(run(got)(x))
                eps = 100 * float(np.finfo(dtype).eps)
                np.testing.assert_allclose(out, want, eps, least)


def test_integers_are_refused() -> None:
    with pytest.raises(DtypeError, match=r"exp: takes floating point, complex.*i32"):
        lax.exp(np.int32(1))
