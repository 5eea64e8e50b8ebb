"""What rotations are computed by; the rest is tested through `Rotation`."""

import numpy as np

import fxflow.numpy as fnp
from fxflow.scipy.spatial.transform import _quaternions as quaternions


def test_canonical_sign_by_the_first_part_that_is_not_0() -> None:
    for part in range(4):
        for rest in (0.0, 0.5):
            q = np.zeros(4)
            q[[3, 0, 1, 2][part]] = -1
            if part < 3:
                q[[3, 0, 1, 2][part + 1]] = rest
            for given in (q, -q):
                got = quaternions.canonical(fnp.asarray(given))
                np.testing.assert_array_equal(got, -q)
