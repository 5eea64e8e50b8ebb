"""Lambert's W against mpmath, and its limits."""

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.scipy import special


def exact(z: Any, k: int) -> np.ndarray:
    """Returns a branch of complex numbers."""
    with mpmath.workdps(30):
        return np.array([complex(mpmath.lambertw(v, k)) for v in z.tolist()])


def wrong(got: Any, want: Any) -> Any:
    """Returns errors in units of the last place, as far as rounding z can move W."""
    got = np.asarray(got)
    return abs(got - want) / (abs(want) + 1 / abs(1 + want)) * 2.0**52


@pytest.mark.parametrize("k", [0, -1, 1, 2, -3])
def test_complex_numbers(k: int) -> None:
    rng = np.random.default_rng(27)
    turns = np.exp(1j * rng.uniform(-np.pi, np.pi, 90))
    sizes = 10 ** np.concatenate([rng.uniform(-290, 290, 20), rng.uniform(-3, 3, 70)])
    near = 10 ** rng.uniform(-12, 0, 30) * turns[:30] - np.exp(-1)
    z = np.concatenate([sizes * turns, near, np.linspace(-4, 4, 20) + 0j])
    with fxflow.config.override(x64=True):
        assert (wrong(special.lambertw(z, k), exact(z, k)) < 10).all()
    narrow = special.lambertw(z[20:].astype(np.complex64), k)
    assert narrow.dtype == np.complex64
    assert np.isfinite(narrow).all()


@pytest.mark.parametrize("k", [0, -1])
def test_real_branches(k: int) -> None:
    rng = np.random.default_rng(27)
    near = 10 ** rng.uniform(-15.5, -0.5, 30) - np.exp(-1)
    z = np.concatenate([near, -(10 ** rng.uniform(-300, -1, 20))])
    if k == 0:
        z = np.concatenate([z, 10 ** rng.uniform(-300, 308, 30)])
    with fxflow.config.override(x64=True):
        got = special.lambertw(z, k)
        assert (np.imag(got) == 0).all()
        assert (wrong(got, exact(z, k)) < 10).all()


def test_special_values() -> None:
    z = np.array([0.0, np.inf, -np.inf])
    with fxflow.config.override(x64=True):
        for k in (0, -1, 2):
            got = np.asarray(special.lambertw(z, k))
            assert (got == scipy.special.lambertw(z, k)).all()
        assert np.isnan(special.lambertw(np.nan))
        # The double next to -1/e is below it, where W has an imaginary part.
        at_branch = complex(special.lambertw(-np.exp(-1)))
        assert at_branch == pytest.approx(-1, abs=1e-7)


def test_derivatives() -> None:
    with fxflow.config.override(x64=True):
        real = lambda x: fnp.real(special.lambertw(x))
        assert float(fxflow.grad(real)(0.0)) == 1
        assert float(fxflow.grad(fxflow.grad(real))(0.0)) == -2
        for x in (-0.3, 1.0, 50.0):
            w = scipy.special.lambertw(x).real
            want = w / (x * (1 + w))
            assert float(fxflow.grad(real)(x)) == pytest.approx(want, rel=1e-14)
        lower = lambda x: fnp.real(special.lambertw(x, -1))
        w = scipy.special.lambertw(-0.1, -1).real
        want = w / (-0.1 * (1 + w))
        assert float(fxflow.grad(lower)(-0.1)) == pytest.approx(want, rel=1e-14)


def test_shapes_and_bad_branches() -> None:
    assert special.lambertw(np.zeros((0, 2))).shape == (0, 2)
    batch = fxflow.vmap(special.lambertw)(np.float32([1, 2]))
    np.testing.assert_allclose(batch, scipy.special.lambertw([1, 2]), 1e-6)
    with pytest.raises(ArgumentError, match="k"):
        special.lambertw(1.0, 0.5)


def test_wright_omega() -> None:
    rng = np.random.default_rng(27)
    x = np.concatenate([rng.uniform(-60, 60, 40), 10 ** rng.uniform(0, 30, 20)])
    with fxflow.config.override(x64=True):
        expected = scipy.special.wrightomega(x)
        np.testing.assert_allclose(special.wrightomega(x), expected, 1e-14)
        edges = np.array([-np.inf, -1000, 0, np.inf, np.nan])
        got, want = special.wrightomega(edges), scipy.special.wrightomega(edges)
        np.testing.assert_allclose(got, want, 1e-15)
        w = float(scipy.special.wrightomega(0.5))
        first = fxflow.grad(special.wrightomega)
        assert float(first(0.5)) == pytest.approx(w / (1 + w), rel=1e-15)
        second = fxflow.grad(first)(0.5)
        assert float(second) == pytest.approx(w / (1 + w) ** 3, rel=1e-14)
        assert float(first(np.inf)) == 1


def test_wright_omega_of_complex_numbers() -> None:
    rng = np.random.default_rng(27)
    z = rng.uniform(-8, 6, 150) + 1j * rng.uniform(-12, 12, 150)
    near = 10 ** rng.uniform(-6, 0, 60) * np.exp(1j * rng.uniform(-3.1, 3.1, 60))
    z = np.concatenate([z, near - 1 + 1j * np.pi, near - 1 - 1j * np.pi])
    turns = np.ceil((z.imag - np.pi) / (2 * np.pi)).astype(int)
    want = [
        complex(mpmath.lambertw(mpmath.exp(mpmath.mpc(x)), int(k)))
        for x, k in zip(z, turns, strict=True)
    ]
    want = np.array(want)
    far = np.array([-400 + 2j, -900 - 1j, 3e5 + 1e4j, -1e6 + 9j, complex(np.nan, 1)])
    with fxflow.config.override(x64=True):
        assert (wrong(special.wrightomega(z), want) < 20).all()
        got, want = special.wrightomega(far), scipy.special.wrightomega(far)
        np.testing.assert_allclose(got, want, 1e-14)
        w = complex(special.wrightomega(1 + 2j))
        slope = fxflow.grad(special.wrightomega, holomorphic=True)(1 + 2j)
        assert complex(slope) == pytest.approx(w / (1 + w))
    assert special.wrightomega(np.complex64(1j)).dtype == np.complex64
