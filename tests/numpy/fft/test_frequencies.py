"""Frequencies against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)


def check(name: str, x: Any, **kwargs: Any) -> None:
    want = getattr(np.fft, name)(x, **kwargs)
    function = getattr(fnp.fft, name)
    assert same(want, function(x, **kwargs), 1e-4), (name, kwargs)
    assert same(want, fxflow.jit(lambda x: function(x, **kwargs))(x), 1e-4)


def test_frequencies() -> None:
    for n in (1, 4, 5):
        for name in ("fftfreq", "rfftfreq"):
            function, want = getattr(fnp.fft, name), getattr(np.fft, name)
            assert same(want(n), function(n), 1e-6)
            assert same(want(n, 0.1), function(n, 0.1), 1e-5)
            got = fxflow.jit(lambda d, f=function, n=n: f(n, d))(0.1)
            assert same(want(n, 0.1), got, 1e-5)
            assert function(n, dtype="float16").dtype == np.float16
    with pytest.raises(ArgumentError):
        fnp.fft.fftfreq(0)
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 1, (0, 2)):
            check(name, X, axes=axes)
