"""`x.at[index]`: NumPy's assignment without changing the array."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError, OutOfRangeError, ShapeError
from tests.numpy.indices import INDICES, MASK, X
from tests.numpy.oracle import quick, same

A = np.array


@pytest.mark.parametrize("index", INDICES, ids=lambda i: repr(i).replace("\n", "")[:50])
def test_updates_agree_with_numpy(index: Any) -> None:
    values = np.arange(X[index].size, dtype=np.float32).reshape(X[index].shape)
    x = fnp.asarray(X)
    want = X.copy()
    want[index] = values
    assert same(want, x.at[index].set(values))
    for name, function in (("add", np.add), ("multiply", np.multiply)):
        want = X.copy()
        function.at(want, index, values)
        assert same(want, getattr(x.at[index], name)(values))
    assert same(X, x), "the array itself has changed"


def test_updates_under_jit() -> None:
    for group in (INDICES[:17], INDICES[17:34], INDICES[34:]):
        want = []
        for index in group:
            added = X.copy()
            np.add.at(added, index, 2.5)
            want.append(added)
        got = fxflow.jit(lambda x, g=group: [x.at[i].add(2.5) for i in g])(X)
        for w, g, i in zip(want, got, group, strict=True):
            assert same(w, g), i


@quick
@given(data=st.data())
def test_any_basic_index(data: Any) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    x = np.zeros(shape, np.float32)
    values = np.arange(x[index].size, dtype=np.float32).reshape(x[index].shape)
    want = x.copy()
    want[index] = values
    assert same(want, fnp.asarray(x).at[index].set(values))


def test_traced_integers_out_of_range_are_left_out() -> None:
    put = fxflow.jit(lambda x, i: x.at[i].set(9.0))
    x = fnp.arange(3.0)
    assert put(x, 1).tolist() == [0, 9, 2]
    assert put(x, -1).tolist() == [0, 1, 9]
    assert put(x, 3).tolist() == put(x, -4).tolist() == [0, 1, 2]
    clip = fxflow.jit(lambda x, i: x.at[i].set(9.0, mode="clip"))
    assert clip(x, 7).tolist() == [0, 1, 9]


def test_modes_of_arrays() -> None:
    x = fnp.arange(3.0)
    assert x.at[A([7, 0])].set(5.0).tolist() == [5, 1, 2]
    assert x.at[A([7, 0])].set(5.0, mode="drop").tolist() == [5, 1, 2]
    assert x.at[A([7, 0])].set(5.0, mode="clip").tolist() == [5, 1, 5]
    got = x.at[A([-1])].set(5.0, wrap_negative_indices=False)
    assert got.tolist() == [0, 1, 2]


def test_all_operations() -> None:
    x = fnp.asarray([1.0, 2.0, 4.0])
    at = x.at[A([1, 1])]
    assert at.add(3.0).tolist() == [1, 8, 4]
    assert at.subtract(1.0).tolist() == [1, 0, 4]
    assert at.multiply(3.0).tolist() == at.mul(3.0).tolist() == [1, 18, 4]
    assert at.divide(2.0).tolist() == [1, 0.5, 4]
    assert x.at[2].power(2.0).tolist() == [1, 2, 16]
    assert at.min(A([5.0, 0.5])).tolist() == [1, 0.5, 4]
    assert at.max(A([5.0, 0.5])).tolist() == [1, 5, 4]
    assert at.apply(fnp.negative).tolist() == [1, 2, 4]
    assert x.at[1].apply(fnp.negative).tolist() == [1, -2, 4]
    assert at.get().tolist() == [2, 2]
    assert x.at[:2].max(1.5).tolist() == [1.5, 2, 4]


def test_masks_may_be_traced_if_values_do_not_depend_on_them() -> None:
    function = fxflow.jit(lambda x, m: (x.at[m].set(0.0), x.at[m].add(1.0)))
    for mask in (MASK, MASK[:, :, 0], MASK[:, 0, 0]):
        zeroed, added = X.copy(), X.copy()
        zeroed[mask] = 0
        added[mask] += 1
        assert same((zeroed, added), function(X, mask))
    rows = X.copy()
    rows[MASK[:, :, 0]] = np.arange(6)
    assert same(rows, fnp.asarray(X).at[MASK[:, :, 0]].set(np.arange(6.0)))


def test_values_for_each_true_place() -> None:
    want = X.copy()
    want[MASK] = np.arange(MASK.sum())
    assert same(want, fnp.asarray(X).at[MASK].set(np.arange(float(MASK.sum()))))


def test_derivatives_of_set_and_multiply() -> None:
    x, v = fnp.arange(3.0), fnp.asarray([5.0, 6.0])
    _, pull = fxflow.vjp(lambda a, b: a.at[A([0, 2])].set(b), x, v)
    dx, dv = pull(fnp.asarray([1.0, 2.0, 3.0]))
    assert dx.tolist() == [0, 2, 0] and dv.tolist() == [1, 3]
    _, pull = fxflow.vjp(lambda a, b: a.at[1:].multiply(b), x, v)
    dx, dv = pull(fnp.ones(3))
    assert dx.tolist() == [1, 5, 6] and dv.tolist() == [1, 2]


def test_under_vmap() -> None:
    out = fxflow.vmap(lambda x, i: x.at[i].set(-1.0))(X[:3, 0], A([0, 2, 4]))
    want = X[:3, 0].copy()
    want[np.arange(3), [0, 2, 4]] = -1
    assert same(want, out)


def test_values_take_the_dtype_of_the_array() -> None:
    x = fnp.zeros(2, "int8")
    assert x.at[0].set(2.7).dtype == np.int8
    assert fnp.zeros(2, "bfloat16").at[0].add(1).dtype == "bfloat16"
    with pytest.raises(DtypeError, match=r"at.set: complex values c64\[\]"):
        x.at[0].set(1j)


def test_keys_are_updated_by_keys_only() -> None:
    keys = fxflow.random.split(fxflow.random.key(1), 3)
    out = keys.at[0].set(keys[2])
    assert np.asarray(out[0] == keys[2])
    with pytest.raises(DtypeError, match="does not go into"):
        keys.at[0].set(1)


@pytest.mark.parametrize(
    ("index", "values", "error", "text"),
    [
        (slice(0, 2), np.ones(3), ShapeError, r"values f32\[3\] do not broadcast to"),
        (A([0, 1]), np.ones(3), ShapeError, "do not broadcast"),
        (9, 1.0, OutOfRangeError, "at.set: index 9 is out of range"),
        (A([True]), 1.0, OutOfRangeError, "boolean mask"),
        (0, [1, 2], ArgumentError, "at.set: got a list"),
    ],
)
def test_values_and_indices_that_do_not_fit_are_refused(
    index: Any, values: Any, error: Any, text: str
) -> None:
    with pytest.raises(error, match=text):
        fnp.arange(4.0).at[index].set(values)


def test_unknown_options() -> None:
    with pytest.raises(ArgumentError, match=r"at\.set: unknown arguments fast"):
        fnp.arange(4.0).at[0].set(1, fast=True)
    with pytest.raises(ArgumentError, match="unknown mode"):
        fnp.arange(4.0).at[A([0])].set(1, mode="nope")


def test_apply_counts_how_often_an_element_is_named() -> None:
    index = A([2, 0, 2, 2, -1])
    want = np.ones(4, np.float32)
    np.negative.at(want, index)
    at = lambda x, i: x.at[i].apply(fnp.negative)
    assert same(want, at(fnp.ones(4), index))
    assert same(want, fxflow.jit(lambda x: at(x, index))(fnp.ones(4)))
    assert same(want, fxflow.jit(at)(fnp.ones(4), index))
    assert fnp.ones(4).at[A([2, 2])].apply(lambda v: v * 3).tolist() == [1, 1, 9, 1]
    # A promise, a mask and a slice name each element once.
    x = fnp.ones(4)
    tripled = x.at[A([2, 2])].apply(lambda v: v * 3, unique_indices=True)
    assert tripled.tolist() == [1, 1, 3, 1]
    assert x.at[A([True, False, True, False])].apply(fnp.negative)[0] == -1
    assert x.at[A([1, 7, 7])].apply(fnp.negative).tolist() == [1, -1, 1, 1]
    assert x.at[A([], np.int32)].apply(fnp.negative).tolist() == [1] * 4


def test_apply_has_derivatives_and_may_use_what_is_traced() -> None:
    twice = lambda x, k: x.at[A([2, 2, 1])].apply(lambda v: fnp.sin(k * v)).sum()
    plain = lambda x, k: (
        x[0] + fnp.sin(k * x[1]) + fnp.sin(k * fnp.sin(k * x[2])) + x[3]
    )
    x = fnp.linspace(0.1, 1.0, 4)
    for transform in (fxflow.grad, lambda f, n: fxflow.jit(fxflow.grad(f, n))):
        got = transform(twice, (0, 1))(x, 1.5)
        assert same(fxflow.grad(plain, (0, 1))(x, 1.5), got, 1e-5)
    batched = fxflow.vmap(lambda x, i: x.at[i].apply(fnp.sin))
    got = batched(fnp.ones((2, 3)), A([[0, 0], [1, 2]]))
    once, both = np.sin(1.0), np.sin(np.sin(1.0))
    assert same(A([[both, 1, 1], [1, once, once]]), got, 1e-5)


@pytest.mark.parametrize(
    "index", [5, -6, (1, 6), np.s_[1:, 9], np.s_[::2, 9], (A([0, 1]), 9), (None, 9, 2)]
)
def test_a_number_out_of_range_does_as_mode_says(index: Any) -> None:
    x = fnp.asarray(X)
    with pytest.raises(OutOfRangeError):
        x.at[index].set(1.0)
    with pytest.raises(OutOfRangeError):
        x.at[index].get(mode="promise_in_bounds")
    near = tuple(
        int(np.clip(i, 0 if i < 0 else None, n - 1)) if isinstance(i, int) else i
        for i, n in zip(
            index if isinstance(index, tuple) else (index,),
            X.shape
            if not (isinstance(index, tuple) and index[0] is None)
            else (0, *X.shape),
            strict=False,
        )
    )
    want = X[near]
    for run in (lambda f: f, fxflow.jit):
        assert same(want, run(lambda x: x.at[index].get(mode="clip"))(x))
        filled = run(lambda x: x.at[index].get(mode="fill", fill_value=7))(x)
        assert same(np.full(want.shape, 7.0), filled)
        assert np.isnan(x.at[index].get(mode="fill")).all()
        for mode in ("drop", "fill"):
            assert same(X, run(lambda x, m=mode: x.at[index].add(1.0, mode=m))(x))
        clipped = X.copy()
        clipped[near] = 1.0
        assert same(clipped, run(lambda x: x.at[index].set(1.0, mode="clip"))(x))
    with pytest.raises(ShapeError, match="do not broadcast"):
        x.at[index].set(np.ones((7, 7)), mode="drop")


def test_modes_of_numbers() -> None:
    x = fnp.arange(3.0)
    assert np.isnan(x.at[-1].get(mode="fill", wrap_negative_indices=False))
    assert x.at[-1].get(mode="clip", wrap_negative_indices=False) == 0
    with pytest.raises(OutOfRangeError):
        x.at[-1].get(wrap_negative_indices=False)
    with pytest.raises(ArgumentError, match="unknown mode 'wrap'"):
        x.at[1].get(mode="wrap")
    with pytest.raises(OutOfRangeError):
        fnp.zeros((0, 2)).at[0].get(mode="clip")


PLACES = np.array([1, 1])


@pytest.mark.parametrize("how", [lambda f: f, fxflow.jit])
@pytest.mark.parametrize(
    ("update", "expected"),
    [
        (lambda x: x.at[1].add(1.5), [2**30 + 1, 4, 4]),
        (lambda x: x.at[1].subtract(0.5), [2**30 + 1, 2, 4]),
        (lambda x: x.at[1].multiply(1.5), [2**30 + 1, 4, 4]),
        (lambda x: x.at[1:].multiply(1.5), [2**30 + 1, 4, 6]),
        (lambda x: x.at[PLACES].add(0.6), [2**30 + 1, 4, 4]),
        (lambda x: x.at[PLACES].multiply(1.5), [2**30 + 1, 6, 4]),
        (lambda x: x.at[1].min(2.5), [2**30 + 1, 2, 4]),
        (lambda x: x.at[1].max(3.7), [2**30 + 1, 3, 4]),
        (lambda x: x.at[1].power(0.5), [2**30 + 1, 1, 4]),
        (lambda x: x.at[x < 5].add(1.5), [2**30 + 1, 4, 5]),
    ],
)
def test_floats_and_integers_meet_in_their_common_dtype(
    how: Any, update: Any, expected: list[int]
) -> None:
    # The first element, which no index names, is not a float32.
    x = fnp.array([2**30 + 1, 3, 4])
    out = how(update)(x)
    assert out.dtype == "int32"
    assert out.tolist() == expected


def test_narrow_integers_and_bools_meet_wider_ones() -> None:
    x = fnp.array([3, 200], "uint8")
    assert x.at[1].add(np.int32(-250)).tolist() == [3, 206]
    assert x.at[1].min(np.int32(300)).tolist() == [3, 200]
    assert x.at[1].max(np.int32(-250)).tolist() == [3, 200]
    assert fnp.array([True, False]).at[:].add(2).tolist() == [True, True]
    x = fnp.array([3.0, 200.0], "bfloat16")
    assert x.at[np.ones(64, np.int32)].add(np.float32(1)).tolist() == [3.0, 264.0]
    assert fnp.array([3, 4]).at[0].divide(1.5).tolist() == [2.0, 4.0]


def test_values_keep_64_bits() -> None:
    x = fnp.asarray([1.0, 2.0], "float64")
    for value in (0.1, np.float64(0.1)):
        assert x.at[0].set(value)[0] == fnp.float64(0.1)
        assert x.at[np.array([0])].set(value)[0] == fnp.float64(0.1)
    assert int(fnp.zeros(2, "int64").at[0].add(1 << 40)[0]) == 1 << 40


@pytest.mark.parametrize("shape", [(2,), (2, 1), (1, 2)])
def test_one_element_takes_one_value(shape):
    with pytest.raises(ShapeError, match=r"do not broadcast to the shape \(\) that"):
        fnp.zeros(3).at[0].set(fnp.ones(shape))
    with pytest.raises(ShapeError, match=r"at.add: values"):
        fnp.zeros((3, 3)).at[0, 1].add(fnp.ones(shape))
