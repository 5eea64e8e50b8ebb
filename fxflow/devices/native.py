"""fxflow's own kernels for XLA:CPU, compiled by LLVM (extra `kernels`).

`llvmlite` compiles LLVM IR for this processor; the functions are registered with XLA as
typed FFI handlers. Without `llvmlite`, or on a processor or system without a kernel,
XLA compiles the programs unchanged.

The disk cache of compiled programs also keeps this machine code.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading

from fxflow._config import config
from fxflow.devices import cache, contractions
from fxflow.devices.contractions import Tile
from fxflow.devices.ffi import register_ffi_target

_lock = threading.Lock()
# Empty until the first call of `kernel_tile`.
_tile: list[Tile | None] = []


def kernel_tile() -> Tile | None:
    """Returns the tile of the kernel of `contractions`, or None if there is no kernel.

    The first call compiles and registers it.
    """
    if not _tile:
        with _lock:
            if not _tile:
                _tile.append(_registered())
    return _tile[0]


def _registered() -> Tile | None:
    if os.name != "posix" or importlib.util.find_spec("llvmlite") is None:
        return None
    import llvmlite
    from llvmlite import binding as llvm

    triple = llvm.get_process_triple()
    features = llvm.get_host_cpu_features()
    tile = contractions.tile_for(dict(features), triple)
    if tile is None:
        return None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    processor = llvm.get_host_cpu_name(), features.flatten()
    machine = llvm.Target.from_triple(triple).create_target_machine(*processor, opt=3)
    text = contractions.ir(tile)
    known = " ".join(("llvmlite", llvmlite.__version__, triple, *processor, text))
    key = cache.sha256(known.encode()).digest()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    if config.cache:
        engine.set_object_cache(
            lambda module, code: cache.store(key, code), lambda module: cache.load(key)
        )
    engine.finalize_object()
    handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    address = engine.get_function_address(contractions.TARGET)
    register_ffi_target(contractions.TARGET, handler(address))
    engine.detach()  # XLA keeps the address for the life of the process
    return tile
