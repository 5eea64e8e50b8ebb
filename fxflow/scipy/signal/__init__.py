"""Signals: `fxflow.scipy.signal`: filters, convolutions, trends and spectra."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.signal.convolution import (
    convolve, convolve2d, correlate, correlate2d, fftconvolve,
)
from fxflow.scipy.signal.filtering import (
    filtfilt, lfilter, lfilter_zi, lfiltic, sosfilt, sosfilt_zi, sosfiltfilt,
)
from fxflow.scipy.signal.spectra import csd, istft, stft, welch
from fxflow.scipy.signal.trends import detrend

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend",
    "fftconvolve", "filtfilt", "istft", "lfilter", "lfilter_zi", "lfiltic", "sosfilt",
    "sosfilt_zi", "sosfiltfilt", "stft", "welch",
]
# fmt: on

_public(globals(), __all__)
