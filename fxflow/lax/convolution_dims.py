"""Which axis of a convolution is what, and how much it is padded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fxflow.core.sizes import larger, length_of
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import int_tuple

Padding = tuple[tuple[int, int], ...]


class ConvDimensionNumbers(NamedTuple):
    """Which axis is what in a convolution.

    Attributes:
      lhs_spec: axes of the input: batch, feature, then the spatial ones.
      rhs_spec: axes of the kernel: output feature, input feature, then the spatial
        ones.
      out_spec: axes of the result: batch, feature, then the spatial ones.
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def _letters(spec: tuple[int, ...], first: str) -> str:
    """Returns the axes as a string of letters, such as NHWC."""
    count = len(spec) - 2
    names = first + _SPATIAL.get(count, "".join(map(str, range(count))))
    return "".join(names[spec.index(axis)] for axis in range(len(spec)))


def operands_text(lhs: object, rhs: object, numbers: ConvDimensionNumbers) -> str:
    """Returns the types of the operands and what their axes are, for a message."""
    image, kernel = _letters(numbers.lhs_spec, "NC"), _letters(numbers.rhs_spec, "OI")
    return f"input {lhs} as {image}, kernel {rhs} as {kernel}"


def default_hint(numbers: ConvDimensionNumbers) -> str:
    """Returns what a message says where the axes may be those of the default."""
    order = tuple(range(len(numbers.lhs_spec)))
    spatial = _SPATIAL.get(len(order) - 2)
    if numbers != (order, order, order) or spatial is None:
        return ""
    last = f"N{spatial}C"
    return (
        f". The default of dimension_numbers is ('NC{spatial}', 'OI{spatial}', "
        f"'NC{spatial}'): for channels in the last axis pass ('{last}', "
        f"'{spatial}IO', '{last}')"
    )


ConvGeneralDilatedDimensionNumbers = (
    tuple[str, str, str] | ConvDimensionNumbers | Sequence[Sequence[int]] | None
)


def conv_dimension_numbers(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> ConvDimensionNumbers:
    """Returns the dimension numbers that a user's notation stands for.

    Args:
      lhs_shape: shape of the input.
      rhs_shape: shape of the kernel.
      dimension_numbers: None (batch and features first, kernels with output features
        first), strings such as `("NHWC", "HWIO", "NHWC")`, or a `ConvDimensionNumbers`.

    Returns:
      The numbers, spatial axes in the order of the kernel's.

    Raises:
      ShapeError: input and kernel differ in number of axes.
      ArgumentError: the notation does not fit.

    Example:
      >>> conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 5), ("NHWC", "HWIO", "NHWC"))
      ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), \
out_spec=(0, 3, 1, 2))
    """
    ndim = len(lhs_shape)
    if len(rhs_shape) != ndim:
        raise ShapeError(
            "conv_general_dilated: input and kernel need one number of axes, got "
            f"shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}"
        )
    if ndim < 2:
        raise ShapeError(
            "conv_general_dilated: input and kernel need a batch (or output feature) "
            f"and a feature axis, got shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}"
        )
    if dimension_numbers is None:
        order = tuple(range(ndim))
        return ConvDimensionNumbers(order, order, order)
    if not isinstance(dimension_numbers, tuple | list) or len(dimension_numbers) != 3:
        raise ArgumentError(
            "conv_general_dilated: dimension_numbers are three, for input, kernel and "
            f"result, got {dimension_numbers!r}"
        )
    if all(isinstance(spec, str) for spec in dimension_numbers):
        lhs, rhs, out = (str(spec) for spec in dimension_numbers)
        return _from_strings(ndim, lhs, rhs, out)
    found = ConvDimensionNumbers(
        *(
            int_tuple("conv_general_dilated", "dimension_numbers", s)
            for s in dimension_numbers
        )
    )
    for spec in found:
        if sorted(spec) != list(range(ndim)):
            raise ArgumentError(
                f"conv_general_dilated: {spec} does not name each of {ndim} axes once"
            )
    return found


def _from_strings(ndim: int, lhs: str, rhs: str, out: str) -> ConvDimensionNumbers:
    specs = []
    for what, spec, first, second in (
        ("input", lhs, "N", "C"),
        ("kernel", rhs, "O", "I"),
        ("result", out, "N", "C"),
    ):
        if len(spec) != ndim or len(set(spec)) != ndim:
            raise ArgumentError(
                f"conv_general_dilated: the {what} has {ndim} axes, which {spec!r} "
                "must name by one letter each"
            )
        if first not in spec or second not in spec:
            raise ArgumentError(
                f"conv_general_dilated: {spec!r} of the {what} must hold {first!r} and "
                f"{second!r}, such as {'HWIO' if first == 'O' else 'NHWC'!r}"
            )
        spatial = [c for c in spec if c not in (first, second)]
        if set(spatial) != {c for c in rhs if c not in "OI"}:
            raise ArgumentError(
                f"conv_general_dilated: the spatial axes of {spec!r} are not those of "
                f"the kernel {rhs!r}"
            )
        spatial.sort(key=rhs.index)
        specs.append(tuple(spec.index(c) for c in (first, second, *spatial)))
    return ConvDimensionNumbers(*specs)


def conv_general_permutations(
    dimension_numbers: tuple[str, str, str],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Returns the axes of input, kernel and result in canonical order.

    Args:
      dimension_numbers: strings such as `("NHWC", "HWIO", "NHWC")`.

    Returns:
      Three permutations: batch, feature, spatial; output feature, input feature,
      spatial; batch, feature, spatial.

    Raises:
      ArgumentError: the strings do not fit.
    """
    if not isinstance(dimension_numbers, tuple | list) or len(dimension_numbers) != 3:
        raise ArgumentError(
            "conv_general_permutations: dimension_numbers are three strings, got "
            f"{dimension_numbers!r}"
        )
    lhs, rhs, out = dimension_numbers
    return tuple(_from_strings(len(lhs), lhs, rhs, out))  # type: ignore[return-value]


def dilated(length: int, dilation: int) -> int:
    """Returns a length after `dilation - 1` holes were put between its elements."""
    return 0 if length == 0 else dilation * (length - 1) + 1


def strided(length: int, window: int, stride: int) -> Any:
    """Returns how many windows fit."""
    return larger((length - window) // stride + 1, 0)


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:
    """Returns the padding that a name stands for.

    Args:
      in_shape: lengths of the padded axes.
      window_shape: of the (dilated) window.
      window_strides: of the window.
      padding: `"SAME"` (as many windows as the length over the stride, the odd element
        of padding behind), `"SAME_LOWER"` (in front) or `"VALID"` (none).

    Returns:
      For each axis how much to pad in front and behind.

    Raises:
      ArgumentError: unknown padding.

    Example:
      >>> padtype_to_pads((5,), (4,), (1,), "SAME")
      [(1, 2)]
    """
    kind = padding.upper() if isinstance(padding, str) else padding
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if kind not in ("SAME", "SAME_LOWER"):
        raise ArgumentError(
            f"padding must be 'SAME', 'SAME_LOWER', 'VALID' or a pair for each axis, "
            f"got {padding!r}"
        )
    if not len(in_shape) == len(window_shape) == len(window_strides):
        raise ShapeError(
            "padtype_to_pads: in_shape, window_shape and window_strides must have one "
            f"length, got {in_shape}, {window_shape} and {window_strides}"
        )
    pads = []
    for length, window, stride in zip(
        in_shape, window_shape, window_strides, strict=True
    ):
        # SAME: ceil(length / stride) windows, whatever their size.
        count = -(-length // stride)
        total = length_of(larger(0, (count - 1) * stride + window - length))
        # SAME puts the odd one behind, SAME_LOWER in front.
        small, large = total // 2, total - total // 2
        pads.append((small, large) if kind == "SAME" else (large, small))
    return pads


def explicit_padding(name: str, padding: Any, axes: int) -> Padding:
    """Returns padding given as pairs, checked.

    Args:
      name: of the operation, for messages.
      padding: a pair (or one number for both sides) for each axis.
      axes: how many there must be.

    Raises:
      ArgumentError: it is not that.
    """
    pairs = []
    try:
        for pair in padding:
            low, high = pair
            pairs.append(int_tuple(name, "padding", (low, high)))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name}: padding must be a string or a pair (low, high) for each axis, "
            f"got {padding!r}"
        ) from None
    if len(pairs) != axes:
        raise ArgumentError(
            f"{name}: padding must have a pair for each of {axes} axes, got {padding!r}"
        )
    return tuple(pairs)  # type: ignore[arg-type]


def per_axis(name: str, what: str, values: Any, axes: int) -> tuple[int, ...]:
    """Returns one positive integer for each axis; None is all ones.

    Raises:
      ArgumentError: there are too few or too many, or one is not positive.
    """
    if values is None:
        return (1,) * axes
    found = int_tuple(name, what, values)
    if len(found) != axes or any(n < 1 for n in found):
        raise ArgumentError(
            f"{name}: {what} must be {axes} positive integers, one for each axis, got "
            f"{tuple(values)}"
        )
    return found
