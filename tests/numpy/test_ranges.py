"""Evenly spaced numbers."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ConcretizationError
from tests.numpy.oracle import same


@pytest.mark.parametrize(
    "args",
    [(5,), (0,), (-3,), (2, 8, 3), (8, 2, -2), (0, 1, 0.25), (5.0,), (1, 2.5), (3, 3)],
)
def test_arange(args: tuple[Any, ...]) -> None:
    want = np.arange(*args)
    assert same(want, fnp.arange(*args))
    assert same(want, fxflow.jit(lambda: fnp.arange(*args))())
    kind = np.int32 if all(isinstance(a, int) for a in args) else np.float32
    assert fnp.arange(*args).dtype == kind and not fnp.arange(*args).weak_type


def test_arange_of_a_dtype() -> None:
    assert fnp.arange(3, dtype="bfloat16").dtype == "bfloat16"
    assert fnp.arange(np.int64(3)).dtype == np.int32
    assert fnp.arange(3, dtype=fnp.int64).dtype == np.int64
    assert fnp.arange(fnp.asarray(2), 4).tolist() == [2, 3]
    assert fnp.arange(2, dtype=bool).tolist() == [False, True]


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ((0, 5, 0), ArgumentError, "step must not be 0"),
        (("a",), ArgumentError, "stop must be a number"),
        ((np.ones(2),), ArgumentError, r"must be a number, got f32\[2\]"),
        ((2**31 + 5, 2**31 + 9), OverflowError, "does not fit int32"),
        ((5, None, None, bool), ArgumentError, "range of bools"),
    ],
)
def test_arange_of_something_else(args: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        fnp.arange(*args)


def test_arange_of_a_traced_length() -> None:
    with pytest.raises(ConcretizationError, match="arange: stop must be known"):
        fxflow.jit(fnp.arange)(3)


@pytest.mark.parametrize("num", (0, 1, 2, 7))
@pytest.mark.parametrize("endpoint", (True, False))
def test_linspace(num: int, endpoint: bool) -> None:
    for start, stop in ((0, 1), (-2.5, 7.0), (3, -3)):
        want = np.linspace(start, stop, num, endpoint)
        assert same(want, fnp.linspace(start, stop, num, endpoint))
    want, step = np.linspace(0, 4, num, endpoint, retstep=True)
    got, gap = fnp.linspace(0, 4, num, endpoint, retstep=True)
    assert same((want, step), (got, gap))


def test_linspace_of_numbers_is_rounded_once() -> None:
    for start, stop in ((0, 1), (-1, 1), (1e-3, 7.3), (0, 2 * np.pi), (2, 1e30)):
        for num in (7, 101, 1000):
            want = np.linspace(start, stop, num)
            got = fnp.linspace(start, stop, num)
            np.testing.assert_array_equal(got, want.astype(np.float32))
            wide = fnp.linspace(start, stop, num, dtype="float64")
            np.testing.assert_array_equal(wide, want)
    large = np.linspace(0, 10**9, 7, dtype=int)
    np.testing.assert_array_equal(fnp.linspace(0, 10**9, 7, dtype=int), large)


def test_linspace_of_arrays() -> None:
    low, high = np.array([0.0, 5.0], np.float32), np.array([1.0, -5.0], np.float32)
    for axis in (0, 1, -1):
        want = np.linspace(low, high, 4, axis=axis)
        assert same(want, fnp.linspace(low, high, 4, axis=axis))
    assert same(np.linspace(0, 9, 4, dtype=int), fnp.linspace(0, 9, 4, dtype=int))
    assert same(np.linspace(0, 1j, 3), fnp.linspace(0, 1j, 3))
    ends = fnp.linspace(0.1, 0.7, 11)
    assert float(ends[0]) == np.float32(0.1) and float(ends[-1]) == np.float32(0.7)


def test_linspace_has_derivatives() -> None:
    slopes = fxflow.jacrev(lambda stop: fnp.linspace(0.0, stop, 5))(1.0)
    assert same([0, 0.25, 0.5, 0.75, 1], slopes)


def test_logarithmic_spaces() -> None:
    assert same(np.logspace(0, 3, 4), fnp.logspace(0, 3, 4), 1e-4)
    assert same(np.logspace(0, 3, 5, base=2.0), fnp.logspace(0, 3, 5, base=2.0))
    assert same(np.geomspace(1, 256, 9), fnp.geomspace(1, 256, 9), 1e-5)
    assert same(np.geomspace(-1, -8, 4), fnp.geomspace(-1, -8, 4))
    assert same(np.geomspace(1, 8, 3, endpoint=False), fnp.geomspace(1, 8, 3, False))
    assert same(np.geomspace(1j, 16j, 3), fnp.geomspace(1j, 16j, 3), 1e-4)
    assert fnp.geomspace(1, 8, 1).tolist() == [1.0]
    assert fnp.logspace(0, 2, 3, dtype=int).tolist() == [1, 10, 100]


@pytest.mark.parametrize("name", ("linspace", "geomspace", "logspace"))
def test_negative_numbers_of_numbers(name: str) -> None:
    with pytest.raises(ArgumentError, match="num must not be negative"):
        getattr(fnp, name)(1, 2, -1)


@pytest.mark.parametrize("bounds", [(np.inf,), (np.nan,), (0, 3, np.nan)])
def test_ranges_without_a_length(bounds) -> None:
    with pytest.raises(TypeError, match="is not a finite number of steps"):
        fnp.arange(*bounds)
    with pytest.raises(TypeError, match="must be real, got 0, 3j, 1"):
        fnp.arange(3j)
