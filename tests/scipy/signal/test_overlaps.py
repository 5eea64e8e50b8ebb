"""Sums of overlapping windows beside SciPy's."""

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import signal

RNG = np.random.default_rng(11)


def test_sums_agree_with_scipy() -> None:
    for window in ("hann", "boxcar", ("kaiser", 5.0), "hamming"):
        for m, overlap in ((16, 8), (16, 12), (12, 5), (9, 0), (15, 10)):
            for name in ("check_COLA", "check_NOLA"):
                got = getattr(signal, name)(window, m, overlap)
                assert bool(got) == getattr(want, name)(window, m, overlap)
    win = want.get_window("hann", 12)
    assert bool(signal.check_COLA(win, 12, 6))
    assert bool(fxflow.jit(lambda w: signal.check_COLA(w, 12, 6, 1e-5))(win))


def test_nearest_duals_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for m, hop in ((12, 4), (11, 3), (8, 8)):
            win = RNG.uniform(0.5, 1.5, m)
            turned = win * np.exp(1j * RNG.uniform(0, 3, m))
            for w, wanted in ((win, None), (win, win[::-1].copy()), (turned, turned)):
                for scaled in (True, False):
                    got = signal.closest_STFT_dual_window(w, hop, wanted, scaled=scaled)
                    expected = want.closest_STFT_dual_window(
                        w, hop, wanted, scaled=scaled
                    )
                    np.testing.assert_allclose(got[0], expected[0], 1e-10, 1e-12)
                    np.testing.assert_allclose(got[1], expected[1], 1e-10)
        jitted = fxflow.jit(lambda w: signal.closest_STFT_dual_window(w, 3)[0])
        np.testing.assert_allclose(
            jitted(win), signal.closest_STFT_dual_window(win, 3)[0], 1e-12
        )
        slope = fxflow.grad(
            lambda g: signal.closest_STFT_dual_window(g * win, 3, scaled=False)[0].sum()
        )(1.0)
        # The canonical window falls as 1 / g, the projection does not change.
        canonical = signal.closest_STFT_dual_window(win, 3, 0 * win, scaled=False)[0]
        assert float(slope) == pytest.approx(-float(canonical.sum()), 1e-9)


def test_bad_windows_are_refused() -> None:
    with pytest.raises(ArgumentError, match="noverlap must be less"):
        signal.check_COLA("hann", 4, 4)
    with pytest.raises(ShapeError, match="window must be"):
        signal.check_NOLA(np.ones(5), 4, 2)
    with pytest.raises(ShapeError, match="one length"):
        signal.closest_STFT_dual_window(np.ones(4), 2, np.ones(3))
    with pytest.raises(ArgumentError, match="hop must"):
        signal.closest_STFT_dual_window(np.ones(4), 5)
    with pytest.raises(ArgumentError, match="no inverse"):
        signal.closest_STFT_dual_window(np.zeros(4), 2)
