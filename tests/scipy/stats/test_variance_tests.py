"""Tests of variances beside SciPy's."""

from typing import Any

import numpy as np
import pytest

from fxflow.errors import ArgumentError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same

RNG = np.random.default_rng(35)
X = RNG.normal(size=(3, 11))
Y = RNG.normal(size=(3, 9)) + 0.4
W = RNG.normal(size=(3, 13)) * 1.5
P = RNG.normal(size=(3, 9))
HOLED = Y.copy()
HOLED[1, 2] = np.nan
TIED = [np.round(2 * v) for v in (X, Y, W, P)]
SIDES = ("two-sided", "less", "greater")
POLICIES = ("propagate", "omit")


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
