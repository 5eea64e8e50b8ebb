"""Samples: arguments to check a primitive with.

`samples/<module>.py` gives for each primitive of `fxflow/lax/<module>.py` a list of
`Sample`s, made of what is here; `test_conformance.py` runs each of them through every
check of `checks.py` and `derivatives.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import Array, put_host
from fxflow.core.arrays.aval import Aval

Vary = Callable[[Any, int], Any]


def reverse_and_scale(value: Any, i: int) -> Any:
    """The i-th slice of a batch: the value, reversed, smaller (integers: rolled)."""
    if i == 0:
        return value
    if i == 1:
        return np.flip(value).copy()
    if dtypes.is_inexact(value.dtype):
        with np.errstate(all="ignore"):
            return (value * np.asarray(0.75, dtypes.to_real(value.dtype))).astype(
                value.dtype
            )
    return np.roll(value.reshape(-1), 1).reshape(value.shape)


def scale(value: Any, i: int) -> Any:
    """The i-th slice of a batch where only multiples of the value are valid."""
    factor = np.asarray((1.0, 0.75, 1.5)[i], dtypes.to_real(value.dtype))
    return (value * factor).astype(value.dtype)


def same(value: Any, i: int) -> Any:
    """The i-th slice of a batch where no other value is valid."""
    return value


@dataclass(frozen=True)
class Sample:
    """Arguments to check a primitive, or a function of the public API, with.

    Attributes:
      args: NumPy arrays (their 64 bits are kept), or `Array`s of keys.
      params: of `bind`.
      name: shown in the test's name.
      diff: whether to check derivatives here (False near kinks and in flat places).
      tol: relative and absolute tolerance of values (None: by dtype).
      function: a function of the public API that binds the primitive (None: `bind`).
      constant: positions of arguments that are never traced (None: 0-d ones beside
        larger ones, if the primitive is elementwise).
      active: positions to differentiate by (None: all inexact ones).
      batch: positions that may be mapped (None: all that are not constant).
      vary: how the slices of a batch differ.
      second: whether to check second derivatives.
      widen: whether derivatives are checked in 64 bits (False: the function casts).
      oracle: computes the results with NumPy (None: the primitive's `evaluate`; for a
        function, nothing).
      slack: factor on the tolerance of finite differences.
      platforms: for which it lowers.
    """

    args: tuple[Any, ...]
    params: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    diff: bool = True
    tol: float | None = None
    function: Callable[..., Any] | None = None
    constant: tuple[int, ...] | None = None
    active: tuple[int, ...] | None = None
    batch: tuple[int, ...] | None = None
    vary: Vary = reverse_and_scale
    second: bool = True
    widen: bool = True
    oracle: Callable[..., Any] | None = None
    slack: float = 1.0
    platforms: tuple[str, ...] = ("cpu", "gpu", "tpu")


# -- making samples --------------------------------------------------------------------


def uniform(
    rng: np.random.Generator,
    shape: Any = (3, 4),
    dtype: Any = "float32",
    low: float = -2.0,
    high: float = 2.0,
) -> Any:
    """Random floats or complex numbers, or integers in the same interval."""
    dtype = dtypes.dtype(dtype)
    value = rng.uniform(low, high, shape)
    if dtypes.is_complex(dtype):
        value = value + 1j * rng.uniform(low, high, shape)
    elif dtypes.is_bool(dtype):
        return np.asarray(value > (low + high) / 2)
    elif dtypes.is_integer(dtype):
        low = max(low, 0) if dtypes.is_unsigned(dtype) else low
        return np.asarray(rng.integers(int(low), int(high) + 1, shape)).astype(dtype)
    return np.asarray(value).astype(dtype)


def away_from_zero(value: Any, gap: float = 0.2) -> Any:
    """Moves real numbers away from 0."""
    sign = np.where(value < 0, -1.0, 1.0)
    return (value.astype(np.float64) + gap * sign).astype(value.dtype)


def array(value: Any) -> Array:
    """Returns a NumPy array as an `Array` of exactly its dtype."""
    if isinstance(value, Array):
        return value
    value = np.array(value)
    return put_host(value, Aval(value.shape, value.dtype))


# -- samples of elementwise operations -------------------------------------------------

_DTYPES = {
    "b": ("bool",),
    "i": ("int8", "int32", "int64"),
    "u": ("uint8", "uint32"),
    "f": ("float32", "float64", "bfloat16", "float16"),
    "c": ("complex64", "complex128"),
}
_SHAPES = ((3, 5), (7,), (), (2, 0, 3))


def elementwise_samples(
    count: int,
    kinds: str,
    low: float = -2.0,
    high: float = 2.0,
    *,
    prepare: Callable[[Any], Any] = lambda value: value,
    constant: Sequence[int] = (),
    **options: Any,
) -> Callable[[np.random.Generator], list[Sample]]:
    """Returns a maker of samples of an operation on `count` operands.

    Args:
      count: number of operands.
      kinds: of dtypes: letters of `families.kind`.
      low: least element.
      high: greatest element.
      prepare: applied to each operand.
      constant: operands that are also tried as 0-d constants beside larger ones.
      **options: of each `Sample`.
    """

    def make(rng: np.random.Generator) -> list[Sample]:
        samples = []
        for letter in kinds:
            for n, dtype in enumerate(_DTYPES[letter]):
                for shape in _SHAPES if n == 0 else _SHAPES[:1]:
                    args = tuple(
                        prepare(uniform(rng, shape, dtype, low, high))
                        for _ in range(count)
                    )
                    samples.append(Sample(args, **options))
        for position in constant:
            args_ = [
                prepare(uniform(rng, (2, 3), _DTYPES[kinds[-1]][0], low, high))
                for _ in range(count)
            ]
            args_[position] = args_[position].reshape(-1)[0].reshape(())
            samples.append(Sample(tuple(args_), name=f"constant{position}", **options))
        return samples

    return make


def special_samples(
    count: int, *values: float, dtype: Any = "float32", **options: Any
) -> Callable[[np.random.Generator], list[Sample]]:
    """Returns a maker of one sample: every combination of some special values."""

    def make(rng: np.random.Generator) -> list[Sample]:
        grid = np.meshgrid(*[np.array(values, dtypes.dtype(dtype))] * count)
        args = tuple(g.reshape(-1) for g in grid)
        return [Sample(args, name="special", diff=False, **options)]

    return make


def both(
    *makers: Callable[[np.random.Generator], list[Sample]],
) -> Callable[[np.random.Generator], list[Sample]]:
    """Returns a maker of the samples of several makers."""
    return lambda rng: [sample for make in makers for sample in make(rng)]
