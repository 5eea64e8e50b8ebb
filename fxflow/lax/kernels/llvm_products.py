"""Products of matrices in the body of a kernel, by tiles that registers hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.ir.graph import Graph, Node
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.llvm_values import Buffer, Value, computed
from fxflow.lax.kernels.llvm_writer import Writer, literal

if TYPE_CHECKING:
    from fxflow.lax.kernels.llvm_body import BodyWriter

_F32 = np.dtype(np.float32)


def product(body: BodyWriter, node: Node, operands: list[Value]) -> Value:
    """Writes a product of two matrices.

    The right one is copied to panels of two vectors' columns, unless its rows are
    adjacent already; the left one is read where it is. Sums are in float32.

    Args:
      body: writes the kernel.
      node: a `dot_general` of two matrices without batch axes.
      operands: the matrices.
    """
    (((left_axis, *more), (right_axis, *_)), (batch, _)) = node.params[
        "dimension_numbers"
    ]
    left, right = operands
    out = node.outputs[0].aval
    if more or batch or len(left.shape) != 2 or len(right.shape) != 2:
        raise UnsupportedError("dot_general of other than two matrices")
    for x in (left, right, out):
        if not dtypes.is_floating(x.dtype) or np.dtype(x.dtype).itemsize > 4:
            raise UnsupportedError(f"dot_general of {np.dtype(x.dtype).name}")
    w = body.w
    m, n = out.shape
    k = left.shape[left_axis]
    a = _matrix(body, left)
    columns = 2 * body.lanes
    padded = -(-n // columns) * columns
    panels = _panels(body, right, right_axis, k, n, padded)
    sums = body.arena.buffer((m, padded), _F32)
    rows, row_step, sum_step = 6 if body.lanes < 16 else 8, *_steps(a, left_axis)
    full, rest = divmod(m, rows)
    for first, count, height in ((0, full, rows), (full * rows, 1, rest)):
        if not height or not count:
            continue
        name = w.helper(f"fx_tile_{height}_{body.lanes}")
        # A panel stays in the first cache while all rows pass by.
        with w.loops((padded // columns, count)) as (j, i):
            row = w.sum(w.times(i, height), first)
            start = w.times(row, row_step)
            at = w.op(f"getelementptr float, ptr {a.pointer}, i64 {start}")
            column = w.times(j, columns)
            of_b = w.op(f"getelementptr float, ptr {panels.pointer}, i64 {column}")
            place = w.sum(w.times(row, padded), column)
            of_c = w.op(f"getelementptr float, ptr {sums.pointer}, i64 {place}")
            w.do(
                f"call void {name}(ptr {at}, i64 {row_step}, i64 {sum_step}, "
                f"ptr {of_b}, i64 {panels.strides[0]}, ptr {of_c}, i64 {padded}, "
                f"i64 {k})"
            )
    result = Buffer(sums.pointer, (m, n), (padded, 1), _F32)
    if np.dtype(out.dtype) == _F32:
        return result
    return computed(w, result, body.arena.buffer((m, n), out.dtype))


def _matrix(body: BodyWriter, x: Value) -> Buffer:
    """Returns a matrix of float32 in memory."""
    if isinstance(x, Buffer) and np.dtype(x.dtype) == _F32:
        return x
    return computed(body.w, x, body.arena.buffer(x.shape, _F32))


def _steps(a: Buffer, axis: int) -> tuple[Any, Any]:
    """Returns the strides of the rows and of the sums of the left matrix."""
    return a.strides[1 - axis], a.strides[axis]


def transposed(w: Writer, source: Value, target: Buffer) -> bool:
    """Copies a matrix whose columns are adjacent, by squares in registers.

    Args:
      w: where to.
      source: the matrix.
      target: whose rows are adjacent; its further columns are left as they are.

    Returns:
      Whether it was copied: nothing is written for other matrices.
    """
    shape = source.shape
    if (
        not isinstance(source, Buffer)
        or len(shape) != 2
        or any(n % 8 for n in shape)
        or any(np.dtype(x.dtype) != _F32 for x in (source, target))
        or (source.strides[0], target.strides[1]) != (1, 1)
    ):
        return False
    name = w.helper("fx_transpose_8")
    with w.loops([n // 8 for n in shape[::-1]]) as (j, i):
        at = [w.times(i, 8), w.times(j, 8)]
        w.do(
            f"call void {name}(ptr {source.address(w, at)}, i64 {source.strides[1]}, "
            f"ptr {target.address(w, at)}, i64 {target.strides[0]})"
        )
    return True


def _has_rows(right: Value, axis: int) -> bool:
    """Returns whether what one round of the sum reads is adjacent in memory."""
    is_float = isinstance(right, Buffer) and np.dtype(right.dtype) == _F32
    return is_float and right.strides[1 - axis] == 1  # type: ignore[attr-defined]


def packed(body: BodyWriter, graph: Graph, values: Sequence[Any]) -> list[Any]:
    """Returns what a loop reads, packed where it is the right operand of a product.

    Args:
      body: writes the kernel, now what is before the loop.
      graph: of the loop's body.
      values: of its first inputs, which no round changes.
    """
    found = list(values)
    position = {var: i for i, var in enumerate(graph.inputs[: len(found)])}
    for node in graph.nodes:
        if node.primitive.name != "dot_general":
            continue
        i = position.get(node.inputs[1])
        ((_, (axis, *more)), (batch, _)) = node.params["dimension_numbers"]
        if i is None or more or batch or len(found[i].shape) != 2:
            continue
        k, n = (found[i].shape[d] for d in (axis, 1 - axis))
        if n % (2 * body.lanes) or _has_rows(found[i], axis):
            continue
        panels = _panels(body, found[i], axis, k, n, n)
        strides = panels.strides if axis == 0 else panels.strides[::-1]
        found[i] = Buffer(panels.pointer, found[i].shape, strides, _F32, panels.root)
    return found


def _panels(
    body: BodyWriter, right: Value, axis: int, k: int, n: int, padded: int
) -> Buffer:
    """Returns the right matrix with adjacent rows, padded with zeros."""
    w = body.w
    if padded == n and _has_rows(right, axis):
        assert isinstance(right, Buffer)
        return Buffer(right.pointer, (k, n), (right.strides[axis], 1), _F32)
    panels = body.arena.buffer((k, padded), _F32)
    if padded != n:
        with w.loops((k, padded - n)) as (i, j):
            panels.put(w, [i, w.sum(j, n)], literal(0, _F32))
    # Where the sums are adjacent, squares are transposed in registers.
    if isinstance(right, Buffer) and right.strides[axis] == 1 and axis == 0:
        right, axis = _transposed(right), 1
    if axis == 1:
        right = body.in_memory(right, rows=True)
        turned = Buffer(right.pointer, (k, n), right.strides[::-1], right.dtype)
        if transposed(w, turned, panels):
            return panels
    with w.loops((k, n)) as (i, j):
        index = [i, j] if axis == 0 else [j, i]
        panels.put(w, [i, j], right.at(w, index))
    return panels


def tile(height: int, lanes: int) -> str:
    """Returns the function that computes some rows of two vectors' columns.

    Args:
      height: the number of rows.
      lanes: numbers in a vector.
    """
    vector = f"<{lanes} x float>"
    lines = [
        f"define internal void @fx_tile_{height}_{lanes}(ptr noalias %a, i64 %ar, "
        "i64 %ak, ptr noalias %b, i64 %bk, ptr noalias %c, i64 %cr, i64 %k) {",
        "entry:",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [0, %entry], [%next, %loop]",
    ]
    each = [(r, v) for r in range(height) for v in range(2)]
    lines += [
        f"  %s{r}_{v} = phi {vector} [zeroinitializer, %entry], [%t{r}_{v}, %loop]"
        for r, v in each
    ]
    lines += ["  %bo = mul i64 %i, %bk", "  %ao = mul i64 %i, %ak"]
    for v in range(2):
        lines += [
            f"  %bi{v} = add i64 %bo, {v * lanes}",
            f"  %bp{v} = getelementptr float, ptr %b, i64 %bi{v}",
            f"  %bv{v} = load {vector}, ptr %bp{v}, align 4",
        ]
    for r in range(height):
        lines += [
            f"  %rm{r} = mul i64 %ar, {r}",
            f"  %ra{r} = add i64 %rm{r}, %ao",
            f"  %ap{r} = getelementptr float, ptr %a, i64 %ra{r}",
            f"  %av{r} = load float, ptr %ap{r}, align 4",
            f"  %ae{r} = insertelement {vector} poison, float %av{r}, i32 0",
            f"  %ax{r} = shufflevector {vector} %ae{r}, {vector} poison, "
            f"<{lanes} x i32> zeroinitializer",
        ]
        for v in range(2):
            lines.append(
                f"  %t{r}_{v} = call {vector} @llvm.fma.v{lanes}f32({vector} %ax{r}, "
                f"{vector} %bv{v}, {vector} %s{r}_{v})"
            )
    lines += [
        "  %next = add nuw nsw i64 %i, 1",
        "  %done = icmp eq i64 %next, %k",
        "  br i1 %done, label %end, label %loop",
        "end:",
    ]
    for r in range(height):
        lines.append(f"  %cm{r} = mul i64 %cr, {r}")
        for v in range(2):
            lines += [
                f"  %ci{r}_{v} = add i64 %cm{r}, {v * lanes}",
                f"  %cp{r}_{v} = getelementptr float, ptr %c, i64 %ci{r}_{v}",
                f"  store {vector} %t{r}_{v}, ptr %cp{r}_{v}, align 4",
            ]
    lines += ["  ret void", "}"]
    return "\n".join(lines)


def _transposed(x: Buffer) -> Buffer:
    return Buffer(x.pointer, x.shape[::-1], x.strides[::-1], x.dtype, x.root)


def transpose() -> str:
    """Returns the function that transposes 8 × 8 numbers.

    Three times, vectors half of the rows apart are interleaved.
    """
    kind = "<8 x float>"
    lines = [
        "define internal void @fx_transpose_8(ptr noalias %a, i64 %as, ptr noalias %b, "
        "i64 %bs) {",
        "entry:",
    ]
    for i in range(8):
        lines += [
            f"  %ao{i} = mul i64 %as, {i}",
            f"  %ap{i} = getelementptr float, ptr %a, i64 %ao{i}",
            f"  %r0_{i} = load {kind}, ptr %ap{i}, align 4",
        ]
    low = ", ".join(f"i32 {k // 2 + 8 * (k % 2)}" for k in range(8))
    high = ", ".join(f"i32 {4 + k // 2 + 8 * (k % 2)}" for k in range(8))
    for step in range(3):
        for i in range(4):
            for part, mask in enumerate((low, high)):
                lines.append(
                    f"  %r{step + 1}_{2 * i + part} = shufflevector {kind} "
                    f"%r{step}_{i}, {kind} %r{step}_{i + 4}, <8 x i32> <{mask}>"
                )
    for i in range(8):
        lines += [
            f"  %bo{i} = mul i64 %bs, {i}",
            f"  %bp{i} = getelementptr float, ptr %b, i64 %bo{i}",
            f"  store {kind} %r3_{i}, ptr %bp{i}, align 4",
        ]
    return "\n".join([*lines, "  ret void", "}"])


def is_own(name: str) -> bool:
    """Returns whether a helper function is one of `functions`."""
    return name.startswith(("fx_tile_", "fx_transpose_"))


def functions(used: Iterable[str]) -> str:
    """Returns the functions for products among helpers, with their declaration."""
    text = [transpose()] if "fx_transpose_8" in used else []
    found = [name for name in used if name.startswith("fx_tile_")]
    if not found:
        return "\n".join(text)
    lanes = found[0].rsplit("_", 1)[1]
    vector = f"<{lanes} x float>"
    text.append(f"declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})")
    for name in found:
        _, _, height, width = name.split("_")
        text.append(tile(int(height), int(width)))
    return "\n".join(text)
