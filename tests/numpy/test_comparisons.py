"""Comparisons, logic and bits against NumPy."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import DtypeError
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
def test_logic(name: str) -> None:
    check(name, X, I[:1])
    check(name, X > 1, Y > 1)


def test_negation() -> None:
    check("logical_not", X)
    check("invert", I)
    check("invert", X > 1)


@pytest.mark.parametrize("name", ("bitwise_and", "bitwise_or", "bitwise_xor"))
def test_bits(name: str) -> None:
    check(name, I, J)
    check(name, I > 0, J > 2, compiled=False)
    check(name, I.astype(np.uint8), J.astype(np.uint8), compiled=False)


def test_shifts() -> None:
    check("left_shift", I, J)
    check("right_shift", I, J)
    check("right_shift", I.astype(np.uint8), J.astype(np.uint8))
    assert (fnp.asarray([1, -1]) << 40).tolist() == [0, 0]
    assert (fnp.asarray([1, -1]) >> 40).tolist() == [0, -1]


def test_counting_ones() -> None:
    check("bitwise_count", I)
    assert fnp.bitwise_count(I).dtype == np.uint8


def test_operators_of_bools() -> None:
    x = fnp.asarray(X)
    mask = (x > 0) & (x < 5) | ~(x == x)
    assert same((X > 0) & (X < 5) | ~(X == X), mask)


@pytest.mark.parametrize("name", ("bitwise_and", "bitwise_left_shift"))
def test_floats_have_no_bits(name: str) -> None:
    with pytest.raises(DtypeError, match=rf"{name}: takes integers and bools, got f32"):
        getattr(fnp, name)(X, X)


def test_bitwise_count_of_floats() -> None:
    with pytest.raises(DtypeError, match="bitwise_count"):
        fnp.bitwise_count(X)


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
