"""What all scatters share; slices written or combined at computed indices."""

import numpy as np
import pytest

from fxflow import lax
from fxflow.core.arrays.array import as_array, host_of
from fxflow.core.interpreters.jvp import jvp_flat
from fxflow.core.interpreters.linearize import linearize_flat
from fxflow.core.interpreters.transpose import backward
from fxflow.core.ir.staging import trace_flat
from fxflow.core.runtime.lowering import lower_graph
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from tests.lax.key_arrays import keys, words

X = np.array([1, 2, 3, 4], "f4")
Numbers = lax.ScatterDimensionNumbers
ELEMENTS = Numbers((), (0,), (0,))
AT = np.array([[1], [1], [3], [9], [-1]], "i4")
U = np.array([5, 6, 0.5, 7, 8], "f4")


@pytest.mark.parametrize(
    ("function", "dropped", "clipped"),
    [
        (lax.scatter, [1, 6, 3, 0.5], [8, 6, 3, 7]),
        (lax.scatter_add, [1, 13, 3, 4.5], [9, 13, 3, 11.5]),
        (lax.scatter_sub, [1, -9, 3, 3.5], [-7, -9, 3, -3.5]),
        (lax.scatter_mul, [1, 60, 3, 2], [8, 60, 3, 14]),
        (lax.scatter_min, [1, 2, 3, 0.5], [1, 2, 3, 0.5]),
        (lax.scatter_max, [1, 6, 3, 4], [8, 6, 3, 7]),
    ],
)
def test_out_of_bounds_updates_are_dropped_or_clipped(
    function, dropped: list[float], clipped: list[float]
) -> None:
    np.testing.assert_array_equal(function(X, AT, U, ELEMENTS), dropped)
    np.testing.assert_array_equal(function(X, AT, U, ELEMENTS, mode="clip"), clipped)


def test_the_operand_is_not_changed() -> None:
    x = as_array(X)
    lax.scatter_add(x, AT, U, ELEMENTS)
    np.testing.assert_array_equal(host_of(x), X)


def test_a_slice_that_lies_partly_outside_is_left_out_as_a_whole() -> None:
    numbers = Numbers((1,), (), (0,))
    at = np.array([[0], [3]], "i4")
    updates = np.ones((2, 2), "f4")
    out = lax.scatter_add(X, at, updates, numbers)
    np.testing.assert_array_equal(out, [2, 3, 3, 4])
    out = lax.scatter_add(X, at, updates, numbers, mode="clip")
    np.testing.assert_array_equal(out, [2, 3, 4, 5])


def test_nan_wins_in_min_and_max() -> None:
    at = np.array([[0]], "i4")
    for function in (lax.scatter_min, lax.scatter_max):
        out = function(X, at, np.array([np.nan], "f4"), ELEMENTS)
        assert np.isnan(np.asarray(out)[0])


def test_unsigned_subtraction_wraps() -> None:
    at = np.array([[0]], "i4")
    out = lax.scatter_sub(np.zeros(1, "u1"), at, np.ones(1, "u1"), ELEMENTS)
    np.testing.assert_array_equal(out, [255])


def gradient(function, updates: np.ndarray, at: np.ndarray = AT) -> list[np.ndarray]:
    lin = linearize_flat(lambda x, u: [function(x, at, u, ELEMENTS)], [X, updates])
    cts = backward(lin.nodes, lin.inputs, lin.tangents, [np.array([1, 2, 3, 4], "f4")])
    return [np.asarray(ct) for ct in cts]


def test_derivative_of_written_elements_is_that_of_the_winner() -> None:
    of_x, of_u = gradient(lax.scatter, U)
    np.testing.assert_array_equal(of_x, [1, 0, 3, 0])
    np.testing.assert_array_equal(of_u, [0, 2, 4, 0, 0])


def test_derivative_of_an_extremum_is_shared_among_equals() -> None:
    at = np.array([[1], [1], [2]], "i4")
    of_x, of_u = gradient(lax.scatter_max, np.array([2, 2, 9], "f4"), at)
    np.testing.assert_allclose(of_x, [1, 2 / 3, 0, 4], rtol=1e-6)
    np.testing.assert_allclose(of_u, [2 / 3, 2 / 3, 3], rtol=1e-6)


def test_no_tangent_costs_nothing() -> None:
    # Only the operand has a tangent: the updates need no numbers.
    graph, _ = trace_flat(
        lambda x, t: jvp_flat(lambda y: [lax.scatter(y, AT, U, ELEMENTS)], [x], [t])[1],
        [as_array(X).aval] * 2,
    )
    names = [node.primitive.name for node in graph.nodes]
    assert names.count("scatter") == 1
    assert "gather" not in names


def test_wide_complex_sums_are_split_on_gpu() -> None:
    avals = [as_array(X).aval.update(dtype=np.dtype("c16"))] * 2
    at = np.zeros((4, 1), "i4")
    graph, consts = trace_flat(
        lambda x, u: [lax.scatter_add(x, at, u, ELEMENTS)], avals
    )
    assert len(consts) == 1
    counts = {
        platform: lower_graph(graph, name="f", platform=platform)[0].count(
            '"stablehlo.scatter"'
        )
        for platform in ("cpu", "gpu")
    }
    assert counts == {"cpu": 1, "gpu": 2}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lax.scatter(X, AT, U.astype("i4"), ELEMENTS),
            DtypeError,
            r"scatter: operand f32\[4\] and updates i32\[5\] must have one dtype",
        ),
        (
            lambda: lax.scatter_add(X > 1, AT, U > 1, ELEMENTS),
            DtypeError,
            r"scatter_add: takes .* got bool\[4\]",
        ),
        (
            lambda: lax.scatter_min(X.astype("c8"), AT, U.astype("c8"), ELEMENTS),
            DtypeError,
            r"scatter_min: takes .* got c64\[4\]",
        ),
        (
            lambda: lax.scatter(X, AT[:, 0].astype("f4"), U, ELEMENTS),
            DtypeError,
            "indices must be integers",
        ),
        (
            lambda: lax.scatter_mul(X, AT[:3], U, ELEMENTS),
            ShapeError,
            r"scatter_mul: updates f32\[5\] need the batch axes \(3,\)",
        ),
        (
            lambda: lax.scatter(X, AT, U, Numbers((0,), (0,), (0,))),
            ShapeError,
            "must be one of update_window_dims .there are 1., inserted",
        ),
        (
            lambda: lax.scatter(
                X, AT[:1], np.ones((1, 5), "f4"), Numbers((1,), (), (0,))
            ),
            ShapeError,
            r"slices of \(5,\) .* are larger than the operand f32\[4\]",
        ),
        (
            lambda: lax.scatter(X, AT, U, Numbers((), (1,), (0,))),
            AxisError,
            "inserted_window_dims must be distinct increasing axes from 0 to 0",
        ),
        (
            lambda: lax.scatter_max(X, AT, U, ELEMENTS, mode="wrap"),
            ArgumentError,
            "unknown mode 'wrap'",
        ),
        (
            lambda: lax.scatter_max(X, AT, U, (0,)),
            ArgumentError,
            "scatter_max: dimension_numbers must be ScatterDimensionNumbers",
        ),
    ],
)
def test_updates_indices_and_axes_that_do_not_fit_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_keys_move_as_words() -> None:
    x = keys(4)
    w = words(x).copy()
    new = lax.slice(x, (0,), (2,))
    out = lax.scatter(x, np.array([[3], [9]], "i4"), new, ELEMENTS)
    w[3] = w[0]
    np.testing.assert_array_equal(words(out), w)
    with pytest.raises(DtypeError, match="scatter_add"):
        lax.scatter_add(x, AT[:2], new, ELEMENTS)
