"""Sums of duplicates, in order."""

import numpy as np
import pytest

from fxflow.distributed.parameter_server.tables import sum_rows


@pytest.mark.parametrize("count", [0, 1, 2, 9, 300, 5000])
def test_sums_are_in_the_order_given(count) -> None:
    generator = np.random.default_rng(count)
    ids = np.minimum(generator.zipf(1.3, count), 10**9)
    gradients = generator.normal(size=(count, 2, 3)).astype(np.float32)
    expected = {}
    for i, g in zip(ids.tolist(), gradients):
        expected[i] = expected[i] + g if i in expected else g
    distinct, sums = sum_rows(ids, gradients)
    assert distinct.tolist() == sorted(expected)
    assert sums.dtype == np.float32
    for i, total in zip(distinct.tolist(), sums):
        assert np.array_equal(total, expected[i])
