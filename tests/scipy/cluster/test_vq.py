"""Nearest codes, beside SciPy's."""

import numpy as np
import pytest
import scipy.cluster.vq

import fxflow
from fxflow.errors import ShapeError
from fxflow.scipy.cluster.vq import vq

RNG = np.random.default_rng(0)


def test_codes_and_distances_agree_with_scipy() -> None:
    for shape in ((20, 3), (20,), (20, 7), (4000, 6)):
        x, codes = RNG.normal(size=shape), RNG.normal(size=(5, *shape[1:]))
        want = scipy.cluster.vq.vq(x, codes)
        for function in (vq, fxflow.jit(vq)):
            got = function(x, codes)
            np.testing.assert_array_equal(got[0], want[0])
            np.testing.assert_allclose(got[1], want[1], 1e-5)
    x = np.array([[1.0, 0], [3, 0]])
    slope = fxflow.grad(lambda x: vq(x, np.eye(2))[1].sum())(x)
    np.testing.assert_allclose(slope, [[0, 0], [1, 0]])
    assert np.isnan(vq(np.array([np.nan]), np.ones(2))[1]).all()
    for x, codes in [(np.ones((2, 3)), np.ones((2, 2))), (np.ones(2), np.ones(0))]:
        with pytest.raises(ShapeError):
            vq(x, codes)
