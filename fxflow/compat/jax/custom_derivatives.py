"""`jax.custom_derivatives`."""

from typing import Any

from fxflow import (
    CustomVJPPrimal,
    SymbolicZero,
    closure_convert,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    linear_call,
)
from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax._primitives import Primitive, by_name
from fxflow.core import tree
from fxflow.core.arrays import typeof
from fxflow.core.ir.arith import instantiate

custom_jvp_call_p: Primitive | None = by_name("custom_jvp_p")
custom_vjp_call_p: Primitive | None = by_name("custom_vjp_p")


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Returns the zero tangents of a pytree of values."""

    def zero_of(leaf: Any) -> Any:
        zero = SymbolicZero(typeof(leaf).tangent())
        return zero if symbolic_zeros else instantiate(zero)

    return tree.map(zero_of, val)


def custom_vjp_primal_tree_values(values: Any) -> Any:
    """Returns the values of a pytree of `CustomVJPPrimal`s."""
    return tree.map(
        lambda leaf: leaf.value,
        values,
        is_leaf=lambda leaf: isinstance(leaf, CustomVJPPrimal),
    )


__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "zero_from_primal",
]

listen(globals())
