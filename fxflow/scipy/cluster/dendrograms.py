"""Trees of clusters as objects and as drawings, and the order of their leaves."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, ShapeDtypeStruct, is_arraylike, typeof
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.callbacks import pure_callback
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.cluster._trees import tree_of
from fxflow.scipy.spatial.distance import pdist


def _scipy() -> Any:
    """Returns `scipy.cluster.hierarchy`."""
    return importlib.import_module("scipy.cluster.hierarchy")


def _known(name: str, Z: Any) -> np.ndarray[Any, Any]:
    """Returns a tree as a NumPy array of 64 bits.

    Raises:
      ArgumentError: it is traced.
    """
    if isinstance(Z, Tracer):
        raise ArgumentError(f"{name}: Z must be known, got a traced {Z.aval}")
    return np.asarray(tree_of(name, Z), float)


class ClusterNode:
    """A cluster of a tree: an observation, or two clusters.

    Args:
      id: its number.
      left: the first part; None for an observation.
      right: the second part.
      dist: the distance at which the parts are merged.
      count: the number of observations; by default those of its parts.

    Attributes:
      id: its number.
      left: the first part.
      right: the second part.
      dist: the distance.
      count: the number of observations.

    Raises:
      ArgumentError: a number is negative, there is one part alone, or `count` is not
        that of the parts.

    Example:
      >>> root = ClusterNode(2, ClusterNode(0), ClusterNode(1), dist=1.5)
      >>> root.pre_order()
      [0, 1]

    Source: `scipy.cluster.hierarchy.ClusterNode`.
    """

    def __init__(
        self,
        id: int,
        left: ClusterNode | None = None,
        right: ClusterNode | None = None,
        dist: float = 0.0,
        count: int = 1,
    ) -> None:
        if id < 0 or dist < 0 or count < 1:
            raise ArgumentError(
                f"ClusterNode: id and dist must not be negative and count must be "
                f"positive, got {id}, {dist} and {count}"
            )
        if (left is None) != (right is None):
            raise ArgumentError("ClusterNode: give both left and right, or neither")
        self.id, self.left, self.right, self.dist = id, left, right, dist
        if left is None or right is None:
            self.count = count
        else:
            self.count = left.count + right.count

    def get_id(self) -> int:
        """Returns the number."""
        return self.id

    def get_count(self) -> int:
        """Returns how many observations it has."""
        return self.count

    def get_left(self) -> ClusterNode | None:
        """Returns the left child; None for a leaf."""
        return self.left

    def get_right(self) -> ClusterNode | None:
        """Returns the right child; None for a leaf."""
        return self.right

    def is_leaf(self) -> bool:
        """Returns whether it is an observation."""
        return self.left is None

    def pre_order(self, func: Callable[[Any], Any] = lambda node: node.id) -> list[Any]:
        """Returns a function of each observation, from left to right.

        Args:
          func: of a node; by default its number.
        """
        out, open_ = [], [self]
        while open_:
            node = open_.pop()
            if node.left is None or node.right is None:
                out.append(func(node))
            else:
                open_ += [node.right, node.left]
        return out

    def __repr__(self) -> str:
        """Shows the number, the distance and how many observations it has."""
        return f"ClusterNode(id={self.id}, dist={self.dist:g}, count={self.count})"

    def __lt__(self, other: ClusterNode) -> bool:
        """Returns whether the distance is less."""
        return self.dist < other.dist

    def __gt__(self, other: ClusterNode) -> bool:
        """Returns whether the distance is greater."""
        return self.dist > other.dist

    def __eq__(self, other: object) -> bool:
        """Returns whether the distances are the same."""
        if not isinstance(other, ClusterNode):
            return NotImplemented
        return self.dist == other.dist

    __hash__ = None  # type: ignore[assignment]


def to_tree(Z: ArrayLike, rd: bool = False) -> Any:
    """Returns a tree as objects.

    Args:
      Z: float array-like[n - 1, 4]: the tree, known (not traced).
      rd: whether the list of all nodes is returned, too.

    Returns:
      The root, a `ClusterNode`; with `rd` a pair of it and the list of all nodes.

    Raises:
      ArgumentError: the tree is traced.
      ShapeError: `Z` has the wrong shape.

    Example:
      >>> root = to_tree(np.array([[0.0, 2.0, 1.0, 2.0], [1.0, 3.0, 4.0, 3.0]]))
      >>> root.pre_order()
      [1, 0, 2]

    Source: `scipy.cluster.hierarchy.to_tree`.
    """
    tree = _known("to_tree", Z)
    n = len(tree) + 1
    nodes = [ClusterNode(i) for i in range(n)]
    for k, (a, b, distance, _) in enumerate(tree):
        nodes.append(ClusterNode(n + k, nodes[int(a)], nodes[int(b)], float(distance)))
    return (nodes[-1], nodes) if rd else nodes[-1]


def optimal_leaf_ordering(
    Z: ArrayLike, y: ArrayLike, metric: Any = "euclidean"
) -> Array:
    """Turns merges round so that neighbours among the leaves are near each other.

    Args:
      Z: float array-like[n - 1, 4]: the tree.
      y: float array-like[n (n - 1) / 2]: distances, or array-like[n, d]: observations.
      metric: of observations, see `pdist`.

    Returns:
      Float array[n - 1, 4]: the same tree, with the two parts of some merges exchanged.

    Raises:
      ShapeError: `Z` or `y` has the wrong shape.
      NotDifferentiableError: it is differentiated.

    Example:
      >>> y = np.array([1.0, 4.0, 2.0])
      >>> optimal_leaf_ordering(np.array([[0, 1, 1, 2], [2, 3, 2, 3.0]]), y)[:, :2]
      Array([[1., 0.],
             [2., 3.]], dtype=float32)

    Source: `scipy.cluster.hierarchy.optimal_leaf_ordering`, on the host; Z. Bar-Joseph
    and others, Fast optimal leaf ordering for hierarchical clustering, 2001.
    """
    name = "optimal_leaf_ordering"
    tree, (points,) = tree_of(name, Z), promote_inexact(name, y)
    if points.ndim == 2:
        points = pdist(points, metric)
    n = tree.shape[0] + 1
    if points.shape != (n * (n - 1) // 2,):
        raise ShapeError(
            f"{name}: y must have the distances of {n} observations, "
            f"[{n * (n - 1) // 2}], got {points.aval}"
        )

    def run(tree: Any, y: Any) -> Any:
        tree, y = np.array(tree), np.asarray(y, float)
        found = _scipy().optimal_leaf_ordering(tree.astype(float), y)
        return found.astype(tree.dtype)

    like = ShapeDtypeStruct(tree.shape, tree.dtype)
    out: Array = pure_callback(run, like, tree, points, vmap_method="sequential")
    return out


def dendrogram(Z: ArrayLike, *args: Any, **options: Any) -> dict[str, Any]:
    """Draws a tree with matplotlib, or returns the lines to draw.

    Args:
      Z: float array-like[n - 1, 4]: the tree, known (not traced).
      *args: as in SciPy.
      **options: as in SciPy: `p`, `truncate_mode`, `color_threshold`, `orientation`,
        `labels`, `no_plot`, `ax`, ….

    Returns:
      SciPy's dictionary of lists: "icoord" and "dcoord", the lines; "ivl" and "leaves",
      names and numbers from left to right; "color_list".

    Raises:
      ArgumentError: the tree is traced.
      ShapeError: `Z` has the wrong shape.
      ImportError: SciPy, or for drawings matplotlib, is not installed.

    Example:
      >>> tree = np.array([[0.0, 2.0, 1.0, 2.0], [1.0, 3.0, 4.0, 3.0]])
      >>> dendrogram(tree, no_plot=True)["leaves"]
      [1, 0, 2]

    Source: `scipy.cluster.hierarchy.dendrogram`, which this calls.
    """
    found: dict[str, Any] = _scipy().dendrogram(
        _known("dendrogram", Z), *args, **options
    )
    return found


def correspond(Z: ArrayLike, Y: ArrayLike) -> bool:
    """Returns whether a tree and distances may be of the same observations.

    Args:
      Z: float array-like[n - 1, 4]: the tree.
      Y: array-like[m (m - 1) / 2]: distances.

    Returns:
      A bool: whether there are as many.

    Raises:
      ShapeError: `Z` or `Y` has the wrong shape.

    Example:
      >>> correspond(np.array([[0.0, 1.0, 1.0, 2.0]]), np.ones(1))
      True

    Source: `scipy.cluster.hierarchy.correspond`.
    """
    n = tree_of("correspond", Z).shape[0] + 1
    if not is_arraylike(Y) or typeof(Y).ndim != 1:
        raise ShapeError(f"correspond: Y must be a vector of distances, got {Y!r}")
    return bool(typeof(Y).size == n * (n - 1) // 2)


def is_valid_im(
    R: ArrayLike, warning: bool = False, throw: bool = False, name: str | None = None
) -> bool:
    """Returns whether an array may be what `inconsistent` returns.

    Args:
      R: array-like, known (not traced).
      warning: has no effect.
      throw: whether to raise an error instead.
      name: what the error calls the array.

    Returns:
      A bool: whether it is float[n - 1, 4], n ≥ 2, with means, deviations and counts
      that are not negative.

    Raises:
      ArgumentError: it is traced; or it is not, and `throw`.
      ShapeError: it has the wrong shape or no floats, and `throw`.

    Example:
      >>> is_valid_im(np.array([[1.0, 0.0, 1.0, 0.0]]))
      True

    Source: `scipy.cluster.hierarchy.is_valid_im`.
    """
    if isinstance(R, Tracer):
        raise ArgumentError(f"is_valid_im: R must be known, got a traced {R.aval}")
    called = "R" if name is None else f"'{name}'"
    x = np.asarray(R)
    if x.ndim != 2 or x.shape[1] != 4 or not x.shape[0] or x.dtype.kind != "f":
        if throw:
            raise ShapeError(
                f"is_valid_im: {called} must be float[n - 1, 4], got {x.dtype} of "
                f"shape {x.shape}"
            )
        return False
    if (x[:, :3] < 0).any():
        if throw:
            raise ArgumentError(
                f"is_valid_im: {called} has negative means, deviations or counts"
            )
        return False
    return True


def from_mlab_linkage(Z: ArrayLike) -> Array:
    """Converts a tree from MATLAB's form to that of this module.

    Args:
      Z: array-like[n - 1, 3]: numbers from 1, and distances; or an empty array. Known
        (not traced).

    Returns:
      Float array[n - 1, 4].

    Raises:
      ArgumentError: it is traced, or its clusters are not numbered from 1 to 2 n - 2.
      ShapeError: it has the wrong shape.

    Example:
      >>> from_mlab_linkage(np.array([[1.0, 3.0, 0.5], [2.0, 4.0, 2.0]]))
      Array([[0. , 2. , 0.5, 2. ],
             [1. , 3. , 2. , 3. ]], dtype=float32)

    Source: `scipy.cluster.hierarchy.from_mlab_linkage`.
    """
    name = "from_mlab_linkage"
    if isinstance(Z, Tracer):
        raise ArgumentError(f"{name}: Z must be known, got a traced {Z.aval}")
    x = np.asarray(promote_inexact(name, Z)[0])
    if not x.size and x.ndim == 1:
        return fnp.asarray(x)
    if x.ndim != 2 or x.shape[1] != 3:
        raise ShapeError(f"{name}: Z must be [n - 1, 3], got shape {x.shape}")
    pairs, n = x[:, :2].astype(int) - 1, len(x) + 1
    if sorted(pairs.ravel().tolist()) != list(range(2 * n - 2)):
        raise ArgumentError(f"{name}: clusters must be numbered from 1 to {2 * n - 2}")
    sizes = np.ones(2 * n - 1, x.dtype)
    for k, (a, b) in enumerate(pairs):
        sizes[n + k] = sizes[a] + sizes[b]
    return fnp.asarray(np.column_stack([pairs, x[:, 2], sizes[n:]]).astype(x.dtype))


def to_mlab_linkage(Z: ArrayLike) -> Array:
    """Returns a tree as MATLAB writes it.

    Args:
      Z: float array-like[n - 1, 4]: the tree.

    Returns:
      Float array[n - 1, 3]: numbers from 1, and distances.

    Raises:
      ShapeError: it has the wrong shape.

    Example:
      >>> to_mlab_linkage(np.array([[0.0, 1.0, 0.5, 2.0]]))
      Array([[1. , 2. , 0.5]], dtype=float32)

    Source: `scipy.cluster.hierarchy.to_mlab_linkage`.
    """
    tree = tree_of("to_mlab_linkage", Z)[:, :3]
    return tree + np.array([1, 1, 0], tree.dtype)
