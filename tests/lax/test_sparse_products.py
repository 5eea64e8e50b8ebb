"""Products of sparse matrices: what programs depend on, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax.sparse_products import (
    Entries,
    Layout,
    SampledProduct,
    SparseProduct,
    add_at,
    take,
)
from fxflow.sparse import Pattern

PATTERN = Pattern("coo", (3, 4), ([2, 0, 2, 1], [3, 1, 0, 1]), (4,))
VALUES = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
DENSE = np.zeros((3, 4), np.float32)
DENSE[[2, 0, 2, 1], [3, 1, 0, 1]] = VALUES


def product(values: object, x: object) -> fxflow.Array:
    return SparseProduct.bind(values, x, *PATTERN.operands, layout=PATTERN.layout)


def test_transposed_layout_swaps_rows_and_columns() -> None:
    layout = Layout(3, 4, 7, True, False)
    assert layout.transposed == Layout(4, 3, 7, False, True)
    own, other = layout.split([1, 2, 3, 4, 5, 6, 7])
    assert own.order == 4 and other.order is None and other.arrays == (5, 6, 7)
    assert Entries.of([1, 2, 3]).arrays == (1, 2, 3)


def test_vector_and_matrix() -> None:
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_allclose(product(VALUES, x), DENSE @ x)
    np.testing.assert_allclose(product(VALUES, x[:, 0]), DENSE @ x[:, 0])


def test_text_of_a_program_does_not_grow_with_the_entries() -> None:
    texts = []
    for n in (30, 3000):
        row = np.arange(n)
        pattern = Pattern("coo", (n, n), (row[::-1], row), (n,))
        x = fnp.ones(n)
        f = fxflow.grad(
            lambda v, x, p=pattern: SparseProduct.bind(
                v, x, *p.operands, layout=p.layout
            ).sum()
        )
        texts.append(fxflow.jit(f).lower(x, x).as_text())
    assert len(texts[1]) < 1.2 * len(texts[0])


def test_nested_vmap() -> None:
    x = fnp.arange(4.0)
    values = fnp.stack([VALUES * k for k in (1, 2, 3)])
    xs = fnp.stack([x, x + 1])
    outer = fxflow.vmap(lambda v: fxflow.vmap(lambda u: product(v, u))(xs))(values)
    other = fxflow.vmap(lambda u: fxflow.vmap(lambda v: product(v, u))(values))(xs)
    want = np.einsum("b,mn,kn->bkm", [1, 2, 3], DENSE, xs)
    np.testing.assert_allclose(outer, want, rtol=1e-6)
    np.testing.assert_allclose(other, want.swapaxes(0, 1), rtol=1e-6)


def test_operands_of_other_shapes_and_dtypes_are_refused() -> None:
    with pytest.raises(ShapeError, match="3 rows and 4 columns with 4 values"):
        product(VALUES, np.ones((3, 2), np.float32))
    with pytest.raises(DtypeError, match="one dtype"):
        product(VALUES, np.ones(4, np.int32))
    with pytest.raises(ShapeError, match="arrays of entries"):
        SparseProduct.bind(VALUES, VALUES, layout=PATTERN.layout)
    with pytest.raises(ShapeError, match="3 rows and 4 columns"):
        SampledProduct.bind(
            np.ones((3, 2)), np.ones((4, 3)), *PATTERN.operands, layout=PATTERN.layout
        )


def test_entries_are_not_mapped() -> None:
    def f(indptr: fxflow.Array) -> fxflow.Array:
        arrays = (indptr, *PATTERN.operands[1:])
        return SparseProduct.bind(VALUES, fnp.ones(4), *arrays, layout=PATTERN.layout)

    with pytest.raises(ShapeError, match="cannot map the entries"):
        fxflow.vmap(f)(fnp.stack([PATTERN.operands[0]] * 2))


def test_take_and_add_along_an_axis() -> None:
    x = fnp.arange(6.0).reshape(2, 3)
    at = np.array([2, 0], np.int32)
    np.testing.assert_array_equal(take(x, at, 1), np.asarray(x)[:, [2, 0]])
    assert take(x, at[:0], 1).shape == (2, 0)
    added = add_at(x, at, fnp.ones((2, 2)), 1)
    np.testing.assert_array_equal(added, np.asarray(x) + [1, 0, 1])
    assert add_at(x, at[:0], fnp.ones((2, 0)), 1) is x
