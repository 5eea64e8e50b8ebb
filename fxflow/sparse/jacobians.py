"""Sparse Jacobians and Hessians: the pattern from the graph, one product a color.

Columns of a Jacobian that share no row can be computed together: one directional
derivative along the sum of their directions has the entries of all of them, in
different rows. So the columns are colored (Curtis, Powell and Reid, 1974; Coleman and
Moré, 1983; each takes the lowest color that is free), and there is one forward product
a color. Rows with many entries are colored apart, for reverse mode.

The pattern (`dependence`) and the colors are found when tracing; a compiled program has
them as constants.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, DtypeError, NotDifferentiableError, ShapeError
from fxflow.sparse.array import SparseArray, from_scipy
from fxflow.sparse.dependence import dependences
from fxflow.sparse.index_sets import Dependence
from fxflow.sparse.interchange import is_scipy
from fxflow.sparse.pattern import Pattern
from fxflow.transforms.grad import jacobian
from fxflow.transforms.inspection import eval_shape
from fxflow.transforms.jvp import jvp
from fxflow.transforms.vjp import vjp
from fxflow.transforms.vmap import vmap

__all__ = ["jacobian_pattern"]


# -- patterns --------------------------------------------------------------------------


class _Layout(NamedTuple):
    """Leaves of arguments or results, one after the other in one row of elements.

    Attributes:
      avals: types of the leaves.
      tree: their structure.
      size: the number of elements.
    """

    avals: list[Any]
    tree: Any
    size: int

    @classmethod
    def of(cls, leaves: Sequence[Any], treedef: Any) -> _Layout:
        """Returns that of leaves (arrays or types) and their structure."""
        avals = [typeof(x) for x in leaves]
        return cls(avals, treedef, sum(a.size for a in avals))

    @property
    def sizes(self) -> list[int]:
        """The number of elements in each leaf."""
        return [a.size for a in self.avals]

    def blocks(self) -> list[tuple[int, int, Any]]:
        """Returns where each leaf begins and ends, and its type."""
        ends = np.cumsum([0, *self.sizes]).tolist()
        return list(zip(ends[:-1], ends[1:], self.avals, strict=True))


def _sets(
    derivative: Callable[..., Any], primals: Sequence[Aval], directions: Sequence[Aval]
) -> list[Any]:
    """Returns the index sets of a function that is linear in its last arguments.

    Args:
      derivative: a function of both, one after the other.
      primals: types of the first arguments.
      directions: types of the last ones.
    """
    avals = [a.strong() for a in (*primals, *directions)]
    graph, consts = trace_flat(derivative, avals, name="derivative", literals=False)
    known = [np.asarray(c) if _is_known(c) else None for c in consts]
    starts = np.cumsum([0, *(d.size for d in directions)]).tolist()
    given = [
        Dependence.each(tuple(d.shape), start, starts[-1])
        for d, start in zip(directions, starts, strict=False)
    ]
    none = [None] * len(primals)
    outs = dependences(
        graph,
        [*[None] * len(consts), *none, *given],
        [*known, *none, *[None] * len(given)],
    )
    return [s for s, _ in outs]


def _is_known(value: Any) -> bool:
    if not isinstance(value, Array) or isinstance(value, Tracer):
        return False
    return dtypes.kinds.get(value.dtype, "v") in "biufc"


def _coords(sets: Sequence[Any], sizes: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Returns row and column of all entries, by rows over all results."""
    rows, columns, start = [], [], 0
    for s, size in zip(sets, sizes, strict=True):
        if s is not None:
            row, column = s.coords()
            rows.append(row + start)
            columns.append(column)
        start += size
    if not rows:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate(rows), np.concatenate(columns)


class _Found(NamedTuple):
    """A Jacobian's pattern.

    Attributes:
      rows: of the entries, ascending.
      columns: of the entries, ascending within a row.
      forward: whether products with directions can be computed.
    """

    rows: np.ndarray
    columns: np.ndarray
    forward: bool


def _find(flat: Callable[..., list[Any]], inputs: _Layout, outputs: _Layout) -> _Found:
    """Returns the pattern of a function of leaves that returns a list of them."""
    count = len(inputs.avals)

    def push(*both: Any) -> list[Any]:
        return list(jvp(flat, both[:count], both[count:])[1])

    def pull(*both: Any) -> list[Any]:
        back = vjp(flat, *both[:count])[1]
        return list(back(list(both[count:])))

    try:
        sets = _sets(push, inputs.avals, inputs.avals)
        return _Found(*_coords(sets, outputs.sizes), True)
    except NotDifferentiableError:
        # Some rule is for reverse mode only: the pattern of the transpose.
        sets = _sets(pull, inputs.avals, outputs.avals)
        columns, rows = _coords(sets, inputs.sizes)
        order = np.lexsort((columns, rows))
        return _Found(rows[order], columns[order], False)


# -- colors ----------------------------------------------------------------------------


def _by_line(lines: np.ndarray, others: np.ndarray, count: int) -> list[list[int]]:
    """Returns for each of `count` lines the other coordinates of its entries."""
    order = np.argsort(lines, kind="stable")
    starts = np.searchsorted(lines[order], np.arange(count + 1))
    flat = others[order].tolist()
    return [flat[a:b] for a, b in itertools.pairwise(starts)]


def colors_of(
    rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
) -> tuple[np.ndarray, int]:
    """Colors the columns of a pattern so that columns that share a row differ.

    Args:
      rows: of the entries.
      columns: of the entries.
      shape: shape of the matrix.

    Returns:
      The color of each column, int32[columns], -1 for an empty one; and their number.
    """
    lists = _by_line(columns, rows, shape[1])
    least = int(np.bincount(rows, minlength=1).max()) if len(rows) else 0
    natural = _greedy(lists, range(shape[1]), shape[0])
    if natural[1] <= least:
        return natural
    lengths = [len(line) for line in lists]
    order = sorted(range(shape[1]), key=lengths.__getitem__, reverse=True)
    return min(natural, _greedy(lists, order, shape[0]), key=lambda found: found[1])


def _greedy(lists: list[list[int]], order: Any, rows: int) -> tuple[np.ndarray, int]:
    # The colors in a row are the bits of a number.
    taken = [0] * rows
    colors = np.full(len(lists), -1, np.int32)
    count = 0
    for column in order:
        line = lists[column]
        if not line:
            continue
        used = 0
        for row in line:
            used |= taken[row]
        bit = ~used & (used + 1)
        for row in line:
            taken[row] |= bit
        color = bit.bit_length() - 1
        colors[column] = color
        count = max(count, color + 1)
    return colors, count


class Plan(NamedTuple):
    """Which products give the entries of a Jacobian.

    Attributes:
      columns: the color of each column, int32[inputs]; -1: in no forward product.
      forward: how many forward products there are.
      rows: the color of each row, int32[outputs]; -1: in no reverse product.
      reverse: how many reverse products there are.
      places: int32[entries]: where each entry lies in the elements of all forward
        products, followed by those of all reverse ones.
    """

    columns: np.ndarray
    forward: int
    rows: np.ndarray
    reverse: int
    places: np.ndarray


def planned(found: _Found, shape: tuple[int, int], reverse: bool) -> Plan:
    """Returns the fewest products found for a pattern.

    Args:
      found: the pattern.
      shape: outputs and inputs.
      reverse: whether products with cotangents can be computed.
    """
    m, _n = shape
    rows, columns = found.rows, found.columns
    lengths = np.bincount(rows, minlength=m)
    plans = []
    if found.forward:
        plans.append(_split(found, shape, np.zeros(m, bool)))
    # Each entry of a column takes a reverse product of its own.
    least = int(np.bincount(columns, minlength=1).max())
    if reverse and (not plans or plans[0].forward > least):
        plans.append(_split(found, shape, np.ones(m, bool)))
    if found.forward and reverse and len(rows):
        # Rows with far more entries than others are better computed in reverse.
        most = int(lengths.max())
        bounds = [2**k for k in range(most.bit_length())]
        cost = [b + int((lengths > b).sum()) for b in bounds]
        bound = bounds[int(np.argmin(cost))]
        if min(cost) < min(p.forward + p.reverse for p in plans):
            plans.append(_split(found, shape, lengths > bound))
    if not plans:
        raise NotDifferentiableError(
            "jacobian: the function has neither a forward nor a reverse derivative"
        )
    return min(plans, key=lambda p: p.forward + p.reverse)


def _split(found: _Found, shape: tuple[int, int], dense: np.ndarray) -> Plan:
    """Returns the plan with the `dense` rows in reverse mode, the others forward."""
    (m, n), (rows, columns, _) = shape, found
    back = dense[rows]
    by_column, forward = colors_of(rows[~back], columns[~back], (m, n))
    by_row, reverse = colors_of(columns[back], rows[back], (n, m))
    places = np.where(
        back,
        forward * m + by_row[rows].astype(np.int64) * n + columns,
        by_column[columns].astype(np.int64) * m + rows,
    )
    return Plan(by_column, forward, by_row, reverse, places)


# -- derivatives -----------------------------------------------------------------------


def _directions(colors: np.ndarray, layout: _Layout) -> Callable[[Any], list[Any]]:
    """Returns a function of a color that gives the sum of the unit vectors of it."""
    parts = [
        (fnp.asarray(colors[start:end].reshape(aval.shape)), aval.tangent().dtype)
        for start, end, aval in layout.blocks()
    ]
    return lambda color: [(part == color).astype(dtype) for part, dtype in parts]


def sparse_jacobian(
    fun: Callable[..., Any],
    chosen: tuple[Any, ...],
    name: str,
    single: bool,
    has_aux: bool,
    pattern: Any,
) -> tuple[Any, Any]:
    """Returns the Jacobian in the leaves of `chosen` as sparse arrays, and `aux`.

    Args:
      fun: function of what is chosen.
      chosen: the arguments to differentiate with respect to, checked.
      name: of the user's function.
      single: whether there is one argument, for which there is no tuple.
      has_aux: whether it returns `(result, aux)`.
      pattern: as the user gives it; None: it is found.
    """
    leaves, in_tree = tree.flatten(chosen)
    inputs = _Layout.of(leaves, in_tree)

    def flat(*values: Any) -> Any:
        result = fun(*in_tree.unflatten(values))
        if has_aux:
            return tree.leaves(result[0]), result[1]
        return tree.leaves(result), None

    shapes = eval_shape(lambda *x: fun(*x)[0] if has_aux else fun(*x), *chosen)
    outputs = _Layout.of(*tree.flatten(shapes))
    for aval in outputs.avals:
        if aval.dtype not in dtypes.INEXACT:
            raise DtypeError(
                f"jacobian: {name} returned {aval}, which has no derivative: return "
                "floats only, and other values by has_aux=True"
            )
    if pattern is None:
        found = _find(lambda *values: flat(*values)[0], inputs, outputs)
    else:
        found = _given(pattern, inputs, outputs)
    shape = outputs.size, inputs.size
    whole = Pattern.of_coords(found.rows, found.columns, shape)
    # A cotangent of a complex result of real arguments has two parts.
    two_parts = any(dtypes.is_complex(a.dtype) for a in outputs.avals) and not any(
        dtypes.is_complex(a.dtype) for a in inputs.avals
    )

    def plan(reverse: bool) -> Plan:
        key = "jacobian", found.forward, reverse
        return whole.remembered(key, lambda: planned(found, shape, reverse))

    try:
        values, aux = _entries(flat, leaves, inputs, outputs, plan(not two_parts))
    except NotDifferentiableError:
        if not found.forward:
            raise
        # There is no reverse mode, as of a loop without a bound.
        values, aux = _entries(flat, leaves, inputs, outputs, plan(False))

    def block(i: int, j: int) -> SparseArray:
        top, bottom, aval = outputs.blocks()[i]
        left, right, _ = inputs.blocks()[j]
        if shape == (bottom - top, right - left):
            return SparseArray(whole, values.astype(aval.dtype))
        rows, columns = found.rows, found.columns
        inside = (rows >= top) & (rows < bottom)
        inside &= (columns >= left) & (columns < right)
        (places,) = np.nonzero(inside)
        part = Pattern.of_coords(
            rows[places] - top, columns[places] - left, (bottom - top, right - left)
        )
        return SparseArray(part, values[_int32(places)].astype(aval.dtype))

    jacobians = [
        in_tree.unflatten([block(i, j) for j in range(len(leaves))])
        for i in range(len(outputs.avals))
    ]
    return outputs.tree.unflatten([j[0] if single else j for j in jacobians]), aux


def _entries(
    flat: Callable[..., Any],
    leaves: Sequence[Any],
    inputs: _Layout,
    outputs: _Layout,
    plan: Plan,
) -> tuple[Any, Any]:
    """Returns the entries of a Jacobian in the order of its pattern, and `aux`."""
    parts, aux = [], None
    if plan.forward or not plan.reverse:
        along = _directions(plan.columns, inputs)

        def push(color: Any) -> Any:
            _, tangents, aux = jvp(flat, tuple(leaves), tuple(along(color)), True)
            return tangents, aux

        products, aux = vmap(push, out_axes=(0, None))(_colors(plan.forward))
        parts += [_rows(products)]
    if plan.reverse:
        _, back, aux = vjp(flat, *leaves, has_aux=True)
        against = _directions(plan.rows, outputs)
        products = vmap(lambda color: list(back(against(color))))(_colors(plan.reverse))
        parts += [_rows(products)]
    elements = fnp.concatenate(parts) if len(parts) > 1 else parts[0]
    return elements[_int32(plan.places)], aux


def _colors(count: int) -> Any:
    return fnp.arange(count, dtype=np.int32)


def _rows(products: Sequence[Any]) -> Any:
    """Returns the elements of products, one after the other for each color."""
    rows = [x.reshape(x.shape[0], math.prod(x.shape[1:])) for x in products]
    return fnp.concatenate(rows, axis=1).reshape(-1)


def _int32(places: np.ndarray) -> np.ndarray:
    small = not len(places) or places.max() < 2**31
    return places.astype(np.int32) if small else places


# -- patterns that the user has --------------------------------------------------------


def _given(pattern: Any, inputs: _Layout, outputs: _Layout) -> _Found:
    """Returns what the user gave as the pattern of each result by each argument."""
    parts = tree.leaves(pattern, is_leaf=_is_pattern)
    if len(parts) != len(inputs.avals) * len(outputs.avals):
        raise ArgumentError(
            "jacobian: pattern must have a sparse array or a Pattern for each result "
            f"and argument, {len(inputs.avals) * len(outputs.avals)} in all, got "
            f"{len(parts)}"
        )
    rows, columns = [], []
    blocks = [(r, c) for r in outputs.blocks() for c in inputs.blocks()]
    for part, ((top, bottom, result), (left, right, argument)) in zip(
        parts, blocks, strict=True
    ):
        if is_scipy(part):
            part = from_scipy(part)
        if isinstance(part, SparseArray):
            part = part.pattern
        if not isinstance(part, Pattern):
            raise ArgumentError(
                f"jacobian: pattern must hold sparse arrays or Patterns, got {part!r}"
            )
        if part.shape != (bottom - top, right - left):
            raise ShapeError(
                f"jacobian: the pattern of a result {result} by an argument {argument} "
                f"must have the shape [{bottom - top},{right - left}], got {part!r}"
            )
        rows.append(part.coords.row.astype(np.int64) + top)
        columns.append(part.coords.col.astype(np.int64) + left)
    keys = np.unique(
        np.concatenate(rows) * max(inputs.size, 1) + np.concatenate(columns)
    )
    return _Found(*np.divmod(keys, max(inputs.size, 1)), True)


def _is_pattern(value: Any) -> bool:
    return isinstance(value, Pattern | SparseArray) or is_scipy(value)


def jacobian_pattern(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0
) -> Callable[..., Any]:
    """Makes a function that returns where the Jacobian of `fun` may be nonzero.

    The pattern is found from the operations of `fun`, whatever the values of its
    arguments are: nothing is computed. An element that is 0 whatever they are is in the
    pattern only where operations cancel, or where an index or a mask depends on the
    arguments.

    Args:
      fun: function of arrays or pytrees of them.
      argnums: by which positional arguments it would be differentiated.

    Returns:
      A function of the same arguments (arrays or `ShapeDtypeStruct`s) that returns a
      `Pattern` for each leaf of the result and of the argument, structured as the
      result of `jacobian`.

    Raises:
      ArgumentError, DtypeError: as `jacobian`.

    Example:
      >>> jacobian_pattern(fnp.diff)(fnp.zeros(5))
      Pattern(csr, [4,5], nnz=8)
    """
    require_callable(fun, "jacobian_pattern")

    @boundary
    def pattern_of(*args: Any, **kwargs: Any) -> Any:
        found = eval_shape(jacobian(fun, argnums, sparse=True), *args, **kwargs)
        return tree.map(
            lambda part: part.pattern,
            found,
            is_leaf=lambda x: isinstance(x, SparseArray),
        )

    return pattern_of
