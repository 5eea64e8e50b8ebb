"""`jax.interpreters.ad`: derivative rules of clients' primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax._primitives import (
    Primitive,
    UndefinedPrimal,
    by_name,
    primitive_jvps,
    primitive_transposes,
)
from fxflow.core.arrays import typeof
from fxflow.core.interpreters.jvp import JVPTrace, JVPTracer
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import Zero


def is_undefined_primal(x: Any) -> bool:
    """Returns whether an operand of a transpose rule is linear."""
    return type(x) is UndefinedPrimal


def instantiate_zeros(tangent: Any) -> Any:
    """Returns a tangent as an array."""
    return arith.instantiate(tangent)


def zeros_like_aval(aval: Any) -> Any:
    """Returns zeros of a type."""
    return arith.zeros(aval)


def add_tangents(x: Any, y: Any) -> Any:
    """Returns the sum of two tangents, which may be `Zero`."""
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else x + y


def add_jaxvals(x: Any, y: Any) -> Any:
    """Returns the sum of two arrays."""
    return x + y


add_jaxvals_p: Primitive | None = by_name("add_jaxvals_p")


def defjvp(primitive: Primitive, *jvps: Callable[..., Any] | None) -> None:
    """Sets the derivative by one function for each operand: `(tangent, *primals)`."""
    defjvp2(primitive, *(j and _without_answer(j) for j in jvps))


def _without_answer(jvp: Callable[..., Any]) -> Callable[..., Any]:
    return lambda tangent, answer, *primals, **params: jvp(tangent, *primals, **params)


def defjvp2(primitive: Primitive, *jvps: Callable[..., Any] | None) -> None:
    """The same for functions `(tangent, answer, *primals)`."""

    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        answer = primitive.bind(*primals, **params)
        total: Any = Zero(typeof(answer).tangent())
        for jvp, tangent in zip(jvps, tangents, strict=True):
            if jvp is not None and type(tangent) is not Zero:
                part = jvp(tangent, answer, *primals, **params)
                total = add_tangents(total, part)
        return answer, total

    primitive_jvps[primitive] = rule


def deflinear(primitive: Primitive, transpose: Callable[..., Any]) -> None:
    """Declares a primitive linear, with the transpose `(cotangent, **params)`."""

    def rule(cotangent: Any, *args: Any, **params: Any) -> Any:
        if type(cotangent) is Zero:
            return [Zero(a.aval) for a in args]
        return transpose(cotangent, **params)

    _linear(primitive, rule)


def deflinear2(primitive: Primitive, transpose: Callable[..., Any]) -> None:
    """The same for a transpose `(cotangent, *operands, **params)`."""
    _linear(primitive, transpose)


def _linear(primitive: Primitive, transpose: Callable[..., Any]) -> None:
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        answer = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return answer, Zero(typeof(answer).tangent())
        tangents = [instantiate_zeros(t) for t in tangents]
        return answer, primitive.bind(*tangents, **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose


def defbilinear(
    primitive: Primitive, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]
) -> None:
    """Says that a primitive is linear in each of two operands, with its transposes.

    Args:
      primitive: of two operands.
      lhs_rule: `(cotangent, x, y, **params)`, by the first operand.
      rhs_rule: the same by the second.
    """
    defjvp(
        primitive,
        lambda t, x, y, **params: primitive.bind(t, y, **params),
        lambda t, x, y, **params: primitive.bind(x, t, **params),
    )

    def transpose(cotangent: Any, x: Any, y: Any, **params: Any) -> Any:
        first = is_undefined_primal(x)
        if type(cotangent) is Zero:
            zero = Zero((x if first else y).aval)
            return (zero, None) if first else (None, zero)
        if first:
            return lhs_rule(cotangent, x, y, **params), None
        return None, rhs_rule(cotangent, x, y, **params)

    primitive_transposes[primitive] = transpose


def get_primitive_transpose(primitive: Primitive) -> Callable[..., Any]:
    """Returns the transpose rule of a primitive.

    Raises:
      NotImplementedError: it has none.
    """
    try:
        return primitive_transposes[primitive]
    except KeyError:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for '{primitive}' not "
            "implemented"
        ) from None


__all__ = [
    "JVPTrace",
    "JVPTracer",
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_jaxvals_p",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]

listen(globals())
