"""`linear_call`: a linear function whose transpose the user gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fxflow.core import tree
from fxflow.core.arrays import typeof
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.runtime.bodies import trace_body
from fxflow.core.source import name_of
from fxflow.lax.control_flow.carry import leaves_of
from fxflow.lax.linear_calls import LinearCall
from fxflow.transforms.custom_function import checked_values, same_structure

L = TypeVar("L")
R = TypeVar("R")


@boundary
def linear_call(
    fun: Callable[[Any, L], R],
    fun_transpose: Callable[[Any, R], L],
    residual_args: Any,
    linear_args: L,
) -> R:
    """Calls a linear function that is transposed by another one.

    For linear functions whose operations cannot be transposed, or not well. Forward
    derivatives are calls of the function, reverse ones of its transpose, whose
    transpose is the function again. That they belong together is not checked.

    Args:
      fun: called as `fun(residual_args, linear_args)`; linear in the second argument.
      fun_transpose: called as `fun_transpose(residual_args, cotangents)`, with the
        structure of the result of `fun`; returns the structure of `linear_args`.
      residual_args: pytree of arrays that the function may depend on in any way; a
        derivative with respect to them is that of the operations of the function, or of
        its transpose.
      linear_args: pytree of arrays.

    Returns:
      The result of `fun`.

    Raises:
      ArgumentError: a function is not callable, or a leaf is not an array.
      TreeError, ShapeError, DtypeError: the transpose does not return what
        `linear_args` are.

    Example:
      >>> def divided(x, y):
      ...     return linear_call(lambda r, x: x / r, lambda r, ct: ct / r, y, x)
      >>> float(fxflow.grad(divided)(3.0, 4.0))
      0.25
    """
    require_callable(fun, "linear_call: fun")
    require_callable(fun_transpose, "linear_call: fun_transpose")
    residuals, residual_tree = leaves_of(residual_args, "linear_call: residual_args")
    linear, linear_tree = leaves_of(linear_args, "linear_call: linear_args")
    residual_avals = [typeof(x) for x in residuals]
    linear_avals = [typeof(x) for x in linear]
    name = name_of(fun)
    body = trace_body(
        fun,
        tree.treedef_tuple([residual_tree, linear_tree]),
        [*residual_avals, *linear_avals],
        name=name,
    )

    def checked(given: Any, cotangents: Any) -> Any:
        what = f"linear_call: what the transpose of {name} returns"
        cts = same_structure(linear_tree, fun_transpose(given, cotangents), what)
        return checked_values(cts, linear_avals, what)

    transposed = trace_body(
        checked,
        tree.treedef_tuple([residual_tree, body.out_tree]),
        [*residual_avals, *body.graph.out_avals],
        name=f"transpose_{name}",
    )
    outs = LinearCall.bind(
        *body.consts,
        *transposed.consts,
        *residuals,
        *linear,
        graph=body.graph,
        transposed=transposed.graph,
        num_consts=len(body.consts),
        num_transposed_consts=len(transposed.consts),
        num_residuals=len(residuals),
    )
    result: R = body.out_tree.unflatten(outs)
    return result
