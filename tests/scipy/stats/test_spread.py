"""Spread, trimmed samples and limits beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

from fxflow.errors import ArgumentError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same

RNG = np.random.default_rng(28)
X = RNG.gamma(2.0, size=(3, 4, 7))
HOLED = X.copy()
HOLED[0, 1, 2] = np.nan


@pytest.mark.parametrize("policy", ["propagate", "omit"])
@pytest.mark.parametrize("axis", [0, -1, None])
def test_reductions(axis: Any, policy: str) -> None:
    for name in [
        "iqr",
        "median_abs_deviation",
        "tmean",
        "tvar",
        "tstd",
        "tsem",
        "tmin",
        "tmax",
    ]:
        same(name, HOLED, axis=axis, nan_policy=policy, keepdims=True)
    same(
        "iqr",
        HOLED,
        axis=axis,
        nan_policy=policy,
        scale="normal",
        rng=(70, 10),
        interpolation="midpoint",
    )
    same("median_abs_deviation", HOLED, axis=axis, nan_policy=policy, scale="normal")
    same("trim_mean", HOLED, 0.3, axis=axis, nan_policy=policy)
    for name in ["tmean", "tvar", "tstd", "tsem"]:
        same(name, X, (0.5, 3.0), axis=axis)
        same(name, X, (None, 3.0), (True, False), axis=axis)
    same("tmin", X, 0.5, axis=axis)
    same("tmax", X, 2.5, axis=axis, inclusive=False)


def test_trimmed() -> None:
    x = RNG.normal(size=11)
    for name in ("trimboth", "trim1"):
        want = np.sort(getattr(scipy.stats, name)(x, 0.2))
        got = getattr(stats, name)(x, 0.2)
        np.testing.assert_allclose(got, want, 1e-6)
    got = stats.trim1(x, 0.2, tail="left")
    np.testing.assert_allclose(got, np.sort(x)[2:], 1e-6)
    assert stats.trimboth(X, 0.25, axis=1).shape == (3, 2, 7)
    assert stats.trimboth(np.arange(8), 0.25, axis=None).tolist() == [2, 3, 4, 5]
    for wrong in (-0.1, 0.5):
        with pytest.raises(ArgumentError, match="proportion"):
            stats.trim_mean(x, wrong)


def test_sigmaclip() -> None:
    x = np.r_[RNG.normal(size=30), 50.0, -20.0]
    want = scipy.stats.sigmaclip(x, 3.0, 2.5)
    got = stats.sigmaclip(x, 3.0, 2.5)
    kept = np.asarray(got.clipped)
    np.testing.assert_allclose(kept[kept == kept], want.clipped, 1e-6)
    np.testing.assert_allclose(got[1:], want[1:], 1e-4)


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="rng"):
        stats.iqr(X, rng=(10, 200))
    with pytest.raises(ArgumentError, match="scale"):
        stats.iqr(X, scale="raw")
    with pytest.raises(ArgumentError, match="limits"):
        stats.tmean(X, 3.0)
    with pytest.raises(ArgumentError, match="center must be None"):
        stats.median_abs_deviation(X, center=np.mean, nan_policy="omit")
