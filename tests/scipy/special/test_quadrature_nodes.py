"""Nodes and weights of Gauss' rules against SciPy."""

import numpy as np
import pytest
import scipy.special

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.scipy import special

PARAMETERS = {
    "genlaguerre": (0.7,),
    "gegenbauer": (0.8,),
    "jacobi": (0.7, -0.3),
    "sh_jacobi": (2.2, 1.3),
}
NAMES = [
    *("legendre", "chebyt", "chebyu", "chebyc", "chebys", "sh_legendre", "sh_chebyt"),
    *("sh_chebyu", "laguerre", "hermite", "hermitenorm", *PARAMETERS),
]


@pytest.mark.parametrize("name", NAMES)
def test_agree_with_scipy(name: str) -> None:
    function = getattr(special, f"roots_{name}")
    theirs = getattr(scipy.special, f"roots_{name}")
    given = PARAMETERS.get(name, ())
    with fxflow.config.override(x64=True):
        for n in (1, 7):
            got = function(n, *given, mu=True)
            for mine, want in zip(got, theirs(n, *given, mu=True), strict=True):
                np.testing.assert_allclose(mine, want, 1e-11, 1e-13)


def test_many_nodes() -> None:
    with fxflow.config.override(x64=True):
        for name in ("legendre", "hermite", "laguerre"):
            x, w = getattr(special, f"roots_{name}")(120)
            want = getattr(scipy.special, f"roots_{name}")(120)
            np.testing.assert_allclose(x, want[0], 1e-10, 1e-13)
            np.testing.assert_allclose(w, want[1], 1e-9, 1e-60)


def test_derivatives_by_the_parameter() -> None:
    total = lambda a: fnp.sum(special.roots_genlaguerre(4, a)[0] ** 3)
    theirs = lambda a: np.sum(scipy.special.roots_genlaguerre(4, a)[0] ** 3)
    with fxflow.config.override(x64=True):
        slope = fxflow.grad(total)(0.7)
        want = (theirs(0.7 + 1e-5) - theirs(0.7 - 1e-5)) / 2e-5
        assert float(slope) == pytest.approx(want, rel=1e-7)
        assert np.isnan(special.roots_genlaguerre(3, -2.0)[0]).all()
    with pytest.raises(ArgumentError, match="positive"):
        special.roots_legendre(0)
