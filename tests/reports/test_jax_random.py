"""Reports on `jax.random`, as programs for `fxflow.random`."""

from __future__ import annotations

import math

import numpy as np

import fxflow.numpy as fnp
from fxflow import random
from tests.reports.modes import check_both


def test_small_integers_are_equally_likely() -> None:
    """uint8 below 100 is uniform: 56 is as frequent as 99 (jax#27702)."""
    draws = random.randint(random.key(0), (100_000,), 0, 100, dtype=np.uint8)
    counts = np.bincount(np.asarray(draws), minlength=100)
    # Chi-squared of 99 degrees of freedom: 99 ± 14; the report's was above 3,000.
    assert ((counts - 1000) ** 2 / 1000).sum() < 99 + 5 * 14


def test_the_largest_integer_can_be_drawn() -> None:
    """`maxval` one above the largest of the dtype is its whole range (jax#5785)."""
    ends = lambda draws: (fnp.min(draws), fnp.max(draws))
    key = random.key(0)
    unsigned = lambda k: ends(random.randint(k, (5000,), 0, 256, np.uint8))
    signed = lambda k: ends(random.randint(k, (5000,), -128, 128, np.int8))
    check_both(unsigned, (0, 255), key)
    check_both(signed, (-128, 127), key)


def test_poisson_of_nan_ends() -> None:
    """A rate of NaN gives -1 instead of a loop without an end (jax#9719)."""
    check_both(lambda k: random.poisson(k, math.nan, (2,)), [-1, -1], random.key(0))


def test_poisson_of_infinity_is_the_largest_integer() -> None:
    """An infinite rate never gives 0 (jax#38459)."""
    top = np.iinfo(np.int32).max
    ask = lambda k: random.poisson(k, math.inf, (64,))
    check_both(ask, np.full(64, top), random.key(0))


def test_loggamma_of_zero_is_minus_infinity() -> None:
    """gamma(0) is 0 for sure, its logarithm -inf, not NaN (jax#17925)."""
    key = random.key(0)
    check_both(lambda k: random.loggamma(k, 0.0, (3,)), [-math.inf] * 3, key)
    check_both(lambda k: random.gamma(k, 0.0, (3,)), [0] * 3, key)


def test_students_t_divides_by_an_independent_gamma() -> None:
    """Numerator and denominator of t come from different keys (jax#14597)."""
    draws = np.asarray(random.t(random.key(3), 5.0, (20_000,)), np.float64)
    # With 5 degrees of freedom: variance 5/3, and 5 % beyond 2.571.
    assert abs(draws.mean()) < 0.05
    assert abs((np.abs(draws) > 2.571).mean() - 0.05) < 0.006


def test_categorical_draws_possible_indices_only() -> None:
    """Compiled draws are indices, and the eager ones (jax#5061)."""
    logits = fnp.array([[0.0, -math.inf, 0.0]])
    draw = lambda k: random.categorical(k, logits, shape=(40, 1))
    right = np.asarray(draw(random.key(1)))
    assert set(right.ravel()) == {0, 2}
    check_both(draw, right, random.key(1))
