"""Reductions, cumulative and windowed reductions, and sorting in ONNX."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.ir.primitive import table
from fxflow.core.sizes import is_symbolic
from fxflow.export.onnx_rules.elementwise import number
from fxflow.export.onnx_rules.movement import padded, sliced
from fxflow.export.onnx_rules.writer import KERNELS, RULES, Value, Writer, rule
from fxflow.lax.recurrence import tree_scan
from fxflow.lax.windows import Window

_BOOL = np.dtype(bool)
_INT64 = np.dtype(np.int64)


def _reduced(kind: str, name: str) -> Any:
    def write(w: Writer, x: Value, *, axes: Sequence[int]) -> Value:
        (aval,), (out,) = w.avals_in, w.avals_out
        if not axes:
            return x
        if not math.prod(aval.shape):
            return w.constant(table[name].identity(out.dtype), out)  # type: ignore[attr-defined]
        if x.dtype == _BOOL:
            x = w.cast(x, np.dtype(np.int32))
        reduced = w.op(kind, x, w.ints(*axes), keepdims=0)
        if kind in ("ReduceMax", "ReduceMin") and dtypes.is_floating(x.dtype):
            found = w.op("ReduceMax", _nans(w, x), w.ints(*axes), keepdims=0)
            nan = number(w, math.nan, x)
            reduced = w.op("Where", w.cast(found, _BOOL), nan, reduced)
        return w.cast(reduced, out.dtype)

    return write


def _nans(w: Writer, x: Value) -> Value:
    """Returns 1 where a float is NaN: the runtime's extrema ignore NaN."""
    return w.cast(w.op("IsNaN", x, dtype=_BOOL), np.dtype(np.int32))


RULES.update(
    {
        "reduce_sum": _reduced("ReduceSum", "reduce_sum"),
        "reduce_prod": _reduced("ReduceProd", "reduce_prod"),
        "reduce_max": _reduced("ReduceMax", "reduce_max"),
        "reduce_min": _reduced("ReduceMin", "reduce_min"),
    }
)


@rule("reduce_and", "reduce_or", "reduce_xor")
def _reduce_bits(w: Writer, x: Value, *, axes: Sequence[int]) -> Value:
    name = w.primitive
    if x.dtype != _BOOL:
        raise w.refuse(f"of {x.dtype}: ONNX supports it only for bools")
    if not axes:
        return x
    kind = {"reduce_and": "ReduceMin", "reduce_or": "ReduceMax"}.get(name, "ReduceSum")
    if not math.prod(w.avals_in[0].shape):
        return w.constant(np.asarray(name == "reduce_and"), w.avals_out[0])
    total = w.op(kind, w.cast(x, np.dtype(np.int32)), w.ints(*axes), keepdims=0)
    if name == "reduce_xor":
        total = w.op("Mod", total, number(w, 2, total))
    return w.cast(total, _BOOL)


# -- sorting ---------------------------------------------------------------------------


def _ordered(
    w: Writer, x: Value, count: int, axis: int, largest: bool
) -> tuple[Value, Value]:
    """Returns the first `count` elements in order along an axis, and their indices."""
    kind = x.dtype
    if kind.name not in KERNELS["TopK"] | {"uint64"}:
        floats = dtypes.is_floating(kind)
        x = w.cast(x, np.dtype(np.float32 if floats else np.int64))
    values, places = w.ops(
        "TopK",
        [x, w.ints(count)],
        [x.dtype, _INT64],
        axis=axis,
        largest=int(largest),
        sorted=1,
    )
    return w.cast(values, kind), places


def _extremum(largest: bool) -> Any:
    def write(w: Writer, x: Value, *, axis: int, index_dtype: Any) -> Value:
        _, places = _ordered(w, x, 1, axis, largest)
        return w.cast(w.reshape(places, w.avals_out[0].shape), index_dtype)

    return write


def _arg(kind: str, largest: bool) -> Any:
    by_top_k = _extremum(largest)

    def write(w: Writer, x: Value, *, axis: int, index_dtype: Any) -> Value:
        floats = dtypes.is_floating(x.dtype)
        # ONNX Runtime supports it for few integer dtypes, but `TopK` for all.
        if not floats and x.dtype != np.int32:
            return by_top_k(w, x, axis=axis, index_dtype=index_dtype)  # type: ignore[no-any-return]
        places = w.op(kind, x, axis=axis, keepdims=0, dtype=_INT64)
        if floats:
            # The first NaN, if there is one.
            nans = _nans(w, x)
            found = w.op("ReduceMax", nans, w.ints(axis), keepdims=0)
            first = w.op("ArgMax", nans, axis=axis, keepdims=0, dtype=_INT64)
            places = w.op("Where", w.cast(found, _BOOL), first, places)
        return w.cast(places, index_dtype)

    return write


RULES.update({"argmax": _arg("ArgMax", True), "argmin": _arg("ArgMin", False)})


@rule("top_k")
def _top_k(w: Writer, x: Value, *, k: int, axis: int) -> list[Value]:
    values, places = _ordered(w, x, k, axis, True)
    return [values, w.cast(places, w.avals_out[1].dtype)]


@rule("sort")
def _sort(
    w: Writer, *xs: Value, dimension: int, is_stable: bool, num_keys: int
) -> list[Value]:
    shape = w.avals_in[0].shape
    if not math.prod(shape):
        return list(xs)
    arrays = list(xs)
    # Sort by the last key first: the sort is stable.
    for key in reversed(range(num_keys)):
        found = arrays[key]
        ordered, places = _ordered(w, found, shape[dimension], dimension, False)
        arrays = [
            ordered if i == key else w.op("GatherElements", x, places, axis=dimension)
            for i, x in enumerate(arrays)
        ]
    return arrays


# -- cumulative ------------------------------------------------------------------------


@rule("cumsum")
def _cumsum(w: Writer, x: Value, *, axis: int, reverse: bool) -> Value:
    return w.op("CumSum", x, w.constant(np.asarray(axis)), reverse=int(reverse))


@rule("cumprod", "cummax", "cummin", "cumlogsumexp")
def _cumulative(w: Writer, x: Value, *, axis: int, reverse: bool) -> Value:
    combine = table[w.primitive].combine  # type: ignore[attr-defined]
    return w.compose(
        lambda x: tree_scan(lambda a, b: [combine(a[0], b[0])], [x], axis, reverse),
        [x],
    )[0]


# -- windows ---------------------------------------------------------------------------

#: Most axes of ONNX Runtime's pooling nodes.
_POOLED_AXES = 3
#: Most positions of a window that are combined one by one if no node can pool.
_POSITIONS = 1024


def _windowed(name: str, kind: str) -> Any:
    def write(w: Writer, x: Value, *, window: Window) -> Value:
        (aval,), (out,) = w.avals_in, w.avals_out
        identity = number(w, table[name].identity(x.dtype), x)  # type: ignore[attr-defined]
        if not math.prod(out.shape):
            return w.constant(np.zeros((), out.dtype), out)
        own = w.cast(x, np.dtype(np.float32)) if x.dtype.name == "bfloat16" else x
        if is_symbolic(window.dimensions):
            raise w.refuse(f"over windows of symbolic size {window.dimensions}")
        over = [d for d, length in enumerate(window.dimensions) if length > 1]
        shape = list(aval.shape)
        pooled = ("float16", "float32") + ("float64",) * (kind != "Sum")
        if not over or len(over) > _POOLED_AXES or own.dtype.name not in pooled:
            return _by_positions(w, x, shape, identity, window, name)
        identity = w.cast(identity, own.dtype)
        config = [
            (low, high, b - 1)
            for (low, high), b in zip(window.padding, window.base_dilation, strict=True)
        ]
        own, shape = padded(w, own, shape, identity, config)
        return w.cast(_pooled(w, own, shape, window, over, kind), x.dtype)

    return write


def _pooled(
    w: Writer, x: Value, shape: list[int], window: Window, over: list[int], kind: str
) -> Value:
    """Pools padded floats over up to three axes."""
    rest = [d for d in range(len(shape)) if d not in over]
    # First apply the strides along axes where the window has length 1.
    steps = [1 if d in over else s for d, s in enumerate(window.strides)]
    x = sliced(w, x, shape, [0] * len(shape), shape, steps)
    shape = [-(-n // s) for n, s in zip(shape, steps, strict=True)]
    x = w.transpose(x, [*rest, *over])
    lengths = [shape[d] for d in rest]
    inner = [shape[d] for d in over]
    if len(rest) != 2:
        x = w.reshape(x, [math.prod(lengths), 1, *inner])
    size = [window.dimensions[d] for d in over]
    settings = {
        "kernel_shape": size,
        "strides": [window.strides[d] for d in over],
        "dilations": [window.window_dilation[d] for d in over],
    }
    if kind == "Min":
        x = w.op("Neg", w.op("MaxPool", w.op("Neg", x), **settings))
    elif kind == "Max":
        x = w.op("MaxPool", x, **settings)
    else:
        x = w.op("AveragePool", x, **settings)
        x = w.op("Mul", x, number(w, math.prod(size), x))
    (out,) = w.avals_out
    if len(rest) != 2:
        x = w.reshape(x, [*lengths, *(out.shape[d] for d in over)])
    order = [*rest, *over]
    return w.transpose(x, [order.index(d) for d in range(len(order))])


def _by_positions(
    w: Writer, x: Value, shape: list[int], identity: Value, window: Window, name: str
) -> Value:
    """Combines strided slices of the array, one for each position in the window."""
    if math.prod(window.dimensions) > _POSITIONS:
        raise w.refuse(
            f"over windows of {math.prod(window.dimensions)} elements in {x.dtype} or "
            f"over more than {_POOLED_AXES} axes: ONNX only pools floats, over up to "
            f"{_POOLED_AXES} axes"
        )
    config = [
        (low, high, b - 1)
        for (low, high), b in zip(window.padding, window.base_dilation, strict=True)
    ]
    x, shape = padded(w, x, shape, identity, config)
    counts = w.avals_out[0].shape
    kind = {"Sum": "Add"}.get(_POOLS[name], _POOLS[name])
    if x.dtype == _BOOL:
        kind = "Or" if kind == "Max" else "And"
    total = None
    for position in itertools.product(*map(range, window.dimensions)):
        starts = [i * d for i, d in zip(position, window.window_dilation, strict=True)]
        limits = [
            a + (n - 1) * s + 1
            for a, n, s in zip(starts, counts, window.strides, strict=True)
        ]
        part = sliced(w, x, shape, starts, limits, window.strides)
        total = part if total is None else w.op(kind, total, part)
    assert total is not None
    return total


_POOLS = {
    "reduce_window_sum": "Sum",
    "reduce_window_max": "Max",
    "reduce_window_min": "Min",
}
RULES.update({name: _windowed(name, kind) for name, kind in _POOLS.items()})
