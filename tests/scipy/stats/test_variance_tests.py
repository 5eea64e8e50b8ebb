"""Tests of variances beside SciPy's."""

from typing import Any

import pytest

from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same
from tests.scipy.stats.samples import HOLED, POLICIES, TIED, W, X, Y


@pytest.mark.parametrize("policy", POLICIES)
def test_variances(policy: str) -> None:
    same("bartlett", X, HOLED, W, axis=1, nan_policy=policy, keepdims=True)
    for name in ("levene", "fligner"):
        same(name, *(t[0] for t in TIED[:3]))
        for center in ("mean", "median", "trimmed"):
            options: Any = {"center": center, "proportiontocut": 0.1}
            same(name, X, HOLED, W, axis=1, nan_policy=policy, **options)


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="center must be one of"):
        stats.levene(X, Y, axis=1, center="mode")
    with pytest.raises(ArgumentError, match="at least 2 samples"):
        stats.bartlett(X)


def test_o_brien_s_numbers_agree_with_scipy() -> None:
    same("obrientransform", X[0], W[1][:11])
    parts = stats.obrientransform(X[0], W[1])
    assert [len(p) for p in parts] == [11, 13]
    with pytest.raises(ShapeError, match="row of at least three elements"):
        stats.obrientransform(X[0][:2])
