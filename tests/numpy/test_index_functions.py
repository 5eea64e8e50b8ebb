"""Taking and putting by place against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    DtypeError,
    OutOfRangeError,
    ShapeError,
)
from tests.numpy.oracle import check, same

X = (np.arange(12, dtype=np.float32).reshape(3, 4) * 7) % 5
A = np.array


@pytest.mark.parametrize("axis", (None, 0, 1, -1))
def test_take(axis: Any) -> None:
    for places in (A([[0, 2]]), A(1), A([-1, 0]), A([], dtype=int)):
        check("take", X, places, axis=axis)


def test_take_out_of_range() -> None:
    x = fnp.arange(3.0)
    far = A([5, -5, -1])
    assert same([np.nan, np.nan, 2], fnp.take(x, far))
    assert fnp.take(x, far, fill_value=7.0).tolist() == [7, 7, 2]
    assert fnp.take(x, far, mode="clip").tolist() == [2, 0, 0]
    assert fnp.take(x, far, mode="wrap").tolist() == [2, 1, 2]
    for mode in ("fill", "clip", "wrap"):
        with pytest.raises(OutOfRangeError, match=r"axis 0 of .* is empty"):
            fnp.take(x[:0], A([0]), mode=mode)
        assert fnp.take(x[:0], A([], np.int32), mode=mode).shape == (0,)
    assert fnp.take(fnp.arange(3), A([9])).tolist() == [-(2**31)]


@pytest.mark.parametrize(
    ("places", "axis"),
    [
        (np.argsort(X, 1), 1),
        (A([[1], [0], [-1]]), 1),
        (A([[1, 0, 2, 1]]), 0),
        (A([[2, 1, 0, 0]] * 5), 0),
    ],
)
def test_along_an_axis(places: Any, axis: int) -> None:
    check("take_along_axis", X, places, axis=axis)
    want = X.copy()
    np.put_along_axis(want, places, 9, axis)
    assert same(want, fnp.put_along_axis(X, places, 9, axis, inplace=False))


def test_take_along_axis_more() -> None:
    check("take_along_axis", X, A([3, 0]), axis=None)
    thin = X[:1]
    check("take_along_axis", thin, A([[0, 1], [2, 3], [1, 1]]), axis=1)
    got = fnp.take_along_axis(X, A([[9], [0], [0]]), 1)
    assert np.isnan(float(got[0, 0]))
    pull = fxflow.vjp(lambda x: fnp.take_along_axis(x, A([[1], [1], [0]]), 1), X)[1]
    assert pull(fnp.ones((3, 1)))[0].tolist() == [[0, 1, 0, 0]] * 2 + [[1, 0, 0, 0]]
    rows = fxflow.vmap(lambda x, i: fnp.take_along_axis(x, i, 0))(X, np.argsort(X, 1))
    assert same(np.sort(X, 1), rows)


def test_put_and_place() -> None:
    for mode in ("wrap", "clip"):
        want = X.copy()
        np.put(want, [0, 14, -13], [7, 8], mode=mode)
        assert same(
            want, fnp.put(X, A([0, 14, -13]), A([7.0, 8.0]), mode, inplace=False)
        )
    want = X.copy()
    np.place(want, X > 2, [1, 2, 3])
    assert same(want, fnp.place(X, X > 2, A([1.0, 2.0, 3.0]), inplace=False))


@pytest.mark.parametrize("name", ("put", "place", "put_along_axis", "fill_diagonal"))
def test_nothing_happens_in_place(name: str) -> None:
    args: Any = (X, 0) if name == "fill_diagonal" else (X, A([0]), A([1.0]))
    args = (*args, 0) if name == "put_along_axis" else args
    with pytest.raises(ArgumentError, match=f"{name}: arrays never change"):
        getattr(fnp, name)(*args)


@pytest.mark.parametrize("shape", ((3, 4), (5, 3), (3, 3, 3)))
@pytest.mark.parametrize("wrap", (True, False))
def test_fill_diagonal(shape: tuple[int, ...], wrap: bool) -> None:
    for value in (7.0, A([1.0, 2.0])):
        want = np.zeros(shape)
        np.fill_diagonal(want, value, wrap=wrap)
        got = fnp.fill_diagonal(np.zeros(shape), value, wrap=wrap, inplace=False)
        assert same(want, got)


def test_ways_to_write_an_index() -> None:
    assert fnp.s_[1:3, 0] == np.s_[1:3, 0] and fnp.index_exp[2] == (2,)
    assert same(
        np.ix_([0, 1], [True, False, True]), fnp.ix_([0, 1], [True, False, True])
    )
    assert same(X[np.ix_([0, 2], [1, 3])], fnp.asarray(X)[fnp.ix_([0, 2], [1, 3])])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fnp.take(X, 1.5), DtypeError, "take: indices must be integers"),
        (lambda: fnp.take(X, [1]), ArgumentError, "convert it with fnp.asarray"),
        (lambda: fnp.take(X, A(1), 2), AxisError, "axis 2"),
        (lambda: fnp.take(X, A(1), mode="no"), ArgumentError, "mode must be"),
        (lambda: fnp.take(X, A(1), out=X), ArgumentError, "out= has no meaning"),
        (lambda: fnp.take_along_axis(X, A([1]), 0), ShapeError, "as many axes"),
        (lambda: fnp.take_along_axis(X, A([[1, 2]]), 0), ShapeError, "along axis 1"),
        (lambda: fnp.take_along_axis(X, X, 0), DtypeError, "must be integers"),
        (lambda: fnp.nonzero(1.0), ShapeError, "one axis or more"),
        (lambda: fxflow.jit(fnp.nonzero)(X), ConcretizationError, "Pass size="),
        (lambda: fnp.ix_(X), ShapeError, "sequences of one axis"),
        (lambda: fnp.compress(X, X), ShapeError, "condition must have one axis"),
        (lambda: fnp.compress([True] * 9, X, 0), ShapeError, "is longer than axis 0"),
        (lambda: fnp.take(X[:0], A([0]), 0, mode="wrap"), OutOfRangeError, "is empty"),
        (
            lambda: fnp.put(X, A([0]), A([1.0]), "no", inplace=False),
            ArgumentError,
            "put: mode",
        ),
        (
            lambda: fnp.fill_diagonal(X[0], 1, inplace=False),
            ShapeError,
            "two axes or more",
        ),
        (
            lambda: fnp.nonzero(X, size=2, fill_value=(1,)),
            ArgumentError,
            "one for each",
        ),
    ],
)
def test_indices_axes_and_modes_that_do_not_fit_are_refused(
    call: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()
