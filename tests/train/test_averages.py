"""Averages of parameters, compared with explicit sums."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.train import averages
from fxflow.train.averages import Average

STEPS = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)


def after(average: Average, count: int) -> fxflow.Array:
    update = fxflow.jit(average.update)
    state = average.init(fnp.zeros(3))
    for params in STEPS[:count]:
        state = update(state, params)
    return average.value(state)


@pytest.mark.parametrize("count", [1, 2, 20])
def test_uniform_is_the_mean(count: int) -> None:
    found = after(averages.uniform(), count)
    np.testing.assert_allclose(found, STEPS[:count].mean(0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [1, 2, 20])
@pytest.mark.parametrize("debias", [False, True])
def test_exponential_follows_its_formula(count: int, debias: bool) -> None:
    weights = 0.1 * 0.9 ** np.arange(count)[::-1]
    expected = weights @ STEPS[:count] / (weights.sum() if debias else 1)
    found = after(averages.exponential(0.9, debias=debias), count)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_warmup_begins_with_the_first_parameters() -> None:
    average = averages.exponential(0.999, warmup=True)
    np.testing.assert_array_equal(after(average, 1), STEPS[0])
    kept = 2 / 11
    expected = kept * STEPS[0] + (1 - kept) * STEPS[1]
    np.testing.assert_allclose(after(average, 2), expected, rtol=1e-5)


@pytest.mark.parametrize("average", [averages.uniform(), averages.exponential(0.5)])
def test_dtypes_are_kept_and_counters_are_not_averaged(average: Average) -> None:
    params = {"w": fnp.ones(2, fnp.bfloat16), "n": fnp.array(3), "c": fnp.ones(1) * 1j}
    state = average.update(average.init(params), params)
    assert average.value(state)["w"].dtype == "float32"
    value = average.value(state, params)
    assert {name: x.dtype for name, x in value.items()} == {
        name: x.dtype for name, x in params.items()
    }
    assert (int(value["n"]), complex(value["c"][0])) == (3, 1j)


def test_a_decay_out_of_range_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"decay must be in \[0, 1\), got 1"):
        averages.exponential(1.0)
