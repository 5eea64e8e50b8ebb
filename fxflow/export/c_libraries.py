"""Compiles a function to a C library: an object file, a header and a source.

IREE's compiler produces the object file, with one function for each dispatch of the
program. IREE's runtime would read their order and memory from bytecode; here they
become C code, which is possible because sizes are static and there are no loops outside
the dispatches. So the library needs no runtime, no allocation and no threads: it runs
wherever a C compiler targets, including microcontrollers with ARM64 or RISC-V cores.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import Aval
from fxflow.errors import ArgumentError, CompileError
from fxflow.export.c_schedule import CopyStep, Dispatch, Fill, Schedule, Span
from fxflow.export.iree_modules import TARGETS, checked_program, compiled
from fxflow.export.programs import Program

#: Straight-line code, with the constants as written.
_OPTIONS = (
    "--compile-to=hal",
    "--iree-hal-memoization=false",
    "--iree-hal-indirect-command-buffers=false",
    "--iree-opt-const-eval=false",
    "--iree-opt-const-expr-hoisting=false",
    "--iree-llvmcpu-link-embedded=false",
    "--iree-llvmcpu-link-static",
    "--mlir-print-elementsattrs-with-hex-if-larger=0",
)
_ALIGNMENT = 64  # that IREE's code expects
#: Version of IREE's executable library interface, as declared below.
_VERSION = 6


class CLibrary(NamedTuple):
    """The files of a library.

    Attributes:
      header: declares the function and documents its arguments.
      source: C code to compile with the calling program.
      object: object file to link to it.
    """

    header: Path
    source: Path
    object: Path


def c_library(
    exported: Any,
    folder: str | os.PathLike[str],
    *,
    name: str = "model",
    target: str = "local",
    quantize: str | None = None,
    options: Sequence[str] = (),
) -> CLibrary:
    """Compiles a function to a C library, which needs no runtime.

    The C function takes a pointer for each leaf of the arguments that it reads (in the
    order of the tree), one for each leaf of the result, and a workspace:

        int model(const float *images, float *out0, void *workspace);

    It returns 0, or another number if a dispatch failed. The source includes the
    weights that the function captures. Concurrent calls need separate workspaces.

    Args:
      exported: the result of `export(jit(f))(...)` or `jit(f).lower(...)`.
      folder: folder for the files; it is created if it does not exist.
      name: name of the files and the C function.
      target: as for `iree`, except `vulkan`.
      quantize: as for `iree`.
      options: as for `iree`.

    Returns:
      The paths of the header, the source and the object.

    Raises:
      ArgumentError: the name is not a C identifier; the target is `vulkan`; otherwise
        as for `iree`.
      CompileError: IREE's compiler rejects an operation, or the program has loops
        around dispatches or other code that is not straight-line.
      ImportError: IREE's compiler is not installed (extra `iree`).

    Example:
      >>> lowered = fxflow.jit(lambda x: 2 * x).lower(fnp.zeros(3))
      >>> made = c_library(lowered, "build", name="twice",
      ...                  target="arm64-linux")  # doctest: +SKIP
      >>> made.header.read_text()                 # doctest: +SKIP

    Source: IREE (`iree-compile`, static libraries).
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ArgumentError(f"c_library: {name!r} is not a C identifier")
    if target == "vulkan":
        raise ArgumentError("c_library: a GPU needs a runtime: use iree for 'vulkan'")
    program = checked_program(exported, "c_library", target, quantize)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "code.o")
        more = (f"--iree-llvmcpu-static-library-output-path={path}", *options)
        text = compiled(program, (*TARGETS[target], *_OPTIONS, *more)).decode()
        if not path.exists():
            raise CompileError(f"{program.name}: there is nothing to compute")
        code, declared = path.read_bytes(), path.with_suffix(".h").read_text()
    query = re.search(r"(\w+_library_query)\(", declared)
    assert query is not None, declared
    schedule = Schedule(text, program.name)
    made = CLibrary(*(Path(folder, f"{name}{end}") for end in (".h", ".c", ".o")))
    made.header.parent.mkdir(parents=True, exist_ok=True)
    made.header.write_text(_header(name, program, schedule), encoding="utf-8")
    made.source.write_text(_source(name, program, schedule, query[1]), encoding="utf-8")
    made.object.write_bytes(code)
    return made


# -- C ---------------------------------------------------------------------------------

_TYPES = {
    "float32": "float",
    "float64": "double",
    "complex64": "float",
    "complex128": "double",
    "bool": "uint8_t",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
}


def _c_type(aval: Aval) -> str:
    name = str(aval.physical.dtype)
    if name in _TYPES:
        return _TYPES[name]
    return f"{name}_t" if re.fullmatch(r"u?int(8|16|32|64)", name) else "uint8_t"


def _arguments(program: Program) -> list[tuple[str, str, Aval]]:
    """Returns declaration, name and type of each pointer except the workspace."""
    taken = {"workspace"}
    found = []

    def named(label: str) -> str:
        name = base = re.sub(r"\W+", "_", label, flags=re.ASCII).strip("_") or "x"
        name = base = f"x{base}" if base[0].isdigit() else name
        number = 1
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name)
        return name

    for i in program.kept:
        aval, name = program.in_avals[i], named(program.labels[i])
        found.append((f"const {_c_type(aval)} *{name}", name, aval))
    for i, aval in enumerate(program.out_avals):
        name = named(f"out{i}")
        found.append((f"{_c_type(aval)} *{name}", name, aval))
    return found


def _declaration(name: str, program: Program) -> str:
    pointers = [text for text, _, _ in _arguments(program)]
    return f"int {name}({', '.join([*pointers, 'void *workspace'])})"


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _places(program: Program, schedule: Schedule) -> tuple[dict[str, int], int]:
    """Returns the offset of each buffer in the workspace, and the workspace's size."""
    sizes = {
        f"input{n}": program.in_avals[i].physical.nbytes
        for n, i in enumerate(program.kept)
    }
    places, end = {}, 0
    for buffer, size in {**sizes, **schedule.work}.items():
        places[buffer] = end
        end += _padded(size)
    return places, end + _ALIGNMENT


def _header(name: str, program: Program, schedule: Schedule) -> str:
    _, size = _places(program, schedule)
    guard = f"{name.upper()}_H"
    listed = "\n".join(f" *   {n}: {aval}" for _, n, aval in _arguments(program))
    return f"""\
/* {name}: generated by fxflow.
 *
{listed}
 *   workspace: {name.upper()}_WORKSPACE bytes, for one call at a time
 *
 * Arrays are dense and row-major. Returns 0, or an error code.
 */
#ifndef {guard}
#define {guard}
#include <stdint.h>

#define {name.upper()}_WORKSPACE {size}

#ifdef __cplusplus
extern "C" {{
#endif
{_declaration(name, program)};
#ifdef __cplusplus
}}
#endif
#endif
"""


_SUPPORT = """\
/* Version 6 of IREE's executable library interface. */
typedef struct {
  const uint32_t *constants;
  void *import_thunk;
  const void *imports;
  const void *import_contexts;
  uint64_t processor[8];
} environment_t;

typedef struct {
  uint32_t size_x, size_y;
  uint16_t size_z, constant_count;
  uint32_t count_x, count_y;
  uint16_t count_z;
  uint8_t max_concurrency, binding_count;
  const uint32_t *constants;
  void *const *bindings;
  const size_t *lengths;
} dispatch_t;

typedef struct {
  uint32_t x, y;
  uint16_t z, reserved;
  uint32_t processor;
  void *local_memory;
  uint32_t local_memory_size;
} workgroup_t;

typedef int (*step_t)(const environment_t *, const dispatch_t *, const workgroup_t *);

typedef struct {
  uint64_t flags;
  uint16_t local_memory_pages;
  uint8_t rest[54];
} attributes_t;

typedef struct {
  const uint32_t *version;
  uint32_t import_count;
  const char *const *imports;
  uint32_t count;
  const step_t *steps;
  const attributes_t *attributes;
  const void *parameters, *occupancy;
  const char *const *names;
} library_t;

static step_t found(const library_t *library, const char *name) {
  for (uint32_t i = 0; i < library->count; ++i)
    if (!strcmp(library->names[i], name) && !library->attributes[i].local_memory_pages)
      return library->steps[i];
  return 0;
}

static int run(const library_t *library, const char *name, uint32_t x, uint32_t y,
               uint16_t z, uint16_t constant_count, const uint32_t *constants,
               uint8_t binding_count, void *const *bindings, const size_t *lengths) {
  static const environment_t environment;
  const dispatch_t dispatch = {1, 1, 1, constant_count, x, y, z, 1, binding_count,
                               constants, bindings, lengths};
  const step_t step = found(library, name);
  if (!step) return -2;
  workgroup_t group = {0};
  for (uint32_t k = 0; k < z; ++k)
    for (uint32_t j = 0; j < y; ++j)
      for (uint32_t i = 0; i < x; ++i) {
        group.x = i;
        group.y = j;
        group.z = (uint16_t)k;
        const int failed = step(&environment, &dispatch, &group);
        if (failed) return failed;
      }
  return 0;
}
"""


def _source(name: str, program: Program, schedule: Schedule, query: str) -> str:
    places, _ = _places(program, schedule)

    def at(span: Span) -> str:
        if span.buffer in schedule.constants:
            return f"(void *)((const char *){span.buffer} + {span.offset})"
        return f"(memory + {places[span.buffer] + span.offset})"

    pointers = _arguments(program)
    ins, outs = pointers[: len(program.kept)], pointers[len(program.kept) :]
    body = [
        f"  memcpy({at(Span(f'input{i}', 0, 0))}, {n}, {aval.physical.nbytes});"
        for i, (_, n, aval) in enumerate(ins)
    ]
    for step in schedule.steps:
        if isinstance(step, CopyStep):
            body.append(
                f"  memcpy({at(step.target)}, {at(step.source)}, {step.source.length});"
            )
        elif isinstance(step, Fill):
            body += _filled(step, at(step.span))
        else:
            body += _dispatched(step, at)
    for (_, n, aval), span in zip(outs, schedule.outputs, strict=True):
        body.append(f"  memcpy({n}, {at(span)}, {aval.physical.nbytes});")
    constants = "".join(
        _array(buffer, data) for buffer, data in schedule.constants.items()
    )
    lines = "\n".join(body)
    return f"""\
/* {name}: generated by fxflow. */
#include "{name}.h"

#include <stddef.h>
#include <string.h>

{_SUPPORT}
const library_t **{query}(uint32_t version, const environment_t *environment);

{constants}{_declaration(name, program)} {{
  const environment_t environment = {{0}};
  const library_t **const queried = {query}({_VERSION}, &environment);
  if (!queried) return -1;
  const library_t *const library = (const library_t *)queried;
  if (*library->version != {_VERSION}) return -1;
  const uintptr_t past = (uintptr_t)workspace % {_ALIGNMENT};
  char *const memory = (char *)workspace + ({_ALIGNMENT} - past) % {_ALIGNMENT};
  int failed;
  (void)failed;
{lines}
  return 0;
}}
"""


def _filled(step: Fill, at: str) -> list[str]:
    pattern = step.pattern.to_bytes(step.width, "little")
    if len(set(pattern)) == 1:
        return [f"  memset({at}, {pattern[0]}, {step.span.length});"]
    kind = f"uint{8 * step.width}_t"
    count = step.span.length // step.width
    return [
        f"  for (size_t i = 0; i < {count}; ++i) (({kind} *){at})[i] = {step.pattern}u;"
    ]


def _dispatched(step: Dispatch, at: Any) -> list[str]:
    x, y, z = step.counts
    bindings = ", ".join(map(at, step.bindings))
    lengths = ", ".join(str(span.length) for span in step.bindings)
    words = ", ".join(f"{c % (1 << 32)}u" for c in step.constants) or "0"
    return [
        "  {",
        f"    const uint32_t constants[] = {{{words}}};",
        f"    void *const bindings[] = {{{bindings}}};",
        f"    const size_t lengths[] = {{{lengths}}};",
        f'    failed = run(library, "{step.function}", {x}, {y}, {z}, '
        f"{len(step.constants)}, constants, {len(step.bindings)}, bindings, lengths);",
        "    if (failed) return failed;",
        "  }",
    ]


def _array(name: str, data: bytes) -> str:
    words = np.frombuffer(data + bytes(-len(data) % 8), "<u8").tolist()
    rows = [
        ", ".join(f"0x{w:x}u" for w in words[i : i + 4])
        for i in range(0, len(words), 4)
    ]
    lines = ",\n  ".join(rows)
    return (
        f"static const uint64_t {name}[{len(words)}] "
        f"__attribute__((aligned({_ALIGNMENT}))) = {{\n  {lines}}};\n\n"
    )
