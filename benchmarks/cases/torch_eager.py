"""The eager cases in PyTorch."""

from collections.abc import Callable
from typing import Any

import numpy

from .library import Case, Cases, timed


def cases() -> Cases:
    import torch

    host = numpy.linspace(0, 1, 10, dtype=numpy.float32)
    numbers = host.tolist()
    x, y = torch.tensor(host), torch.tensor(host[::-1].copy())
    mask, index = x > y, torch.tensor(3)
    matrix = torch.ones(100, 100)

    def gradient() -> Any:
        leaf = x.detach().requires_grad_()
        y = torch.sin(leaf) * leaf + torch.cos(leaf)
        z = torch.exp(-y) + y * leaf
        torch.sum(torch.tanh(z) * y).backward()
        return leaf.grad

    def case(call: Callable[[], Any]) -> Case:
        return Case("µs", lambda: timed(call, lambda _: None))

    return {
        "eager x + y": case(lambda: x + y),
        "eager sum": case(lambda: torch.sum(x)),
        "eager where": case(lambda: torch.where(mask, x, y)),
        "eager exp": case(lambda: torch.exp(x)),
        "eager x[3:7]": case(lambda: x[3:7]),
        "eager x[3]": case(lambda: x[3]),
        "eager x[i]": case(lambda: x[index]),
        "eager reshape": case(lambda: x.reshape(2, 5)),
        "eager asarray(list)": case(lambda: torch.asarray(numbers)),
        "eager asarray(ndarray)": case(lambda: torch.asarray(host)),
        "eager matmul 100×100": case(lambda: matrix @ matrix),
        "eager grad of 10 operations": case(gradient),
    }
