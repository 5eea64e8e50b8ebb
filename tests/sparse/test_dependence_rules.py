"""Patterns cover every nonzero, and are exact where operations do not cancel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays import dtypes
from fxflow.errors import NotDifferentiableError
from tests.conformance import cases
from tests.conformance.cases import Case
from tests.conformance.harness import array
from tests.sparse.patterns import mask, nonzero
from tests.sweeps import sampling

RNG = np.random.default_rng(5)
X = RNG.normal(size=12)
M = RNG.normal(size=(3, 4))
IMAGE = RNG.normal(size=(2, 5, 6, 3))
BAND = np.triu(np.tril(RNG.normal(size=(12, 12)), 1), -1)
WEIGHTS = RNG.normal(size=(4, 5))
KERNEL = RNG.normal(size=(3, 2, 3, 4))
GROUPS = RNG.normal(size=(3, 2, 1, 6))
PLACES = np.array([3, 1, 1])


def _conv(x: Any, kernel: Any, **options: Any) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, dimension_numbers=numbers, **options)


EXACT: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "product of an element": (lambda x: fnp.sin(x) * x, X),
    "stencil": (lambda x: x[2:] - 2 * x[1:-1] + x[:-2] ** 2, X),
    "roll": (lambda x: x * fnp.roll(x, 1), X),
    "constant matrix": (lambda x: fnp.asarray(BAND) @ fnp.sin(x), X),
    "constant matrix on the right": (lambda x: x @ fnp.asarray(BAND), X),
    "zero factors": (lambda x: x * fnp.asarray(np.diag(BAND, 1) > 0)[0] * 0.0, X),
    "dense product": (lambda x: x @ fnp.asarray(WEIGHTS), M),
    "product from the left": (lambda x: fnp.asarray(WEIGHTS).T[:, :3] @ x, M),
    "product with itself": (lambda x: x @ x.T, M),
    "einsum": (lambda x: fnp.einsum("ij,ik->jk", x, x), M),
    "batched product": (lambda x: fnp.einsum("bij,bkj->bik", x[0], x[1]), IMAGE),
    "sum": (lambda x: x.sum(1), M),
    "cumsum": (lambda x: fnp.cumsum(x**2, axis=1), M),
    "cumulative product": (fnp.cumprod, X),
    "running sum from the end": (lambda x: lax.cumsum(x, reverse=True), X),
    "take": (lambda x: x[PLACES] ** 2, X),
    "take columns": (lambda x: x[:, PLACES], M),
    "add at": (lambda x: x.at[PLACES].add(x[:3] ** 2), X),
    "set at": (lambda x: x.at[PLACES[:2]].set(x[4:6] ** 2), X),
    "set a slice": (lambda x: x.at[2:5].set(x[:3] ** 2), X),
    "multiply at": (lambda x: x.at[PLACES].multiply(2.0), X),
    "known mask": (lambda x: fnp.where(fnp.arange(12) < 5, x, fnp.flip(x)), X),
    "many cases": (
        lambda x: lax.select_n(
            fnp.arange(12, dtype=np.int32) % 3 + 1, x, x[::-1], x + 1
        ),
        X,
    ),
    "constant for derivatives": (lambda x: lax.stop_gradient(x) * x + fnp.floor(x), X),
    "convolution": (
        lambda x: _conv(
            x,
            fnp.asarray(KERNEL),
            window_strides=(2, 1),
            padding=[(1, 1), (0, 2)],
            lhs_dilation=(2, 1),
            rhs_dilation=(1, 2),
        ),
        IMAGE,
    ),
    "convolution in groups": (
        lambda x: _conv(
            x,
            fnp.asarray(GROUPS),
            window_strides=(1, 1),
            padding="SAME",
            feature_group_count=3,
        ),
        IMAGE,
    ),
    "kernel of a convolution": (
        lambda k: _conv(fnp.asarray(IMAGE), k, window_strides=(1, 2), padding="SAME"),
        KERNEL,
    ),
    "kernel with zeros": (
        lambda x: _conv(
            x,
            fnp.asarray(KERNEL * (KERNEL > 0.5)),
            window_strides=(1, 1),
            padding="VALID",
        ),
        IMAGE,
    ),
    "window sums": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 3), (1, 2), "SAME"),
        M,
    ),
    "vmap": (fxflow.vmap(lambda row: fnp.outer(row, row)), M),
    "norms of rows": (lambda x: x / fnp.linalg.norm(x, axis=1, keepdims=True), M),
    "softmax of columns": (lambda x: fxflow.nn.softmax(x, axis=0), M),
    "reflected edge": (lambda x: fnp.pad(x, 2, mode="reflect"), X),
    "differences": (lambda x: fnp.diff(x, 2) * fnp.gradient(x)[1:-1], X),
    "triangular solve": (
        lambda x: lax.linalg.triangular_solve(
            fnp.asarray(np.tile(np.tri(3), (2, 1, 1))), x
        ),
        RNG.normal(size=(2, 3, 1)) @ np.ones((1, 3)),
    ),
    "gradient": (
        fxflow.grad(
            lambda x: ((1 - x[:-1]) ** 2 + 9 * (x[1:] - x[:-1] ** 2) ** 2).sum()
        ),
        X,
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_pattern_is_where_the_jacobian_is_not_zero(name: str) -> None:
    fun, x = EXACT[name]
    found, expected = mask(fun, x), nonzero(fun, x)
    if name == "triangular solve":  # dense for each matrix
        assert found.sum() == 2 * 81
        assert not (expected & ~found).any()
        return
    np.testing.assert_array_equal(found, expected)


DATA: dict[str, tuple[Callable[..., Any], int]] = {
    "mask": (lambda x: fnp.where(x < 0, x, fnp.flip(x)), 24),
    "index": (lambda x: x[(fnp.abs(x) * 0).astype(int)], 144),
    "index of a slice": (
        lambda x: lax.dynamic_slice(x, ((x[0] * 0).astype(int),), (4,)),
        48,
    ),
    "place of an update": (
        lambda x: lax.dynamic_update_slice(x, x[:2], ((x[0] * 0).astype(int),)),
        12 * 3 - 2,
    ),
    "place of a sum": (lambda x: x.at[(fnp.abs(x) * 0).astype(int)].add(x), 144),
    "order": (fnp.sort, 144),
}


@pytest.mark.parametrize("name", DATA)
def test_pattern_covers_what_depends_on_data(name: str) -> None:
    fun, entries = DATA[name]
    found = mask(fun, X)
    assert found.sum() == entries
    assert not (nonzero(fun, X) & ~found).any()


def test_complex_numbers_have_the_pattern_of_real_ones() -> None:
    fun = fxflow.jacobian(lambda x: x[1:] * x[:-1], holomorphic=True, sparse=True)
    x = fnp.arange(4) + 1j
    dense = fxflow.jacfwd(lambda x: x[1:] * x[:-1], holomorphic=True)(x)
    np.testing.assert_array_equal(fun(x).todense(), dense)


def _sampled() -> list[Case]:
    return sampling.sample(cases.derivative_cases(), 250, "dependence")


@pytest.mark.parametrize("case", _sampled(), ids=lambda c: c.id)
def test_pattern_covers_the_derivatives_of_every_primitive(case: Case) -> None:
    made = cases.problem(case)
    args = [array(a) for a in made.args]
    places = [
        i for i, a in enumerate(args) if dtypes.is_floating(a.dtype) and 0 < a.size < 60
    ]

    def fun(*values: Any) -> list[Any]:
        full = list(args)
        for i, value in zip(places, values, strict=True):
            full[i] = value
        return [o for o in made.function(*full) if dtypes.is_floating(o.dtype)]

    given = [args[i] for i in places]
    if not places or not fxflow.eval_shape(fun, *given):
        return
    every = tuple(range(len(given)))
    try:
        dense = fxflow.jacfwd(fun, every)(*given)
    except NotDifferentiableError:
        dense = fxflow.jacrev(fun, every)(*given)
    patterns = fxflow.sparse.jacobian_pattern(fun, every)(*given)
    for row, found in zip(dense, patterns, strict=True):
        for block, pattern in zip(row, found, strict=True):
            r, c = np.nonzero(np.asarray(block).reshape(pattern.shape))
            keys = set(zip(pattern.coords.row, pattern.coords.col, strict=True))
            assert set(zip(r, c, strict=True)) <= keys
