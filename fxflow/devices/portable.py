"""StableHLO as bytes that other versions read, and functions taken out of a module.

A *portable artifact* is a module in VHLO, the versioned form of StableHLO: readers of
the five years after it was written understand it, and, because it is written in the
version of four weeks ago, readers that are a little older, too. Importing this imports
the MLIR bindings, so it is imported where it is needed.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any

from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import sdy, stablehlo

from fxflow.devices import mlir
from fxflow.devices._jaxlib import raw

#: Attributes that say where something lies; programs for one device have no use for
#: them.
_LAYOUTS = ("sdy.sharding", "mhlo.sharding", "mhlo.memory_kind", "mhlo.layout_mode")


def write(text: str) -> bytes:
    """Returns a module of StableHLO text as a portable artifact.

    Raises:
      ValueError: it is not well-formed, or uses what has no portable form.
    """
    module = mlir.parse(text)
    version = stablehlo.get_version_from_compatibility_requirement(
        stablehlo.StablehloCompatibilityRequirement.WEEK_4
    )
    try:
        payload = raw.mlir.serialize_portable_artifact(module, version, "sdy." in text)
    except (ir.MLIRError, RuntimeError) as error:
        raise ValueError(str(error)) from None
    return bytes(payload)


def read(payload: bytes) -> Any:
    """Returns the module of a portable artifact.

    Raises:
      ValueError: it is not such an artifact, or of a version that this jaxlib does not
        read.
    """
    # Its own text has no header of bytecode, and the reader would parse anything.
    if payload[:4] != b"ML\xefR":
        raise ValueError("it does not begin as MLIR's bytecode does")
    said: list[str] = []

    def note(diagnostic: Any) -> bool:
        said.append(diagnostic.message)
        return True

    # Without a handler the reader's complaints go to the process's standard error.
    handler = mlir._context.attach_diagnostic_handler(note)
    try:
        # StableHLO's own binding: that of jaxlib 0.11 crashes on a malformed artifact.
        module = stablehlo.deserialize_portable_artifact(mlir._context, payload)
    except (ir.MLIRError, RuntimeError, ValueError) as error:
        raise ValueError(said[0] if said else str(error)) from None
    finally:
        handler.detach()
    if not isinstance(module, ir.Module):
        raise ValueError("the artifact does not hold a module")
    _run(module, "sdy-lift-inlined-meshes")
    return module


def _run(module: Any, passes: str) -> None:
    with module.context:
        passmanager.PassManager.parse(f"builtin.module({passes})").run(module.operation)


def text(module: Any) -> str:
    """Returns a module as text, with the operations' names and lines if it has them."""
    return str(module.operation.get_asm(enable_debug_info=True, use_local_scope=True))


def refine(text: str, shardy: bool) -> Any:
    """Returns a module whose sizes all follow from those of `main`'s arguments.

    Args:
      text: of the module, with a `main` whose arguments have known sizes.
      shardy: whether it says how arrays are laid over devices.

    Raises:
      ValueError: a size does not follow, or a condition on the sizes does not hold.
    """
    try:
        payload = raw.mlir.refine_polymorphic_shapes(text.encode(), True, True, shardy)
    except (ir.MLIRError, RuntimeError, ValueError) as error:
        raise ValueError(str(error)) from None
    return mlir.parse(payload)


def operations(module: Any) -> Iterator[Any]:
    """Yields all operations of a module, outer ones first."""
    waiting = [module.operation]
    while waiting:
        operation = waiting.pop()
        yield operation
        for region in operation.regions:
            for block in region:
                waiting += [op.operation for op in block]


def custom_calls(module: Any) -> set[str]:
    """Returns the names of the functions outside of it that a module calls."""
    return {
        ir.StringAttr(op.attributes["call_target_name"]).value
        for op in operations(module)
        if op.name == "stablehlo.custom_call"
    }


def has_layouts(module: Any) -> bool:
    """Returns whether a module says how arrays are laid over devices."""
    return any(op.name.startswith("sdy.") for op in operations(module))


def strip_layouts(module: Any) -> None:
    """Removes from a module what it says of devices, in place.

    Raises:
      ValueError: it computes on parts of arrays, which means nothing on one device.
    """
    for op in list(operations(module)):
        if op.name in ("sdy.sharding_constraint", "sdy.propagation_barrier"):
            op.result.replace_all_uses_with(op.operands[0])
            op.erase()
        elif op.name == "sdy.mesh":
            op.erase()
        elif op.name.startswith("sdy."):
            raise ValueError(f"{op.name} has no meaning on one device")
        else:
            # What arguments and results are marked with is about devices, too.
            for name in (*_LAYOUTS, "arg_attrs", "res_attrs"):
                if name in op.attributes:
                    del op.attributes[name]


def meshes(module: Any) -> dict[str, dict[str, int]]:
    """Returns the meshes of a module: their axes by the meshes' names."""
    found = {}
    for op in operations(module):
        if op.name == "sdy.mesh":
            name = ir.StringAttr(op.attributes["sym_name"]).value
            axes = sdy.MeshAttr(op.attributes["mesh"]).axes
            found[name] = _axes(axes)
    return found


def _axes(axes: Any) -> dict[str, int]:
    listed = [sdy.MeshAxisAttr(axis) for axis in axes]
    return {axis.name: axis.size for axis in listed}


def signature(module: Any) -> tuple[list[str], list[str], list[str], list[str]]:
    """Returns what `main` takes and gives.

    Returns:
      The types of its arguments and of its results, and the attributes of each
      argument and of each result, `{}` where there are none.

    Raises:
      ValueError: there is no function `main`.
    """
    main = _main(module)
    ins, outs = main.type.inputs, main.type.results
    described = []
    for name, types in (("arg_attrs", ins), ("res_attrs", outs)):
        given = main.attributes.get(name)
        described.append(
            ["{}"] * len(types) if given is None else list(map(str, given))
        )
    return list(map(str, ins)), list(map(str, outs)), described[0], described[1]


def _main(module: Any) -> Any:
    for op in module.body.operations:
        if op.operation.name == "func.func":
            name = ir.StringAttr(op.operation.attributes["sym_name"]).value
            if name == "main":
                return op
    raise ValueError("it has no function main")


def rename(module: Any, named: Callable[[str], str], mesh: Callable[[str], str]) -> str:
    """Gives functions and meshes of a module other names, and makes `main` private.

    Args:
      module: changed in place.
      named: from the name of a function to its new one.
      mesh: likewise for meshes.

    Returns:
      The new name of `main`.
    """
    found = ""
    listed = [(op.operation, _symbol(op)) for op in module.body.operations]
    symbols = [(op, name) for op, name in listed if name]
    with module.context:
        for i, (op, name) in enumerate(symbols):
            # By way of a name that none has: a new one may be another's old one.
            _rename(module, op, name, f"__fxflow_{i}")
        for i, (op, name) in enumerate(symbols):
            new = mesh(name) if op.name == "sdy.mesh" else named(name)
            _rename(module, op, f"__fxflow_{i}", new)
            if op.name == "func.func":
                op.attributes["sym_visibility"] = ir.StringAttr.get("private")
                if name == "main":
                    found = new
                    for attributes in ("arg_attrs", "res_attrs"):
                        if attributes in op.attributes:
                            del op.attributes[attributes]
    return found


def _symbol(op: Any) -> str:
    attributes = op.operation.attributes
    if "sym_name" not in attributes:
        return ""
    return str(ir.StringAttr(attributes["sym_name"]).value)


def _rename(module: Any, op: Any, old: str, new: str) -> None:
    ir.SymbolTable.replace_all_symbol_uses(old, new, module.operation)
    ir.SymbolTable.set_symbol_name(op, new)


def functions(module: Any) -> list[str]:
    """Returns the text of each function of a module."""
    return [
        f"{op.operation.get_asm(enable_debug_info=True, use_local_scope=True)}\n"
        for op in module.body.operations
        if op.operation.name == "func.func"
    ]


def mesh_texts(module: Any) -> list[str]:
    """Returns the declaration of each mesh of a module."""
    return [
        f"{op.operation.get_asm(use_local_scope=True)}\n"
        for op in module.body.operations
        if op.operation.name == "sdy.mesh"
    ]


def print_programs() -> None:
    """Prints the artifacts in this process's input, each behind its length.

    `export/foreign.py` starts a process for this alone, which the bytes may end.
    """
    size = struct.Struct("<Q")
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while head := source.read(size.size):
        try:
            text = str(read(source.read(*size.unpack(head)))).encode()
        except ValueError as error:
            sys.exit(str(error))
        sink.write(size.pack(len(text)) + text)


def parse(text: str) -> Any:
    """Returns the module of a text; see `mlir.parse`."""
    return mlir.parse(text)
