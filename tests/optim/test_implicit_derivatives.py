"""Implicit derivatives: in both modes, of second order, vectorized; what is refused."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, optim
from fxflow.errors import ArgumentError, ShapeError
from fxflow.optim.implicit_derivatives import dense_solve


def newton(a: Any) -> Any:
    """The square root, by a loop that has no reverse mode, and a linear part."""
    root = lax.while_loop(
        lambda c: c[1] < 30, lambda c: ((c[0] + a / c[0]) / 2, c[1] + 1), (a, 0)
    )[0]
    return {"root": root, "twice": fnp.stack([2 * a, 2 * a])}


def conditions(x: Any, a: Any) -> Any:
    return {"root": x["root"] ** 2 - a, "twice": x["twice"] - 2 * a}


def test_derivatives_in_both_modes_and_of_second_order() -> None:
    root = lambda a: optim.implicit(newton, conditions)(a)["root"]
    assert float(root(4.0)) == 2.0
    assert float(fxflow.grad(root)(4.0)) == 0.25
    assert float(fxflow.jvp(root, (4.0,), (1.0,))[1]) == 0.25
    for second in (fxflow.hessian(root), fxflow.grad(fxflow.grad(root))):
        assert float(second(4.0)) == pytest.approx(-1 / 32)
    many = fxflow.jit(fxflow.vmap(fxflow.grad(root)))(np.array([1.0, 4.0, 9.0], "f"))
    np.testing.assert_allclose(many, [1 / 2, 1 / 4, 1 / 6], rtol=1e-5)


def test_derivatives_by_what_the_conditions_close_over() -> None:
    def root(b: Any) -> Any:
        solver = lambda a: newton(a * b)["root"]
        return optim.implicit(solver, lambda x, a: x**2 - a * b)(2.0)

    assert float(fxflow.grad(root)(2.0)) == pytest.approx(2 / 4)


def test_other_results_and_other_linear_solvers() -> None:
    seen = []

    def solve(linear: Any, y: Any) -> Any:
        seen.append(y)
        return dense_solve(linear, y)

    solver = lambda a: (fnp.sqrt(a), {"steps": 3})
    run = optim.implicit(solver, lambda x, a: x * x - a, solve=solve, has_aux=True)
    found, rest = run(fnp.array([4.0, 9.0]))
    assert found.tolist() == [2, 3] and rest == {"steps": 3}
    slope = fxflow.grad(lambda a: run(a)[0].sum())(fnp.array([4.0, 9.0]))
    np.testing.assert_allclose(slope, [1 / 4, 1 / 6], rtol=1e-6)
    assert seen


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ArgumentError, match="solver must be a function"):
        optim.implicit(3, conditions)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="solve must be a function"):
        optim.implicit(newton, conditions, solve=3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="return a pair"):
        optim.implicit(newton, conditions, has_aux=True)(4.0)
    with pytest.raises(ShapeError, match=r"f32\[2\]"):
        optim.implicit(fnp.sqrt, lambda x, a: fnp.stack([x, x]))(4.0)
    assert dense_solve(lambda x: x, fnp.zeros(0)).size == 0
