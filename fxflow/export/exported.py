"""`Exported`: a function that has left Python, and `deserialize`, which brings it back.

Both sides of an artifact meet here: what `export` made knows how to write its own
derivatives, what was loaded has those that were written.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from fxflow.devices.meshes import Mesh
from fxflow.devices.shardings import NamedSharding
from fxflow.errors import ArgumentError, ExportError
from fxflow.export import records
from fxflow.export.calls import call
from fxflow.export.foreign import reread
from fxflow.export.records import Record

#: How a `.fx` file begins: not text, and changed by whatever changes the ends of lines.
FILE_MARK = b"\x89FX\r\n\x1a\n\0"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Exported(Record):
    """A function as a portable StableHLO program, with all that a call needs.

    `export` makes one of a jitted function, `deserialize` of bytes. It is called with
    `call`, which takes part in `jit`, `vmap`, `grad` and `pmap`.

    Attributes:
      fun_name: of the function.
      in_tree: structure of `(args, kwargs)`.
      in_avals: types of the leaves of the arguments.
      out_tree: structure of the result.
      out_avals: types of its leaves.
      in_layouts: how the leaves of the arguments are laid over devices, or None.
      out_layouts: likewise of the result.
      nr_devices: how many devices the program is for.
      platforms: that it is for: `cpu`, `cuda`, `rocm`, `tpu`.
      ordered_effects: names of what it does besides, in order; one with effects cannot
        be called.
      unordered_effects: likewise, in any order.
      disabled_safety_checks: what was left unchecked.
      mlir_module_serialized: the program, a portable artifact of StableHLO.
      calling_convention_version: how `main` is called; JAX's numbers.
      module_kept_var_idx: which leaves of the arguments `main` takes.
      uses_global_constants: whether sizes or the platform are arguments of the program.
      traced: the graph it was made of; None of what was loaded.
      in_names: of the leaves of the arguments, by the function's parameters, such as
        `x` or `params.w`. A `.fx` file keeps them; JAX's format has no place for them,
        so what `deserialize` returns has none.

    Source: `jax.export.Exported`.
    """

    traced: Any = None
    in_names: tuple[str, ...] = ()
    _get_vjp: Callable[[Exported], Exported] | None = None

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(str, a)) for a in (self.in_avals, self.out_avals))
        return f"<Exported {self.fun_name}({ins}) -> ({outs})>"

    def mlir_module(self, serialized: bool = True) -> Any:
        """Returns the program.

        Args:
          serialized: as text; False: an object of the compiler's bindings.

        Raises:
          ExportError: this jaxlib cannot read it.
        """
        portable = importlib.import_module("fxflow.devices.portable")
        try:
            module = portable.read(self.mlir_module_serialized)
        except ValueError as error:
            raise ExportError(f"{self.fun_name}: the program: {error}") from None
        return portable.text(module) if serialized else module

    def has_vjp(self) -> bool:
        """Returns whether there is a derivative."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """Returns the exported derivative.

        It takes the leaves of the arguments and then a cotangent for each leaf of the
        result, and returns a tuple with a cotangent for each leaf of the arguments;
        those of integers are `float0`.

        Raises:
          ExportError: there is none: the artifact was written without it.
        """
        if self._get_vjp is None:
            raise ExportError(
                f"{self.fun_name} was loaded from an artifact without its derivative: "
                "write it with serialize(vjp_order=1), or a higher order for "
                "derivatives of derivatives"
            )
        found: Exported | None = self.__dict__.get("_vjp")
        if found is None:
            found = self.__dict__["_vjp"] = self._get_vjp(self)
        return found

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function.

        Under `vmap` it runs once for each slice, in a loop; `grad` and `vjp` need
        `has_vjp()`; forward mode there is not.

        Args:
          *args: of the structure and types that it was exported with.
          **kwargs: likewise.

        Returns:
          The result.

        Raises:
          ArgumentError: structure or dtypes of the arguments differ.
          ShapeError: shapes differ.
          ExportError: it is for another platform or number of devices, has effects, or
            its program cannot be read.
        """
        return call(self, args, kwargs)

    def in_shardings_jax(self, mesh: Mesh) -> tuple[NamedSharding | None, ...]:
        """Returns where the leaves of the arguments are to be, over a mesh.

        Args:
          mesh: with the axes of that which it was exported for.
        """
        return tuple(x and x.on(mesh) for x in self.in_layouts)

    def out_shardings_jax(self, mesh: Mesh) -> tuple[NamedSharding | None, ...]:
        """Returns where the leaves of the result will be, over a mesh.

        Args:
          mesh: with the axes of that which it was exported for.
        """
        return tuple(x and x.on(mesh) for x in self.out_layouts)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """Returns the function as bytes, which `deserialize` and JAX's read.

        Args:
          vjp_order: how many derivatives to write; 2 lets `grad(grad(f))` be taken of
            what is loaded.

        Raises:
          ExportError: it has fewer derivatives, or a container or dtype
            has no place in the format.
          ArgumentError: `vjp_order` is not such a number.
        """
        if not isinstance(vjp_order, int) or vjp_order < 0:
            raise ArgumentError(
                f"serialize: vjp_order is a number of derivatives, got {vjp_order!r}"
            )
        listed = [self]
        for _ in range(vjp_order):
            listed.append(listed[-1].vjp())
        return bytearray(records.encode(listed))


def deserialize(
    blob: bytes | bytearray | memoryview, *, trusted: bool = False
) -> Exported:
    """Returns the exported function that bytes hold.

    What fxflow wrote carries a digest of itself, so that damage is always found. What
    JAX wrote has none: its frame is checked for being well-formed, and its program,
    whose reader is not made for damaged bytes, is read in a process of its own, which
    takes about a second. Take artifacts from where you would take programs.

    Args:
      blob: of `Exported.serialize`, or of that of `jax.export`.
      trusted: whether it is known to be whole, so that what JAX wrote can be read here.

    Returns:
      The function; its derivatives are those that were written.

    Raises:
      ExportError: they hold none, they are damaged, of another version, or name a
        container that is not registered here.
      ArgumentError: they are not bytes.

    Example:
      >>> exported = fxflow.export.export(fxflow.jit(fnp.sin))(fnp.ones(3))
      >>> deserialize(exported.serialize()).call(fnp.zeros(3))
      Array([0., 0., 0.], dtype=float32)

    Source: `jax.export.deserialize`.
    """
    if isinstance(blob, str | os.PathLike):
        raise ArgumentError(
            f"deserialize: expected bytes of Exported.serialize, got the path "
            f"{os.fspath(blob)!r}; fxflow.export.load reads a .fx file by its path"
        )
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise ArgumentError(f"deserialize: expected bytes, got {type(blob).__name__}")
    blob = bytes(blob)
    if blob.startswith(FILE_MARK):
        raise ExportError(
            "deserialize: these are the bytes of a .fx file, not of "
            "Exported.serialize; fxflow.export.load reads the file by its path"
        )
    found = records.decode(blob)
    if not (trusted or records.has_digest(blob)):
        programs = reread([record.mlir_module_serialized for record in found])
        found = [
            replace(record, mlir_module_serialized=program)
            for record, program in zip(found, programs, strict=True)
        ]
    loaded: Exported | None = None
    for record in reversed(found):
        loaded = Exported(**vars(record), _get_vjp=_known(loaded))
    assert loaded is not None
    return loaded


def _known(vjp: Exported | None) -> Callable[[Exported], Exported] | None:
    return None if vjp is None else lambda _: vjp
