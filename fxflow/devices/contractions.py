"""The kernel of `native`: contractions whose rows lie anywhere in memory.

`c[m, n] = Σ_k a[m, k] b[k, n]`, where strides give the position of `a[m, k]`: a matrix
product, but also a convolution, whose rows are overlapping windows of an image, and its
derivatives. XLA:CPU computes such small products on one thread, or at a third of the
rate of large ones.

The innermost loop computes a few rows times one *panel*, `columns` columns of `b`, with
all sums in registers. It multiplies one element of `a` at a time by a row of the panel,
so the position of the next element of `a` hardly matters; the elements of a panel's row
must be adjacent.

The kernel is LLVM IR, as text. Its handler uses XLA's typed FFI; an array of integers
describes the contraction (`Contraction`). Large contractions are divided into tasks:
threads of XLA's own pool take one after the other, and so does the calling thread,
which at the end waits only for tasks in progress.

Source: K. Goto, R. van de Geijn, Anatomy of High-Performance Matrix Multiplication,
2008; XLA's `ffi/api/c_api.h` for the offsets.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from fxflow.devices.pool import ASKED, SHARING, THREADS

#: The handler's name in programs. It changes with what the handler computes.
TARGET = "fxflow_contraction_1"
#: Number of multiplications for which one more thread is worth waking.
_WORK = 1 << 18
#: Number of tasks of a contraction: enough that no thread waits long for another.
_TASKS = 16
#: Most rows of a task: their offsets are on the stack.
_BLOCK = 512


class Tile(NamedTuple):
    """The part of the result that the registers hold.

    Attributes:
      rows: number of rows of the result.
      lanes: number of elements of one vector.
      vectors: number of vectors of one row.
    """

    rows: int
    lanes: int
    vectors: int

    @property
    def columns(self) -> int:
        """Number of columns of the result, and of a panel."""
        return self.lanes * self.vectors

    @property
    def narrow(self) -> Tile:
        """The tile for a last panel of at most half the columns."""
        return self._replace(vectors=self.vectors // 2)


def tile_for(features: dict[str, bool], triple: str) -> Tile | None:
    """Returns the tile that fits a processor's registers, or None.

    Args:
      features: the processor's features, by LLVM's names.
      triple: LLVM's target triple: architecture and system.

    Example:
      >>> tile_for({"avx2": True, "fma": True}, "x86_64-unknown-linux-gnu")
      Tile(rows=6, lanes=8, vectors=2)
    """
    # Sums, the panel's vectors and one element of `a` fit 32 registers, or 16.
    if triple.startswith("x86_64"):
        if features.get("avx512f"):
            return Tile(8, 16, 2)
        if features.get("avx2") and features.get("fma"):
            return Tile(6, 8, 2)
    elif triple.startswith(("aarch64", "arm64")):
        return Tile(6, 4, 4)
    return None


class LoopAxis(NamedTuple):
    """An axis of the rows or of the sums.

    Attributes:
      size: its length.
      left: stride in `a`, in elements.
      right: stride in `b`; 0 for an axis of rows.
    """

    size: int
    left: int
    right: int = 0


class Contraction(NamedTuple):
    """The contraction that the kernel computes.

    Attributes:
      rows: axes of the result's rows, at most four, the last one fastest.
      sums: axes that are summed over, at most three, the last one fastest.
      columns: number of columns of the result.
      panel: stride from one panel of `b` to the next, in elements.
      parts: two axes of independent contractions.
      origin: offsets of the first element in `a` and in `b`.
    """

    rows: tuple[LoopAxis, ...]
    sums: tuple[LoopAxis, ...]
    columns: int
    panel: int
    parts: tuple[LoopAxis, LoopAxis] = (LoopAxis(1, 0), LoopAxis(1, 0))
    origin: tuple[int, int] = (0, 0)

    @property
    def part_count(self) -> int:
        """Number of independent contractions."""
        return self.parts[0].size * self.parts[1].size

    def config(self, tile: Tile) -> str:
        """Returns the attributes of the call, as MLIR text.

        Args:
          tile: the processor's tile.
        """
        rows = math.prod(axis.size for axis in self.rows)
        sums = math.prod(axis.size for axis in self.sums)
        panels = -(-self.columns // tile.columns)
        blocks = max(-(-_TASKS // (panels * self.part_count)), -(-rows // _BLOCK))
        block = -(-rows // blocks)
        block = min(_BLOCK, -(-block // tile.rows) * tile.rows)
        blocks = -(-rows // block)
        tasks = panels * blocks * self.part_count
        work = rows * sums * self.columns * self.part_count
        threads = min(tasks, work // _WORK)
        first, second = _axes(self.rows, 4), _axes(self.sums, 3)
        numbers = [tasks, threads, panels, blocks, block, rows, self.columns]
        numbers += [self.panel, *self.origin, self.parts[1].size]
        numbers += [n for axis in self.parts for n in (axis.left, axis.right)]
        numbers += [axis.size for axis in first] + [axis.left for axis in first]
        numbers += [axis.size for axis in second] + [axis.left for axis in second]
        numbers += [axis.right for axis in second]
        return f"{{shape = array<i64: {', '.join(map(str, numbers))}>}}"


def _axes(axes: tuple[LoopAxis, ...], count: int) -> tuple[LoopAxis, ...]:
    return (LoopAxis(1, 0),) * (count - len(axes)) + axes


# The fields of the array that `Contraction.config` writes, by position.
_FIELDS = (
    *("tasks", "threads", "panels", "blocks", "block", "rows", "columns"),
    *("panel", "origin_a", "origin_b", "parts1", "pa0", "pb0", "pa1", "pb1"),
    *("m0", "m1", "m2", "m3", "ma0", "ma1", "ma2", "ma3"),
    *("k0", "k1", "k2", "ka0", "ka1", "ka2", "kb0", "kb1", "kb2"),
)
_SUMS = _FIELDS.index("k0")


def _load(*names: str) -> str:
    """Returns code that loads fields of the array `%shape` into their registers."""
    return "\n".join(
        f"  %{name}p = getelementptr i64, ptr %shape, i64 {_FIELDS.index(name)}\n"
        f"  %{name} = load i64, ptr %{name}p"
        for name in names
    )


def ir(tile: Tile) -> str:
    """Returns the module as text; it exports one function, `TARGET`.

    Args:
      tile: the tile that the registers hold.
    """
    lanes = tile.lanes
    kinds = {"wide": tile, "narrow": tile.narrow}
    tiles = "\n".join(
        _tile(f"{name}{rows}", rows, kind)
        for name, kind in kinds.items()
        for rows in range(1, tile.rows + 1)
    )
    blocks = "\n".join(_block(name, kind) for name, kind in kinds.items())
    return f"""
declare <{lanes} x float> @llvm.fma.v{lanes}f32(
  <{lanes} x float>, <{lanes} x float>, <{lanes} x float>)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @malloc(i64)
declare void @free(ptr)

; A contraction: the next task, the number of finished tasks, and the number of threads
; that refer to it; a, b, c and its description.
%work = type {{ i64, i64, i64, ptr, ptr, ptr, [{len(_FIELDS)} x i64] }}
{THREADS}

{tiles}

{blocks}

; One panel of the result, in one block of rows of one part.
define internal void @task(ptr %a0, ptr %b0, ptr %c0, ptr %shape, i64 %t) {{
entry:
  %offsets = alloca [{_BLOCK} x i64], align 64
{_load(*_FIELDS[2:_SUMS])}
  %p = urem i64 %t, %panels
  %t1 = udiv i64 %t, %panels
  %block_number = urem i64 %t1, %blocks
  %part = udiv i64 %t1, %blocks
  %first = mul i64 %block_number, %block
  %left = sub i64 %rows, %first
  %more = icmp sgt i64 %left, %block
  %count = select i1 %more, i64 %block, i64 %left
  %part0 = udiv i64 %part, %parts1
  %part1 = urem i64 %part, %parts1
  %left0 = mul i64 %part0, %pa0
  %left1 = mul i64 %part1, %pa1
  %left01 = add i64 %left0, %left1
  %part_left = add i64 %left01, %origin_a
  %a = getelementptr float, ptr %a0, i64 %part_left
  %right0 = mul i64 %part0, %pb0
  %right1 = mul i64 %part1, %pb1
  %right01 = add i64 %right0, %right1
  %part_right = add i64 %right01, %origin_b
  %panel_right = mul i64 %p, %panel
  %right = add i64 %part_right, %panel_right
  %b = getelementptr float, ptr %b0, i64 %right
  %before = mul i64 %part, %rows
  %row = add i64 %before, %first
  %row_place = mul i64 %row, %columns
  %c = getelementptr float, ptr %c0, i64 %row_place
{_fill()}
compute:
  %p_columns = mul i64 %p, {tile.columns}
  %columns_left = sub i64 %columns, %p_columns
  %half = icmp sle i64 %columns_left, {tile.narrow.columns}
  br i1 %half, label %small, label %large
small:
  call void @narrow(ptr %a, ptr %b, ptr %c, ptr %offsets, i64 %count, i64 %columns,
    i64 %p_columns, ptr %shape)
  ret void
large:
  call void @wide(ptr %a, ptr %b, ptr %c, ptr %offsets, i64 %count, i64 %columns,
    i64 %p_columns, ptr %shape)
  ret void
}}

; Takes tasks until there are none.
define internal void @work(ptr %s) {{
entry:
  %ap = getelementptr %work, ptr %s, i64 0, i32 3
  %a = load ptr, ptr %ap
  %bp = getelementptr %work, ptr %s, i64 0, i32 4
  %b = load ptr, ptr %bp
  %cp = getelementptr %work, ptr %s, i64 0, i32 5
  %c = load ptr, ptr %cp
  %shape = getelementptr %work, ptr %s, i64 0, i32 6
  %next = getelementptr %work, ptr %s, i64 0, i32 0
  %done = getelementptr %work, ptr %s, i64 0, i32 1
{_load("tasks")}
  br label %take
take:
  %t = atomicrmw add ptr %next, i64 1 monotonic
  %over = icmp sge i64 %t, %tasks
  br i1 %over, label %out, label %compute
compute:
  call void @task(ptr %a, ptr %b, ptr %c, ptr %shape, i64 %t)
  %was = atomicrmw add ptr %done, i64 1 release
  br label %take
out:
  ret void
}}

define ptr @{TARGET}(ptr %frame) {{
{ASKED}call:
  %context_place = getelementptr i8, ptr %frame, i64 24
  %context = load ptr, ptr %context_place
  %args_place = getelementptr i8, ptr %frame, i64 72
  %args = load ptr, ptr %args_place
  %rets_place = getelementptr i8, ptr %frame, i64 112
  %rets = load ptr, ptr %rets_place
  %attributes_place = getelementptr i8, ptr %frame, i64 160
  %attributes = load ptr, ptr %attributes_place
  %left = load ptr, ptr %args
  %right_place = getelementptr i8, ptr %args, i64 8
  %right = load ptr, ptr %right_place
  %result = load ptr, ptr %rets
  %attribute = load ptr, ptr %attributes
  %ap = getelementptr i8, ptr %left, i64 24
  %a = load ptr, ptr %ap
  %bp = getelementptr i8, ptr %right, i64 24
  %b = load ptr, ptr %bp
  %cp = getelementptr i8, ptr %result, i64 24
  %c = load ptr, ptr %cp
  %shape_place = getelementptr i8, ptr %attribute, i64 16
  %shape = load ptr, ptr %shape_place
{_load("tasks", "threads")}
  %small = icmp slt i64 %threads, 2
  br i1 %small, label %alone, label %ask
ask:
  %pool = call i64 @threads(ptr %api, ptr %context)
  %fewer = icmp slt i64 %pool, %threads
  %count = select i1 %fewer, i64 %pool, i64 %threads
  %many = icmp sgt i64 %count, 1
  br i1 %many, label %share, label %alone
alone:
  %t = phi i64 [0, %call], [0, %ask], [0, %share], [%t_next, %alone]
  call void @task(ptr %a, ptr %b, ptr %c, ptr %shape, i64 %t)
  %t_next = add i64 %t, 1
  %all_done = icmp eq i64 %t_next, %tasks
  br i1 %all_done, label %out, label %alone
share:
  %size = ptrtoint ptr getelementptr (%work, ptr null, i64 1) to i64
  %s = call ptr @malloc(i64 %size)
  %full = icmp eq ptr %s, null
  br i1 %full, label %alone, label %describe
describe:
  %s0 = getelementptr %work, ptr %s, i64 0, i32 3
  store ptr %a, ptr %s0
  %s1 = getelementptr %work, ptr %s, i64 0, i32 4
  store ptr %b, ptr %s1
  %s2 = getelementptr %work, ptr %s, i64 0, i32 5
  store ptr %c, ptr %s2
  %s3 = getelementptr %work, ptr %s, i64 0, i32 6
  call void @llvm.memcpy.p0.p0.i64(ptr %s3, ptr %shape, i64 {8 * len(_FIELDS)},
    i1 false)
  %s4 = getelementptr %work, ptr %s, i64 0, i32 0
  store i64 0, ptr %s4
  %done = getelementptr %work, ptr %s, i64 0, i32 1
  store i64 0, ptr %done
  %known = getelementptr %work, ptr %s, i64 0, i32 2
  store i64 %count, ptr %known
  call void @wake(ptr %api, ptr %context, ptr %s, i64 %count)
  call void @work(ptr %s)
  call void @finish(ptr %s, i64 %tasks)
  br label %out
out:
  ret ptr null
}}
{SHARING}"""


def _fill() -> str:
    """Returns code that computes the offset of each row of a task."""
    lines, rest = [], "%first"
    for i in (3, 2, 1, 0):
        lines += [
            f"  %r{i} = urem i64 {rest}, %m{i}",
            f"  %q{i} = udiv i64 {rest}, %m{i}",
        ]
        rest = f"%q{i}"
    lines += ["  br label %fill", "fill:"]
    lines.append("  %i = phi i64 [0, %entry], [%i_next, %fill]")
    for i in range(4):
        lines.append(f"  %i{i} = phi i64 [%r{i}, %entry], [%i{i}_next, %fill]")
    for i in range(4):
        lines.append(f"  %o{i} = mul i64 %i{i}, %ma{i}")
    lines += [
        "  %o01 = add i64 %o0, %o1",
        "  %o23 = add i64 %o2, %o3",
        "  %o = add i64 %o01, %o23",
        "  %slot = getelementptr i64, ptr %offsets, i64 %i",
        "  store i64 %o, ptr %slot",
    ]
    carry = "1"
    for i in (3, 2, 1, 0):
        lines += [
            f"  %i{i}_more = add i64 %i{i}, {carry}",
            f"  %i{i}_over = icmp eq i64 %i{i}_more, %m{i}",
            f"  %i{i}_next = select i1 %i{i}_over, i64 0, i64 %i{i}_more",
            f"  %i{i}_carry = zext i1 %i{i}_over to i64",
        ]
        carry = f"%i{i}_carry"
    lines += [
        "  %i_next = add i64 %i, 1",
        "  %filled = icmp eq i64 %i_next, %count",
        "  br i1 %filled, label %compute, label %fill",
    ]
    return "\n".join(lines)


def _block(name: str, tile: Tile) -> str:
    """Returns the function for a block of rows and one panel.

    Args:
      name: the function's name; its tiles add the number of rows.
      tile: the tile that the registers hold.
    """
    cases = "\n".join(
        f"    i64 {rows}, label %tile{rows}" for rows in range(1, tile.rows)
    )
    calls = "\n".join(
        f"tile{rows}:\n"
        f"  call void @{name}{rows}(ptr %a, ptr %at, ptr %b, ptr %to, i64 %step, "
        "ptr %shape)\n"
        "  br label %stored"
        for rows in range(1, tile.rows + 1)
    )
    return f"""
define internal void @{name}(
  ptr %a, ptr %b, ptr %c0, ptr %offsets, i64 %m, i64 %n, i64 %first, ptr %shape
) {{
entry:
  %edge = alloca [{tile.rows * tile.columns} x float], align 64
  %left = sub i64 %n, %first
  %whole = icmp sge i64 %left, {tile.columns}
  %width = select i1 %whole, i64 {tile.columns}, i64 %left
  %step = select i1 %whole, i64 %n, i64 {tile.columns}
  br label %rows
rows:
  %i = phi i64 [0, %entry], [%next, %end]
  %at = getelementptr i64, ptr %offsets, i64 %i
  %coffset = mul i64 %i, %n
  %cplace = add i64 %coffset, %first
  %c = getelementptr float, ptr %c0, i64 %cplace
  ; A partial panel of the result is stored in a buffer, and copied.
  %to = select i1 %whole, ptr %c, ptr %edge
  %rest = sub i64 %m, %i
  %full = icmp sge i64 %rest, {tile.rows}
  %count = select i1 %full, i64 {tile.rows}, i64 %rest
  switch i64 %count, label %tile{tile.rows} [
{cases}
  ]
{calls}
stored:
  br i1 %whole, label %end, label %row
row:
  %r = phi i64 [0, %stored], [%r1, %copied]
  %from = mul i64 %r, {tile.columns}
  %place = mul i64 %r, %n
  br label %column
column:
  %j = phi i64 [0, %row], [%j1, %column]
  %fromj = add i64 %from, %j
  %source = getelementptr float, ptr %edge, i64 %fromj
  %value = load float, ptr %source, align 4
  %placej = add i64 %place, %j
  %target = getelementptr float, ptr %c, i64 %placej
  store float %value, ptr %target, align 4
  %j1 = add i64 %j, 1
  %jend = icmp eq i64 %j1, %width
  br i1 %jend, label %copied, label %column
copied:
  %r1 = add i64 %r, 1
  %rend = icmp eq i64 %r1, %count
  br i1 %rend, label %end, label %row
end:
  %next = add i64 %i, %count
  %more = icmp slt i64 %next, %m
  br i1 %more, label %rows, label %out
out:
  ret void
}}
"""


def _tile(name: str, rows: int, tile: Tile) -> str:
    """Returns the function for `rows` rows and one panel: three nested loops."""
    vector = f"<{tile.lanes} x float>"
    each = [(i, j) for i in range(rows) for j in range(tile.vectors)]
    lines = [
        f"define internal void @{name}(ptr noalias %a, ptr noalias %offsets, "
        "ptr noalias %b, ptr noalias %c, i64 %step, ptr noalias %shape) {",
        "entry:",
        _load(*_FIELDS[_SUMS:]),
    ]
    for i in range(rows):
        lines += [
            f"  %op{i} = getelementptr i64, ptr %offsets, i64 {i}",
            f"  %o{i} = load i64, ptr %op{i}",
            f"  %a{i} = getelementptr float, ptr %a, i64 %o{i}",
        ]
    lines.append("  br label %loop0")
    for depth in range(3):
        outer = f"loop{depth - 1}" if depth else "entry"
        end = f"end{depth}" if depth < 2 else "loop2"
        start = {
            f"{what}{depth}": f"%{what}{depth - 1}" if depth else "0" for what in "xy"
        }
        lines += [
            f"loop{depth}:",
            f"  %i{depth} = phi i64 [0, %{outer}], [%in{depth}, %{end}]",
        ]
        for what, from_outer in start.items():
            lines.append(
                f"  %{what} = phi i64 [{from_outer}, %{outer}], [%{what}n, %{end}]"
            )
        for i, j in each:
            before = f"%s{depth - 1}_{i}_{j}" if depth else "zeroinitializer"
            lines.append(
                f"  %s{depth}_{i}_{j} = phi {vector} [{before}, %{outer}], "
                f"[%n{i}_{j}, %{end}]"
            )
        if depth < 2:
            lines.append(f"  br label %loop{depth + 1}")
    for j in range(tile.vectors):
        lines += [
            f"  %v{j} = add i64 %y2, {j * tile.lanes}",
            f"  %p{j} = getelementptr float, ptr %b, i64 %v{j}",
            f"  %b{j} = load {vector}, ptr %p{j}, align 4",
        ]
    for i in range(rows):
        lines += [
            f"  %q{i} = getelementptr float, ptr %a{i}, i64 %x2",
            f"  %l{i} = load float, ptr %q{i}, align 4",
            f"  %e{i} = insertelement {vector} poison, float %l{i}, i32 0",
            f"  %z{i} = shufflevector {vector} %e{i}, {vector} poison, "
            f"<{tile.lanes} x i32> zeroinitializer",
        ]
        lines += [
            f"  %n{i}_{j} = call {vector} @llvm.fma.v{tile.lanes}f32({vector} %z{i}, "
            f"{vector} %b{j}, {vector} %s2_{i}_{j})"
            for j in range(tile.vectors)
        ]
    for depth in (2, 1, 0):
        after = f"end{depth - 1}" if depth else "out"
        lines += [
            f"  %x{depth}n = add i64 %x{depth}, %ka{depth}",
            f"  %y{depth}n = add i64 %y{depth}, %kb{depth}",
            f"  %in{depth} = add i64 %i{depth}, 1",
            f"  %over{depth} = icmp eq i64 %in{depth}, %k{depth}",
            f"  br i1 %over{depth}, label %{after}, label %loop{depth}",
            f"{after}:",
        ]
    for i in range(rows):
        lines += [
            f"  %r{i} = mul i64 %step, {i}",
            f"  %c{i} = getelementptr float, ptr %c, i64 %r{i}",
        ]
    for i, j in each:
        lines += [
            f"  %t{i}_{j} = getelementptr float, ptr %c{i}, i64 {j * tile.lanes}",
            f"  store {vector} %n{i}_{j}, ptr %t{i}_{j}, align 4",
        ]
    return "\n".join([*lines, "  ret void", "}"])
