"""The frame of fxflow's own CPU kernels: XLA's typed FFI, and threads of XLA's pool.

A kernel is a number of *tasks*. Threads of the pool take one after the other, and so
does the calling thread, which at the end waits only for tasks in progress: no thread
spins while it is idle.

Source: XLA's `ffi/api/c_api.h`, for the offsets.
"""

from __future__ import annotations

#: Threads of the pool. The second field of `%work` is the number of finished tasks, the
#: third that of threads that refer to it; `@work` takes tasks until there are none.
THREADS = """
; XLA_FFI_ThreadPool_Schedule_Args and _NumThreads_Args, XLA_FFI_Error_Destroy_Args.
%schedule = type { i64, ptr, ptr, ptr, ptr }
%threads = type { i64, ptr, ptr, ptr }
%destroy = type { i64, ptr, ptr }

; Drops a thread's reference; the last one frees the memory.
define internal void @leave(ptr %s) {
entry:
  %known = getelementptr %work, ptr %s, i64 0, i32 2
  %was = atomicrmw sub ptr %known, i64 1 acq_rel
  %last = icmp eq i64 %was, 1
  br i1 %last, label %remove, label %out
remove:
  call void @free(ptr %s)
  br label %out
out:
  ret void
}

; The work of a thread of the pool.
define internal void @help(ptr %s) {
  call void @work(ptr %s)
  call void @leave(ptr %s)
  ret void
}

define internal void @discard(ptr %api, ptr %error) {
  %args = alloca %destroy
  %ep = getelementptr %destroy, ptr %args, i64 0, i32 2
  store %destroy { i64 24, ptr null, ptr null }, ptr %args
  store ptr %error, ptr %ep
  %fp = getelementptr i8, ptr %api, i64 64
  %f = load ptr, ptr %fp
  call void %f(ptr %args)
  ret void
}

; The number of threads of XLA's pool.
define internal i64 @threads(ptr %api, ptr %context) {
entry:
  %count = alloca i64
  store i64 1, ptr %count
  %args = alloca %threads
  store %threads { i64 32, ptr null, ptr null, ptr null }, ptr %args
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
}
"""
#: What a handler calls to share its tasks with these threads, and to wait for them.
SHARING = """
declare i32 @sched_yield()

; Asks the pool for threads besides this one, of `%count` in all.
define internal void @wake(ptr %api, ptr %context, ptr %s, i64 %count) {
entry:
  %args = alloca %schedule
  %scheduler_place = getelementptr i8, ptr %api, i64 136
  %scheduler = load ptr, ptr %scheduler_place
  %many = icmp sgt i64 %count, 1
  br i1 %many, label %next, label %out
next:
  %w = phi i64 [1, %entry], [%w_next, %woken]
  store %schedule { i64 40, ptr null, ptr null, ptr @help, ptr null }, ptr %args
  %where = getelementptr %schedule, ptr %args, i64 0, i32 2
  store ptr %context, ptr %where
  %what = getelementptr %schedule, ptr %args, i64 0, i32 4
  store ptr %s, ptr %what
  %error = call ptr %scheduler(ptr %args)
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %woken, label %refused
refused:
  call void @discard(ptr %api, ptr %error)
  call void @leave(ptr %s)
  br label %woken
woken:
  %w_next = add i64 %w, 1
  %all = icmp eq i64 %w_next, %count
  br i1 %all, label %out, label %next
out:
  ret void
}

; Waits until all tasks are finished, and drops this thread's reference.
define internal void @finish(ptr %s, i64 %tasks) {
entry:
  %done = getelementptr %work, ptr %s, i64 0, i32 1
  br label %look
look:
  %so_far = load atomic i64, ptr %done acquire, align 8
  %ready = icmp eq i64 %so_far, %tasks
  br i1 %ready, label %out, label %wait
wait:
  %ignored = call i32 @sched_yield()
  br label %look
out:
  call void @leave(ptr %s)
  ret void
}
"""
_COLLECT = """
; Puts the addresses of the arrays in a row.
define internal void @collect(ptr %list, ptr %to, i64 %count) {
entry:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %out, label %next
next:
  %i = phi i64 [0, %entry], [%j, %next]
  %bp = getelementptr ptr, ptr %list, i64 %i
  %b = load ptr, ptr %bp
  %dp = getelementptr i8, ptr %b, i64 24
  %d = load ptr, ptr %dp
  %tp = getelementptr ptr, ptr %to, i64 %i
  store ptr %d, ptr %tp
  %j = add i64 %i, 1
  %all = icmp eq i64 %j, %count
  br i1 %all, label %out, label %next
out:
  ret void
}
"""
#: The start of a handler: XLA may ask about it before it calls it, at `call`.
ASKED = """entry:
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
  ; Report XLA's own version: the offsets are the same in all supported versions.
  %meta_place = getelementptr i8, ptr %extension, i64 24
  %meta = load ptr, ptr %meta_place
  %major_place = getelementptr i8, ptr %api, i64 32
  %version = load i64, ptr %major_place
  %version_place = getelementptr i8, ptr %meta, i64 24
  store i64 %version, ptr %version_place
  %traits = getelementptr i8, ptr %meta, i64 32
  store i32 0, ptr %traits
  ret ptr null
"""


_EXHAUSTED = "not enough memory for the scratch and intermediate results of a kernel"


def _work(arena: int, tasks: int) -> str:
    """Returns a thread's work: it reserves memory, and takes tasks."""
    return f"""
@exhausted = private constant [{len(_EXHAUSTED) + 1} x i8] c"{_EXHAUSTED}\\00"

; The error's code is RESOURCE_EXHAUSTED.
define internal ptr @refuse(ptr %api) {{
  %args = alloca %create
  store %create {{ i64 28, ptr null, ptr @exhausted, i32 8 }}, ptr %args
  %fp = getelementptr i8, ptr %api, i64 48
  %f = load ptr, ptr %fp
  %error = call ptr %f(ptr %args)
  ret ptr %error
}}

define internal ptr @reserve() {{
  %arena = call ptr @aligned_alloc(i64 64, i64 {max(-(-arena // 64) * 64, 64)})
  ret ptr %arena
}}

; Takes tasks until there are none.
define internal void @tasks(ptr %s, ptr %arena) {{
entry:
  %done = getelementptr %work, ptr %s, i64 0, i32 1
  %arrays = getelementptr %work, ptr %s, i64 0, i32 3
  br label %take
take:
  %t = atomicrmw add ptr %s, i64 1 monotonic
  %over = icmp sge i64 %t, {tasks}
  br i1 %over, label %out, label %compute
compute:
  call void @task(ptr %arrays, ptr %arena, i64 %t)
  %was = atomicrmw add ptr %done, i64 1 release
  br label %take
out:
  ret void
}}

; The work of another thread; one without memory leaves it to the others.
define internal void @work(ptr %s) {{
entry:
  %arena = call ptr @reserve()
  %full = icmp eq ptr %arena, null
  br i1 %full, label %out, label %begin
begin:
  call void @tasks(ptr %s, ptr %arena)
  call void @free(ptr %arena)
  br label %out
out:
  ret void
}}
"""


def frame(target: str, arrays: int, tasks: int, threads: int, arena: int) -> str:
    """Returns the handler of a kernel, and what it calls, as LLVM's IR.

    The module defines `void @task(ptr %arrays, ptr %arena, i64 %number)`.

    Args:
      target: the handler's name.
      arrays: the number of operands and results, whose addresses a task gets.
      tasks: the number of tasks.
      threads: the number of threads that may take part.
      arena: bytes of memory that a thread has for its tasks.
    """
    return f"""
declare ptr @aligned_alloc(i64, i64)
declare ptr @malloc(i64)
declare void @free(ptr)

; The next task, the number of finished tasks, and of threads that refer to this; then
; the addresses of operands and results. XLA_FFI_Error_Create_Args.
%create = type {{ i64, ptr, ptr, i32 }}
%work = type {{ i64, i64, i64, [{max(arrays, 1)} x ptr] }}
{THREADS}
{_COLLECT}
{_work(arena, tasks)}
define ptr @{target}(ptr %frame) {{
{ASKED}call:
  %context_place = getelementptr i8, ptr %frame, i64 24
  %context = load ptr, ptr %context_place
  %nargs_place = getelementptr i8, ptr %frame, i64 56
  %nargs = load i64, ptr %nargs_place
  %args_place = getelementptr i8, ptr %frame, i64 72
  %args = load ptr, ptr %args_place
  %nrets_place = getelementptr i8, ptr %frame, i64 96
  %nrets = load i64, ptr %nrets_place
  %rets_place = getelementptr i8, ptr %frame, i64 112
  %rets = load ptr, ptr %rets_place
  %size = ptrtoint ptr getelementptr (%work, ptr null, i64 1) to i64
  %s = call ptr @malloc(i64 %size)
  %unknown = icmp eq ptr %s, null
  br i1 %unknown, label %none, label %allocate
none:
  %no_work = call ptr @refuse(ptr %api)
  ret ptr %no_work
allocate:
  %arena = call ptr @reserve()
  %full = icmp eq ptr %arena, null
  br i1 %full, label %no_arena, label %describe
no_arena:
  call void @free(ptr %s)
  %no_memory = call ptr @refuse(ptr %api)
  ret ptr %no_memory
describe:
  %done = getelementptr %work, ptr %s, i64 0, i32 1
  %known = getelementptr %work, ptr %s, i64 0, i32 2
  %row = getelementptr %work, ptr %s, i64 0, i32 3
  store i64 0, ptr %s
  store i64 0, ptr %done
  call void @collect(ptr %args, ptr %row, i64 %nargs)
  %results = getelementptr ptr, ptr %row, i64 %nargs
  call void @collect(ptr %rets, ptr %results, i64 %nrets)
  %small = icmp slt i64 {threads}, 2
  br i1 %small, label %counted, label %ask
ask:
  %pool = call i64 @threads(ptr %api, ptr %context)
  %fewer = icmp slt i64 %pool, {threads}
  %most = select i1 %fewer, i64 %pool, i64 {threads}
  br label %counted
counted:
  %count = phi i64 [1, %describe], [%most, %ask]
  store i64 %count, ptr %known
  call void @wake(ptr %api, ptr %context, ptr %s, i64 %count)
  call void @tasks(ptr %s, ptr %arena)
  call void @free(ptr %arena)
  call void @finish(ptr %s, i64 {tasks})
  ret ptr null
}}
{SHARING}"""
