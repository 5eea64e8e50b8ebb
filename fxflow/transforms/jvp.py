"""`jvp`: the Jacobian-vector product, the derivative along a tangent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar, overload

from fxflow.core import tree
from fxflow.core.arrays import is_arraylike, not_an_array, typeof
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.interpreters.jvp import jvp_flat
from fxflow.core.ir import arith
from fxflow.core.ir.discharge import require_distinct
from fxflow.core.ir.references import Ref
from fxflow.core.labels import leaf_labels
from fxflow.core.source import name_of
from fxflow.errors import ArgumentError
from fxflow.transforms.arguments import FlatFunction
from fxflow.transforms.ref_calls import Lifted
from fxflow.transforms.tangents import checked_tangent

A = TypeVar("A")
R = TypeVar("R")


@overload
def jvp(
    fun: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, A]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[True],
) -> tuple[R, R, A]: ...
@overload
def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool,
) -> tuple[Any, ...]: ...
@boundary
def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> Any:
    """Computes a function's value and its derivative along a direction.

    Args:
      fun: function of arrays (or pytrees of them).
      primals: tuple or list of arguments: where.
      tangents: of the structure and shapes of `primals`: the direction. The tangent of
        an integer argument has dtype float0.
      has_aux: whether `fun` returns `(result, aux)`, `aux` not being differentiated.

    Returns:
      `(result, tangent)` or `(result, tangent, aux)`.

    Raises:
      ArgumentError: `primals` and `tangents` differ in structure, or a leaf is not
        an array.
      ShapeError, DtypeError: a tangent does not fit; an integer is not the tangent of a
      float.

    Example:
      >>> y, dy = jvp(fnp.sin, (0.0,), (2.0,))
      >>> float(dy)
      2.0

      The derivative along a direction, without the Jacobian, of a tree of arguments:

      >>> def energy(state):
      ...     return fnp.sum(state["speed"] ** 2) / 2 + fnp.sum(state["height"])
      >>> state = {"speed": fnp.array([3.0, 4.0]), "height": fnp.zeros(2)}
      >>> rates = {"speed": fnp.array([0.0, -1.0]), "height": fnp.array([3.0, 4.0])}
      >>> value, rate = jvp(energy, (state,), (rates,))
      >>> float(value), float(rate)
      (12.5, 3.0)

    Source: forward mode; Griewank & Walther, Evaluating Derivatives, 2008.
    """
    require_callable(fun, "jvp")
    for what, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, tuple | list):
            raise ArgumentError(
                f"jvp: {what} must be a tuple or list with one entry for each "
                f"argument, got {type(value).__name__}"
            )
    name = name_of(fun)
    leaves, in_tree = tree.flatten(tuple(primals))
    tangent_leaves, tangent_tree = tree.flatten(tuple(tangents))
    if in_tree != tangent_tree:
        raise ArgumentError(
            f"jvp: primals and tangents of {name} differ in structure: "
            f"{tree.written(in_tree)} and {tree.written(tangent_tree)}"
        )
    for leaf in (*leaves, *tangent_leaves):
        if not is_arraylike(leaf) and not isinstance(leaf, Ref):
            raise not_an_array(leaf, f"jvp: an argument or tangent of {name} is")
    flat = FlatFunction(fun, in_tree, name, has_aux=has_aux)
    lifted = Lifted(flat, leaves)
    along = Lifted(flat, tangent_leaves)
    if lifted.refs != along.refs:
        raise ArgumentError(
            "jvp: the tangent of a reference is a reference: of the arguments of "
            f"{name} {len(lifted.refs)} are references, of the tangents "
            f"{len(along.refs)}"
        )
    require_distinct([*leaves, *tangent_leaves], f"jvp({name})")
    if lifted.refs:
        leaves, tangent_leaves = lifted.read(), along.read()

    def called(index: int) -> str:
        label = leaf_labels(fun, primals)[index]
        return f"jvp: the tangent of argument {label} of {name}"

    directions = [
        checked_tangent(t, typeof(p), partial(called, i))
        for i, (p, t) in enumerate(zip(leaves, tangent_leaves, strict=True))
    ]
    outs, out_tangents = jvp_flat(lifted if lifted.refs else flat, leaves, directions)
    if lifted.refs:
        count = len(outs) - len(lifted.refs)
        along.written = lifted.written
        lifted.write(outs[count:])
        along.write([arith.instantiate(t) for t in out_tangents[count:]])
        outs, out_tangents = outs[:count], out_tangents[:count]
    # `aux` comes behind the results; its tangents are dropped.
    tangent = flat.out_tree.unflatten(
        arith.handed_out(t, typeof(out))
        for out, t in zip(outs[: flat.count], out_tangents, strict=False)
    )
    if has_aux:
        return flat.result(outs), tangent, flat.aux(outs)
    return flat.result(outs), tangent
