"""`jax.experimental.custom_partitioning`: functions that XLA divides by itself.

JAX has XLA call back into Python while it divides a program over devices. fxflow writes
programs that need no Python when they are compiled (or taken from the disk cache), so
the user's rule is kept but not asked: the function is traced like any other, and XLA
divides what it is made of. The numbers are those of the function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fxflow.compat.jax._mirror import listen


class custom_partitioning:
    """A function with a rule of how it is divided, which is not used here.

    Args:
      fun: the function.
      static_argnums: positions of arguments that are no arrays.
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: Any = ()) -> None:
        functools.update_wrapper(self, fun)
        self.fun, self.static_argnums = fun, static_argnums

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        **options: Any,
    ) -> Callable[..., Any]:
        """Keeps the rule; returns `partition`."""
        self.partition, self.sharding_rule = partition, sharding_rule
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        return self.fun(*args, **kwargs)


__all__ = ["custom_partitioning"]

listen(globals())
