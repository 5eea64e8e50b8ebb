"""Primitive operations: one file for each family.

Functions on arrays of one dtype and shape: no promotion, and no broadcasting but of
constants. `fxflow.numpy` is made of them.
"""

# fmt: off
import typing as _typing

from fxflow.core.boundary import public as _public
from fxflow.core.runtime import eager as _eager  # noqa: F401 (operations run once it is here)
from fxflow.lax.axis_order import rev, transpose
from fxflow.lax.bitcasting import bitcast_convert_type
from fxflow.lax.bitwise import (
    bitwise_and, bitwise_not, bitwise_or, bitwise_xor, clz, population_count,
    shift_left, shift_right_arithmetic, shift_right_logical,
)
from fxflow.lax.broadcasting import (
    broadcast, broadcast_in_dim, broadcast_like, broadcast_shapes, broadcast_to_rank,
    tile,
)
from fxflow.lax.comparison import eq, ge, gt, le, lt, ne
from fxflow.lax.complex import complex, conj, imag, real
from fxflow.lax.control_flow.scan import scan
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import broadcasted_iota, empty, full, full_like, iota
from fxflow.lax import dimension_size as _sizes  # noqa: F401 (sizes become arrays)
from fxflow.lax.dot import DotDimensionNumbers, batch_matmul, dot, dot_general
from fxflow.lax.elementwise import abs, add, div, max, min, mul, neg, rem, sign, sub
from fxflow.lax.exponential import exp, exp2, expm1, log, log1p, logistic
from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers,
)
from fxflow.lax.gather_scatter.gather import gather
from fxflow.lax.gather_scatter.scatter import (
    scatter, scatter_add, scatter_max, scatter_min, scatter_sub,
)
from fxflow.lax.gradient_control import stop_gradient
from fxflow.lax.concatenation import concatenate, split, stack, unstack
from fxflow.lax.padding import pad
from fxflow.lax.powers import cbrt, integer_pow, pow, reciprocal, rsqrt, sqrt, square
from fxflow.lax.product_precision import DotAlgorithm, DotAlgorithmPreset, Precision
from fxflow.lax.random_bits import (
    random_fold_in, random_seed, random_split, random_unwrap, random_wrap,
)
from fxflow.lax.reduction import (
    reduce_and, reduce_max, reduce_min, reduce_or, reduce_prod, reduce_sum, reduce_xor,
)
from fxflow.lax.reshaping import collapse, expand_dims, reshape, squeeze
from fxflow.lax.rounding import RoundingMethod, ceil, floor, is_finite, nextafter, round
from fxflow.lax.select import clamp, select, select_n
from fxflow.lax.slicing import index_in_dim, slice, slice_in_dim
from fxflow.lax.sort import argsort, sort, sort_key_val, top_k
from fxflow.lax.rng_bit_generator import RandomAlgorithm, rng_bit_generator
from fxflow.lax.threefry import threefry2x32
from fxflow.lax.transfer import with_sharding_constraint
from fxflow.lax.trigonometric import (
    acos, acosh, asin, asinh, atan, atan2, atanh, cos, cosh, sin, sinh, tan, tanh,
)

if _typing.TYPE_CHECKING:
    from fxflow.lax import linalg
    from fxflow.lax.families import AccuracyMode, Tolerance
    from fxflow.lax.approximate import approx_max_k, approx_min_k
    from fxflow.lax.arg_extremum import argmax, argmin
    from fxflow.lax.bessel import bessel_i0e, bessel_i1e
    from fxflow.lax.collectives import (
        all_gather, all_to_all, axis_index, axis_size, pbroadcast, pcast, pmax, pmean,
        pmin, ppermute, pshuffle, psum, psum_scatter, pswapaxes,
    )
    from fxflow.lax.composites import composite
    from fxflow.lax.control_flow.associative_scan import associative_scan
    from fxflow.lax.control_flow.cond import cond, switch
    from fxflow.lax.control_flow.map import map
    from fxflow.lax.control_flow.platform_dependent import platform_dependent
    from fxflow.lax.control_flow.fori_loop import fori_loop
    from fxflow.lax.control_flow.while_loop import while_loop
    from fxflow.lax.convolution import conv_general_dilated
    from fxflow.lax.convolution_dims import (
        ConvDimensionNumbers, ConvGeneralDilatedDimensionNumbers,
        conv_dimension_numbers, conv_general_permutations, padtype_to_pads,
    )
    from fxflow.lax.convolution_variants import (
        conv, conv_general_dilated_local, conv_general_dilated_patches,
        conv_general_shape_tuple, conv_shape_tuple, conv_transpose,
        conv_transpose_shape_tuple, conv_with_general_padding,
    )
    from fxflow.lax.copying import copy, optimization_barrier
    from fxflow.lax.cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum
    from fxflow.lax.custom_reduction import reduce
    from fxflow.lax.dynamic_slicing import (
        dynamic_index_in_dim, dynamic_slice, dynamic_slice_in_dim,
        dynamic_update_index_in_dim, dynamic_update_slice, dynamic_update_slice_in_dim,
    )
    from fxflow.lax.fourier import FftType, fft
    from fxflow.lax.gather_scatter.index_take import index_take
    from fxflow.lax.gather_scatter.scatter_apply import scatter_apply
    from fxflow.lax.gather_scatter.scatter_mul import scatter_mul
    from fxflow.lax.gammas import digamma, lgamma, polygamma, zeta
    from fxflow.lax.incomplete_beta import betainc
    from fxflow.lax.incomplete_gamma import (
        igamma, igamma_grad_a, igammac, random_gamma_grad,
    )
    from fxflow.lax.linear_solve import custom_linear_solve, custom_root
    from fxflow.lax.masked_calls import masked
    from fxflow.lax.point_to_point import precv, psend
    from fxflow.lax.precision import reduce_precision
    from fxflow.lax.ragged_exchange import ragged_all_to_all
    from fxflow.lax.ragged_products import (
        RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general,
    )
    from fxflow.lax.recurrence import linear_recurrence
    from fxflow.lax.scaled_products import scaled_dot
    from fxflow.lax.special import erf, erf_inv, erfc
    from fxflow.lax.wide_products import mulhi
    from fxflow.lax.window import reduce_window
    from fxflow.lax.windows import reduce_window_shape_tuple

__all__ = [
    "linalg",
    "scaled_dot",
    "random_fold_in", "random_seed", "random_split", "random_unwrap", "random_wrap",
    "threefry2x32", "RandomAlgorithm", "rng_bit_generator",
    "betainc",
    "igamma", "igamma_grad_a", "igammac", "random_gamma_grad",
    "bessel_i0e", "bessel_i1e",
    "digamma", "erf", "erf_inv", "erfc", "lgamma", "polygamma", "zeta",
    "associative_scan", "cond", "custom_linear_solve", "custom_root", "fori_loop",
        "map", "platform_dependent", "scan", "switch", "while_loop",
    "composite",
    "bitcast_convert_type",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "clz",
        "population_count", "shift_left", "shift_right_arithmetic",
        "shift_right_logical",
    "eq", "ge", "gt", "le", "lt", "ne",
    "complex", "conj", "imag", "real",
    "convert_element_type",
    "copy", "optimization_barrier",
    "abs", "add", "div", "max", "min", "mul", "neg", "rem", "sign", "sub",
    "exp", "exp2", "expm1", "log", "log1p", "logistic",
    "acosh", "asinh", "atanh", "cosh", "sinh", "tanh",
    "cbrt", "integer_pow", "pow", "reciprocal", "rsqrt", "sqrt", "square",
    "reduce_precision",
    "RoundingMethod", "ceil", "floor", "is_finite", "nextafter", "round",
    "clamp", "masked", "select", "select_n",
    "acos", "asin", "atan", "atan2", "cos", "sin", "tan",
    "broadcasted_iota", "empty", "full", "full_like", "iota",
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim",
        "dynamic_update_index_in_dim", "dynamic_update_slice",
        "dynamic_update_slice_in_dim",
    "gather",
    "concatenate", "split", "stack", "unstack",
    "pad",
    "GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers",
    "scatter", "scatter_add", "scatter_max", "scatter_min", "scatter_mul",
        "scatter_sub",
    "scatter_apply",
    "broadcast", "broadcast_in_dim", "broadcast_like", "broadcast_shapes",
        "broadcast_to_rank", "collapse", "expand_dims", "reshape", "rev", "squeeze",
        "tile", "transpose",
    "index_in_dim", "index_take", "slice", "slice_in_dim",
    "argsort", "sort", "sort_key_val", "top_k", "argmax", "argmin",
        "conv_general_dilated", "ConvDimensionNumbers",
        "ConvGeneralDilatedDimensionNumbers", "conv_dimension_numbers",
        "conv_general_permutations", "padtype_to_pads", "conv",
        "conv_general_dilated_local", "conv_general_dilated_patches", "conv_transpose",
        "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose_shape_tuple",
        "conv_with_general_padding", "cumlogsumexp", "cummax", "cummin", "cumprod",
        "cumsum", "reduce", "DotAlgorithm", "DotAlgorithmPreset", "DotDimensionNumbers",
        "Precision", "batch_matmul", "dot", "dot_general", "linear_recurrence",
        "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod",
        "reduce_sum", "reduce_xor", "reduce_window", "reduce_window_shape_tuple",
        "FftType", "fft",
    "all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pcast",
        "pmax", "pmean", "pmin", "ppermute", "pshuffle", "psum", "psum_scatter",
        "pswapaxes",
    "ragged_all_to_all", "psend", "precv",
    "with_sharding_constraint",
    "stop_gradient",
    "approx_max_k", "approx_min_k",
    "RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general",
    "mulhi",
    "AccuracyMode", "Tolerance",
]

_public(
    globals(),
    __all__,
    lazy=("linalg",),
    # What neither arrays' own operators nor the transformations need.
    elsewhere={
        "families": "AccuracyMode Tolerance",
        "approximate": "approx_max_k approx_min_k",
        "arg_extremum": "argmax argmin",
        "bessel": "bessel_i0e bessel_i1e",
        "collectives": (
            "all_gather all_to_all axis_index axis_size pbroadcast pcast pmax pmean "
            "pmin ppermute pshuffle psum psum_scatter pswapaxes"
        ),
        "composites": "composite",
        "control_flow.associative_scan": "associative_scan",
        "control_flow.cond": "cond switch",
        "control_flow.map": "map",
        "control_flow.platform_dependent": "platform_dependent",
        "control_flow.fori_loop": "fori_loop",
        "control_flow.while_loop": "while_loop",
        "convolution": "conv_general_dilated",
        "convolution_dims": (
            "ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers "
            "conv_dimension_numbers conv_general_permutations padtype_to_pads"
        ),
        "convolution_variants": (
            "conv conv_general_dilated_local conv_general_dilated_patches "
            "conv_general_shape_tuple conv_shape_tuple conv_transpose "
            "conv_transpose_shape_tuple conv_with_general_padding"
        ),
        "copying": "copy optimization_barrier",
        "cumulative": "cumlogsumexp cummax cummin cumprod cumsum",
        "custom_reduction": "reduce",
        "dynamic_slicing": (
            "dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim "
            "dynamic_update_index_in_dim dynamic_update_slice "
            "dynamic_update_slice_in_dim"
        ),
        "fourier": "FftType fft",
        "gather_scatter.index_take": "index_take",
        "gather_scatter.scatter_apply": "scatter_apply",
        "gather_scatter.scatter_mul": "scatter_mul",
        "gammas": "digamma lgamma polygamma zeta",
        "incomplete_beta": "betainc",
        "incomplete_gamma": "igamma igamma_grad_a igammac random_gamma_grad",
        "linear_solve": "custom_linear_solve custom_root",
        "masked_calls": "masked",
        "point_to_point": "precv psend",
        "precision": "reduce_precision",
        "ragged_exchange": "ragged_all_to_all",
        "ragged_products": "RaggedDotDimensionNumbers ragged_dot ragged_dot_general",
        "recurrence": "linear_recurrence",
        "scaled_products": "scaled_dot",
        "special": "erf erf_inv erfc",
        "wide_products": "mulhi",
        "window": "reduce_window",
        "windows": "reduce_window_shape_tuple",
    },
)
# fmt: on
