"""Samples drawn anew: kernels against whole arrays, NumPy, and their distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, random
from fxflow.kernels.gallery.resamples import (
    places_of_half,
    resampled,
    shuffled,
    words_of,
)

KEY = random.key(7)


def words(count: int, n: int) -> Any:
    return random.bits(KEY, (count, words_of(n)), "uint64")


def places_by_numpy(words: Any, n: int, grows: bool) -> list[list[int]]:
    """Returns the places that words draw, by Python's integers."""
    found = []
    for row in np.asarray(words).tolist():
        halves = [h for w in row for h in (w & 0xFFFFFFFF, w >> 32)]
        places: list[int] = []
        for half in halves:
            for _ in range(places_of_half(n)):
                size = min(len(places) + 1, n) if grows else n
                product = half * size
                half = product & 0xFFFFFFFF
                places.append(product >> 32)
        found.append(places[:n])
    return found


@pytest.mark.parametrize(
    "n", [7, *(pytest.param(m, marks=pytest.mark.slow) for m in (1, 33, 120, 1100))]
)
def test_the_kernels_agree_with_whole_arrays_and_numpy(n: int) -> None:
    bits, x = words(19, n), np.arange(2.0 * n, dtype="float32").reshape(2, n)
    drawn = np.asarray(fxflow.jit(resampled)(bits, x))
    for places, found in zip(places_by_numpy(bits, n, False), drawn, strict=True):
        np.testing.assert_array_equal(found, x[:, places])
    mixed = np.asarray(fxflow.jit(shuffled)(bits, x))
    for places, found in zip(places_by_numpy(bits, n, True), mixed, strict=True):
        order = list(range(n))
        for i, place in enumerate(places):
            order[i], order[place] = order[place], i
        np.testing.assert_array_equal(found, x[:, order])
    if n < 10:  # the checker follows each element
        for function in (resampled, shuffled):
            kernels.check(function, bits, x)


def test_how_many_places_a_word_draws() -> None:
    assert [places_of_half(n) for n in (1, 32, 33, 101, 102, 1024, 1025, 1 << 21)] == [
        *(4, 4, 3, 3, 2, 2, 1, 1)
    ]
    assert [words_of(n) for n in (1, 8, 9, 100, 2000)] == [1, 1, 2, 17, 1000]


@pytest.mark.slow
def test_all_results_are_equally_likely() -> None:
    for function, n, results in ((resampled, 4, 256), (shuffled, 5, 120)):
        count = 40 * results
        found = function(words(count, n), np.arange(n, dtype="int32")[None])
        _, seen = np.unique(np.asarray(found)[:, 0], axis=0, return_counts=True)
        assert len(seen) == results
        assert scipy.stats.chisquare(seen).pvalue > 1e-3
    # Places that one half of a word draws, of more values.
    n = 100
    found = np.asarray(resampled(words(900, n), np.arange(n, dtype="int32")[None]))
    pairs = found[:, 0, :-1] * n + found[:, 0, 1:]
    _, seen = np.unique(pairs, return_counts=True)
    counts = np.concatenate([seen, np.zeros(n * n - len(seen))])
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("function", [resampled, shuffled])
def test_derivatives_and_batches(function: Any) -> None:
    bits, x = words(6, 5), np.arange(10.0, dtype="float32").reshape(2, 5)
    weights = np.random.default_rng(0).normal(size=(6, 2, 5)).astype("float32")
    of = lambda x: fnp.sum(function(bits, x) * weights)
    places = np.asarray(function(bits, np.arange(5, dtype="int32")[None]))[:, 0]
    want = np.zeros((2, 5))
    for row, p in zip(weights, places, strict=True):
        for m in range(2):
            np.add.at(want[m], p, row[m])
    np.testing.assert_allclose(fxflow.grad(of)(x), want, 1e-5, 1e-6)
    _, change = fxflow.jvp(of, (x,), (x,))
    np.testing.assert_allclose(change, of(x), 1e-5)
    each = fxflow.vmap(function, (None, 0))(bits, np.stack([x, -x]))
    np.testing.assert_array_equal(each[1], -np.asarray(each[0]))
