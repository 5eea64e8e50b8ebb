"""Windows and folding over them."""

import numpy as np
import pytest

from fxflow import lax
from fxflow.core.arrays.aval import Aval
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.windows import fold_windows, host_windows, make_window, padded

X = np.arange(30, dtype="f4").reshape(5, 6)
CASES = [
    ((2, 3), None, "VALID", None, None),
    ((2, 3), (2, 1), "SAME", None, None),
    ((3, 2), (2, 2), ((1, 2), (0, 1)), (2, 1), (1, 2)),
    ((2, 2), None, ((-1, 0), (0, -1)), None, None),
]


def test_shapes_of_windows_under_padding_and_dilation() -> None:
    assert lax.reduce_window_shape_tuple((5, 6), (2, 3)) == (4, 4)
    assert lax.reduce_window_shape_tuple((5, 6), (2, 3), (2, 2), "SAME") == (3, 3)
    assert lax.reduce_window_shape_tuple((5,), (2,), None, [(1, 1)], (2,), (3,)) == (8,)
    assert lax.reduce_window_shape_tuple((2,), (5,)) == (0,)


@pytest.mark.parametrize("case", CASES)
def test_folding_visits_the_places_of_numpys_windows(case) -> None:
    window = make_window("test", X.shape, *case)
    views = host_windows(X, window, 0)
    (total,) = fold_windows([X], [0], window, lambda a, b: [lax.add(a[0], b[0])])
    np.testing.assert_array_equal(total, views.sum((2, 3)))
    assert views.shape[:2] == window.out_shape("test", Aval(X.shape, X.dtype))
    # Padded by hand, the window needs no padding of its own.
    wide = np.asarray(padded(X, window, 0))
    bare = window._replace(padding=((0, 0), (0, 0)), base_dilation=(1, 1))
    again = host_windows(wide, bare, 0)
    np.testing.assert_array_equal(again, views)


def test_small_windows() -> None:
    def folds(length: int, size: int) -> bool:
        window = make_window("test", (length,), (size,), None, "VALID", None, None)
        out = Aval(window.out_shape("test", Aval((length,), X.dtype)), X.dtype)
        return window.folds(out)

    assert folds(9, 3)
    assert not folds(99, 50)
    assert not folds(2, 3)  # no window fits


@pytest.mark.parametrize(
    ("dimensions", "options", "error", "message"),
    [
        ((2,), {}, ArgumentError, "window_dimensions must be 2 positive"),
        ((2, 0), {}, ArgumentError, "window_dimensions must be 2 positive"),
        ((2, 2), {"window_strides": (1,)}, ArgumentError, "window_strides must be"),
        ((2, 2), {"padding": "FULL"}, ArgumentError, "padding must be 'SAME'"),
        ((2, 2), {"padding": [(1, 1)]}, ArgumentError, "each of 2 axes"),
        ((2, 2), {"base_dilation": (0, 1)}, ArgumentError, "base_dilation must be"),
    ],
)
def test_windows_strides_and_padding_that_do_not_fit_are_refused(
    dimensions, options, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        lax.reduce_window(X, 0.0, lax.add, dimensions, **options)


def test_a_window_of_other_axes() -> None:
    window = make_window("test", (9,), (3,), None, "VALID", None, None)
    with pytest.raises(ShapeError, match="a length for each axis"):
        window.out_shape("test", Aval((2, 3), np.dtype("f4")))
