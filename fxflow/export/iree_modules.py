"""IREE: a program compiled for other machines, run here through IREE's runtime.

The compiler is a program of its own, which reads StableHLO and writes one file: code
for one kind of machine and the weights (`.vmfb`). The runtime needs neither Python nor
fxflow where the file goes. Both are packages of PyPI (extra `iree`).
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


#: Each target with the compiler's options for it.
TARGETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "local": (*_LOCAL, "--iree-llvmcpu-target-cpu=host"),
        "x86-64": _cpu("x86_64-unknown-linux-gnu", "x86-64"),
        "arm64-linux": _cpu("aarch64-unknown-linux-gnu", "generic"),
        "arm64-android": _cpu("aarch64-unknown-linux-android29", "generic"),
        # The profile that distributions are built for: RV64GC.
        "riscv64": _cpu(
            "riscv64-unknown-linux-gnu",
            "generic-rv64",
            "--iree-llvmcpu-target-abi=lp64d",
            "--iree-llvmcpu-target-cpu-features=+m,+a,+f,+d,+c",
        ),
        "vulkan": ("--iree-hal-target-device=vulkan",),
    }
)
#: What every program is compiled with: numbers keep their 64 bits.
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

    `iree` makes one, `load_iree` reads a saved one. Calling it runs it on this machine
    through IREE's runtime, if it is for this machine.

    Attributes:
      data: the file for IREE's runtime (`.vmfb`): code and weights.
      name: of the function.
      target: that it was compiled for.
      in_tree: structure of `(args, kwargs)`.
      in_avals: types of the leaves of the arguments.
      out_tree: structure of the result.
      out_avals: types of its leaves.
      labels: what messages call the leaves of the arguments.
      kept: which of them the compiled `main` takes, in this order.
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
          *args: of the structure and types that it was compiled for.
          **kwargs: likewise.

        Returns:
          The function's result, of arrays.

        Raises:
          ArgumentError: structure or types differ, or it is for another machine.
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
                # The runtime knows no `bfloat16` and the like by name: by their bits.
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
                f"{self.name} was compiled for {self.target} and this machine is "
                f"{machine}: save it, take the file there, or compile for 'local'"
            )
        runtime = _runtime()
        driver = "vulkan" if self.target == "vulkan" else "local-task"
        if len(os.sched_getaffinity(0)) == 1 and driver == "local-task":
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
        """Writes the program, and beside it what it takes and gives.

        Args:
          path: of the file for IREE's runtime, by custom `.vmfb`; the description is
            written to `path` with `.json` after it.

        Raises:
          ArgumentError: the structure of arguments or result has containers other than
            dicts, lists, tuples and None.

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

    What the function captures is inside: `jit(lambda x: apply(params, x))` gives a file
    with the weights, `jit(apply)` takes them as arguments.

    Args:
      exported: what `export(jit(f))(...)` or `jit(f).lower(...)` gives.
      target: `local`, this machine's CPU with all that it can; `x86-64`, any of its
        kind; `arm64-linux`; `arm64-android`; `riscv64`; `vulkan`, a GPU by SPIR-V.
      quantize: `"int8"` keeps captured weights of two axes or more in 8 bits, with a
        scale for each channel (the last axis), but for those of at most 4 kB; None: as
        they are. What was exported has its weights written into it already: quantise
        what `jit(f).lower` gives, or the parameters (`quantize`).
      options: more options of `iree-compile`, such as
        `--iree-vulkan-target=adreno`.

    Returns:
      The compiled module: bytes, which can be saved, and called here if it is for this
      machine.

    Raises:
      ArgumentError: the target is unknown; the function has effects, references,
        symbolic sizes or several devices; `quantize` is unknown or not possible.
      CompileError: IREE's compiler refuses an operation; the message has its words and
        the line of the operation.
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
    """Reads a module that `IreeModule.save` wrote.

    Args:
      path: of the file for IREE's runtime; its description lies beside it.

    Returns:
      The module, with the arguments' and result's structure that it had; named tuples
      have become tuples.

    Raises:
      ArgumentError: the description is not one.
      FileNotFoundError: a file is not there.
    """
    path = Path(path)
    text = path.with_name(f"{path.name}.json").read_text(encoding="utf-8")
    try:
        told = json.loads(text)
        arguments = told["arguments"]
        return IreeModule(
            path.read_bytes(),
            name=str(told["name"]),
            target=str(told["target"]),
            in_tree=tree.structure(_read(told["args"])),
            in_avals=list(map(_aval, arguments)),
            out_tree=tree.structure(_read(told["result"])),
            out_avals=list(map(_aval, told["results"])),
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
    """Returns the program that is to be compiled.

    Args:
      exported: as of `iree`.
      where: the function that asks, for messages.
      target: as of `iree`.
      quantize: as of `iree`.

    Raises:
      ArgumentError: as `iree`.
    """
    if target not in TARGETS:
        raise ArgumentError(
            f"{where}: unknown target {target!r}: use {_listed(TARGETS)}"
        )
    if quantize not in (None, "int8"):
        raise ArgumentError(f"{where}: quantize is 'int8' or None, got {quantize!r}")
    program = program_of(exported, where, written_as_int8 if quantize else None)
    if quantize and program.graph is None:
        raise ArgumentError(
            f"{where}: the weights of what was exported are in its program already: "
            "quantise what jit(f).lower(...) gives"
        )
    for aval in program.out_avals:
        if dtypes.is_key(aval.dtype):
            raise ArgumentError(
                f"{where}: {program.name} returns keys ({aval}): return their key_data"
            )
    return program


def compiled(program: Program, options: Sequence[str]) -> bytes:
    """Returns what IREE's compiler makes of a program.

    Args:
      program: to compile.
      options: of the compiler, besides those that every program has.

    Raises:
      CompileError: the compiler refuses it.
      ImportError: there is no compiler.
    """
    ran = subprocess.run(
        [_compiler(), "-", "-o", "-", *_ALWAYS, *options],
        input=program.text.encode(),
        capture_output=True,
        check=False,
    )
    if ran.returncode:
        told = ran.stderr.decode(errors="replace")
        error = CompileError(
            f"{program.name}: IREE refuses it: {_words(told, program)}"
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
            "running what iree compiled needs IREE's runtime: "
            "pip install 'fxflow[iree]'"
        ) from None


def _words(told: str, program: Program) -> str:
    """Returns the compiler's first complaint, with the user's line."""
    line = next((t for t in told.splitlines() if "error:" in t), told.strip()[:300])
    words = line.partition("error:")[2].strip() or line
    # The operation stands there in full, with its types, and its weights.
    words = words if len(words) <= 300 else f"{words[:300]}…"
    where = re.search(r'loc\("([^"]+)"', told)
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


def _aval(told: dict[str, Any]) -> Aval:
    return Aval(tuple(told["shape"]), dtypes.dtype(told["dtype"]))


def _written(treedef: Any, name: str) -> Any:
    """Returns a structure for JSON: leaves are `"*"`, tuples lists under `"tuple"`."""

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
                f"{name}: save: dicts have strings as keys, got {value}"
            )
        raise ArgumentError(
            f"{name}: save: {type(value).__name__} has no place in a description: "
            "take and give dicts, lists and tuples"
        )

    return visit(treedef.unflatten(["*"] * treedef.num_leaves))


def _read(told: Any) -> Any:
    if told is None or told == "*":
        return told
    if isinstance(told, list):
        return [_read(v) for v in told]
    ((kind, parts),) = told.items()
    if kind == "tuple":
        return tuple(_read(v) for v in parts)
    return {key: _read(v) for key, v in parts.items()}
