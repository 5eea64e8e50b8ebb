"""Reads, writes and rewrites modules of StableHLO in their portable form.

A *portable artifact* is a module in VHLO, the versioned form of StableHLO: later
versions read it for five years, and because it is written in the version of four weeks
ago, slightly older versions read it too. Importing this module imports the MLIR
bindings: import it only where it is needed.
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

#: Attributes for shardings, memories and layouts, which programs for one device do not
#: need.
_LAYOUTS = ("sdy.sharding", "mhlo.sharding", "mhlo.memory_kind", "mhlo.layout_mode")


def write(text: str) -> bytes:
    """Returns a module of StableHLO text as a portable artifact.

    Raises:
      ValueError: it is not well-formed, or has an operation without a portable form.
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
      ValueError: it is not a portable artifact, or its version is not supported by this
        jaxlib.
    """
    # The reader would also parse text, which lacks the header of bytecode.
    if payload[:4] != b"ML\xefR":
        raise ValueError("it does not start with the header of MLIR bytecode")
    messages: list[str] = []

    def record(diagnostic: Any) -> bool:
        messages.append(diagnostic.message)
        return True

    # Without a handler the reader prints its diagnostics to standard error.
    handler = mlir._context.attach_diagnostic_handler(record)
    try:
        # StableHLO's own binding: jaxlib 0.11's crashes on a malformed artifact.
        module = stablehlo.deserialize_portable_artifact(mlir._context, payload)
    except (ir.MLIRError, RuntimeError, ValueError) as error:
        raise ValueError(messages[0] if messages else str(error)) from None
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
    """Returns a module as text, with the locations of its operations."""
    return str(module.operation.get_asm(enable_debug_info=True, use_local_scope=True))


def refine(text: str, shardy: bool) -> Any:
    """Returns a module with all sizes inferred from those of `main`'s arguments.

    Args:
      text: the module, with a `main` whose arguments have known sizes.
      shardy: whether it has Shardy's shardings.

    Raises:
      ValueError: a size cannot be inferred, or a condition on the sizes does not hold.
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
    """Returns the targets of a module's custom calls."""
    return {
        ir.StringAttr(op.attributes["call_target_name"]).value
        for op in operations(module)
        if op.name == "stablehlo.custom_call"
    }


def has_layouts(module: Any) -> bool:
    """Returns whether a module has Shardy's operations."""
    return any(op.name.startswith("sdy.") for op in operations(module))


def strip_layouts(module: Any) -> None:
    """Removes a module's shardings, memories and layouts, in place.

    Raises:
      ValueError: it computes on parts of arrays, which has no meaning on one device.
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
            # The attributes of arguments and results concern devices, too.
            for name in (*_LAYOUTS, "arg_attrs", "res_attrs"):
                if name in op.attributes:
                    del op.attributes[name]


def meshes(module: Any) -> dict[str, dict[str, int]]:
    """Returns the axes of each mesh of a module, by the mesh's name."""
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
    """Returns the types and attributes of `main`'s arguments and results.

    Returns:
      The types of the arguments, those of the results, the attributes of each argument
      and those of each result, `{}` if it has none.

    Raises:
      ValueError: the module has no function `main`.
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
    """Renames the functions and meshes of a module, and makes `main` private.

    Args:
      module: changed in place.
      named: maps a function's name to the new one.
      mesh: maps a mesh's name to the new one.

    Returns:
      The new name of `main`.
    """
    found = ""
    listed = [(op.operation, _symbol(op)) for op in module.body.operations]
    symbols = [(op, name) for op, name in listed if name]
    with module.context:
        for i, (op, name) in enumerate(symbols):
            # First to an unused name: the new name may be another symbol's old name.
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
    """Prints the artifacts in this process's input, each preceded by its length.

    `export/foreign.py` starts a process only for this: malformed bytes may crash it.
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
    """Returns the module of MLIR text; see `mlir.parse`."""
    return mlir.parse(text)
