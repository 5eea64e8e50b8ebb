"""Zeros of the error function and of Fresnel's integrals against SciPy."""

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy import special


@pytest.mark.parametrize("name", ["erf_zeros", "fresnelc_zeros", "fresnels_zeros"])
def test_agree_with_scipy(name: str) -> None:
    function = getattr(special, name)
    with fxflow.config.override(x64=True):
        got = function(60)
        np.testing.assert_allclose(got, getattr(scipy.special, name)(60), 3e-14)
        if name != "erf_zeros":
            sine, cosine = special.fresnel_zeros(60)
            both = {"fresnels_zeros": sine, "fresnelc_zeros": cosine}
            np.testing.assert_array_equal(both[name], got)
    assert function(2).dtype == np.complex64
    for bad in (0, 10_001, 0.5):
        with pytest.raises(ArgumentError, match="nt"):
            function(bad)
