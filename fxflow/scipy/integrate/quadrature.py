"""Integrals of functions: Gaussian quadrature rules, and an adaptive one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.scipy.integrate._adaptive import (
    Integral,
    Rule,
    gauss,
    integrated,
    kronrod_rule,
    largest,
    trapezoid_rule,
)
from fxflow.scipy.integrate._weights import RULE, plain, weighted


def fixed_quad(
    func: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: tuple[Any, ...] = (),
    n: int = 5,
) -> tuple[Array, None]:
    """Integrates a function by Gaussian quadrature of `n` points.

    Args:
      func: called with a vector of points and `args`; returns array[..., n].
      a: real number: the lower bound, finite.
      b: real number: the upper bound, finite.
      args: extra arguments.
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
    points, weights = (fnp.asarray(v, a.dtype) for v in gauss(n))
    half = (b - a) / 2
    values = func((a + b) / 2 + half * points, *args)
    return half * fnp.sum(weights * values, -1), None


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


# -- the adaptive rule -----------------------------------------------------------------


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
    weight: str | None = None,
    wvar: Any = None,
    *,
    limlst: int = 50,
    complex_func: bool = False,
) -> Any:
    """Integrates a function by an adaptive rule of Gauss and Kronrod.

    The interval with the greatest estimated error is halved until the sum of errors is
    small enough. The derivative is the integral of the derivative, on the same
    intervals: by the bounds, by `args`, by `wvar`, and by all that `func` closes over.

    Args:
      func: called with a 0-d point and `args`; returns a real number. It is vectorized
        by `vmap`.
      a: real number: the lower bound; -inf, if it is not traced.
      b: real number: the upper bound; inf likewise.
      args: extra arguments of the function: a tuple, or a single one.
      full_output: whether to return what the search has found.
      epsabs: the error that is small enough.
      epsrel: that error relative to the integral.
      limit: the maximum number of intervals.
      points: real numbers between finite bounds where `func` is not smooth.
      weight: a factor of `func`: "cos" or "sin" of `wvar` times x, with one infinite
        bound at most; between finite bounds "alg", (x - a)^α (b - x)^β, "alg-loga",
        "alg-logb" or "alg-log", that times log(x - a), log(b - x) or both; or "cauchy",
        1 / (x - c), the principal value.
      wvar: what the weight depends on: the factor of x; (α, β), both above -1; or c.
      limlst: the number of cycles of "cos" and "sin" up to an infinite bound.
      complex_func: whether `func` returns complex numbers.

    Returns:
      The integral and an estimate of its error, 0-d floats, or complex numbers for
      `complex_func`: the error of real and imaginary part. With `full_output` also a
      dict: `neval`, how often `func` was called in the search; `last`, the number of
      intervals; `converged`, whether the error is small enough, or as small as rounding
      allows.

    Raises:
      ArgumentError: `limit` is not positive, both tolerances are 0 or less, there are
        `points` with an infinite bound or a weight, or there is no such weight, or not
        for these bounds.
      DtypeError: `func` returns complex numbers, or bounds are complex.

    Example:
      >>> value, error = quad(lambda x: fnp.exp(-x), 0.0, fnp.inf)
      >>> round(float(value), 5)
      1.0
      >>> value, error = quad(lambda x: 1 / x, 1.0, fnp.inf, weight="cos", wvar=2.0)
      >>> round(float(value), 5)
      -0.42298

    Source: `scipy.integrate.quad`; R. Piessens and others, QUADPACK, 1983, for the
    estimate; D. P. Laurie, Calculation of Gauss-Kronrod Quadrature Rules, 1997; H.
    Cohen and others 2000, for alternating cycles.
    """
    limit = natural("quad", "limit", limit)
    limlst = natural("quad", "limlst", limlst, 8)
    if epsabs <= 0 and epsrel <= 0:
        raise ArgumentError(
            f"quad: one of epsabs and epsrel must be positive, got {epsabs}, {epsrel}"
        )
    more = args if isinstance(args, tuple) else (args,)
    if complex_func:
        options = (full_output, epsabs, epsrel, limit, points, weight, wvar)
        return _both_parts(func, a, b, more, options, limlst)
    infinite = tuple(
        (host := _known(v)) is not None and math.isinf(host) for v in (a, b)
    )
    low, high = promote_inexact("quad", a, b)
    if dtypes.is_complex(low.dtype) or low.ndim or high.ndim:
        raise DtypeError(
            f"quad: bounds must be real numbers, got {low.aval}, {high.aval}"
        )
    dtype = low.dtype

    def call(x: Array) -> Array:
        y = fnp.asarray(func(x, *more))
        if dtypes.is_complex(y.dtype) or y.ndim:
            raise DtypeError(
                f"quad: func must return a real number, got {y.aval}; pass "
                "complex_func=True for complex numbers, use quad_vec for arrays"
            )
        return convert(y, dtype)

    sign, low, high, infinite = _oriented(a, b, low, high, infinite)
    if weight is not None:
        if points is not None:
            raise ArgumentError("quad: pass points or a weight, not both")
        parts = weighted(
            weight, wvar, call, low, high, infinite, (epsabs, epsrel, limit), limlst
        )
    else:
        bounds = [low, *_inner("quad", points, low, high, infinite), high]
        share = epsabs / (len(bounds) - 1)
        parts = [
            integrated(plain(call, infinite), pair, RULE, share, epsrel, limit)
            for pair in itertools.pairwise(bounds)
        ]
    return _told(sign, parts, RULE, full_output)


def _oriented(
    a: Any, b: Any, low: Array, high: Array, infinite: tuple[bool, ...]
) -> tuple[float, Array, Array, tuple[bool, ...]]:
    """Returns a sign, and bounds of which an infinite one is on its own side."""
    if infinite == (True, True):
        first, second = _known(a), _known(b)
        return (
            float(np.sign(second - first)) if first != second else 0.0,
            low,
            high,
            infinite,
        )
    if infinite[0] and _known(a) > 0:
        # From infinity down to a number.
        return -1.0, high, low, (False, True)
    if infinite[1] and _known(b) < 0:
        return -1.0, high, low, (True, False)
    return 1.0, low, high, infinite


def _told(
    sign: float, parts: Sequence[Integral], rule: Rule, full_output: bool
) -> tuple[Any, ...]:
    """Returns the sum of parts, its error and perhaps what the search has found."""
    value = sign * sum(p.value for p in parts)
    error = sum(p.error for p in parts)
    if not full_output:
        return value, error
    last = sum(fnp.sum(p.used) for p in parts)
    starts = sum(p.used.size for p in parts)
    info = {
        "neval": len(rule.nodes) * (2 * last - starts),
        "last": last,
        "converged": fnp.all(fnp.stack([fnp.all(p.converged) for p in parts])),
    }
    return value, error, info


def _both_parts(
    func: Any, a: Any, b: Any, more: Any, options: Any, limlst: int
) -> tuple[Any, ...]:
    """Integrates real and imaginary parts by themselves."""

    def part_of(part: Any) -> Any:
        whole = lambda x, *args: part(fnp.asarray(func(x, *args)))
        return quad(whole, a, b, more, *options, limlst=limlst)

    real, imag = part_of(fnp.real), part_of(fnp.imag)
    both = [p + 1j * q for p, q in zip(real[:2], imag[:2], strict=True)]
    return (*both, {"real": real[2], "imag": imag[2]}) if options[0] else (*both,)


def _inner(name: str, points: Any, low: Array, high: Array, infinite: Any) -> Any:
    """Returns points between the bounds in the order of these."""
    if points is None:
        return ()
    if any(infinite):
        raise ArgumentError(f"{name}: points need finite bounds")
    inner = fnp.ravel(fnp.asarray(points, low.dtype))
    # Points outside add nothing, as empty intervals.
    inner = fnp.sort(fnp.clip(inner, fnp.minimum(low, high), fnp.maximum(low, high)))
    return fnp.where(low <= high, inner, fnp.flip(inner))


def _known(value: Any) -> Any:
    """Returns a bound as a Python number, or None if it is traced or complex."""
    if isinstance(value, Tracer) or fnp.iscomplexobj(value):
        return None
    return float(value)


_RULES = {
    "gk21": RULE,
    "gk15": kronrod_rule(7),
    "trapezoid": trapezoid_rule(),
}


def quad_vec(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    epsabs: float = 1e-200,
    epsrel: float = 1e-8,
    norm: str = "2",
    limit: int = 200,
    points: Any = None,
    quadrature: str | None = None,
    full_output: bool = False,
    *,
    args: tuple[Any, ...] = (),
) -> Any:
    """Integrates a function whose values are arrays, by the adaptive rule of `quad`.

    All elements are integrated over the same intervals. Derivatives are those of
    `quad`.

    Args:
      f: called with a 0-d point and `args`; returns float or complex[...]. It is
        vectorized by `vmap`.
      a: real number: the lower bound; -inf, if it is not traced.
      b: real number: the upper bound; inf likewise.
      epsabs: the norm of the error that is small enough.
      epsrel: that error relative to the norm of the integral.
      norm: "2" or "max", of all elements.
      limit: the maximum number of intervals.
      points: real numbers between finite bounds where `f` is not smooth.
      quadrature: "gk21", "gk15" or "trapezoid": the rule of an interval. None means
        "gk21", and "gk15" for infinite bounds.
      full_output: whether to return what the search has found.
      args: extra arguments.

    Returns:
      The integral, like what `f` returns, and an estimate of the error's norm. With
      `full_output` also a dict: see `quad`.

    Raises:
      ArgumentError: `limit` is not positive, there is no such norm or rule, or there
        are `points` with an infinite bound.
      DtypeError: bounds are complex.

    Example:
      >>> value, error = quad_vec(lambda x: x ** fnp.arange(3), 0.0, 1.0)
      >>> value.round(4)
      Array([1.    , 0.5   , 0.3333], dtype=float32)

    Source: `scipy.integrate.quad_vec`.
    """
    limit = natural("quad_vec", "limit", limit)
    if norm not in ("2", "max"):
        raise ArgumentError(f'quad_vec: norm must be "2" or "max", got {norm!r}')
    infinite = tuple(
        (host := _known(v)) is not None and math.isinf(host) for v in (a, b)
    )
    if quadrature not in (None, *_RULES):
        raise ArgumentError(
            f"quad_vec: quadrature must be one of {', '.join(_RULES)}, got "
            f"{quadrature!r}"
        )
    rule = _RULES[quadrature or ("gk15" if any(infinite) else "gk21")]
    low, high = promote_inexact("quad_vec", a, b)
    if dtypes.is_complex(low.dtype) or low.ndim or high.ndim:
        raise DtypeError(
            f"quad_vec: bounds must be real numbers, got {low.aval}, {high.aval}"
        )

    def call(x: Array) -> Array:
        (y,) = promote_inexact("quad_vec", f(x, *args))
        kind = fnp.promote_types(y.dtype, low.dtype)
        return convert(y, kind)

    def size(values: Array) -> Array:
        return largest(values) if norm == "max" else fnp.linalg.norm(fnp.ravel(values))

    sign, low, high, infinite = _oriented(a, b, low, high, infinite)
    bounds = [low, *_inner("quad_vec", points, low, high, infinite), high]
    share = epsabs / (len(bounds) - 1)
    parts = [
        integrated(plain(call, infinite), pair, rule, share, epsrel, limit, norm=size)
        for pair in itertools.pairwise(bounds)
    ]
    return _told(sign, parts, rule, full_output)
