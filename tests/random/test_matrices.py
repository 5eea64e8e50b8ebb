"""Random vectors of given covariance, and random matrices."""

import numpy as np
import pytest

import fxflow
from fxflow import random
from fxflow.errors import ArgumentError, ShapeError
from tests.random import golden

KEY = random.key(19)
MEAN = np.array([1.0, -2.0, 0.5], np.float32)
COV = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 0.5]], np.float32)


@pytest.mark.parametrize("name", golden.names("multivariate_normal", "orthogonal"))
def test_as_jax(name: str) -> None:
    golden.check(name, ulps=32)


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_covariance(method: str) -> None:
    drawn = random.multivariate_normal(KEY, MEAN, COV, (6000,), method=method)
    np.testing.assert_allclose(np.asarray(drawn).mean(0), MEAN, atol=0.1)
    np.testing.assert_allclose(np.cov(np.asarray(drawn).T), COV, atol=0.12)


def test_batches_of_parameters() -> None:
    means = np.stack([MEAN, MEAN + 10])
    assert random.multivariate_normal(KEY, means, COV).shape == (2, 3)
    both = random.multivariate_normal(KEY, means, np.stack([COV, 2 * COV]), (5, 2))
    assert both.shape == (5, 2, 3)
    assert float(both[:, 1].mean()) > 5
    with pytest.raises(ShapeError, match=r"expected mean of shape \(..., n\) and cov"):
        random.multivariate_normal(KEY, MEAN, COV[:2, :2])
    with pytest.raises(ShapeError, match=r"the leading axes \(2,\) of mean and cov"):
        random.multivariate_normal(KEY, means, COV, (2, 3))
    with pytest.raises(ArgumentError, match='method must be "cholesky"'):
        random.multivariate_normal(KEY, MEAN, COV, method="lu")


def test_slope_in_the_covariance() -> None:
    def total(scale: float) -> object:
        return random.multivariate_normal(KEY, MEAN, scale * COV).sum()

    step = 1e-2
    want = (total(1 + step) - total(1 - step)) / (2 * step)
    np.testing.assert_allclose(fxflow.grad(total)(1.0), want, rtol=1e-2)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize(("n", "m"), [(3, 3), (2, 4), (4, 2)])
def test_orthonormal(n: int, m: int, dtype: str) -> None:
    q = np.asarray(random.orthogonal(KEY, n, (2,), dtype, m=m))
    assert q.shape == (2, n, m)
    assert q.dtype == dtype
    small = q if n <= m else q.swapaxes(1, 2)
    products = small @ small.conj().swapaxes(1, 2)
    np.testing.assert_allclose(products, np.stack([np.eye(min(n, m))] * 2), atol=1e-5)
