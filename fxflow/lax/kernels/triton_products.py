"""Products of matrices in Triton's IR, on tensor cores where the dtype has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.ir.graph import Node
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.triton_parts import reduced, reshaped, transposed
from fxflow.lax.kernels.triton_scalars import converted
from fxflow.lax.kernels.triton_writer import F32, I32, Tile, Writer

#: The least length of an axis in a kernel with products.
LEAST = 16
#: Most bytes of both operands, which are in shared memory; an A100 has 163 KiB.
_SHARED = 1 << 17
#: Most elements of a result.
_RESULT = 1 << 15
#: Most multiplications in a product of float32. Triton writes them out: with more, a
#: thread has not enough registers.
_EXACT = 1 << 19
_OPERANDS = frozenset(("float16", "bfloat16", "float32"))


def product(w: Writer, node: Node, operands: Sequence[Tile]) -> Tile:
    """Writes a product of two matrices, or of two stacks of them.

    Products of float32 are exact (no TF32); sums of 16-bit floats are in float32, those
    of int8 in int32.

    Args:
      w: where to.
      node: a `dot_general`.
      operands: the matrices.
    """
    (contract, batch) = node.params["dimension_numbers"]
    x, y = operands
    out = node.outputs[0].aval
    if len(contract[0]) != 1 or len(batch[0]) > 1:
        raise UnsupportedError("dot_general of other than matrices")
    if len(x.shape) - len(batch[0]) > 2 or len(y.shape) - len(batch[1]) > 2:
        raise UnsupportedError("dot_general of other than matrices")
    x = _matrix(w, x, batch[0], contract[0][0], last=True)
    y = _matrix(w, y, batch[1], contract[1][0], last=False)
    *lead, m, k = x.shape
    n = y.shape[-1]
    found = _product(w, x, y, (*lead, m, n), k)
    return converted(w, reshaped(w, found, out.shape), out.dtype)


def _matrix(
    w: Writer, x: Tile, batch: Sequence[int], contract: int, *, last: bool
) -> Tile:
    """Returns an operand as (batch,) row, column; the sums are along one of them."""
    rest = [i for i in range(len(x.shape)) if i not in (*batch, contract)]
    order = [*batch, *rest, contract] if last else [*batch, contract, *rest]
    x = transposed(w, x, order)
    if rest:
        return x
    lead = [x.shape[0]] if batch else []
    k = x.shape[-1]
    return reshaped(w, x, (*lead, 1, k) if last else (*lead, k, 1))


def _product(w: Writer, x: Tile, y: Tile, shape: Any, k: int) -> Tile:
    *lead, m, n = shape
    integers = x.dtype == np.int8
    if x.dtype.name not in _OPERANDS and not integers:
        raise UnsupportedError(f"dot_general of {x.dtype.name}")
    sums = I32 if integers else F32
    if lead and lead[0] == 1:
        x, y = reshaped(w, x, x.shape[1:]), reshaped(w, y, y.shape[1:])
        return reshaped(w, _product(w, x, y, (m, n), k), shape)
    # Tensor cores multiply at least 16 rows and columns, and 32 of int8.
    if 1 in (m, n, k) or (integers and k <= 16):
        return _by_elements(w, converted(w, x, sums), converted(w, y, sums), shape)
    _require_small(w, x, y, shape)
    axis = len(shape) - 1
    # Zeros in the padding of both, which may hold NaN.
    a = Tile(w.masked(x, [axis], 0), x.shape, x.dtype)
    b = Tile(w.masked(y, [axis - 1], 0), y.shape, y.dtype)
    kind = w.type(shape, sums)
    how = ", inputPrecision = ieee" if x.dtype == F32 else ""
    value = w.op(
        f"tt.dot {a.value}, {b.value}, {w.full(0, shape, sums)}{how} : "
        f"{w.of(a)} * {w.of(b)} -> {kind}"
    )
    if x.dtype == F32:
        w.exact = max(w.exact, math.prod(w.padded(shape)) * w.padded(x.shape)[-1])
    return Tile(value, shape, sums)


def _require_small(w: Writer, x: Tile, y: Tile, shape: Sequence[int]) -> None:
    """Checks that a product fits the memory that a program shares.

    Raises:
      UnsupportedError: it does not.
    """
    left, right, out = (math.prod(w.padded(s)) for s in (x.shape, y.shape, shape))
    nbytes = (left + right) * x.dtype.itemsize
    if nbytes > _SHARED:
        raise UnsupportedError(
            f"a product whose operands have {nbytes:,} bytes (at most {_SHARED:,}); "
            "multiply parts of them in a loop"
        )
    if out > _RESULT:
        raise UnsupportedError(
            f"a product of {out:,} elements in one program (at most {_RESULT:,})"
        )
    volume = out * w.padded(x.shape)[-1]
    if x.dtype == F32 and volume > _EXACT:
        raise UnsupportedError(
            f"a product of float32 with {volume:,} multiplications in one program (at "
            f"most {_EXACT:,}); multiply parts in a loop, or in bfloat16"
        )


def _by_elements(w: Writer, x: Tile, y: Tile, shape: Sequence[int]) -> Tile:
    """A product with a vector, or of two: elementwise, then summed."""
    *lead, m, n = shape
    k = x.shape[-1]
    whole = (*lead, m, k, n)
    left = w.spread(reshaped(w, x, (*lead, m, k, 1)), whole)
    right = w.spread(reshaped(w, y, (*lead, 1, k, n)), whole)
    op = "mulf" if x.dtype == F32 else "muli"
    value = w.op(f"arith.{op} {left}, {right} : {w.type(whole, x.dtype)}")
    return reduced(w, "sum", Tile(value, whole, x.dtype), [len(lead) + 1], x.dtype)
