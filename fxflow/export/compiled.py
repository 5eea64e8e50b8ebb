"""Compiled programs in `.fx` files, in addition to the portable program.

A compiled program is machine code: it runs only with the runtime's version and on the
processor that its key names. A process that loads it does not trace, lower or compile.
"""

from __future__ import annotations

from typing import Any

from fxflow._config import config
from fxflow._frozen import Frozen
from fxflow.core import tree
from fxflow.core.arrays import Array, Aval, ShapeDtypeStruct, type_on
from fxflow.core.arrays.array import as_array, is_arraylike
from fxflow.core.ir.trace import state
from fxflow.core.runtime.eager import EVAL
from fxflow.core.runtime.execute import Program
from fxflow.devices import RuntimeFailure, buffers, cache, compile, lapack
from fxflow.errors import ArgumentError, ExportError
from fxflow.export.exported import Exported
from fxflow.transforms.jit import jit


def _key(exported: Exported, placement: Any) -> str:
    """Returns a key that identifies a program, a processor and a runtime."""
    device = placement.devices[0]
    return cache.key(exported.mlir_module_serialized, b"", device, "export").hex()


def compiled(exported: Exported) -> tuple[dict[str, Any], bytes]:
    """Compiles an exported function for the default device.

    Returns:
      The description for the file's header, and the program.

    Raises:
      ArgumentError: the function is for several devices, or has symbolic sizes.
    """
    if exported.nr_devices != 1 or not _is_static(exported):
        raise ArgumentError(
            "save: compiled=True needs a function for one device, with static sizes, "
            f"got {exported!r}"
        )
    specs = [ShapeDtypeStruct(a.shape, a.dtype) for a in exported.in_avals]
    args, kwargs = exported.in_tree.unflatten(specs)

    def function(*args: Any, **kwargs: Any) -> Any:
        return exported.call(*args, **kwargs)

    function.__name__ = exported.fun_name
    # Keep unused arguments, so that a call passes all of them.
    jitted: Any = jit(function, keep_unused=True)
    # A program loaded from the disk cache serializes without its machine code.
    with config.override(cache=False):
        program = jitted.lower(*args, **kwargs).compile().program
    payload: bytes = program.executable.serialize()
    described = {
        "key": _key(exported, buffers.default_placement()),
        "lapack": "@lapack_" in program.text,
    }
    return described, payload


def _is_static(exported: Exported) -> bool:
    avals = (*exported.in_avals, *exported.out_avals)
    return all(isinstance(n, int) for a in avals for n in a.shape)


def _out_types(exported: Exported, placement: Any) -> list[Any]:
    avals = [a for a in exported.out_avals if isinstance(a, Aval)]
    return [type_on(aval, placement) for aval in avals]


class Ready(Frozen, eq=False):
    """An exported function with a loaded compiled program.

    Attributes:
      exported: the function.
      program: the compiled program.
      placement: the placement of its arguments and results.
    """

    exported: Exported
    program: Program
    placement: Any

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
        """Returns the result in a tuple, or None if the program does not fit the call.

        It does not fit calls within a transformation, or with other types or
        placements; `Exported.call` handles these, or raises an error.
        """
        exported = self.exported
        leaves, treedef = tree.flatten((args, kwargs))
        if state.trace is not EVAL or treedef != exported.in_tree:
            return None
        arrays = []
        for leaf, aval in zip(leaves, exported.in_avals, strict=True):
            array = as_array(leaf, aval.dtype) if is_arraylike(leaf) else None
            if (
                not isinstance(array, Array)
                or array.aval.shape != aval.shape
                or array.aval.dtype != aval.dtype
                or array._type.placement is not self.placement
            ):
                return None
            arrays.append(array)
        return (exported.out_tree.unflatten(self.program(arrays)),)


def ready(exported: Exported, described: Any, payload: bytes) -> Ready | None:
    """Loads a compiled program.

    Args:
      exported: the function.
      described: the file's description of the program.
      payload: the program.

    Returns:
      The function, or None if the program is for another processor or another version
      of the runtime.

    Raises:
      ExportError: the runtime cannot load it.
    """
    placement = buffers.default_placement()
    if not isinstance(described, dict) or not _is_static(exported):
        raise ExportError("the file's description of its compiled program is corrupt")
    if described.get("key") != _key(exported, placement):
        return None
    if described.get("lapack"):
        lapack.ensure()
    try:
        executable = compile.load(payload, placement, exported.fun_name)
    except RuntimeFailure as error:
        raise ExportError(f"the compiled program cannot be loaded: {error}") from None
    outs = _out_types(exported, placement)
    places = [placement] * len(exported.in_avals)
    return Ready(exported, Program(executable, places, outs, ""), placement)
