"""`jax.interpreters.mlir`: how clients' primitives are lowered.

Only by functions of arrays: a rule that writes MLIR itself would need JAX's own
contexts and builders, which fxflow does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax._primitives import Primitive, lowerings


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Any:
    """Makes a rule that lowers a primitive as a function of arrays.

    Args:
      fun: takes the operands, and the parameters by name.
      multiple_results: whether it returns several.

    Returns:
      What `register_lowering` takes.
    """

    def rule(ctx: Any, *operands: Any, **params: Any) -> Any:
        raise NotImplementedError(
            "fxflow.compat.jax: what mlir.lower_fun returns is for register_lowering"
        )

    rule.fxflow_function = fun  # type: ignore[attr-defined]
    return rule


def register_lowering(
    prim: Primitive,
    rule: Callable[..., Any],
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> Callable[..., Any]:
    """Sets how a primitive is lowered.

    Args:
      prim: the primitive.
      rule: what `lower_fun` returns; another raises when it is used.
      platform: the platform; None means all.
      inline: has no effect.
      cacheable: has no effect.

    Returns:
      The rule.
    """
    lowerings.setdefault(prim, {})[platform] = rule
    return rule


__all__ = ["lower_fun", "register_lowering"]

listen(globals())
