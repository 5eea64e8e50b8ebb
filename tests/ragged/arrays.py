"""Ragged arrays to test with, and what they should hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.ragged import RaggedArray

LENGTHS = [2, 0, 3, 1]


def sample(
    inner: tuple[int, ...] = (), seed: int = 0, dtype: Any = "f4"
) -> RaggedArray:
    """Returns rows with NaN behind the last one."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.5, 2.0, (9, *inner))
    if np.dtype(dtype).kind == "f":
        values[sum(LENGTHS) :] = np.nan
    else:
        values = rng.integers(1, 9, (9, *inner))
    return RaggedArray(values.astype(dtype), LENGTHS)


def rows(x: RaggedArray) -> list[np.ndarray]:
    """Returns the rows as NumPy arrays."""
    ends = np.cumsum(np.asarray(x.lengths))
    return np.split(np.asarray(x.values), ends)[: x.rows]


def assert_rows(x: Any, expected: list[np.ndarray]) -> None:
    """Checks the rows of a ragged array."""
    assert isinstance(x, RaggedArray)
    assert np.asarray(x.lengths).tolist() == [len(row) for row in expected]
    for found, row in zip(rows(x), expected, strict=True):
        np.testing.assert_allclose(found, row, rtol=1e-5)
