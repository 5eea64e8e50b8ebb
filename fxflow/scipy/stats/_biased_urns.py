"""Distributions of draws from an urn whose objects are not equally likely."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import in_64_bits, operands
from fxflow.scipy.stats._building import from_tails
from fxflow.scipy.stats._counts import log_chosen
from fxflow.scipy.stats._discrete import Discrete
from fxflow.scipy.stats._domains import COUNT, POSITIVE
from fxflow.scipy.stats._tails import Tails


def _mnn(
    M: ArrayLike, n: ArrayLike, N: ArrayLike, odds: ArrayLike, loc: ArrayLike = 0
) -> None: ...


_URN: dict[str, Any] = {
    "M": COUNT.but(2.0),
    "n": COUNT,
    "N": COUNT,
    "odds": POSITIVE._replace(holds=lambda x: (x > 0) & (x < math.inf)),
    "joint": lambda M, n, N, odds: (n <= M) & (N <= M),
    "support": (
        lambda M, n, N, odds: fnp.maximum(0, N - (M - n)),
        lambda M, n, N, odds: fnp.minimum(n, N),
    ),
}

# -- Fisher's --------------------------------------------------------------------------

_TERMS = 1_000_000


def _mode(total: Any, good: Any, drawn: Any, odds: Any) -> Any:
    """Returns about the likeliest count: where it is as likely as the next one."""
    low, high = (end(total, good, drawn, odds) for end in _URN["support"])
    # The ratio of neighbours is 1 at the smaller root of a quadratic equation.
    a = odds - 1
    b = (good + drawn + 2) * odds + (total - good - drawn)
    c = (good + 1) * (drawn + 1) * odds
    root = fnp.sqrt(fnp.maximum(b * b - 4 * a * c, 0))
    k = lax.floor(2 * c / (b + root))
    return lax.stop_gradient(fnp.clip(k, low, high))


def _sums(order: int) -> Any:
    """Returns a function of the urn: Σ (k - mode)ⁿ P(k) / P(mode)."""

    def found(total: Any, good: Any, drawn: Any, odds: Any) -> Any:
        top = _mode(total, good, drawn, odds)
        rest = total - good - drawn
        tiny = 0.01 * float(fnp.finfo(odds.dtype).eps)

        def going(state: Any) -> Any:
            i, *_, active = state
            return (i < _TERMS) & fnp.any(active)

        def step(state: Any) -> Any:
            i, up, down, value, size, active = state
            k = top + i - 1
            up = up * (good - k) * (drawn - k) * odds / ((k + 1) * (rest + k + 1))
            k = top - i + 1
            down = down * k * (rest + k) / ((good - k + 1) * (drawn - k + 1) * odds)
            up, down = fnp.maximum(up, 0), fnp.maximum(down, 0)
            more = (up + (-1) ** order * down) * i**order
            value = fnp.where(active, value + more, value)
            size = fnp.where(active, size + (up + down) * i**order, size)
            far = (up + down) * i**order > tiny * size
            return i + 1, up, down, value, size, active & far

        one = lax.full_like(odds, 1)
        first = one if order == 0 else 0 * one
        state = (lax.full((), 1, odds.dtype), one, one, first, first, one == one)
        return lax.while_loop(going, step, state)[3]

    none = lambda *urn: 0 * urn[3]
    made = by_forward(found, none, none, none, None)
    return lambda *urn: made(*operands("nchypergeom_fisher", *urn))


_WHOLE, _FIRST, _SECOND = (_sums(order) for order in range(3))


def _weight(k: Any, total: Any, good: Any, drawn: Any, odds: Any) -> Any:
    return log_chosen(good, k) + log_chosen(total - good, drawn - k) + k * lax.log(odds)


def _fisher_logpmf(k: Any, *urn: Any) -> Any:
    top = _weight(_mode(*urn), *urn)
    return _weight(k, *urn) - top - lax.log(_WHOLE(*urn))


def _fisher_mean(*urn: Any) -> Any:
    return _mode(*urn) + _FIRST(*urn) / _WHOLE(*urn)


def _fisher_var(*urn: Any) -> Any:
    whole = _WHOLE(*urn)
    return _SECOND(*urn) / whole - (_FIRST(*urn) / whole) ** 2


def _beyond(k: Any, total: Any, good: Any, drawn: Any, odds: Any) -> Any:
    """Returns a tail over P(k): the lower one below the mode, else the upper one."""
    down = k < _mode(total, good, drawn, odds)
    rest = total - good - drawn
    tiny = 0.01 * float(fnp.finfo(odds.dtype).eps)

    def ratio(i: Any) -> Any:
        """The next term over the last one, at a distance from k."""
        j = fnp.where(down, k - i, k + i)
        below = j * (rest + j) / ((good - j + 1) * (drawn - j + 1) * odds)
        above = (good - j) * (drawn - j) * odds / ((j + 1) * (rest + j + 1))
        return fnp.maximum(fnp.where(down, below, above), 0)

    def going(state: Any) -> Any:
        i, *_, active = state
        return (i < _TERMS) & fnp.any(active)

    def step(state: Any) -> Any:
        i, term, value, active = state
        term = term * ratio(i)
        value = fnp.where(active, value + term, value)
        return i + 1, term, value, active & (term > tiny * value)

    zero = lax.full((), 0, odds.dtype)
    one = lax.full_like(odds, 1)
    state = (zero, one, fnp.where(down, 1.0, 0.0).astype(odds.dtype), one == one)
    return lax.while_loop(going, step, state)[2]


_none = lambda *args: 0 * args[4]
_tail_sum = by_forward(_beyond, _none, _none, _none, _none, None)


def _fisher_tails(k: Any, *urn: Any) -> Tails:
    k, *urn_ = operands("nchypergeom_fisher", k, *urn)
    log = _fisher_logpmf(k, *urn_) + lax.log(_tail_sum(k, *urn_))
    return Tails(fnp.minimum(log, 0), k < _mode(*urn_))


nchypergeom_fisher: Final = Discrete(
    "nchypergeom_fisher",
    "How many of N objects, drawn from M, are of the n that have other odds, given "
    "that there are N (Fisher's distribution).",
    _mnn,
    **_URN,
    logpmf=_fisher_logpmf,
    **from_tails(_fisher_tails),
    mean=_fisher_mean,
    var=_fisher_var,
)

# -- Wallenius' ------------------------------------------------------------------------

#: Nodes of the trapezoidal rule in units of the peak's width.
_NODES = np.arange(-38, 12, 0.35)


def _slopes(r: Any, k: Any, rest: Any, odds: Any, d: Any) -> tuple[Any, Any]:
    """Returns two derivatives of the integrand's logarithm with respect to log r."""

    def share(y: Any) -> tuple[Any, Any]:
        # y / (exp(y) - 1), and y times its derivative.
        small = fnp.maximum(y, 1e-12)
        value = small / lax.expm1(fnp.minimum(small, 600))
        return value, value * (1 - value - small)

    (a, da), (b, db) = share(odds * r), share(r)
    return 1 + k * a + rest * b - d * r, k * da + rest * db - d * r


def _wallenius_log(k: Any, total: Any, good: Any, drawn: Any, odds: Any) -> Any:
    """Returns log of d ∫ (1 - e^(-odds r))^k (1 - e^-r)^(N-k) e^(-d r) dr.

    By the trapezoidal rule about the peak in log r, where the integrand falls at least
    exponentially.
    """
    rest = drawn - k
    left = odds * (good - k) + (total - good - rest)
    # All objects are drawn: there is nothing to integrate.
    some = left > 0
    d = fnp.where(some, left, 1)
    held = [lax.stop_gradient(v) for v in (k, rest, odds, d)]

    def halve(_: Any, ends: Any) -> Any:
        low, high = ends
        middle = 0.5 * (low + high)
        up = _slopes(lax.exp(middle), *held)[0] > 0
        return fnp.where(up, middle, low), fnp.where(up, high, middle)

    ends = (lax.full_like(d, -80), lax.full_like(d, 80))
    low, high = lax.fori_loop(0, 50, halve, ends)
    peak = 0.5 * (low + high)
    width = 1 / fnp.sqrt(-_slopes(lax.exp(peak), *held)[1])
    wide: Any = lambda v: fnp.expand_dims(v, -1)
    u = wide(peak) + wide(width) * fnp.asarray(_NODES, d.dtype)
    r = lax.exp(u)

    def log_rest(y: Any) -> Any:
        small = y < 0.5
        low = lax.log(-lax.expm1(-fnp.where(small, y, 0.5)))
        return fnp.where(small, low, lax.log1p(-lax.exp(-fnp.where(small, 0.5, y))))

    log = wide(k) * log_rest(wide(odds) * r) + wide(rest) * log_rest(r)
    log = log - wide(d) * r + u
    most = lax.stop_gradient(fnp.max(log, axis=-1, keepdims=True))
    step = float(_NODES[1] - _NODES[0])
    total_ = fnp.sum(lax.exp(log - most), axis=-1) * step * width
    value = lax.log(d) + most[..., 0] + lax.log(total_)
    return fnp.where(some, value, 0)


def _wallenius_logpmf(k: Any, total: Any, good: Any, drawn: Any, odds: Any) -> Any:
    args = operands("nchypergeom_wallenius", k, total, good, drawn, odds)
    value = in_64_bits(_wallenius_log, "nchypergeom_wallenius", *args)
    return log_chosen(good, k) + log_chosen(total - good, drawn - k) + value


class _Wallenius(Discrete[Any]):
    def _start(self, shapes: Any) -> Any:
        """Returns about the mean: the solution of Manly's equation (1974)."""
        total, good, drawn, odds = (lax.stop_gradient(s) for s in shapes)
        low, high = self.bounds([total, good, drawn, odds])

        def halve(_: Any, ends: Any) -> Any:
            least, most = ends
            k = 0.5 * (least + most)
            bad = fnp.maximum(total - good, 1e-3)
            left = lax.log1p(-fnp.minimum(k / fnp.maximum(good, 1e-3), 1 - 1e-12))
            right = lax.log1p(-fnp.clip((drawn - k) / bad, 0, 1 - 1e-12))
            up = left > odds * right
            return fnp.where(up, k, least), fnp.where(up, most, k)

        ends = (low + 0 * odds, high + 0 * odds)
        least, most = lax.fori_loop(0, 40, halve, ends)
        return lax.stop_gradient(fnp.clip(lax.floor(0.5 * (least + most)), low, high))


nchypergeom_wallenius: Final = _Wallenius(
    "nchypergeom_wallenius",
    "How many of N objects, drawn one by one from M, are of the n that have other odds "
    "(the Wallenius distribution).",
    _mnn,
    **_URN,
    logpmf=_wallenius_logpmf,
)
