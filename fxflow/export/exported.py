"""`Exported`, a function as a portable program, and `deserialize`, which loads one.

An `Exported` made by `export` can export its derivatives; a loaded one has the
derivatives that were written.
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

#: Signature of `.fx` files: not text, and damaged by any conversion of line ends.
FILE_MARK = b"\x89FX\r\n\x1a\n\0"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Exported(Record):
    """A function as a portable StableHLO program, with everything that a call needs.

    `export` makes one from a jitted function, `deserialize` from bytes. Its method
    `call` works under `jit`, `vmap`, `grad` and `pmap`.

    Attributes:
      fun_name: name of the function.
      in_tree: structure of `(args, kwargs)`.
      in_avals: types of the leaves of the arguments.
      out_tree: structure of the result.
      out_avals: types of its leaves.
      in_layouts: layouts over devices of the leaves of the arguments, or None.
      out_layouts: layouts of the leaves of the result, or None.
      nr_devices: number of devices that the program is for.
      platforms: platforms that it is for: `cpu`, `cuda`, `rocm`, `tpu`.
      ordered_effects: names of its ordered effects; a function with effects cannot be
        called.
      unordered_effects: names of its other effects.
      disabled_safety_checks: the checks that the export skipped.
      mlir_module_serialized: the program, a portable StableHLO artifact.
      calling_convention_version: the calling convention of `main`, in JAX's numbering.
      module_kept_var_idx: indices of the leaves of the arguments that `main` takes.
      uses_global_constants: whether sizes or the platform are arguments of the program.
      traced: the graph that was exported; None for a loaded function.
      in_names: names of the leaves of the arguments, from the function's parameters,
        such as `x` or `params.w`. A `.fx` file keeps them; JAX's format does not, so
        they are empty after `deserialize`.

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
          serialized: True: as text; False: as an object of the compiler's bindings.

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
        """Returns whether the derivative is available."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """Returns the exported derivative.

        It takes the leaves of the arguments and then a cotangent for each leaf of the
        result, and returns a tuple with a cotangent for each leaf of the arguments;
        those of integers are `float0`.

        Raises:
          ExportError: the artifact was written without it.
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

        Under `vmap` it runs once for each slice, in a loop. `grad` and `vjp` need
        `has_vjp()`. Forward mode is not supported.

        Args:
          *args: positional arguments, of the structure and types of the export.
          **kwargs: keyword arguments, likewise.

        Returns:
          The result.

        Raises:
          ArgumentError: structure or dtypes of the arguments differ.
          ShapeError: shapes differ.
          ExportError: the function is for another platform or number of devices, has
            effects, or its program cannot be read.
        """
        return call(self, args, kwargs)

    def in_shardings_jax(self, mesh: Mesh) -> tuple[NamedSharding | None, ...]:
        """Returns the shardings of the leaves of the arguments over a mesh.

        Args:
          mesh: a mesh with the axes that the function was exported for.
        """
        return tuple(x and x.on(mesh) for x in self.in_layouts)

    def out_shardings_jax(self, mesh: Mesh) -> tuple[NamedSharding | None, ...]:
        """Returns the shardings of the leaves of the result over a mesh.

        Args:
          mesh: a mesh with the axes that the function was exported for.
        """
        return tuple(x and x.on(mesh) for x in self.out_layouts)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """Returns the function as bytes, which `deserialize` reads, here or in JAX.

        Args:
          vjp_order: number of derivatives to write; 2 allows `grad(grad(f))` after
            loading.

        Raises:
          ExportError: it has fewer derivatives, or the format does not support a
            container or dtype.
          ArgumentError: `vjp_order` is not a non-negative integer.
        """
        if not isinstance(vjp_order, int) or vjp_order < 0:
            raise ArgumentError(
                "serialize: vjp_order must be a number of derivatives, got "
                f"{vjp_order!r}"
            )
        listed = [self]
        for _ in range(vjp_order):
            listed.append(listed[-1].vjp())
        return bytearray(records.encode(listed))


def deserialize(
    blob: bytes | bytearray | memoryview, *, trusted: bool = False
) -> Exported:
    """Loads an exported function from bytes.

    Artifacts of fxflow include a digest, so that damage is always detected. Artifacts
    of JAX have none: their structure is checked, and their program is read in a
    separate process, which takes about a second, because its reader does not tolerate
    damage. Load artifacts only from sources that you would run programs from.

    Args:
      blob: the result of `Exported.serialize`, of fxflow or of `jax.export`.
      trusted: whether the bytes are known to be undamaged, so that a JAX artifact can
        be read in this process.

    Returns:
      The function, with the derivatives that were written.

    Raises:
      ExportError: the bytes are not an artifact, are damaged or of another version, or
        name a container that is not registered here.
      ArgumentError: `blob` is not bytes.

    Example:
      >>> exported = fxflow.export.export(fxflow.jit(fnp.sin))(fnp.ones(3))
      >>> deserialize(exported.serialize()).call(fnp.zeros(3))
      Array([0., 0., 0.], dtype=float32)

    Source: `jax.export.deserialize`.
    """
    if isinstance(blob, str | os.PathLike):
        raise ArgumentError(
            f"deserialize: expected the bytes of Exported.serialize, got the path "
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
        loaded = Exported(**vars(record), _get_vjp=_loaded_vjp(loaded))
    assert loaded is not None
    return loaded


def _loaded_vjp(vjp: Exported | None) -> Callable[[Exported], Exported] | None:
    return None if vjp is None else lambda _: vjp
