"""Distributions of histograms beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats

COUNTS = np.array([1.0, 4.0, 0.0, 5.0, 2.0])
EDGES = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 4.0])
UNEVEN = np.array([-1.0, 0.0, 0.5, 2.0, 3.0, 7.0])
X = np.array([-3.0, -1.0, -0.2, 0.0, 0.7, 1.5, 2.0, 3.9, 4.0, 9.0])
Q = np.array([0.0, 0.01, 0.3, 0.5, 0.9, 1.0])


@pytest.mark.filterwarnings("ignore:The maximum number of subdivisions")
@pytest.mark.parametrize("density", [None, True, False])
def test_functions_are_those_of_scipy(density: bool | None) -> None:
    edges = EDGES if density is None else UNEVEN
    want = scipy.stats.rv_histogram((COUNTS, edges), density=density)
    with fxflow.config.override(x64=True), np.errstate(divide="ignore"):
        law = stats.rv_histogram((COUNTS, edges), density=density)
        for name in ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"):
            found, there = getattr(law, name)(X), getattr(want, name)(X)
            np.testing.assert_allclose(found, there, 1e-12, 1e-15, err_msg=name)
        for name in ("ppf", "isf", "interval"):
            found, there = (np.asarray(getattr(d, name)(Q)) for d in (law, want))
            np.testing.assert_allclose(found, there, 1e-12, 1e-14, err_msg=name)
        for name in ("mean", "var", "std", "entropy", "median", "support"):
            found, there = getattr(law, name)(), getattr(want, name)()
            np.testing.assert_allclose(found, there, 1e-12, err_msg=name)
        found, there = law.stats("mvsk"), want.stats(moments="mvsk")
        np.testing.assert_allclose(found, there, 1e-10)
        np.testing.assert_allclose(law.moment(5), want.moment(5), 1e-12)
        found = law.expect(fnp.cos, lb=-0.5, ub=2.5, conditional=True)
        there = want.expect(np.cos, lb=-0.5, ub=2.5, conditional=True)
        np.testing.assert_allclose(found, there, 1e-5)  # as SciPy integrates
        assert np.isnan(law.ppf(np.array([-0.1, 1.1]))).all()


def test_they_pass_through_transformations() -> None:
    law = stats.rv_histogram((COUNTS, EDGES))
    found = fxflow.jit(lambda law, x: law.logpdf(x))(law, X)
    np.testing.assert_allclose(found, law.logpdf(X), 1e-6)

    def middle(counts: fxflow.Array) -> fxflow.Array:
        return stats.rv_histogram((counts, EDGES), density=False).median()

    with fxflow.config.override(x64=True):
        slope = fxflow.grad(middle)(COUNTS)
        step = np.eye(5)[1] * 1e-6
        moved = [middle(COUNTS + s * step) for s in (1, -1)]
        np.testing.assert_allclose(slope[1], (moved[0] - moved[1]) / 2e-6, 1e-6)
    drawn = np.asarray(law.rvs(fxflow.random.key(0), (4000,)))
    count, _ = np.histogram(drawn, EDGES)
    np.testing.assert_allclose(count / 4000, COUNTS / 12, atol=0.03)


def test_bad_histograms() -> None:
    with pytest.raises(ShapeError, match="one end of bins more"):
        stats.rv_histogram((COUNTS, COUNTS))
    with pytest.raises(ArgumentError, match="must ascend"):
        stats.rv_histogram((COUNTS, EDGES[::-1]))
    with pytest.raises(ArgumentError, match="density must be given"):
        stats.rv_histogram((COUNTS, UNEVEN))
    with pytest.raises(ArgumentError, match="must be a pair"):
        stats.rv_histogram(COUNTS)
    law = stats.rv_histogram((COUNTS, EDGES))
    with pytest.raises(ArgumentError, match="order must be positive"):
        law.moment(0)
