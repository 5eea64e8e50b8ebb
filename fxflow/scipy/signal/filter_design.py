"""Recursive filters by their frequency response.

The prototypes, lowpass filters with their edge at 1 rad/s, are computed on the host, in
64 bits, from the order and the ripples. The cutoff may be traced: the prototype's roots
are moved to it by arithmetic, so every design can be differentiated with respect to its
edges.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural, number
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.signal import _prototypes as prototypes
from fxflow.scipy.signal._recursions import Coefficients, known, numbers
from fxflow.scipy.signal._sections import paired_sections
from fxflow.scipy.signal.transfer_functions import polynomial

_BANDS = {
    "lowpass": "lowpass",
    "low": "lowpass",
    "lp": "lowpass",
    "l": "lowpass",
    "highpass": "highpass",
    "high": "highpass",
    "hp": "highpass",
    "h": "highpass",
    "bandpass": "bandpass",
    "band": "bandpass",
    "pass": "bandpass",
    "bp": "bandpass",
    "bandstop": "bandstop",
    "stop": "bandstop",
    "bands": "bandstop",
    "bs": "bandstop",
}
_OUTPUTS = ("ba", "zpk", "sos")
Root = Any
Roots = list[Root]


# -- moving a prototype ----------------------------------------------------------------


def _pairs(roots: Any) -> list[tuple[complex, ...]]:
    """Returns the host's roots as conjugate pairs and single real ones."""
    above = [
        (complex(r), complex(np.conj(r))) for r in roots if r.imag > 1e-14 * abs(r)
    ]
    real = [(complex(r.real),) for r in roots if abs(r.imag) <= 1e-14 * abs(r)]
    return [*above, *real]


def _moved(kind: str, group: tuple[complex, ...], edges: Any, xp: Any) -> list[Roots]:
    """Returns where a pair of roots, or a single one, is moved to: one or two pairs."""
    if kind == "lowpass":
        return [[edges[0] * r for r in group]]
    if kind == "highpass":
        return [[edges[0] / r for r in group]]
    width = edges[1] - edges[0]
    square = edges[0] * edges[1]
    root = group[0]
    half = width * root / 2 if kind == "bandpass" else width / (2 * root)
    apart = xp.sqrt(half * half - square + 0j)
    if len(group) == 1:
        return [[half + apart, half - apart]]
    return [[r, xp.conj(r)] for r in (half + apart, half - apart)]


def _gain(roots: list[Roots], at: Any) -> Any:
    """Returns the product of at - root."""
    out: Any = 1.0
    for group in roots:
        for root in group:
            out = out * (at - root)
    return out


def _designed(
    name: str,
    prototype: tuple[Any, Any, float],
    Wn: Any,
    btype: Any,
    analog: bool,
    output: str,
    fs: Any,
) -> Any:
    """Returns the filter that a prototype becomes."""
    if output not in _OUTPUTS:
        known_ = ", ".join(f'"{o}"' for o in _OUTPUTS)
        raise ArgumentError(f"{name}: output must be one of {known_}, got {output!r}")
    kind = _BANDS.get(str(btype).lower())
    if kind is None:
        known_ = ", ".join(f'"{b}"' for b in dict.fromkeys(_BANDS.values()))
        raise ArgumentError(f"{name}: btype must be one of {known_}, got {btype!r}")
    if fs is not None and analog:
        raise ArgumentError(f"{name}: fs is of digital filters: omit it with analog")
    xp: Any = fnp if _traced(name, Wn, fs) else np
    if xp is fnp:
        Wn = fnp.atleast_1d(promote_inexact(name, numbers(Wn))[0])
    else:
        Wn = np.atleast_1d(np.asarray(numbers(Wn), np.float64))
    needed = 1 if kind in ("lowpass", "highpass") else 2
    if Wn.shape != (needed,):
        raise ShapeError(
            f"{name}: Wn must be {'a number' if needed == 1 else 'two edges'} for "
            f"btype={kind!r}, got shape {Wn.shape}"
        )
    rate = 2.0 if fs is None else fs
    edges = Wn
    if xp is np:
        _require_edges(name, Wn, analog, None if fs is None else float(rate))
    if not analog:
        # The bilinear transform with 2 samples a unit: s = 4 (z - 1) / (z + 1).
        edges = 4 * xp.tan(math.pi * Wn / rate)
    z, p, k = prototype
    zeros = [g for pair in _pairs(z) for g in _moved(kind, pair, edges, xp)]
    poles = [g for pair in _pairs(p) for g in _moved(kind, pair, edges, xp)]
    excess = len(p) - len(z)
    gain: Any = k
    if kind == "lowpass":
        gain = k * edges[0] ** excess
    elif kind == "bandpass":
        gain = k * (edges[1] - edges[0]) ** excess
        zeros += [[0.0]] * excess
    else:
        # A highpass prototype's gain: the product of -zeros over that of -poles.
        gain = k * float(np.real(np.prod(-np.asarray(z)) / np.prod(-np.asarray(p))))
        if kind == "highpass":
            zeros += [[0.0]] * excess
        else:
            middle = xp.sqrt(edges[0] * edges[1] + 0j)
            zeros += [[1j * middle, -1j * middle]] * excess
    if not analog:
        ratio = _gain(zeros, 4.0) / _gain(poles, 4.0)
        gain = gain * xp.real(ratio + 0j)
        count = sum(map(len, poles)) - sum(map(len, zeros))
        zeros = [[(4 + r) / (4 - r) for r in group] for group in zeros]
        poles = [[(4 + r) / (4 - r) for r in group] for group in poles]
        zeros += [[-1.0]] * count
    return _in_form(name, zeros, poles, gain, output, analog, xp)


def _traced(name: str, *values: Any) -> bool:
    return any(v is not None and known(numbers(v), name) is None for v in values)


def _require_edges(name: str, Wn: Any, analog: bool, fs: float | None) -> None:
    if analog:
        if not np.all(Wn > 0):
            raise ArgumentError(f"{name}: Wn must be positive, got {Wn.tolist()}")
    else:
        top = 1.0 if fs is None else fs / 2
        if not (np.all(Wn > 0) and np.all(Wn < top)):
            raise ArgumentError(
                f"{name}: Wn must lie between 0 and {top:g}, half the sampling rate, "
                f"got {Wn.tolist()}"
            )
    if len(Wn) == 2 and not Wn[0] < Wn[1]:
        raise ArgumentError(f"{name}: Wn must ascend, got {Wn.tolist()}")


def _flat(groups: list[Roots], xp: Any) -> Any:
    roots = [r for group in groups for r in group]
    if xp is np:
        return np.asarray(roots, np.complex128)
    if not roots:
        return fnp.zeros(0, dtypes.to_complex(dtypes.default(float)))
    return fnp.stack([fnp.asarray(r) + 0j for r in roots])


def _in_form(
    name: str, zeros: Any, poles: Any, gain: Any, output: str, analog: bool, xp: Any
) -> Any:
    z, p = _flat(zeros, xp), _flat(poles, xp)
    if output == "zpk":
        return fnp.asarray(z), fnp.asarray(p), fnp.asarray(gain)
    if xp is np:
        if output == "ba":
            b = gain * np.real(np.atleast_1d(np.poly(z)))
            return fnp.asarray(b), fnp.asarray(np.real(np.atleast_1d(np.poly(p))))
        pairing = "minimal" if analog else "nearest"
        return fnp.asarray(paired_sections(name, z, p, float(gain), pairing))
    if output == "ba":
        return fnp.real(polynomial(z)) * gain, fnp.real(polynomial(p))
    if analog:
        raise ArgumentError(
            f'{name}: a traced analog design has the forms "ba" and "zpk", not "sos"'
        )
    return _stacked(zeros, poles, gain)


def _stacked(zeros: list[Roots], poles: list[Roots], gain: Any) -> Array:
    """Returns sections of traced roots: pairs as they came out of the prototype."""

    def factors(groups: list[Roots]) -> list[Array]:
        pairs = [g for g in groups if len(g) == 2]
        single = [r for g in groups if len(g) == 1 for r in g]
        pairs += [single[i : i + 2] for i in range(0, len(single), 2)]
        out = []
        for pair in pairs:
            roots = fnp.stack([fnp.asarray(r) + 0j for r in pair])
            found = fnp.real(polynomial(roots))
            out.append(fnp.pad(found, (0, 3 - found.aval.size)))
        return out

    above, below = factors(zeros), factors(poles)
    # Poles of a single factor come first, as the sections of the least resonance do.
    rows = [fnp.concatenate([b, a]) for b, a in zip(reversed(above), reversed(below))]
    first = fnp.concatenate([rows[0][:3] * gain, rows[0][3:]])
    return fnp.stack([first, *rows[1:]])


# -- the families ----------------------------------------------------------------------

_docs = shared("""
    Args:
      N: the order; a bandpass or bandstop filter has twice as many poles.
      Wn: the edge, or for a bandpass or bandstop the two edges; between 0 and 1, half
        the sampling rate, or in the unit of `fs`; of an analog filter in rad/s. It may
        be traced.
      rp: ripple of the passband in dB, positive.
      rs: attenuation of the stopband in dB, positive.
      btype: "lowpass", "highpass", "bandpass" or "bandstop".
      analog: whether the filter is an analog one.
      output: "ba", "zpk" or "sos".
      fs: the sampling rate; it may be traced.

    Returns:
      Coefficients `b` and `a`; or zeros, poles and gain; or sections. With a traced
      `Wn` sections hold the poles in the prototype's order, where a concrete one pairs
      them as `zpk2sos`; the filter is the same.

    Raises:
      ArgumentError: unknown type or output, an edge is out of range, or a ripple is not
        positive.
      ShapeError: `Wn` has not as many edges as the type needs.

    Source: `scipy.signal.{name}`. T. W. Parks and C. S. Burrus, Digital Filter Design,
    1987.
""")


@_docs
def butter(
    N: int,
    Wn: Coefficients,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    fs: ArrayLike | None = None,
) -> Any:
    """Designs a Butterworth filter, whose passband is as flat as can be.

    Example:
      >>> b, a = butter(1, 0.5)
      >>> [round(float(c), 4) for c in b]
      [0.5, 0.5]
    """
    return _designed(
        "butter",
        prototypes.butterworth(natural("butter", "N", N)),
        Wn,
        btype,
        analog,
        output,
        fs,
    )


@_docs
def cheby1(
    N: int,
    rp: float,
    Wn: Coefficients,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    fs: ArrayLike | None = None,
) -> Any:
    """Designs a Chebyshev filter with ripples in the passband.

    Example:
      >>> b, a = cheby1(1, 3.0, 0.5)
      >>> [round(float(c), 4) for c in b]
      [0.5006, 0.5006]
    """
    prototype = prototypes.chebyshev(
        natural("cheby1", "N", N), prototypes.ripple("cheby1", "rp", rp)
    )
    return _designed("cheby1", prototype, Wn, btype, analog, output, fs)


@_docs
def cheby2(
    N: int,
    rs: float,
    Wn: Coefficients,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    fs: ArrayLike | None = None,
) -> Any:
    """Designs a Chebyshev filter with ripples in the stopband.

    Example:
      >>> b, a = cheby2(2, 40.0, 0.5)
      >>> round(float(b.sum() / a.sum()), 4)
      1.0
    """
    prototype = prototypes.inverse_chebyshev(
        natural("cheby2", "N", N), prototypes.ripple("cheby2", "rs", rs)
    )
    return _designed("cheby2", prototype, Wn, btype, analog, output, fs)


@_docs
def ellip(
    N: int,
    rp: float,
    rs: float,
    Wn: Coefficients,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    fs: ArrayLike | None = None,
) -> Any:
    """Designs an elliptic filter, with ripples in both bands and the sharpest edge.

    Raises:
      ArgumentError: `rs` is not above `rp`.

    Example:
      >>> b, a = ellip(3, 1.0, 40.0, 0.5)
      >>> round(float(b.sum() / a.sum()), 4)
      1.0
    """
    low, high = (
        prototypes.ripple("ellip", "rp", rp),
        prototypes.ripple("ellip", "rs", rs),
    )
    if low >= high:
        raise ArgumentError(f"ellip: rs must be above rp, got rp={low}, rs={high}")
    prototype = prototypes.elliptic(natural("ellip", "N", N), low, high)
    return _designed("ellip", prototype, Wn, btype, analog, output, fs)


@_docs
def bessel(
    N: int,
    Wn: Coefficients,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    norm: str = "phase",
    fs: ArrayLike | None = None,
) -> Any:
    """Designs a Bessel filter, whose delay is as flat as can be.

    Args:
      norm: what `Wn` is: "phase", where the phase is half its limit; "delay", the
        reciprocal of the delay at 0; "mag", where the gain is -3 dB.

    Raises:
      ArgumentError: there is no such `norm`.

    Example:
      >>> b, a = bessel(2, 0.5)
      >>> round(float(b.sum() / a.sum()), 4)
      1.0
    """
    if norm not in ("phase", "delay", "mag"):
        raise ArgumentError(
            f'bessel: norm must be "phase", "delay" or "mag", got {norm!r}'
        )
    prototype = prototypes.bessel("bessel", natural("bessel", "N", N), norm)
    return _designed("bessel", prototype, Wn, btype, analog, output, fs)


# -- filters of one frequency ----------------------------------------------------------


def _peak_parts(name: str, w0: Any, Q: Any, fs: Any) -> tuple[Array, Array]:
    """Returns the gain and the cosine that both filters are made of."""
    w0, Q, fs = promote_inexact(name, w0, Q, fs)
    w = 2 * w0 / fs
    host = known(w, name)
    if host is not None and not 0 < float(host) < 1:
        raise ArgumentError(
            f"{name}: w0 must lie between 0 and fs / 2, got w0={float(w0)}, "
            f"fs={float(fs)}"
        )
    w = math.pi * w
    gain = 1 / (1 + fnp.tan(w / Q / 2))
    return gain, fnp.cos(w)


_docs_one = shared("""
    Args:
      w0: the frequency, between 0 and fs / 2; it may be traced, and so may the others.
      Q: w0 divided by the width of the band at -3 dB.
      fs: the sampling rate.

    Returns:
      `b` and `a`, float array[3] each.

    Raises:
      ArgumentError: the frequency is out of range.

    Source: `scipy.signal.{name}`. S. J. Orfanidis, Introduction to Signal Processing,
    1996.
""")


@_docs_one
def iirnotch(w0: ArrayLike, Q: ArrayLike, fs: ArrayLike = 2.0) -> tuple[Array, Array]:
    """Designs a filter that takes one frequency out.

    Example:
      >>> b, a = iirnotch(0.5, 10.0)
      >>> round(float(b.sum() / a.sum()), 4)
      1.0
    """
    gain, cosine = _peak_parts("iirnotch", w0, Q, fs)
    one = fnp.ones_like(gain)
    b = gain * fnp.stack([one, -2 * cosine, one])
    return b, fnp.stack([one, -2 * gain * cosine, 2 * gain - 1])


@_docs_one
def iirpeak(w0: ArrayLike, Q: ArrayLike, fs: ArrayLike = 2.0) -> tuple[Array, Array]:
    """Designs a filter that passes one frequency.

    Example:
      >>> b, a = iirpeak(0.5, 10.0)
      >>> abs(round(float(b.sum()), 4))
      0.0
    """
    gain, cosine = _peak_parts("iirpeak", w0, Q, fs)
    one = fnp.ones_like(gain)
    b = (1 - gain) * fnp.stack([one, 0 * one, -one])
    return b, fnp.stack([one, -2 * gain * cosine, 2 * gain - 1])


def iircomb(
    w0: float,
    Q: ArrayLike,
    ftype: str = "notch",
    fs: float = 2.0,
    *,
    pass_zero: bool = False,
) -> tuple[Array, Array]:
    """Designs a filter that takes out, or passes, the multiples of a frequency.

    Args:
      w0: the frequency, between 0 and fs / 2, a part of `fs`.
      Q: w0 divided by the width of a band at -3 dB; it may be traced.
      ftype: "notch" or "peak".
      fs: the sampling rate.
      pass_zero: whether a notch, or a peak, lies between the multiples, so that 0
        passes a notch, or a peak stands at 0.

    Returns:
      `b` and `a`, float array[fs / w0 + 1] each.

    Raises:
      ArgumentError: the frequency is out of range or no part of `fs`, or there is no
        such `ftype`.

    Example:
      >>> b, a = iircomb(0.5, 10.0)
      >>> abs(round(float(b.sum()), 4))
      0.0

    Source: `scipy.signal.iircomb`. S. J. Orfanidis, Introduction to Signal Processing,
    1996.
    """
    name = "iircomb"
    if ftype not in ("notch", "peak"):
        raise ArgumentError(f'{name}: ftype must be "notch" or "peak", got {ftype!r}')
    at, rate = number(name, "w0", w0), number(name, "fs", fs)
    if not 0 < at < rate / 2:
        raise ArgumentError(
            f"{name}: w0 must lie between 0 and fs / 2, got w0={at}, fs={rate}"
        )
    order = round(rate / at)
    if abs(at - rate / order) / rate > 1e-14:
        raise ArgumentError(f"{name}: w0 must be a part of fs, got w0={at}, fs={rate}")
    (q,) = promote_inexact(name, Q)
    width = fnp.tan(order * (2 * math.pi * at / rate) / q / 4)
    gain0, gain = (1.0, 0.0) if ftype == "notch" else (0.0, 1.0)
    sign = -1.0 if (ftype == "peak") == bool(pass_zero) else 1.0
    ax = sign * (1 - width) / (1 + width)
    first = (gain0 + gain * width) / (1 + width)
    last = sign * (gain0 - gain * width) / (1 + width)
    middle = fnp.zeros(order - 1, ax.dtype)
    one = fnp.ones(1, ax.dtype)
    return (
        fnp.concatenate([first[None], middle, last[None]]),
        fnp.concatenate([one, middle, ax[None]]),
    )


def gammatone(
    freq: ArrayLike,
    ftype: str,
    order: int | None = None,
    numtaps: int | None = None,
    fs: float | None = None,
) -> tuple[Array, Array]:
    """Designs a filter like those of the ear.

    Args:
      freq: the middle frequency, between 0 and fs / 2; it may be traced.
      ftype: "fir" or "iir".
      order: of "fir", 1 … 24; None is 4. That of "iir" is 4.
      numtaps: of "fir", the number of coefficients; None is 15, or 0.015 s.
      fs: the sampling rate; None is 2.

    Returns:
      `b` and `a`: float array[numtaps] and [1], or [5] and [9].

    Raises:
      ArgumentError: the frequency is out of range, there is no such `ftype`, or an
        option is not of its kind.

    Example:
      >>> gammatone(440.0, "iir", fs=16000.0)[1].shape
      (9,)

    Source: `scipy.signal.gammatone`. M. Slaney, An Efficient Implementation of the
    Patterson-Holdsworth Auditory Filter Bank, 1993.
    """
    name = "gammatone"
    if ftype not in ("fir", "iir"):
        raise ArgumentError(f'{name}: ftype must be "fir" or "iir", got {ftype!r}')
    rate = 2.0 if fs is None else number(name, "fs", fs)
    (at,) = promote_inexact(name, freq)
    host = known(at, name)
    if host is not None and not 0 < float(host) < rate / 2:
        raise ArgumentError(
            f"{name}: freq must lie between 0 and fs / 2 = {rate / 2}, got {freq}"
        )
    # The width of the ear's filters, in Hz.
    band = 2 * math.pi * 1.019 * (24.7 + at / 9.26449)
    if ftype == "fir":
        n = natural(name, "order", 4 if order is None else order)
        if n > 24:
            raise ArgumentError(f"{name}: order must be at most 24, got {n}")
        taps = max(int(rate * 0.015), 15) if numtaps is None else numtaps
        t = np.arange(natural(name, "numtaps", taps)) / rate
        where = band * fnp.asarray(t, at.dtype)
        rise = (n - 1) * fnp.log(fnp.where(where > 0, where, 1)) - math.lgamma(n)
        shape = fnp.exp(rise - where) * (where > 0 if n > 1 else 1)
        wave = fnp.cos(2 * math.pi * at * fnp.asarray(t, at.dtype))
        return 2 * band / rate * shape * wave, fnp.ones(1, at.dtype)
    if order is not None or numtaps is not None:
        raise ArgumentError(f'{name}: ftype="iir" takes neither order nor numtaps')
    angle, decay = 2 * math.pi / rate * at, fnp.exp(-band / rate)
    turn = fnp.cos(angle) + 1j * fnp.sin(angle)
    # The gain in units of the fourth power of 1 / fs.
    g1, g2 = -2 * turn * turn, 2 * decay * turn
    gain = fnp.ones_like(turn)
    for root in (math.sqrt(3 + 2**1.5), math.sqrt(3 - 2**1.5)):
        for sign in (-1, 1):
            gain = gain * (g1 + g2 * (fnp.cos(angle) + sign * root * fnp.sin(angle)))
    square = turn * turn
    below = -2 * decay * decay - 2 * square + 2 * (1 + square) * decay
    gain = fnp.abs(gain / below**4)
    b = [
        scale * fnp.cos(k * angle) * decay**k / gain
        for k, scale in enumerate((1, -4, 6, -4, 1))
    ]
    c = [fnp.cos(k * angle) for k in range(5)]
    a = [
        c[0],
        -8 * c[1],
        4 * (4 + 3 * c[2]),
        -8 * (6 * c[1] + c[3]),
        2 * (18 + 16 * c[2] + c[4]),
        -8 * (6 * c[1] + c[3]),
        4 * (4 + 3 * c[2]),
        -8 * c[1],
        c[0],
    ]
    return fnp.stack(b), fnp.stack([v * decay**k for k, v in enumerate(a)])
