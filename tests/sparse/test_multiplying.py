"""Products of sparse arrays: entries once for a pair, many products of one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ShapeError
from fxflow.sparse.multiplying import ProductPlan, product_plan, product_values


def pair(m: int, k: int, n: int) -> tuple[sparse.SparseArray, sparse.SparseArray]:
    a = sparse.random_array((m, k), density=0.3, format="csr", rng=1)
    return a, sparse.random_array((k, n), density=0.3, format="csr", rng=2)


def test_entries_are_those_of_scipy() -> None:
    a, b = pair(30, 20, 40)
    plan = product_plan(a.pattern, b.pattern)
    assert isinstance(plan, ProductPlan)
    assert product_plan(a.pattern, b.pattern) is plan
    want = a.to_scipy() @ b.to_scipy()
    want.sort_indices()
    assert plan.pattern.arrays["indices"].tolist() == want.indices.tolist()
    got = product_values(a.pattern, b.pattern, a.values, b.values, plan)
    np.testing.assert_allclose(got, want.data, rtol=1e-5)


def test_gradients_by_both_values() -> None:
    a, b = pair(6, 5, 4)

    def loss(a: sparse.SparseArray, b: sparse.SparseArray) -> fxflow.Array:
        return ((a @ b) ** 2).sum()

    got = fxflow.jit(fxflow.grad(loss, argnums=(0, 1)))(a, b)
    x, y = a.todense(), b.todense()
    by_x, by_y = fxflow.grad(lambda x, y: fnp.sum((x @ y) ** 2), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(got[0].todense(), np.where(x != 0, by_x, 0), rtol=1e-4)
    np.testing.assert_allclose(got[1].todense(), np.where(y != 0, by_y, 0), rtol=1e-4)


def test_a_product_without_entries() -> None:
    a = sparse.csr_array(([1.0], [0], [0, 1, 1]), shape=(2, 3))
    b = sparse.csr_array(([1.0], [0], [0, 0, 1, 1]), shape=(3, 2))
    assert (a @ b).nnz == 0 and (a @ b).shape == (2, 2)
    with pytest.raises(ShapeError, match=r"\[2, 3\] and \[2, 3\]"):
        product_plan(a.pattern, a.pattern)


def test_many_products_of_one_entry() -> None:
    # A dense result of 256 x 1024 needs memory for its entries, not for all pairs.
    a = sparse.random_array((256, 1024), density=0.01, rng=3)
    want = (a.to_scipy() @ a.to_scipy().T).toarray()
    np.testing.assert_allclose((a @ a.T).todense(), want, rtol=1e-4, atol=1e-6)
    assert scipy.sparse.issparse(a.to_scipy())
