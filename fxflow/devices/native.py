"""fxflow's own kernels for XLA:CPU, compiled by LLVM (extra `kernels`).

`llvmlite` compiles LLVM IR for this processor; the functions are registered with XLA as
typed FFI handlers. Without `llvmlite`, or on a processor or system without a kernel,
XLA compiles the programs unchanged.

The disk cache of compiled programs also keeps this machine code.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import threading
import warnings
from typing import Any, NamedTuple

from fxflow._config import config
from fxflow.devices import cache, contractions
from fxflow.devices.contractions import Tile
from fxflow.devices.ffi import register_ffi_target

_lock = threading.RLock()
#: Targets that are registered.
_known: set[str] = set()


class _Compiler(NamedTuple):
    """LLVM for this processor.

    Attributes:
      machine: LLVM's target machine.
      about: everything about it that determines the machine code.
      tile: of the kernel of `contractions`, or None if it has none.
    """

    machine: Any
    about: str
    tile: Tile | None


@functools.lru_cache(1)
def _compiler() -> _Compiler | None:
    if os.name != "posix" or importlib.util.find_spec("llvmlite") is None:
        return None
    try:
        import llvmlite
        from llvmlite import binding as llvm
    except (ImportError, OSError) as error:
        warnings.warn(
            f"llvmlite is installed, but cannot be loaded ({error}): programs run "
            "without fxflow's kernels; install it again (pip install fxflow[kernels])",
            stacklevel=2,
        )
        return None
    triple = llvm.get_process_triple()
    features = llvm.get_host_cpu_features()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    processor = llvm.get_host_cpu_name(), features.flatten()
    machine = llvm.Target.from_triple(triple).create_target_machine(*processor, opt=3)
    about = " ".join(("llvmlite", llvmlite.__version__, triple, *processor))
    return _Compiler(machine, about, contractions.tile_for(dict(features), triple))


def kernel_tile() -> Tile | None:
    """Returns the tile of the kernel of `contractions`, or None if there is no kernel.

    The first call compiles and registers it.
    """
    with _lock:
        compiler = _compiler()
        if compiler is None or compiler.tile is None:
            return None
        if contractions.TARGET not in _known:
            register_kernel(
                contractions.TARGET, contractions.ir(compiler.tile), vectorize=False
            )
        return compiler.tile


def vector_lanes() -> int:
    """Returns the numbers of float32 in a vector of this processor; 0: no kernels."""
    with _lock:
        compiler = _compiler()
    return compiler.tile.lanes if compiler and compiler.tile else 0


def compiler_version() -> str:
    """Returns what machine code depends on; empty without a compiler."""
    with _lock:
        compiler = _compiler()
    return compiler.about if compiler else ""


def register_kernel(target: str, text: str, *, vectorize: bool = True) -> None:
    """Compiles a module and registers its handler with XLA, once for each target.

    Args:
      target: name of the function in the module that XLA calls.
      text: of the module.
      vectorize: whether LLVM's passes run over the module, which vectorize loops.
    """
    with _lock:
        if target in _known:
            return
        from llvmlite import binding as llvm

        compiler = _compiler()
        assert compiler is not None
        known = f"{compiler.about} {vectorize} {text}"
        key = cache.sha256(known.encode()).digest()
        code = cache.load(key) if config.cache else None
        if code is None:
            module = llvm.parse_assembly(text)
            if vectorize:
                optimize(module, compiler.machine)
            code = compiler.machine.emit_object(module)
            if config.cache:
                cache.store(key, code)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), compiler.machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
        register_ffi_target(target, handler(engine.get_function_address(target)))
        engine.detach()  # XLA keeps the address for the life of the process
        _known.add(target)


def optimize(module: Any, machine: Any) -> None:
    """Runs LLVM's passes of level 3 over a module.

    Args:
      module: that llvmlite has parsed.
      machine: the target machine.
    """
    from llvmlite import binding as llvm

    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.loop_interleaving = True
    options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
