"""Places of extrema against NumPy."""

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.errors import ShapeError
from tests.numpy.oracle import check

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places(name: str) -> None:
    for axis in (None, 0, -1):
        check(name, X, axis=axis)
        check(name, X, axis=axis, keepdims=True)
    check(name, np.array([1.0, np.nan, 5.0, np.nan], np.float32))
    check(name, np.array([2, 2, 1, 1]))
    with pytest.raises(ShapeError, match="empty"):
        getattr(fnp, name)(np.zeros((0,)))


@pytest.mark.parametrize("name", ("argmax", "argmin", "nanargmax"))
def test_complex_numbers(name) -> None:
    z = np.array([[1 + 2j, 1 + 3j, -2, 1 + 3j], [0, -2 - 1j, -2, 1]], np.complex64)
    for axis in (None, 0, 1):
        check(name, z, axis=axis)
    if name != "nanargmax":
        z[0, 1] = complex(0, np.nan)
        check(name, z, axis=1)
