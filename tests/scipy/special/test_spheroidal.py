"""Spheroidal functions against SciPy, mpmath's digits and their equations."""

import numpy as np
import pytest
import scipy.special

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.scipy import special

RNG = np.random.default_rng(30)
M = RNG.integers(0, 4, 20)
N = M + RNG.integers(0, 6, 20)
C = RNG.uniform(0.1, 5, 20)
X = RNG.uniform(0.05, 0.95, 20)


@pytest.mark.parametrize("kind", ["pro", pytest.param("obl", marks=pytest.mark.slow)])
def test_characteristic_values(kind: str) -> None:
    function = getattr(special, f"{kind}_cv")
    with fxflow.config.override(x64=True):
        got = function(M, N, C)
        want = getattr(scipy.special, f"{kind}_cv")(M, N, C)
        np.testing.assert_allclose(got, want, 1e-11, 1e-11)
        slope = fxflow.grad(function, 2)
        h = 1e-4
        high, low = (float(function(1, 4, 3 + d)) for d in (h, -h))
        assert float(slope(1, 4, 3.0)) == pytest.approx((high - low) / (2 * h), 1e-7)
        bad = function(np.array([-1, 2, 0.5, 0]), np.array([1, 1, 1, 1]), 1.0)
        assert np.isnan(bad[:3]).all() and np.isfinite(bad[3])
        assert np.isnan(function(0, 0, 100.0))


# By mpmath, with 40 digits.
DIGITS = {
    "pro_cv": (2, 6, 20.0, 173.83995280335598),
    "obl_cv": (2, 6, 20.0, -145.65803852341012),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pro_cv_seq", "obl_cv_seq"])
def test_sequences(name: str) -> None:
    function = getattr(special, name)
    with fxflow.config.override(x64=True):
        got = function(1, 5, 2.0)
        np.testing.assert_allclose(got, getattr(scipy.special, name)(1, 5, 2.0), 1e-11)
        assert function(0, 3, fnp.ones((2, 3))).shape == (4, 2, 3)
    with pytest.raises(ArgumentError, match="m must be from 0 to 100, got -1"):
        function(-1, 2, 1.0)
    with pytest.raises(ArgumentError, match="n must be from m = 3 to 103, got 2"):
        function(3, 2, 1.0)


@pytest.mark.parametrize(
    "name",
    [
        "pro_ang1",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("obl_ang1", "pro_rad1", "obl_rad1")
        ),
    ],
)
def test_functions(name: str) -> None:
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    x = 1 + X if name == "pro_rad1" else X
    with fxflow.config.override(x64=True):
        value, slope = function(M, N, C, x)
        want, want_slope = theirs(M, N, C, x)
        # SciPy's oblate functions have fewer digits.
        np.testing.assert_allclose(value, want, 1e-8, 1e-10)
        np.testing.assert_allclose(slope, want_slope, 1e-8, 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pro_ang1", "obl_ang1", "pro_rad1", "obl_rad1"])
def test_derivatives_and_equation(name: str) -> None:
    """((1 - x²) S')' + (λ ∓ c² x² - m² / (1 - x²)) S = 0, of either kind."""
    function, known = getattr(special, name), getattr(special, f"{name}_cv")
    characteristic = getattr(special, f"{name[:3]}_cv")
    m, n, c = 2, 5, 4.0
    with fxflow.config.override(x64=True):
        x = fnp.asarray(1.4 if name == "pro_rad1" else 0.4)
        cv = characteristic(m, n, c)
        value, slope = (float(s) for s in function(m, n, c, x))
        again = known(m, n, c, cv, x)
        np.testing.assert_allclose(again, [value, slope], 1e-12)
        of = lambda c, x: function(m, n, c, x)[0]
        by_c, by_x = fxflow.grad(of, (0, 1))(c, x)
        assert float(by_x) == pytest.approx(slope, rel=1e-11)
        h = 1e-4
        high, low = (float(of(c + d, x)) for d in (h, -h))
        assert float(by_c) == pytest.approx((high - low) / (2 * h), rel=1e-6)
        bend = float(fxflow.grad(lambda x: function(m, n, c, x)[1])(x))
        # The radial oblate one is of i x, of which the equation is another.
        x, cv = float(x), float(cv)
        if name == "obl_rad1":
            right = (cv - c * c * x * x - m * m / (1 + x * x)) * value
            left = (1 + x * x) * bend + 2 * x * slope
        else:
            q = c * c if name.startswith("pro") else -c * c
            right = -(cv - q * x * x - m * m / (1 - x * x)) * value
            left = (1 - x * x) * bend - 2 * x * slope
        assert left == pytest.approx(right, rel=1e-9)


@pytest.mark.slow
def test_arguments_out_of_range_and_ends() -> None:
    with fxflow.config.override(x64=True):
        for x, of in ((1.5, "ang1"), (-0.5, "rad1")):
            assert np.isnan(getattr(special, f"pro_{of}")(0, 1, 1.0, x)).all()
        assert np.isnan(special.obl_rad1(0, 1, 1.0, -0.5)).all()
        # For c = 0 they are Legendre functions; oblate radial ones are odd or even.
        value, slope = special.pro_ang1(0, 3, 0.0, 0.5)
        assert float(value) == pytest.approx(-0.4375)
        assert float(slope) == pytest.approx(0.375)
        value, slope = special.obl_rad1(1, 2, 3.0, np.array([0.0, 1e-6]))
        assert float(value[0]) == pytest.approx(0, abs=1e-8)
        assert float(slope[0]) == pytest.approx(float(slope[1]), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(DIGITS))
def test_digits(name: str) -> None:
    m, n, c, want = DIGITS[name]
    with fxflow.config.override(x64=True):
        assert float(getattr(special, name)(m, n, c)) == pytest.approx(want, rel=1e-14)
