"""Poisson, binomial and multinomial counts."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow import random
from fxflow.errors import DtypeError, ShapeError
from tests.random import golden

KEY = random.key(11)
COUNT = 3000


@pytest.mark.parametrize("name", golden.names("poisson", "binomial", "multinomial"))
def test_as_jax(name: str) -> None:
    golden.check(name)


def _agrees(drawn: Any, law: Any) -> None:
    """Compares a histogram with the probabilities (chi-square, cells of 8 and more)."""
    drawn = np.asarray(drawn).astype(int)
    cells = np.arange(drawn.max() + 2)
    want = law.pmf(cells) * drawn.size
    have = np.bincount(drawn, minlength=cells.size)
    large = want >= 8
    distance = ((have - want)[large] ** 2 / want[large]).sum()
    assert scipy.stats.chi2(large.sum()).sf(distance) > 1e-4


@pytest.mark.parametrize("rate", [0.3, 4.0, 15.0, 80.0])
def test_poisson(rate: float) -> None:
    drawn = random.poisson(KEY, rate, (COUNT,))
    assert drawn.dtype == "int32"
    _agrees(drawn, scipy.stats.poisson(rate))


@pytest.mark.parametrize(("n", "p"), [(5, 0.3), (60, 0.02), (60, 0.5), (300, 0.9)])
def test_binomial(n: int, p: float) -> None:
    drawn = random.binomial(KEY, n, p, (COUNT,))
    assert drawn.dtype == "float32"
    assert float(np.asarray(drawn).max()) <= n
    _agrees(drawn, scipy.stats.binom(n, p))


def test_special_cases() -> None:
    rates = np.array([0.0, math.nan], np.float32)
    assert random.poisson(KEY, rates).tolist() == [0, -1]
    n = np.array([-1.0, 3.0, 3.0, np.inf, 0.0, 7.0, 7.0], np.float32)
    p = np.array([0.5, -0.1, 1.5, 0.5, 0.5, 1.0, 0.0], np.float32)
    drawn = np.asarray(random.binomial(KEY, n, p))
    want = [np.nan, np.nan, np.nan, np.inf, 0.0, 7.0, 0.0]
    np.testing.assert_array_equal(drawn, want)


def test_multinomial() -> None:
    p = np.array([0.2, 0.0, 0.5, 0.3], np.float32)
    drawn = np.asarray(random.multinomial(KEY, 20.0, p, shape=(500, 4)))
    np.testing.assert_array_equal(drawn.sum(1), np.full(500, 20.0))
    np.testing.assert_allclose(drawn.mean(0), 20 * p, atol=0.5)
    assert (drawn[:, 1] == 0).all()
    unnormalised = random.multinomial(KEY, 20.0, 7 * p, shape=(500, 4))
    np.testing.assert_array_equal(unnormalised, drawn)
    counts = np.array([3.0, 9.0], np.float32)
    shape_of = lambda n, p: fxflow.eval_shape(random.multinomial, KEY, n, p).shape
    assert shape_of(counts[:, None], p) == (2, 1, 4)
    assert shape_of(counts, np.stack([p, p])) == (2, 4)


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(DtypeError, match="poisson: dtype must be an integer dtype"):
        random.poisson(KEY, 1.0, dtype="float32")
    with pytest.raises(DtypeError, match="binomial: dtype must be a float dtype"):
        random.binomial(KEY, 1.0, 0.5, dtype="int32")
    with pytest.raises(ShapeError, match="multinomial: p must have an axis"):
        random.multinomial(KEY, 1.0, 0.5)
    with pytest.raises(ShapeError, match="multinomial: parameters of shapes"):
        random.multinomial(KEY, 1.0, np.ones(3), shape=(4,))


def test_under_jit_and_vmap() -> None:
    keys = random.split(KEY, 3)
    rates = np.array([0.5, 5.0, 50.0], np.float32)
    drawn = fxflow.jit(fxflow.vmap(lambda k, r: random.poisson(k, r, (4,))))(
        keys, rates
    )
    for i in range(3):
        want = random.poisson(keys[i], float(rates[i]), (4,))
        np.testing.assert_array_equal(drawn[i], want)
