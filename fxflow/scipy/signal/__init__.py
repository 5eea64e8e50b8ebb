"""Signals: `fxflow.scipy.signal`: filters, waves, trends, peaks and spectra."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.signal.chirp_z import czt, czt_points, zoom_fft
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
from fxflow.scipy.signal.peaks import (
    argrelextrema, argrelmax, argrelmin, find_peaks, peak_prominences, peak_widths,
)
from fxflow.scipy.signal.resampling import decimate, resample, resample_poly, upfirdn
from fxflow.scipy.signal.smoothing import (
    envelope, hilbert, medfilt, medfilt2d, savgol_coeffs, savgol_filter, wiener,
)
from fxflow.scipy.signal.spectra import (
    coherence, csd, istft, lombscargle, periodogram, spectrogram, stft, welch,
)
from fxflow.scipy.signal.transfer_functions import (
    sos2tf, sos2zpk, tf2sos, tf2zpk, zpk2sos, zpk2tf,
)
from fxflow.scipy.signal.trends import detrend
from fxflow.scipy.signal.waveforms import (
    chirp, gausspulse, sawtooth, square, unit_impulse,
)
from fxflow.scipy.signal.windows import get_window

__all__ = [
    "argrelextrema", "argrelmax", "argrelmin", "bessel", "butter", "buttord", "cheby1",
    "cheby2", "chirp", "coherence", "convolve", "convolve2d", "correlate",
    "correlate2d", "csd", "czt", "czt_points", "decimate", "detrend", "ellip",
    "envelope", "fftconvolve", "filtfilt", "find_peaks", "firwin", "firwin2", "freqz",
    "freqz_sos", "gausspulse", "get_window", "group_delay", "hilbert", "iirnotch",
    "iirpeak", "istft", "lfilter", "lfilter_zi", "lfiltic", "lombscargle", "medfilt",
    "medfilt2d", "peak_prominences", "peak_widths", "periodogram", "resample",
    "resample_poly", "savgol_coeffs", "savgol_filter", "sawtooth", "sos2tf", "sos2zpk",
    "sosfilt", "sosfilt_zi", "sosfiltfilt", "sosfreqz", "spectrogram", "square",
    "stft", "tf2sos", "tf2zpk", "unit_impulse", "upfirdn", "welch", "wiener",
    "zoom_fft", "zpk2sos", "zpk2tf",
]
# fmt: on

_public(globals(), __all__)
