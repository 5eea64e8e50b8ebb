"""`jax.numpy.fft`: transforms of no points are empty, those of planes take two axes."""

import functools
from collections.abc import Callable
from typing import Any

from fxflow import numpy as _numpy
from fxflow.compat.jax._mirror import mirror


def _of_points(name: str, default: Any) -> Callable[..., Any]:
    transform = getattr(_numpy.fft, name)
    lengths, places = ("n", "axis") if isinstance(default, int) else ("s", "axes")

    @functools.wraps(transform)
    def transformed(a: Any, *args: Any, **options: Any) -> Any:
        given = dict(zip((lengths, places, "norm"), args, strict=False)) | options
        axes = given.get(places, default)
        if name.endswith("2") and len(axes) != 2:
            raise ValueError(f"jax.numpy.fft.{name} takes 2 axes, got axes={axes}")
        shape = _numpy.shape(a)
        if given.get(lengths) is None and 0 in shape and not name.startswith("r"):
            axes = range(len(shape)) if axes is None else axes
            axes = (axes,) if isinstance(axes, int) else axes
            if any(shape[i] == 0 for i in axes):
                kind = _numpy.result_type(a, _numpy.float32)
                if not name.startswith("ir"):
                    kind = _numpy.result_type(kind, _numpy.complex64)
                return _numpy.zeros(shape, kind)
        return transform(a, *args, **options)

    return transformed


for _name in ("fft", "ifft", "irfft"):
    globals()[_name] = _of_points(_name, -1)
for _name in ("fftn", "ifftn", "irfftn", "rfftn"):
    globals()[_name] = _of_points(_name, None)
for _name in ("fft2", "ifft2", "irfft2", "rfft2"):
    globals()[_name] = _of_points(_name, (-2, -1))

__all__ = mirror(globals(), "fxflow.numpy.fft")
