"""The frame of CPU kernels: tasks on threads of XLA's pool."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.devices.native import register_kernel
from fxflow.devices.pool import frame

llvm = pytest.importorskip("llvmlite.binding")


def counting(tasks: int, threads: int) -> Any:
    """A kernel whose tasks write their numbers, by way of the thread's memory."""
    body = """
define internal void @task(ptr %arrays, ptr %arena, i64 %t) {
  %ap = load ptr, ptr %arrays
  %bpp = getelementptr ptr, ptr %arrays, i64 1
  %bp = load ptr, ptr %bpp
  %from = getelementptr i32, ptr %ap, i64 %t
  %x = load i32, ptr %from
  store i32 %x, ptr %arena
  %y = load i32, ptr %arena
  %n = trunc i64 %t to i32
  %z = mul i32 %y, %n
  %to = getelementptr i32, ptr %bp, i64 %t
  store i32 %z, ptr %to
  ret void
}
"""
    draft = frame("target", 2, tasks, threads, 100) + body
    target = "test_pool_" + hashlib.sha256(draft.encode()).hexdigest()[:16]
    register_kernel(target, frame(target, 2, tasks, threads, 100) + body)
    call = fxflow.ffi.ffi_call(target, fxflow.ShapeDtypeStruct((tasks,), "int32"))
    return fxflow.jit(lambda x: call(x))


@pytest.mark.parametrize("tasks", [1, 2, 7, 100])
@pytest.mark.parametrize("threads", [1, 2, 64])
def test_each_task_runs_once(tasks: int, threads: int) -> None:
    f = counting(tasks, threads)
    x = fnp.arange(tasks, dtype="int32") + 5
    expected = (np.arange(tasks) + 5) * np.arange(tasks)
    for _ in range(20):
        np.testing.assert_array_equal(f(x), expected)


@pytest.mark.skipif(sys.platform != "linux", reason="limits its address space")
def test_a_kernel_without_memory_for_its_scratch_is_an_error(
    run_python: Callable[..., str],
) -> None:
    code = """
import resource
import fxflow, fxflow.numpy as fnp
from fxflow import kernels
def body(x, o, s):
    s[...] = fnp.broadcast_to(x[0], s.shape)
    @kernels.loop(0, 3)
    def _(i):
        s[i] = s[i + 1] * 2
    o[...] = x[...] + s[2]
x = fnp.ones(4)
large = fxflow.ShapeDtypeStruct((1 << 30,), "float32")
k = kernels.call(body, fxflow.ShapeDtypeStruct((4,), "float32"), scratch=[large])
compiled = fxflow.jit(k).lower(x).compile()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)
try:
    compiled(x)
except fxflow.errors.OutOfMemoryError:
    print("no memory")
print(fxflow.jit(lambda x: x + 1)(x))
"""
    assert run_python(code) == "no memory\n[2. 2. 2. 2.]\n"
