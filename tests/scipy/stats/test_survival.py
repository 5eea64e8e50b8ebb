"""Distribution functions of censored samples, and the log-rank test, beside SciPy's."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.samples import SIDES

_RNG = np.random.default_rng(5)
DIED = _RNG.integers(0, 15, 20).astype(float)
LEFT = _RNG.integers(3, 18, 9).astype(float)


@pytest.mark.parametrize("censored", [False, True])
def test_functions_have_scipy_s_steps(censored: bool) -> None:
    def of(library: Any) -> Any:
        return library.CensoredData(DIED, right=LEFT) if censored else DIED

    want = scipy.stats.ecdf(of(scipy.stats))
    at = np.array([-1, 0, 3.5, 7, 30, np.inf, -np.inf])
    with fxflow.config.override(x64=True):
        got = stats.ecdf(of(stats))
        for kind in ("cdf", "sf"):
            theirs, ours = getattr(want, kind), getattr(got, kind)
            np.testing.assert_array_equal(ours.quantiles, theirs.quantiles)
            np.testing.assert_allclose(ours.probabilities, theirs.probabilities, 1e-12)
            np.testing.assert_allclose(ours.evaluate(at), theirs.evaluate(at), 1e-12)
            for method in ("linear", "log-log"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    low, high = theirs.confidence_interval(0.9, method=method)
                found = ours.confidence_interval(0.9, method=method)
                for one, other in zip(found, (low, high), strict=True):
                    np.testing.assert_allclose(
                        one.probabilities, other.probabilities, 1e-10, 1e-12
                    )


@pytest.mark.parametrize("side", SIDES)
def test_logrank(side: str) -> None:
    def of(library: Any) -> Any:
        x = library.CensoredData(DIED, right=LEFT)
        y = library.CensoredData(LEFT + 1, right=DIED[:5])
        return library.logrank(x, y, side)

    want = of(scipy.stats)
    with fxflow.config.override(x64=True):
        got = of(stats)
    np.testing.assert_allclose(got, [want.statistic, want.pvalue], 1e-10)


def test_kinds_of_censoring() -> None:
    data = stats.CensoredData(
        np.array([1.0]),
        left=np.array([2.0, 3.0]),
        right=np.array([4.0]),
        interval=np.array([[5.0, 6.0]]),
    )
    assert len(data) == 5 and int(data.num_censored()) == 4
    assert data.low.tolist() == [1, -np.inf, -np.inf, 4, 5]
    assert data.high.tolist() == [1, 2, 3, np.inf, 6]
    marked = stats.CensoredData.right_censored(DIED, DIED > 7)
    assert int(marked.num_censored()) == (DIED > 7).sum()
    left = stats.CensoredData.left_censored(DIED, DIED > 7)
    assert (np.asarray(left.low) == -np.inf).sum() == (DIED > 7).sum()
    both = stats.CensoredData.interval_censored(DIED, DIED + 1)
    assert int(both.num_censored()) == DIED.size
    for other in (data, left, both):
        with pytest.raises(ArgumentError, match="known or censored on the right, got"):
            stats.ecdf(other)


def test_a_compiled_function_has_room_for_its_steps() -> None:
    count = np.unique(DIED).size
    run = fxflow.jit(lambda x: stats.ecdf(x, size=20).cdf)
    padded = run(DIED)
    want = scipy.stats.ecdf(DIED).cdf
    np.testing.assert_allclose(padded.quantiles[:count], want.quantiles)
    np.testing.assert_allclose(padded.evaluate(DIED), want.evaluate(DIED), 1e-6)
    with pytest.raises(ConcretizationError, match="give size=20"):
        fxflow.jit(lambda x: stats.ecdf(x).cdf.quantiles)(DIED)


def test_a_drawing_gets_the_steps() -> None:
    class Axes:
        def step(self, x: Any, y: Any, where: str, color: str) -> Any:
            return np.asarray(x), np.asarray(y), where, color

    x, y, where, color = stats.ecdf(DIED).sf.plot(Axes(), color="r")
    assert (where, color) == ("post", "r") and y[0] == 1 and y[-1] == 0
    assert x[0] < DIED.min() and x[-1] > DIED.max()


def test_what_is_refused() -> None:
    with pytest.raises(ArgumentError, match="there must be elements of some kind"):
        stats.CensoredData()
    with pytest.raises(ShapeError, match=r"interval must be \[n, 2\]"):
        stats.CensoredData(interval=np.zeros(3))
    with pytest.raises(ShapeError, match="censored must be like x"):
        stats.CensoredData.right_censored(DIED, np.zeros(2, bool))
    with pytest.raises(ShapeError, match="must have elements"):
        stats.ecdf(np.zeros(0))
    low = stats.ecdf(DIED).cdf.confidence_interval().low
    with pytest.raises(ArgumentError, match="a bound has no bounds of its own"):
        low.confidence_interval()
