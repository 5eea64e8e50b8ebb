"""Rigid movements beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.spatial.transform as want

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.spatial.transform import RigidTransform, Rotation

RNG = np.random.default_rng(1)
SIZES = np.array([1e-9, 1e-3, 0.1, 0.5, 1.2, 2.0])[:, None]
X = RNG.normal(size=(6, 6)) * SIZES
THEIRS = want.RigidTransform.from_exp_coords(X)
V = RNG.normal(size=(6, 3))


@pytest.fixture(autouse=True)
def wide() -> Any:
    with fxflow.config.override(x64=True):
        yield


def close(ours: Any, theirs: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(ours, theirs, tolerance, tolerance)


def test_forms() -> None:
    ours = RigidTransform.from_exp_coords(X)
    close(ours.as_matrix(), THEIRS.as_matrix())
    close(ours.as_exp_coords(), THEIRS.as_exp_coords())
    close(RigidTransform.from_matrix(THEIRS.as_matrix()).as_matrix(), ours.as_matrix())
    for first in (False, True):
        both = (
            ours.as_dual_quat(scalar_first=first),
            THEIRS.as_dual_quat(scalar_first=first),
        )
        w = 0 if first else 3
        close(*(np.asarray(q) * np.sign(np.asarray(q)[:, w : w + 1]) for q in both))
        q = RNG.normal(size=(5, 8))
        again = RigidTransform.from_dual_quat(q, scalar_first=first)
        expected = want.RigidTransform.from_dual_quat(q, scalar_first=first)
        close(again.as_matrix(), expected.as_matrix())
    t, turn = ours.as_components()
    close(RigidTransform.from_components(t, turn).as_matrix(), ours.as_matrix())
    close(RigidTransform.from_rotation(turn).as_matrix()[:, :3, :3], turn.as_matrix())
    close(RigidTransform.from_translation(t[0]).as_matrix()[:3, 3], t[0])
    wide = RigidTransform.from_components(np.ones(3), turn)
    assert wide.shape == (6,) and len(wide) == 6 and not wide.single
    close(RigidTransform.identity(2).as_matrix(), np.stack([np.eye(4)] * 2))
    assert RigidTransform.identity().shape == ()


def test_algebra() -> None:
    ours = RigidTransform.from_exp_coords(X)
    close((ours * ours[::-1]).as_matrix(), (THEIRS * THEIRS[::-1]).as_matrix())
    close(ours.inv().as_matrix(), THEIRS.inv().as_matrix())
    close((ours**0.3).as_matrix(), (THEIRS**0.3).as_matrix(), 1e-7)
    w = RNG.uniform(size=6)
    close(ours.mean().as_matrix(), THEIRS.mean().as_matrix())
    close(ours.mean(w).as_matrix(), THEIRS.mean(w).as_matrix())
    for inverse in (False, True):
        close(ours.apply(V, inverse), THEIRS.apply(V, inverse))
        close(ours[0].apply(V, inverse), THEIRS[0].apply(V, inverse))
    joined = RigidTransform.concatenate([ours[0], ours[2:4]])
    close(joined.as_matrix(), THEIRS[np.array([0, 2, 3])].as_matrix())
    assert ours[0].single and bool(ours[:0]) and "RigidTransform(" in repr(ours)


def test_jit_vmap_and_derivatives_at_rest() -> None:
    def moved(x: Any) -> Any:
        return RigidTransform.from_exp_coords(x).as_matrix()[:3].sum()

    rest = fnp.zeros(6)
    close(fxflow.grad(moved)(rest), [0, 0, 0, 1, 1, 1])
    assert np.isfinite(fxflow.hessian(moved)(rest)).all()
    there = lambda x: RigidTransform.from_exp_coords(x).as_exp_coords()
    for x in (rest, X[2], X[3]):
        close(fxflow.jacfwd(there)(x), np.eye(6), 1e-10)
        close(fxflow.jacrev(there)(x), np.eye(6), 1e-10)
    many = fxflow.jit(fxflow.vmap(RigidTransform.from_exp_coords))(X)
    close(many.as_matrix(), THEIRS.as_matrix())
    single = RigidTransform.from_exp_coords(X[:4].astype(np.float32))
    assert single.as_matrix().dtype == np.float32
    close(single.as_exp_coords(), X[:4], 1e-5)


def test_wrong_arguments() -> None:
    with pytest.raises(ShapeError, match=r"\[6\] or \[n, 6\], got f64\[5\]"):
        RigidTransform.from_exp_coords(np.ones(5))
    with pytest.raises(ArgumentError, match=r"last row must be \[0, 0, 0, 1\]"):
        RigidTransform.from_matrix(np.ones((4, 4)))
    with pytest.raises(ShapeError, match="do not fit"):
        RigidTransform.from_components(np.ones((2, 3)), Rotation.identity(3))
    with pytest.raises(ArgumentError, match="takes a Rotation, got 3"):
        RigidTransform.from_components(np.ones(3), 3)
    one = RigidTransform.identity()
    with pytest.raises(TypeError, match="no elements"):
        one[0]
    with pytest.raises(TypeError, match="no length"):
        len(one)
