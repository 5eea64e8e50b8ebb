"""Rigid movements of space: a rotation, then a translation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, DTypeLike, convert, promote_inexact
from fxflow.scipy.spatial.transform import _quaternions as quaternions
from fxflow.scipy.spatial.transform.rotation import Rotation, _numbers

_screwed = library()(quaternions.screwed)
_unscrewed = library()(quaternions.unscrewed)
_product = library()(quaternions.product)


@register_pytree_node_class
class RigidTransform:
    """A rigid movement of space, or several: a rotation, then a translation.

    It is a pytree of both, so it passes through `jit`, `grad` and `vmap`. It is not
    made by the class but by its methods, `from_components` and the others.

    Attributes:
      rotation: one rotation or n.
      translation: float array[3] or [n, 3].

    Example:
      >>> turn = Rotation.from_euler("z", 90, degrees=True)
      >>> move = RigidTransform.from_components(np.array([0.0, 0.0, 5.0]), turn)
      >>> move.apply(np.array([1.0, 0.0, 0.0])).round(3)
      Array([0., 1., 5.], dtype=float32)
      >>> (move * move.inv()).translation.round(3) + 0.0
      Array([0., 0., 0.], dtype=float32)

    Source: `scipy.spatial.transform.RigidTransform`, with derivatives at the identity,
    too.
    """

    rotation: Rotation
    translation: Array

    def __init__(self, rotation: Rotation, translation: Array) -> None:
        """Takes a rotation and a translation of one shape and dtype as they are.

        Args:
          rotation: one or n.
          translation: float array[3] or [n, 3].
        """
        self.rotation = rotation
        self.translation = translation

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Returns the rotation and the translation."""
        return (self.rotation, self.translation), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Any) -> RigidTransform:
        """Rebuilds a movement from its parts."""
        out = object.__new__(cls)
        out.rotation, out.translation = children
        return out

    # -- making ------------------------------------------------------------------------

    @classmethod
    def from_components(
        cls, translation: ArrayLike, rotation: Rotation
    ) -> RigidTransform:
        """Returns movements of translations and rotations.

        Args:
          translation: real array-like[3] or [n, 3].
          rotation: one or n.

        Raises:
          ShapeError: there are not as many, or the translation has the wrong shape.
          DtypeError: the translation is complex.
          ArgumentError: `rotation` is not a `Rotation`.
        """
        name = "RigidTransform.from_components"
        if not isinstance(rotation, Rotation):
            raise ArgumentError(f"{name}: takes a Rotation, got {rotation!r}")
        t = _numbers(name, translation, 3)
        t, q = promote_inexact(name, t, rotation.quat)
        counts = {x.aval.shape[0] for x in (t, q) if x.aval.ndim == 2}
        if len(counts - {1}) > 1:
            raise ShapeError(f"{name}: {t.aval} and quaternions {q.aval} do not fit")
        lead = fnp.broadcast_shapes(t.aval.shape[:-1], q.aval.shape[:-1])
        t = fnp.broadcast_to(t, (*lead, 3))
        return cls(Rotation(fnp.broadcast_to(q, (*lead, 4))), t)

    @classmethod
    def from_rotation(cls, rotation: Rotation) -> RigidTransform:
        """Returns movements that only turn.

        Args:
          rotation: one or n.
        """
        zero = fnp.zeros((*rotation.shape, 3), rotation.quat.dtype)
        return cls.from_components(zero, rotation)

    @classmethod
    def from_translation(cls, translation: ArrayLike) -> RigidTransform:
        """Returns movements that do not turn.

        Args:
          translation: real array-like[3] or [n, 3].
        """
        t = _numbers("RigidTransform.from_translation", translation, 3)
        return cls.from_components(t, Rotation.identity(dtype=t.aval.dtype))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> RigidTransform:
        """Returns movements of matrices [[R, t], [0, 0, 0, 1]].

        Args:
          matrix: real array-like[4, 4] or [n, 4, 4]; R is orthogonal.

        Raises:
          ShapeError: it has the wrong shape.
          ArgumentError: the last row of a known matrix is another one.
        """
        name = "RigidTransform.from_matrix"
        m = _numbers(name, matrix, 4, 4)
        if not isinstance(m, Tracer):
            last = np.asarray(m[..., 3, :])
            if not (last == np.array([0, 0, 0, 1])).all():
                raise ArgumentError(
                    f"{name}: the last row must be [0, 0, 0, 1], got {last.tolist()}"
                )
        return cls(Rotation.from_matrix(m[..., :3, :3]), m[..., :3, 3])

    @classmethod
    def from_exp_coords(cls, exp_coords: ArrayLike) -> RigidTransform:
        """Returns the matrix exponentials of rotation vectors and velocities.

        Args:
          exp_coords: real array-like[6] or [n, 6]: a rotation vector, then the
            velocity; a screw.

        Raises:
          ShapeError: it has the wrong shape.
        """
        x = _numbers("RigidTransform.from_exp_coords", exp_coords, 6)
        turn, along = x[..., :3], x[..., 3:]
        return cls(Rotation.from_rotvec(turn), _screwed(turn, along))

    @classmethod
    def from_dual_quat(
        cls, dual_quat: ArrayLike, *, scalar_first: bool = False
    ) -> RigidTransform:
        """Returns movements of dual quaternions, made unit ones.

        Args:
          dual_quat: real array-like[8] or [n, 8]: the real part, then the dual part.
          scalar_first: whether each part is (w, x, y, z).

        Raises:
          ShapeError: it has the wrong shape.
        """
        x = _numbers("RigidTransform.from_dual_quat", dual_quat, 8)
        real, dual = x[..., :4], x[..., 4:]
        if scalar_first:
            real, dual = fnp.roll(real, -1, -1), fnp.roll(dual, -1, -1)
        size = fnp.sqrt(fnp.sum(real * real, -1, keepdims=True))
        real, dual = real / size, dual / size
        way = 2 * _product(dual, quaternions.inverse(real))[..., :3]
        return cls(Rotation(real), way)

    @classmethod
    def identity(
        cls, num: int | None = None, dtype: DTypeLike = float
    ) -> RigidTransform:
        """Returns movements that change nothing.

        Args:
          num: how many; None is one by itself.
          dtype: dtype of the numbers.
        """
        return cls.from_rotation(Rotation.identity(num, dtype))

    @classmethod
    def concatenate(cls, transforms: Sequence[RigidTransform]) -> RigidTransform:
        """Returns the movements of several objects in one.

        Args:
          transforms: of one or several each.
        """
        if isinstance(transforms, RigidTransform):
            transforms = [transforms]
        ways = [fnp.atleast_2d(t.translation) for t in transforms]
        turns = Rotation.concatenate([t.rotation for t in transforms])
        return cls(turns, fnp.concatenate(ways))

    # -- reading -----------------------------------------------------------------------

    def as_components(self) -> tuple[Array, Rotation]:
        """Returns the translation and the rotation."""
        return self.translation, self.rotation

    def as_matrix(self) -> Array:
        """Returns matrices[..., 4, 4]."""
        top = fnp.concatenate(
            [self.rotation.as_matrix(), self.translation[..., None]], -1
        )
        row = np.array([[0, 0, 0, 1]], top.dtype)
        last = fnp.broadcast_to(row, (*self.shape, 1, 4))
        return fnp.concatenate([top, last], -2)

    def as_exp_coords(self) -> Array:
        """Returns rotation vectors and velocities[..., 6]: matrix logarithms."""
        turn = self.rotation.as_rotvec()
        return fnp.concatenate([turn, _unscrewed(turn, self.translation)], -1)

    def as_dual_quat(self, *, scalar_first: bool = False) -> Array:
        """Returns unit dual quaternions[..., 8].

        Args:
          scalar_first: whether w comes first in each part.
        """
        q = self.rotation.quat
        way = fnp.concatenate([self.translation, fnp.zeros_like(q[..., :1])], -1)
        parts = [q, _product(way, q) / 2]
        if scalar_first:
            parts = [fnp.roll(p, 1, -1) for p in parts]
        return fnp.concatenate(parts, -1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes of these movements: () or (n,)."""
        return tuple(self.translation.shape[:-1])

    @property
    def single(self) -> bool:
        """Whether this is one movement by itself."""
        return self.translation.ndim == 1

    # -- using -------------------------------------------------------------------------

    def apply(self, vector: ArrayLike, inverse: bool = False) -> Array:
        """Moves points.

        Args:
          vector: real array-like[3] or [n, 3].
          inverse: whether they are moved back.

        Returns:
          Float array[3] for one point and one movement, else [n, 3].

        Raises:
          ShapeError: they have the wrong shape, or there are not as many as movements.
        """
        v = _numbers("RigidTransform.apply", vector, 3)
        if inverse:
            return self.rotation.apply(v - self.translation, inverse=True)
        return self.rotation.apply(v) + self.translation

    def inv(self) -> RigidTransform:
        """Returns the movements back."""
        return RigidTransform(
            self.rotation.inv(), -self.rotation.apply(self.translation, inverse=True)
        )

    def mean(self, weights: ArrayLike | None = None) -> RigidTransform:
        """Returns the mean rotation with the mean translation.

        Args:
          weights: non-negative real array-like[n]; None is all the same.

        Raises:
          ShapeError: there are not as many weights as movements.
        """
        turn = self.rotation.mean(weights)
        ways = fnp.atleast_2d(self.translation)
        if weights is None:
            return RigidTransform(turn, fnp.mean(ways, 0))
        w = convert(fnp.asarray(weights), ways.dtype)
        return RigidTransform(turn, w @ ways / fnp.sum(w))

    def __mul__(self, other: RigidTransform) -> RigidTransform:
        """Returns `other` first, then this."""
        if not isinstance(other, RigidTransform):
            return NotImplemented
        return RigidTransform(
            self.rotation * other.rotation,
            self.rotation.apply(other.translation) + self.translation,
        )

    def __pow__(self, n: float) -> RigidTransform:
        """Returns this `n` times, a real number."""
        return RigidTransform.from_exp_coords(n * self.as_exp_coords())

    def __getitem__(self, indexer: Any) -> RigidTransform:
        """Returns some of several movements.

        Raises:
          TypeError: this is one movement by itself.
        """
        if self.single:
            raise TypeError("RigidTransform: one movement by itself has no elements")
        return RigidTransform(self.rotation[indexer], self.translation[indexer])

    def __len__(self) -> int:
        """Returns how many movements there are.

        Raises:
          TypeError: this is one movement by itself.
        """
        if self.single:
            raise TypeError("RigidTransform: one movement by itself has no length")
        return int(self.translation.shape[0])

    def __bool__(self) -> bool:
        """Returns True, also of no movements."""
        return True

    def __repr__(self) -> str:
        """Shows the rotation and the translation."""
        return (
            f"RigidTransform(rotation={self.rotation!r}, "
            f"translation={self.translation!r})"
        )
