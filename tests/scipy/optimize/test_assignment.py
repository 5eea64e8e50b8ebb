"""Assignments by SciPy's name; derivatives of their cost."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.optimize import linear_sum_assignment, quadratic_assignment

COSTS = np.random.default_rng(0).normal(size=(4, 5)).astype("f")


def test_assignments_match_scipy() -> None:
    for costs in (COSTS, COSTS.T, (COSTS * 10).astype("int32"), COSTS > 0):
        for maximize in (False, True):
            i, j = linear_sum_assignment(costs, maximize=maximize)
            rows, columns = scipy.optimize.linear_sum_assignment(costs, maximize)
            assert i.tolist() == rows.tolist()
            best = float(costs[rows, columns].sum())
            assert abs(float(np.asarray(costs)[i, j].sum()) - best) < 1e-5


def test_the_cost_has_a_derivative() -> None:
    def cost(c: fxflow.Array) -> fxflow.Array:
        return c[linear_sum_assignment(c)].sum()

    slope = fxflow.grad(cost)(fnp.asarray(COSTS))
    i, j = scipy.optimize.linear_sum_assignment(COSTS)
    want = np.zeros_like(COSTS)
    want[i, j] = 1
    np.testing.assert_array_equal(slope, want)


@pytest.mark.parametrize("maximize", [False, True])
def test_quadratic_assignments_are_those_of_scipy(maximize: bool) -> None:
    rng = np.random.default_rng(4)
    run = fxflow.jit(lambda a, b: quadratic_assignment(a, b, maximize=maximize))
    ours = theirs = 0.0
    for _ in range(6):
        a, b = (rng.integers(0, 9, (6, 6)).astype(float) for _ in range(2))
        with fxflow.config.override(x64=True):
            got = run(a, b)
        options = {"maximize": maximize, "rng": np.random.default_rng(0)}
        want = scipy.optimize.quadratic_assignment(a, b, options=options)
        assert sorted(got.col_ind.tolist()) == list(range(6))
        p = np.asarray(got.col_ind)
        assert float(got.fun) == np.sum(a * b[p][:, p])
        ours, theirs = ours + float(got.fun), theirs + want.fun
    # Equal costs of an assignment lead to different, equally good searches.
    assert ours > 0.95 * theirs if maximize else ours < 1.05 * theirs


def test_quadratic_assignments_from_other_matrices() -> None:
    rng = np.random.default_rng(5)
    a = rng.normal(size=(5, 5)).astype("f")
    order = rng.permutation(5)
    b = a[order][:, order]
    key = fxflow.random.key(0)
    drawn = quadratic_assignment(a, b, P0="randomized", key=key, maximize=True)
    known = quadratic_assignment(a, b, P0=np.eye(5)[np.argsort(order)], maximize=True)
    np.testing.assert_allclose(known.fun, np.sum(a * a), 1e-5)
    assert drawn.fun <= known.fun + 1e-4
    slope = fxflow.grad(lambda a: quadratic_assignment(a, b, maximize=True).fun)(a)
    assert slope.shape == (5, 5) and bool(fnp.any(slope != 0))
    with pytest.raises(ShapeError, match="square matrices of one size"):
        quadratic_assignment(a, b[:4])
    with pytest.raises(ArgumentError, match="P0 must be"):
        quadratic_assignment(a, b, P0="randomized")


@pytest.mark.parametrize("maximize", [False, True])
def test_exchanges_that_no_other_improves(maximize: bool) -> None:
    rng = np.random.default_rng(11)
    a, b = rng.normal(size=(2, 7, 7))
    match, guess = np.array([[2, 5], [0, 1]]), np.array([[6, 6], [1, 0]])

    @fxflow.jit
    def found(a: Any, b: Any) -> Any:
        return quadratic_assignment(
            a, b, "2opt", maximize=maximize, partial_match=match, partial_guess=guess
        )

    with fxflow.config.override(x64=True):
        got = found(a, b)
    p = np.asarray(got.col_ind)
    assert sorted(p) == list(range(7)) and p[2] == 5 and p[0] == 1 and got.nit > 0
    np.testing.assert_allclose(got.fun, np.sum(a * b[p][:, p]), 1e-12)
    for i, j in itertools.combinations([1, 3, 4, 5, 6], 2):
        q = p.copy()
        q[[i, j]] = p[[j, i]]
        other = np.sum(a * b[q][:, q])
        assert other <= got.fun + 1e-9 if maximize else other >= got.fun - 1e-9


def test_exchanges_end_where_scipy_does_from_an_optimum() -> None:
    rng = np.random.default_rng(3)
    a = rng.normal(size=(6, 6))
    order = rng.permutation(6)
    guess = np.stack([np.argsort(order), np.arange(6)], 1)[:, ::-1]
    b = a[order][:, order]
    options = {"partial_guess": guess, "maximize": True}
    want = scipy.optimize.quadratic_assignment(a, b, "2opt", options=options)
    with fxflow.config.override(x64=True):
        got = quadratic_assignment(a, b, "2opt", partial_guess=guess, maximize=True)
        few = quadratic_assignment(a, b, "2opt", maximize=True, maxiter=1)
        drawn = quadratic_assignment(a, b, "2opt", key=fxflow.random.key(1))
    np.testing.assert_array_equal(got.col_ind, want.col_ind)
    assert got.nit == 0 and few.nit == 1 and drawn.fun < got.fun
    assert quadratic_assignment(a[:1, :1], b[:1, :1], "2opt").col_ind.tolist() == [0]


def test_given_pairs_of_steps() -> None:
    rng = np.random.default_rng(8)
    a = rng.normal(size=(6, 6))
    order = rng.permutation(6)
    match = np.stack([order[:3], np.arange(3)], 1)
    b = a[order][:, order]
    with fxflow.config.override(x64=True):
        got = quadratic_assignment(a, b, partial_match=match, maximize=True)
        options = {"partial_match": match, "maximize": True}
        want = scipy.optimize.quadratic_assignment(a, b, options=options)
        whole = np.stack([order, np.arange(6)], 1)
        known = quadratic_assignment(a, b, partial_match=whole)
    np.testing.assert_array_equal(got.col_ind, want.col_ind)
    np.testing.assert_array_equal(known.col_ind, np.argsort(order))
    with pytest.raises(ArgumentError, match="partial_match must be from 0 to 5"):
        quadratic_assignment(a, b, partial_match=[[0, 6]])
    with pytest.raises(ArgumentError, match="partial_guess must be distinct"):
        quadratic_assignment(a, b, "2opt", partial_guess=[[0, 1], [2, 1]])
    with pytest.raises(ShapeError, match=r"partial_match must be int\[m, 2\]"):
        quadratic_assignment(a, b, partial_match=[[0.5, 1.0]])
    with pytest.raises(ArgumentError, match='method must be "faq" or "2opt"'):
        quadratic_assignment(a, b, "3opt")
    with pytest.raises(ArgumentError, match="partial_guess is of method"):
        quadratic_assignment(a, b, partial_guess=match)
    with pytest.raises(ArgumentError, match="P0 is of method"):
        quadratic_assignment(a, b, "2opt", P0=np.eye(6))
