"""Zeros of Kelvin's functions against SciPy and mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy import special

NAMES = ["ber", "bei", "ker", "kei", "berp", "beip", "kerp", "keip"]


def test_agree_with_scipy_and_are_zeros() -> None:
    with fxflow.config.override(x64=True), mpmath.workdps(30):
        every = special.kelvin_zeros(20)
        np.testing.assert_allclose(every, scipy.special.kelvin_zeros(20), 1e-10)
        for name, zeros in zip(NAMES, every, strict=True):
            got = getattr(special, f"{name}_zeros")(20)
            np.testing.assert_array_equal(got, zeros)
        for name, zeros in zip(NAMES[:4], every, strict=False):
            of = lambda x, name=name: getattr(mpmath, name)(0, x)
            exact = float(mpmath.findroot(of, float(zeros[11])))
            assert float(zeros[11]) == pytest.approx(exact, rel=1e-15)
    for bad in (0, 1001, 1.5):
        with pytest.raises(ArgumentError, match="nt"):
            special.ber_zeros(bad)
