"""Signals: `fxflow.scipy.signal`: filters, waves, trends, peaks and spectra."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.signal.chirp_z import CZT, ZoomFFT, czt, czt_points, zoom_fft
from fxflow.scipy.signal.convolution import (
    choose_conv_method, convolve, convolve2d, correlate, correlate2d, correlation_lags,
    fftconvolve, oaconvolve,
)
from fxflow.scipy.signal.filter_design import (
    bessel, butter, cheby1, cheby2, ellip, gammatone, iircomb, iirnotch, iirpeak,
)
from fxflow.scipy.signal.filtering import (
    filtfilt, lfilter, lfilter_zi, lfiltic, sosfilt, sosfilt_zi, sosfiltfilt,
)
from fxflow.scipy.signal.fir_design import firwin, firwin2, firwin_2d
from fxflow.scipy.signal.frequency_responses import (
    findfreqs, freqs, freqs_zpk, freqz, freqz_sos, freqz_zpk, group_delay, sosfreqz,
)
from fxflow.scipy.signal.peaks import (
    argrelextrema, argrelmax, argrelmin, find_peaks, peak_prominences, peak_widths,
)
from fxflow.scipy.signal.resampling import decimate, resample, resample_poly, upfirdn
from fxflow.scipy.signal.smoothing import (
    envelope, hilbert, hilbert2, medfilt, medfilt2d, order_filter, savgol_coeffs,
    savgol_filter, wiener,
)
from fxflow.scipy.signal.spectra import (
    coherence, csd, istft, lombscargle, periodogram, spectrogram, stft, welch,
)
from fxflow.scipy.signal.transfer_functions import (
    sos2tf, sos2zpk, tf2sos, tf2zpk, zpk2sos, zpk2tf,
)
from fxflow.scipy.signal.trends import detrend
from fxflow.scipy.signal.waveforms import (
    chirp, gausspulse, max_len_seq, sawtooth, square, sweep_poly, unit_impulse,
)
from fxflow.scipy.signal.windows import get_window
from fxflow.scipy.signal.orders import (
    band_stop_obj, buttord, cheb1ord, cheb2ord, ellipord, iirdesign, iirfilter,
)
from fxflow.scipy.signal.band_changes import (
    besselap, bilinear, bilinear_zpk, buttap, cheb1ap, cheb2ap, ellipap, lp2bp,
    lp2bp_zpk, lp2bs, lp2bs_zpk, lp2hp, lp2hp_zpk, lp2lp, lp2lp_zpk, normalize,
)
from fxflow.scipy.signal.fir_fits import (
    firls, kaiser_atten, kaiser_beta, kaiserord, minimum_phase, remez,
)
from fxflow.scipy.signal.short_time import ShortTimeFFT
from fxflow.scipy.signal.partial_fractions import (
    deconvolve, invres, invresz, residue, residuez, unique_roots,
)
from fxflow.scipy.signal.state_spaces import (
    abcd_normalize, cont2discrete, ss2tf, ss2zpk, tf2ss, zpk2ss,
)
from fxflow.scipy.signal.systems import (
    StateSpace, TransferFunction, ZerosPolesGain, dlti, lti,
)
from fxflow.scipy.signal.responses import (
    bode, dbode, dfreqresp, dimpulse, dlsim, dstep, freqresp, impulse, lsim, step,
)
from fxflow.scipy.signal.overlaps import (
    check_COLA, check_NOLA, closest_STFT_dual_window,
)
from fxflow.scipy.signal.events import vectorstrength
from fxflow.scipy.signal.ridges import find_peaks_cwt
from fxflow.scipy.signal.pole_placement import place_poles
from fxflow.scipy.signal.splines import (
    cspline1d, cspline1d_eval, cspline2d, gauss_spline, qspline1d, qspline1d_eval,
    qspline2d, sepfir2d, spline_filter, symiirorder1, symiirorder2,
)

__all__ = [
    "CZT", "ShortTimeFFT", "StateSpace", "TransferFunction", "ZerosPolesGain",
    "ZoomFFT", "abcd_normalize", "argrelextrema", "argrelmax", "argrelmin",
    "band_stop_obj", "bessel", "besselap", "bilinear", "bilinear_zpk", "bode", "buttap",
    "butter", "buttord", "cheb1ap", "cheb1ord", "cheb2ap", "cheb2ord", "cheby1",
    "cheby2", "check_COLA", "check_NOLA", "chirp", "choose_conv_method",
    "closest_STFT_dual_window", "coherence", "cont2discrete", "convolve", "convolve2d",
    "correlate", "correlate2d", "correlation_lags", "csd", "cspline1d",
    "cspline1d_eval", "cspline2d", "czt", "czt_points", "dbode", "decimate",
    "deconvolve", "detrend", "dfreqresp", "dimpulse", "dlsim", "dlti", "dstep", "ellip",
    "ellipap", "ellipord", "envelope", "fftconvolve", "filtfilt", "find_peaks",
    "find_peaks_cwt", "findfreqs", "firls", "firwin", "firwin2", "firwin_2d",
    "freqresp", "freqs", "freqs_zpk", "freqz", "freqz_sos", "freqz_zpk", "gammatone",
    "gauss_spline", "gausspulse", "get_window", "group_delay", "hilbert", "hilbert2",
    "iircomb", "iirdesign", "iirfilter", "iirnotch", "iirpeak", "impulse", "invres",
    "invresz", "istft", "kaiser_atten", "kaiser_beta", "kaiserord", "lfilter",
    "lfilter_zi", "lfiltic", "lombscargle", "lp2bp", "lp2bp_zpk", "lp2bs", "lp2bs_zpk",
    "lp2hp", "lp2hp_zpk", "lp2lp", "lp2lp_zpk", "lsim", "lti", "max_len_seq", "medfilt",
    "medfilt2d", "minimum_phase", "normalize", "oaconvolve", "order_filter",
    "peak_prominences", "peak_widths", "periodogram", "place_poles", "qspline1d",
    "qspline1d_eval", "qspline2d", "remez", "resample", "resample_poly", "residue",
    "residuez", "savgol_coeffs", "savgol_filter", "sawtooth", "sepfir2d", "sos2tf",
    "sos2zpk", "sosfilt", "sosfilt_zi", "sosfiltfilt", "sosfreqz", "spectrogram",
    "spline_filter", "square", "ss2tf", "ss2zpk", "step", "stft", "sweep_poly",
    "symiirorder1", "symiirorder2", "tf2sos", "tf2ss", "tf2zpk", "unique_roots",
    "unit_impulse", "upfirdn", "vectorstrength", "welch", "wiener", "zoom_fft",
    "zpk2sos", "zpk2ss", "zpk2tf",
]
# fmt: on

_public(globals(), __all__)
