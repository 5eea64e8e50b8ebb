"""The solver of monotone functions."""

import numpy as np

import fxflow
from fxflow import lax
from fxflow import numpy as fnp
from fxflow.scipy.special._roots import inverse_by


def test_roots_over_the_range_of_64_bits() -> None:
    inverse = inverse_by(lambda x, a: -lax.expm1(-a * x), "positive", rising=True)
    with fxflow.config.override(x64=True):
        p = fnp.asarray(np.array([1e-200, 1e-3, 0.5, 0.999, 0.0, 1.0, np.nan]))
        a = fnp.full(7, 2.0)
        got = inverse(p, a)
        want = -np.log1p(-np.asarray(p)[:4]) / 2
        np.testing.assert_allclose(got[:4], want, 1e-13)
        assert np.isnan(got[4:]).all()
        slopes = fxflow.grad(lambda p, a: inverse(p, a), (0, 1))(p[2], a[2])
        np.testing.assert_allclose(slopes, [1, -np.log(2) / 4], 1e-14)


def test_falling_functions_and_no_root() -> None:
    falling = inverse_by(lambda x: 1 / (1 + lax.exp(x)), "real", rising=False)
    half = inverse_by(lambda x: 0.25 + 0.5 * x, "unit", rising=True)
    with fxflow.config.override(x64=True):
        p = fnp.asarray(np.array([0.1, 0.9]))
        np.testing.assert_allclose(falling(p), np.log([9, 1 / 9]), 1e-14)
        np.testing.assert_array_equal(half(p), [np.nan, np.nan])
        np.testing.assert_allclose(half(0.5 * p + 0.25), p, 1e-14)
