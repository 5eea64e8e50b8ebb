"""Flat positions against NumPy."""

import numpy as np

import fxflow
import fxflow.numpy as fnp
from tests.numpy.oracle import check, same


def test_flat_positions_and_back() -> None:
    check("unravel_index", np.array([5, 11]), (3, 4))
    pair = (np.array([1, 2]), np.array([3, 0]))
    for order in ("C", "F"):
        want = np.ravel_multi_index(pair, (3, 4), order=order)
        assert same(want, fnp.ravel_multi_index(pair, (3, 4), order=order))
    far = (np.array([1, 7]), np.array([3, -1]))
    for mode in ("wrap", "clip", ("wrap", "clip")):
        want = np.ravel_multi_index(far, (3, 4), mode=mode)
        got = fxflow.jit(lambda f, m=mode: fnp.ravel_multi_index(f, (3, 4), mode=m))(
            far
        )
        assert same(want, got)
