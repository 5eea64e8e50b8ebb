"""Distributions drawn through the inverse of their distribution function."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow import random
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from tests.random import golden

KEY = random.key(3)
COUNT = 2000


@pytest.mark.parametrize(
    "name",
    golden.names(
        "exponential",
        "gumbel",
        "laplace",
        "logistic",
        "cauchy",
        "rayleigh",
        "weibull_min",
        "pareto",
        "triangular",
    ),
)
def test_as_jax(name: str) -> None:
    golden.check(name, ulps=4)


CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "exponential": (lambda: random.exponential(KEY, (COUNT,)), scipy.stats.expon()),
    "gumbel": (lambda: random.gumbel(KEY, (COUNT,)), scipy.stats.gumbel_r()),
    "gumbel-high": (
        lambda: random.gumbel(KEY, (COUNT,), mode="high"),
        scipy.stats.gumbel_r(),
    ),
    "laplace": (lambda: random.laplace(KEY, (COUNT,)), scipy.stats.laplace()),
    "logistic": (lambda: random.logistic(KEY, (COUNT,)), scipy.stats.logistic()),
    "cauchy": (lambda: random.cauchy(KEY, (COUNT,)), scipy.stats.cauchy()),
    "rayleigh": (
        lambda: random.rayleigh(KEY, 2.0, (COUNT,)),
        scipy.stats.rayleigh(scale=2.0),
    ),
    "weibull_min": (
        lambda: random.weibull_min(KEY, 2.0, 3.0, (COUNT,)),
        scipy.stats.weibull_min(3.0, scale=2.0),
    ),
    "pareto": (lambda: random.pareto(KEY, 3.0, (COUNT,)), scipy.stats.pareto(3.0)),
    "triangular": (
        lambda: random.triangular(KEY, -1.0, 0.0, 3.0, (COUNT,)),
        scipy.stats.triang(0.25, loc=-1.0, scale=4.0),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_distribution(name: str) -> None:
    draw, law = CASES[name]
    drawn = np.asarray(draw())
    assert drawn.dtype == np.float32
    assert scipy.stats.kstest(drawn, law.cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    "draw", [random.exponential, random.gumbel, random.laplace, random.logistic]
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_samples_have_the_given_dtype(draw: Callable[..., Any], dtype: str) -> None:
    drawn = draw(KEY, (4, 2), dtype)
    assert drawn.dtype == dtype
    assert np.isfinite(np.asarray(drawn).astype(float)).all()
    with pytest.raises(DtypeError, match="dtype must be a float dtype, got c64"):
        draw(KEY, (), "complex64")


def test_parameters_broadcast() -> None:
    scale = np.array([1.0, 2.0], np.float32)
    assert random.rayleigh(KEY, scale).shape == (2,)
    assert random.rayleigh(KEY, scale, (3, 2)).shape == (3, 2)
    column = np.ones((3, 1), np.float32)
    assert random.weibull_min(KEY, scale, column).shape == (3, 2)
    assert random.triangular(KEY, 0.0, scale / 4, column).shape == (3, 2)
    with pytest.raises(ShapeError, match=r"do not broadcast to the shape \(3,\) asked"):
        random.pareto(KEY, scale, (3,))
    with pytest.raises(ArgumentError, match=r"pareto: a parameter is .* of type list"):
        random.pareto(KEY, [1.0])


def test_slope_in_a_parameter() -> None:
    total = lambda s: random.rayleigh(KEY, s, (5,)).sum()
    slope = fxflow.grad(total)(2.0)
    np.testing.assert_allclose(slope, total(2.0) / 2.0, rtol=1e-6)


def test_an_invalid_mode_is_refused() -> None:
    with pytest.raises(ArgumentError, match='gumbel: mode must be "low" or "high"'):
        random.gumbel(KEY, (), mode="middle")


def test_under_vmap_and_jit() -> None:
    keys = random.split(KEY, 3)
    scales = np.array([1.0, 2.0, 3.0], np.float32)
    draw = fxflow.jit(fxflow.vmap(lambda k, s: random.rayleigh(k, s, (2,))))
    drawn = draw(keys, scales)
    for i in range(3):
        want = random.rayleigh(keys[i], float(scales[i]), (2,))
        np.testing.assert_allclose(drawn[i], want, rtol=1e-6)
