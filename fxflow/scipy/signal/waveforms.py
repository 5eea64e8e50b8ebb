"""Signals of a known form: sweeps, waves, pulses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, natural, shape_or_length
from fxflow.numpy._operands import ArrayLike, array_of, promote_inexact
from fxflow.scipy.signal._recursions import numbers

_METHODS = {
    "linear": "linear",
    "lin": "linear",
    "li": "linear",
    "quadratic": "quadratic",
    "quad": "quadratic",
    "q": "quadratic",
    "logarithmic": "logarithmic",
    "log": "logarithmic",
    "lo": "logarithmic",
    "hyperbolic": "hyperbolic",
    "hyp": "hyperbolic",
}


@library("method", "vertex_zero", "complex")
def chirp(
    t: ArrayLike,
    f0: ArrayLike,
    t1: ArrayLike,
    f1: ArrayLike,
    method: str = "linear",
    phi: ArrayLike = 0.0,
    vertex_zero: bool = True,
    *,
    complex: bool = False,
) -> Array:
    """Returns a cosine whose frequency moves from one value to another.

    Args:
      t: real array-like[...]: times.
      f0: real array-like: the frequency at time 0.
      t1: real array-like: the time at which it is `f1`.
      f1: real array-like.
      method: how it moves: "linear", "quadratic", "logarithmic" or "hyperbolic".
      phi: real array-like: the phase at time 0, in degrees.
      vertex_zero: whether the vertex of a "quadratic" is at time 0 rather than `t1`.
      complex: whether to return exp(i phase).

    Returns:
      Float array of the joint shape, or a complex one. Where "logarithmic" frequencies
      have not one sign, or a "hyperbolic" one is 0, nan.

    Raises:
      ArgumentError: unknown method.

    Example:
      >>> chirp(np.array([0.0, 0.5, 1.0]), 0.0, 1.0, 2.0)
      Array([1.       , 0.7071068, 1.       ], dtype=float32)

    Source: `scipy.signal.chirp`.
    """
    if method not in _METHODS:
        known = ", ".join(f'"{m}"' for m in dict.fromkeys(_METHODS.values()))
        raise ArgumentError(f"chirp: method must be one of {known}, got {method!r}")
    t, f0, t1, f1, phi = promote_inexact("chirp", t, f0, t1, f1, phi)
    if dtypes.is_complex(t.aval.dtype):
        raise ArgumentError(f"chirp: times and frequencies must be real, got {t.aval}")
    kind = _METHODS[method]
    if kind == "linear":
        cycles = f0 * t + (f1 - f0) / (2 * t1) * t * t
    elif kind == "quadratic":
        slope = (f1 - f0) / (t1 * t1)
        if vertex_zero:
            cycles = f0 * t + slope * t**3 / 3
        else:
            cycles = f1 * t + slope * ((t1 - t) ** 3 - t1**3) / 3
    elif kind == "logarithmic":
        same = f0 == f1
        ratio = fnp.where(same, 2.0, f1 / f0)
        cycles = t1 * f0 / fnp.log(ratio) * (ratio ** (t / t1) - 1)
        cycles = fnp.where(same, f0 * t, fnp.where(f0 * f1 > 0, cycles, fnp.nan))
    else:
        same = f0 == f1
        apart = fnp.where(same, 1.0, f0 - f1)
        sing = -f1 * t1 / apart
        sing = fnp.where(same, 1.0, sing)
        cycles = -sing * f0 * fnp.log(fnp.abs(1 - fnp.where(same, 0, t / sing)))
        cycles = fnp.where(same, f0 * t, cycles)
        cycles = fnp.where((f0 == 0) | (f1 == 0), fnp.nan, cycles)
    phase = 2 * math.pi * cycles + phi * (math.pi / 180)
    if complex:
        return fnp.cos(phase) + 1j * fnp.sin(phase)
    return fnp.cos(phase)


@library()
def sawtooth(t: ArrayLike, width: ArrayLike = 1.0) -> Array:
    """Returns a wave of period 2π that rises from -1 to 1 and falls back.

    Args:
      t: real array-like[...]: times.
      width: real array-like: the part of a period in which it rises, 0 … 1.

    Returns:
      Float array of the joint shape; nan where `width` is not in 0 … 1.

    Example:
      >>> sawtooth(np.array([0.0, np.pi / 2, np.pi]))
      Array([-1. , -0.5,  0. ], dtype=float32)

    Source: `scipy.signal.sawtooth`.
    """
    t, width = promote_inexact("sawtooth", t, width)
    at = fnp.mod(t, 2 * math.pi)
    rise, fall = math.pi * width, math.pi * (1 - width)
    up = at / fnp.where(rise == 0, 1, rise) - 1
    down = (math.pi * (width + 1) - at) / fnp.where(fall == 0, 1, fall)
    out = fnp.where(at < 2 * rise, up, down)
    return fnp.where((width >= 0) & (width <= 1), out, fnp.nan)


@library()
def square(t: ArrayLike, duty: ArrayLike = 0.5) -> Array:
    """Returns a wave of period 2π that is 1 and then -1.

    Args:
      t: real array-like[...]: times.
      duty: real array-like: the part of a period in which it is 1, 0 … 1.

    Returns:
      Float array of the joint shape; nan where `duty` is not in 0 … 1.

    Example:
      >>> square(np.array([0.0, 1.0, 4.0]))
      Array([ 1.,  1., -1.], dtype=float32)

    Source: `scipy.signal.square`.
    """
    t, duty = promote_inexact("square", t, duty)
    at = fnp.mod(t, 2 * math.pi)
    out = fnp.where(at < 2 * math.pi * duty, 1.0, -1.0)
    out = fnp.where((duty >= 0) & (duty <= 1), out, fnp.nan)
    return out.astype(t.aval.dtype)


def gausspulse(
    t: ArrayLike | str,
    fc: float = 1000,
    bw: float = 0.5,
    bwr: float = -6,
    tpr: float = -60,
    retquad: bool = False,
    retenv: bool = False,
) -> Any:
    """Returns a cosine in a Gaussian envelope.

    Args:
      t: real array-like[...]: times; or "cutoff", for the time at which the envelope
        has fallen by `tpr`.
      fc: the frequency; it, `bw` and `bwr` may be traced.
      bw: the band's width, a part of `fc`.
      bwr: at which level the band ends, in dB, below 0.
      tpr: the level of "cutoff", in dB, below 0.
      retquad: whether to return also the sine in the envelope.
      retenv: whether to return also the envelope.

    Returns:
      Float array[...], or a tuple of the pulse, the sine and the envelope, those that
      are asked for; for "cutoff" a 0-d array.

    Raises:
      ArgumentError: `fc` is negative, `bw` is not positive, or `bwr` or `tpr` not
        negative.

    Example:
      >>> gausspulse(np.array([0.0, 1.0]), fc=1.0)
      Array([1.       , 0.4094329], dtype=float32)

    Source: `scipy.signal.gausspulse`.
    """
    checked: tuple[tuple[str, Any, int, str], ...] = (
        ("fc", fc, 0, "at least 0"),
        ("bw", bw, 1, "positive"),
        ("bwr", bwr, -1, "negative"),
        ("tpr", tpr, -1, "negative"),
    )
    for what, value, sign, said in checked:
        if not isinstance(value, int | float):
            continue
        if value < 0 if not sign else value * sign <= 0:
            raise ArgumentError(f"gausspulse: {what} must be {said}, got {value}")
    if isinstance(t, str):
        if t != "cutoff":
            raise ArgumentError(f'gausspulse: t must be times or "cutoff", got {t!r}')
        return _pulse(0.0, fc, bw, bwr, tpr)[3]
    parts = _pulse(t, fc, bw, bwr, tpr)
    kept = [parts[0]]
    kept += [parts[1]] if retquad else []
    kept += [parts[2]] if retenv else []
    return kept[0] if len(kept) == 1 else tuple(kept)


@library()
def _pulse(t: Any, fc: Any, bw: Any, bwr: Any, tpr: Any) -> tuple[Array, ...]:
    t, fc, bw, bwr, tpr = promote_inexact("gausspulse", t, fc, bw, bwr, tpr)
    # The envelope exp(-a t²) has a spectrum that is bwr dB down at fc (1 ± bw / 2).
    level = bwr * (math.log(10) / 20)
    a = -((math.pi * fc * bw) ** 2) / (4 * level)
    envelope = fnp.exp(-a * t * t)
    angle = 2 * math.pi * fc * t
    cutoff = fnp.sqrt(-tpr * (math.log(10) / 20) / a)
    return envelope * fnp.cos(angle), envelope * fnp.sin(angle), envelope, cutoff


def unit_impulse(shape: Any, idx: Any = None, dtype: Any = float) -> Array:
    """Returns zeros with a one.

    Args:
      shape: an integer or a sequence of integers.
      idx: where the one is: None, the first element; "mid", the middle one; an integer
        for each axis, or one for all of them.
      dtype: dtype of the result.

    Returns:
      Array of that shape.

    Raises:
      ArgumentError: `idx` is another string, or has not an integer for each axis.
      AxisError: `idx` is out of range.

    Example:
      >>> unit_impulse(5, "mid")
      Array([0., 0., 1., 0., 0.], dtype=float32)

    Source: `scipy.signal.unit_impulse`.
    """
    lengths = shape_or_length("unit_impulse", shape)
    if idx is None:
        idx = 0
    if isinstance(idx, str):
        if idx != "mid":
            raise ArgumentError(
                f'unit_impulse: idx must be None, "mid" or integers, got {idx!r}'
            )
        idx = tuple(n // 2 for n in lengths)
    if not isinstance(idx, tuple | list):
        idx = (idx,) * len(lengths)
    if len(idx) != len(lengths):
        raise ArgumentError(
            f"unit_impulse: idx must have an integer for each of {len(lengths)} axes, "
            f"got {idx!r}"
        )
    at = tuple(
        canonical_axis("unit_impulse", i, n, "idx")
        for i, n in zip(idx, lengths, strict=True)
    )
    return fnp.zeros(lengths, dtype).at[at].set(1)


@library()
def _swept(t: Any, poly: Any, phi: Any) -> Array:
    t, poly, phi = promote_inexact("sweep_poly", t, poly, phi)
    cycles = fnp.zeros_like(t)
    for k, c in enumerate(poly):
        cycles = cycles * t + c / (poly.shape[0] - k)
    return fnp.cos(2 * math.pi * cycles * t + phi * (math.pi / 180))


def sweep_poly(t: ArrayLike, poly: Any, phi: ArrayLike = 0) -> Array:
    """Returns a cosine whose frequency is a polynomial of time.

    Args:
      t: real array-like[...]: times.
      poly: real array-like[n]: its coefficients, the highest power first, or a
        `numpy.poly1d`.
      phi: real array-like: the phase at time 0, in degrees.

    Returns:
      Float array of the joint shape.

    Raises:
      ShapeError: `poly` is not a vector.

    Example:
      >>> sweep_poly(np.array([0.0, 0.5, 1.0]), [1.0, 0.0]).round(3)
      Array([ 1.   ,  0.707, -1.   ], dtype=float32)

    Source: `scipy.signal.sweep_poly`.
    """
    poly = poly.coeffs if isinstance(poly, np.poly1d) else numbers(poly)
    poly = fnp.atleast_1d(array_of(poly, "sweep_poly"))
    if poly.ndim != 1:
        raise ShapeError(f"sweep_poly: poly must be a vector, got {poly.aval}")
    return _swept(t, poly, phi)


#: For each number of bits the taps of a register with the longest period.
_TAPS: dict[int, tuple[int, ...]] = {
    2: (1,),
    3: (2,),
    4: (3,),
    5: (3,),
    6: (5,),
    7: (6,),
    8: (7, 6, 1),
    9: (5,),
    10: (7,),
    11: (9,),
    12: (11, 10, 4),
    13: (12, 11, 8),
    14: (13, 12, 2),
    15: (14,),
    16: (15, 13, 4),
    17: (14,),
    18: (11,),
    19: (18, 17, 14),
    20: (17,),
    21: (19,),
    22: (21,),
    23: (18,),
    24: (23, 22, 17),
    25: (22,),
    26: (25, 24, 20),
    27: (26, 25, 22),
    28: (25,),
    29: (27,),
    30: (29, 28, 7),
    31: (28,),
    32: (31, 30, 10),
}


def max_len_seq(
    nbits: int, state: Any = None, length: int | None = None, taps: Any = None
) -> tuple[Array, Array]:
    """Returns the bits of a shift register with feedback, of the longest period.

    Args:
      nbits: the number of bits of the register; 2 … 32 without `taps`.
      state: the bits that it begins with, not all 0; None is all 1.
      length: the number of bits to return; None is a period, 2^nbits - 1.
      taps: the bits that are fed back; None is those of a longest period.

    Returns:
      int8[length], and the register's state after it, int8[nbits]. They are computed on
      the host.

    Raises:
      ArgumentError: an argument is out of range, or `state` is all 0.

    Example:
      >>> max_len_seq(3)[0]
      Array([1, 1, 1, 0, 1, 0, 0], dtype=int8)

    Source: `scipy.signal.max_len_seq`.
    """
    name = "max_len_seq"
    n = natural(name, "nbits", nbits)
    if taps is None:
        if n not in _TAPS:
            raise ArgumentError(
                f"{name}: nbits must lie between 2 and 32 without taps, got {n}"
            )
        taps = _TAPS[n]
    places = np.unique(np.asarray(taps))
    if not places.size or places.min() < 0 or places.max() > n:
        raise ArgumentError(
            f"{name}: taps must be numbers between 0 and nbits = {n}, got {taps!r}"
        )
    count = 2**n - 1 if length is None else natural(name, "length", length, 0)
    bits = np.ones(n, bool) if state is None else np.asarray(state).astype(bool)
    if bits.shape != (n,) or not bits.any():
        raise ArgumentError(
            f"{name}: state must be {n} bits, not all 0, got {np.asarray(state)}"
        )
    out = np.zeros(count + n, np.int8)
    out[:n] = bits
    # A bit is the sum of those n and n - tap before it. Modulo 2 the square of this
    # recursion has its distances doubled, so that twice as many bits are known at once.
    back = np.array([n, *(n - int(p) % n for p in places)])
    done, scale = n, 1
    while done < out.size:
        while done >= 2 * scale * n:
            scale *= 2
        stop = min(done + scale * int(back.min()), out.size)
        for distance in back * scale:
            out[done:stop] ^= out[done - distance : stop - distance]
        done = stop
    return fnp.asarray(out[:count]), fnp.asarray(out[count:])
