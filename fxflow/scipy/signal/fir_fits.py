"""Filters without feedback that fit a response, and rules for their length."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.lax.axes import natural, number
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy.signal._recursions import Coefficients, known, numbers

Values = np.ndarray[Any, Any]

# -- Kaiser's rules --------------------------------------------------------------------


def kaiser_atten(numtaps: int, width: float) -> float:
    """Returns the attenuation of a filter that the Kaiser window makes, in dB.

    Args:
      numtaps: the number of coefficients.
      width: width of the transition, as a part of half the sampling rate.

    Returns:
      A float.

    Raises:
      ArgumentError: an argument is not a number.

    Example:
      >>> round(kaiser_atten(211, 0.1), 3)
      158.699

    Source: `scipy.signal.kaiser_atten`. J. F. Kaiser, Nonrecursive Digital Filter
    Design Using the I0-sinh Window Function, 1974.
    """
    n = natural("kaiser_atten", "numtaps", numtaps)
    return 2.285 * (n - 1) * math.pi * number("kaiser_atten", "width", width) + 7.95


def kaiser_beta(a: float) -> float:
    """Returns the shape of the Kaiser window for an attenuation.

    Args:
      a: the attenuation in dB.

    Returns:
      A float, `beta` of `kaiser`.

    Raises:
      ArgumentError: `a` is not a number.

    Example:
      >>> round(kaiser_beta(65.0), 4)
      6.2043

    Source: `scipy.signal.kaiser_beta`.
    """
    a = number("kaiser_beta", "a", a)
    if a > 50:
        return 0.1102 * (a - 8.7)
    return 0.5842 * (a - 21) ** 0.4 + 0.07886 * (a - 21) if a > 21 else 0.0


def kaiserord(ripple: float, width: float) -> tuple[int, float]:
    """Returns the number of coefficients and the shape of the Kaiser window.

    Args:
      ripple: the greatest deviation in dB, at least 8.
      width: width of the transition, as a part of half the sampling rate.

    Returns:
      The number of coefficients, and `beta` of `kaiser`.

    Raises:
      ArgumentError: `ripple` is less than 8 dB.

    Example:
      >>> kaiserord(65.0, 0.1)[0]
      81

    Source: `scipy.signal.kaiserord`.
    """
    a = abs(number("kaiserord", "ripple", ripple))
    if a < 8:
        raise ArgumentError(f"kaiserord: ripple must be at least 8 dB, got {a}")
    wide = number("kaiserord", "width", width)
    return math.ceil((a - 7.95) / 2.285 / (math.pi * wide) + 1), kaiser_beta(a)


# -- fits of a response ----------------------------------------------------------------


def _host(name: str, what: str, value: Any) -> Values:
    host = known(numbers(value), name)
    if host is None:
        raise ConcretizationError(
            f"{name}: {what} is traced: the design is computed on the host, outside of "
            "jit and grad"
        )
    return np.asarray(host, np.float64)


def _bands(name: str, bands: Any, rate: float) -> Values:
    """Returns edges of bands as an array[k, 2], in parts of the sampling rate."""
    edges = _host(name, "bands", bands).ravel()
    if not edges.size or edges.size % 2:
        raise ShapeError(
            f"{name}: bands must be pairs of edges, got {edges.size} numbers"
        )
    if not (np.all(edges >= 0) and np.all(edges <= rate / 2)):
        raise ArgumentError(
            f"{name}: bands must lie between 0 and fs / 2 = {rate / 2:g}, got "
            f"{edges.tolist()}"
        )
    pairs = edges.reshape(-1, 2) / rate
    if np.any(pairs[:, 0] >= pairs[:, 1]) or np.any(pairs[1:, 0] < pairs[:-1, 1]):
        raise ArgumentError(
            f"{name}: bands must ascend and not overlap, got {edges.tolist()}"
        )
    return pairs


def _weights(name: str, weight: Any, count: int) -> Values:
    if weight is None:
        return np.ones(count)
    found = _host(name, "weight", weight).ravel()
    if found.size != count:
        raise ShapeError(
            f"{name}: weight must have one number for each of {count} bands, got "
            f"{found.size}"
        )
    if not np.all(found > 0):
        raise ArgumentError(f"{name}: weight must be positive, got {found.tolist()}")
    return found


def firls(
    numtaps: int,
    bands: Any,
    desired: Any,
    *,
    weight: Any = None,
    fs: float | None = None,
) -> Array:
    """Designs a filter whose response is nearest to lines, in the mean of squares.

    Args:
      numtaps: the number of coefficients, odd.
      bands: array-like[2 k] or array-like[k, 2]: edges of bands, ascending.
      desired: array-like of the shape of `bands`: the response at each edge, not
        negative; linear in between.
      weight: array-like[k]: what the error in each band counts; None is ones.
      fs: the sampling rate; None is 2.

    Returns:
      Float array[numtaps], symmetric, computed on the host.

    Raises:
      ArgumentError: `numtaps` is even, edges are out of range or do not ascend, or a
        weight is not positive.
      ShapeError: `bands`, `desired` and `weight` are incompatible.

    Example:
      >>> firls(3, [0.0, 0.4, 0.6, 1.0], [1.0, 1.0, 0.0, 0.0]).round(3)
      Array([0.307, 0.5  , 0.307], dtype=float32)

    Source: `scipy.signal.firls`.
    """
    name = "firls"
    n = natural(name, "numtaps", numtaps)
    if n % 2 == 0:
        raise ArgumentError(f"{name}: numtaps must be odd, got {n}")
    rate = 2.0 if fs is None else number(name, "fs", fs)
    # In units of half the sampling rate, as the integrals below are.
    pairs = 2 * _bands(name, bands, rate)
    levels = _host(name, "desired", desired).ravel()
    if levels.size != pairs.size:
        raise ShapeError(
            f"{name}: desired must have as many numbers as bands, {pairs.size}, got "
            f"{levels.size}"
        )
    lines = levels.reshape(-1, 2)
    weights = _weights(name, weight, len(pairs))
    m = (n - 1) // 2
    k = np.arange(n)[:, None, None]
    parts = (np.sinc(pairs * k) * pairs)[..., 1] - (np.sinc(pairs * k) * pairs)[..., 0]
    q = parts @ weights
    at = np.arange(m + 1)
    matrix = q[np.abs(at[:, None] - at)] + q[at[:, None] + at]
    slope = (lines[:, 1] - lines[:, 0]) / (pairs[:, 1] - pairs[:, 0])
    offset = lines[:, 0] - pairs[:, 0] * slope
    k = k[: m + 1]
    ends = pairs * (slope[:, None] * pairs + offset[:, None]) * np.sinc(pairs * k)
    with np.errstate(divide="ignore", invalid="ignore"):
        bent = slope[:, None] * np.cos(np.pi * pairs * k) / (np.pi * k) ** 2
    bent[0] = -slope[:, None] * pairs**2 / 2
    ends = ends + bent
    right = (ends[..., 1] - ends[..., 0]) @ weights
    a = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return fnp.asarray(np.concatenate([a[:0:-1], [2 * a[0]], a[1:]]))


_TYPES = ("bandpass", "differentiator", "hilbert")


def _extrema(error: Values, count: int) -> Values:
    """Returns places of `count` errors that alternate in sign and are great."""
    sign = np.sign(error)
    cuts = np.flatnonzero(sign[1:] * sign[:-1] < 0) + 1
    runs = np.split(np.arange(error.size), cuts)
    places = [int(run[np.argmax(np.abs(error[run]))]) for run in runs]
    while len(places) > count:
        heights = np.abs(error[places])
        if len(places) == count + 1:
            places.pop(0 if heights[0] < heights[-1] else -1)
            continue
        least = int(np.argmin(heights))
        if least in (0, len(places) - 1):
            places.pop(least)
        else:
            # Its neighbours have one sign: the lower one goes with it.
            side = -1 if heights[least - 1] < heights[least + 1] else 1
            for j in sorted((least, least + side), reverse=True):
                places.pop(j)
    return np.asarray(places)


def _on_grid(x: Values, nodes: Values, values: Values) -> Values:
    """Returns the polynomial through nodes, by the barycentric formula."""
    gaps = 2 * (nodes[:, None] - nodes)
    np.fill_diagonal(gaps, 1)
    weights = 1 / np.prod(gaps, 1)
    away = x[:, None] - nodes
    hit = np.abs(away) < 1e-15
    terms = weights / np.where(hit, 1, away)
    out = terms @ values / terms.sum(1)
    rows, columns = np.nonzero(hit)
    out[rows] = values[columns]
    return np.asarray(out)


def remez(
    numtaps: int,
    bands: Any,
    desired: Any,
    *,
    weight: Any = None,
    type: str = "bandpass",
    maxiter: int = 25,
    grid_density: int = 16,
    fs: float | None = None,
) -> Array:
    """Designs a filter whose greatest error in bands is least.

    Args:
      numtaps: the number of coefficients.
      bands: array-like[2 k]: edges of bands, ascending.
      desired: array-like[k]: the response in each band.
      weight: array-like[k]: what the error in each band counts; None is ones.
      type: "bandpass", a response in bands; "differentiator", one that is proportional
        to the frequency; "hilbert", one that is odd.
      maxiter: the maximum number of exchanges.
      grid_density: how many frequencies lie between two extrema.
      fs: the sampling rate; None is 1.

    Returns:
      Float array[numtaps], symmetric or antisymmetric, computed on the host.

    Raises:
      ArgumentError: there is no such `type`, edges are out of range or do not ascend,
        a weight is not positive, or the exchanges do not settle in `maxiter` steps.
      ShapeError: `bands`, `desired` and `weight` are incompatible.

    Example:
      >>> remez(5, [0.0, 0.1, 0.3, 0.5], [1.0, 0.0]).round(3)
      Array([0.06 , 0.299, 0.38 , 0.299, 0.06 ], dtype=float32)

    Source: `scipy.signal.remez`. J. H. McClellan and T. W. Parks, A Unified Approach to
    the Design of Optimum FIR Linear Phase Digital Filters, 1973.
    """
    name = "remez"
    n = natural(name, "numtaps", numtaps, 3)
    if type not in _TYPES:
        listed = ", ".join(f'"{t}"' for t in _TYPES)
        raise ArgumentError(f"{name}: type must be one of {listed}, got {type!r}")
    rate = 1.0 if fs is None else number(name, "fs", fs)
    pairs = _bands(name, bands, rate)
    levels = _host(name, "desired", desired).ravel()
    if levels.size != len(pairs):
        raise ShapeError(
            f"{name}: desired must have one number for each of {len(pairs)} bands, got "
            f"{levels.size}"
        )
    weights = _weights(name, weight, len(pairs))
    odd = type != "bandpass"
    terms = n // 2 + (n % 2 and not odd)
    density = natural(name, "grid_density", grid_density)
    if density > 10**6:
        raise ArgumentError(
            f"{name}: grid_density must be at most 1000000, got {density}"
        )
    step = 0.5 / (density * terms)
    parts = []
    for index, (low, high) in enumerate(pairs):
        # The response is 0 at 0, at half the rate, or at both, whatever is asked.
        low = max(low, step) if odd else low
        high = min(high, 0.5 - step) if odd == bool(n % 2) else high
        count = max(round((high - low) / step), 1) + 1
        parts.append((np.linspace(low, high, count), np.full(count, index)))
    f = np.concatenate([p[0] for p in parts])
    band = np.concatenate([p[1] for p in parts])
    target, heavy = levels[band], weights[band]
    if type == "differentiator":
        slopes = np.abs(target) >= 1e-4
        target, heavy = target * f, np.where(slopes, heavy / f, heavy)
    shape = _shape(n, odd, f)
    found = _exchanged(f, target / shape, heavy * shape, terms, maxiter)
    if found is None:
        raise ArgumentError(
            f"{name}: the exchanges do not settle in maxiter={maxiter} steps: widen "
            "the transitions, or ask for fewer coefficients"
        )
    return fnp.asarray(_coefficients(n, odd, found))


def _shape(n: int, odd: bool, f: Values) -> Values:
    """Returns the factor beside a sum of cosines in a response of a symmetry."""
    if odd:
        return np.sin(2 * np.pi * f) if n % 2 else np.sin(np.pi * f)
    return np.ones_like(f) if n % 2 else np.cos(np.pi * f)


def _exchanged(
    f: Values, target: Values, heavy: Values, terms: int, maxiter: int
) -> tuple[Values, Values] | None:
    """Returns nodes cos(2 π f) and values of the best sum of cosines, or None."""
    x = np.cos(2 * np.pi * f)
    count = terms + 1
    if x.size < count:
        return None
    at = np.round(np.linspace(0, x.size - 1, count)).astype(int)
    signs = (-1.0) ** np.arange(count)
    for _ in range(max(int(maxiter), 1)):
        nodes = x[at]
        gaps = 2 * (nodes[:, None] - nodes)
        np.fill_diagonal(gaps, 1)
        bary = 1 / np.prod(gaps, 1)
        level = (bary @ target[at]) / (bary @ (signs / heavy[at]))
        values = target[at] - signs * level / heavy[at]
        error = heavy * (target - _on_grid(x, nodes, values))
        error[at] = signs * level
        if np.abs(error).max() <= abs(level) * (1 + 1e-7) + 1e-14:
            return nodes, values
        at = _extrema(error, count)
        if at.size < count:
            return None
        signs = np.sign(error[at[0]]) * (-1.0) ** np.arange(count)
    return None


def _coefficients(n: int, odd: bool, found: tuple[Values, Values]) -> Values:
    """Returns a filter whose response is a sum of cosines, by its samples."""
    f = np.arange(n // 2 + 1) / n
    values = _on_grid(np.cos(2 * np.pi * f), *found) * _shape(n, odd, f)
    spectrum = values * np.exp(-1j * np.pi * f * (n - 1)) * (1j if odd else 1)
    return np.asarray(np.fft.irfft(spectrum, n))


# -- other filters ---------------------------------------------------------------------


def minimum_phase(
    h: Coefficients,
    method: str = "homomorphic",
    n_fft: int | None = None,
    *,
    half: bool = True,
) -> Array:
    """Returns the filter of minimum phase that a symmetric one gives.

    It is differentiable in `h`.

    Args:
      h: float array-like[n], n > 2: a symmetric filter.
      method: "homomorphic", which works for any filter, or "hilbert", for equiripple
        filters with unit gain.
      n_fft: the length of the transforms; None is a power of 2 that is long enough.
      half: whether the result has half the length, and the square root of the response
        of `h`; False, for "homomorphic" only, is the same response.

    Returns:
      Float array[(n + 1) // 2], or array[n] without `half`.

    Raises:
      ArgumentError: unknown method, `n_fft` is less than n, or `half` is False with
        "hilbert".
      ShapeError: `h` is not a vector of more than 2 coefficients.

    Example:
      >>> minimum_phase([0.25, 0.5, 0.25]).round(2)
      Array([0.49, 0.51], dtype=float32)

    Source: `scipy.signal.minimum_phase`.
    """
    name = "minimum_phase"
    if method not in ("homomorphic", "hilbert"):
        raise ArgumentError(
            f'{name}: method must be "homomorphic" or "hilbert", got {method!r}'
        )
    if method == "hilbert" and not half:
        raise ArgumentError(f'{name}: half=False needs method="homomorphic"')
    h = fnp.real(promote_inexact(name, numbers(h))[0])
    if h.ndim != 1 or h.size <= 2:
        raise ShapeError(
            f"{name}: h must be a vector of more than 2 coefficients, got {h.aval}"
        )
    if n_fft is None:
        n_fft = 2 ** math.ceil(math.log2(2 * (h.size - 1) / 0.01))
    n_fft = natural(name, "n_fft", n_fft)
    if n_fft < h.size:
        raise ArgumentError(
            f"{name}: n_fft must be at least the length of h, {h.size}, got {n_fft}"
        )
    return _minimum_phase(h, method, n_fft, bool(half))


@library("method", "n_fft", "half")
def _minimum_phase(h: Any, method: str, n_fft: int, half: bool) -> Array:
    n, dtype = h.aval.size, h.aval.dtype
    kept = n // 2 + n % 2 if half else n
    if method == "homomorphic":
        size = fnp.abs(fnp.fft.fft(h, n_fft))
        size = size + 1e-7 * fnp.min(fnp.where(size > 0, size, fnp.inf))
        logarithm = fnp.log(size) * (0.5 if half else 1.0)
        fold = np.zeros(n_fft)
        fold[0] = 1
        fold[1 : n_fft // 2] = 2
        if n_fft % 2:
            fold[n_fft // 2] = 1
        cepstrum = fnp.real(fnp.fft.ifft(logarithm)) * fnp.asarray(fold, dtype)
        out = fnp.real(fnp.fft.ifft(fnp.exp(fnp.fft.fft(cepstrum))))
        return out[:kept]
    turn = fnp.asarray(
        np.exp(2j * np.pi * (np.arange(n_fft) * (n // 2) % n_fft) / n_fft)
    )
    response = fnp.real(fnp.fft.fft(h, n_fft) * turn.astype(fnp.fft.fft(h, 1).dtype))
    above, below = fnp.max(response) - 1, -fnp.min(response)
    scale = 4 / (fnp.sqrt(1 + above + below) + fnp.sqrt(1 - above + below)) ** 2
    size = fnp.sqrt(fnp.maximum((response + below) * scale, 0)) + 1e-10
    sides = np.zeros(n_fft)
    sides[1 : n_fft // 2], sides[n_fft // 2 + 1 :] = 1, -1
    phase = fnp.fft.fft(fnp.asarray(sides, dtype) * fnp.fft.ifft(fnp.log(size)))
    return fnp.real(fnp.fft.ifft(size * fnp.exp(phase)))[:kept]
