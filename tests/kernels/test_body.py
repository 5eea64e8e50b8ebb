"""What the body of a kernel may call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.errors import ArgumentError


def test_programs_know_their_ids() -> None:
    def body(o: Any) -> None:
        count = kernels.num_programs(0) * 100 + kernels.num_programs(-1)
        o[...] = count + 10 * kernels.program_id(0) + kernels.program_id(-1)

    f = kernels.call(
        body,
        fxflow.ShapeDtypeStruct((2, 3), "int32"),
        grid=(2, 3),
        out_specs=kernels.BlockSpec((None, None), lambda i, j: (i, j)),
    )
    np.testing.assert_array_equal(f(), 203 + np.array([[0, 1, 2], [10, 11, 12]]))
    np.testing.assert_array_equal(fxflow.jit(f)(), f())
    # A mapped axis does not belong to the kernel's grid.
    g = fxflow.vmap(lambda x: f() + x)(fnp.arange(2))
    np.testing.assert_array_equal(g[1], f() + 1)


@pytest.mark.parametrize("function", [kernels.program_id, kernels.num_programs])
def test_ids_need_a_kernel_and_an_axis(function: Any) -> None:
    with pytest.raises(ArgumentError, match="outside of the body of a kernel"):
        function(0)

    def body(o: Any) -> None:
        o[...] = function(1)

    with pytest.raises(ArgumentError, match="below 1, the number of axes of the grid"):
        kernels.call(body, fxflow.ShapeDtypeStruct((), "int32"), grid=3)()


def test_masked_reads_and_writes() -> None:
    @kernels.kernel("i:4 -> i:4", out=lambda x: x)
    def body(x: Any, o: Any) -> None:
        inside = fnp.arange(4) < 3
        o[...] = fnp.full(4, -1, x.dtype)
        value = kernels.load(x, mask=inside, other=100)
        kernels.store(o, ..., value, mask=fnp.arange(4) > 0)

    for dtype in ("float32", "int8", "bfloat16"):
        found = body(fnp.arange(8).astype(dtype))
        assert found.dtype == dtype
        np.testing.assert_array_equal(
            found.astype("int32"), [-1, 1, 2, 100, -1, 5, 6, 100]
        )


def test_when_and_loop() -> None:
    @kernels.kernel("i:1 v -> i:1 v", out=lambda x: x)
    def cumulative(x: Any, o: Any) -> None:
        total = fxflow.new_ref(fnp.zeros((), x.dtype))

        @kernels.loop(0, x.shape[1])
        def _(i: Any) -> None:
            total[...] += x[0, i]

            @kernels.when(i % 2 == 0)
            def _() -> None:
                o[0, i] = total[...]

            @kernels.when(i % 2 == 1)
            def _() -> None:
                o[0, i] = -total[...]

    x = np.arange(10.0, dtype=np.float32).reshape(2, 5)
    expected = np.cumsum(x, 1) * [1, -1, 1, -1, 1]
    np.testing.assert_array_equal(cumulative(x), expected)
    slope = fxflow.grad(lambda x: fnp.sum(cumulative(x)))(fnp.asarray(x))
    np.testing.assert_array_equal(slope, [[1, 0, 1, 0, 1]] * 2)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_products_are_exact(dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (fnp.asarray(rng.normal(size=(8, 8)), dtype) for _ in "ab")

    def body(a: Any, b: Any, o: Any) -> None:
        o[...] = kernels.dot(a[...], b[...])

    f = kernels.call(body, fxflow.ShapeDtypeStruct((8, 8), "float32"))
    exact = np.asarray(a, np.float64) @ np.asarray(b, np.float64)
    np.testing.assert_allclose(f(a, b), exact, rtol=1e-5, atol=1e-5)
    graph = str(fxflow.make_graph(f)(a, b))
    assert "HIGHEST" in graph
    assert f(a, b).dtype == fnp.float32


def test_integer_products() -> None:
    a = fnp.arange(6, dtype="int32").reshape(2, 3)
    np.testing.assert_array_equal(kernels.dot(a, a.T), np.asarray(a) @ np.asarray(a).T)


@pytest.mark.parametrize(
    ("start", "size", "match"),
    [
        (0, 0, "size must be a positive int, got 0"),
        (0, 2.0, "size must be a positive int"),
        (-1, 2, "start must not be negative"),
        (np.float32(1), 2, r"0-d integer, got f32\[\]"),
        (np.arange(2), 2, "0-d integer"),
    ],
)
def test_bad_slices(start: Any, size: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        kernels.ds(start, size)


def test_cdiv_rounds_up() -> None:
    assert [kernels.cdiv(a, 4) for a in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert int(kernels.cdiv(fnp.array(5), 4)) == 2


def test_a_jitted_function_is_traced_again_for_another_grid() -> None:
    @fxflow.jit
    def number() -> Any:
        return fnp.int32(kernels.num_programs(0))

    def body(o: Any) -> None:
        o[...] = number()

    kind = fxflow.ShapeDtypeStruct((), "int32")
    assert [int(kernels.call(body, kind, grid=n)()) for n in (2, 3)] == [2, 3]
