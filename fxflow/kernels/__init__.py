"""Kernels: functions on blocks of arrays, differentiable and vectorized like others."""

from fxflow.kernels.body import (
    cdiv, dot, ds, load, loop, num_programs, program_id, store, when,
)  # fmt: skip
from fxflow.kernels.calling import BlockSpec, call
from fxflow.kernels.checking import check
from fxflow.kernels.explaining import explain
from fxflow.kernels.notation import kernel, like

__all__ = [
    "BlockSpec", "call", "cdiv", "check", "dot", "ds", "explain", "kernel", "like",
    "load", "loop", "num_programs", "program_id", "store", "when",
]  # fmt: skip
