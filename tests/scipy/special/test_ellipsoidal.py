"""Ellipsoidal harmonics against SciPy, and their norms."""

import numpy as np
import pytest
import scipy.special

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.scipy import special

S = np.array([0.3, 1.7, 2.5, 4.0, -1.0])
H2, K2 = 5.0, 8.0


def theirs(n: int, p: int, s: float, *signs: int) -> float:
    return float(scipy.special.ellip_harm(H2, K2, n, p, s, *signs))


@pytest.mark.parametrize(
    "n",
    [
        2,
        pytest.param(3, marks=pytest.mark.slow),
        pytest.param(6, marks=pytest.mark.slow),
    ],
)
def test_harmonics(n: int) -> None:
    with fxflow.config.override(x64=True):
        for p in range(1, 2 * n + 2):
            got = special.ellip_harm(H2, K2, n, p, S)
            want = [theirs(n, p, s) for s in S]
            np.testing.assert_allclose(got, want, 1e-11, 1e-11)


@pytest.mark.slow
def test_signs_and_derivatives() -> None:
    with fxflow.config.override(x64=True):
        got = special.ellip_harm(H2, K2, 3, 7, 2.5, -1, 1)
        assert float(got) == pytest.approx(theirs(3, 7, 2.5, -1, 1))
        of = lambda h2, k2, s: special.ellip_harm(h2, k2, 3, 3, s)
        args = [fnp.asarray(v) for v in (H2, K2, 3.5)]
        rates = fxflow.grad(of, (0, 1, 2))(*args)
        for i, rate in enumerate(rates):
            high, low = ([*args] for _ in range(2))
            high[i], low[i] = args[i] + 1e-5, args[i] - 1e-5
            want = (float(of(*high)) - float(of(*low))) / 2e-5
            assert float(rate) == pytest.approx(want, rel=1e-7)
        assert np.isnan(special.ellip_harm(8.0, 5.0, 2, 1, 1.0))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The occurrence of roundoff")
@pytest.mark.parametrize(("n", "p"), [(0, 1), (1, 2), (2, 4), (3, 7), (4, 2), (5, 9)])
def test_second_kind_and_norms(n: int, p: int) -> None:
    with fxflow.config.override(x64=True):
        s = np.array([2.9, 3.5, 20.0])
        got = special.ellip_harm_2(H2, K2, n, p, s)
        want = [scipy.special.ellip_harm_2(H2, K2, n, p, x) for x in s]
        np.testing.assert_allclose(got, want, 1e-10)
        norm = special.ellip_normal(H2, K2, n, p)
        want = scipy.special.ellip_normal(H2, K2, n, p)
        assert float(norm) == pytest.approx(want, rel=1e-10)
        assert np.isnan(special.ellip_harm_2(H2, K2, n, p, 1.0))


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="p must be from 1 to 2 n \\+ 1 = 5, got 6"):
        special.ellip_harm(H2, K2, 2, 6, 1.0)
    with pytest.raises(ArgumentError, match="n must be from 0 to 100, got -1"):
        special.ellip_normal(H2, K2, -1, 1)
    with pytest.raises(ArgumentError, match="signm must be 1 or -1, got 2"):
        special.ellip_harm(H2, K2, 2, 1, 1.0, 2)
