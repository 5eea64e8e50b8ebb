"""NumPy's functions on fxflow arrays: `import fxflow.numpy as fnp`."""

# fmt: off
import typing as _typing

from numpy.exceptions import ComplexWarning

from fxflow.core.arrays.array import Array as ndarray
from fxflow.core.arrays.dtypes import finfo, iinfo, issubdtype
from fxflow.core.arrays.promotion import promote_types, result_type
from fxflow.core.boundary import public as _public
from fxflow.numpy import array_methods as _array_methods  # noqa: F401 (operators, methods)
from fxflow.numpy import ufunc_methods as _ufunc_methods  # noqa: F401 (reduce, …)
from fxflow.numpy.arithmetic import (
    absolute, add, divide, divmod, float_power, floor_divide, fmax, fmin, fmod, gcd,
    lcm, maximum, minimum, multiply, negative, positive, power, reciprocal, remainder,
    sign, square, subtract,
)
from fxflow.numpy.arranging import (
    flip, fliplr, flipud, repeat, resize, roll, rot90, tile,
)
from fxflow.numpy.axis_order import (
    matrix_transpose, moveaxis, rollaxis, swapaxes, transpose,
)
from fxflow.numpy.bits import (
    bitwise_and, bitwise_count, bitwise_invert, bitwise_left_shift, bitwise_or,
    bitwise_right_shift, bitwise_xor, packbits, unpackbits,
)
from fxflow.numpy.comparisons import (
    equal, greater, greater_equal, less, less_equal, logical_and, logical_not,
    logical_or, logical_xor, not_equal,
)
from fxflow.numpy.complex_parts import angle, conjugate, imag, real, real_if_close
from fxflow.numpy.creation import array, asarray, astype, copy
from fxflow.numpy.cumulative import (
    cumprod, cumsum, cumulative_prod, cumulative_sum, nancumprod, nancumsum,
)
from fxflow.numpy.diagonals import (
    diag, diag_indices, diag_indices_from, diagflat, diagonal, eye, identity,
    mask_indices, trace, tri, tril, tril_indices, tril_indices_from, triu, triu_indices,
    triu_indices_from, vander,
)
from fxflow.numpy.elementary import (
    arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, cbrt, cos, cosh,
    deg2rad, exp, exp2, expm1, heaviside, hypot, log, log1p, log2, log10, logaddexp,
    logaddexp2, rad2deg, sin, sinc, sinh, sqrt, tan, tanh,
)
from fxflow.numpy.searching import argwhere, flatnonzero, nonzero, where
from fxflow.numpy.index_functions import (
    compress, extract, fill_diagonal, index_exp, ix_, place, put, put_along_axis, s_,
    take, take_along_axis,
)
from fxflow.numpy.concatenation import (
    append, array_split, block, column_stack, concatenate, dsplit, dstack, hsplit,
    hstack, split, stack, unstack, vsplit, vstack,
)
from fxflow.numpy.means import average, mean, std, var
from fxflow.numpy.products import (
    dot, inner, matmul, matvec, tensordot, vdot, vecdot, vecmat,
)
from fxflow.numpy.reductions import (
    all, any, argmax, argmin, count_nonzero, max, min, prod, ptp, sum,
)
from fxflow.numpy.rounding import ceil, floor, rint, round, trunc
from fxflow.numpy.scalars import (
    bfloat16, bool_, can_cast, character, complex64, complex128, complexfloating, dtype,
    e, euler_gamma, flexible, float4_e2m1fn, float8_e3m4, float8_e4m3,
    float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz,
    float8_e8m0fnu, float16, float32, float64, floating, generic, inexact, inf, int2,
    int4, int8, int16, int32, int64, integer, iscomplexobj, isdtype, isrealobj,
    isscalar, iterable, nan, ndim, newaxis, number, object_, pi, shape, signedinteger,
    size, uint2, uint4, uint8, uint16, uint32, uint64, unsignedinteger,
)
from fxflow.numpy.scalars import _Scalar as _Scalar
from fxflow.numpy.selection import choose, clip, nan_to_num, piecewise, select
from fxflow.numpy.shapes import (
    atleast_1d, atleast_2d, atleast_3d, expand_dims, ravel, reshape, squeeze,
)
from fxflow.numpy.sorting import (
    argpartition, argsort, digitize, lexsort, partition, searchsorted, sort,
    sort_complex,
)
from fxflow.numpy.ufuncs import Binary as _Binary
from fxflow.numpy.ufuncs import Unary as _Unary
from fxflow.numpy.ufuncs import ufunc

if _typing.TYPE_CHECKING:
    from fxflow.numpy import fft, linalg
    from fxflow.numpy.along_axes import apply_along_axis, apply_over_axes
    from fxflow.numpy.broadcasting import (
        broadcast_arrays, broadcast_shapes, broadcast_to,
    )
    from fxflow.numpy.calculus import diff, ediff1d, gradient, interp, trapezoid, unwrap
    from fxflow.numpy.closeness import allclose, array_equal, array_equiv, isclose
    from fxflow.numpy.einstein_sums import einsum, einsum_path
    from fxflow.numpy.io import (
        array_repr, array_str, from_dlpack, frombuffer, fromfile, fromiter, fromstring,
        get_printoptions, load, printoptions, save, savez, set_printoptions,
    )
    from fxflow.numpy.filling import (
        empty, empty_like, full, full_like, ones, ones_like, zeros, zeros_like,
    )
    from fxflow.numpy.floats import (
        copysign, fabs, frexp, ldexp, modf, nextafter, spacing,
    )
    from fxflow.numpy.grids import c_, fromfunction, indices, meshgrid, mgrid, ogrid, r_
    from fxflow.numpy.histograms import (
        bincount, histogram, histogram2d, histogram_bin_edges, histogramdd,
    )
    from fxflow.numpy.insertion import delete, insert, trim_zeros
    from fxflow.numpy.namespace_info import __array_namespace_info__
    from fxflow.numpy.nan_reductions import (
        nanargmax, nanargmin, nanmax, nanmean, nanmin, nanprod, nanstd, nansum, nanvar,
    )
    from fxflow.numpy.number_kinds import (
        iscomplex, isfinite, isinf, isnan, isneginf, isposinf, isreal, signbit,
    )
    from fxflow.numpy.index_conversion import ravel_multi_index, unravel_index
    from fxflow.numpy.outer_products import cross, kron, outer
    from fxflow.numpy.padding import pad
    from fxflow.numpy.polynomial import (
        poly, polyadd, polyder, polydiv, polyfit, polyint, polymul, polysub, polyval,
        roots,
    )
    from fxflow.numpy.quantiles import (
        median, nanmedian, nanpercentile, nanquantile, percentile, quantile,
    )
    from fxflow.numpy.ranges import arange, geomspace, linspace, logspace
    from fxflow.numpy.sets import (
        intersect1d, isin, setdiff1d, setxor1d, union1d, unique, unique_all,
        unique_counts, unique_inverse, unique_values,
    )
    from fxflow.numpy.statistics import convolve, corrcoef, correlate, cov
    from fxflow.numpy.vectorization import frompyfunc, vectorize
    from fxflow.numpy.windows import bartlett, blackman, hamming, hanning, i0, kaiser

# -- other spellings of the same functions ---------------------------------------------

abs = absolute
amax = max
amin = min
true_divide: _Binary[ndarray] = divide
mod = remainder
pow: _Binary[ndarray] = power
concat = concatenate
permute_dims = transpose
bitwise_not: _Unary[ndarray] = bitwise_invert
invert: _Unary[ndarray] = bitwise_invert
left_shift: _Binary[ndarray] = bitwise_left_shift
right_shift: _Binary[ndarray] = bitwise_right_shift
acos: _Unary[ndarray] = arccos
acosh: _Unary[ndarray] = arccosh
asin: _Unary[ndarray] = arcsin
asinh: _Unary[ndarray] = arcsinh
atan: _Unary[ndarray] = arctan
atan2: _Binary[ndarray] = arctan2
atanh: _Unary[ndarray] = arctanh
radians: _Unary[ndarray] = deg2rad
degrees: _Unary[ndarray] = rad2deg
conj = conjugate
around = round
fix = trunc
bool: _Scalar = bool_
int_: _Scalar = int32
float_: _Scalar = float32
complex_: _Scalar = complex64
uint: _Scalar = uint32
single: _Scalar = float32
double: _Scalar = float64
csingle: _Scalar = complex64
cdouble: _Scalar = complex128

__array_api_version__ = "2025.12"

# What type checkers may see; ruff compares it with the imports.
__all__ = [
    "ComplexWarning", "ndarray", "fft", "linalg",
    "apply_along_axis", "apply_over_axes",
    "absolute", "add", "divide", "divmod", "float_power", "floor_divide", "fmax",
        "fmin", "fmod", "maximum", "minimum", "multiply", "negative", "positive",
        "power", "reciprocal", "remainder", "sign", "square", "subtract",
    "flip", "fliplr", "flipud", "repeat", "resize", "roll", "rot90", "tile",
    "matrix_transpose", "moveaxis", "rollaxis", "swapaxes", "transpose",
    "packbits", "unpackbits",
    "broadcast_arrays", "broadcast_shapes", "broadcast_to",
    "diff", "ediff1d", "gradient", "interp", "trapezoid", "unwrap",
    "allclose", "array_equal", "array_equiv", "isclose",
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift",
        "bitwise_or", "bitwise_right_shift", "bitwise_xor", "equal", "greater",
        "greater_equal", "less", "less_equal", "logical_and", "logical_not",
        "logical_or", "logical_xor", "not_equal",
    "array", "asarray", "astype", "copy",
    "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "nancumprod", "nancumsum",
    "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "eye",
        "identity", "mask_indices", "trace", "tri", "tril", "tril_indices",
        "tril_indices_from", "triu", "triu_indices", "triu_indices_from", "vander",
    "einsum", "einsum_path",
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "cbrt",
        "cos", "cosh", "deg2rad", "exp", "exp2", "expm1", "heaviside", "hypot", "log",
        "log1p", "log2", "log10", "logaddexp", "logaddexp2", "rad2deg", "sin", "sinc",
        "sinh", "sqrt", "tan", "tanh",
    "array_repr", "array_str", "from_dlpack", "frombuffer", "fromfile", "fromiter",
        "fromstring", "get_printoptions", "load", "printoptions", "save", "savez",
        "set_printoptions",
    "argmax", "argmin",
    "empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros",
        "zeros_like",
    "argwhere", "flatnonzero", "nonzero", "where",
    "angle", "ceil", "conjugate", "copysign", "fabs", "floor", "frexp", "gcd", "imag",
        "iscomplex", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal",
        "lcm", "ldexp", "modf", "nextafter", "real", "real_if_close", "rint", "round",
        "signbit", "spacing", "trunc",
    "c_", "fromfunction", "indices", "meshgrid", "mgrid", "ogrid", "r_",
    "bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd",
    "compress", "extract", "fill_diagonal", "index_exp", "ix_", "place", "put",
        "put_along_axis", "s_", "take", "take_along_axis",
    "delete", "insert", "trim_zeros",
    "append", "array_split", "block", "column_stack", "concatenate", "dsplit", "dstack",
        "hsplit", "hstack", "split", "stack", "unstack", "vsplit", "vstack",
    "average", "mean", "std", "var",
    "__array_namespace_info__",
    "nanargmax", "nanargmin", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd",
        "nansum", "nanvar",
    "ravel_multi_index", "unravel_index",
    "cross", "kron", "outer",
    "pad",
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub",
        "polyval", "roots",
    "dot", "inner", "matmul", "matvec", "tensordot", "vdot", "vecdot", "vecmat",
    "median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile",
    "arange", "geomspace", "linspace", "logspace",
    "all", "any", "count_nonzero", "max", "min", "prod", "ptp", "sum",
    "bfloat16", "bool_", "can_cast", "character", "complex64", "complex128",
        "complexfloating", "dtype", "e", "euler_gamma", "finfo", "flexible",
        "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
        "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
        "float8_e8m0fnu", "float16", "float32", "float64", "floating", "generic",
        "iinfo", "inexact", "inf", "int2", "int4", "int8", "int16", "int32", "int64",
        "integer", "iscomplexobj", "isdtype", "isrealobj", "isscalar", "issubdtype",
        "iterable", "nan", "ndim", "newaxis", "number", "object_", "pi",
        "promote_types", "result_type", "shape", "signedinteger", "size", "uint2",
        "uint4", "uint8", "uint16", "uint32", "uint64", "unsignedinteger",
    "choose", "clip", "nan_to_num", "piecewise", "select",
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all",
        "unique_counts", "unique_inverse", "unique_values",
    "atleast_1d", "atleast_2d", "atleast_3d", "expand_dims", "ravel", "reshape",
        "squeeze",
    "argpartition", "argsort", "digitize", "lexsort", "partition", "searchsorted",
        "sort", "sort_complex",
    "convolve", "corrcoef", "correlate", "cov",
    "ufunc",
    "frompyfunc", "vectorize",
    "bartlett", "blackman", "hamming", "hanning", "i0", "kaiser",
    "abs", "amax", "amin", "true_divide", "mod", "pow", "concat", "permute_dims",
        "invert", "bitwise_not", "left_shift", "right_shift", "acos", "acosh", "asin",
        "asinh", "atan", "atan2", "atanh", "radians", "degrees", "conj", "around",
        "fix", "bool", "int_", "float_", "complex_", "uint", "single", "double",
        "csingle", "cdouble",
]

_public(
    globals(),
    __all__,
    lazy=("fft", "linalg"),
    # What arrays have no operator or method for.
    elsewhere={
        "along_axes": "apply_along_axis apply_over_axes",
        "broadcasting": "broadcast_arrays broadcast_shapes broadcast_to",
        "calculus": "diff ediff1d gradient interp trapezoid unwrap",
        "closeness": "allclose array_equal array_equiv isclose",
        "einstein_sums": "einsum einsum_path",
        "io": (
            "array_repr array_str from_dlpack frombuffer fromfile fromiter "
            "fromstring get_printoptions load printoptions save savez "
            "set_printoptions"
        ),
        "filling": "empty empty_like full full_like ones ones_like zeros zeros_like",
        "floats": "copysign fabs frexp ldexp modf nextafter spacing",
        "grids": "c_ fromfunction indices meshgrid mgrid ogrid r_",
        "histograms": "bincount histogram histogram2d histogram_bin_edges histogramdd",
        "insertion": "delete insert trim_zeros",
        "namespace_info": "__array_namespace_info__",
        "nan_reductions": (
            "nanargmax nanargmin nanmax nanmean nanmin nanprod nanstd nansum nanvar"
        ),
        "number_kinds": (
            "iscomplex isfinite isinf isnan isneginf isposinf isreal signbit"
        ),
        "index_conversion": "ravel_multi_index unravel_index",
        "outer_products": "cross kron outer",
        "padding": "pad",
        "polynomial": (
            "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval "
            "roots"
        ),
        "quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
        "ranges": "arange geomspace linspace logspace",
        "sets": (
            "intersect1d isin setdiff1d setxor1d union1d unique unique_all "
            "unique_counts unique_inverse unique_values"
        ),
        "statistics": "convolve corrcoef correlate cov",
        "vectorization": "frompyfunc vectorize",
        "windows": "bartlett blackman hamming hanning i0 kaiser",
    },
)
# fmt: on
