"""Rotations beside SciPy's."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.spatial.transform as want

import fxflow
import fxflow.numpy as fnp
from fxflow import random
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.scipy.spatial.transform import Rotation

RNG = np.random.default_rng(0)
Q = np.concatenate(
    [
        RNG.normal(size=(20, 4)),
        np.eye(4),
        [[0.5, 0.5, 0.5, -0.5], [1e-9, 0, 0, 1], [0, 1e-4, 0, 1], [0.02, 0, 0, -1]],
        [[0, np.sqrt(0.5), 0, np.sqrt(0.5)], [np.sqrt(0.5), 0, np.sqrt(0.5), 0]],
    ]
)
THEIRS = want.Rotation.from_quat(Q)
SEQUENCES = ["".join(s) for s in itertools.product("xyz", repeat=3)]
SEQUENCES = [s for s in SEQUENCES if s[0] != s[1] != s[2]]


def close(ours: Any, theirs: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(ours, theirs, tolerance, tolerance)


def test_forms() -> None:
    with fxflow.config.override(x64=True):
        ours = Rotation.from_quat(Q)
        close(ours.as_quat(), THEIRS.as_quat())
        close(ours.as_quat(True, True), THEIRS.as_quat(True, scalar_first=True))
        close(ours.as_matrix(), THEIRS.as_matrix())
        close(ours.as_rotvec(), THEIRS.as_rotvec())
        close(ours.as_rotvec(True), THEIRS.as_rotvec(True))
        close(ours.as_mrp(), THEIRS.as_mrp())
        close(ours.magnitude(), THEIRS.magnitude())
        close(ours.inv().as_quat(), THEIRS.inv().as_quat())
        # And back.
        from_vector = want.Rotation.from_rotvec
        first = Rotation.from_quat(np.roll(Q, 1, -1), scalar_first=True)
        vectors = RNG.normal(size=(len(Q), 3)) * RNG.choice(
            [1e-6, 1e-2, 1, 4], (len(Q), 1)
        )
        for made, same in [
            (first, THEIRS),
            (Rotation.from_matrix(ours.as_matrix()), THEIRS),
            (Rotation.from_rotvec(vectors), from_vector(vectors)),
            (
                Rotation.from_rotvec(vectors, True),
                from_vector(vectors, True),
            ),
            (Rotation.from_mrp(vectors), want.Rotation.from_mrp(vectors)),
        ]:
            close(made.as_matrix(), same.as_matrix(), 1e-11)
            one = made[3]
            assert one.single and not made.single and len(made) == len(Q)
            close(one.as_rotvec(), made.as_rotvec()[3])
    single = Rotation.from_quat(Q.astype(np.float32))
    assert single.as_matrix().dtype == np.float32
    close(single.as_matrix(), THEIRS.as_matrix(), 2e-6)
    assert Rotation.from_quat(np.array([0, 0, 0, 1])).quat.dtype == np.float32


@pytest.mark.parametrize("seq", SEQUENCES)
def test_angles(seq: str) -> None:
    with fxflow.config.override(x64=True):
        for axes in (seq, seq.upper()):
            angles = RNG.uniform(-180, 180, (5, 3))
            made = Rotation.from_euler(axes, angles, True)
            same = want.Rotation.from_euler(axes, angles, True)
            close(made.as_matrix(), same.as_matrix())
            close(made.as_euler(axes), same.as_euler(axes), 1e-10)
            close(made[0].as_euler(axes, True), same[0].as_euler(axes, True), 1e-9)
            # Where two axes coincide, too: what comes out is the same rotation.
            middle = [0, 180] if seq[0] == seq[2] else [90, -90]
            angles = np.array([[20.0, m, -50.0] for m in middle])
            locked = Rotation.from_euler(axes, angles, True)
            again = locked.as_euler(axes)
            same_again = Rotation.from_euler(axes, again).as_matrix()
            close(same_again, locked.as_matrix(), 1e-9)
            assert not again[:, 2].any()

            def again_of(angles: Any, axes: str = axes) -> Any:
                return Rotation.from_euler(axes, angles).as_euler(axes)

            assert np.isfinite(fxflow.jacrev(again_of)(np.radians(angles[0]))).all()


def test_fewer_angles() -> None:
    with fxflow.config.override(x64=True):
        for seq, angles in [
            ("x", 0.3),
            ("y", np.array([0.3])),
            ("X", np.array([[0.3], [0.4]])),
            ("xy", np.array([0.3, 0.4])),
            ("ZX", np.array([[0.3, 0.4]])),
        ]:
            ours = Rotation.from_euler(seq, angles)
            same = want.Rotation.from_euler(seq, angles)
            close(ours.as_matrix(), same.as_matrix())
            assert ours.as_matrix().shape == same.as_matrix().shape


def test_use() -> None:
    with fxflow.config.override(x64=True):
        ours, v = Rotation.from_quat(Q), RNG.normal(size=(len(Q), 3))
        for inverse in (False, True):
            close(ours.apply(v, inverse), THEIRS.apply(v, inverse))
            close(ours[0].apply(v, inverse), THEIRS[0].apply(v, inverse))
            close(ours.apply(v[0], inverse), THEIRS.apply(v[0], inverse))
            assert ours[0].apply(v[0]).shape == (3,)
        close((ours * ours[::-1]).as_matrix(), (THEIRS * THEIRS[::-1]).as_matrix())
        close((ours[0] * ours).as_matrix(), (THEIRS[0] * THEIRS).as_matrix())
        close((ours**2.5).as_matrix(), (THEIRS**2.5).as_matrix(), 1e-9)
        weights = RNG.uniform(size=len(Q))
        close(ours.mean(weights).as_matrix(), THEIRS.mean(weights).as_matrix(), 1e-9)
        close(ours.mean().as_matrix(), THEIRS.mean().as_matrix(), 1e-9)
        both = Rotation.concatenate([ours, ours[0]])
        close(both.as_quat(), np.concatenate([ours.quat, ours.quat[:1]]))
    assert Rotation.identity().quat.tolist() == [0, 0, 0, 1]
    assert Rotation.identity(2, np.float16).quat.dtype == np.float16
    drawn = Rotation.random(random.key(0), 4000)
    close(drawn.as_matrix().mean(0), np.zeros((3, 3)), 0.04)
    assert Rotation.random(random.key(0)).single
    assert bool(ours[:0]) and repr(ours[0]).startswith("Rotation(quat=Array([")


def test_rotations_pass_through_jit_and_vmap() -> None:
    with fxflow.config.override(x64=True):
        v = RNG.normal(size=(4, 3))
        matrix = lambda v: Rotation.from_rotvec(v).as_matrix()
        each = fxflow.jit(fxflow.vmap(matrix))(v)
        close(each, want.Rotation.from_rotvec(v).as_matrix())
        turned = fxflow.jit(lambda r: r * r)(Rotation.from_quat(Q))
        assert isinstance(turned, Rotation)
        close(turned.as_matrix(), (THEIRS * THEIRS).as_matrix())
        # At the identity: the generators, and there and back is not a change.
        zero = np.zeros(3)
        slope = fxflow.jacfwd(matrix)(zero)
        assert slope[2, 1, 0] == 1 and slope[1, 2, 0] == -1 and slope[0, 0, 0] == 0
        for near in (0.0, 1e-7, 0.05, 0.2):
            there = lambda v: Rotation.from_rotvec(v).as_rotvec()
            close(fxflow.jacrev(there)(zero + near), np.eye(3), 1e-9)
            close(fxflow.jacfwd(fxflow.jacrev(there))(zero + near), 0, 1e-7)
            half = lambda v: (Rotation.from_rotvec(v) ** 0.5).as_mrp()
            close(fxflow.jacrev(half)(zero), np.eye(3) / 8, 1e-9)
        size = fxflow.grad(lambda q: Rotation.from_quat(q).magnitude())
        assert not size(np.eye(4)[3]).any()


def test_invalid_shapes_sequences_and_operands_are_refused() -> None:
    for wrong in (fnp.ones(3), fnp.ones((2, 2, 4)), fnp.ones(())):
        with pytest.raises(ShapeError, match="from_quat"):
            Rotation.from_quat(wrong)
    with pytest.raises(DtypeError, match="real"):
        Rotation.from_rotvec(fnp.ones(3) * 1j)
    for seq in ("xyX", "xx", "a", "", 3, "xyzx"):
        with pytest.raises(ArgumentError, match="seq"):
            Rotation.from_euler(seq, fnp.ones(3))  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="from_euler"):
        Rotation.from_euler("xy", fnp.ones(3))
    # [n] is not [n, 1]: SciPy 1.17 stopped taking it, whose [1] was another case.
    with pytest.raises(ShapeError, match=r"from_euler: expected \[1\] or \[n, 1\]"):
        Rotation.from_euler("x", [0.1, 0.2])
    with pytest.raises(ArgumentError, match="seq"):
        Rotation.identity().as_euler("xy")
    with pytest.raises(ShapeError, match="weights"):
        Rotation.identity(3).mean(fnp.ones(2))
    with pytest.raises(TypeError, match="length"):
        len(Rotation.identity())
    with pytest.raises(TypeError, match="elements"):
        Rotation.identity()[0]
    with pytest.raises(TypeError):
        Rotation.identity() * 3  # type: ignore[operator]


def test_alignment() -> None:
    with fxflow.config.override(x64=True):
        for n in (1, 2, 3, 7):
            a, b = RNG.normal(size=(2, n, 3))
            w = RNG.uniform(0.5, 2, n)
            turn, error = want.Rotation.align_vectors(a, b, w)
            ours, ours_error = Rotation.align_vectors(a, b, w)
            close(ours.as_matrix(), turn.as_matrix(), 1e-10)
            close(ours_error, error, 1e-10)
            if n > 2:
                expected = want.Rotation.align_vectors(a, b, w, True)[2]
                close(Rotation.align_vectors(a, b, w, True)[2], expected, 1e-10)
        opposite = Rotation.align_vectors(np.eye(3)[0], -np.eye(3)[0])[0]
        close(opposite.apply(-np.eye(3)[0]), np.eye(3)[0])
        traced = fxflow.jit(lambda a, b: Rotation.align_vectors(a, b)[0].as_quat(True))
        close(traced(a, b), Rotation.align_vectors(a, b)[0].as_quat(True))
        slope = fxflow.grad(lambda a: Rotation.align_vectors(a, b)[1])(a)
        moved = a + 1e-6 * slope
        rise = Rotation.align_vectors(moved, b)[1] - Rotation.align_vectors(a, b)[1]
        close(rise / 1e-6, (slope * slope).sum(), 1e-4)
    with pytest.raises(ShapeError, match="expected 7 weights"):
        Rotation.align_vectors(a, b, np.ones(2))
    with pytest.raises(ShapeError, match="must be alike"):
        Rotation.align_vectors(a, b[:3])
    with pytest.raises(ArgumentError, match="no sensitivity"):
        Rotation.align_vectors(a[0], b[0], return_sensitivity=True)


def test_davenport() -> None:
    angles = RNG.normal(size=(5, 3))
    first = np.eye(3)[[0, 1, 2]]
    slanted = np.array([[0, 0, 1.0], [1, 0, 0], [0, 0.6, 0.8]])
    with fxflow.config.override(x64=True):
        ours = Rotation.from_quat(Q[:20])
        for axes in (first, slanted, slanted[[2, 1, 0]], np.eye(3)[[2, 0, 2]]):
            for order in ("extrinsic", "i"):
                got = ours.as_davenport(axes, order, degrees=True)
                close(got, THEIRS[:20].as_davenport(axes, order, degrees=True), 1e-9)
                made = Rotation.from_davenport(axes, order, angles)
                expected = want.Rotation.from_davenport(axes, order, angles)
                close(made.as_matrix(), expected.as_matrix())
        one = Rotation.from_davenport(np.array([0, 0, 2.0]), "e", 90, degrees=True)
        close(one.as_rotvec(), [0, 0, np.pi / 2])
    with pytest.raises(ArgumentError, match='order must be "extrinsic"'):
        ours.as_davenport(first, "x")
    with pytest.raises(ArgumentError, match="must be orthogonal"):
        ours.as_davenport(slanted[[0, 2, 1]], "e")
    with pytest.raises(ShapeError, match=r"axes \[3, 3\], got"):
        ours.as_davenport(first[:2], "e")


def test_groups() -> None:
    with fxflow.config.override(x64=True):
        ours = Rotation.from_quat(Q)
        for group in ("O", "T", "C3", "D2"):
            left = want.Rotation.create_group(group)
            made = Rotation.create_group(group)
            close(made.as_quat(), left.as_quat())
            best, i, _ = THEIRS.reduce(left, return_indices=True)
            got, j, k = ours.reduce(made, return_indices=True)
            close(got.magnitude(), best.magnitude(), 1e-7)
            assert j.shape == np.shape(i) and k is None
        both = ours[3].reduce(made, made)
        assert both.single
        assert (both.magnitude() <= ours[3].magnitude() + 1e-12).all()
        close(ours.approx_equal(ours[0], 0.5), THEIRS.approx_equal(THEIRS[0], 0.5))
        assert ours.approx_equal(ours).all() and ours.shape == (len(Q),)
    with pytest.raises(ArgumentError, match="create_group"):
        Rotation.create_group("Q")
