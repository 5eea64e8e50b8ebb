"""`jax.experimental.serialize_executable`: a compiled program as bytes, and back.

The bytes are machine code and a pickle: load only what you made yourself, with the same
jaxlib on the same kind of processor. `fxflow.export.save(compiled=True)` writes a file
that also holds the portable program, for other machines.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from fxflow._config import config as options
from fxflow.compat.jax._mirror import listen
from fxflow.core.arrays import type_on
from fxflow.core.ir.graph import Graph, Var
from fxflow.core.runtime.execute import Program
from fxflow.devices import buffers, clients, compile, lapack
from fxflow.stages import Compiled, Lowered, Traced


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """Returns a compiled program as bytes, and the structures that it needs again.

    Args:
      compiled: of a function that takes and returns arrays of one device.

    Returns:
      The bytes, the structure of `(args, kwargs)`, that of the result.

    Raises:
      NotImplementedError: the program takes captured arrays or references, calls
        Python, runs on several devices, or comes from `deserialize_and_load`.
    """
    traced, lowered, program = compiled.traced, compiled.lowered, compiled.program
    for why, holds in {
        "comes from bytes itself: keep those": not hasattr(lowered, "program"),
        "captures arrays: pass them as arguments": compiled.constants,
        "takes references": traced.call is not None,
        "calls Python": program.calls_python,
        "runs on several devices": len(program.executable.devices) > 1,
    }.items():
        if holds:
            raise NotImplementedError(f"serialize: {traced.name} {why}")
    if program.executable.from_cache:
        # What comes from the disk serializes without its machine code.
        with options.override(cache=False):
            program = lowered.compile().program
    described = {
        "payload": program.executable.serialize(),
        "name": traced.name,
        "labels": traced.labels,
        "in_avals": traced.in_avals,
        "out_avals": [t.aval for t in program.out_types],
        "donated": traced.donated,
        "kept": lowered.kept,
        "lapack": "@lapack_" in program.text,
    }
    return pickle.dumps(described), traced.in_tree, traced.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: Any,
    out_tree: Any,
    backend: Any = None,
    execution_devices: Sequence[Any] | None = None,
) -> Compiled:
    """Returns the program that `serialize` gave.

    Args:
      serialized: the bytes.
      in_tree: the structure of `(args, kwargs)`.
      out_tree: that of the result.
      backend: the platform; None is the default one.
      execution_devices: the device to run on; None is the first one.

    Returns:
      A `Compiled`, called as the first one was.

    Raises:
      JaxRuntimeError: the program is for another machine.
    """
    described = pickle.loads(serialized)
    if execution_devices is None:
        execution_devices = clients.devices(backend)[:1]
    placement = buffers.placement(execution_devices[0])
    if described["lapack"]:
        lapack.ensure()
    name, kept = described["name"], described["kept"]
    executable = compile.load(described["payload"], placement, name)
    program = Program(
        executable,
        [placement] * len(kept),
        [type_on(aval, placement) for aval in described["out_avals"]],
        "",
    )
    in_avals, labels = described["in_avals"], described["labels"]
    # The types of the function, without what it does.
    types = Graph(
        [Var(aval) for aval in in_avals],
        [],
        [Var(aval) for aval in described["out_avals"]],
        name,
    )
    lowered = object.__new__(Lowered)
    lowered.constants, lowered.kept = [], kept
    lowered.traced = Traced(
        types,
        [],
        in_tree,
        out_tree,
        name=name,
        labels_of=lambda: labels,
        donated=described["donated"],
        keep_unused=False,
        options=None,
        in_shardings=(None,) * len(in_avals),
        out_shardings=(None,) * len(program.out_types),
    )
    return Compiled(lowered, program)


__all__ = ["deserialize_and_load", "serialize"]

listen(globals())
