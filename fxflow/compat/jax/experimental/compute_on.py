"""`jax.experimental.compute_on`: where a part of a program is to run.

XLA's CPU backend does not look at what JAX writes for it, and neither does fxflow: the
numbers are the same, the part runs where the rest does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fxflow.compat.jax._mirror import listen
from fxflow.core import tree
from fxflow.lax.pytree_transfer import device_put


@contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """A scope, or a decorator, for what is to run elsewhere; here it changes nothing.

    Args:
      compute_type: `device`, `device_host`, `tpu_sparsecore` or `gpu_stream:n`.

    Raises:
      ValueError: it is something else.
    """
    known = compute_type in ("device", "device_host", "tpu_sparsecore")
    if not known and not str(compute_type).startswith("gpu_stream:"):
        raise ValueError(
            f"compute_on: {compute_type!r} is not one of device, device_host, "
            "tpu_sparsecore and gpu_stream:n"
        )
    yield


def compute_on2(
    f: Callable[..., Any] | None = None,
    *,
    compute_type: str,
    out_memory_spaces: Any,
    compiler_options: Any = None,
) -> Callable[..., Any]:
    """Makes a function of one that is to run elsewhere; see `compute_on`.

    Args:
      f: function of arrays. Left out, a decorator is returned.
      compute_type: see `compute_on`.
      out_memory_spaces: a `jax.memory.Space`, or a pytree prefix of the result: where
        the results are to be.
      compiler_options: has no effect.

    Returns:
      A function of the same arguments.
    """
    if f is None:
        return functools.partial(
            compute_on2, compute_type=compute_type, out_memory_spaces=out_memory_spaces
        )
    function = compute_on(compute_type)(f)

    @functools.wraps(f)
    def call(*args: Any) -> Any:
        out = function(*args)
        leaves, treedef = tree.flatten(out)
        spaces = tree.broadcast_prefix(out_memory_spaces, out)
        return treedef.unflatten(map(device_put, leaves, spaces))

    return call


__all__ = ["compute_on", "compute_on2"]

listen(globals())
