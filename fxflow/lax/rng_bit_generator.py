"""XLA's own generators of random bits, which carry a state along.

Quicker than Threefry on accelerators; but another platform, or version of XLA, may give
other bits. On CPUs and GPUs the default is Philox-4x32.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, Shape, dtypes, typeof
from fxflow.core.ir.primitive import Batched, Flags, MultipleResults, Values, register
from fxflow.core.runtime.lowering import Context
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.concatenation import concatenate
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.reshaping import reshape
from fxflow.lax.slicing import index_in_dim, slice_in_dim
from fxflow.lax.threefry import MASK, Discrete, blocks
from fxflow.lax.transfer import laid_out

# Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3": the multipliers of
# a round of Philox-4x32, and what the key grows by from one to the next.
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


class RandomAlgorithm(enum.IntEnum):
    """Which generator `rng_bit_generator` uses.

    Source: StableHLO `rng_algorithm`.
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


_NAMES = {
    RandomAlgorithm.RNG_DEFAULT: "DEFAULT",
    RandomAlgorithm.RNG_THREE_FRY: "THREE_FRY",
    RandomAlgorithm.RNG_PHILOX: "PHILOX",
}


# -- on the host -----------------------------------------------------------------------


def philox(key: Sequence[int], counters: Any) -> Any:
    """Returns blocks of Philox-4x32, ten rounds, as u32[n, 4].

    Args:
      key: two words.
      counters: u64[n, 4], the words of each counter.

    Source: Salmon et al. 2011.
    """
    mask, half = np.uint64(MASK), np.uint64(32)
    a, b, c, d = (counters[:, i] for i in range(4))
    first, second = key
    for _ in range(_ROUNDS):
        low, high = a * np.uint64(_MULTIPLIERS[0]), c * np.uint64(_MULTIPLIERS[1])
        a, b, c, d = (
            (high >> half) ^ b ^ np.uint64(first),
            high & mask,
            (low >> half) ^ d ^ np.uint64(second),
            low & mask,
        )
        first, second = (first + _STEPS[0]) & MASK, (second + _STEPS[1]) & MASK
    return np.stack([a, b, c, d], axis=1).astype(np.uint32)


def _philox_words(state: Sequence[int], count: int) -> Any:
    """Returns words at the counters from that of a state on."""
    # The counter has 128 bits: the state's second number, and above it the key again.
    start = state[1] | state[0] << 64
    numbers = [(start + i) % (1 << 128) for i in range(-(-count // 4))]
    counters = np.array(
        [[n >> 32 * i & MASK for i in range(4)] for n in numbers], np.uint64
    ).reshape(-1, 4)
    key = (state[0] & MASK, state[0] >> 32)
    return philox(key, counters).reshape(-1)[:count]


def _paired_axis(shape: Shape) -> int:
    """Returns the axis along which the two words of a block of Threefry lie."""
    even = [i for i, n in enumerate(shape) if n % 2 == 0]
    long = [i for i, n in enumerate(shape) if n > 1]
    return (even or long or [0])[0]


def _threefry_words(state: Sequence[int], shape: Shape) -> tuple[Any, int]:
    """Returns words of a shape, and the number of blocks that they take."""
    full = shape or (1,)
    axis = _paired_axis(full)
    halved = (*full[:axis], -(-full[axis] // 2), *full[axis + 1 :])
    count = math.prod(halved)
    counters = (np.uint64(state[1]) + np.arange(count, dtype=np.uint64)).reshape(halved)
    first, second = (np.array([state[0] >> s & MASK], np.uint32) for s in (0, 32))
    low, high = (counters >> np.uint64(s) & np.uint64(MASK) for s in (0, 32))
    pair = blocks(first, second, low.astype(np.uint32), high.astype(np.uint32))
    both = np.stack(pair, axis + 1)
    long = both.reshape(*full[:axis], 2 * halved[axis], *full[axis + 1 :])
    return long.take(np.arange(full[axis]), axis).reshape(shape), count


# -- the primitive ---------------------------------------------------------------------


@register
class RngBitGenerator(Discrete, MultipleResults):
    """A new state, and random bits. dtypes: u32 or u64. StableHLO: rng_bit_generator.

    Operand: the state, u32[4] or u64[2].

    Params:
      shape: shape of the bits.
      dtype: uint32 or uint64.
      algorithm: see `RandomAlgorithm`.
    """

    name = "rng_bit_generator"
    nondifferentiable = "random bits are integers"
    # Its bits are a platform's own: NumPy's would be others on an accelerator's host.
    host_kinds = frozenset()

    def abstract(
        self, *avals: Aval, shape: Shape, dtype: Any, algorithm: RandomAlgorithm
    ) -> list[Aval]:
        """The state's type, and that of the bits."""
        (state,) = avals
        if (state.dtype, state.shape) not in (
            (dtypes.uint32, (4,)),
            (dtypes.uint64, (2,)),
        ):
            raise ShapeError(
                f"rng_bit_generator: the key must be u32[4] or u64[2], got {state}"
            )
        return [state, Aval(shape, dtype)]

    def lower(self, ctx: Context, *operands: str, algorithm: Any, **params: Any) -> Any:
        """`rng_bit_generator`, whose state is of 64-bit integers."""
        (given,), (_, out) = ctx.avals_in, ctx.avals_out
        state, wide = operands[0], Aval((2,), dtypes.uint64)
        pairs = Aval((2, 2), dtypes.uint32)
        narrow = given.dtype == dtypes.uint32
        if narrow:
            state = ctx.emit(
                f"stablehlo.reshape {state} : ({given.mlir}) -> {pairs.mlir}"
            )
            state = ctx.emit(
                f"stablehlo.bitcast_convert {state} : ({pairs.mlir}) -> {wide.mlir}"
            )
        new, bits = ctx.emit_many(
            2,
            f'"stablehlo.rng_bit_generator"({state}) <{{rng_algorithm = '
            f"#stablehlo<rng_algorithm {_NAMES[algorithm]}>}}> : "
            f"({wide.mlir}) -> ({wide.mlir}, {out.mlir})",
        )
        if narrow:
            new = ctx.emit(
                f"stablehlo.bitcast_convert {new} : ({wide.mlir}) -> {pairs.mlir}"
            )
            new = ctx.emit(f"stablehlo.reshape {new} : ({pairs.mlir}) -> {given.mlir}")
        return [new, bits]

    def evaluate(
        self, *values: Any, shape: Shape, dtype: Any, algorithm: RandomAlgorithm
    ) -> list[Any]:
        """As XLA does for CPUs and GPUs."""
        given = np.ascontiguousarray(values[0])
        state = [int(n) for n in given.view(np.uint64)]
        wide = dtype == dtypes.uint64
        if algorithm is RandomAlgorithm.RNG_THREE_FRY:
            # A number of 64 bits is one block.
            flat = (2 * math.prod(shape),)
            words, used = _threefry_words(state, flat if wide else shape)
        else:
            count = math.prod(shape) * (1 + wide)
            words, used = _philox_words(state, count), -(-count // 4)
        bits = words.view(np.uint64) if wide else words
        new = np.array([state[0], (state[1] + used) % (1 << 64)], np.uint64)
        return [new.view(given.dtype), bits.reshape(shape)]

    def batch(
        self, size: int, args: Values, mapped: Flags, *, shape: Shape, **params: Any
    ) -> Batched:
        """The bits of all from the first state, which alone is a new one, as in JAX."""
        (states,) = args
        first = index_in_dim(states, 0, 0, keepdims=False)
        new, bits = self.bind(first, shape=(size, *shape), **params)
        rest = slice_in_dim(states, 1, size, 1, 0)
        return [concatenate([reshape(new, (1, *typeof(new).shape)), rest], 0), bits], [
            True,
            True,
        ]


def rng_bit_generator(
    key: Any,
    shape: Sequence[int],
    dtype: Any = dtypes.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> list[Array]:
    """Returns a new state and random bits by a generator of XLA's.

    The bits depend on the platform and on its version; `fxflow.random` does not. Under
    `vmap` all bits come from the first state.

    Args:
      key: the state, u32[4] or u64[2].
      shape: shape of the bits.
      dtype: uint8, uint16, uint32 or uint64.
      algorithm: which generator.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        bits are divided among devices. The state is not.

    Returns:
      A list: the new state, and the bits.

    Raises:
      ShapeError: the state is of another type.
      DtypeError: `dtype` is another.
      ArgumentError: `algorithm` is not an algorithm.
      PlacementError: the bits cannot be laid out as `out_sharding` specifies.

    Example:
      >>> state, bits = rng_bit_generator(np.arange(4, dtype=np.uint32), (3,))
      >>> bits
      Array([ 895509795, 3230209149, 3834998268], dtype=uint32)

    Source: StableHLO `rng_bit_generator`.
    """
    try:
        algorithm = RandomAlgorithm(algorithm)
    except ValueError:
        raise ArgumentError(
            f"rng_bit_generator: algorithm must be a RandomAlgorithm, got {algorithm!r}"
        ) from None
    chosen = dtypes.dtype(dtype)
    if chosen not in (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64):
        raise DtypeError(
            "rng_bit_generator: dtype must be uint8, uint16, uint32 or uint64, got "
            f"{dtypes.short_name(chosen)}"
        )
    drawn = dtypes.uint32 if dtypes.bits(chosen) < 32 else chosen
    new, bits = RngBitGenerator.bind(
        key, shape=tuple(shape), dtype=drawn, algorithm=algorithm
    )
    if drawn != chosen:
        bits = convert_element_type(bits, chosen)
    if out_sharding is not None:
        bits = laid_out("rng_bit_generator", bits, out_sharding)
    return [new, bits]
