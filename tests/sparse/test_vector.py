"""Sparse arrays of one axis beside SciPy's: making, operators, products, parts."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError, ShapeError

X = np.array([0.0, 1.5, 0.0, -2.0, 0.0, 0.75], np.float32)
Y = np.array([1.0, 0.0, 0.0, 3.0, 0.0, -0.5], np.float32)
M = np.where(np.arange(24) % 3, 0, np.arange(24.0)).reshape(6, 4).astype(np.float32)
OURS, THEIRS = sparse.coo_array(X), scipy.sparse.coo_array(X)


def same(found: Any, want: Any) -> None:
    """Compares values, shapes, and whether they are sparse."""
    assert sparse.issparse(found) == scipy.sparse.issparse(want)
    assert np.shape(found) == np.shape(want) or found.shape == want.shape
    dense = found.todense() if sparse.issparse(found) else found
    theirs = want.toarray() if scipy.sparse.issparse(want) else want
    np.testing.assert_allclose(dense, theirs, rtol=1e-6)


@pytest.mark.parametrize(
    "run",
    [
        lambda m, v: v + m.coo_array(Y),
        lambda m, v: v - m.csr_array(Y),
        lambda m, v: v + Y,
        lambda m, v: Y - v,
        lambda m, v: v.multiply(m.coo_array(Y)),
        lambda m, v: v * Y,
        lambda m, v: 2 * v / 4,
        lambda m, v: abs(-v),
        lambda m, v: v.power(2),
        lambda m, v: v**3,
        lambda m, v: v.sin(),
        lambda m, v: v.maximum(m.coo_array(Y)),
        lambda m, v: v.minimum(0),
        lambda m, v: v > 0,
        lambda m, v: v != m.coo_array(Y),
        lambda m, v: v.astype("int32"),
        lambda m, v: v.T.conj().real,
        lambda m, v: v @ Y,
        lambda m, v: v @ m.coo_array(Y),
        lambda m, v: v @ M,
        lambda m, v: v @ m.csr_array(M),
        lambda m, v: m.csr_array(M.T) @ v,
        lambda m, v: M.T @ v,
        lambda m, v: v.dot(2.0),
        lambda m, v: v.sum(),
        lambda m, v: v.sum(axis=0),
        lambda m, v: v.mean(),
        lambda m, v: v.max(),
        lambda m, v: v.min(axis=-1),
        lambda m, v: v.argmin(),
        lambda m, v: v.count_nonzero(),
        lambda m, v: v.nonzero()[0],
        lambda m, v: v.coords[0],
        lambda m, v: v[3],
        lambda m, v: v.tocsr()[-1],
        lambda m, v: v.tocsr()[1:4],
        lambda m, v: v.tocsr()[::-2],
        lambda m, v: v.tocsr()[[5, 1]],
        lambda m, v: v.tocsr()[X != 0],
        lambda m, v: v[None, :],
        lambda m, v: v[:, None],
        lambda m, v: v.reshape(2, 3),
        lambda m, v: v.reshape((3, -1), order="F"),
        lambda m, v: m.csr_array(M).reshape(24),
        lambda m, v: m.csr_array(M).reshape(-1)[7],
        lambda m, v: m.expand_dims(v, axis=1),
        lambda m, v: m.expand_dims(v, axis=-2),
        lambda m, v: m.coo_array((X[:3], ([4, 0, 4],)), shape=(5,)),
        lambda m, v: m.coo_array((X[:2], ([4, 0],))),
        lambda m, v: m.csr_array((X[:2], [4, 0], [0, 2]), shape=(5,)),
        lambda m, v: m.csr_array((7,)),
    ],
)
def test_vectors_are_those_of_scipy(run: Any) -> None:
    same(run(sparse, OURS), run(scipy.sparse, THEIRS))


def test_scipy_and_back() -> None:
    for format in ("coo", "csr"):
        theirs = THEIRS.asformat(format)
        ours = sparse.from_scipy(theirs)
        assert (ours.format, ours.shape, ours.ndim) == (format, (6,), 1)
        same(ours, theirs)
        assert ours.to_scipy().format == format and ours.to_scipy().shape == (6,)
        same(sparse.csr_array(M.T) @ theirs.tocoo().toarray(), M.T @ X)
        same(ours + theirs, theirs + theirs)
    assert repr(OURS) == "coo_array(f32[6], nnz=3)"


def test_transformations_see_the_values() -> None:
    def run(values: Any) -> Any:
        v = sparse.coo_array((values, ([0, 3],)), shape=(6,))
        return (v @ fnp.asarray(Y)) ** 2 + (v * v).sum()

    values = fnp.array([1.0, 2.0])
    total = 1.0 + 2 * 3
    want = np.array([2 * total * 1 + 2, 2 * total * 3 + 4])
    np.testing.assert_allclose(fxflow.jit(fxflow.grad(run))(values), want)
    rows = fxflow.vmap(run)(fnp.stack([values, 2 * values]))
    np.testing.assert_allclose(rows, [total**2 + 5, 4 * (total**2 + 5)])
    doubled = fxflow.jit(lambda v: 2 * v)(OURS)
    assert isinstance(doubled, sparse.SparseVector)
    slope = fxflow.grad(lambda v: (v * v).sum())(OURS)
    np.testing.assert_allclose(slope.todense(), 2 * X)


def test_what_is_refused() -> None:
    with pytest.raises(ShapeError, match="they must be the same"):
        OURS + sparse.coo_array(Y[:4])
    with pytest.raises(ShapeError, match="different numbers of elements"):
        OURS @ sparse.coo_array(Y[:4])
    with pytest.raises(ShapeError, match="has not as many elements"):
        OURS.reshape(5)
    with pytest.raises(ArgumentError, match="is coo or csr"):
        OURS.asformat("csc")
    with pytest.raises(ArgumentError, match="axis of a sparse array of one axis"):
        OURS.sum(axis=1)
    with pytest.raises(TypeError, match="immutable"):
        OURS[0] = 1.0
    with pytest.raises(IndexError, match="one index"):
        OURS[0, 1]
    with pytest.raises(ArgumentError, match="expand_dims: A must be"):
        sparse.expand_dims(sparse.eye_array(2))
    with pytest.raises(ArgumentError, match="axis must be 0 or 1"):
        sparse.expand_dims(OURS, axis=2)
