"""NumPy's own functions on fxflow arrays: they convert, and return NumPy's arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import TracerArrayConversionError

X = fnp.asarray([3.0, 1.0, 2.0])
VALUES = np.asarray([3.0, 1.0, 2.0], "f")

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "ufunc": np.sin,
    "binary ufunc": lambda x: np.add(x, np.float32(1)),
    "out": lambda x: np.add(np.ones(3), x, out=np.zeros(3)),
    "reduce": np.add.reduce,
    "accumulate": np.multiply.accumulate,
    "outer": lambda x: np.subtract.outer(x, x),
    "concatenate": lambda x: np.concatenate([x, np.ones(2), x]),
    "hstack": lambda x: np.hstack([x, x]),
    "array of arrays": lambda x: np.array([x, x]),
    "array of elements": lambda x: np.array([x[0], x[1]]),
    "norm": np.linalg.norm,
    "inv": lambda x: np.linalg.inv(np.diag(x)),
    "rfft": np.fft.rfft,
    "einsum": lambda x: np.einsum("i,j->ij", x, x),
    "where": lambda x: np.where(x > 1, x, 0),
    "percentile": lambda x: np.percentile(x, 30),
    "histogram": lambda x: np.histogram(x, 3)[0],
    "unique": lambda x: np.unique(x, return_counts=True)[1],
    "index": lambda x: np.arange(5)[np.asarray(x, int)],
    "linspace": lambda x: np.linspace(x[1], x[0], 4),
    "apply_along_axis": lambda x: np.apply_along_axis(sum, 0, x),
    "vectorize": lambda x: np.vectorize(lambda v: v * 2)(x),
    "sort": np.sort,
    "clip": lambda x: np.clip(x, 0, 1),
    "take": lambda x: np.take(x, np.array([0, 2])),
    "pad": lambda x: np.pad(x, 1),
    "choice": lambda x: np.random.default_rng(0).choice(x, 2),
}

METHODS: dict[str, Callable[[Any], Any]] = {
    "mean": np.mean,
    "std": lambda x: np.std(x, axis=0),
    "argmax": np.argmax,
    "cumsum": np.cumsum,
    "dot": lambda x: np.ones((2, 3)) @ x,
    "reshape": lambda x: np.reshape(x, (3, 1)),
    "left operand": lambda x: np.ones(3) - x,
    "scalar operand": lambda x: np.float32(2) / x,
    "comparison": lambda x: np.ones(3) < x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpy_functions_return_numpy_arrays(name: str) -> None:
    found, expected = FUNCTIONS[name](X), FUNCTIONS[name](VALUES)
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", METHODS)
def test_where_numpy_calls_a_method_the_result_is_ours(name: str) -> None:
    found = METHODS[name](X)
    assert type(found) is fxflow.Array
    np.testing.assert_allclose(found, METHODS[name](VALUES), rtol=1e-6)
    # A method can be traced.
    np.testing.assert_allclose(fxflow.jit(METHODS[name])(X), found, rtol=1e-6)


@pytest.mark.parametrize(
    "name", sorted(set(FUNCTIONS) - {"index", "array of elements", "linspace"})
)
def test_traced_arrays_are_refused(name: str) -> None:
    with pytest.raises(TracerArrayConversionError, match=r"fxflow\.numpy functions"):
        fxflow.jit(FUNCTIONS[name])(X)


def test_numpy_writes_into_no_array_of_ours() -> None:
    for write in (
        lambda x: np.copyto(x, 0),
        lambda x: np.put(x, 0, 1.0),
        lambda x: np.add(1.0, 2.0, out=x),
        lambda x: np.add.at(x, 0, 1.0),
        lambda x: np.fill_diagonal(x[None], 0.0),
    ):
        with pytest.raises((TypeError, ValueError)):
            write(X)
    np.testing.assert_array_equal(X, VALUES)


def test_asking_whether_an_array_is_iterable_makes_no_elements() -> None:
    x = fnp.zeros(100)
    elements = iter(x)
    assert len(list(zip(range(3), elements))) == 3
    assert not isinstance(elements, type(iter([])))
    assert np.iterable(x)
    assert not np.iterable(x[0])
    assert [float(v) for v in X] == [3.0, 1.0, 2.0]


def test_assertions() -> None:
    np.testing.assert_allclose(X, VALUES)
    np.testing.assert_array_equal(VALUES, X)
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 3"):
        np.testing.assert_allclose(X.at[0].add(1.0), X)
    assert np.allclose(X, VALUES)
    assert np.array_equal(X, VALUES)
