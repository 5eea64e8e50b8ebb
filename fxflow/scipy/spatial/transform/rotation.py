"""Rotations in space."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow import random
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.numpy._operands import ArrayLike, DTypeLike, convert, promote_inexact
from fxflow.scipy.spatial.transform import _quaternions as quaternions


def _numbers(name: str, x: Any, *core: int) -> Array:
    """Returns numbers as a float array[*core] or [n, *core].

    Args:
      name: of the function, for messages.
      x: array-like, or nested lists of numbers.
      *core: lengths of the last axes.
    """
    out: Array = promote_inexact(name, fnp.asarray(x))[0]
    shape = out.aval.shape
    rest = len(shape) - len(core)
    if rest not in (0, 1) or shape[rest:] != core:
        one = ", ".join(map(str, core))
        raise ShapeError(f"{name}: expected [{one}] or [n, {one}], got {out.aval}")
    if dtypes.is_complex(out.aval.dtype):
        raise DtypeError(f"{name}: takes real numbers, got {out.aval}")
    return out


@library("axes", "degrees")
def _of_angles(angles: Any, *, axes: str, degrees: bool) -> Array:
    angles = angles * (math.pi / 180) if degrees else angles
    out: Array = quaternions.of_angles(axes, angles)
    return out


@library("axes", "degrees")
def _to_angles(q: Any, *, axes: str, degrees: bool) -> Array:
    out: Array = quaternions.to_angles(q, axes)
    return out * (180 / math.pi) if degrees else out


_normalized = library()(quaternions.normalized)
_product = library()(quaternions.product)
_canonical = library()(quaternions.canonical)
_of_vector = library()(quaternions.of_vector)
_to_vector = library()(quaternions.to_vector)
_of_mrp = library()(quaternions.of_mrp)
_to_mrp = library()(quaternions.to_mrp)
_of_matrix = library()(quaternions.of_matrix)
_to_matrix = library()(quaternions.to_matrix)
_angle = library()(quaternions.angle)
_aligned = library()(quaternions.aligned)
_between = library()(quaternions.between)
_to_davenport = library("extrinsic")(quaternions.to_davenport)


def _order(name: str, order: Any) -> bool:
    """Returns whether axes are fixed in space."""
    known = {"e": True, "extrinsic": True, "i": False, "intrinsic": False}
    if not isinstance(order, str) or order.lower() not in known:
        raise ArgumentError(
            f'{name}: order must be "extrinsic" or "intrinsic", got {order!r}'
        )
    return known[order.lower()]


def _unit_axes(name: str, axes: Any, *counts: int) -> Array:
    """Returns axes[k, 3] of length 1."""
    x: Array = promote_inexact(name, fnp.asarray(axes))[0]
    given = x.aval
    x = x[None] if x.aval.ndim == 1 else x
    if x.aval.ndim != 2 or x.aval.shape[1] != 3 or x.aval.shape[0] not in counts:
        known = " or ".join(map(str, counts))
        raise ShapeError(f"{name}: expected axes [{known}, 3], got {given}")
    return fnp.asarray(_normalized(x))


def _require_axes(seq: Any, *counts: int) -> str:
    known = isinstance(seq, str) and len(seq) in counts
    if known and (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
        known = all(a != b for a, b in itertools.pairwise(seq))
    else:
        known = False
    if known:
        return str(seq)
    raise ArgumentError(
        f"Rotation: seq must be {' or '.join(map(str, counts))} letters of xyz (axes "
        "fixed in space) or of XYZ (axes that turn along), no neighbours the same, got "
        f"{seq!r}"
    )


@register_pytree_node_class
class Rotation:
    """A rotation in space, or several: quaternions [4] or [n, 4].

    It is a pytree with one leaf, so it passes through `jit`, `grad` and `vmap`. It is
    not made by the class but by its methods, `from_quat` and the others.

    Attributes:
      quat: float array[4] or [n, 4], unit quaternions (x, y, z, w).

    Example:
      >>> r = Rotation.from_euler("z", 90, degrees=True)
      >>> r.apply(np.array([1.0, 0.0, 0.0])).round(3)
      Array([0., 1., 0.], dtype=float32)
      >>> (r * r).magnitude().round(4)
      Array(3.1416, dtype=float32)

    Source: `scipy.spatial.transform.Rotation`. Derivatives exist at the identity, too,
    where JAX's are nan.
    """

    quat: Array

    def __init__(self, quat: Array) -> None:
        """Takes unit quaternions as they are.

        Args:
          quat: float array[4] or [n, 4].
        """
        self.quat = quat

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Returns the quaternions."""
        return (self.quat,), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Any) -> Rotation:
        """Rebuilds rotations from their quaternions."""
        out = object.__new__(cls)
        (out.quat,) = children
        return out

    # -- making ------------------------------------------------------------------------

    @classmethod
    def from_quat(cls, quat: ArrayLike, *, scalar_first: bool = False) -> Rotation:
        """Returns rotations of quaternions of any length.

        Args:
          quat: real array-like[4] or [n, 4], (x, y, z, w); of 0 everything is nan.
          scalar_first: whether it is (w, x, y, z).

        Raises:
          ShapeError: it has the wrong shape.
          DtypeError: it is complex.

        Example:
          >>> Rotation.from_quat(np.array([0.0, 0.0, 0.0, 2.0]))
          Rotation(quat=Array([0., 0., 0., 1.], dtype=float32))
        """
        q = _numbers("Rotation.from_quat", quat, 4)
        return cls(_normalized(fnp.roll(q, -1, -1) if scalar_first else q))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """Returns rotations of orthogonal matrices with determinant 1.

        Args:
          matrix: real array-like[3, 3] or [n, 3, 3]. One that is not orthogonal is not
            made so, as in JAX and unlike SciPy.

        Raises:
          ShapeError: it has the wrong shape.
          DtypeError: it is complex.
        """
        return cls(_of_matrix(_numbers("Rotation.from_matrix", matrix, 3, 3)))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """Returns rotations of axes times angles.

        Args:
          rotvec: real array-like[3] or [n, 3].
          degrees: whether the angles are in degrees.

        Raises:
          ShapeError: it has the wrong shape.
          DtypeError: it is complex.
        """
        v = _numbers("Rotation.from_rotvec", rotvec, 3)
        return cls(_of_vector(v * (math.pi / 180) if degrees else v))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """Returns rotations of axes times tan(angle / 4): Rodrigues' parameters.

        Args:
          mrp: real array-like[3] or [n, 3].

        Raises:
          ShapeError: it has the wrong shape.
          DtypeError: it is complex.
        """
        return cls(_of_mrp(_numbers("Rotation.from_mrp", mrp, 3)))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Returns rotations of turns about up to three axes.

        Args:
          seq: 1 to 3 letters of xyz, axes fixed in space, or of XYZ, axes that
            turn along.
          angles: for k letters real array-like[k] or [n, k]; for one, also a number,
            but not a vector [n]: give [n, 1].
          degrees: whether the angles are in degrees.

        Raises:
          ArgumentError: there are other letters, or neighbours are the same.
          ShapeError: there are not as many angles as letters.
          DtypeError: they are complex.
        """
        _require_axes(seq, 1, 2, 3)
        (a,) = promote_inexact("Rotation.from_euler", fnp.asarray(angles))
        if len(seq) == 1 and not a.aval.ndim:
            a = a[None]
        a = _numbers("Rotation.from_euler", a, len(seq))
        return cls(_of_angles(a, axes=seq, degrees=bool(degrees)))

    @classmethod
    def from_davenport(
        cls, axes: ArrayLike, order: str, angles: ArrayLike, degrees: bool = False
    ) -> Rotation:
        """Returns rotations of turns about up to three given axes.

        Args:
          axes: real array-like[3] or [k, 3], k ≤ 3.
          order: "extrinsic" or "e", the axes are fixed in space; "intrinsic" or "i",
            they turn along.
          angles: real array-like[k] or [n, k]; for one axis, also a number.
          degrees: whether the angles are in degrees.

        Raises:
          ArgumentError: unknown order.
          ShapeError: axes or angles have another shape.
          DtypeError: they are complex.

        Example:
          >>> turn = Rotation.from_davenport(np.eye(3), "extrinsic", np.ones(3))
          >>> turn.approx_equal(Rotation.from_euler("xyz", np.ones(3)), atol=1e-6)
          Array(True, dtype=bool)
        """
        name = "Rotation.from_davenport"
        extrinsic = _order(name, order)
        known = _unit_axes(name, axes, 1, 2, 3)
        (a,) = promote_inexact(name, fnp.asarray(angles))
        if known.shape[0] == 1 and not a.aval.ndim:
            a = a[None]
        a = _numbers(name, a, known.shape[0])
        a = a * (math.pi / 180) if degrees else a
        turns = [
            cls.from_rotvec(a[..., k : k + 1] * known[k]) for k in range(known.shape[0])
        ]
        out = turns[0]
        for turn in turns[1:]:
            out = turn * out if extrinsic else out * turn
        return out

    @classmethod
    def create_group(cls, group: str, axis: str = "Z") -> Rotation:
        """Returns all rotations of a group.

        Args:
          group: "I", icosahedral; "O", octahedral; "T", tetrahedral; "Dn", dihedral, or
            "Cn", cyclic, of order n: "D4".
          axis: "X", "Y" or "Z": of cyclic and dihedral groups.

        Raises:
          ArgumentError: unknown group or axis.
          ImportError: SciPy is not installed.

        Example:
          >>> len(Rotation.create_group("O"))
          24
        """
        theirs = importlib.import_module("scipy.spatial.transform").Rotation
        try:
            found = theirs.create_group(group, axis=axis).as_quat()
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"Rotation.create_group: {error}") from None
        return cls(fnp.asarray(found, dtypes.default_float()))

    @classmethod
    def align_vectors(
        cls,
        a: ArrayLike,
        b: ArrayLike,
        weights: ArrayLike | None = None,
        return_sensitivity: bool = False,
    ) -> Any:
        """Returns the rotation that turns vectors b onto vectors a best.

        Args:
          a: real array-like[3] or [n, 3].
          b: real array-like of the same shape.
          weights: non-negative and finite, real array-like[n]; None is all the same.
          return_sensitivity: whether to return the sensitivity, too.

        Returns:
          The rotation; the root of the weighted sum of the squares of what is left; and
          the sensitivity, float[3, 3], by which the covariance of errors of the vectors
          becomes that of the rotation. (SciPy's weights may be infinite.)

        Raises:
          ShapeError: there are not as many vectors or weights.
          ArgumentError: the sensitivity is asked for a single vector.

        Special cases:
          The turn of a single vector is the shortest one.

        Example:
          >>> turn, error = Rotation.align_vectors(np.eye(3)[[1, 2, 0]], np.eye(3))
          >>> (turn.as_matrix() @ np.eye(3)[0]).round(3)
          Array([0., 1., 0.], dtype=float32)
        """
        name = "Rotation.align_vectors"
        x, y = promote_inexact(name, _numbers(name, a, 3), _numbers(name, b, 3))
        if x.aval.shape != y.aval.shape:
            raise ShapeError(f"{name}: a, {x.aval}, and b, {y.aval}, must be alike")
        x, y = fnp.atleast_2d(x), fnp.atleast_2d(y)
        n = x.aval.shape[0]
        w = fnp.ones(n, x.dtype) if weights is None else fnp.asarray(weights, x.dtype)
        if w.shape != (n,) or not n:
            raise ShapeError(f"{name}: expected {n} weights, one or more, got {w.aval}")
        if n == 1:
            if return_sensitivity:
                raise ArgumentError(f"{name}: a single vector has no sensitivity")
            turn = cls(_between(x[0], y[0]))
            rest = turn.apply(y[0]) - x[0]
            return turn, fnp.sqrt(w[0] * fnp.sum(rest * rest))
        q, error, sensitivity = _aligned(x, y, w)
        return (cls(q), error, sensitivity) if return_sensitivity else (cls(q), error)

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> Rotation:
        """Returns rotations that change nothing.

        Args:
          num: how many; None is one by itself.
          dtype: dtype of the quaternions.
        """
        one = fnp.asarray(np.array([0, 0, 0, 1]), dtype)
        return cls(one if num is None else fnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Draws rotations, all equally likely.

        Args:
          random_key: a key of `fxflow.random`.
          num: how many; None is one by itself.
        """
        shape = (4,) if num is None else (num, 4)
        return cls(_normalized(random.normal(random_key, shape)))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Returns the rotations of several objects in one.

        Args:
          rotations: of one or several each.
        """
        return cls(fnp.concatenate([fnp.atleast_2d(r.quat) for r in rotations]))

    # -- reading -----------------------------------------------------------------------

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Returns unit quaternions[..., 4].

        Args:
          canonical: whether of `q` and `-q`, which are one rotation, it is that one
            whose w, or the first of x, y and z that is not 0, is positive.
          scalar_first: whether w comes first.
        """
        q = _canonical(self.quat) if canonical else self.quat
        return fnp.roll(q, 1, -1) if scalar_first else q

    def as_matrix(self) -> Array:
        """Returns orthogonal matrices[..., 3, 3]."""
        out: Array = _to_matrix(self.quat)
        return out

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Returns axes times angles[..., 3], the angles at most a half turn.

        Args:
          degrees: whether the angles are in degrees.
        """
        out: Array = _to_vector(self.quat)
        return out * (180 / math.pi) if degrees else out

    def as_mrp(self) -> Array:
        """Returns axes times tan(angle / 4), [..., 3]."""
        out: Array = _to_mrp(self.quat)
        return out

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Returns angles[..., 3] about three axes.

        The second angle is in [0, π] where the first and the third axis are the same,
        else in [-π/2, π/2]. At its ends only the sum or the difference of the others is
        known, and the third one is 0.

        Args:
          seq: three letters of xyz, axes fixed in space, or of XYZ, axes that turn
            along.
          degrees: whether the angles are in degrees.

        Raises:
          ArgumentError: there are other letters, or neighbours are the same.
        """
        return _to_angles(self.quat, axes=_require_axes(seq, 3), degrees=bool(degrees))

    def as_davenport(self, axes: ArrayLike, order: str, degrees: bool = False) -> Array:
        """Returns angles[..., 3] about three axes, the second across both others.

        Args:
          axes: real array-like[3, 3].
          order: "extrinsic" or "e", the axes are fixed in space; "intrinsic" or "i",
            they turn along.
          degrees: whether the angles are in degrees.

        Raises:
          ArgumentError: unknown order, or known axes are not orthogonal.
          ShapeError: there are not three axes.
        """
        name = "Rotation.as_davenport"
        extrinsic = _order(name, order)
        known = convert(_unit_axes(name, axes, 3), self.quat.dtype)
        if not isinstance(known, Tracer):
            x = np.asarray(known, float)
            slip = max(abs(x[1] @ x[0]), abs(x[1] @ x[2]))
            if slip > 1e-3:
                raise ArgumentError(
                    f"{name}: the second axis must be orthogonal to the others, got a "
                    f"cosine of {slip:.3g}"
                )
        out: Array = _to_davenport(self.quat, known, extrinsic=extrinsic)
        return out * (180 / math.pi) if degrees else out

    def magnitude(self) -> Array:
        """Returns angles[...] from 0 to π."""
        out: Array = _angle(self.quat)
        return out

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes of these rotations: () or (n,)."""
        return tuple(self.quat.shape[:-1])

    @property
    def single(self) -> bool:
        """Whether this is one rotation by itself."""
        return self.quat.ndim == 1

    # -- using -------------------------------------------------------------------------

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Turns vectors.

        Args:
          vectors: real array-like[3] or [n, 3].
          inverse: whether they are turned back.

        Returns:
          Float array[3] for one vector and one rotation, else [n, 3].

        Raises:
          ShapeError: they have the wrong shape, or there are not as many as rotations.
          DtypeError: they are complex.
        """
        v = _numbers("Rotation.apply", vectors, 3)
        m = self.as_matrix()
        m = fnp.swapaxes(m, -1, -2) if inverse else m
        return fnp.squeeze(m @ v[..., None], -1)

    def inv(self) -> Rotation:
        """Returns the rotations back."""
        return Rotation(quaternions.inverse(self.quat))

    def approx_equal(
        self, other: Rotation, atol: float | None = None, degrees: bool = False
    ) -> Array:
        """Returns whether rotations are nearly the same.

        Args:
          other: rotations, one or as many.
          atol: the greatest angle between them; None is 1e-8 radians.
          degrees: whether `atol` is in degrees.

        Returns:
          bool[] or bool[n].
        """
        bound = 1e-8 if atol is None else atol * (math.pi / 180 if degrees else 1)
        return (other * self.inv()).magnitude() < bound

    def reduce(
        self,
        left: Rotation | None = None,
        right: Rotation | None = None,
        return_indices: bool = False,
    ) -> Any:
        """Returns the smallest rotations that a group makes of these.

        Args:
          left: rotations that may come after each one; None is only the identity.
          right: rotations that may come before; likewise.
          return_indices: whether to return which ones were taken, too.

        Returns:
          For each rotation p that product l p r whose angle is least; with indices
          these of l and r, int32[...], or None for a group that is not given.
        """
        q = fnp.atleast_2d(self.quat)
        groups = [
            Rotation.identity(1, q.dtype) if g is None else g for g in (left, right)
        ]
        before, after = (fnp.atleast_2d(g.quat) for g in groups)
        inner = _product(q[:, None], after[None])
        made = _product(before[None, :, None], inner[:, None])
        flat = fnp.reshape(made, (q.shape[0], -1, 4))
        best = fnp.argmax(fnp.abs(flat[..., 3]), -1)
        found = fnp.take_along_axis(flat, best[:, None, None], 1)[:, 0]
        found = found[0] if self.single else found
        if not return_indices:
            return Rotation(found)
        count = after.shape[0]
        places = [best // count, best % count]
        places = [p[0] if self.single else p for p in places]
        return Rotation(found), *(
            None if g is None else p for g, p in zip((left, right), places, strict=True)
        )

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """Returns the rotation that is nearest to all, in the mean of squares.

        Args:
          weights: non-negative real array-like[n]; None is all the same.

        Raises:
          ShapeError: there are not as many weights as rotations.
        """
        q = fnp.atleast_2d(self.quat)
        w = fnp.ones(q.shape[0], q.dtype) if weights is None else fnp.asarray(weights)
        if w.shape != q.shape[:1]:
            raise ShapeError(
                f"Rotation.mean: expected {q.shape[0]} weights, got shape {w.shape}"
            )
        vectors = fnp.linalg.eigh((w * q.T) @ q)[1]
        return Rotation(convert(vectors[:, -1], q.dtype))

    def __mul__(self, other: Rotation) -> Rotation:
        """Returns `other` first, then this."""
        if not isinstance(other, Rotation):
            return NotImplemented
        return Rotation(_product(self.quat, other.quat))

    def __pow__(self, n: float) -> Rotation:
        """Returns this `n` times, a real number."""
        return Rotation.from_rotvec(n * self.as_rotvec())

    def __getitem__(self, indexer: Any) -> Rotation:
        """Returns some of several rotations.

        Raises:
          TypeError: this is one rotation by itself.
        """
        if self.single:
            raise TypeError("Rotation: one rotation by itself has no elements")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        """Returns how many rotations there are.

        Raises:
          TypeError: this is one rotation by itself.
        """
        if self.single:
            raise TypeError("Rotation: one rotation by itself has no length")
        return int(self.quat.shape[0])

    def __bool__(self) -> bool:
        """Returns True, also of no rotations."""
        return True

    def __repr__(self) -> str:
        """Shows the quaternions."""
        return f"Rotation(quat={self.quat!r})"
