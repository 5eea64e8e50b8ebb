"""Rows as 8-bit integers: the bound of the error, its mean, and training."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow import nn, optim
from fxflow.core.arrays import dtypes
from fxflow.distributed.parameter_server.tables import RowTable, TableSpec
from fxflow.distributed.parameter_server.tables.quantization import (
    decode,
    decode_rows,
    encode,
    encode_update,
)
from fxflow.distributed.parameter_server.tables.remote import make_table, table_model
from fxflow.errors import ArgumentError
from fxflow.transforms.jit import jit
from fxflow.transforms.vmap import vmap

ROWS = st.integers(0, 2**32 - 1)
encode_rows = jit(vmap(encode))
update_rows = jit(vmap(encode_update, in_axes=(0, 0, 0, 0, None)), static_argnums=4)


@given(seed=ROWS, exponent=st.integers(-30, 30))
@settings(max_examples=20, deadline=None)
def test_the_error_of_rounding_to_nearest(seed: int, exponent: int) -> None:
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(16, 8)) * 10.0**exponent).astype(np.float32)
    codes, units = map(np.asarray, encode_rows(rows))
    found = decode_rows(codes, units, np.float32)
    largest = np.abs(rows).max(axis=1, keepdims=True)
    assert np.all(np.abs(found - rows) <= 0.5001 * largest / 127)
    assert np.all(np.abs(codes).max(axis=1) == 127)


def test_special_rows() -> None:
    rows = np.array([[0, 0], [np.inf, 1], [np.nan, 1], [-3, 1]], np.float32)
    codes, units = map(np.asarray, encode_rows(rows))
    found = decode_rows(codes, units, np.float32)
    assert found[0].tolist() == [0, 0]
    assert np.isnan(found[1:3]).all()
    assert found[3, 0] == -3


@pytest.mark.parametrize("dtype", [np.float32, dtypes.bfloat16])
def test_the_host_decodes_to_the_same_bits(dtype: object) -> None:
    rows = np.random.default_rng(0).normal(size=(64, 5)).astype(dtype)
    codes, units = encode_rows(rows)
    device = vmap(lambda c, u: decode(c, u, dtype))(codes, units)
    host = decode_rows(np.asarray(codes), np.asarray(units), dtype)
    assert host.dtype == dtype
    assert np.asarray(device).tobytes() == host.tobytes()


def test_stochastic_rounding_is_bounded_and_right_on_average() -> None:
    count = 4000
    row = np.array([1.0, 0.3, -0.0101, 0.0039, 0.0], np.float32)
    before = np.broadcast_to(row, (count, 5))
    after = before - np.array([0, 1e-4, 2e-3, 1e-3, -5e-4], np.float32)
    codes, units = encode_rows(before)
    old = decode_rows(np.asarray(codes), np.asarray(units), np.float32)
    numbers = np.arange(count, dtype=np.uint32)
    found = update_rows((codes, units), old, after, numbers, 3)
    decoded = decode_rows(*map(np.asarray, found), np.float32)
    unit = 1 / 127
    assert np.all(np.abs(decoded - after) < unit * 1.0001)
    # The variance of one element is at most unit² / 4.
    error = np.abs(decoded.mean(axis=0) - after[0])
    assert np.all(error < 4.5 * unit / 2 / np.sqrt(count))
    assert np.any(decoded.std(axis=0) > 0)


def test_an_update_of_nothing_changes_nothing() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    codes, units = encode_rows(rows)
    old = decode_rows(np.asarray(codes), np.asarray(units), np.float32)
    same, unit = update_rows((codes, units), old, old, np.zeros(50, np.uint32), 0)
    assert np.array_equal(same, codes) and np.array_equal(unit, units)


@pytest.mark.slow
def test_a_table_trains_with_a_quarter_of_the_memory() -> None:
    """Gradient descent reaches its target in steps far below the resolution."""
    made = {}
    target = np.random.default_rng(0).uniform(-1, 1, (8, 64)).astype(np.float32)
    for stored in "exact", "int8":
        spec = TableSpec("t", 64, optim.sgd(0.02), seed=1, stored=stored)
        table = make_table(table_model(spec), "shard")  # the programs of a server
        for _ in range(300):
            rows = table.pull(np.arange(8))
            assert rows.dtype == np.float32
            table.push(np.arange(8), rows - target)
        made[stored] = table
    errors = {
        stored: np.abs(table.pull(np.arange(8)) - target).max()
        for stored, table in made.items()
    }
    assert errors["exact"] < 0.01
    assert errors["int8"] < 0.05  # six units of 1/127: the noise of the last steps
    assert made["int8"].nbytes == 8 * (64 + 8)
    assert made["exact"].nbytes == 8 * 256


def test_blocks_have_the_codes() -> None:
    spec = TableSpec("t", 3, optim.adagrad(0.1), nn.initializers.ones, stored="int8")
    one, two = RowTable(spec), RowTable(spec)
    one.push([4, 9], np.ones((2, 3), np.float32))
    two.load(list(one.state()))
    assert np.array_equal(one.pull([4, 9, 1]), two.pull([4, 9, 1]))
    assert np.array_equal(one.read([4, 2]), two.pull([4, 2]))
    for table in one, two:
        table.push([4], np.full((1, 3), 0.3, np.float32))
    assert np.array_equal(one.pull([4]), two.pull([4]))


def test_the_options_are_checked() -> None:
    with pytest.raises(ArgumentError, match="stored must be one of"):
        TableSpec("t", 2, stored="int4")
    with pytest.raises(ArgumentError, match="expire_after must be at least 1, got 0"):
        TableSpec("t", 2, expire_after=0)
    with pytest.raises(ArgumentError, match="admit_after must be from 1 to 255, got 0"):
        TableSpec("t", 2, admit_after=0)
