"""Rounding against SciPy."""

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import DtypeError
from fxflow.scipy import special


def test_round_to_even() -> None:
    x = np.array([-2.5, -1.5, -0.4, 0.5, 2.5, 3.7, 1e9, np.inf, np.nan])
    with fxflow.config.override(x64=True):
        np.testing.assert_array_equal(special.round(x), scipy.special.round(x))
    assert float(fxflow.grad(special.round)(0.3)) == 0
    with pytest.raises(DtypeError, match="round: takes real numbers"):
        special.round(1j)
