"""`pad` in all modes."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from tests.numpy.oracle import check, same

X = np.arange(12, dtype=np.float32).reshape(3, 4) ** 1.5
V = np.array([3, 1, 4, 1, 5], np.int32)
MODES = (
    *("constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum"),
    *("reflect", "symmetric", "wrap"),
)
WIDTHS = (1, (1, 2), ((1, 2), (0, 3)), ((2,), (1,)), [(0, 0), (5, 6)], np.array([1, 2]))


@pytest.mark.parametrize("mode", MODES)
def test_modes_agree_with_numpy(mode: str) -> None:
    for width in WIDTHS:
        check("pad", X, width, mode=mode, compiled=False)
    check("pad", V, (7, 12), mode=mode)
    check("pad", np.float32(3), 1, mode=mode, compiled=False)


@pytest.mark.parametrize("mode", ("reflect", "symmetric"))
def test_odd_reflections(mode: str) -> None:
    for width in (*WIDTHS, (11, 13)):
        check("pad", X, width, mode=mode, reflect_type="odd", compiled=False)
    check("pad", V[:1], (3, 4), mode=mode, compiled=False)
    check("pad", V[:1], (3, 4), mode=mode, reflect_type="odd", compiled=False)


def test_options_agree_with_numpy() -> None:
    check("pad", X, 2, mode="constant", constant_values=((1, 2), (3, 4)))
    check("pad", X, 2, mode="linear_ramp", end_values=((1, 2), (3, 4)))
    for mode in ("maximum", "mean", "median", "minimum"):
        check("pad", X, (1, 2), mode=mode, stat_length=((1, 2), (3, 9)), compiled=False)


def test_widths_by_axis() -> None:
    assert fnp.pad(X, {-1: (2, 3)}).shape == (3, 9)
    assert fnp.pad(X, {0: 1}).shape == (5, 4)


def test_a_function_as_mode() -> None:
    def twice(vector: Any, pair: Any, axis: int, options: dict[str, Any]) -> Any:
        return vector.at[: pair[0]].set(axis + options["more"])

    out = fnp.pad(X, ((1, 0), (2, 0)), twice, more=5)
    assert out[0, 3] == 5 and out[2, 0] == 6 and same(X, out[1:, 2:])


def test_keys_and_gradients() -> None:
    pull = fxflow.vjp(lambda x: fnp.pad(x, 1, mode="edge"), fnp.ones(2))[1]
    assert pull(fnp.asarray([1.0, 2.0, 3.0, 4.0]))[0].tolist() == [3, 7]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fnp.pad(X, 1, mode="nope"), ArgumentError, "mode must be one of"),
        (lambda: fnp.pad(X, 1, mode="edge", k=1), ArgumentError, "has no option 'k'"),
        (lambda: fnp.pad(X, -1), ShapeError, "must not be negative"),
        (lambda: fnp.pad(X, ((1, 2),) * 3), ShapeError, "a pair for each of 2 axes"),
        (lambda: fnp.pad(X, 1.5), ArgumentError, "widths must be integers"),
        (lambda: fnp.pad(X[:0], 1, mode="edge"), ArgumentError, "is empty"),
        (
            lambda: fnp.pad(X, 1, mode="reflect", reflect_type="x"),
            ArgumentError,
            "'even' or 'odd'",
        ),
        (
            lambda: fnp.pad(X, 1, mode="mean", stat_length=0),
            ArgumentError,
            "stat_length must be at least 1",
        ),
    ],
)
def test_invalid_widths_modes_and_options_are_refused(
    call: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("kind", [np.asarray, fnp.asarray])
@pytest.mark.parametrize("values", [[5], [5, 6], [[5], [6]], [[5, 6]], 5])
def test_values_in_arrays(values: Any, kind: Any) -> None:
    want = np.pad(X, 1, constant_values=values)
    assert same(want, fnp.pad(X, 1, constant_values=kind(values)))
    ramp = np.pad(X, 2, mode="linear_ramp", end_values=values)
    assert same(ramp, fnp.pad(X, 2, mode="linear_ramp", end_values=kind(values)))
    traced = fxflow.jit(lambda x, v: fnp.pad(x, 1, constant_values=v))
    assert same(want, traced(X, kind(values)))


@pytest.mark.parametrize("mode", ("mean", "median", "maximum", "minimum"))
def test_statistics_of_booleans(mode) -> None:
    for x in ([True, False, False], [False, False], [True, False, False, True]):
        check("pad", np.array(x), 1, mode=mode)
