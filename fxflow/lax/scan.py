"""`scan`: a loop over the leading axis of arrays that carries a state along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow._config import config
from fxflow.core import tree
from fxflow.core.arrays.aval import Aval
from fxflow.core.arrays.convert import read_only, typeof
from fxflow.core.boundary import boundary
from fxflow.core.runtime.bodies import Body, trace_body
from fxflow.core.spmd.varying import with_outputs_varying
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.carry import (
    as_type,
    leaves_of,
    name_of,
    paths_of,
    promoted,
    require_callable,
    require_carry,
    require_structure,
)
from fxflow.lax.joining import concatenate
from fxflow.lax.reshaping import expand_dims
from fxflow.lax.scan_primitive import Scan
from fxflow.lax.slicing import index_in_dim


@boundary
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Loops over the leading axis of arrays, carrying a state along.

    `carry, y = f(carry, x)` for each slice `x`; the `y`s are stacked. It is compiled as
    one loop, whatever its length, and can be differentiated in both directions.

    Args:
      f: takes the carry and a slice, returns the next carry (same structure, shapes and
        dtypes) and an output (any pytree of arrays, or None).
      init: the first carry; a pytree of arrays.
      xs: a pytree of arrays `[length, ...]`; None to loop `length` times without input.
      length: number of steps; needed if `xs` has no leaves.
      reverse: whether to go from the last slice to the first (outputs stay in place).
      unroll: how many steps to write out in each round; True writes out all of them.

    Returns:
      The last carry, and the stacked outputs `[length, ...]`.

    Raises:
      ArgumentError: `f` does not return a pair, or an argument is no array.
      ShapeError, DtypeError, TreeError: the carry changes its type, or the leading axes
        of `xs` differ.

    Example:
      >>> total, partial = scan(lambda c, x: (c + x, c + x), 0.0, np.arange(4.0))
      >>> float(total), partial.tolist()
      (6.0, [0.0, 1.0, 3.0, 6.0])

    Source: StableHLO while, dynamic_slice and dynamic_update_slice.
    """
    require_callable(f, "scan: f")
    name = name_of(f)
    carry, init_tree = leaves_of(init, "scan: init")
    slices, xs_tree = leaves_of(xs, "scan: xs")
    length = _length(xs, slices, length)
    if unroll is True or unroll is False:
        unroll = max(length, 1) if unroll else 1
    if not isinstance(unroll, int) or unroll < 1:
        raise ArgumentError(
            f"scan: unroll must be a positive int or a bool, got {unroll!r}"
        )
    if config.disable_jit and length:
        return _python_scan(f, read_only(init), xs, length, reverse)
    x_avals = []
    for x in slices:
        aval = typeof(x)
        x_avals.append(aval.update(shape=aval.shape[1:]))
    avals, body = traced_with_carry(
        f,
        "scan",
        f"scan_{name}",
        init_tree,
        [typeof(c) for c in carry],
        x_avals,
        (xs_tree,),
        _require_pair,
    )
    carry = [as_type(c, a) for c, a in zip(carry, avals, strict=True)]
    outs = Scan.bind(
        *body.consts,
        *carry,
        *slices,
        graph=body.graph,
        num_consts=len(body.consts),
        num_carry=len(carry),
        length=length,
        reverse=bool(reverse),
        unroll=unroll,
    )
    last, ys = body.out_tree.unflatten(outs)
    return last, ys


def traced_with_carry(
    f: Callable[..., Any],
    operation: str,
    name: str,
    carry_tree: Any,
    carry: list[Aval],
    others: list[Aval],
    other_trees: Sequence[Any],
    check: Callable[[Any], None] | None,
) -> tuple[list[Aval], Body]:
    """Traces a loop's body, giving the carry the type it returns.

    That is, weak parts yield, and it differs along the axes that its parts come to
    differ along.

    Args:
      f: takes a carry and others; its result, or its first item if there are others,
        is the next carry.
      operation: name of the operation, for messages.
      name: of the graph.
      carry_tree: structure of the carry.
      carry: types of its leaves.
      others: types of the other leaves.
      other_trees: structures of the other arguments.
      check: called with the result.

    Returns:
      The types of the carry, and the traced body.
    """
    in_tree = tree.treedef_tuple([carry_tree, *other_trees])
    while True:
        body = trace_body(
            f,
            in_tree,
            [*carry, *others],
            name=name,
            check=check,
            labels=lambda: [f"carry{p}" for p in paths_of(carry_tree)],
        )
        out_tree = body.out_tree.children()[0] if other_trees else body.out_tree
        outs = body.graph.out_avals[: out_tree.num_leaves]
        require_structure(
            carry_tree,
            out_tree,
            outs,
            f"{operation}: the body must return a carry of the structure it takes, but",
        )
        wider = promoted(carry, outs)
        if wider == carry:
            break
        carry = wider
    require_carry(operation, carry_tree, carry, outs)
    rest = body.graph.out_avals[len(carry) :]
    graph = with_outputs_varying(body.graph, [a.vma for a in (*carry, *rest)])
    if graph is not body.graph:
        body = Body(graph, body.consts, body.out_tree)
    return carry, body


def _require_pair(out: Any) -> None:
    if not (isinstance(out, tuple) and len(out) == 2):
        raise ArgumentError(
            "scan: the body must return a pair (carry, output), got "
            f"{type(out).__name__}: return (carry, None) if there is no output"
        )


def _length(xs: Any, slices: Sequence[Any], length: int | None) -> int:
    """Returns the number of steps.

    Raises:
      ArgumentError: nothing says how many.
      ShapeError: an array has no leading axis, or the lengths differ.
    """
    avals = [typeof(x) for x in slices]
    for i, aval in enumerate(avals):
        if not aval.ndim:
            raise ShapeError(
                f"scan: xs{_path(xs, i)} is {aval}, which has no leading axis to loop "
                "over"
            )
    if length is not None:
        try:
            length = length.__index__()
        except (AttributeError, TypeError):
            raise ArgumentError(
                f"scan: length must be an int, got {length!r}"
            ) from None
        if length < 0:
            raise ArgumentError(f"scan: length must not be negative, got {length}")
    elif not avals:
        raise ArgumentError(
            "scan: give xs or length: nothing says how many steps to take"
        )
    steps = avals[0].shape[0] if length is None else length
    for i, aval in enumerate(avals):
        if aval.shape[0] != steps:
            first = f"xs{_path(xs, 0)} is {avals[0]}"
            raise ShapeError(
                "scan: leading axes must have one length, but "
                f"{first if length is None else f'length is {length}'} and "
                f"xs{_path(xs, i)} is {aval}"
            )
    return steps


def _path(xs: Any, position: int) -> str:
    return tree.keystr(tree.leaves_with_path(xs)[position][0])


def _python_scan(
    f: Callable[[Any, Any], Any], carry: Any, xs: Any, length: int, reverse: bool
) -> tuple[Any, Any]:
    """Runs the loop in Python, for debugging."""
    ys: list[Any] = [None] * length
    for i in reversed(range(length)) if reverse else range(length):
        out = f(
            carry, tree.map(lambda x, i=i: index_in_dim(x, i, 0, keepdims=False), xs)
        )
        _require_pair(out)
        carry, ys[i] = out
    stacked = tree.map(
        lambda *leaves: concatenate([expand_dims(y, (0,)) for y in leaves], 0), *ys
    )
    return carry, stacked
