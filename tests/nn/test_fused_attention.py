"""Attention by cuDNN: the configuration of its kernels, and the use of their results.

The kernels need a GPU. Here `kernel` stands for them: it computes what the
configuration says, from the operands in the order and the layouts that XLA wants.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn
from fxflow.errors import ArgumentError, DtypeError
from fxflow.nn import fused_attention

RNG = np.random.default_rng(0)
B, T, S, N, K, H = 2, 6, 9, 4, 2, 8


def normal(*shape: int) -> Any:
    return fnp.asarray(RNG.normal(size=shape), "float16")


Q, KEYS, VALUES = normal(B, T, N, H), normal(B, S, K, H), normal(B, S, K, H)
WEIGHTS = np.asarray(normal(B, T, N, H), np.float32)
MASK = RNG.random((B, 1, T, S)) < 0.7
LENGTHS = np.array([3, 6]), np.array([9, 2])

CASES: dict[str, tuple[tuple[int, ...] | None, dict[str, Any]]] = {
    "plain": (None, {}),
    "scale": (None, {"scale": 0.3}),
    "causal": (None, {"is_causal": True}),
    "one bias": ((1, N, T, S), {}),
    "a bias each": ((B, 1, T, S), {"is_causal": True}),
    "bias of a row": ((S,), {}),
    "mask": (None, {"mask": MASK}),
    "mask and bias": ((1, N, T, S), {"mask": MASK}),
    "window": (None, {"is_causal": True, "local_window_size": 2}),
    "window alone": (None, {"local_window_size": (2, 0)}),
    "lengths": (
        None,
        {"query_seq_lengths": LENGTHS[0], "key_value_seq_lengths": LENGTHS[1]},
    ),
    "query lengths": ((1, N, T, S), {"query_seq_lengths": LENGTHS[0]}),
    "key lengths": (None, {"key_value_seq_lengths": LENGTHS[1], "is_causal": True}),
}


def kernel(
    target: str, operands: Sequence[Any], results: Sequence[Any], config: str
) -> list[Any]:
    told = json.loads(config)["cudnn_fmha_backend_config"]
    shape = told["intermediate_tensor_shape"]["dimensions"]
    q, k, v, *rest = operands
    (batch, length, heads, _), span = q.shape, k.shape[1]
    assert shape == [str(n) for n in (batch, heads, length, span)]
    slope = out = sums = None
    if target.endswith("Backward"):
        sums, slope, *rest = rest
    bias = rest.pop(0) if "Bias" in target else 0.0
    if target.endswith("Backward"):
        out = rest.pop(0)
    share = heads // k.shape[2]
    q, k, v = (fnp.asarray(x, "float32") for x in (q, k, v))
    every_k, every_v = (fnp.repeat(x, share, 2) for x in (k, v))
    products = told["fmha_scale"] * fnp.einsum("btnh,bsnh->bnts", q, every_k) + bias
    rows, columns = fnp.arange(length)[:, None], fnp.arange(span)
    seen = fnp.ones((batch, 1, length, span), bool)
    if "CAUSAL" in told["mask_type"]:
        seen &= columns <= rows
    if told["sliding_window_length"]:
        assert "CAUSAL" in told["mask_type"]
        seen &= rows - columns < told["sliding_window_length"]
    if "PADDING" in told["mask_type"]:
        own, others = (x[:, None, None, None] for x in rest)
        seen &= (rows < own) & (columns < others)
    products = fnp.where(seen, products, -1e30)
    if sums is None:
        sums = nn.logsumexp(products, -1)
        weights = fnp.where(seen, fnp.exp(products - sums[..., None]), 0)
        mixed = fnp.einsum("bnts,bsnh->bnth", weights, every_v)
        found = [mixed, sums]
    else:
        weights = fnp.where(seen, fnp.exp(products - sums[..., None]), 0)
        slope = fnp.asarray(slope, "float32")
        by_weights = fnp.einsum("btnh,bsnh->bnts", slope, every_v)
        less = fnp.einsum("btnh,btnh->bnt", slope, fnp.asarray(out, "float32"))
        by_products = weights * (by_weights - less[..., None]) * told["fmha_scale"]
        by_k = fnp.einsum("bnts,btnh->bnsh", by_products, q)
        by_v = fnp.einsum("bnts,btnh->bnsh", weights, slope)
        shared = (batch, -1, share, span, q.shape[-1])
        found = [
            fnp.einsum("bnts,bsnh->bnth", by_products, every_k),
            *(x.reshape(shared).sum(2) for x in (by_k, by_v)),
        ]
    # Without the sums, if they are not wanted.
    assert [x.shape for x in found][: len(results)] == [x.shape for x in results]
    return [fnp.asarray(x, r.dtype) for x, r in zip(found, results, strict=False)]


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_attention, "_call", kernel)


def with_slopes(implementation: str, bias: Any, options: dict[str, Any]) -> Any:
    def loss(q: Any, k: Any, v: Any, bias: Any) -> Any:
        out, sums = nn.dot_product_attention(
            *(q, k, v, bias),
            implementation=implementation,
            return_residual=True,
            **options,
        )
        return (fnp.asarray(out, "float32") * WEIGHTS).sum(), (out, sums)

    argnums = (0, 1, 2) if bias is None else (0, 1, 2, 3)
    call = fxflow.value_and_grad(loss, argnums, has_aux=True)
    (_, outs), slopes = fxflow.jit(call)(Q, KEYS, VALUES, bias)
    return [np.asarray(x, np.float32) for x in (*outs, *slopes)]


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("name", CASES)
def test_as_xla(name: str) -> None:
    shape, options = CASES[name]
    bias = None if shape is None else normal(*shape)
    fused = with_slopes("cudnn", bias, options)
    plain = with_slopes("xla", bias, options)
    if "query_seq_lengths" in options:
        # What lies beyond the lengths has no meaning.
        inside = np.arange(T) < options["query_seq_lengths"][:, None]
        plain[1] = np.where(inside[:, :, None], plain[1], 0)
    for one, other in zip(fused, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.01, atol=0.02)


@pytest.mark.usefixtures("kernels")
def test_a_bias_of_minus_infinity_is_a_mask() -> None:
    seen = np.ones((B, N, T, S), bool)
    seen[0, :, 1] = False
    seen[:, :, :, 0] = False
    bias = normal(B, N, T, S)
    shut = np.where(seen, bias, -np.inf).astype(bias.dtype)
    got = with_slopes("cudnn", shut, {})
    want = with_slopes("cudnn", bias, {"mask": seen})
    for one, other in zip(got, want, strict=True):
        assert np.isfinite(one).all()
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("bias_axis", [None, 0])
@pytest.mark.parametrize("batches", [1, B])
def test_a_mapped_axis_joins_the_batch(batches: int, bias_axis: int | None) -> None:
    q, k = normal(3, batches, T, N, H), normal(batches, S, K, H)
    bias = normal(*([] if bias_axis is None else [3]), 1, N, T, S)

    def slopes(implementation: str) -> Any:
        def loss(q: Any, k: Any, bias: Any) -> Any:
            out = nn.dot_product_attention(q, k, k, bias, implementation=implementation)
            return (fnp.asarray(out, "float32") ** 2).sum()

        one = fxflow.grad(loss, argnums=(0, 1, 2))
        return fxflow.jit(fxflow.vmap(one, (0, None, bias_axis)))(q, k, bias)

    for one, other in zip(slopes("cudnn"), slopes("xla"), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(
            np.asarray(one, float), np.asarray(other, float), rtol=0.02, atol=0.02
        )


def lowered(*shapes: tuple[int, ...], **options: Any) -> str:
    like = [fxflow.ShapeDtypeStruct(shape, "bfloat16") for shape in shapes]
    call = fxflow.jit(
        lambda *a: nn.dot_product_attention(*a, implementation="cudnn", **options)
    )
    return call.trace(*like).lower(platforms=("cuda",)).as_text()


def test_the_program_names_mask_types_and_layouts() -> None:
    q, k = (2, 6, 4, 8), (2, 9, 2, 8)
    text = lowered(q, k, k, is_causal=True, return_residual=True)
    assert '@"__cudnn$fmhaSoftmax"' in text
    assert r"\22mask_type\22: \22CAUSAL\22" in text
    # The type lists heads first, the layout has them last; XLA sizes the workspace.
    assert "-> (tensor<2x4x6x8xbf16>, tensor<2x4x6xf32>, tensor<0xui8>)" in text
    assert "result_layouts = [dense<[3, 1, 2, 0]> : tensor<4xindex>" in text
    # No sums unless they are requested.
    text = lowered(q, k, k, (4, 6, 9))
    assert '@"__cudnn$fmhaScaleBiasSoftmax"' in text
    assert "-> (tensor<2x4x6x8xbf16>, tensor<0xui8>)" in text


def test_what_needs_no_kernel() -> None:
    assert "cudnn" not in lowered(*[(2, 0, 4, 8)] * 3)
    assert "cudnn" not in lowered(*[(2, 1, 4, 8)] * 3)


def test_unsupported_dtypes_sizes_and_windows_are_refused() -> None:
    attend = nn.dot_product_attention
    wide = np.ones((1, 2, 1, 8), np.float32)
    with pytest.raises(DtypeError, match="takes float16 and bfloat16, got query f32"):
        attend(wide, wide, wide, implementation="cudnn")
    for size in (12, 264):
        x = fnp.ones((1, 2, 1, size), "bfloat16")
        with pytest.raises(ArgumentError, match="a multiple of 8 and at most 256"):
            attend(x, x, x, implementation="cudnn")
    x = fnp.ones((1, 2, 1, 8), "bfloat16")
    with pytest.raises(ArgumentError, match="a window ends at the position itself"):
        attend(x, x, x, implementation="cudnn", local_window_size=1)
    if fxflow.default_backend() == "cpu":
        with pytest.raises(ArgumentError, match="runs on the platform gpu only"):
            attend(x, x, x, implementation="cudnn")
