"""Ranks and most frequent values beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import fxflow
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.scipy import stats

ROWS = st.lists(
    st.lists(st.integers(0, 4), min_size=5, max_size=5), min_size=1, max_size=4
)


@settings(max_examples=15)
@given(rows=ROWS, axis=st.sampled_from([0, 1, -1, None]), keepdims=st.booleans())
def test_mode_and_ranks(rows: Any, axis: int | None, keepdims: bool) -> None:
    x = np.array(rows, np.float32)
    want = scipy.stats.mode(x, axis=axis, keepdims=keepdims)
    got = stats.mode(x, axis, keepdims=keepdims)
    np.testing.assert_array_equal(got.mode, want.mode)
    np.testing.assert_array_equal(got.count, want.count)
    for method in ("average", "min", "max", "dense", "ordinal"):
        want = scipy.stats.rankdata(x, method, axis=axis)
        np.testing.assert_array_equal(stats.rankdata(x, method, axis=axis), want)


def test_nan_and_nothing() -> None:
    x = np.array([1, np.nan, np.nan], np.float32)
    got = stats.mode(x)
    assert np.isnan(got.mode) and int(got.count) == 2
    assert np.isnan(stats.rankdata(x)).all()
    assert stats.rankdata(np.zeros((0, 2)), axis=0).shape == (0, 2)
    none = stats.mode(np.zeros((0, 2)))
    assert np.isnan(none.mode).all() and none.count.tolist() == [0, 0]
    flags = stats.mode(np.array([True, False, True]))
    assert flags.mode.dtype == bool and bool(flags.mode)
    with pytest.raises(ArgumentError):
        stats.mode(x, nan_policy="omit")
    with pytest.raises(ArgumentError):
        stats.rankdata(x, "first")
    with pytest.raises(AxisError):
        stats.mode(x, 1)


def test_sem() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    for axis in (0, 1, None):
        for ddof in (0, 1):
            want = scipy.stats.sem(x, axis, ddof)
            np.testing.assert_allclose(stats.sem(x, axis, ddof), want, 1e-5)
    assert stats.sem(x, None, keepdims=True).shape == (1, 1)
    x[0, 0] = np.nan
    want = scipy.stats.sem(x, 1, nan_policy="omit")
    np.testing.assert_allclose(stats.sem(x, 1, nan_policy="omit"), want, 1e-5)
    assert np.isnan(stats.sem(x, None))
    slope = fxflow.grad(lambda v: stats.sem(v))(np.array([1.0, 2.0, 4.0]))
    assert float(slope.sum()) == pytest.approx(0, abs=1e-6)


def test_factors_of_ties() -> None:
    for ranks in ([1.0, 2.5, 2.5, 4.0], [2.0, 2.0, 2.0], [1.0]):
        want = scipy.stats.tiecorrect(np.array(ranks))
        np.testing.assert_allclose(stats.tiecorrect(np.array(ranks)), want, 1e-6)
    with pytest.raises(ShapeError, match="rankvals must be a row"):
        stats.tiecorrect(np.ones((2, 2)))
