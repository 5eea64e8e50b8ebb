"""Reductions that leave out nan, against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from tests.numpy.oracle import check, same

X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
X[X > 1] = np.nan
NAMES = ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
def test_axes_and_keepdims_agree_with_numpy(name: str, axis: Any) -> None:
    check(name, X, axis=axis, tol=1e-4)
    check(name, X, axis=axis, keepdims=True, tol=1e-4)
    check(name, np.array([[1, 2, 3]]), tol=1e-6)
    check(name, (X + 1j * X[::-1]).astype(np.complex64), axis=(0, 1, 2), tol=1e-3)


@pytest.mark.parametrize("name", ["nansum", "nanmean", "nanvar", "nanstd"])
def test_masks_agree_with_numpy(name: str) -> None:
    mask = np.ones((4, 5), bool)
    mask[1:3] = False
    check(name, X, axis=(0, 1), where=mask, tol=1e-4)


def test_nothing_but_nan() -> None:
    x = np.full((2, 3), np.nan, np.float32)
    for name in ("nanmax", "nanmin", "nanmean", "nanvar", "nanstd"):
        assert np.isnan(getattr(fnp, name)(x)).all()
    assert float(fnp.nansum(x)) == 0 and float(fnp.nanprod(x)) == 1
    assert int(fnp.nanargmax(x)) == int(fnp.nanargmin(x)) == -1
    assert float(fnp.nanmax(x, initial=3)) == 3


@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_places(name: str) -> None:
    for axis in (None, 0, 2):
        check(name, X, axis=axis)
    check(name, X, axis=1, keepdims=True)
    check(name, np.array([3, 1, 2]))


def test_gradient_is_finite() -> None:
    for name in NAMES:
        g = np.asarray(fxflow.grad(lambda x, name=name: getattr(fnp, name)(x))(X[0]))
        assert np.isfinite(g[~np.isnan(X[0])]).all(), name
        assert (g[np.isnan(X[0])] == 0).all(), name


def test_vmap_agrees_with_numpy() -> None:
    got = fxflow.vmap(lambda r: fnp.nanmean(r, axis=0))(X)
    assert same(np.nanmean(X, axis=1), got, 1e-5)


def test_lists_and_masks_that_do_not_broadcast_are_refused() -> None:
    with pytest.raises(ArgumentError, match="nansum"):
        fnp.nansum([1.0])  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="broadcast"):
        fnp.nanmean(X, where=np.ones((2, 3, 4, 5), bool))


@pytest.mark.parametrize("function", [fnp.nansum, fnp.nanmean, fnp.nanvar, fnp.nanstd])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_a_mask_is_of_bools(function, dtype) -> None:
    with pytest.raises(TypeError, match="where must be a bool array"):
        function(np.ones((2, 3), "f4"), where=np.ones((2, 3), dtype))
