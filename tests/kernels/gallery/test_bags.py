"""Sums of rows of a table: kernels against operations on whole arrays, and the
checker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.kernels.gallery import bags as bags_module
from fxflow.kernels.gallery.bags import Bags, bag_of, rows_of, sums_of_rows
from fxflow.transforms.vjp import vjp

RNG = np.random.default_rng(0)
LENGTHS = RNG.integers(0, 9, 70)


@pytest.fixture(autouse=True)
def always_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bags_module, "_LEAST", 0)


def example() -> tuple[Any, Bags, Any]:
    stops = np.cumsum(LENGTHS).astype(np.int32)
    ids = RNG.integers(-1, 12, stops[-1]).astype(np.int32)
    table = fnp.asarray(RNG.normal(size=(12, 32)).astype(np.float32))
    factors = fnp.asarray(RNG.random(len(ids)).astype(np.float32))
    starts = (stops - LENGTHS).astype(np.int32)
    return table, Bags(*map(fnp.asarray, (ids, starts, stops))), factors


def test_sums_and_cotangents_of_ragged_bags() -> None:
    table, bags, factors = example()
    out, back = vjp(lambda t, w: sums_of_rows(t, bags, w), table, factors)
    ct = fnp.asarray(RNG.normal(size=out.shape).astype(np.float32))
    of_table, of_factors = map(np.asarray, back(ct))
    sums, slopes = np.zeros(out.shape), np.zeros(table.shape)
    weights = np.zeros(factors.shape)
    ids, starts, stops = map(np.asarray, bags)
    for b, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        for j in range(start, stop):
            if ids[j] >= 0:
                sums[b] += factors[j] * table[ids[j]]
                slopes[ids[j]] += factors[j] * ct[b]
                weights[j] = fnp.dot(table[ids[j]], ct[b])
    np.testing.assert_allclose(out, sums, 1e-5, 1e-5)
    np.testing.assert_allclose(of_table, slopes, 1e-4, 1e-4)
    np.testing.assert_allclose(of_factors, weights, 1e-4, 1e-4)


def test_kernels_agree_with_their_references() -> None:
    table = fnp.asarray(RNG.normal(size=(3, 64)).astype(np.float32))
    ids = fnp.asarray([0, 2, -1, 1, 2, 2])
    starts = fnp.asarray([0, 2, 4])
    bags, factors = Bags(ids, starts, starts + 2), fnp.arange(6.0)

    def slope(table: Any, ct: Any) -> Any:
        return vjp(lambda t: sums_of_rows(t, bags, factors, width=2), table)[1](ct)

    def sums(table: Any) -> Any:
        return sums_of_rows(table, bags, factors)

    kernels.check(slope, table, fnp.ones((3, 64)))
    kernels.check(sums, table)
    assert "embedding_bag: 1 program " in kernels.explain(sums, table)
    text = kernels.explain(slope, table, fnp.ones((3, 64)))
    assert "embedding_bag_gradient: 2 programs (2 parallel)" in text


def test_which_bag_an_id_is_in() -> None:
    bags = Bags(fnp.asarray([5, -1, 2]), fnp.asarray([1, 1]), fnp.asarray([1, 3]))
    bag, known = bag_of(bags, None)
    np.testing.assert_array_equal(known, [False, True, True])
    np.testing.assert_array_equal(bag[1:], [1, 1])
    rows, inside = rows_of(fnp.arange(6.0)[:, None], bags.ids)
    np.testing.assert_array_equal(inside, [True, False, True])
    np.testing.assert_array_equal(rows[::2, 0], [5, 2])
