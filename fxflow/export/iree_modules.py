"""Compiles programs for other machines with IREE, and runs them with its runtime.

IREE's compiler is a separate program that reads StableHLO and writes one file with the
weights and the code for one kind of machine (`.vmfb`). IREE's runtime runs the file
without Python or fxflow. Both are PyPI packages (extra `iree`).
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Aval, dtypes
from fxflow.core.arrays.array import as_array
from fxflow.core.boundary import guard_methods
from fxflow.devices.process import cores
from fxflow.errors import ArgumentError, CompileError
from fxflow.export.programs import Program, leaves_of, lines_of, program_of
from fxflow.export.quantization import written_as_int8

_LOCAL = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
)


def _cpu(triple: str, cpu: str, *more: str) -> tuple[str, ...]:
    return (
        *_LOCAL,
        f"--iree-llvmcpu-target-triple={triple}",
        f"--iree-llvmcpu-target-cpu={cpu}",
        *more,
    )


#: Target → compiler options.
TARGETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "local": (*_LOCAL, "--iree-llvmcpu-target-cpu=host"),
        "x86-64": _cpu("x86_64-unknown-linux-gnu", "x86-64"),
        "arm64-linux": _cpu("aarch64-unknown-linux-gnu", "generic"),
        "arm64-android": _cpu("aarch64-unknown-linux-android29", "generic"),
        # RV64GC, the profile that Linux distributions target.
        "riscv64": _cpu(
            "riscv64-unknown-linux-gnu",
            "generic-rv64",
            "--iree-llvmcpu-target-abi=lp64d",
            "--iree-llvmcpu-target-cpu-features=+m,+a,+f,+d,+c",
        ),
        "vulkan": ("--iree-hal-target-device=vulkan",),
    }
)
#: Options for every program: keep 64-bit types.
_ALWAYS = (
    "--iree-input-type=stablehlo",
    "--iree-input-demote-f64-to-f32=false",
    "--iree-input-demote-i64-to-i32=false",
)
_X86 = ("x86_64", "amd64")
_HOSTS = {"x86-64": _X86, "arm64-linux": ("aarch64", "arm64"), "riscv64": ("riscv64",)}


@guard_methods
class IreeModule:
    """A function compiled by IREE.

    `iree` compiles one, `load_iree` loads a saved one. Calling it runs it with IREE's
    runtime, if it was compiled for this machine.

    Attributes:
      data: the file for IREE's runtime (`.vmfb`): code and weights.
      name: name of the function.
      target: the target that it was compiled for.
      in_tree: structure of `(args, kwargs)`.
      in_avals: types of the leaves of the arguments.
      out_tree: structure of the result.
      out_avals: types of its leaves.
      labels: names of the leaves of the arguments, for messages.
      kept: indices of the leaves that the compiled `main` takes, in order.
    """

    data: bytes
    in_avals: tuple[Aval, ...]
    in_tree: Any
    kept: tuple[int, ...]
    labels: tuple[str, ...]
    name: str
    out_avals: tuple[Aval, ...]
    out_tree: Any
    target: str

    def __init__(
        self,
        data: bytes,
        *,
        name: str,
        target: str,
        in_tree: Any,
        in_avals: Sequence[Aval],
        out_tree: Any,
        out_avals: Sequence[Aval],
        labels: Sequence[str],
        kept: Sequence[int],
    ) -> None:
        self.data, self.name, self.target = data, name, target
        self.in_tree, self.in_avals = in_tree, tuple(in_avals)
        self.out_tree, self.out_avals = out_tree, tuple(out_avals)
        self.labels, self.kept = tuple(labels), tuple(kept)

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(str, a)) for a in (self.in_avals, self.out_avals))
        size = f"{len(self.data):,} bytes for {self.target}"
        return f"<IreeModule {self.name}({ins}) -> ({outs}), {size}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program on this machine.

        Args:
          *args: positional arguments, of the structure and types of the compilation.
          **kwargs: keyword arguments, likewise.

        Returns:
          The function's result, with arrays as leaves.

        Raises:
          ArgumentError: structure or types differ, or the module is for another
            machine.
          ImportError: IREE's runtime is not installed (extra `iree`).
        """
        leaves = leaves_of(
            self.name, self.in_tree, self.in_avals, self.labels, args, kwargs
        )
        given = self._run(*(np.ascontiguousarray(leaves[i]) for i in self.kept))
        outs = given if isinstance(given, tuple | list) else (given,)
        arrays = []
        if self.out_avals:
            for out, aval in zip(outs, self.out_avals, strict=True):
                found = np.asarray(out.to_host()).reshape(aval.shape)
                # The runtime returns `bfloat16` and similar dtypes as raw bits.
                if found.dtype != aval.dtype:
                    found = found.view(aval.dtype)
                arrays.append(as_array(found, aval.dtype))
        return self.out_tree.unflatten(arrays)

    @cached_property
    def _run(self) -> Any:
        machine = platform.machine().lower()
        if self.target not in ("local", "vulkan") and (
            machine not in _HOSTS.get(self.target, ())
        ):
            raise ArgumentError(
                f"{self.name} was compiled for {self.target}, but this machine is "
                f"{machine}: save it and run it there, or compile for 'local'"
            )
        runtime = _runtime()
        driver = "vulkan" if self.target == "vulkan" else "local-task"
        if cores() == 1 and driver == "local-task":
            driver = "local-sync"
        try:
            device = runtime.get_device(driver)
        except (RuntimeError, ValueError) as error:
            raise ArgumentError(f"{self.name} needs {driver} here: {error}") from None
        context = runtime.SystemContext(config=runtime.Config(device=device))
        try:
            module = runtime.VmModule.copy_buffer(context.instance, self.data)
            context.add_vm_module(module)
        except (RuntimeError, ValueError) as error:
            raise ArgumentError(f"{self.name} cannot be loaded here: {error}") from None
        return context.modules[module.name].main

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the program, and a JSON description of its arguments and results.

        Args:
          path: path of the file for IREE's runtime, conventionally `.vmfb`; the
            description is written to `path` with `.json` appended.

        Raises:
          ArgumentError: the arguments or results have containers other than dicts,
            lists, tuples and None.

        Example:
          >>> module.save("f.vmfb")  # writes f.vmfb.json, too   # doctest: +SKIP
        """
        described = {
            "name": self.name,
            "target": self.target,
            "arguments": _described(self.in_avals, self.labels, self.kept),
            "results": _described(self.out_avals),
            "args": _written(self.in_tree, self.name),
            "result": _written(self.out_tree, self.name),
        }
        path = Path(path)
        path.write_bytes(self.data)
        beside = path.with_name(f"{path.name}.json")
        beside.write_text(json.dumps(described, indent=1), encoding="utf-8")


def iree(
    exported: Any,
    *,
    target: str = "local",
    quantize: str | None = None,
    options: Sequence[str] = (),
) -> IreeModule:
    """Compiles a function with IREE, for this machine or another.

    The module includes the arrays that the function captures: with
    `jit(lambda x: apply(params, x))` it has the weights, with `jit(apply)` it takes
    them as arguments.

    Args:
      exported: the result of `export(jit(f))(...)` or `jit(f).lower(...)`.
      target: `local`, this machine's CPU with all its features; `x86-64`, any such CPU;
        `arm64-linux`; `arm64-android`; `riscv64`; `vulkan`, a GPU by SPIR-V.
      quantize: `"int8"` stores captured weights with at least two axes in int8, with a
        scale for each channel (the last axis), except those of at most 4 kB; None:
        unchanged. An exported program already includes its weights: quantize the
        result of `jit(f).lower`, or the parameters (`quantize`).
      options: more options of `iree-compile`, such as
        `--iree-vulkan-target=adreno`.

    Returns:
      The compiled module, which can be saved, and called if it is for this machine.

    Raises:
      ArgumentError: the target is unknown; the function has effects, references,
        symbolic sizes or several devices; `quantize` is unknown or not possible.
      CompileError: IREE's compiler rejects an operation; the message has the compiler's
        error and the user's line.
      ImportError: IREE's compiler is not installed (extra `iree`).

    Example:
      >>> lowered = fxflow.jit(lambda x: {"double": 2 * x}).lower(fnp.zeros(3))
      >>> module = iree(lowered, target="arm64-android")  # doctest: +SKIP
      >>> module.save("double.vmfb")                      # doctest: +SKIP

    Source: IREE (`iree-compile`).
    """
    program = checked_program(exported, "iree", target, quantize)
    return IreeModule(
        compiled(program, (*TARGETS[target], *options)),
        name=program.name,
        target=target,
        in_tree=program.in_tree,
        in_avals=program.in_avals,
        out_tree=program.out_tree,
        out_avals=program.out_avals,
        labels=program.labels,
        kept=program.kept,
    )


def load_iree(path: str | os.PathLike[str]) -> IreeModule:
    """Loads a module that `IreeModule.save` wrote.

    Args:
      path: path of the file for IREE's runtime; its description is in the same folder.

    Returns:
      The module; namedtuples in its arguments and result have become tuples.

    Raises:
      ArgumentError: the description is malformed.
      FileNotFoundError: a file does not exist.
    """
    path = Path(path)
    text = path.with_name(f"{path.name}.json").read_text(encoding="utf-8")
    try:
        described = json.loads(text)
        arguments = described["arguments"]
        return IreeModule(
            path.read_bytes(),
            name=str(described["name"]),
            target=str(described["target"]),
            in_tree=tree.structure(_read(described["args"])),
            in_avals=list(map(_aval, arguments)),
            out_tree=tree.structure(_read(described["result"])),
            out_avals=list(map(_aval, described["results"])),
            labels=[str(a["label"]) for a in arguments],
            kept=[i for i, a in enumerate(arguments) if a["kept"]],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ArgumentError(
            f"{path}.json does not describe a module: {error}"
        ) from None


# -- the compiler ----------------------------------------------------------------------


def checked_program(
    exported: Any, where: str, target: str, quantize: str | None
) -> Program:
    """Returns the program to compile, after checking the arguments.

    Args:
      exported: as for `iree`.
      where: name of the calling function, for messages.
      target: as for `iree`.
      quantize: as for `iree`.

    Raises:
      ArgumentError: as for `iree`.
    """
    if target not in TARGETS:
        raise ArgumentError(
            f"{where}: unknown target {target!r}: use {_listed(TARGETS)}"
        )
    if quantize not in (None, "int8"):
        raise ArgumentError(
            f"{where}: quantize must be 'int8' or None, got {quantize!r}"
        )
    program = program_of(exported, where, written_as_int8 if quantize else None)
    if quantize and program.graph is None:
        raise ArgumentError(
            f"{where}: an exported program already includes its weights: quantize the "
            "result of jit(f).lower(...)"
        )
    for aval in program.out_avals:
        if dtypes.is_key(aval.dtype):
            raise ArgumentError(
                f"{where}: {program.name} returns keys ({aval}): return their key_data"
            )
    return program


def compiled(program: Program, options: Sequence[str]) -> bytes:
    """Compiles a program with IREE's compiler.

    Args:
      program: the program.
      options: compiler options, in addition to those for every program.

    Raises:
      CompileError: the compiler rejects the program.
      ImportError: the compiler is not installed.
    """
    ran = subprocess.run(
        [_compiler(), "-", "-o", "-", *_ALWAYS, *options],
        input=program.text.encode(),
        capture_output=True,
        check=False,
    )
    if ran.returncode:
        stderr = ran.stderr.decode(errors="replace")
        error = CompileError(
            f"{program.name}: IREE's compiler failed: {_first_error(stderr, program)}"
        )
        error.module_text = program.text
        raise error
    return ran.stdout


def _compiler() -> str:
    try:
        binaries = importlib.import_module("iree.compiler.tools.binaries")
    except ImportError:
        raise ImportError(
            "iree needs IREE's compiler: pip install 'fxflow[iree]'"
        ) from None
    return str(binaries.find_tool("iree-compile"))


def _runtime() -> Any:
    try:
        return importlib.import_module("iree.runtime")
    except ImportError:
        raise ImportError(
            "calling an IreeModule needs IREE's runtime: pip install 'fxflow[iree]'"
        ) from None


def _first_error(stderr: str, program: Program) -> str:
    """Returns the compiler's first error, with the user's line."""
    line = next((t for t in stderr.splitlines() if "error:" in t), stderr.strip()[:300])
    words = line.partition("error:")[2].strip() or line
    # The message may include the whole operation with its types and weights.
    words = words if len(words) <= 300 else f"{words[:300]}…"
    where = re.search(r'loc\("([^"]+)"', stderr)
    lines = lines_of(program, where[1]) if where else []
    return f"{words} (from {', or '.join(lines)})" if lines else words


def _listed(names: Any) -> str:
    *most, last = map(repr, names)
    return f"{', '.join(most)} or {last}"


# -- descriptions ----------------------------------------------------------------------


def _described(
    avals: Sequence[Aval], labels: Sequence[str] = (), kept: Sequence[int] = ()
) -> list[dict[str, Any]]:
    found = []
    for i, aval in enumerate(avals):
        one = {"shape": list(aval.shape), "dtype": str(aval.dtype)}
        more = {"label": labels[i], "kept": i in kept} if labels else {}
        found.append({**more, **one})
    return found


def _aval(described: dict[str, Any]) -> Aval:
    return Aval(tuple(described["shape"]), dtypes.dtype(described["dtype"]))


def _written(treedef: Any, name: str) -> Any:
    """Returns a structure as JSON: leaves are `"*"`, tuples lists under `"tuple"`."""

    def visit(value: Any) -> Any:
        if value is None or value == "*":
            return value
        if type(value) is list:
            return [visit(v) for v in value]
        if isinstance(value, tuple):
            return {"tuple": [visit(v) for v in value]}
        if type(value) is dict:
            if all(isinstance(key, str) for key in value):
                return {"dict": {key: visit(v) for key, v in value.items()}}
            raise ArgumentError(
                f"{name}: save: dicts must have string keys, got {value}"
            )
        raise ArgumentError(
            f"{name}: save: descriptions do not support {type(value).__name__}: use "
            "dicts, lists and tuples"
        )

    return visit(treedef.unflatten(["*"] * treedef.num_leaves))


def _read(written: Any) -> Any:
    if written is None or written == "*":
        return written
    if isinstance(written, list):
        return [_read(v) for v in written]
    ((kind, parts),) = written.items()
    if kind == "tuple":
        return tuple(_read(v) for v in parts)
    return {key: _read(v) for key, v in parts.items()}
