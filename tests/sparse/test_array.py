"""Sparse arrays against SciPy's, with their derivatives and batches."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.sparse.array import SparseArray, from_scipy
from fxflow.sparse.interchange import is_scipy

FORMATS = ("coo", "csr", "csc", "bsr", "dia")


def random(m: int, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.4)
    return dense.astype(np.float32)


DENSE, OTHER = random(6, 5), random(6, 5, 1)
X = np.arange(5, dtype=np.float32) - 1


def arrays() -> list[Any]:
    found = []
    for name in FORMATS:
        marks = () if name in ("csr", "dia") else pytest.mark.slow
        array = sparse.csr_array(DENSE).asformat(name)
        found.append(pytest.param(array, id=name, marks=marks))
    return found


def mask(a: SparseArray) -> np.ndarray:
    ones = SparseArray(a.pattern, fnp.ones_like(a.values))
    return np.asarray(ones.todense()) != 0


def close(got: Any, want: Any, tolerance: float = 1e-5) -> None:
    if isinstance(got, SparseArray):
        got = got.todense()
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("a", arrays())
def test_products(a: SparseArray) -> None:
    close(a @ X, DENSE @ X)
    close(a @ np.stack([X, X + 1], 1), DENSE @ np.stack([X, X + 1], 1))
    three = np.arange(30, dtype=np.float32).reshape(2, 5, 3)
    close(a @ three, DENSE @ three)
    y = np.arange(12, dtype=np.float32).reshape(2, 6)
    close(y @ a, y @ DENSE, 1e-4)
    close(fnp.asarray(y[0]) @ a, y[0] @ DENSE)
    close(three.reshape(5, 6) @ a, three.reshape(5, 6) @ DENSE, 1e-4)
    close(a.dot(X), DENSE @ X)
    close(a.dot(2), 2 * DENSE)
    close(a @ a.T, DENSE @ DENSE.T)
    close(a.T @ scipy.sparse.csr_array(OTHER), DENSE.T @ OTHER)
    close(scipy.sparse.csr_array(OTHER.T).tocsr() @ a.todense(), OTHER.T @ DENSE)


@pytest.mark.parametrize("a", arrays())
def test_elementwise(a: SparseArray) -> None:
    b = sparse.csr_array(OTHER)
    close(a + b, DENSE + OTHER)
    close(a - b, DENSE - OTHER)
    close(a * b, DENSE * OTHER)
    close(b * a, DENSE * OTHER)
    close(a + a, 2 * DENSE)
    close(a.maximum(b), np.maximum(DENSE, OTHER))
    close(a.minimum(b), np.minimum(DENSE, OTHER))
    close(a.maximum(-1), np.where(mask(a), np.maximum(DENSE, -1), 0))
    close(-a, -DENSE)
    close(abs(a), abs(DENSE))
    close(+a, DENSE)
    close(a**2, DENSE**2)
    close(a.power(3), DENSE**3)
    close(2 * a / 4, DENSE / 2)
    close(a * np.float32(3), 3 * DENSE)
    close(a.multiply(X), DENSE * X)
    close(a * X[None], DENSE * X)
    close(fnp.asarray(X) * a, DENSE * X)
    close(a * OTHER, DENSE * OTHER)
    close(a.multiply(np.ones((6, 1), np.float32)), DENSE)
    close(a / (X + 5), DENSE / (X + 5))
    close(a + OTHER, DENSE + OTHER)
    close(OTHER - a, OTHER - DENSE)
    close(0 + a, DENSE)
    close(abs(a).sqrt(), np.sqrt(abs(DENSE)))
    close(a.sin(), np.sin(DENSE))
    close(a.astype("int32"), DENSE.astype("int32"))
    close((a * 1j).conj().imag, -DENSE)
    close((a * 1j).real, 0 * DENSE)
    close((a * 1j).H, -1j * DENSE.T)


@pytest.mark.parametrize("a", arrays())
def test_reductions(a: SparseArray) -> None:
    for axis in (None, 0, 1, -1):
        close(a.sum(axis), DENSE.sum(axis))
        close(a.mean(axis), DENSE.mean(axis))
        close(a.max(axis), DENSE.max(axis))
        close(a.min(axis), DENSE.min(axis))
        close(a.count_nonzero(axis), np.count_nonzero(DENSE, axis))
    for k in (-7, -2, 0, 3):
        close(a.diagonal(k), DENSE.diagonal(k) if abs(k) < 6 else [])
    close(a.trace(), DENSE.trace())
    full = sparse.csr_array(np.full((2, 2), -1.0)).asformat(a.format)
    close(full.max(0), [-1, -1])
    close(full.max(), -1)
    close(a.max(explicit=True), a.values.max())
    rows, cols = a.nonzero()
    assert {*zip(rows, cols, strict=True)} == {*zip(*DENSE.nonzero(), strict=True)}


@pytest.mark.parametrize("a", arrays())
def test_parts(a: SparseArray) -> None:
    close(a[2], DENSE[2])
    close(a[-1, ::2], DENSE[-1, ::2])
    close(a[:, 1], DENSE[:, 1])
    close(a[3, 2], DENSE[3, 2])
    close(a[1:4], DENSE[1:4])
    close(a[::-1, 1:], DENSE[::-1, 1:])
    close(a[[3, 3, 0]], DENSE[[3, 3, 0]])
    close(a[:, [4, 1, 4]], DENSE[:, [4, 1, 4]])
    close(a[..., 2:], DENSE[..., 2:])
    close(a[DENSE[:, 0] != 0], DENSE[DENSE[:, 0] != 0])
    close(a[[0, 5], [1, 2]], DENSE[[0, 5], [1, 2]])
    close(a[np.ix_([0, 5], [1, 2, 2])], DENSE[np.ix_([0, 5], [1, 2, 2])])
    close(a[2:2], DENSE[2:2])
    close(fnp.stack(list(a)), DENSE)
    close(a.reshape(3, 10), DENSE.reshape(3, 10))
    close(a.reshape((-1, 3), order="F"), DENSE.reshape((-1, 3), order="F"))
    close(a.T, DENSE.T)
    close(a.mT.transpose((1, 0)), DENSE)


@pytest.mark.parametrize("a", arrays())
def test_gradients_have_the_pattern(a: SparseArray) -> None:
    def loss(a: SparseArray, x: fxflow.Array) -> fxflow.Array:
        return fnp.sum((a @ x) ** 2)

    got, by_x = fxflow.jit(fxflow.grad(loss, argnums=(0, 1)))(a, X)
    assert got.pattern is a.pattern
    close(got, np.where(mask(a), 2 * np.outer(DENSE @ X, X), 0))
    close(by_x, 2 * DENSE.T @ (DENSE @ X))
    wanted = fxflow.grad(lambda d: fnp.sum((d @ d.T @ d) ** 2))(fnp.asarray(DENSE))
    got = fxflow.grad(lambda a: ((a @ a.T @ a) ** 2).sum())(a)
    close(got, np.where(mask(a), wanted, 0), 1e-3)


def test_second_derivatives() -> None:
    a = sparse.csr_array(DENSE)

    def sparse_loss(v: fxflow.Array) -> fxflow.Array:
        return fnp.sum(SparseArray(a.pattern, v) @ X * (X[0] + fnp.sum(v**2)))

    def dense_loss(v: fxflow.Array) -> fxflow.Array:
        row, col = a.coords
        return fnp.sum(
            fnp.zeros((6, 5)).at[row, col].set(v) @ X * (X[0] + fnp.sum(v**2))
        )

    close(fxflow.hessian(sparse_loss)(a.values), fxflow.hessian(dense_loss)(a.values))


@pytest.mark.parametrize("a", arrays())
def test_vmap_maps_values(a: SparseArray) -> None:
    values = fnp.stack([a.values, 2 * a.values])
    made = fxflow.vmap(lambda v: SparseArray(a.pattern, v) * 3)(values)
    assert made.shape == (6, 5) and "batch=[2]" in repr(made)
    close(fxflow.vmap(lambda a: a @ X)(made), [3 * DENSE @ X, 6 * DENSE @ X])
    close(fxflow.vmap(lambda a: a.todense())(made), [3 * DENSE, 6 * DENSE])
    squares = fxflow.vmap(lambda a: (a @ a.T).sum())(made)
    close(squares, [9 * (DENSE @ DENSE.T).sum(), 36 * (DENSE @ DENSE.T).sum()], 1e-4)
    with pytest.raises(ShapeError, match="batch of sparse arrays"):
        made @ X


def test_pmap_takes_arrays() -> None:
    a = sparse.csr_array(DENSE)
    one = fxflow.vmap(lambda k: a * k)(fnp.array([2.0]))
    close(fxflow.pmap(lambda a: a @ X)(one), [2 * DENSE @ X])


def test_a_pytree_with_one_leaf() -> None:
    a = sparse.csr_array(DENSE)
    leaves, treedef = fxflow.tree.flatten(a)
    assert len(leaves) == 1 and leaves[0] is a.values
    assert treedef.unflatten([1]).values == 1
    again = pickle.loads(pickle.dumps(a))
    assert again.pattern is a.pattern
    close(again, DENSE)
    assert repr(a) == f"csr_array(f32[6,5], nnz={a.nnz})"


def test_attributes_of_the_formats() -> None:
    a = sparse.csr_array(DENSE)
    theirs = scipy.sparse.csr_array(DENSE)
    assert a.indices.tolist() == theirs.indices.tolist()
    assert a.indptr.tolist() == theirs.indptr.tolist()
    assert a.nnz == theirs.nnz == a.size and a.ndim == 2 and a.data is a.values
    assert a.tocoo().row.tolist() == theirs.tocoo().row.tolist()
    assert a.tocoo().col.tolist() == theirs.tocoo().col.tolist()
    assert sorted(a.todia().offsets) == sorted(theirs.todia().offsets)
    assert a.has_canonical_format and a.tocsc().has_canonical_format
    with pytest.raises(AttributeError, match="format csr has no row"):
        _ = a.row
    assert a.copy() is a and a.tocsr() is a


def test_duplicates_count_as_their_sum() -> None:
    a = sparse.coo_array(([1.0, 2.0, -4.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    dense = np.array([[0, 3.0], [-4, 0]])
    close(a, dense)
    close(a**2, dense**2)
    close(abs(a), abs(dense))
    close(a @ fnp.ones(2), dense.sum(1))
    close(a.max(1), dense.max(1))
    assert a.nnz == 3 and a.sum_duplicates().nnz == 2
    assert not a.has_canonical_format and a.sort_indices().has_canonical_format
    assert a.sum_duplicates().format == "coo"
    close(a.sorted_indices(), dense)


def test_zeros_are_eliminated() -> None:
    a = sparse.csr_array(([1.0, 0.0], [0, 1], [0, 2, 2]), shape=(2, 2))
    assert a.nnz == 2 and a.eliminate_zeros().nnz == 1
    with pytest.raises(ConcretizationError, match="eliminate_zeros"):
        fxflow.jit(lambda a: a.eliminate_zeros().sum())(a)


def test_integers_and_bools() -> None:
    a = sparse.csr_array(DENSE.round().astype(np.int32))
    close(a @ np.arange(5), DENSE.round() @ np.arange(5))
    held = a.astype(bool)
    assert held.dtype == bool
    np.testing.assert_array_equal(held @ np.ones(5, bool), (DENSE.round() != 0).any(1))
    assert a.sum().dtype == np.int32
    assert (a * 0.5).dtype == np.float32
    wide = sparse.csr_array(DENSE, dtype="float64")
    assert (wide @ fnp.asarray(X, "float64")).dtype == np.float64


def test_empty_arrays() -> None:
    a = sparse.csr_array((0, 3))
    assert (a @ fnp.ones(3)).shape == (0,) and (fnp.ones((2, 0)) @ a).shape == (2, 3)
    assert (a.T @ a).shape == (3, 3) and (a.T @ a).nnz == 0
    none = sparse.csr_array((2, 3))
    close(none @ fnp.ones(3), [0, 0])
    close(none + none, np.zeros((2, 3)))
    close(none.max(0), np.zeros(3))
    close(none[1], np.zeros(3))
    with pytest.raises(ShapeError, match="no elements"):
        a.max()


def test_from_and_to_scipy() -> None:
    for name in (*FORMATS, "lil", "dok"):
        theirs = scipy.sparse.csr_array(DENSE).asformat(name)
        assert is_scipy(theirs) and not is_scipy(DENSE)
        close(from_scipy(theirs), DENSE)
    assert from_scipy(theirs, "float64").dtype == np.float64
    with pytest.raises(ArgumentError, match="expected an array of scipy"):
        from_scipy(DENSE)


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (lambda a: a + 1, ArgumentError, "number is dense"),
        (lambda a: a / a, ArgumentError, "NaN where both are 0"),
        (lambda a: 1 / a, ArgumentError, "infinite"),
        (lambda a: a**-1, ArgumentError, "positive number"),
        (lambda a: a.maximum(1), ArgumentError, "result is dense"),
        (lambda a: a + a.T, ShapeError, "must be the same"),
        (lambda a: a @ a, ShapeError, "columns of the one"),
        (lambda a: a @ fnp.ones(6), ShapeError, r"\[6,5\] and axis 0 of f32\[6\]"),
        (lambda a: a * fnp.ones(6), ShapeError, "does not broadcast"),
        (lambda a: a == a, ArgumentError, "True where both are 0"),
        (lambda a: bool(a), ArgumentError, "truth value"),
        (lambda a: len(a), TypeError, "ambiguous"),
        (lambda a: np.asarray(a), TypeError, r"use todense\(\)"),
        (lambda a: fnp.sin(a), ArgumentError, "it is sparse"),
        (lambda a: a[7], IndexError, "out of bounds"),
        (lambda a: a[0.5], ArgumentError, "integers, bools or slices"),
        (lambda a: a[0, 0, 0], IndexError, "two axes"),
        (lambda a: a[a], ArgumentError, "not indexed by a sparse"),
        (lambda a: a.sum(2), ArgumentError, "0, 1 or None"),
        (lambda a: a.reshape(4, 4), ShapeError, "does not become"),
        (lambda a: a.asformat("lil"), ArgumentError, "format is one of"),
        (lambda a: a.tobsr((4, 4)), ShapeError, "do not divide"),
        (lambda a: SparseArray(a.pattern, fnp.ones(3)), ShapeError, "has values"),
        (lambda a: hash(a), TypeError, "unhashable"),
    ],
)
def test_what_is_refused(wrong: Any, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        wrong(sparse.csr_array(DENSE))
