"""Covariance, and convolution of sequences."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.core.sizes import is_symbolic
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.numpy._operands import (
    ArrayLike,
    DTypeLike,
    array_of,
    convert,
    promote_dtypes,
    promote_inexact,
)
from fxflow.numpy.complex_parts import conjugate, real
from fxflow.numpy.concatenation import concatenate
from fxflow.numpy.means import average
from fxflow.numpy.outer_products import outer
from fxflow.numpy.products import dot
from fxflow.numpy.reductions import sum
from fxflow.numpy.selection import choose_between, clip
from fxflow.numpy.shapes import atleast_1d, atleast_2d, reshape

_covariance_docs = shared("""
    Args:
      y: more variables, in the same form.
      rowvar: whether rows are variables, rather than columns.
      dtype: dtype of the result.

    Raises:
      ShapeError: an argument has too many axes, or lengths differ.

    Source: `numpy.{name}`.
""")


@library("rowvar", "bias", "ddof", "dtype")
@_covariance_docs
def cov(
    m: ArrayLike,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Returns the covariances of variables.

    Args:
      m: array-like[v, n]: a row for each variable, a column for each observation.
      bias: whether to divide by n rather than n - 1.
      ddof: divide by n - ddof; overrides `bias`.
      fweights: integer array-like[n]: how often each observation counts.
      aweights: array-like[n]: relative weights of the observations.

    Returns:
      Float or complex array[v, v]; 0-d for one variable.

    Raises:
      DtypeError: `fweights` are not integers.

    Special cases:
      inf or nan of too few observations: it is divided by 0.

    Example:
      >>> cov(np.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
      Array([[ 1., -1.],
             [-1.,  1.]], dtype=float32)
    """
    given = [m] if y is None else [m, y]
    arrays = promote_inexact("cov", *given)
    rows = []
    for array in arrays:
        if array.aval.ndim > 2:
            raise ShapeError(f"cov: variables have at most two axes, got {array.aval}")
        row = atleast_2d(array)
        if not rowvar and array.aval.ndim == 2:
            row = row.T
        rows.append(row)
    if len(rows) == 2 and rows[0].aval.shape[1] != rows[1].aval.shape[1]:
        raise ShapeError(
            f"cov: numbers of observations differ: {arrays[0].aval} and "
            f"{arrays[1].aval}"
        )
    data = concatenate(rows) if len(rows) == 2 else rows[0]
    if dtype is not None:
        wanted = dtypes.dtype(dtype)
        if not dtypes.is_inexact(wanted):
            raise DtypeError(
                "cov: dtype must be a float or complex one, got "
                f"{dtypes.short_name(wanted)}"
            )
        data = convert(data, wanted)
    if ddof is None:
        ddof = 0 if bias else 1
    n = data.aval.shape[1]
    kind = dtypes.to_real(data.aval.dtype)
    weights = None
    if fweights is not None:
        counts = array_of(fweights, "cov")
        if not dtypes.is_integer(counts.aval.dtype):
            raise DtypeError(f"cov: fweights must be integers, got {counts.aval}")
        weights = convert(counts, kind)
    if aweights is not None:
        scale = convert(array_of(aweights, "cov"), kind)
        weights = scale if weights is None else weights * scale
    if weights is not None and weights.aval.shape != (n,):
        raise ShapeError(
            f"cov: weights {weights.aval} must be as long as the observations, {n}"
        )
    center = average(data, axis=1, weights=weights)
    factor: Any
    if weights is None:
        factor = max(n - ddof, 0)
    else:
        total = sum(weights)
        less: Any = ddof
        if aweights is not None and ddof != 0:
            # NumPy's correction under reliability weights: ddof observations of mean
            # weight.
            less = ddof * sum(weights * scale) / total
        factor = clip(total - less, 0)
    apart = data - reshape(center, (-1, 1))
    other = apart if weights is None else apart * weights
    out = dot(apart, conjugate(other.T)) / convert(
        array_of(factor, "cov"), data.aval.dtype
    )
    return lax.squeeze(out, (0, 1)) if out.aval.shape == (1, 1) else out


@library("rowvar", "dtype")
@_covariance_docs
def corrcoef(
    x: ArrayLike, y: Any = None, rowvar: bool = True, *, dtype: DTypeLike | None = None
) -> Array:
    """Returns the correlation coefficients of variables.

    Args:
      x: array-like[v, n]: a row for each variable, a column for each observation.

    Returns:
      Float or complex array[v, v], between -1 and 1; 0-d for one variable.

    Example:
      >>> corrcoef(np.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
      Array([[ 1., -1.],
             [-1.,  1.]], dtype=float32)
    """
    out = cov(x, y, rowvar, dtype=dtype)
    if not out.aval.ndim:
        # 1, or nan where the variance is 0.
        return out / out
    n = out.aval.shape[0]
    row = lax.broadcasted_iota(dtypes.int32, (n, n), 0)
    column = lax.broadcasted_iota(dtypes.int32, (n, n), 1)
    deviations = lax.sqrt(
        sum(choose_between(row == column, real(out), 0 * real(out)), axis=1)
    )
    out = out / convert(outer(deviations, deviations), out.aval.dtype)
    # Rounding can take them slightly beyond 1.
    if dtypes.is_complex(out.aval.dtype):
        return lax.complex(clip(lax.real(out), -1, 1), clip(lax.imag(out), -1, 1))
    return clip(out, -1, 1)


# -- convolution -----------------------------------------------------------------------


def _convolution(
    name: str, a: Any, v: Any, mode: str, precision: Any, preferred: Any
) -> Array:
    """Returns the convolution of two sequences; the second one is reversed."""
    x, y = map(atleast_1d, promote_dtypes(name, a, v))
    if x.aval.ndim != 1 or y.aval.ndim != 1 or not x.aval.size or not y.aval.size:
        raise ShapeError(
            f"{name}: operands must be sequences with one axis, not empty, got "
            f"{x.aval} and {y.aval}"
        )
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(
            f'{name}: mode must be "full", "same" or "valid", got {mode!r}'
        )
    if dtypes.is_bool(x.aval.dtype):
        # Products and sums of truths, as in NumPy.
        x, y = convert(x, dtypes.int32), convert(y, dtypes.int32)
        return convert(_convolution(name, x, y, mode, precision, None), dtypes.bool_)
    n, m = x.aval.size, y.aval.size
    # Convolution commutes, and the window must not be longer than what it slides over:
    # the full one is padded by its length.
    known = mode != "full" or not is_symbolic((n, m))
    if known and m > n:
        x, y, n, m = y, x, m, n
    pad = {"full": (m - 1, m - 1), "valid": (0, 0)}.get(mode, (m // 2, m - m // 2 - 1))
    out = lax.conv_general_dilated(
        lax.reshape(x, (1, 1, n)),
        # XLA's convolution is a cross-correlation: it does not reverse the kernel.
        lax.reshape(lax.rev(y, (0,)), (1, 1, m)),
        (1,),
        (pad,),
        precision=precision,
        preferred_element_type=None if preferred is None else dtypes.dtype(preferred),
    )
    return lax.reshape(out, (out.aval.size,))


_convolution_docs = shared("""
    Args:
      a: array-like[n].
      mode: "full" is n + m - 1 long, "same" max(n, m), "valid" only where both overlap
        fully.
      precision: see `fxflow.lax.dot_general`.
      preferred_element_type: dtype of the result and of the sums.

    Returns:
      Array with one axis.

    Raises:
      ShapeError: an operand has not one axis, or is empty.
      ArgumentError: unknown mode.

    Source: `numpy.{name}`.
""")


@library("mode", "precision", "preferred_element_type")
@_convolution_docs
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Returns the convolution of two sequences.

    Args:
      v: array-like[m].

    Example:
      >>> convolve(np.array([1, 2, 3]), np.array([1, 10]))
      Array([ 1, 12, 23, 30], dtype=int32)
    """
    return _convolution("convolve", a, v, mode, precision, preferred_element_type)


@library("mode", "precision", "preferred_element_type")
@_convolution_docs
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Returns the cross-correlation of two sequences.

    Args:
      v: array-like[m]; it is conjugated.

    Example:
      >>> correlate(np.array([1, 2, 3]), np.array([1, 10]))
      Array([21, 32], dtype=int32)
    """
    x, y = promote_dtypes("correlate", a, v)
    other = conjugate(y) if dtypes.is_complex(y.aval.dtype) else y
    longer = y.aval.size > x.aval.size
    if mode == "same" and longer:
        # The middle is counted from the other end.
        full = _convolution(
            "correlate", x, other[::-1], "full", precision, preferred_element_type
        )
        n, m = y.aval.size, x.aval.size
        start = m // 2
        return full[start : start + n]
    return _convolution(
        "correlate", x, other[::-1], mode, precision, preferred_element_type
    )
