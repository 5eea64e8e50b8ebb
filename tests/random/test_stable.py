"""Stable numbers by their characteristic functions."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow import random
from fxflow.errors import ShapeError
from fxflow.scipy import stats

KEY = random.key(3)
COUNT = 4000


def _characteristic(t: Any, alpha: float, beta: float) -> Any:
    slope = -2 / np.pi * np.log(t) if alpha == 1 else np.tan(np.pi * alpha / 2)
    return np.exp(-(t**alpha) * (1 - 1j * beta * slope))


def test_characteristic_functions() -> None:
    alpha = np.array([0.4, 0.7, 1.0, 1.0, 1.02, 1.5, 1.9, 2.0])
    beta = np.array([0.0, -0.8, 0.5, -1.0, 0.3, 1.0, -0.6, 0.9])
    with fxflow.config.override(x64=True):
        drawn = random.levy_stable(KEY, alpha, beta, (COUNT, 8))
    assert drawn.shape == (COUNT, 8) and np.isfinite(drawn).all()
    for a, b, x in zip(alpha, beta, np.asarray(drawn).T, strict=True):
        for t in (0.2, 1.0, 2.0):
            found = np.exp(1j * t * x).mean()
            assert abs(found - _characteristic(t, a, b)) < 4 / COUNT**0.5, (a, b, t)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_one_sided_numbers_stay_on_their_side(dtype: str) -> None:
    with fxflow.config.override(x64=True):
        x = np.asarray(random.levy_stable(KEY, 0.5, 1.0, (COUNT,), dtype))
    assert x.dtype == dtype and (x >= 0).all()
    if dtype != "float16":
        assert scipy.stats.kstest(x, scipy.stats.levy.cdf).pvalue > 1e-3


def test_derivatives_follow_the_numbers() -> None:
    of = lambda a, b: random.levy_stable(KEY, a, b, (6,))
    with fxflow.config.override(x64=True):
        for a, b in ((0.8, 0.3), (1.6, -0.5)):
            slopes = fxflow.jacfwd(of, (0, 1))(a, b)
            backward = fxflow.jacrev(of, (0, 1))(a, b)
            for i, slope in enumerate(slopes):
                step = 1e-6 * (np.arange(2) == i)
                ends = [
                    np.asarray(of(a + s * step[0], b + s * step[1])) for s in (1, -1)
                ]
                np.testing.assert_allclose(
                    slope, (ends[0] - ends[1]) / 2e-6, 1e-5, 1e-6
                )
                np.testing.assert_allclose(slope, backward[i], 1e-9)


def test_parameters_out_of_range_and_shapes() -> None:
    alpha, beta = np.array([0.0, 2.1, 1.5, np.nan]), np.array([0.0, 0.0, 1.5, 0.0])
    assert np.isnan(random.levy_stable(KEY, alpha, beta)).all()
    one = fxflow.vmap(random.levy_stable)(random.split(KEY, 2), alpha[1:3], beta[:2])
    assert one.shape == (2,)
    with pytest.raises(ShapeError, match="levy_stable: parameters of shapes"):
        random.levy_stable(KEY, alpha, 0.0, (3,))


def test_numbers_of_the_distribution_are_moved() -> None:
    # A scale also moves what has the characteristic exponent 1.
    drawn = stats.levy_stable.rvs(KEY, 1.0, 0.5, 2.0, 3.0, shape=(COUNT,))
    t = 0.4
    shift = 2 / np.pi * 0.5 * 3.0 * np.log(3.0)
    want = _characteristic(3 * t, 1.0, 0.5) * np.exp(1j * t * (2.0 + shift))
    assert abs(np.exp(1j * t * np.asarray(drawn)).mean() - want) < 4 / COUNT**0.5
    law = stats.levy_stable(1.0, 0.5, 2.0, 3.0)
    np.testing.assert_array_equal(law.rvs(KEY, (COUNT,)), drawn)
    assert np.isnan(stats.levy_stable.rvs(KEY, 1.0, 0.5, 0.0, -1.0))
