"""A compiled program for one kind of machine, beside the portable one.

It is machine code: it runs where the runtime's version and the processor are those it
was made for, which its key says, and nowhere else. Then a process neither traces nor
lowers nor compiles before its first answer.
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
    """Returns what tells a machine and a program from all others."""
    device = placement.devices[0]
    return cache.key(exported.mlir_module_serialized, b"", device, "export").hex()


def compiled(exported: Exported) -> tuple[dict[str, Any], bytes]:
    """Compiles an exported function for the default device.

    Returns:
      What a file says of it, and the program.

    Raises:
      ArgumentError: it is for several devices, or has open sizes.
    """
    if exported.nr_devices != 1 or not _is_static(exported):
        raise ArgumentError(
            "save: compiled=True is for one device and known sizes, which "
            f"{exported!r} is not"
        )
    specs = [ShapeDtypeStruct(a.shape, a.dtype) for a in exported.in_avals]
    args, kwargs = exported.in_tree.unflatten(specs)

    def function(*args: Any, **kwargs: Any) -> Any:
        return exported.call(*args, **kwargs)

    function.__name__ = exported.fun_name
    # An argument that the program does not use is passed all the same.
    jitted: Any = jit(function, keep_unused=True)
    # What was loaded from the disk cache serializes without its machine code.
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
    """An exported function whose compiled program is loaded.

    Attributes:
      exported: the function.
      program: the runtime's.
      placement: where it runs.
    """

    exported: Exported
    program: Program
    placement: Any

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
        """Returns the result in a tuple, or None if the program is not for this call.

        That is one within a transformation, with other types, or with arrays elsewhere;
        `Exported.call` knows what to do with it, or what to say.
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
      described: what the file says of the program.
      payload: the program.

    Returns:
      None if it was made for another machine, or another version of the runtime.

    Raises:
      ExportError: the runtime cannot load it.
    """
    placement = buffers.default_placement()
    if not isinstance(described, dict) or not _is_static(exported):
        raise ExportError("the file says nothing sensible of its compiled program")
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
