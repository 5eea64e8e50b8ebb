"""Reductions, and operations that move elements, in Triton's IR."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, dtypes
from fxflow.core.ir.graph import Node
from fxflow.lax.gather_scatter.gather import fill_scalar
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.triton_scalars import converted, elementwise, extremum
from fxflow.lax.kernels.triton_writer import (
    BOOL,
    F32,
    I32,
    Tile,
    Writer,
    element_type,
    is_half,
    typed_as,
)

#: Most bytes of an array whose elements move, by shared memory.
_SHARED = 1 << 17
#: Where the elements along an axis are: a number, or i32 of the result's shape.
Places = Sequence[Any]


# -- moving elements -------------------------------------------------------------------


def reshaped(w: Writer, x: Tile, shape: Sequence[int]) -> Tile:
    """Returns an array in another shape of the same elements."""
    shape = tuple(shape)
    if x.shape == shape:
        return x
    if not shape:
        return _single(w, x)
    if not x.shape:
        return Tile(w.spread(x, shape), shape, x.dtype)
    thin = [n for n in x.shape if n != 1] == [n for n in shape if n != 1]
    plain = w.padded(x.shape) == x.shape and w.padded(shape) == shape
    if thin or plain:
        new = w.type(shape, x.dtype)
        value = w.op(f"tt.reshape {x.value} : {w.of(x)} -> {new}")
        return Tile(value, shape, x.dtype, x.ramp if len(shape) == 1 and thin else None)
    # The position among all elements, then along each axis of the operand.
    position = _linear(w, [w.iota(shape, i) for i in range(len(shape))], shape, shape)
    places, rest = [], position
    for n in reversed(x.shape[1:]):
        size, kind = w.full(n, shape, I32), w.type(shape, I32)
        places.append(w.op(f"arith.remsi {rest}, {size} : {kind}"))
        rest = w.op(f"arith.divsi {rest}, {size} : {kind}")
    return taken(w, x, [rest, *reversed(places)], shape)


def _single(w: Writer, x: Tile) -> Tile:
    """Returns the only element of an array as a number."""
    x = _flat(w, x)
    kind, dtype = element_type(x.dtype), x.dtype
    if dtypes.is_bool(dtype) or dtype.itemsize < 4:
        wide = converted(w, x, F32 if is_half(dtype) else I32)
        return converted(w, _single(w, wide), dtype)
    value = w.reduce([x], 0, [kind], lambda a, b: [a[0]])[0]
    return Tile(value, (), dtype)


def _flat(w: Writer, x: Tile) -> Tile:
    size = math.prod(w.padded(x.shape))
    if len(x.shape) == 1:
        return x
    new = typed_as([size], element_type(x.dtype))
    value = w.op(f"tt.reshape {x.value} : {w.of(x)} -> {new}")
    return Tile(value, (size,), x.dtype)


def _linear(
    w: Writer, places: Places, lengths: Sequence[int], shape: Sequence[int]
) -> str:
    """Returns positions in an array of some lengths, from those along its axes."""
    total, kind = "", w.type(shape, I32)
    for d, place in enumerate(places):
        stride = math.prod(lengths[d + 1 :])
        if isinstance(place, int):
            place = w.full(place, shape, I32)
        if stride != 1:
            place = w.op(f"arith.muli {place}, {w.full(stride, shape, I32)} : {kind}")
        total = w.op(f"arith.addi {total}, {place} : {kind}") if total else place
    return total or w.full(0, shape, I32)


def taken(w: Writer, x: Tile, places: Places, shape: Sequence[int]) -> Tile:
    """Returns elements of an array.

    Args:
      w: where to.
      x: the array.
      places: for each of its axes where the elements are; any numbers in the padding.
      shape: shape of the result; the empty one for a number.
    """
    shape = tuple(shape)
    if not x.shape:
        return Tile(w.spread(x, shape), shape, x.dtype)
    if not shape:
        numbers = [p if isinstance(p, int) else w.splat(p, (1,), "i32") for p in places]
        return _single(w, taken(w, x, numbers, (1,)))
    if dtypes.is_bool(x.dtype):
        return converted(w, taken(w, converted(w, x, np.int32), places, shape), BOOL)
    padded = w.padded(x.shape)
    size, kind = math.prod(padded), w.type(shape, I32)
    if size * x.dtype.itemsize > _SHARED:
        raise UnsupportedError(
            f"a move of elements of an array of {size * x.dtype.itemsize:,} bytes (at "
            f"most {_SHARED:,})"
        )
    index = _linear(w, places, padded, shape)
    # What is taken for the padding must be somewhere in the array, too.
    index = w.op(f"arith.andi {index}, {w.full(size - 1, shape, I32)} : {kind}")
    source, at = _flat(w, x), _flat(w, Tile(index, shape, I32))
    flat, number = w.of(source), w.of(at)
    new = typed_as([math.prod(w.padded(shape))], element_type(x.dtype))
    value = w.op(
        f"tt.gather {source.value}[{at.value}] {{axis = 0 : i32}} : "
        f"({flat}, {number}) -> {new}"
    )
    if len(shape) > 1:
        value = w.op(f"tt.reshape {value} : {new} -> {w.type(shape, x.dtype)}")
    return Tile(value, shape, x.dtype)


def transposed(w: Writer, x: Tile, order: Sequence[int]) -> Tile:
    """Returns an array with its axes in another order."""
    shape = tuple(x.shape[i] for i in order)
    if list(order) == list(range(len(order))):
        return x
    value = w.op(
        f"tt.trans {x.value} {{order = array<i32: {', '.join(map(str, order))}>}} : "
        f"{w.of(x)} -> {w.type(shape, x.dtype)}"
    )
    return Tile(value, shape, x.dtype)


def _transpose(w: Writer, node: Node, xs: Sequence[Tile]) -> Tile:
    return transposed(w, xs[0], node.params["permutation"])


def _reshape(w: Writer, node: Node, xs: Sequence[Tile]) -> Tile:
    return reshaped(w, xs[0], node.outputs[0].aval.shape)


def _broadcast_in_dim(w: Writer, node: Node, xs: Sequence[Tile]) -> Tile:
    x, shape = xs[0], tuple(node.outputs[0].aval.shape)
    axes = list(node.params["broadcast_dimensions"])
    order = sorted(range(len(axes)), key=axes.__getitem__)
    x = transposed(w, x, order) if len(order) > 1 else x
    thin = [1] * len(shape)
    for n, axis in zip(x.shape, sorted(axes), strict=True):
        thin[axis] = n
    if x.shape:
        x = reshaped(w, x, thin)
    return Tile(w.spread(x, shape), shape, x.dtype)


def _iota(w: Writer, node: Node, xs: Sequence[Tile]) -> Tile:
    out, axis = node.outputs[0].aval, node.params["dimension"]
    ramp = (w.number(0), 1) if len(out.shape) == 1 else None
    return converted(w, Tile(w.iota(out.shape, axis), out.shape, I32, ramp), out.dtype)


def _moved(
    w: Writer, axis: int, shape: Sequence[int], start: Any, step: int = 1
) -> Any:
    """Returns start + step * position along an axis; start a number or its name."""
    value, kind = w.iota(shape, axis), w.type(shape, I32)
    if step != 1:
        value = w.op(f"arith.muli {value}, {w.full(step, shape, I32)} : {kind}")
    if start == 0:
        return value
    if isinstance(start, int):
        start = w.full(start, shape, I32)
    else:
        start = w.splat(start, shape, "i32")
    return w.op(f"arith.addi {value}, {start} : {kind}")


def _slice(w: Writer, node: Node, xs: Sequence[Tile]) -> Tile:
    shape, p = node.outputs[0].aval.shape, node.params
    steps = p["strides"] or (1,) * len(shape)
    starts = p["start_indices"]
    places = [_moved(w, i, shape, starts[i], steps[i]) for i in range(len(shape))]
    return taken(w, xs[0], places, shape)


def _rev(w: Writer, node: Node, xs: Sequence[Tile]) -> Tile:
    shape, axes = xs[0].shape, node.params["dimensions"]
    places = [
        _moved(w, i, shape, n - 1, -1) if i in axes else w.iota(shape, i)
        for i, n in enumerate(shape)
    ]
    return taken(w, xs[0], places, shape)


def _pad(w: Writer, node: Node, xs: Sequence[Tile]) -> Tile:
    x, value = xs
    shape, config = node.outputs[0].aval.shape, node.params["padding_config"]
    if any(interior for _, _, interior in config):
        raise UnsupportedError("padding between elements")
    places = [_moved(w, i, shape, -low) for i, (low, _, _) in enumerate(config)]
    return _where(w, places, x, value, shape)


def _where(
    w: Writer, places: Places, x: Tile, other: Tile, shape: Sequence[int]
) -> Tile:
    """Returns elements of one array, and of another one where there are none."""
    mask, kind = "", w.type(shape, I32)
    for place, n in zip(places, x.shape, strict=True):
        for test, bound in (("sge", 0), ("slt", n)):
            here = w.op(
                f"arith.cmpi {test}, {place}, {w.full(bound, shape, I32)} : {kind}"
            )
            mask = w.both(mask, here, shape)
    part = taken(w, x, places, shape).value
    rest = w.spread(other, shape)
    value = w.select(mask, part, rest, w.type(shape, x.dtype)) if mask else part
    return Tile(value, shape, x.dtype)


def _concatenate(w: Writer, node: Node, xs: Sequence[Tile]) -> Tile:
    axis, shape = node.params["dimension"], node.outputs[0].aval.shape
    whole, start = w.constant(0, shape, xs[0].dtype), 0
    for x in xs:
        places = [
            _moved(w, i, shape, -start if i == axis else 0) for i in range(len(shape))
        ]
        whole = _where(w, places, x, whole, shape)
        start += x.shape[axis]
    return whole


def clamped(w: Writer, value: str, most: int) -> str:
    """Returns an i32 within 0 and another number."""
    value = w.op(f"arith.maxsi {value}, {w.number(0)} : i32")
    return w.op(f"arith.minsi {value}, {w.number(most)} : i32")


def _dynamic_slice(w: Writer, node: Node, xs: Sequence[Tile]) -> Tile:
    x, *starts = xs
    shape = node.outputs[0].aval.shape
    places = []
    for i, (start, n, k) in enumerate(zip(starts, x.shape, shape, strict=True)):
        at = clamped(w, w.integer(start).value, n - k) if n > k else 0
        places.append(_moved(w, i, shape, at))
    return taken(w, x, places, shape)


def _dynamic_update_slice(w: Writer, node: Node, xs: Sequence[Tile]) -> Tile:
    x, update, *starts = xs
    places = []
    for i, (start, n, k) in enumerate(zip(starts, x.shape, update.shape, strict=True)):
        at: Any = 0
        if n > k:
            at = clamped(w, w.integer(start).value, n - k)
            at = w.op(f"arith.subi {w.number(0)}, {at} : i32")
        places.append(_moved(w, i, x.shape, at))
    return _where(w, places, update, x, x.shape)


def _gather(w: Writer, node: Node, xs: Sequence[Tile]) -> Tile:
    """Slices at computed starts, which are clamped, or a fill value."""
    x, indices = xs
    shape, p = node.outputs[0].aval.shape, node.params
    numbers, sizes = p["dimension_numbers"], p["slice_sizes"]
    if numbers.operand_batching_dims:
        raise UnsupportedError("gather with batch axes")
    fills, outside = p["mode"].name == "FILL_OR_DROP", ""
    window = [d for d in range(len(x.shape)) if d not in numbers.collapsed_slice_dims]
    offsets = dict(zip(numbers.offset_dims, window, strict=True))
    rows = [d for d in range(len(shape)) if d not in offsets]
    indices = w.integer(indices)
    places: list[Any] = [0] * len(x.shape)
    kind = w.type(shape, I32)
    for d, axis in offsets.items():
        places[axis] = w.iota(shape, d)
    for k, axis in enumerate(numbers.start_index_map):
        at = [*(w.iota(shape, d) for d in rows), k] if shape else [k]
        start = taken(w, indices, at, shape)
        most = w.full(x.shape[axis] - sizes[axis], shape, I32)
        low = w.op(f"arith.maxsi {start.value}, {w.full(0, shape, I32)} : {kind}")
        value = w.op(f"arith.minsi {low}, {most} : {kind}")
        if fills:
            moved = w.op(f"arith.cmpi ne, {value}, {start.value} : {kind}")
            outside = (
                w.op(f"arith.ori {outside}, {moved} : {w.type(shape, BOOL)}")
                if outside
                else moved
            )
        if places[axis] != 0:
            value = w.op(f"arith.addi {value}, {places[axis]} : {kind}")
        places[axis] = value
    found = taken(w, x, places, shape)
    if not outside:
        return found
    fill = w.full(fill_scalar(p["fill_value"], x.dtype), shape, x.dtype)
    value = w.select(outside, fill, found.value, w.of(found))
    return Tile(value, shape, x.dtype)


def _scatter(w: Writer, node: Node, xs: Sequence[Tile]) -> Tile:
    """One window written, or added, at a computed start."""
    x, indices, updates = xs
    numbers, mode = node.params["dimension_numbers"], node.params["mode"].name
    window = set(numbers.update_window_dims)
    rows = [n for d, n in enumerate(updates.shape) if d not in window]
    if numbers.operand_batching_dims or math.prod(rows) != 1:
        raise UnsupportedError(f"{node.primitive.name} of several slices")
    # Operand's axes of the window, in order.
    inserted = numbers.inserted_window_dims
    axes = [d for d in range(len(x.shape)) if d not in inserted]
    sizes = [1] * len(x.shape)
    for d, axis in zip(sorted(window), axes, strict=True):
        sizes[axis] = updates.shape[d]
    part = reshaped(w, updates, sizes)
    starts: list[Any] = [0] * len(x.shape)
    flat = reshaped(w, w.integer(indices), (math.prod(indices.shape),))
    dropped = ""
    for k, axis in enumerate(numbers.scatter_dims_to_operand_dims):
        start = taken(w, flat, [k], ()).value
        safe = clamped(w, start, x.shape[axis] - sizes[axis])
        if mode != "CLIP":
            moved = w.op(f"arith.cmpi eq, {safe}, {start} : i32")
            dropped = w.both(dropped, moved, ())
        starts[axis] = w.op(f"arith.subi {w.number(0)}, {safe} : i32")
    places = [_moved(w, i, x.shape, start) for i, start in enumerate(starts)]
    if node.primitive.name == "scatter":
        found = _where(w, places, part, x, x.shape)
    else:
        zero = w.constant(0, (), x.dtype)
        added = _where(w, places, part, zero, x.shape)
        found = elementwise(w, "add", [x, added], Aval(x.shape, x.dtype), {})
    if not dropped:
        return found
    inside = w.splat(dropped, x.shape, "i1")
    return Tile(w.select(inside, found.value, x.value, w.of(x)), x.shape, x.dtype)


# -- reductions ------------------------------------------------------------------------


def neutral(name: str, dtype: Any) -> Any:
    """Returns the number that does not change a reduction.

    Args:
      name: `sum`, `prod`, `max`, `min`, `and`, `or` or `xor`.
      dtype: dtype of the elements.
    """
    if name in ("max", "min"):
        if dtypes.is_floating(dtype):
            return -np.inf if name == "max" else np.inf
        if dtypes.is_bool(dtype):
            return name == "min"
        info = np.iinfo(dtype)
        return info.min if name == "max" else info.max
    if name == "and":
        return True if dtypes.is_bool(dtype) else -1 if dtypes.is_signed(dtype) else (
            np.iinfo(dtype).max
        )  # fmt: skip
    found = {"sum": 0, "prod": 1, "or": 0, "xor": 0}
    if name not in found:
        raise UnsupportedError(f"reduce_{name}")
    return found[name]


def _combine(
    w: Writer, name: str, dtype: Any
) -> Callable[[Sequence[str], Sequence[str]], list[str]]:
    """Returns how two numbers of a reduction become one."""
    if name in ("max", "min"):
        return lambda a, b: [
            extremum(w, name == "max", Tile(a[0], (), dtype), Tile(b[0], (), dtype))
        ]
    floats = {"sum": "addf", "prod": "mulf"}
    integers = {
        "sum": "addi",
        "prod": "muli",
        "and": "andi",
        "or": "ori",
        "xor": "xori",
    }
    op = (floats if dtypes.is_floating(dtype) else integers).get(name)
    if op is None:
        raise UnsupportedError(f"reduce_{name} of {np.dtype(dtype).name}")
    kind = element_type(dtype)
    return lambda a, b: [w.op(f"arith.{op} {a[0]}, {b[0]} : {kind}")]


def _widened(w: Writer, x: Tile) -> Tile:
    """Returns what is reduced: numbers of at least 32 bits."""
    if is_half(x.dtype):
        return converted(w, x, F32)
    if dtypes.is_bool(x.dtype) or x.dtype.itemsize < 4:
        return converted(w, x, np.uint32 if not dtypes.is_signed(x.dtype) else I32)
    return x


def reduced(w: Writer, name: str, x: Tile, axes: Sequence[int], out: Any) -> Tile:
    """Returns a reduction of an array along some axes.

    Args:
      w: where to.
      name: see `neutral`.
      x: the array.
      axes: axes of the array.
      out: dtype of the result.
    """
    if dtypes.is_bool(x.dtype):
        # Sums and products of bools are those of bits.
        name = {"sum": "xor", "prod": "and", "max": "or", "min": "and"}.get(name, name)
    start = neutral(name, x.dtype)
    for axis in sorted(axes, reverse=True):
        x = Tile(w.masked(x, [axis], start), x.shape, x.dtype)
    small, x = x.dtype, _widened(w, x)
    for axis in sorted(axes, reverse=True):
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        if x.shape[axis] == 1:
            x = reshaped(w, x, shape)
            continue
        kind = w.type(shape, x.dtype)
        (value,) = w.reduce([x], axis, [kind], _combine(w, name, x.dtype))
        x = Tile(value, shape, x.dtype)
    return converted(w, converted(w, x, small) if not is_half(small) else x, out)


def _reduce(w: Writer, node: Node, xs: Sequence[Tile]) -> Tile:
    name = node.primitive.name.removeprefix("reduce_")
    return reduced(w, name, xs[0], node.params["axes"], node.outputs[0].aval.dtype)


def _cumulative(w: Writer, node: Node, xs: Sequence[Tile]) -> Tile:
    (x,), p = xs, node.params
    name = node.primitive.name.removeprefix("cum")
    axis, out = p["axis"], node.outputs[0].aval.dtype
    start = neutral(name, x.dtype)
    x = _widened(w, Tile(w.masked(x, [axis], start), x.shape, x.dtype))
    if x.shape[axis] > 1:
        combine = _combine(w, name, x.dtype)
        value = w.scan(x, axis, p["reverse"], combine)
        x = Tile(value, x.shape, x.dtype)
    return converted(w, x, out)


def _arg_extremum(w: Writer, node: Node, xs: Sequence[Tile]) -> Tile:
    """The first extremum; the first NaN if there is one."""
    (x,), axis = xs, node.params["axis"]
    largest, out = node.primitive.name == "argmax", node.outputs[0].aval.dtype
    start = neutral("max" if largest else "min", x.dtype)
    x = _widened(w, Tile(w.masked(x, [axis], start), x.shape, x.dtype))
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    at = Tile(w.iota(x.shape, axis), x.shape, I32)
    if x.shape[axis] == 1:
        return converted(w, reshaped(w, at, shape), out)
    number = element_type(x.dtype)
    floating = dtypes.is_floating(x.dtype)
    sign = "o" if floating else "s" if dtypes.is_signed(x.dtype) else "u"
    test, op = ("gt" if largest else "lt"), ("cmpf" if floating else "cmpi")

    def combine(a: Sequence[str], b: Sequence[str]) -> list[str]:
        (v, i), (u, j) = a, b
        better = w.op(f"arith.{op} {sign}{test}, {v}, {u} : {number}")
        equal = w.op(f"arith.{op} {'oeq' if floating else 'eq'}, {v}, {u} : {number}")
        if floating:
            nan = w.op(f"arith.cmpf uno, {v}, {v} : {number}")
            other = w.op(f"arith.cmpf uno, {u}, {u} : {number}")
            both = w.op(f"arith.andi {nan}, {other} : i1")
            equal = w.op(f"arith.ori {equal}, {both} : i1")
            better = w.op(f"arith.ori {better}, {nan} : i1")
        earlier = w.op(f"arith.cmpi slt, {i}, {j} : i32")
        first = w.op(f"arith.select {equal}, {earlier}, {better} : i1")
        return [
            w.op(f"arith.select {first}, {v}, {u} : {number}"),
            w.op(f"arith.select {first}, {i}, {j} : i32"),
        ]

    kinds = [w.type(shape, x.dtype), w.type(shape, I32)]
    # Padding is like the worst element, but behind it.
    found = w.reduce([x, at], axis, kinds, combine)[1]
    return converted(w, Tile(found, shape, I32), out)


RULES: dict[str, Callable[[Writer, Node, Sequence[Tile]], Tile]] = {
    "argmax": _arg_extremum,
    "argmin": _arg_extremum,
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": _concatenate,
    "cummax": _cumulative,
    "cummin": _cumulative,
    "cumprod": _cumulative,
    "cumsum": _cumulative,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "iota": _iota,
    "pad": _pad,
    "reduce_and": _reduce,
    "reduce_max": _reduce,
    "reduce_min": _reduce,
    "reduce_or": _reduce,
    "reduce_prod": _reduce,
    "reduce_sum": _reduce,
    "reduce_xor": _reduce,
    "reshape": _reshape,
    "rev": _rev,
    "scatter": _scatter,
    "scatter_add": _scatter,
    "slice": _slice,
    "transpose": _transpose,
}
