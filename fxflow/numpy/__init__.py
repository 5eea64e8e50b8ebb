"""NumPy's functions on fxflow arrays: `import fxflow.numpy as fnp`."""

from fxflow.core.array import Array as ndarray
from fxflow.numpy import array_methods as _array_methods  # operators and methods
from fxflow.numpy.arithmetic import (
    absolute,
    add,
    divide,
    divmod,
    float_power,
    floor_divide,
    fmax,
    fmin,
    fmod,
    maximum,
    minimum,
    multiply,
    negative,
    positive,
    power,
    reciprocal,
    remainder,
    sign,
    square,
    subtract,
)
from fxflow.numpy.comparisons import (
    bitwise_and,
    bitwise_count,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from fxflow.numpy.creation import (
    array,
    asarray,
    astype,
    copy,
    empty,
    empty_like,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from fxflow.numpy.elementary import (
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    cbrt,
    cos,
    cosh,
    deg2rad,
    exp,
    exp2,
    expm1,
    heaviside,
    hypot,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    rad2deg,
    sin,
    sinc,
    sinh,
    sqrt,
    tan,
    tanh,
)
from fxflow.numpy.joining import (
    append,
    array_split,
    block,
    column_stack,
    concatenate,
    dsplit,
    dstack,
    hsplit,
    hstack,
    split,
    stack,
    unstack,
    vsplit,
    vstack,
)
from fxflow.numpy.ranges import arange, geomspace, linspace, logspace
from fxflow.numpy.scalars import (
    bfloat16,
    bool_,
    can_cast,
    character,
    complex64,
    complex128,
    complexfloating,
    dtype,
    e,
    euler_gamma,
    finfo,
    flexible,
    float4_e2m1fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    floating,
    generic,
    iinfo,
    inexact,
    inf,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    integer,
    iscomplexobj,
    isdtype,
    isrealobj,
    isscalar,
    issubdtype,
    iterable,
    nan,
    ndim,
    newaxis,
    number,
    object_,
    pi,
    promote_types,
    result_type,
    shape,
    signedinteger,
    size,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
    unsignedinteger,
)
from fxflow.numpy.selection import choose, clip, nan_to_num, piecewise, select, where
from fxflow.numpy.shapes import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    expand_dims,
    matrix_transpose,
    moveaxis,
    ravel,
    reshape,
    rollaxis,
    squeeze,
    swapaxes,
    transpose,
)

# -- other spellings of the same functions ---------------------------------------------

abs = absolute
true_divide = divide
mod = remainder
pow = power
concat = concatenate
permute_dims = transpose
invert = bitwise_not = bitwise_invert
left_shift = bitwise_left_shift
right_shift = bitwise_right_shift
acos, acosh = arccos, arccosh
asin, asinh = arcsin, arcsinh
atan, atan2, atanh = arctan, arctan2, arctanh
radians, degrees = deg2rad, rad2deg
bool = bool_
int_ = int32
float_ = float32
complex_ = complex64
uint = uint32
single, double = float32, float64
csingle, cdouble = complex64, complex128
