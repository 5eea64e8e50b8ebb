"""Ordered sums of repeated ids; gradients with respect to the rows of a batch."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import optim
from fxflow.distributed.parameter_server.tables import (
    RowTable,
    TableSpec,
    pad_rows,
    real_ids,
    sum_rows,
    unique_rows,
)
from fxflow.errors import ArgumentError, OutOfRangeError, ShapeError


@pytest.mark.parametrize("count", [0, 1, 2, 9, 300, 5000])
def test_sums_follow_the_given_order(count) -> None:
    generator = np.random.default_rng(count)
    ids = np.minimum(generator.zipf(1.3, count), 10**9)
    gradients = generator.normal(size=(count, 2, 3)).astype(np.float32)
    expected = {}
    for i, g in zip(ids.tolist(), gradients):
        expected[i] = expected[i] + g if i in expected else g
    distinct, sums = sum_rows(ids, gradients)
    assert distinct.tolist() == sorted(expected)
    assert sums.dtype == np.float32
    for i, total in zip(distinct.tolist(), sums):
        assert np.array_equal(total, expected[i])


def test_gradients_equal_those_of_the_whole_table() -> None:
    table = RowTable(TableSpec("t", 3, optim.sgd(1.0)))
    whole = fnp.asarray(table.pull(np.arange(20)))
    traces = []

    def loss(weights, words):
        return fnp.sum(fnp.tanh(words @ weights) ** 2)

    @fxflow.jit
    def step(weights, rows, inverse):
        traces.append(rows.shape)
        per_example = fxflow.vmap(
            fxflow.grad(lambda rows, inverse: loss(weights, rows[inverse])),
            in_axes=(None, 0),
        )
        return fnp.sum(per_example(rows, inverse), axis=0)

    weights = fnp.arange(3.0)
    for ids in ([[7, 2], [7, 9]], [[1, 1], [1, 1]], [[19, 0], [4, 5]]):
        ids = np.array(ids)
        distinct, inverse = unique_rows(ids)
        real = real_ids(distinct)
        assert np.array_equal(distinct[inverse], ids)
        rows = pad_rows(np.asarray(whole)[real], len(distinct))
        found = np.asarray(step(weights, rows, inverse))
        of_whole = fxflow.grad(lambda whole, ids: loss(weights, whole[ids]))
        expected = of_whole(whole, ids)
        assert np.allclose(found[: len(real)], expected[real], atol=1e-6)
        assert not found[len(real) :].any()
        table.push(real, found[: len(real)])
    assert traces == [(32, 3)]


def test_unique_rows_under_jit() -> None:
    ids = np.array([[5, 3], [5, 8]], np.int32)
    distinct, inverse = fxflow.jit(lambda ids: unique_rows(ids, size=4))(ids)
    assert distinct.tolist() == [3, 5, 8, -1] and inverse.tolist() == [[1, 0], [1, 2]]
    assert real_ids(distinct).tolist() == [3, 5, 8]
    with pytest.raises(ArgumentError, match="give size="):
        fxflow.jit(unique_rows)(ids)


def test_unique_rows_on_the_host() -> None:
    distinct, inverse = unique_rows([])
    assert len(distinct) == 32 and inverse.shape == (0,)
    assert real_ids(distinct).tolist() == []
    assert len(unique_rows(np.arange(33) + 2**62)[0]) == 64
    assert len(unique_rows(np.arange(64))[0]) == 64
    with pytest.raises(OutOfRangeError, match="3 distinct ids are more than size=2"):
        unique_rows([1, 2, 3], size=2)
    with pytest.raises(ArgumentError, match="must be integers, got f64"):
        unique_rows([1.5])
    with pytest.raises(OutOfRangeError, match=r"step: ids must be from 0 .* got -1$"):
        unique_rows([3, -1], caller="step")  # −1 is the padding
    with pytest.raises(OutOfRangeError, match=r"got 9223372036854775813$"):
        unique_rows(np.array([2**63 + 5], np.uint64))
    with pytest.raises(ShapeError, match="3 rows are more than size=2"):
        pad_rows(np.zeros((3, 1)), 2)
