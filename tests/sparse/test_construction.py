"""Making sparse arrays, against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError, AxisError, ConcretizationError, ShapeError
from fxflow.sparse import construction

DENSE = np.array([[0, 1.0, 0, 2], [3, 0, 0, 0], [0, 4, 5, 0]], np.float32)


def close(got: Any, want: Any) -> None:
    want = want.toarray() if scipy.sparse.issparse(want) else want
    np.testing.assert_allclose(got.todense(), want, rtol=1e-6)


@pytest.mark.parametrize("name", ["coo", "csr", "csc", "bsr", "dia"])
def test_what_an_array_is_made_of(name: str) -> None:
    make = getattr(construction, f"{name}_array")
    theirs = getattr(scipy.sparse, f"{name}_array")(DENSE)
    for source in (DENSE, fnp.asarray(DENSE), DENSE.tolist(), theirs, make(DENSE)):
        made = make(source)
        assert made.format == name and made.dtype == np.float32
        close(made, DENSE)
    assert make((2, 3)).shape == (2, 3) and make((2, 3)).nnz == 0
    assert make((2, 3), dtype="int32").dtype == np.int32
    assert make(DENSE, dtype="float64").dtype == np.float64
    with pytest.raises(ShapeError, match="but the array has"):
        make(DENSE, shape=(3, 3))
    with pytest.raises(ArgumentError, match="expected data with indices"):
        make("abc")


def test_data_and_indices() -> None:
    theirs = scipy.sparse.csr_array(DENSE)
    parts = theirs.data, theirs.indices, theirs.indptr
    close(sparse.csr_array(parts), theirs)
    close(sparse.csc_array(parts), theirs.T)
    coo = theirs.tocoo()
    for name in ("coo", "csr", "csc", "bsr"):
        made = getattr(sparse, f"{name}_array")((coo.data, (coo.row, coo.col)))
        close(made, theirs)
    blocks = scipy.sparse.bsr_array(np.kron(np.eye(2), DENSE), blocksize=(3, 4))
    parts = blocks.data, blocks.indices, blocks.indptr
    made = sparse.bsr_array(parts)
    assert made.blocksize == (3, 4)
    close(made, blocks)
    close(sparse.dia_array(([[1.0, 2, 3]], [1]), shape=(3, 3)), np.diag([2.0, 3], 1))
    with pytest.raises(ArgumentError, match="needs shape="):
        sparse.dia_array((fnp.ones((1, 3)), [0]))
    with pytest.raises(ArgumentError, match="not made of 3 arrays"):
        sparse.coo_array(parts)
    with pytest.raises(ArgumentError, match=r"\(data, \(row, col\)\)"):
        sparse.coo_array((fnp.ones(3), [1, 2, 3]))


def test_values_may_be_traced_and_indices_not() -> None:
    @fxflow.jit
    def f(data: fxflow.Array) -> fxflow.Array:
        return sparse.coo_array((data, ([0, 1], [1, 0])), shape=(2, 2)) @ fnp.ones(2)

    assert f(fnp.array([2.0, 3.0])).tolist() == [2, 3]
    with pytest.raises(ConcretizationError, match="pattern of a traced array"):
        fxflow.jit(lambda x: sparse.csr_array(x).sum())(DENSE)


def test_from_dense_with_a_pattern() -> None:
    pattern = sparse.csr_array(DENSE).pattern
    got = fxflow.jit(lambda x: sparse.fromdense(x, pattern=pattern))(DENSE + 1)
    close(got, np.where(DENSE != 0, DENSE + 1, 0))
    close(sparse.fromdense(DENSE), DENSE)
    with pytest.raises(ShapeError, match="the pattern is of shape"):
        sparse.fromdense(DENSE.T, pattern=pattern)


def test_eye_and_diagonals() -> None:
    for args, more in (((3,), {}), ((3, 5), {"k": 2}), ((4, 2), {"k": -1})):
        close(sparse.eye_array(*args, **more), scipy.sparse.eye_array(*args, **more))
    assert sparse.eye_array(3, k=7).nnz == 0
    lines, offsets = [[1.0, 2], [3.0, 4, 5], [6.0]], [-1, 0, 2]
    for shape in (None, (3, 3)):
        close(
            sparse.diags_array(lines, offsets=offsets, shape=shape),
            scipy.sparse.diags_array(lines, offsets=offsets, shape=shape),
        )
    close(
        sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(4, 4)),
        scipy.sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(4, 4)),
    )
    close(sparse.diags_array([1.0, 2.0], offsets=1, format="csr"), np.diag([1.0, 2], 1))
    slope = fxflow.grad(
        lambda d: (sparse.diags_array([d, d[1:]], offsets=[0, 1]) @ fnp.ones(3)).sum()
    )(fnp.ones(3))
    assert slope.tolist() == [1, 2, 2]
    with pytest.raises(ShapeError, match="diagonal 1 of shape"):
        sparse.diags_array([fnp.ones(5)], offsets=[1], shape=(3, 3))
    with pytest.raises(ArgumentError, match="2 diagonals, but 1 offsets"):
        sparse.diags_array([fnp.ones(3), fnp.ones(3)], offsets=[1])


def test_blocks() -> None:
    a, b = sparse.csr_array(DENSE), sparse.eye_array(4)
    x, y = a.to_scipy(), b.to_scipy()
    close(sparse.kron(a, b), scipy.sparse.kron(x, y))
    square = sparse.csr_array(DENSE[:, :3])
    close(sparse.kronsum(square, b), scipy.sparse.kronsum(square.to_scipy(), y))
    close(
        sparse.block_array([[a, None], [None, b]], format="csr"),
        scipy.sparse.block_array([[x, None], [None, y]]),
    )
    close(sparse.hstack([a, a]), scipy.sparse.hstack([x, x]))
    close(sparse.vstack([a, b], dtype="int32"), scipy.sparse.vstack([x, y]))
    close(sparse.block_diag([a, DENSE, b]), scipy.sparse.block_diag([x, DENSE, y]))
    with pytest.raises(ShapeError, match="block \\[0,1\\]"):
        sparse.hstack([a, b])
    with pytest.raises(ShapeError, match="only None"):
        sparse.block_array([[a, None]])
    with pytest.raises(ShapeError, match="equally many"):
        sparse.block_array([[a], [a, b]])
    with pytest.raises(ShapeError, match="must be square"):
        sparse.kronsum(a, b)


def test_triangles_and_find() -> None:
    for k in (-1, 0, 2):
        close(sparse.tril(DENSE, k), np.tril(DENSE, k))
        close(sparse.triu(sparse.csr_array(DENSE), k, "csr"), np.triu(DENSE, k))
    row, col, values = sparse.find(sparse.csc_array(DENSE))
    want = scipy.sparse.find(DENSE)
    assert sorted(zip(row, col, values.tolist(), strict=True)) == sorted(
        zip(*want, strict=True)
    )


def test_axes_in_another_order() -> None:
    for a in (sparse.csr_array(DENSE), sparse.coo_array(DENSE)):
        close(sparse.permute_dims(a), DENSE.T)
        close(sparse.permute_dims(a, (-1, 0)), DENSE.T)
        close(sparse.swapaxes(a, 0, -1), DENSE.T)
        assert sparse.permute_dims(a, (0, 1)) is a is sparse.swapaxes(a, 1, -1)
    with pytest.raises(ArgumentError, match="permute_dims: axes must have each"):
        sparse.permute_dims(a, (0, 0))
    with pytest.raises(AxisError, match="swapaxes: axis 2"):
        sparse.swapaxes(a, 2, 0)


def test_random_entries() -> None:
    a = sparse.random_array((20, 30), density=0.1, format="csr", rng=5)
    assert a.nnz == 60 and a.has_canonical_format and a.shape == (20, 30)
    again = sparse.random_array((20, 30), density=0.1, format="csr", rng=5)
    assert again.pattern is a.pattern
    ones = sparse.random_array(
        (3, 3), density=1, data_sampler=lambda size: np.ones(size)
    )
    close(ones, np.ones((3, 3)))
    assert sparse.random_array((0, 3)).nnz == 0
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        sparse.random_array((3, 3), density=2)


def test_which_values_are_sparse_arrays() -> None:
    assert sparse.issparse(sparse.eye_array(2)) and not sparse.issparse(DENSE)
