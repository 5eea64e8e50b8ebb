"""Quantiles beside SciPy's."""

import numpy as np
import pytest

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same
from tests.scipy.stats.samples import HOLED, TIED, X
from tests.sweeps.sampling import sample

METHODS = [
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
    "interpolated_inverted_cdf", "hazen", "weibull", "linear", "median_unbiased",
    "normal_unbiased", "harrell-davis", "round_outward", "round_inward",
    "round_nearest",
]  # fmt: skip
P = np.array([[0.0, 0.1, 0.5, 0.77, 1.0]])


@pytest.mark.parametrize("method", sample(METHODS, 5, of="methods of quantiles"))
def test_methods(method: str) -> None:
    same("quantile", X, P, method=method, axis=1)
    same("quantile", HOLED, P[:, 1:4], method=method, axis=-1, nan_policy="omit")
    same("quantile", HOLED, 0.3, method=method, axis=-1)
    if method in METHODS[:9]:
        weights = abs(TIED[0])
        same("quantile", X, P[:, 1:4], method=method, axis=1, weights=weights)


def test_axes() -> None:
    same("quantile", X, 0.3, axis=None)
    same("quantile", X, 0.3, axis=None, keepdims=True)
    same("quantile", X, 0.3, axis=0, keepdims=True)
    same("quantile", X[0], P[0])
    same("quantile", X, np.array([[0.1], [0.4], [0.9]]), axis=1)


def test_probabilities_outside_are_nan() -> None:
    found = stats.quantile(X[0], np.array([-0.1, 0.5, 1.1, np.nan]))
    assert np.isnan(found).tolist() == [True, False, True, True]
    assert np.isnan(stats.quantile(np.zeros(0), 0.5))


def test_derivatives_and_batches() -> None:
    row = np.float32(X[0])
    slope = fxflow.grad(lambda x: stats.quantile(x, 0.25))(row)
    np.testing.assert_allclose(np.sum(slope), 1, 1e-6)
    of_rows = fxflow.jit(fxflow.vmap(lambda x, p: stats.quantile(x, p)))
    ps = np.array([0.1, 0.4, 0.9], np.float32)
    want = np.array([np.quantile(x, p) for x, p in zip(X, ps, strict=True)])
    np.testing.assert_allclose(of_rows(np.float32(X), ps), want, 1e-5)


def test_what_is_refused() -> None:
    with pytest.raises(ShapeError, match="keepdims=False takes one probability"):
        stats.quantile(X[0], P[0], keepdims=False)
    with pytest.raises(ShapeError, match="x and p must broadcast beside the axis"):
        stats.quantile(X, np.zeros((2, 1)), axis=1)
    with pytest.raises(ArgumentError, match="method must be one of"):
        stats.quantile(X, 0.5, method="other")
    with pytest.raises(ArgumentError, match='"round_inward" takes no weights'):
        stats.quantile(X[0], 0.5, method="round_inward", weights=X[0])
