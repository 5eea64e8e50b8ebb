"""Sine transforms against SciPy."""

import numpy as np
import pytest
import scipy.fft

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy import fft

RNG = np.random.default_rng(27)
X = RNG.normal(size=(3, 6))
NORMS = [None, "ortho", "forward"]


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", NORMS)
def test_agree_with_scipy(type: int, norm: str | None) -> None:
    with fxflow.config.override(x64=True):
        for name in ("dst", "idst", "dstn", "idstn", "dct", "idct"):
            function, theirs = getattr(fft, name), getattr(scipy.fft, name)
            for given in ({}, {"orthogonalize": True}, {"orthogonalize": False}):
                got = function(X, type, norm=norm, **given)
                want = theirs(X, type, norm=norm, **given)
                np.testing.assert_allclose(got, want, 1e-10, 1e-12, err_msg=name)


def test_lengths_and_axes() -> None:
    got = fft.dst(X, 1, n=4, axis=0)
    np.testing.assert_allclose(got, scipy.fft.dst(X, 1, n=4, axis=0), 1e-5, 1e-5)
    got = fft.dstn(X * (1 + 1j), 3, s=(4,), axes=(1,))
    want = scipy.fft.dstn(X * (1 + 1j), 3, s=(4,), axes=(1,))
    np.testing.assert_allclose(got, want, 1e-5, 1e-5)
    np.testing.assert_allclose(fft.dst(np.ones(1), 1), scipy.fft.dst(np.ones(1), 1))
    with pytest.raises(ArgumentError, match="at least 1"):
        fft.dst(np.ones(0))
