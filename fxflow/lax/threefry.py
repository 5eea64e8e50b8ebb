"""The Threefry-2x32 block cipher, of which random bits are made.

Two words of key and two of counter give two words that look random. Written twice: on
the host for small eager draws, and in StableHLO as one private function a module.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, Shape, dtypes, typeof
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    MultipleResults,
    Primitive,
    Values,
    Zero,
    register,
    table,
)
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import is_at_least
from fxflow.core.spmd import layouts
from fxflow.errors import DtypeError, ShapeError

# Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", and
# their library Random123: rotation distances, and the parity of the key schedule.
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
GROUPS = 5  # of four rounds each

# Up to this many blocks of one key, arithmetic on packed Python integers beats calls of
# NumPy: 10 blocks take 8 µs instead of 68 (measured on 2 cores).
PACKED = 384
# Up to this many keys they are treated one after the other.
FEW_KEYS = 4
# NumPy makes a hundred passes over the words where a compiled program makes one: above
# this many bytes the program is worth its compilation.
HOST_BYTES = 1 << 14

MASK = 0xFFFFFFFF
WORD = np.dtype(np.uint32)


# -- the block function on the host ----------------------------------------------------


def block(k1: int, k2: int, x: int, y: int) -> tuple[int, int]:
    """Returns one block of Threefry-2x32, 20 rounds, on Python integers.

    Args:
      k1: first word of the key.
      k2: second word of the key.
      x: high word of the counter.
      y: low word of the counter.

    Returns:
      Two 32-bit words.

    Example:
      >>> [hex(word) for word in block(0, 0, 0, 0)]
      ['0x6b200159', '0x99ba4efe']

    Source: Salmon et al. 2011; Random123's `threefry2x32-20`.
    """
    keys = (k1, k2, k1 ^ k2 ^ PARITY)
    x = (x + k1) & MASK
    y = (y + k2) & MASK
    for group in range(GROUPS):
        for distance in ROTATIONS[group & 1]:
            x = (x + y) & MASK
            y = ((y << distance | y >> (32 - distance)) & MASK) ^ x
        x = (x + keys[(group + 1) % 3]) & MASK
        y = (y + keys[(group + 2) % 3] + group + 1) & MASK
    return x, y


def blocks(k1: Any, k2: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Returns `block` of NumPy arrays of words, which broadcast."""
    shape = np.broadcast_shapes(k1.shape, k2.shape, x.shape, y.shape)
    # Arrays of at least one axis: NumPy's scalars would warn where words wrap.
    keys = [np.atleast_1d(k) for k in (k1, k2, k1 ^ k2 ^ np.uint32(PARITY))]
    a = np.empty(shape or (1,), WORD)
    b, rotated = np.empty_like(a), np.empty_like(a)
    np.add(x, keys[0], out=a)
    np.add(y, keys[1], out=b)
    for group in range(GROUPS):
        for distance in ROTATIONS[group & 1]:
            np.add(a, b, out=a)
            np.left_shift(b, distance, out=rotated)
            np.right_shift(b, 32 - distance, out=b)
            np.bitwise_or(b, rotated, out=b)
            np.bitwise_xor(b, a, out=b)
        np.add(a, keys[(group + 1) % 3], out=a)
        np.add(b, keys[(group + 2) % 3], out=b)
        np.add(b, group + 1, out=b)
    return a.reshape(shape), b.reshape(shape)


@functools.lru_cache(maxsize=256)
def _lanes(count: int) -> tuple[int, int, int]:
    """Returns integers of `count` lanes of 64 bits: ones, 32-bit masks, 0, 1, 2, …."""
    ones = sum(1 << 64 * i for i in range(count))
    return ones, ones * MASK, sum(i << 64 * i for i in range(count))


def packed_blocks(k1: int, k2: int, count: int) -> tuple[Any, Any]:
    """Returns the blocks at counters 0, 1, … of one key.

    All blocks are computed at once, as lanes of long Python integers: a lane has 64
    bits, so that no sum or shift of 32-bit words reaches the next one.

    Args:
      k1: first word of the key.
      k2: second word of the key.
      count: how many blocks, below 2³².

    Returns:
      Two arrays u32[count].
    """
    ones, mask, y = _lanes(count)
    keys = (k1 * ones, k2 * ones, (k1 ^ k2 ^ PARITY) * ones)
    x = keys[0]
    y = (y + keys[1]) & mask
    for group in range(GROUPS):
        for distance in ROTATIONS[group & 1]:
            x = (x + y) & mask
            y = ((y << distance | y >> (32 - distance)) & mask) ^ x
        x = (x + keys[(group + 1) % 3]) & mask
        y = (y + keys[(group + 2) % 3] + (group + 1) * ones) & mask
    return _unpacked(x, count), _unpacked(y, count)


def _unpacked(lanes: int, count: int) -> Any:
    """Returns the low 32 bits of each lane."""
    data = lanes.to_bytes(8 * count, "little")
    return np.frombuffer(data, "<u8").astype(WORD)


def host_words(data: Any, shape: Shape) -> tuple[Any, Any]:
    """Returns both words of the blocks at counters 0, 1, … of each key.

    Args:
      data: NumPy array of keys, u32[*batch, 2].
      shape: shape of the counters.

    Returns:
      Two arrays u32[*batch, *shape].
    """
    batch = data.shape[:-1]
    size = math.prod(shape)
    count = math.prod(batch)
    full = (*batch, *shape)
    if count == 1 and size <= PACKED:
        k1, k2 = data.reshape(2).tolist()
        x, y = packed_blocks(k1, k2, size)
    elif count <= FEW_KEYS and size <= PACKED:
        keys = data.reshape(-1, 2).tolist()
        pairs = [packed_blocks(k1, k2, size) for k1, k2 in keys]
        x, y = (np.array([p[i] for p in pairs], WORD) for i in (0, 1))
    else:
        counters = np.arange(size, dtype=np.uint64)
        high = (counters >> 32).astype(WORD) if size > MASK else np.zeros(1, WORD)
        x, y = blocks(
            data[..., 0, None], data[..., 1, None], high, counters.astype(WORD)
        )
    return x.reshape(full), y.reshape(full)


# -- the block function in StableHLO ---------------------------------------------------


def _function(name: str, shape: Shape) -> str:
    """Returns the text of the block function on words of one shape.

    Unrolled: a loop compiles no faster on the CPU and runs six times slower, since its
    rounds are not fused.
    """
    word = Aval(shape, WORD).mlir
    lines: list[str] = []

    def emit(text: str) -> str:
        lines.append(f"%{len(lines)} = stablehlo.{text} : {word}")
        return f"%{len(lines) - 1}"

    def constant(value: int) -> str:
        return emit(f"constant dense<{value}>")

    parity = constant(PARITY)
    mixed = emit(f"xor %k1, {emit(f'xor %k2, {parity}')}")
    keys = ("%k1", "%k2", mixed)
    a, b = emit("add %x, %k1"), emit("add %y, %k2")
    for group in range(GROUPS):
        for distance in ROTATIONS[group & 1]:
            a = emit(f"add {a}, {b}")
            left = emit(f"shift_left {b}, {constant(distance)}")
            right = emit(f"shift_right_logical {b}, {constant(32 - distance)}")
            b = emit(f"xor {a}, {emit(f'or {left}, {right}')}")
        a = emit(f"add {a}, {keys[(group + 1) % 3]}")
        b = emit(f"add {b}, {keys[(group + 2) % 3]}")
        b = emit(f"add {b}, {constant(group + 1)}")
    arguments = ", ".join(f"%{n}: {word}" for n in ("k1", "k2", "x", "y"))
    body = "\n".join(lines)
    return (
        f"func.func private @{name}({arguments}) -> ({word}, {word}) {{\n{body}\n"
        f"return {a}, {b} : {word}, {word}\n}}\n"
    )


def call(
    ctx: Context, operands: Sequence[str], shape: Shape, *, makes_keys: bool = False
) -> list[str]:
    """Writes a call of the block function on operands of one shape.

    Args:
      ctx: a `lowering.Context`.
      operands: names of key data and counters.
      shape: theirs.
      makes_keys: whether the results are words of keys. XLA's CPU compiler fuses all
        rounds into each use of a word, and the rounds that follow use each key word
        six times: two gamma draws of split keys took 12 s. So these calls stay calls
        (where no compiler has to divide them): 2 s, and 0.3 µs more at run time.
    """
    name = ctx.module.helper(
        ("threefry2x32", shape), "threefry2x32", lambda name: _function(name, shape)
    )
    word = Aval(shape, WORD).mlir
    kept = ""
    if makes_keys and ctx.platform == "cpu" and not ctx.module.partitioned:
        kept = ' {mhlo.frontend_attributes = {inlineable = "false"}}'
    return ctx.emit_many(
        2,
        f"func.call @{name}({', '.join(operands)}){kept} : "
        f"({', '.join([word] * 4)}) -> ({word}, {word})",
    )


def counters(ctx: Context, batch: Shape, shape: Shape) -> tuple[str, str]:
    """Writes the flat position in `shape` of each element of `(*batch, *shape)`.

    Made of one `iota` for each axis, so that a partitioned result needs no
    communication.

    Returns:
      The names of the high and the low words.
    """
    full = (*batch, *shape)
    words = Aval(full, WORD)
    size = math.prod(shape)
    # A size that only a call says may be more than 32 bits count.
    wide = words if is_at_least(MASK, size) else Aval(full, dtypes.uint64)
    total = ""
    stride = size
    for axis, length in enumerate(shape):
        stride //= length or 1
        if length in (0, 1) and size not in (0, 1):
            continue
        index = ctx.emit(f"stablehlo.iota dim = {axis + len(batch)} : {wide.mlir}")
        if stride not in (0, 1):
            factor = ctx.constant(stride, wide)
            index = ctx.emit(f"stablehlo.multiply {index}, {factor} : {wide.mlir}")
        total = (
            ctx.emit(f"stablehlo.add {total}, {index} : {wide.mlir}")
            if total
            else index
        )
    if wide is words:
        zero = ctx.constant(np.uint32(0), words)
        return zero, total or zero
    half = ctx.constant(np.uint64(32), wide)
    high = ctx.emit(f"stablehlo.shift_right_logical {total}, {half} : {wide.mlir}")
    convert = f": ({wide.mlir}) -> {words.mlir}"
    return (
        ctx.emit(f"stablehlo.convert {high} {convert}"),
        ctx.emit(f"stablehlo.convert {total} {convert}"),
    )


def lower_words(
    ctx: Context, data: str, shape: Shape, *, makes_keys: bool = False
) -> list[str]:
    """Writes both words of the blocks at counters 0, 1, … of each key; see `call`."""
    batch = ctx.avals_in[0].shape[:-1]
    full = Aval((*batch, *shape), WORD)
    dims = ", ".join(map(str, range(len(batch))))
    flat = Aval(batch, WORD)
    keys = [
        ctx.emit(
            f"stablehlo.broadcast_in_dim {word}, dims = [{dims}] : "
            f"({flat.mlir}) -> {full.mlir}"
        )
        for word in key_words(ctx, data)
    ]
    operands = [*keys, *counters(ctx, batch, shape)]
    return call(ctx, operands, full.shape, makes_keys=makes_keys)


def key_words(ctx: Context, data: str) -> list[str]:
    """Writes the two words of each key of the first operand."""
    aval = ctx.avals_in[0]
    batch = aval.shape[:-1]
    part, flat = Aval((*batch, 1), WORD), Aval(batch, WORD)
    words = []
    for i in (0, 1):
        limits = ", ".join([*(f"0:{n}" for n in batch), f"{i}:{i + 1}"])
        word = ctx.emit(
            f"stablehlo.slice {data} [{limits}] : ({aval.mlir}) -> {part.mlir}"
        )
        words.append(
            ctx.emit(f"stablehlo.reshape {word} : ({part.mlir}) -> {flat.mlir}")
        )
    return words


def side_by_side(ctx: Context, words: Sequence[str]) -> str:
    """Writes two arrays of words as one array of keys: the current node's result."""
    (out,) = ctx.avals_out
    word = Aval(out.shape[:-1], WORD)
    part = Aval((*word.shape, 1), WORD)
    parts = [
        ctx.emit(f"stablehlo.reshape {w} : ({word.mlir}) -> {part.mlir}") for w in words
    ]
    return ctx.emit(
        f"stablehlo.concatenate {', '.join(parts)}, dim = {word.ndim} : "
        f"({part.mlir}, {part.mlir}) -> {out.mlir}"
    )


# -- the primitive ---------------------------------------------------------------------


class Discrete(Primitive):
    """Has values without directions: every tangent is zero."""

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """Zero tangents."""
        out = self.bind(*primals, **params)
        if self.multi:
            return out, [Zero(typeof(o).tangent()) for o in out]
        return out, Zero(typeof(out).tangent())


@register
class Threefry2x32(Discrete, MultipleResults):
    """The block function, elementwise. dtypes: u32. StableHLO: a private function.

    Operands: the key's words (0-d, or of the counters' shape) and the counter's.
    """

    name = "threefry2x32"
    nondifferentiable = "random bits are integers"
    host_bytes = HOST_BYTES
    layout: Callable[..., Any] = layouts.elementwise

    def abstract(self, *avals: Aval, **params: Any) -> list[Aval]:
        """Two results of the counters' type."""
        k1, k2, x, y = avals
        for aval in avals:
            if aval.dtype != WORD:
                raise DtypeError(
                    "threefry2x32: words must be u32, got "
                    f"{', '.join(map(str, avals))}: convert them with .astype('uint32')"
                )
        if x.shape != y.shape or k1.shape != k2.shape or k1.shape not in ((), x.shape):
            raise ShapeError(
                "threefry2x32: the counter's words must have one shape, and the key's "
                f"that shape or none, got {', '.join(map(str, avals))}"
            )
        return [Aval(x.shape, WORD)] * 2

    def lower(self, ctx: Context, *operands: str, **params: Any) -> list[str]:
        """A call of the private function."""
        shape = ctx.avals_out[0].shape
        aligned = [
            name if aval.shape == shape else ctx.broadcast(name, aval, shape)
            for name, aval in zip(operands, ctx.avals_in, strict=True)
        ]
        return call(ctx, aligned, shape)

    def evaluate(self, *values: Any, **params: Any) -> list[Any]:
        """The block function on NumPy arrays."""
        return list(blocks(*map(np.asarray, values)))

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Elementwise; a mapped key is repeated along the counters' axes."""
        shape = next(
            typeof(x).shape[m:] for x, m in zip(args[2:], mapped[2:], strict=True)
        )
        full = (size, *shape)
        broadcast = table["broadcast_in_dim"].bind
        keyed = any(mapped[:2])
        out = []
        for i, (arg, is_mapped) in enumerate(zip(args, mapped, strict=True)):
            have = typeof(arg).shape
            if have == full or (i < 2 and not keyed and not have):
                out.append(arg)
                continue
            start = 0 if is_mapped else len(full) - len(have)
            dims = tuple(range(start, start + len(have)))
            out.append(broadcast(arg, shape=full, broadcast_dimensions=dims))
        return self.bind(*out), [True, True]


def threefry2x32(k1: Any, k2: Any, x1: Any, x2: Any, /) -> tuple[Array, Array]:
    """Returns blocks of the Threefry-2x32 generator, 20 rounds.

    Args:
      k1: first word of the key, u32 of the counters' shape or 0-d.
      k2: second word of the key, of the same type.
      x1: first word of the counter, u32 of any shape.
      x2: second word of the counter, of the same type.

    Returns:
      The two words of each block, u32 of the counters' shape.

    Raises:
      DtypeError: an operand is not u32.
      ShapeError: the shapes are incompatible.

    Example:
      >>> zero = np.zeros((), np.uint32)
      >>> [hex(word) for word in threefry2x32(zero, zero, zero, zero)]
      ['0x6b200159', '0x99ba4efe']

    Source: Salmon et al. 2011; Random123's `threefry2x32-20`.
    """
    first, second = Threefry2x32.bind(k1, k2, x1, x2)
    return first, second
