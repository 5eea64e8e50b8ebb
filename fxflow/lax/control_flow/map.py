"""`map`: a function applied to each slice, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fxflow.core import tree
from fxflow.core.arrays import typeof
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.interpreters.batching import batch_flat, materialize
from fxflow.errors import ArgumentError
from fxflow.lax.concatenation import concatenate
from fxflow.lax.control_flow.carry import leaves_of
from fxflow.lax.control_flow.scan import scan
from fxflow.lax.reshaping import reshape
from fxflow.lax.slicing import slice_in_dim

R = TypeVar("R")


@boundary
def map(f: Callable[[Any], R], xs: Any, *, batch_size: int | None = None) -> R:
    """Applies a function to each slice along the leading axis.

    Like `vmap`, but the slices are worked on one after the other (or a few at a time),
    which needs less memory. In Python it would be::

        def map(f, xs):
            return fnp.stack([f(x) for x in xs])

    Args:
      f: takes one slice of each leaf; returns a pytree of arrays.
      xs: a pytree of arrays `[n, ...]`.
      batch_size: how many slices to work on at a time, vectorized (None: one).

    Returns:
      The stacked results `[n, ...]`.

    Raises:
      ArgumentError: `batch_size` is not a positive int, or `xs` has no leaves.
      ShapeError: the leading axes of `xs` differ.

    Example:
      >>> map(lambda x: lax.mul(x, x), np.arange(4.0)).tolist()
      [0.0, 1.0, 4.0, 9.0]

      Distances to a thousand points, for a hundred at a time: less memory than all.

      >>> points = fnp.linspace(0.0, 1.0, 1000)
      >>> nearest = lambda x: fnp.sort(fnp.abs(points - x))[1]
      >>> map(nearest, points, batch_size=100).shape
      (1000,)

    Source: `scan`.
    """
    require_callable(f, "map: f")
    if batch_size is None:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    if (
        not isinstance(batch_size, int)
        or isinstance(batch_size, bool)
        or batch_size < 1
    ):
        raise ArgumentError(
            f"map: batch_size must be a positive int or None, got {batch_size!r}"
        )
    leaves, treedef = leaves_of(xs, "map: xs")
    if not leaves or len({typeof(x).shape[:1] for x in leaves}) > 1:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    count = typeof(leaves[0]).shape[0]
    if batch_size >= count > 0:
        return _vectorized(f, xs, count)  # type: ignore[no-any-return]
    rounds, rest = divmod(count, batch_size)

    def grouped(x: Any) -> Any:
        part = slice_in_dim(x, 0, rounds * batch_size)
        return reshape(part, (rounds, batch_size, *typeof(x).shape[1:]))

    def ungrouped(y: Any) -> Any:
        return reshape(y, (rounds * batch_size, *typeof(y).shape[2:]))

    groups = treedef.unflatten([grouped(x) for x in leaves])
    ys = scan(lambda _, x: ((), _vectorized(f, x, batch_size)), (), groups)[1]
    ys = tree.map(ungrouped, ys)
    if not rest:
        return ys  # type: ignore[no-any-return]
    tail = treedef.unflatten([slice_in_dim(x, count - rest, count) for x in leaves])
    last = _vectorized(f, tail, rest)
    return tree.map(lambda y, z: concatenate([y, z], 0), ys, last)  # type: ignore[no-any-return]


def _vectorized(f: Callable[[Any], Any], xs: Any, size: int) -> Any:
    """Applies `f` to all slices at once."""
    leaves, treedef = tree.flatten(xs)
    structure: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        outs, out_tree = tree.flatten(f(treedef.unflatten(values)))
        structure.append(out_tree)
        return outs

    outs, mapped = batch_flat(flat, size, leaves, [True] * len(leaves))
    return structure[0].unflatten(
        [materialize(o, size, m) for o, m in zip(outs, mapped, strict=True)]
    )
