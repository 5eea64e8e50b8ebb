"""Packing of bits against NumPy."""

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError
from tests.numpy.oracle import check

RNG = np.random.default_rng(0)
BITS = RNG.integers(0, 2, (3, 5, 11)).astype(np.uint8)
BYTES = RNG.integers(0, 256, (3, 5), dtype=np.uint8)


@pytest.mark.parametrize("order", ["big", "little"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_pack(order: str, axis: int | None) -> None:
    check("packbits", BITS, axis=axis, bitorder=order)
    check("packbits", BITS.astype(bool), axis=axis, bitorder=order)
    check("packbits", BITS.astype(np.int32) * 5, axis=axis, bitorder=order)


@pytest.mark.parametrize("order", ["big", "little"])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("count", [None, 3, 30, -2, 200])
def test_unpack(order: str, axis: int | None, count: int | None) -> None:
    check("unpackbits", BYTES, axis=axis, count=count, bitorder=order)


def test_mistakes() -> None:
    with pytest.raises(DtypeError):
        fnp.packbits(np.ones(3))
    with pytest.raises(DtypeError):
        fnp.unpackbits(np.ones(3, int))
    with pytest.raises(ArgumentError, match="bitorder"):
        fnp.packbits(BITS, bitorder="middle")
