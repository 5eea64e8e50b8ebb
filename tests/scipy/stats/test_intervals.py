"""Bayesian intervals beside SciPy's."""

import numpy as np
import pytest
import scipy.stats

import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.scipy import stats
from tests.scipy.stats.beside import parts


@pytest.mark.parametrize(("n", "alpha"), [(12, 0.9), (1200, 0.8)])
def test_bayes_mvs(n: int, alpha: float) -> None:
    x = np.random.default_rng(32).gamma(2.0, size=n)
    got = parts(stats.bayes_mvs(fnp.asarray(x, "f8"), alpha))
    np.testing.assert_allclose(got, parts(scipy.stats.bayes_mvs(x, alpha)), 1e-8)


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="alpha"):
        stats.bayes_mvs(np.arange(3.0), 1.0)
    with pytest.raises(ArgumentError, match="at least 2"):
        stats.bayes_mvs(np.arange(1.0))


@pytest.mark.parametrize("n", [9, 1500])
def test_distributions_of_mean_variance_and_deviation(n: int) -> None:
    x = np.random.default_rng(n).normal(3, 2, n)
    for found, want in zip(stats.mvsdist(x), scipy.stats.mvsdist(x), strict=True):
        assert found.dist.name == want.dist.name
        given = [*want.args, *want.kwds.values()]
        shapes = [float(v) for v in found.args if float(v)]
        np.testing.assert_allclose(sorted(shapes), sorted(given), 2e-5)
    with pytest.raises(ArgumentError, match="at least 2 elements"):
        stats.mvsdist(x[:1])
