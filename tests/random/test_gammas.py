"""The gamma distribution and what is made of it."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow import random
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from tests.random import golden
from tests.sweeps.sampling import sample

KEY = random.key(13)
COUNT = 1500


@pytest.mark.parametrize(
    "name",
    sample(
        golden.names(
            "gamma",
            "loggamma",
            "beta",
            "dirichlet",
            "chisquare",
            "f",
            "t",
            "generalized_normal",
            "ball",
        ),
        5,
        of="gammas as JAX",
    ),
)
def test_as_jax(name: str) -> None:
    golden.check(name, ulps=16)


CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "gamma-small": (lambda: random.gamma(KEY, 0.3, (COUNT,)), scipy.stats.gamma(0.3)),
    "gamma-large": (lambda: random.gamma(KEY, 7.0, (COUNT,)), scipy.stats.gamma(7.0)),
    "beta": (lambda: random.beta(KEY, 0.7, 2.0, (COUNT,)), scipy.stats.beta(0.7, 2.0)),
    "chisquare": (lambda: random.chisquare(KEY, 3.0, (COUNT,)), scipy.stats.chi2(3.0)),
    "f": (lambda: random.f(KEY, 3.0, 8.0, (COUNT,)), scipy.stats.f(3.0, 8.0)),
    "t": (lambda: random.t(KEY, 4.0, (COUNT,)), scipy.stats.t(4.0)),
    "generalized_normal": (
        lambda: random.generalized_normal(KEY, 3.0, (COUNT,)),
        scipy.stats.gennorm(3.0),
    ),
    "dirichlet": (
        lambda: random.dirichlet(KEY, np.array([0.5, 2.0]), (COUNT,))[:, 0],
        scipy.stats.beta(0.5, 2.0),
    ),
}


@pytest.mark.parametrize("name", sample([*CASES], 4, of="gammas"))
def test_distribution(name: str) -> None:
    draw, law = CASES[name]
    drawn = np.asarray(draw())
    assert drawn.dtype == np.float32
    assert scipy.stats.kstest(drawn, law.cdf).pvalue > 1e-3


def test_logarithms_do_not_underflow() -> None:
    logs = np.asarray(random.loggamma(KEY, 1e-3, (200,)))
    assert np.isfinite(logs).all()
    assert logs.min() < -200


def test_vectors_on_the_simplex_and_in_the_ball() -> None:
    alpha = np.array([0.1, 1.0, 5.0], np.float32)
    drawn = np.asarray(random.dirichlet(KEY, alpha, (50,)))
    np.testing.assert_allclose(drawn.sum(-1), np.ones(50), rtol=1e-5)
    assert random.dirichlet(KEY, np.stack([alpha] * 4)).shape == (4, 3)
    with pytest.raises(ShapeError, match="dirichlet: alpha must have an axis"):
        random.dirichlet(KEY, 1.0)
    for p in (1.0, 2.0, 3.5):
        inside = np.asarray(random.ball(KEY, 3, p, (400,)))
        norms = (np.abs(inside) ** p).sum(-1) ** (1 / p)
        assert norms.max() <= 1
        # The volume inside radius r is r³.
        assert scipy.stats.kstest(norms**3, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    ("dtype", "a"),
    sample(
        list(itertools.product(["float32", "float64"], [0.4, 1.0, 6.0])),
        3,
        of="slopes of gamma",
    ),
)
def test_slope_is_that_of_the_quantile(a: float, dtype: str) -> None:
    a = fxflow.numpy.asarray(a, dtype)
    sample = float(random.gamma(KEY, a, dtype=dtype))
    slope = float(fxflow.grad(lambda a: random.gamma(KEY, a, dtype=dtype))(a))
    level = scipy.stats.gamma(float(a)).cdf(sample)
    step = 1e-5
    high, low = (scipy.stats.gamma(float(a) + s).ppf(level) for s in (step, -step))
    np.testing.assert_allclose(slope, (high - low) / (2 * step), rtol=1e-3)
    log_slope = fxflow.grad(lambda a: random.loggamma(KEY, a, dtype=dtype))(a)
    log_sample = np.exp(float(random.loggamma(KEY, a, dtype=dtype)))
    np.testing.assert_allclose(log_sample, sample, rtol=1e-3)
    np.testing.assert_allclose(float(log_slope), slope / sample, rtol=1e-3)


def test_under_jit_and_vmap() -> None:
    keys = random.split(KEY, 3)
    shapes = np.array([0.2, 1.0, 9.0], np.float32)
    drawn = fxflow.jit(fxflow.vmap(lambda k, a: random.gamma(k, a, (2,))))(keys, shapes)
    for i in range(3):
        want = random.gamma(keys[i], float(shapes[i]), (2,))
        np.testing.assert_allclose(drawn[i], want, rtol=1e-5)


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(DtypeError, match="gamma: dtype must be a float dtype, got i32"):
        random.gamma(KEY, 1.0, dtype="int32")
    with pytest.raises(ArgumentError, match=r"beta: a parameter is .* of type list"):
        random.beta(KEY, [1.0], 1.0)
    with pytest.raises(ShapeError, match="t: parameters of shapes"):
        random.t(KEY, np.ones(3), (2,))
