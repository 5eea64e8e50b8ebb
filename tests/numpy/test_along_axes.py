"""Functions along axes against NumPy."""

import numpy as np

import fxflow.numpy as fnp
from tests.numpy.oracle import same

CUBE = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


def test_functions_along_axes() -> None:
    for function in (
        lambda v: v[::-1] * 2,
        lambda v: v[0],
        lambda v: v[:, None] * v[:2],
    ):
        for axis in (0, 1, -1):
            want = np.apply_along_axis(function, axis, CUBE)
            assert same(want, fnp.apply_along_axis(function, axis, CUBE))
    want = np.apply_over_axes(lambda x, d: x.take(0, d), CUBE, (0, 2))
    assert same(want, fnp.apply_over_axes(lambda x, d: x.take(0, d), CUBE, (0, 2)))
