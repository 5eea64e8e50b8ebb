"""Arithmetic and comparison of sizes that only a call says."""

import copy
import random

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.core.arrays import Aval, dtypes
from fxflow.core.sizes import size as sizes
from fxflow.core.sizes.size import Scope, Size, larger, named, smaller
from fxflow.core.sizes.texts import parsed
from fxflow.errors import ArgumentError, ConcretizationError, InconclusiveSizeError

B, T = named("b"), named("t")


def test_polynomials():
    assert B - B == 0
    assert (B + 1) * (B - 1) == B**2 - 1
    assert str(3 - B) == "-b + 3"
    assert 0 - (0 - B) == B
    assert hash(B + T) == hash(T + B)
    assert 2 * B != B
    assert B != 1
    assert np.int64(2) * B == B + B


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient", "rest"),
    [
        ("b", 1, "b", "0"),
        ("4*b + 3", 2, "2*b + 1", "1"),
        ("b", 4, "floordiv(b, 4)", "mod(b, 4)"),
        ("b*t + t", "t", "b + 1", "0"),
        ("b^2 - 1", "b + 1", "b - 1", "0"),
        ("b - 1", "b", "0", "b - 1"),
        ("b - 3", 2, "floordiv(b + 1, 2) - 2", "mod(b + 1, 2)"),
        ("b - mod(b, 2)", 2, "floordiv(b, 2)", "0"),
        ("10", "b", "floordiv(10, b)", "mod(10, b)"),
    ],
)
def test_division(dividend, divisor, quotient, rest):
    a = parsed(dividend)
    b = parsed(divisor) if isinstance(divisor, str) else divisor
    found = divmod(a, b)
    assert tuple(map(str, found)) == (quotient, rest)
    # With what is left over it is whole again: b*floordiv(a, b) is a - mod(a, b).
    if isinstance(b, int):
        assert found[0] * b + found[1] == a


def test_arithmetic_is_that_of_integers():
    """Random expressions, of sizes and of the integers that they stand for."""
    rng = random.Random(7)
    for _ in range(300):
        known = {"b": rng.randint(1, 9), "t": rng.randint(1, 9)}
        size, value = B, known["b"]
        for _ in range(rng.randint(1, 5)):
            other, number = rng.choice(
                [(T, known["t"]), (B, known["b"]), (2, 2), (3, 3), (5, 5)]
            )
            kind = rng.randrange(7)
            if kind == 0:
                size, value = size + other, value + number
            elif kind == 1:
                size, value = size - other, value - number
            elif kind == 2:
                size, value = size * other, value * number
            elif kind == 3:
                size, value = size // other, value // number
            elif kind == 4:
                size, value = size % other, value % number
            elif kind == 5:
                size, value = larger(size, other), max(value, number)
            else:
                size, value = smaller(size, other), min(value, number)
            assert sizes.evaluated(size, known) == value, (size, known)


def test_comparisons_that_all_calls_answer_alike():
    assert B >= 1
    assert not B < 1
    assert B * T >= B
    assert 2 * B + 1 > B
    assert B // 8 * 8 <= B
    assert larger(B, 1) == B
    assert smaller(B, 1) == 1
    assert str(larger(B, T)) == "max(b, t)"
    assert larger(B, T) >= B
    assert float("inf") > B


def test_comparisons_that_calls_answer_differently():
    with pytest.raises(InconclusiveSizeError) as error:
        B >= 5
    assert "whether b >= 5 is not known" in str(error.value)
    assert "constraints=['b >= 5']" in str(error.value)
    assert "['b <= 4']" in str(error.value)
    with pytest.raises(InconclusiveSizeError, match=r"constraints=\['t >= b \+ 1'\]"):
        B < T


@pytest.mark.parametrize("use", [int, float, range, [1, 2].__getitem__], ids=range(4))
def test_no_stand_in_for_a_number(use):
    with pytest.raises(ConcretizationError, match="the size b is known only when"):
        use(B)


def test_outside_of_an_exported_function():
    with pytest.raises(ConcretizationError, match="within the function"):
        fnp.ones(3) * B
    with pytest.raises(ConcretizationError):
        B / 2


def test_scopes_do_not_mix():
    other = named("b", Scope())
    assert other != B
    with pytest.raises(ArgumentError, match="two scopes"):
        other + B


def test_a_size_is_a_key():
    f32 = dtypes.dtype("float32")
    assert Aval((B, 3), f32) is Aval((named("b"), 3), f32)
    assert str(Aval((2 * B, 3), f32)) == "f32[2*b,3]"
    assert copy.deepcopy(B) is B


def test_rewrites():
    scope = Scope()
    a, c = named("a", scope), named("c", scope)
    scope.rewrites[(("a", 1),)] = 2 * c
    assert a + 0 == 2 * c
    assert a * a == 4 * c**2
    assert (a + 1) // 2 == c


def test_powers():
    assert B**0 == 1
    with pytest.raises(ArgumentError, match="no power -1"):
        B**-1
    with pytest.raises(ZeroDivisionError):
        B // 0
    assert isinstance(B, Size)
