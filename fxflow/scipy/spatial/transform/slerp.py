"""Rotations between rotations."""

from __future__ import annotations

from typing import Any

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.spatial.transform.rotation import Rotation


@register_pytree_node_class
class Slerp:
    """Rotation as a function of time, known at some times: spherical interpolation.

    Between two times the rotation turns about one axis at one speed. It is a pytree, so
    it passes through `jit`, `grad` and `vmap`.

    Args:
      times: real array-like[n], ascending, n ≥ 2.
      rotations: n rotations.

    Attributes:
      times: the times.
      timedelta: the times between them.
      rotations: all rotations but the last one.
      rotvecs: from each rotation to the next one, an axis times an angle.

    Raises:
      ShapeError: there are fewer than two times, or not as many as rotations.

    Example:
      >>> ends = Rotation.from_euler("z", np.array([[0.0], [90.0]]), degrees=True)
      >>> between = Slerp(np.array([0.0, 1.0]), ends)
      >>> between(0.5).magnitude().round(4)
      Array(0.7854, dtype=float32)

    Source: `scipy.spatial.transform.Slerp`; K. Shoemake, Animating Rotation with
    Quaternion Curves, 1985.
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    def __init__(self, times: ArrayLike, rotations: Rotation) -> None:
        (t,) = promote_inexact("Slerp", fnp.asarray(times))
        count = 1 if rotations.single else len(rotations)
        if t.aval.shape != (count,) or count < 2:
            raise ShapeError(
                f"Slerp: expected a time for each of at least two rotations, got "
                f"{t.aval} for {count}"
            )
        self.times, self.timedelta = t, fnp.diff(t)
        self.rotations = rotations[:-1]
        self.rotvecs = (self.rotations.inv() * rotations[1:]).as_rotvec()

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """Returns `Slerp(times, rotations)`, as JAX writes it.

        Args:
          times: real array-like[n], ascending, n ≥ 2.
          rotations: n rotations.
        """
        return cls(times, rotations)

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Returns the arrays."""
        return (self.times, self.timedelta, self.rotations, self.rotvecs), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Any) -> Slerp:
        """Rebuilds an interpolation from its parts."""
        out = object.__new__(cls)
        out.times, out.timedelta, out.rotations, out.rotvecs = children
        return out

    def __call__(self, times: ArrayLike) -> Rotation:
        """Returns rotations at times.

        Args:
          times: real array-like[] or [m]. Before the first and after the last one the
            outermost turn goes on. (SciPy raises an error.)

        Raises:
          ShapeError: it has more than one axis.
        """
        t, known = promote_inexact("Slerp", fnp.asarray(times), self.times)
        if t.aval.ndim > 1:
            raise ShapeError(f"Slerp: times have at most one axis, got {t.aval}")
        i = fnp.clip(fnp.searchsorted(known, t) - 1, 0, self.timedelta.shape[0] - 1)
        part = (t - known[i]) / self.timedelta[i]
        turn = Rotation.from_rotvec(self.rotvecs[i] * part[..., None])
        return self.rotations[i] * turn
