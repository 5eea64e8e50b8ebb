"""Comparisons and logic against NumPy."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from tests.numpy.oracle import check, same

X = np.array([1.0, np.nan, -0.0, 3.0, np.inf], np.float32)
Y = np.array([2.0, np.nan, 0.0, 3.0, -np.inf], np.float32)
I = np.array([-8, 0, 3, 12], np.int32)  # noqa: E741
J = np.array([3, 1, 3, 2], np.int32)
Z = np.array([1 + 2j, 1 - 1j, 0, 2], np.complex64)
COMPARE = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


@pytest.mark.parametrize("name", COMPARE)
def test_comparisons(name: str) -> None:
    check(name, X, Y)
    check(name, I, J, compiled=False)
    check(name, Z, Z[::-1].copy())
    assert getattr(fnp, name)(fnp.ones(2), 1).dtype == np.bool_


@pytest.mark.parametrize("name", ("logical_and", "logical_or", "logical_xor"))
def test_logical_functions_agree_with_numpy(name: str) -> None:
    check(name, X, I[:1])
    check(name, X > 1, Y > 1)


def test_negation() -> None:
    check("logical_not", X)
    check("invert", I)
    check("invert", X > 1)


def test_operators_of_bools() -> None:
    x = fnp.asarray(X)
    mask = (x > 0) & (x < 5) | ~(x == x)
    assert same((X > 0) & (X < 5) | ~(X == X), mask)


@pytest.mark.parametrize("jitted", [False, True])
def test_keys_broadcast(jitted: bool) -> None:
    run = fxflow.jit if jitted else (lambda f: f)
    keys = fxflow.random.split(fxflow.random.key(0), 3)
    assert run(lambda k: k[1] == k)(keys).tolist() == [False, True, False]
    assert run(lambda k: k != k[1])(keys).tolist() == [True, False, True]
    assert (
        run(lambda k: k[:, None] == k)(keys).tolist() == np.eye(3, dtype=bool).tolist()
    )
    for function in (fnp.isclose, fnp.allclose, fnp.array_equal, fnp.array_equiv):
        assert run(function)(keys, keys).all()
    assert not run(fnp.array_equal)(keys, keys[::-1])
    assert not run(fnp.allclose)(keys, keys[0])
