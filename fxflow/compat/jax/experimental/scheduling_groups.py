"""`jax.experimental.scheduling_groups`: XLA's own schedule is taken."""

from __future__ import annotations

from typing import Any

from fxflow.compat.jax._mirror import listen


def scheduling_group(name: str) -> Any:
    """Returns a decorator that leaves a function as it is.

    Args:
      name: has no effect.
    """
    return xla_metadata_call(scheduling_group=name)


def xla_metadata_call(f: Any = None, **attributes: Any) -> Any:
    """Returns the function, or a decorator.

    Args:
      f: a function.
      **attributes: JAX gives them to XLA's call; they have no effect on results.
    """
    return (lambda function: function) if f is None else f


__all__ = ["scheduling_group", "xla_metadata_call"]

listen(globals())
