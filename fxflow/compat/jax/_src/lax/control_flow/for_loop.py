"""`jax._src.lax.control_flow.for_loop`, which kernels import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow import lax
from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.experimental.pallas import run_state


def for_loop(
    nsteps: int | Sequence[int],
    body: Callable[..., None],
    init_state: Any,
    *,
    reverse: bool = False,
    unroll: int = 1,
    jit: bool = True,
) -> Any:
    """Calls a function of indices and references in nested loops.

    Args:
      nsteps: the number of steps, one for each loop.
      body: `body(i, …, refs)`.
      init_state: what the references hold before, a pytree.
      reverse: whether the indices fall.
      unroll, jit: have no effect.

    Returns:
      What they hold after.
    """
    sizes = (nsteps,) if isinstance(nsteps, int) else tuple(nsteps)

    def loops(refs: Any, *indices: Any) -> None:
        if len(indices) == len(sizes):
            body(*indices, refs)
            return
        size = sizes[len(indices)]

        def step(i: Any, carry: Any) -> Any:
            loops(refs, *indices, size - 1 - i if reverse else i)
            return carry

        lax.fori_loop(0, size, step, None)

    return run_state(loops)(init_state)


__all__ = ["for_loop"]

listen(globals())
