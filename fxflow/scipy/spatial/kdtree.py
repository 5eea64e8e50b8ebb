"""Neighbours of points."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax, sparse
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.lax.axes import natural, number
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.spatial._neighbours import Box, nearest_image, neighbours, powers
from fxflow.scipy.spatial.geometry import minkowski_distance


def _norm(name: str, p: Any) -> float:
    p = float(number(name, "p", p))
    if not p >= 1:
        raise ArgumentError(f"{name}: p must be at least 1, got {p}")
    return float(p)


def _box(points: Array, boxsize: Any) -> Box:
    """Returns the lengths of a periodic box.

    Raises:
      ArgumentError: there is none of such lengths, or a point is outside.
      ShapeError: they are not one for each axis.
    """
    if isinstance(boxsize, Tracer):
        raise ConcretizationError(
            "KDTree: boxsize is traced, but the lengths of the box must be known"
        )
    axes = points.aval.shape[1]
    given = np.asarray(boxsize, float)
    if given.shape not in ((), (axes,)):
        raise ShapeError(
            f"KDTree: boxsize must be a number or {axes} numbers, got shape "
            f"{list(given.shape)}"
        )
    lengths = np.broadcast_to(given, (axes,))
    if not (np.isfinite(lengths) & (lengths >= 0)).all():
        raise ArgumentError(
            f"KDTree: boxsize must not be negative, and finite, got {boxsize}"
        )
    if not isinstance(points, Tracer):
        host = np.asarray(points)
        outside = (lengths > 0) & ((host < 0) | (host >= lengths))
        if outside.any():
            i, k = np.argwhere(outside)[0]
            raise ArgumentError(
                f"KDTree: data[{i}, {k}] is {host[i, k]}, outside of the periodic box: "
                f"it must be at least 0 and less than {lengths[k]}"
            )
    return tuple(float(v) for v in lengths)


@register_pytree_node_class
class KDTree:
    """Points whose neighbours are asked for.

    On CPUs, with the extra `kernels`, `query` makes a tree of many points with up to
    six axes (without a periodic box, for `p` of 1, 2 and inf). Otherwise, all distances
    are computed in blocks, so that the time does not depend on the number of axes, and
    accelerators are fast. It is a pytree: it works under `jit`, `vmap` and `grad`.

    Args:
      data: real array-like[n, d]: the points.
      leafsize: has no effect.
      compact_nodes: has no effect.
      copy_data: has no effect.
      balanced_tree: has no effect.
      boxsize: number or array-like[d], which must be known: lengths of a periodic box;
        0 for an axis that is not periodic, None if no axis is. The distance of two
        points is that of their nearest images.

    Attributes:
      data: the points.
      boxsize: lengths of the periodic box, a NumPy array[d], or None.
      n: the number of points.
      m: their number of coordinates.

    Raises:
      ArgumentError: a length is negative or not finite, or a point is outside of the
        box: a coordinate is negative, or not less than its length.
      ConcretizationError: `boxsize` is traced.
      ShapeError: they are not points, or `boxsize` does not fit them.

    Example:
      >>> tree = KDTree(np.array([[0.0, 0.0], [3.0, 4.0]]))
      >>> tree.query(np.array([3.0, 3.0]))
      (Array(1., dtype=float32), Array(1, dtype=int32))

    Source: `scipy.spatial.KDTree`.
    """

    data: Array
    _box: Box

    def __init__(
        self,
        data: ArrayLike,
        leafsize: int = 10,
        compact_nodes: bool = True,
        copy_data: bool = False,
        balanced_tree: bool = True,
        boxsize: ArrayLike | None = None,
    ) -> None:
        (points,) = promote_inexact("KDTree", fnp.asarray(data))
        if points.aval.ndim != 2:
            raise ShapeError(f"KDTree: data must be points [n, d], got {points.aval}")
        self.data = points
        self._box = None if boxsize is None else _box(points, boxsize)

    def tree_flatten(self) -> tuple[tuple[Array], Box]:
        """Returns the points, and the lengths of the box."""
        return (self.data,), self._box

    @classmethod
    def tree_unflatten(cls, aux: Box, children: Any) -> KDTree:
        """Rebuilds the object from its points and the lengths of the box."""
        out = object.__new__(cls)
        (out.data,) = children
        out._box = aux
        return out

    @property
    def boxsize(self) -> np.ndarray[Any, Any] | None:
        """The lengths of the periodic box, or None."""
        return None if self._box is None else np.asarray(self._box)

    def _with_other(self, name: str, other: KDTree) -> None:
        """Checks that another tree's points are in the same space.

        Raises:
          ArgumentError: they are not.
        """
        if self.m != other.m:
            raise ArgumentError(
                f"{name}: points have {self.m} and {other.m} coordinates"
            )
        if self._box != other._box:
            raise ArgumentError(
                f"{name}: the trees must have the same boxsize, got {self.boxsize} and "
                f"{other.boxsize}"
            )

    def _differences(self, apart: Array) -> Array:
        """Returns differences of points, [..., d], as those of the nearest images."""
        if self._box is None:
            return apart
        columns = [
            nearest_image(apart[..., k], length) for k, length in enumerate(self._box)
        ]
        return fnp.stack(columns, -1)

    @property
    def n(self) -> int:
        """The number of points."""
        return int(self.data.shape[0])

    @property
    def m(self) -> int:
        """The number of coordinates."""
        return int(self.data.shape[1])

    @property
    def maxes(self) -> Array:
        """The largest coordinates of the points: float[m]."""
        return fnp.max(self.data, axis=0)

    @property
    def mins(self) -> Array:
        """The smallest coordinates of the points: float[m]."""
        return fnp.min(self.data, axis=0)

    @property
    def size(self) -> int:
        """1: this tree has one node, as all distances are computed."""
        return 1

    def query(
        self,
        x: ArrayLike,
        k: Any = 1,
        eps: float = 0,
        p: float = 2,
        distance_upper_bound: ArrayLike = np.inf,
        workers: int = 1,
    ) -> tuple[Array, Array]:
        """Returns the nearest points.

        Args:
          x: real array-like[*s, d].
          k: the number of neighbours; or which ones, a list of numbers from 1, the
            nearest one.
          eps: has no effect: the nearest ones are found.
          p: the order of the Minkowski norm, at least 1; inf is the maximum norm.
          distance_upper_bound: only nearer ones are reported.
          workers: has no effect.

        Returns:
          The distances, float[*s, k], and the indices, int32[*s, k], without the last
          axis if `k` is 1, and with one for each number of a list. Missing ones have
          the distance inf and the index `n`.

        Raises:
          ArgumentError: `k` is not positive, or `p` less than 1.
          ShapeError: points have the wrong number of coordinates.
        """
        name = "KDTree.query"
        which = None
        if isinstance(k, list | tuple | np.ndarray):
            which = [natural(name, "k", one) for one in k]
            k = max(which, default=1)
        k, p = natural(name, "k", k), _norm(name, p)
        at, data = promote_inexact(name, fnp.asarray(x), self.data)
        if not at.aval.ndim or at.aval.shape[-1] != self.m:
            raise ShapeError(
                f"{name}: points must have {self.m} coordinates, got {at.aval}"
            )
        shape = at.aval.shape[:-1]
        rows = fnp.reshape(at, (-1, self.m))
        count = min(k, self.n)
        if count:
            fixed = lax.stop_gradient(rows), lax.stop_gradient(data)
            found = neighbours(*fixed, count, p, self._box)
        else:
            found = fnp.zeros((rows.aval.shape[0], 0), np.int32)
        # Again from the points found, for derivatives with respect to all coordinates.
        apart = fnp.abs(self._differences(rows[:, None] - data[found]))
        if np.isinf(p):
            far = fnp.max(apart, -1, initial=0)
        else:
            total = fnp.sum(apart**p if p != 1 else apart, -1)
            away = ~(total == 0)
            far = fnp.where(away, fnp.where(away, total, 1) ** (1 / p), total)
        near = (far < distance_upper_bound) & (found < self.n)
        far = fnp.where(near, far, fnp.inf)
        found = fnp.where(near, found, self.n).astype(np.int32)
        more = [(0, 0), (0, k - count)]
        far = fnp.pad(far, more, constant_values=fnp.inf)
        found = fnp.pad(found, more, constant_values=self.n)
        if which is not None:
            chosen = np.asarray(which, int) - 1
            far, found, k = far[:, chosen], found[:, chosen], len(which)
        end = () if k == 1 and which is None else (k,)
        return fnp.reshape(far, (*shape, *end)), fnp.reshape(found, (*shape, *end))

    def query_ball_point(
        self,
        x: ArrayLike,
        r: ArrayLike,
        p: float = 2.0,
        eps: float = 0,
        workers: int = 1,
        return_sorted: bool | None = None,
        return_length: bool = False,
    ) -> Any:
        """Returns all points near places.

        Args:
          x: real array-like[*s, d].
          r: real array-like that broadcasts to [*s]: the greatest distances.
          p: the order of the Minkowski norm.
          eps: has no effect.
          workers: has no effect.
          return_sorted: has no effect: indices ascend.
          return_length: whether to return how many points there are instead, which
            may be traced.

        Returns:
          A list of indices, of several places a NumPy array[*s] of such lists; or
          int32[*s].

        Raises:
          ArgumentError: `p` is less than 1.
          ConcretizationError: arrays are traced, and lists are asked for.
          ShapeError: places have the wrong number of coordinates, or `r` does not
            broadcast to them.
        """
        name = "KDTree.query_ball_point"
        p = _norm(name, p)
        at, data, limit = promote_inexact(
            name, fnp.asarray(x), self.data, fnp.asarray(r)
        )
        if not at.aval.ndim or at.aval.shape[-1] != self.m:
            raise ShapeError(
                f"{name}: points must have {self.m} coordinates, got {at.aval}"
            )
        shape = at.aval.shape[:-1]
        lead = shape[len(shape) - limit.aval.ndim :]
        fits = limit.aval.ndim <= len(shape)
        if not fits or any(
            a not in (1, b) for a, b in zip(limit.aval.shape, lead, strict=True)
        ):
            raise ShapeError(
                f"{name}: r, {limit.aval}, must broadcast to the places, {at.aval}"
            )
        limit = fnp.reshape(fnp.broadcast_to(limit, shape), (-1, 1))
        rows = fnp.reshape(at, (-1, self.m))
        if not return_length and any(
            isinstance(v, Tracer) for v in (rows, data, limit)
        ):
            raise ConcretizationError(
                f"{name}: how many points are near traced places is not known: set "
                "return_length=True, or ask query for k points with a "
                "distance_upper_bound"
            )
        if np.isinf(p):
            near = powers(rows, data, p, self._box) <= limit
        else:
            far = powers(rows, data, p, self._box)
            near = (far <= limit**p) & (limit >= 0)
        if return_length:
            return fnp.reshape(fnp.sum(near, 1).astype(np.int32), shape)
        lists = [np.nonzero(row)[0].tolist() for row in np.asarray(near)]
        if not shape:
            return lists[0]
        out = np.empty(len(lists), object)
        out[:] = lists
        return out.reshape(shape)

    def query_ball_tree(
        self, other: KDTree, r: float, p: float = 2.0, eps: float = 0
    ) -> list[list[int]]:
        """Returns for each point the indices of those of other points near it.

        Args:
          other: the other points.
          r: the greatest distance.
          p: the order of the Minkowski norm.
          eps: has no effect.

        Returns:
          A list of lists, the indices ascending.

        Raises:
          ArgumentError: `p` is less than 1, or the trees have different boxes.
          ConcretizationError: points are traced.
        """
        self._with_other("KDTree.query_ball_tree", other)
        found: Any = other.query_ball_point(self.data, r, p)
        return list(found)

    def query_pairs(
        self,
        r: float,
        p: float = 2.0,
        eps: float = 0,
        output_type: str = "ndarray",
        *,
        size: int | None = None,
    ) -> Any:
        """Returns all pairs of points that are near each other.

        Args:
          r: the greatest distance.
          p: the order of the Minkowski norm.
          eps: has no effect.
          output_type: "ndarray", an array; or "set", a set of pairs of ints.
          size: how many pairs to report, so that the shape is known when tracing;
            missing ones are (n, n).

        Returns:
          int32[pairs, 2], in ascending order, the first index being the smaller one; or
          the set.

        Raises:
          ArgumentError: `p` is less than 1, or there is no such `output_type`.
          ConcretizationError: points are traced, and `size` is not given or a set is
            asked for.
        """
        name = "KDTree.query_pairs"
        p = _norm(name, p)
        if output_type not in ("ndarray", "set"):
            raise ArgumentError(
                f'{name}: output_type must be "ndarray" or "set", got {output_type!r}'
            )
        if isinstance(self.data, Tracer) and output_type == "set":
            raise ConcretizationError(
                f"{name}: pairs of traced points cannot be a set of ints: leave out "
                "output_type and give size"
            )
        if size is None and isinstance(self.data, Tracer):
            raise ConcretizationError(
                f"{name}: the number of pairs of traced points is not known: give size"
            )
        limit = r if np.isinf(p) else fnp.asarray(r, self.data.dtype) ** p
        near = powers(self.data, self.data, p, self._box) <= limit
        upper = near & np.triu(np.ones((self.n, self.n), bool), 1)
        pairs = fnp.nonzero(upper, size=size, fill_value=self.n)
        found = fnp.stack(pairs, -1)
        if output_type == "set":
            return {(int(i), int(j)) for i, j in np.asarray(found)}
        return found

    def count_neighbors(
        self,
        other: KDTree,
        r: ArrayLike,
        p: float = 2.0,
        weights: Any = None,
        cumulative: bool = True,
    ) -> Array:
        """Returns how many pairs of points of both objects are near each other.

        Args:
          other: the other points.
          r: real array-like[*s]: the greatest distances.
          p: the order of the Minkowski norm.
          weights: a pair of float array-likes[n] and [other.n], or None in the place of
            one for weights of 1: a pair of points counts as the product of its
            weights. An array is the weights of both. The sums are differentiable in
            them. None: all weights are 1.
          cumulative: whether to count all pairs that are not farther apart than each
            distance; else only those that are farther apart than the distance before,
            for ascending distances [s].

        Returns:
          int32[*s]; float[*s] with weights.

        Raises:
          ArgumentError: `p` is less than 1, or the trees have different boxes.
          ShapeError: weights do not fit the points, or `r` is not a vector and
            `cumulative` is False.
        """
        name = "KDTree.count_neighbors"
        p = _norm(name, p)
        self._with_other(name, other)
        x, y = promote_inexact(name, self.data, other.data)
        far = fnp.reshape(powers(x, y, p, self._box), -1)
        (limits,) = promote_inexact(name, fnp.asarray(r))
        if not cumulative and limits.aval.ndim != 1:
            raise ShapeError(
                f"{name}: r must be a vector with cumulative=False, got {limits.aval}"
            )
        low = limits < 0
        limits = limits if np.isinf(p) else limits**p
        if weights is None:
            line = fnp.sort(far)
            found = fnp.searchsorted(line, limits, side="right").astype(np.int32)
        else:
            products = fnp.reshape(self._weights(name, other, weights), -1)
            order = fnp.argsort(lax.stop_gradient(far))
            sums = fnp.cumsum(products[order])
            sums = fnp.concatenate([fnp.zeros(1, sums.dtype), sums])
            found = sums[fnp.searchsorted(far[order], limits, side="right")]
        found = fnp.where(low, 0, found)
        if cumulative:
            return found
        return fnp.concatenate([found[:1], found[1:] - found[:-1]])

    def _weights(self, name: str, other: KDTree, weights: Any) -> Array:
        """Returns the products of the weights of points of both objects."""
        pair = weights if isinstance(weights, tuple) else (weights, weights)
        if len(pair) != 2:
            raise ArgumentError(
                f"{name}: weights must be an array or a pair, got {len(pair)} of them"
            )
        ones = [fnp.ones(tree.n, self.data.dtype) for tree in (self, other)]
        given = [
            one if v is None else fnp.asarray(v)
            for v, one in zip(pair, ones, strict=True)
        ]
        first, second = promote_inexact(name, *given)
        for v, one in zip((first, second), ones, strict=True):
            if v.aval.shape != one.aval.shape:
                raise ShapeError(
                    f"{name}: weights must have the shape {list(one.aval.shape)}, got "
                    f"{v.aval}"
                )
        return first[:, None] * second

    def sparse_distance_matrix(
        self,
        other: KDTree,
        max_distance: float,
        p: float = 2.0,
        output_type: str = "coo_array",
    ) -> Any:
        """Returns the distances between points of two trees that are near each other.

        Which pairs are near has to be known when tracing; the distances are
        differentiated with respect to the points of both trees. Distances of 0 are
        entries, too, whose derivatives are 0.

        Args:
          other: another tree.
          max_distance: pairs that are farther apart have no entry.
          p: of Minkowski's norm, from 1 to inf.
          output_type: "coo_array" or "csr_array"; SciPy's "dok_array" changes
            elements, and arrays are immutable.

        Returns:
          A `SparseArray`, float[n, other.n].

        Raises:
          ArgumentError: `p` or the type is wrong, or the points have different numbers
            of coordinates or boxes.
          ConcretizationError: the points are traced by `jit` or `vmap`.

        Example:
          >>> tree = KDTree(fnp.array([[0.0, 0.0], [3.0, 4.0], [9.0, 9.0]]))
          >>> tree.sparse_distance_matrix(tree, 6.0).sum()
          Array(10., dtype=float32)
        """
        name = "KDTree.sparse_distance_matrix"
        p = _norm(name, p)
        if output_type not in ("coo_array", "csr_array"):
            raise ArgumentError(
                f'{name}: output_type must be "coo_array" or "csr_array", got '
                f"{output_type!r}"
            )
        self._with_other(name, other)
        # Under grad the values of points are known.
        fixed = lax.stop_gradient((self, other))
        groups = fixed[0].query_ball_tree(fixed[1], max_distance, p)
        row = np.repeat(np.arange(self.n), [len(g) for g in groups])
        col = np.array([j for group in groups for j in sorted(group)], int)
        apart = self._differences(self.data[row] - other.data[col])
        # The norm of 0 has no derivative: it is replaced by a number's.
        zero = fnp.all(apart == 0, axis=1)
        safe = fnp.where(zero[:, None], 1, apart)
        far = fnp.where(zero, 0, minkowski_distance(safe, fnp.zeros_like(safe), p))
        made = sparse.coo_array((far, (row, col)), shape=(self.n, other.n))
        return made if output_type == "coo_array" else made.tocsr()
