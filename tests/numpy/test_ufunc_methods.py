"""`reduce`, `accumulate`, `outer`, `at`, `reduceat`."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError
from tests.numpy.oracle import same

X = (np.arange(24, dtype=np.int32).reshape(2, 3, 4) * 7) % 5
NAMES = (
    *("add", "multiply", "maximum", "minimum", "subtract", "logaddexp"),
    *("logical_and", "logical_or", "bitwise_and", "bitwise_or", "bitwise_xor"),
)


@pytest.mark.parametrize("name", NAMES)
def test_methods_agree_with_numpy(name: str) -> None:
    want, got = getattr(np, name), getattr(fnp, name)
    for axis in (0, 1, -1):
        assert same(want.reduce(X, axis), got.reduce(X, axis), 1e-5)
        assert same(want.accumulate(X, axis), got.accumulate(X, axis), 1e-5)
    indices = np.array([0, 2, 1])
    assert same(want.reduceat(X, indices, 1), got.reduceat(X, indices, 1), 1e-5)
    assert same(want.outer(X[0], X[1]), got.outer(X[0], X[1]), 1e-5)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "subtract"])
def test_masks_starts_and_kept_axes(name: str) -> None:
    want, got = getattr(np, name), getattr(fnp, name)
    options: dict[str, Any] = {"where": X > 1, "initial": 3, "keepdims": True}
    for axis in (1, (0, 2), None):
        assert same(
            want.reduce(X, axis, **options), got.reduce(X, axis, **options), 1e-5
        )
    assert same(want.reduce(X, None), got.reduce(X, None), 1e-5)


@pytest.mark.parametrize("name", ("add", "subtract", "multiply", "maximum", "hypot"))
def test_at(name: str) -> None:
    x = np.arange(4, dtype=np.float32)
    want = x.copy()
    getattr(np, name).at(want, [1, 1, 3], [2, 5, 7])
    b = np.array([2.0, 5.0, 7.0], np.float32)
    got = getattr(fnp, name).at(x, np.array([1, 1, 3]), b, inplace=False)
    assert same(want, got)


def test_at_of_one_argument() -> None:
    want = np.ones(3)
    np.negative.at(want, [0, 0, 1])
    got = fnp.negative.at(np.ones(3), np.array([0, 0, 1]), inplace=False)
    assert same(want, got)


def test_sums_of_small_integers_are_wide() -> None:
    x = np.full(4, 100, np.int8)
    assert fnp.add.reduce(x).tolist() == 400
    assert fnp.add.reduce(x).dtype == np.int32
    assert fnp.add.reduce(x > 0).tolist() == 4
    assert fnp.add.reduce(x, dtype="float32").dtype == np.float32
    assert fnp.add.accumulate(x.astype(np.uint8)).dtype == np.uint32


def test_functions_without_a_primitive() -> None:
    joined = fnp.frompyfunc(lambda a, b: 10 * a + b, 2, 1)
    x = np.array([1, 2, 3])
    assert joined.reduce(x).tolist() == 123
    assert joined.accumulate(x).tolist() == [1, 12, 123]
    assert joined.reduceat(x, np.array([0, 1])).tolist() == [1, 23]
    assert fxflow.jit(joined.reduce)(x).tolist() == 123


def test_nothing_to_reduce() -> None:
    empty = np.zeros((0, 2), np.float32)
    assert fnp.add.reduce(empty).tolist() == [0, 0]
    assert fnp.multiply.reduce(empty).tolist() == [1, 1]
    assert fnp.maximum.reduce(empty, initial=5.0).tolist() == [5, 5]
    with pytest.raises(ArgumentError, match=r"maximum.reduce: has no identity"):
        fnp.maximum.reduce(empty)
    with pytest.raises(ArgumentError, match="for a mask"):
        fnp.maximum.reduce(X, where=X > 1)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fnp.add.reduce(X, 3), AxisError, "add.reduce: axis 3 is out of range"),
        (lambda: fnp.sin.reduce(X), ArgumentError, "only functions of two arguments"),
        (
            lambda: fnp.divmod.accumulate(X),
            ArgumentError,
            "two arguments with one result",
        ),
        (lambda: fnp.add.reduce(X, out=X), ArgumentError, "out= has no meaning"),
        (lambda: fnp.sin.outer(X, X), ArgumentError, "two arguments"),
        (lambda: fnp.add.at(X, 0, 1), ArgumentError, "arrays never change"),
        (
            lambda: fnp.add.at(X, 0, inplace=False),
            ArgumentError,
            "takes 1 second arguments",
        ),
    ],
)
def test_methods_that_do_not_fit_a_function_are_refused(
    call: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()
