"""Sends and receives: a permutation across a named axis in two halves.

Work that stands between the two does not need what is under way, so the compiler may
do it meanwhile: XLA starts the permutation at the send and waits for it at the receive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow.core import tree
from fxflow.core.arrays import typeof
from fxflow.core.tree.nodes import register_pytree_node
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.collective_groups import Names, names_given, shown
from fxflow.lax.collectives import pairs_given, ppermute

Pairs = tuple[tuple[int, int], ...]


class Sent:
    """What `psend` has sent and no `precv` has taken yet: a pytree of arrays."""

    __slots__ = ("axes", "perm", "values")

    axes: Names
    perm: Pairs
    values: Any

    def __init__(self, values: Any, axes: Names, perm: Pairs) -> None:
        self.values, self.axes, self.perm = values, axes, perm

    def __repr__(self) -> str:
        return f"<sent over {shown(self.axes)}: {self.values}>"


register_pytree_node(
    Sent,
    lambda sent: ((sent.values,), (sent.axes, sent.perm)),
    lambda how, children: Sent(children[0], *how),
)


def psend(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Sent:
    """Sends slices to other indices on named axes; `precv` receives them.

    Args:
      x: array or pytree of arrays, any dtype.
      axis_name: a name or a tuple of names.
      perm: pairs `(source, target)`.

    Returns:
      A token for one `precv` with the same axes and pairs.

    Raises:
      NameError: no such axis is in scope.
      ArgumentError: an index is named twice or out of range.
    """
    axes = names_given(axis_name, "psend")
    pairs = pairs_given(perm, "psend")
    return Sent(ppermute(x, axes, pairs), axes, pairs)


def precv(
    token: Sent, out_shape: Any, axis_name: Any, perm: Sequence[tuple[int, int]]
) -> Any:
    """Receives what `psend` has sent.

    Args:
      token: of the `psend`.
      out_shape: what is expected: a pytree of anything with `shape` and `dtype`.
      axis_name: as sent.
      perm: as sent.

    Returns:
      Arrays of the given types; zeros at indices that are not a target.

    Raises:
      ArgumentError: the token is of something else.
      ShapeError: what was sent has another type than expected.

    Example:
      >>> def ring(x):
      ...     token = psend(x, "i", [(0, 1), (1, 0)])
      ...     return precv(token, x, "i", [(0, 1), (1, 0)])
      >>> fxflow.vmap(ring, axis_name="i")(fnp.arange(2)).tolist()
      [1, 0]
    """
    axes = names_given(axis_name, "precv")
    pairs = pairs_given(perm, "precv")
    if not isinstance(token, Sent):
        raise ArgumentError(f"precv: takes the token of a psend, got {token!r}")
    if (axes, sorted(pairs)) != (token.axes, sorted(token.perm)):
        raise ArgumentError(
            f"precv over {shown(axes)} with the pairs {list(pairs)} cannot take what "
            f"was sent over {shown(token.axes)} with {list(token.perm)}"
        )

    def check(expected: Any, value: Any) -> Any:
        aval = typeof(value)
        if tuple(expected.shape) != aval.shape or expected.dtype != aval.dtype:
            raise ShapeError(f"precv: expected {expected}, but {aval} was sent")
        return value

    return tree.map(check, out_shape, token.values)
