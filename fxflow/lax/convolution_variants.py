"""Convolutions said in terms of `conv_general_dilated`, and windows as patches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, put_host, typeof
from fxflow.core.arrays.aval import require_room
from fxflow.core.ir.staging import trace_flat
from fxflow.errors import ArgumentError
from fxflow.lax.axes import int_tuple
from fxflow.lax.axis_order import rev, transpose
from fxflow.lax.convolution import conv_general_dilated
from fxflow.lax.convolution_dims import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv_dimension_numbers,
    dilated,
    explicit_padding,
    per_axis,
)
from fxflow.lax.dot import dot_general
from fxflow.lax.product_precision import canonical_precision


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Convolves with batch and features first.

    Args:
      lhs: numeric[batch, features, *spatial].
      rhs: of the same dtype, [out features, features, *window].
      window_strides: step of the window along each spatial axis.
      padding: `"SAME"`, `"SAME_LOWER"` or `"VALID"`.
      precision: as for `conv_general_dilated`.
      preferred_element_type: as for `conv_general_dilated`.

    Returns:
      An array [batch, out features, *windows].

    Raises:
      ShapeError, DtypeError, ArgumentError: as `conv_general_dilated`.

    Source: StableHLO convolution.
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Convolves with batch and features first, any padding and dilation.

    Args:
      lhs: numeric[batch, features, *spatial].
      rhs: of the same dtype, [out features, features, *window].
      window_strides: step of the window along each spatial axis.
      padding: a name or pairs.
      lhs_dilation: the distance between adjacent input elements; None is 1.
      rhs_dilation: the distance between adjacent kernel elements; None is 1.
      precision: as for `conv_general_dilated`.
      preferred_element_type: as for `conv_general_dilated`.

    Returns:
      An array [batch, out features, *windows].

    Raises:
      ShapeError, DtypeError, ArgumentError: as `conv_general_dilated`.

    Source: StableHLO convolution.
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


_CHANNELS_LAST = {
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Convolves with a fractional stride: the input is spread out ("deconvolution").

    With `transpose_kernel`, this is the derivative of a convolution by its input.

    Args:
      lhs: numeric input.
      rhs: kernel of the same dtype.
      strides: the distance between adjacent input elements, for each spatial axis.
      padding: `"SAME"` (the result is `strides` times as long), `"VALID"` (no input is
        lost), or a pair for each spatial axis.
      rhs_dilation: the distance between adjacent kernel elements; None is 1.
      dimension_numbers: None means features last, as in `("NHWC", "HWIO", "NHWC")`.
      transpose_kernel: flip the kernel and swap its input and output features.
      precision: as for `conv_general_dilated`.
      preferred_element_type: as for `conv_general_dilated`.
      use_consistent_padding: whether pairs mean the padding of the convolution that
        this one is the transpose of; otherwise they pad the spread input itself.

    Returns:
      An array, axes as `dimension_numbers` say.

    Raises:
      ShapeError, DtypeError, ArgumentError: as `conv_general_dilated`.

    Example:
      >>> x, w = np.ones((1, 4, 4, 2), "f4"), np.ones((3, 3, 2, 5), "f4")
      >>> conv_transpose(x, w, (2, 2), "SAME").shape
      (1, 8, 8, 5)

    Source: Dumoulin and Visin 2016, "A guide to convolution arithmetic".
    """
    name = "conv_transpose"
    left, right = typeof(lhs), typeof(rhs)
    if dimension_numbers is None:
        if left.ndim not in _CHANNELS_LAST:
            raise ArgumentError(
                f"{name}: give dimension_numbers for an input of {left.ndim} axes, "
                f"{left}"
            )
        dimension_numbers = _CHANNELS_LAST[left.ndim]
    numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    axes = left.ndim - 2
    strides = per_axis(name, "strides", strides, axes)
    rhs_dilation = per_axis(name, "rhs_dilation", rhs_dilation, axes)
    windows = [
        dilated(right.shape[a], d)
        for a, d in zip(numbers.rhs_spec[2:], rhs_dilation, strict=True)
    ]
    if isinstance(padding, str):
        padding = [
            _transposed_padding(window, stride, padding)
            for window, stride in zip(windows, strides, strict=True)
        ]
    else:
        padding = explicit_padding(name, padding, axes)
        if use_consistent_padding:
            padding = [
                (window - 1 - low, window - 1 - high)
                for window, (low, high) in zip(windows, padding, strict=True)
            ]
    if transpose_kernel:
        rhs = rev(rhs, numbers.rhs_spec[2:])
        order = list(range(right.ndim))
        out, in_ = numbers.rhs_spec[:2]
        order[out], order[in_] = in_, out
        rhs = transpose(rhs, order)
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * axes,
        padding,
        strides,
        rhs_dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _transposed_padding(window: int, stride: int, padding: str) -> tuple[int, int]:
    kind = padding.upper()
    if kind == "SAME":
        # The result is `stride` times as long as the input.
        total = window + stride - 2
        low = window - 1 if stride > window - 1 else -(-total // 2)
    elif kind == "VALID":
        total = window + stride - 2 + max(window - stride, 0)
        low = window - 1
    else:
        raise ArgumentError(
            "conv_transpose: padding must be 'SAME', 'VALID' or a pair for each "
            f"spatial axis, got {padding!r}"
        )
    return low, total - low


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Returns the window at each position as features.

    Args:
      lhs: numeric input.
      filter_shape: of the window.
      window_strides: step of the window along each spatial axis.
      padding: a name or pairs; padded positions are 0.
      lhs_dilation: the distance between adjacent input elements; None is 1.
      rhs_dilation: the distance between adjacent window elements; None is 1.
      dimension_numbers: see `conv_dimension_numbers`.
      precision: as for `conv_general_dilated`; None is the highest, so that elements
        are copied exactly.
      preferred_element_type: dtype of the result.

    Returns:
      An array with `features * prod(filter_shape)` features, those of one input feature
      next to each other.

    Raises:
      ShapeError, DtypeError, ArgumentError: as `conv_general_dilated`.

    Example:
      >>> x = np.ones((1, 3, 4, 4), "f4")
      >>> conv_general_dilated_patches(x, (2, 2), (1, 1), "VALID").shape
      (1, 12, 3, 3)

    Source: StableHLO convolution with a kernel of unit vectors.
    """
    aval = typeof(lhs)
    window = int_tuple("conv_general_dilated", "filter_shape", filter_shape)
    if dimension_numbers is None:
        numbers = conv_dimension_numbers(aval.shape, aval.shape, None)
    else:
        numbers = conv_dimension_numbers(
            aval.shape, (1,) * aval.ndim, dimension_numbers
        )
    features = aval.shape[numbers.lhs_spec[1]]
    size = math.prod(window)
    require_room((features * size, size), aval.dtype)
    # One output feature for each element of the window.
    kernel = np.eye(size, dtype=aval.dtype).reshape(size, 1, *window)
    kernel = np.tile(kernel, (features,) + (1,) * (kernel.ndim - 1))
    kernel = np.ascontiguousarray(kernel.transpose(np.argsort(numbers.rhs_spec)))
    return conv_general_dilated(
        lhs,
        put_host(kernel, Aval(kernel.shape, kernel.dtype)),
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=features,
        # The products only copy elements: a lower precision would round them.
        precision="highest" if precision is None else precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: Any = None,
) -> Array:
    """Convolves with an own kernel at each position (a locally connected layer).

    Args:
      lhs: numeric[batch, features, *spatial], or as `dimension_numbers` say.
      rhs: of the same dtype, [out features, features * prod(filter_shape), *windows]:
        the kernel of each position.
      window_strides: step of the window along each spatial axis.
      padding: a name or pairs.
      filter_shape: of the window.
      lhs_dilation: the distance between adjacent input elements; None is 1.
      rhs_dilation: the distance between adjacent window elements; None is 1.
      dimension_numbers: see `conv_dimension_numbers`.
      precision: as for `conv_general_dilated`.

    Returns:
      An array [batch, out features, *windows], axes as `dimension_numbers` say.

    Raises:
      ShapeError, DtypeError, ArgumentError: as `conv_general_dilated`.

    Source: patches and a batched product.
    """
    left, right = typeof(lhs), typeof(rhs)
    numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    pair = canonical_precision("conv_general_dilated_local", precision)
    patches = conv_general_dilated_patches(
        lhs,
        filter_shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        ConvDimensionNumbers(numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec),
        precision=pair[0] if isinstance(pair, tuple) else None,
    )
    out_spec, rhs_spec = numbers.out_spec, numbers.rhs_spec
    out = dot_general(
        rhs,
        patches,
        (((rhs_spec[1],), (out_spec[1],)), (rhs_spec[2:], out_spec[2:])),
        precision=precision,
    )
    # The product's axes: positions, output features, batch.
    positions = len(out_spec) - 2
    order = [0] * len(out_spec)
    order[out_spec[0]], order[out_spec[1]] = positions + 1, positions
    for i, axis in enumerate(out_spec[2:]):
        order[axis] = i
    return transpose(out, order)


# -- shapes of results -----------------------------------------------------------------


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> tuple[int, ...]:
    """Returns the shape of a convolution.

    Args:
      lhs_shape: of the input.
      rhs_shape: of the kernel.
      window_strides: for each spatial axis.
      padding: "SAME", "VALID", or a pair for each spatial axis.
      dimension_numbers: which axis is what.

    Returns:
      The shape that `conv_general_dilated` gives.

    Raises:
      ShapeError: the shapes are incompatible.
      ArgumentError: another argument makes no sense.

    Example:
      >>> numbers = ("NHWC", "HWIO", "NHWC")
      >>> conv_general_shape_tuple((1, 8, 8, 3), (3, 3, 3, 4), (2, 2), "SAME", numbers)
      (1, 4, 4, 4)
    """

    def convolved(lhs: Array, rhs: Array) -> Array:
        return conv_general_dilated(
            lhs, rhs, window_strides, padding, dimension_numbers=dimension_numbers
        )

    return _shape_of(convolved, lhs_shape, rhs_shape)


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: str | Sequence[tuple[int, int]],
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """Returns the shape of a convolution with batch and features in front.

    Args:
      lhs_shape: of the input: batch, features, space.
      rhs_shape: of the kernel: output features, input features, space.
      strides: for each spatial axis.
      pads: "SAME", "VALID", or a pair for each spatial axis.
      batch_group_count: into how many groups the batch is split.

    Returns:
      The shape that `conv_general_dilated` gives.

    Raises:
      ShapeError: the shapes are incompatible.
      ArgumentError: another argument makes no sense.

    Example:
      >>> conv_shape_tuple((1, 3, 8, 8), (4, 3, 3, 3), (2, 2), "SAME")
      (1, 4, 4, 4)
    """

    def convolved(lhs: Array, rhs: Array) -> Array:
        return conv_general_dilated(
            lhs, rhs, strides, pads, batch_group_count=batch_group_count
        )

    return _shape_of(convolved, lhs_shape, rhs_shape)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> tuple[int, ...]:
    """Returns the shape of a transposed convolution.

    Args:
      lhs_shape: of the input.
      rhs_shape: of the kernel.
      window_strides: for each spatial axis.
      padding: "SAME", "VALID", or a pair for each spatial axis.
      dimension_numbers: which axis is what.

    Returns:
      The shape that `conv_transpose` gives.

    Raises:
      ShapeError: the shapes are incompatible.
      ArgumentError: another argument makes no sense.

    Example:
      >>> numbers = ("NHWC", "HWIO", "NHWC")
      >>> shapes = (1, 8, 8, 3), (3, 3, 3, 4)
      >>> conv_transpose_shape_tuple(*shapes, (2, 2), "VALID", numbers)
      (1, 17, 17, 4)
    """

    def convolved(lhs: Array, rhs: Array) -> Array:
        return conv_transpose(
            lhs, rhs, window_strides, padding, dimension_numbers=dimension_numbers
        )

    return _shape_of(convolved, lhs_shape, rhs_shape)


def _shape_of(
    function: Callable[[Any, Any], Array], *shapes: Sequence[int]
) -> tuple[int, ...]:
    avals = [Aval(tuple(shape), dtypes.float32) for shape in shapes]
    graph, _ = trace_flat(lambda x, y: [function(x, y)], avals)
    shape: tuple[int, ...] = graph.out_avals[0].shape
    return shape
