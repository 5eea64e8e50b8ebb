"""Combinations, Bernoulli's numbers and Box and Cox's transformation."""

import numpy as np
import pytest
import scipy.special as want

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy import special


def test_comb() -> None:
    n, k = np.meshgrid([-1, 0, 1, 5, 10, 30, 60.0, 5.5], [-1, 0, 1, 2, 5, 9, 30, 2.5])
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(special.comb(n, k), want.comb(n, k), 1e-10)
        assert float(special.comb(30, 15)) == want.comb(30, 15, exact=True)
        many = special.comb(np.array([5, 0, 3]), np.array([2, 0, 5]), repetition=True)
        assert many.tolist() == [15, 1, 21]
        slope = fxflow.grad(special.comb)(6.5, 2.0)
        assert float(slope) == pytest.approx((2 * 6.5 - 1) / 2)


def test_bernoulli() -> None:
    with fxflow.config.override(x64=True):
        for n in (0, 1, 2, 5, 30, 60, 100):
            expected = want.bernoulli(n)[: n + 1]
            np.testing.assert_allclose(special.bernoulli(n), expected, 1e-11)
    with pytest.raises(ArgumentError):
        special.bernoulli(-1)


def test_boxcox() -> None:
    x, power = np.meshgrid([-1, 0, 1e-8, 0.5, 1, 2, 30], [-2, -1e-9, 0, 1e-5, 0.5, 3])
    with fxflow.config.override(x64=True), np.errstate(all="ignore"):
        for name in ("boxcox", "boxcox1p"):
            expected, got = (getattr(m, name)(x, power) for m in (want, special))
            np.testing.assert_allclose(got, expected, 1e-10)
        slope = fxflow.grad(special.boxcox, 1)(2.0, 0.0)
        assert float(slope) == pytest.approx(np.log(2) ** 2 / 2)


def test_derivatives_of_boxcox_where_its_parts_leave_the_range() -> None:
    x, power = np.float32(7e-29), np.float32(2.05)
    slope = fxflow.grad(special.boxcox)(x, power)
    np.testing.assert_allclose(slope, float(x) ** (float(power) - 1), 1e-5)
    by_power = fxflow.grad(special.boxcox, 1)
    assert by_power(np.float32(1.5e8), np.float32(7.8)) == np.inf
    np.testing.assert_allclose(by_power(0.0, 2.0), 0.25, 1e-6)
    assert np.isnan(by_power(-0.5, 1.0)) and np.isnan(
        fxflow.grad(special.boxcox)(-0.5, 1.0)
    )


def test_perm() -> None:
    n, k = np.meshgrid([-1, 0, 1, 5, 10, 15.0, 5.5], [-1, 0, 1, 2, 5, 9, 2.5])
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(special.perm(n, k), want.perm(n, k), 1e-12)
        assert float(special.perm(12, 5)) == want.perm(12, 5, exact=True)
        slope = fxflow.grad(special.perm)(6.5, 2.0)
        assert float(slope) == pytest.approx(2 * 6.5 - 1)
        assert np.isnan(special.perm(np.nan, 1.0))


def test_factorials_of_steps() -> None:
    n = np.array([-1, 0, 1, 2, 3, 8, 17, 60])
    with fxflow.config.override(x64=True):
        np.testing.assert_array_equal(
            special.factorial2(n),
            [0, *(float(want.factorial2(int(i), exact=True)) for i in n[1:])],
        )
        exact = want.factorialk(n, 3, exact=True).astype(float)
        np.testing.assert_array_equal(special.factorialk(n, 3), exact)
        odd = np.asarray(special.factorial2(np.array([2.5, 1e9, np.inf, np.nan])))
        np.testing.assert_array_equal(odd, [np.nan, np.inf, np.inf, np.nan])
    with pytest.raises(ArgumentError, match="k"):
        special.factorialk(3, 0)
    with pytest.raises(ArgumentError, match="exact"):
        special.factorial2(3, exact=True)


def test_stirling2() -> None:
    n, k = np.meshgrid(np.arange(-1, 40), np.arange(-1, 40))
    with fxflow.config.override(x64=True):
        exact = want.stirling2(n, k, exact=True).astype(float)
        np.testing.assert_array_equal(special.stirling2(n, k), exact)
        assert np.isnan(
            special.stirling2(np.array([2.5, 220, 3]), np.array([1, 1, np.nan]))
        ).all()
        assert float(special.stirling2(219, 219)) == 1


def test_euler() -> None:
    with fxflow.config.override(x64=True):
        for n in (0, 1, 2, 7, 30, 100):
            expected = want.euler(n)[: n + 1]
            np.testing.assert_allclose(special.euler(n), expected, 1e-12)
        assert np.isinf(special.euler(200)[-1])
    with pytest.raises(ArgumentError):
        special.euler(-1)
