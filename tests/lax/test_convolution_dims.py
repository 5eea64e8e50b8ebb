"""Axes and padding of convolutions."""

import numpy as np
import pytest

from fxflow import lax
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.convolution_dims import dilated, explicit_padding, per_axis, strided


def test_strings() -> None:
    shapes = (1, 8, 9, 3), (3, 3, 3, 5)
    numbers = lax.conv_dimension_numbers(*shapes, ("NHWC", "HWIO", "NCHW"))
    assert numbers == ((0, 3, 1, 2), (3, 2, 0, 1), (0, 1, 2, 3))
    assert lax.conv_dimension_numbers(*shapes, numbers) == numbers
    assert lax.conv_dimension_numbers(*shapes, None).rhs_spec == (0, 1, 2, 3)
    # Spatial axes are in the order of the kernel's.
    swapped = lax.conv_dimension_numbers(*shapes, ("NWHC", "HWIO", "NHWC"))
    assert swapped.lhs_spec == (0, 3, 2, 1)
    perms = lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    assert perms == ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))


def test_padding() -> None:
    assert lax.padtype_to_pads((5, 6), (3, 3), (1, 2), "same") == [(1, 1), (0, 1)]
    assert lax.padtype_to_pads((6,), (3,), (2,), "SAME_LOWER") == [(1, 0)]
    assert lax.padtype_to_pads((6,), (3,), (2,), "VALID") == [(0, 0)]
    six, three, two = np.array([[6], [3], [2]])
    assert type(lax.padtype_to_pads(six, three, two, "SAME")[0][0]) is int
    assert (dilated(3, 2), dilated(0, 2)) == (5, 0)
    assert (strided(7, 3, 2), strided(2, 3, 1)) == (3, 0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lax.padtype_to_pads((5,), (3,), (1,), "FULL"),
            ArgumentError,
            "'SAME'",
        ),
        (lambda: explicit_padding("f", [(1, 2)], 2), ArgumentError, "each of 2 axes"),
        (lambda: explicit_padding("f", [1, 2], 2), ArgumentError, r"a pair \(low"),
        (lambda: per_axis("f", "strides", (1, 0), 2), ArgumentError, "positive"),
        (lambda: per_axis("f", "strides", (1,), 2), ArgumentError, "2 positive"),
        (
            lambda: lax.conv_dimension_numbers((1, 2, 3), (1, 2), None),
            ShapeError,
            "one number of axes",
        ),
        (lambda: lax.conv_dimension_numbers((1,), (1,), None), ShapeError, "a batch"),
        (
            lambda: lax.conv_dimension_numbers((1, 2, 3), (1, 2, 3), ("NCH", "OIH")),
            ArgumentError,
            "are three",
        ),
        (
            lambda: lax.conv_dimension_numbers((1, 2), (1, 2), ("NCH", "OI", "NC")),
            ArgumentError,
            "'NCH' must name",
        ),
        (
            lambda: lax.conv_dimension_numbers((1, 2), (1, 2), ("NX", "OI", "NC")),
            ArgumentError,
            "must hold 'N' and 'C'",
        ),
        (
            lambda: lax.conv_dimension_numbers(
                (1, 2, 3), (1, 2, 3), ("NCW", "OIH", "NCH")
            ),
            ArgumentError,
            "spatial axes of 'NCW'",
        ),
        (
            lambda: lax.conv_dimension_numbers(
                (1, 2), (1, 2), ((0, 0), (0, 1), (0, 1))
            ),
            ArgumentError,
            "each of 2 axes once",
        ),
    ],
)
def test_invalid_padding_strides_and_layouts_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
