"""Calls of `fxflow.lax`."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import lax, random
from tests.sweeps.catalogue import (
    A,
    Call,
    call,
    each,
    floating,
    index,
    inexact,
    invertible,
    made,
    mask,
    positive_definite,
    real,
    whole,
)

POSITIVE = {"low": 0.5, "high": 3.0}
UNIT = {"low": 0.1, "high": 0.9}
INTEGER = {"kinds": "iu", "low": 0, "high": 5}
KEY = random.key(3)
WORDS = made(lambda rng, s: rng.integers(0, 2**32, s), 4, kinds="u")


def fn(name: str, *args: Any, **options: Any) -> Call:
    return call(f"lax.{name}", *args, one_dtype=True, **options)


def many(names: str, *args: Any, **options: Any) -> list[Call]:
    return each("lax", names, *args, one_dtype=True, **options)


ELEMENTWISE = [
    *many("neg square", A(3, 4, kinds="iufc")),
    *many("abs", A(3, 4, kinds="ifc")),
    *many("sign", A(3, 4, kinds="iufc"), differentiable=False),
    *many("exp exp2 expm1 sin cos tan sinh cosh tanh logistic", inexact(3, 4)),
    *many("atan asinh", inexact(3, 4)),
    *many("asin acos atanh", inexact(3, 4, low=-0.9, high=0.9)),
    *many("acosh", inexact(3, 4, low=1.5, high=3)),
    *many("log log1p sqrt rsqrt reciprocal", inexact(3, 4, **POSITIVE)),
    *many("cbrt erf erfc bessel_i0e bessel_i1e", floating(3, 4)),
    *many("erf_inv", floating(3, 4, low=-0.9, high=0.9)),
    *many("lgamma digamma", floating(3, 4, **POSITIVE)),
    *many("floor ceil round", floating(3, 4), differentiable=False),
    *many("is_finite", floating(3, 4), differentiable=False),
    *many("real imag conj", A(3, 4, kinds="c")),
    *many("conj", floating(3, 4), note="real"),
    *many("bitwise_not", whole(3, 4), differentiable=False),
    *many("clz population_count", A(3, 4, **INTEGER), differentiable=False),
    fn("integer_pow", A(3, 4, kinds="iufc"), 3),
    fn("integer_pow", inexact(3, 4, **POSITIVE), -2, note="negative"),
    fn("reduce_precision", floating(3, 4), 5, 10, differentiable=False),
    *many("copy stop_gradient optimization_barrier", A(3, 4)),
    *many("add sub mul", A(3, 4, kinds="iufc"), A(3, 4, kinds="iufc")),
    *many("max min", A(3, 4), A(3, 4)),
    fn("div", A(3, 4, kinds="iufc"), A(3, 4, kinds="iufc", low=1, high=4)),
    fn("rem", A(3, 4, kinds="iuf", high=9), A(3, 4, kinds="iuf", low=1, high=4)),
    fn("pow", inexact(3, 4, **POSITIVE), inexact(3, 4)),
    *many("atan2", inexact(3, 4, **POSITIVE), inexact(3, 4, **POSITIVE)),
    fn("nextafter", floating(3, 4), floating(3, 4), differentiable=False),
    fn("complex", floating(3, 4), floating(3, 4)),
    *many("eq ne", A(3, 4), A(3, 4), differentiable=False),
    *many("lt le gt ge", real(3, 4), real(3, 4), differentiable=False),
    *many("bitwise_and bitwise_or bitwise_xor", whole(3, 4), whole(3, 4)),
    *many(
        "shift_left shift_right_arithmetic shift_right_logical",
        A(3, 4, **INTEGER),
        A(3, 4, **INTEGER),
    ),
    fn("mulhi", A(3, 4, **INTEGER), A(3, 4, **INTEGER)),
    fn("clamp", real(high=0), real(3, 4), real(low=0)),
    *many(
        "igamma igammac igamma_grad_a random_gamma_grad",
        floating(3, 4, **POSITIVE),
        floating(3, 4, **POSITIVE),
    ),
    fn(
        "betainc",
        floating(3, 4, **POSITIVE),
        floating(3, 4, **POSITIVE),
        floating(3, 4, **UNIT),
    ),
    fn("polygamma", made(lambda rng, s: np.full(s, 2.0), 3), floating(3, **POSITIVE)),
    fn("zeta", floating(3, 4, low=2, high=4), floating(3, 4, **POSITIVE)),
    fn("select", mask(3, 4), A(3, 4), A(3, 4)),
    fn("select_n", mask(3, 4), A(3, 4), A(3, 4)),
    fn("convert_element_type", A(3, 4), np.dtype("complex64")),
    fn("bitcast_convert_type", floating(3, 4), np.dtype("int8"), differentiable=False),
    fn(
        "threefry2x32",
        *[made(lambda rng, s: rng.integers(0, 2**32, s), kinds="u")] * 2,
        WORDS,
        WORDS,
        differentiable=False,
    ),
]

REDUCTIONS = [
    *many("reduce_sum", A(3, 4, kinds="iufc"), (0,)),
    *many("reduce_prod", A(3, 4, kinds="iufc"), (0, 1)),
    *many("reduce_max reduce_min", A(3, 4), (1,)),
    *many("reduce_and reduce_or reduce_xor", whole(3, 4), (1,)),
    *many("argmax argmin", real(3, 4), 1, np.int32, differentiable=False),
    *many("cumsum cumprod", A(3, 4, kinds="iufc"), axis=1),
    *many("cummax cummin", A(3, 4), axis=1, reverse=True),
    *many("cumlogsumexp", floating(3, 4), axis=1),
    fn("reduce", floating(3, 4), made(lambda rng, s: np.ones(s)), lax.mul, (1,)),
    fn(
        "reduce_window",
        floating(4, 5),
        made(lambda rng, s: np.zeros(s)),
        lax.add,
        (2, 3),
        (1, 2),
        "SAME",
    ),
    fn("reduce_window", floating(4, 5), -np.inf, lax.max, (2, 2), note="max"),
    fn("linear_recurrence", floating(3, 4), floating(3, 4), axis=1),
    fn("associative_scan", lambda a, b: a * b, A(5, 2, kinds="iufc")),
    *many("sort", real(3, 4)),
    fn("argsort", real(3, 4), differentiable=False),
    fn("sort_key_val", real(3, 4), A(3, 4)),
    fn("top_k", real(3, 6), 2),
    *many("approx_max_k approx_min_k", floating(3, 6), 2),
]

SHAPES = [
    fn("reshape", A(3, 4), (2, 6)),
    fn("transpose", A(2, 3, 4), (2, 0, 1)),
    fn("rev", A(3, 4), (1,)),
    fn("squeeze", A(3, 1, 4), (1,)),
    fn("expand_dims", A(3, 4), (0, 2)),
    fn("collapse", A(2, 3, 4), 0, 2),
    fn("broadcast", A(3), (2, 4)),
    fn("broadcast_in_dim", A(3), (2, 3, 4), (1,)),
    fn("broadcast_like", A(3, 1), A(3, 4)),
    fn("broadcast_to_rank", A(3), 3),
    fn("tile", A(3, 4), (2, 1)),
    fn("concatenate", [A(3, 4), A(2, 4)], 0),
    fn("stack", [A(3, 4), A(3, 4)], axis=1),
    fn("unstack", A(3, 4), axis=1),
    fn("split", A(5, 2), (2, 3)),
    fn("pad", A(3, 4), A(), ((1, 0, 1), (-1, 2, 0))),
    fn("slice", A(5, 4), (1, 0), (5, 3), (2, 1)),
    fn("slice_in_dim", A(5, 4), 1, 5, 2),
    fn("index_in_dim", A(5, 4), 2, keepdims=False),
    fn("dynamic_slice", A(5, 4), (index(below=3), index(below=2)), (2, 3)),
    fn("dynamic_slice_in_dim", A(5, 4), index(below=3), 2),
    fn("dynamic_index_in_dim", A(5, 4), index(below=5)),
    fn("index_take", A(5, 4), [index(3, below=5)], [0]),
    fn("dynamic_update_slice", A(5, 4), A(2, 3), (index(below=3), index(below=2))),
    fn("dynamic_update_slice_in_dim", A(5, 4), A(2, 4), index(below=3), 0),
    fn("dynamic_update_index_in_dim", A(5, 4), A(4), index(below=5), 0),
    fn("full", (2, 3), A()),
    fn("full_like", A(3, 4), 2, differentiable=False),
    fn("empty", (2, 3), np.float32, random=True),
    fn("iota", np.int32, 5),
    fn("broadcasted_iota", np.float32, (2, 3), 1),
    fn("broadcast_shapes", (3, 1), (4,)),
]

ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
ROW_UPDATES = lax.ScatterDimensionNumbers((1,), (0,), (0,))

INDEXING = [
    fn("gather", A(5, 4), index(3, 1, below=5), ROWS, (1, 4)),
    *many(
        "scatter",
        A(5, 4),
        made(lambda rng, s: rng.permutation(5)[:3, None], 3, 1, kinds="i"),
        A(3, 4),
        ROW_UPDATES,
    ),
    *many(
        "scatter_add scatter_sub scatter_mul",
        A(5, 4, kinds="iufc"),
        index(3, 1, below=5),
        A(3, 4, kinds="iufc"),
        ROW_UPDATES,
    ),
    *many(
        "scatter_max scatter_min",
        real(5, 4),
        index(3, 1, below=5),
        real(3, 4),
        ROW_UPDATES,
    ),
    fn(
        "scatter_apply",
        floating(5, 4),
        index(3, 1, below=5),
        fnp.sin,
        ROW_UPDATES,
        update_shape=(3, 4),
    ),
]

PRODUCTS = [
    fn("dot", A(3, 4), A(4, 2)),
    fn("dot_general", A(2, 3, 4), A(2, 4, 5), (((2,), (1,)), ((0,), (0,)))),
    fn("batch_matmul", A(2, 3, 4), A(2, 4, 5)),
    fn("ragged_dot", floating(6, 4), floating(3, 4, 2), np.array([2, 1, 3])),
    fn(
        "ragged_dot_general",
        floating(6, 4),
        floating(3, 4, 2),
        np.array([2, 1, 3]),
        lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0]),
    ),
    fn("conv", floating(1, 2, 5, 5), floating(3, 2, 2, 2), (1, 1), "SAME"),
    fn(
        "conv_general_dilated",
        A(1, 2, 5, 5, kinds="fc"),
        A(3, 2, 2, 2, kinds="fc"),
        (2, 1),
        "VALID",
        rhs_dilation=(1, 2),
    ),
    fn(
        "conv_general_dilated_local",
        floating(1, 2, 4),
        floating(3, 4, 3),
        (1,),
        "VALID",
        (2,),
    ),
    fn("conv_general_dilated_patches", floating(1, 2, 5), (2,), (1,), "VALID"),
    fn("conv_transpose", floating(1, 5, 2), floating(3, 2, 3), (2,), "SAME"),
    fn(
        "conv_with_general_padding",
        floating(1, 2, 5, 5),
        floating(3, 2, 2, 2),
        (1, 1),
        ((1, 0), (0, 1)),
        None,
        None,
    ),
    fn("fft", A(3, 4, kinds="c"), "fft", (4,)),
    fn("fft", floating(3, 4), "rfft", (4,), note="real"),
]

CONTROL = [
    fn("cond", mask(), fnp.sin, lambda x: x * 2, inexact(3)),
    fn("platform_dependent", inexact(3), default=fnp.sin, tpu=fnp.cos),
    fn("switch", index(below=3), [fnp.sin, fnp.cos, lambda x: x], inexact(3)),
    fn(
        "while_loop",
        lambda c: c[0] < 3,
        lambda c: (c[0] + 1, c[1] * 2),
        (np.int32(0), A(3, kinds="iufc")),
        differentiable=False,
    ),
    fn("fori_loop", 0, 3, lambda i, x: x * x, A(3, kinds="iufc")),
    fn("scan", lambda c, x: (c + x, c * x), A(2, kinds="iufc"), A(4, 2, kinds="iufc")),
    fn("map", fnp.sin, inexact(3, 2)),
    fn(
        "custom_root",
        lambda x: x**3 - 2,
        floating(low=1, high=2),
        lambda f, x: lax.fori_loop(0, 40, lambda i, x: x - f(x) / (3 * x * x), x),
        lambda g, y: y / g(fnp.ones_like(y)),
        differentiable=False,
    ),
    fn(
        "custom_linear_solve",
        lambda x: 2 * x,
        floating(3),
        lambda f, b: b / 2,
        symmetric=True,
    ),
]

RANDOM = [
    fn("random_seed", index(below=9), differentiable=False),
    fn("random_fold_in", KEY, index(below=9), differentiable=False),
    fn("random_split", KEY, (3,)),
    fn("random_unwrap", KEY),
    fn(
        "random_wrap",
        made(lambda rng, s: rng.integers(0, 2**32, s), 3, 2, kinds="u"),
        differentiable=False,
    ),
]

UPPER = made(lambda rng, s: np.triu(rng.uniform(0.5, 1, s)) + np.eye(3), 3, 3)

LINALG = [
    call(
        "lax.scaled_dot",
        floating(3, 4),
        floating(4, 2),
        lhs_scale=floating(3, 2),
        preferred_element_type="float32",
    ),
    call("lax.linalg.cholesky_update", UPPER, floating(3), one_dtype=True),
    call(
        "lax.linalg.symmetric_product", floating(3, 2), floating(3, 3), one_dtype=True
    ),
    *each("lax.linalg", "cholesky", positive_definite(3, 3)),
    *each("lax.linalg", "eigh", positive_definite(3, 3)),
    *each("lax.linalg", "eig schur", invertible(3, 3), differentiable=False),
    *each("lax.linalg", "lu qr", invertible(3, 3)),
    *each("lax.linalg", "svd", inexact(3, 4), compute_uv=False),
    *each("lax.linalg", "geqp3 geqrf hessenberg", inexact(3, 3), differentiable=False),
    *each("lax.linalg", "tridiagonal", positive_definite(3, 3), differentiable=False),
    call("lax.linalg.householder_product", inexact(3, 2), inexact(2), one_dtype=True),
    call(
        "lax.linalg.ormqr",
        inexact(3, 2),
        inexact(2),
        inexact(3, 4),
        one_dtype=True,
        differentiable=False,
    ),
    call(
        "lax.linalg.lu_pivots_to_permutation",
        made(lambda rng, s: np.array([1, 2, 2]), 3, kinds="i"),
        3,
        differentiable=False,
    ),
    call(
        "lax.linalg.triangular_solve",
        invertible(3, 3),
        inexact(3, 2),
        left_side=True,
        lower=True,
        one_dtype=True,
    ),
    call(
        "lax.linalg.tridiagonal_solve",
        floating(4, low=0.1, high=0.5),
        floating(4, low=2, high=3),
        floating(4, low=0.1, high=0.5),
        floating(4, 2),
        one_dtype=True,
    ),
]

CALLS = (
    ELEMENTWISE + REDUCTIONS + SHAPES + INDEXING + PRODUCTS + CONTROL + RANDOM + LINALG
)

COLLECTIVE = "needs a named axis: tests/lax/test_collectives.py"
EXEMPT = (
    {
        f"lax.{name}": COLLECTIVE
        for name in [
            "all_gather",
            "all_to_all",
            "axis_index",
            "axis_size",
            "pbroadcast",
            "pcast",
            "pmax",
            "pmean",
            "pmin",
            "ppermute",
            "precv",
            "psend",
            "pshuffle",
            "psum",
            "psum_scatter",
            "pswapaxes",
            "ragged_all_to_all",
        ]
    }
    | {
        f"lax.{name}": "computes with shapes, not arrays: tests/lax"
        for name in [
            "conv_dimension_numbers",
            "conv_general_permutations",
            "conv_general_shape_tuple",
            "conv_shape_tuple",
            "conv_transpose_shape_tuple",
            "padtype_to_pads",
            "reduce_window_shape_tuple",
        ]
    }
    | {
        "lax.with_sharding_constraint": "needs a mesh: tests/lax/test_sharded_parts.py",
        "lax.rng_bit_generator": "under vmap all bits come from the first state: "
        "tests/lax/test_rng_bit_generator.py",
        "lax.DotDimensionNumbers": "a type",
        "lax.masked": "takes a function: tests/lax/test_masked_calls.py",
        "lax.composite": "gives a function: tests/lax/test_composites.py",
    }
)
