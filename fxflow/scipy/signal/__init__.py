"""Signals: `fxflow.scipy.signal`: filters, waves, trends and spectra."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.signal.convolution import (
    convolve, convolve2d, correlate, correlate2d, fftconvolve,
)
from fxflow.scipy.signal.filter_design import (
    bessel, butter, buttord, cheby1, cheby2, ellip, iirnotch, iirpeak,
)
from fxflow.scipy.signal.filtering import (
    filtfilt, lfilter, lfilter_zi, lfiltic, sosfilt, sosfilt_zi, sosfiltfilt,
)
from fxflow.scipy.signal.fir_design import firwin, firwin2
from fxflow.scipy.signal.frequency_responses import (
    freqz, freqz_sos, group_delay, sosfreqz,
)
from fxflow.scipy.signal.smoothing import hilbert, savgol_coeffs, savgol_filter
from fxflow.scipy.signal.spectra import csd, istft, stft, welch
from fxflow.scipy.signal.transfer_functions import (
    sos2tf, sos2zpk, tf2sos, tf2zpk, zpk2sos, zpk2tf,
)
from fxflow.scipy.signal.trends import detrend
from fxflow.scipy.signal.waveforms import (
    chirp, gausspulse, sawtooth, square, unit_impulse,
)

__all__ = [
    "bessel", "butter", "buttord", "cheby1", "cheby2", "chirp", "convolve",
    "convolve2d", "correlate", "correlate2d", "csd", "detrend", "ellip",
    "fftconvolve", "filtfilt", "firwin", "firwin2", "freqz", "freqz_sos",
    "gausspulse", "group_delay", "hilbert", "iirnotch", "iirpeak", "istft",
    "lfilter", "lfilter_zi", "lfiltic", "savgol_coeffs", "savgol_filter",
    "sawtooth", "sos2tf", "sos2zpk", "sosfilt", "sosfilt_zi", "sosfiltfilt",
    "sosfreqz", "square", "stft", "tf2sos", "tf2zpk", "unit_impulse", "welch",
    "zpk2sos", "zpk2tf",
]
# fmt: on

_public(globals(), __all__)
