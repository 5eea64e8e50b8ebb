"""Writing LLVM's IR."""

from __future__ import annotations

import numpy as np
import pytest

from fxflow.core.arrays import dtypes
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.llvm_writer import (
    Writer,
    is_half,
    literal,
    memory_type,
    register_type,
)


def test_sums_and_products_of_known_numbers_need_no_instructions() -> None:
    w = Writer()
    assert w.sum(1, "2", 3) == "6"
    assert w.sum("%a", 0) == "%a"
    assert w.times(3, "4") == "12"
    assert w.times("%a", 0) == w.times("0", "%a") == "0"
    assert w.times("1", "%a") == w.times("%a", 1) == "%a"
    assert w.lines == []
    assert w.sum("%a", "%b", 2) == "%r2"
    assert w.lines == ["  %r1 = add i64 %a, %b", "  %r2 = add i64 %r1, 2"]


def test_a_loop_of_one_round_is_left_out() -> None:
    w = Writer()
    with w.loops((1, 4, 1)) as index:
        assert [i == "0" for i in index] == [True, False, True]
    assert w.text().count("phi i64") == 1
    with pytest.raises(UnsupportedError, match="no rounds"), w.loop(0):
        pass


def test_loops_of_an_unknown_number_of_rounds_may_be_left_out() -> None:
    w = Writer()
    with w.loop("%n"):
        pass
    assert "icmp sgt i64 %n, 0" in w.text()


def test_variables_stand_at_the_start() -> None:
    w = Writer()
    w.do("ret void")
    slot = w.slot("float")
    assert w.text() == f"entry:\n  {slot} = alloca float\n  ret void"


@pytest.mark.parametrize(
    ("dtype", "memory", "register"),
    [
        ("float32", "float", "float"),
        ("float64", "double", "double"),
        ("bfloat16", "i16", "float"),
        ("float16", "half", "float"),
        ("bool", "i8", "i1"),
        ("uint8", "i8", "i8"),
        ("int64", "i64", "i64"),
    ],
)
def test_types(dtype: str, memory: str, register: str) -> None:
    kind = _dtype(dtype)
    assert memory_type(kind) == memory
    assert register_type(kind) == register
    assert is_half(kind) == (dtype in ("bfloat16", "float16"))


def _dtype(name: str) -> np.dtype[np.generic]:
    return np.dtype(dtypes.bfloat16 if name == "bfloat16" else name)


@pytest.mark.parametrize("dtype", ["complex64", "int4", "float8_e4m3fn"])
def test_other_types_are_unknown(dtype: str) -> None:
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    with pytest.raises(UnsupportedError, match=dtype):
        memory_type(kind)


def test_constants() -> None:
    f32 = np.dtype(np.float32)
    assert literal(0.1, f32) == "0x3FB99999A0000000"  # rounded to float32
    assert literal(-np.inf, f32) == "0xFFF0000000000000"
    assert literal(True, np.dtype(bool)) == "true"
    assert literal(-3, np.dtype(np.int8)) == "-3"
