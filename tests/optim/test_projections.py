"""Projections: optax's numbers, points inside, zeros, and narrow dtypes."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import tree
from fxflow.optim import projections

X = {"a": fnp.array([0.3, -1.2, 2.0]), "b": fnp.array([[0.7]])}
A = {"a": fnp.array([1.0, 0.5, -2.0]), "b": fnp.array([[0.25]])}
L2 = [0.183406, -0.733625, 1.22271, 0.427948]
L1 = [0.0, -0.35, 1.15, 0.0]

# Results of optax 0.2.8: arguments after X, elements of a and b.
WANT = {
    "box": ((-0.5, 1.0), [0.3, -0.5, 1.0, 0.7]),
    "hypercube": ((1.5,), [0.3, 0.0, 1.5, 0.7]),
    "non_negative": ((), [0.3, 0.0, 2.0, 0.7]),
    "simplex": ((1.5,), [0.0, 0.0, 1.4, 0.1]),
    "l1_sphere": ((1.5,), L1),
    "l1_ball": ((1.5,), L1),
    "l2_sphere": ((1.5,), L2),
    "l2_ball": ((1.5,), L2),
    "linf_ball": ((), [0.3, -1.0, 1.0, 0.7]),
    "vector": ((A,), [-0.776471, -0.388235, 1.55294, -0.194118]),
    "hyperplane": ((A, 0.5), [1.17059, -0.764706, 0.258824, 0.917647]),
    "halfspace": ((A, -5.0), [0.135294, -1.28235, 2.32941, 0.658823]),
}


def flat(x) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in tree.leaves(x)])


@pytest.mark.parametrize("name", WANT)
def test_numbers_match_optax(name: str) -> None:
    arguments, want = WANT[name]
    project = getattr(projections, f"projection_{name}")
    once = project(X, *arguments)
    np.testing.assert_allclose(flat(once), want, rtol=1e-5, atol=1e-6)
    # A point in the set does not change, also when compiled.
    again = fxflow.jit(lambda x: project(x, *arguments))(once)
    np.testing.assert_allclose(flat(again), want, rtol=1e-4, atol=1e-5)


def test_a_box_may_have_bounds_for_each_array() -> None:
    low, high = tree.map(lambda x: 0.5 + 0 * x, X), tree.map(lambda x: 1 + 0 * x, X)
    out = projections.projection_box(X, low, high)
    np.testing.assert_allclose(flat(out), [0.5, 0.5, 1.0, 0.7])


def test_points_inside_and_empty_trees_do_not_change() -> None:
    for ball in ("l1_ball", "l2_ball", "linf_ball"):
        project = getattr(projections, f"projection_{ball}")
        np.testing.assert_array_equal(flat(project(X, 100.0)), flat(X))
        assert flat(project([fnp.zeros(2)])).tolist() == [0.0, 0.0]
    assert projections.projection_simplex({}) == {}
    small = projections.projection_simplex(fnp.ones(4, "bfloat16"))
    assert small.dtype == "bfloat16"
    assert small.tolist() == [0.25] * 4


def test_zero_vectors_have_finite_projections() -> None:
    zero, x = fnp.zeros(4), fnp.ones(4)
    assert projections.projection_l2_sphere(zero, 2.0).tolist() == [1.0] * 4
    assert projections.projection_vector(x, zero).tolist() == [0.0] * 4
    assert projections.projection_hyperplane(x, zero, 1.0).tolist() == [1.0] * 4
    assert projections.projection_halfspace(x, zero, -1.0).tolist() == [1.0] * 4
    for f in (
        projections.projection_l2_sphere,
        projections.projection_l2_ball,
        projections.projection_l1_ball,
        lambda a: projections.projection_vector(x, a),
        lambda a: projections.projection_hyperplane(x, a, 1.0),
    ):
        slope = fxflow.grad(lambda x, f=f: fnp.sum(f(x)))(zero)
        assert np.isfinite(np.asarray(slope)).all()


def test_projections_of_large_and_narrow_numbers() -> None:
    found = projections.projection_simplex(fnp.array([1e8, 1e8 - 8]))
    assert found.tolist() == [1.0, 0.0]
    halves = fnp.full(4, 300.0, "float16")
    assert projections.projection_l2_sphere(halves, 2.0).tolist() == [1.0] * 4
    on = projections.projection_vector(halves, halves)
    assert on.tolist() == halves.tolist()
