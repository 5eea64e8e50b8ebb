"""First values of weights: functions of a key, shape and dtype, and their makers.

An initializer is called `init(key, shape, dtype=None, out_sharding=None)`; the last
says how the weights are laid over devices, and each then makes its own part of them.

A *fan* is how many numbers a unit gets from below (`fan_in`) or gives above
(`fan_out`): the length of that axis times the receptive field, which is every axis that
is neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, Shape, dtypes
from fxflow.core.boundary import public as _public
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from fxflow.lax.axes import shape_or_length
from fxflow.lax.transfer import laid_out
from fxflow.numpy._operands import DTypeLike

__all__ = [
    "Initializer",
    "zeros",
    "ones",
    "constant",
    "uniform",
    "normal",
    "truncated_normal",
    "variance_scaling",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "orthogonal",
    "delta_orthogonal",
]

Axes = int | Sequence[int]


@runtime_checkable
class Initializer(Protocol):
    """Makes the first value of a weight."""

    def __call__(
        self, key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None
    ) -> Array:
        """Returns an array of a shape and dtype, drawn with a key."""
        ...


def _dtype(dtype: Any, default: Any) -> Any:
    if dtype is None:
        dtype = default
    chosen = dtypes.default_float() if dtype is None else dtypes.dtype(dtype)
    if not dtypes.is_inexact(chosen):
        raise DtypeError(
            "initializers: dtype must be float or complex, got "
            f"{dtypes.short_name(chosen)}"
        )
    return chosen


def _initializer(draw: Callable[..., Array], default: Any) -> Initializer:
    """Makes an initializer.

    Args:
      draw: takes a key, lengths, a float or complex dtype and a sharding or None.
      default: the dtype, where the user gives none.
    """

    def init(
        key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None
    ) -> Array:
        chosen = _dtype(dtype, default)
        lengths = shape_or_length("initializers", shape)
        return draw(key, lengths, chosen, out_sharding)

    return init


def _laid_out(weights: Any, out_sharding: Any) -> Array:
    """Lays out weights that no device can make a part of by itself."""
    if out_sharding is not None:
        weights = laid_out("initializers", weights, out_sharding)
    out: Array = weights
    return out


# -- fixed values ----------------------------------------------------------------------


_zeros_docs = shared("""
    Args:
      key: not used; may be None.
      shape: shape of the result.
      dtype: dtype of the result; None means the default float.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out; each device makes its own part.

    Returns:
      An array of that shape and dtype.

    Raises:
      PlacementError: the result cannot be laid out as `out_sharding` specifies.
""")


@_zeros_docs
def zeros(
    key: Any, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None
) -> Array:
    """Returns zeros.

    Example:
      >>> nn.initializers.zeros(None, (2,)).tolist()
      [0.0, 0.0]
    """
    return fnp.zeros(shape, dtype, out_sharding=out_sharding)


@_zeros_docs
def ones(
    key: Any, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None
) -> Array:
    """Returns ones.

    Example:
      >>> nn.initializers.ones(None, (2,)).tolist()
      [1.0, 1.0]
    """
    return fnp.ones(shape, dtype, out_sharding=out_sharding)


_initializer_docs = shared("""
    Args:
      dtype: default of the initializer; None means the default float.

    Returns:
      A function of key, shape, dtype and out_sharding.
""")


@_initializer_docs
def constant(value: Any, dtype: DTypeLike | None = None) -> Initializer:
    """Makes an initializer that returns a given value.

    Args:
      value: number, or array that broadcasts to the shape.

    Example:
      >>> nn.initializers.constant(3.0)(None, (2,)).tolist()
      [3.0, 3.0]
    """
    default = dtype

    def init(
        key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None
    ) -> Array:
        chosen = default if dtype is None else dtype
        return fnp.full(shape, value, chosen, out_sharding=out_sharding)

    return init


# -- one distribution ------------------------------------------------------------------


def _times(drawn: Array, scale: Any) -> Array:
    """Returns numbers times a factor, in the dtype that was asked for."""
    return fnp.multiply(drawn, fnp.asarray(scale, drawn.dtype))


@_initializer_docs
def uniform(scale: Any = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Makes an initializer that draws uniform numbers in [0, scale).

    Args:
      scale: upper bound.

    Example:
      >>> nn.initializers.uniform(5.0)(random.key(0), (2, 3)).shape
      (2, 3)
    """

    def draw(key: Any, shape: Shape, dtype: Any, out_sharding: Any) -> Array:
        drawn = random.uniform(key, shape, dtype, out_sharding=out_sharding)
        return _times(drawn, scale)

    return _initializer(draw, dtype)


@_initializer_docs
def normal(stddev: Any = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Makes an initializer that draws normal numbers of mean 0.

    Args:
      stddev: standard deviation.

    Example:
      >>> nn.initializers.normal(5.0)(random.key(0), (2, 3)).shape
      (2, 3)
    """

    def draw(key: Any, shape: Shape, dtype: Any, out_sharding: Any) -> Array:
        drawn = random.normal(key, shape, dtype, out_sharding=out_sharding)
        return _times(drawn, stddev)

    return _initializer(draw, dtype)


@_initializer_docs
def truncated_normal(
    stddev: Any = 1e-2,
    dtype: DTypeLike | None = None,
    lower: Any = -2.0,
    upper: Any = 2.0,
) -> Initializer:
    """Makes an initializer that draws normal numbers between two bounds, then scales.

    Args:
      stddev: factor: the standard deviation before truncation.
      lower: lower bound before scaling.
      upper: upper bound before scaling.

    Example:
      >>> w = nn.initializers.truncated_normal(5.0)(random.key(0), (2, 3))
      >>> bool(abs(w).max() < 10.0)
      True
    """

    def draw(key: Any, shape: Shape, dtype: Any, out_sharding: Any) -> Array:
        drawn = random.truncated_normal(
            key, lower, upper, shape, dtype, out_sharding=out_sharding
        )
        return _times(drawn, stddev)

    return _initializer(draw, dtype)


# -- variance by the fans --------------------------------------------------------------


def _axes(name: str, axes: Axes, shape: Shape) -> tuple[int, ...]:
    given = (axes,) if isinstance(axes, int) else tuple(axes)
    for axis in given:
        if not -len(shape) <= axis < len(shape):
            raise AxisError(
                f"variance_scaling: {name} {axis} is not an axis of weights of shape "
                f"{shape}; weights of one axis need in_axis, out_axis given"
            )
    return tuple(axis % len(shape) for axis in given)


def _fans(
    shape: Shape, in_axis: Axes, out_axis: Axes, batch: Axes
) -> tuple[float, float]:
    """Returns how many numbers go into a unit and out of one."""

    def size(name: str, axes: Axes) -> int:
        return math.prod(shape[a] for a in _axes(name, axes, shape))

    below, above = size("in_axis", in_axis), size("out_axis", out_axis)
    others = below * above * size("batch_axis", batch)
    field = math.prod(shape) / others if others else 1.0
    return below * field, above * field


@_initializer_docs
def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    r"""Makes an initializer whose variance keeps the size of signals: `scale / fan`.

    Args:
      scale: variance times fan, > 0.
      mode: which fan: `"fan_in"`, `"fan_out"`, `"fan_avg"` (their mean) or
        `"fan_geo_avg"` (their geometric mean).
      distribution: `"truncated_normal"` (within two standard deviations),
        `"normal"` or `"uniform"`; complex numbers in the disc instead.
      in_axis: axis or axes of a unit's inputs.
      out_axis: axis or axes of units.
      batch_axis: axes along which independent weights lie.

    Raises:
      ArgumentError: unknown mode or distribution.
      AxisError: (when called) the shape has no such axis.

    Example:
      >>> init = nn.initializers.variance_scaling(1.0, "fan_avg", "uniform")
      >>> init(random.key(0), (2, 3)).shape
      (2, 3)

    Source: Glorot and Bengio 2010; He et al. 2015. 0.8796… is the standard deviation
    of a normal number cut at 2, 0.9531… that of a complex one.
    """
    modes = ("fan_in", "fan_out", "fan_avg", "fan_geo_avg")
    kinds = ("truncated_normal", "normal", "uniform")
    if not isinstance(mode, str) or mode not in modes:
        raise ArgumentError(
            f"variance_scaling: mode must be one of {modes}, got {mode!r}"
        )
    if not isinstance(distribution, str) or distribution not in kinds:
        raise ArgumentError(
            f"variance_scaling: distribution must be one of {kinds}, got "
            f"{distribution!r}"
        )

    def draw(key: Any, shape: Shape, dtype: Any, out_sharding: Any) -> Array:
        below, above = _fans(shape, in_axis, out_axis, batch_axis)
        fan = {
            "fan_in": below,
            "fan_out": above,
            "fan_avg": (below + above) / 2,
            "fan_geo_avg": math.sqrt(below * above),
        }[mode]
        # Rounded as an array of the dtype would be, so that numbers are those of JAX.
        part = dtypes.to_real(dtype)
        variance = fnp.asarray(scale / fan if fan else 0.0, part)
        is_complex = dtypes.is_complex(dtype)
        if distribution == "normal":
            drawn = random.normal(key, shape, dtype, out_sharding=out_sharding)
            factor = fnp.sqrt(variance)
        elif distribution == "uniform":
            if is_complex:
                drawn = _in_disc(key, shape, dtype, out_sharding)
                factor = fnp.sqrt(variance)
            else:
                drawn = random.uniform(
                    key, shape, dtype, -1.0, 1.0, out_sharding=out_sharding
                )
                factor = fnp.sqrt(fnp.multiply(3.0, variance))
        elif is_complex:
            drawn = _normal_in_disc(key, shape, dtype, out_sharding)
            factor = fnp.divide(fnp.sqrt(variance), 0.95311164380491208)
        else:
            drawn = random.truncated_normal(
                key, -2.0, 2.0, shape, dtype, out_sharding=out_sharding
            )
            factor = fnp.divide(fnp.sqrt(variance), 0.87962566103423978)
        return fnp.multiply(drawn, factor)

    return _initializer(draw, dtype)


def _in_disc(key: Any, shape: Shape, dtype: Any, out_sharding: Any) -> Any:
    """Draws complex numbers uniformly in the disc of variance 1."""
    first, second = _two_uniform(key, shape, dtype, out_sharding)
    return _polar(fnp.sqrt(fnp.multiply(2.0, first)), second, dtype)


def _normal_in_disc(key: Any, shape: Shape, dtype: Any, out_sharding: Any) -> Any:
    """Draws complex normal numbers of modulus below 2."""
    first, second = _two_uniform(key, shape, dtype, out_sharding)
    tail = fnp.multiply(1 - math.exp(-4), first)
    return _polar(
        fnp.sqrt(fnp.negative(fnp.log(fnp.subtract(1.0, tail)))), second, dtype
    )


def _two_uniform(
    key: Any, shape: Shape, dtype: Any, out_sharding: Any
) -> tuple[Any, Any]:
    keys: Any = random.split(key)
    part = dtypes.to_real(dtype)
    first, second = (
        random.uniform(keys[i], shape, part, out_sharding=out_sharding) for i in (0, 1)
    )
    return first, second


def _polar(radius: Any, turn: Any, dtype: Any) -> Any:
    angle = fnp.multiply(2 * math.pi, turn)
    return fnp.multiply(radius, lax.complex(fnp.cos(angle), fnp.sin(angle)))


_SCALED = """Makes an initializer: {what}.

{variance}

Args:
  in_axis: axis or axes of a unit's inputs.
  out_axis: axis or axes of units.
  batch_axis: axes along which independent weights lie.
  dtype: default of the initializer; None means the default float.

Returns:
  A function of key, shape, dtype and out_sharding.

Example:
  >>> nn.initializers.{name}()(random.key(0), (2, 3)).shape
  (2, 3)

Source: {source}.
"""


class _Scaled(Protocol):
    """A function that makes an initializer of scaled variance."""

    def __call__(
        self,
        in_axis: Axes = -2,
        out_axis: Axes = -1,
        batch_axis: Axes = (),
        dtype: Any = None,
    ) -> Initializer: ...


def _scaled(
    name: str, scale: float, mode: str, distribution: str, source: str
) -> _Scaled:
    def make(
        in_axis: Axes = -2,
        out_axis: Axes = -1,
        batch_axis: Axes = (),
        dtype: Any = None,
    ) -> Initializer:
        return variance_scaling(
            scale, mode, distribution, in_axis, out_axis, batch_axis, dtype
        )

    what = distribution.replace("_", " ")
    variance = f'`variance_scaling({scale}, "{mode}", "{distribution}")`.'
    make.__name__ = make.__qualname__ = name
    make.__doc__ = _SCALED.format(
        what=f"{what} numbers", variance=variance, name=name, source=source
    )
    return make


_GLOROT, _HE, _LECUN = "Glorot and Bengio 2010", "He et al. 2015", "LeCun et al. 1998"
glorot_normal: _Scaled = _scaled(
    "glorot_normal", 1.0, "fan_avg", "truncated_normal", _GLOROT
)
glorot_uniform: _Scaled = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform", _GLOROT)
he_normal: _Scaled = _scaled("he_normal", 2.0, "fan_in", "truncated_normal", _HE)
he_uniform: _Scaled = _scaled("he_uniform", 2.0, "fan_in", "uniform", _HE)
lecun_normal: _Scaled = _scaled(
    "lecun_normal", 1.0, "fan_in", "truncated_normal", _LECUN
)
lecun_uniform: _Scaled = _scaled("lecun_uniform", 1.0, "fan_in", "uniform", _LECUN)


# -- orthogonal ------------------------------------------------------------------------


@_initializer_docs
def orthogonal(
    scale: Any = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Makes an initializer that returns orthogonal matrices, uniformly distributed.

    Args:
      scale: factor.
      column_axis: axis of the columns; the others together are rows.

    Returns:
      A function of key, shape (at least two axes), dtype and out_sharding.

    Example:
      >>> nn.initializers.orthogonal()(random.key(0), (2, 3)).shape
      (2, 3)

    Source: Saxe, McClelland, Ganguli 2014.
    """

    def draw(key: Any, shape: Shape, dtype: Any, out_sharding: Any) -> Array:
        if len(shape) < 2:
            raise ShapeError(
                f"orthogonal: weights need at least two axes, got shape {shape}"
            )
        columns = shape[column_axis]
        rows = math.prod(shape) // columns if columns else 0
        # There is no decomposition in 16 bits.
        wide = dtype if dtypes.bits(dtype) >= 32 else dtypes.float32
        q = lax.convert_element_type(
            random.orthogonal(key, rows, (), wide, columns), dtype
        )
        others = list(shape)
        del others[column_axis]
        weights = fnp.moveaxis(fnp.reshape(q, (*others, columns)), -1, column_axis)
        return _laid_out(fnp.multiply(scale, weights), out_sharding)

    return _initializer(draw, dtype)


@_initializer_docs
def delta_orthogonal(
    scale: Any = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Makes an initializer of convolutions that are orthogonal maps of the channels.

    Only the centre of the kernel is not zero, so the norm of a signal is kept.

    Args:
      scale: factor.
      column_axis: axis of the matrix's columns: -1 or -2.

    Returns:
      A function of key, shape, dtype and out_sharding; the shape is (spatial axes (one
      to three), channels in, channels out), with no more channels in than out.

    Example:
      >>> nn.initializers.delta_orthogonal()(random.key(0), (3, 3, 4, 4)).shape
      (3, 3, 4, 4)

    Source: Xiao et al. 2018, "Dynamical isometry and a mean field theory of CNNs".
    """

    def draw(key: Any, shape: Shape, dtype: Any, out_sharding: Any) -> Array:
        if len(shape) not in (3, 4, 5):
            raise ShapeError(
                f"delta_orthogonal: weights need 3, 4 or 5 axes, got shape {shape}"
            )
        if shape[-1] < shape[-2]:
            raise ShapeError(
                "delta_orthogonal: there must not be fewer channels out than in, got "
                f"shape {shape}"
            )
        centre = orthogonal(scale, column_axis)(key, shape[-2:], dtype)
        weights: Any = fnp.zeros(shape, centre.dtype)
        middle = tuple((n - 1) // 2 for n in shape[:-2])
        return _laid_out(weights.at[middle].set(centre), out_sharding)

    return _initializer(draw, dtype)


_public(globals(), __all__)
