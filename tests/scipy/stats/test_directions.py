"""Summaries of angles and directions beside SciPy's."""

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same
from tests.scipy.stats.samples import HOLED, POLICIES, X


@pytest.mark.parametrize("name", ["circmean", "circvar", "circstd"])
def test_angles_agree_with_scipy(name: str) -> None:
    for axis in (None, 0, 1):
        same(name, X, axis=axis)
    same(name, 40 * X, high=180, low=-180, axis=1, keepdims=True)
    for policy in POLICIES:
        same(name, HOLED, axis=1, nan_policy=policy)


def test_a_normalized_deviation_is_in_radians() -> None:
    same("circstd", 40 * X, high=360, axis=1, normalize=True)


def test_directions_agree_with_scipy() -> None:
    x = X.reshape(11, 3)
    with fxflow.config.override(x64=True):
        for options in ({}, {"normalize": False}):
            want = scipy.stats.directional_stats(x, **options)
            found = stats.directional_stats(x, **options)
            np.testing.assert_allclose(found.mean_direction, want.mean_direction)
            np.testing.assert_allclose(
                found.mean_resultant_length, want.mean_resultant_length
            )
    with pytest.raises(ShapeError, match=r"at least two axes.*got f32\[11\]"):
        stats.directional_stats(X[0].astype("f"))
