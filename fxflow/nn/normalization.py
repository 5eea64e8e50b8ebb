"""Softmax, log-sum-exp and standardization along axes."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, is_arraylike, not_an_array, typeof
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.axes import canonical_axes
from fxflow.lax.gradient_control import stop_gradient
from fxflow.transforms.custom_jvp import custom_jvp

Axis = int | Sequence[int] | None


def _floats(name: str, x: Any, complex_too: bool = False) -> Any:
    if not is_arraylike(x):
        raise not_an_array(x, f"{name}: x is")
    aval = typeof(x)
    if dtypes.is_key(aval.dtype) or (dtypes.is_complex(aval.dtype) and not complex_too):
        which = "numbers" if complex_too else "real numbers"
        raise DtypeError(f"{name}: takes {which}, got {aval}")
    if dtypes.is_inexact(aval.dtype):
        return x
    return lax.convert_element_type(x, dtypes.to_inexact(aval.dtype))


def _wide(x: Any) -> Any:
    """Returns 16-bit floats as float32: their sums overflow, or stop growing."""
    if dtypes.bits(typeof(x).dtype) >= 32:
        return x
    return lax.convert_element_type(x, dtypes.float32)


def _like(x: Any, out: Any) -> Any:
    dtype = typeof(x).dtype
    same = typeof(out).dtype == dtype
    return out if same else lax.convert_element_type(out, dtype)


def _shifted(x: Any, axis: Any, where: Any) -> Any:
    """Returns `x` minus its maximum along the axes, for which exp cannot overflow.

    Masked elements become -inf. 16-bit floats are widened.
    """
    x = _wide(x)
    if where is not None:
        x = fnp.where(where, x, -math.inf)
    top = fnp.max(x, axis, keepdims=True, initial=-math.inf)
    if where is not None:
        top = fnp.where(fnp.equal(top, -math.inf), 0, top)
    return fnp.subtract(x, top)


def _total(powers: Any, axis: Any, where: Any) -> Any:
    """Returns the sum of exponentials; 1 where no element takes part."""
    total = fnp.sum(powers, axis, keepdims=True, where=where)
    if where is None:
        return total
    taken = fnp.broadcast_to(where, typeof(powers).shape)
    return fnp.where(fnp.any(taken, axis, keepdims=True), total, 1)


_softmax_docs = shared("""
    Args:
      x: array; integers are converted.

    Returns:
      Array of the shape of `x`, of its inexact dtype.

    Raises:
      AxisError: an axis is out of range.
""")


@library("axis")
@_softmax_docs
def softmax(x: Any, axis: Axis = -1, where: Any = None) -> Array:
    r"""Normalised exponentials: :math:`e^{x_i} / \sum_j e^{x_j}`.

    Args:
      axis: one or several along which the result sums to 1; None means all.
      where: bool, broadcast against `x`: which elements take part; the others give 0.

    Raises:
      DtypeError: `x` is an array of keys.

    Special cases:
      A slice of which no element takes part gives 0; one that is -inf throughout, or
      has inf, gives nan.

    Example:
      >>> nn.softmax(fnp.array([0.0, 0.0])).tolist()
      [0.5, 0.5]
    """
    x = _floats("softmax", x, True)
    canonical_axes("softmax", axis, typeof(x).ndim)
    out: Array = _softmax(x, axis, where)
    return out


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _softmax(x: Any, axis: Axis, where: Any) -> Any:
    powers = fnp.exp(_shifted(x, axis, where))
    out = _like(x, fnp.divide(powers, _total(powers, axis, where)))
    return out if where is None else fnp.where(where, out, 0)


@_softmax.defjvp
def _softmax_rule(axis: Axis, primals: Any, tangents: Any) -> Any:
    (x, where), (dx, _) = primals, tangents
    p = _softmax(x, axis, where)
    return p, fnp.multiply(p, _less_mean(dx, p, axis, where))


def _less_mean(tangent: Any, p: Any, axis: Axis, where: Any) -> Any:
    """Returns tangents less their mean under probabilities.

    Twice: what is left of an element whose probability is nearly 1 is rounding, and
    the second mean is that of the others.
    """
    if where is not None:
        tangent = fnp.where(where, tangent, 0)
    for _ in range(2):
        mean = fnp.sum(fnp.multiply(p, tangent), axis, keepdims=True)
        tangent = fnp.subtract(tangent, mean)
    return tangent


@library("axis")
@_softmax_docs
def log_softmax(x: Any, axis: Axis = -1, where: Any = None) -> Array:
    r"""Logarithm of the softmax: :math:`x_i - \log \sum_j e^{x_j}`.

    Args:
      axis: one or several along which to normalise; None means all.
      where: bool, broadcast against `x`: which elements take part; others give -inf.

    Raises:
      DtypeError: `x` is an array of keys.

    Special cases:
      The imaginary parts of complex results are defined up to multiples of 2π.

    Example:
      >>> nn.log_softmax(fnp.array([1000.0, 0.0])).tolist()
      [0.0, -1000.0]
    """
    x = _floats("log_softmax", x, True)
    canonical_axes("log_softmax", axis, typeof(x).ndim)
    out: Array = _log_softmax(x, axis, where)
    return out


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _log_softmax(x: Any, axis: Axis, where: Any) -> Any:
    shifted = _shifted(x, axis, where)
    total = _total(fnp.exp(shifted), axis, where)
    return _logarithm(x, shifted, total, where)


def _logarithm(x: Any, shifted: Any, total: Any, where: Any) -> Any:
    out = _like(x, fnp.subtract(shifted, fnp.log(total)))
    return out if where is None else fnp.where(where, out, -math.inf)


@_log_softmax.defjvp
def _log_softmax_rule(axis: Axis, primals: Any, tangents: Any) -> Any:
    (x, where), (dx, _) = primals, tangents
    out, p = _with_softmax(x, axis, where)
    tangent = _less_mean(dx, p, axis, where)
    # Where nothing takes part, the result is constant.
    return out, tangent if where is None else fnp.where(where, tangent, 0)


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _with_softmax(x: Any, axis: Axis, where: Any) -> Any:
    """Returns the logarithm of the softmax and the softmax, of the same powers."""
    shifted = _shifted(x, axis, where)
    powers = fnp.exp(shifted)
    total = _total(powers, axis, where)
    p = _like(x, fnp.divide(powers, total))
    if where is not None:
        p = fnp.where(where, p, 0)
    return _logarithm(x, shifted, total, where), p


@_with_softmax.defjvp
def _with_softmax_rule(axis: Axis, primals: Any, tangents: Any) -> Any:
    (x, where), (dx, _) = primals, tangents
    out, p = _with_softmax(x, axis, where)
    tangent = _less_mean(dx, p, axis, where)
    slope = fnp.multiply(p, tangent)
    if where is not None:
        tangent = fnp.where(where, tangent, 0)
    return (out, p), (tangent, slope)


@library("axis", "keepdims", "return_sign")
def logsumexp(
    a: Any,
    axis: Axis = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    r"""Logarithm of a sum of exponentials: :math:`\log \sum_i b_i e^{a_i}`.

    Args:
      a: array; integers are converted.
      axis: one or several along which to add; None means all.
      b: factors, broadcast against `a`; None means 1.
      keepdims: whether added axes stay, of length 1.
      return_sign: whether to return the sign as well, so that sums may be negative.
      where: bool, broadcast against `a`: which elements take part.

    Returns:
      The logarithm of the absolute value of the sum if `return_sign`, with the sign (or
      complex phase); else the logarithm, nan where the sum is negative.

    Raises:
      AxisError: an axis is out of range.

    Special cases:
      An empty sum, and one of -inf, gives -inf. Where `b` is 0, `a` does not matter;
      the derivative with respect to `b` is exp(a) divided by the sum, there too.

    Example:
      >>> float(nn.logsumexp(fnp.array([1000.0, 1000.0])))
      1000.6931...
    """
    a = _floats("logsumexp", a, complex_too=True)
    if b is None and not return_sign:
        return _log_sum(a, axis, where, keepdims)
    logarithm, sign = _log_of_sum(a, axis, where, keepdims, b, return_sign)
    return (logarithm, sign) if return_sign else logarithm


@functools.partial(custom_jvp, nondiff_argnums=(1, 3))
def _log_sum(a: Any, axis: Axis, where: Any, keepdims: bool) -> Any:
    return _log_of_sum(a, axis, where, keepdims)[0]


@_log_sum.defjvp
def _log_sum_rule(axis: Axis, keepdims: bool, primals: Any, tangents: Any) -> Any:
    (a, where), (da, _) = primals, tangents
    shares = fnp.multiply(_softmax(a, axis, where), da)
    tangent = fnp.sum(shares, axis, keepdims=keepdims, where=where)
    return _log_sum(a, axis, where, keepdims), tangent


def _log_of_sum(
    a: Any,
    axis: Axis,
    where: Any,
    keepdims: bool,
    b: Any = None,
    return_sign: bool = False,
) -> tuple[Any, Any]:
    """Returns the logarithm of a sum, or of its absolute value, and its sign."""
    counted = where
    if b is not None:
        dtype = fnp.result_type(a, b)
        a, b = fnp.broadcast_arrays(
            lax.convert_element_type(a, dtype), lax.convert_element_type(b, dtype)
        )
        used = fnp.not_equal(b, 0)
        counted = used if where is None else fnp.logical_and(used, where)
        b = _wide(b)
    given, a = a, _wide(a)
    is_complex = dtypes.is_complex(typeof(a).dtype)
    size = fnp.real(a) if is_complex else a
    top = fnp.max(size, axis, keepdims=True, initial=-math.inf, where=counted)
    top = stop_gradient(fnp.where(fnp.isfinite(top), top, 0))
    powers = fnp.subtract(a, top)
    # What is not added may not overflow: 0 times inf is nan, in derivatives as well.
    if where is not None:
        powers = fnp.where(where, powers, 0)
    if b is None:
        powers = fnp.exp(powers)
    else:
        most = math.log(float(dtypes.finfo(typeof(size).dtype).max)) - 1
        fits = fnp.less_equal(fnp.real(powers), most)
        powers = fnp.where(fnp.logical_or(used, fits), powers, most)
        powers = fnp.multiply(fnp.exp(powers), b)
    total = fnp.sum(powers, axis, keepdims=keepdims, where=where)
    if not keepdims:
        top = fnp.reshape(top, typeof(total).shape)
    sign = fnp.sign(total)
    if where is not None:
        # The logarithm of 0 has no slope, that of no elements is constant.
        some = fnp.broadcast_to(where, typeof(powers).shape)
        some = fnp.any(some, axis, keepdims=keepdims)
        total = fnp.where(some, total, 1)
        top = fnp.where(some, top, -math.inf)
    if return_sign:
        total = fnp.abs(total)
    return _like(given, fnp.add(fnp.log(total), top)), _like(given, sign)


@library("axis", "keepdims")
@_softmax_docs
def logmeanexp(
    x: Any, axis: Axis = None, where: Any = None, keepdims: bool = False
) -> Array:
    r"""Logarithm of a mean of exponentials: :math:`\log \tfrac1n \sum_i e^{x_i}`.

    Args:
      x: array; integers are converted.
      axis: one or several along which to average; None means all.
      where: bool, broadcast against `x`: which elements take part.
      keepdims: whether averaged axes stay, of length 1.

    Returns:
      Array of the shape of `x` without the axes, of its float dtype.

    Example:
      >>> float(nn.logmeanexp(fnp.array([1000.0, 1000.0])))
      1000.0
    """
    total = logsumexp(x, axis, where=where, keepdims=keepdims)
    shape, ndim = typeof(x).shape, typeof(x).ndim
    if where is None:
        every = axis if axis is not None else range(ndim)
        axes = (every,) if isinstance(every, int) else every
        count: Any = math.log(math.prod(shape[i] for i in axes) or math.nan)
    else:
        taken = fnp.broadcast_to(where, shape)
        taken = lax.convert_element_type(taken, dtypes.to_real(typeof(total).dtype))
        count = fnp.log(fnp.sum(taken, axis, keepdims=keepdims))
    return fnp.subtract(total, count)


@library("axis", "algorithm")
def standardize(
    x: Any,
    axis: Axis = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "stable",
) -> Array:
    r"""Makes mean 0 and variance 1: :math:`(x - \mu)/\sqrt{v + \epsilon}`.

    Args:
      x: real array; integers are converted.
      axis: one or several that the moments are taken along; None means all.
      mean: μ, broadcast against `x`; None means that of `x`.
      variance: v, broadcast against `x`; None means that of `x`.
      epsilon: ε, which keeps the denominator from 0.
      where: bool, broadcast against `x`: which elements the moments are taken of.
      algorithm: how the variance is computed: `"stable"` from deviations, or `"fast"`
        from the mean of squares: one pass, which loses digits where the mean is large
        (JAX's default).

    Returns:
      Array of the shape of `x`, of its float dtype.

    Raises:
      ArgumentError: the algorithm is another.
      AxisError: an axis is out of range.
      DtypeError: `x` is complex.

    Example:
      >>> nn.standardize(fnp.array([1.0, 3.0]), epsilon=0.0).tolist()
      [-1.0, 1.0]
    """
    if algorithm not in ("fast", "stable"):
        raise ArgumentError(
            f'standardize: algorithm must be "fast" or "stable", got {algorithm!r}'
        )
    x = _floats("standardize", x)
    known = [a for a in (mean, variance) if a is not None]
    dtype = fnp.result_type(x, *known, epsilon)
    x = _wide(x)
    if mean is None:
        mean = fnp.mean(x, axis, keepdims=True, where=where)
    if variance is None and algorithm == "stable":
        deviation = fnp.square(fnp.subtract(x, mean))
        variance = fnp.mean(deviation, axis, keepdims=True, where=where)
    elif variance is None:
        squares = fnp.mean(fnp.square(x), axis, keepdims=True, where=where)
        # Rounding may leave a negative difference.
        variance = fnp.maximum(fnp.subtract(squares, fnp.square(mean)), 0)
    scale = lax.rsqrt(_floats("standardize", fnp.add(variance, epsilon)))
    out = fnp.multiply(fnp.subtract(x, mean), scale)
    return out if typeof(out).dtype == dtype else lax.convert_element_type(out, dtype)
