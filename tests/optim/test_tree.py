"""Arithmetic on pytrees, compared with optax."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import optim, random, tree
from fxflow.errors import ArgumentError, DtypeError, TreeError

T = optim.tree
X = {"a": fnp.array([3.0, -4.0]), "b": fnp.full((), 2.0)}
Y = {"a": fnp.array([1.0, 2.0]), "b": fnp.full((), 5.0)}


def flat(x) -> list[float]:
    return [float(n) for leaf in tree.leaves(x) for n in np.ravel(leaf)]


def test_arithmetic_matches_optax() -> None:
    assert flat(T.add(X, Y, Y)) == [5.0, 0.0, 12.0]
    assert flat(T.sub(X, Y)) == [2.0, -6.0, -3.0]
    assert flat(T.mul(X, Y)) == [3.0, -8.0, 10.0]
    assert flat(T.div(X, Y)) == pytest.approx([3.0, -2.0, 0.4])
    assert flat(T.scale(2.0, X)) == [6.0, -8.0, 4.0]
    assert flat(T.add_scale(X, 2.0, Y)) == [5.0, 0.0, 12.0]
    assert flat(T.where(fnp.asarray(False), X, Y)) == flat(Y)
    assert flat(T.clip(X, -1.0, 2.5)) == [2.5, -1.0, 2.0]
    assert T.conj([1 + 2j])[0] == 1 - 2j
    assert flat(T.real([1 + 2j])) == [1.0]
    with pytest.raises(TreeError):
        T.add(X, {"a": 1.0})


def test_reductions_of_a_tree() -> None:
    for pairwise in (False, True):
        assert float(T.sum(X, pairwise)) == 1.0
    assert (float(T.max(X)), float(T.min(X))) == (3.0, -4.0)
    assert float(T.vdot(X, Y)) == 5.0
    assert complex(T.vdot([fnp.array([1 + 1j])], [fnp.array([2j])])) == 2 + 2j
    assert T.size(X) == 3
    assert bool(T.allclose(X, X))
    assert not bool(T.allclose(X, Y))
    norms = [float(T.norm(X, o)) for o in (None, 1, "inf", np.inf)]
    assert norms == pytest.approx([29**0.5, 9.0, 4.0, 4.0])
    assert float(T.norm(X, squared=True)) == 29.0
    with pytest.raises(ArgumentError, match="ord must be 1, 2 or inf, got 'fro'"):
        T.norm(X, "fro")
    assert flat(fxflow.grad(T.norm)({"a": fnp.zeros(2)})) == [0.0, 0.0]


def test_reductions_of_an_empty_tree() -> None:
    assert (T.sum({}), T.vdot({}, {}), T.size({})) == (0, 0, 0)
    assert (T.max([]), T.min([])) == (-np.inf, np.inf)
    assert [float(T.norm({}, o)) for o in (2, 1, "inf")] == [0.0, 0.0, 0.0]
    assert float(T.max([fnp.zeros((0, 2)), fnp.ones(2)])) == 1.0
    assert T.zeros_like({}) == {}
    assert T.split_key_like(random.key(0), {}) == {}
    assert bool(T.allclose({}, {}))


def test_the_dtype_of_a_mixed_tree() -> None:
    mixed = {"a": fnp.ones(2), "b": fnp.ones(2, "bfloat16")}
    assert T.dtype(X) == "float32"
    assert T.dtype({}) == "float32"
    with pytest.raises(DtypeError, match="float32, bfloat16: pass mixed_dtype_handler"):
        T.dtype(mixed)
    chosen = [T.dtype(mixed, how).name for how in ("promote", "highest", "lowest")]
    assert chosen == ["float32", "float32", "bfloat16"]
    with pytest.raises(DtypeError, match="none of float16, bfloat16 is the lowest"):
        T.dtype([fnp.ones(1, "float16"), fnp.ones(1, "bfloat16")], "lowest")
    with pytest.raises(ArgumentError, match="mixed_dtype_handler must be"):
        T.dtype(mixed, "any")
    assert T.cast(mixed, None) is mixed
    assert T.dtype(T.cast(mixed, "float16")) == "float16"
    assert T.cast_like(X, mixed | {"a": fnp.ones((), "int32")})["a"].dtype == "int32"


def test_trees_with_the_types_of_another() -> None:
    assert flat(T.ones_like(X)) == [1.0, 1.0, 1.0]
    assert flat(T.full_like(X, 7, "int32")) == [7, 7, 7]
    assert T.batch_shape(X, (4, 5))["b"].shape == (4, 5)
    numbers = T.random_like(random.key(0), X)
    assert len(set(flat(numbers))) == 3
    keys = T.split_key_like(random.key(0), X)
    np.testing.assert_array_equal(numbers["b"], random.normal(keys["b"], ()))
    data = T.unwrap_random_key_data({"k": random.key(3), "x": 1.0})
    assert data["k"].tolist() == [0, 3]
    assert data["x"] == 1.0


def test_moments_match_optax() -> None:
    assert flat(T.update_moment(Y, X, 0.5, 2)) == [2.0, 0.0, 13.5]
    assert flat(T.update_moment({"a": -2.0}, {"a": 1.0}, 0.5, 3)) == [4.5]
    assert flat(T.update_infinity_moment(X, Y, 0.5, 0.25)) == [3.25, 4.25, 2.5]
    assert float(T.bias_correction(1.0, 0.9, 2)) == pytest.approx(5.2631564)
