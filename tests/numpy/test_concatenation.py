"""Joining arrays and taking them apart."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, ShapeError
from tests.numpy.oracle import arrays, quick, same

X = np.arange(12, dtype=np.float32).reshape(3, 4)
V = np.arange(6, dtype=np.int32)


@pytest.mark.parametrize("axis", (0, 1, -1, None))
def test_concatenate_and_stack(axis: Any) -> None:
    parts = [X, X * 2, X.astype(np.int32)]
    want = np.concatenate(parts, axis)
    assert same(want, fnp.concatenate(parts, axis))
    assert same(want, fxflow.jit(lambda *p: fnp.concatenate(p, axis))(*parts))
    if axis is not None:
        assert same(np.stack(parts, axis), fnp.stack(parts, axis))
    assert fnp.concatenate([V, V], dtype="float16").dtype == np.float16


@quick
@given(x=arrays(shape=st.just((2, 3))), n=st.integers(1, 3))
def test_unstack_and_stack_are_inverse(x: np.ndarray, n: int) -> None:
    for axis in (0, 1, -1):
        assert same(x, fnp.stack(fnp.unstack(x, axis=axis), axis=axis))
    assert same(x, fnp.concatenate(fnp.array_split(x, n, axis=1), axis=1))


@pytest.mark.parametrize("name", ("vstack", "hstack", "dstack", "column_stack"))
def test_stacking(name: str) -> None:
    for parts in ([X, X], [V, V], [V.reshape(1, -1), V.reshape(1, -1)]):
        assert same(getattr(np, name)(parts), getattr(fnp, name)(parts))
    if name != "column_stack":
        assert same(getattr(np, name)([1, 2]), getattr(fnp, name)([1, 2]))


def test_an_array_stands_for_its_slices() -> None:
    assert same(np.concatenate(X), fnp.concatenate(fnp.asarray(X)))
    assert same(np.vstack(X), fnp.vstack(X))


def test_weak_numbers_stay_weak() -> None:
    assert fnp.stack([1.0, 2.0]).dtype == np.float32
    assert fnp.stack([fnp.ones((), "bfloat16"), 2.0]).dtype == "bfloat16"


def test_block_and_append() -> None:
    i = np.eye(2, dtype=np.float32)
    nested = [[i, 2 * i], [3 * i, 4 * i]]
    assert same(np.block(nested), fnp.block(nested))
    assert same(np.block([V, 7]), fnp.block([V, 7]))
    assert same(np.append(X, V), fnp.append(X, V))
    assert same(np.append(X, X, 1), fnp.append(X, X, 1))
    with pytest.raises(ArgumentError, match="nested equally deep"):
        fnp.block([[i], i])
    with pytest.raises(ArgumentError, match="a list is empty"):
        fnp.block([[]])


@pytest.mark.parametrize("sections", (2, 3, [1, 4], [2, 2, 9], np.array([3]), [-2]))
def test_splits(sections: Any) -> None:
    assert same(np.array_split(V, sections), fnp.array_split(V, sections))
    if not (isinstance(sections, int) and len(V) % sections):
        assert same(np.split(V, sections), fnp.split(V, sections))
    got = fxflow.jit(lambda v: fnp.array_split(v, sections))(V)
    assert same(np.array_split(V, sections), got)


@pytest.mark.parametrize("sections", (3, [1, 4], [2, 2]))
def test_the_gradient_of_pieces_is_one_concatenation(sections: Any) -> None:
    def loss(v: Any) -> Any:
        return sum(i * fnp.sum(p) for i, p in enumerate(fnp.split(v, sections)))

    v = V.astype(np.float32)
    text = str(fxflow.make_graph(fxflow.grad(loss))(v))
    assert "concatenate" in text and "pad" not in text
    pieces = enumerate(np.split(v, sections))
    want = np.concatenate([np.full(len(p), i, np.float32) for i, p in pieces])
    assert same(want, fxflow.grad(loss)(v))


def test_pieces_may_leave_gaps_and_overlap() -> None:
    assert same(np.split(X, [3, 1], 1), fnp.split(X, [3, 1], 1))


def test_splits_along_axes() -> None:
    cube = np.arange(16).reshape(2, 2, 4)
    assert same(np.hsplit(X, 2), fnp.hsplit(X, 2))
    assert same(np.hsplit(V, 3), fnp.hsplit(V, 3))
    assert same(np.vsplit(X, 3), fnp.vsplit(X, 3))
    assert same(np.dsplit(cube, 2), fnp.dsplit(cube, 2))
    assert same(np.array_split(V, 4), fnp.array_split(V, 4))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fnp.concatenate([]), ArgumentError, "at least one array"),
        (lambda: fnp.concatenate(1.0), ArgumentError, "takes a sequence"),
        (lambda: fnp.concatenate([X, X[:, :2]]), ShapeError, "length of axis 0"),
        (lambda: fnp.concatenate([X, V]), ShapeError, r"arrays\[1\] is f32"),
        (lambda: fnp.concatenate([1, 2]), ShapeError, "0-d arrays have no axis"),
        (lambda: fnp.concatenate([X], 2), AxisError, "axis 2 is out of range"),
        (lambda: fnp.stack([V, V, X]), ShapeError, r"arrays\[2\]"),
        (lambda: fnp.stack([X], 4), AxisError, "axis 4"),
        (lambda: fnp.stack([[1], [2]]), ArgumentError, "is not an array"),
        (lambda: fnp.split(V, 4), ArgumentError, "does not divide into 4 equal parts"),
        (lambda: fnp.split(V, 0), ArgumentError, "at least one section"),
        (lambda: fnp.vsplit(V, 2), ShapeError, "vsplit: needs 2 axes or more"),
        (lambda: fnp.unstack(1.0), ShapeError, "0-d array has no axes"),
    ],
)
def test_shapes_and_axes_that_do_not_fit_are_refused(
    call: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()


def test_stack_has_no_out() -> None:
    with pytest.raises(ArgumentError, match="immutable"):
        fnp.stack([np.ones(2), np.ones(2)], 0, np.ones((2, 2)))
