"""Microbatches: accumulation, rows, their order, and invalid arguments."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.optim import microbatching
from fxflow.optim.microbatching import (
    AccumulationType,
    Accumulator,
    micro_grad,
    micro_vmap,
    microbatch,
    reshape_batch_axis,
)

SUM, MEAN, RUNNING, CONCAT = (
    AccumulationType[name] for name in ("SUM", "MEAN", "RUNNING_MEAN", "CONCAT")
)
ROWS = np.arange(12, dtype=np.float32).reshape(6, 2)
LARGEST = Accumulator(
    init=lambda like: fxflow.tree.map(lambda x: fnp.full(x.shape, -np.inf), like),
    update=lambda carry, value, i: fnp.maximum(carry, value + i),
    finalize=lambda carry: -carry,
    aggregate=lambda rows: fnp.max(rows, 0),
)


@pytest.mark.parametrize(
    ("count", "size", "real"), [(3, 2, 3), (4, 1, 2), (1, 5, 1), (2, 3, 0)]
)
def test_all_accumulators(count, size, real):
    x = np.random.default_rng(count).normal(size=(count * size, 3)).astype(np.float32)
    parts = [x[i::count] for i in range(real)]
    squares = np.zeros((size, count, 3), np.float32)
    for i, part in enumerate(parts):
        squares[:, i] = part**2
    total = sum((part.sum(0) for part in parts), np.zeros(3))
    rules = [CONCAT, SUM, MEAN, RUNNING]
    f = microbatch(
        lambda x: [x**2, *(x.sum(0) for _ in rules[1:])],
        0,
        size,
        rules,
        num_real_microbatches=fnp.int32(real),
    )
    found = fxflow.jit(f)(x)
    wanted = squares.reshape(-1, 3), total, total / count, total / max(real, 1)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_custom_accumulators():
    assert microbatch(fnp.sum, 0, 2, LARGEST)(ROWS).tolist() == -32.0
    rows = micro_vmap(lambda x: x, microbatch_size=2, accumulator=LARGEST)(ROWS)
    assert rows.tolist() == [-12.0, -13.0]


def test_positional_and_keyword_arguments_have_rows():
    def f(x, scale, *, y):
        return fnp.sum(scale * x * y["w"].T)

    batched = microbatch(f, 0, 3, argnames="y", in_axes=(0, -1))
    y = {"w": ROWS.T + 1}
    assert float(batched(ROWS, 2.0, y=y)) == np.sum(2 * ROWS * (ROWS + 1))
    # It is differentiable, also by arguments without rows.
    slope = fxflow.grad(batched, argnums=1)(ROWS, 2.0, y=y)
    assert float(slope) == np.sum(ROWS * (ROWS + 1))
    assert microbatch(f, 0, None) is f


def test_means_of_integers_are_floats():
    for rule in (MEAN, RUNNING):
        mean = microbatch(fnp.sum, 0, 2, rule)(np.arange(6))
        assert (mean.dtype, float(mean)) == (np.float32, 5.0)
    assert microbatch(fnp.sum, 0, 2)(np.arange(6)).dtype == np.int32


def test_micro_vmap_matches_vmap():
    f = micro_vmap(lambda a, b: a * b, (0, None), microbatch_size=3)
    assert (np.asarray(f(ROWS, np.float32(2))) == 2 * ROWS).all()
    columns = micro_vmap(lambda a, b: a + b, (0, 1), microbatch_size=1)
    assert (np.asarray(columns(ROWS, ROWS.T)) == 2 * ROWS).all()
    for size in (None, 2):
        mean = micro_vmap(fnp.sum, microbatch_size=size, accumulator=MEAN)
        assert float(mean(ROWS)) == 11.0


def test_micro_grad_transforms_the_rows_gradients():
    def loss(w, x, y):
        return 0.5 * fnp.mean((x @ w - y) ** 2)

    batch = fnp.ones((4, 1)), fnp.array([0.0, 2.0, 4.0, 6.0])
    for size in (None, 2):
        f = micro_grad(
            loss,
            batch_argnums=(1, 2),
            microbatch_size=size,
            accumulator=(MEAN, SUM),
            transform_fn=lambda g: (g, g**2),
            metrics_fn=fnp.linalg.norm,
        )
        (mean, squares), aux = fxflow.jit(f)(fnp.zeros(1), *batch)
        assert mean.tolist() == [-3.0] and squares.tolist() == [56.0]
        assert aux.values.tolist() == [0.0, 2.0, 8.0, 18.0]
        assert aux.metrics.tolist() == [0.0, 2.0, 4.0, 6.0] and aux.aux is None
    shapes = []

    def noted(w, x):
        shapes.append(x.shape)
        return fnp.sum(w * x), x

    for keep in (True, False):
        f = micro_grad(noted, has_aux=True, microbatch_size=2, keep_batch_dim=keep)
        gradient, aux = f(2.0, ROWS)
        assert float(gradient) == ROWS.sum() and aux.metrics is None
        assert aux.aux.reshape(6, 2).tolist() == ROWS.tolist()
    assert set(shapes) == {(1, 2), (2,)}


def test_the_loop_holds_one_microbatch():
    def f(x):
        return fnp.sum(fnp.sin(x[:, None] * x[None, :]))

    x = np.ones(256, np.float32)
    sizes = [
        fxflow.jit(g).lower(x).compile().memory_analysis()["temp_size_in_bytes"]
        for g in (lambda x: fnp.sum(fnp.sort(fnp.outer(x, x), 1)), microbatch(f, 0, 8))
    ]
    assert sizes[1] < sizes[0] / 8


def test_reshape_batch_axis_interleaves_rows():
    assert reshape_batch_axis(ROWS, 2).shape == (3, 2, 2)
    assert reshape_batch_axis(ROWS.T, 3, axis=-1)[0].tolist() == [[0, 4, 8], [2, 6, 10]]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: microbatch(fnp.sum, 0, 4)(ROWS), ShapeError, "6 rows of f32[6,2]"),
        (lambda: microbatch(fnp.sum, 0, 0), ArgumentError, "microbatch_size"),
        (lambda: microbatch(fnp.sum, 1, 2)(ROWS), ArgumentError, "argnums has 1"),
        (lambda: microbatch(fnp.sum, (), 2), ArgumentError, "and at least one, got 0"),
        (
            lambda: microbatch(fnp.sum, (), 2, argnames="y")(ROWS),
            ArgumentError,
            "no argument 'y'",
        ),
        (
            lambda: microbatch(fnp.add, (0, 1), 2)(ROWS, ROWS[:4]),
            ShapeError,
            "f32[6,2] (axis 0), f32[4,2] (axis 0)",
        ),
        (lambda: microbatch(fnp.sum, 0, 2)(1.0), ShapeError, "no axis 0"),
        (lambda: microbatch(fnp.sum, 0, 2)(()), ShapeError, "hold no array"),
        (
            lambda: microbatch(fnp.sum, 0, 2, num_real_microbatches=4)(ROWS),
            ArgumentError,
            "0 to 3, got 4",
        ),
        (lambda: microbatch(fnp.sum, 0, 2, "sum")(ROWS), ArgumentError, "'sum'"),
        (lambda: microbatch(fnp.sum, 0, 2, CONCAT)(ROWS), ShapeError, "a scalar"),
        (lambda: micro_vmap(fnp.sum, -1), ArgumentError, "in_axes"),
        (lambda: micro_vmap(fnp.sum, out_axes=1), ArgumentError, "out_axes"),
        (lambda: micro_vmap(fnp.sum, (0, 0))(ROWS), ArgumentError, "2 entries for 1"),
    ],
)
def test_batches_that_do_not_divide_are_refused(call, error, words):
    with pytest.raises(error, match=re.escape(words)):
        call()


def test_public_names_exist():
    assert all(hasattr(microbatching, name) for name in microbatching.__all__)
