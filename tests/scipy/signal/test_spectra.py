"""Spectra beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.scipy import signal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 300))
Y = RNG.normal(size=(2, 200))
OPTIONS: list[dict[str, Any]] = [
    {},
    {"fs": 10.0, "window": "hamming", "nperseg": 64},
    {"window": ("tukey", 0.25), "nperseg": 50, "noverlap": 10, "nfft": 75},
    {"window": np.bartlett(33), "scaling": "spectrum"},
    {"nperseg": 30, "detrend": "linear", "average": "median"},
    {"nperseg": 31, "detrend": False, "return_onesided": False},
    {"window": ("kaiser", 5.0), "nperseg": 40, "noverlap": 0, "average": "median"},
]


def _same_signal(ours: Any, theirs: Any, z: Any, options: dict[str, Any]) -> None:
    times, got = ours(z, **options)
    expected = theirs(z, **options)[1]  # SciPy's times are those of its first axis
    np.testing.assert_allclose(got, expected, 1e-9, 1e-9)
    rate = options.get("fs", 1.0)
    np.testing.assert_allclose(times, np.arange(got.shape[-1]) / rate)


def close(got: Any, expected: Any, tolerance: float = 1e-9) -> None:
    for one, other in zip(got, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, tolerance, tolerance)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_power(options: dict[str, Any]) -> None:
    with fxflow.config.override(x64=True):
        close(signal.welch(X, **options), want.welch(X, **options))
        close(signal.csd(X, Y, **options), want.csd(X, Y, **options))

        both = np.stack([X[0], X[0]])
        close(signal.csd(X[0], Y, **options), want.csd(both, Y, **options))
        turned = {**options, "axis": 0}
        close(signal.csd(X.T, X.T + 1, **turned), want.csd(X.T, X.T + 1, **turned))
        if not options.get("return_onesided", True):
            z = X[:, :200] + 1j * Y
            close(signal.welch(z, **options), want.welch(z, **options))
    single = signal.welch(X.astype(np.float32), **options)
    assert [a.dtype for a in single] == [np.float32, np.float32]
    close(single, want.welch(X, **options), 2e-4)


@pytest.mark.parametrize("boundary", ["zeros", "even", "odd", "constant", None])
def test_short_time_and_back(boundary: str | None) -> None:
    options: list[dict[str, Any]] = [
        {"nperseg": 64},
        {"nperseg": 50, "noverlap": 40, "window": "boxcar", "fs": 4.0},
        {"nperseg": 33, "nfft": 40, "scaling": "psd", "fs": 4.0},
        {"window": np.hanning(40)[1:-1], "return_onesided": False},
    ]
    with fxflow.config.override(x64=True):
        for option in options:
            for padded in (True, False):
                forth = {**option, "boundary": boundary, "padded": padded}
                given = signal.stft(X, **forth)
                if "nperseg" not in option:  # SciPy derives it from the array
                    forth["nperseg"] = None
                close(given, want.stft(X, **forth))
                back = {**option, "boundary": boundary is not None}
                back["input_onesided"] = back.pop("return_onesided", True)
                if boundary is not None:
                    _same_signal(signal.istft, want.istft, given[2], back)
            turned = signal.stft(X.T, **option, axis=0)
            close(turned, want.stft(X.T, **{"nperseg": None, **option}, axis=0))
            back = dict(option)
            back["input_onesided"] = back.pop("return_onesided", True)
            axes = {"time_axis": -1, "freq_axis": 0}
            _same_signal(signal.istft, want.istft, turned[2], {**back, **axes})


def test_round_trip_in_transforms() -> None:
    x = X.astype(np.float32)

    def there_and_back(x: Any) -> Any:
        return signal.istft(signal.stft(x, nperseg=32)[2], nperseg=32)[1][:300]

    for way in (there_and_back, fxflow.jit(there_and_back)):
        np.testing.assert_allclose(way(x[0]), x[0], 1e-4, 1e-5)
    np.testing.assert_allclose(fxflow.vmap(there_and_back)(x), x, 1e-4, 1e-5)
    slope = fxflow.grad(lambda x: (there_and_back(x) ** 2).sum())(x[0])
    np.testing.assert_allclose(slope, 2 * x[0], 1e-3, 1e-4)
    rates = fxflow.jit(lambda fs: signal.welch(x, fs, nperseg=32))(2.0)
    close(rates, signal.welch(x, 2.0, nperseg=32), 1e-5)


def test_the_rest() -> None:
    with pytest.warns(UserWarning, match="longer than the signal"):
        assert signal.welch(X[:, :100])[1].shape == (2, 51)
    with pytest.warns(UserWarning, match="complex"):
        assert signal.welch(X + 1j, nperseg=64)[1].shape == (2, 64)
    own = signal.welch(X, nperseg=64, detrend=lambda parts: 0 * parts)
    assert not own[1].any()
    assert signal.csd(X, None, nperseg=64)[1].dtype == np.float32
    assert signal.welch(X[:, :0])[1].shape == (2, 0)
    assert signal.stft(X[:, :0])[2].shape == (2, 0)
    half = signal.welch(X.astype(np.float16), nperseg=64)[1]
    assert half.dtype == np.float32
    assert signal.welch(np.arange(300), nperseg=64)[1].dtype == np.float32


def test_invalid_windows_lengths_and_options_are_refused() -> None:
    for wrong in (
        {"window": "house"},
        {"nperseg": 0},
        {"nperseg": 8, "noverlap": 8},
        {"nperseg": 8, "nfft": 4},
        {"scaling": "loud"},
        {"average": "mode"},
        {"window": np.ones(4), "nperseg": 5},
    ):
        with pytest.raises(ArgumentError):
            signal.welch(X, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="longer"):
        signal.welch(X, window=np.ones(400))
    with pytest.raises(ShapeError, match="one axis"):
        signal.welch(X, window=np.ones((4, 4)))
    with pytest.raises(ArgumentError, match="boundary"):
        signal.stft(X, boundary="far")
    with pytest.raises(ShapeError, match="two axes"):
        signal.istft(fnp.ones(3))
    with pytest.raises(ArgumentError, match="both"):
        signal.istft(fnp.ones((3, 4)), time_axis=-2)
    with pytest.raises(ArgumentError, match="scaling"):
        signal.istft(fnp.ones((3, 4)), scaling="density")
    with pytest.raises(AxisError):
        signal.welch(X, axis=2)


def test_spectra_of_the_whole_and_of_pairs_agree_with_scipy() -> None:
    options: list[dict[str, Any]] = [
        {},
        {"nfft": 200},
        {"nfft": 400, "window": "hann", "scaling": "spectrum"},
        {"return_onesided": False},
    ]
    with fxflow.config.override(x64=True):
        for s in options:
            for x in (X, X * (1 + 2j)):
                s = s if x is X else {**s, "return_onesided": False}
                close(signal.periodogram(x, 2.0, **s), want.periodogram(x, 2.0, **s))
        y = X[::-1] + 0.1 * X
        got = signal.coherence(X, y, 2.0, nperseg=32)
        close(got, want.coherence(X, y, 2.0, nperseg=32))
        assert (got[1] <= 1 + 1e-12).all()
        both = signal.coherence(X, X * 1j, nperseg=32)[1]
        np.testing.assert_allclose(both, 1, 1e-9)


@pytest.mark.parametrize("mode", ["psd", "complex", "magnitude", "angle", "phase"])
def test_spectrograms_agree_with_scipy(mode: str) -> None:
    options: list[dict[str, Any]] = [
        {"nperseg": 16},
        {"nperseg": 15, "noverlap": 3, "window": "hann"},
        {"nperseg": 16, "scaling": "spectrum", "return_onesided": False},
    ]
    with fxflow.config.override(x64=True):
        for s in options:
            got = signal.spectrogram(X, 2.0, mode=mode, **s)
            expected = want.spectrogram(X, 2.0, mode=mode, **s)
            if mode in ("angle", "phase"):
                # π and -π are one angle.
                got = (*got[:2], fnp.exp(1j * got[2]))
                expected = (*expected[:2], np.exp(1j * expected[2]))
            close(got, expected, 1e-8)


def test_spectra_of_uneven_samples_agree_with_scipy() -> None:
    t = np.sort(RNG.random(40) * 9)
    y = np.sin(2 * t) + 0.1 * RNG.normal(size=40) + 0.3
    w = np.linspace(0.1, 5, 30)
    with fxflow.config.override(x64=True):
        for kind in (False, True, "amplitude"):
            for mean in (False, True):
                for weights in (None, RNG.random(40)):
                    s: dict[str, Any] = {"normalize": kind, "floating_mean": mean}
                    got = signal.lombscargle(t, y, w, weights=weights, **s)
                    expected = want.lombscargle(t, y, w, weights=weights, **s)
                    np.testing.assert_allclose(got, expected, 1e-9, 1e-10)
        power = lambda w: signal.lombscargle(t, y, w[None])[0]
        best = w[np.argmax(want.lombscargle(t, y, w))]
        slope = float(fxflow.grad(power)(best))
        rise = float(power(best + 1e-6) - power(best - 1e-6)) / 2e-6
        assert slope == pytest.approx(rise, 1e-5)


def test_bad_spectra_are_refused() -> None:
    with pytest.raises(ArgumentError, match="mode must be"):
        signal.spectrogram(X, mode="no")
    with pytest.raises(ArgumentError, match="scaling"):
        signal.spectrogram(X, scaling="no")
    with pytest.raises(ArgumentError, match="normalize"):
        signal.lombscargle(X[0], X[0], X[0], normalize="no")
    with pytest.raises(ShapeError, match="one length"):
        signal.lombscargle(X[0], X[0, :5], X[0])
