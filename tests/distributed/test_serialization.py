import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import random
from fxflow.distributed.serialization import (
    HostLeaf,
    decode,
    encode,
    from_host,
    to_host,
)
from fxflow.errors import ArgumentError

LEAVES = [
    fnp.arange(6.0).reshape(2, 3),
    fnp.ones((), "bfloat16"),
    fnp.zeros((0, 4), "int8"),
    np.array([True, False]),
    np.arange(8.0)[::2],
    np.asfortranarray(np.arange(6).reshape(2, 3)),
    3,
    2.5,
    1j,
    True,
]


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda x: f"{getattr(x, 'dtype', x)}")
def test_round_trip(leaf: object) -> None:
    host = to_host(leaf)
    (found,), extra = decode(encode([host], note="a"))
    assert extra == {"note": "a"}
    own = getattr(leaf, "dtype", fxflow.typeof(leaf).dtype)  # including 64-bit dtypes
    assert found.data.dtype == host.data.dtype == own
    assert found.data.shape == host.data.shape
    np.testing.assert_array_equal(found.data, np.asarray(leaf))
    found.data[...] = 0  # the memory is not shared


def test_where_explicit_64_bits_are_cut_off() -> None:
    with fxflow.config.override(explicit_x64_dtypes="truncate"):
        assert to_host(np.int64(2**40)).data.tolist() == 2**40


def test_keys_survive_serialization() -> None:
    keys = random.split(random.key(7), 3)
    (found,), _ = decode(encode([to_host(keys)]))
    again = from_host(found)
    assert again.dtype == keys.dtype
    assert random.key_data(again).tolist() == random.key_data(keys).tolist()


def test_values_that_are_not_arrays_are_refused() -> None:
    with pytest.raises(ArgumentError):
        to_host("text")


def test_damaged_bytes_are_refused() -> None:
    payload = encode([HostLeaf(np.arange(4))])
    for wrong in (payload[:-1], payload + b"x", b"", b"PK\x03\x04" * 20):
        with pytest.raises(ValueError, match="these bytes"):
            decode(wrong)
