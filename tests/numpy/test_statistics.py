"""Covariance and convolution against NumPy."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import (
    ArgumentError,
    DtypeError,
    ShapeError,
)
from tests.numpy.oracle import check, same
from tests.sweeps.sampling import sample

RNG = np.random.default_rng(0)
X = RNG.normal(size=50).astype(np.float32)
W = RNG.random(50).astype(np.float32)
N = RNG.integers(0, 9, 30)


def test_covariance() -> None:
    m = RNG.normal(size=(3, 20)).astype(np.float32)
    f, a = RNG.integers(1, 4, 20), W[:20]
    check("cov", m, tol=1e-4)
    check("cov", m, m[:2] * 2, tol=1e-4)
    check("cov", m[0], m[1], tol=1e-4)
    check("cov", m[0], tol=1e-4)
    check("cov", m.T, rowvar=False, tol=1e-4)
    check("cov", m, bias=True, tol=1e-4)
    check("cov", m, ddof=0, fweights=f, tol=1e-4)
    check("cov", m, fweights=f, aweights=a, tol=1e-4)
    check("cov", m, aweights=a, tol=1e-4)
    check("cov", (m + 1j * m[::-1]).astype(np.complex64), tol=1e-4)
    check("corrcoef", m, tol=1e-4)
    check("corrcoef", m[0], m[1], tol=1e-4)
    check("corrcoef", m[0], tol=1e-4)
    check("corrcoef", (m + 1j * m[::-1]).astype(np.complex64), tol=1e-4)
    with pytest.raises(DtypeError, match="integers"):
        fnp.cov(m, fweights=a)
    with pytest.raises(ShapeError):
        fnp.cov(m, aweights=a[:3])
    with pytest.raises(ShapeError):
        fnp.cov(np.ones((2, 2, 2)))


SIZES = [(7, 3), (7, 4), (3, 7), (4, 7), (5, 5), (1, 4), (4, 1)]


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "m"), sample(SIZES, 3, of="convolution"))
def test_convolution(mode: str, n: int, m: int) -> None:
    for name in ("convolve", "correlate"):
        check(name, X[:n], W[:m], mode, tol=1e-4)
        check(name, N[:n], N[:m], mode)
        z = (X + 1j * W).astype(np.complex64)
        check(name, z[:n], z[-m:], mode, tol=1e-4)


def test_convolution_mistakes() -> None:
    with pytest.raises(ArgumentError, match="mode"):
        fnp.convolve(X, W, "half")
    with pytest.raises(ShapeError, match="empty"):
        fnp.convolve(X, W[:0])
    g = fxflow.grad(lambda v: fnp.convolve(X, v)[3])(W[:3])
    assert same(X[3:0:-1], g, 1e-5)


@pytest.mark.parametrize("name", ["cov", "corrcoef"])
@pytest.mark.parametrize("shape", [(3, 0), (0, 5), (0, 0), (0,), (1, 0), (3, 1)])
@pytest.mark.filterwarnings("ignore")
def test_nothing_to_correlate(name: str, shape: tuple[int, ...]) -> None:
    check(name, np.zeros(shape, np.float32))


@pytest.mark.filterwarnings("ignore")
def test_too_few_observations_are_divided_by_nothing() -> None:
    x = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)
    check("cov", x, ddof=5)
    check("cov", x, ddof=2, fweights=np.array([1, 1]))
    check("cov", x, ddof=9, aweights=np.array([1.0, 0.5]))


@pytest.mark.parametrize("function", [fnp.cov, fnp.corrcoef])
@pytest.mark.parametrize("dtype", [int, bool, "uint8"])
def test_covariances_are_floats(function, dtype) -> None:
    with pytest.raises(TypeError, match="must be a float or complex one"):
        function(np.eye(3), dtype=dtype)
