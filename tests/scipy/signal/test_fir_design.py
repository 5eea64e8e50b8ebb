"""Designs by windows beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import signal

CUTOFFS: list[tuple[Any, dict[str, Any]]] = [
    (0.3, {}),
    ([0.2, 0.5], {"pass_zero": "bandstop"}),
    ([0.2, 0.5], {"pass_zero": False}),
    (0.4, {"pass_zero": "highpass"}),
    ([0.2, 0.4, 0.6], {}),
    (3.0, {"fs": 10.0, "width": 0.7}),
    (0.3, {"window": ("kaiser", 4.0), "scale": False}),
]


def test_windowed_designs_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for cutoff, options in CUTOFFS:
            for n in (1, 21):
                got = signal.firwin(n, cutoff, **options)
                expected = want.firwin(n, cutoff, **options)
                np.testing.assert_allclose(got, expected, 1e-9, 1e-12)
        for n in (8, 9):
            for freq, gain in (
                ([0, 0.5, 1], [1, 1, 0]),
                ([0, 0.5, 0.5, 1], [0, 1, 0, 0]),
            ):
                got = signal.firwin2(n, freq, gain)
                np.testing.assert_allclose(got, want.firwin2(n, freq, gain), 1e-9)
        got = signal.firwin2(9, [0, 0.5, 1], [0, 1, 0], antisymmetric=True)
        expected = want.firwin2(9, [0, 0.5, 1], [0, 1, 0], antisymmetric=True)
        np.testing.assert_allclose(got, expected, 1e-9, 1e-12)


def test_a_traced_cutoff_is_differentiated() -> None:
    with fxflow.config.override(x64=True):
        w, h = np.float64(0.3), 1e-6
        (slope,) = (fxflow.grad(lambda w: signal.firwin(9, w)[2])(w),)
        up, down = (want.firwin(9, 0.3 + s * h)[2] for s in (1, -1))
        np.testing.assert_allclose(slope, (up - down) / (2 * h), 1e-6)


def test_bad_windowed_designs_are_refused() -> None:
    with pytest.raises(ArgumentError, match="cutoff must lie between"):
        signal.firwin(5, 1.5)
    with pytest.raises(ArgumentError, match="ascend"):
        signal.firwin(5, [0.5, 0.2])
    with pytest.raises(ArgumentError, match="must be odd"):
        signal.firwin(4, 0.5, pass_zero=False)
    for window in (None, (), 1j):
        with pytest.raises(ArgumentError, match="no window is called"):
            signal.firwin(5, 0.5, window=window)
    with pytest.raises(ArgumentError, match="one cutoff"):
        signal.firwin(5, [0.2, 0.5], pass_zero="lowpass")
    with pytest.raises(ArgumentError, match="ascend from 0"):
        signal.firwin2(5, [0.1, 1], [1, 1])
    with pytest.raises(ShapeError, match="one length"):
        signal.firwin2(5, [0, 1], [1, 1, 1])
    with pytest.raises(ArgumentError, match="gain at the end must be 0"):
        signal.firwin2(4, [0, 1], [1, 1])


def test_filters_of_images_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        pair = ("hamming", ("kaiser", 4.0))
        got = signal.firwin_2d((5, 7), pair, fc=0.3, fs=2.5)
        np.testing.assert_allclose(
            got, want.firwin_2d((5, 7), pair, fc=0.3, fs=2.5), 1e-10, 1e-12
        )
        got = signal.firwin_2d((5, 7), "hann", fc=0.3, circular=True)
        expected = want.firwin_2d((5, 7), "hann", fc=0.3, circular=True)
        np.testing.assert_allclose(got, expected, 1e-10, 1e-12)
    for call, words in (
        (lambda: signal.firwin_2d((3,), "hann", fc=0.3), "hsize"),
        (lambda: signal.firwin_2d((3, 3), ("hann", "hann")), "fc must"),
        (lambda: signal.firwin_2d((3, 3), "hann", fc=0.3), "window must"),
    ):
        with pytest.raises(ArgumentError, match=words):
            call()
