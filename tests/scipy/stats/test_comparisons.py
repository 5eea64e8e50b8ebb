"""Tukey's and Dunnett's tests beside SciPy's, and beside t-tests."""

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.samples import P, W, X, Y


@pytest.mark.slow
@pytest.mark.parametrize("equal_var", [True, False])
def test_tukey_agrees_with_scipy(equal_var: bool) -> None:
    rows = X[0], Y[1], W[2]
    want = scipy.stats.tukey_hsd(*rows, equal_var=equal_var)
    with fxflow.config.override(x64=True):
        found = stats.tukey_hsd(*rows, equal_var=equal_var)
        low, high = found.confidence_interval(0.9)
    np.testing.assert_allclose(found.statistic, want.statistic, 1e-12)
    np.testing.assert_allclose(found.pvalue, want.pvalue, 1e-10)
    interval = want.confidence_interval(0.9)
    np.testing.assert_allclose(low, interval.low, 1e-9)
    np.testing.assert_allclose(high, interval.high, 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_dunnett_agrees_with_scipy(alternative: str) -> None:
    rows, control = (X[0], Y[1]), W[2]
    options = {"control": control, "alternative": alternative}
    want = scipy.stats.dunnett(*rows, **options, rng=np.random.default_rng(0))
    with fxflow.config.override(x64=True):
        found = stats.dunnett(*rows, **options)
    np.testing.assert_allclose(found.statistic, want.statistic, 1e-12)
    # SciPy's integral has random numbers.
    np.testing.assert_allclose(found.pvalue, want.pvalue, atol=5e-4)


@pytest.mark.slow
def test_one_pair_is_a_t_test() -> None:
    with fxflow.config.override(x64=True):
        want = stats.ttest_ind(X[1], P[0] + 2)
        both = stats.dunnett(X[1], control=P[0] + 2)
        np.testing.assert_allclose(both.pvalue[0], want.pvalue, 1e-11)
        interval = both.confidence_interval(0.9)
        expected = want.confidence_interval(0.9)
        np.testing.assert_allclose(interval.low[0], expected.low, 1e-10)
        tukey = stats.tukey_hsd(X[1], P[0] + 2)
        np.testing.assert_allclose(tukey.pvalue[0, 1], want.pvalue, 1e-11)


def test_wrong_samples_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"tukey_hsd: takes at least 2 samples"):
        stats.tukey_hsd(X[0])
    with pytest.raises(ShapeError, match=r"dunnett: a sample must be a row.*f32\[3,11"):
        stats.dunnett(X.astype("f"), control=X[0])
    with pytest.raises(ArgumentError, match=r"dunnett: rng must be None"):
        stats.dunnett(X[0], control=X[1], rng=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tukey_hsd", "dunnett"])
def test_p_values_have_derivatives(name: str) -> None:
    def value(shift: float) -> fxflow.Array:
        if name == "tukey_hsd":
            return stats.tukey_hsd(X[0] + shift, Y[1], W[2]).pvalue[0, 1]
        return stats.dunnett(X[0] + shift, Y[1], control=W[2]).pvalue[0]

    with fxflow.config.override(x64=True):
        slope = fxflow.jit(fxflow.grad(value))
        run = fxflow.jit(value)
        want = (float(run(0.3 + 1e-5)) - float(run(0.3 - 1e-5))) / 2e-5
        np.testing.assert_allclose(float(slope(0.3)), want, 1e-6)
        bend = (float(slope(0.3 + 1e-5)) - float(slope(0.3 - 1e-5))) / 2e-5
        second = fxflow.jit(fxflow.grad(fxflow.grad(value)))(0.3)
        np.testing.assert_allclose(float(second), bend, 1e-6)
