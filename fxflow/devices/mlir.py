"""Modules of the MLIR bindings, for the few functions of the runtime that need them.

Importing this module takes 16 ms: import it only where it is needed.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo


def _new_context() -> Any:
    context = ir.Context()
    dialects = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(dialects)
    context.append_dialect_registry(dialects)
    context.load_all_available_dialects()
    chlo.register_dialect(context)
    stablehlo.register_dialect(context)
    sdy.register_dialect(context)
    return context


_context = _new_context()


def parse(module: str | bytes) -> Any:
    """Returns the module of MLIR text or bytecode.

    Raises:
      ValueError: it is not well-formed.
    """
    try:
        return ir.Module.parse(module, _context)
    except ir.MLIRError as error:
        raise ValueError(str(error)) from None
