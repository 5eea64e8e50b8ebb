"""The normal distribution against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy import special
from tests.numpy.oracle import same
from tests.scipy.special import suite
from tests.scipy.special.suite import U, X

ONE: dict[str, Any] = {
    "erf": X,
    "erfc": X,
    "erfinv": U,
    "ndtr": X,
    "log_ndtr": X * 10,
    "ndtri": U,
}


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_argument_agree_with_scipy(name: str) -> None:
    suite.one_argument(name, ONE[name])


@pytest.mark.parametrize("name", ["erf", "erfc", "ndtr", "log_ndtr", "ndtri"])
def test_limits_agree_with_scipy(name: str) -> None:
    suite.edges(name)


def test_tails() -> None:
    p = np.array([1e-30, 1e-10, 1e-5], np.float32)
    assert same(scipy.special.ndtri(p), special.ndtri(p), 1e-5)
    x = np.array([-100.0, -20.0, -10.5, 9.0], np.float32)
    assert same(
        scipy.special.log_ndtr(x) / x, np.asarray(special.log_ndtr(x)) / x, 1e-5
    )
    g = fxflow.vmap(fxflow.grad(special.log_ndtr))(x)
    assert np.isfinite(np.asarray(g)).all()


def test_series_order() -> None:
    x = np.array([-12.0, -30.0], np.float32)
    want = scipy.special.log_ndtr(x)
    rough = np.abs(np.asarray(special.log_ndtr(x, series_order=0)) - want)
    better = np.abs(np.asarray(special.log_ndtr(x, series_order=1)) - want)
    assert (rough > 5e-4).any() and (better < rough).any()
    with pytest.raises(ArgumentError, match="series_order"):
        special.log_ndtr(x, series_order=-1)


def test_quantiles_of_logarithms() -> None:
    y = np.array([-1e300, -1e4, -700.0, -1.0, -np.log(2), -0.1, -1e-20, -np.inf, 0, 1])
    with fxflow.config.override(x64=True):
        got, want = np.asarray(special.ndtri_exp(y)), scipy.special.ndtri_exp(y)
        np.testing.assert_allclose(got, want, 1e-13, 1e-15)
        slope = fxflow.grad(special.ndtri_exp)(-700.0)
        ends = scipy.special.ndtri_exp(np.array([-699.99, -700.01]))
        assert float(slope) == pytest.approx((ends[0] - ends[1]) / 0.02, rel=1e-6)
