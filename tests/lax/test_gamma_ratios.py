"""Ratios of gamma functions, where their logarithms are too large to be subtracted."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.lax.gamma_ratios import LARGE, log_beta, log_gamma_ratio, stirling_rest


def test_the_rest_of_stirlings_series() -> None:
    x = np.array([LARGE, 20, 1e3, 1e8])
    with fxflow.config.override(x64=True):
        got = np.asarray(stirling_rest(x))
    large = (x - 0.5) * np.log(x) - x + 0.5 * np.log(2 * np.pi)
    want = scipy.special.gammaln(x[:2]) - large[:2]
    np.testing.assert_allclose(got[:2], want, 1e-12)
    np.testing.assert_allclose(got[2:], 1 / (12 * x[2:]), 1e-7)


@pytest.mark.parametrize(("dtype", "tol"), [("f4", 2e-6), ("f8", 1e-13), ("f2", 2e-3)])
def test_ratios_against_their_products(dtype: str, tol: float) -> None:
    """Γ(q + 2) / Γ(q) = q (q + 1), and B(2, q) = 1 / q (q + 1)."""
    q = np.array([0.5, 3, 9, 11, 1e3, 6e4]).astype(dtype)
    p = np.full_like(q, 2)
    wide = q.astype("f8")
    want = np.log(wide) + np.log1p(wide)
    with fxflow.config.override(x64=dtype == "f8"):
        np.testing.assert_allclose(log_gamma_ratio(p, q), want, tol, tol)
        for a, b in ((p, q), (q, p)):
            np.testing.assert_allclose(log_beta(a, b), -want, tol, tol)


def test_equal_arguments_have_the_right_second_derivatives() -> None:
    with fxflow.config.override(x64=True):
        for x in (2.0, 30.0):
            second = np.array(fxflow.hessian(log_beta, (0, 1))(x, x))
            mixed = -scipy.special.polygamma(1, 2 * x)
            own = scipy.special.polygamma(1, x) + mixed
            np.testing.assert_allclose(second, [[own, mixed], [mixed, own]], 1e-12)
