"""The kernel of `native`: products of few rows with a matrix that was packed before.

XLA:CPU multiplies 16 rows at a third of the rate of 256, and a library such as a BLAS
packs the matrix anew in each call. A loop over time multiplies by the same matrix in
all its steps, so the matrix is packed once, before the loop: into *panels* of `columns`
columns, each of which lies in one piece. What is left is the innermost part of every
matrix product: a tile of a few rows and one panel, held in registers.

This is LLVM's IR, as text. The handler is of XLA's typed FFI. Large products are
divided: threads of XLA's own pool take panel after panel, and so does the one that was
called, which waits for nobody but those that are at a panel already.

Source: K. Goto, R. van de Geijn, Anatomy of High-Performance Matrix Multiplication,
2008; XLA's `ffi/api/c_api.h` for the offsets.
"""

from __future__ import annotations

from typing import NamedTuple

#: Of the handler, and what programs call it by. Changes with what it computes.
TARGET = "fxflow_packed_product_2"
#: Multiplications from which a thread of its own is worth waking.
_WORK = 1 << 18


class Tile(NamedTuple):
    """What the registers hold at a time.

    Attributes:
      rows: of the result.
      lanes: numbers of one vector.
      vectors: of one row.
    """

    rows: int
    lanes: int
    vectors: int

    @property
    def columns(self) -> int:
        """Of the result, which are those of a panel."""
        return self.lanes * self.vectors


def tile_for(features: dict[str, bool], triple: str) -> Tile | None:
    """Returns the tile that fits a processor's registers, or None.

    Args:
      features: of the processor, as LLVM names them.
      triple: its architecture and system, as LLVM names them.

    Example:
      >>> tile_for({"avx2": True, "fma": True}, "x86_64-unknown-linux-gnu")
      Tile(rows=6, lanes=8, vectors=2)
    """
    # Sums, the panel's vectors and one number fit 32 registers, or 16.
    if triple.startswith("x86_64"):
        if features.get("avx512f"):
            return Tile(8, 16, 2)
        if features.get("avx2") and features.get("fma"):
            return Tile(6, 8, 2)
    elif triple.startswith(("aarch64", "arm64")):
        return Tile(6, 4, 4)
    return None


def ir(tile: Tile) -> str:
    """Returns the module as text, with one function for others: `TARGET`.

    Args:
      tile: the most rows at a time, and the columns of a panel.
    """
    lanes = tile.lanes
    tiles = "\n".join(_tile(rows, tile) for rows in range(1, tile.rows + 1))
    cases = "\n".join(
        f"    i64 {rows}, label %tile{rows}" for rows in range(1, tile.rows)
    )
    calls = "\n".join(
        f"tile{rows}:\n"
        f"  call void @tile{rows}(ptr %a, i64 %k, ptr %b, ptr %to, i64 %step)\n"
        "  br label %stored"
        for rows in range(1, tile.rows + 1)
    )
    return f"""
declare <{lanes} x float> @llvm.fma.v{lanes}f32(
  <{lanes} x float>, <{lanes} x float>, <{lanes} x float>)
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @sched_yield()

; A product: a, b, c; rows, sums, columns, panels; the next panel, panels that are
; done, and threads that know of it.
%product = type {{ ptr, ptr, ptr, i64, i64, i64, i64, i64, i64, i64 }}
; XLA_FFI_ThreadPool_Schedule_Args and _NumThreads_Args, XLA_FFI_Error_Destroy_Args.
%schedule = type {{ i64, ptr, ptr, ptr, ptr }}
%threads = type {{ i64, ptr, ptr, ptr }}
%destroy = type {{ i64, ptr, ptr }}

{tiles}

; One panel of the result.
define internal void @panel(
  ptr %a0, ptr %b0, ptr %c0, i64 %m, i64 %k, i64 %n, i64 %p
) {{
entry:
  %edge = alloca [{tile.rows * tile.columns} x float], align 64
  %offset = mul i64 %p, %k
  %boffset = mul i64 %offset, {tile.columns}
  %b = getelementptr float, ptr %b0, i64 %boffset
  %first = mul i64 %p, {tile.columns}
  %left = sub i64 %n, %first
  %whole = icmp sge i64 %left, {tile.columns}
  %width = select i1 %whole, i64 {tile.columns}, i64 %left
  %step = select i1 %whole, i64 %n, i64 {tile.columns}
  br label %rows
rows:
  %i = phi i64 [0, %entry], [%next, %end]
  %aoffset = mul i64 %i, %k
  %a = getelementptr float, ptr %a0, i64 %aoffset
  %coffset = mul i64 %i, %n
  %cplace = add i64 %coffset, %first
  %c = getelementptr float, ptr %c0, i64 %cplace
  ; What is no whole panel of the result is stored beside it, and copied.
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

; Takes panels until there are none.
define internal void @work(ptr %s) {{
entry:
  %a = load ptr, ptr %s
  %bp = getelementptr %product, ptr %s, i64 0, i32 1
  %b = load ptr, ptr %bp
  %cp = getelementptr %product, ptr %s, i64 0, i32 2
  %c = load ptr, ptr %cp
  %mp = getelementptr %product, ptr %s, i64 0, i32 3
  %m = load i64, ptr %mp
  %kp = getelementptr %product, ptr %s, i64 0, i32 4
  %k = load i64, ptr %kp
  %np = getelementptr %product, ptr %s, i64 0, i32 5
  %n = load i64, ptr %np
  %pp = getelementptr %product, ptr %s, i64 0, i32 6
  %panels = load i64, ptr %pp
  %next = getelementptr %product, ptr %s, i64 0, i32 7
  %done = getelementptr %product, ptr %s, i64 0, i32 8
  br label %take
take:
  %p = atomicrmw add ptr %next, i64 1 monotonic
  %over = icmp sge i64 %p, %panels
  br i1 %over, label %out, label %multiply
multiply:
  call void @panel(
    ptr %a, ptr %b, ptr %c, i64 %m, i64 %k, i64 %n, i64 %p)
  %was = atomicrmw add ptr %done, i64 1 release
  br label %take
out:
  ret void
}}

; One thread less knows of a product; the last one removes it.
define internal void @leave(ptr %s) {{
entry:
  %known = getelementptr %product, ptr %s, i64 0, i32 9
  %was = atomicrmw sub ptr %known, i64 1 acq_rel
  %last = icmp eq i64 %was, 1
  br i1 %last, label %remove, label %out
remove:
  call void @free(ptr %s)
  br label %out
out:
  ret void
}}

; What a thread of the pool does.
define internal void @task(ptr %s) {{
  call void @work(ptr %s)
  call void @leave(ptr %s)
  ret void
}}

define internal void @discard(ptr %api, ptr %error) {{
  %args = alloca %destroy
  %ep = getelementptr %destroy, ptr %args, i64 0, i32 2
  store %destroy {{ i64 24, ptr null, ptr null }}, ptr %args
  store ptr %error, ptr %ep
  %fp = getelementptr i8, ptr %api, i64 64
  %f = load ptr, ptr %fp
  call void %f(ptr %args)
  ret void
}}

; How many threads XLA has for it.
define internal i64 @threads(ptr %api, ptr %context) {{
entry:
  %count = alloca i64
  store i64 1, ptr %count
  %args = alloca %threads
  store %threads {{ i64 32, ptr null, ptr null, ptr null }}, ptr %args
  %cp = getelementptr %threads, ptr %args, i64 0, i32 2
  store ptr %context, ptr %cp
  %np = getelementptr %threads, ptr %args, i64 0, i32 3
  store ptr %count, ptr %np
  %fp = getelementptr i8, ptr %api, i64 144
  %f = load ptr, ptr %fp
  %error = call ptr %f(ptr %args)
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %out, label %wrong
wrong:
  call void @discard(ptr %api, ptr %error)
  ret i64 1
out:
  %found = load i64, ptr %count
  ret i64 %found
}}

define ptr @{TARGET}(ptr %frame) {{
entry:
  %xp = getelementptr i8, ptr %frame, i64 8
  %extension = load ptr, ptr %xp
  %api_place = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api_place
  %called = icmp eq ptr %extension, null
  br i1 %called, label %call, label %asked
asked:
  %kind_place = getelementptr i8, ptr %extension, i64 8
  %kind = load i32, ptr %kind_place
  %about = icmp eq i32 %kind, 1
  br i1 %about, label %metadata, label %call
metadata:
  ; The version is XLA's own: offsets are the same in all that this was made for.
  %meta_place = getelementptr i8, ptr %extension, i64 24
  %meta = load ptr, ptr %meta_place
  %major_place = getelementptr i8, ptr %api, i64 32
  %version = load i64, ptr %major_place
  %version_place = getelementptr i8, ptr %meta, i64 24
  store i64 %version, ptr %version_place
  %traits = getelementptr i8, ptr %meta, i64 32
  store i32 0, ptr %traits
  ret ptr null
call:
  %context_place = getelementptr i8, ptr %frame, i64 24
  %context = load ptr, ptr %context_place
  %args_place = getelementptr i8, ptr %frame, i64 72
  %args = load ptr, ptr %args_place
  %rets_place = getelementptr i8, ptr %frame, i64 112
  %rets = load ptr, ptr %rets_place
  %left = load ptr, ptr %args
  %right_place = getelementptr i8, ptr %args, i64 8
  %right = load ptr, ptr %right_place
  %result = load ptr, ptr %rets
  %ap = getelementptr i8, ptr %left, i64 24
  %a = load ptr, ptr %ap
  %bp = getelementptr i8, ptr %right, i64 24
  %b = load ptr, ptr %bp
  %cp = getelementptr i8, ptr %result, i64 24
  %c = load ptr, ptr %cp
  %left_dims = getelementptr i8, ptr %left, i64 40
  %ad = load ptr, ptr %left_dims
  %m = load i64, ptr %ad
  %kp = getelementptr i64, ptr %ad, i64 1
  %k = load i64, ptr %kp
  %result_dims = getelementptr i8, ptr %result, i64 40
  %cd = load ptr, ptr %result_dims
  %np = getelementptr i64, ptr %cd, i64 1
  %n = load i64, ptr %np
  %last = add i64 %n, {tile.columns - 1}
  %panels = udiv i64 %last, {tile.columns}
  %mk = mul i64 %m, %k
  %size = mul i64 %mk, %n
  %small = icmp slt i64 %size, {2 * _WORK}
  br i1 %small, label %alone, label %ask
ask:
  %threads = call i64 @threads(ptr %api, ptr %context)
  %worth = udiv i64 %size, {_WORK}
  %two = icmp slt i64 %threads, %worth
  %some = select i1 %two, i64 %threads, i64 %worth
  %three = icmp slt i64 %some, %panels
  %count = select i1 %three, i64 %some, i64 %panels
  %many = icmp sgt i64 %count, 1
  br i1 %many, label %share, label %alone
alone:
  %p = phi i64 [0, %call], [0, %ask], [0, %share], [%p1, %alone]
  call void @panel(
    ptr %a, ptr %b, ptr %c, i64 %m, i64 %k, i64 %n, i64 %p)
  %p1 = add i64 %p, 1
  %pend = icmp eq i64 %p1, %panels
  br i1 %pend, label %out, label %alone
share:
  %s = call ptr @malloc(i64 80)
  %full = icmp eq ptr %s, null
  br i1 %full, label %alone, label %describe
describe:
  store ptr %a, ptr %s
  %s1 = getelementptr %product, ptr %s, i64 0, i32 1
  store ptr %b, ptr %s1
  %s2 = getelementptr %product, ptr %s, i64 0, i32 2
  store ptr %c, ptr %s2
  %s3 = getelementptr %product, ptr %s, i64 0, i32 3
  store i64 %m, ptr %s3
  %s4 = getelementptr %product, ptr %s, i64 0, i32 4
  store i64 %k, ptr %s4
  %s5 = getelementptr %product, ptr %s, i64 0, i32 5
  store i64 %n, ptr %s5
  %s6 = getelementptr %product, ptr %s, i64 0, i32 6
  store i64 %panels, ptr %s6
  %s7 = getelementptr %product, ptr %s, i64 0, i32 7
  store i64 0, ptr %s7
  %done = getelementptr %product, ptr %s, i64 0, i32 8
  store i64 0, ptr %done
  %known = getelementptr %product, ptr %s, i64 0, i32 9
  store i64 %count, ptr %known
  %schedule_args = alloca %schedule
  %scheduler_place = getelementptr i8, ptr %api, i64 136
  %scheduler = load ptr, ptr %scheduler_place
  br label %wake
wake:
  %t = phi i64 [1, %describe], [%t1, %woken]
  store %schedule {{ i64 40, ptr null, ptr null, ptr @task, ptr null }},
    ptr %schedule_args
  %where = getelementptr %schedule, ptr %schedule_args, i64 0, i32 2
  store ptr %context, ptr %where
  %what = getelementptr %schedule, ptr %schedule_args, i64 0, i32 4
  store ptr %s, ptr %what
  %error = call ptr %scheduler(ptr %schedule_args)
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %woken, label %refused
refused:
  call void @discard(ptr %api, ptr %error)
  call void @leave(ptr %s)
  br label %woken
woken:
  %t1 = add i64 %t, 1
  %all = icmp eq i64 %t1, %count
  br i1 %all, label %join, label %wake
join:
  call void @work(ptr %s)
  br label %look
look:
  %so_far = load atomic i64, ptr %done acquire, align 8
  %ready = icmp eq i64 %so_far, %panels
  br i1 %ready, label %finish, label %wait
wait:
  %ignored = call i32 @sched_yield()
  br label %look
finish:
  call void @leave(ptr %s)
  br label %out
out:
  ret ptr null
}}
"""


def _tile(rows: int, tile: Tile) -> str:
    """Returns the function for so many rows of the left operand and one panel."""
    vector = f"<{tile.lanes} x float>"
    each = [(i, j) for i in range(rows) for j in range(tile.vectors)]
    lines = [
        f"define internal void @tile{rows}(ptr noalias %a, i64 %k, ptr noalias %b, "
        "ptr noalias %c, i64 %step) {",
        "entry:",
    ]
    for i in range(rows):
        lines += [
            f"  %o{i} = mul i64 %k, {i}",
            f"  %a{i} = getelementptr float, ptr %a, i64 %o{i}",
        ]
    lines += ["  br label %loop", "loop:", "  %at = phi i64 [0, %entry], [%on, %loop]"]
    for i, j in each:
        sums = f"[zeroinitializer, %entry], [%n{i}_{j}, %loop]"
        lines.append(f"  %s{i}_{j} = phi {vector} {sums}")
    lines.append(f"  %row = mul i64 %at, {tile.columns}")
    for j in range(tile.vectors):
        lines += [
            f"  %v{j} = add i64 %row, {j * tile.lanes}",
            f"  %p{j} = getelementptr float, ptr %b, i64 %v{j}",
            f"  %b{j} = load {vector}, ptr %p{j}, align 4",
        ]
    for i in range(rows):
        lines += [
            f"  %q{i} = getelementptr float, ptr %a{i}, i64 %at",
            f"  %x{i} = load float, ptr %q{i}, align 4",
            f"  %y{i} = insertelement {vector} poison, float %x{i}, i32 0",
            f"  %z{i} = shufflevector {vector} %y{i}, {vector} poison, "
            f"<{tile.lanes} x i32> zeroinitializer",
        ]
        lines += [
            f"  %n{i}_{j} = call {vector} @llvm.fma.v{tile.lanes}f32({vector} %z{i}, "
            f"{vector} %b{j}, {vector} %s{i}_{j})"
            for j in range(tile.vectors)
        ]
    lines += [
        "  %on = add i64 %at, 1",
        "  %end = icmp eq i64 %on, %k",
        "  br i1 %end, label %out, label %loop",
        "out:",
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
