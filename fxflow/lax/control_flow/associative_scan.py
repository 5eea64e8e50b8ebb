"""`associative_scan`: all partial combinations in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from fxflow.core import tree
from fxflow.core.arrays import Array, typeof
from fxflow.core.arrays.array import ArrayOrNumber
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.sizes import is_symbolic
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.lax.axis_order import rev
from fxflow.lax.concatenation import concatenate
from fxflow.lax.control_flow.carry import leaves_of, require_structure
from fxflow.lax.control_flow.doubling_scan import doubling_scan
from fxflow.lax.reshaping import expand_dims, reshape
from fxflow.lax.slicing import slice_in_dim

C = TypeVar("C")


@overload
def associative_scan(
    fn: Callable[[Array, Array], Array],
    elems: ArrayOrNumber,
    reverse: bool = False,
    axis: int = 0,
) -> Array: ...
@overload
def associative_scan(
    fn: Callable[[C, C], C], elems: C, reverse: bool = False, axis: int = 0
) -> C: ...
@boundary
def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """Combines the first k elements along an axis, for every k.

    An associative function may be applied to pairs, pairs of pairs and so on, so all
    results take O(log n) steps, each of them on whole arrays. In Python, of a list of
    elements, it would be `list(itertools.accumulate(elems, fn))`, which takes n.

    Args:
      fn: an associative function of two pytrees of slices (with the axis, of any
        length), vectorized along the axis; returns the same structure and shapes.
      elems: a pytree of arrays of one length along `axis`.
      reverse: whether to combine from the last element to the first.
      axis: to combine along.

    Returns:
      A pytree of the structure and shapes of `elems`.

    Raises:
      ArgumentError: `fn` is not callable, or `elems` has no leaves.
      AxisError: an array has not the axis.
      ShapeError, TreeError: lengths differ, or `fn` returns something else.

    Example:
      >>> associative_scan(lax.mul, np.array([1.0, 2.0, 3.0, 4.0])).tolist()
      [1.0, 2.0, 6.0, 24.0]

      All values of a linear recurrence `y = a y + b`, as the composition of maps:

      >>> def after(first, second):
      ...     (a, b), (c, d) = first, second
      ...     return a * c, b * c + d
      >>> a, b = fnp.array([0.5, 0.5, 0.5]), fnp.array([1.0, 1.0, 1.0])
      >>> associative_scan(after, (a, b))[1].tolist()
      [1.0, 1.5, 1.75]

    Source: Blelloch, Prefix Sums and Their Applications, 1990.
    """
    require_callable(fn, "associative_scan: fn")
    leaves, treedef = leaves_of(elems, "associative_scan: elems")
    if not leaves:
        raise ArgumentError("associative_scan: elems has no arrays")
    axes = [canonical_axis("associative_scan", axis, typeof(x).ndim) for x in leaves]
    lengths = {typeof(x).shape[a] for x, a in zip(leaves, axes, strict=True)}
    if len(lengths) > 1:
        shown = ", ".join(str(typeof(x)) for x in leaves)
        raise ShapeError(
            f"associative_scan: arrays must have one length along axis {axis}, got "
            f"{shown}"
        )
    combine = _Combine(fn, treedef, axes)
    if reverse:
        leaves = [rev(x, (a,)) for x, a in zip(leaves, axes, strict=True)]
    results = combine.prefixes(leaves)
    if reverse:
        results = [rev(x, (a,)) for x, a in zip(results, axes, strict=True)]
    return treedef.unflatten(results)


class _Combine:
    """The recursion, on lists of leaves."""

    def __init__(
        self, fn: Callable[[Any, Any], Any], treedef: Any, axes: list[int]
    ) -> None:
        self.fn, self.treedef, self.axes = fn, treedef, axes

    def __call__(self, first: list[Any], second: list[Any]) -> list[Any]:
        """Combines elements pairwise."""
        out = self.fn(self.treedef.unflatten(first), self.treedef.unflatten(second))
        leaves, treedef = tree.flatten(out)
        require_structure(
            self.treedef,
            treedef,
            leaves,
            "associative_scan: fn must return the structure of elems, but",
        )
        for given, leaf in zip(first, leaves, strict=True):
            if typeof(leaf).shape != typeof(given).shape:
                raise ShapeError(
                    "associative_scan: fn must return the shapes it takes, but takes "
                    f"{typeof(given)} and returns {typeof(leaf)}"
                )
        return leaves

    def prefixes(self, elems: list[Any]) -> list[Any]:
        """Returns the combinations of the first k elements."""
        count = typeof(elems[0]).shape[self.axes[0]]
        if is_symbolic((count,)):
            return doubling_scan(self, elems, self.axes)
        if count < 2:
            return elems
        # Scanning the combined neighbours gives the results at odd indices; one more
        # element each makes those at even ones (Blelloch, 1990).
        pairs = self(self.part(elems, 0, count - 1, 2), self.part(elems, 1, count, 2))
        odd = self.prefixes(pairs)
        if count > 2:
            later = self.part(elems, 2, count, 2)
            before = odd if count % 2 else self.part(odd, 0, count // 2 - 1, 1)
            even = self.joined(self.part(elems, 0, 1, 1), self(before, later))
        else:
            even = self.part(elems, 0, 1, 1)
        return self.interleaved(even, odd)

    def part(self, elems: list[Any], start: int, stop: int, step: int) -> list[Any]:
        """Returns a slice of each array."""
        return [
            slice_in_dim(x, start, stop, step, a)
            for x, a in zip(elems, self.axes, strict=True)
        ]

    def joined(self, first: list[Any], second: list[Any]) -> list[Any]:
        """Returns the arrays end to end."""
        return [
            concatenate([x, y], a)
            for x, y, a in zip(first, second, self.axes, strict=True)
        ]

    def interleaved(self, even: list[Any], odd: list[Any]) -> list[Any]:
        """Returns arrays whose elements come from the one and the other in turn."""
        count = typeof(odd[0]).shape[self.axes[0]]
        rest = typeof(even[0]).shape[self.axes[0]] - count
        mixed = []
        for x, y, a in zip(self.part(even, 0, count, 1), odd, self.axes, strict=True):
            shape = typeof(y).shape
            both = concatenate(
                [expand_dims(x, (a + 1,)), expand_dims(y, (a + 1,))], a + 1
            )
            mixed.append(reshape(both, (*shape[:a], 2 * count, *shape[a + 1 :])))
        if not rest:
            return mixed
        return self.joined(mixed, self.part(even, count, count + 1, 1))
