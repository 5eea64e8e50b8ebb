"""Short-time transforms beside SciPy's."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import signal
from fxflow.scipy.signal import ShortTimeFFT

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 40, 3))
WINDOWS = [
    want.windows.hann(8, sym=False),
    want.windows.hann(9),
    want.windows.gaussian(12, 2.0),
    np.array([0, 0, 0, 1.0, 1, 1, 0, 0]),
    np.array([0, 0, 0, 0, 0, 0, 1.0, 1, 1]),
    np.ones(1),
    np.ones(2),
]


def close(got: Any, expected: Any, tolerance: float = 1e-9) -> None:
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, tolerance, tolerance)


@pytest.mark.parametrize("window", WINDOWS, ids=len)
def test_the_grid_agrees_with_scipy(window: Any) -> None:
    with fxflow.config.override(x64=True):
        for hop in (1, 2, 3, 4):
            ours = ShortTimeFFT(window, hop, 8.0)
            theirs = want.ShortTimeFFT(window, hop, 8.0)
            assert (ours.p_min, ours.k_min) == (theirs.p_min, theirs.k_min)
            assert ours.lower_border_end == theirs.lower_border_end
            assert ours.invertible == theirs.invertible
            if theirs.invertible:
                close(ours.dual_win, theirs.dual_win)
            for n in (12, 13, 30):
                for name in ("p_max", "k_max", "p_num", "upper_border_begin"):
                    assert getattr(ours, name)(n) == getattr(theirs, name)(n)
                close(ours.t(n), theirs.t(n))
                close(ours.extent(n), theirs.extent(n))
                close(ours.extent(n, "ft", True), theirs.extent(n, "ft", True))
            for k, left in itertools.product((-3, 0, 7), (True, False)):
                assert ours.nearest_k_p(k, left) == theirs.nearest_k_p(k, left)


MODES = ["onesided", "twosided", "centered", "onesided2X"]


@pytest.mark.parametrize("mode", MODES)
def test_transforms_agree_with_scipy(mode: str) -> None:
    window = want.windows.hann(9) + 0.1
    x = X[0, :, 0]
    cases = itertools.product((None, 13), (None, "psd", "magnitude"), (0, None, 3))
    with fxflow.config.override(x64=True):
        for size, scaling, shift in cases:
            if mode == "onesided2X" and scaling is None:
                continue
            options: dict[str, Any] = {"fft_mode": mode, "mfft": size}
            options |= {"scale_to": scaling, "phase_shift": shift}
            ours = ShortTimeFFT(window, 4, 8.0, **options)
            theirs = want.ShortTimeFFT(window, 4, 8.0, **options)
            close(ours.f, theirs.f)
            close(ours.fac_psd, theirs.fac_psd)
            expected = theirs.stft(x)
            close(ours.stft(x), expected)
            close(ours.istft(expected), theirs.istft(expected))
            close(ours.istft(expected, 3, 30), theirs.istft(expected)[3:30])
        close(ours.scale_to("psd").win, theirs.win * theirs.fac_psd)


@pytest.mark.parametrize("padding", ["zeros", "edge", "even", "odd"])
def test_axes_trends_and_padding_agree_with_scipy(padding: str) -> None:
    window = want.windows.hann(9) + 0.1
    ours, theirs = (m.ShortTimeFFT(window, 4, 8.0) for m in (signal, want))
    options: dict[str, Any] = {"padding": padding, "axis": 1, "k_offset": 2}
    with fxflow.config.override(x64=True):
        ours = ShortTimeFFT(window, 4, 8.0)
        S = theirs.stft(X, **options)
        close(ours.stft(X, **options), S)
        for detr in ("linear", "constant"):
            close(
                ours.stft_detrend(X, detr, 1, 5, **options),
                theirs.stft_detrend(X, detr, 1, 5, **options),
            )
        S = theirs.stft(X, axis=1)
        close(ours.istft(S, f_axis=1, t_axis=-1), theirs.istft(S, f_axis=1, t_axis=-1))
        for y in (None, X[::-1]):
            close(ours.spectrogram(X, y, axis=1), theirs.spectrogram(X, y, axis=1))


def test_other_ways_to_make_one_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        options: dict[str, Any] = {"symmetric_win": True, "mfft": 16}
        arguments = (("gaussian", 2.0), 8.0, 9, 5)
        ours = ShortTimeFFT.from_window(*arguments, **options)
        theirs = want.ShortTimeFFT.from_window(*arguments, **options)
        close(ours.win, theirs.win)
        assert (ours.hop, ours.mfft) == (theirs.hop, theirs.mfft)
        dual = want.windows.hann(9) + 0.1
        ours = ShortTimeFFT.from_dual(dual, 3, 1.0)
        close(ours.win, want.ShortTimeFFT.from_dual(dual, 3, 1.0).win)
        close(ours.dual_win, dual)


def test_transforms_compose() -> None:
    transform = ShortTimeFFT.from_window("hann", 8.0, 8, 4)
    x = fnp.asarray(X[0, :, 0], "f4")

    @fxflow.jit
    def there_and_back(transform: ShortTimeFFT, x: Any) -> Any:
        return transform.istft(transform.stft(x), k1=40)

    close(there_and_back(transform, x), x, 1e-5)
    rows = fxflow.vmap(there_and_back, in_axes=(None, 0))(
        transform, fnp.stack([x, 2 * x])
    )
    close(rows[1], 2 * x, 1e-5)

    def power(transform: ShortTimeFFT, x: Any) -> Any:
        return fnp.sum(transform.spectrogram(x))

    with fxflow.config.override(x64=True):
        transform = ShortTimeFFT.from_window("hann", 8.0, 8, 4)
        x = X[0, :, 0]
        slope = fxflow.grad(power, 1)(transform, x)
        v = RNG.normal(size=x.size)
        near = [float(power(transform, x + h * v)) for h in (-1e-5, 1e-5)]
        close(slope @ v, (near[1] - near[0]) / 2e-5, 1e-6)
        # A sum of squares: twice its value by the scale of the window.
        whole = fxflow.grad(power)(transform, x)
        close(whole.win @ transform.win, 2 * power(transform, x))


def test_bad_arguments_are_refused() -> None:
    window = np.ones(8)
    with pytest.raises(ShapeError, match="win must be a vector"):
        ShortTimeFFT(np.ones((2, 2)), 2, 1.0)
    with pytest.raises(ArgumentError, match="mfft must be at least 8"):
        ShortTimeFFT(window, 2, 1.0, mfft=7)
    with pytest.raises(ArgumentError, match="real window"):
        ShortTimeFFT(window * 1j, 2, 1.0)
    with pytest.raises(ArgumentError, match="needs scale_to"):
        ShortTimeFFT(window, 2, 1.0, fft_mode="onesided2X")
    with pytest.raises(ArgumentError, match="phase_shift"):
        ShortTimeFFT(window, 2, 1.0, phase_shift=8)
    with pytest.raises(ShapeError, match="dual_win"):
        ShortTimeFFT(window, 2, 1.0, dual_win=np.ones(3))
    transform = ShortTimeFFT(window, 9, 1.0)
    assert not transform.invertible
    with pytest.raises(ArgumentError, match="no inverse"):
        transform.istft(transform.stft(np.ones(30)))
    transform = ShortTimeFFT(window, 2, 1.0)
    with pytest.raises(ArgumentError, match="real signal"):
        transform.stft(np.ones(30) * 1j)
    with pytest.raises(ArgumentError, match="at least 4 samples"):
        transform.stft(np.ones(3))
    with pytest.raises(ArgumentError, match="padding"):
        transform.stft(np.ones(30), padding="other")
    with pytest.raises(ArgumentError, match="p0 < p1"):
        transform.stft(np.ones(30), 5, 5)
    with pytest.raises(ShapeError, match="f_pts = 5"):
        transform.istft(np.ones((4, 3)))
    with pytest.raises(ArgumentError, match="k0 < k1"):
        transform.istft(np.ones((5, 9)), 0, 90)
    with pytest.raises(AttributeError, match="immutable"):
        transform.win = window  # type: ignore[misc]
