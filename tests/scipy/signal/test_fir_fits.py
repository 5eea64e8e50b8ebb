"""Filters that fit a response beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import signal

REMEZ: list[tuple[int, Any, Any, dict[str, Any]]] = [
    (20, [0, 0.2, 0.25, 0.5], [1, 0], {"weight": [1, 10]}),
    (101, [0, 2000, 2200, 8000], [1, 0], {"fs": 16000}),
    (21, [0.05, 0.45], [1], {"type": "hilbert"}),
    (20, [0.05, 0.5], [1], {"type": "hilbert"}),
    (20, [0, 0.4], [1], {"type": "differentiator"}),
    (21, [0, 0.4], [1], {"type": "differentiator"}),
    (20, [0, 0.2, 0.3, 0.5], [0, 1], {}),
]


@pytest.mark.parametrize("n, bands, desired, options", REMEZ)
def test_exchanges_agree_with_scipy(
    n: int, bands: Any, desired: Any, options: dict[str, Any]
) -> None:
    with fxflow.config.override(x64=True):
        got = np.asarray(signal.remez(n, bands, desired, **options))
    expected = want.remez(n, bands, desired, **options)
    np.testing.assert_allclose(got, expected, 1e-4, 5e-5)


def test_the_greatest_error_is_not_above_scipys() -> None:
    bands, desired = [0, 0.1, 0.2, 0.4, 0.45, 0.5], [0, 1, 0]
    errors = []
    for module in (signal, want):
        h = np.asarray(module.remez(73, bands, desired), np.float64)
        w, response = want.freqz(h, worN=4000, fs=1)
        pieces = zip(np.reshape(bands, (3, 2)), desired, strict=True)
        found = [
            np.abs(np.abs(response[(w >= low) & (w <= high)]) - level).max()
            for (low, high), level in pieces
        ]
        errors.append(max(found))
    assert errors[0] <= errors[1] * 1.05 + 1e-6


def test_least_squares_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for n, bands, desired, options in (
            (
                73,
                [0, 0.1, 0.2, 0.4, 0.45, 1],
                [0, 0, 1, 0.5, 0, 0],
                {"weight": [1, 2, 3]},
            ),
            (11, [0, 100, 150, 500], [0, 1, 1, 0], {"fs": 1000}),
        ):
            got = signal.firls(n, bands, desired, **options)
            expected = want.firls(n, bands, desired, **options)
            np.testing.assert_allclose(got, expected, 1e-9, 1e-11)


def test_minimum_phase_agrees_with_scipy() -> None:
    h = want.remez(51, [0, 0.1, 0.16, 0.5], [1, 0])
    with fxflow.config.override(x64=True):
        for options in ({}, {"half": False}, {"n_fft": 999}):
            got = signal.minimum_phase(h, **options)
            np.testing.assert_allclose(
                got, want.minimum_phase(h, **options), 1e-8, 1e-10
            )
        for given in (h, h[:-1]):
            # Square roots of numbers near 0: rounding errors count.
            got = signal.minimum_phase(given, "hilbert")
            np.testing.assert_allclose(
                got, want.minimum_phase(given, "hilbert"), 1e-2, 1e-3
            )
        slope = fxflow.grad(lambda s: signal.minimum_phase(s * h, n_fft=512)[0])(4.0)
        # Half of the logarithm: proportional to the square root of the scale.
        first = signal.minimum_phase(4.0 * h, n_fft=512)[0]
        np.testing.assert_allclose(slope, first / 8, 1e-6)


def test_rules_agree_with_scipy() -> None:
    for ripple in (10.0, 30.0, 65.0):
        got, expected = signal.kaiserord(ripple, 0.1), want.kaiserord(ripple, 0.1)
        np.testing.assert_allclose(got, expected, 1e-12)
    np.testing.assert_allclose(signal.kaiser_atten(31, 0.2), want.kaiser_atten(31, 0.2))


def test_bad_designs_are_refused() -> None:
    with pytest.raises(ArgumentError, match="numtaps must be odd"):
        signal.firls(4, [0, 1], [1, 1])
    with pytest.raises(ArgumentError, match="grid_density must be at most"):
        signal.remez(9, [0, 0.1, 0.2, 0.5], [1, 0], grid_density=2**62)
    with pytest.raises(ShapeError, match="pairs"):
        signal.remez(9, [0, 0.1, 0.2], [1])
    with pytest.raises(ArgumentError, match="ascend"):
        signal.remez(9, [0.3, 0.1], [1])
    with pytest.raises(ArgumentError, match="between 0"):
        signal.firls(9, [0, 1.5], [1, 1])
    with pytest.raises(ShapeError, match="desired"):
        signal.remez(9, [0, 0.1, 0.2, 0.5], [1])
    with pytest.raises(ShapeError, match="weight"):
        signal.firls(9, [0, 1], [1, 1], weight=[1, 2])
    with pytest.raises(ArgumentError, match="type"):
        signal.remez(9, [0, 0.5], [1], type="other")
    with pytest.raises(ArgumentError, match="at least 8 dB"):
        signal.kaiserord(3.0, 0.1)
    with pytest.raises(ArgumentError, match="half=False"):
        signal.minimum_phase([1.0, 2.0, 1.0], "hilbert", half=False)
    with pytest.raises(ShapeError, match="more than 2"):
        signal.minimum_phase([1.0, 2.0])
    with pytest.raises(ConcretizationError, match="outside of"):
        fxflow.jit(lambda d: signal.remez(9, [0, 0.1, 0.2, 0.5], d))(fnp.ones(2))
