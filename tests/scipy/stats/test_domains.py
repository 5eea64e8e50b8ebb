"""Parameters that describe no distribution give nan."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.scipy import stats

# A place, and the last parameters: shapes, then where it is moved, then the scale.
CASES: dict[str, list[tuple[float, ...]]] = {
    "bernoulli": [(1, 1.5), (0, -0.5)],
    "beta": [(0.5, -1.1, 1.5), (0.5, 1.5, -1.1), (0.5, 1, 1, 0, -1)],
    "betabinom": [(1, 3, -1.1, 2), (1, 3, 2, -1.1), (1, -3, 1, 1)],
    "binom": [(1, 3, 1.5), (1, -3, 0.5), (1, 2.5, 0.5)],
    "cauchy": [(0.5, 0, -1)],
    "chi2": [(0.5, -1), (0.5, 2, 0, -1)],
    "expon": [(0.5, 0, -1)],
    "gamma": [(0.5, -1), (0.5, 1, 0, -1)],
    "gennorm": [(0.5, -1)],
    "geom": [(1, 1.5), (1, -0.5)],
    "gumbel_l": [(0.5, 0, -1)],
    "gumbel_r": [(0.5, 0, -1)],
    "laplace": [(0.5, 0, -1)],
    "logistic": [(0.5, 0, -1)],
    "nbinom": [(1, -1, 0.5), (1, 2, 1.5)],
    "norm": [(0.5, 0, -1), (0.5, 0, 0)],
    "pareto": [(1.5, -1), (1.5, 1, 0, -1)],
    "poisson": [(1, -1)],
    "t": [(0.5, -1), (0.5, 1, 0, -1)],
    "truncnorm": [(0.5, 1, -1), (0.5, -1, 1, 0, -1)],
    "uniform": [(0.5, 0, -1)],
    "vonmises": [(0.5, -1)],
    "wrapcauchy": [(0.5, 1.5), (0.5, -0.5)],
}


@pytest.mark.parametrize("name", CASES)
def test_no_distribution_is_nan(name: str) -> None:
    module = getattr(stats, name)
    # One function of each: the decorator of all of them looks at the parameters.
    function = getattr(module, "logpmf" if hasattr(module, "logpmf") else "logpdf")
    for case in CASES[name]:
        assert math.isnan(function(*map(np.float32, case))), case


@pytest.mark.parametrize("name", ["cdf", "sf", "logsf", "ppf"])
def test_every_function_looks_at_the_parameters(name: str) -> None:
    ask = fxflow.jit(getattr(stats.pareto, name) if name != "sf" else stats.gamma.sf)
    x = fnp.array([0.5, 1.5])
    assert np.isnan(ask(x, -1.0)).all()
    assert np.isnan(ask(x, 1.0, 0.0, -1.0)).all()
    assert not np.isnan(ask(x, 1.0, 0.0, 1.0)[0])


def test_one_bad_scale_spoils_no_other() -> None:
    scale = fnp.array([1.0, -1.0, 2.0])
    total = lambda s: fnp.nansum(stats.norm.logpdf(1.0, 0.0, s))
    np.testing.assert_allclose(
        stats.norm.pdf(1.0, 0.0, scale), [0.24197073, math.nan, 0.17603266], rtol=1e-6
    )
    np.testing.assert_allclose(fxflow.grad(total)(scale), [0, 0, -0.375], atol=1e-6)
