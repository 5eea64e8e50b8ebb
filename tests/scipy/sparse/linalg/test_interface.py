"""Linear operators: what follows from a product with a vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.sparse.linalg.interface import (
    LinearOperator,
    aslinearoperator,
    function_of,
    matrix_of,
    without_derivative,
)

DENSE = np.array([[1.0, 2.0, 0.0], [0.0, 3.0j, 4.0]], np.complex64)


def operators() -> list[LinearOperator]:
    plain = LinearOperator((2, 3), lambda x: fnp.asarray(DENSE) @ x, dtype=DENSE.dtype)
    others = (DENSE, sparse.csr_array(DENSE), scipy.sparse.csr_array(DENSE))
    return [plain, *map(aslinearoperator, others)]


@pytest.mark.parametrize(
    "op", operators(), ids=["function", "dense", "sparse", "scipy"]
)
def test_products(op: LinearOperator) -> None:
    x = np.array([1.0, 2.0j, 3.0], np.complex64)
    y = np.array([1.0j, 2.0], np.complex64)
    np.testing.assert_allclose(op.matvec(x), DENSE @ x)
    np.testing.assert_allclose(op.matvec(x[:, None]), DENSE @ x[:, None])
    np.testing.assert_allclose(op.rmatvec(y), DENSE.conj().T @ y)
    np.testing.assert_allclose(op.H @ y, DENSE.conj().T @ y)
    np.testing.assert_allclose(op.T @ y, DENSE.T @ y)
    np.testing.assert_allclose(op.T.H @ x, DENSE.conj() @ x)
    wide = np.stack([x, 2 * x], 1)
    np.testing.assert_allclose(op @ wide, DENSE @ wide)
    np.testing.assert_allclose(op.rmatmat(wide[:2]), DENSE.conj().T @ wide[:2])
    np.testing.assert_allclose((2j * op).H @ y, (2j * DENSE).conj().T @ y)
    np.testing.assert_allclose((op + op - 3 * op) @ x, -DENSE @ x)
    np.testing.assert_allclose((op.H @ op)(x), DENSE.conj().T @ DENSE @ x)
    assert op.shape == (2, 3) and "[2, 3]" in repr(op)


def test_an_operator_is_differentiated_as_a_function() -> None:
    def f(a: fxflow.Array) -> fxflow.Array:
        return LinearOperator((2, 2), lambda x: a * x).rmatvec(fnp.ones(2)).sum()

    assert fxflow.grad(f)(fnp.array([1.0, 2.0])).tolist() == [1, 1]


def test_what_is_refused() -> None:
    op = aslinearoperator(DENSE)
    with pytest.raises(ShapeError, match="does not fit"):
        op.matvec(np.ones(2))
    with pytest.raises(ShapeError, match="times"):
        op.dot(op)
    with pytest.raises(ShapeError, match="plus"):
        op + op.T
    with pytest.raises(ArgumentError, match=r"use \*"):
        op @ 2
    with pytest.raises(ArgumentError, match="expected a matrix or an operator"):
        aslinearoperator(np.ones(3))
    with pytest.raises(ArgumentError, match="must be a function"):
        LinearOperator((2, 2), 3)
    with pytest.raises(ShapeError, match="two numbers"):
        LinearOperator((2,), lambda x: x)
    with pytest.raises(ShapeError, match="A must be square"):
        function_of("cg", "A", op)
    with pytest.raises(ShapeError, match="A must be square, got csr_array"):
        matrix_of("cg", "A", sparse.csr_array(DENSE))
    with pytest.raises(ArgumentError, match="must be a matrix or a function"):
        matrix_of("cg", "A", "a")


def test_captured_values_are_constants() -> None:
    def f(a: Any) -> Any:
        return without_derivative(lambda x: a * x, 1.0)(3.0) + a

    assert float(fxflow.grad(f)(2.0)) == 1
