"""The cases, one file a family."""

from . import (
    dispatch,
    eager,
    gpu,
    kernels,
    many_devices,
    start,
    torch_eager,
    torch_training,
    tracing,
    training,
    two_processes,
)
from .library import Cases, load


def collect(library: str) -> Cases:
    """The cases that `library` takes part in, in the order in which they are shown."""
    if library == "torch":
        return {
            **start.cases("torch"),
            **torch_eager.cases(),
            **torch_training.cases(),
            **gpu.torch_cases(),
            **kernels.torch_cases(),
            **two_processes.cases("torch"),
        }
    loaded = load(library)
    return {
        **start.cases(library),
        **eager.cases(loaded),
        **dispatch.cases(loaded),
        **tracing.cases(loaded),
        **training.cases(loaded),
        **gpu.cases(loaded),
        **kernels.cases(loaded),
        **many_devices.cases(loaded),
        **two_processes.cases(library),
    }
