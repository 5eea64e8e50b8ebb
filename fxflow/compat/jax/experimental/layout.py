"""`jax.experimental.layout`."""

from typing import Any

from fxflow.compat.jax._layout import Layout
from fxflow.compat.jax._mirror import mirror
from fxflow.core import tree
from fxflow.core.arrays import typeof
from fxflow.errors import ArgumentError


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Returns arrays as they are: the compiler chooses layouts.

    Args:
      x: pytree of arrays.
      layouts: a `Layout` of the rank of each array; a prefix of the pytree.

    Returns:
      `x`.

    Raises:
      ArgumentError: one is not a `Layout`, or is for arrays of another rank.
    """
    wanted = tree.broadcast_prefix(layouts, x, name="layouts")
    for leaf, layout in zip(tree.leaves(x), wanted, strict=True):
        aval = typeof(leaf)
        axes = getattr(layout, "major_to_minor", ())
        if not isinstance(layout, Layout) or sorted(axes) != list(range(aval.ndim)):
            raise ArgumentError(
                f"with_layout_constraint: {layout!r} is not a Layout of {aval}"
            )
    return x


__all__ = [*mirror(globals(), "fxflow.compat.jax._layout"), "with_layout_constraint"]
