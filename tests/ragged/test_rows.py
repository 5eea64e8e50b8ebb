"""Functions of whole rows, and attention within them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, ragged
from fxflow.errors import ArgumentError, ShapeError
from fxflow.ragged import RaggedArray, map_rows

LENGTHS = [2, 0, 3]
X = RaggedArray(np.array([1.0, 5, 2, 7, 4, np.nan, np.nan], "f4"), LENGTHS)


def sample(seed: int, *inner: int, lengths: Any = LENGTHS) -> RaggedArray:
    values = np.random.default_rng(seed).normal(size=(7, *inner))
    values[sum(lengths) :] = np.nan
    return RaggedArray(values.astype("f4"), lengths)


def test_function_of_rows_and_their_mask() -> None:
    def largest(row: Any, where: Any) -> Any:
        return fnp.max(row, where=where, initial=-1)

    np.testing.assert_array_equal(map_rows(largest, X), [5, -1, 7])
    found = fxflow.jit(lambda x: map_rows(largest, x, length=4))(X)
    np.testing.assert_array_equal(found, [5, -1, 7])


def test_function_of_rows_and_other_arrays() -> None:
    def shifted(row: Any, shift: Any, where: Any) -> Any:
        return row[::-1] * where[::-1] + shift

    found = map_rows(shifted, X, fnp.arange(3.0), length=3, ragged=True)
    assert found.tolist() == [[0.0, 5.0], [], [6.0, 9.0, 4.0]]
    assert found.capacity == X.capacity


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_is_that_of_each_row(is_causal: bool) -> None:
    query, key, value = (sample(i, 2, 4) for i in range(3))

    def attend(q: Any, k: Any, v: Any) -> Any:
        return ragged.dot_product_attention(q, k, v, is_causal=is_causal, length=4)

    found = attend(query, key, value)
    compiled = fxflow.jit(attend)(query, key, value)
    for i in (0, 2):
        expected = nn.dot_product_attention(
            query[i], key[i], value[i], is_causal=is_causal
        )
        np.testing.assert_allclose(found[i], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(compiled[i], expected, rtol=1e-5, atol=1e-6)
    slopes = fxflow.grad(
        lambda q: fnp.sum((attend(q, key, value) ** 2).sum()), allow_int=True
    )(query)
    assert np.isfinite(slopes.values).all()
    np.testing.assert_array_equal(slopes.values[5:], 0)


def test_keys_of_other_lengths() -> None:
    query = sample(0, 1, 4)
    key, value = (sample(i, 1, 4, lengths=[1, 4, 2]) for i in (1, 2))
    found = ragged.dot_product_attention(query, key, value)
    expected = nn.dot_product_attention(query[2], key[2], value[2])
    np.testing.assert_allclose(found[2], expected, rtol=1e-5, atol=1e-6)
    assert found.tolist()[1] == []


def test_bad_input() -> None:
    with pytest.raises(ArgumentError, match="first array must be ragged"):
        map_rows(lambda r, where: r, fnp.ones(3))
    with pytest.raises(ArgumentError, match="same lengths"):
        map_rows(lambda a, b, where: a, X, RaggedArray(X.values, [1, 1, 1]))
    with pytest.raises(ArgumentError, match="more than length=2"):
        map_rows(lambda r, where: r, X, length=2)
    with pytest.raises(ShapeError, match="arrays of 3"):
        map_rows(lambda r, where: r[:2], X, ragged=True)
    query = sample(0, 1, 4)
    with pytest.raises(ArgumentError, match="key must be a ragged"):
        ragged.dot_product_attention(query, query.values, query)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="same lengths"):
        other = sample(0, 1, 4, lengths=[1, 1, 1])
        ragged.dot_product_attention(query, query, other)
