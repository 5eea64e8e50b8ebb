"""Choosing between arrays elementwise, and clamping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Node, Var
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    HostCall,
    Primitive,
    Values,
    Zero,
    register,
    table,
)
from fxflow.core.ir.trace import Tracer, state
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax import _extrema_host
from fxflow.lax._operands import PYTHON_SCALARS, constant_like, operands
from fxflow.lax.bitwise import bitwise_and
from fxflow.lax.comparison import gt, lt
from fxflow.lax.families import MOVED, REAL, Elementwise, must_repeat


@register
class SelectN(Primitive):
    """The case that `which` names. dtypes: any; which: bool or i32.

    `which` is 0-d or as large as the result; constant cases may be 0-d. An integer out
    of range means the first or last case. StableHLO: select, compare.
    """

    name = "select_n"
    linear_in_inexact = True
    host_kinds = MOVED
    layout: Callable[..., Any] = layouts.elementwise

    def abstract(self, *avals: Aval, **params: Any) -> Aval:
        """The type of the cases."""
        which, *cases = avals
        if not cases:
            raise ArgumentError("select_n: needs at least one case")
        boolean = dtypes.is_bool(which.dtype)
        if boolean and len(cases) > 2:
            raise ShapeError(
                f"select_n: a boolean which chooses between at most 2 cases, got "
                f"{len(cases)}: make it an i32 array"
            )
        if not boolean and which.dtype != dtypes.int32:
            raise DtypeError(
                f"select_n: which must be bool or i32, got {which}: convert it with "
                ".astype(...) first"
            )
        first = cases[0]
        shape = next((c.shape for c in cases if c.ndim), which.shape)
        for case in cases:
            if case.dtype != first.dtype:
                raise DtypeError(
                    "select_n: cases must have one dtype, got "
                    f"{', '.join(map(str, cases))}: convert with .astype(...) first"
                )
            if case.ndim and case.shape != shape:
                raise ShapeError(
                    "select_n: cases must have one shape, got "
                    f"{', '.join(map(str, cases))}: broadcast them first"
                )
        if which.ndim and which.shape != shape:
            raise ShapeError(
                f"select_n: which must be 0-d or as large as the cases, got {which} "
                f"and {', '.join(map(str, cases))}: broadcast it first"
            )
        return Aval(shape, first.dtype, all(c.weak_type for c in cases))

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`select`; of many cases, a binary search by comparisons."""
        out = ctx.avals_out[0]
        which_aval, *case_avals = ctx.avals_in
        which, *names = operands
        cases = [
            n if a.shape == out.shape else ctx.broadcast(n, a, out.shape)
            for n, a in zip(names, case_avals, strict=True)
        ]
        if len(cases) == 1:
            return cases[0]
        chosen = which_aval.update(dtype=dtypes.bool_)

        def select(pred: str, on_true: str, on_false: str) -> str:
            return ctx.emit(
                f"stablehlo.select {pred}, {on_true}, {on_false} : "
                f"{chosen.mlir}, {out.mlir}"
            )

        if dtypes.is_bool(which_aval.dtype):
            return select(which, cases[1], cases[0])

        def search(low: int, high: int) -> str:
            if high - low == 1:
                return cases[low]
            middle = (low + high) // 2
            bound = ctx.constant(np.int32(middle), which_aval)
            below = ctx.emit(
                f"stablehlo.compare LT, {which}, {bound}, SIGNED : "
                f"({which_aval.mlir}, {which_aval.mlir}) -> {chosen.mlir}"
            )
            return select(below, search(low, middle), search(middle, high))

        return search(0, len(cases))

    def host_call(self, node: Node) -> HostCall:
        """`np.where` itself of two cases; it computes nothing that NumPy warns of."""
        which = node.inputs[0].aval
        if len(node.inputs) == 3 and dtypes.is_bool(which.dtype):
            return HostCall(np.where, False, order=(0, 2, 1))
        return super().host_call(node)

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """`np.where`."""
        which, *cases = values
        if len(cases) == 1:
            return np.broadcast_to(
                cases[0], np.broadcast_shapes(which.shape, cases[0].shape)
            ).copy()
        if which.dtype == np.bool_:
            return np.where(which, cases[1], cases[0])
        out = cases[0]
        for i, case in enumerate(cases[1:], 1):
            # Clamps `which` as the search in `lower` does.
            out = np.where(which >= i, case, out)
        return out

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The tangent of the chosen case."""
        which = primals[0]
        out = self.bind(*primals)
        aval = typeof(out).tangent()
        if all(type(t) is Zero for t in tangents[1:]):
            return out, Zero(aval)
        zero = arith.constant(0, aval.dtype)
        return out, self.bind(
            which, *(zero if type(t) is Zero else t for t in tangents[1:])
        )

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """The cotangent where the case is chosen, else zero."""
        which, *cases = args
        zero = arith.constant(0, typeof(cotangent).dtype)
        cts: list[Any] = [None]
        for i, case in enumerate(cases):
            if type(case) is not Var:
                cts.append(None)
                continue
            parts = [zero] * len(cases)
            parts[i] = cotangent
            cts.append(self.bind(which, *parts))
        return cts

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """On whole batches; a mapped 0-d `which` is repeated behind the batch axis."""
        which, *cases = args
        cases = [
            c if m or not must_repeat(c) else arith.broadcast_front(c, typeof(c), size)
            for c, m in zip(cases, mapped[1:], strict=True)
        ]
        aval = typeof(which)
        if not mapped[0]:
            if aval.ndim:
                which = arith.broadcast_front(which, aval, size)
            return self.bind(which, *cases), True
        shape = max((typeof(c).shape for c in cases), key=len)
        if len(shape) > aval.ndim:
            which = table["broadcast_in_dim"].bind(
                which, shape=shape, broadcast_dimensions=(0,)
            )
        return self.bind(which, *cases), True


def select_n(which: Any, /, *cases: Any) -> Array:
    """Returns, elementwise, the case that `which` names.

    Args:
      which: bool (False: the first case, True: the second) or i32 array (the number of
        the case), 0-d or of the shape of the cases.
      *cases: arrays of one dtype and shape; constant ones may be 0-d or Python numbers.

    Returns:
      An array of the dtype and shape of the cases.

    Raises:
      DtypeError: `which` is neither bool nor i32, or the cases' dtypes differ.
      ShapeError: the shapes are incompatible.
      ArgumentError: there is no case.

    Special cases:
      A number below 0 names the first case, one past the end the last.

    Example:
      >>> select_n(np.array([2, 0, 1], "i4"), 10, 20, 30)
      Array([30, 10, 20], dtype=int32, weak_type=True)

    Source: StableHLO `select` and `compare`.
    """
    arrays = list(cases)
    known = [typeof(c) for c in cases if type(c) not in PYTHON_SCALARS]
    if known and len(known) < len(cases):
        arrays = [
            constant_like(c, known[0], "select_n") if type(c) in PYTHON_SCALARS else c
            for c in cases
        ]
    avals = [typeof(c) for c in arrays]
    if avals and dtypes.is_key(avals[0].dtype):
        return _select_keys(which, arrays, avals)
    shape = next((a.shape for a in avals if a.ndim), typeof(which).shape)
    if shape:
        # A traced 0-d case could be differentiated or mapped: it must be as large.
        final = state.trace.final
        arrays = [
            arith.repeated(c, shape)
            if not (a.ndim or final) and isinstance(c, Tracer)
            else c
            for c, a in zip(arrays, avals, strict=True)
        ]
    return SelectN.bind(which, *arrays)


def _select_keys(which: Any, cases: Values, avals: Sequence[Aval]) -> Array:
    table["select_n"].abstract(typeof(which), *avals)
    key_data = [table["random_unwrap"].bind(c) for c in cases]
    mask = typeof(which)
    if mask.ndim:
        which = table["broadcast_in_dim"].bind(
            which,
            shape=mask.shape + avals[0].dtype.suffix,
            broadcast_dimensions=tuple(range(mask.ndim)),
        )
    return table["random_wrap"].bind(
        SelectN.bind(which, *key_data), dtype=avals[0].dtype
    )


def select(pred: Any, on_true: Any, on_false: Any) -> Array:
    """Returns `on_true` where `pred` holds, `on_false` elsewhere.

    Args:
      pred: boolean array, 0-d or of the shape of the cases.
      on_true: array.
      on_false: array of the same dtype and shape; constants may be 0-d.

    Returns:
      An array of the dtype and shape of the cases.

    Raises:
      DtypeError: `pred` is not boolean, or the cases' dtypes differ.
      ShapeError: the shapes are incompatible.

    Special cases:
      Both cases are computed; but no gradient passes through the one not chosen.

    Example:
      >>> select(np.array([True, False]), np.array([1, 2], "i4"), 0)
      Array([1, 0], dtype=int32)

    Source: StableHLO `select`.
    """
    return select_n(pred, on_false, on_true)


def _host_clamp(low: Any, x: Any, high: Any) -> Any:
    return _extrema_host.minimum(_extrema_host.maximum(x, low), high)


def _above(low: Any, x: Any, high: Any) -> Any:
    return bitwise_and(gt(*operands("gt", low, x)), lt(*operands("lt", low, high)))


def _inside(low: Any, x: Any, high: Any) -> Any:
    return bitwise_and(gt(x, low), lt(x, high))


def _beyond(low: Any, x: Any, high: Any) -> Any:
    return lt(high, x)


@register
class Clamp(Elementwise):
    """min(max(x, low), high). dtypes: real. StableHLO: clamp."""

    name = "clamp"
    kinds = REAL
    numpy = _host_clamp

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """Bounds may be 0-d."""
        low, x, high = operands
        low_aval, x_aval, high_aval = ctx.avals_in
        out = ctx.avals_out[0]
        if low_aval.ndim != high_aval.ndim or x_aval.ndim != out.ndim:
            low, x, high = self.aligned(ctx, operands)
            low_aval = x_aval = high_aval = out
        types = ", ".join(a.mlir for a in (low_aval, x_aval, high_aval))
        return ctx.emit(f"stablehlo.clamp {low}, {x}, {high} : ({types}) -> {out.mlir}")

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The tangent of what the result is; zero where x is on a bound."""
        out = self.bind(*primals)
        zero = arith.constant(0, typeof(out).dtype)
        total: Any = None
        masks: tuple[Callable[..., Any], ...] = (_above, _inside, _beyond)
        for tangent, mask in zip(tangents, masks, strict=True):
            if type(tangent) is not Zero:
                term = SelectN.bind(mask(*primals), zero, tangent)
                total = arith.add(total, term)
        return out, Zero(typeof(out).tangent()) if total is None else total


def clamp(min: Any, x: Any, max: Any) -> Array:
    """Returns x moved into the interval from min to max.

    Args:
      min: lower bound: int or float array, 0-d or of the shape of `x`.
      x: array.
      max: upper bound, like `min`.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: the dtypes differ, or are bool or complex.
      ShapeError: the shapes are incompatible.

    Special cases:
      Where min > max, the result is max. nan stays nan. On a bound the derivative with
      respect to `x` is 0.

    Example:
      >>> clamp(0.0, np.array([-1.0, 0.5, 3.0], "f4"), 1.0)
      Array([0. , 0.5, 1. ], dtype=float32)

    Source: StableHLO `clamp`.
    """
    return Clamp.bind(*operands("clamp", min, x, max))
