"""`jax.experimental.xla_metadata`: attributes of operations, which are not written."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

from fxflow.compat.jax._mirror import listen


class _Metadata(ContextDecorator):
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def set_xla_metadata(x: Any = None, **attributes: Any) -> Any:
    """Returns a value or a function as it is, or a context manager and decorator.

    Args:
      x: an array or a function; None asks for the context manager.
      **attributes: JAX gives them to XLA's operations; they have no effect on results.
    """
    return _Metadata() if x is None else x


__all__ = ["set_xla_metadata"]

listen(globals())
