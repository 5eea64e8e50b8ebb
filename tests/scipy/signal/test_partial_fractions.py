"""Partial fractions beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import signal

RNG = np.random.default_rng(5)
RATIOS: list[Any] = [
    ([1.0, 2.0], [1.0, 3.0, 2.0]),
    (RNG.normal(size=6), RNG.normal(size=4)),
    (RNG.normal(size=2), np.poly([0.5, 0.5, -0.3, 0.5])),
    (RNG.normal(size=3), np.poly([0.5 + 0.2j, 0.5 - 0.2j] * 2 + [0.1])),
    ([0.0], [1.0, 3.0, 2.0]),
    (RNG.normal(size=3) + 1j * RNG.normal(size=3), RNG.normal(size=5)),
]


def close(got: Any, expected: Any, tol: float = 1e-9) -> None:
    for one, other in zip(got, expected, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, tol, tol)


@pytest.mark.parametrize("name", ["residue", "residuez"])
def test_fractions_agree_with_scipy(name: str) -> None:
    back = {"residue": "invres", "residuez": "invresz"}[name]
    with fxflow.config.override(x64=True):
        for b, a in RATIOS:
            got = getattr(signal, name)(b, a)
            expected = getattr(want, name)(b, a)
            close(got, expected, 1e-7)
            close(
                getattr(signal, back)(*expected), getattr(want, back)(*expected), 1e-7
            )


def test_traced_fractions_are_those_of_different_poles() -> None:
    with fxflow.config.override(x64=True):
        b, a = RNG.normal(size=5), np.poly([0.3, -0.6, 0.9])
        for name in ("residue", "residuez"):
            got = fxflow.jit(getattr(signal, name))(b, a)
            close(got, getattr(want, name)(b, a), 1e-8)
            back = {"residue": "invres", "residuez": "invresz"}[name]
            whole = fxflow.jit(getattr(signal, back))(*got)
            scale = np.asarray(whole[1])[0] / a[0]
            np.testing.assert_allclose(
                np.real(whole[0])[: b.size], b * scale, 1e-8, 1e-8
            )
        # The residue of 1 / ((s - p) (s - q)) at the pole p is 1 / (p - q).
        slope = fxflow.grad(
            lambda p: signal.residue([1.0], fnp_poly(p))[0].real[1], holomorphic=False
        )(0.7)
        assert float(slope) == pytest.approx(-1 / (0.7 - 0.2) ** 2, 1e-6)


def fnp_poly(p: Any) -> Any:
    import fxflow.numpy as fnp

    return fnp.stack([fnp.ones_like(p), -(p + 0.2), 0.2 * p])


def test_unique_roots_agree_with_scipy() -> None:
    p = np.concatenate([RNG.normal(size=5), RNG.normal(size=3) * 1e-4 + 0.5])
    for rtype in ("min", "max", "avg"):
        for roots in (p, p + 1j * np.sign(p)):
            got = signal.unique_roots(roots, 1e-2, rtype)
            expected = want.unique_roots(roots, 1e-2, rtype)
            close(got, expected, 1e-5)
    with pytest.raises(ConcretizationError, match="unique_roots: how many"):
        fxflow.jit(signal.unique_roots)(p)


def test_division_is_that_of_scipy() -> None:
    with fxflow.config.override(x64=True):
        for n, d in ((7, 3), (3, 3), (2, 4), (5, 1)):
            num, den = RNG.normal(size=n), RNG.normal(size=d)
            got, expected = signal.deconvolve(num, den), want.deconvolve(num, den)
            np.testing.assert_allclose(got[0], expected[0], 1e-9, 1e-9)
            np.testing.assert_allclose(got[1], expected[1], 1e-9, 1e-9)
        num, den = RNG.normal(size=6), RNG.normal(size=2)
        close(fxflow.jit(signal.deconvolve)(num, den), want.deconvolve(num, den))


def test_bad_fractions_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: signal.residue([1.0], [0.0]), r"a\[0\]"),
        (ArgumentError, lambda: signal.residue([1.0], [1.0], rtype="no"), "rtype"),
        (ArgumentError, lambda: signal.residuez([1.0], [0.0, 1.0]), r"a\[0\]"),
        (ArgumentError, lambda: signal.deconvolve([1.0], [0.0]), "divisor"),
        (ShapeError, lambda: signal.deconvolve(np.ones((2, 2)), [1.0]), "signal"),
        (ShapeError, lambda: signal.invres([1.0], [1.0, 2.0], []), "one length"),
        (ShapeError, lambda: signal.residue(np.ones((2, 2)), [1.0]), "b must"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
