"""Integrals of functions: Gauss's rules, and an adaptive one."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, array_of, convert, promote_inexact
from fxflow.transforms.custom_derivatives import closure_convert
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.vjp import linearize
from fxflow.transforms.vmap import vmap


def fixed_quad(
    func: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: tuple[Any, ...] = (),
    n: int = 5,
) -> tuple[Array, None]:
    """Integrates a function by Gauss's rule of `n` points.

    Args:
      func: called with a vector of points and `args`; returns array[..., n].
      a: real number: the lower bound, finite.
      b: real number: the upper bound, finite.
      args: more arguments.
      n: number of points; polynomials of degree 2n - 1 are exact.

    Returns:
      Array[...] and None, as SciPy does.

    Raises:
      ArgumentError: `n` is not positive.

    Example:
      >>> value, _ = fixed_quad(lambda x: x**3, 0.0, 2.0, n=2)
      >>> round(float(value), 5)
      4.0

    Source: `scipy.integrate.fixed_quad`.
    """
    n = natural("fixed_quad", "n", n)
    a, b = promote_inexact("fixed_quad", a, b)
    points, weights = (fnp.asarray(v, a.dtype) for v in _gauss(n))
    half = (b - a) / 2
    values = func((a + b) / 2 + half * points, *args)
    return half * fnp.sum(weights * values, -1), None


@functools.cache
def _gauss(n: int) -> tuple[Any, Any]:
    return np.polynomial.legendre.leggauss(n)


def newton_cotes(rn: Any, equal: bool = False) -> tuple[Array, Array]:
    """Returns the weights of Newton and Cotes' rule, and the factor of its error.

    The integral from x0 to xN is Δx times the sum of weights times values, with the
    error `B Δx^(k + 1)` times the k-th derivative somewhere; k is N + 1, or N + 2 for
    equal distances and an even N.

    Args:
      rn: N, for N + 1 points at equal distances; or the positions of the points, from 0
        to N, which are known.
      equal: whether positions are at equal distances all the same.

    Returns:
      float[N + 1], and B.

    Raises:
      ArgumentError: positions do not go from 0 to N, or N is not positive.

    Example:
      >>> weights, factor = newton_cotes(2)
      >>> (3 * weights).round(3), round(float(90 * factor), 3)
      (Array([1., 4., 1.], dtype=float32), -1.0)

    Source: `scipy.integrate.newton_cotes`.
    """
    if np.ndim(rn) == 0:
        places: Any = np.arange(natural("newton_cotes", "rn", rn) + 1.0)
        equal = True
    else:
        places = np.asarray(rn, float)
        steps = np.diff(places)
        equal = bool(equal) or bool(np.all(steps == 1))
    count = places.size - 1
    if count < 1 or places[0] != 0 or places[-1] != count:
        raise ArgumentError(
            f"newton_cotes: positions must go from 0 to N = {count}, got {places}"
        )
    part = places / count
    # Powers of -1 … 1 are integrated exactly.
    powers = np.arange(count + 1)
    exact = np.where(powers % 2 == 0, 2 / (powers + 1), 0)
    weights = np.linalg.solve((2 * part - 1) ** powers[:, None], exact) * count / 2
    power = count + 2 if equal and count % 2 == 0 else count + 1
    missed = count / (power + 1) - np.dot(part**power, weights)
    factor = missed * math.exp(power * math.log(count) - math.lgamma(power + 1))
    dtype = dtypes.default_float()
    return fnp.asarray(weights, dtype), fnp.asarray(factor, dtype)


# -- the rules of Gauss and Kronrod ----------------------------------------------------


@functools.cache
def _kronrod(n: int) -> tuple[Any, Any, Any]:
    """Returns nodes of Kronrod's rule, its weights, and those of Gauss's rule in it.

    The nodes are the eigenvalues of the Jacobi-Kronrod matrix, whose lower half follows
    from the upper one by Laurie's algorithm.
    """
    # Recurrence of Legendre's polynomials; only the b's are not 0.
    size = 2 * n + 1
    known = math.ceil(3 * n / 2) + 1
    b: Any = np.zeros(size)
    degree = np.arange(1, known)
    b[1:known] = degree**2 / (4.0 * degree**2 - 1)
    b[0] = 2.0
    a: Any = np.zeros(size)
    s: Any = np.zeros(n // 2 + 2)
    t: Any = np.zeros(n // 2 + 2)
    t[1] = b[n + 1]
    for m in range(n - 1):
        u: Any = 0.0
        for k in range((m + 1) // 2, -1, -1):
            at = m - k
            u += (a[k + n + 1] - a[at]) * t[k + 1]
            u += b[k + n + 1] * s[k] - b[at] * s[k + 1]
            s[k + 1] = u
        s, t = t, s
    for j in range(n // 2, -1, -1):
        s[j + 1] = s[j]
    for m in range(n - 1, 2 * n - 2):
        u = 0.0
        j = 0
        for k in range(m + 1 - n, (m - 1) // 2 + 1):
            at = m - k
            j = n - 1 - at
            u -= (a[k + n + 1] - a[at]) * t[j + 1]
            u -= b[k + n + 1] * s[j + 1] - b[at] * s[j + 2]
            s[j + 1] = u
        k = (m + 1) // 2
        if m % 2 == 0:
            a[k + n + 1] = a[k] + (s[j + 1] - b[k + n + 1] * s[j + 2]) / t[j + 2]
        else:
            b[k + n + 1] = s[j + 1] / s[j + 2]
        s, t = t, s
    a[2 * n] = a[n - 1] - b[2 * n] * s[1] / t[1]
    root = np.sqrt(b[1:])
    nodes, vectors = np.linalg.eigh(np.diag(a) + np.diag(root, 1) + np.diag(root, -1))
    nodes = (nodes - nodes[::-1]) / 2
    weights = 2 * vectors[0] ** 2
    weights = (weights + weights[::-1]) / 2
    inner = np.zeros(size)
    inner[1::2] = _gauss(n)[1]
    return nodes, weights, inner


# -- the adaptive rule -----------------------------------------------------------------


class _Split(NamedTuple):
    """Intervals of 0 … 1, the first `used` ones in use."""

    lefts: Array
    widths: Array
    values: Array
    errors: Array
    scales: Array
    used: Array


def _smoothed(u: Array) -> tuple[Array, Array, Array]:
    """Returns s = u² (3 - 2u), 1 - s, and ds/du.

    It makes weak singularities at the ends, such as 1 / √x, smooth.
    """
    rest = 1 - u
    return u * u * (1 + 2 * rest), rest * rest * (1 + 2 * u), 6 * u * rest


def _on_unit(a: Array, b: Array, infinite: tuple[bool, bool]) -> Any:
    """Returns the map from 0 … 1 to the interval, and its derivative."""

    def place(u: Array) -> tuple[Array, Array]:
        s, rest, slope = _smoothed(u)
        if infinite == (False, False):
            # From the nearer end, so that no digits are lost there.
            x = fnp.where(u < 0.5, a + (b - a) * s, b - (b - a) * rest)
            return x, (b - a) * slope
        if infinite == (False, True):
            return a + s / rest, slope / (rest * rest)
        if infinite == (True, False):
            return b - rest / s, slope / (s * s)
        both = 2 * s * 2 * rest  # 1 - t² with t = 2s - 1
        t = s - rest
        return t / both, 2 * slope * (1 + t * t) / (both * both)

    return place


def quad(
    func: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: tuple[Any, ...] | Any = (),
    full_output: bool = False,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
    points: Any = None,
) -> Any:
    """Integrates a function by an adaptive rule of Gauss and Kronrod.

    The interval with the greatest estimated error is halved until the sum of errors is
    small enough. The derivative is the integral of the derivative, on the same
    intervals: by the bounds, by `args`, and by all that `func` closes over.

    Args:
      func: called with a 0-d point and `args`; returns a real number. It is vectorized
        by `vmap`.
      a: real number: the lower bound; -inf, if it is not traced.
      b: real number: the upper bound; inf likewise.
      args: more arguments: a tuple of them, or one.
      full_output: whether to return what the search has found.
      epsabs: the error that is small enough.
      epsrel: that error relative to the integral.
      limit: the greatest number of intervals.
      points: real numbers between finite bounds where `func` is not smooth.

    Returns:
      The integral and an estimate of its error, 0-d floats. With `full_output` also a
      dict: `neval`, how often `func` was called in the search; `last`, the number of
      intervals; `converged`, whether the error is small enough, or as small as rounding
      allows.

    Raises:
      ArgumentError: `limit` is not positive, both tolerances are 0 or less, or there
        are `points` with an infinite bound.
      DtypeError: `func` returns complex numbers, or bounds are complex.

    Example:
      >>> value, error = quad(lambda x: fnp.exp(-x), 0.0, fnp.inf)
      >>> round(float(value), 5)
      1.0

    Source: `scipy.integrate.quad`; R. Piessens and others, QUADPACK, 1983, for the
    estimate; D. P. Laurie, Calculation of Gauss-Kronrod Quadrature Rules, 1997.
    """
    limit = natural("quad", "limit", limit)
    if epsabs <= 0 and epsrel <= 0:
        raise ArgumentError(
            f"quad: one of epsabs and epsrel must be positive, got {epsabs}, {epsrel}"
        )
    more = args if isinstance(args, tuple) else (args,)
    infinite = tuple(
        (host := _known(v)) is not None and math.isinf(host) for v in (a, b)
    )
    low, high = promote_inexact("quad", a, b)
    if dtypes.is_complex(low.dtype) or low.ndim or high.ndim:
        raise DtypeError(
            f"quad: bounds must be real numbers, got {low.aval}, {high.aval}"
        )
    bounds = [low, high]
    if points is not None:
        if any(infinite):
            raise ArgumentError("quad: points need finite bounds")
        inner = fnp.ravel(fnp.asarray(points, low.dtype))
        # Points outside add nothing, as empty intervals.
        inner = fnp.sort(
            fnp.clip(inner, fnp.minimum(low, high), fnp.maximum(low, high))
        )
        inner = fnp.where(low <= high, inner, fnp.flip(inner))
        bounds = [low, *inner, high]
    sign = 1.0
    if infinite == (True, True):
        first, second = _known(a), _known(b)
        sign = 0.0 if first == second else (1.0 if first < second else -1.0)
    elif infinite[0] and _known(a) > 0:
        # From infinity down to a number.
        bounds, infinite, sign = [high, low], (False, True), -1.0
    elif infinite[1] and _known(b) < 0:
        bounds, infinite, sign = [high, low], (True, False), -1.0
    share = epsabs / (len(bounds) - 1)
    parts = [
        _adaptive(func, more, p, q, infinite, share, epsrel, limit)
        for p, q in itertools.pairwise(bounds)
    ]
    value = sign * sum(p[0] for p in parts)
    error = sum(p[1] for p in parts)
    if not full_output:
        return value, error
    last = sum(p[2] for p in parts)
    info = {
        "neval": 21 * (2 * last - len(parts)),
        "last": last,
        "converged": fnp.all(fnp.stack([p[3] for p in parts])),
    }
    return value, error, info


def _known(value: Any) -> Any:
    """Returns a bound as a Python number, or None if it is traced."""
    return None if isinstance(value, Tracer) else float(value)


def _adaptive(
    func: Any,
    args: tuple[Any, ...],
    a: Array,
    b: Array,
    infinite: Any,
    epsabs: float,
    epsrel: float,
    limit: int,
) -> tuple[Array, Array, Array, Array]:
    """Returns the integral, its error, the number of intervals, whether it is met."""
    dtype = a.dtype
    nodes, kronrod, gauss = (fnp.asarray(v, dtype) for v in _kronrod(10))
    tiny = float(np.finfo(dtype).eps)

    def integrand(u: Array, a: Array, b: Array) -> Array:
        x, slope = _on_unit(a, b, infinite)(u)
        y = fnp.asarray(func(x, *args))
        if dtypes.is_complex(y.dtype) or y.ndim:
            raise DtypeError(
                f"quad: func must return a real number, got {y.aval}; integrate real "
                "and imaginary parts, or elements, by themselves"
            )
        return convert(y * slope, dtype)

    converted, captured = closure_convert(integrand, a, a, b)

    def values(lefts: Array, widths: Array, *given: Any) -> Array:
        """Returns the integrand at the nodes of intervals, array[..., 21]."""
        at = lefts[..., None] + widths[..., None] * (nodes + 1) / 2
        one = functools.partial(_called, converted, given)
        return fnp.reshape(vmap(one)(fnp.ravel(at)), at.shape)

    fixed = [lax.stop_gradient(v) for v in (a, b, *captured)]

    def estimated(lefts: Array, widths: Array) -> tuple[Array, Array, Array]:
        y = values(lefts, widths, *fixed)
        half = widths / 2
        value = half * fnp.sum(kronrod * y, -1)
        error = fnp.abs(value - half * fnp.sum(gauss * y, -1))
        size = half * fnp.sum(kronrod * fnp.abs(y), -1)
        mean = (value / widths)[..., None]
        spread = half * fnp.sum(kronrod * fnp.abs(y - mean), -1)
        safe = fnp.where(spread == 0, 1, spread)
        sharper = spread * fnp.minimum(1, (200 * error / safe) ** 1.5)
        error = fnp.where((spread != 0) & (error != 0), sharper, error)
        return value, fnp.maximum(error, 50 * tiny * size), size

    def is_met(split: _Split) -> Array:
        bound = fnp.maximum(epsabs, epsrel * fnp.abs(fnp.sum(split.values)))
        bound = fnp.maximum(bound, 60 * tiny * fnp.sum(split.scales))
        return fnp.sum(split.errors) <= bound

    def goes_on(split: _Split) -> Array:
        return (split.used < limit) & ~is_met(split)

    def halved(split: _Split) -> _Split:
        worst = fnp.argmax(split.errors)
        width = split.widths[worst] / 2
        left = split.lefts[worst]
        lefts, widths = fnp.stack([left, left + width]), fnp.stack([width, width])
        at = fnp.stack([worst.astype(np.int32), split.used])
        new = (lefts, widths, *estimated(lefts, widths))
        old = split[:5]
        parts = [o.at[at].set(v) for o, v in zip(old, new, strict=True)]
        return _Split._make([*parts, split.used + 1])

    whole = fnp.zeros(1, dtype), fnp.ones(1, dtype)
    start = [fnp.pad(v, (0, limit - 1)) for v in (*whole, *estimated(*whole))]
    split = lax.while_loop(
        goes_on, halved, _Split._make([*start, fnp.asarray(1, np.int32)])
    )
    used = np.arange(limit) < split.used
    value = fnp.sum(fnp.where(used, split.values, 0))

    def again(given: Any, split: _Split) -> Array:
        # The same intervals, with derivatives: those not in use repeat the first.
        used = np.arange(limit) < split.used
        lefts = fnp.where(used, split.lefts, split.lefts[0])
        widths = fnp.where(used, split.widths, split.widths[0])
        parts = widths / 2 * fnp.sum(kronrod * values(lefts, widths, *given), -1)
        return fnp.sum(fnp.where(used, parts, 0))

    total = _attached(again, [a, b, *captured], split, value)
    return total, fnp.sum(split.errors), split.used, is_met(split)


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _attached(again: Any, given: Any, split: _Split, value: Array) -> Array:
    """Returns a value, with the derivative of `again`, which computes it anew."""
    return value


@_attached.defjvp
def _(again: Any, primals: Any, tangents: Any) -> tuple[Array, Array]:
    given, split, value = primals
    _, linear = linearize(lambda given: again(given, split), given)
    return _attached(again, given, split, value), linear(tangents[0])


def _called(converted: Any, given: Any, u: Array) -> Array:
    return array_of(converted(u, *given), "quad")
