"""Collectives: operations across a named axis.

Every slice along the axis sees its own operand; a collective combines them. Under
`vmap(..., axis_name=...)` the axis is an array axis, so a collective becomes a
reduction, a gather or a permutation along it (`batch_named`). As linear maps: the
transpose of a sum over the axis is the sum of all cotangents, of a gather the scattered
sum, of a permutation its inverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow.core import dtypes, tree
from fxflow.core.array import Array
from fxflow.core.aval import Aval
from fxflow.core.batching import materialize
from fxflow.core.convert import typeof
from fxflow.core.errors import ArgumentError, AxisError, ShapeError
from fxflow.core.primitive import Primitive, register
from fxflow.core.trace import axis_size_of
from fxflow.lax._operands import PYTHON_SCALARS
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import broadcasted_iota, full
from fxflow.lax.elementwise import div, mul
from fxflow.lax.families import Linear
from fxflow.lax.joining import concatenate
from fxflow.lax.reduction import reduce_max, reduce_min, reduce_sum
from fxflow.lax.shape import reshape, squeeze, transpose
from fxflow.lax.slicing import index_in_dim

Names = tuple[Any, ...]


class Collective(Primitive):
    """Combines the slices along named axes.

    Params:
      axes: names of the axes, a tuple.
    """

    axis_params = ("axes",)
    host_safe = False

    def lower(self, ctx: Any, *operands: str, **params: Any) -> Any:
        """There is no named axis left when a program is lowered for one device."""
        raise ArgumentError(
            f"{self.name} over {params['axes']} cannot be compiled: the axis belongs "
            "to a vmap that is no longer in progress"
        )

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """There is no named axis outside a transformation."""
        raise ArgumentError(f"{self.name}: no axis is named {params['axes']}")

    def batch(
        self, size: int, args: Sequence[Any], mapped: Sequence[bool], **params: Any
    ) -> tuple[Any, Any]:
        """Over another axis, which comes along in front."""
        return self.bind(*args, **self.behind(params)), True

    def behind(self, params: dict[str, Any]) -> dict[str, Any]:
        """Returns the parameters for operands with one more axis in front."""
        return params


def _rest(axes: Names, axis_name: Any) -> Names:
    return tuple(name for name in axes if name != axis_name)


class _Reduce(Collective):
    def abstract(self, x: Aval, *, axes: Names) -> Aval:
        """The operand's type."""
        for name in axes:
            axis_size_of(name)
        return x.strong()


class _Extremum(_Reduce):
    nondifferentiable = "take the derivative of the element you select instead"

    def batch_named(
        self,
        axis_name: Any,
        size: int,
        args: Sequence[Any],
        mapped: Sequence[bool],
        *,
        axes: Names,
    ) -> tuple[Any, bool]:
        """A reduction over the mapped axis."""
        out = self.reduce(args[0]) if mapped[0] else args[0]
        rest = _rest(axes, axis_name)
        return (self.bind(out, axes=rest) if rest else out), False

    def reduce(self, x: Any) -> Any:
        """Returns the extremum over axis 0."""
        raise NotImplementedError


@register
class PSum(Linear, _Reduce):
    """Sum over named axes. dtypes: numeric."""

    name = "psum"

    def batch_named(
        self,
        axis_name: Any,
        size: int,
        args: Sequence[Any],
        mapped: Sequence[bool],
        *,
        axes: Names,
    ) -> tuple[Any, bool]:
        """A sum over the mapped axis."""
        (x,) = args
        out = reduce_sum(x, (0,)) if mapped[0] else mul(x, size)
        rest = _rest(axes, axis_name)
        return (PSum.bind(out, axes=rest) if rest else out), False

    def transpose(self, cotangent: Any, *args: Any, axes: Names) -> Sequence[Any]:
        """The sum of the cotangents of all slices."""
        return [PSum.bind(cotangent, axes=axes)]


@register
class PMax(_Extremum):
    """Maximum over named axes. dtypes: real."""

    name = "pmax"

    def reduce(self, x: Any) -> Any:
        """Maximum over axis 0."""
        return reduce_max(x, (0,))


@register
class PMin(_Extremum):
    """Minimum over named axes. dtypes: real."""

    name = "pmin"

    def reduce(self, x: Any) -> Any:
        """Minimum over axis 0."""
        return reduce_min(x, (0,))


class _Moving(Linear, Collective):
    """Moves slices along one axis.

    Params:
      axes: the one name.
      dims: array axes that the movement refers to.
    """

    dim_params: ClassVar[tuple[str, ...]] = ()

    def behind(self, params: dict[str, Any]) -> dict[str, Any]:
        """The array axes one further back."""
        moved = {name: params[name] + 1 for name in self.dim_params}
        return {**params, **moved}


@register
class AllGather(_Moving):
    """Every slice gets all of them, stacked along a new axis `dim`. dtypes: any."""

    name = "all_gather"
    dim_params = ("dim",)

    def abstract(self, x: Aval, *, axes: Names, dim: int) -> Aval:
        """One more axis, as long as the named one."""
        size = axis_size_of(axes[0])
        return Aval((*x.shape[:dim], size, *x.shape[dim:]), x.dtype)

    def batch_named(
        self,
        axis_name: Any,
        size: int,
        args: Sequence[Any],
        mapped: Sequence[bool],
        *,
        axes: Names,
        dim: int,
    ) -> tuple[Any, bool]:
        """The mapped axis itself, moved."""
        x = materialize(args[0], size, mapped[0])
        order = list(range(1, typeof(x).ndim))
        order.insert(dim, 0)
        return transpose(x, order), False

    def transpose(
        self, cotangent: Any, *args: Any, axes: Names, dim: int
    ) -> Sequence[Any]:
        """The scattered sum."""
        return [PSumScatter.bind(cotangent, axes=axes, dim=dim)]


@register
class PSumScatter(_Moving):
    """Sum over the named axis; slice i keeps element i of `dim`. dtypes: numeric."""

    name = "psum_scatter"
    dim_params = ("dim",)

    def abstract(self, x: Aval, *, axes: Names, dim: int) -> Aval:
        """Without axis `dim`."""
        size = axis_size_of(axes[0])
        if x.shape[dim] != size:
            raise ShapeError(
                f"psum_scatter: axis {dim} of {x} must be as long as the named axis "
                f"{axes[0]!r}, {size}"
            )
        return Aval((*x.shape[:dim], *x.shape[dim + 1 :]), x.dtype)

    def batch_named(
        self,
        axis_name: Any,
        size: int,
        args: Sequence[Any],
        mapped: Sequence[bool],
        *,
        axes: Names,
        dim: int,
    ) -> tuple[Any, bool]:
        """A sum over the mapped axis; axis `dim` becomes the mapped one."""
        total = reduce_sum(args[0], (0,)) if mapped[0] else mul(args[0], size)
        order = [dim, *(i for i in range(typeof(total).ndim) if i != dim)]
        return transpose(total, order), True

    def transpose(
        self, cotangent: Any, *args: Any, axes: Names, dim: int
    ) -> Sequence[Any]:
        """A gather."""
        return [AllGather.bind(cotangent, axes=axes, dim=dim)]


@register
class PPermute(_Moving):
    """Sends slice `source` to place `target` for each pair; others get zeros.

    dtypes: any.

    Params:
      perm: pairs `(source, target)`.
    """

    name = "ppermute"

    def abstract(
        self, x: Aval, *, axes: Names, perm: tuple[tuple[int, int], ...]
    ) -> Aval:
        """The operand's type."""
        size = axis_size_of(axes[0])
        for part, what in ((0, "sources"), (1, "targets")):
            places = [pair[part] for pair in perm]
            if len(set(places)) != len(places) or any(
                not 0 <= p < size for p in places
            ):
                raise ArgumentError(
                    f"ppermute: {what} must be different places on axis {axes[0]!r} of "
                    f"length {size}, got {places}"
                )
        return x.strong()

    def batch_named(
        self,
        axis_name: Any,
        size: int,
        args: Sequence[Any],
        mapped: Sequence[bool],
        *,
        axes: Names,
        perm: tuple[tuple[int, int], ...],
    ) -> tuple[Any, bool]:
        """The slices in another order."""
        x = materialize(args[0], size, mapped[0])
        source_of = {target: source for source, target in perm}
        aval = typeof(x)
        nothing = full((1, *aval.shape[1:]), 0, aval.dtype)
        parts = [
            index_in_dim(x, source_of[i], 0) if i in source_of else nothing
            for i in range(size)
        ]
        return concatenate(parts, 0), True

    def transpose(
        self,
        cotangent: Any,
        *args: Any,
        axes: Names,
        perm: tuple[tuple[int, int], ...],
    ) -> Sequence[Any]:
        """The inverse permutation."""
        inverse = tuple((target, source) for source, target in perm)
        return [PPermute.bind(cotangent, axes=axes, perm=inverse)]


@register
class AllToAll(_Moving):
    """Element i of axis `split` goes to slice i; what arrives is stacked on `join`.

    dtypes: any. Axis `split` disappears, axis `join` is new.
    """

    name = "all_to_all"
    dim_params = ("join", "split")

    def abstract(self, x: Aval, *, axes: Names, split: int, join: int) -> Aval:
        """One axis less, one more."""
        size = axis_size_of(axes[0])
        if x.shape[split] != size:
            raise ShapeError(
                f"all_to_all: axis {split} of {x} must be as long as the named axis "
                f"{axes[0]!r}, {size}"
            )
        rest = [n for i, n in enumerate(x.shape) if i != split]
        rest.insert(join, size)
        return Aval(tuple(rest), x.dtype)

    def batch_named(
        self,
        axis_name: Any,
        size: int,
        args: Sequence[Any],
        mapped: Sequence[bool],
        *,
        axes: Names,
        split: int,
        join: int,
    ) -> tuple[Any, bool]:
        """The mapped axis and axis `split` change places."""
        x = materialize(args[0], size, mapped[0])
        order = [i for i in range(1, typeof(x).ndim) if i != split + 1]
        order.insert(join, 0)
        return transpose(x, [split + 1, *order]), True

    def transpose(
        self, cotangent: Any, *args: Any, axes: Names, split: int, join: int
    ) -> Sequence[Any]:
        """The way back."""
        return [AllToAll.bind(cotangent, axes=axes, split=join, join=split)]


@register
class AxisIndex(Collective):
    """Place of this slice on the named axis. Result: i32[]."""

    name = "axis_index"
    nondifferentiable = "it is an integer"

    def abstract(self, *, axes: Names) -> Aval:
        """A 0-d integer."""
        axis_size_of(axes[0])
        return Aval((), np.dtype(np.int32))

    def batch_named(
        self,
        axis_name: Any,
        size: int,
        args: Sequence[Any],
        mapped: Sequence[bool],
        *,
        axes: Names,
    ) -> tuple[Any, bool]:
        """0, 1, 2, … along the mapped axis."""
        return broadcasted_iota(np.dtype(np.int32), (size,), 0), True


# -- public ------------------------------------------------------------------------


def _names(axis_name: Any) -> Names:
    return tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)


def _one(axis_name: Any, what: str) -> Names:
    names = _names(axis_name)
    if len(names) != 1:
        raise ArgumentError(f"{what} takes one named axis, got {axis_name!r}")
    return names


def _dim(axis: int, ndim: int, what: str) -> int:
    if not -ndim <= axis < ndim:
        raise AxisError(f"{what}: axis {axis} is out of range for {ndim} axes")
    return axis % ndim


def _checked(primitive: Any, x: Any, **params: Any) -> Any:
    """Binds a collective whose types nobody else checks: under `vmap` it disappears."""
    primitive.abstract(typeof(x), **params)
    return primitive.bind(x, **params)


def axis_size(axis_name: Any) -> int:
    """Returns the length of a named axis (the product, for several).

    Args:
      axis_name: a name or a tuple of names.

    Returns:
      A Python int.

    Raises:
      NameError: no such axis is in scope.

    Example:
      >>> import fxflow, fxflow.numpy as fnp
      >>> fxflow.vmap(lambda x: x * axis_size("i"), axis_name="i")(fnp.ones(3)).tolist()
      [3.0, 3.0, 3.0]
    """
    size = 1
    for name in _names(axis_name):
        size *= axis_size_of(name)
    return size


def axis_index(axis_name: Any) -> Array:
    """Returns the place of this slice on a named axis.

    Args:
      axis_name: a name, or a tuple of names (counted row-major).

    Returns:
      i32[]: 0 … length − 1.

    Raises:
      NameError: no such axis is in scope.

    Example:
      >>> import fxflow, fxflow.numpy as fnp
      >>> fxflow.vmap(lambda x: axis_index("i"), axis_name="i")(fnp.ones(3)).tolist()
      [0, 1, 2]
    """
    index: Any = None
    for name in _names(axis_name):
        place = AxisIndex.bind(axes=(name,))
        index = place if index is None else mul(index, axis_size_of(name)) + place
    result: Array = index
    return result


def psum(x: Any, axis_name: Any) -> Any:
    """Sums over a named axis.

    Args:
      x: array or pytree of arrays.
      axis_name: a name or a tuple of names.

    Returns:
      The same structure; the same value in every slice. Booleans are counted. A
      Python number is multiplied by the axis's length at once.

    Raises:
      NameError: no such axis is in scope.

    Example:
      >>> import fxflow, fxflow.numpy as fnp
      >>> fxflow.vmap(lambda x: psum(x, "i"), axis_name="i")(fnp.ones(3)).tolist()
      [3.0, 3.0, 3.0]
    """
    axes = _names(axis_name)

    def one(leaf: Any) -> Any:
        if type(leaf) in PYTHON_SCALARS:
            return leaf * axis_size(axes)
        if dtypes.is_bool(typeof(leaf).dtype):
            leaf = convert_element_type(leaf, np.dtype(np.int32))
        return PSum.bind(leaf, axes=axes)

    return tree.map(one, x)


def pmean(x: Any, axis_name: Any) -> Any:
    """Averages over a named axis.

    Args:
      x: array or pytree of arrays.
      axis_name: a name or a tuple of names.

    Returns:
      The same structure; the same value in every slice. Integers give floats.

    Raises:
      NameError: no such axis is in scope.

    Example:
      >>> import fxflow, fxflow.numpy as fnp
      >>> fxflow.vmap(lambda x: pmean(x, "i"), axis_name="i")(fnp.arange(3.0)).tolist()
      [1.0, 1.0, 1.0]
    """
    size = axis_size(axis_name)

    def one(total: Any) -> Any:
        if type(total) in PYTHON_SCALARS:
            return total / size
        dtype = typeof(total).dtype
        if not dtypes.is_inexact(dtype):
            total = convert_element_type(total, dtypes.to_inexact(dtype))
        return div(total, size)

    return tree.map(one, psum(x, axis_name))


def pmax(x: Any, axis_name: Any) -> Any:
    """Returns the maximum over a named axis.

    Args:
      x: array or pytree of arrays.
      axis_name: a name or a tuple of names.

    Returns:
      The same structure; the same value in every slice.

    Raises:
      NameError: no such axis is in scope.
    """
    axes = _names(axis_name)
    return tree.map(lambda leaf: PMax.bind(leaf, axes=axes), x)


def pmin(x: Any, axis_name: Any) -> Any:
    """Returns the minimum over a named axis.

    Args:
      x: array or pytree of arrays.
      axis_name: a name or a tuple of names.

    Returns:
      The same structure; the same value in every slice.

    Raises:
      NameError: no such axis is in scope.
    """
    axes = _names(axis_name)
    return tree.map(lambda leaf: PMin.bind(leaf, axes=axes), x)


def all_gather(x: Any, axis_name: Any, *, axis: int = 0, tiled: bool = False) -> Any:
    """Gives every slice all of them.

    Args:
      x: array or pytree of arrays.
      axis_name: one name.
      axis: where they are stacked.
      tiled: whether they are concatenated along an existing axis instead.

    Returns:
      The same structure; the same value in every slice.

    Raises:
      NameError: no such axis is in scope.
      AxisError: `axis` is out of range.

    Example:
      >>> import fxflow, fxflow.numpy as fnp
      >>> gather = lambda x: all_gather(x, "i")
      >>> fxflow.vmap(gather, axis_name="i")(fnp.arange(2.0)).tolist()
      [[0.0, 1.0], [0.0, 1.0]]
    """
    axes = _one(axis_name, "all_gather")

    def one(leaf: Any) -> Any:
        shape = typeof(leaf).shape
        dim = _dim(axis, len(shape) + (not tiled), "all_gather")
        out = _checked(AllGather, leaf, axes=axes, dim=dim)
        if not tiled:
            return out
        size = axis_size_of(axes[0])
        return reshape(out, (*shape[:dim], size * shape[dim], *shape[dim + 1 :]))

    return tree.map(one, x)


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, tiled: bool = False
) -> Any:
    """Sums over a named axis; each slice keeps its part.

    Args:
      x: array or pytree of arrays.
      axis_name: one name.
      scatter_dimension: the array axis that is divided among the slices.
      tiled: whether that axis stays, divided by the named axis's length, rather than
        disappearing.

    Returns:
      The same structure.

    Raises:
      NameError: no such axis is in scope.
      ShapeError: the array axis cannot be divided.
    """
    axes = _one(axis_name, "psum_scatter")

    def one(leaf: Any) -> Any:
        aval = typeof(leaf)
        dim = _dim(scatter_dimension, aval.ndim, "psum_scatter")
        if tiled:
            leaf = _split(leaf, dim, axis_size_of(axes[0]), "psum_scatter")
        return _checked(PSumScatter, leaf, axes=axes, dim=dim)

    return tree.map(one, x)


def _split(x: Any, dim: int, size: int, what: str) -> Any:
    aval = typeof(x)
    if aval.shape[dim] % size:
        raise ShapeError(
            f"{what}: axis {dim} of {aval} cannot be divided among {size} slices"
        )
    shape = (*aval.shape[:dim], size, aval.shape[dim] // size, *aval.shape[dim + 1 :])
    return reshape(x, shape)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Sends slices to other places on a named axis.

    Args:
      x: array or pytree of arrays.
      axis_name: one name.
      perm: pairs `(source, target)`; a place that is no target gets zeros.

    Returns:
      The same structure.

    Raises:
      NameError: no such axis is in scope.
      ArgumentError: a place is named twice or out of range.

    Example:
      >>> import fxflow, fxflow.numpy as fnp
      >>> send = lambda x: ppermute(x, "i", [(0, 1), (1, 0)])
      >>> fxflow.vmap(send, axis_name="i")(fnp.arange(3.0)).tolist()
      [1.0, 0.0, 0.0]
    """
    axes = _one(axis_name, "ppermute")
    pairs = tuple((int(s), int(t)) for s, t in perm)
    return tree.map(lambda leaf: _checked(PPermute, leaf, axes=axes, perm=pairs), x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Reorders the slices of a named axis.

    Args:
      x: array or pytree of arrays.
      axis_name: one name.
      perm: for each place the place its slice comes from; a permutation.

    Returns:
      The same structure.

    Raises:
      NameError: no such axis is in scope.
      ArgumentError: `perm` is no permutation.
    """
    size = axis_size(axis_name)
    if sorted(perm) != list(range(size)):
        raise ArgumentError(
            f"pshuffle: perm must be a permutation of 0 … {size - 1}, got {list(perm)}"
        )
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(perm)])


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """Gives every slice that of one place.

    Args:
      x: array or pytree of arrays.
      axis_name: one name.
      source: the place.

    Returns:
      The same structure; the same value in every slice.

    Raises:
      NameError: no such axis is in scope.
      ArgumentError: `source` is out of range.
    """
    size = axis_size(axis_name)
    if not 0 <= source < size:
        raise ArgumentError(
            f"pbroadcast: source {source} is out of range for {axis_name!r} of {size}"
        )
    gathered = all_gather(x, axis_name)
    return tree.map(lambda leaf: squeeze(index_in_dim(leaf, source, 0), (0,)), gathered)


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, tiled: bool = False
) -> Any:
    """Divides an array axis among the slices and joins what arrives from each.

    Args:
      x: array or pytree of arrays.
      axis_name: one name.
      split_axis: the array axis that is divided.
      concat_axis: where the parts that arrive are joined.
      tiled: whether both axes stay, divided and multiplied by the named axis's length;
        otherwise the first disappears and the second is new.

    Returns:
      The same structure.

    Raises:
      NameError: no such axis is in scope.
      ShapeError: the array axis cannot be divided.
      AxisError: an axis is out of range.
    """
    axes = _one(axis_name, "all_to_all")

    def one(leaf: Any) -> Any:
        aval = typeof(leaf)
        split = _dim(split_axis, aval.ndim, "all_to_all")
        join = _dim(concat_axis, aval.ndim, "all_to_all")
        if not tiled:
            return _checked(AllToAll, leaf, axes=axes, split=split, join=join)
        size = axis_size_of(axes[0])
        parts = _split(leaf, split, size, "all_to_all")
        out = _checked(AllToAll, parts, axes=axes, split=split, join=join)
        shape = list(typeof(out).shape)
        shape[join : join + 2] = [shape[join] * shape[join + 1]]
        return reshape(out, tuple(shape))

    return tree.map(one, x)
