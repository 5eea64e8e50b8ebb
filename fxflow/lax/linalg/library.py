"""Calls of LAPACK and cuSOLVER in a program's text, and small matrix helpers."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, Shape, ShapeDtypeStruct, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import Primitive
from fxflow.core.runtime.lowering import Context
from fxflow.devices import lapack
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axis_order import transpose
from fxflow.lax.bitwise import bitwise_and
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.callbacks import pure_callback
from fxflow.lax.comparison import eq, ge, gt
from fxflow.lax.complex import conj, imag, real
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import broadcasted_iota, full
from fxflow.lax.dot import DotGeneral
from fxflow.lax.families import INEXACT, require_kind
from fxflow.lax.padding import pad
from fxflow.lax.product_precision import Precision
from fxflow.lax.reduction import ReduceAnd, ReduceSum
from fxflow.lax.rounding import is_finite
from fxflow.lax.select import select

# -- types -----------------------------------------------------------------------------


def require_matrices(name: str, aval: Aval, *, square: bool = False) -> None:
    """Checks that an operand holds matrices that the libraries take.

    Raises:
      ShapeError: it has fewer than two axes, or is not square.
      DtypeError: it is not float or complex of at least 32 bits.
    """
    require_kind(name, aval, INEXACT)
    if dtypes.bits(aval.dtype) < 32:
        raise DtypeError(
            f"{name}: takes float32, float64, complex64 or complex128 matrices, got "
            f"{aval}: convert it with .astype('float32') first"
        )
    if aval.ndim < 2:
        raise ShapeError(f"{name}: takes matrices [..., m, n], got {aval}")
    if square and aval.shape[-1] != aval.shape[-2]:
        raise ShapeError(f"{name}: takes square matrices [..., n, n], got {aval}")


# -- calls -----------------------------------------------------------------------------


def _layout(aval: Aval, core: int) -> str:
    """Column-major for matrices, as LAPACK wants them."""
    order = list(range(aval.ndim))[::-1]
    if core == 2:
        order[0], order[1] = order[1], order[0]
    inner = f"[{', '.join(map(str, order))}]" if order else ""
    return f"dense<{inner}> : tensor<{aval.ndim}xindex>"


def call(
    ctx: Context,
    target: str,
    operands: Sequence[tuple[str, Aval, int]],
    results: Sequence[tuple[Aval, int]],
    *,
    attributes: str = "",
    aliases: Sequence[tuple[int, int]] = (),
) -> list[str]:
    """Writes a call of a library; returns the results' names.

    Args:
      ctx: to write to.
      target: name of the custom call.
      operands: name, type and number of matrix axes (2: column-major, 1, 0).
      results: type and number of matrix axes.
      attributes: of the call, such as `mode = 65 : ui8`.
      aliases: pairs (result, operand) that may share memory.
    """
    single = len(results) == 1
    # The libraries work in place; XLA copies an operand that is used again later.
    shared = ", ".join(
        "#stablehlo.output_operand_alias<output_tuple_indices = "
        f"[{'' if single else out}], operand_index = {i}, operand_tuple_indices = []>"
        for out, i in aliases
    )
    names = ", ".join(name for name, _, _ in operands)
    ins = ", ".join(aval.mlir for _, aval, _ in operands)
    outs = ", ".join(aval.mlir for aval, _ in results)
    in_layouts = ", ".join(_layout(aval, core) for _, aval, core in operands)
    out_layouts = ", ".join(_layout(aval, core) for aval, core in results)
    return ctx.emit_many(
        len(results),
        f"stablehlo.custom_call @{target}({names}) {{api_version = 4 : i32, "
        f"backend_config = {{{attributes}}}, operand_layouts = [{in_layouts}], "
        f"output_operand_aliases = [{shared}], result_layouts = [{out_layouts}]}} : "
        f"({ins}) -> {outs if single else f'({outs})'}",
    )


def lapack_target(routine: str, dtype: Any) -> str:
    """Returns the name of a LAPACK routine, which the runtime then knows."""
    lapack.ensure()
    return lapack.target(routine, dtype)


def real_name(letters: str, dtype: Any) -> str:
    """Returns a routine's name: `or…` of real, `un…` of complex matrices and so on."""
    real, complex_ = letters.split("/")
    return complex_ if dtypes.is_complex(dtype) else real


def plain_call(
    ctx: Context,
    target: str,
    operands: Sequence[str],
    results: Sequence[Aval],
    extra: str,
) -> list[str]:
    """Writes a call of an operation that XLA itself has on TPUs."""
    ins = ", ".join(a.mlir for a in ctx.avals_in)
    outs = ", ".join(a.mlir for a in results)
    left = outs if len(results) == 1 else f"({outs})"
    return ctx.emit_many(
        len(results),
        f"stablehlo.custom_call @{target}({', '.join(operands)}) {{{extra}}} : "
        f"({ins}) -> {left}",
    )


@functools.cache
def scipy_linalg() -> Any:
    """Returns `scipy.linalg`, whose import takes longer than fxflow's.

    It is there, since jaxlib calls LAPACK through it.
    """
    return importlib.import_module("scipy.linalg")


def host_call(
    ctx: Context,
    primitive: Primitive | type[Primitive],
    operands: Sequence[str],
    **params: Any,
) -> list[str]:
    """Writes a call back to the host, where an accelerator's library lacks a routine.

    Args:
      ctx: to write to.
      primitive: whose `evaluate` computes it.
      operands: names.
      **params: of the primitive.

    Raises:
      ArgumentError: the platform has no such calls.
    """
    if ctx.platform == "tpu":
        given = ", ".join(map(str, ctx.avals_in))
        raise ArgumentError(
            f"{primitive.name} of {given}: programs on TPUs cannot call the host for "
            "it: jit this part for the CPU (fxflow.device_put its argument there)"
        )
    outs = [ShapeDtypeStruct(a.shape, a.dtype) for a in ctx.avals_out]
    evaluate: Any = primitive.evaluate

    def on_host(*values: Any) -> list[Any]:
        return list(evaluate(*map(np.asarray, values), **params))

    return ctx.compose(lambda *values: pure_callback(on_host, outs, *values), operands)


def nan_unless_finite(ctx: Context, value: str, aval: Aval) -> str:
    """Writes NaN over matrices with an infinity: LAPACK may iterate on one for ever.

    NaN it finds at once.
    """

    def mask(x: Any) -> Any:
        parts = [real(x), imag(x)] if dtypes.is_complex(aval.dtype) else [x]
        finite = ReduceAnd.bind(
            functools.reduce(bitwise_and, map(is_finite, parts)),
            axes=(aval.ndim - 2, aval.ndim - 1),
        )
        wide = broadcast_in_dim(finite, aval.shape, tuple(range(aval.ndim - 2)))
        return select(wide, x, full(aval.shape, np.nan, aval.dtype))

    (out,) = ctx.compose(mask, [value], [aval])
    return out


def checked(ctx: Context, value: str, aval: Aval, info: str, *, core: int) -> str:
    """Writes NaN over the matrices for which a library reports failure."""
    count = aval.ndim - core
    flags = Aval(aval.shape[:count], dtypes.int32)

    def mask(result: Any, code: Any) -> Any:
        good = eq(code, full(flags.shape, 0, np.int32))
        wide = broadcast_in_dim(good, aval.shape, tuple(range(count)))
        return select(wide, result, full(aval.shape, np.nan, aval.dtype))

    (out,) = ctx.compose(mask, [value, info], [aval, flags])
    return out


def zeros_text(ctx: Context, avals: Sequence[Aval]) -> list[str]:
    """Writes zeros of some types."""
    return [ctx.constant(np.zeros((), a.dtype), a) for a in avals]


# -- matrices --------------------------------------------------------------------------


def _is_batched(x: Any) -> tuple[int, ...]:
    return tuple(range(typeof(x).ndim - 2))


def matmul(x: Any, y: Any) -> Any:
    """Returns the products of matrices in the last two axes, as exact as can be."""
    batch = _is_batched(x)
    ndim = len(batch) + 2
    return DotGeneral.bind(
        x,
        y,
        dimension_numbers=(((ndim - 1,), (ndim - 2,)), (batch, batch)),
        # In TF32 or bf16 a derivative would be worse than the factors it is made of.
        precision=(Precision.HIGHEST, Precision.HIGHEST),
        preferred_element_type=None,
    )


def swapped(x: Any) -> Any:
    """Returns the transposed matrices."""
    batch = _is_batched(x)
    return transpose(x, (*batch, len(batch) + 1, len(batch)))


def adjoint(x: Any) -> Any:
    """Returns the conjugate transposed matrices."""
    out = swapped(x)
    return conj(out) if dtypes.is_complex(typeof(x).dtype) else out


def _where(x: Any, mask: Any) -> Any:
    aval = typeof(x)
    return select(mask, x, full(aval.shape, 0, aval.dtype))


def _indices(shape: Shape) -> tuple[Any, Any]:
    ndim = len(shape)
    return (
        broadcasted_iota(np.int32, shape, ndim - 2),
        broadcasted_iota(np.int32, shape, ndim - 1),
    )


def lower_part(x: Any, *, strict: bool = False) -> Any:
    """Returns the lower triangles, zeros above (and on the diagonal, if `strict`)."""
    rows, columns = _indices(typeof(x).shape)
    return _where(x, gt(rows, columns) if strict else ge(rows, columns))


def upper_part(x: Any, *, strict: bool = False) -> Any:
    """Returns the upper triangles, zeros below (and on the diagonal, if `strict`)."""
    rows, columns = _indices(typeof(x).shape)
    return _where(x, gt(columns, rows) if strict else ge(columns, rows))


def diagonal_part(x: Any) -> Any:
    """Returns the diagonals as matrices."""
    rows, columns = _indices(typeof(x).shape)
    return _where(x, eq(rows, columns))


def diagonal(x: Any) -> Any:
    """Returns the diagonals of square matrices as vectors."""
    return ReduceSum.bind(diagonal_part(x), axes=(typeof(x).ndim - 1,))


def identity(shape: Shape, dtype: Any) -> Any:
    """Returns unit matrices (not square: ones on the diagonal) of a shape."""
    rows, columns = _indices(shape)
    return convert_element_type(eq(rows, columns), dtype)


def as_columns(vector: Any, shape: Shape) -> Any:
    """Returns matrices whose element (i, j) is element j of a vector."""
    ndim = len(shape)
    return broadcast_in_dim(vector, shape, (*range(ndim - 2), ndim - 1))


def as_rows(vector: Any, shape: Shape) -> Any:
    """Returns matrices whose element (i, j) is element i of a vector."""
    ndim = len(shape)
    return broadcast_in_dim(vector, shape, tuple(range(ndim - 1)))


def corner(x: Any, rows: int, columns: int) -> Any:
    """Returns the upper left corners of matrices, or pads them with zeros to a size."""
    shape = typeof(x).shape
    if shape[-2:] == (rows, columns):
        return x
    config = [(0, 0, 0)] * (len(shape) - 2)
    config += [(0, rows - shape[-2], 0), (0, columns - shape[-1], 0)]
    zero = arith.constant(0, typeof(x).dtype)
    return pad(x, zero, config)


def flops(aval: Aval, factor: float) -> float:
    """Returns factor · m n min(m, n) for each matrix."""
    m, n = aval.shape[-2:]
    return factor * math.prod(aval.shape[:-2]) * m * n * min(m, n)
