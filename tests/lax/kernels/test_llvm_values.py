"""Values of the compiler of kernels: addresses, memory, what is read."""

from __future__ import annotations

import numpy as np

from fxflow.lax.kernels.llvm_values import (
    Arena,
    Buffer,
    Lazy,
    computed,
    constant,
    row_major,
)
from fxflow.lax.kernels.llvm_writer import Writer

F32 = np.dtype(np.float32)


def test_memory_is_divided_into_aligned_arrays() -> None:
    arena = Arena()
    first, second = arena.buffer((3, 5), F32), arena.buffer((), F32)
    assert (first.pointer, second.pointer) == ("%b0", "%b1")
    assert arena.starts == [0, 64]
    assert arena.size == 128
    assert first.strides == row_major((3, 5)) == [5, 1]
    assert first.is_contiguous
    assert not Buffer("%p", (3, 5), (1, 3), F32).is_contiguous


def test_addresses_of_known_elements_need_no_instructions() -> None:
    w = Writer()
    buffer = Buffer("%p", (3, 5), (5, 1), F32)
    assert buffer.address(w, ["0", "0"]) == "%p"
    assert w.lines == []
    buffer.address(w, ["2", "%i"])
    assert w.lines == [
        "  %r1 = add i64 %i, 10",
        "  %r2 = getelementptr inbounds float, ptr %p, i64 %r1",
    ]


def test_what_a_value_reads() -> None:
    part = Buffer("%p", (5,), (1,), F32, "%whole")
    assert part.roots == part.aligned == {"%whole"}
    lazy = Lazy((5,), F32, lambda w, index: "%x", 1, other=frozenset({"%q"}))
    assert lazy.roots == {"%q"}
    assert constant(F32, "%x").roots == frozenset()


def test_loops_compute_all_elements() -> None:
    w = Writer()
    target = Buffer("%p", (2, 3), (3, 1), F32)
    computed(w, constant(F32, "0.0", (2, 3)), target)
    text = w.text()
    assert text.count("phi i64") == 2
    assert text.count("store float 0.0") == 1
