"""Indexing: everything that NumPy's does, eagerly, compiled, differentiated, mapped."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fxflow
import fxflow.numpy as fnp
from fxflow.core.errors import ArgumentError, ConcretizationError, DtypeError
from fxflow.numpy.indexing import BooleanIndexError, OutOfRangeError
from tests.numpy.oracle import quick, same

A = np.array
S = np.s_
SHAPE = (4, 5, 6)
X = np.arange(120, dtype=np.float32).reshape(SHAPE)
MASK = (X.astype(int) * 7) % 5 > 2
INDICES: list[Any] = [
    *(
        1,
        -1,
        (1, 2),
        (1, 2, 3),
        (),
        ...,
        None,
        S[1:3],
        S[::-1],
        S[:, 4:0:-2],
        S[..., 0],
    ),
    *(S[None, 1], S[1, None, 1:4], S[..., None, 2], S[2:2], S[:, 3:1], np.int64(1)),
    *(
        A([0, 2]),
        A([[0, 2], [1, -1]]),
        S[A([0, 2]), A([1, 3])],
        S[A([0, 2]), :, A([1, 3])],
    ),
    *(S[:, A([0, 2]), A([1, 3])], S[1:3, A([0, 2]), ::2], S[0, :, A([1, 3])]),
    *(S[:, 0, A([1, 3])], S[A([0, 2]), None, A([1, 3])], S[A([[0], [2]]), A([1, 3])]),
    *(S[..., A([1, 3])], S[0, ..., A([1, 3])], S[A([1, 3]), ..., A([1, 3])]),
    *(S[A([1, 3]), 4::-2], S[::2, A([1, 3]), 4:0:-3], S[1:4, A([[0, 1]]), None, 0:3]),
    *(A([True, False, True, False]), S[:, A([True, False, True, False, True])]),
    *(MASK[:, :, 0], MASK, S[1, MASK[1]], True, False, S[True, 1], S[:, True]),
    *(S[A(True), A([0, 1])], A([], dtype=int), A(2), S[A(1), 0:2]),
    *(S[A(1), A([0, 1])], S[np.uint8(1), A([0, 1], np.uint8)], S[A([-1], np.int8)]),
    *(S[..., :, 1], S[:, ..., 1, :], S[A([0, 1]), :, :], S[MASK[:, 0, 0], ..., 1]),
]


@pytest.mark.parametrize("index", INDICES, ids=lambda i: repr(i).replace("\n", "")[:50])
def test_indexing_agrees_with_numpy(index: Any) -> None:
    want = X[index]
    x = fnp.asarray(X)
    assert same(want, x[index])
    # Not from host memory but from a buffer, and of a large array.
    assert same(want, (x + 0)[index])
    out = fxflow.make_graph(lambda a: a[index])(x)
    assert out is not None


def test_indexing_under_jit() -> None:
    for group in (INDICES[:17], INDICES[17:34], INDICES[34:]):
        want = [X[i] for i in group]
        got = fxflow.jit(lambda a, g=group: [a[i] for i in g])(X)
        for w, g, i in zip(want, got, group, strict=True):
            assert same(w, g), i


@quick
@given(data=st.data())
def test_any_basic_index(data: Any) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    assert same(x[index], fnp.asarray(x)[index])


@quick
@given(data=st.data())
def test_any_integer_array_index(data: Any) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    index = data.draw(hnp.integer_array_indices(shape, dtype=np.int32))
    assert same(x[index], fnp.asarray(x)[index])
    assert same(x[index], fnp.asarray(x)[tuple(map(fnp.asarray, index))])


def test_traced_integers() -> None:
    at = fxflow.jit(
        lambda x, i, j: (x[i], x[i, j], x[:, i], x[i, 1:3, ::2], x[i, None])
    )
    want = X[1], X[1, -2], X[:, 1], X[1, 1:3, ::2], X[1, None]
    assert same(want, at(X, 1, -2))
    assert same((X[3], X[0]), fxflow.jit(lambda x, i: (x[i], x[-i]))(X, 9))


def test_a_traced_integer_is_a_dynamic_slice() -> None:
    text = str(fxflow.make_graph(lambda x, i: x[i, 1:3])(X, 1))
    assert "dynamic_slice" in text and "gather" not in text


def test_arrays_out_of_range_are_clipped() -> None:
    x = fnp.arange(5.0)
    picks = A([10, -7, -1])
    for index in (picks, fnp.asarray(picks)):
        assert x[index].tolist() == [4, 0, 4]
        assert fxflow.jit(lambda a, i: a[i])(x, index).tolist() == [4, 0, 4]


@pytest.mark.parametrize(
    ("mode", "fill", "want"),
    [
        (None, None, [4, 0, 4]),
        ("clip", None, [4, 0, 4]),
        ("fill", -1.0, [-1, -1, 4]),
        ("promise_in_bounds", None, [4, 0, 4]),
    ],
)
def test_modes(mode: Any, fill: Any, want: list[float]) -> None:
    x = fnp.arange(5.0)
    picks = A([10, -7, -1])
    assert x.at[picks].get(mode=mode, fill_value=fill).tolist() == want


def test_fill_of_scalars_and_without_wrapping() -> None:
    x = fnp.arange(5.0)
    assert np.isnan(float(fxflow.jit(lambda a, i: a.at[i].get(mode="fill"))(x, 7)))
    got = x.at[A([-1])].get(mode="fill", wrap_negative_indices=False, fill_value=9.0)
    assert got.tolist() == [9]


def test_small_index_dtypes_do_not_overflow() -> None:
    x = fnp.arange(200)
    assert x[A([-1], np.int8)].tolist() == [199]
    assert x[fnp.asarray([250], "uint8")].tolist() == [199]


def test_gradient_of_indexing() -> None:
    x = fnp.arange(4.0)
    pull = fxflow.vjp(lambda a: a[A([0, 0, 2])], x)[1]
    assert pull(fnp.asarray([1.0, 2.0, 3.0]))[0].tolist() == [3, 0, 3, 0]
    back = fxflow.vjp(lambda a: a[::-2], x)[1]
    assert back(fnp.asarray([1.0, 2.0]))[0].tolist() == [0, 2, 0, 1]


def test_indexing_under_vmap() -> None:
    rows = A([2, 0, 1, 3])
    picked = fxflow.vmap(lambda x, i: x[i])(X[:, :, 0], rows)
    assert same(X[np.arange(4), rows, 0], picked)
    whole = fxflow.vmap(lambda i: fnp.asarray(X)[i, :, A([0, 1])])(rows)
    assert same(X[rows][:, :, [0, 1]].transpose(0, 2, 1), whole)


def test_keys_are_indexed() -> None:
    keys = fxflow.random.split(fxflow.random.key(1), 6)
    assert keys[2].shape == () and keys[1:3].shape == (2,)
    assert keys[None, ::-1].shape == (1, 6)
    assert keys[A([0, 5])].shape == (2,)


def test_a_small_view_does_not_keep_a_large_array() -> None:
    x = fnp.zeros(100_000)
    assert x[3:7]._host.base is None
    assert x[10:]._host.base is not None


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (4, OutOfRangeError, r"index 4 is out of range for axis 0 of f32\[4,5,6\]"),
        ((0, -6), IndexError, "index -6 is out of range for axis 1"),
        ((0, 0, 0, 0), OutOfRangeError, "4 indices for f32.*has 3 axes"),
        ((..., ...), OutOfRangeError, "one Ellipsis"),
        (1.5, ArgumentError, "got 1.5 of type float"),
        ("a", ArgumentError, "got 'a' of type str"),
        ([0, 1], ArgumentError, r"a list is no index: use x\[fnp.array\(\[0, 1\]\)\]"),
        (np.ones(2), DtypeError, "must be of integers or bools"),
        (slice(1.5), ArgumentError, "bounds of a slice must be integers"),
        (slice(None, None, 0), ArgumentError, "must not be 0"),
        (A([True, False]), OutOfRangeError, "mask has length 2 along axis 0"),
        ((A([0, 1]), A([0, 1, 2])), OutOfRangeError, "do not broadcast together"),
    ],
)
def test_mistakes(index: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        fnp.asarray(X)[index]
    with pytest.raises(error, match=text):
        fxflow.jit(lambda x: x[index])(X)


def test_what_tracing_cannot_know() -> None:
    with pytest.raises(BooleanIndexError, match=r"x.at\[mask\].set"):
        fxflow.jit(lambda x: x[x > 2])(X)
    with pytest.raises(ConcretizationError, match="dynamic_slice_in_dim"):
        fxflow.jit(lambda x, i: x[i : i + 2])(X, 1)


def test_picking_from_nothing() -> None:
    empty = fnp.zeros((0, 3))
    assert empty[A([], dtype=int)].shape == (0, 3)
    with pytest.raises(OutOfRangeError, match=r"axis 0 of .* is empty"):
        empty[A([0])]
