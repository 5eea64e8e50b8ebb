"""`jax.experimental.compute_on`: where a part of a program is to run.

XLA's CPU backend does not look at what JAX writes for it, and neither does fxflow: the
numbers are the same, the part runs where the rest does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fxflow.compat.jax._mirror import listen


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
            f"compute_on: {compute_type!r} is none of device, device_host, "
            "tpu_sparsecore and gpu_stream:n"
        )
    yield


__all__ = ["compute_on"]

listen(globals())
