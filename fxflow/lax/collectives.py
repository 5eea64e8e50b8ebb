"""Collectives: operations across named axes.

Every slice along an axis sees its own operand; a collective combines them. The axis is
that of a `vmap(..., axis_name=...)`, a `pmap` or a mesh in `shard_map`; the meaning is
the same. Several axes count as one, row-major: over `("i", "j")` of lengths 2 and 3 the
index of (1, 0) is 3.

`axis_index_groups` divides the indices into groups, each of which combines its own.

Derivatives taken inside are those of all slices' functions together: the transpose of
a sum over the axis is the sum of all cotangents, of a gather the scattered sum, of a
permutation its inverse. Inside `shard_map` types tell what the devices share (see
`core/spmd/varying`), and what they share is one value: a sum's cotangent goes to each
device as it is, and cotangents of shared values are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.docs import shared
from fxflow.core.ir.trace import state
from fxflow.core.spmd.varying import cast
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax._operands import PYTHON_SCALARS
from fxflow.lax.axes import canonical_axis
from fxflow.lax.collective_groups import (
    Names,
    Partition,
    group_length,
    length,
    names_given,
    partition,
    shown,
)
from fxflow.lax.collective_movement import (
    AllGather,
    AllToAll,
    PPermute,
    PSumScatter,
    at_index,
    index_along,
)
from fxflow.lax.collective_reductions import PBroadcast, PMax, PMin, PSum
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.elementwise import div
from fxflow.lax.keys import map_key_data
from fxflow.lax.reshaping import reshape

T = TypeVar("T")
IndexGroups = Sequence[Sequence[int]] | None


def _some(axis_name: Any, what: str) -> Names:
    names = names_given(axis_name, what)
    if not names:
        raise ArgumentError(f"{what}: axis_name is empty: name an axis")
    return names


def _bind(primitive: Any, x: Any, **params: Any) -> Any:
    """Binds a collective after checking its types: `vmap` removes it unchecked."""
    primitive.abstract(typeof(x), **params)
    return primitive.bind(x, **params)


def _move(x: T, move: Callable[[Any], Any]) -> T:
    """Applies a movement to each leaf; keys move as key data."""

    def one(leaf: Any) -> Any:
        return (
            map_key_data(move, leaf)
            if dtypes.is_key(typeof(leaf).dtype)
            else move(leaf)
        )

    result: T = tree.map(one, x)
    return result


def _counted(leaf: Any) -> Any:
    """Returns booleans as integers."""
    if dtypes.is_bool(typeof(leaf).dtype):
        return convert_element_type(leaf, np.dtype(np.int32))
    return leaf


# -- the axis --------------------------------------------------------------------------


def axis_size(axis_name: Any) -> int:
    """Returns the length of a named axis (the product, for several).

    Args:
      axis_name: a name or a tuple of names.

    Returns:
      A Python int.

    Raises:
      NameError: no such axis is in scope.

    Example:
      >>> fxflow.vmap(lambda x: x * axis_size("i"), axis_name="i")(fnp.ones(3)).tolist()
      [3.0, 3.0, 3.0]
    """
    return length(names_given(axis_name, "axis_size"))


def axis_index(axis_name: Any) -> Array:
    """Returns the index of this slice on a named axis.

    Args:
      axis_name: a name, or a tuple of names (counted row-major).

    Returns:
      i32[]: 0 … length − 1.

    Raises:
      NameError: no such axis is in scope.

    Example:
      >>> fxflow.vmap(lambda x: axis_index("i"), axis_name="i")(fnp.ones(3)).tolist()
      [0, 1, 2]
    """
    index: Array = index_along(names_given(axis_name, "axis_index"))
    return index


def pcast(x: T, axis_name: Any, *, to: str) -> T:
    """Says how a value is to be seen along named axes; the value stays as it is.

    Inside `shard_map`, the gradient with respect to a value that all devices share is
    the sum of all devices' contributions. Cast to `"varying"` first, each device has a
    copy of its own, and its gradient is of the device's part alone. Operations between
    shared values and others need no cast.

    Args:
      x: array or pytree of arrays.
      axis_name: a name or a tuple of names.
      to: `"varying"`, or `"reduced"`, whose gradients are parts as well; or
        `"unreduced"`, which is how parts of a sum are seen.

    Returns:
      The same values. Along the axes of `vmap`, `pmap` and `shard_map(check=False)`
      every value is the slice's own: `x` itself.

    Raises:
      NameError: no such axis is in scope.
      ArgumentError: `to` is another word.

    Example:
      >>> from fxflow import P, lax
      >>> def gradient(w, x):
      ...     w = lax.pcast(w, "i", to="varying")
      ...     return fxflow.grad(lambda w: fnp.sum(w * x))(w)[None]
      >>> each = fxflow.shard_map(gradient, mesh=fxflow.make_mesh((1,), ("i",)),
      ...                         in_specs=(P(), P("i")), out_specs=P("i"))
      >>> each(2.0, fnp.arange(3.0)).tolist()
      [3.0]
    """
    axes = frozenset(names_given(axis_name, "pcast"))
    if to not in ("varying", "reduced", "unreduced"):
        raise ArgumentError(
            f"pcast: to must be 'varying', 'reduced' or 'unreduced', got {to!r}"
        )
    axes &= state.tracked
    return tree.map(lambda leaf: cast(leaf, axes), x) if axes else x


# -- reductions ------------------------------------------------------------------------


def _members(axes: Names, groups: Partition) -> Any:
    """Returns how many slices this one's group has: a number, or one looked up."""
    if groups is None or len({len(group) for group in groups}) == 1:
        return group_length(axes, groups)
    # Uneven groups: the size depends on which one this slice is in.
    table = np.zeros(length(axes), np.int32)
    for group in groups:
        table[list(group)] = len(group)
    return at_index(table, axes)


def psum(x: T, axis_name: Any, *, axis_index_groups: IndexGroups = None) -> T:
    """Sums over named axes.

    Args:
      x: array or pytree of arrays, numeric or boolean.
      axis_name: a name or a tuple of names; of none, nothing is summed.
      axis_index_groups: lists of indices, each summed by itself; together they hold
        each index once. They may differ in length.

    Returns:
      The same structure; the same value in every slice of a group. Booleans are counted
      (i32). A Python number is multiplied by the number of slices at once.

    Raises:
      NameError: no such axis is in scope.
      ArgumentError: the groups do not hold each index once.

    Example:
      >>> fxflow.vmap(lambda x: psum(x, "i"), axis_name="i")(fnp.ones(3)).tolist()
      [3.0, 3.0, 3.0]
    """
    axes = names_given(axis_name, "psum")
    groups = partition(axis_index_groups, axes, "psum", even=False)

    def one(leaf: Any) -> Any:
        # The same everywhere: psum(1, axis) is a static int, and nothing is sent.
        if type(leaf) in PYTHON_SCALARS:
            return leaf * _members(axes, groups)
        leaf = _counted(leaf)
        return _bind(PSum, leaf, axes=axes, groups=groups) if axes else leaf

    result: T = tree.map(one, x)
    return result


def pmean(x: T, axis_name: Any, *, axis_index_groups: IndexGroups = None) -> T:
    """Averages over named axes.

    Args:
      x: array or pytree of arrays, numeric or boolean.
      axis_name: a name or a tuple of names.
      axis_index_groups: as for `psum`; each group is divided by its own length.

    Returns:
      The same structure; the same value in every slice of a group. Integers give
      floats.

    Raises:
      NameError: no such axis is in scope.
      ArgumentError: the groups do not hold each index once.

    Example:
      >>> fxflow.vmap(lambda x: pmean(x, "i"), axis_name="i")(fnp.arange(3.0)).tolist()
      [1.0, 1.0, 1.0]
    """
    axes = names_given(axis_name, "pmean")
    groups = partition(axis_index_groups, axes, "pmean", even=False)
    count = _members(axes, groups)

    def one(leaf: Any) -> Any:
        if type(leaf) in PYTHON_SCALARS:
            return leaf * 1.0
        leaf = _counted(leaf)
        total = _bind(PSum, leaf, axes=axes, groups=groups) if axes else leaf
        dtype = typeof(total).dtype
        if not dtypes.is_inexact(dtype):
            dtype = dtypes.to_inexact(dtype)
            total = convert_element_type(total, dtype)
        if isinstance(count, int):
            return div(total, count)
        return div(total, convert_element_type(count, dtype))

    result: T = tree.map(one, x)
    return result


def _extremum(
    primitive: Any, x: T, axis_name: Any, groups: IndexGroups, what: str
) -> T:
    axes = names_given(axis_name, what)
    divided = partition(groups, axes, what, even=False)

    def one(leaf: Any) -> Any:
        return _bind(primitive, leaf, axes=axes, groups=divided) if axes else leaf

    result: T = tree.map(one, x)
    return result


_extremum_docs = shared("""
    Args:
      x: array or pytree of arrays.
      axis_name: a name or a tuple of names.
      axis_index_groups: as for `psum`.

    Returns:
      The same structure; the same value in every slice of a group. Complex numbers are
      ordered by real part, then imaginary part.

    Raises:
      NameError: no such axis is in scope.
      ArgumentError: the groups do not hold each index once.
""")


@_extremum_docs
def pmax(x: T, axis_name: Any, *, axis_index_groups: IndexGroups = None) -> T:
    """Returns the maximum over named axes.

    It has no derivative.

    Example:
      >>> fxflow.vmap(lambda x: pmax(x, "i"), axis_name="i")(fnp.arange(3)).tolist()
      [2, 2, 2]
    """
    return _extremum(PMax, x, axis_name, axis_index_groups, "pmax")


@_extremum_docs
def pmin(x: T, axis_name: Any, *, axis_index_groups: IndexGroups = None) -> T:
    """Returns the minimum over named axes.

    It has no derivative.

    Example:
      >>> fxflow.vmap(lambda x: pmin(x, "i"), axis_name="i")(fnp.arange(3)).tolist()
      [0, 0, 0]
    """
    return _extremum(PMin, x, axis_name, axis_index_groups, "pmin")


# -- gathers ---------------------------------------------------------------------------


def all_gather(
    x: T,
    axis_name: Any,
    *,
    axis_index_groups: IndexGroups = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> T:
    """Gives every slice all of them.

    Args:
      x: array or pytree of arrays, any dtype, keys too.
      axis_name: a name or a tuple of names.
      axis_index_groups: lists of indices, equally long, each gathered by itself in the
        order listed.
      axis: where they are stacked.
      tiled: whether they are concatenated along an existing axis instead.
      to: how the result is to be seen inside `shard_map`, which decides about
        derivatives. `"varying"` (or `"reduced"`): each device has a use of its own for
        it, and the parts' cotangents are sums over the devices (a reduce-scatter).
        `"invarying"`: the devices share it and what comes of it.

    Returns:
      The same structure; the same value in every slice of a group.

    Raises:
      NameError: no such axis is in scope.
      AxisError: `axis` is out of range.
      ArgumentError: the groups differ in length or do not hold each index once; `to` is
        another word.

    Example:
      >>> gather = lambda x: all_gather(x, "i")
      >>> fxflow.vmap(gather, axis_name="i")(fnp.arange(2.0)).tolist()
      [[0.0, 1.0], [0.0, 1.0]]
    """
    axes = _some(axis_name, "all_gather")
    groups = partition(axis_index_groups, axes, "all_gather", even=True)
    if to not in ("varying", "reduced", "invarying"):
        raise ArgumentError(
            f"all_gather: to must be 'varying', 'reduced' or 'invarying', got {to!r}"
        )
    options: dict[str, Any] = {"axes": axes, "groups": groups}
    if to == "invarying":
        if groups is not None:
            raise ArgumentError("all_gather: groups do not share what they gather")
        options["shared"] = state.tracked.issuperset(axes)

    def one(leaf: Any) -> Any:
        dim = canonical_axis("all_gather", axis, typeof(leaf).ndim + (not tiled))

        def gathered(value: Any) -> Any:
            out = _bind(AllGather, value, dim=dim, **options)
            return _merged(out, dim) if tiled else out

        return _move(leaf, gathered)

    result: T = tree.map(one, x)
    return result


def _merged(x: Any, dim: int) -> Any:
    """Returns an array with two neighbouring axes made one."""
    shape = typeof(x).shape
    return reshape(x, (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def _split(x: Any, dim: int, size: int, what: str) -> Any:
    aval = typeof(x)
    if aval.shape[dim] % size:
        raise ShapeError(
            f"{what}: axis {dim} of {aval} cannot be divided among {size} slices"
        )
    shape = (*aval.shape[:dim], size, aval.shape[dim] // size, *aval.shape[dim + 1 :])
    return reshape(x, shape)


def psum_scatter(
    x: T,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: IndexGroups = None,
    tiled: bool = False,
) -> T:
    """Sums over named axes; each slice keeps its part.

    Args:
      x: array or pytree of arrays, numeric or boolean (counted).
      axis_name: a name or a tuple of names.
      scatter_dimension: the array axis that is divided among the slices.
      axis_index_groups: lists of indices, equally long, each summed by itself; its k-th
        index keeps the k-th part.
      tiled: whether that axis stays, divided by the number of slices, rather than
        disappearing.

    Returns:
      The same structure.

    Raises:
      NameError: no such axis is in scope.
      ShapeError: the array axis cannot be divided.
      AxisError: `scatter_dimension` is out of range.
      ArgumentError: the groups differ in length or do not hold each index once.

    Example:
      >>> part = lambda x: psum_scatter(x, "i")
      >>> fxflow.vmap(part, axis_name="i")(fnp.arange(4.0).reshape(2, 2)).tolist()
      [2.0, 4.0]
    """
    axes = _some(axis_name, "psum_scatter")
    groups = partition(axis_index_groups, axes, "psum_scatter", even=True)

    def one(leaf: Any) -> Any:
        dim = canonical_axis("psum_scatter", scatter_dimension, typeof(leaf).ndim)
        leaf = _counted(leaf)
        if tiled:
            leaf = _split(leaf, dim, group_length(axes, groups), "psum_scatter")
        return _bind(PSumScatter, leaf, axes=axes, dim=dim, groups=groups)

    result: T = tree.map(one, x)
    return result


def pbroadcast(x: T, axis_name: Any, source: int) -> T:
    """Gives every slice that of one index.

    Args:
      x: array or pytree of arrays, any dtype, keys too.
      axis_name: a name or a tuple of names.
      source: the index.

    Returns:
      The same structure; the same value in every slice.

    Raises:
      NameError: no such axis is in scope.
      ArgumentError: `source` is out of range.

    Example:
      >>> last = lambda x: pbroadcast(x, "i", 2)
      >>> fxflow.vmap(last, axis_name="i")(fnp.arange(3)).tolist()
      [2, 2, 2]
    """
    axes = _some(axis_name, "pbroadcast")
    size = length(axes)
    if not 0 <= source < size:
        raise ArgumentError(
            f"pbroadcast: source {source} is out of range for the axis {shown(axes)} "
            f"of length {size}"
        )
    return _move(x, lambda v: _bind(PBroadcast, v, axes=axes, source=int(source)))


# -- exchanges -------------------------------------------------------------------------


def ppermute(x: T, axis_name: Any, perm: Sequence[tuple[int, int]]) -> T:
    """Sends slices to other indices on named axes.

    Args:
      x: array or pytree of arrays, any dtype, keys too.
      axis_name: a name or a tuple of names.
      perm: pairs `(source, target)`; an index that is not a target gets zeros.

    Returns:
      The same structure.

    Raises:
      NameError: no such axis is in scope.
      ArgumentError: an index is named twice or out of range.

    Example:
      >>> send = lambda x: ppermute(x, "i", [(0, 1), (1, 0)])
      >>> fxflow.vmap(send, axis_name="i")(fnp.arange(3.0)).tolist()
      [1.0, 0.0, 0.0]
    """
    return _sent(x, axis_name, perm, "ppermute")


def _sent(x: T, axis_name: Any, perm: Any, what: str) -> T:
    axes = _some(axis_name, what)
    pairs = pairs_given(perm, what)
    return _move(x, lambda value: _bind(PPermute, value, axes=axes, perm=pairs))


def pairs_given(perm: Any, what: str) -> tuple[tuple[int, int], ...]:
    """Returns a permutation as a tuple of pairs of ints.

    Args:
      perm: as the user gave it.
      what: the function, for the message.

    Raises:
      ArgumentError: it is something else.
    """
    try:
        return tuple((int(source), int(target)) for source, target in perm)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{what}: perm is a list of pairs (source, target), got {perm!r}"
        ) from None


def pshuffle(x: T, axis_name: Any, perm: Sequence[int]) -> T:
    """Reorders the slices of named axes.

    Args:
      x: array or pytree of arrays, any dtype, keys too.
      axis_name: a name or a tuple of names.
      perm: for each index the index its slice comes from; a permutation.

    Returns:
      The same structure.

    Raises:
      NameError: no such axis is in scope.
      ArgumentError: `perm` is not a permutation.

    Example:
      >>> turn = lambda x: pshuffle(x, "i", [2, 0, 1])
      >>> fxflow.vmap(turn, axis_name="i")(fnp.arange(3)).tolist()
      [2, 0, 1]
    """
    size = axis_size(axis_name)
    if sorted(perm) != list(range(size)):
        raise ArgumentError(
            f"pshuffle: perm must be a permutation of 0 … {size - 1}, got {list(perm)}"
        )
    pairs = [(source, target) for target, source in enumerate(perm)]
    return _sent(x, axis_name, pairs, "pshuffle")


def all_to_all(
    x: T,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: IndexGroups = None,
    tiled: bool = False,
) -> T:
    """Divides an array axis among the slices and joins what arrives from each.

    Args:
      x: array or pytree of arrays, any dtype, keys too.
      axis_name: a name or a tuple of names.
      split_axis: the array axis that is divided.
      concat_axis: where the parts that arrive are joined.
      axis_index_groups: lists of indices, equally long, which exchange among
        themselves: the k-th part goes to the k-th index.
      tiled: whether both axes stay, divided and multiplied by the number of slices;
        otherwise the first disappears and the second is new.

    Returns:
      The same structure.

    Raises:
      NameError: no such axis is in scope.
      ShapeError: the array axis cannot be divided.
      AxisError: an axis is out of range.
      ArgumentError: the groups differ in length or do not hold each index once.

    Example:
      >>> swap = lambda x: all_to_all(x, "i", 0, 0)
      >>> fxflow.vmap(swap, axis_name="i")(fnp.arange(4).reshape(2, 2)).tolist()
      [[0, 2], [1, 3]]
    """
    return _exchanged(
        x, axis_name, split_axis, concat_axis, axis_index_groups, tiled, "all_to_all"
    )


def _exchanged(
    x: T,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    axis_index_groups: IndexGroups,
    tiled: bool,
    what: str,
) -> T:
    axes = _some(axis_name, what)
    groups = partition(axis_index_groups, axes, what, even=True)
    size = group_length(axes, groups)

    def one(leaf: Any) -> Any:
        ndim = typeof(leaf).ndim
        split = canonical_axis(what, split_axis, ndim)
        join = canonical_axis(what, concat_axis, ndim)
        if tiled and typeof(leaf).shape[split] % size:
            _split(leaf, split, size, what)  # names keys, not key data

        def exchanged(value: Any) -> Any:
            if tiled:
                value = _split(value, split, size, what)
            out = _bind(
                AllToAll, value, axes=axes, split=split, join=join, groups=groups
            )
            return _merged(out, join) if tiled else out

        return _move(leaf, exchanged)

    result: T = tree.map(one, x)
    return result


def pswapaxes(
    x: T, axis_name: Any, axis: int, *, axis_index_groups: IndexGroups = None
) -> T:
    """Exchanges a named axis with an array axis of the same length.

    Args:
      x: array or pytree of arrays, any dtype, keys too.
      axis_name: a name or a tuple of names.
      axis: the array axis.
      axis_index_groups: as for `all_to_all`.

    Returns:
      The same structure and shapes: element i of `axis` comes from index i.

    Raises:
      NameError: no such axis is in scope.
      ShapeError: the array axis is not as long as the named one.
      AxisError: the axis is out of range.

    Example:
      >>> swap = lambda x: pswapaxes(x, "i", 0)
      >>> fxflow.vmap(swap, axis_name="i")(fnp.arange(4).reshape(2, 2)).tolist()
      [[0, 2], [1, 3]]
    """
    return _exchanged(x, axis_name, axis, axis, axis_index_groups, False, "pswapaxes")
