"""Attention by cuDNN's fused kernels, which keep no products of queries and keys.

XLA knows them as custom calls; what a call computes is written in its configuration.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, ShapeDtypeStruct, dtypes, typeof
from fxflow.core.ir.arith import instantiate
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.foreign_calls import ffi_call
from fxflow.transforms.custom_vjp import CustomVJPPrimal, custom_vjp
from fxflow.transforms.custom_vmap import custom_vmap
from fxflow.transforms.vjp import vjp

#: Axes from major to minor of an array [B, N, T, H] that lies as [B, T, N, H].
_HEADS_INSIDE = (0, 2, 1, 3)
_MOST_FEATURES = 256


class Fused(NamedTuple):
    """What a kernel computes.

    Attributes:
      scale: of the products.
      is_causal: whether a position sees only itself and earlier ones.
      window: how many positions a causal one sees, itself among them; 0: all.
    """

    scale: float
    is_causal: bool
    window: int


def check(query: Any) -> None:
    """Raises an error if the kernels do not take such arrays.

    Args:
      query: float[B, T, N, H].

    Raises:
      DtypeError: neither float16 nor bfloat16.
      ArgumentError: features that are not a multiple of 8, or more than 256.
    """
    aval = typeof(query)
    if aval.dtype not in (dtypes.float16, dtypes.bfloat16):
        raise DtypeError(
            'dot_product_attention: implementation="cudnn" takes float16 and bfloat16, '
            f'got query {aval}; "xla" takes all floats'
        )
    features = aval.shape[-1]
    if features % 8 or features > _MOST_FEATURES:
        raise ArgumentError(
            'dot_product_attention: implementation="cudnn" takes H that are a multiple '
            f"of 8 and at most {_MOST_FEATURES}, got query {aval}"
        )


#: Takes query, key, value, a tuple of the bias and the lengths; returns the output.
Plain = Callable[..., Any]


def fused_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any,
    lengths: Sequence[Any] | None,
    fused: Fused,
    plain: Plain,
    *,
    with_sums: bool,
) -> tuple[Array, Array | None]:
    """Attends by a fused kernel.

    Args:
      query: float[B, T, N, H].
      key: float[B, S, K, H].
      value: float[B, S, K, H].
      bias: float[1 or B, 1 or N, T, S] of the same dtype, added to the scaled products;
        None for none.
      lengths: int32[B] twice, of the queries and of the keys; None: all positions.
      fused: what is computed.
      plain: computes the same by other means, for the derivative with respect to the
        bias: that of the kernels is for one bias of all sequences only.
      with_sums: whether the second result is wanted.

    Returns:
      float[B, T, N, H], and the logarithms of the softmax's sums, float32[B, T, N],
      which are constants to derivatives; or None.
    """
    given = () if bias is None else (bias,)
    attend = _differentiable(fused, plain, with_sums)
    out, *sums = attend(query, key, value, given, tuple(lengths or ()))
    return out, lax.transpose(sums[0], (0, 2, 1)) if sums else None


def _differentiable(
    fused: Fused, plain: Plain, with_sums: bool
) -> Callable[..., tuple[Any, ...]]:
    primal = _forward(fused, with_sums)
    forward, backward = _forward(fused, True), _backward(fused)

    def pass_forward(*given: Any) -> Any:
        args = tree.map(
            lambda x: x.value, given, is_leaf=lambda x: isinstance(x, CustomVJPPrimal)
        )
        out, sums = forward(*args)
        # Residuals are arrays: that one is there says that its derivative is wanted.
        wanted = tuple(bias.value for bias in given[3] if bias.perturbed)
        return (out, sums) if with_sums else (out,), (args, out, sums, wanted)

    def pass_back(kept: Any, cotangents: Any) -> Any:
        (query, key, value, bias, lengths), out, sums, wanted = kept
        slope = instantiate(cotangents[0])
        slopes = backward(query, key, value, sums, slope, bias, out, lengths)
        of_bias: Any = tuple(None for _ in bias)
        if wanted:
            pull = vjp(lambda b: plain(query, key, value, b, lengths), wanted)[1]
            of_bias = pull(slope)[0]
        return (*slopes, of_bias, tuple(None for _ in lengths))

    attend = custom_vjp(primal)
    attend.defvjp(pass_forward, pass_back, symbolic_zeros=True)
    return attend


@functools.cache
def _forward(fused: Fused, with_sums: bool) -> Callable[..., Any]:
    """Returns the call of `query, key, value, (bias,), (lengths, lengths)`."""

    def call(query: Any, key: Any, value: Any, bias: Any, lengths: Any) -> Any:
        result = _heads_first(query)
        results = [result, ShapeDtypeStruct(result.shape[:-1], dtypes.float32)]
        out, *sums = _call(
            _target(bias),
            (query, key, value, *bias, *lengths),
            results if with_sums else results[:1],
            _config(fused, query, key, lengths, _PRODUCTS),
        )
        return lax.transpose(out, _HEADS_INSIDE), *sums

    return _folding(call)


@functools.cache
def _backward(fused: Fused) -> Callable[..., Any]:
    """Returns the call that gives the cotangents of query, key and value."""

    def call(
        query: Any,
        key: Any,
        value: Any,
        sums: Any,
        slope: Any,
        bias: Any,
        out: Any,
        lengths: Any,
    ) -> Any:
        slopes = _call(
            f"{_target(bias)}Backward",
            (query, key, value, sums, slope, *bias, out, *lengths),
            list(map(_heads_first, (query, key, value))),
            _config(fused, query, key, lengths, _PRODUCTS_BACK),
        )
        return tuple(lax.transpose(x, _HEADS_INSIDE) for x in slopes)

    return _folding(call)


def _target(bias: Any) -> str:
    return "fmhaScaleBiasSoftmax" if bias else "fmhaSoftmax"


def _heads_first(x: Any) -> ShapeDtypeStruct:
    """Returns the type of [B, N, T, H] for an array [B, T, N, H]."""
    batch, length, heads, features = typeof(x).shape
    return ShapeDtypeStruct((batch, heads, length, features), typeof(x).dtype)


def _call(
    target: str, operands: Sequence[Any], results: Sequence[Any], config: str
) -> list[Any]:
    """Calls a kernel; results of rank 4 lie with the heads inside."""
    # cuDNN's workspace is one more result, whose size XLA fills in.
    workspace = ShapeDtypeStruct((0,), dtypes.uint8)
    layouts = [_HEADS_INSIDE if len(x.shape) == 4 else None for x in results]
    made: list[Any] = ffi_call(
        f"__cudnn${target}",
        [*results, workspace],
        output_layouts=[*layouts, None],
        custom_call_api_version=2,
        legacy_backend_config=config,
    )(*operands)
    return made[:-1]


def _folding(call: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the call with a rule for `vmap`: a mapped axis joins the batch."""
    foldable = custom_vmap(call)

    @foldable.def_vmap
    def rule(size: int, mapped: Any, *args: Any) -> Any:
        batch = typeof(args[0]).shape[1 if mapped[0] else 0]

        def fold(x: Any, is_mapped: bool) -> Any:
            shape = typeof(x).shape
            if not is_mapped:
                if shape[0] < batch:
                    return x  # one bias for all
                x = fnp.expand_dims(x, 0)
            rest = typeof(x).shape[2:]
            x = fnp.broadcast_to(x, (size, batch, *rest))
            return fnp.reshape(x, (size * batch, *rest))

        outs = foldable(*tree.map(fold, args, tuple(mapped)))
        split = [fnp.reshape(x, (size, batch, *typeof(x).shape[1:])) for x in outs]
        return tuple(split), True

    return foldable


# -- the operands of a kernel ----------------------------------------------------------

# By which axes products are taken, by the names of XLA's `CudnnfMHABackendConfig`:
# contracted and batch axes of the left and of the right operand.
_QK, _AV = ((3, 3), ((0, 2), (0, 2))), ((3, 1), ((0, 1), (0, 2)))
_TV = ((2, 1), ((0, 1), (0, 2)))
_PRODUCTS = {"bmm1": _QK, "bmm2": _AV}
_PRODUCTS_BACK = {
    "bmm1_grad_gemm1": _TV,
    "bmm1_grad_gemm2": _AV,
    "bmm2_grad_gemm1": _TV,
    "bmm2_grad_gemm2": _QK,
}
_ELEMENTS = {dtypes.float16: "F16", dtypes.bfloat16: "BF16"}


def _config(
    fused: Fused, query: Any, key: Any, lengths: Sequence[Any], products: Any
) -> str:
    """Returns XLA's `GpuBackendConfig` as JSON."""
    batch, length, heads, _ = typeof(query).shape
    span = typeof(key).shape[1]
    mask = "_".join(
        word
        for word, given in (("PADDING", lengths), ("CAUSAL", fused.is_causal))
        if given
    )
    axes = {
        f"{name}_dot_dimension_numbers": {
            "lhs_contracting_dimensions": [str(contracted[0])],
            "rhs_contracting_dimensions": [str(contracted[1])],
            "lhs_batch_dimensions": [str(axis) for axis in together[0]],
            "rhs_batch_dimensions": [str(axis) for axis in together[1]],
        }
        for name, (contracted, together) in products.items()
    }
    config = {
        "algorithm": {
            "algo_id": "0",
            "math_type": "TENSOR_OP_MATH",
            "tuning_knobs": {"17": "1", "4": "0"},
            "is_cudnn_frontend": True,
            "workspace_size": "0",
        },
        "fmha_scale": fused.scale,
        "intermediate_tensor_shape": {
            "element_type": _ELEMENTS[typeof(query).dtype],
            "dimensions": [str(n) for n in (batch, heads, length, span)],
            "layout": {"minor_to_major": ["3", "2", "1", "0"]},
            "is_dynamic_dimension": [False] * 4,
        },
        "is_flash_attention": True,
        "mask_type": mask or "NO_MASK",
        "dropout_rate": 0.0,
        "seed": 42,
        "sliding_window_length": fused.window,
        "max_seg_per_batch": 1,
        "is_paged_attention": False,
        **axes,
    }
    told = {"operation_queue_id": "0", "cudnn_fmha_backend_config": config}
    return json.dumps(told)
