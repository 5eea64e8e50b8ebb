"""Operations on bits."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.errors import DtypeError


@pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])
def test_shifts_beyond_the_width(run) -> None:
    assert int(run(lax.shift_left)(np.int32(1), np.int32(40))) == 0
    assert int(run(lax.shift_right_arithmetic)(np.int32(-8), np.int32(40))) == -1
    assert int(run(lax.shift_right_logical)(np.int32(-8), np.int32(-1))) == 0
    assert int(run(lax.shift_right_arithmetic)(np.uint8(0x80), np.uint8(1))) == 0xC0


def test_counts() -> None:
    assert int(lax.population_count(np.int8(-1))) == 8
    values = np.array([0, 1, 2, 2**31 - 1, -1], "i4")
    assert np.asarray(lax.clz(values)).tolist() == [32, 31, 30, 1, 0]


def test_bools_are_combined_logically() -> None:
    assert not bool(lax.bitwise_not(True))
    x, y = np.array([True, True, False]), np.array([True, False, False])
    assert np.asarray(lax.bitwise_xor(x, y)).tolist() == [False, True, False]


def test_floats_and_bools_are_refused() -> None:
    with pytest.raises(DtypeError, match=r"and: takes bool, signed.*got f32\[\]"):
        lax.bitwise_and(np.float32(1), np.float32(1))
    with pytest.raises(DtypeError, match=r"population_count: takes .*got bool\[\]"):
        lax.population_count(True)
    with pytest.raises(DtypeError, match=r"shift_left: .*got bool"):
        lax.shift_left(np.array(True), np.array(True))
