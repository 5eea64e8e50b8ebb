"""Reports on Pallas, as programs for `fxflow.compat.jax.experimental.pallas`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fxflow.compat import jax
from fxflow.compat.jax import numpy as jnp
from fxflow.compat.jax.experimental import pallas as pl
from fxflow.compat.jax.experimental.pallas import triton as plgpu
from tests.reports.modes import check_both

F32 = jnp.float32


def like(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, F32)


@pytest.mark.parametrize("blocks", [2, 3, 5])
def test_sums_over_ragged_blocks_are_numbers(blocks: int) -> None:
    """From three blocks on the interpreter gave NaN (jax#38497, jax#31395)."""
    size = 4 * blocks - 1

    def total(x: Any, o: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            o[...] = jnp.zeros_like(o)

        o[...] += x[...].sum()

    call = pl.pallas_call(
        total,
        like(1),
        grid=blocks,
        in_specs=[pl.BlockSpec((4,), lambda i: (i,))],
        out_specs=pl.BlockSpec((1,), lambda i: (0,)),
        interpret=True,
    )
    check_both(call, [size], jnp.ones(size))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_programs_that_share_a_block_add_to_it(axis: int) -> None:
    """Sums over another than the last axis of the grid were wrong (jax#23099)."""
    index = lambda *ids: tuple(i for g, i in enumerate(ids) if g != axis)

    def total(x: Any, o: Any) -> None:
        o[...] += x[...].reshape(o.shape)

    call = pl.pallas_call(
        total,
        like(*np.delete((2, 3, 4), axis)),
        grid=(2, 3, 4),
        in_specs=[pl.BlockSpec((1, 1, 1), lambda *ids: ids)],
        out_specs=pl.BlockSpec((1, 1), index),
    )
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    check_both(call, x.sum(axis), x)


def test_atomic_adds_to_one_element_are_all_counted() -> None:
    """The interpreter kept the last one of a block (jax#24117)."""

    def count(index: Any, o: Any) -> None:
        plgpu.atomic_add(o, (index[...],), 1.0)

    call = pl.pallas_call(
        count,
        like(3),
        grid=2,
        in_specs=[pl.BlockSpec((4,), lambda i: (i,))],
        out_specs=pl.BlockSpec((3,), lambda i: (0,)),
        interpret=True,
    )
    check_both(call, [5, 0, 3], jnp.array([0, 0, 0, 2, 2, 0, 0, 2], jnp.int32))


def test_the_number_of_programs_is_that_of_the_call() -> None:
    """A kernel called with two grids had the first one's (jax#40847)."""

    @jax.jit
    def number() -> Any:
        return jnp.float32(pl.num_programs(0))

    def write(o: Any) -> None:
        o[...] = jnp.full(o.shape, number())

    def call(n: int) -> Any:
        spec = pl.BlockSpec((1,), lambda i: (i,))
        return pl.pallas_call(write, like(n), grid=n, out_specs=spec)()

    np.testing.assert_array_equal(call(2), [2, 2])
    np.testing.assert_array_equal(call(3), [3, 3, 3])


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_one_kernel_has_derivatives_of_both_modes(mode: Any) -> None:
    """A gradient raised an AssertionError (jax#19146, jax#22197, kfac-jax#244)."""

    def square(x: Any, o: Any) -> None:
        o[...] = x[...] ** 2

    spec = pl.BlockSpec((2,), lambda i: (i,))
    call = pl.pallas_call(square, like(4), grid=2, in_specs=[spec], out_specs=spec)
    x = jnp.arange(4.0)
    np.testing.assert_array_equal(mode(call)(x), np.diag(2 * np.arange(4.0)))


def test_prints_of_a_compiled_kernel_appear(capfd: Any) -> None:
    """Nothing was printed (jax#25192)."""

    def show(x: Any, o: Any) -> None:
        pl.debug_print("program {}", pl.program_id(0))
        o[...] = x[...]

    spec = pl.BlockSpec((1,), lambda i: (i,))
    call = pl.pallas_call(show, like(2), grid=2, in_specs=[spec], out_specs=spec)
    jax.block_until_ready(jax.jit(call)(jnp.ones(2)))
    jax.effects_barrier()
    out = capfd.readouterr().out
    assert "program 0" in out and "program 1" in out


def test_a_slice_over_the_end_reads_zeros_and_drops_what_it_writes() -> None:
    """`pl.ds` over a ragged end read, or moved to, other elements (jax#23532)."""

    def scale(x: Any, o: Any) -> None:
        @pl.loop(0, pl.cdiv(x.shape[0], 4))
        def _(i: Any) -> None:
            part = pl.ds(i * 4, 4)
            o[part] = x[part] * 2 + 1

    x = np.arange(10, dtype=np.float32)
    check_both(pl.pallas_call(scale, like(10)), 2 * x + 1, x)


def test_rows_are_scattered_and_gathered_within_a_kernel() -> None:
    """Kernels had neither operation (jax#31876, jax#39366)."""

    def move(x: Any, index: Any, o: Any) -> None:
        rows = x[...][index[...]]
        o[...] = jnp.zeros(o.shape).at[index[...]].add(rows)

    x, index = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([3, 1, 3])
    expected = np.zeros((4, 2), np.float32)
    np.add.at(expected, index, x[index])
    check_both(
        pl.pallas_call(move, like(4, 2)), expected, x, jnp.array(index, jnp.int32)
    )


@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 1, 1), (17, 9, 2)])
def test_products_of_any_size(shape: tuple[int, int, int]) -> None:
    """Sizes below 16, or no powers of two, failed deep inside (jax#20051, #19222)."""
    m, k, n = shape

    def product(a: Any, b: Any, o: Any) -> None:
        o[...] = plgpu.dot(a[...], b[...])

    a = np.arange(m * k, dtype=np.float32).reshape(m, k)
    b = np.arange(k * n, dtype=np.float32).reshape(k, n)
    check_both(pl.pallas_call(product, like(m, n)), a @ b, a, b)


def test_a_thousand_programs_are_not_a_loop_over_whole_arrays() -> None:
    """Each program of the interpreter copied all arrays (jax#19350, jax#20154)."""

    def add(x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] + y[...]

    spec = pl.BlockSpec((16,), lambda i: (i,))
    call = pl.pallas_call(
        add,
        like(1 << 14),
        grid=1 << 10,
        in_specs=[spec, spec],
        out_specs=spec,
        interpret=True,
    )
    x = jnp.ones(1 << 14)
    assert "while" not in jax.jit(call).lower(x, x).as_text()
    check_both(call, np.full(1 << 14, 2), x, x)


def test_an_operand_that_a_result_replaces_is_not_changed() -> None:
    """Interpreted, the operand had the result's contents (jax#33260)."""

    def add_one(x: Any, o: Any) -> None:
        o[...] = x[...] + 1

    call = pl.pallas_call(add_one, like(4), input_output_aliases={0: 0})
    x = jnp.arange(4.0)
    check_both(call, [1, 2, 3, 4], x)
    np.testing.assert_array_equal(x, [0, 1, 2, 3])
