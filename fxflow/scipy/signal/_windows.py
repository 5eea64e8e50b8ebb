"""Windows for spectra by SciPy's names, computed by NumPy in 64 bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.errors import ArgumentError

Values = np.ndarray[Any, Any]


def _cosines(*weights: float) -> Callable[[int], Values]:
    """Returns a window that is an alternating sum of cosines."""

    def window(n: int) -> Values:
        angles = np.linspace(-math.pi, math.pi, n)
        terms = [w * np.cos(k * angles) for k, w in enumerate(weights)]
        return np.asarray(sum(terms))

    return window


def _places(n: int) -> Values:
    """Returns distances from the middle, -1 and 1 at the ends."""
    return np.linspace(-1, 1, n)


def _from_middle(n: int) -> Values:
    """Returns distances from the middle in points."""
    return np.arange(n) - (n - 1) / 2


def _parzen(n: int) -> Values:
    x = np.abs(_from_middle(n)) / (n / 2)
    inner = 1 - 6 * x**2 + 6 * x**3
    return np.where(np.abs(_from_middle(n)) <= (n - 1) / 4, inner, 2 * (1 - x) ** 3)


def _bohman(n: int) -> Values:
    x = np.abs(_places(n))
    out = (1 - x) * np.cos(math.pi * x) + np.sin(math.pi * x) / math.pi
    out[[0, -1]] = 0
    return np.asarray(out)


def _barthann(n: int) -> Values:
    x = np.abs(np.arange(n) / (n - 1) - 0.5)
    return np.asarray(0.62 - 0.48 * x + 0.38 * np.cos(2 * math.pi * x))


def _tukey(n: int, alpha: float = 0.5) -> Values:
    if alpha <= 0:
        return np.ones(n)
    x = np.abs(_places(n))
    flat = 1 - min(alpha, 1.0)
    sides = 0.5 * (1 + np.cos(math.pi * (x - flat) / (1 - flat)))
    return np.where(x <= flat, 1, sides)


def _exponential(n: int, center: float | None = None, tau: float = 1.0) -> Values:
    middle = (n - 1) / 2 if center is None else center
    return np.asarray(np.exp(-np.abs(np.arange(n) - middle) / tau))


def _chebyshev(n: int, at: float) -> Values:
    """Returns a window whose side lobes are all `at` dB below the main one."""
    order = n - 1.0
    beta = np.cosh(np.arccosh(10 ** (abs(at) / 20)) / order)
    x = beta * np.cos(np.pi * np.arange(n) / n)
    p = np.cos(order * np.arccos(np.clip(x, -1, 1)))
    big = np.cosh(order * np.arccosh(np.maximum(np.abs(x), 1)))
    p = np.where(x > 1, big, np.where(x < -1, (2 * (n % 2) - 1) * big, p))
    if n % 2:
        w = np.real(np.fft.fft(p))
        half = (n + 1) // 2
        w = np.concatenate([w[half - 1 : 0 : -1], w[:half]])
    else:
        w = np.real(np.fft.fft(p * np.exp(1j * np.pi / n * np.arange(n))))
        half = n // 2 + 1
        w = np.concatenate([w[half - 1 : 0 : -1], w[1:half]])
    return np.asarray(w / w.max())


def _taylor(n: int, nbar: int = 4, sll: float = 30, norm: bool = True) -> Values:
    """Returns a window whose first side lobes are about `sll` dB below the main one."""
    a = np.arccosh(10 ** (sll / 20)) / np.pi
    spread = nbar**2 / (a**2 + (nbar - 0.5) ** 2)
    m = np.arange(1, nbar)
    weights = np.empty(nbar - 1)
    signs = np.where(m % 2, 1, -1)
    for k in range(nbar - 1):
        top = signs[k] * np.prod(1 - m[k] ** 2 / spread / (a**2 + (m - 0.5) ** 2))
        others = np.delete(m, k)
        weights[k] = top / (2 * np.prod(1 - m[k] ** 2 / others**2))

    def at(x: Values) -> Values:
        angles = 2 * np.pi * m[:, None] * (x - n / 2 + 0.5) / n
        return np.asarray(1 + 2 * weights @ np.cos(angles))

    w = at(np.arange(n))
    return w / at(np.array([(n - 1) / 2])) if norm else w


def slepian_sequences(n: int, NW: float, count: int) -> tuple[Values, Values]:
    """Returns sequences with the most energy below NW / n, and which part that is.

    Returns:
      Array[count, n], whose squares add up to 1, and array[count].
    """
    width = NW / n
    at = np.arange(n)
    diagonal = ((n - 1 - 2 * at) / 2.0) ** 2 * np.cos(2 * np.pi * width)
    beside = at[1:] * (n - at[1:]) / 2.0
    matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    w = np.linalg.eigh(matrix)[1].T[::-1][:count].copy()
    # Even ones have a positive mean, odd ones begin with a positive lobe.
    w[0::2] *= np.where(w[0::2].sum(1) < 0, -1, 1)[:, None]
    for row in w[1::2]:
        first = row[row**2 > max(1e-7, 1 / n)]
        if first.size and first[0] < 0:
            row *= -1
    correlations = np.stack([np.correlate(row, row, "full")[n - 1 :] for row in w])
    weights = 4 * width * np.sinc(2 * width * at)
    weights[0] = 2 * width
    return w, np.asarray(correlations @ weights)


def _slepian(n: int, NW: float) -> Values:
    w = slepian_sequences(n, NW, 1)[0][0]
    w = w / w.max()
    # As SciPy: an even one is scaled as if it had a sample at its middle.
    return np.asarray(w if n % 2 else w * (n**2 / (n**2 + NW)))


def _hamming(n: int, alpha: float) -> Values:
    return _cosines(alpha, 1 - alpha)(n)


# Weights of the cosine sums: D'Antona and Ferrero 2006; Nuttall 1981; Harris 1978.
_PLAIN: dict[str, Callable[[int], Values]] = {
    "boxcar": np.ones,
    "triang": lambda n: 1 - np.abs(_from_middle(n)) / ((n + n % 2) / 2),
    "parzen": _parzen,
    "bohman": _bohman,
    "blackman": _cosines(0.42, 0.5, 0.08),
    "nuttall": _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": _cosines(0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": _cosines(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
    "bartlett": lambda n: 1 - np.abs(_places(n)),
    "barthann": _barthann,
    "hann": _cosines(0.5, 0.5),
    "hamming": _cosines(0.54, 0.46),
    "cosine": lambda n: np.sin(math.pi / n * (np.arange(n) + 0.5)),
    "lanczos": lambda n: np.sinc(_places(n)),
    "tukey": _tukey,
    "exponential": _exponential,
    "taylor": _taylor,
}
# Those whose parameters must be given, in a tuple after the name.
_SHAPED: dict[str, Callable[..., Values]] = {
    "kaiser": np.kaiser,
    "gaussian": lambda n, std: np.exp(-0.5 * (_from_middle(n) / std) ** 2),
    "general_gaussian": lambda n, p, sig: np.exp(
        -0.5 * np.abs(_from_middle(n) / sig) ** (2 * p)
    ),
    "general_cosine": lambda n, weights: _cosines(*weights)(n),
    "general_hamming": _hamming,
    "chebwin": _chebyshev,
    "dpss": _slepian,
    "taylor": _taylor,
    "tukey": _tukey,
    "exponential": _exponential,
}
_ALSO = {
    "box": "boxcar",
    "ones": "boxcar",
    "rect": "boxcar",
    "rectangular": "boxcar",
    "bart": "bartlett",
    "black": "blackman",
    "ham": "hamming",
    "han": "hann",
    "hamm": "hamming",
    "bkh": "blackmanharris",
    "nut": "nuttall",
    "flat": "flattop",
    "par": "parzen",
    "poisson": "exponential",
    "halfcosine": "cosine",
    "sinc": "lanczos",
    "ksr": "kaiser",
    "gauss": "gaussian",
    "taylorwin": "taylor",
    "brthan": "barthann",
    "bth": "barthann",
    "bman": "bohman",
    "bmn": "bohman",
    "blk": "blackman",
    "brt": "bartlett",
    "blackharr": "blackmanharris",
    "flt": "flattop",
    "nutl": "nuttall",
    "parz": "parzen",
    "tri": "triang",
    "triangle": "triang",
    "tuk": "tukey",
    "gss": "gaussian",
}


def window_of(name: str, window: Any, n: int, periodic: bool = True) -> Values:
    """Returns a window of `n` points.

    Args:
      name: of the function, for the message.
      window: the window's name, to which "_periodic" or "_symmetric" may be added; a
        tuple of it and its parameters; or a number, which is a Kaiser window's.
      n: number of points.
      periodic: whether the points are one period of it, unless the name says.

    Raises:
      ArgumentError: unknown window, or it asks for other parameters.
    """
    if isinstance(window, int | float):
        window = ("kaiser", window)
    given = window if isinstance(window, tuple | list) else (window,)
    kind, *parameters = given or (None,)
    if isinstance(kind, str):
        for ending in ("_periodic", "_symmetric"):
            if kind.endswith(ending):
                kind, periodic = kind.removesuffix(ending), ending == "_periodic"
    known = _SHAPED if parameters else _PLAIN
    make = known.get(_ALSO.get(kind, kind)) if isinstance(kind, str) else None
    if make is None:
        raise ArgumentError(
            f"{name}: no window is called {window!r}: give one of "
            f"{', '.join(sorted(_PLAIN))}; a tuple of a name and its parameters, "
            f"{', '.join(sorted(_SHAPED))}; or the values as an array"
        )
    if n == 1:
        return np.ones(1)
    try:
        return np.asarray(make(n + periodic, *parameters), np.float64)[:n]
    except TypeError as error:
        raise ArgumentError(
            f"{name}: window {window!r} has other parameters: {error}"
        ) from error
