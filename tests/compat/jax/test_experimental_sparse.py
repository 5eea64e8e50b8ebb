"""`jax.experimental.sparse`: BCOO and BCSR over layouts, against dense arrays."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.compat.jax.experimental import sparse

LAYOUTS = [(b, d) for b in range(3) for d in range(3)]
SHAPES = [(), (5,), (3, 4), (2, 3, 4)]
QUICK = [((3, 4), 0, 0), ((2, 3, 4), 1, 1)]
CASES = [
    pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow)
    for case in ((s, b, d) for s in SHAPES for b, d in LAYOUTS if b + d <= len(s))
]
DOTS = [
    ((2, 3, 4), (2, 4, 5), (((2,), (1,)), ((0,), (0,)))),
    ((3, 4), (4,), (((1,), (0,)), ((), ()))),
    ((3, 4), (3, 4), (((0, 1), (0, 1)), ((), ()))),
    ((3,), (4,), (((), ()), ((), ()))),
]


def random(shape, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * (rng.random(shape) < 0.5)).astype(np.float32)


def close(got, want):
    np.testing.assert_allclose(sparse.todense(got), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("shape", "n_batch", "n_dense"), CASES)
def test_layouts(shape, n_batch, n_dense):
    x = random(shape)
    mat = sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    assert (mat.n_batch, mat.n_dense, mat.shape) == (n_batch, n_dense, shape)
    close(mat, x)
    close(mat.sum_duplicates(), x)
    close(mat.sum_duplicates(nse=mat.nse), x)
    close(mat.sort_indices(), x)
    for b, d in LAYOUTS:
        if b + d <= len(shape):
            moved = mat.update_layout(n_batch=b, n_dense=d, on_inefficient=None)
            assert (moved.n_batch, moved.n_dense) == (b, d)
            close(moved, x)
    close(sparse.bcoo_extract(mat, 2 * x), 2 * x)
    for count in range(len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            close(sparse.bcoo_reduce_sum(mat, axes=axes), x.sum(axes))


@pytest.mark.parametrize(("shape", "n_batch", "n_dense"), CASES)
def test_operators(shape, n_batch, n_dense):
    x = random(shape)
    mat = sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    close(-mat, -x)
    close(2 * mat, 2 * x)
    close(abs(mat), abs(x))
    close(mat * x, x * x)
    close(mat * mat, x * x)
    close(mat + mat, 2 * x)
    close(mat - 2 * mat, -x)
    wide = (2, *shape)
    dims = tuple(range(1, len(wide)))
    more = sparse.bcoo_broadcast_in_dim(mat, shape=wide, broadcast_dimensions=dims)
    close(more, np.broadcast_to(x, wide))
    if not shape:
        return
    close(mat.reshape(-1), x.ravel())
    close(mat[0], x[0])
    close(mat[1:], x[1:])
    close(mat[::2], x[::2])
    close(sparse.bcoo_rev(mat, (0,)), x[::-1])
    last = len(shape) - 1
    both = sparse.bcoo_concatenate([mat, mat], dimension=last)
    close(both, np.concatenate([x, x], -1))
    if n_batch + n_dense == 0:
        starts, sizes = [1] * len(shape), [2] * len(shape)
        got = sparse.bcoo_dynamic_slice(mat, starts, sizes)
        close(got, fxflow.lax.dynamic_slice(x, starts, sizes))


@pytest.mark.parametrize(("left", "right", "dims"), DOTS)
def test_contractions(left, right, dims):
    x, y = random(left), random(right, 1)
    want = fxflow.lax.dot_general(x, y, dims)
    for b, d in LAYOUTS:
        if b + d <= len(left):
            mat = sparse.BCOO.fromdense(x, n_batch=b, n_dense=d)
            close(sparse.bcoo_dot_general(mat, y, dimension_numbers=dims), want)
    mat = sparse.BCOO.fromdense(y)
    close(sparse.bcoo_dot_general(x, mat, dimension_numbers=dims), want)
    both = sparse.bcoo_dot_general(
        sparse.BCOO.fromdense(x), mat, dimension_numbers=dims
    )
    assert isinstance(both, sparse.BCOO)
    close(both, want)


def test_matrices():
    x = random((3, 4))
    for mat in (sparse.BCOO.fromdense(x), sparse.BCSR.fromdense(x)):
        close(mat.T, x.T)
        close(mat @ x.T, x @ x.T)
        close(x.T @ mat, x.T @ x)
        close(mat @ mat.T, x @ x.T)
        close(fxflow.jit(operator.matmul)(mat, x[0]), x @ x[0])
    for kind in (sparse.COO, sparse.CSR, sparse.CSC):
        mat = kind.fromdense(x)
        close(mat, x)
        close(mat.T, x.T)
        close(mat @ x[0], x @ x[0])
    close(
        sparse.csr_matvec(sparse.csr_fromdense(x), x[:, 0], transpose=True),
        x.T @ x[:, 0],
    )
    held = sparse.BCOO.fromdense(x)
    assert repr(held) == f"BCOO(float32[3, 4], nse={held.nse})"
    close(sparse.BCSR.from_bcoo(held).to_bcoo(), x)


def test_scipy_s_arrays():
    import scipy.sparse

    theirs = scipy.sparse.csr_array(random((3, 4)))
    close(sparse.BCOO.from_scipy_sparse(theirs), theirs.toarray())
    close(sparse.BCSR.from_scipy_sparse(theirs), theirs.toarray())


def test_duplicates_and_padding():
    data, indices = np.array([1.0, 2.0, 4.0, 8.0]), [[0, 1], [0, 1], [2, 0], [3, 3]]
    mat = sparse.BCOO((data, np.array(indices)), shape=(3, 2))
    want = np.array([[0, 3.0], [0, 0], [4, 0]])
    close(mat, want)
    close(mat @ np.ones(2), want.sum(1))
    assert mat.sum_duplicates().nse == 2 and mat.sum_duplicates(nse=3).nse == 3
    close(fxflow.jit(lambda m: m.sum_duplicates(nse=2))(mat), want)
    close(sparse.sparsify(fnp.sin)(mat), np.sin(want))
    with pytest.raises(ValueError, match="nse must be given"):
        fxflow.jit(lambda m: m.sum_duplicates())(mat)
    with pytest.raises(sparse.SparseEfficiencyError, match="more memory"):
        mat.update_layout(n_batch=1)


def test_vmap_takes_away_a_batch_axis():
    x = random((2, 3, 4))
    mat = sparse.BCOO.fromdense(x, n_batch=1)
    got = fxflow.vmap(lambda m: m @ x[0, 0])(mat)
    close(got, x @ x[0, 0])
    again = fxflow.vmap(lambda m: 2 * m)(mat)
    assert again.shape == (2, 3, 4)
    close(again, 2 * x)


def test_derivatives_by_the_data():
    x = random((3, 4))
    mat = sparse.BCOO.fromdense(x)

    def f(mat):
        return fnp.sum((mat @ x[0]) ** 2)

    want = np.where(x != 0, 2 * np.outer(x @ x[0], x[0]), 0)
    close(sparse.grad(f)(mat), want)
    value, slope = sparse.value_and_grad(f)(mat)
    close(slope, want)
    np.testing.assert_allclose(value, np.sum((x @ x[0]) ** 2), rtol=1e-5)
    csr = sparse.BCSR.fromdense(x)
    close(sparse.grad(f)(csr), want)
    for transform in (sparse.jacfwd, sparse.jacrev):
        jacobian = transform(lambda m: m @ x[0])(mat)
        assert jacobian.shape == (3, 3, 4) and jacobian.n_batch == 1
        want = np.einsum("ij,ik->ijk", np.eye(3), np.where(x != 0, x[0], 0))
        close(jacobian, want)


def test_functions_of_dense_arrays():
    x = random((3, 4))
    mat = sparse.BCOO.fromdense(x)
    close(sparse.sparsify(lambda a, b: fnp.sum(fnp.sin(a) @ b, 0))(mat, x.T),
          (np.sin(x) @ x.T).sum(0))  # fmt: skip
    close(sparse.sparsify(lambda a: fxflow.jit(lambda a: 2 * a)(a))(mat), 2 * x)
    with pytest.raises(NotImplementedError, match="sparse rule for cos"):
        sparse.sparsify(fnp.cos)(mat)


def test_loops_and_branches():
    x = random((3, 3))
    mat = sparse.BCOO.fromdense(x)
    lax = fxflow.lax

    def loop(m, v):
        doubled = lax.fori_loop(0, 3, lambda _, m: m * 2, m)
        chosen = lax.cond(v[0] > 0, lambda m: m * 2, lambda m: m, doubled)
        grown = lax.while_loop(lambda v: v.sum() < 9, lambda v: v * 2 + m[0] * 0, v)
        return chosen @ v, lax.scan(lambda c, _: (m @ c, c), v, None, length=2), grown

    v = np.ones(3, np.float32)
    product, (last, seen), grown = sparse.sparsify(loop)(mat, v)
    close(product, 16 * x @ v)
    close(last, x @ x @ v)
    close(seen, np.stack([v, x @ v]))
    close(grown, 4 * v)


def test_names_in_modules():
    from fxflow.compat.jax.experimental.sparse import (
        bcoo,
        bcsr,
        coo,
        csr,
        transform,
        util,
    )

    assert bcoo.BCOO is sparse.BCOO and bcsr.bcsr_fromdense is sparse.bcsr_fromdense
    assert coo.COO is sparse.COO and csr.CSC is sparse.CSC
    assert transform.sparsify is sparse.sparsify
    assert util.SparseEfficiencyError is sparse.SparseEfficiencyError


def test_sums_with_numbers_and_comparisons_are_refused():
    mat = sparse.BCOO.fromdense(random((3, 4)))
    with pytest.raises(NotImplementedError, match="and a scalar"):
        mat + 1
    with pytest.raises(NotImplementedError, match="sparse rule for eq"):
        _ = mat == mat
    assert float(mat.sum()) == pytest.approx(float(random((3, 4)).sum()), rel=1e-5)


def test_made_arrays():
    close(sparse.eye(3, 4, k=-1), np.eye(3, 4, k=-1))
    close(sparse.eye(3, sparse_format="bcsr"), np.eye(3))
    close(sparse.empty((2, 3)), np.zeros((2, 3)))
    for shape, n_batch, n_dense in (((4, 5), 0, 0), ((2, 4, 3), 1, 1)):
        made = sparse.random_bcoo(
            fxflow.random.key(0), shape, nse=0.5, n_batch=n_batch, n_dense=n_dense
        )
        assert made.shape == shape and made.n_batch == n_batch
        assert 0 < np.count_nonzero(made.todense()) < np.prod(shape)


def test_solvers():
    x = np.eye(4, dtype=np.float32) * 3 + random((4, 4)) * 0.1
    mat = sparse.BCSR.fromdense(x)
    b = np.arange(4, dtype=np.float32)
    got = sparse.linalg.spsolve(mat.data, mat.indices, mat.indptr, b)
    close(got, np.linalg.solve(x, b))
    a = np.diag(np.arange(1.0, 31.0)).astype(np.float32)
    start = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
    values, vectors, _ = sparse.linalg.lobpcg_standard(a, start)
    np.testing.assert_allclose(values, [30, 29], rtol=1e-4)
    np.testing.assert_allclose(a @ vectors, vectors * values, atol=1e-2)


def test_wrong_parts_are_refused():
    with pytest.raises(ValueError, match="do not fit"):
        sparse.BCOO((np.ones(2), np.zeros((2, 1), int)), shape=(3, 3))
    with pytest.raises(ValueError, match="do not fit"):
        sparse.BCSR((np.ones(2), np.zeros(2, int), np.zeros(3, int)), shape=(3, 3))
    with pytest.raises(ValueError, match="nse must be given"):
        fxflow.jit(sparse.BCOO.fromdense)(np.ones((2, 2)))


def layout(mat):
    return mat.n_batch, mat.n_sparse, mat.n_dense, mat.nse


@pytest.mark.parametrize(("n_batch", "n_dense"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_layouts_that_are_kept(n_batch, n_dense):
    x = random((3, 2, 4))
    mat = sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    b, s, d, nse = layout(mat)
    wide = sparse.bcoo_broadcast_in_dim(
        mat, shape=(2, 3, 2, 4), broadcast_dimensions=(1, 2, 3)
    )
    assert layout(wide) == (b + 1, s, d, nse)
    close(wide, np.broadcast_to(x, (2, 3, 2, 4)))
    close(mat[:, None], x[:, None])
    part = sparse.bcoo_dynamic_slice(mat, (1, 0, 1), (2, 2, 2))
    assert layout(part)[:3] == (b, s, d) and part.nse <= nse
    close(part, x[1:3, :, 1:3])
    both = sparse.bcoo_concatenate([mat, 2 * mat], dimension=0)
    assert layout(both)[:3] == (b, s, d)
    close(both, np.concatenate([x, 2 * x]))
    total = sparse.bcoo_reduce_sum(mat, axes=(0,))
    assert total.n_dense == d
    close(total, x.sum(0))
    product = sparse.bcoo_multiply_sparse(mat, mat)
    assert layout(product)[:3] == (b, s, d)
    close(product, x * x)
    turned = sparse.bcoo_reshape(mat, new_sizes=(3, 2, 2, 2) if d else (3, 2, 4, 1))
    assert turned.n_batch == b
    close(turned, x.reshape(turned.shape))
    again = sparse.bcoo_extract(mat, x + 1, assume_unique=False)
    close(again, np.where(again.todense() == 0, 0, x + 1))
    if b or d:
        with pytest.raises(ValueError, match="cannot mix"):
            sparse.bcoo_reshape(mat, new_sizes=(24,))


def test_slices_have_no_more_elements_than_places():
    mat = sparse.BCOO.fromdense(np.ones((3, 4), np.float32))
    assert mat[0].nse == 4 and mat[1:, 2:].nse == 4
    assert mat[np.array([2, 0])].shape == (2, 4)
    close(mat[np.array([2, 0])], np.ones((2, 4)))


def test_signs_and_functions_of_compressed_rows():
    import fxflow.compat.jax.numpy as jnp

    x = random((3, 4))
    mat, rows = sparse.BCOO.fromdense(x), sparse.BCSR.fromdense(x)
    close(sparse.sparsify(jnp.sign)(mat), np.sign(x))
    for function in (jnp.sin, jnp.sign, jnp.negative):
        found = sparse.sparsify(function)(rows)
        assert isinstance(found, sparse.BCSR)
        close(found, function(x))
    close(+mat, x)
    with pytest.raises(NotImplementedError, match="sparse rule for pow"):
        _ = 2**mat
    tall = sparse.BCSR.fromdense(random((2, 3, 4)), n_batch=1)
    close(sparse.bcsr_concatenate([tall, tall], dimension=0),
          np.concatenate([random((2, 3, 4))] * 2))  # fmt: skip
    dense = sparse.BCSR.fromdense(random((2, 3, 4)), n_dense=1)
    found = sparse.bcsr_extract(dense.indices, dense.indptr, random((2, 3, 4)))
    np.testing.assert_array_equal(found, dense.data)


@pytest.mark.parametrize("kind", ["COO", "CSR", "CSC"])
def test_plain_matrices(kind):
    x = random((3, 4))
    mat = getattr(sparse, kind).fromdense(x)
    made = sparse.eye(3, 4, k=1, sparse_format=kind.lower())
    assert type(made).__name__ == kind
    close(made, np.eye(3, 4, k=1))
    close(sparse.eye(5, 3, k=-2, sparse_format=kind.lower()), np.eye(5, 3, k=-2))
    close(sparse.empty((3, 4), sparse_format=kind.lower()), np.zeros((3, 4)))
    with pytest.raises(ValueError, match="ndim=2"):
        sparse.empty((2, 3, 4), sparse_format=kind.lower())
    slope = sparse.grad(lambda m: fnp.sum((m @ x[0]) ** 2))(mat)
    assert type(slope).__name__ == kind
    close(slope, np.where(x != 0, 2 * np.outer(x @ x[0], x[0]), 0))
    for refused in (operator.neg, lambda m: m + m, lambda m: 2 * m, lambda m: m[0]):
        with pytest.raises(NotImplementedError, match=kind):
            refused(mat)


def test_jacobian_of_compressed_rows():
    x = random((3, 4))
    found = sparse.jacrev(lambda m: m @ x[0])(sparse.BCSR.fromdense(x))
    assert isinstance(found, sparse.BCSR) and found.n_batch == 1
    close(found, np.einsum("ij,ik->ijk", np.eye(3), np.where(x != 0, x[0], 0)))


def test_solution_for_traced_indices():
    x = np.eye(4, dtype=np.float32) * 3 + random((4, 4)) * 0.1
    mat = sparse.BCSR.fromdense(x)
    b = np.arange(4, dtype=np.float32)
    solve = fxflow.jit(sparse.linalg.spsolve)
    close(solve(mat.data, mat.indices, mat.indptr, b), np.linalg.solve(x, b))
    slope = fxflow.grad(lambda b: solve(mat.data, mat.indices, mat.indptr, b).sum())(
        fnp.asarray(b)
    )
    close(slope, np.linalg.solve(x.T, np.ones(4)))
