"""Airy's functions against mpmath, and SciPy's scaled ones."""

import mpmath
import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import DtypeError
from fxflow.scipy import special

AIRY = (mpmath.airyai, mpmath.airyai, mpmath.airybi, mpmath.airybi)


def test_airy() -> None:
    rng = np.random.default_rng(27)
    x = np.concatenate([rng.uniform(-30, 30, 40), [-1, 1, 0, 0.999, 100, -1e4]])
    with mpmath.workdps(40):
        want = np.array(
            [
                [float(f(at, derivative=i % 2)) for at in x.tolist()]
                for i, f in enumerate(AIRY)
            ]
        )
    with fxflow.config.override(x64=True):
        got = np.asarray(special.airy(x))
        # What oscillates: to the amplitude, and as far as the phase is known.
        power = np.array([-0.25, 0.25, -0.25, 0.25])[:, None]
        amplitude = np.where(x < 0, np.maximum(abs(x), 1) ** power, 0)
        moves = 1 + abs(x) ** 1.5 / 4
        error = abs(got - want) / np.maximum(abs(want), amplitude) / moves
        assert (error < 4e-15).all()
        ends = np.asarray(special.airy(np.array([np.inf, -np.inf, np.nan])))
    np.testing.assert_array_equal(ends[:, 0], [0, 0, np.inf, np.inf])
    np.testing.assert_array_equal(ends[[0, 2], 1], [0, 0])
    assert np.isnan(ends[:, 2]).all()
    narrow = special.airy(x[:40].astype(np.float32))
    assert narrow[0].dtype == np.float32


def test_derivatives_of_airy() -> None:
    with fxflow.config.override(x64=True):
        for x in (-5.0, -0.3, 0.0, 2.0):
            ai, dai, bi, dbi = scipy.special.airy(x)
            for i, want in enumerate((dai, x * ai, dbi, x * bi)):
                got = fxflow.grad(lambda x, i=i: special.airy(x)[i])(x)
                assert float(got) == pytest.approx(want, rel=1e-12, abs=1e-14)
            twice = fxflow.grad(fxflow.grad(lambda x: special.airy(x)[0]))(x)
            assert float(twice) == pytest.approx(x * ai, rel=1e-12, abs=1e-14)


def test_airye() -> None:
    x = np.array([-40.0, -4, -0.5, 0, 0.7, 1, 5, 8, 30, 1e4])
    with fxflow.config.override(x64=True):
        got = np.asarray(special.airye(x))
        want = np.asarray(scipy.special.airye(x))
        np.testing.assert_allclose(got, want, 3e-13)
        ends = np.asarray(special.airye(np.array([np.inf, np.nan])))
        np.testing.assert_array_equal(ends[:, 0], [0, -np.inf, 0, np.inf])
        assert np.isnan(ends[:, 1]).all()
        for k in range(4):
            slope = fxflow.grad(lambda x, k=k: special.airye(x)[k])(0.7)
            near = [scipy.special.airye(0.7 + h)[k] for h in (-1e-5, 1e-5)]
            assert float(slope) == pytest.approx((near[1] - near[0]) / 2e-5, rel=1e-8)
    assert special.airy(np.zeros((0, 2)))[3].shape == (0, 2)
    with pytest.raises(DtypeError, match="real"):
        special.airye(1j)
