"""What is an array of distances, beside SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.spatial.distance as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.spatial import distance

TABLE = want.squareform(np.arange(1.0, 7))


def test_tables() -> None:
    near = TABLE + 1e-3 * np.arange(16).reshape(4, 4)
    for x in (TABLE, TABLE + np.eye(4), near, TABLE[:2], TABLE[0], TABLE + np.nan):
        for tol in (0.0, 0.1):
            assert distance.is_valid_dm(x, tol) == want.is_valid_dm(x, tol)
    with pytest.raises(ArgumentError, match="'table' must be symmetric"):
        distance.is_valid_dm(np.triu(TABLE), throw=True, name="table")
    with pytest.raises(ArgumentError, match="0 on the diagonal"):
        distance.is_valid_dm(TABLE + 1, throw=True)
    with pytest.raises(ShapeError, match="square"):
        distance.is_valid_dm(TABLE[:2], throw=True)
    with pytest.raises(ArgumentError, match="must be known"):
        fxflow.jit(distance.is_valid_dm)(TABLE)
    assert distance.num_obs_dm(TABLE) == 4
    with pytest.raises(ShapeError, match="square matrix"):
        distance.num_obs_dm(TABLE[0])


def test_pairs() -> None:
    for n in range(1, 30):
        y = np.ones(n)
        assert distance.is_valid_y(y) == want.is_valid_y(y)
        if want.is_valid_y(y):
            assert distance.num_obs_y(y) == want.num_obs_y(y)
    assert not distance.is_valid_y(TABLE)
    with pytest.raises(ShapeError, match=r"'Y' must be a vector .* got shape \(4,\)"):
        distance.num_obs_y(np.ones(4))
