"""The table of a `.fx` file, for programs in C, which reads no JSON.

It is the file's last part and lists, in binary, what a caller needs: the parameters,
with their types and places, and for each function its program, its arguments and its
results. Numbers are little-endian; a text is its length in 16 bits and its UTF-8.

    table     = version u32, text fxflow's version, text the name of the separate file
                of the parameters or "", start u64, size u64 and digest of the file or
                part that has them, count u32 of parameter, count u32 of function, end
    parameter = type, start u64, size u64
    function  = text name, start u64, size u64, digest (of the StableHLO program),
                devices u32, takes its platform's index u8, count u32 of text platform,
                count u32 of input, count u32 of output
    input     = index u32 of a parameter or none, whether `main` takes it u8, type
    output    = index u32 of a parameter or none, type
    type      = text name, text such as f32[3], element u8 (PJRT_Buffer_Type), size u64
                in bytes, rank u8, dimensions u64; a symbolic one is 2**64 - 1
    end       = SHA-256 of the table so far, its start u64, a mark of 8 bytes

If a function is for several devices, then before the end there are, for each such
function, the layouts of its inputs and its outputs:

    layout    = kind u8: 0, each device has the whole array; 1, each has a part; 2,
                another one; 3, the partitioner chooses; for 1, the number of parts
                along each dimension u32, and for each device the number of its part,
                counted row by row, u32

An input that is a parameter is not an argument of the caller's; an output that is a
parameter replaces it.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow._version import __version__
from fxflow.core import tree
from fxflow.core.arrays import Aval
from fxflow.core.labels import dotted_path
from fxflow.devices.meshes import names_of
from fxflow.errors import ArgumentError
from fxflow.export.exported import Exported
from fxflow.export.records import LayoutRecord

VERSION = 1
MARK = b"FXTABLE1"
NONE = 2**32 - 1
_SYMBOLIC = 2**64 - 1

#: Numbers of the element types in PJRT's C interface.
_ELEMENTS = {
    name: number
    for number, name in enumerate(
        [
            *("bool", "int8", "int16", "int32", "int64"),
            *("uint8", "uint16", "uint32", "uint64"),
            *("float16", "float32", "float64", "bfloat16", "complex64", "complex128"),
            *("float8_e5m2", "float8_e4m3fn", "float8_e4m3b11fnuz"),
            *("float8_e5m2fnuz", "float8_e4m3fnuz", "int4", "uint4", "token"),
            *("int2", "uint2", "float8_e4m3", "float8_e3m4", "float8_e8m0fnu"),
            "float4_e2m1fn",
        ],
        start=1,
    )
}


class Role(NamedTuple):
    """How a function uses the parameters of its file.

    Attributes:
      takes: whether its first argument is the parameters.
      returns: number of leaves of the result that are new parameters: the first ones.
      names: names of the other leaves of the result.
    """

    takes: bool
    returns: int
    names: tuple[str, ...]


class Place(NamedTuple):
    """A part of a file.

    Attributes:
      start: its first byte.
      size: its number of bytes.
      sha256: its digest.
    """

    start: int
    size: int
    sha256: bytes


def role(exported: Exported, params: tuple[Any, Sequence[Aval]] | None) -> Role:
    """Returns how a function uses parameters of a structure and types.

    A function takes them if they are its first argument, and returns new ones if they
    are its result, or the first item of a tuple or list that is its result.

    Args:
      exported: the function.
      params: structure and types of the parameters; None: there are none.
    """
    out = exported.out_tree
    whole = [p for p, _ in tree.leaves_with_path(out.unflatten(range(out.num_leaves)))]
    if params is None:
        return Role(False, 0, _names(whole))
    structure, avals = params[0], tuple(params[1])
    count = len(avals)
    takes = first_argument(exported) == (structure, avals)
    if tuple(exported.out_avals[:count]) == avals:
        if out == structure:
            return Role(takes, count, ())
        data, children = out.node_data(), out.children()
        if data and data[0] in (tuple, list) and children[0] == structure:
            # `(params, loss)` has the result `output`, `(params, loss, norm)` has
            # `output.0` and `output.1`.
            rest = [path[1:] for path in whole[count:]]
            if len(children) > 2:
                rest = [
                    (type(path[0])(path[0].idx - 1), *path[1:])
                    for path in whole[count:]
                ]
            return Role(takes, count, _names(rest))
    return Role(takes, 0, _names(whole))


def _names(paths: Sequence[Any]) -> tuple[str, ...]:
    return tuple(unique([f"output{dotted_path(path)}" for path in paths]))


def unique(names: Sequence[str]) -> list[str]:
    """Returns names, with their positions if two are the same: `0:a.b` and `1:a.b`.

    Args:
      names: names of leaves; `{"a.b": x}` and `{"a": {"b": x}}` have the same.
    """
    if len(set(names)) == len(names):
        return list(names)
    return [f"{i}:{name}" for i, name in enumerate(names)]


def argument_names(exported: Exported) -> list[str]:
    """Returns the names of a function's arguments, which all differ.

    Args:
      exported: the function.
    """
    count = len(exported.in_avals)
    return unique(exported.in_names or [f"arg{i}" for i in range(count)])


def first_argument(exported: Exported) -> tuple[Any, tuple[Aval, ...]] | None:
    """Returns structure and types of the first positional argument, if there is one."""
    positional = exported.in_tree.children()[0].children()
    if not positional:
        return None
    return positional[0], tuple(exported.in_avals[: positional[0].num_leaves])


def checked_names(functions: Mapping[str, Exported]) -> None:
    """Checks the names of the functions of a file.

    Raises:
      ArgumentError: there is no function, or a name is not a text that a file can hold.
    """
    if not functions:
        raise ArgumentError("save: expected at least one function, got {}")
    for name in functions:
        is_text = isinstance(name, str) and 0 < len(name) <= 255 and "\0" not in name
        if not is_text or any("\ud800" <= c <= "\udfff" for c in name):
            raise ArgumentError(
                "save: the name of a function must be a text of 1 to 255 characters, "
                f"got {name!r}"
            )


def encode(
    functions: Mapping[str, Exported],
    programs: Mapping[str, Place],
    params: tuple[Any, Sequence[Aval]] | None,
    names: Sequence[str],
    arrays: Sequence[tuple[int, int]],
    beside: str,
    held: Place,
    start: int,
) -> bytes:
    """Returns the table of a file.

    Args:
      functions: by name.
      programs: their StableHLO programs in the file.
      params: structure and types of the parameters; None: there are none.
      names: names of the parameters.
      arrays: start and size of each parameter, in the file that holds them.
      beside: the name of the separate file of the parameters, or `""`.
      held: the part with the parameters, or the whole separate file.
      start: position of the table in the file.
    """
    out = bytearray(struct.pack("<I", VERSION))
    out += _text(__version__) + _text(beside)
    out += struct.pack("<QQ", held.start, held.size) + held.sha256
    out += struct.pack("<I", len(arrays))
    for name, aval, place in zip(
        names, params[1] if params else (), arrays, strict=True
    ):
        out += _type(name, aval) + struct.pack("<QQ", *place)
    out += struct.pack("<I", len(functions))
    for name, exported in functions.items():
        out += _function(name, exported, programs[name], role(exported, params))
    for exported in functions.values():
        if exported.nr_devices > 1:
            ins = zip(exported.in_avals, exported.in_layouts, strict=True)
            outs = zip(exported.out_avals, exported.out_layouts, strict=True)
            for aval, layout in ins:
                out += _layout(aval, layout, exported.nr_devices)
            for aval, layout in outs:
                is_open = layout is None and aval.physical.shape
                out += b"\3" if is_open else _layout(aval, layout, exported.nr_devices)
    return bytes(out + hashlib.sha256(out).digest() + struct.pack("<Q", start) + MARK)


def _function(name: str, exported: Exported, place: Place, used: Role) -> bytes:
    out = _text(name) + struct.pack("<QQ", place.start, place.size) + place.sha256
    several = len(exported.platforms) > 1
    out += struct.pack("<IB", exported.nr_devices, several)
    out += struct.pack("<I", len(exported.platforms))
    out += b"".join(map(_text, exported.platforms))
    known = first_argument(exported)
    count = len(known[1]) if used.takes and known else 0
    labels = argument_names(exported)
    out += struct.pack("<I", len(exported.in_avals))
    for i, (label, aval) in enumerate(zip(labels, exported.in_avals, strict=True)):
        index = i if i < count else NONE
        kept = i in exported.module_kept_var_idx
        out += struct.pack("<IB", index, kept) + _type(label, aval)
    out += struct.pack("<I", len(exported.out_avals))
    for i, aval in enumerate(exported.out_avals):
        new = i < used.returns
        label = "" if new else used.names[i - used.returns]
        out += struct.pack("<I", i if new else NONE) + _type(label, aval)
    return out


def _layout(aval: Aval, layout: LayoutRecord | None, devices: int) -> bytes:
    """Returns how an array is divided over the devices, in the order of the mesh.

    An argument without a layout is whole on each device, like a result of one element.
    """
    if layout is None or not layout.mesh.axis_names:
        return b"\0"
    mesh, spec = layout.mesh, layout.spec
    shape = aval.physical.shape
    entries = [names_of(entry) for entry in spec]
    sizes = dict(zip(mesh.axis_names, mesh.axis_sizes, strict=True))
    parts = [math.prod(sizes[name] for name in names) for names in entries]
    parts += [1] * (len(shape) - len(parts))
    fits = all(isinstance(n, int) and n % k == 0 for n, k in zip(shape, parts))
    special = spec.reduced or spec.unreduced or layout.memory_kind
    if special or not fits or mesh.size != devices:
        return b"\2"
    if math.prod(parts) == 1:
        return b"\0"
    # The place of each device along each axis of the mesh.
    grid = np.indices(mesh.axis_sizes).reshape(len(sizes), -1)
    places = dict(zip(mesh.axis_names, grid, strict=True))
    numbers = np.zeros(devices, np.int64)
    for name in (name for names in entries for name in names):
        numbers = numbers * sizes[name] + places[name]
    return struct.pack(f"<B{len(parts)}I{devices}I", 1, *parts, *numbers)


def _text(text: str) -> bytes:
    data = text.encode(errors="replace")
    if len(data) > 0xFFFF or data.decode() != text:
        shown = text if len(text) < 60 else f"{text[:60]}..."
        raise ArgumentError(
            "save: names of arguments, results and parameters must be texts of at most "
            f"65535 bytes in UTF-8, got {shown!r}"
        )
    return struct.pack("<H", len(data)) + data


def _type(name: str, aval: Aval) -> bytes:
    held = aval.physical
    sizes = [n if isinstance(n, int) else _SYMBOLIC for n in held.shape]
    size = held.nbytes if _SYMBOLIC not in sizes else _SYMBOLIC
    element = _ELEMENTS.get(held.dtype.name, 0)
    return (
        _text(name)
        + _text(str(held))
        + struct.pack(f"<BQB{len(sizes)}Q", element, size, len(sizes), *sizes)
    )
