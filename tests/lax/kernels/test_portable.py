"""Kernels as operations on arrays: against the programs run one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.lax.kernels import portable
from fxflow.lax.kernels.blocks import Block
from fxflow.lax.kernels.host import run_programs
from fxflow.lax.kernels.portable import Division
from tests.lax.kernels.samples import params_of


@given(st.data())
def test_an_array_is_divided_and_joined(data: st.DataObject) -> None:
    ndim = data.draw(st.integers(1, 3))
    shape = data.draw(st.tuples(*[st.integers(1, 5)] * ndim))
    lengths = data.draw(st.tuples(*[st.integers(1, 3)] * ndim))
    axes = data.draw(st.permutations(range(ndim)))
    grid = [0] * ndim
    for n, length, g in zip(shape, lengths, axes, strict=True):
        grid[g] = -(-n // length)
    mapped = data.draw(st.sets(st.integers(0, ndim - 1)))
    division = Division(Block(lengths, tuple(axes)), shape, grid, sorted(mapped))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    divided = division.divide(x)
    assert divided.shape == (*(grid[g] for g in sorted(mapped)), *division.inner)
    np.testing.assert_array_equal(division.join(divided), x)


@pytest.mark.parametrize("kinds", ["ppp", "pps", "psp", "pss", "ppa", "paa", "psa"])
@pytest.mark.parametrize("limit", [0, 1 << 30])
def test_kinds_of_axes(kinds: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectorized, or in a loop where memory is short; results lack what is not `p`."""
    monkeypatch.setattr(portable, "MAX_BYTES", limit)
    names = {"p": "parallel", "s": "sum", "a": "arbitrary"}
    kept = [i for i, k in enumerate(kinds) if k == "p"]

    def body(x: Any, o: Any) -> None:
        o[...] += fnp.sum(
            x[...] * (1 + kernels.program_id(1)),
            axis=tuple(i for i in range(3) if i not in kept),
        )

    x = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    shape = tuple(x.shape[i] for i in kept)

    def f(x: Any) -> Any:
        return kernels.call(
            body,
            kernels.like(x, shape=shape),
            grid=(2, 2, 3),
            kinds=[names[k] for k in kinds],
            in_specs=[kernels.BlockSpec((2, 2, 2), lambda i, j, k: (i, j, k))],
            out_specs=kernels.BlockSpec(
                (2,) * len(kept), lambda *ids: tuple(ids[i] for i in kept)
            ),
        )(x)

    weight = np.array([1, 1, 2, 2])[None, :, None]
    lost = tuple(i for i in range(3) if i not in kept)
    expected = (x * weight).sum(lost)
    np.testing.assert_allclose(f(x), expected, rtol=1e-5, atol=1e-5)
    (oracle,) = run_programs(params_of(f, x), [x])
    np.testing.assert_allclose(oracle, expected, rtol=1e-5, atol=1e-5)
    slope = fxflow.grad(lambda x: fnp.sum(fnp.sin(f(x))))(fnp.asarray(x))
    wanted = np.cos(expected).reshape(
        [n if i in kept else 1 for i, n in enumerate(x.shape)]
    )
    np.testing.assert_allclose(slope, wanted * weight * np.ones_like(x), rtol=1e-4,
                               atol=1e-4)  # fmt: skip


def test_a_grid_that_covers_less_than_an_array() -> None:
    def body(x: Any, o: Any) -> None:
        o[...] = x[...] + 1

    spec = kernels.BlockSpec((2,), lambda i: (i,))
    f = kernels.call(body, fnp.ones(7), grid=2, in_specs=[spec], out_specs=spec)
    np.testing.assert_array_equal(f(fnp.ones(7)), [2, 2, 2, 2, 0, 0, 0])


def test_programs_of_many_blocks_make_no_large_program() -> None:
    def body(x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] + y[...]

    spec = kernels.BlockSpec((1024,), lambda i: (i,))
    x = fnp.ones(1 << 20)
    f = kernels.call(body, x, grid=1024, in_specs=[spec] * 2, out_specs=spec)
    text = fxflow.jit(f).lower(x, x).as_text()
    assert len(text.splitlines()) < 60
