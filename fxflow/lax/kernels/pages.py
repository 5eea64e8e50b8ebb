"""Memory for large arrays in huge pages, which Linux gives to those who ask.

Rows of a large table lie anywhere in memory. With pages of 4 KiB, the processor first
reads the page table to find one; with pages of 2 MiB, it mostly knows where they are.
Pages are made when they are first written, so a program asks when it has allocated an
array and has not yet written to it: that is a call of machine code like a kernel's.
"""

from __future__ import annotations

import functools
import hashlib
import mmap
import sys
from typing import Any

import fxflow.lax.creation as creation
from fxflow.core.arrays import Aval
from fxflow.devices import buffers
from fxflow.devices.native import register_kernel, vector_lanes
from fxflow.devices.pool import frame
from fxflow.lax.foreign_calls import FfiCall
from fxflow.lax.kernels.native import is_enabled

#: Bytes of an array that is worth it: the processor knows where 8 MiB are by itself.
LEAST = 1 << 24
#: MADV_HUGEPAGE of Linux's `mman.h`.
_ADVICE = 14


def room(aval: Aval, number: int = 0) -> Any:
    """Returns an array to be written to, in huge pages where there are any.

    Args:
      aval: type of the array.
      number: distinguishes arrays of one type in a program.

    Returns:
      An array whose contents are not defined: all of it must be written, in place.
    """
    if not is_huge(aval):
        return creation.full(aval.shape, 0, aval.dtype)
    (out,) = FfiCall.bind(
        target=_registered(aval.nbytes),
        out_avals=(aval,),
        has_side_effect=False,
        vmap_method=None,
        in_layouts=(),
        out_layouts=(tuple(range(aval.ndim)),),
        aliases=(),
        # XLA makes one of two calls that do not differ.
        config=f"{{number = {number} : i64}}",
        api_version=4,
    )
    return out


def is_huge(aval: Aval) -> bool:
    """Returns whether `room` asks for huge pages for an array.

    Args:
      aval: type of the array.
    """
    is_cpu = buffers.default_placement().platform == "cpu"
    large = aval.nbytes >= LEAST and sys.platform == "linux"
    return large and is_cpu and is_enabled() and bool(vector_lanes())


@functools.lru_cache(512)
def _registered(nbytes: int) -> str:
    """Returns the target of the machine code that asks for an array's pages."""
    page = mmap.PAGESIZE
    code = f"""
declare i32 @madvise(ptr, i64, i32)

define internal void @task(ptr %arrays, ptr noalias %arena, i64 %t) {{
  %array = load ptr, ptr %arrays
  %start = ptrtoint ptr %array to i64
  %end = add i64 %start, {nbytes}
  %more = add i64 %start, {page - 1}
  %first = and i64 %more, {-page}
  %size = sub i64 %end, %first
  %place = inttoptr i64 %first to ptr
  %refused = call i32 @madvise(ptr %place, i64 %size, i32 {_ADVICE})
  ret void
}}
"""
    draft = frame("TARGET", 1, 1, 1, 64) + code
    target = f"fxflow_pages_{hashlib.sha256(draft.encode()).hexdigest()[:24]}"
    register_kernel(target, frame(target, 1, 1, 1, 64) + code)
    return target
