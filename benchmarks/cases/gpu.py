"""What is measured on a GPU only: fused attention, models that fill it, memory."""

from collections.abc import Callable
from typing import Any

import numpy

from . import convnets, loads, models, torch_training
from .library import Case, Cases, Library, nbytes_of, timed
from .tracing import put
from .training import MODELS, step_of, stepping

#: Batch, positions, heads and features of attention.
SHAPE = 4, 4096, 16, 128
LARGE = {"layers": 12, "size": 768, "heads": 12, "batch": 8, "length": 1024}


def attention(library: Library, implementation: str, gradient: bool) -> Any:
    """Measures causal attention of 16 heads over 4,096 positions, `bf16`."""
    root, np, nn = library.root, library.np, library.nn
    rng = numpy.random.default_rng(0)
    arrays = [np.asarray(rng.standard_normal(SHAPE), "bfloat16") for _ in range(3)]

    def attend(*arrays: Any) -> Any:
        return nn.dot_product_attention(
            *arrays, is_causal=True, implementation=implementation
        )

    def loss(*arrays: Any) -> Any:
        return np.sum(attend(*arrays).astype("float32"))

    call = root.jit(root.grad(loss, argnums=(0, 1, 2)) if gradient else attend)
    return timed(lambda: call(*arrays), root.block_until_ready)


def torch_attention(gradient: bool) -> Any:
    """Measures the same in PyTorch."""
    import torch

    batch, length, heads, size = SHAPE
    shape = batch, heads, length, size
    arrays = [
        torch.randn(shape, dtype=torch.bfloat16, requires_grad=gradient)
        for _ in range(3)
    ]
    attend = torch.nn.functional.scaled_dot_product_attention

    def call() -> Any:
        out = attend(*arrays, is_causal=True)
        return torch.autograd.grad(out.float().sum(), arrays) if gradient else out

    return timed(call, lambda _: torch.cuda.synchronize())


def memory(library: Library, maker: Callable[..., models.Model]) -> Any:
    """Gives the megabytes that a step needs besides its arguments."""
    model = maker(library)
    params, batch = put(library, model.params), put(library, model.batch)
    compiled = step_of(library, model).lower(params, *batch).compile()
    nbytes = nbytes_of(compiled, "temp_size_in_bytes")
    return lambda: nbytes / 1e6


def large(library: Library) -> models.Model:
    """A transformer of the size of GPT-2, the small one."""
    return models.transformer(library, **LARGE)


def resnet(library: Library) -> models.Model:
    """ResNet-50 on 64 images of 224 × 224."""
    return models.resnet50(library, batch=64, size=224)


def cases(library: Library) -> Cases:
    """Returns no cases where the first device is not a GPU."""
    if library.root.devices()[0].platform not in ("gpu", "cuda"):
        return {}
    found = {}
    for what, gradient in (("forward", False), ("gradient", True)):
        for implementation in ("xla", "cudnn"):
            found[f"attention {what}, {implementation}"] = Case(
                "ms",
                lambda i=implementation, g=gradient: attention(library, i, g),
                1.0,
            )
    for name, maker in {"large transformer": large, "ResNet-50": resnet}.items():
        found[f"step {name}"] = Case(
            "ms", lambda maker=maker: stepping(library, maker), 1.0, most_rounds=3
        )
    for name, maker in (MODELS | loads.MODELS | convnets.MODELS).items():
        found[f"memory of step {name}"] = Case(
            "MB", lambda maker=maker: memory(library, maker), 1.0, most_rounds=1
        )
    return found


def torch_cases() -> Cases:
    """None without a GPU."""
    import torch

    if not torch.cuda.is_available():
        return {}
    return {
        f"attention {what}, cudnn": Case("ms", lambda g=gradient: torch_attention(g))
        for what, gradient in (("forward", False), ("gradient", True))
    } | {
        "step large transformer": Case(
            "ms",
            lambda: torch_training.stepping(
                lambda torch: torch_training.transformer(torch, **LARGE)
            ),
        )
    }
