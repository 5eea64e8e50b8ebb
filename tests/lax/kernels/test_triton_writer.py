"""Text of Triton's IR."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.triton_writer import (
    BOOL,
    F32,
    MOST,
    Tile,
    Writer,
    element_type,
    literal,
    memory_type,
)


def test_lengths_are_padded_to_powers_of_two() -> None:
    assert Writer().padded((1, 2, 3, 5)) == (1, 2, 4, 8)
    assert Writer(16).padded((1, 2, 17)) == (1, 16, 32)
    with pytest.raises(UnsupportedError, match="an empty array"):
        Writer().padded((3, 0))
    with pytest.raises(UnsupportedError, match="131,072 elements in one program"):
        Writer().padded((MOST + 1,))


def test_types_of_numbers() -> None:
    assert (
        element_type(np.uint16) == "i16" and element_type(ml_dtypes.bfloat16) == "bf16"
    )
    assert (element_type(BOOL), memory_type(BOOL)) == ("i1", "i8")
    for dtype in (np.complex64, ml_dtypes.float8_e4m3fn, ml_dtypes.int4):
        with pytest.raises(UnsupportedError, match=f"the dtype {np.dtype(dtype).name}"):
            element_type(dtype)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (1.0, np.float32, "0x3F800000"),
        (-np.inf, np.float16, "0xFC00"),
        (np.nan, ml_dtypes.bfloat16, "0x7FC0"),
        (True, np.bool_, "true"),
        (255, np.uint8, "-1"),
        (-3, np.int64, "-3"),
    ],
)
def test_constants(value: object, dtype: object, text: str) -> None:
    assert literal(value, dtype) == text


def test_an_operation_is_written_once_where_it_is_known() -> None:
    w = Writer()
    one = w.number(1)
    with w.region() as lines:
        inner = w.op(f"arith.addi {one}, {one} : i32")
        assert w.op(f"arith.addi {one}, {one} : i32") == inner
    w.nested(lines)
    # What a region computes is not known outside of it; reads are never the same.
    assert w.op(f"arith.addi {one}, {one} : i32") != inner
    assert w.op("tt.load %p : !tt.ptr<f32>") != w.op("tt.load %p : !tt.ptr<f32>")


def test_only_padding_is_masked() -> None:
    w = Writer()
    whole = Tile("%x", (4, 8), F32)
    assert w.inside((4, 8)) == "" and w.masked(whole, [0, 1], 0) == "%x"
    assert w.masked(Tile("%x", (4, 5), F32), [0], 0) == "%x"
    assert w.masked(Tile("%x", (4, 5), F32), [1], 0) != "%x"
    assert "arith.select" in w.text()
