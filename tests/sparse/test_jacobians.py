"""Sparse Jacobians are the dense ones, at the cost of a few products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.errors import ArgumentError, DtypeError, NotDifferentiableError, ShapeError
from fxflow.sparse import Pattern, SparseArray, csr_array, jacobian_pattern
from fxflow.sparse import jacobians as parts

scipy_sparse = pytest.importorskip("scipy.sparse")

X = fnp.asarray(np.random.default_rng(3).normal(size=20), "f8")


def products(x: Any) -> Any:
    return x[1:] * x[:-1] ** 2


def laplacian(u: Any) -> Any:
    grid = fnp.pad(u.reshape(8, 8), 1)
    near = grid[2:, 1:-1] + grid[:-2, 1:-1] + grid[1:-1, 2:] + grid[1:-1, :-2]
    return (near - 4 * u.reshape(8, 8) + u.reshape(8, 8) ** 3).reshape(-1)


def arrow(x: Any) -> Any:
    return fnp.concatenate([fnp.sum(x**2)[None], x[1:] * x[0]])


def rosenbrock(x: Any) -> Any:
    return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()


FUNCTIONS = {
    "bidiagonal": products,
    "arrow": arrow,
    "one row": lambda x: fnp.sum(x**3)[None],
    "one column": lambda x: fnp.outer(x[:1], fnp.arange(5.0)),
    "scalar": lambda x: fnp.sum(x**2),
    "constant": lambda x: fnp.ones(3),
    "no elements": lambda x: x[:0],
    "identity": lambda x: x,
    "dense": lambda x: fnp.outer(x, x).sum(0),
    "two axes": lambda x: x.reshape(4, 5)[:, ::2] ** 2,
}


def count(fun: Callable[..., Any], x: Any) -> tuple[int, int]:
    """Returns how many forward and reverse products the Jacobian takes."""
    pattern = jacobian_pattern(fun)(x)
    found = parts._Found(
        pattern.coords.row.astype(np.int64), pattern.coords.col.astype(np.int64), True
    )
    plan = parts.planned(found, pattern.shape, True)
    return plan.forward, plan.reverse


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sparse_is_dense(name: str, dtype: str) -> None:
    fun, x = FUNCTIONS[name], X.astype(dtype)
    found = fxflow.jacobian(fun, sparse=True)(x)
    dense = fxflow.jacfwd(fun)(x)
    assert found.dtype == dense.dtype
    assert found.shape == (dense.size // x.size, x.size)
    np.testing.assert_allclose(
        found.todense(),
        dense.reshape(found.shape),
        rtol=1e-5 if dtype == "f4" else 1e-12,
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_within_jit_vmap_and_grad(name: str) -> None:
    fun = FUNCTIONS[name]
    sparse = fxflow.jacobian(fun, sparse=True)
    eager = sparse(X)
    np.testing.assert_allclose(fxflow.jit(sparse)(X).values, eager.values, rtol=1e-6)
    both = fxflow.vmap(sparse)(fnp.stack([X, 2 * X]))
    assert both.values.shape == (2, eager.nnz)
    np.testing.assert_allclose(both.values[0], eager.values, rtol=1e-6)
    slope = fxflow.grad(lambda x: fnp.sum(sparse(x).values ** 2))(X)
    dense = fxflow.grad(lambda x: fnp.sum(fxflow.jacfwd(fun)(x) ** 2))(X)
    np.testing.assert_allclose(slope, dense, rtol=1e-5, atol=1e-6)


def test_products_are_few() -> None:
    assert count(products, X) == (2, 0)
    assert count(FUNCTIONS["one row"], X) == (0, 1)
    assert count(FUNCTIONS["one column"], X) == (1, 0)
    assert sum(count(arrow, X)) == 3
    assert count(FUNCTIONS["constant"], X) == (0, 0)
    assert count(laplacian, fnp.zeros(64))[0] <= 7


def test_colors_never_meet_in_a_row() -> None:
    rng = np.random.default_rng(0)
    dense = rng.random((30, 40)) < 0.1
    rows, columns = np.nonzero(dense)
    colors, number = parts.colors_of(rows, columns, dense.shape)
    for row in dense:
        inside = colors[row]
        assert len(set(inside.tolist())) == len(inside)
    assert (colors[~dense.any(0)] == -1).all()
    assert number == colors.max() + 1


def test_hessian() -> None:
    found = fxflow.hessian(rosenbrock, sparse=True)(X)
    assert found.nnz == 3 * 20 - 2
    np.testing.assert_allclose(
        found.todense(), fxflow.hessian(rosenbrock)(X), rtol=1e-12
    )


def test_hessian_of_a_sum_of_all_pairs_with_one() -> None:
    def fun(x: Any) -> Any:
        return fnp.sum(fnp.sin(x[0] * x))

    found = fxflow.hessian(fun, sparse=True)(X)
    assert found.nnz == 3 * 20 - 2
    np.testing.assert_allclose(found.todense(), fxflow.hessian(fun)(X), rtol=1e-10)


def test_laplacian_of_a_large_grid() -> None:
    side = 60

    def fun(u: Any) -> Any:
        grid = fnp.pad(u.reshape(side, side), 1)
        return (grid[2:, 1:-1] + grid[1:-1, :-2] - grid[1:-1, 1:-1] ** 2).reshape(-1)

    u = fnp.linspace(0, 1, side * side)
    found = fxflow.jit(fxflow.jacobian(fun, sparse=True))(u)
    np.testing.assert_allclose(found @ u, fxflow.jvp(fun, (u,), (u,))[1], rtol=1e-5)
    assert found.nnz == 2 * side * (side - 1) + side * side


def test_trees_several_arguments_and_aux() -> None:
    def fun(p: Any, q: Any) -> Any:
        return {"a": p["u"] * q, "b": fnp.outer(p["u"], p["w"])}, fnp.sum(q)

    args = {"u": X[:3], "w": X[:2]}, X[5:8]
    found, aux = fxflow.jacobian(fun, (0, 1), has_aux=True, sparse=True)(*args)
    dense, _ = fxflow.jacfwd(fun, (0, 1), has_aux=True)(*args)
    np.testing.assert_allclose(aux, fnp.sum(X[5:8]))
    for name in ("a", "b"):
        p, q = found[name]
        dp, dq = dense[name]
        for part, full in ((p["u"], dp["u"]), (p["w"], dp["w"]), (q, dq)):
            assert isinstance(part, SparseArray)
            np.testing.assert_allclose(part.todense(), full.reshape(part.shape))
    assert found["a"][0]["w"].nnz == 0
    only = fxflow.jacobian(fun, 1, has_aux=True, sparse=True)(*args)[0]
    assert only["a"].nnz == 3


def test_function_with_a_reverse_rule_only() -> None:
    @fxflow.custom_vjp
    def sine(x: Any) -> Any:
        return fnp.sin(x)

    sine.defvjp(lambda x: (fnp.sin(x), fnp.cos(x)), lambda cos, ct: (ct * cos,))

    def fun(x: Any) -> Any:
        return sine(x)[1:] * x[:-1]

    found = fxflow.jacobian(fun, sparse=True)(X)
    assert found.nnz == 38
    np.testing.assert_allclose(found.todense(), fxflow.jacrev(fun)(X), rtol=1e-12)


def test_loop_without_a_reverse_mode() -> None:
    def fun(x: Any) -> Any:
        end = lax.while_loop(lambda y: fnp.sum(y) < 1e3, lambda y: y * 1.5 + 1, x)
        return fnp.concatenate([fnp.sum(end)[None], end])

    found = fxflow.jacobian(fun, sparse=True)(X)
    np.testing.assert_allclose(found.todense(), fxflow.jacfwd(fun)(X), rtol=1e-12)


@pytest.mark.parametrize("kind", ["Pattern", "sparse array", "scipy", "wider"])
def test_given_pattern(kind: str) -> None:
    true = np.eye(19, 20) + np.eye(19, 20, 1)
    given: Any = {
        "Pattern": jacobian_pattern(products)(X),
        "sparse array": csr_array(true),
        "scipy": scipy_sparse.csr_array(true),
        "wider": Pattern.of_coords(*np.nonzero(true + np.eye(19, 20, 5)), (19, 20)),
    }[kind]
    found = fxflow.jacobian(products, sparse=True, pattern=given)(X)
    np.testing.assert_allclose(found.todense(), fxflow.jacfwd(products)(X), rtol=1e-12)


def test_captured_values_that_are_traced() -> None:
    def slope(scale: Any) -> Any:
        found = fxflow.jacobian(lambda x: scale * x[1:] * x[:-1], sparse=True)(X)
        return fnp.sum(found.values)

    np.testing.assert_allclose(fxflow.grad(slope)(2.0), slope(1.0), rtol=1e-6)
    both = fxflow.vmap(slope)(fnp.array([1.0, 3.0]))
    np.testing.assert_allclose(both, [slope(1.0), slope(3.0)], rtol=1e-6)


def test_dense_takes_the_cheaper_way() -> None:
    for fun in (products, rosenbrock):
        np.testing.assert_array_equal(fxflow.jacobian(fun)(X), fxflow.jacrev(fun)(X))
    once: Any = fxflow.jit(fxflow.jacobian(lambda x: fnp.sum(x**2)))
    assert "20,20" not in once.lower(X).as_text().replace("20x20", "20,20")


def test_values_can_be_solved_with() -> None:
    def residual(u: Any) -> Any:
        return laplacian(u) - 0.01

    u = fnp.zeros(64)
    step = fxflow.jacobian(residual, sparse=True)(u)
    dense = fnp.linalg.solve(step.todense(), residual(u))
    new = u - dense
    assert fnp.abs(residual(new)).max() < 1e-3


def test_bad_input() -> None:
    with pytest.raises(ArgumentError, match="sparse=True"):
        fxflow.jacobian(products, pattern=jacobian_pattern(products)(X))
    with pytest.raises(ArgumentError, match="sparse=True"):
        fxflow.hessian(rosenbrock, pattern=jacobian_pattern(products)(X))
    with pytest.raises(ShapeError, match=r"\[19,20\]"):
        wrong = Pattern.of_coords([0], [0], (3, 3))
        fxflow.jacobian(products, sparse=True, pattern=wrong)(X)
    with pytest.raises(ArgumentError, match="2 in all"):
        fxflow.jacobian(lambda x: (x, x), sparse=True, pattern=csr_array(np.eye(20)))(X)
    with pytest.raises(ArgumentError, match="Patterns, got 3"):
        fxflow.jacobian(products, sparse=True, pattern=3)(X)
    with pytest.raises(DtypeError, match="i32"):
        fxflow.jacobian(lambda x: x.astype("i4"), sparse=True)(X)
    with pytest.raises(DtypeError, match="no derivative"):
        fxflow.jacobian(products, sparse=True)(fnp.arange(3))
    with pytest.raises(ArgumentError, match="function"):
        fxflow.jacobian(3)  # type: ignore[arg-type]


def test_neither_mode_has_a_derivative() -> None:
    def fun(x: Any) -> Any:
        shape = fxflow.ShapeDtypeStruct(x.shape, x.dtype)
        return fxflow.pure_callback(np.sin, shape, x)

    with pytest.raises(NotDifferentiableError, match="callback"):
        fxflow.jacobian(fun, sparse=True)(X)
