"""Euclidean projections of a pytree, as one vector, onto the nearest point of a set.

Apply one after each update to keep parameters in a convex set (projected gradient
descent):

    params = optim.projections.projection_simplex(optim.apply_updates(params, updates))
"""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree as pytrees
from fxflow.core.boundary import public as _public
from fxflow.core.docs import shared
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.numerics import quotient, widened
from fxflow.optim.tree import cast_like, clip, norm, size, vdot, where
from fxflow.optim.tree import max as largest
from fxflow.optim.tree import scale as scaled

Tree = Any

__all__ = [
    "projection_box",
    "projection_halfspace",
    "projection_hypercube",
    "projection_hyperplane",
    "projection_l1_ball",
    "projection_l1_sphere",
    "projection_l2_ball",
    "projection_l2_sphere",
    "projection_linf_ball",
    "projection_non_negative",
    "projection_simplex",
    "projection_vector",
]

_docs = shared("""
    Args:
      tree: pytree of float arrays.
      x: pytree of float arrays.
      a: pytree of the same structure.
      b: number.
      scale: s > 0.

    Returns:
      A pytree of the same types.
""")


@_docs
def projection_box(tree: Tree, lower: Any, upper: Any) -> Tree:
    r"""Projects onto a box: :math:`l \le x \le u`.

    Args:
      lower: l: a number, or a pytree of the structure of `tree`.
      upper: u: a number, or a pytree of the structure of `tree`.

    Example:
      >>> x = fnp.array([-1.0, 0.5, 2.0])
      >>> optim.projections.projection_box(x, 0.0, 1.0).tolist()
      [0.0, 0.5, 1.0]
    """
    kind = pytrees.structure(tree)

    def spread(bound: Any) -> Tree:
        same = pytrees.structure(bound) == kind
        return bound if same else pytrees.map(lambda _: bound, tree)

    return pytrees.map(fnp.clip, tree, spread(lower), spread(upper))


@_docs
def projection_hypercube(tree: Tree, scale: Any = 1) -> Tree:
    r"""Projects onto a cube: :math:`0 \le x \le s`.

    Args:
      scale: s: a number, or a pytree of the structure of `tree`.

    Example:
      >>> optim.projections.projection_hypercube(fnp.array([-1.0, 3.0]), 2.0).tolist()
      [0.0, 2.0]
    """
    return projection_box(tree, 0, scale)


@_docs
def projection_non_negative(tree: Tree) -> Tree:
    r"""Projects onto the nonnegative orthant: :math:`x \ge 0`.

    Example:
      >>> optim.projections.projection_non_negative(fnp.array([-1.0, 3.0])).tolist()
      [0.0, 3.0]
    """
    return clip(tree, 0)


@_docs
def projection_simplex(tree: Tree, scale: ArrayLike = 1) -> Tree:
    r"""Projects onto a simplex: :math:`x \ge 0,\; \sum x = s`.

    Example:
      >>> optim.projections.projection_simplex(fnp.array([1.0, 0.5])).tolist()
      [0.75, 0.25]

    Reference: Held, Wolfe, Crowder 1974; Duchi et al. 2008.
    """
    leaves = [widened(leaf) for leaf in pytrees.leaves(tree)]
    if not leaves:
        return tree
    # Subtract the largest, to keep small differences of large numbers.
    most = lax.stop_gradient(largest(leaves))
    values = fnp.concatenate([fnp.ravel(fnp.subtract(x, most)) for x in leaves])
    # The solution is max(x - t, 0); the number of elements above t determines it.
    falling = fnp.flip(fnp.sort(values))
    count = fnp.arange(1, values.size + 1)
    level = fnp.divide(fnp.subtract(fnp.cumsum(falling), scale), count)
    above = fnp.sum(fnp.greater(falling, level))
    threshold = level[fnp.subtract(above, 1)]

    def shifted(x: Any) -> Any:
        moved = fnp.subtract(fnp.subtract(widened(x), most), threshold)
        return fnp.maximum(moved, 0)

    return cast_like(pytrees.map(shifted, tree), tree)


@_docs
def projection_l1_sphere(tree: Tree, scale: ArrayLike = 1) -> Tree:
    r"""Projects onto a sphere of the 1-norm: :math:`\sum |x| = s`.

    Example:
      >>> optim.projections.projection_l1_sphere(fnp.array([-1.0, 0.5])).tolist()
      [-0.75, 0.25]
    """
    sizes = projection_simplex(pytrees.map(fnp.abs, tree), scale)

    def signed(x: Any, size: Any) -> Any:
        return fnp.where(fnp.less(x, 0), fnp.negative(size), size)

    return pytrees.map(signed, tree, sizes)


@_docs
def projection_l1_ball(tree: Tree, scale: ArrayLike = 1) -> Tree:
    r"""Projects onto a ball of the 1-norm: :math:`\sum |x| \le s`.

    Example:
      >>> optim.projections.projection_l1_ball(fnp.array([-1.0, 0.5])).tolist()
      [-0.75, 0.25]

    Reference: Duchi, Shalev-Shwartz, Singer, Chandra 2008.
    """
    inside = fnp.less_equal(norm(tree, 1), scale)
    return where(inside, tree, projection_l1_sphere(tree, scale))


@_docs
def projection_l2_sphere(tree: Tree, scale: ArrayLike = 1) -> Tree:
    r"""Projects onto a sphere: :math:`\lVert x \rVert = s`.

    Special cases:
      All points are equally near to 0: its projection has n equal elements
      :math:`s / \sqrt n` (optax 0.2.8 gives nan).

    Example:
      >>> optim.projections.projection_l2_sphere(fnp.array([3.0, 4.0]), 10.0).tolist()
      [6.0, 8.0]
    """
    length = norm(tree)
    factor = quotient(scale, length)
    equal = fnp.divide(scale, max(size(tree), 1) ** 0.5)

    def one(x: Any) -> Any:
        return fnp.where(fnp.equal(length, 0), equal, fnp.multiply(factor, widened(x)))

    return cast_like(pytrees.map(one, tree), tree)


@_docs
def projection_l2_ball(tree: Tree, scale: ArrayLike = 1) -> Tree:
    r"""Projects onto a ball: :math:`\lVert x \rVert \le s`.

    Example:
      >>> optim.projections.projection_l2_ball(fnp.array([3.0, 4.0]), 10.0).tolist()
      [3.0, 4.0]
    """
    length = norm(tree)
    outside = fnp.greater(length, scale)
    factor = fnp.divide(scale, fnp.where(outside, length, 1.0))
    wide = pytrees.map(widened, tree)
    return where(outside, cast_like(scaled(factor, wide), tree), tree)


@_docs
def projection_linf_ball(tree: Tree, scale: ArrayLike = 1) -> Tree:
    r"""Projects onto a ball of the maximum norm: :math:`|x| \le s`.

    Example:
      >>> optim.projections.projection_linf_ball(fnp.array([-3.0, 0.5])).tolist()
      [-1.0, 0.5]
    """
    return clip(tree, fnp.negative(scale), scale)


@_docs
def projection_vector(x: Tree, a: Tree) -> Tree:
    r"""Projects onto a line: :math:`a \langle a, x\rangle / \lVert a\rVert^2`.

    Special cases:
      If a is 0, so is the projection.

    Example:
      >>> x, a = fnp.array([3.0, 4.0]), fnp.array([2.0, 0.0])
      >>> optim.projections.projection_vector(x, a).tolist()
      [3.0, 0.0]
    """
    share = quotient(vdot(x, a), norm(a, squared=True))
    return cast_like(scaled(share, pytrees.map(widened, a)), x)


def _gap(x: Tree, a: Tree, b: Any) -> Any:
    """Returns the signed distance of x from a hyperplane, in units of a."""
    return quotient(fnp.subtract(vdot(x, a), b), norm(a, squared=True))


def _moved(x: Tree, step: Any, a: Tree) -> Tree:
    def one(x: Any, a: Any) -> Any:
        return fnp.add(widened(x), fnp.multiply(step, widened(a)))

    return cast_like(pytrees.map(one, x, a), x)


@_docs
def projection_hyperplane(x: Tree, a: Tree, b: ArrayLike) -> Tree:
    r"""Projects onto a hyperplane: :math:`\langle a, x\rangle = b`.

    Special cases:
      If a is 0, there is no hyperplane, and the result is x.

    Example:
      >>> x, a = fnp.array([3.0, 4.0]), fnp.array([2.0, 0.0])
      >>> optim.projections.projection_hyperplane(x, a, 2.0).tolist()
      [1.0, 4.0]
    """
    return _moved(x, fnp.negative(_gap(x, a, b)), a)


@_docs
def projection_halfspace(x: Tree, a: Tree, b: ArrayLike) -> Tree:
    r"""Projects onto a half-space: :math:`\langle a, x\rangle \le b`.

    Special cases:
      If a is 0, there is no half-space, and the result is x.

    Example:
      >>> x, a = fnp.array([3.0, 4.0]), fnp.array([2.0, 0.0])
      >>> optim.projections.projection_halfspace(x, a, 2.0).tolist()
      [1.0, 4.0]
      >>> optim.projections.projection_halfspace(x, a, 8.0).tolist()
      [3.0, 4.0]
    """
    return _moved(x, fnp.negative(fnp.maximum(_gap(x, a, b), 0)), a)


_public(globals(), __all__)
