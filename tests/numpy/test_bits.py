"""Bits against NumPy."""

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


def test_invalid_dtypes_and_bit_orders_are_refused() -> None:
    with pytest.raises(DtypeError):
        fnp.packbits(np.ones(3))
    with pytest.raises(DtypeError):
        fnp.unpackbits(np.ones(3, int))
    with pytest.raises(ArgumentError, match="bitorder"):
        fnp.packbits(BITS, bitorder="middle")


I = np.array([-8, 0, 3, 12], np.int32)  # noqa: E741


J = np.array([3, 1, 3, 2], np.int32)


@pytest.mark.parametrize("name", ("bitwise_and", "bitwise_or", "bitwise_xor"))
def test_bits(name: str) -> None:
    check(name, I, J)
    check(name, I > 0, J > 2, compiled=False)
    check(name, I.astype(np.uint8), J.astype(np.uint8), compiled=False)


def test_shifts() -> None:
    check("left_shift", I, J)
    check("right_shift", I, J)
    check("right_shift", I.astype(np.uint8), J.astype(np.uint8))
    assert (fnp.asarray([1, -1]) << 40).tolist() == [0, 0]
    assert (fnp.asarray([1, -1]) >> 40).tolist() == [0, -1]


def test_counting_ones() -> None:
    check("bitwise_count", I)
    assert fnp.bitwise_count(I).dtype == np.uint8


@pytest.mark.parametrize("name", ("bitwise_and", "bitwise_left_shift"))
def test_floats_have_no_bits(name: str) -> None:
    with pytest.raises(DtypeError, match=rf"{name}: takes integers and bools, got f32"):
        getattr(fnp, name)(np.ones(2), np.ones(2))


def test_bitwise_count_of_floats() -> None:
    with pytest.raises(DtypeError, match="bitwise_count"):
        fnp.bitwise_count(np.ones(2))
