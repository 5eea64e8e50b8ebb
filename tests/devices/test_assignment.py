"""XLA's buffer assignment, read from its bytes."""

from __future__ import annotations

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow.devices.assignment import assigned_buffers


def test_buffers_of_a_program() -> None:
    def f(x):  # type: ignore[no-untyped-def]
        return fnp.sort(x * 2.0), fnp.sum(x @ x)

    compiled = fxflow.jit(f).lower(np.ones((32, 32), "f4")).compile()
    found = compiled.program.executable.assigned_buffers()
    (argument,) = (b for b in found if b.kind == "argument")
    assert (argument.nbytes, argument.parameter, argument.type) == (
        4096,
        0,
        "f32[32,32]",
    )
    assert {b.nbytes for b in found if b.kind == "result"} >= {4096, 4}
    sizes = compiled.memory_analysis()
    temporary = [b for b in found if b.kind == "temporary"]
    assert all(b.offset + b.nbytes <= sizes["temp_size_in_bytes"] for b in temporary)
    text = compiled.as_text()
    assert all(b.instruction in text and b.computation in text for b in found)


def test_nothing_assigned() -> None:
    assert assigned_buffers(b"", b"") == []
