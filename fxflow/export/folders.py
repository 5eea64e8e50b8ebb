"""Exported functions as a folder of plain files, for programs that read no `.fx` file.

    signature.json      names, dtypes and shapes of arguments, results and parameters
    signature.bin       the same for the front end in C: the table of `tables.py`
    NAME.mlirbc         a function as portable StableHLO bytecode
    NAME.jax            the same as the bytes of `Exported.serialize`, which JAX reads
    NAME.onnx           the same as an ONNX model, if there is one
    params.safetensors  the parameters, if there are any

The file of parameters contains the digest of its arrays, so that it can be replaced
alone, in one step.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fxflow._version import __version__
from fxflow.core import safetensors
from fxflow.core.arrays import Aval
from fxflow.devices import files
from fxflow.errors import ArgumentError, ExportError
from fxflow.export import tables
from fxflow.export.exported import Exported, deserialize

_VERSION = 1
_SIGNATURE, _TABLE, _PARAMS = "signature.json", "signature.bin", "params.safetensors"


class Params(NamedTuple):
    """Parameters to write.

    Attributes:
      structure: their structure and types.
      arrays: by name.
    """

    structure: tuple[Any, Sequence[Aval]]
    arrays: Mapping[str, Any]


def is_name(name: Any) -> bool:
    """Returns whether a value is a file name without a folder."""
    return (
        isinstance(name, str)
        and name not in ("", ".", "..")
        and not any(c in name for c in "/\\:\0")
    )


# -- writing ---------------------------------------------------------------------------


def write(
    path: str | os.PathLike[str],
    functions: Mapping[str, Exported],
    programs: Mapping[str, bytes],
    models: Mapping[str, bytes],
    params: Params | None,
) -> None:
    """Writes a folder, or replaces one that this function wrote.

    Args:
      path: path of the folder.
      functions: by name.
      programs: their `Exported.serialize`.
      models: some of them as ONNX models.
      params: the parameters; None: there are none.

    Raises:
      ArgumentError: the name of a function cannot be one of a file, or `path` is
        something else, or has files that this function did not write.
      OSError: the folder cannot be written.
    """
    path = Path(os.path.realpath(path))  # a link stays one
    for name in functions:
        if not is_name(name):
            raise ArgumentError(
                f"save: with folder=True, {name!r} must be usable as a file name"
            )
    if os.path.lexists(path):
        _require_ours(path)
    parts: dict[str, Sequence[bytes | memoryview]] = {}
    for name, function in functions.items():
        parts[f"{name}.jax"] = [programs[name]]
        parts[f"{name}.mlirbc"] = [function.mlir_module_serialized]
    parts |= {f"{name}.onnx": [model] for name, model in models.items()}
    beside, held, places = "", tables.Place(0, 0, bytes(32)), list[tuple[int, int]]()
    if params:
        parts[_PARAMS] = encoded = safetensors.encode(params.arrays, digest=True)
        head = bytes(encoded[0])
        size = sum(map(len, encoded))
        held = tables.Place(0, size, safetensors.layout_digest(head))
        beside, places = _PARAMS, safetensors.places(head, params.arrays)
    structure = params.structure if params else None
    names = list(params.arrays) if params else []
    code = {
        name: tables.Place(0, len(data), hashlib.sha256(data).digest())
        for name, data in (
            (name, function.mlir_module_serialized)
            for name, function in functions.items()
        )
    }
    parts[_TABLE] = [
        tables.encode(functions, code, structure, names, places, beside, held, 0)
    ]
    signature = _signature(functions, structure, names)
    parts[_SIGNATURE] = [json.dumps(signature, indent=1).encode() + b"\n"]
    with files.replacing(path) as folder:
        for file, data in parts.items():
            files.write(folder / file, *data, durable=True)


def _require_ours(path: Path) -> None:
    """Refuses to replace anything but a folder with the files that `write` writes."""
    try:
        described = json.loads((path / _SIGNATURE).read_bytes())
        names = [str(entry["name"]) for entry in described["functions"]]
        ours = {"version", "fxflow", "params"} <= described.keys()
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        ours = False
    if not ours:
        raise ArgumentError(
            f"save: {path} exists and is not a folder that save wrote; it is kept"
        )
    known = {_SIGNATURE, _TABLE, _PARAMS}
    known |= {f"{name}.{kind}" for name in names for kind in ("jax", "mlirbc", "onnx")}
    for file in sorted(path.iterdir()):
        unfinished = files.TEMPORARY.fullmatch(file.name)
        if (file.name not in known and not unfinished) or not file.is_file():
            raise ArgumentError(
                f"save: {path} has {file.name}, which save did not write; it is kept"
            )


def _signature(
    functions: Mapping[str, Exported],
    params: tuple[Any, Sequence[Aval]] | None,
    names: Sequence[str],
) -> dict[str, Any]:
    listed = []
    for name, exported in functions.items():
        used = tables.role(exported, params)
        count = len(names) if used.takes else 0
        labels = tables.argument_names(exported)
        listed.append(
            {
                "name": name,
                "platforms": list(exported.platforms),
                "devices": exported.nr_devices,
                "inputs": [
                    _described(label, aval, names[i] if i < count else None)
                    | {"taken": i in exported.module_kept_var_idx}
                    for i, (label, aval) in enumerate(zip(labels, exported.in_avals))
                ],
                "outputs": [
                    _described(*new)
                    for new in (
                        *zip(names, exported.out_avals[: used.returns], names),
                        *(
                            (label, aval, None)
                            for label, aval in zip(
                                used.names, exported.out_avals[used.returns :]
                            )
                        ),
                    )
                ],
            }
        )
    kinds = zip(names, params[1] if params else ())
    return {
        "version": _VERSION,
        "fxflow": __version__,
        "params": [_described(name, aval) for name, aval in kinds],
        "functions": listed,
    }


def _described(name: str, aval: Aval, *param: str | None) -> dict[str, Any]:
    held = aval.physical
    shape = [n if isinstance(n, int) else str(n) for n in held.shape]
    found = {"name": name, "dtype": held.dtype.name, "shape": shape}
    return {**found, "param": param[0]} if param else found


# -- reading ---------------------------------------------------------------------------


class Contents(NamedTuple):
    """What a folder has.

    Attributes:
      functions: by name.
      arrays: the parameters by name; None: there are none.
      version: version of fxflow that wrote it.
    """

    functions: dict[str, Exported]
    arrays: dict[str, Any] | None
    version: str


def read(path: str | os.PathLike[str], verify: bool) -> Contents:
    """Reads a folder.

    Args:
      path: path of the folder.
      verify: whether to read the parameters and check their digest.

    Raises:
      ExportError: a file is missing, damaged or of another version.
      OSError: a file cannot be read.
    """
    path = Path(path)
    try:
        text = (path / _SIGNATURE).read_bytes()
    except FileNotFoundError:
        raise ExportError(
            f"{path} is not a folder of an exported function: it has no {_SIGNATURE}"
        ) from None
    try:
        described = json.loads(text)
        version = described["version"]
        if version != _VERSION:
            raise ExportError(
                f"{path} has format version {version}; this fxflow, {__version__}, "
                f"reads version {_VERSION}"
            )
        listed = [
            (entry["name"], tuple(str(given["name"]) for given in entry["inputs"]))
            for entry in described["functions"]
        ]
        has_params = bool(described["params"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ExportError(f"{path / _SIGNATURE} is damaged: {error!r}") from None
    functions = {}
    for name, names in listed:
        # A name must not make this process read files elsewhere.
        if not is_name(name):
            raise ExportError(f"{path / _SIGNATURE} is damaged: the function {name!r}")
        found = deserialize(_bytes_of(path / f"{name}.jax"))
        if len(names) == len(found.in_avals):
            found = replace(found, in_names=names)
        functions[name] = found
    if not functions:
        raise ExportError(f"{path / _SIGNATURE} is damaged: it lists no functions")
    arrays = None
    if has_params:
        try:
            data = files.mapped(path / _PARAMS)
        except FileNotFoundError:
            raise ExportError(f"{path} has no {_PARAMS}") from None
        try:
            arrays = safetensors.decode(data, verify=verify)
        except ValueError as error:
            raise ExportError(f"{path / _PARAMS}: {error}") from None
    return Contents(functions, arrays, str(described.get("fxflow", "")))


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ExportError(f"{path.parent} has no {path.name}") from None
