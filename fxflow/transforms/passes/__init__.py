"""Graph passes: a traced graph is rewritten before XLA gets it (`pipeline`).

A pass is imported when it first runs: what is loaded compiled needs none.
"""

import importlib as _importlib
from typing import Any as _Any

from fxflow._names import answer as _answer

#: Where each pass is, in the order in which they run.
PASSES = {
    "join_scatters": "scatters",
    "scatter_sums": "sums",
    "pick_products": "picks",
    "fuse_rows": "rows",
    "flatten_products": "flattening",
    "split_loops": "loops",
    "recompute_residuals": "residuals",
    "pack_products": "packing",
    "contract_convolutions": "convolutions",
    "compile_kernels": "kernels",
}
#: What runs in the place of a pass for an NVIDIA GPU.
GPU_PASSES = {"compile_kernels": "compile_gpu_kernels"}


def _take(name: str) -> _Any:
    module = _MODULES[name]
    return getattr(_importlib.import_module(f"{__name__}.{module}"), name)


_MODULES = {
    **PASSES,
    **{new: PASSES[old] for old, new in GPU_PASSES.items()},
    # They run where the partitioner divides the work.
    "divide_kernels": "dividing",
    "fuse_divided_rows": "rows",
    "join_maps": "joining",
}
_answer(globals(), ("PASSES", "GPU_PASSES"), _MODULES, _take)
