"""Reads and writes artifacts: a function's program, types, layouts and name.

The format is the FlatBuffer of `jax.export`, so that each library can load the other's
artifacts: the numbers below are those of its fields and enumerations. fxflow adds a
file identifier and, at the end, a digest, which FlatBuffers readers ignore; if either
is present, both must be right.

Artifacts of serialization versions 2 to 11 are readable: each version adds fields, and
none removes any.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fxflow.core.arrays import Aval, dtypes
from fxflow.devices.meshes import AbstractMesh, AxisType, Mesh, PartitionSpec, names_of
from fxflow.devices.shardings import NamedSharding
from fxflow.devices.trees import PyTreeDef
from fxflow.errors import ExportError, FxflowError
from fxflow.export import flat, trees
from fxflow.export.checks import DisabledSafetyCheck
from fxflow.export.flat import Fields, Number, Numbers, Table
from fxflow.export.sizes import parse_shape

#: The version in artifacts of fxflow: readers of all versions accept it, and read the
#: fields that they know.
_SERIALIZATION_VERSION = 3
_OLDEST, _NEWEST = 2, 11
#: Versions of the calling convention; 9 and 10 differ only in features that fxflow's
#: programs do not use.
OLDEST_CALLING_CONVENTION, CALLING_CONVENTION = 9, 10
_MARK = b"FXE1"
_END = b"fxflow sha256:  "
#: Most derivatives of derivatives.
_MOST_VJPS = 32

#: Numbers of the element types.
_DTYPES = dict(
    enumerate(
        [
            "bool",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "float16",
            "float32",
            "float64",
            "complex64",
            "complex128",
            "bfloat16",
            "int4",
            "uint4",
            "float8_e4m3b11fnuz",
            "float8_e4m3fn",
            "float8_e4m3fnuz",
            "float8_e5m2",
            "float8_e5m2fnuz",
            "float0",
            "float8_e4m3",
            "float8_e3m4",
            "float8_e8m0fnu",
            "float4_e2m1fn",
            "key<fry>",
            "key<rbg>",
            "key<urbg>",
        ]
    )
)


def _dtype_table() -> dict[int, Any]:
    known = {d.name: d for d in dtypes.ALL} | {k.name: k for k in dtypes.KEYS}
    known["float0"] = dtypes.float0
    return {i: known[name] for i, name in _DTYPES.items() if name in known}


_DTYPE_OF = _dtype_table()
_NUMBER_OF = {dtype: i for i, dtype in _DTYPE_OF.items()}
_AXIS_TYPES = {1: AxisType.Auto, 2: AxisType.Explicit, 3: AxisType.Manual}
_AXIS_NUMBERS = {kind: i for i, kind in _AXIS_TYPES.items()}
#: A memory space; 0 is unspecified.
_DEVICE_MEMORY = 1


class LayoutRecord(NamedTuple):
    """The layout of an array over an abstract mesh.

    Attributes:
      mesh: the abstract mesh, without axes for a single device.
      spec: partition spec of the array.
      memory_kind: the memory kind; None: the devices' default memory.
    """

    mesh: AbstractMesh
    spec: PartitionSpec
    memory_kind: str | None

    def on(self, mesh: Mesh) -> NamedSharding:
        """Returns the sharding on the devices of a mesh.

        Args:
          mesh: a mesh with the same axis names and sizes.

        Raises:
          ExportError: its axes differ.
        """
        wanted = dict(zip(self.mesh.axis_names, self.mesh.axis_sizes, strict=True))
        given = dict(zip(mesh.axis_names, mesh.axis_sizes, strict=True))
        if wanted and wanted != given:
            raise ExportError(
                f"the function was exported for a mesh of {wanted}, got {given}"
            )
        return NamedSharding(mesh, self.spec, memory_kind=self.memory_kind)


@dataclass(frozen=True, eq=False, kw_only=True)
class Record:
    """The contents of an artifact, without its derivatives; see `Exported`."""

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[Aval, ...]
    out_tree: PyTreeDef
    out_avals: tuple[Aval, ...]
    in_layouts: tuple[LayoutRecord | None, ...]
    out_layouts: tuple[LayoutRecord | None, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[str, ...]
    unordered_effects: tuple[str, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool


# -- writing ---------------------------------------------------------------------------


def encode(records: Sequence[Record]) -> bytes:
    """Returns an artifact.

    Args:
      records: the function, its derivative, the derivative's derivative, …
    """
    table: Fields | None = None
    for record in reversed(records):
        table = _to_table(record, table)
    assert table is not None
    data = flat.write(table, _MARK)
    return data + _END + hashlib.sha256(data).digest()


def _to_table(record: Record, vjp: Fields | None) -> Fields:
    avals = list(dict.fromkeys((*record.in_avals, *record.out_avals)))
    layouts = list(
        dict.fromkeys(x for x in (*record.in_layouts, *record.out_layouts) if x)
    )
    meshes = list(dict.fromkeys(x.mesh for x in layouts))

    def aval_numbers(given: Sequence[Aval]) -> Numbers:
        return Numbers("uint32", [avals.index(a) for a in given])

    def layout_numbers(given: Sequence[LayoutRecord | None]) -> Numbers:
        # 0 means unspecified.
        return Numbers("uint32", [layouts.index(x) + 1 if x else 0 for x in given])

    def sharding(layout: LayoutRecord | None) -> Fields:
        return {2: _layout_table(layout, meshes)} if layout else {}

    return {
        0: Number("uint16", _SERIALIZATION_VERSION),
        1: record.fun_name,
        2: trees.to_table(record.in_tree),
        3: list(map(_aval_table, record.in_avals)),
        4: trees.to_table(record.out_tree),
        5: list(map(_aval_table, record.out_avals)),
        7: list(map(sharding, record.in_layouts)),
        8: list(map(sharding, record.out_layouts)),
        9: list(record.platforms),
        10: [{0: name} for name in record.ordered_effects],
        11: [{0: name} for name in record.unordered_effects],
        12: list(map(_check_table, record.disabled_safety_checks)),
        13: record.mlir_module_serialized,
        14: Number("uint16", record.calling_convention_version),
        15: Numbers("uint16", record.module_kept_var_idx),
        16: Number("uint8", int(record.uses_global_constants)),
        17: vjp,
        18: Number("uint32", record.nr_devices),
        19: list(map(_aval_table, avals)),
        20: list(map(_mesh_table, meshes)),
        21: [_layout_table(x, meshes) for x in layouts],
        22: aval_numbers(record.in_avals),
        23: aval_numbers(record.out_avals),
        24: layout_numbers(record.in_layouts),
        25: layout_numbers(record.out_layouts),
    }


def _aval_table(aval: Aval) -> Fields:
    number = _NUMBER_OF.get(aval.dtype)
    if number is None:
        raise ExportError(
            f"export: artifacts do not support {dtypes.short_name(aval.dtype)}, the "
            f"dtype of an argument or result {aval}"
        )
    return {
        0: Number("int8", 0),
        1: [str(n) for n in aval.shape],
        2: Number("int8", number),
        3: Number("int8", _DEVICE_MEMORY),
    }


def _mesh_table(mesh: AbstractMesh) -> Fields:
    for name in mesh.axis_names:
        if not isinstance(name, str):
            raise ExportError(f"export: mesh axis names must be strings, got {name!r}")
    return {
        0: Numbers("uint32", mesh.axis_sizes),
        1: list(mesh.axis_names),
        2: Numbers("int8", [_AXIS_NUMBERS[kind] for kind in mesh.axis_types]),
    }


def _layout_table(layout: LayoutRecord, meshes: Sequence[AbstractMesh]) -> Fields:
    spec = layout.spec
    return {
        0: _mesh_table(layout.mesh),
        1: {
            0: [{0: list(names_of(entry))} for entry in spec],
            1: sorted(map(str, spec.reduced)),
            2: sorted(map(str, spec.unreduced)),
        },
        2: layout.memory_kind,
        3: Number("uint32", meshes.index(layout.mesh)),
    }


def _check_table(check: DisabledSafetyCheck) -> Fields:
    target = check.is_custom_call()
    if target is not None:
        return {0: Number("int8", 1), 1: target}
    if check == DisabledSafetyCheck.platform():
        return {0: Number("int8", 0)}
    raise ExportError(f"export: unknown safety check {check}")


# -- reading ---------------------------------------------------------------------------


def has_digest(blob: bytes) -> bool:
    """Returns whether an artifact has a digest: fxflow's do, JAX's do not."""
    return blob[4:8] == _MARK or blob[-48:-32] == _END


def decode(blob: bytes) -> list[Record]:
    """Parses an artifact into records of the function and of each derivative.

    Raises:
      ExportError: `blob` is not an artifact, is damaged, or of an unknown version.
    """
    data = blob
    if has_digest(blob):
        data = blob[:-48]
        whole = blob[4:8] == _MARK and blob[-48:-32] == _END
        if not whole or hashlib.sha256(data).digest() != blob[-32:]:
            raise ExportError(
                "the artifact is damaged or truncated: its digest differs"
            )
    found: list[Record] = []
    table: Table | None = flat.Buffer(data).root
    while table is not None:
        if len(found) > _MOST_VJPS:
            raise ExportError("the artifact is damaged: it has too many derivatives")
        try:
            found.append(_from_table(table))
        except FxflowError as error:
            if isinstance(error, ExportError):
                raise
            raise ExportError(f"the artifact is damaged: {error}") from None
        table = table.table(17)
    return found


def _pick(items: Sequence[Any], index: int, what: str) -> Any:
    if not 0 <= index < len(items):
        raise ExportError(f"the artifact is damaged: it has no {what} {index}")
    return items[index]


def _from_table(table: Table) -> Record:
    version = table.number(0, "uint16")
    if not _OLDEST <= version <= _NEWEST:
        raise ExportError(
            f"the artifact has serialization version {version}; this fxflow reads "
            f"{_OLDEST} to {_NEWEST}"
        )
    convention = table.number(14, "uint16")
    if not OLDEST_CALLING_CONVENTION <= convention <= CALLING_CONVENTION:
        raise ExportError(
            f"the artifact's calling convention is version {convention}; this fxflow "
            f"supports {OLDEST_CALLING_CONVENTION} to {CALLING_CONVENTION}"
        )
    avals = list(map(_aval, table.tables(19)))
    meshes = list(map(_mesh, table.tables(20)))
    layouts = [_layout(t, meshes) for t in table.tables(21)]

    def types(indices: int, listed: int) -> tuple[Aval, ...]:
        if table.has(indices):
            numbers = table.numbers(indices, "uint32")
            return tuple(_pick(avals, i, "type") for i in numbers)
        return tuple(map(_aval, table.tables(listed)))

    def places(indices: int, listed: int) -> tuple[LayoutRecord | None, ...]:
        if table.has(indices):
            numbers = table.numbers(indices, "uint32")
            return tuple(_pick([None, *layouts], i, "layout") for i in numbers)
        return tuple(_sharding(t, meshes) for t in table.tables(listed))

    in_avals, out_avals = types(22, 3), types(23, 5)
    in_layouts, out_layouts = places(24, 7), places(25, 8)
    if len(in_layouts) != len(in_avals) or len(out_layouts) != len(out_avals):
        raise ExportError("the artifact is damaged: not every type has a layout")
    for layout, aval in zip((*in_layouts, *out_layouts), (*in_avals, *out_avals)):
        if layout and len(layout.spec) > len(aval.shape):
            raise ExportError(
                f"the artifact is damaged: {layout.spec} does not fit {aval}"
            )
    kept = table.numbers(15, "uint16")
    if list(kept) != sorted(set(kept)) or (kept and kept[-1] >= len(in_avals)):
        raise ExportError("the artifact is damaged: its kept arguments are invalid")
    platforms = table.strings(9)
    if not platforms:
        raise ExportError("the artifact is damaged: it names no platform")
    return Record(
        fun_name=table.string(1),
        in_tree=trees.from_table(table.table(2), len(in_avals)),
        in_avals=in_avals,
        out_tree=trees.from_table(table.table(4), len(out_avals)),
        out_avals=out_avals,
        in_layouts=in_layouts,
        out_layouts=out_layouts,
        # Older artifacts store 16 bits.
        nr_devices=table.number(18, "uint32") or table.number(6, "int16") or 1,
        platforms=platforms,
        ordered_effects=tuple(t.string(0) for t in table.tables(10)),
        unordered_effects=tuple(t.string(0) for t in table.tables(11)),
        disabled_safety_checks=tuple(map(_check, table.tables(12))),
        mlir_module_serialized=table.bytes(13),
        calling_convention_version=convention,
        module_kept_var_idx=kept,
        uses_global_constants=bool(table.number(16, "uint8")),
    )


def _aval(table: Table) -> Aval:
    if table.number(0, "int8") != 0:
        raise ExportError("the artifact takes or returns tokens, which fxflow lacks")
    number = table.number(2, "int8")
    dtype = _DTYPE_OF.get(number)
    if dtype is None:
        raise ExportError(f"the artifact has an unknown element type, {number}")
    return Aval(parse_shape(table.strings(1)), dtype)


def _mesh(table: Table) -> AbstractMesh:
    sizes, names = table.numbers(0, "uint32"), table.strings(1)
    kinds = [_AXIS_TYPES.get(i) for i in table.numbers(2, "int8")]
    if not len(sizes) == len(names) == len(kinds) or None in kinds or 0 in sizes:
        raise ExportError("the artifact is damaged: a mesh has axes that do not match")
    return AbstractMesh(sizes, names, kinds)  # type: ignore[arg-type]


def _layout(table: Table, meshes: Sequence[AbstractMesh]) -> LayoutRecord:
    if meshes:
        mesh = _pick(meshes, table.number(3, "uint32"), "mesh")
    else:
        own = table.table(0)
        if own is None:
            raise ExportError("the artifact is damaged: a layout has no mesh")
        mesh = _mesh(own)
    spec = table.table(1)
    if spec is None:
        raise ExportError("the artifact is damaged: a layout is empty")
    entries = []
    for part in spec.tables(0):
        axes = part.strings(0)
        entries.append(None if not axes else axes[0] if len(axes) == 1 else axes)
    found = PartitionSpec(
        *entries, reduced=set(spec.strings(1)), unreduced=set(spec.strings(2))
    )
    named = [name for entry in entries for name in names_of(entry)]
    if len(set(named)) != len(named) or not {
        *named,
        *found.reduced,
        *found.unreduced,
    } <= {*mesh.axis_names}:
        raise ExportError(f"the artifact is damaged: {found} is not over {mesh}")
    return LayoutRecord(mesh, found, table.string(2) or None)


def _sharding(table: Table, meshes: Sequence[AbstractMesh]) -> LayoutRecord | None:
    named = table.table(2)
    if named is not None:
        return _layout(named, meshes)
    if table.has(1):
        raise ExportError(
            "the artifact has layouts only as XLA shardings: it is older than January "
            "2026; export it again with a newer jax"
        )
    return None


def _check(table: Table) -> DisabledSafetyCheck:
    kind = table.number(0, "int8")
    if kind == 1:
        return DisabledSafetyCheck.custom_call(table.string(1))
    if kind == 0:
        return DisabledSafetyCheck.platform()
    raise ExportError(f"the artifact disables an unknown check, {kind}")
