"""`jax.experimental.pallas`: kernels on blocks, compiled on the CPU."""

import functools
import subprocess
import sys

import numpy as np
import pytest

from fxflow import kernels
from fxflow.compat import jax
from fxflow.compat.jax import lax
from fxflow.compat.jax import numpy as jnp
from fxflow.compat.jax.experimental import checkify
from fxflow.compat.jax.experimental import pallas as pl
from fxflow.compat.jax.experimental.pallas import tpu as pltpu
from fxflow.compat.jax.experimental.pallas import triton as plgpu

F32 = jnp.float32
HBM = pl.BlockSpec(memory_space=pl.ANY)


def like(*shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


def rows(n, columns):
    return pl.BlockSpec((n, columns), lambda i: (i, 0))


def test_importing_the_package_does_not_load_pallas():
    code = (
        "import sys, fxflow.compat.jax.experimental\n"
        "print(any('experimental.pallas' in m for m in sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert out.stdout.strip() == "False", out.stderr


def test_a_product_in_blocks_with_an_accumulator_is_compiled():
    def body(a, b, o, total):
        @pl.when(pl.program_id(2) == 0)
        def _():
            total[...] = jnp.zeros_like(total)

        total[...] += jnp.dot(a[...], b[...])

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o[...] = total[...].astype(o.dtype)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=0,
        grid=(2, 3, 2),
        in_specs=[
            pl.BlockSpec((8, 8), lambda i, j, k: (i, k)),
            pl.BlockSpec((8, 8), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((8, 8), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((8, 8), F32)],
    )
    semantics = ("parallel", "parallel", "arbitrary")
    product = pl.pallas_call(
        body,
        like(16, 24),
        grid_spec=spec,
        compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
    )
    a, b = jnp.arange(256.0).reshape(16, 16) / 256, jnp.ones((16, 24)) / 2
    np.testing.assert_allclose(jax.jit(product)(a, b), a @ b, rtol=1e-6)
    mapped = jax.vmap(product, (0, None))(jnp.stack([a, 2 * a]), b)
    np.testing.assert_allclose(mapped[1], 2 * a @ b, rtol=1e-6)
    slope = jax.grad(lambda a: product(a, b).sum())(a)
    np.testing.assert_allclose(slope, 12 * np.ones((16, 16)), rtol=1e-6)
    text = kernels.explain(product, a, b)
    assert "2 parallel, 3 parallel, 2 arbitrary" in text
    pytest.importorskip("llvmlite")
    assert "on a CPU: compiled" in text


def test_a_kernel_may_capture_arrays():
    table = jnp.array([3.0, 5.0])

    def body(x, o):
        o[...] = x[...] * table[pl.program_id(0)]

    spec = pl.BlockSpec((2,), lambda i: i)
    call = pl.pallas_call(body, like(4), grid=2, in_specs=[spec], out_specs=spec)
    np.testing.assert_array_equal(call(jnp.ones(4)), [3, 3, 5, 5])


def test_trees_of_operands_results_and_scratch_by_name():
    def body(xs, a, b, *, total):
        total[...] = xs["x"][...] + xs["y"][...]
        a[...] = total[...]
        b["twice"][...] = 2 * total[...]

    call = pl.pallas_call(
        body,
        (like(4), {"twice": like(4)}),
        scratch_shapes={"total": pltpu.VMEM((4,), F32)},
    )
    a, b = call({"x": jnp.ones(4), "y": jnp.arange(4.0)})
    np.testing.assert_array_equal(a, [1, 2, 3, 4])
    np.testing.assert_array_equal(b["twice"], [2, 4, 6, 8])


def test_results_in_a_list_are_a_tuple_and_may_be_none():
    assert pl.pallas_call(lambda x: None, ())(jnp.ones(2)) == ()
    found = pl.pallas_call(lambda x, o: None, [like(2)])(jnp.ones(2))
    assert isinstance(found, tuple)
    np.testing.assert_array_equal(found[0], [0, 0])


def test_prefetched_scalars_choose_blocks():
    def body(order, x, o):
        o[...] = x[...] + order[pl.program_id(0)].astype(F32)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(3,),
        in_specs=[pl.BlockSpec((1, 4), lambda i, order: (order[i], 0))],
        out_specs=pl.BlockSpec((1, 4), lambda i, order: (i, 0)),
    )
    call = pl.pallas_call(body, like(3, 4), grid_spec=spec)
    order, x = jnp.array([2, 0, 1], jnp.int32), jnp.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(call(order, x), x[order] + order[:, None])


def test_prefetched_scalars_choose_the_block_that_is_written():
    def body(order, x, o):
        o[...] = x[...]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(3,),
        in_specs=[pl.BlockSpec((1, 4), lambda i, order: (i, 0))],
        out_specs=pl.BlockSpec((1, 4), lambda i, order: (order[i], 0)),
    )
    call = pl.pallas_call(body, like(3, 4), grid_spec=spec)
    x = jnp.arange(12.0).reshape(3, 4)
    found = call(jnp.array([2, 0, 1], jnp.int32), x)
    np.testing.assert_array_equal(found, np.asarray(x)[[1, 2, 0]])


def test_elements_start_anywhere_and_are_padded():
    def body(x, o):
        o[...] = x[pl.ds(0, 8)] + x[pl.ds(4, 8)]

    window = pl.BlockSpec((pl.Element(12, (4, 4)), pl.Squeezed()), lambda i: (i * 8, 1))
    call = pl.pallas_call(
        body,
        like(16),
        grid=2,
        in_specs=[window],
        out_specs=pl.BlockSpec((8,), lambda i: i),
    )
    x = np.arange(32, dtype=np.float32).reshape(16, 2)
    padded = np.pad(x[:, 1], (4, 4))
    np.testing.assert_array_equal(call(x), padded[:16] + padded[4:20])


def test_a_bounded_slice_starts_where_the_index_map_says():
    def body(starts, x, o):
        o[...] = x[...]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(2,),
        in_specs=[
            pl.BlockSpec(
                (pl.BoundedSlice(4),), lambda i, starts: (pl.ds(starts[i], 4),)
            )
        ],
        out_specs=pl.BlockSpec((4,), lambda i, starts: (i,)),
    )
    call = pl.pallas_call(body, like(8), grid_spec=spec)
    found = call(jnp.array([3, 1], jnp.int32), jnp.arange(8.0))
    np.testing.assert_array_equal(found, [3, 4, 5, 6, 1, 2, 3, 4])
    back = pl.BlockSpec((pl.BoundedSlice(4),), lambda i: (pl.ds(i, 4),))
    wrong = pl.pallas_call(lambda o: None, like(8), grid=2, out_specs=back)
    with pytest.raises(
        NotImplementedError, match="a result cannot have a BoundedSlice"
    ):
        wrong()


def test_an_aliased_result_starts_with_the_operand():
    def body(x, o):
        o[...] += 1

    call = pl.pallas_call(body, like(8), grid=(3,), input_output_aliases={0: 0})
    x = jnp.arange(8.0)
    np.testing.assert_array_equal(call(x), x + 3)
    np.testing.assert_array_equal(x, np.arange(8))


def test_whole_aliased_arrays_are_one_reference():
    def body(x, o):
        o[0] = 5.0
        o[1] = x[0]

    call = pl.pallas_call(
        body, like(2), in_specs=[HBM], out_specs=HBM, input_output_aliases={0: 0}
    )
    np.testing.assert_array_equal(call(jnp.ones(2)), [5, 5])


def test_grids_of_a_computed_length():
    def body(x, o):
        o[...] = x[...] + pl.num_programs(0).astype(F32)

    @jax.jit
    def run(n, x):
        spec = pl.BlockSpec((2,), lambda i: i)
        return pl.pallas_call(
            body, like(8), grid=(n,), in_specs=[spec], out_specs=spec
        )(x)

    np.testing.assert_array_equal(
        run(jnp.int32(3), jnp.ones(8)), [4, 4, 4, 4, 4, 4, 0, 0]
    )


def test_copies_are_done_when_they_start_and_counted():
    def body(x, o, left, buffer, sems):
        @pl.loop(0, 4)
        def _(i):
            slot = lax.rem(i, 2)
            part = pl.ds(i * 2, 2)
            copy = pltpu.make_async_copy(x.at[part], buffer.at[slot], sems.at[slot])
            copy.start()
            copy.wait()
            pltpu.sync_copy(buffer.at[slot], o.at[part, :])

        pltpu.async_copy(x.at[0], o.at[0], sems.at[1], add=True)
        left[...] = jnp.stack([pl.semaphore_read(sems.at[k]) for k in range(2)])

    call = pl.pallas_call(
        body,
        (like(8, 4), like(2, dtype=jnp.int32)),
        in_specs=[HBM],
        out_specs=(HBM, pl.BlockSpec(memory_space=pltpu.SMEM)),
        scratch_shapes=[pltpu.VMEM((2, 2, 4), F32), pltpu.SemaphoreType.DMA((2,))],
    )
    x = jnp.arange(32.0).reshape(8, 4)
    copied, left = call(x)
    np.testing.assert_array_equal(copied, x.at[0].multiply(2))
    np.testing.assert_array_equal(left, [0, 1])


def test_copies_of_other_shapes_and_dtypes_are_refused():
    call = pl.pallas_call(
        lambda x, o: pltpu.sync_copy(x.at[0], o), like(2), out_specs=HBM
    )
    with pytest.raises(ValueError, match=r"source has the shape \(3,\).* \(2,\)"):
        call(jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="dtype int32, but the destination float32"):
        call(jnp.ones((2, 2), jnp.int32))


def test_emit_pipeline_is_a_loop_over_blocks():
    def inner(x, o, total):
        total[...] += x[...]
        o[...] = x[...] * 2 + pl.program_id(0).astype(F32)

    def body(x, o, sums, total):
        total[...] = jnp.zeros_like(total)
        pipeline = pltpu.emit_pipeline(
            inner, grid=(4,), in_specs=[rows(2, 4)], out_specs=[rows(2, 4)]
        )
        pipeline(x, o, scratches=[total])
        sums[...] = total[...]

    call = pl.pallas_call(
        body,
        (like(8, 4), like(2, 4)),
        in_specs=[HBM],
        out_specs=(HBM, pl.BlockSpec()),
        scratch_shapes=[pltpu.VMEM((2, 4), F32)],
    )
    x = jnp.arange(32.0).reshape(8, 4)
    found, sums = call(x)
    np.testing.assert_array_equal(found, 2 * x + np.repeat(np.arange(4), 2)[:, None])
    np.testing.assert_array_equal(sums, np.asarray(x).reshape(4, 2, 4).sum(0))


def test_emit_pipeline_counts_its_references():
    spec = [rows(2, 4)]
    pipeline = pltpu.emit_pipeline(lambda x, o: None, grid=(4,), in_specs=spec)
    call = pl.pallas_call(lambda x, o: pipeline(x, o), like(8, 4))
    with pytest.raises(TypeError, match="2 references were given, but there are 1"):
        call(jnp.ones((8, 4)))


def test_scoped_references_and_semaphores():
    def body(x, o):
        def scope(part, sem, *, more):
            part[...] = x[...]
            more[...] = part[...] * 2
            pl.semaphore_signal(sem, 5)
            pl.semaphore_wait(sem, 2)
            o[...] = more[...] + pl.semaphore_read(sem).astype(F32)

        regular = pltpu.SemaphoreType.REGULAR
        pl.run_scoped(scope, pltpu.VMEM((4,), F32), regular, more=pltpu.VMEM((4,), F32))

    call = pl.pallas_call(body, like(4))
    np.testing.assert_array_equal(call(jnp.arange(4.0)), [3, 5, 7, 9])


def test_parts_of_parts_are_read_and_written():
    def body(x, o):
        o[...] = jnp.zeros_like(o)
        part = o.at[pl.ds(0, 8)].at[0].at[pl.ds(1, 4), pl.ds(0, 4)]
        part[...] = x[...]
        part[1] = 7.0

    found = pl.pallas_call(body, like(16, 8, 8))(jnp.ones((4, 4)))
    expected = np.zeros((16, 8, 8))
    expected[0, 1:5, :4] = 1
    expected[0, 2, :4] = 7
    np.testing.assert_array_equal(found, expected)


def test_references_of_other_dtypes_and_shapes():
    def body(x, o):
        flat = o.reshape(24)
        o[...] = x.bitcast(jnp.int32)[...]
        flat[3] = 7
        flat.at[pl.ds(4, 2)][...] = jnp.array([1, 2])

    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    found = np.asarray(pl.pallas_call(body, like(4, 6, dtype=jnp.int32))(x))
    expected = x.view(np.int32).copy()
    expected[0, 3:] = 7, 1, 2
    np.testing.assert_array_equal(found, expected)


def test_masks_of_triton():
    def body(x, o):
        at = pl.program_id(0) * 4 + jnp.arange(4)
        inside = at < x.shape[0]
        value = plgpu.load(x.at[at], mask=inside, other=-1.0)
        plgpu.store(o.at[at], value * 2, mask=inside)

    x = jnp.arange(6.0)
    np.testing.assert_array_equal(pl.pallas_call(body, x, grid=2)(x), x * 2)


@pytest.mark.parametrize(
    "atomic, expected",
    [
        (plgpu.atomic_add, [1, 7, 1, 5]),
        (plgpu.atomic_max, [1, 4, 1, 4]),
        (plgpu.atomic_min, [1, 1, 1, 1]),
    ],
)
def test_atomic_operations_count_each_element(atomic, expected):
    def body(index, value, o):
        o[...] = jnp.ones_like(o)
        atomic(o, (index[...],), value[...])

    index, value = jnp.array([1, 1, 3], jnp.int32), jnp.array([2.0, 4.0, 4.0])
    call = pl.pallas_call(body, like(4))
    np.testing.assert_array_equal(call(index, value), expected)


def test_atomic_exchange():
    def body(o, seen):
        o[...] = jnp.array([1, 2])
        seen[0] = plgpu.atomic_xchg(o, 0, 5)
        seen[1] = plgpu.atomic_cas(o.at[1], 2, 9)
        plgpu.atomic_cas(o.at[0], 2, 9)

    kind = like(2, dtype=jnp.int32)
    found, seen = pl.pallas_call(body, (kind, kind))()
    np.testing.assert_array_equal(found, [5, 9])
    np.testing.assert_array_equal(seen, [1, 2])


def test_products_of_integers_are_integers():
    def body(a, b, o):
        o[...] = plgpu.dot(a[...], b[...], trans_b=True)

    a = jnp.full((4, 16), 100, jnp.int8)
    found = pl.pallas_call(body, like(4, 4, dtype=jnp.int32))(a, a)
    np.testing.assert_array_equal(found, np.full((4, 4), 160_000))


def test_bits_and_rolls():
    x = jnp.arange(12, dtype=jnp.uint32).reshape(2, 6) * 65537
    halves = pltpu.bitcast(x, jnp.uint16)
    assert halves.shape == (4, 6)
    np.testing.assert_array_equal(halves[1], x[0] >> 16)
    np.testing.assert_array_equal(pltpu.bitcast(halves, jnp.uint32), x)
    found = pltpu.roll(x, 1, 1, stride=2, stride_axis=0)
    np.testing.assert_array_equal(found[0], np.roll(x[0], 1))
    np.testing.assert_array_equal(found[1], np.roll(x[1], 3))
    with pytest.raises(ValueError, match="must be non-negative"):
        pltpu.roll(x, -1, 1)


def test_narrow_numbers_in_wide_ones():
    xs = [jnp.arange(4.0), -jnp.arange(4.0)]
    packed = pltpu.pack_elementwise(xs, packed_dtype=jnp.bfloat16)
    for i, x in enumerate(xs):
        found = pltpu.unpack_elementwise(
            packed, index=i, packed_dtype=jnp.bfloat16, unpacked_dtype=F32
        )
        np.testing.assert_array_equal(found, x)
    with pytest.raises(ValueError, match="2 arrays of bfloat16 fit"):
        pltpu.pack_elementwise(xs[:1], packed_dtype=jnp.bfloat16)


def test_stochastic_rounding_goes_up_as_often_as_the_bits_say():
    x = jnp.full(4, 1 + 2**-9, F32)
    bits = jnp.array([0, 0x3FFF, 0xBFFF, 0xC000], jnp.uint32)
    found = pltpu.stochastic_round(x, bits, target_dtype=jnp.bfloat16)
    np.testing.assert_array_equal(found.astype(F32), [1, 1, 1, 1 + 2**-7])


def test_einshape():
    x = jnp.arange(12).reshape(2, 6)
    np.testing.assert_array_equal(
        pltpu.einshape("a(bc)->b(ac)", x, b=3),
        np.asarray(x).reshape(2, 3, 2).transpose(1, 0, 2).reshape(3, 4),
    )
    with pytest.raises(TypeError, match=r"give sizes of b, c, whose product is 6"):
        pltpu.einshape("a(bc)->abc", x)


def test_table_of_tpus():
    assert pltpu.get_tpu_info().chip_version is pltpu.ChipVersion.TPU_V5E
    info = pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V5P, 2)
    assert info.is_megacore and info.vmem_capacity_bytes == 67108864
    assert info.get_sublane_tiling(jnp.bfloat16) == 16
    with pytest.raises(TypeError, match="a device of TPU_V6E has 1 cores, got 2"):
        pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V6E, 2)


def test_small_functions():
    assert [pl.next_power_of_2(n) for n in (0, 1, 5, 8)] == [1, 1, 8, 8]
    assert pl.align_to(9, 8) == 16
    assert pl.strides_from_shape((2, 3, 4)) == (12, 4, 1)
    assert pl.ds(3) == pl.ds(0, 3)
    assert pl.estimate_cost(lambda x: x @ x.T, jnp.ones((4, 6))).flops >= 192
    run = pl.run_state(lambda refs: refs[0].set(refs[1][...] * 2))
    assert [float(x) for x in run((1.0, 4.0))] == [8, 4]


def test_prints_while_it_runs(capfd):
    def body(x, o):
        pl.debug_print("first: {}", x[0])
        o[...] = x[...]

    jax.block_until_ready(pl.pallas_call(body, like(2))(jnp.arange(2.0) + 3))
    jax.effects_barrier()
    assert "first: 3.0" in capfd.readouterr().out


@pytest.mark.parametrize(
    "run, kind, match",
    [
        (
            lambda a: (lambda x: None, {}),
            TypeError,
            "takes 1 positional argument but 2",
        ),
        (lambda a: (lambda x, o: 0, {}), ValueError, "should return None"),
        (
            lambda a: (lambda x, o: None, {"in_specs": pl.BlockSpec()}),
            ValueError,
            "`in_specs` must be a tuple or a list",
        ),
        (
            lambda a: (lambda x, o: None, {"in_specs": [pl.BlockSpec()] * 2}),
            ValueError,
            "Pytree for `in_specs` and inputs do not match",
        ),
        (
            lambda a: (
                lambda x, o: None,
                {"in_specs": [pl.BlockSpec((1, 1), lambda: (0, 0))]},
            ),
            ValueError,
            r"Block shape for args\[0\] .* same number of dimensions",
        ),
        (
            lambda a: (
                lambda x, o: None,
                {"in_specs": [pl.BlockSpec((4,), lambda: (0, 0))]},
            ),
            ValueError,
            r"args\[0\] must return 1 values .*Currently returning 2",
        ),
        (
            lambda a: (
                lambda x, o: None,
                {"in_specs": [pl.BlockSpec((4,), lambda i: 1.5)], "grid": 1},
            ),
            ValueError,
            r"must return integer scalars. Output\[0\] has type float32",
        ),
        (
            lambda a: (lambda x, o: None, {"input_output_aliases": {2: 0}}),
            ValueError,
            "mapping '2:0' with input index 2 outside",
        ),
        (
            lambda a: (
                lambda x, o: None,
                {
                    "compiler_params": pltpu.CompilerParams(
                        dimension_semantics=("parallel",)
                    )
                },
            ),
            ValueError,
            "must have an entry for each of the 0 axes",
        ),
        (
            lambda a: (lambda x, o: None, {"scratch_shapes": [3]}),
            TypeError,
            "scratch must be a type such as",
        ),
    ],
)
def test_wrong_calls_are_refused(run, kind, match):
    a = np.arange(8, dtype=np.int32)
    with pytest.raises(kind, match=match):
        body, options = run(a)
        pl.pallas_call(body, like(8, dtype=np.int32), **options)(a)


@pytest.mark.parametrize(
    "call, match",
    [
        (lambda: pltpu.make_async_remote_copy(), "use collectives"),
        (lambda: pltpu.prng_seed(3), "no generator in hardware"),
        (lambda: pl.core_map(None), "write pallas_call"),
        (
            lambda: pl.semaphore_signal(None, 1, device_id=2),
            "runs on one device here, got device_id=2",
        ),
        (
            lambda: plgpu.elementwise_inline_asm("tanh.approx", args=[]),
            "PTX runs on NVIDIA",
        ),
    ],
)
def test_what_a_laptop_cannot_do_says_so(call, match):
    with pytest.raises(NotImplementedError, match=match):
        call()


@pytest.mark.parametrize("name", ["mosaic_gpu", "tpu_sc", "fuser"])
def test_other_back_ends_are_refused_with_the_reason(name):
    code = (
        "import fxflow.compat.jax as fj\nfj.install()\n"
        f"from jax.experimental.pallas import {name}"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"pallas.{name} is not in fxflow.compat.jax: it " in out.stderr


def test_interpret_and_compiler_options_change_nothing():
    def body(x, o):
        o[...] = x[...] * 3

    x = jnp.arange(6.0)
    plain = pl.pallas_call(body, x)(x)
    options = {
        "interpret": pltpu.InterpretParams(detect_races=True),
        "compiler_params": plgpu.CompilerParams(num_warps=4),
        "cost_estimate": pl.CostEstimate(1, 2, 3),
        "debug": True,
        "name": "triple",
    }
    with pltpu.force_tpu_interpret_mode(), pl.enable_debug_checks(True):
        np.testing.assert_array_equal(pl.pallas_call(body, x, **options)(x), plain)


def test_kernels_of_pallas_are_differentiated():
    def body(x, o):
        o[...] = jnp.sin(x[...]) * x[...]

    spec = rows(2, 3)
    call = functools.partial(pl.pallas_call, grid=2, in_specs=[spec], out_specs=spec)
    x = jnp.arange(12.0).reshape(4, 3) / 4
    f = call(body, like(4, 3))
    np.testing.assert_allclose(
        jax.grad(lambda x: f(x).sum())(x), np.sin(x) + x * np.cos(x), rtol=1e-5
    )
    second = jax.grad(lambda x: jax.grad(lambda x: f(x).sum())(x)[0, 1])(x)
    assert float(second[0, 1]) == pytest.approx(
        2 * np.cos(0.25) - 0.25 * np.sin(0.25), rel=1e-5
    )


def test_loops_over_references_of_older_kernels():
    from fxflow.compat.jax._src.lax.control_flow.for_loop import for_loop

    def body(x, o):
        def step(i, j, total):
            total[...] += x[i] * (j + 1)

        o[...] = for_loop((2, 3), step, jnp.zeros(2))

    found = pl.pallas_call(body, like(2))(jnp.arange(4.0).reshape(2, 2))
    np.testing.assert_array_equal(found, [12, 24])


def test_prefetched_scalars_are_trees():
    def body(scalars, nothing, x, o):
        _, factor = scalars
        assert nothing is None
        o[...] = x[...] * factor[0].astype(F32)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(3,),
        in_specs=[pl.BlockSpec((1, 4), lambda i, scalars, nothing: (scalars[0][i], 0))],
        out_specs=pl.BlockSpec((1, 4), lambda i, *scalars: (i, 0)),
    )
    call = pl.pallas_call(body, like(3, 4), grid_spec=spec)
    order, x = jnp.array([2, 0, 1], jnp.int32), jnp.arange(12.0).reshape(3, 4)
    scalars = (order, jnp.array([3], jnp.int32))
    np.testing.assert_array_equal(call(scalars, None, x), 3 * x[order])


@pytest.mark.parametrize("programs, last", [(5, 0), (8, 3)])
def test_checkify_reports_the_first_program_whose_check_fails(programs, last):
    def body(x, o):
        value = x[0]
        checkify.check(value < last, "failed in program {}", value)

    spec = pl.BlockSpec((1,), lambda i: (i,))
    call = pl.pallas_call(
        body, like(programs), grid=programs, in_specs=[spec], out_specs=spec
    )
    error, _ = checkify.checkify(call)(jnp.arange(programs, dtype=F32))
    assert f"failed in program {last}" in error.get()


@pytest.mark.parametrize("size, found", [(4, True), (3, False)])
def test_checkify_looks_for_nan_within_kernels_without_padding(size, found):
    def body(x, o):
        o[...] = x[...] / x[...]

    spec = pl.BlockSpec((2,), lambda i: (i,))
    call = pl.pallas_call(body, like(size), grid=2, in_specs=[spec], out_specs=spec)
    checked = checkify.checkify(call, errors=checkify.nan_checks)
    assert checked(jnp.ones(size))[0].get() is None
    if found:
        assert "nan generated by primitive: div" in checked(jnp.zeros(size))[0].get()


def test_axes_of_a_grid_have_names():
    def body(x, o):
        o[...] = x[...] * lax.psum(1, "i") + lax.psum(10, "j")

    spec = pl.BlockSpec((2, 1), lambda j, i: (i, j))
    call = pl.pallas_call(
        body, like(4, 3), grid=(("j", 3), ("i", 2)), in_specs=[spec], out_specs=spec
    )
    np.testing.assert_array_equal(call(jnp.ones((4, 3))), np.full((4, 3), 32))


def test_fori_loop_passes_references_on():
    def body(table, x, o):
        def step(i, carry):
            total, ref = carry
            total = lax.switch(ref[i], [lambda t: t + 1, lambda t: t * x[...]], total)
            return total, ref

        o[...], same = lax.fori_loop(0, 3, step, (jnp.zeros(2), table))
        assert same is table

    call = pl.pallas_call(body, like(2))
    found = call(jnp.array([0, 1, 0], jnp.int32), jnp.array([2.0, 5.0]))
    np.testing.assert_array_equal(found, [3, 6])

    def wrong(x, o):
        lax.fori_loop(0, 3, lambda i, carry: (carry[1], carry[0]), (x, 0))

    with pytest.raises(TypeError, match="must return the references of its carry"):
        pl.pallas_call(wrong, like(2))(jnp.ones(2))
