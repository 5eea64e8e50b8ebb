"""Dropout."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, random
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError

KEY = random.key(0)
X = np.random.default_rng(0).normal(size=(40, 50)).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_share_and_scale(dtype: str) -> None:
    x = fnp.asarray(X, dtype)
    out = fxflow.jit(lambda k, x: nn.dropout(k, x, 0.2))(KEY, x)
    assert out.dtype == dtype and out.shape == x.shape
    kept = np.asarray(out != 0)
    assert abs(kept.mean() - 0.8) < 0.03
    np.testing.assert_allclose(
        np.asarray(out, "f")[kept], np.asarray(x, "f")[kept] / 0.8, rtol=1e-2
    )
    again = nn.dropout(KEY, x, 0.2)
    assert bool((again == out).all())
    assert bool((nn.dropout(random.key(1), x, 0.2) != out).any())


def test_axes_together() -> None:
    out = np.asarray(nn.dropout(KEY, X, 0.5, broadcast_axes=-2))
    for column in (out != 0).T:
        assert column.all() or not column.any()


def test_rates_of_zero_and_one() -> None:
    np.testing.assert_array_equal(nn.dropout(None, X, 0.5, deterministic=True), X)
    np.testing.assert_array_equal(nn.dropout(KEY, X, 0), X)
    bad = np.where(X > 1, np.inf, np.nan).astype("f")
    np.testing.assert_array_equal(nn.dropout(KEY, bad, 1), np.zeros_like(X))
    total = lambda x, rate: nn.dropout(KEY, x, rate).sum()
    assert not np.asarray(fxflow.grad(total)(X, 1.0)).any()
    slope = np.asarray(fxflow.jit(fxflow.grad(total))(X, fnp.float32(0.5)))
    np.testing.assert_array_equal(slope, np.asarray(nn.dropout(KEY, X, 0.5) != 0) * 2)


def test_one_key_for_each_row() -> None:
    keys = random.split(KEY, len(X))
    rows = fxflow.vmap(lambda k, x: nn.dropout(k, x, 0.5))(keys, X)
    np.testing.assert_array_equal(rows[3], nn.dropout(keys[3], X[3], 0.5))


def test_invalid_rates_keys_and_axes_are_refused() -> None:
    with pytest.raises(
        ArgumentError, match=r"dropout: rate must be from 0 to 1, got 2"
    ):
        nn.dropout(KEY, X, 2)
    with pytest.raises(
        ArgumentError, match="key is None: pass a key, or deterministic"
    ):
        nn.dropout(None, X, 0.5)
    with pytest.raises(AxisError, match="broadcast_axes 2 is out of range"):
        nn.dropout(KEY, X, 0.5, broadcast_axes=2)
    with pytest.raises(DtypeError, match="dropout: x must be floats, got i32"):
        nn.dropout(KEY, fnp.arange(3), 0.5)
    with pytest.raises(ShapeError, match=r"rate must be floats of shape \[\], got"):
        nn.dropout(KEY, X, fnp.ones(2))
