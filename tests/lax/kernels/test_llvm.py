"""Modules of kernels: names, windows of blocks, coverage."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.core.arrays import typeof
from fxflow.devices.contractions import tile_for
from fxflow.devices.native import optimize
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.llvm import kernel_module
from tests.lax.kernels.samples import accumulate, arrays, flash, params_of

pytest.importorskip("llvmlite")


def test_a_module_is_named_after_its_text() -> None:
    given = arrays()
    p = params_of(flash, *given)
    avals = [x.aval for x in given]
    one, other = kernel_module(p, avals, 8), kernel_module(p, avals, 16)
    assert one.target != other.target
    assert f"define ptr @{one.target}(" in one.text
    again = params_of(flash, *given)
    assert kernel_module(again, avals, 8).target == one.target


def test_programs_in_order_with_scratch() -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(fxflow.jit(accumulate)(x), x.sum(1))


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 16, 23])
def test_blocks_over_the_end(rows: int) -> None:
    @kernels.kernel("i:8 v -> i:8 v, v", out=lambda x: (x, x[0]), sums="i")
    def f(x: Any, y: Any, total: Any) -> None:
        y[...] = fnp.exp(x[...])
        total[...] = x[...].sum(0)

    x = np.random.default_rng(rows).normal(size=(rows, 5)).astype(np.float32)
    y, total = fxflow.jit(f)(x)
    np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(total, x.sum(0), rtol=1e-5, atol=1e-6)


def test_an_index_map_chooses_blocks_of_an_operand() -> None:
    def body(x: Any, o: Any) -> None:
        o[...] = x[...] * 2

    x = fnp.arange(12.0).reshape(6, 2)
    f = kernels.call(
        body,
        x,
        grid=3,
        in_specs=[kernels.BlockSpec((2, 2), lambda i: (3 - i, 0))],
        out_specs=kernels.BlockSpec((2, 2), lambda i: (i, 0)),
    )
    # The first program's block is behind the end.
    expected = np.concatenate([np.zeros((2, 2)), x[4:] * 2, x[2:4] * 2])
    np.testing.assert_array_equal(fxflow.jit(f)(x), expected)


def test_all_elements_of_results_are_in_a_block() -> None:
    spec = kernels.BlockSpec((2,), lambda i: (i,))

    def body(x: Any, o: Any) -> None:
        o[...] = x[...]

    f = kernels.call(body, fnp.ones(7), grid=2, in_specs=[spec], out_specs=spec)
    x = fnp.ones(7)
    with pytest.raises(UnsupportedError, match="in no program's block"):
        kernel_module(params_of(f, x), [x.aval], 8)


def weighted(x: Any, w: Any, o: Any) -> None:
    """Exponentials, a reduction, a product, and numbers of half precision."""
    e = fnp.exp(x[...].astype("float32"))
    o[...] = kernels.dot(e / fnp.sum(e, 1, keepdims=True), w[...]).astype(o.dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("triple", "cpu", "vector", "multiply"),
    [
        ("x86_64-unknown-linux-gnu", "haswell", r"%ymm\d", r"vfmadd\d+ps\s.*ymm"),
        ("x86_64-unknown-linux-gnu", "skylake-avx512", r"%zmm\d", r"vfmadd\d+ps"),
        ("aarch64-unknown-linux-gnu", "neoverse-n1", r"v\d+\.4s", r"fmla\s+v\d+\.4s"),
        ("arm64-apple-darwin", "apple-m1", r"\.4s", r"fmla\.4s"),
    ],
)
def test_kernels_compile_for_other_processors(
    dtype: str, triple: str, cpu: str, vector: str, multiply: str
) -> None:
    llvm = pytest.importorskip("llvmlite.binding")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple)
    machine = target.create_target_machine(cpu=cpu, opt=3)
    tile = tile_for({"avx2": True, "fma": True, "avx512f": "512" in cpu}, triple)
    assert tile is not None
    x, w = fnp.ones((16, 32), dtype), fnp.ones((32, 32))
    f = kernels.kernel("i:8 k, k d -> i:8 d", out=lambda x, w: x)(weighted)
    module = kernel_module(params_of(f, x, w), [typeof(x), typeof(w)], tile.lanes)
    parsed = llvm.parse_assembly(module.text)
    parsed.triple, parsed.data_layout = triple, str(machine.target_data)
    optimize(parsed, machine)
    text = machine.emit_assembly(parsed)
    assert re.search(vector, text) and re.search(multiply, text)
    assert ("%zmm" in text) == ("512" in cpu)
    # Functions of these are loops of vectors, not calls of the C library.
    assert not re.search(r"\b(call|callq|bl)\s+_?(exp|sqrt)f?\b", text)
