"""Fourier transforms of several axes against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)
Z = (X + 1j * RNG.normal(size=X.shape)).astype(np.complex64)


def check(name: str, x: Any, **kwargs: Any) -> None:
    want = getattr(np.fft, name)(x, **kwargs)
    function = getattr(fnp.fft, name)
    assert same(want, function(x, **kwargs), 1e-4), (name, kwargs)
    assert same(want, fxflow.jit(lambda x: function(x, **kwargs))(x), 1e-4)


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_several_axes(name: str, norm: Any) -> None:
    x = X if name == "rfft" else Z
    for kwargs in (
        {},
        {"axes": (0, 2)},
        {"axes": (2, 0)},
        {"s": (6, 3, 2), "axes": (0, 1, 2)},
    ):
        check(name + "n", x, norm=norm, **kwargs)
    check(name + "2", x, norm=norm)
    check(name + "2", x, norm=norm, s=(2, 6), axes=(0, 1))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_more_than_three_axes(name: str) -> None:
    x = RNG.normal(size=(2, 3, 2, 3, 4)).astype(np.float32)
    check(name, x)
    check(name, x, axes=(4, 0, 2, 1))
