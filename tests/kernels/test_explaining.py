"""`kernels.explain`: text about kernels."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.errors import ArgumentError


@kernels.kernel(
    "i:8 v -> i:8",
    out=lambda x: kernels.like(x, shape=x.shape[:1]),
    scratch=lambda x: kernels.like(x, shape=(4, 4)),
)
def total(x: Any, y: Any, work: Any) -> None:
    y[...] = fnp.sum(x[...], 1)


def test_grid_blocks_and_memory() -> None:
    lines = kernels.explain(total, fnp.ones((20, 4))).split("\n")
    assert lines[0].startswith("total: 3 programs (3 parallel), ")
    assert lines[0].endswith(" flops and 224 bytes each")
    assert [line.split() for line in lines[2:5]] == [
        ["operand", "0", "f32[20,4]", "8", "4", "0", "-", "128"],
        ["result", "0", "f32[20]", "8", "0", "32"],
        ["scratch", "0", "f32[4,4]", "4", "4", "64"],
    ]


def test_kernels_inside_of_transformations() -> None:
    @fxflow.jit
    def f(x: Any) -> Any:
        return fxflow.lax.map(fxflow.vmap(total), x)

    text = kernels.explain(fxflow.grad(lambda x: fnp.sum(f(x))), fnp.ones((2, 3, 9, 4)))
    assert "(3 parallel, 2 parallel)" in text
    assert "1 (unseen) 8 4" in text


def test_an_index_map_is_named() -> None:
    def body(x: Any, o: Any) -> None:
        o[...] = x[...]

    spec = kernels.BlockSpec((2,), lambda i: 1 - i)
    f = kernels.call(body, fnp.ones(4), grid=2, in_specs=[spec],
                     out_specs=kernels.BlockSpec((2,), lambda i: i))  # fmt: skip
    assert "index map" in kernels.explain(f, fnp.ones(4))


def test_a_function_without_kernels() -> None:
    with pytest.raises(ArgumentError, match="the function calls no kernel"):
        kernels.explain(fnp.sin, 1.0)


def test_what_is_not_compiled_is_named_with_its_line_and_what_runs_instead() -> None:
    pytest.importorskip("llvmlite")

    def made(reference: Any) -> Any:
        def sorts(x: Any, o: Any) -> None:
            o[...] = fnp.sort(x[...], 1)

        kernel = kernels.kernel("n:2 d -> n:2 d", out=lambda x: x, reference=reference)
        return kernel(sorts)

    x = fnp.ones((4, 3))
    text = kernels.explain(made(None), x)
    found = re.search(
        r"on a CPU: operations on arrays \(the compiler does not know sort: "
        r".*test_explaining\.py:(\d+) \(.*sorts\)\)",
        text,
    )
    assert found
    text = kernels.explain(made(lambda x: fnp.sort(x, 1)), x)
    assert "on a CPU: the reference (the compiler does not know sort: " in text


PLAIN = """
import sys
sys.modules["llvmlite"] = None
import fxflow
import fxflow.numpy as fnp
from fxflow import kernels

@kernels.kernel("n:8 d -> n:8 d", out=lambda x: x)
def doubled(x, o):
    o[...] = x[...] * 2

x = fnp.ones((20, 3))
slope = fxflow.grad(lambda x: fnp.sum(doubled(x) ** 2))(x)
print(float(fnp.sum(fxflow.jit(doubled)(x))), float(slope[19, 2]))
print(kernels.explain(doubled, x))
"""


def test_without_llvmlite_a_kernel_is_operations_on_arrays() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLAIN], capture_output=True, text=True, timeout=100
    )
    numbers, *text = done.stdout.splitlines()
    assert numbers == "120.0 8.0", done.stderr
    assert (
        "on a CPU: operations on arrays (llvmlite is not installed (pip install "
        "fxflow[kernels]))"
    ) in text
