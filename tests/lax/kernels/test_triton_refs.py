"""References in Triton's IR: parts of blocks, in memory and in registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.lax.kernels import triton
from fxflow.lax.kernels.errors import UnsupportedError
from tests.lax.kernels.triton_samples import module_of, same

N = np.random.default_rng(2).integers(-9, 9, (5, 7)).astype(np.int32)


def parts(x: Any, i: Any, o: Any) -> None:
    """Reads and writes parts of many kinds."""
    at = i[0, 0] % 7
    o[...] = x[...]
    o[1] = x[at - 2] + o[0]
    o[:, -1] = x[:, 2]
    o[kernels.ds(at - 1, 3), 2:4] = x[kernels.ds(at, 3), kernels.ds(at - 3, 2)]
    o[::2, at % 3] += 5
    o[at, :] = x[0]
    o[:, kernels.ds(at, 4)] += x[:, kernels.ds(3, 4)]


@pytest.mark.parametrize("first", range(7))
@pytest.mark.parametrize("memory", [True, False])
def test_parts(first: int, memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if memory:
        monkeypatch.setattr(triton, "_REGISTERS", 1)
    i = N.copy()
    i[0, 0] = first
    f = kernels.call(lambda *refs: parts(*refs), fnp.zeros((5, 7), "int32"))
    same(f, N, i)
    assert ("gpu.barrier" in module_of(f, N, i).text) == memory


def test_rows_by_an_array() -> None:
    def body(x: Any, i: Any, o: Any) -> None:
        o[...] = x[i[...]] + x[i[0, 1], 2] + x[i[...], i[1, 1]][:, :, None]

    same(kernels.call(body, kernels.like(N, shape=(5, 2, 7))), N, abs(N[:, :2]) % 5 - 2)


def test_a_ragged_end_reads_zeros() -> None:
    @kernels.kernel("n:2 d:3 -> n:2 d:3", out=lambda x: x)
    def plus(x: Any, o: Any) -> None:
        o[...] = x[...] + fnp.sum(x[...] + 1, 1, keepdims=True)

    same(plus, N)


def test_writes_by_an_array_are_not_compiled() -> None:
    def body(x: Any, i: Any, o: Any) -> None:
        o[i[...]] = x[...]

    f = kernels.call(body, N)
    with pytest.raises(UnsupportedError, match="a write by an array of indices"):
        module_of(f, N, np.arange(5))
