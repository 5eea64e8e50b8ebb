"""Bags of embeddings: against loops of NumPy, small as well as large enough for
kernels."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn
from fxflow.errors import ArgumentError, DtypeError, ShapeError

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(50, 32)).astype(np.float32)


def of_numpy(
    table: Any, bags: Any, mode: str, factors: Any = None, padding_id: Any = None
) -> Any:
    """Loops over bags, which are lists of ids."""
    out = np.zeros((len(bags), table.shape[1]), table.dtype)
    for b, ids in enumerate(bags):
        rows = [
            table[i] * (1 if factors is None else factors[b][j])
            for j, i in enumerate(ids)
            if i != padding_id
        ]
        if rows:
            out[b] = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode](rows, 0)
    return out


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("count", [7, 300])
def test_rows_of_ids_are_bags(mode: str, count: int) -> None:
    ids = RNG.integers(0, 50, (count, 9))
    for padding_id in (None, 3):
        found = nn.embedding_bag({"w": TABLE}, ids, mode=mode, padding_id=padding_id)
        expected = of_numpy(TABLE, ids, mode, padding_id=padding_id)
        np.testing.assert_allclose(found, expected, 1e-5, 1e-6)
    batch = nn.embedding_bag({"w": TABLE}, ids.reshape(1, count, 9), mode=mode)
    assert batch.shape == (1, count, 32)
    assert nn.embedding_bag({"w": TABLE}, ids[0], mode=mode).shape == (32,)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("count", [5, 400])
def test_offsets_divide_ids_into_bags(mode: str, count: int) -> None:
    lengths = RNG.integers(0, 12, count)
    lengths[0] = 0
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids = RNG.integers(0, 50, offsets[-1])
    bags = [ids[a:b] for a, b in itertools.pairwise(offsets)]
    for padding_id in (None, 3):
        expected = of_numpy(TABLE, bags, mode, padding_id=padding_id)
        found = nn.embedding_bag(
            {"w": TABLE}, ids, offsets[:-1], mode=mode, padding_id=padding_id
        )
        np.testing.assert_allclose(found, expected, 1e-5, 1e-6)
    found = nn.embedding_bag(
        {"w": TABLE}, ids, offsets, mode=mode, include_last_offset=True
    )
    np.testing.assert_allclose(found, of_numpy(TABLE, bags, mode), 1e-5, 1e-6)
    assert not np.asarray(found[0]).any()


def plain_sum(table: Any, factors: Any, ids: Any, padding_id: int) -> Any:
    """The same as array operations, with derivatives of fxflow's own rules."""
    rows = nn.embedding({"w": table}, ids, padding_id=padding_id)
    return fnp.sum(rows * factors[..., None], -2)


@pytest.mark.parametrize("count", [7, 300])
@pytest.mark.parametrize("features", [32, 24])
def test_derivatives_by_table_and_factors(count: int, features: int) -> None:
    ids = RNG.integers(0, 50, (count, 9))
    table = fnp.asarray(TABLE[:, :features])
    factors = fnp.asarray(RNG.random(ids.shape).astype("f"))

    def bag(table: Any, factors: Any) -> Any:
        return nn.embedding_bag(
            {"w": table}, ids, mode="sum", factors=factors, padding_id=3
        )

    def both(f: Any) -> Any:
        return fxflow.grad(lambda t, w: fnp.sum(fnp.sin(f(t, w))), argnums=(0, 1))

    expected = both(lambda t, w: plain_sum(t, w, ids, 3))(table, factors)
    for f in (both(bag), fxflow.jit(both(bag))):
        for found, want in zip(f(table, factors), expected, strict=True):
            np.testing.assert_allclose(found, want, 1e-4, 1e-5)
    assert not np.asarray(expected[0])[3].any()
    args = (table, factors), (fnp.ones_like(table), fnp.sin(factors))
    (out, moved), (out2, moved2) = (
        fxflow.jvp(f, *args) for f in (bag, lambda t, w: plain_sum(t, w, ids, 3))
    )
    np.testing.assert_allclose(out, out2, 1e-4, 1e-5)
    np.testing.assert_allclose(moved, moved2, 1e-4, 1e-5)


@pytest.mark.parametrize("mode", ["mean", "max"])
@pytest.mark.parametrize("count", [6, 400])
def test_gradients_of_bags_by_offsets(mode: str, count: int) -> None:
    ids = RNG.integers(0, 50, (count, 6))
    offsets = np.arange(count) * 6

    def loss(*args: Any) -> Any:
        return fxflow.grad(
            lambda t: fnp.sum(fnp.sin(nn.embedding_bag({"w": t}, *args, mode=mode)))
        )(fnp.asarray(TABLE))

    np.testing.assert_allclose(loss(ids.ravel(), offsets), loss(ids), 1e-4, 1e-5)


def test_gradients_of_gradients() -> None:
    ids = RNG.integers(0, 50, (300, 8))

    def loss(table: Any) -> Any:
        return fnp.sum(nn.embedding_bag({"w": table}, ids, mode="sum") ** 3)

    def plain(table: Any) -> Any:
        return fnp.sum(fnp.sum(table[ids], 1) ** 3)

    x = fnp.asarray(TABLE)
    found, want = (
        fxflow.jvp(fxflow.grad(f), (x,), (fnp.ones_like(x),))[1] for f in (loss, plain)
    )
    np.testing.assert_allclose(found, want, 1e-3, 1e-3)


@pytest.mark.parametrize("count", [4, 300])
def test_ids_outside_of_the_table_and_vectors_that_are_not_finite(count: int) -> None:
    table = TABLE.copy()
    table[3] = np.inf
    ids = np.zeros((count, 9), np.int64)
    ids[0, 0], ids[1, 0], ids[2, 0] = 50, -1, 3
    found = np.asarray(nn.embedding_bag({"w": table}, ids, mode="sum", padding_id=3))
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], 8 * table[0] + table[49], 1e-5, 1e-6)
    np.testing.assert_allclose(found[2], 8 * table[0], 1e-5, 1e-6)
    ids[0, 0] = -51
    for mode in ("mean", "max"):
        assert np.isnan(
            np.asarray(nn.embedding_bag({"w": table}, ids, mode=mode)[0])
        ).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_other_floats(dtype: str) -> None:
    ids = RNG.integers(0, 50, (300, 9))
    table = fnp.asarray(TABLE, dtype)
    found = nn.embedding_bag({"w": table}, ids)
    assert found.dtype == dtype
    expected = of_numpy(np.asarray(table, np.float32), ids, "mean")
    np.testing.assert_allclose(np.asarray(found, np.float32), expected, 1e-2, 1e-2)


def test_vectorized_and_empty() -> None:
    ids = RNG.integers(0, 50, (3, 120, 8))
    found = fxflow.vmap(lambda i: nn.embedding_bag({"w": TABLE}, i))(ids)
    for one, i in zip(found, ids, strict=True):
        np.testing.assert_allclose(one, of_numpy(TABLE, i, "mean"), 1e-5, 1e-6)
    tables = fnp.stack([fnp.asarray(TABLE), fnp.asarray(TABLE) + 1])
    two = fxflow.vmap(lambda t: nn.embedding_bag({"w": t}, ids[0]))(tables)
    np.testing.assert_allclose(two[1], two[0] + 1, 1e-4, 1e-5)
    for shape in ((0, 4), (4, 0)):
        empty = nn.embedding_bag({"w": TABLE}, np.zeros(shape, int), mode="max")
        np.testing.assert_array_equal(empty, np.zeros((shape[0], 32)))


def test_the_large_ones_are_kernels() -> None:
    pytest.importorskip("llvmlite")
    ids = fnp.asarray(RNG.integers(0, 50, (300, 9)))
    grad = fxflow.grad(lambda t: fnp.sum(nn.embedding_bag({"w": t}, ids) ** 2))
    text = fxflow.jit(grad).lower(fnp.asarray(TABLE)).as_text()
    assert text.count("fxflow_kernel_") >= 2


def test_wrong_arguments() -> None:
    p, ids = {"w": TABLE}, np.zeros((2, 3), int)
    with pytest.raises(ArgumentError, match="mode must be one of 'sum'"):
        nn.embedding_bag(p, ids, mode="median")
    with pytest.raises(ArgumentError, match="factors are for sums"):
        nn.embedding_bag(p, ids, factors=np.ones((2, 3), "f"))
    with pytest.raises(ShapeError, match="the shape of ids"):
        nn.embedding_bag(p, ids, mode="sum", factors=np.ones(3, "f"))
    with pytest.raises(ShapeError, match="with offsets"):
        nn.embedding_bag(p, ids, np.array([0]))
    with pytest.raises(ShapeError, match="one bag in each row"):
        nn.embedding_bag(p, np.int32(0))
    with pytest.raises(ArgumentError, match="needs offsets"):
        nn.embedding_bag(p, ids, include_last_offset=True)
    with pytest.raises(DtypeError, match="ids must be integers"):
        nn.embedding_bag(p, np.ones((2, 3)))
    with pytest.raises(ShapeError, match="no vectors"):
        nn.embedding_bag({"w": np.zeros((0, 4), "f")}, ids)
    assert math.isnan(float(nn.embedding_bag(p, np.array([[99]]))[0, 0]))
