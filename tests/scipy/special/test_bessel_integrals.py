"""Integrals of Bessel functions against sums of power series of 50 digits (mpmath)."""

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.scipy import special

X = np.array([0.7, 3.9, 15.0])
# fmt: off
EXACT = {
    "itj0y0": [
        (0.67193680940897659, 1.0647152876589868, 1.2051619363449045),
        (-0.62409963407674342, 0.38335613692276199, 0.0074577187103973403),
    ],
    "iti0k0": [
        (0.72911368890626133, 12.692370338276166, 352620.47527856755),
        (1.0835979801696871, 1.5594687335093117, 1.5707962315469192),
    ],
    "it2j0y0": [
        (0.060320571186204778, 1.2117966711975098, 2.5785507391902533),
        (0.37689807009903542, -0.086055530016260991, 0.00038573574374803688),
    ],
    "it2i0k0": [
        (0.06219645017493837, 3.1108867568651708, 25437.619232067763),
        (0.39998406747348694, 0.002419455075883277, 5.9836015711553631e-9),
    ],
    "itairy": [
        (0.18795521891909893, 0.33278703177613917, 0.33333333333333333),
        (0.54773359913273031, 40.591418127058328, 4967308973718507.3),
        (0.30768045340815886, 0.48892770554163251, 0.68358062836193585),
        (0.31575556005729274, -0.089142757075494545, 0.072026214312908523),
    ],
    "itstruve0": [(0.15178100969739427, 2.075857789206012, 2.5415823671867784)],
    "it2struve0": [(1.1331554830913285, 0.074315759198854437, 0.042765583170571082)],
    "itmodstruve0": [(0.16027364231550639, 11.042801519190513, 352617.94398778151)],
}
LIMITS = {
    "itj0y0": ([0, 0], [1, 0]),
    "iti0k0": ([0, 0], [np.inf, np.pi / 2]),
    "it2j0y0": ([0, -np.inf], [np.inf, 0]),
    "it2i0k0": ([0, np.inf], [np.inf, 0]),
    "itairy": ([0, 0, 0, 0], [1 / 3, np.inf, 2 / 3, 0]),
    "itstruve0": ([0], [np.inf]),
    "it2struve0": ([np.pi / 2], [0]),
    "itmodstruve0": ([0], [np.inf]),
}
#: What the functions are integrals of.
INTEGRANDS = {
    "itj0y0": lambda x: (special.j0(x), special.y0(x)),
    "iti0k0": lambda x: (special.i0(x), special.k0(x)),
    "it2j0y0": lambda x: ((1 - special.j0(x)) / x, -special.y0(x) / x),
    "it2i0k0": lambda x: ((special.i0(x) - 1) / x, -special.k0(x) / x),
    "itairy": lambda x: (*special.airy(x)[::2], *special.airy(-x)[::2]),
    "itstruve0": lambda x: (special.struve(0, x),),
    "it2struve0": lambda x: (-special.struve(0, x) / x,),
    "itmodstruve0": lambda x: (special.modstruve(0, x),),
}
# fmt: on


@pytest.mark.parametrize("name", EXACT)
def test_agree_with_sums(name: str) -> None:
    count = len(EXACT[name])
    parts = lambda x: np.reshape(getattr(special, name)(x), (count, -1))
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(parts(X), EXACT[name], 1e-14, 1e-16)
        ends = parts(np.array([0.0, np.inf, np.nan]))
        np.testing.assert_allclose(ends[:, 0], LIMITS[name][0])
        np.testing.assert_allclose(ends[:, 1], LIMITS[name][1], atol=1e-15)
        assert np.isnan(ends[:, 2]).all()
        for x in (0.5, 2.5, 9.0):
            for k in range(count):
                of = lambda x, k=k: fxflow.numpy.reshape(
                    fxflow.numpy.stack(fxflow.tree.leaves(getattr(special, name)(x))),
                    (count,),
                )[k]
                slope = float(fxflow.grad(of)(x))
                want = float(INTEGRANDS[name](x)[k])
                assert slope == pytest.approx(want, rel=1e-12, abs=1e-14)
    single = getattr(special, name)(X.astype(np.float32))
    got = np.reshape(np.asarray(single), (count, -1))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, EXACT[name], 3e-6, 1e-7)


def test_negative_numbers() -> None:
    with fxflow.config.override(x64=True):
        for name, signs in {"itj0y0": -1, "iti0k0": -1, "it2j0y0": 1}.items():
            (first, second), (back, none) = (getattr(special, name)(x) for x in (X, -X))
            np.testing.assert_array_equal(back, signs * np.asarray(first))
            assert np.isnan(none).all() and np.isfinite(second).all()
        ai, bi, back_ai, back_bi = special.itairy(-X)
        forward = special.itairy(X)
        np.testing.assert_array_equal(ai, -forward[2])
        np.testing.assert_array_equal(back_bi, -forward[1])
        np.testing.assert_array_equal(bi, -forward[3])
        np.testing.assert_array_equal(back_ai, -forward[0])
        total = special.it2struve0(X) + special.it2struve0(-X)
        np.testing.assert_allclose(total, np.pi)


@pytest.mark.slow
def test_moments() -> None:
    rng = np.random.default_rng(32)
    nu, power = rng.uniform(0, 8, 12), rng.uniform(-0.5, 4, 12)
    small, large = rng.uniform(0.1, 4, 12), rng.uniform(5, 480, 12)
    nu[:3], small[3] = [0, 3, 60], 0
    with fxflow.config.override(x64=True):
        of = special.besselpoly
        want = scipy.special.besselpoly(small, power, nu)
        np.testing.assert_allclose(of(small, power, nu), want, 1e-11, 1e-15)
        # DLMF 10.22.1: of the power ν + 1 it is a Bessel function.
        got = of(large, nu + 1, nu)
        want = scipy.special.jv(nu + 1, 2 * large) / (2 * large)
        np.testing.assert_allclose(got * large**1.5, want * large**1.5, 0, 1e-12)
        h, at = 1e-5, (7.0, 0.6, 1.3)
        for i, rate in enumerate(fxflow.grad(of, (0, 1, 2))(*at)):
            high, low = ([*at] for _ in range(2))
            high[i], low[i] = at[i] + h, at[i] - h
            change = (float(of(*high)) - float(of(*low))) / (2 * h)
            assert float(rate) == pytest.approx(change, rel=1e-6)
        # Odd orders are odd functions of `a`, and change their sign with it.
        even = float(of(2.0, 1.0, 3))
        assert float(of(-2.0, 1.0, 3)) == float(of(2.0, 1.0, -3)) == -even
        bad = of(np.array([1.0, -1, 600, 1]), np.array([-1.5, 0, 0, 0]), 0.5)
        assert np.isnan(bad[:3]).all() and np.isfinite(bad[3])
