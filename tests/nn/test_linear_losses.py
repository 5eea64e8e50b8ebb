"""Cross entropies without an array of logits: numbers, derivatives, memory, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.optim import losses

CLASSES, FEATURES = 23, 5
LABELS = np.array([[0, 22, 7], [7, 3, 11]], np.int32)
FACTORS = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]], np.float32)


def given(dtype: str = "float32", bias: bool = True) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(0)
    params = {"w": rng.standard_normal((CLASSES, FEATURES))}
    if bias:
        params["b"] = rng.standard_normal(CLASSES)
    x = rng.standard_normal((*LABELS.shape, FEATURES)) * 2
    return fxflow.tree.map(lambda v: fnp.asarray(v, dtype), (params, x))


def whole(params: Any, x: Any, softcap: float | None = None) -> Any:
    logits = x @ params["w"].T + params.get("b", 0)
    if softcap is not None:
        logits = softcap * fnp.tanh(logits / softcap)
    return losses.softmax_cross_entropy_with_integer_labels(logits, LABELS)


def cut(params: Any, x: Any, softcap: float | None = None, block: int = 4) -> Any:
    return nn.linear_cross_entropy(params, x, LABELS, softcap=softcap, block=block)


def slopes(f: Callable[..., Any], params: Any, x: Any, **options: Any) -> Any:
    def total(params: Any, x: Any) -> Any:
        return fnp.sum(f(params, x, **options) * FACTORS)

    return fxflow.grad(total, (0, 1))(params, x)


def same(got: Any, want: Any, tolerance: float = 1e-5) -> None:
    for a, b in zip(fxflow.tree.leaves(got), fxflow.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, tolerance, tolerance)


@pytest.mark.parametrize("block", [1, 4, 22, 23, 100, None])
def test_losses_and_gradients_are_those_of_all_logits(block: int | None) -> None:
    params, x = given()
    same(cut(params, x, block=block), whole(params, x))
    same(slopes(cut, params, x, block=block), slopes(whole, params, x))


@pytest.mark.parametrize("bias", [False, True])
def test_a_softcap_bounds_the_logits(bias: bool) -> None:
    params, x = given(bias=bias)
    same(cut(params, x, softcap=1.5), whole(params, x, softcap=1.5))
    got = slopes(cut, params, x, softcap=1.5)
    same(got, slopes(whole, params, x, softcap=1.5))
    assert got[0].keys() == params.keys()


def test_under_transformations() -> None:
    params, x = given()

    def forwards(f: Callable[..., Any]) -> Any:
        return fxflow.jvp(f, (params, x), (params, x))

    def curvature(f: Callable[..., Any]) -> Any:
        return fxflow.grad(lambda x: fnp.sum(slopes(f, params, x)[1] ** 2))(x)

    def mapped(f: Callable[..., Any]) -> Any:
        return fxflow.vmap(lambda x: slopes(f, params, x))(fnp.stack([x, -x]))

    for way in (forwards, curvature, mapped):
        same(way(cut), way(whole), 1e-4)
    same(fxflow.jit(cut)(params, x), whole(params, x))


def test_examples_that_do_not_count_have_no_derivative() -> None:
    params, x = given()
    where = np.array([[True, False, True], [True, True, False]])
    x = x.at[0, 1].set(np.nan)
    labels = np.where(where, LABELS, -100)

    def loss(params: Any, x: Any) -> Any:
        return nn.linear_cross_entropy(params, x, labels, where=where, block=4)

    clean = fnp.where(where[..., None], x, 0)
    want = fnp.where(where, whole(params, clean), 0)
    same(loss(params, x), want)
    got = slopes(loss, params, x)
    same(got, slopes(lambda p, x: fnp.where(where, whole(p, x), 0), params, clean))
    assert not np.any(got[1][~where])


def test_labels_outside_of_the_classes_give_nan() -> None:
    params, x = given()
    for label in (-1, CLASSES):
        found = nn.linear_cross_entropy(params, x[0, 0], np.int32(label))
        assert np.isnan(found)


def test_infinite_biases_leave_classes_out() -> None:
    params, x = given()
    params["b"] = params["b"].at[:6].set(-np.inf).at[9].set(-np.inf)
    want, got = whole(params, x), cut(params, x)
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    finite = np.isfinite(want)
    same(got[finite], want[finite])
    params["b"] = fnp.full(CLASSES, -np.inf)
    assert not np.any(np.isfinite(cut(params, x)))


def test_large_logits_do_not_overflow() -> None:
    params, x = given()
    same(cut(params, x * 1000), whole(params, x * 1000))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_floats_are_accumulated_in_float32(dtype: str) -> None:
    params, x = given(dtype)
    wide = fxflow.tree.map(lambda v: v.astype("float32"), (params, x))
    loss = cut(params, x)
    assert loss.dtype == fnp.float32
    same(loss, whole(*wide), 1e-2)
    got = slopes(cut, params, x)
    assert {v.dtype for v in fxflow.tree.leaves(got)} == {x.dtype}
    got = fxflow.tree.map(lambda v: v.astype("float32"), got)
    same(got, slopes(whole, *wide), 5e-2)


def test_no_array_of_logits_is_in_memory() -> None:
    classes, count = 4096, 256
    params = {"w": np.ones((classes, 8), np.float32)}
    x, labels = np.ones((count, 8), np.float32), np.zeros(count, np.int32)

    def loss(params: Any, x: Any) -> Any:
        return fnp.sum(nn.linear_cross_entropy(params, x, labels, block=256))

    compiled = fxflow.jit(fxflow.grad(loss, (0, 1))).lower(params, x).compile()
    temporary = compiled.memory_analysis()["temp_size_in_bytes"]
    assert temporary < 4 * classes * count / 3


def test_no_examples_and_one_class() -> None:
    params, x = given()
    assert nn.linear_cross_entropy(params, x[:0], LABELS[:0]).shape == (0, 3)
    one = {"w": params["w"][:1]}
    same(nn.linear_cross_entropy(one, x, np.zeros_like(LABELS)), np.zeros((2, 3)), 1e-5)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"x": np.ones((2, 3, 4), np.float32)}, ShapeError, r"float\[..., 5\]"),
        ({"labels": LABELS[0]}, ShapeError, "labels"),
        ({"labels": LABELS * 1.0}, DtypeError, "labels must be integers"),
        ({"where": LABELS}, DtypeError, "where must be bools"),
        ({"softcap": 0.0}, ArgumentError, "softcap must be positive, got 0.0"),
        ({"block": 0}, ArgumentError, "block"),
        ({"params": {"b": np.ones(3)}}, ArgumentError, "w"),
        ({"params": {"w": np.ones((3, 5)), "b": np.ones(4)}}, ShapeError, "b"),
    ],
)
def test_wrong_arguments(change: Any, error: type[Exception], message: str) -> None:
    params, x = given()
    arguments = {"params": params, "x": x, "labels": LABELS, **change}
    with pytest.raises(error, match=message):
        nn.linear_cross_entropy(**arguments)
