"""Functions of rows become kernels that compute the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, make_graph, nn
from fxflow.lax.remat import CUSTOM_CALLS, inlined
from fxflow.optim import losses
from fxflow.transforms.passes import rewriting
from fxflow.transforms.passes.rows import fuse_rows
from tests.transforms.passes.graphs import (
    assert_same,
    before_and_after,
    names,
    values,
)

pytest.importorskip("llvmlite")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of any number and length become kernels."""
    for name in ("LEAST", "_ROWS", "_COLUMNS"):
        monkeypatch.setattr(rewriting, name, 1)


def flat(f: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """A function as its operations, without calls."""
    graph = inlined(make_graph(f)(*args).graph, CUSTOM_CALLS)
    return graph.evaluate


def norm_slopes(x: Any) -> Any:
    params = nn.layer_norm_init(x.shape[-1])
    return fxflow.vjp(nn.layer_norm, params, x)[1](fnp.cos(x))


def rms_slopes(x: Any) -> Any:
    params = nn.rms_norm_init(x.shape[-1])
    return fxflow.vjp(nn.rms_norm, params, x)[1](fnp.cos(x))


def softmax_slope(x: Any) -> Any:
    return fxflow.vjp(nn.softmax, x)[1](x * 2)


def log_softmax_slope(x: Any) -> Any:
    return fxflow.vjp(nn.log_softmax, x)[1](fnp.cos(x))


def cross_entropy(x: Any) -> Any:
    labels = np.arange(x[..., 0].size).reshape(x.shape[:-1]) % x.shape[-1]
    loss = losses.softmax_cross_entropy_with_integer_labels(x, labels)
    return fnp.mean(loss)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "softmax": nn.softmax,
    "softmax's slope": softmax_slope,
    "log-softmax": nn.log_softmax,
    "log-softmax's slope": log_softmax_slope,
    "layer norm": lambda x: nn.layer_norm(nn.layer_norm_init(x.shape[-1]), x),
    "layer norm's slopes": norm_slopes,
    "RMS norm's slopes": rms_slopes,
    "cross entropy": fxflow.value_and_grad(cross_entropy),
}


def answers(f: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, Any, int]:
    """A jitted function's results with kernels and without; how many there are."""
    with config.override(passes="none"):
        want = fxflow.jit(lambda *a: f(*a))(*args)
    with config.override(passes="fuse_rows,compile_kernels"):
        jitted = fxflow.jit(lambda *a: f(*a), **options)
        count = jitted.lower(*args).as_text().count("fxflow_kernel_")
        got = jitted(*map(fnp.array, args))
    return got, want, count


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_rows_is_one_kernel_of_the_same_numbers(name: str) -> None:
    for shape in ((16, 24), (7, 3, 5)):
        got, want, count = answers(FUNCTIONS[name], values(*shape))
        assert count == 1
        assert_same(got, want, 2e-6)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (37, 130), (101, 5)])
def test_odd_sizes(shape: tuple[int, int]) -> None:
    for f in (softmax_slope, norm_slopes):
        got, want, _ = answers(f, values(*shape))
        assert_same(got, want, 1e-4)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
def test_empty_arrays_are_left_as_they_are(shape: tuple[int, int]) -> None:
    got, want, count = answers(
        lambda x: fnp.sum(x - x.sum(1, keepdims=True)), np.zeros(shape)
    )
    assert count == 0
    assert_same(got, want)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "int32"])
def test_dtypes(dtype: str) -> None:
    x = fnp.asarray(values(12, 20) * 4).astype(dtype)
    got, want, count = answers(nn.softmax, x)
    assert count == 1
    assert got.dtype == want.dtype
    assert_same(got.astype(np.float32), want.astype(np.float32), 8e-3)


@pytest.mark.usefixtures("small")
def test_wide_numbers_are_left_to_xla() -> None:
    with config.override(x64=True):
        _, _, count = answers(nn.softmax, np.ones((8, 8)))
    assert count == 0


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_and_infinities_are_in_the_same_elements(name: str) -> None:
    x = values(12, 6)
    for row, number in enumerate((np.nan, np.inf, -np.inf, -0.0, 3e38, 1e-40)):
        x[row, row] = number
        x[6 + row] = number
    got, _, count = answers(FUNCTIONS[name], x)
    assert count == 1
    # XLA reorders multiplications, so that some of these numbers do not overflow.
    want = FUNCTIONS[name](fnp.asarray(x))
    if "slopes" in name:
        # Sums over rows are nan; the gradient of x is not. It is rounding where a row
        # has one number only.
        got, want = (fxflow.tree.leaves(y)[-1] for y in (got, want))
    assert_same(got, want, 1e-3)


@pytest.mark.usefixtures("small")
def test_signs_of_zero_stay() -> None:
    x = np.array([[-0.0, 0.0, -0.0], [-0.0, -0.0, -0.0]], np.float32)
    got, want, count = answers(lambda x: x * fnp.sum(x * 0 + 1, 1, keepdims=True), x)
    assert count == 1
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.usefixtures("small")
def test_rows_behind_the_last_block_are_not_added() -> None:
    # 67 rows have no even blocks, and 1 / 0 of a row of zeros would be seen.
    def f(x: Any) -> Any:
        return fnp.sum(1 / x / fnp.sum(x, 1, keepdims=True), 0)

    got, want, count = answers(f, np.abs(values(67, 300)) + 1)
    assert count == 1
    assert_same(got, want, 1e-5)


@pytest.mark.usefixtures("small")
def test_under_transformations() -> None:
    x = values(4, 6, 10)

    def scanned(x: Any) -> Any:
        return fxflow.lax.scan(lambda c, row: (nn.softmax(c + row), c), x[0], x)

    def remembered(x: Any) -> Any:
        f = fxflow.checkpoint(lambda x: fnp.sum(fnp.sin(nn.softmax(x) * 3)))
        return fxflow.grad(f)(x)

    def curvature(x: Any) -> Any:
        return fxflow.grad(lambda y: fnp.sum(fxflow.grad(cross_entropy)(y) ** 2))(x)

    def branches(x: Any) -> Any:
        return fxflow.lax.cond(x[0, 0, 0] > 9, fnp.sin, nn.softmax, x)

    for f in (fxflow.vmap(softmax_slope), scanned, remembered, curvature, branches):
        got, want, count = answers(f, x)
        assert count >= 1, f
        assert_same(got, want, 1e-5)


@pytest.mark.usefixtures("small")
def test_donated_operands() -> None:
    got, want, count = answers(nn.softmax, values(16, 24), donate_argnums=0)
    assert count == 1
    assert_same(got, want, 1e-6)


@pytest.mark.usefixtures("small")
def test_results_inside_that_others_read_are_results_of_the_kernel() -> None:
    def f(x: Any) -> Any:
        top = fnp.max(x, 1, keepdims=True)
        away = fnp.exp(x - top)
        return fnp.sort(away, 1), away / fnp.sum(away, 1, keepdims=True), top

    got, want, count = answers(f, values(16, 24))
    assert count == 1
    assert_same(got, want, 1e-6)


@pytest.mark.usefixtures("small")
def test_what_lies_between_two_functions_of_rows_stays_between() -> None:
    def f(x: Any) -> Any:
        first = nn.softmax(x)
        return nn.softmax(fnp.flip(first, 1) + first)

    x = values(16, 24)
    graph, new = before_and_after(fuse_rows, flat(f, x), x, tolerance=1e-6)
    assert "kernel_call" not in names(graph)
    found = [n for n in names(new) if n in ("kernel_call", "rev")]
    assert found == ["kernel_call", "rev", "kernel_call"]


@pytest.mark.usefixtures("small")
def test_functions_of_one_array_share_a_kernel() -> None:
    def f(x: Any) -> Any:
        return nn.softmax(x), nn.logsumexp(x, 1), x - fnp.mean(x, 1, keepdims=True)

    x = values(16, 24)
    _, new = before_and_after(fuse_rows, flat(f, x), x, tolerance=1e-6)
    assert names(new).count("kernel_call") == 1


@pytest.mark.usefixtures("small")
def test_one_reduction_alone_is_left_to_xla() -> None:
    for f in (
        lambda x: fnp.sum(x * x + 1, 1),
        lambda x: fnp.exp(x) + 1,
        lambda x: fnp.sum(x, 0) + x,
    ):
        x = values(16, 24)
        graph = make_graph(f)(x).graph
        assert fuse_rows(graph) is graph


def test_small_arrays_are_left_to_xla() -> None:
    for shape in ((100, 100), (1, 1 << 17), (1 << 14, 8)):
        graph = make_graph(flat(nn.softmax, np.ones(shape)))(np.ones(shape)).graph
        assert fuse_rows(graph) is graph
    shape = (256, 256)
    graph = make_graph(flat(nn.softmax, np.ones(shape)))(np.ones(shape)).graph
    assert names(fuse_rows(graph)) == ["kernel_call"]


@pytest.mark.usefixtures("small")
def test_the_pass_has_a_switch_and_needs_the_compiler_of_kernels() -> None:
    x = values(16, 24)
    for passes, wanted in (
        ("fuse_rows,compile_kernels", 1),
        ("compile_kernels", 0),
        ("fuse_rows", 0),
        ("none", 0),
    ):
        with config.override(passes=passes):
            text = fxflow.jit(lambda x: nn.softmax(x)).lower(x).as_text()
        assert text.count("fxflow_kernel_") == wanted, passes


@pytest.mark.usefixtures("small")
def test_other_platforms_get_the_operations_as_written() -> None:
    traced = fxflow.jit(lambda x: nn.softmax(x)).trace(values(16, 24))
    text = traced.lower(platforms=("cuda",)).as_text()
    assert "exponential" in text


@pytest.mark.usefixtures("small")
def test_layers_of_one_shape_share_a_kernel() -> None:
    def f(x: Any) -> Any:
        for _ in range(3):
            x = fnp.flip(nn.layer_norm(nn.layer_norm_init(24), x), 0)
        return x

    text = fxflow.jit(f).lower(values(16, 24)).as_text()
    found = re.findall(r"fxflow_kernel_(\w+)", text)
    assert len(found) == 3
    assert len(set(found)) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(4))
def test_random_sizes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 90, rng.integers(2, 4)))
    for f in FUNCTIONS.values():
        got, want, _ = answers(f, values(*shape, seed=seed))
        assert_same(got, want, 1e-4)
