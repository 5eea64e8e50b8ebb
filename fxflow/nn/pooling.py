"""Pooling: the maximum or the mean of each window."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, is_arraylike, not_an_array, typeof
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import int_tuple
from fxflow.nn._layers import floats
from fxflow.numpy._operands import ArrayLike

Padding = str | Sequence[tuple[int, int]]

_pool_docs = shared("""
    Args:
      window: its length along each spatial axis; None means the whole axes: all but
        the first and the last.
      strides: its steps; None means those of the window, which then do not overlap.
      padding: `"VALID"`, `"SAME"`, `"SAME_LOWER"`, or a pair for each spatial axis.
      dilation: distance between neighbouring elements of the window, for each spatial
        axis; None means 1.

    Raises:
      ArgumentError: windows, strides, dilation are not positive integers, as many as
        spatial axes, or the padding is another.
      ShapeError: `x` has too few axes.
""")


def _pool(
    name: str,
    x: Any,
    window: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    reduce: Callable[..., Any],
) -> Any:
    """Calls `reduce` with an array and the arguments of `lax.reduce_window`."""
    aval = typeof(x)
    if window is None:
        if aval.ndim < 2:
            raise ShapeError(f"{name}: x must be [batch, ..., features], got {aval}")
        window = aval.shape[1:-1]
    sizes = _lengths(name, "window", window, None)
    if aval.ndim <= len(sizes):
        raise ShapeError(
            f"{name}: x must have {len(sizes)} spatial axes, as the window {sizes} "
            f"has, and then features, got {aval}"
        )
    before = aval.ndim - 1 - len(sizes)

    def over_all(values: Sequence[Any], one: Any) -> tuple[Any, ...]:
        return (*[one] * before, *values, one)

    steps = sizes if strides is None else _lengths(name, "strides", strides, sizes)
    apart = (1,) * len(sizes)
    if dilation is not None:
        apart = _lengths(name, "dilation", dilation, sizes)
    if isinstance(padding, str):
        if padding not in ("VALID", "SAME", "SAME_LOWER"):
            raise ArgumentError(
                f'{name}: padding must be "VALID", "SAME", "SAME_LOWER" or pairs, got '
                f"{padding!r}"
            )
    else:
        if not isinstance(padding, tuple | list) or len(padding) != len(sizes):
            raise ArgumentError(
                f"{name}: padding must be a string, or a pair for each of the "
                f"{len(sizes)} spatial axes, got {padding!r}"
            )
        pairs = [int_tuple(name, "padding", pair) for pair in padding]
        if any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
            raise ArgumentError(
                f"{name}: padding must be pairs of integers ≥ 0, got {padding!r}"
            )
        padding = over_all(pairs, (0, 0))
    return reduce(
        x, over_all(sizes, 1), over_all(steps, 1), padding, over_all(apart, 1)
    )


def _lengths(name: str, what: str, value: Any, beside: Any) -> tuple[int, ...]:
    found = int_tuple(name, what, value)
    if any(n < 1 for n in found):
        raise ArgumentError(f"{name}: {what} must be positive, got {found}")
    if beside is not None and len(found) != len(beside):
        raise ArgumentError(
            f"{name}: {what} must be {len(beside)} integers, as the window, got {found}"
        )
    return found


@_pool_docs
def max_pool(
    x: ArrayLike,
    window: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    *,
    dilation: Sequence[int] | None = None,
) -> Array:
    """Returns the maximum of each window.

    Args:
      x: real array [..., spatial axes, features].

    Returns:
      Array of the dtype of `x`, with an element for each window.

    Raises:
      DtypeError: `x` has no real numbers.

    Special cases:
      Padding takes no part. The derivative goes to the first of equal elements.

    Example:
      >>> x = fnp.arange(6.0).reshape(1, 6, 1)
      >>> nn.max_pool(x, (2,)).ravel().tolist()
      [1.0, 3.0, 5.0]

    Source: StableHLO `reduce_window`.
    """
    if not is_arraylike(x):
        raise not_an_array(x, "max_pool: x is")
    dtype = typeof(x).dtype
    if dtypes.is_floating(dtype):
        least: Any = -math.inf
    elif dtypes.is_integer(dtype):
        least = dtypes.iinfo(dtype).min
    else:
        raise DtypeError(f"max_pool: x must be real numbers, got {typeof(x)}")

    def reduce(x: Any, window: Any, strides: Any, padding: Any, dilation: Any) -> Any:
        first = np.asarray(least, dtype)
        return lax.reduce_window(
            x, first, lax.max, window, strides, padding, window_dilation=dilation
        )

    out: Array = _pool("max_pool", x, window, strides, padding, dilation, reduce)
    return out


@_pool_docs
def avg_pool(
    x: ArrayLike,
    window: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    *,
    dilation: Sequence[int] | None = None,
    count_include_pad: bool = True,
) -> Array:
    """Returns the mean of each window.

    Args:
      x: float[..., spatial axes, features].
      count_include_pad: whether padding takes part, as zeros.

    Returns:
      Array of the dtype of `x`, with an element for each window. Floats of 16 bits are
      added in float32.

    Raises:
      DtypeError: `x` has no floats.

    Special cases:
      A window of padding alone gives 0, or nan if padding takes no part.

    Example:
      >>> x = fnp.arange(6.0).reshape(1, 6, 1)
      >>> nn.avg_pool(x, (2,)).ravel().tolist()
      [0.5, 2.5, 4.5]

    Source: StableHLO `reduce_window`.
    """
    floats("avg_pool", "x", x)
    dtype = typeof(x).dtype
    wide = dtype if dtypes.bits(dtype) >= 32 else dtypes.float32

    def reduce(x: Any, window: Any, strides: Any, padding: Any, dilation: Any) -> Any:
        def total(x: Any) -> Any:
            return lax.reduce_window(
                x, np.zeros((), wide), lax.add, window, strides, padding,
                window_dilation=dilation,
            )  # fmt: skip

        sums = total(lax.convert_element_type(x, wide))
        if count_include_pad:
            return fnp.divide(sums, math.prod(window))
        return fnp.divide(sums, total(fnp.ones(typeof(x).shape, wide)))

    out = _pool("avg_pool", x, window, strides, padding, dilation, reduce)
    return lax.convert_element_type(out, dtype)
