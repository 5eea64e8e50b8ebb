"""`custom_gradient` and `closure_convert`: other ways to a derivative of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow.core import tree
from fxflow.core.arrays import typeof
from fxflow.core.boundary import require_callable
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import Tracer
from fxflow.core.source import name_of
from fxflow.core.tree.paths import describe
from fxflow.errors import ArgumentError, TreeError
from fxflow.transforms.arguments import FlatFunction
from fxflow.transforms.custom_vjp import custom_vjp


def custom_gradient(fun: Callable[..., tuple[Any, Any]]) -> Callable[..., Any]:
    """Makes a function of one that returns its result together with its backward pass.

    Args:
      fun: returns `(result, vjp)`, where `vjp` takes the cotangent of the result and
        returns the cotangent of the argument, or a tuple of cotangents.

    Returns:
      A function that returns the result only and has that derivative.

    Raises:
      ArgumentError: `fun` does not return a pair.

    Example:
      >>> @custom_gradient
      ... def f(x):
      ...     return lax.mul(x, x), lambda ct: (lax.mul(ct, x),)
      >>> float(fxflow.grad(f)(4.0))
      4.0

    Source: `tf.custom_gradient`.
    """
    require_callable(fun, "custom_gradient")

    def both(*args: Any) -> tuple[Any, Any]:
        pair = fun(*args)
        if not (isinstance(pair, tuple) and len(pair) == 2 and callable(pair[1])):
            raise ArgumentError(
                f"custom_gradient: {name_of(fun)} must return a pair (result, vjp "
                f"function), got {describe(pair)}"
            )
        return pair

    def wrapped(*args: Any) -> Any:
        return both(*args)[0]

    def forward(*args: Any) -> tuple[Any, Any]:
        out, pullback = both(*args)
        leaves, treedef = tree.flatten(out)
        structures: list[Any] = []

        def flat(*cts: Any) -> list[Any]:
            result = pullback(treedef.unflatten(cts))
            if not (isinstance(result, tuple | list) and len(result) == len(args)):
                result = (result,)
            values, structure = tree.flatten(tuple(result))
            structures.append(structure)
            return values

        avals = [typeof(leaf).tangent() for leaf in leaves]
        # Traced here: what the closure captured must be residuals, to be batched, say.
        graph, consts = trace_flat(flat, avals, name=f"vjp_{name_of(fun)}")
        return out, (consts, _Pullback(graph, structures[0]))

    def backward(needed: Any, ct: Any) -> Any:
        consts, pullback = needed
        values = pullback.graph.evaluate(*consts, *tree.leaves(ct))
        return pullback.structure.unflatten(values)

    wrapped.__name__ = name_of(fun)
    function = custom_vjp(wrapped)
    function.defvjp(forward, backward)
    return function


class _Pullback:
    """A traced backward pass; no pytree, so among residuals it is a static leaf."""

    def __init__(self, graph: Any, structure: Any) -> None:
        self.graph, self.structure = graph, structure


def closure_convert(
    fun: Callable[..., Any], *example_args: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """Converts a closure: tracers that it captured become arguments.

    Use it where a function is an argument of a `custom_jvp` or `custom_vjp` function
    (`nondiff_argnums`), whose rules must not capture traced values.

    Args:
      fun: function of arrays or pytrees of them.
      *example_args: arguments, for their types.

    Returns:
      `(converted, captured)`: `converted(*args, *captured)` is `fun(*args)`.

    Raises:
      TreeError: the arguments later given have another structure.

    Example:
      >>> converted, captured = closure_convert(lambda x: x, 1.0)
      >>> captured, float(converted(2.0))
      ([], 2.0)
    """
    require_callable(fun, "closure_convert")
    leaves, in_tree = tree.flatten(example_args)
    flat = FlatFunction(fun, in_tree, name_of(fun))
    graph, consts = trace_flat(flat, [typeof(x) for x in leaves], name=name_of(fun))
    hoisted = [
        isinstance(c, Tracer) and typeof(c).tangent().dtype == typeof(c).dtype
        for c in consts
    ]
    captured = [c for c, h in zip(consts, hoisted, strict=True) if h]
    kept = [None if h else c for c, h in zip(consts, hoisted, strict=True)]
    # `converted` holds on to neither `fun` nor what it captured: it captures nothing.
    num_captured, out_tree, name = len(captured), flat.out_tree, name_of(fun)

    def converted(*args: Any) -> Any:
        count = len(args) - num_captured
        given, treedef = tree.flatten(tuple(args[:count]))
        if treedef != in_tree:
            raise TreeError(
                f"closure_convert: {name} was converted for arguments of the "
                f"structure {tree.written(in_tree)}, got {tree.written(treedef)}"
            )
        rest = iter(args[count:])
        values = [next(rest) if h else k for h, k in zip(hoisted, kept, strict=True)]
        return out_tree.unflatten(graph.evaluate(*values, *given))

    return converted, captured
