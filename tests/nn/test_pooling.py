"""Pooling against loops over windows."""

import itertools
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn
from fxflow.errors import ArgumentError, DtypeError, ShapeError

X = np.random.default_rng(0).permutation(2 * 7 * 6 * 3).reshape(2, 7, 6, 3)
X = (X / 10).astype(np.float32)


def windows(x: Any, window: Any, strides: Any, pads: Any, dilation: Any) -> Any:
    """Yields places and the elements there, nan for padding."""
    x = np.pad(x, ((0, 0), *pads, (0, 0)), constant_values=np.nan)
    sizes = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    counts = [
        (n - size) // s + 1
        for n, size, s in zip(x.shape[1:-1], sizes, strides, strict=True)
    ]
    for place in itertools.product(*map(range, counts)):
        cut = tuple(
            slice(p * s, p * s + size, d)
            for p, s, size, d in zip(place, strides, sizes, dilation, strict=True)
        )
        yield counts, place, x[(slice(None), *cut)].reshape(len(x), -1, x.shape[-1])


def pooled(how: Any, *args: Any) -> Any:
    found = list(windows(*args))
    out = np.zeros((2, *found[0][0], 3))
    for _, place, elements in found:
        out[(slice(None), *place)] = how(elements)
    return out


CASES = [
    ((2, 3), None, "VALID", None, ((0, 0), (0, 0))),
    ((3, 2), (2, 1), "SAME", None, ((1, 1), (0, 1))),
    ((3, 2), (1, 2), ((1, 0), (0, 1)), (2, 1), ((1, 0), (0, 1))),
]


@pytest.mark.parametrize(("window", "strides", "padding", "dilation", "pads"), CASES)
def test_as_loop(
    window: Any, strides: Any, padding: Any, dilation: Any, pads: Any
) -> None:
    args = X, window, strides or window, pads, dilation or (1, 1)
    run = lambda f, **more: fxflow.jit(
        lambda x: f(x, window, strides, padding, dilation=dilation, **more)
    )(X)
    want = pooled(lambda w: np.nanmax(w, 1), *args)
    np.testing.assert_array_equal(run(nn.max_pool), want.astype("f"))
    want = pooled(lambda w: np.nanmean(w, 1), *args)
    np.testing.assert_allclose(run(nn.avg_pool, count_include_pad=False), want, 1e-5)
    want = pooled(lambda w: np.nan_to_num(w).mean(1), *args)
    np.testing.assert_allclose(run(nn.avg_pool), want, 1e-5)


def test_global() -> None:
    np.testing.assert_array_equal(nn.max_pool(X), X.max((1, 2), keepdims=True))
    np.testing.assert_allclose(nn.avg_pool(X), X.mean((1, 2), keepdims=True), 1e-5)
    row = X[0, 0]  # without batch
    np.testing.assert_array_equal(nn.max_pool(row, (2,)), row.reshape(3, 2, 3).max(1))


def test_pooling_under_grad_and_vmap() -> None:
    slope = fxflow.grad(lambda x: nn.max_pool(x, (7, 6)).sum())(X)
    top = X.max((1, 2), keepdims=True) == X
    np.testing.assert_array_equal(slope, top.astype("f"))
    slope = fxflow.grad(lambda x: nn.avg_pool(x, (7, 6)).sum())(X)
    np.testing.assert_allclose(slope, np.full_like(X, 1 / 42), 1e-6)
    rows = fxflow.vmap(lambda x: nn.max_pool(x, (2, 2)))(X)
    np.testing.assert_array_equal(rows, nn.max_pool(X, (2, 2)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "uint8"])
def test_pooling_keeps_the_dtype(dtype: str) -> None:
    x = fnp.asarray(X, dtype)
    most = nn.max_pool(x, (2, 2), padding="SAME")
    assert most.dtype == dtype
    assert bool(
        (most == nn.max_pool(x.astype("float32"), (2, 2), padding="SAME")).all()
    )
    if x.dtype.kind not in "iu":
        mean = nn.avg_pool(x, (3, 3))
        assert mean.dtype == dtype
        want = np.asarray(nn.avg_pool(X, (3, 3)))
        np.testing.assert_allclose(np.asarray(mean, "f"), want, rtol=1e-2)


def test_invalid_windows_strides_and_padding_are_refused() -> None:
    with pytest.raises(
        ArgumentError, match=r"max_pool: strides must be 2 integers, as"
    ):
        nn.max_pool(X, (2, 2), (1,))
    with pytest.raises(ArgumentError, match=r"window must be positive, got \(0, 2\)"):
        nn.max_pool(X, (0, 2))
    with pytest.raises(ShapeError, match=r"x must have 4 spatial axes, as the window"):
        nn.max_pool(X, (2, 2, 2, 2))
    with pytest.raises(ArgumentError, match='padding must be "VALID", "SAME", "SAME_L'):
        nn.avg_pool(X, (2, 2), padding="FULL")
    with pytest.raises(ArgumentError, match="a pair for each of the 2 spatial axes"):
        nn.avg_pool(X, (2, 2), padding=((1, 1),))
    with pytest.raises(DtypeError, match="avg_pool: x must be floats, got i32"):
        nn.avg_pool(fnp.ones((2, 3, 1), "int32"), (2,))
    with pytest.raises(DtypeError, match="max_pool: x must be real numbers, got bool"):
        nn.max_pool(fnp.ones((2, 3, 1), "bool"), (2,))
    with pytest.raises(ShapeError, match=r"x must be \[batch, ..., features\], got"):
        nn.max_pool(fnp.ones(3))
