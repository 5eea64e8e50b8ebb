"""Small programs from public reports about kernels in JAX and Triton, on `kernels`.

The name of a test has the number of its report, where there is one.
"""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.errors import ArgumentError, KernelError

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def test_jax_19146_one_kernel_has_derivatives_in_both_modes():
    @kernels.kernel("i:4 d -> i:4 d", out=lambda x: x)
    def gelu(x, o):
        o[...] = x[...] * 0.5 * (1 + fnp.tanh(0.8 * x[...]))

    x, t = normal(10, 3), normal(10, 3)
    plain = lambda x: x * 0.5 * (1 + fnp.tanh(0.8 * x))
    for f in (gelu, fxflow.jit(gelu)):
        np.testing.assert_allclose(
            fxflow.jvp(f, (x,), (t,))[1], fxflow.jvp(plain, (x,), (t,))[1], rtol=1e-4
        )
        np.testing.assert_allclose(
            fxflow.vjp(f, x)[1](t)[0], fxflow.vjp(plain, x)[1](t)[0], rtol=1e-4
        )


def test_jax_23099_sums_over_the_wrong_axis_are_refused():
    with pytest.raises(ArgumentError, match=r"lacks the axis n.*sums='n'"):
        kernels.kernel("n:4 d:2 -> d:2", out=lambda x: kernels.like(x, shape=(2,)))


def test_jax_38497_more_than_two_blocks_do_not_give_nan():
    @kernels.kernel("n:3 -> o", out=lambda x: kernels.like(x, shape=(1,)), sums="n")
    def total(x, o):
        o[...] = fnp.sum(x[...], keepdims=True)

    x = normal(17)
    np.testing.assert_allclose(total(x), [x.sum()], rtol=1e-5)
    np.testing.assert_allclose(fxflow.jit(total)(x), [x.sum()], rtol=1e-5)


def test_jax_24117_additions_to_one_row_within_a_block_are_all_kept():
    like = lambda ids, x: kernels.like(x, shape=(3,))

    @kernels.kernel("n:4, n:4 -> s", out=like, sums="n")
    def histogram(ids, x, o):
        @kernels.loop(0, x.shape[0])
        def _(i):
            o[ids[i]] += x[i]

    ids, x = np.array([1, 1, 1, 1, 2, 1, 0, 1], np.int32), np.ones(8, np.float32)
    for f in (histogram, fxflow.jit(histogram)):
        np.testing.assert_array_equal(f(ids, x), [1, 6, 1])


def test_jax_40847_a_kernel_for_another_grid_is_another_kernel():
    @kernels.kernel("n:4 -> n:4", out=lambda x: x)
    def counts(x, o):
        o[...] = x[...] * 0 + kernels.num_programs(0)

    f = fxflow.jit(counts)
    assert f(fnp.zeros(4))[0] == 1
    assert f(fnp.zeros(12))[0] == 3
    assert f(fnp.zeros(4))[0] == 1


@pytest.mark.parametrize("n", [1, 3, 5, 31])
def test_jax_20051_sizes_need_not_be_powers_of_two(n):
    @kernels.kernel("i:3 k, k j:5 -> i:3 j:5", out=lambda a, b: a @ b)
    def product(a, b, o):
        o[...] = kernels.dot(a[...], b[...])

    a, b = normal(n, n), normal(n, n)
    np.testing.assert_allclose(fxflow.jit(product)(a, b), a @ b, rtol=1e-4, atol=1e-5)


def test_jax_23532_a_slice_over_the_end_reads_zeros():
    @kernels.kernel("n -> n", out=lambda x: x)
    def shifted(x, o):
        o[...] = x[kernels.ds(2, x.shape[0])]

    x = np.arange(1, 6, dtype=np.float32)
    for f in (shifted, fxflow.jit(shifted)):
        np.testing.assert_array_equal(f(x), [3, 4, 5, 0, 0])


def test_rocm_37183_programs_that_write_one_element_are_found():
    def first(x, o):
        o[0] = x[0]

    f = kernels.call(
        first,
        fnp.ones(1),
        grid=3,
        kinds=["arbitrary"],
        in_specs=[kernels.BlockSpec((1,), lambda i: (i,))],
    )
    np.testing.assert_array_equal(f(np.arange(3.0, dtype=np.float32)), [2])
    with pytest.raises(ArgumentError, match="3 programs along axis 0"):
        kernels.call(first, fnp.ones(1), grid=3, kinds=["parallel"])(fnp.ones(3))


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_triton_sums_of_half_precision_products_are_in_single_precision(kind):
    # In float16 the sum would stop at 2048, in bfloat16 at 256.
    n = 4096
    a, b = fnp.ones((8, n), kind), fnp.ones((n, 1), kind)
    wide = kernels.kernel(
        "i:8 k, k j -> i:8 j",
        out=lambda a, b: kernels.like(a, "float32", shape=(8, 1)),
    )(lambda a, b, o: o.set(kernels.dot(a[...], b[...])))
    np.testing.assert_array_equal(fxflow.jit(wide)(a, b), np.full((8, 1), n))


def test_jax_19748_a_kernel_is_divided_over_devices_like_other_functions():
    @kernels.kernel("i:2 d -> i:2 d", out=lambda x: x)
    def normalized(x, o):
        o[...] = x[...] / fnp.sum(x[...], 1, keepdims=True)

    devices = fxflow.devices()
    mesh = fxflow.sharding.Mesh(np.array(devices), ("x",))
    spec = fxflow.sharding.PartitionSpec("x")
    x = np.abs(normal(4 * len(devices), 3)) + 1
    put = fxflow.device_put(x, fxflow.sharding.NamedSharding(mesh, spec))
    want = x / x.sum(1, keepdims=True)
    np.testing.assert_allclose(fxflow.jit(normalized)(put), want, rtol=1e-5)
    mapped = fxflow.shard_map(normalized, mesh=mesh, in_specs=spec, out_specs=spec)
    np.testing.assert_allclose(fxflow.jit(mapped)(put), want, rtol=1e-5)


def test_triton_an_empty_grid_gives_empty_or_zero_results():
    @kernels.kernel("n:4 d -> n:4 d", out=lambda x: x)
    def same(x, o):
        o[...] = x[...]

    like = lambda x: kernels.like(x, shape=x.shape[1:])

    @kernels.kernel("n:4 d -> d", out=like, sums="n")
    def total(x, o):
        o[...] = fnp.sum(x[...], 0)

    empty = fnp.zeros((0, 3))
    for wrap in (lambda f: f, fxflow.jit):
        assert wrap(same)(empty).shape == (0, 3)
        np.testing.assert_array_equal(wrap(total)(empty), np.zeros(3))


def test_jax_31395_memory_that_no_program_wrote_is_found():
    @kernels.kernel("n:4 -> n:4", out=lambda x: x)
    def half(x, o):
        o[0] = x[0]

    with pytest.raises(KernelError, match="no program writes 6 of 8 elements"):
        kernels.check(half, fnp.ones(8))
