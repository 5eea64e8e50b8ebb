"""Peaks at many scales beside SciPy's."""

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import signal

RNG = np.random.default_rng(13)


def test_peaks_agree_with_scipy() -> None:
    t = np.linspace(0, 8, 200)
    widths = np.arange(1, 12)
    for k in range(3):
        x = np.sin(t * (2 + k)) + 0.2 * RNG.normal(size=t.size)
        for options in (
            {},
            {"min_snr": 2, "noise_perc": 20},
            {"window_size": 9, "min_length": 4, "gap_thresh": 3},
            {"max_distances": widths / 2},
        ):
            got = signal.find_peaks_cwt(x, widths, **options)
            np.testing.assert_array_equal(
                got, want.find_peaks_cwt(x, widths, **options)
            )
    assert signal.find_peaks_cwt(np.zeros(20), [1.0, 2.0]).shape == (0,)


def test_bad_signals_are_refused() -> None:
    x = np.ones(9)
    with pytest.raises(ConcretizationError, match="number of peaks"):
        fxflow.jit(lambda x: signal.find_peaks_cwt(x, [1.0]))(x)
    with pytest.raises(ShapeError, match="vector must be"):
        signal.find_peaks_cwt(np.ones((2, 2)), [1.0])
    with pytest.raises(ShapeError, match="max_distances"):
        signal.find_peaks_cwt(x, [1.0, 2.0], max_distances=[1.0])
    with pytest.raises(ArgumentError, match="positive"):
        signal.find_peaks_cwt(x, [0.0])
