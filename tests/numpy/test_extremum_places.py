"""Places of extrema against NumPy."""

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.core.errors import ShapeError
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
