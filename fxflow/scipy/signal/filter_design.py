"""Recursive filters by their frequency response.

The prototypes, lowpass filters with their edge at 1 rad/s, are computed on the host, in
64 bits, from the order and the ripples. The cutoff may be traced: the prototype's roots
are moved to it by arithmetic, so every design can be differentiated by its edges.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
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
      ArgumentError: there is no such type or output, an edge is out of range, or a
        ripple is not positive.
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
