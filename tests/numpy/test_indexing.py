"""Indexing: everything that NumPy's does, eagerly, compiled, differentiated, mapped."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fxflow
import fxflow.numpy as fnp
from fxflow.core.arrays.array import host_of
from tests.numpy.indices import INDICES, A, X
from tests.numpy.oracle import quick, same


@pytest.mark.parametrize("index", INDICES, ids=lambda i: repr(i).replace("\n", "")[:50])
def test_indexing_agrees_with_numpy(index: Any) -> None:
    want = X[index]
    x = fnp.asarray(X)
    assert same(want, x[index])
    # Not from host memory but from a buffer, and of a large array.
    assert same(want, (x + 0)[index])
    assert same(want, fxflow.make_graph(lambda a: a[index])(x)(x))


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
    if fxflow.config.eager != "auto":
        pytest.skip("XLA makes no views")
    x = fnp.zeros(100_000)
    assert host_of(x[3:7]).base is None
    assert host_of(x[10:]).base is not None
