"""Sums over devices that exchange fewer bits: encoded values travel, f32 values add.

A sum over n devices takes two exchanges. Each device splits its values into n parts and
sends part i, encoded, to device i, which decodes the parts and adds them in 32 bits.
Then each device encodes its part of the sum and sends it to all. Eight bits per value,
with a scale for every 256 values, are a quarter of the traffic of `lax.psum`. Encoded
values are never added: eight bits would overflow, and each device has its own scales.

Codes are lossy. With rounding to nearest, the error of one call is at most half a step
of the code; with `rounding="stochastic"`, its mean is zero. `error_feedback` adds the
error of one call to the values of the next, so that errors do not accumulate over the
steps of a training loop:

    feedback = error_feedback("data", "int8", mean=True)
    residuals = feedback.init(gradients)                       # once
    gradients, residuals = feedback.apply(gradients, residuals)  # in every step

These functions use `lax.all_to_all` and `lax.all_gather`; call them within `pmap`,
`shard_map` or `vmap`. The derivative of a code is zero: take gradients first.

Source: Seide, Fu, Droppo, Li, Yu 2014, "1-bit stochastic gradient descent"; Alistarh et
al. 2017, "QSGD"; Tang et al. 2019, "DoubleSqueeze" (both exchanges with feedback).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.errors import ArgumentError, DtypeError, ShapeError

BLOCK = 256
# -128 is unused, so that the code is symmetric about 0.
_LARGEST = 127
_ROUNDINGS = ("nearest", "stochastic")
_NAMES = "'bf16', 'f16', 'int8', 'one_bit'"


class Code(NamedTuple):
    """A code for blocks of numbers.

    Attributes:
      encode: `(f32[..., block_size], key or None) -> tuple of arrays` with the same
        leading axes. A block may be shorter by a multiple of 8.
      decode: the inverse: `tuple of arrays -> f32[..., block_size]`.
      block_size: the number of values that are encoded together.
      stochastic: whether `encode` needs a key.
      name: the code's name with its arguments, for reports.
    """

    encode: Callable[[Any, Any], tuple[Any, ...]]
    decode: Callable[[tuple[Any, ...]], Any]
    block_size: int
    stochastic: bool
    name: str = "code"


def _rounding(rounding: str, what: str) -> bool:
    if rounding not in _ROUNDINGS:
        raise ArgumentError(
            f"{what}: rounding must be 'nearest' or 'stochastic', got {rounding!r}"
        )
    return rounding == "stochastic"


def _block_size(block_size: int, what: str) -> None:
    if block_size < 1:
        raise ArgumentError(f"{what}: block_size must be at least 1, got {block_size}")


def _name(what: str, block_size: int, stochastic: bool) -> str:
    given = [str(block_size)] if block_size > 1 else []
    return f"{what}({', '.join(given + ['stochastic'] * stochastic)})"


def _narrowed(x: Any, dtype: Any) -> Any:
    """Rounds to nearest; finite numbers stay finite."""
    largest = float(dtypes.finfo(dtype).max)
    return fnp.where(fnp.isfinite(x), fnp.clip(x, -largest, largest), x).astype(dtype)


def bf16(rounding: str = "nearest") -> Code:
    """Returns the code that keeps the upper 16 bits of each number.

    Args:
      rounding: `"nearest"`, or `"stochastic"`: up or down at random, so that the mean
        is the number.

    Returns:
      The code; its step is 2⁻⁸ of the number. Numbers beyond the largest, 3.39e38,
      become it.

    Raises:
      ArgumentError: `rounding` has another value.

    Example:
      >>> code = bf16()
      >>> code.decode(code.encode(fnp.array([1.0, 1.001]), None)).tolist()
      [1.0, 1.0]
    """
    stochastic = _rounding(rounding, "bf16")

    def encode(x: Any, key: Any) -> tuple[Any, ...]:
        if stochastic:
            bits = lax.bitcast_convert_type(x, dtypes.uint32)
            # 16 random bits, added to the dropped half, carry into the kept half with a
            # probability proportional to the dropped half.
            lower = random.bits(key, typeof(x).shape, "uint16").astype(dtypes.uint32)
            kept = lax.bitwise_and(bits + lower, fnp.uint32(0xFFFF0000))
            rounded = lax.bitcast_convert_type(kept, dtypes.float32)
            x = fnp.where(fnp.isfinite(x), rounded, x)
        return (_narrowed(x, dtypes.bfloat16),)

    return Code(encode, _widened, 1, stochastic, _name("bf16", 1, stochastic))


def f16() -> Code:
    """Returns the code that rounds to the nearest IEEE 16-bit number.

    Returns:
      The code; its step is 2⁻¹¹ of the number, at least 2⁻²⁴. Numbers beyond the
      largest, 65504, become it.

    Example:
      >>> code = f16()
      >>> code.decode(code.encode(fnp.array([1.001, 1e6]), None)).tolist()
      [1.0009765625, 65504.0]
    """

    def encode(x: Any, key: Any) -> tuple[Any, ...]:
        return (_narrowed(x, dtypes.float16),)

    return Code(encode, _widened, 1, False, _name("f16", 1, False))


def _widened(code: tuple[Any, ...]) -> Any:
    return code[0].astype(dtypes.float32)


def int8(block_size: int = BLOCK, rounding: str = "nearest") -> Code:
    """Returns the code of 8-bit integers with a scale for each block.

    Args:
      block_size: the number of values that share a scale, which is their largest
        magnitude / 127.
      rounding: `"nearest"`, or `"stochastic"`: up or down at random, so that the mean
        is the number.

    Returns:
      The code; its step is 1/127 of the largest magnitude in the block. A block with
      an inf or nan becomes nan.

    Raises:
      ArgumentError: `rounding` has another value, or `block_size` is not positive.

    Example:
      >>> code = int8(4)
      >>> code.encode(fnp.array([1.0, -0.5, 0.0, 0.25]), None)[0].tolist()
      [127, -64, 0, 32]
    """
    stochastic = _rounding(rounding, "int8")
    _block_size(block_size, "int8")

    def encode(x: Any, key: Any) -> tuple[Any, ...]:
        scale = fnp.max(fnp.abs(x), axis=-1, keepdims=True) / _LARGEST
        usable = fnp.logical_and(fnp.isfinite(scale), scale > 0)
        steps = x / fnp.where(usable, scale, 1)
        if stochastic:
            steps = fnp.floor(steps + random.uniform(key, typeof(x).shape))
        else:
            steps = fnp.round(steps)
        # 0 · 0 for a block of zeros, 1 · nan for a block that is not finite.
        rest = fnp.where(scale == 0, 0, 1)
        scale = fnp.where(fnp.isfinite(scale), scale, fnp.nan)
        steps = fnp.clip(fnp.where(usable, steps, rest), -_LARGEST, _LARGEST)
        return steps.astype(dtypes.int8), scale

    def decode(code: tuple[Any, ...]) -> Any:
        steps, scale = code
        return steps.astype(dtypes.float32) * scale

    name = _name("int8", block_size, stochastic)
    return Code(encode, decode, block_size, stochastic, name)


def one_bit(block_size: int = BLOCK) -> Code:
    """Returns the code of signs: a number becomes the mean of those with its sign.

    Args:
      block_size: the number of values that share the two means; a multiple of 8.

    Returns:
      The code: a bit for each number and two f32 for each block. It is so lossy that it
      needs error feedback. An inf or nan makes a mean of its block inf or nan.

    Raises:
      ArgumentError: `block_size` is not a positive multiple of 8.

    Reference: Seide, Fu, Droppo, Li, Yu 2014, "1-bit stochastic gradient descent".

    Example:
      >>> code = one_bit(8)
      >>> x = fnp.array([1.0, 2.0, 3.0, 0.0, -1.0, -1.0, -4.0, -2.0])
      >>> code.decode(code.encode(x, None)).tolist()
      [1.5, 1.5, 1.5, 1.5, -2.0, -2.0, -2.0, -2.0]
    """
    _block_size(block_size, "one_bit")
    if block_size % 8:
        raise ArgumentError(
            f"one_bit: block_size must be a multiple of 8, got {block_size}"
        )

    def encode(x: Any, key: Any) -> tuple[Any, ...]:
        upper = x >= 0
        means = [
            fnp.sum(fnp.where(those, x, 0), axis=-1)
            / fnp.maximum(fnp.sum(those, axis=-1), 1)
            for those in (fnp.logical_not(upper), upper)
        ]
        return fnp.packbits(upper, axis=-1), fnp.stack(means, axis=-1)

    def decode(code: tuple[Any, ...]) -> Any:
        bits, means = code
        upper = fnp.unpackbits(bits, axis=-1) > 0
        return fnp.where(upper, means[..., 1:], means[..., :1])

    name = _name("one_bit", block_size, False)
    return Code(encode, decode, block_size, False, name)


def as_code(code: str | Code) -> Code:
    """Returns the code with a name; returns a `Code` unchanged.

    Args:
      code: a code, `"bf16"`, `"f16"`, `"int8"` or `"one_bit"`.

    Returns:
      The code.

    Raises:
      ArgumentError: there is no such code.
    """
    if isinstance(code, Code):
        return code
    for make in (bf16, f16, int8, one_bit):
        if code == make.__name__:
            return make()
    raise ArgumentError(f"the code must be {_NAMES} or a Code, got {code!r}")


def code_of_step(what: str, code: Any, also: str = "") -> Code | None:
    """Returns the code that an argument of a function without a PRNG key selects.

    Args:
      what: the argument, for messages, such as "parameter_server: exchange".
      code: as for `as_code`, or "f32".
      also: what else the argument may be, for messages, such as " or a Filter".

    Returns:
      The code; None for "f32", which sends numbers unchanged.

    Raises:
      ArgumentError: there is no such code, or it rounds stochastically.
    """
    if isinstance(code, str) and code == "f32":
        return None
    try:
        found = as_code(code)
    except ArgumentError:
        raise ArgumentError(
            f"{what} must be 'f32', {_NAMES}, a compression.Code{also}, got {code!r}"
        ) from None
    if found.stochastic:
        raise ArgumentError(
            f"{what}: stochastic rounding needs a PRNG key, which a step does not have:"
            " round to nearest (error feedback corrects it in the next step)"
        )
    return found


# -- blocks ----------------------------------------------------------------------------


def _coded(leaf: Any) -> bool:
    return dtypes.is_floating(typeof(leaf).dtype)


def _blocks_of(leaf: Any, block: int) -> int:
    return -(-typeof(leaf).size // block)


def _packed(leaves: Sequence[Any], block: int, size: int) -> Any:
    """Returns leaves as `f32[size, blocks, block]`; each starts a new block."""
    parts = []
    for leaf in leaves:
        flat = fnp.reshape(leaf, (-1,)).astype(dtypes.float32)
        padding = _blocks_of(leaf, block) * block - typeof(flat).size
        parts.append(fnp.pad(flat, (0, padding)))
    whole = fnp.concatenate(parts)
    rows = -(-typeof(whole).size // (block * size))
    whole = fnp.pad(whole, (0, rows * block * size - typeof(whole).size))
    return fnp.reshape(whole, (size, rows, block))


def _unpacked(whole: Any, leaves: Sequence[Any], block: int) -> list[Any]:
    """Returns what `_packed` made, as arrays like `leaves`."""
    flat = fnp.reshape(whole, (-1,))
    found, start = [], 0
    for leaf in leaves:
        aval = typeof(leaf)
        part = flat[start : start + aval.size]
        found.append(fnp.reshape(part, aval.shape).astype(aval.dtype))
        start += _blocks_of(leaf, block) * block
    return found


class Residuals(NamedTuple):
    """One device's coding errors, to be added to its next values.

    Attributes:
      sent: f32[n, rows, block_size], of the values that it sent to each of n devices.
      summed: f32[rows, block_size], of the part of the sum that it sent to all.
    """

    sent: Any
    summed: Any


def lost(values: Any, arrived: Any) -> Any:
    """Returns a code's errors; 0 where they are not finite.

    One bad gradient must not spoil all later ones.

    Args:
      values: the values before encoding.
      arrived: the decoded values.
    """
    difference = values - arrived
    return fnp.where(fnp.isfinite(difference), difference, 0)


def _keys(code: Code, key: Any, axis_name: Any) -> tuple[Any, Any]:
    if not code.stochastic:
        return None, None
    if key is None:
        raise ArgumentError(
            "stochastic rounding needs a PRNG key: pass key=, a new one for every call"
        )
    # Devices round independently: equal rounding errors would add up in the sum.
    first, second = random.split(random.fold_in(key, lax.axis_index(axis_name)))
    return first, second


def _sum(
    values: Any, residuals: Residuals | None, axis_name: Any, code: Code, key: Any
) -> tuple[Any, Residuals]:
    """Sums `f32[n, rows, block]` over n devices in two encoded exchanges."""
    first, second = _keys(code, key, axis_name)
    if residuals is not None:
        values = values + residuals.sent
    # An encoded reduce-scatter, then an encoded all-gather; the addition is in f32.
    packed = code.encode(values, first)
    arrived = lax.all_to_all(packed, axis_name, 0, 0)
    part = fnp.sum(code.decode(arrived), axis=0)
    if residuals is not None:
        part = part + residuals.summed
    summed = code.encode(part, second)
    every = lax.all_gather(summed, axis_name, to="invarying")
    residuals = Residuals(
        lost(values, code.decode(packed)), lost(part, code.decode(summed))
    )
    return code.decode(every), residuals


def _summed(
    x: Any,
    residuals: Residuals | None,
    axis_name: Any,
    code: Code,
    key: Any,
    mean: bool,
) -> tuple[Any, Residuals | None]:
    leaves, treedef = tree.flatten(x)
    indices = [i for i, leaf in enumerate(leaves) if _coded(leaf)]
    exact = lax.pmean if mean else lax.psum
    found = [None if _coded(leaf) else exact(leaf, axis_name) for leaf in leaves]
    chosen = [leaves[i] for i in indices]
    size = lax.axis_size(axis_name)
    if any(typeof(leaf).size for leaf in chosen):
        values = _packed(chosen, code.block_size, size)
        if mean:
            values = values / size
        if residuals is not None:
            _fits(residuals, values)
        whole, residuals = _sum(values, residuals, axis_name, code, key)
        chosen = _unpacked(whole, chosen, code.block_size)
    for i, leaf in zip(indices, chosen, strict=True):
        found[i] = leaf
    return treedef.unflatten(found), residuals


def _fits(residuals: Residuals, values: Any) -> None:
    want = typeof(values)
    have = typeof(residuals.sent)
    if have.shape != want.shape:
        raise ShapeError(
            f"error_feedback: the residuals are {have}, but the values need {want}: "
            "make them with init from values of the same shapes, for the same number "
            "of devices and the same code"
        )


# -- public ----------------------------------------------------------------------------


def psum(x: Any, axis_name: Any, code: str | Code = "int8", *, key: Any = None) -> Any:
    """Sums over a named axis, exchanging fewer bits than `lax.psum`.

    Args:
      x: array or pytree of arrays. Real floating point arrays are encoded; others are
        summed exactly.
      axis_name: a name or a tuple of names.
      code: `"bf16"`, `"f16"`, `"int8"`, `"one_bit"` or a `Code`.
      key: a PRNG key, for a code that rounds stochastically; the same on all devices.

    Returns:
      The sums, with the structure, shapes and dtypes of `x`; equal on all devices.

    Raises:
      NameError: no such axis is in scope.
      ArgumentError: the code is unknown, or needs a key.

    Example:
      >>> total = fxflow.vmap(lambda v: psum(v, "i", "bf16"), axis_name="i")
      >>> total(fnp.array([1.0, 2.0, 4.0])).tolist()
      [7.0, 7.0, 7.0]
    """
    return _summed(x, None, axis_name, as_code(code), key, mean=False)[0]


def pmean(x: Any, axis_name: Any, code: str | Code = "int8", *, key: Any = None) -> Any:
    """Averages over a named axis, exchanging fewer bits than `lax.pmean`.

    Args:
      x: array or pytree of arrays. Real floating point arrays are encoded; others are
        averaged exactly.
      axis_name: a name or a tuple of names.
      code: `"bf16"`, `"f16"`, `"int8"`, `"one_bit"` or a `Code`.
      key: a PRNG key, for a code that rounds stochastically; the same on all devices.

    Returns:
      The means, with the structure and shapes of `x`; equal on all devices.

    Raises:
      NameError: no such axis is in scope.
      ArgumentError: the code is unknown, or needs a key.

    Example:
      >>> mean = fxflow.vmap(lambda v: pmean(v, "i", "bf16"), axis_name="i")
      >>> mean(fnp.array([1.0, 3.0])).tolist()
      [2.0, 2.0]
    """
    return _summed(x, None, axis_name, as_code(code), key, mean=True)[0]


class ErrorFeedback(NamedTuple):
    """An encoded sum over devices that compensates its errors; see `error_feedback`.

    Attributes:
      init: `init(x) -> residuals`.
      apply: `apply(x, residuals, key=None) -> (sums, residuals)`.
    """

    init: Callable[[Any], Residuals]
    apply: Callable[..., tuple[Any, Residuals]]


def error_feedback(
    axis_name: Any,
    code: str | Code = "int8",
    *,
    mean: bool = False,
    axis_size: int | None = None,
) -> ErrorFeedback:
    """Returns an encoded sum that adds its errors to the values of the next call.

    The total of many calls differs from the exact total by the code's error of one
    call. The residuals differ between devices: return them from `shard_map` along the
    axis (`out_specs=P(axis_name)`, with an axis in front), and from `pmap` unchanged.

    Args:
      axis_name: a name or a tuple of names.
      code: `"bf16"`, `"f16"`, `"int8"`, `"one_bit"` or a `Code`.
      mean: whether to average rather than sum.
      axis_size: the number of devices; needed only if `init` is called where the named
        axis is not in scope.

    Returns:
      `init` and `apply`, pure functions: `init(x)` returns zero residuals for values of
      the types of `x`; `apply(x, residuals, key)` returns the sums and the next
      residuals.

    Raises:
      ArgumentError: the code is unknown.
      ShapeError: (by `apply`) the residuals belong to values of other shapes.

    Example:
      >>> feedback = error_feedback("i", "bf16", axis_size=2)
      >>> x = fnp.array([1.0, 2.0])
      >>> step = fxflow.vmap(feedback.apply, in_axes=(0, None), axis_name="i")
      >>> step(x, feedback.init(1.0))[0].tolist()
      [3.0, 3.0]
    """
    chosen = as_code(code)

    def init(x: Any) -> Residuals:
        size = lax.axis_size(axis_name) if axis_size is None else axis_size
        leaves = [leaf for leaf in tree.leaves(x) if _coded(leaf)]
        if not leaves:
            raise DtypeError(
                "error_feedback: x has no real floating point array to encode"
            )
        block = chosen.block_size
        blocks = sum(_blocks_of(leaf, block) for leaf in leaves)
        rows = -(-blocks // size)
        zeros: Array = fnp.zeros((size, rows, block), dtypes.float32)
        return Residuals(zeros, zeros[0])

    def apply(x: Any, residuals: Residuals, key: Any = None) -> tuple[Any, Residuals]:
        out, kept = _summed(x, residuals, axis_name, chosen, key, mean)
        assert kept is not None
        return out, kept

    return ErrorFeedback(init, apply)
