"""`jax.debug`."""

import logging
from collections.abc import Callable
from typing import Any

from fxflow.compat.jax._mirror import mirror
from fxflow.core import tree
from fxflow.core.ir.trace import Tracer
from fxflow.debug import breakpoint as _breakpoint
from fxflow.debug import callback
from fxflow.errors import ConcretizationError

mirror(globals(), "fxflow.debug")


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> None:
    """Stops when the program runs here; see `fxflow.debug.breakpoint`.

    Args:
      backend: has no effect.
      filter_frames: has no effect: frames of fxflow are never shown.
      num_frames: how many frames are remembered.
      ordered: whether stops keep the order of the program.
      token: has no effect.
      **kwargs: of JAX's debuggers, have no effect.
    """
    _breakpoint(num_frames=num_frames, ordered=ordered)


def log(
    fmt: str,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> None:
    """Writes values to the log `fxflow` when the program runs; see `print`.

    Args:
      fmt: a format as of `str.format`.
      *args: arrays.
      ordered: whether lines keep the order of the program.
      partitioned: whether each device writes its parts.
      **kwargs: arrays by name.
    """

    def write(*values: Any, **named: Any) -> None:
        logging.getLogger("fxflow").info(fmt.format(*values, **named))

    callback(write, *args, ordered=ordered, partitioned=partitioned, **kwargs)


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Calls a function with the sharding of each array.

    Args:
      value: pytree of arrays.
      callback: takes a sharding.

    Raises:
      ConcretizationError: an array is traced: where it lies is known when the program
        is compiled, and a program of fxflow is text, which cannot call back then.
    """
    for leaf in tree.leaves(value):
        if isinstance(leaf, Tracer):
            raise ConcretizationError(
                f"inspect_array_sharding: {leaf.aval} is traced; call it on the result "
                "of an eager or jitted function"
            )
        callback(leaf.sharding)
