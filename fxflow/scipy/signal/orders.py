"""The least order of a filter that does what is asked, on the host."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.lax.axes import number
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.signal import _prototypes as prototypes
from fxflow.scipy.signal._recursions import known, numbers
from fxflow.scipy.signal.filter_design import bessel, butter, cheby1, cheby2, ellip
from fxflow.scipy.special import ellipk, ellipkm1

Edges = np.ndarray[Any, Any]

_docs = shared("""
    Args:
      wp: the passband's edge, in the units of `butter`, or its two edges.
      ws: the stopband's edge or edges. A lowpass has `ws` above `wp`, a highpass below
        it; a bandpass has `wp` inside of `ws`, a bandstop `ws` inside of `wp`.
      gpass: the greatest loss in the passband in dB.
      gstop: the least attenuation in the stopband in dB.
      analog: whether the filter is an analog one.
      fs: the sampling rate; None is 2.

    Returns:
      The order, and the edge or edges to design with: float array[] or array[2].

    Raises:
      ArgumentError: an edge is out of range, edges are equal or not nested, or `gstop`
        is not above `gpass` > 0.
      ConcretizationError: an argument is traced: the order is computed on the host.

    Source: `scipy.signal.{name}`.
""")


# -- what the orders have in common ----------------------------------------------------


def _edges(name: str, what: str, value: Any, analog: bool, rate: float) -> Edges:
    host = known(numbers(value), name)
    if host is None:
        raise ConcretizationError(
            f"{name}: {what} is traced: the order is a shape; compute it outside of jit"
        )
    found = np.atleast_1d(host).astype(np.float64)
    if found.ndim != 1 or found.size not in (1, 2):
        raise ArgumentError(
            f"{name}: {what} must be one or two edges, got shape {found.shape}"
        )
    top = np.inf if analog else rate / 2
    if not (np.all(found > 0) and np.all(found < top)):
        limit = "be positive" if analog else f"lie between 0 and {top:g}"
        raise ArgumentError(f"{name}: {what} must {limit}, got {found.tolist()}")
    return found


def _kind(name: str, wp: Edges, ws: Edges) -> str:
    """Returns the type of filter that edges ask for."""
    if wp.size != ws.size:
        raise ArgumentError(
            f"{name}: wp and ws must have as many edges, got {wp.size} and {ws.size}"
        )
    if wp.size == 1:
        if wp[0] == ws[0]:
            raise ArgumentError(f"{name}: wp and ws must differ, got {wp[0]}")
        return "lowpass" if wp[0] < ws[0] else "highpass"
    if ws[0] < wp[0] < wp[1] < ws[1]:
        return "bandpass"
    if wp[0] < ws[0] < ws[1] < wp[1]:
        return "bandstop"
    raise ArgumentError(
        f"{name}: one of the bands must lie inside of the other one, got "
        f"wp={wp.tolist()}, ws={ws.tolist()}"
    )


def _selectivity(passband: Edges, stopband: Edges) -> Any:
    """Returns the stopband's edge of the lowpass that a bandstop comes from."""
    low, high = passband
    found = stopband * (low - high) / (stopband**2 - low * high)
    return np.abs(found).min()


def _shrunk(passband: Edges, stopband: Edges) -> Edges:
    """Returns a bandstop's passband, its edges moved to where the order is least."""
    out = passband.copy()
    for at, (low, high) in enumerate(
        ((passband[0], stopband[0] - 1e-12), (stopband[1] + 1e-12, passband[1]))
    ):
        for _ in range(8):
            grid = np.linspace(low, high, 101)
            moved = [np.where(np.arange(2) == at, g, out) for g in grid]
            best = int(np.argmax([_selectivity(m, stopband) for m in moved]))
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, 100)]
        out[at] = (low + high) / 2
    return out


class _Problem:
    """What is asked, on the axis of analog frequencies.

    Attributes:
      kind: of the filter.
      passband: its edges.
      ratio: the stopband's edge of the lowpass prototype, above 1.
      loss: 10^(gpass / 10) - 1.
      stop: 10^(gstop / 10) - 1.
    """

    def __init__(
        self, name: str, wp: Any, ws: Any, gpass: Any, gstop: Any, analog: Any, fs: Any
    ) -> None:
        low = prototypes.ripple(name, "gpass", gpass)
        high = prototypes.ripple(name, "gstop", gstop)
        if not low < high:
            raise ArgumentError(
                f"{name}: gstop must be above gpass > 0, got gpass={low}, gstop={high}"
            )
        if fs is not None and analog:
            raise ArgumentError(
                f"{name}: fs is of digital filters: omit it with analog"
            )
        self.rate = 2.0 if fs is None else number(name, "fs", fs)
        self.analog = analog
        both = [
            _edges(name, what, v, analog, self.rate)
            for what, v in (("wp", wp), ("ws", ws))
        ]
        self.kind = _kind(name, *both)
        if not analog:
            both = [np.tan(math.pi * e / self.rate) for e in both]
        self.passband, stopband = both
        if self.kind == "bandstop":
            self.passband = _shrunk(self.passband, stopband)
        first, last = self.passband[0], self.passband[-1]
        self.ratio = float(
            {
                "lowpass": lambda: stopband[0] / first,
                "highpass": lambda: first / stopband[0],
                "bandstop": lambda: _selectivity(self.passband, stopband),
                "bandpass": lambda: np.abs(
                    (stopband**2 - first * last) / (stopband * (first - last))
                ).min(),
            }[self.kind]()
        )
        self.loss, self.stop = 10 ** (low / 10) - 1, 10 ** (high / 10) - 1


def _moved(problem: _Problem, by: float) -> Edges:
    """Returns the passband of the prototype's edge `by`, 1 leaving it as it is."""
    edges = problem.passband
    if problem.kind == "lowpass":
        return np.asarray(edges * by)
    if problem.kind == "highpass":
        return np.asarray(edges / by)
    half = (edges[1] - edges[0]) / 2
    half = half * by if problem.kind == "bandpass" else half / by
    root = math.sqrt(half**2 + edges[0] * edges[1])
    return np.asarray([root - half, root + half])


# -- the families ----------------------------------------------------------------------


def _quarter_period(complement: float) -> float:
    """Returns the complete elliptic integral of a modulus, by arithmetic means."""
    a, b = 1.0, complement
    while abs(a - b) > 1e-15 * a:
        a, b = (a + b) / 2, math.sqrt(a * b)
    return math.pi / (2 * a)


def _order(family: str, problem: _Problem) -> float:
    """Returns the order that would be just enough, a real number."""
    if family == "butter":
        return math.log(problem.stop / problem.loss) / (2 * math.log(problem.ratio))
    if family != "ellip":
        steep = math.acosh(math.sqrt(problem.stop / problem.loss))
        return steep / math.acosh(problem.ratio)
    outer, inner = (
        _quarter_period(math.sqrt(1 - k**2)) / _quarter_period(k)
        for k in (1 / problem.ratio, math.sqrt(problem.loss / problem.stop))
    )
    return outer / inner


def _least(
    name: str,
    family: str,
    wp: Any,
    ws: Any,
    gpass: Any,
    gstop: Any,
    analog: Any,
    fs: Any,
) -> tuple[int, Any, str]:
    """Returns the order, the edges to design with, and the type of filter."""
    problem = _Problem(name, wp, ws, gpass, gstop, analog, fs)
    order = max(math.ceil(_order(family, problem)), 1)
    by = 1.0
    if family == "butter":
        by = problem.loss ** (-1 / (2 * order))
    elif family == "cheby2":
        steep = math.acosh(math.sqrt(problem.stop / problem.loss))
        by = math.cosh(steep / order)
    edges = _moved(problem, by)
    if not analog:
        edges = problem.rate / math.pi * np.arctan(edges)
    return order, edges[0] if edges.size == 1 else edges, problem.kind


@_docs
def buttord(
    wp: Any,
    ws: Any,
    gpass: float,
    gstop: float,
    analog: bool = False,
    fs: float | None = None,
) -> tuple[int, Array]:
    """Returns the least order of a Butterworth filter.

    Example:
      >>> N, Wn = buttord(0.2, 0.3, 3.0, 40.0)
      >>> N
      11
    """
    order, edges, _ = _least("buttord", "butter", wp, ws, gpass, gstop, analog, fs)
    return order, fnp.asarray(edges)


@_docs
def cheb1ord(
    wp: Any,
    ws: Any,
    gpass: float,
    gstop: float,
    analog: bool = False,
    fs: float | None = None,
) -> tuple[int, Array]:
    """Returns the least order of a Chebyshev filter with ripples in the passband.

    Example:
      >>> N, Wn = cheb1ord(0.2, 0.3, 3.0, 40.0)
      >>> N
      6
    """
    order, edges, _ = _least("cheb1ord", "cheby1", wp, ws, gpass, gstop, analog, fs)
    return order, fnp.asarray(edges)


@_docs
def cheb2ord(
    wp: Any,
    ws: Any,
    gpass: float,
    gstop: float,
    analog: bool = False,
    fs: float | None = None,
) -> tuple[int, Array]:
    """Returns the least order of a Chebyshev filter with ripples in the stopband.

    Example:
      >>> N, Wn = cheb2ord(0.2, 0.3, 3.0, 40.0)
      >>> N
      6
    """
    order, edges, _ = _least("cheb2ord", "cheby2", wp, ws, gpass, gstop, analog, fs)
    return order, fnp.asarray(edges)


@_docs
def ellipord(
    wp: Any,
    ws: Any,
    gpass: float,
    gstop: float,
    analog: bool = False,
    fs: float | None = None,
) -> tuple[int, Array]:
    """Returns the least order of an elliptic filter.

    Example:
      >>> N, Wn = ellipord(0.2, 0.3, 3.0, 40.0)
      >>> N
      4
    """
    order, edges, _ = _least("ellipord", "ellip", wp, ws, gpass, gstop, analog, fs)
    return order, fnp.asarray(edges)


# -- any family ------------------------------------------------------------------------

_ORDERS = ("butter", "cheby1", "cheby2", "ellip")
_NAMES = {
    "butterworth": "butter",
    "cheb1": "cheby1",
    "chebyshev1": "cheby1",
    "chebyshevi": "cheby1",
    "cheb2": "cheby2",
    "chebyshev2": "cheby2",
    "chebyshevii": "cheby2",
    "elliptic": "ellip",
    "cauer": "ellip",
}


def _family(name: str, ftype: Any, known_: tuple[str, ...]) -> str:
    found = str(ftype).lower()
    found = _NAMES.get(found, found)
    if found not in known_:
        listed = ", ".join(f'"{k}"' for k in known_)
        raise ArgumentError(f"{name}: ftype must be one of {listed}, got {ftype!r}")
    return found


def iirfilter(
    N: int,
    Wn: Any,
    rp: float | None = None,
    rs: float | None = None,
    btype: str = "band",
    analog: bool = False,
    ftype: str = "butter",
    output: str = "ba",
    fs: Any = None,
) -> Any:
    """Designs an IIR filter of a given family.

    Args:
      N: the order.
      Wn: the edge or the two edges; see `butter`. It may be traced.
      rp: ripple of the passband in dB, of "cheby1" and "ellip".
      rs: attenuation of the stopband in dB, of "cheby2" and "ellip".
      btype: "lowpass", "highpass", "bandpass" or "bandstop".
      analog: whether the filter is an analog one.
      ftype: "butter", "cheby1", "cheby2", "ellip" or "bessel".
      output: "ba", "zpk" or "sos".
      fs: the sampling rate; it may be traced.

    Returns:
      Coefficients `b` and `a`; or zeros, poles and gain; or sections.

    Raises:
      ArgumentError: unknown family, type or output, a ripple that the family
        needs is missing, or an edge is out of range.

    Example:
      >>> b, a = iirfilter(1, 0.5, btype="lowpass")
      >>> [round(float(c), 4) for c in b]
      [0.5, 0.5]

    Source: `scipy.signal.iirfilter`.
    """
    family = _family("iirfilter", ftype, (*_ORDERS, "bessel"))
    ripples = {"rp": rp, "rs": rs}
    needed = {"cheby1": ["rp"], "cheby2": ["rs"], "ellip": ["rp", "rs"]}.get(family, [])
    for what in needed:
        if ripples[what] is None:
            raise ArgumentError(f"iirfilter: a filter of ftype={ftype!r} needs {what}")
    design: Any = {
        "butter": butter,
        "cheby1": cheby1,
        "cheby2": cheby2,
        "ellip": ellip,
        "bessel": bessel,
    }[family]
    given = [ripples[what] for what in needed]
    return design(N, *given, Wn, btype, analog, output, fs=fs)


@_docs
def iirdesign(
    wp: Any,
    ws: Any,
    gpass: float,
    gstop: float,
    analog: bool = False,
    ftype: str = "ellip",
    output: str = "ba",
    fs: float | None = None,
) -> Any:
    """Designs the IIR filter of least order that meets the specification.

    Args:
      wp: the passband's edge or edges; see `buttord`.
      ws: the stopband's edge or edges.
      ftype: "butter", "cheby1", "cheby2" or "ellip".
      output: "ba", "zpk" or "sos".

    Returns:
      Coefficients `b` and `a`; or zeros, poles and gain; or sections.

    Raises:
      ArgumentError: unknown family or output, an edge is out of range, edges are equal
        or not nested, or `gstop` is not above `gpass` > 0.
      ConcretizationError: an argument is traced.

    Example:
      >>> b, a = iirdesign(0.2, 0.3, 3.0, 40.0)
      >>> b.shape, a.shape
      ((5,), (5,))
    """
    family = _family("iirdesign", ftype, _ORDERS)
    N, Wn, kind = _least("iirdesign", family, wp, ws, gpass, gstop, analog, fs)
    return iirfilter(N, Wn, gpass, gstop, kind, analog, family, output, fs)


def band_stop_obj(
    wp: ArrayLike,
    ind: int,
    passb: ArrayLike,
    stopb: ArrayLike,
    gpass: ArrayLike,
    gstop: ArrayLike,
    type: str,
) -> Array:
    """Returns the order, not rounded, that a bandstop filter needs.

    Args:
      wp: the edge of the passband that is varied; it may be traced.
      ind: which one: 0 or 1.
      passb: real array-like[2]: the edges of the passband.
      stopb: real array-like[2]: the edges of the stopband.
      gpass: the loss in the passband, in dB.
      gstop: the attenuation in the stopband, in dB.
      type: "butter", "cheby" or "ellip".

    Returns:
      Float array[].

    Raises:
      ArgumentError: unknown type, or `ind` is neither 0 nor 1.
      ShapeError: edges are not a pair.

    Example:
      >>> edges = np.array([1.0, 4.0]), np.array([2.0, 3.0])
      >>> band_stop_obj(1.0, 0, *edges, 3.0, 30.0, "butter").round(3)
      Array(5.879, dtype=float32)

    Source: `scipy.signal.band_stop_obj`.
    """
    name = "band_stop_obj"
    if type not in ("butter", "cheby", "ellip"):
        raise ArgumentError(
            f'{name}: type must be "butter", "cheby" or "ellip", got {type!r}'
        )
    if ind not in (0, 1):
        raise ArgumentError(f"{name}: ind must be 0 or 1, got {ind!r}")
    wp, passb, stopb, gpass, gstop = promote_inexact(
        name, wp, numbers(passb), numbers(stopb), gpass, gstop
    )
    for what, edges in (("passb", passb), ("stopb", stopb)):
        if edges.shape != (2,):
            raise ShapeError(f"{name}: {what} must be a pair, got {edges.aval}")
    passb = passb.at[ind].set(wp)
    ratio = stopb * (passb[0] - passb[1]) / (stopb**2 - passb[0] * passb[1])
    ratio = fnp.min(fnp.abs(ratio))
    ten = math.log(10) / 10
    steep = fnp.expm1(ten * fnp.abs(gstop)) / fnp.expm1(ten * fnp.abs(gpass))
    if type == "butter":
        return fnp.log10(steep) / (2 * fnp.log10(ratio))
    if type == "cheby":
        return fnp.arccosh(fnp.sqrt(steep)) / fnp.arccosh(ratio)
    far, near = 1 / ratio**2, 1 / steep
    return (ellipk(far) * ellipkm1(near)) / (ellipkm1(far) * ellipk(near))
