"""Running sums and products against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, ShapeError
from tests.numpy.oracle import check, same

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_agrees_with_numpy(name: str, axis: Any) -> None:
    check(name, X, axis=axis, tol=1e-5)
    x = X.copy()
    x[1, 2] = np.nan
    check(name, x, axis=axis, tol=1e-5)
    check(name, np.array([[1, 2], [3, 4]]), axis=axis)
    check(name, X > 0, axis=axis)
    check(name, np.zeros((0, 2), np.float32), axis=axis)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_cumulative_functions_of_the_array_standard(name: str) -> None:
    check(name, X[0], tol=1e-5)
    check(name, X, axis=1, include_initial=True, tol=1e-5)
    assert getattr(fnp, name)(np.ones(3, np.int8)).dtype == np.int32
    with pytest.raises(ArgumentError, match="axis"):
        getattr(fnp, name)(X)
    with pytest.raises(ShapeError, match="number"):
        getattr(fnp, name)(np.float32(1))


def test_bools_are_counted_and_integers_keep_their_dtype() -> None:
    assert fnp.cumsum(np.ones(2, np.int8)).dtype == np.int8
    assert fnp.cumsum(np.ones(2, bool)).dtype == np.int32
    assert fnp.cumsum(np.ones(2, np.int8), dtype="float32").dtype == np.float32
    assert same(X.cumsum(0), fnp.asarray(X).cumsum(0), 1e-5)
    assert same(X.cumprod(1), fnp.asarray(X).cumprod(1), 1e-5)


def test_the_gradient_of_cumsum_counts_later_sums() -> None:
    g = fxflow.grad(lambda x: fnp.cumsum(x).sum())(X[0])
    assert same(np.array([4.0, 3, 2, 1]), g)


def test_invalid_axes_and_out_are_refused() -> None:
    with pytest.raises(AxisError):
        fnp.cumsum(X, axis=2)
    with pytest.raises(ArgumentError, match="immutable"):
        fnp.cumsum(X, out=X)  # type: ignore[arg-type]


def test_of_bools() -> None:
    x = np.array([0, 2, 0])
    assert fnp.cumulative_sum(x, dtype=bool).tolist() == [False, True, True]
    assert fnp.cumsum(x, dtype=bool).tolist() == [False, True, True]
    assert fnp.cumprod(x + 1, dtype=bool).tolist() == [True, True, True]
    out = fnp.cumulative_prod(x, dtype=bool, include_initial=True)
    assert out.tolist() == [True, False, False, False]
