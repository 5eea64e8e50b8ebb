"""The nearest of points by a tree: a few distances are computed for each place.

The points of a node are those of its two children, split at the median of the axis
along which they differ most. A place looks at the nodes whose boxes may have a nearer
point than those it has, the nearer box first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.kernels.body import cdiv, loop, when
from fxflow.kernels.calling import BlockSpec, call

#: Points of a leaf, about.
_LEAF = 8
#: Places of a program, at most.
_PLACES = 128


class _Tree(NamedTuple):
    """A complete binary tree: the children of node i are 2i and 2i + 1, the root is 1.

    Attributes:
      points: float[n, d], those of a node in one piece.
      order: int32[n]: the numbers of these points.
      begins: uint32[nodes + 1]: where the points of a leaf begin; n at the end.
      boxes: float[nodes, 2d]: the least and the greatest coordinates of nodes.
    """

    points: Any
    order: Any
    begins: Any
    boxes: Any


def tree_neighbours(
    x: Any,
    y: Any,
    k: int,
    p: float,
    *,
    reference: Callable[[Any, Any], Array],
) -> Array:
    """Returns which points are nearest to places.

    Args:
      x: float[m, d], the places.
      y: float[n, d], the points.
      k: how many, at most n.
      p: the order of the Minkowski norm: 1, 2 or inf.
      reference: a function of `x` and `y` that returns the same in another way.

    Returns:
      int32[m, k], the nearest first, of equally near ones the one with the least
      number. Points whose distance is NaN are not found: n stands for what is missing.
    """
    (m, d), n = typeof(x).shape, typeof(y).shape[0]
    dtype = typeof(x).dtype
    levels = max(math.ceil(math.log2(n / _LEAF)), 0)
    size = min(m, _PLACES)

    def rows(width: int) -> BlockSpec:
        return BlockSpec((size, width), lambda g: (g, 0))

    run = call(
        _search(size, k, p, n, levels),
        Aval((m, k), np.dtype(np.int32)),
        grid=cdiv(m, size),
        in_specs=[rows(d), *[BlockSpec()] * 4],
        out_specs=rows(k),
        scratch=[
            Aval((k,), dtype),
            Aval((levels + 2,), np.dtype(np.uint32)),
            Aval((levels + 2,), dtype),
        ],
        # It captures the points: then nothing needs the tree.
        reference=lambda x, *_: reference(x, y),
        name="tree_neighbours",
        platforms=("cpu",),
    )
    out: Array = run(x, *_tree(y, levels))
    return out


def _search(size: int, k: int, p: float, n: int, levels: int) -> Callable[..., None]:
    """Returns the body that searches the tree of n points for each of some places."""
    zero, one = (np.uint32(i) for i in (0, 1))

    def body(
        x: Any, points: Any, order: Any, begins: Any, boxes: Any, *refs: Any
    ) -> None:
        found, near, stack, bounds = refs
        d, dtype = x.shape[1], x.dtype

        @loop(0, size)
        def _(row: Any) -> None:
            i = row.astype(dtypes.uint32)
            place = [x[i, axis] for axis in range(d)]
            near[...] = fnp.full(k, fnp.inf, dtype)
            found[i] = fnp.full(k, n, dtypes.int32)

            def is_nearer(far: Any, number: Any, at: Any) -> Any:
                """Whether a point comes before the one that was found there."""
                last = near[at]
                same = fnp.logical_and(far == last, number < found[i, at])
                return fnp.logical_or(far < last, same)

            def insert(far: Any, number: Any) -> None:
                def before(at: Any) -> Any:
                    last = fnp.maximum(at, one) - one
                    return fnp.logical_and(at > 0, is_nearer(far, number, last))

                def move(at: Any) -> Any:
                    near[at], found[i, at] = near[at - one], found[i, at - one]
                    return at - one

                last = fnp.full((), k - 1, dtypes.uint32)
                at = lax.while_loop(before, move, last) if k > 1 else last
                near[at], found[i, at] = far, number

            def bound(node: Any) -> Any:
                """Returns how far the box of a node is."""
                gaps = []
                for axis, v in enumerate(place):
                    low, high = boxes[node, axis], boxes[node, d + axis]
                    gap = fnp.maximum(low - v, v - high)
                    gaps.append(fnp.where(gap < 0, fnp.zeros((), dtype), gap))
                return _power(gaps, p)

            def visit(count: Any) -> Any:
                count = count - one
                node, far = stack[count], bounds[count]
                worth = fnp.logical_not(far > near[k - 1])
                leaf = node >= np.uint32(1 << levels)

                @when(fnp.logical_and(worth, leaf))
                def _() -> None:
                    def look(j: Any) -> Any:
                        gaps = [v - points[j, axis] for axis, v in enumerate(place)]
                        far, number = _power(gaps, p), order[j]

                        @when(is_nearer(far, number, k - 1))
                        def _() -> None:
                            insert(far, number)

                        return j + one

                    end = begins[node + one]
                    lax.while_loop(lambda j: j < end, look, begins[node])

                inner = fnp.logical_and(worth, fnp.logical_not(leaf))

                @when(inner)
                def _() -> None:
                    left = node + node
                    near_left, near_right = bound(left), bound(left + one)
                    # The nearer one is the next one.
                    first = fnp.where(near_left <= near_right, one, zero)
                    stack[count], stack[count + one] = left + first, left + one - first
                    bounds[count] = fnp.maximum(near_left, near_right)
                    bounds[count + one] = fnp.minimum(near_left, near_right)

                return count + fnp.where(inner, np.uint32(2), zero)

            stack[0], bounds[0] = one, fnp.zeros((), dtype)
            lax.while_loop(lambda c: c > 0, visit, fnp.ones((), dtypes.uint32))

    return body


def _power(gaps: list[Any], p: float) -> Any:
    """Returns the sum of the powers of numbers; for p = inf the greatest."""
    terms = [g * g if p == 2 else fnp.abs(g) for g in gaps]
    out = terms[0]
    for term in terms[1:]:
        out = fnp.maximum(out, term) if math.isinf(p) else out + term
    return out


def _tree(y: Any, levels: int) -> _Tree:
    """Returns the tree of points, whose leaves are all on one level."""
    n, d = typeof(y).shape
    dtype, nodes = typeof(y).dtype, 2 << levels
    one = np.uint32(1)

    def body(
        y: Any, points: Any, order: Any, begins: Any, boxes: Any, ends: Any
    ) -> None:
        points[...] = y[...]
        order[...] = fnp.arange(n, dtype=dtypes.int32)
        boxes[0] = fnp.zeros(2 * d, dtype)
        begins[0], begins[1], ends[1] = np.uint32(0), np.uint32(0), np.uint32(n)
        begins[nodes] = np.uint32(n)

        def swap(i: Any, j: Any) -> None:
            for ref, at in [(points, (axis,)) for axis in range(d)] + [(order, ())]:
                a, b = ref[(i, *at)], ref[(j, *at)]
                ref[(i, *at)], ref[(j, *at)] = b, a

        def split(begin: Any, end: Any, middle: Any, axis: Any) -> None:
            """Moves what is less than the median before it, and the rest behind it."""

            def part(range_: Any) -> Any:
                # Hoare's partition; the last one is j - 1, so that none is negative.
                first, last = range_
                pivot = points[lax.shift_right_logical(first + last, one), axis]

                def exchange(carry: Any) -> Any:
                    i, j = carry
                    i = lax.while_loop(
                        lambda i: points[i, axis] < pivot, lambda i: i + one, i
                    )
                    j = lax.while_loop(
                        lambda j: points[j - one, axis] > pivot, lambda j: j - one, j
                    )
                    some = i < j

                    @when(some)
                    def _() -> None:
                        swap(i, j - one)

                    step = fnp.where(some, one, np.uint32(0))
                    return i + step, j - step

                i, j = lax.while_loop(lambda c: c[0] < c[1], exchange, (first, last))
                # Elements from j to i equal the pivot.
                first_, last_ = first, last
                first = fnp.where(middle >= i, i, fnp.where(middle < j, first_, middle))
                last = fnp.where(middle < j, j, fnp.where(middle >= i, last_, middle))
                return first, last

            lax.while_loop(lambda c: c[0] + one < c[1], part, (begin, end))

        @loop(1, nodes)
        def _(number: Any) -> None:
            node = number.astype(dtypes.uint32)
            begin, end = begins[node], ends[node]

            def widen(j: Any, box: Any) -> Any:
                j = j.astype(dtypes.uint32)
                values = [points[j, axis] for axis in range(d)]
                lows = [fnp.minimum(a, v) for a, v in zip(box[:d], values, strict=True)]
                highs = [
                    fnp.maximum(a, v) for a, v in zip(box[d:], values, strict=True)
                ]
                return (*lows, *highs)

            start = [points[begin, axis] for axis in range(d)]
            box = lax.fori_loop(
                begin.astype(dtypes.int32),
                end.astype(dtypes.int32),
                widen,
                (*start, *start),
            )
            for at, v in enumerate(box):
                boxes[node, at] = v
            widest, axis = box[d] - box[0], fnp.zeros((), dtypes.uint32)
            for at in range(1, d):
                width = box[d + at] - box[at]
                axis = fnp.where(width > widest, np.uint32(at), axis)
                widest = fnp.maximum(widest, width)

            @when(node < np.uint32(1 << levels))
            def _() -> None:
                middle = lax.shift_right_logical(begin + end, one)
                split(begin, end, middle, axis)
                left = node + node
                begins[left], ends[left] = begin, middle
                begins[left + one], ends[left + one] = middle, end

    places = Aval((nodes + 1,), np.dtype(np.uint32))
    run = call(
        body,
        [
            typeof(y),
            Aval((n,), np.dtype(np.int32)),
            places,
            Aval((nodes, 2 * d), dtype),
        ],
        scratch=[places],
        name="tree_of_points",
        platforms=("cpu",),
    )
    return _Tree(*run(y))
