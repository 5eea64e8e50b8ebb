"""`custom_linear_solve` and `custom_root`."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import jit, lax, vmap
from fxflow.errors import (
    ArgumentError,
    NotDifferentiableError,
    ShapeError,
    TreeError,
)

A = np.array([[4.0, 1.0, 0.5], [2.0, 5.0, 1.0], [0.0, 1.0, 3.0]], np.float32)
B = np.array([1.0, 2.0, 3.0], np.float32)


def dot(a, x):
    return lax.dot_general(a, x, (((1,), (0,)), ((), ())))


def jacobi(diagonal):
    """Solves by iteration, in a loop that reverse mode could not go through."""

    def solve(matvec, b):
        def step(carry):
            i, x = carry
            residual = lax.sub(b, matvec(x))
            return lax.add(i, 1), lax.add(x, lax.div(residual, diagonal))

        start = (0, lax.full_like(b, 0.0))
        return lax.while_loop(lambda c: lax.lt(c[0], 60), step, start)[1]

    return solve


def solution(a, b):
    solve = jacobi(np.diag(A).copy())
    return lax.custom_linear_solve(lambda x: dot(a, x), b, solve, solve)


def test_value_and_gradient():
    np.testing.assert_allclose(solution(A, B), np.linalg.solve(A, B), rtol=1e-5)
    loss = lambda a, b: lax.reduce_sum(lax.sin(solution(a, b)), (0,))
    x = np.linalg.solve(A, B)
    ct = np.linalg.solve(A.T, np.cos(x))
    for gradient in (fxflow.grad(loss, (0, 1)), jit(fxflow.grad(loss, (0, 1)))):
        by_a, by_b = gradient(A, B)
        np.testing.assert_allclose(by_b, ct, rtol=1e-4)
        np.testing.assert_allclose(by_a, -np.outer(ct, x), rtol=1e-4)
    many = vmap(fxflow.grad(loss), (0, None))(np.stack([A, A]), B)
    np.testing.assert_allclose(many[1], -np.outer(ct, x), rtol=1e-4)
    _, tangent = fxflow.jvp(lambda b: solution(A, b), (B,), (B,))
    np.testing.assert_allclose(tangent, x, rtol=1e-4)


def test_reverse_needs_the_transposed_solver():
    solve = lambda b: lax.custom_linear_solve(
        lambda x: lax.mul(x, 2.0), b, lambda m, b: lax.div(b, 2.0)
    )
    assert float(fxflow.jvp(solve, (1.0,), (1.0,))[1]) == 0.5
    with pytest.raises(NotDifferentiableError, match="needs transpose_solve"):
        fxflow.grad(solve)(1.0)


def test_symmetric_with_its_own_transposed_solver():
    combine_pairs = lambda m, b: lax.div(b, m(1.0))
    solve = lambda b: lax.custom_linear_solve(
        lambda x: lax.mul(x, 2.0), b, combine_pairs, combine_pairs, symmetric=True
    )
    assert float(fxflow.grad(solve)(1.0)) == 0.5


def newton(f, x):
    step = lambda i, x: lax.sub(x, lax.div(f(x), lax.mul(x, 2.0)))
    return lax.fori_loop(0, 12, step, x)


def square_root(a):
    return lax.custom_root(
        lambda x: lax.sub(lax.mul(x, x), a),
        1.0,
        newton,
        lambda g, y: lax.div(y, g(1.0)),
    )


def test_root():
    assert float(square_root(4.0)) == 2.0
    for gradient in (fxflow.grad(square_root), jit(fxflow.grad(square_root))):
        np.testing.assert_allclose(float(gradient(4.0)), 0.25, rtol=1e-6)
    np.testing.assert_allclose(
        float(fxflow.grad(fxflow.grad(square_root))(4.0)), -1 / 32, rtol=1e-5
    )
    xs = np.array([1.0, 4.0], np.float32)
    np.testing.assert_allclose(vmap(fxflow.grad(square_root))(xs), [0.5, 0.25])


def test_root_whose_linear_solver_uses_what_is_differentiated():
    def root(a):
        return lax.custom_root(
            lambda x: lax.sub(lax.mul(x, x), a),
            1.0,
            lambda f, x: lax.sqrt(a),
            lambda g, y: lax.div(y, lax.mul(2.0, lax.sqrt(a))),
        )

    xs = np.array([1.0, 4.0], np.float32)
    for one in (root, jit(root), fxflow.checkpoint(root)):
        assert float(fxflow.jvp(one, (4.0,), (1.0,))[1]) == 0.25
        assert float(fxflow.grad(one)(4.0)) == 0.25
        assert float(jit(fxflow.grad(one))(4.0)) == 0.25
        assert float(fxflow.grad(fxflow.grad(one))(4.0)) == -1 / 32
        np.testing.assert_allclose(vmap(fxflow.grad(one))(xs), [0.5, 0.25])
        np.testing.assert_allclose(fxflow.jacrev(vmap(one))(xs), np.diag([0.5, 0.25]))


def test_transposed_root_whose_linear_solver_uses_what_is_differentiated():
    matrix = np.array([[2.0, 1.0], [0.0, 4.0]], np.float32)

    def root(a):
        def solve(g, y):
            # By elimination on the matrix of whatever map is given.
            (p, q), (r, s) = fxflow.jacfwd(g)(y)
            det = lax.mul(lax.sub(lax.mul(p, s), lax.mul(q, r)), lax.div(a, a))
            x0 = lax.div(lax.sub(lax.mul(s, y[0]), lax.mul(q, y[1])), det)
            x1 = lax.div(lax.sub(lax.mul(p, y[1]), lax.mul(r, y[0])), det)
            return fxflow.numpy.stack([x0, x1])

        b = lax.mul(a, np.array([1.0, 2.0], np.float32))
        return lax.custom_root(
            lambda x: lax.sub(dot(matrix, x), b),
            np.zeros(2, np.float32),
            lambda f, x: np.linalg.solve(matrix, [1.0, 2.0]).astype(np.float32) * a,
            solve,
        )

    expected = np.linalg.solve(matrix, [1.0, 2.0])
    np.testing.assert_allclose(fxflow.jacfwd(root)(3.0), expected, rtol=1e-6)
    np.testing.assert_allclose(fxflow.jacrev(root)(3.0), expected, rtol=1e-6)


def test_root_with_aux():
    def run(a):
        return lax.custom_root(
            lambda x: lax.sub(x, a),
            0.0,
            lambda f, x: (lax.sub(x, f(x)), {"steps": 1}),
            lambda g, y: y,
            has_aux=True,
        )

    root, aux = run(3.0)
    assert (float(root), int(aux["steps"])) == (3.0, 1)
    assert float(fxflow.grad(lambda a: run(a)[0])(3.0)) == 1.0


def test_invalid_functions_and_their_results_are_refused():
    solve = lambda m, b: b
    with pytest.raises(ArgumentError, match="matvec must be a function"):
        lax.custom_linear_solve(1, B, solve)
    with pytest.raises(ShapeError, match=r"matvec must return the type of b, f32\[3\]"):
        lax.custom_linear_solve(lambda x: lax.reduce_sum(x, (0,)), B, solve)
    with pytest.raises(TreeError, match="solve must return the structure of b"):
        lax.custom_linear_solve(lambda x: x, B, lambda m, b: (b,))
    with pytest.raises(ArgumentError, match=r"solve to return a pair \(x, aux\)"):
        lax.custom_linear_solve(lambda x: x, B, solve, has_aux=True)
    with pytest.raises(ShapeError, match="custom_root: f must return the type"):
        lax.custom_root(lambda x: lax.broadcast(x, (2,)), 1.0, newton, solve)


def test_derivative_of_a_symmetric_solve_is_that_of_what_is_computed():
    """Also in directions in which the matrix does not stay symmetric."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(3, 3))
    a, da = a + a.T + 5 * np.eye(3), rng.normal(size=(3, 3))
    b, ct = rng.normal(size=3), rng.normal(size=3)

    def solve(a, b):
        fixed = lax.stop_gradient(a)
        return lax.custom_linear_solve(
            lambda x: fnp.matmul(a, x),
            b,
            lambda _, b: fnp.linalg.solve(fixed, b),
            symmetric=True,
        )

    def pulled(a):
        return fxflow.vjp(solve, a, b)[1](ct)

    with fxflow.config.override(x64=True):
        for run in (pulled, jit(pulled)):
            slopes = fxflow.jvp(run, (a,), (da,))[1]
            above, below = run(a + 1e-6 * da), run(a - 1e-6 * da)
            for slope, p, m in zip(slopes, above, below, strict=True):
                np.testing.assert_allclose(slope, (p - m) / 2e-6, 1e-7, 1e-8)


def test_root_of_a_pytree_within_loops_and_of_several_orders():
    def newton(f, x):
        def step(_, x):
            out = f(x)
            a = x["a"] - out["a"] / (2 * x["a"])
            return {"a": a, "b": x["b"] - out["b"] / x["a"]}

        return lax.fori_loop(0, 40, step, x)

    def solved(p, q):
        def f(x):
            return {"a": x["a"] ** 2 - p, "b": x["b"] * x["a"] - q}

        def tangent(g, y):
            one = fnp.ones_like(y["a"])
            zero = fnp.zeros_like(one)
            first, second = g({"a": one, "b": zero}), g({"a": zero, "b": one})
            det = first["a"] * second["b"] - first["b"] * second["a"]
            a = (y["a"] * second["b"] - y["b"] * second["a"]) / det
            return {"a": a, "b": (first["a"] * y["b"] - first["b"] * y["a"]) / det}

        start = {"a": fnp.ones_like(p), "b": fnp.ones_like(p)}
        return lax.custom_root(f, start, newton, tangent)["b"]  # q / √p

    p, q = 2.0, 3.0
    with fxflow.config.override(x64=True):
        second = fxflow.hessian(solved, (0, 1))(p, q)
        exact = [[0.75 * q * p**-2.5, -0.5 * p**-1.5], [-0.5 * p**-1.5, 0]]
        np.testing.assert_allclose(second, exact, 1e-9, 1e-12)
        many = fxflow.jit(fxflow.vmap(fxflow.grad(solved), (0, None)))(
            np.array([p, 5.0]), q
        )
        np.testing.assert_allclose(many, -q / 2 * np.array([p, 5.0]) ** -1.5, 1e-9)

        def looped(p):
            return lax.while_loop(
                lambda x: x > 1.1, lambda x: solved(p, x), q, max_steps=8
            )

        np.testing.assert_allclose(fxflow.grad(looped)(3.0), -q / 3.0**2, 1e-9)
