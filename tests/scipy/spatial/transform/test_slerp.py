"""Rotations between rotations, beside SciPy's."""

import numpy as np
import pytest
import scipy.spatial.transform as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ShapeError
from fxflow.scipy.spatial.transform import Rotation, Slerp

RNG = np.random.default_rng(0)
Q = RNG.normal(size=(4, 4))
TIMES = np.array([0.0, 1.0, 1.5, 4.0])
AT = np.array([0.0, 0.3, 1.0, 1.2, 3.9, 4.0])


def test_interpolated_rotations_agree_with_scipy() -> None:
    theirs = want.Slerp(TIMES, want.Rotation.from_quat(Q))
    with fxflow.config.override(x64=True):
        for make in (Slerp, Slerp.init):
            ours = make(TIMES, Rotation.from_quat(Q))
            got = ours(AT).as_matrix()
            np.testing.assert_allclose(got, theirs(AT).as_matrix(), 1e-12, 1e-12)
            one = ours(0.3)
            assert one.single
            np.testing.assert_allclose(one.as_matrix(), got[1], 1e-12)
            jitted = fxflow.jit(lambda s, t: s(t))(ours, AT)
            np.testing.assert_allclose(jitted.as_matrix(), got, 1e-12, 1e-12)
            # Beyond the ends the outermost turns go on.
            before = (ours(0.0) * ours(0.5).inv() * ours(0.0)).as_matrix()
            np.testing.assert_allclose(ours(-0.5).as_matrix(), before, 1e-10, 1e-10)
        speed = fxflow.jacfwd(lambda t: ours(t).as_matrix())(0.3)
        h = 1e-6
        change = (ours(0.3 + h).as_matrix() - ours(0.3 - h).as_matrix()) / (2 * h)
        np.testing.assert_allclose(speed, change, 1e-7, 1e-8)


def test_times_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="time for each"):
        Slerp(fnp.ones(2), Rotation.identity(3))
    with pytest.raises(ShapeError, match="at least two"):
        Slerp(fnp.ones(1), Rotation.identity(1))
    with pytest.raises(ShapeError, match="one axis"):
        Slerp(fnp.arange(2), Rotation.identity(2))(fnp.ones((2, 2)))
