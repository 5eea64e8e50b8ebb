"""Convolution: the primitive with its derivatives, and `conv_general_dilated`.

Axes and padding are in `convolution_dims`; what is said in terms of this operation is
in `convolution_variants`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import Batched, Flags, Values, Zero, register
from fxflow.core.runtime.eager import open_layouts
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import is_symbolic, larger
from fxflow.core.spmd import layouts
from fxflow.core.spmd.partition import whole_along
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axis_order import rev, transpose
from fxflow.lax.complex import complex as complex_
from fxflow.lax.complex import imag, real
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.convolution_dims import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    Padding,
    conv_dimension_numbers,
    default_hint,
    dilated,
    explicit_padding,
    operands_text,
    padtype_to_pads,
    per_axis,
    strided,
)
from fxflow.lax.elementwise import add, sub
from fxflow.lax.families import Bilinear
from fxflow.lax.padding import pad
from fxflow.lax.product_precision import canonical_precision, product_dtype
from fxflow.lax.reshaping import reshape
from fxflow.lax.slicing import slice as slice_
from fxflow.lax.transfer import laid_out


@register
class ConvGeneralDilated(Bilinear):
    """Convolution with strides, padding, dilation and groups (without flipping).

    dtypes: numeric. StableHLO: convolution.

    Params:
      window_strides: step of the window along each spatial axis.
      padding: of the (dilated) input, may be negative.
      lhs_dilation: of the input: holes between its elements.
      rhs_dilation: of the kernel.
      dimension_numbers: which axis is what.
      feature_group_count: features are convolved in as many groups.
      batch_group_count: the batch is convolved in as many groups.
      precision: pair of `Precision` or None.
      preferred_element_type: dtype of the result, or None for that of the operands.
    """

    name = "conv_general_dilated"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    layout: Callable[..., Any] = layouts.convolution

    def abstract(
        self,
        lhs: Aval,
        rhs: Aval,
        *,
        window_strides: tuple[int, ...],
        padding: Padding,
        lhs_dilation: tuple[int, ...],
        rhs_dilation: tuple[int, ...],
        dimension_numbers: ConvDimensionNumbers,
        feature_group_count: int,
        batch_group_count: int,
        precision: Any,
        preferred_element_type: Any,
    ) -> Aval:
        """Batch and features as the groups say, windows that fit."""
        dtype = product_dtype(self.name, lhs, rhs, preferred_element_type)
        lhs_spec, rhs_spec, out_spec = dimension_numbers
        batch, features = lhs.shape[lhs_spec[0]], lhs.shape[lhs_spec[1]]
        out_features, per_group = rhs.shape[rhs_spec[0]], rhs.shape[rhs_spec[1]]
        if features != per_group * feature_group_count:
            takes = f"{per_group}"
            if feature_group_count != 1:
                takes = (
                    f"{feature_group_count} groups of {per_group}, that is "
                    f"{feature_group_count * per_group}"
                )
            raise ShapeError(
                f"{self.name}: the input has {features} features, but the kernel "
                f"takes {takes} ({operands_text(lhs, rhs, dimension_numbers)})"
                f"{default_hint(dimension_numbers)}"
            )
        groups = operands_text(lhs, rhs, dimension_numbers)
        for what, count in (
            ("feature_group_count", feature_group_count),
            ("batch_group_count", batch_group_count),
        ):
            if out_features % count:
                raise ShapeError(
                    f"{self.name}: {what} {count} does not divide the {out_features} "
                    f"output features of the kernel ({groups})"
                )
        if batch % batch_group_count:
            raise ShapeError(
                f"{self.name}: batch_group_count {batch_group_count} does not divide "
                f"the batch of {batch} ({groups})"
            )
        if not all(rhs.shape[i] for i in rhs_spec[2:]):
            raise ShapeError(
                f"{self.name}: the window of the kernel is empty ({groups})"
            )
        shape = [0] * lhs.ndim
        shape[out_spec[0]] = batch // batch_group_count
        shape[out_spec[1]] = out_features
        for i, (low, high) in enumerate(padding):
            length = dilated(lhs.shape[lhs_spec[i + 2]], lhs_dilation[i]) + low + high
            window = dilated(rhs.shape[rhs_spec[i + 2]], rhs_dilation[i])
            count = strided(larger(length, 0), window, window_strides[i])
            shape[out_spec[i + 2]] = count
        weak = lhs.weak_type and rhs.weak_type and preferred_element_type is None
        return Aval(tuple(shape), dtype, weak)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`convolution`; of complex numbers, four of real ones."""
        lhs, rhs = ctx.avals_in
        if dtypes.is_complex(lhs.dtype):
            (out,) = ctx.compose(lambda x, y: _complex(x, y, params), operands)
            return out
        numbers = params["dimension_numbers"]
        if cut := _cut_and_padded(params["padding"]):
            (out,) = ctx.compose(lambda x, y: _padded(x, y, params, cut), operands)
            return out
        # Where devices share out the windows and the kernel's elements alike, XLA sums
        # some of them more than once.
        kernel = whole_along(ctx, operands[1], rhs, numbers[1][2:])
        operands = (operands[0], kernel)
        dims = "x".join(
            _letters(spec, first)
            for spec, first in zip(numbers[:2], ("bf", "oi"), strict=True)
        )
        pads = ", ".join(f"[{low}, {high}]" for low, high in params["padding"])
        precision = ""
        if params["precision"] is not None:
            if not isinstance(params["precision"], tuple):
                raise ArgumentError(
                    f"{self.name}: takes a Precision, not the algorithm "
                    f"{params['precision']}"
                )
            names = (f"#stablehlo<precision {p}>" for p in params["precision"])
            precision = f", precision_config = [{', '.join(names)}]"
        return ctx.emit(
            f"stablehlo.convolution({', '.join(operands)}) dim_numbers = {dims}->"
            f"{_letters(numbers[2], 'bf')}, window = {{"
            f"stride = {list(params['window_strides'])}, pad = [{pads}], "
            f"lhs_dilate = {list(params['lhs_dilation'])}, "
            f"rhs_dilate = {list(params['rhs_dilation'])}}} "
            f"{{batch_group_count = {params['batch_group_count']} : i64, "
            f"feature_group_count = {params['feature_group_count']} : i64"
            f"{precision}}} : "
            f"({lhs.mlir}, {rhs.mlir}) -> {ctx.avals_out[0].mlir}"
        )

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """Windows by strides of memory, then `numpy.einsum`."""
        lhs, rhs = values
        out = self.abstract(typeof_host(lhs), typeof_host(rhs), **params)
        lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
        wide = _wide(out.dtype)
        x = lhs.astype(wide).transpose(lhs_spec)
        w = rhs.astype(wide).transpose(rhs_spec)
        x = _dilate_and_pad(x, params["lhs_dilation"], params["padding"])
        shape = tuple(out.shape[i] for i in out_spec)
        result = np.zeros(shape, wide)
        axes = tuple(range(2, x.ndim))
        if result.size and all(w.shape[i] for i in axes):
            apart = params["rhs_dilation"]
            spans = [dilated(n, d) for n, d in zip(w.shape[2:], apart, strict=True)]
            windows = np.lib.stride_tricks.sliding_window_view(x, spans, axes)
            # An infinity does not meet a zero between elements of a dilated window.
            steps = (slice(None, None, s) for s in (*params["window_strides"], *apart))
            windows = windows[(slice(None), slice(None), *steps)]
            groups = params["feature_group_count"]
            batch_groups = params["batch_group_count"]
            count = max(groups, batch_groups)
            each = shape[1] // count
            for g in range(count):
                part = windows
                if groups > 1:
                    part = np.array_split(windows, groups, 1)[g]
                elif batch_groups > 1:
                    part = np.array_split(windows, batch_groups, 0)[g]
                kernel = w[g * each : (g + 1) * each]
                contract = (1, *range(x.ndim, x.ndim + len(axes)))
                product = np.tensordot(
                    part, kernel, (contract, tuple(range(1, w.ndim)))
                )
                result[:, g * each : (g + 1) * each] = np.moveaxis(product, -1, 1)
        return result.transpose(np.argsort(out_spec)).astype(out.dtype)

    def transpose_left(self, ct: Any, y: Any, x_aval: Aval, **params: Any) -> Any:
        """Convolution of the dilated cotangent with the flipped kernel.

        Groups of the batch become groups of features.
        """
        if not typeof(ct).size:
            return Zero(x_aval)
        lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
        ct, y = _one_dtype(ct, y)
        spatial = range(x_aval.ndim - 2)
        groups = max(params["feature_group_count"], params["batch_group_count"])
        kernel = rev(y, tuple(rhs_spec[2:]))
        if groups > 1:
            # Output features of a group become its inputs: the group moves over.
            kernel = _split_axis(kernel, rhs_spec[0], groups)
            kernel = _merge_axis(kernel, rhs_spec[0], rhs_spec[1])
        padding = []
        for i in spatial:
            low, _ = params["padding"][i]
            stride = params["window_strides"][i]
            window = dilated(
                typeof(y).shape[rhs_spec[i + 2]], params["rhs_dilation"][i]
            )
            length = dilated(x_aval.shape[lhs_spec[i + 2]], params["lhs_dilation"][i])
            result = dilated(typeof(ct).shape[out_spec[i + 2]], stride)
            # A full convolution (window - 1 on either side), less the padding of the
            # forward one.
            before = window - 1 - low
            padding.append((before, length + window - 1 - result - before))
        swapped = (rhs_spec[1], rhs_spec[0], *rhs_spec[2:])
        out = self.bind(
            ct,
            kernel,
            window_strides=params["lhs_dilation"],
            padding=tuple(padding),
            lhs_dilation=params["window_strides"],
            rhs_dilation=params["rhs_dilation"],
            dimension_numbers=ConvDimensionNumbers(out_spec, swapped, lhs_spec),
            feature_group_count=groups,
            batch_group_count=1,
            precision=params["precision"],
            preferred_element_type=None,
        )
        if params["batch_group_count"] > 1:
            out = _split_axis(out, lhs_spec[1], groups)
            out = _merge_axis(out, lhs_spec[1], lhs_spec[0])
        return _as_dtype(out, x_aval.dtype)

    def transpose_right(self, ct: Any, x: Any, y_aval: Aval, **params: Any) -> Any:
        """Convolution of the input with the cotangent, batch and features swapped."""
        if not typeof(ct).size:
            return Zero(y_aval)
        lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
        ct, x = _one_dtype(ct, x)
        padding = []
        for i in range(y_aval.ndim - 2):
            low, _ = params["padding"][i]
            stride = params["window_strides"][i]
            window = dilated(y_aval.shape[rhs_spec[i + 2]], params["rhs_dilation"][i])
            length = dilated(
                typeof(x).shape[lhs_spec[i + 2]], params["lhs_dilation"][i]
            )
            result = dilated(typeof(ct).shape[out_spec[i + 2]], stride)
            # So that the cotangent, as a window, fits once for each element of the
            # kernel.
            padding.append((low, result + window - 1 - length - low))
        numbers = ConvDimensionNumbers(
            *((s[1], s[0], *s[2:]) for s in (lhs_spec, out_spec, rhs_spec))
        )
        out = self.bind(
            x,
            ct,
            window_strides=params["rhs_dilation"],
            padding=tuple(padding),
            lhs_dilation=params["lhs_dilation"],
            rhs_dilation=params["window_strides"],
            dimension_numbers=numbers,
            feature_group_count=params["batch_group_count"],
            batch_group_count=params["feature_group_count"],
            precision=params["precision"],
            preferred_element_type=None,
        )
        return _as_dtype(out, y_aval.dtype)

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """The mapped axis joins the batch, the output features, or makes groups."""
        x, y = args
        lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
        features, batches = params["feature_group_count"], params["batch_group_count"]
        left, right = mapped
        if not size:  # zero groups
            inner = (
                typeof(a).update(shape=typeof(a).shape[m:])
                for a, m in zip(args, mapped, strict=True)
            )
            aval = self.abstract(*inner, **params)
            return arith.zeros(aval.update(shape=(0, *aval.shape))), True
        if left and right:
            # Each slice becomes a group: groups, too, are convolved each with its own
            # kernel.
            key = "batch_group_count" if batches > 1 else "feature_group_count"
            joined = lhs_spec[0] if batches > 1 else lhs_spec[1]
            params[key] *= size
            out = self.bind(
                _merge_axis(x, 0, joined), _merge_axis(y, 0, rhs_spec[0]), **params
            )
            return _front(_split_axis(out, out_spec[1], size), out_spec[1]), True
        if left:
            if batches > 1:
                # Batch groups are the slowest part of the batch: the axis goes behind.
                x = _split_axis(x, lhs_spec[0] + 1, batches)
                x = _merge_axis(x, 0, lhs_spec[0] + 1)
                x = _merge_axis(x, lhs_spec[0], lhs_spec[0])
            else:
                x = _merge_axis(x, 0, lhs_spec[0])
            out = self.bind(x, y, **params)
            return _front(_split_axis(out, out_spec[0], size), out_spec[0]), True
        groups = max(features, batches)
        if groups > 1:
            # Output features are numbered by groups first: the mapped axis goes inside
            # of each.
            y = _split_axis(y, rhs_spec[0] + 1, groups)
            y = _merge_axis(y, 0, rhs_spec[0] + 1)
            y = _merge_axis(y, rhs_spec[0], rhs_spec[0])
            out = _split_axis(self.bind(x, y, **params), out_spec[1], groups)
            out = _front(_split_axis(out, out_spec[1] + 1, size), out_spec[1] + 1)
            return _merge_axis(out, out_spec[1] + 1, out_spec[1] + 1), True
        out = self.bind(x, _merge_axis(y, 0, rhs_spec[0]), **params)
        return _front(_split_axis(out, out_spec[1], size), out_spec[1]), True

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """Two operations a product."""
        out = self.abstract(*avals, **params)
        rhs_spec = params["dimension_numbers"].rhs_spec
        each = avals[1].size / max(1, avals[1].shape[rhs_spec[0]])
        return {**super().cost(*avals, **params), "flops": 2.0 * out.size * each}


# -- axes ------------------------------------------------------------------------------


def _split_axis(x: Any, axis: int, outer: int) -> Any:
    """Returns `x` with an axis made two, the first of length `outer`."""
    shape = typeof(x).shape
    inner = shape[axis] // outer if outer else 0
    return reshape(x, (*shape[:axis], outer, inner, *shape[axis + 1 :]))


def _merge_axis(x: Any, source: int, target: int) -> Any:
    """Returns `x` with an axis made the slow part of another.

    Args:
      x: an array.
      source: the axis that goes.
      target: the other, counted as if `source` were removed already.
    """
    ndim = typeof(x).ndim
    order = [i for i in range(ndim) if i != source]
    order.insert(target, source)
    if order != list(range(ndim)):
        x = transpose(x, tuple(order))
    shape = typeof(x).shape
    length = shape[target] * shape[target + 1]
    return reshape(x, (*shape[:target], length, *shape[target + 2 :]))


def _front(x: Any, axis: int) -> Any:
    order = (axis, *(i for i in range(typeof(x).ndim) if i != axis))
    return transpose(x, order) if axis else x


def _letters(spec: Sequence[int], first: str) -> str:
    names = [*first, *map(str, range(len(spec) - 2))]
    letters = [""] * len(spec)
    for axis, letter in zip(spec, names, strict=True):
        letters[axis] = letter
    return f"[{', '.join(letters)}]"


# -- values ----------------------------------------------------------------------------


def _one_dtype(ct: Any, value: Any) -> tuple[Any, Any]:
    """Returns cotangent and operand in the wider of their dtypes."""
    return ct, _as_dtype(value, typeof(ct).dtype)


def _as_dtype(x: Any, dtype: Any) -> Any:
    return x if typeof(x).dtype == dtype else convert_element_type(x, dtype)


def _cut_and_padded(padding: Padding) -> list[int]:
    """Returns the axes of an image that lose elements at one end and gain at the other.

    For these XLA:CPU (jaxlib 0.10.2) reads beyond the image, in place of zeros.
    """
    return [
        i
        for i, ends in enumerate(padding)
        if not is_symbolic(ends) and min(ends) < 0 < max(ends)
    ]


def _padded(x: Any, y: Any, params: dict[str, Any], axes: Sequence[int]) -> Any:
    """Returns a convolution of an image that is cut, or padded, along axes first.

    A dilated image is cut: its padding would include the zeros between its elements,
    which XLA multiplies by the window, and zero times infinity is nan.
    """
    padding, dilation = list(params["padding"]), list(params["lhs_dilation"])
    shape = typeof(x).shape
    cuts, config = [(0, length) for length in shape], [(0, 0, 0)] * len(shape)
    for i in axes:
        axis, d = params["dimension_numbers"][0][i + 2], dilation[i]
        # Elements that each end loses.
        low, high = (-(min(n, 0) // d) for n in padding[i])
        if (
            d > 1
            and not is_symbolic(shape[axis : axis + 1])
            and low + high < shape[axis]
        ):
            cuts[axis] = low, shape[axis] - high
            padding[i] = padding[i][0] + d * low, padding[i][1] + d * high
        else:
            config[axis] = (*padding[i], d - 1)
            padding[i], dilation[i] = (0, 0), 1
    image = slice_(x, *zip(*cuts, strict=True))
    image = pad(image, np.zeros((), typeof(x).dtype), config)
    changed = {"padding": tuple(padding), "lhs_dilation": tuple(dilation)}
    return ConvGeneralDilated.bind(image, y, **{**params, **changed})


def _complex(x: Any, y: Any, params: dict[str, Any]) -> Any:
    preferred = params["preferred_element_type"]
    if preferred is not None:
        params = {**params, "preferred_element_type": dtypes.to_real(preferred)}

    def conv(a: Any, b: Any) -> Any:
        return ConvGeneralDilated.bind(a, b, **params)

    xr, xi, yr, yi = real(x), imag(x), real(y), imag(y)
    return complex_(sub(conv(xr, yr), conv(xi, yi)), add(conv(xr, yi), conv(xi, yr)))


def typeof_host(value: np.ndarray[Any, Any]) -> Aval:
    """Returns the type of a NumPy array as it is (64 bits stay)."""
    return Aval(value.shape, value.dtype)


def _wide(dtype: Any) -> Any:
    if dtypes.is_floating(dtype) and dtypes.bits(dtype) < 32:
        return np.dtype(np.float32)
    return np.dtype(np.int32) if dtypes.bits(dtype) < 8 else dtype


def _dilate_and_pad(
    x: np.ndarray[Any, Any], dilation: Sequence[int], padding: Padding
) -> np.ndarray[Any, Any]:
    for i, (d, (low, high)) in enumerate(zip(dilation, padding, strict=True)):
        axis = i + 2
        shape = list(x.shape)
        shape[axis] = dilated(shape[axis], d)
        wide = np.zeros(shape, x.dtype)
        wide[(slice(None),) * axis + (slice(None, None, d),)] = x
        cut = [slice(None)] * x.ndim
        cut[axis] = slice(max(0, -low), max(0, shape[axis] - max(0, -high)))
        widths = [(0, 0)] * x.ndim
        widths[axis] = (max(0, low), max(0, high))
        x = np.pad(wide[tuple(cut)], widths)
    return x


# -- public ----------------------------------------------------------------------------


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
    *,
    window_reversal: Flags | None = None,
) -> Array:
    """Convolves an input with a kernel (a correlation: the kernel is not flipped).

    Args:
      lhs: numeric[batch, features, *spatial], or as `dimension_numbers` say.
      rhs: of the same dtype, [out features, features / groups, *window].
      window_strides: step of the window along each spatial axis.
      padding: `"SAME"`, `"SAME_LOWER"`, `"VALID"`, or a pair (low, high) for each
        spatial axis, negative to crop.
      lhs_dilation: the distance between adjacent input elements; None is 1.
      rhs_dilation: the distance between adjacent kernel elements; None is 1.
      dimension_numbers: see `conv_dimension_numbers`.
      feature_group_count: convolve the features in as many groups.
      batch_group_count: convolve the batch in as many groups.
      precision: a `Precision` or its name, or a pair of them.
      preferred_element_type: dtype to accumulate in and to return; None is that of the
        operands.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.
      window_reversal: along which spatial axes to flip the kernel; None flips no axis.

    Returns:
      An array [batch / batch_group_count, out features, *windows], axes as
      `dimension_numbers` say.

    Raises:
      ShapeError: input and kernel do not fit, or groups do not divide.
      DtypeError: dtypes differ.
      ArgumentError: an argument has the wrong length or makes no sense.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> x, w = np.ones((1, 1, 4, 4), "f4"), np.ones((2, 1, 3, 3), "f4")
      >>> conv_general_dilated(x, w, (1, 1), "SAME").shape
      (1, 2, 4, 4)

    Source: StableHLO convolution.
    """
    name = "conv_general_dilated"
    left, right = typeof(lhs), typeof(rhs)
    numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    axes = left.ndim - 2
    strides = per_axis(name, "window_strides", window_strides, axes)
    lhs_dilation = per_axis(name, "lhs_dilation", lhs_dilation, axes)
    rhs_dilation = per_axis(name, "rhs_dilation", rhs_dilation, axes)
    if isinstance(padding, str):
        if math.prod(lhs_dilation) != 1 and padding.upper() != "VALID":
            raise ArgumentError(
                f"{name}: padding {padding!r} is not defined for a dilated input: give "
                "pairs, or use conv_transpose"
            )
        windows = [
            dilated(right.shape[numbers.rhs_spec[i + 2]], rhs_dilation[i])
            for i in range(axes)
        ]
        lengths = [left.shape[i] for i in numbers.lhs_spec[2:]]
        padding = padtype_to_pads(lengths, windows, strides, padding)
    pads = explicit_padding(name, padding, axes)
    for what, count in (
        ("feature_group_count", feature_group_count),
        ("batch_group_count", batch_group_count),
    ):
        if count < 1:
            raise ArgumentError(f"{name}: {what} must be positive, got {count}")
    if feature_group_count > 1 and batch_group_count > 1:
        raise ArgumentError(
            f"{name}: only one of feature_group_count and batch_group_count may exceed "
            f"1, got {feature_group_count} and {batch_group_count}"
        )
    if window_reversal is not None:
        if len(window_reversal) != axes:
            raise ArgumentError(
                f"{name}: window_reversal must be {axes} booleans, one for each "
                f"spatial axis, got {tuple(window_reversal)}"
            )
        flipped = [
            axis
            for axis, flip in zip(numbers.rhs_spec[2:], window_reversal, strict=True)
            if flip
        ]
        rhs = rev(rhs, tuple(flipped))
    with open_layouts(out_sharding):
        result: Array = ConvGeneralDilated.bind(
            lhs,
            rhs,
            window_strides=strides,
            padding=pads,
            lhs_dilation=lhs_dilation,
            rhs_dilation=rhs_dilation,
            dimension_numbers=numbers,
            feature_group_count=int(feature_group_count),
            batch_group_count=int(batch_group_count),
            precision=canonical_precision(name, precision),
            preferred_element_type=None
            if preferred_element_type is None
            else dtypes.dtype(preferred_element_type),
        )
    if out_sharding is not None:
        return laid_out(name, result, out_sharding)
    return result
