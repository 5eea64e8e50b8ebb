"""Collectives whose result is the same at every index: sums, extrema, a broadcast.

Along an array axis (`vmap`) they are reductions. The transpose of a sum over an axis is
the sum of all cotangents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import copysign, nan
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Aval, Axes, dtypes, typeof
from fxflow.core.arrays.aval import NOWHERE
from fxflow.core.ir.graph import Graph, Node
from fxflow.core.ir.primitive import Batched, Flags, Values, register
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import named_axes, state
from fxflow.core.runtime.lowering import Context
from fxflow.lax import ordered_bits
from fxflow.lax.bitcasting import bitcast_convert_type
from fxflow.lax.bitwise import bitwise_or
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.collective_combiner import combined
from fxflow.lax.collective_groups import (
    Collective,
    Groups,
    Names,
    Partition,
    group_of,
    length,
    reducer,
)
from fxflow.lax.collective_movement import (
    AllGather,
    Movement,
    at_index,
    index_along,
    rows,
)
from fxflow.lax.comparison import eq, ne
from fxflow.lax.complex import complex as complex_of
from fxflow.lax.complex import imag, real
from fxflow.lax.concatenation import concatenate
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import full_like
from fxflow.lax.elementwise import mul
from fxflow.lax.families import ANY, MOVED, NUMERIC, Kinds, Linear, require_kind
from fxflow.lax.reduction import reduce_max, reduce_min, reduce_sum
from fxflow.lax.reshaping import reshape
from fxflow.lax.select import select
from fxflow.lax.slicing import slice_in_dim

#: Bytes; a reduction over processes takes longer to begin than to copy these. Larger
#: ones go on beside what is computed: an MNIST step took 7 to 100 ms with all gradients
#: joined, 14 to 17 with none, and 8 to 14 with those up to this size.
SMALL = 2**16


class CollectiveReduction(Collective):
    """Reduces over the slices of a group; each gets the result.

    Attributes:
      kinds: dtypes it takes.
      operation: that combines two elements, of StableHLO.
    """

    kinds: ClassVar[Kinds]
    operation: ClassVar[str]

    def abstract(self, x: Aval, *, axes: Names, groups: Partition = None) -> Aval:
        """The operand's type."""
        length(axes)
        require_kind(self.name, x, self.kinds)
        return x.strong()

    def needs_index(self, params: dict[str, Any]) -> bool:
        """The results of groups may be looked up."""
        return params.get("groups") is not None

    def lower_across(self, ctx: Context, devices: Groups, x: str, **params: Any) -> str:
        """`stablehlo.all_reduce`, or by gathering what runtimes cannot reduce.

        None orders complex numbers; GPUs' and TPUs' take groups of one length only.
        """
        (aval,) = ctx.avals_in
        groups = params.get("groups") or ((),)
        ordered = self.operation != "add" and dtypes.is_complex(aval.dtype)
        if ordered or len({len(group) for group in groups}) > 1:
            with devices.scope():
                (out,) = ctx.compose(lambda v: self.via_all_gather(v, **params), [x])
            return out
        return ctx.emit(
            f'"stablehlo.all_reduce"({x}) <{{{devices.attributes}}}> '
            f"({reducer(ctx, aval, self.operation)}) : "
            f"({aval.mlir}) -> {aval.mlir}"
        )

    def vma(self, given: Sequence[Axes], params: dict[str, Any]) -> Axes:
        """All devices share the result, unless there are groups."""
        every = super().vma(given, params)
        return every if params.get("groups") else every.difference(params["axes"])

    def batch_named(
        self,
        axis_name: Any,
        size: int,
        args: Values,
        mapped: Flags,
        *,
        axes: Names,
        groups: Partition = None,
    ) -> Batched:
        """A reduction over the mapped axis, then over the other ones."""
        if groups is not None:
            return super().batch_named(
                axis_name, size, args, mapped, axes=axes, groups=groups
            )
        (x,) = args
        out = self.reduce(x, (0,)) if mapped[0] else self.repeated(x, size)
        rest = tuple(name for name in axes if name != axis_name)
        return (self.bind(out, axes=rest) if rest else out), False

    def via_all_gather(self, x: Any, *, axes: Names, groups: Partition = None) -> Any:
        """Returns the own group's result, of those of all groups."""
        every = AllGather.bind(x, axes=axes, dim=0)
        if groups is None:
            return self.reduce(every, (0,))
        shape = (1, *typeof(x).shape)
        results = [
            reshape(self.reduce(rows(every, group), (0,)), shape) for group in groups
        ]
        return at_index(rows(concatenate(results, 0), group_of(groups)), axes)

    def reduce(self, x: Any, dims: tuple[int, ...]) -> Any:
        """Returns the reduction over array axes."""
        raise NotImplementedError

    def repeated(self, x: Any, size: int) -> Any:
        """Returns the reduction of `size` equal values."""
        raise NotImplementedError


def with_combined_reductions(graph: Graph, scope: named_axes) -> Graph:
    """Returns a graph in which reductions of small arrays are one.

    For the CPUs of several processes, where gloo takes arrays one by one. Within a
    process, and on other platforms, XLA combines them itself.

    Args:
      graph: of what one device does.
      scope: of its named axes.
    """

    def combine(nodes: Sequence[Node]) -> Graph:
        with scope:
            return _together(nodes)

    return combined(graph, _kind, combine)


def _kind(node: Node) -> Any:
    """Returns what is equal for reductions that can be one, or None."""
    primitive, params = node.primitive, node.params
    if not isinstance(primitive, CollectiveReduction):
        return None
    aval = node.inputs[0].aval
    groups = params.get("groups") or ((),)
    if (
        not 0 < aval.nbytes <= SMALL
        or dtypes.is_complex(aval.dtype)
        or len({len(group) for group in groups}) > 1
    ):
        return None
    return primitive.name, params["axes"], groups, str(aval.dtype)


def _together(nodes: Sequence[Node]) -> Graph:
    """Returns one reduction of all elements, one array after the other."""
    first = nodes[0]

    def flat(*xs: Any) -> list[Any]:
        parts = [reshape(x, (typeof(x).size,)) for x in xs]
        whole = first.primitive.bind(concatenate(parts, 0), **first.params)
        outs, start = [], 0
        for x in xs:
            end = start + typeof(x).size
            outs.append(reshape(slice_in_dim(whole, start, end), typeof(x).shape))
            start = end
        return outs

    graph, consts = trace_flat(flat, [node.inputs[0].aval for node in nodes])
    assert not consts
    return graph


@register
class PSum(Linear, CollectiveReduction):
    """Sum over named axes. dtypes: numeric."""

    name = "psum"
    kinds = NUMERIC
    operation = "add"

    def reduce(self, x: Any, dims: tuple[int, ...]) -> Any:
        """The sum."""
        return reduce_sum(x, dims)

    def repeated(self, x: Any, size: int) -> Any:
        """A multiple."""
        dtype = typeof(x).dtype
        return mul(x, np.asarray(size).astype(dtype)[()])

    def transpose(
        self, cotangent: Any, *args: Any, axes: Names, groups: Partition = None
    ) -> Values:
        """The sum of the cotangents of all slices.

        Along tracked axes the result is one value, and so is its cotangent.
        """
        shared = () if groups else tuple(n for n in axes if n in state.tracked)
        rest = tuple(n for n in axes if n not in shared)
        if rest:
            cotangent = PSum.bind(cotangent, axes=rest, groups=groups)
        return [PCast.bind(cotangent, axes=shared) if shared else cotangent]


@register
class PCast(Linear):
    """Types a value as one that differs along named axes. dtypes: any. No operation.

    Params:
      axes: tracked ones.
    """

    name = "pcast"
    host_kinds = MOVED
    is_view = True
    axis_params: ClassVar[tuple[str, ...]] = ("axes",)

    def abstract(self, x: Aval, *, axes: Names) -> Aval:
        """The operand's type, but for the axes."""
        return x

    def vma(self, given: Sequence[Axes], params: dict[str, Any]) -> Axes:
        """The axes too."""
        return NOWHERE.union(*given, params["axes"])

    def lower(self, ctx: Context, x: str, *, axes: Names) -> str:
        """The operand itself."""
        return x

    def evaluate(self, x: Any, *, axes: Names) -> Any:
        """The operand itself."""
        return x

    def transpose(self, cotangent: Any, *args: Any, axes: Names) -> Values:
        """The cotangent; that it is summed, the difference of types says."""
        return [cotangent]

    def batch(self, size: int, args: Values, mapped: Flags, *, axes: Names) -> Batched:
        """The same."""
        return self.bind(*args, axes=axes), True

    def batch_named(
        self, axis_name: Any, size: int, args: Values, mapped: Flags, *, axes: Names
    ) -> Batched:
        """The operand: a mapped axis is not tracked."""
        rest = tuple(name for name in axes if name != axis_name)
        return (self.bind(*args, axes=rest) if rest else args[0]), mapped[0]


class _Extremum(CollectiveReduction):
    kinds = ANY
    nondifferentiable = "take the derivative of the element you select instead"
    among: ClassVar[Callable[..., Any]]
    worst: ClassVar[float]

    def lower_across(self, ctx: Context, devices: Groups, x: str, **params: Any) -> str:
        """As any reduction; of floats on CPUs, as integers of the same order."""
        (aval,) = ctx.avals_in
        if not ordered_bits.applies(ctx, aval.dtype):
            return super().lower_across(ctx, devices, x, **params)

        def by_bits(x: Any) -> Any:
            bits = ordered_bits.to_ordered_bits(x, copysign(nan, -self.worst))
            return ordered_bits.from_ordered_bits(self.bind(bits, **params), aval.dtype)

        with devices.scope():
            return ctx.compose(by_bits, [x])[0]

    def reduce(self, x: Any, dims: tuple[int, ...]) -> Any:
        """The extremum; of complex numbers with the extreme real part, by the other."""
        among = type(self).among
        if not dtypes.is_complex(typeof(x).dtype):
            return among(x, dims)
        first, second = real(x), imag(x)
        found = among(first, dims)
        others = [i for i in range(typeof(x).ndim) if i not in dims]
        best = broadcast_in_dim(found, typeof(x).shape, others)
        # A nan is the extremum.
        tied = bitwise_or(eq(first, best), ne(first, first))
        return complex_of(
            found, among(select(tied, second, full_like(second, self.worst)), dims)
        )

    def repeated(self, x: Any, size: int) -> Any:
        """The value."""
        return x


@register
class PMax(_Extremum):
    """Maximum over named axes. dtypes: any; complex ones by real, then imaginary."""

    name = "pmax"
    operation = "maximum"
    among = staticmethod(reduce_max)
    worst = -np.inf


@register
class PMin(_Extremum):
    """Minimum over named axes. dtypes: any; complex ones by real, then imaginary."""

    name = "pmin"
    operation = "minimum"
    among = staticmethod(reduce_min)
    worst = np.inf


@register
class PBroadcast(Movement):
    """Every slice gets that at index `source`, bit by bit. dtypes: any."""

    name = "pbroadcast"

    def abstract(self, x: Aval, *, axes: Names, source: int) -> Aval:
        """The operand's type."""
        length(axes)
        return x.strong()

    def needs_index(self, params: dict[str, Any]) -> bool:
        """The source differs from the others."""
        return True

    def lower_across(
        self, ctx: Context, devices: Groups, x: str, *, axes: Names, source: int
    ) -> str:
        """`stablehlo.collective_broadcast` on GPUs; elsewhere a sum with zeros.

        The CPU's runtime has it within one process only.
        """
        if ctx.platform != "gpu":
            with devices.scope():
                (out,) = ctx.compose(lambda v: _summed(v, axes, source), [x])
            return out
        (aval,) = ctx.avals_in
        # The first of a group is the source.
        order = [source, *(i for i in range(devices.size) if i != source)]
        return ctx.emit(
            f'"stablehlo.collective_broadcast"({x}) <{{{devices.channel}, '
            f"replica_groups = {devices.dense(devices.rows[:, order])}}}> : "
            f"({aval.mlir}) -> {aval.mlir}"
        )

    def batch_along(self, x: Any, *, source: int, **params: Any) -> tuple[Any, bool]:
        """One of the slices."""
        return reshape(rows(x, [source]), typeof(x).shape[1:]), False

    def per_named_axis(self, x: Any, *, axes: Names, source: int) -> Any:
        """From the source's index on each axis in turn."""
        for name in reversed(axes):
            size = length((name,))
            source, here = divmod(source, size)
            x = PBroadcast.bind(x, axes=(name,), source=here)
        return x

    def transpose(self, cotangent: Any, *args: Any, axes: Names, source: int) -> Values:
        """The source gets the sum of the cotangents, the others nothing."""
        total = PSum.bind(cotangent, axes=axes)
        return [select(eq(index_along(axes), source), total, full_like(total, 0))]


def _summed(x: Any, axes: Names, source: int) -> Any:
    """Returns the value at an index as a sum over all, in which others have zero bits.

    Not of numbers: -0.0 + 0.0 is 0.0.
    """
    aval = typeof(x)
    dtype = aval.dtype
    if dtypes.is_complex(dtype):
        return complex_of(
            _summed(real(x), axes, source), _summed(imag(x), axes, source)
        )
    if dtypes.is_bool(dtype):
        byte = convert_element_type(x, np.dtype(np.uint8))
        return convert_element_type(_summed(byte, axes, source), dtype)
    if dtypes.is_floating(dtype) and dtypes.bits(dtype) >= 8:
        bits = bitcast_convert_type(x, np.dtype(f"uint{dtypes.bits(dtype)}"))
        return bitcast_convert_type(_summed(bits, axes, source), dtype)
    mine = select(eq(index_along(axes), source), x, full_like(x, 0))
    return PSum.bind(mine, axes=axes)
