"""A random forest of histogram trees, which grow together, level by level.

    edges = quantiles(x, bins=16)
    forest = fit(key, binned(x, edges), labels, classes=10)
    predict(forest, binned(x, edges))

A tree is complete and has a fixed depth, so trees are arrays, and `vmap` of a tree is a
forest. Each node considers a few random features, computes a histogram of each, bins by
classes, and splits where the weighted Gini impurity falls most. A pure node may split
anywhere: both sides predict the same class.

Breiman 2001; Ke et al. 2017 (histograms).
"""

import functools
from typing import NamedTuple

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import Array, lax, ops, random


class Tree(NamedTuple):
    """Feature and last left bin of each inner node; class fractions of each leaf.

    Nodes are numbered as in a heap: the children of node i are 2 i + 1 and 2 i + 2.
    """

    feature: Array  # i32[2^depth - 1]
    bound: Array  # i32[2^depth - 1]
    fractions: Array  # f32[2^depth, classes]


def quantiles(x: np.ndarray, bins: int) -> np.ndarray:
    """Returns edges `f32[d, bins - 1]` of bins with equal numbers of values.

    Repeated values count once, because most pixels are blank.
    """
    fractions = np.linspace(0, 1, bins + 1)[1:-1]
    return np.stack(
        [np.quantile(np.unique(column), fractions) for column in x.T]
    ).astype("float32")


@fxflow.jit
def binned(x: Array, edges: Array) -> Array:
    """Returns the bin of each value, `i32[n, d]`."""
    return fxflow.vmap(fnp.searchsorted, (0, 1), 1)(edges, x)


def split(
    key: Array, x: Array, y: Array, node: Array, nodes: int, bins: int, tried: int
) -> tuple[Array, Array]:
    """Returns the best feature and bound of each node of a level, `i32[nodes]` each.

    Args:
      key: a random key.
      x: bins, `i32[n, d]`.
      y: weights by class, `f32[n, classes]`.
      node: the node of each point, `i32[n]`.
      nodes: number of nodes of the level.
      bins: number of bins of a feature.
      tried: number of features that a node considers.
    """
    scores = random.uniform(key, (nodes, x.shape[1]))
    features = lax.top_k(scores, tried)[1]
    mine = fnp.take_along_axis(x, features[node], 1)  # [n, tried]
    cell = (node[:, None] * tried + fnp.arange(tried)) * bins + mine
    values = fnp.broadcast_to(y[:, None], (*cell.shape, y.shape[1]))
    histogram = ops.segment_sum(
        values.reshape(-1, y.shape[1]), cell.reshape(-1), nodes * tried * bins
    ).reshape(nodes, tried, bins, -1)
    left = fnp.cumsum(histogram, 2)
    right = left[:, :, -1:] - left

    def purity(side: Array) -> Array:
        # n times (1 - Gini): the sum of squared counts over the count.
        return (side**2).sum(-1) / fnp.maximum(side.sum(-1), 1e-6)

    gain = purity(left) + purity(
        right
    )  # [nodes, tried, bins]; the last bin is not a split
    best = gain.reshape(nodes, -1).argmax(1)
    feature = fnp.take_along_axis(features, (best // bins)[:, None], 1)[:, 0]
    return feature, best % bins


def grow(
    key: Array, x: Array, labels: Array, classes: int, bins: int, depth: int
) -> Tree:
    """Grows one tree on points drawn with replacement."""
    n, d = x.shape
    tried = max(1, int(d**0.5))
    draw, key = random.split(key)
    weight = fnp.bincount(random.randint(draw, (n,), 0, n), length=n)
    y = fnp.eye(classes)[labels] * weight[:, None]
    node = fnp.zeros(n, "int32")
    features, bounds = [], []
    for level in range(depth):
        own = random.fold_in(key, level)
        feature, bound = split(own, x, y, node, 2**level, bins, tried)
        value = fnp.take_along_axis(x, feature[node][:, None], 1)[:, 0]
        node = 2 * node + (value > bound[node])
        features.append(feature)
        bounds.append(bound)
    counts = ops.segment_sum(y, node, 2**depth)
    # A leaf without points of this tree has no vote.
    fractions = counts / fnp.maximum(counts.sum(1, keepdims=True), 1e-6)
    return Tree(fnp.concatenate(features), fnp.concatenate(bounds), fractions)


@functools.partial(
    fxflow.jit, static_argnames=("classes", "bins", "depth", "trees", "together")
)
def fit(
    key: Array,
    x: Array,
    labels: Array,
    *,
    classes: int,
    bins: int = 16,
    depth: int = 10,
    trees: int = 100,
    together: int = 10,
) -> Tree:
    """Grows a forest: `together` trees at once by `vmap`, the groups one by one."""
    one = lambda key: grow(key, x, labels, classes, bins, depth)
    return lax.map(one, random.split(key, trees), batch_size=together)


def leaf(tree: Tree, x: Array) -> Array:
    """Returns the leaf of each point, `i32[n]`."""
    inner = len(tree.feature)
    depth = (inner + 1).bit_length() - 1

    def down(node: Array, _: None) -> tuple[Array, None]:
        value = fnp.take_along_axis(x, tree.feature[node][:, None], 1)[:, 0]
        return 2 * node + 1 + (value > tree.bound[node]), None

    node, _ = lax.scan(down, fnp.zeros(len(x), "int32"), length=depth)
    return node - inner


@fxflow.jit
def predict(forest: Tree, x: Array) -> Array:
    """Returns the class with the largest mean fraction, `i32[n]`."""
    fractions = fxflow.vmap(lambda tree: tree.fractions[leaf(tree, x)])(forest)
    return fractions.mean(0).argmax(1)
