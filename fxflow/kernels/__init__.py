"""Kernels: functions on blocks of arrays, differentiable and vectorized like others."""

from fxflow.kernels.body import (
    cdiv, dot, ds, load, loop, num_programs, program_id, store, when,
)  # fmt: skip
from fxflow.kernels.calling import BlockSpec, call
from fxflow.kernels.checking import check
from fxflow.kernels.explaining import explain
from fxflow.kernels.notation import kernel, like
from fxflow.kernels.tuning import Tuned, tune, tuned

__all__ = [
    "BlockSpec", "Tuned", "call", "cdiv", "check", "dot", "ds", "explain", "kernel",
    "like", "load", "loop", "num_programs", "program_id", "store", "tune", "tuned",
    "when",
]  # fmt: skip
