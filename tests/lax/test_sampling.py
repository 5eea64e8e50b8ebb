"""Numbers from key data."""

import numpy as np
import pytest

from fxflow import lax
from fxflow.core.arrays import dtypes
from fxflow.lax import sampling

WORDS = lax.random_unwrap(lax.random_seed(0))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_ranges(name: str) -> None:
    dtype = dtypes.dtype(name)
    unit = np.asarray(sampling.uniform(WORDS, (500,), dtype)).astype(float)
    assert unit.min() >= 0
    assert unit.max() < 1
    both = np.asarray(sampling.open_uniform(WORDS, (500,), dtype)).astype(float)
    assert both.min() > -1
    assert both.max() < 1
    assert both.min() < -0.9
    above = np.asarray(sampling.positive_uniform(WORDS, (500,), dtype)).astype(float)
    assert above.min() > 0
    assert np.isfinite(
        np.asarray(sampling.normal(WORDS, (500,), dtype)).astype(float)
    ).all()


def test_keys_come_first_in_the_shape() -> None:
    keys = lax.concatenate(
        [lax.reshape(w, (1, 2)) for w in sampling.split(WORDS, 3)], 0
    )
    drawn = sampling.uniform(keys, (4,), dtypes.float32)
    assert drawn.shape == (3, 4)
    second = sampling.split(WORDS, 3)[1]
    np.testing.assert_array_equal(
        np.asarray(drawn)[1], sampling.uniform(second, (4,), dtypes.float32)
    )


def test_signs_are_plus_and_minus_one() -> None:
    drawn = np.asarray(sampling.signs(WORDS, (200,), dtypes.int8))
    assert drawn.dtype == np.int8
    assert set(drawn.tolist()) == {-1, 1}
