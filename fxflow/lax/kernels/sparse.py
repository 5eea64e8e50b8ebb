"""Products of sparse matrices as machine code for this process's CPU."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fxflow.core.arrays import Aval
from fxflow.devices.native import register_kernel, vector_lanes
from fxflow.devices.pool import frame
from fxflow.lax.foreign_calls import FfiCall

#: Products of two numbers for which one more thread is worth waking.
_WORK = 40_000
#: Most tasks of a product: enough that no thread waits long for another.
_TASKS = 32
#: Sums of a row at once.
_SUMS = 4

_FLOATS = {"float32": "float", "float64": "double"}


class ProductShape(NamedTuple):
    """What the machine code of a product depends on.

    Attributes:
      kind: LLVM's type of the numbers.
      rows: of the matrix.
      columns: of the matrix.
      entries: of the matrix.
      size: size of its values in memory.
      width: columns of the other operand.
      batch: number of products.
      maps_values: whether each product has values of its own.
      maps_other: whether each product has another operand of its own.
      has_order: whether the values of entries lie in another order.
    """

    kind: str
    rows: int
    columns: int
    entries: int
    size: int
    width: int
    batch: int
    maps_values: bool
    maps_other: bool
    has_order: bool


def native_product(
    in_avals: Sequence[Aval], out: Aval, columns: int
) -> Callable[..., list[Any]] | None:
    """Returns a function that runs `sparse_product` as machine code, or None.

    Args:
      in_avals: types of the operands.
      out: type of the result.
      columns: of the matrix.

    Returns:
      A function of the operands; None without LLVM, or for a dtype that the kernel does
      not know.
    """
    values, other, indptr, indices, *_ = in_avals
    kind = _FLOATS.get(values.dtype.name)
    if kind is None or not out.size or not indices.size or not vector_lanes():
        return None
    shape = ProductShape(
        kind,
        indptr.shape[0] - 1,
        columns,
        indices.shape[0],
        values.shape[-1],
        1 if other.ndim == 1 else out.shape[-1],
        out.shape[0] if values.ndim == 2 else 1,
        values.ndim == 2,
        other.ndim == 3,
        len(in_avals) > 5,
    )
    return _caller(_registered(shape), in_avals, out)


def _caller(
    target: str, in_avals: Sequence[Aval], out: Aval
) -> Callable[..., list[Any]]:
    def call(*operands: Any) -> list[Any]:
        found: list[Any] = FfiCall.bind(
            *operands,
            target=target,
            out_avals=(out,),
            has_side_effect=False,
            vmap_method=None,
            in_layouts=tuple(tuple(range(a.ndim)) for a in in_avals),
            out_layouts=(tuple(range(out.ndim)),),
            aliases=(),
            config="{}",
            api_version=4,
        )
        return found

    return call


@functools.lru_cache(512)
def _registered(shape: ProductShape) -> str:
    """Returns the target of a product's machine code."""
    work = shape.entries * shape.width
    parts = max(1, min(_TASKS, work // _WORK, shape.rows))
    tasks = parts * shape.batch
    threads = int(min(tasks, work * shape.batch // _WORK))
    arrays = 6 + shape.has_order
    body = _bound(shape, parts) + _product(shape, parts)
    draft = frame("TARGET", arrays, tasks, threads, 64) + body
    target = f"fxflow_sparse_{hashlib.sha256(draft.encode()).hexdigest()[:24]}"
    register_kernel(target, frame(target, arrays, tasks, threads, 64) + body)
    return target


def _bound(shape: ProductShape, parts: int) -> str:
    """Returns the function of the first row of a part: parts have as many entries."""
    return f"""
define internal i64 @bound(ptr %indptr, i64 %s) {{
entry:
  %is_first = icmp eq i64 %s, 0
  br i1 %is_first, label %first, label %test
first:
  ret i64 0
test:
  %is_end = icmp eq i64 %s, {parts}
  br i1 %is_end, label %last, label %search
last:
  ret i64 {shape.rows}
search:
  %scaled = mul i64 %s, {shape.entries}
  %target = udiv i64 %scaled, {parts}
  br label %look
look:
  %low = phi i64 [0, %search], [%low_next, %step]
  %high = phi i64 [{shape.rows}, %search], [%high_next, %step]
  %more = icmp ult i64 %low, %high
  br i1 %more, label %step, label %out
step:
  %sum = add i64 %low, %high
  %middle = lshr i64 %sum, 1
  %place = getelementptr i32, ptr %indptr, i64 %middle
  %start32 = load i32, ptr %place, align 4
  %start = zext i32 %start32 to i64
  %before = icmp ult i64 %start, %target
  %above = add i64 %middle, 1
  %low_next = select i1 %before, i64 %above, i64 %low
  %high_next = select i1 %before, i64 %high, i64 %middle
  br label %look
out:
  ret i64 %low
}}
"""


def _product(shape: ProductShape, parts: int) -> str:
    """Returns the function of a task: some rows of one product."""
    kind, width = shape.kind, shape.width

    def entry(j: str, mark: str = "") -> str:
        """Returns code that loads the value and the column of entry `%j`."""
        value, order = j, ""
        if shape.has_order:
            value = f"%at{mark}"
            order = f"""
  %ap{mark} = getelementptr inbounds i32, ptr %order, i64 {j}
  %a32{mark} = load i32, ptr %ap{mark}, align 4
  %at{mark} = zext i32 %a32{mark} to i64"""
        return f"""{order}
  %vp{mark} = getelementptr inbounds {kind}, ptr %values, i64 {value}
  %v{mark} = load {kind}, ptr %vp{mark}, align 4
  %ip{mark} = getelementptr inbounds i32, ptr %indices, i64 {j}
  %i32{mark} = load i32, ptr %ip{mark}, align 4
  %i{mark} = zext i32 %i32{mark} to i64"""

    row = _narrow(kind, entry) if width == 1 else _wide(kind, width, entry("%j"))
    names = ["values", "other", "indptr", "indices", "rows"]
    names += ["order"] * shape.has_order + ["out"]
    loads = "\n".join(
        f"  %p{i} = getelementptr ptr, ptr %arrays, i64 {i}\n"
        f"  %{name}0 = load ptr, ptr %p{i}"
        for i, name in enumerate(names)
    )
    strides = {
        "values": shape.size * shape.maps_values,
        "other": shape.columns * width * shape.maps_other,
        "out": shape.rows * width,
    }
    moves = "\n".join(
        f"  %{name}_offset = mul i64 %b, {stride}\n"
        f"  %{name} = getelementptr {kind}, ptr %{name}0, i64 %{name}_offset"
        for name, stride in strides.items()
    )
    order_ptr = "%order0" if shape.has_order else "%indices0"
    return f"""
define internal void @rows(
  ptr noalias %values, ptr noalias %other, ptr noalias %indptr, ptr noalias %indices,
  ptr noalias %order, ptr noalias %out, i64 %low, i64 %high
) {{
entry:
  %none = icmp uge i64 %low, %high
  br i1 %none, label %exit, label %begin
begin:
  %fp = getelementptr inbounds i32, ptr %indptr, i64 %low
  %f32 = load i32, ptr %fp, align 4
  %from = zext i32 %f32 to i64
  br label %row
row:
  %r = phi i64 [%low, %begin], [%r_next, %row_end]
  %start = phi i64 [%from, %begin], [%end, %row_end]
  %r_next = add nuw nsw i64 %r, 1
  %ep = getelementptr inbounds i32, ptr %indptr, i64 %r_next
  %e32 = load i32, ptr %ep, align 4
  %end = zext i32 %e32 to i64
{row}
row_end:
  %done = icmp eq i64 %r_next, %high
  br i1 %done, label %exit, label %row
exit:
  ret void
}}

define internal void @task(ptr %arrays, ptr noalias %arena, i64 %t) {{
{loads}
  %b = udiv i64 %t, {parts}
  %s = urem i64 %t, {parts}
{moves}
  %s_next = add i64 %s, 1
  %low = call i64 @bound(ptr %indptr0, i64 %s)
  %high = call i64 @bound(ptr %indptr0, i64 %s_next)
  call void @rows(ptr %values, ptr %other, ptr %indptr0, ptr %indices0,
    ptr {order_ptr}, ptr %out, i64 %low, i64 %high)
  ret void
}}
"""


def _narrow(kind: str, entry: Callable[..., str]) -> str:
    """Returns the code of a row times a vector.

    Long rows have several sums at once: an addition waits for the one before.
    """
    count = _SUMS
    numbers = range(count)

    def add(j: str, mark: str, before: str) -> str:
        return f"""{entry(j, mark)}
  %xp{mark} = getelementptr inbounds {kind}, ptr %other, i64 %i{mark}
  %x{mark} = load {kind}, ptr %xp{mark}, align 4
  %product{mark} = fmul contract {kind} %v{mark}, %x{mark}
  %next{mark} = fadd contract {kind} {before}, %product{mark}"""

    starts = "\n".join(
        f"  %s_{i} = phi {kind} [0.0, %row], [%next_{i}, %several]" for i in numbers
    )
    places = "\n".join(f"  %j_{i} = add nuw nsw i64 %j0, {i}" for i in numbers)
    adds = "".join(add(f"%j_{i}", f"_{i}", f"%s_{i}") for i in numbers)
    joined, total = "", "%next_0"
    for i in numbers[1:]:
        joined += f"\n  %joined_{i} = fadd contract {kind} {total}, %next_{i}"
        total = f"%joined_{i}"
    return f"""
  %length = sub i64 %end, %start
  %is_long = icmp uge i64 %length, {count}
  br i1 %is_long, label %several, label %rest
several:
  %j0 = phi i64 [%start, %row], [%j0_next, %several]
{starts}
{places}{adds}
  %j0_next = add nuw nsw i64 %j0, {count}
  %needed = add nuw nsw i64 %j0_next, {count}
  %again = icmp ule i64 %needed, %end
  br i1 %again, label %several, label %join
join:{joined}
  br label %rest
rest:
  %j1 = phi i64 [%start, %row], [%j0_next, %join]
  %sum1 = phi {kind} [0.0, %row], [{total}, %join]
  %is_end = icmp uge i64 %j1, %end
  br i1 %is_end, label %store, label %next
next:
  %j = phi i64 [%j1, %rest], [%j_next, %next]
  %sum = phi {kind} [%sum1, %rest], [%next_t, %next]{add("%j", "_t", "%sum")}
  %j_next = add nuw nsw i64 %j, 1
  %all = icmp eq i64 %j_next, %end
  br i1 %all, label %store, label %next
store:
  %total = phi {kind} [%sum1, %rest], [%next_t, %next]
  %op = getelementptr inbounds {kind}, ptr %out, i64 %r
  store {kind} %total, ptr %op, align 4
  br label %row_end"""


def _wide(kind: str, width: int, entry: str) -> str:
    """Returns the code of a row times a matrix."""
    return f"""
  %r_offset = mul nuw nsw i64 %r, {width}
  %target = getelementptr inbounds {kind}, ptr %out, i64 %r_offset
  br label %clear
clear:
  %z = phi i64 [0, %row], [%z_next, %clear]
  %zp = getelementptr inbounds {kind}, ptr %target, i64 %z
  store {kind} 0.0, ptr %zp, align 4
  %z_next = add nuw nsw i64 %z, 1
  %cleared = icmp eq i64 %z_next, {width}
  br i1 %cleared, label %filled, label %clear
filled:
  %empty = icmp uge i64 %start, %end
  br i1 %empty, label %row_end, label %next
next:
  %j = phi i64 [%start, %filled], [%j_next, %next_end]{entry}
  %i_offset = mul nuw nsw i64 %i, {width}
  %source = getelementptr inbounds {kind}, ptr %other, i64 %i_offset
  br label %column
column:
  %c = phi i64 [0, %next], [%c_next, %column]
  %xp = getelementptr inbounds {kind}, ptr %source, i64 %c
  %x = load {kind}, ptr %xp, align 4
  %yp = getelementptr inbounds {kind}, ptr %target, i64 %c
  %y = load {kind}, ptr %yp, align 4
  %product = fmul contract {kind} %v, %x
  %y_next = fadd contract {kind} %y, %product
  store {kind} %y_next, ptr %yp, align 4
  %c_next = add nuw nsw i64 %c, 1
  %row_done = icmp eq i64 %c_next, {width}
  br i1 %row_done, label %next_end, label %column
next_end:
  %j_next = add nuw nsw i64 %j, 1
  %all = icmp eq i64 %j_next, %end
  br i1 %all, label %row_end, label %next"""
