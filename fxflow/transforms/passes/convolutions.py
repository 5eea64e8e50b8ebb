"""Convolutions as contractions: windows are rows, read where they lie in the image.

XLA:CPU computes convolutions of few features, and gradients of windows, at a third of
what the processor can do, and multiplies by the zeros of dilated images. The kernel of
`devices.contractions` (extra `kernels`) reads each window where it lies: no copy of all
of them is made, and gradients are convolutions whose axes have other strides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple, Self

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.ir.graph import Graph, Node
from fxflow.devices.contractions import Contraction, LoopAxis, Tile
from fxflow.devices.native import kernel_tile
from fxflow.lax.axis_order import rev, transpose
from fxflow.lax.bitwise import bitwise_and
from fxflow.lax.concatenation import concatenate
from fxflow.lax.control_flow.cond import cond
from fxflow.lax.convolution import ConvGeneralDilated
from fxflow.lax.convolution_dims import (
    ConvDimensionNumbers,
    Padding,
    dilated,
    strided,
)
from fxflow.lax.creation import full
from fxflow.lax.padding import pad
from fxflow.lax.reduction import ReduceSum, reduce_and
from fxflow.lax.reshaping import reshape
from fxflow.lax.rounding import is_finite
from fxflow.lax.slicing import slice as slice_
from fxflow.transforms.passes.contracting import contract, packed
from fxflow.transforms.passes.rewriting import computed

#: Multiplications from which it is worth a call of the kernel
#: (docs/design/0016-convolutions.md).
_LEAST = 1 << 18
#: Numbers that stay near a core while they are used again and again: 1 MiB.
_NEAR = 1 << 18
#: Rows that are neighbours in memory, where rows are features, if these are more than
#: a line of the cache holds.
_ROW, _LINE = 8, 16
#: Tasks from which no thread waits long for another.
_TASKS = 8
#: Axes of batch, features, and those of the image, by number of axes.
_FEATURES_LAST = {n: (0, n - 1, *range(1, n - 1)) for n in (3, 4)}


def contract_convolutions(graph: Graph) -> Graph:
    """Returns the graph with convolutions left to the kernel.

    Args:
      graph: of any operations; graphs inside are left as they are.
    """
    nodes: list[Node] = []
    changed = False
    for node in graph.nodes:
        made = _contracted(node) if _is_fit(node) else []
        changed = changed or bool(made)
        nodes += made or [node]
    return graph.replace(nodes=nodes) if changed else graph


def _is_fit(node: Node) -> bool:
    """Returns whether the kernel can compute a node, and has work enough."""
    if node.primitive.name != ConvGeneralDilated.name:
        return False
    p = node.params
    atoms = [*node.inputs, *node.outputs]
    if any(a.aval.dtype != dtypes.float32 for a in atoms):
        return False
    if any(a.aval.is_symbolic or not a.aval.size for a in atoms):
        return False
    if p["feature_group_count"] > 1 or p["batch_group_count"] > 1:
        return False
    if not isinstance(p["precision"], tuple | None):
        return False  # an algorithm, which the operation refuses
    rhs, out = (a.aval for a in atoms[1:])
    if out.ndim not in _FEATURES_LAST:
        return False
    # Phases take the place of holes where nothing else has some.
    holes = math.prod(p["lhs_dilation"])
    if holes > 1 and any(n > 1 for n in (*p["rhs_dilation"], *p["window_strides"])):
        return False
    sums = rhs.size // rhs.shape[p["dimension_numbers"].rhs_spec[0]]
    return bool(out.size * sums // holes >= _LEAST)


def _contracted(node: Node) -> list[Node]:
    tile = kernel_tile()
    if tile is None:
        return []
    p = node.params
    numbers, holes = p["dimension_numbers"], math.prod(p["lhs_dilation"])
    image, window = (atom.aval.shape for atom in node.inputs)
    features = window[numbers.rhs_spec[0]]
    # Where nearly all of a panel is missing, even zeros are cheaper.
    if _panels(features * holes, tile) > 3 * features * holes**2:
        return []
    axes = _dilations(image, window, p)
    beside = holes > 1 and _are_beside(axes, features, tile)
    # XLA takes what has fewer elements for the window, and skips other zeros then.
    swapped = math.prod(a.window for a in axes) > math.prod(a.length for a in axes)
    # Whether image and window meet zeros that XLA skips.
    checked = beside or swapped, holes > 1 or swapped

    def contracted(lhs: Any, rhs: Any) -> Any:
        if holes > 1:
            phases = _side_by_side if beside else _phase_by_phase
            return _dilated(lhs, rhs, axes, numbers, partial(phases, tile=tile))
        steps = p["window_strides"], p["rhs_dilation"]
        return _convolution(lhs, rhs, p["padding"], *steps, numbers, tile)

    def as_written(lhs: Any, rhs: Any) -> Any:
        return ConvGeneralDilated.bind(lhs, rhs, **p)

    def compute(lhs: Any, rhs: Any) -> Any:
        finite = [_is_finite(x) for x in itertools.compress((lhs, rhs), checked)]
        if not finite:
            return contracted(lhs, rhs)
        return cond(reduce(bitwise_and, finite), contracted, as_written, lhs, rhs)

    return computed(node, compute, node.inputs)


def _is_finite(x: Any) -> Any:
    """Returns whether all elements are finite."""
    return reduce_and(is_finite(x), range(x.ndim))


class _Dilation(NamedTuple):
    """A dilation of an image along one axis, by `d`: results `d` apart see it alike.

    With a window of k, result `d q + r` multiplies the elements `(low - r) mod d`, `d`
    further, ..., and all others by zeros: `r` is its phase.

    Attributes:
      d: from one element of the image to the next.
      low: padding before the dilated image.
      length: length of the image.
      window: k.
      size: size of the result.
    """

    d: int
    low: int
    length: int
    window: int
    size: int

    @property
    def steps(self) -> int:
        """Results of each phase."""
        return -(-self.size // self.d)

    @property
    def taps(self) -> int:
        """Elements of a window that has those of all phases, side by side."""
        return -(-(self.before + self.window) // self.d)

    @property
    def before(self) -> int:
        """Zeros before the window, so that the last phase has its first elements."""
        return self.d - 1 - self.low % self.d

    def first(self, phase: int) -> int:
        """Returns the first element of the window that a phase multiplies."""
        return (self.low - phase) % self.d

    def taps_of(self, phase: int) -> int:
        """Returns how many elements of the window a phase multiplies."""
        return -(-(self.window - self.first(phase)) // self.d)

    def padding(self, phase: int, taps: int) -> tuple[int, int]:
        """Returns the padding of the image as it is, for a window of `taps`."""
        low = (self.low - phase) // self.d
        return low, self.steps + taps - 1 - self.length - low


def _dilations(
    image: Sequence[int], window: Sequence[int], params: dict[str, Any]
) -> list[_Dilation]:
    """Returns the dilation of an image along each of its axes."""
    lhs_spec, rhs_spec, _ = params["dimension_numbers"]
    axes = []
    for i, (d, pads) in enumerate(
        zip(params["lhs_dilation"], params["padding"], strict=True), 2
    ):
        length, size = image[lhs_spec[i]], window[rhs_spec[i]]
        count = (length - 1) * d + 1 + sum(pads) - size + 1
        axes.append(_Dilation(d, pads[0], length, size, count))
    return axes


def _are_beside(axes: Sequence[_Dilation], features: int, tile: Tile) -> bool:
    """Returns whether one convolution for all phases has little more work than each."""
    whole = _panels(features, tile) * math.prod(axis.window for axis in axes)
    every = _panels(features * math.prod(axis.d for axis in axes), tile)
    return every * math.prod(axis.taps for axis in axes) <= 1.3 * whole


def _dilated(
    lhs: Any,
    rhs: Any,
    axes: Sequence[_Dilation],
    numbers: ConvDimensionNumbers,
    phases: Callable[..., Any],
) -> Any:
    """Returns the convolution of a dilated image, without its zeros.

    Args:
      lhs: the image as it is.
      rhs: the window.
      axes: how the image is dilated.
      numbers: which axis is what.
      phases: `_side_by_side`, or `_phase_by_phase`.
    """
    lhs_spec, rhs_spec, out_spec = numbers
    x = transpose(lhs, (lhs_spec[0], *lhs_spec[2:], lhs_spec[1]))
    w = transpose(rhs, (rhs_spec[0], *rhs_spec[2:], rhs_spec[1]))
    batch, features, count = x.shape[0], w.shape[0], len(axes)
    y = phases(x, w, axes)
    # Phases, batch, steps, features: a phase goes behind the steps along its axis.
    order = [axis for i in range(count) for axis in (count + 1 + i, i)]
    y = transpose(y, (count, *order, 2 * count + 1))
    y = reshape(y, (batch, *(axis.steps * axis.d for axis in axes), features))
    y = slice_(y, (0,) * y.ndim, (batch, *(axis.size for axis in axes), features))
    return _laid_out(y, _FEATURES_LAST[y.ndim], out_spec)


def _panels(columns: int, tile: Tile) -> int:
    """Returns how many columns are computed for `columns`."""
    each = _panel(columns, tile)
    return -(-columns // each) * each


def _panel(columns: int, tile: Tile) -> int:
    """Returns the columns of a panel for a result of `columns`."""
    narrow = tile.narrow.columns
    return narrow if columns <= narrow else tile.columns


def _image(x: Any, w: Any, padding: Padding, tile: Tile) -> Any:
    """Returns a convolution of arrays whose features are last."""
    last = _FEATURES_LAST[w.ndim]
    ones = (1,) * (w.ndim - 2)
    numbers = ConvDimensionNumbers(last, last, last)
    return _convolution(x, w, padding, ones, ones, numbers, tile)


def _side_by_side(x: Any, w: Any, axes: Sequence[_Dilation], tile: Tile) -> Any:
    """Returns all phases by one convolution, whose features they are.

    Returns:
      Array of an axis of phases for each dilation, batch, steps, features.
    """
    count, features, inputs = len(axes), w.shape[0], w.shape[-1]
    every = features * math.prod(axis.d for axis in axes)
    pads = [(a.before, a.taps * a.d - a.before - a.window, 0) for a in axes]
    w = pad(w, np.float32(0), ((0, 0, 0), *pads, (0, 0, 0)))
    pairs = [n for a in axes for n in (a.taps, a.d)]
    phases = tuple(2 + 2 * i for i in range(count))
    w = rev(reshape(w, (features, *pairs, inputs)), phases)
    taps = tuple(1 + 2 * i for i in range(count))
    w = transpose(w, (*phases, 0, *taps, 2 * count + 1))
    w = reshape(w, (every, *(a.taps for a in axes), inputs))
    y = _image(x, w, tuple(a.padding(0, a.taps) for a in axes), tile)
    y = reshape(y, (*y.shape[:-1], *(a.d for a in axes), features))
    behind = tuple(range(count + 1, 2 * count + 1))
    return transpose(y, (*behind, *range(count + 1), 2 * count + 1))


def _phase_by_phase(x: Any, w: Any, axes: Sequence[_Dilation], tile: Tile) -> Any:
    """Returns what `_side_by_side` does, by a contraction for each phase.

    All read one image, padded for any of them, and one kernel.
    """
    features, count = w.shape[0], len(axes)
    lows, pads = [], []
    for axis in axes:
        every = [axis.padding(r, axis.taps_of(r)) for r in range(axis.d)]
        lows.append([low for low, _ in every])
        pads.append((lows[-1][0], max(high for _, high in every), 0))
    x = pad(x, np.float32(0), ((0, 0, 0), *pads, (0, 0, 0)))
    left = _strides(x.shape)
    right = _Right.packed(w, 0, range(1, count + 2), tile)
    shape = x.shape[0], *(axis.steps for axis in axes), features
    rows = _merged([LoopAxis(*pair) for pair in zip(shape[:-1], left, strict=False)])
    found = []
    for phases in itertools.product(*(range(axis.d) for axis in axes)):
        firsts = [axis.first(r) for axis, r in zip(axes, phases, strict=True)]
        taps = [axis.taps_of(r) for axis, r in zip(axes, phases, strict=True)]
        if min(taps) <= 0:
            found.append(full((1, *shape), np.float32(0)))
            continue
        skipped = [low[0] - low[r] for low, r in zip(lows, phases, strict=True)]
        sums = [
            LoopAxis(taps[i], left[i + 1], axis.d * right.steps[i + 1])
            for i, axis in enumerate(axes)
        ]
        sums.append(LoopAxis(w.shape[-1], 1, right.steps[count + 1]))
        origin = (
            sum(n * step for n, step in zip(skipped, left[1:], strict=False)),
            sum(first * right.steps[i + 1] for i, first in enumerate(firsts)),
        )
        contraction = Contraction(
            rows, _merged(sums), features, right.panel, origin=origin
        )
        found.append(reshape(contract(x, right.array, contraction, tile), (1, *shape)))
    return reshape(concatenate(found, 0), (*(axis.d for axis in axes), *shape))


class _Right(NamedTuple):
    """The kernel of a convolution, as the right operand of a contraction.

    Attributes:
      array: numbers of one panel's row are neighbours in it.
      steps: from one element to the next along each axis but that of the result's
        features.
      panel: from one panel to the next.
    """

    array: Any
    steps: dict[int, int]
    panel: int

    @classmethod
    def packed(cls, w: Any, features: int, axes: Sequence[int], tile: Tile) -> Self:
        """Returns a kernel brought into panels.

        Args:
          w: the kernel.
          features: its axis of features of the result.
          axes: the other ones, as they are to lie in memory.
          tile: of the processor.
        """
        columns = w.shape[features]
        total = w.size // columns
        each = _panel(columns, tile)
        matrix = reshape(transpose(w, (*axes, features)), (total, columns))
        steps = {}
        left = total
        for axis in axes:
            left //= w.shape[axis]
            steps[axis] = each * left
        return cls(packed(matrix, each), steps, each * total)


def _convolution(
    lhs: Any,
    rhs: Any,
    padding: Padding,
    strides: Sequence[int],
    dilation: Sequence[int],
    numbers: ConvDimensionNumbers,
    tile: Tile,
) -> Any:
    """Returns a convolution, by the kernel; `dilation` is the window's."""
    lhs_spec, rhs_spec, out_spec = numbers
    spatial = range(len(strides))
    if any(low or high for low, high in padding):
        config = [(0, 0, 0)] * lhs.ndim
        for i in spatial:
            config[lhs_spec[i + 2]] = (*padding[i], 0)
        lhs = pad(lhs, np.float32(0), config)
    counts = []
    for i in spatial:
        window = dilated(rhs.shape[rhs_spec[i + 2]], dilation[i])
        counts.append(strided(lhs.shape[lhs_spec[i + 2]], window, strides[i]))
    batch = lhs.shape[lhs_spec[0]]
    if lhs_spec[0] == lhs.ndim - 1 and batch > _LINE and batch % _ROW == 0:
        lhs, left = _in_blocks(lhs)
        images = [
            LoopAxis(batch // _ROW, lhs.size // (batch // _ROW)),
            LoopAxis(_ROW, 1),
        ]
    else:
        left = _strides(lhs.shape)
        images = [LoopAxis(batch, left[lhs_spec[0]])]
    # By axis of the result.
    rows = {out_spec[0]: images}
    for i in spatial:
        rows[out_spec[i + 2]] = [
            LoopAxis(counts[i], left[lhs_spec[i + 2]] * strides[i])
        ]
    order = sorted(rows)
    merged = _merged([part for axis in order for part in rows[axis]])
    # By axis of the kernel.
    sums = {rhs_spec[1]: LoopAxis(rhs.shape[rhs_spec[1]], left[lhs_spec[1]])}
    for i in spatial:
        size = rhs.shape[rhs_spec[i + 2]]
        sums[rhs_spec[i + 2]] = LoopAxis(size, left[lhs_spec[i + 2]] * dilation[i])
    axes = sorted(sums, key=lambda axis: -sums[axis].left)
    columns = rhs.shape[rhs_spec[0]]
    parts = _parts(merged, [sums[axis] for axis in axes], columns, tile)
    # A kernel may stay as it is where a panel's rows are neighbours, and few enough not
    # to be in one another's way in the cache.
    if (
        rhs_spec[0] == rhs.ndim - 1
        and columns % tile.narrow.columns == 0
        and rhs.size // math.prod(parts) <= _NEAR
    ):
        right = _Right(rhs, dict(enumerate(_strides(rhs.shape))), tile.columns)
    else:
        right = _Right.packed(rhs, rhs_spec[0], axes, tile)
    summed = [sums[axis]._replace(right=right.steps[axis]) for axis in axes]
    inner, outer = _divided(summed, parts)
    contraction = Contraction(merged, _merged(inner), columns, right.panel, outer)
    out = contract(lhs, right.array, contraction, tile)
    if contraction.part_count > 1:
        out = ReduceSum.bind(out, axes=(0,))
    sizes = (math.prod(part.size for part in rows[axis]) for axis in order)
    out = reshape(out, (*sizes, columns))
    spec = [0] * out.ndim
    for i, axis in enumerate(order):
        spec[out_spec.index(axis)] = i
    spec[1] = out.ndim - 1
    return _laid_out(out, spec, out_spec)


def _in_blocks(x: Any) -> tuple[Any, list[int]]:
    """Returns an array whose last axis is cut into blocks, which come first.

    A block's numbers are neighbours, and so is what comes after them along the last of
    the other axes: rows that are read together lie together.

    Returns:
      The array, and from one element to the next along each other axis of the first.
    """
    *others, last = x.shape
    x = reshape(x, (*others, last // _ROW, _ROW))
    count = len(others)
    x = transpose(x, (count, *range(count), count + 1))
    return x, [step * _ROW for step in _strides(others)]


def _laid_out(x: Any, spec: Sequence[int], wanted: Sequence[int]) -> Any:
    """Returns an image whose axes are in another order."""
    permutation = [0] * len(spec)
    for have, want in zip(spec, wanted, strict=True):
        permutation[want] = have
    return transpose(x, permutation)


def _strides(shape: Sequence[int]) -> list[int]:
    """Returns from one element to the next along each axis, in numbers."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _merged(axes: Sequence[LoopAxis]) -> tuple[LoopAxis, ...]:
    """Returns axes in the place of which fewer do, of a size of more than one."""
    found: list[LoopAxis] = []
    for axis in axes:
        if axis.size == 1:
            continue
        if (
            found
            and found[-1].left == axis.size * axis.left
            and found[-1].right == axis.size * axis.right
        ):
            found[-1] = axis._replace(size=axis.size * found[-1].size)
        else:
            found.append(axis)
    return tuple(found) or (LoopAxis(1, 0, 0),)


def _parts(
    rows: Sequence[LoopAxis], sums: Sequence[LoopAxis], columns: int, tile: Tile
) -> tuple[int, int]:
    """Returns into how many parts to divide sums along their first two axes.

    Operands stay near then, and threads can share the work. Sums over many rows and
    columns are divided, such as gradients of windows are; the results of all parts are
    added up afterwards.

    Args:
      rows: of the result.
      sums: of each element.
      columns: of the result.
      tile: of the processor.
    """
    count = math.prod(axis.size for axis in rows)
    each = _panel(columns, tile)
    tasks = -(-columns // each) * -(-count // tile.rows)
    # Numbers that each row reads, and those between them, and a panel.
    span = 1 + sum((axis.size - 1) * axis.left for axis in sums)
    span += math.prod(axis.size for axis in sums) * each
    wanted = max(-(-span // _NEAR), -(-_TASKS // tasks))
    # As many results as there are operands, at most.
    wanted = min(wanted, span // (count * each))
    first = _divisor(sums[0].size, wanted)
    return first, _divisor(sums[1].size, -(-wanted // first))


def _divisor(size: int, wanted: int) -> int:
    """Returns the number of equal parts that is nearest to the one wanted."""
    found = (n for n in range(max(wanted, 1), size + 1) if size % n == 0)
    return next(found, size)


def _divided(
    sums: Sequence[LoopAxis], parts: tuple[int, int]
) -> tuple[list[LoopAxis], tuple[LoopAxis, LoopAxis]]:
    """Returns the axes of the sums of one part, and those of the parts."""
    inner, outer = list(sums), []
    for i, count in enumerate(parts):
        size = sums[i].size // count
        inner[i] = sums[i]._replace(size=size)
        outer.append(LoopAxis(count, size * sums[i].left, size * sums[i].right))
    return inner, (outer[0], outer[1])
