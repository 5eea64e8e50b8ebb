"""The gamma function and its family against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.special

from fxflow.core.errors import ArgumentError
from fxflow.scipy import special
from tests.numpy.oracle import same
from tests.scipy.special import suite
from tests.scipy.special.suite import P, X

ONE: dict[str, Any] = {
    "gammaln": X,
    "gammasgn": X,
    "gamma": X,
    "digamma": X,
    "factorial": P,
}
TWO: dict[str, Any] = {
    "beta": (P, P[:, None]),
    "betaln": (P, P[:, None]),
    "gammainc": (P, P[:, None]),
    "gammaincc": (P, P[:, None]),
    "poch": (P, P[:, None]),
    "zeta": (P + 1.5, P[:, None]),
    "polygamma": (np.arange(4), P[:, None]),
}


@pytest.mark.parametrize("name", ONE)
def test_one_argument(name: str) -> None:
    suite.one_argument(name, ONE[name])


@pytest.mark.parametrize("name", TWO)
def test_two_arguments(name: str) -> None:
    suite.two_arguments(name, *TWO[name])


@pytest.mark.parametrize("name", ["gammasgn"])
def test_edges(name: str) -> None:
    suite.edges(name)


def test_others() -> None:
    got = special.betainc(P, np.float32(2.0), np.float32(0.3))
    assert same(scipy.special.betainc(P, 2.0, 0.3), got, 1e-4)
    got = special.multigammaln(P + 2, 3)
    assert same(scipy.special.multigammaln(P + 2, 3), got, 1e-4)
    assert same(scipy.special.zeta(3.0), special.zeta(3.0), 1e-5)
    with pytest.raises(ArgumentError):
        special.multigammaln(P, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="math"):
        special.factorial(P, exact=True)
    assert special.psi is special.digamma
