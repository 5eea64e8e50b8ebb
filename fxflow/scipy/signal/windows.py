"""Windows: weights that fall off at both ends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError
from fxflow.lax.axes import natural, number
from fxflow.scipy.signal._windows import slepian_sequences, window_of


def get_window(window: Any, Nx: int, fftbins: bool = True) -> Array:
    """Returns a window by its name.

    Args:
      window: "hann", "hamming", "blackman", "tukey", "taylor" and the like; a tuple of
        a name and its parameters, such as ("gaussian", 3.0), ("kaiser", 8.0),
        ("chebwin", 60.0) or ("dpss", 2.5); or a number, a Kaiser window's shape.
      Nx: number of points.
      fftbins: whether they are one period, for spectra, or symmetric, for filters.

    Returns:
      Float array[Nx], computed on the host.

    Raises:
      ArgumentError: unknown window, or it asks for other parameters.

    Example:
      >>> get_window("hann", 4)
      Array([0. , 0.5, 1. , 0.5], dtype=float32)

    Source: `scipy.signal.get_window`.
    """
    n = natural("get_window", "Nx", Nx)
    return fnp.asarray(window_of("get_window", window, n, bool(fftbins)))


# -- by their own names ----------------------------------------------------------------

_docs = shared("""
    Args:
      M: number of points, non-negative.
      sym: whether the window is symmetric, for filter design, or periodic, for spectral
        analysis.

    Returns:
      Float array[M], computed on the host.

    Raises:
      ArgumentError: `M` is negative, or a parameter is not a number.

    Source: `scipy.signal.windows.{name}`.
""")


def _made(name: str, M: Any, sym: bool, *parameters: Any) -> Array:
    n = natural(name, "M", M, 0)
    if not n:
        return fnp.zeros(0)
    window = (name, *parameters) if parameters else name
    return fnp.asarray(window_of(name, window, n, not sym))


@_docs
def boxcar(M: int, sym: bool = True) -> Array:
    """Returns the boxcar window, which is 1 everywhere.

    Example:
      >>> boxcar(5).round(3)
      Array([1., 1., 1., 1., 1.], dtype=float32)
    """
    return _made("boxcar", M, sym)


@_docs
def triang(M: int, sym: bool = True) -> Array:
    """Returns the triangular window, whose ends are not 0.

    Example:
      >>> triang(5).round(3)
      Array([0.333, 0.667, 1.   , 0.667, 0.333], dtype=float32)
    """
    return _made("triang", M, sym)


@_docs
def parzen(M: int, sym: bool = True) -> Array:
    """Returns the Parzen window, of cubic pieces.

    Example:
      >>> parzen(5).round(3)
      Array([0.016, 0.424, 1.   , 0.424, 0.016], dtype=float32)
    """
    return _made("parzen", M, sym)


@_docs
def bohman(M: int, sym: bool = True) -> Array:
    """Returns the Bohman window, the autocorrelation of half a cosine.

    Example:
      >>> bohman(5).round(3)
      Array([0.   , 0.318, 1.   , 0.318, 0.   ], dtype=float32)
    """
    return _made("bohman", M, sym)


@_docs
def blackman(M: int, sym: bool = True) -> Array:
    """Returns the Blackman window, of three cosine terms.

    Example:
      >>> blackman(5).round(3)
      Array([-0.  ,  0.34,  1.  ,  0.34, -0.  ], dtype=float32)
    """
    return _made("blackman", M, sym)


@_docs
def nuttall(M: int, sym: bool = True) -> Array:
    """Returns the Nuttall window, of four cosine terms with low side lobes.

    Example:
      >>> nuttall(5).round(3)
      Array([0.   , 0.227, 1.   , 0.227, 0.   ], dtype=float32)
    """
    return _made("nuttall", M, sym)


@_docs
def blackmanharris(M: int, sym: bool = True) -> Array:
    """Returns the Blackman-Harris window, of four cosine terms.

    Example:
      >>> blackmanharris(5).round(3)
      Array([0.   , 0.217, 1.   , 0.217, 0.   ], dtype=float32)
    """
    return _made("blackmanharris", M, sym)


@_docs
def flattop(M: int, sym: bool = True) -> Array:
    """Returns the flat top window, of five cosine terms.

    Example:
      >>> flattop(5).round(3)
      Array([-0.   , -0.055,  1.   , -0.055, -0.   ], dtype=float32)
    """
    return _made("flattop", M, sym)


@_docs
def bartlett(M: int, sym: bool = True) -> Array:
    """Returns the Bartlett window, a triangle whose ends are 0.

    Example:
      >>> bartlett(5).round(3)
      Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _made("bartlett", M, sym)


@_docs
def barthann(M: int, sym: bool = True) -> Array:
    """Returns the Bartlett-Hann window.

    Example:
      >>> barthann(5).round(3)
      Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _made("barthann", M, sym)


@_docs
def hamming(M: int, sym: bool = True) -> Array:
    """Returns the Hamming window, a raised cosine whose first side lobe is low.

    Example:
      >>> hamming(5).round(3)
      Array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float32)
    """
    return _made("hamming", M, sym)


@_docs
def hann(M: int, sym: bool = True) -> Array:
    """Returns the Hann window, one period of a raised cosine.

    Example:
      >>> hann(5).round(3)
      Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _made("hann", M, sym)


@_docs
def cosine(M: int, sym: bool = True) -> Array:
    """Returns the cosine window, half a period of a sine.

    Example:
      >>> cosine(5).round(3)
      Array([0.309, 0.809, 1.   , 0.809, 0.309], dtype=float32)
    """
    return _made("cosine", M, sym)


@_docs
def lanczos(M: int, sym: bool = True) -> Array:
    """Returns the Lanczos window, the main lobe of a sinc.

    Example:
      >>> lanczos(5).round(3)
      Array([0.   , 0.637, 1.   , 0.637, 0.   ], dtype=float32)
    """
    return _made("lanczos", M, sym)


@_docs
def kaiser(M: int, beta: float, sym: bool = True) -> Array:
    """Returns the Kaiser window, a modified Bessel function.

    Args:
      beta: the shape: 0 is a boxcar, 14 has side lobes of about -105 dB.

    Example:
      >>> kaiser(5, 8.6).round(3)
      Array([0.001, 0.34 , 1.   , 0.34 , 0.001], dtype=float32)
    """
    return _made("kaiser", M, sym, number("kaiser", "beta", beta))


@_docs
def gaussian(M: int, std: float, sym: bool = True) -> Array:
    """Returns the Gaussian window.

    Args:
      std: the standard deviation in points.

    Example:
      >>> gaussian(5, 1.0).round(3)
      Array([0.135, 0.607, 1.   , 0.607, 0.135], dtype=float32)
    """
    return _made("gaussian", M, sym, number("gaussian", "std", std))


@_docs
def general_gaussian(M: int, p: float, sig: float, sym: bool = True) -> Array:
    """Returns the generalized Gaussian window, exp(-|x / sig|^(2 p) / 2).

    Args:
      p: the shape: 1 is a Gaussian, 0.5 an exponential.
      sig: the standard deviation in points.

    Example:
      >>> general_gaussian(5, 1.5, 2.0).round(3)
      Array([0.607, 0.939, 1.   , 0.939, 0.607], dtype=float32)
    """
    return _made(
        "general_gaussian",
        M,
        sym,
        number("general_gaussian", "p", p),
        number("general_gaussian", "sig", sig),
    )


@_docs
def general_hamming(M: int, alpha: float, sym: bool = True) -> Array:
    """Returns the generalized Hamming window, alpha - (1 - alpha) cos(2 π k / (M - 1)).

    Args:
      alpha: the mean: 0.5 is Hann's, 0.54 Hamming's.

    Example:
      >>> general_hamming(5, 0.6).round(3)
      Array([0.2, 0.6, 1. , 0.6, 0.2], dtype=float32)
    """
    return _made("general_hamming", M, sym, number("general_hamming", "alpha", alpha))


@_docs
def chebwin(M: int, at: float, sym: bool = True) -> Array:
    """Returns the Dolph-Chebyshev window: all side lobes are equally high.

    Args:
      at: the attenuation of the side lobes in dB.

    Example:
      >>> chebwin(5, 60.0).round(3)
      Array([0.188, 0.686, 1.   , 0.686, 0.188], dtype=float32)
    """
    return _made("chebwin", M, sym, number("chebwin", "at", at))


@_docs
def general_cosine(M: int, a: Any, sym: bool = True) -> Array:
    """Returns the general cosine window, an alternating sum of cosines.

    Args:
      a: the weights, of the constant first.

    Example:
      >>> general_cosine(5, [0.5, 0.5]).round(3)
      Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    weights = [number("general_cosine", "a", v) for v in a]
    if not weights:
        raise ArgumentError("general_cosine: a must have a weight, got none")
    return _made("general_cosine", M, sym, weights)


@_docs
def exponential(
    M: int, center: float | None = None, tau: float = 1.0, sym: bool = True
) -> Array:
    """Returns the exponential window, exp(-|k - center| / tau).

    Args:
      center: the place of the maximum; None is the middle; only if `sym` is False.
      tau: after how many points it falls to 1 / e.

    Raises:
      ArgumentError: `center` is given for a symmetric window.

    Example:
      >>> exponential(5, tau=2.0).round(3)
      Array([0.368, 0.607, 1.   , 0.607, 0.368], dtype=float32)
    """
    if sym and center is not None:
        raise ArgumentError(
            f"exponential: a symmetric window has its own center: give sym=False with "
            f"center={center!r}"
        )
    middle = None if center is None else number("exponential", "center", center)
    return _made("exponential", M, sym, middle, number("exponential", "tau", tau))


@_docs
def tukey(M: int, alpha: float = 0.5, sym: bool = True) -> Array:
    """Returns the Tukey window, flat between two halves of a cosine.

    Args:
      alpha: the part that is not flat: 0 is a boxcar, 1 the Hann window.

    Example:
      >>> tukey(5).round(3)
      Array([0., 1., 1., 1., 0.], dtype=float32)
    """
    return _made("tukey", M, sym, number("tukey", "alpha", alpha))


@_docs
def taylor(
    M: int, nbar: int = 4, sll: float = 30, norm: bool = True, sym: bool = True
) -> Array:
    """Returns the Taylor window, whose first side lobes are about equally high.

    Args:
      nbar: the number of such side lobes.
      sll: their attenuation in dB.
      norm: whether the maximum is 1.

    Example:
      >>> taylor(5).round(3)
      Array([0.332, 0.772, 1.   , 0.772, 0.332], dtype=float32)
    """
    nbar = natural("taylor", "nbar", nbar)
    return _made("taylor", M, sym, nbar, number("taylor", "sll", sll), bool(norm))


@_docs
def kaiser_bessel_derived(M: int, beta: float, *, sym: bool = True) -> Array:
    """Returns the Kaiser-Bessel derived window, for modified cosine transforms.

    The squares of two points half of the length apart add up to 1.

    Args:
      M: number of points, even.
      beta: the shape of the Kaiser window.
      sym: True: there is no other.

    Raises:
      ArgumentError: `M` is odd, or `sym` is False.

    Example:
      >>> kaiser_bessel_derived(4, 2.0).round(3)
      Array([0.483, 0.875, 0.875, 0.483], dtype=float32)
    """
    name = "kaiser_bessel_derived"
    n = natural(name, "M", M, 0)
    if not sym:
        raise ArgumentError(f"{name}: the window is symmetric: sym must be True")
    if n % 2:
        raise ArgumentError(f"{name}: M must be even, got {n}")
    if not n:
        return fnp.zeros(0)
    sums = np.cumsum(np.kaiser(n // 2 + 1, number(name, "beta", beta)))
    half = np.sqrt(sums[:-1] / sums[-1])
    return fnp.asarray(np.concatenate([half, half[::-1]]))


_NORMS = (None, 2, "approximate", "subsample")


@_docs
def dpss(
    M: int,
    NW: float,
    Kmax: int | None = None,
    sym: bool = True,
    norm: Any = None,
    return_ratios: bool = False,
) -> Any:
    """Returns the Slepian sequences (DPSS), with the most energy below a frequency.

    Args:
      NW: the frequency times M, in (0, M / 2).
      Kmax: how many sequences; None is one, as a vector.
      norm: 2: the squares of each add up to 1; "approximate" or "subsample": the
        maximum of the first is 1, of an even one at the middle between two points; None
        is 2 if `Kmax` is given, else "approximate".
      return_ratios: whether to return the parts of the energy below the frequency.

    Returns:
      Float array[M] or array[Kmax, M], computed on the host; with `return_ratios` a
      tuple of it and a float, or array[Kmax].

    Raises:
      ArgumentError: `NW` or `Kmax` is out of range, or the norm is unknown.

    Example:
      >>> dpss(5, 1.5).round(3)
      Array([0.261, 0.741, 1.   , 0.741, 0.261], dtype=float32)

    Source: `scipy.signal.windows.dpss`. D. Slepian, Prolate Spheroidal Wave Functions,
    Fourier Analysis, and Uncertainty V, 1978.
    """
    name = "dpss"
    n = natural(name, "M", M, 0)
    if norm not in _NORMS:
        listed = ", ".join(map(repr, _NORMS))
        raise ArgumentError(f"{name}: norm must be one of {listed}, got {norm!r}")
    if norm is None:
        norm = "approximate" if Kmax is None else 2
    count = 1 if Kmax is None else natural(name, "Kmax", Kmax)
    width = number(name, "NW", NW)
    if n <= 1:
        windows, ratios = np.ones((1, n)), np.ones(1)
    else:
        longer = n + (not sym)
        if not 0 < width < longer / 2:
            raise ArgumentError(
                f"{name}: NW must lie between 0 and M / 2 = {longer / 2:g}, got {width}"
            )
        if count > longer:
            raise ArgumentError(f"{name}: Kmax must be at most M = {n}, got {count}")
        windows, ratios = slepian_sequences(longer, width, count)
        if norm != 2:
            windows = windows / windows.max()
            if longer % 2 == 0:
                windows = windows * _between(windows[0], width, norm)
        windows = windows[:, :n]
    found = fnp.asarray(windows[0] if Kmax is None else windows)
    if not return_ratios:
        return found
    return found, fnp.asarray(ratios[0] if Kmax is None else ratios)


def _between(window: Any, width: float, norm: str) -> float:
    """Returns 1 over the value that an even window has between its middle points."""
    n = window.size
    if norm == "approximate":
        return float(n**2 / (n**2 + width))
    spectrum = np.fft.rfft(window)
    turn = -(1 - 1 / n) * np.arange(1, n // 2 + 1)
    spectrum[1:] *= 2 * np.exp(-1j * math.pi * turn)
    return float(n / spectrum.real.sum())


# fmt: off
__all__ = [
    "barthann", "bartlett", "blackman", "blackmanharris", "bohman", "boxcar",
    "chebwin", "cosine", "dpss", "exponential", "flattop", "gaussian",
    "general_cosine", "general_gaussian", "general_hamming", "get_window", "hamming",
    "hann", "kaiser", "kaiser_bessel_derived", "lanczos", "nuttall", "parzen",
    "taylor", "triang", "tukey",
]
# fmt: on

_public(globals(), __all__)
