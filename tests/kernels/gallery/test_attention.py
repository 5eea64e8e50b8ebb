"""Attention by kernels, compared with the plain formula on whole arrays."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, nn
from fxflow.lax.kernels.native import why_not
from fxflow.lax.kernels.params import KernelParams
from tests.export.onnx_rules.checks import check

pytest.importorskip("llvmlite")

_RNG = np.random.default_rng(0)


def _normal(*shape: int) -> Any:
    return _RNG.normal(size=shape).astype(np.float32)


MASK = _RNG.random((2, 1, 150, 140)) < 0.6
MASK[0, :, 5] = MASK[1, :, 149] = False  # queries that see nothing
BIAS = _normal(1, 4, 150, 140)
BIAS[0, :, 7], BIAS[0, 1, 9] = -np.inf, np.finfo(np.float32).min
#: Dimensions B, T, S, N, K, H and options.
CASES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 70, 100, 4, 2, 40), {}),
    "causal": ((1, 200, 130, 2, 2, 32), {"is_causal": True, "scale": 0.3}),
    "few queries": ((1, 40, 260, 1, 1, 32), {"is_causal": True}),
    "window": ((1, 260, 200, 2, 1, 32), {"local_window_size": (20, 10)}),
    "mask": ((2, 150, 140, 4, 2, 8), {"mask": MASK, "is_causal": True}),
    "mask of keys": ((2, 150, 140, 4, 2, 8), {"mask": MASK[:, :, :1]}),
    "bias": ((2, 150, 140, 4, 2, 8), {"bias": BIAS}),
    "lengths": (
        (3, 140, 300, 2, 1, 8),
        {
            "query_seq_lengths": np.array([140, 50, 0]),
            "key_value_seq_lengths": np.array([300, 130, 0]),
        },
    ),
    "all": (
        (2, 150, 140, 4, 2, 8),
        {
            "bias": BIAS,
            "mask": MASK,
            "is_causal": True,
            "query_seq_lengths": np.array([100, 150]),
            "key_value_seq_lengths": np.array([90, 139]),
            "local_window_size": 50,
        },
    ),
}


def _operands(dims: tuple[int, ...]) -> tuple[Any, ...]:
    batch, length, span, heads, groups, features = dims
    kv = batch, span, groups, features
    return _normal(batch, length, heads, features), _normal(*kv), _normal(*kv)


def _attend(implementation: str, options: dict[str, Any]) -> Any:
    def run(q: Any, k: Any, v: Any, **more: Any) -> Any:
        return nn.dot_product_attention(
            *(q, k, v), implementation=implementation, **{**options, **more}
        )

    return run


#: One of each kind; the rest takes longer.
_FEW = {"plain", "all"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[] if x in _FEW else pytest.mark.slow) for x in CASES],
)
def test_values_sums_and_slopes_are_those_of_the_formula(name: str) -> None:
    dims, options = CASES[name]
    args = _operands(dims)
    weights, seen = _normal(*args[0].shape), np.ones(args[0].shape[:3], bool)
    if "query_seq_lengths" in options:
        # Sums of other queries have no meaning.
        counts = options["query_seq_lengths"]
        seen &= np.arange(dims[1])[None, :, None] < counts[:, None, None]

    def found(implementation: str) -> Any:
        def loss(*args: Any) -> Any:
            attend = _attend(implementation, options)
            out, sums = attend(*args, return_residual=True)
            sums = fnp.where(seen, sums, 0)
            total = fnp.sum(out * weights) + fnp.sum(sums * weights[..., 0])
            return total, (out, sums)

        slopes, values = fxflow.jit(fxflow.grad(loss, (0, 1, 2), has_aux=True))(*args)
        return *values, *slopes

    for one, other in zip(found("kernel"), found("xla"), strict=True):
        assert np.isfinite(one).all()
        scale = np.abs(np.where(np.abs(other) < 1e30, other, 0)).max()
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=4e-6 * scale)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [("bfloat16", 2e-2), pytest.param("float16", 3e-3, marks=pytest.mark.slow)],
)
def test_half_precision(dtype: str, tolerance: float) -> None:
    args = [fnp.asarray(x, dtype) for x in _operands((1, 70, 90, 4, 2, 32))]

    def found(implementation: str) -> Any:
        attend = _attend(implementation, {"is_causal": True})
        out, pull = fxflow.vjp(attend, *args)
        return out, *pull(out)

    for one, other in zip(found("kernel"), found("xla"), strict=True):
        assert one.dtype == dtype
        one, other = (np.asarray(x, np.float32) for x in (one, other))
        np.testing.assert_allclose(one, other, atol=tolerance * np.abs(other).max())


def test_slopes_of_a_bias() -> None:
    args = _operands(CASES["bias"][0])

    def slope(implementation: str) -> Any:
        attend = _attend(implementation, {})
        f = lambda bias, q: fnp.sum(attend(q, *args[1:], bias=bias) ** 2)
        return fxflow.jit(fxflow.grad(f, (0, 1)))(
            np.abs(BIAS[:, :, :8]), args[0][:, :8]
        )

    for one, other in zip(slope("kernel"), slope("xla"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_forward_mode_and_second_derivatives() -> None:
    args = _operands((1, 20, 24, 2, 1, 4))
    moving = _operands((1, 20, 24, 2, 1, 4))

    def both(of: Any) -> list[Any]:
        return [of(_attend(name, {"is_causal": True})) for name in ("kernel", "xla")]

    def forward(attend: Any) -> Any:
        return fxflow.jvp(attend, args, moving)[1]

    def over_reverse(attend: Any) -> Any:
        slope = fxflow.grad(lambda *a: fnp.sum(attend(*a) ** 2), (0, 1, 2))
        return fxflow.jvp(slope, args, moving)[1]

    def reverse_twice(attend: Any) -> Any:
        slope = fxflow.grad(lambda *a: fnp.sum(attend(*a) ** 2), (0, 1, 2))
        size = lambda *a: sum(fnp.sum(x**2) for x in slope(*a))
        return fxflow.grad(size, (0, 1, 2))(*args)

    for one, other in map(both, (forward, over_reverse, reverse_twice)):
        for x, y in zip(
            fxflow.tree.leaves(one), fxflow.tree.leaves(other), strict=True
        ):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


def test_under_vmap_and_checkpoint() -> None:
    args = [np.stack([x, -x]) for x in _operands((1, 40, 36, 2, 1, 8))]

    def slopes(implementation: str) -> Any:
        attend = _attend(implementation, {"is_causal": True})
        loss = lambda *a: fnp.sum(fxflow.checkpoint(attend)(*a) ** 2)
        return fxflow.jit(fxflow.vmap(fxflow.grad(loss, (0, 1, 2)), (0, None, 0)))(
            args[0], args[1][0], args[2]
        )

    for one, other in zip(slopes("kernel"), slopes("xla"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_programs_write_what_they_may_and_as_the_formula() -> None:
    args = _operands((1, 20, 18, 2, 1, 4))
    attend = _attend("kernel", {"is_causal": True})
    kernels.check(attend, *args, rtol=1e-4)
    kernels.check(fxflow.grad(lambda *a: fnp.sum(attend(*a)), (0, 1, 2)), *args)


def test_kernels_are_compiled_and_keep_no_products() -> None:
    length = 256
    args = _operands((1, length, length, 2, 2, 32))
    attend = _attend("kernel", {})
    slope = fxflow.grad(lambda *a: fnp.sum(attend(*a) ** 2), (0, 1, 2))
    nodes = [
        n for n in _nodes(fxflow.make_graph(slope)(*args)) if n[0] == "kernel_call"
    ]
    assert len(nodes) == 2
    for _, node in nodes:
        assert not why_not(KernelParams(**node.params), [a.aval for a in node.inputs])
    memory = fxflow.jit(slope).lower(*args).compile().memory_analysis()
    assert memory["temp_size_in_bytes"] < 4 * length * length


def _nodes(graph: Any) -> list[Any]:
    from fxflow.core.ir.graph import subgraphs

    found = []
    for node in graph.nodes:
        found.append((node.primitive.name, node))
        for key, inner in subgraphs(node.params):
            if "transposed" not in str(key):
                found += _nodes(inner)
    return found


def test_large_sizes_on_one_device_use_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1
    monkeypatch.setattr("fxflow.nn.attention.device_count", lambda: count)

    def uses_kernels(*dims: int) -> bool:
        args = _operands(dims)
        graph = fxflow.make_graph(nn.dot_product_attention)(*args)
        return "kernel_call" in {name for name, _ in _nodes(graph)}

    assert uses_kernels(1, 512, 512, 2, 2, 8)
    assert not uses_kernels(1, 16, 16, 2, 2, 8)
    assert not uses_kernels(1, 1, 2**18, 1, 1, 2)
    count = 2
    assert not uses_kernels(1, 512, 512, 2, 2, 8)


def test_exported_models_have_the_formula() -> None:
    args = _operands((1, 12, 10, 2, 1, 4))
    check(_attend("kernel", {"is_causal": True}), *args)
    traced = fxflow.jit(_attend("kernel", {})).trace(*args)
    text = traced.lower(platforms=("tpu",)).as_text()
    assert "dot_general" in text
    assert "custom_call" not in text


def test_importing_fxflow_does_not_load_the_gallery() -> None:
    code = (
        "import sys, fxflow.nn; "
        "sys.exit(any(m.startswith('fxflow.kernels') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
