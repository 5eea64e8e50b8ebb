"""Memory in huge pages: what is written to it is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays import Aval
from fxflow.devices.native import vector_lanes
from fxflow.lax.kernels import pages


def filled(count: int) -> Any:
    """Returns two arrays that a loop has written into the memory."""
    avals = [Aval((count, 4), np.dtype(t)) for t in (np.float32, np.int32)]

    def some(i: Any, held: Any) -> Any:
        row = fnp.full((1, 4), i)
        return [
            lax.dynamic_update_slice_in_dim(x, row.astype(x.dtype), i, 0) for x in held
        ]

    rooms = [pages.room(aval, number) for number, aval in enumerate(avals)]
    return lax.fori_loop(0, count, some, rooms)


@pytest.mark.parametrize("count", [5, 3000])
def test_what_is_written_is_there(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "LEAST", 0)
    program = fxflow.jit(lambda: filled(count)).lower()
    called = "fxflow_pages_" in program.as_text()
    assert called == (pages.sys.platform == "linux" and vector_lanes() > 0)
    assert not program.compile().copies()
    for found in program.compile()():
        np.testing.assert_array_equal(found, np.arange(count)[:, None] + [0] * 4)


def test_small_arrays_are_zeros() -> None:
    aval = Aval((3,), np.dtype(np.float32))
    program = fxflow.jit(lambda: pages.room(aval)).lower()
    assert "custom_call" not in program.as_text()
    np.testing.assert_array_equal(program.compile()(), np.zeros(3))
