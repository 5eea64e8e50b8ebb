"""`.fx` files: exported functions, optionally with their parameters.

A file has a signature, a format version, a JSON header that lists the parts, and the
parts, each at a multiple of 64 bytes, with zeros between them:

- `program`: the bytes of `Exported.serialize`, which JAX reads too;
- `program:NAME`: the same for each function after the first;
- `params`: the parameters as a safetensors file, unless they are in a separate file;
- `compiled`: the program as machine code for one kind of machine;
- `onnx:NAME`: a function as an ONNX model, for browsers;
- `table`: last, what a caller in C needs of all these (`tables.py`).

The header includes the SHA-256 digest of each part, and a digest of its own precedes
it, so that any changed byte is detected. Unknown parts are ignored.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fxflow._version import __version__
from fxflow.core import safetensors, tree
from fxflow.core.arrays import Aval, dtypes
from fxflow.core.arrays.array import as_array
from fxflow.devices import files
from fxflow.errors import ArgumentError, ExportError
from fxflow.export import folders, records, tables
from fxflow.export.compiled import Ready, ready
from fxflow.export.compiled import compiled as compile_program
from fxflow.export.exported import FILE_MARK, Exported, deserialize
from fxflow.lax.random_bits import random_unwrap, random_wrap

Path_ = str | os.PathLike[str]
Buffer = bytes | memoryview

_VERSION = 1
#: Signature, version, length of the header, digest of the header.
_HEAD = struct.Struct("<8sII32s")
_LARGEST_HEADER = 1 << 24


@dataclass(frozen=True, eq=False, repr=False)
class Bundle:
    """The contents of a `.fx` file.

    Attributes:
      exported: the function; the first one if the file has several.
      params: its first argument, if the file has it; the arrays are memory-mapped until
        they are used.
      fxflow_version: version of fxflow that wrote the file.
      functions: all functions by name.
    """

    exported: Exported
    params: Any
    fxflow_version: str
    functions: Mapping[str, Exported]
    _ready: Ready | None = None

    @property
    def is_compiled(self) -> bool:
        """Whether calls run the file's compiled program."""
        return self._ready is not None

    def __repr__(self) -> str:
        with_params = "" if self.params is None else " with parameters"
        several = len(self.functions) > 1
        what = ", ".join(self.functions) if several else repr(self.exported)
        return f"<Bundle of {what}{with_params}>"

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function, with the parameters as first argument if it has them.

        Args:
          *args: the other positional arguments.
          **kwargs: keyword arguments.

        Returns:
          The result.

        Raises:
          ArgumentError, ShapeError, ExportError: see `Exported.call`.
        """
        first = () if self.params is None else (self.params,)
        if self._ready is not None:
            result = self._ready.run((*first, *args), kwargs)
            if result is not None:
                return result[0]
        return self.exported.call(*first, *args, **kwargs)


class _Part(NamedTuple):
    """A part of a file: its place and digest."""

    name: str
    start: int
    size: int
    sha256: str


# -- saving ----------------------------------------------------------------------------


def save(
    path: Path_,
    exported: Exported | Mapping[str, Exported],
    *,
    params: Any = None,
    beside: str | None = None,
    vjp_order: int = 0,
    compiled: bool = False,
    onnx: Sequence[str] = (),
    folder: bool = False,
) -> None:
    """Writes an exported function, or several, to a file, optionally with parameters.

    The write is atomic. If a file has several functions, such as `init`, `step` and
    `predict`, `params` is what they share: the state of a training run. A function
    takes it if its first argument has this structure and these types, and returns a new
    one if its result, or the first item of a tuple that is its result, has them. The
    front ends for C and other languages keep it on the device between calls.

    Args:
      path: path of the file, such as `"model.fx"`.
      exported: the function, or functions by name.
      params: the first argument of the function, or of at least one of several; a
        pytree of arrays. None: calls will pass it.
      beside: name of a safetensors file in the same folder for the parameters, such as
        `"model.safetensors"`; None: in the same file.
      vjp_order: number of derivatives to write.
      compiled: whether to compile the function for the default device and include that
        program; see `load`. For files with one function.
      onnx: names of functions to include as ONNX models too, which the front end for
        browsers runs (extra `onnx`).
      folder: whether to write a folder of plain files that other tools read, instead of
        one file: `signature.json`, `params.safetensors`, and for each function
        `NAME.mlirbc` (portable StableHLO), `NAME.jax` (`Exported.serialize`) and, if
        `onnx` has it, `NAME.onnx`. `load` and the front ends take either. A folder that
        this function wrote is replaced, unless there are other files in it.

    Raises:
      ArgumentError: `params` does not match the function's first argument, or another
        argument is invalid.
      ExportError: see `Exported.serialize`; a function cannot be converted to ONNX.
      OSError: the file cannot be written.

    Example:
      >>> import tempfile
      >>> f = fxflow.jit(lambda params, x: x @ params["w"])
      >>> params = {"w": fnp.ones((3, 2))}
      >>> exported = fxflow.export.export(f)(params, fnp.ones((1, 3)))
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     save(f"{folder}/model.fx", exported, params=params)
      ...     load(f"{folder}/model.fx").call(fnp.ones((1, 3)))
      Array([[3., 3.]], dtype=float32)
    """
    functions = _functions(exported)
    first = next(iter(functions.values()))
    if beside is not None and (params is None or not folders.is_name(beside)):
        raise ArgumentError(
            "save: beside must be the name of a file in the same folder, for params; "
            f"got {beside!r}"
        )
    if compiled and len(functions) > 1:
        raise ArgumentError(
            "save: compiled=True is for a file with one function; this one has "
            f"{', '.join(functions)}"
        )
    if folder:
        _save_folder(path, functions, params, beside, compiled, vjp_order, onnx)
        return
    contents: list[tuple[str, list[Buffer]]] = []
    programs = {}
    for i, (name, function) in enumerate(functions.items()):
        whole, code = function.serialize(vjp_order), function.mlir_module_serialized
        contents.append((_part_name(i, name), [bytes(whole)]))
        digest = hashlib.sha256(code).digest()
        programs[name] = tables.Place(whole.index(code), len(code), digest)
    models = _onnx_models(functions, onnx)
    contents += [(f"onnx:{name}", [model]) for name, model in models.items()]
    described: dict[str, Any] = {"fxflow": __version__}
    if first.in_names:
        described["in_names"] = list(first.in_names)
    if isinstance(exported, Mapping):
        described["functions"] = [
            {"name": name, "in_names": list(function.in_names)}
            for name, function in functions.items()
        ]
    table = _Table(functions, programs)
    if params is not None:
        structure = _structure(functions, params)
        arrays = _named_arrays(functions, structure, params)
        parts = list[Buffer](safetensors.encode(arrays))
        table = _with_params(table, structure, arrays, parts)
        if beside is None:
            contents.append(("params", parts))
        else:
            sha256, size = _digest(parts)
            described["beside"] = {"name": beside, "size": size, "sha256": sha256}
            held = tables.Place(0, size, bytes.fromhex(sha256))
            table = table._replace(beside=beside, held=held)
            files.write(Path(path).parent / beside, *map(bytes, parts), durable=True)
    if compiled:
        described["compiled"], program = compile_program(first)
        contents.append(("compiled", [program]))
    files.write(path, *_laid_out(described, contents, table), durable=True)


def _save_folder(
    path: Path_,
    functions: Mapping[str, Exported],
    params: Any,
    beside: str | None,
    compiled: bool,
    vjp_order: int,
    onnx: Sequence[str],
) -> None:
    """Writes a folder instead of a file."""
    for name, given in (("beside", beside is not None), ("compiled", compiled)):
        if given:
            raise ArgumentError(f"save: folder=True excludes {name}, for a .fx file")
    held = None
    if params is not None:
        structure = _structure(functions, params)
        held = folders.Params(structure, _named_arrays(functions, structure, params))
    programs = {n: bytes(f.serialize(vjp_order)) for n, f in functions.items()}
    folders.write(path, functions, programs, _onnx_models(functions, onnx), held)


def _functions(exported: Any) -> dict[str, Exported]:
    """Returns the functions to save by name."""
    if isinstance(exported, Exported):
        return {exported.fun_name or "function": exported}
    if not isinstance(exported, Mapping):
        raise ArgumentError(f"save: expected an Exported, got {_describe(exported)}")
    tables.checked_names(exported)
    for name, function in exported.items():
        if not isinstance(function, Exported):
            raise ArgumentError(
                f"save: expected an Exported for {name}, got {_describe(function)}"
            )
    return dict(exported)


def _onnx_models(
    functions: Mapping[str, Exported], names: Sequence[str]
) -> dict[str, bytes]:
    """Returns functions as ONNX models, by name."""
    if isinstance(names, str) or not set(names) <= functions.keys():
        raise ArgumentError(
            f"save: onnx must be names of functions, of {', '.join(functions)}; got "
            f"{names!r}"
        )
    if not names:
        return {}
    convert = importlib.import_module("fxflow.export.onnx_models").onnx
    return {name: convert(functions[name]).model.SerializeToString() for name in names}


def _part_name(index: int, name: str) -> str:
    return f"program:{name}" if index else "program"


class _Table(NamedTuple):
    """What the table of a file is made from."""

    functions: Mapping[str, Exported]
    #: Where the StableHLO program of each function is in its part.
    programs: Mapping[str, tables.Place]
    params: tuple[Any, Sequence[Aval]] | None = None
    names: Sequence[str] = ()
    #: Start and size of each parameter in its safetensors file.
    arrays: Sequence[tuple[int, int]] = ()
    #: Name of the separate file, and the file.
    beside: str = ""
    held: tables.Place = tables.Place(0, 0, bytes(32))

    def encode(self, parts: Sequence[_Part], start: int) -> bytes:
        """Returns the table, given the places of the other parts."""
        known = {part.name: part for part in parts}
        programs = {
            name: place._replace(start=known[_part_name(i, name)].start + place.start)
            for i, (name, place) in enumerate(self.programs.items())
        }
        held = self.held
        if "params" in known:
            part = known["params"]
            held = tables.Place(part.start, part.size, bytes.fromhex(part.sha256))
        return tables.encode(
            self.functions,
            programs,
            self.params,
            self.names,
            [(begin + held.start, size) for begin, size in self.arrays],
            self.beside,
            held,
            start,
        )


def _with_params(
    table: _Table,
    params: tuple[Any, Sequence[Aval]],
    arrays: Mapping[str, Any],
    parts: Sequence[Buffer],
) -> _Table:
    """Adds parameters, whose places are in the header of their safetensors file."""
    places = safetensors.places(bytes(parts[0]), arrays)
    return table._replace(params=params, names=list(arrays), arrays=places)


def _describe(value: Any) -> str:
    """Describes a value given in place of an `Exported`."""
    if isinstance(value, bytes | bytearray | memoryview):
        return (
            "bytes; save takes the result of export(...), or of deserialize for the "
            "bytes of serialize"
        )
    return repr(value)


def _digest(parts: Sequence[Buffer]) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for part in parts:
        digest.update(part)
        size += len(part)
    return digest.hexdigest(), size


def _laid_out(
    described: dict[str, Any],
    contents: Sequence[tuple[str, list[Buffer]]],
    table: _Table | None = None,
) -> list[bytes]:
    """Returns the bytes of a file, in parts."""
    known = [(name, parts, *_digest(parts)) for name, parts in contents]
    length = 0
    # The parts' positions depend on the length of the header that lists them.
    for _ in range(8):
        at, places = _aligned(_HEAD.size + length), []
        for name, _, digest, size in known:
            places.append(_Part(name, at, size, digest))
            at = _aligned(at + size)
        last: list[Buffer] = [table.encode(places, at)] if table else []
        if last:
            digest, size = _digest(last)
            places.append(_Part("table", at, size, digest))
        listed = [part._asdict() for part in places]
        text = json.dumps({**described, "parts": listed}).encode()
        if len(text) == length:
            break
        length = len(text)
    written = [
        _HEAD.pack(FILE_MARK, _VERSION, length, hashlib.sha256(text).digest()) + text
    ]
    end = _HEAD.size + length
    held = [*(parts for _, parts, _, _ in known), last]
    for parts, part in zip(held, places):
        written += [bytes(part.start - end), *map(bytes, parts)]
        end = part.start + part.size
    return written


def _aligned(at: int) -> int:
    return -(-at // safetensors.ALIGNMENT) * safetensors.ALIGNMENT


# -- loading ---------------------------------------------------------------------------


def load(path: Path_, *, verify: bool = True, compiled: bool = False) -> Bundle:
    """Loads an exported function, with its parameters if the file has them.

    Args:
      path: path of the file, or of a folder that `save(folder=True)` wrote.
      verify: whether to read the parameters and check their digest. False leaves them
        on disk until they are used, for large parameters on a trusted disk. Everything
        else is always checked.
      compiled: whether to use the compiled program in the file, if it is for this
        processor and this version of the runtime. It is machine code: set this only for
        files that you trust. Calls within transformations use the portable program.

    Returns:
      A `Bundle`; its `call` takes the arguments that are not in the file.

    Raises:
      ExportError: the file is not a `.fx` file, is damaged, truncated or of another
        version, or its separate file of parameters is missing or differs.
      OSError: the file does not exist or cannot be read.

    Example:
      >>> load("/nowhere/model.fx")
      Traceback (most recent call last):
          ...
      FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/model.fx'
    """
    if isinstance(path, bytes | bytearray | memoryview):
        raise ArgumentError(
            "load: expected the path of a .fx file, got bytes; "
            "fxflow.export.deserialize reads the bytes of Exported.serialize"
        )
    if os.path.isdir(path):
        held = folders.read(path, verify)
        first = next(iter(held.functions.values()))
        params = held.arrays
        if params is not None:
            params = _params(held.functions.values(), params)
        return Bundle(first, params, held.version, held.functions)
    data = files.mapped(path)
    described, parts = _header(data, path)
    for name, part in parts.items():
        used = name.startswith("program") or (compiled and name == "compiled")
        if verify or used:
            _require(data[part.start : part.start + part.size], part.sha256, path, name)
    if "program" not in parts:
        raise ExportError(f"{path} has no program")
    functions = _loaded(described, parts, data, path)
    exported = next(iter(functions.values()))
    found: memoryview | None = None
    if "params" in parts:
        part = parts["params"]
        found = data[part.start : part.start + part.size]
    elif "beside" in described:
        found = _beside(described["beside"], path, verify)
    params = None
    if found is not None:
        try:
            arrays = safetensors.decode(found)
        except ValueError as error:
            raise ExportError(f"{path}: parameters: {error}") from None
        params = _params(functions.values(), arrays)
    machine = None
    if compiled and "compiled" in parts:
        part = parts["compiled"]
        code = bytes(data[part.start : part.start + part.size])
        machine = ready(exported, described.get("compiled"), code)
    version = str(described.get("fxflow", ""))
    return Bundle(exported, params, version, functions, machine)


def _loaded(
    described: dict[str, Any], parts: dict[str, _Part], data: memoryview, path: Path_
) -> dict[str, Exported]:
    """Returns the functions of a file by name."""
    listed = described.get("functions")
    try:
        entries = [
            (None if listed is None else str(entry["name"]), entry.get("in_names", ()))
            for entry in ([described] if listed is None else listed)
        ]
    except (TypeError, KeyError, AttributeError):
        entries = []
    functions = {}
    for i, (name, names) in enumerate(entries):
        part = parts.get(_part_name(i, str(name)))
        if part is None:
            raise ExportError(f"{path} has no program of the function {name}")
        found = deserialize(bytes(data[part.start : part.start + part.size]))
        if len(names) == len(found.in_avals):
            found = replace(found, in_names=tuple(map(str, names)))
        functions[found.fun_name or "function" if name is None else name] = found
    if not functions:
        raise ExportError(f"{path} is damaged: it lists no functions")
    return functions


def _header(data: memoryview, path: Path_) -> tuple[dict[str, Any], dict[str, _Part]]:
    """Returns the header and the parts of a file, after checking all but the parts."""
    if len(data) < _HEAD.size or bytes(data[:8]) != FILE_MARK:
        raise ExportError(f"{path} is not a .fx file{_instead(data)}")
    _, version, length, digest = _HEAD.unpack(data[: _HEAD.size])
    if version != _VERSION:
        raise ExportError(
            f"{path} has format version {version}; this fxflow, {__version__}, reads "
            f"version {_VERSION}"
        )
    text = data[_HEAD.size : _HEAD.size + length]
    if length > _LARGEST_HEADER or len(text) < length:
        raise ExportError(f"{path} is damaged or truncated")
    _require(text, digest.hex(), path, "the header")
    try:
        described = json.loads(bytes(text))
        parts = [_Part(**entry) for entry in described["parts"]]
        end = _HEAD.size + length
        for part in parts:
            start, size = int(part.start), int(part.size)
            # In order, without overlap, and nothing but zeros between them.
            if start < end or size < 0 or start - end >= safetensors.ALIGNMENT:
                raise ValueError(f"{part.name} is in the wrong place")
            if any(data[end:start]) or start + size > len(data):
                raise ValueError(f"{part.name} is truncated or moved")
            end = start + size
        if end != len(data):
            raise ValueError("its length does not match its header")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ExportError(f"{path} is damaged: {error}") from None
    return described, {part.name: part for part in parts}


def _instead(data: memoryview) -> str:
    """Returns a hint for a file that is not a `.fx` file."""
    try:
        records.decode(bytes(data))
    except ExportError:
        return ""
    return (
        ": it holds the bytes of Exported.serialize, which fxflow.export.deserialize "
        "reads; fxflow.export.save writes .fx files"
    )


def _require(data: memoryview, digest: str, path: Path_, what: str) -> None:
    if hashlib.sha256(data).hexdigest() != digest:
        raise ExportError(f"{path} is damaged: the digest of {what} differs")


def _beside(entry: Any, path: Path_, verify: bool) -> memoryview:
    try:
        name, size, digest = entry["name"], entry["size"], entry["sha256"]
    except (TypeError, KeyError):
        name = size = digest = None
    # An untrusted file must not make this process read files elsewhere.
    if not folders.is_name(name):
        raise ExportError(f"{path} does not name a file in its folder for parameters")
    other = Path(path).parent / name
    try:
        data = files.mapped(other)
    except OSError as error:
        raise ExportError(
            f"the parameters of {path} are in {other}, which cannot be read: "
            f"{error.strerror}"
        ) from None
    if len(data) != size:
        raise ExportError(f"{other} is not the file that {path} was written with")
    if verify:
        _require(data, str(digest), other, "the file")
    return data


# -- parameters ------------------------------------------------------------------------


def _structure(
    functions: Mapping[str, Exported], params: Any
) -> tuple[Any, Sequence[Aval]]:
    """Returns structure and types of the parameters: those of a first argument.

    Raises:
      ArgumentError: no function takes `params`.
    """
    given = tree.structure(params)
    named = list(functions.items())
    for _, function in named:
        found = tables.first_argument(function)
        if found is not None and found[0] == given:
            return found
    name, function = named[0]
    found = tables.first_argument(function)
    if found is None:
        raise ArgumentError(f"{name} takes no positional argument that could be params")
    raise ArgumentError(
        f"save: the first argument of {name} has the structure "
        f"{tree.written(found[0])}, but params has {tree.written(given)}"
    )


def _names(treedef: Any) -> list[str]:
    """Returns the name of each leaf of a tree in the file, such as `layers.0.w`."""
    indices = treedef.unflatten(range(treedef.num_leaves))
    names = [
        tree.keystr(path, simple=True, separator=".")
        for path, _ in tree.leaves_with_path(indices)
    ]
    if "__metadata__" in names:
        return [f"{i}:{name}" for i, name in enumerate(names)]
    return tables.unique(names)


def _named_arrays(
    functions: Mapping[str, Exported],
    structure: tuple[Any, Sequence[Aval]],
    params: Any,
) -> dict[str, Any]:
    treedef, avals = structure
    found = {}
    for name, leaf, aval in zip(
        _names(treedef), tree.leaves(params), avals, strict=True
    ):
        array = as_array(leaf, aval.dtype)
        if array.aval.shape != aval.shape or array.aval.dtype != aval.dtype:
            taker = next(iter(functions)) if len(functions) == 1 else "a function"
            raise ArgumentError(
                f"save: {taker} takes {aval} for {name}, but params has {array.aval}"
            )
        is_key = dtypes.is_key(aval.dtype)
        found[name] = np.asarray(random_unwrap(array) if is_key else array)
    return found


def _params(functions: Iterable[Exported], arrays: dict[str, Any]) -> Any:
    for exported in functions:
        first = tables.first_argument(exported)
        if first is not None and set(_names(first[0])) == arrays.keys():
            break
    else:
        raise ExportError("the parameters in the file are not those of the program")
    treedef, avals = first
    leaves = []
    for name, aval in zip(_names(treedef), avals, strict=True):
        array = arrays[name]
        given = Aval(array.shape, array.dtype)
        wanted = aval.physical if isinstance(aval, Aval) else aval
        if given != wanted:
            raise ExportError(
                f"the parameter {name} is {given}, but the program takes {aval}"
            )
        is_key = dtypes.is_key(aval.dtype)
        leaves.append(
            random_wrap(array, dtype=aval.dtype)
            if is_key
            else as_array(array, aval.dtype)
        )
    return treedef.unflatten(leaves)
