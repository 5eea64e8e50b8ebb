"""Losses compared with optax; special cases and derivatives."""

import math
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from fxflow.optim import losses
from tests.optim.golden import DATA, LOSS_INPUTS

LOSSES = DATA["losses"]
P, T = LOSS_INPUTS["p"], LOSS_INPUTS["t"]


@pytest.mark.parametrize("name", LOSSES)
def test_numbers_match_optax(name: str) -> None:
    value = LOSSES[name]
    out = eval(value["call"], {"L": losses, **LOSS_INPUTS})
    assert list(out.shape) == value["shape"]
    np.testing.assert_allclose(
        np.asarray(out).ravel(), value["values"], rtol=1e-5, atol=2e-6
    )


def test_large_logits_have_finite_losses_and_gradients() -> None:
    logits = np.array([[1e4, 0.0], [0.0, 1e4]], np.float32)
    labels = np.array([0, 0])
    integer = losses.softmax_cross_entropy_with_integer_labels
    np.testing.assert_allclose(integer(logits, labels), [0.0, 1e4])
    binary = losses.sigmoid_binary_cross_entropy
    np.testing.assert_allclose(binary(np.array([1e4, -1e4]), 1.0), [0.0, 1e4])
    np.testing.assert_allclose(losses.log_cosh(np.array([1e4])), [1e4 - np.log(2)])


def test_integer_and_dense_labels_agree() -> None:
    labels = np.array([[1, 0], [3, 2]])
    logits = np.random.default_rng(0).normal(size=(2, 2, 4)).astype(np.float32)
    dense = fxflow.nn.one_hot(labels, 4)
    integer = losses.softmax_cross_entropy_with_integer_labels
    np.testing.assert_allclose(
        integer(logits, labels), losses.softmax_cross_entropy(logits, dense), rtol=1e-5
    )
    moved = np.moveaxis(logits, -1, 0)
    np.testing.assert_allclose(
        integer(moved, labels, axis=0), integer(logits, labels), rtol=1e-5
    )
    slope = fxflow.grad(lambda x: integer(x, labels).sum())(logits)
    want = np.asarray(fxflow.nn.softmax(logits)) - np.asarray(dense)
    np.testing.assert_allclose(slope, want, atol=1e-6)


def test_slopes_at_special_points() -> None:
    zero = np.zeros(3, np.float32)

    def similarity(x: Any) -> Any:
        return losses.cosine_similarity(x, zero + 1, epsilon=1e-3)

    assert np.isfinite(np.asarray(fxflow.grad(similarity)(zero))).all()

    def divergence(y: Any) -> Any:
        return losses.kl_divergence(np.log(np.full(3, 1 / 3, np.float32)), y)

    assert np.isfinite(np.asarray(fxflow.grad(divergence)(zero))).all()
    slopes = fxflow.vmap(fxflow.grad(losses.huber_loss))(np.array([-3.0, 0.5, 1.0]))
    np.testing.assert_allclose(slopes, [-1.0, 0.5, 1.0])


def test_a_divergence_where_prediction_and_target_are_zero() -> None:
    with np.errstate(divide="ignore"):
        log_p = np.log(np.float32([0, 0.5, 0.5]))
        log_y = np.log(np.float32([0, 0.25, 0.75]))
    want = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    for f, y in (
        (losses.kl_divergence, np.exp(log_y)),
        (losses.kl_divergence_with_log_targets, log_y),
        (losses.generalized_kl_divergence, np.exp(log_y)),
    ):
        for run in (f, fxflow.jit(f)):
            assert float(run(log_p, y)) == pytest.approx(want, rel=1e-6)
            by_p, by_y = fxflow.grad(run, (0, 1))(log_p, y)
            assert np.isfinite(by_p).all()
            assert np.isfinite(by_y).all()
            assert float(by_p[0]) == 0


def test_shapes_dtypes_and_axes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        ShapeError, match=r"must have one shape, got f32\[3,4\] and f32"
    ):
        losses.l2_loss(P, T[:1])
    with pytest.raises(
        DtypeError, match=r"l2_loss: predictions must be floats, got i32"
    ):
        losses.l2_loss(np.arange(3), np.arange(3))
    with pytest.raises(ArgumentError, match=r"predictions is .* of type list"):
        losses.huber_loss([1.0])
    integer = losses.softmax_cross_entropy_with_integer_labels
    with pytest.raises(ShapeError, match=r"labels must have the shape of the logits"):
        integer(P, np.arange(4))
    with pytest.raises(DtypeError, match=r"labels must be integers, got f32\[3,4\]"):
        integer(P, T)
    with pytest.raises(AxisError, match=r"there is no axis 2 in logits f32\[3,4\]"):
        integer(P, np.arange(3), axis=2)
    with pytest.raises(AxisError, match=r"smooth_labels: there is no axis 5"):
        losses.smooth_labels(P, 0.1, axis=5)


# -- losses recorded from optax 0.2.8 --------------------------------------------------

_RNG = np.random.default_rng(0)
SCORES, OTHERS = (_RNG.normal(size=(3, 4)).astype(np.float32) for _ in range(2))
SHARES = np.array([[0.1, 0.2, 0.3, 0.4], [0.25] * 4, [0, 0, 0.5, 0.5]], np.float32)
CLASSES = np.array([0, 3, 1])
BITS = (_RNG.random((3, 4)) > 0.5).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "arguments", "options", "want"),
    [
        ("sigmoid_focal_loss", (SCORES, BITS), {}, [0.13884, 0.39649, 0.044034]),
        (
            "sigmoid_focal_loss",
            (SCORES, BITS),
            {"alpha": 0.3, "gamma": 1.5},
            [0.060846, 0.14976, 0.053577],
        ),
        (
            "safe_softmax_cross_entropy",
            (SCORES, SHARES),
            {},
            [1.3928, 1.595, 1.1476],
        ),
        (
            "poly_loss_cross_entropy",
            (SCORES, SHARES),
            {"epsilon": 0.7},
            [1.9112, 2.12, 1.6131],
        ),
        ("perceptron_loss", (SCORES, 2 * BITS - 1), {}, [0.0, 0.53567, 0.0]),
        (
            "multiclass_perceptron_loss",
            (SCORES, CLASSES),
            {},
            [0.51469, 0.35692, 1.3067],
        ),
        ("multiclass_hinge_loss", (SCORES, CLASSES), {}, [1.5147, 1.3569, 2.3067]),
        (
            "kl_divergence_with_log_targets",
            (SCORES, OTHERS),
            {},
            [-1.2545, -1.5752, 11.246],
        ),
        ("generalized_kl_divergence", (SCORES, SHARES), {}, [2.518, 5.3775, 0.95306]),
        (
            "triplet_margin_loss",
            (SCORES, OTHERS, SHARES),
            {},
            [3.6448, 0.63257, 1.823],
        ),
    ],
)
def test_numbers_match_those_recorded_from_optax(
    name: str, arguments: Any, options: Any, want: Any
) -> None:
    loss = getattr(losses, name)
    out = np.asarray(fxflow.jit(lambda *a: loss(*a, **options))(*arguments))
    first = out if out.ndim == 1 else out[:, 0]
    np.testing.assert_allclose(first, want, rtol=1e-4, atol=1e-5)
    slope = fxflow.grad(lambda x: loss(x, *arguments[1:], **options).sum())(SCORES)
    assert np.isfinite(np.asarray(slope)).all()


def test_an_impossible_class_gives_finite_values() -> None:
    logits = np.array([0.0, 1.0, -np.inf], np.float32)
    labels = np.array([0.5, 0.5, 0.0], np.float32)
    value, slope = fxflow.value_and_grad(losses.safe_softmax_cross_entropy)(
        logits, labels
    )
    assert np.isfinite(float(value))
    assert np.isfinite(np.asarray(slope)).all()


def test_where_selects_classes() -> None:
    part = np.array([True, True, False, True])
    for name, want in (
        ("poly_loss_cross_entropy", [1.6989, 1.9511, 0.70556]),
        ("generalized_kl_divergence", [1.4741, 2.6161, 0.95181]),
        ("kl_divergence_with_log_targets", [-0.71181, -0.22838, 11.267]),
    ):
        other = OTHERS if "log_targets" in name else SHARES
        out = getattr(losses, name)(SCORES, other, where=part)
        np.testing.assert_allclose(out, want, rtol=1e-4)


def test_where_of_cosines_and_smooth_labels() -> None:
    x = np.float32([[3, 4, np.nan], [1, -2, 0.5]])
    y = np.float32([[1, 0, 2], [2, 1, 1]])
    where = np.array([[1, 1, 0], [1, 0, 1]], bool)
    similarity = losses.cosine_similarity(x, y, where=where)
    np.testing.assert_allclose(similarity, [0.6, 1.0], rtol=1e-6)
    distance = losses.cosine_distance(x, y, where=where)
    np.testing.assert_allclose(distance, [0.4, 0.0], atol=1e-6)
    p = np.float32([[0.5, 0.5, 0], [0.25, 0.25, 0.5]])
    smooth = losses.smooth_labels(p, 0.3, where=where)
    np.testing.assert_allclose(smooth, 0.7 * p + 0.15, rtol=1e-6)
    across = losses.smooth_labels(p, 0.3, axis=0, where=where)
    np.testing.assert_allclose(across[0], 0.7 * p[0] + [0.15, 0.3, 0.3], rtol=1e-6)


INF = float("inf")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: losses.softmax_cross_entropy(x, fnp.array([1.0, 0.0])), 0.0),
        (lambda x: losses.safe_softmax_cross_entropy(x, fnp.array([1.0, 0.0])), 0.0),
        (lambda x: losses.poly_loss_cross_entropy(x, fnp.array([1.0, 0.0])), 0.0),
        (lambda x: losses.softmax_cross_entropy(x, fnp.array([0.0, 1.0])), INF),
        (lambda x: losses.sigmoid_binary_cross_entropy(x[1], 0.0), 0.0),
        (lambda x: losses.sigmoid_binary_cross_entropy(-x[1], 1.0), 0.0),
        (lambda x: losses.sigmoid_binary_cross_entropy(x[1], 1.0), INF),
        (lambda x: losses.kl_divergence(x, fnp.array([1.0, 0.0])), 0.0),
        (lambda x: losses.generalized_kl_divergence(x, fnp.array([1.0, 0.0])), 0.0),
        (lambda x: losses.kl_divergence_with_log_targets(x, x), 0.0),
    ],
)
def test_impossible_classes_with_label_zero_add_zero(
    call: Any, expected: float
) -> None:
    x = fnp.array([0.0, -INF])
    for f in (call, fxflow.jit(call)):
        assert float(f(x)) == expected
    if expected == 0.0:
        assert np.isfinite(np.asarray(fxflow.grad(call)(x))).all()


def test_zero_vectors_give_finite_values_and_gradients() -> None:
    zero, one = fnp.zeros(3), fnp.ones(3)
    for epsilon in (0.0, 1e-6):
        f = lambda a, e=epsilon: losses.cosine_similarity(a, one, epsilon=e)
        assert float(f(zero)) == 0.0
        assert np.isfinite(np.asarray(fxflow.grad(f)(zero))).all()
        assert float(losses.cosine_distance(zero, zero, epsilon=epsilon)) == 1.0
    triplet = lambda a: losses.triplet_margin_loss(a, zero, one, eps=0.0)
    assert float(triplet(zero)) == 0.0
    assert np.isfinite(np.asarray(fxflow.grad(lambda a: triplet(a * 0.1))(zero))).all()
    none = fnp.zeros((2, 3), bool)
    smooth = losses.smooth_labels(fnp.ones((2, 3)), 0.5, where=none)
    assert smooth.tolist() == [[0.5] * 3] * 2


def test_small_errors_and_confident_logits_are_accurate() -> None:
    errors = np.array([1e-6, 1e-3, 0.5, 0.999, 1.0, 2.0, 30.0, 300.0], np.float32)
    wide = errors.astype(np.float64)
    expected = np.logaddexp(wide, -wide) - np.log(2)
    expected[:2] = wide[:2] ** 2 / 2 - wide[:2] ** 4 / 12
    np.testing.assert_allclose(losses.log_cosh(errors), expected, rtol=1e-6)
    slopes = fxflow.grad(lambda x: losses.log_cosh(x).sum())(errors)
    np.testing.assert_allclose(slopes, np.tanh(wide), rtol=1e-6)
    # (1 - p)² · -log p where p rounds to 1 in float32.
    found = losses.sigmoid_focal_loss(fnp.array(20.0), 1.0)
    np.testing.assert_allclose(float(found), np.exp(-60.0), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_dtypes_are_summed_in_float32(dtype: str) -> None:
    n = 70_000
    logits, labels = fnp.zeros(n, dtype), fnp.full(n, 1 / n, dtype)
    label = fnp.array(0)
    entropy = losses.softmax_cross_entropy_with_integer_labels(logits, label)
    rough = {"rtol": 1e-2 if dtype == "bfloat16" else 2e-3}
    np.testing.assert_allclose(float(entropy), np.log(n), **rough)
    mean = losses.softmax_cross_entropy(logits, labels)
    total = float(np.asarray(labels, np.float64).sum())
    np.testing.assert_allclose(float(mean), np.log(n) * total, **rough)
    assert entropy.dtype == mean.dtype == dtype
    a = fnp.full(4, 300.0, dtype)
    np.testing.assert_allclose(float(losses.cosine_similarity(a, a)), 1.0, **rough)
    near, far = fnp.zeros(4, dtype), fnp.full(4, 400.0, dtype)
    found = losses.triplet_margin_loss(near, a, far, margin=300.0)
    np.testing.assert_allclose(float(found), 100.0, **rough)


def test_epsilon_bounds_norms_and_degrees_are_of_norms() -> None:
    a, b = np.float32([3, 4]), np.float32([0.6, 0.8])
    # The norm of the shorter vector is taken as 2.
    found = losses.cosine_similarity(a, b, epsilon=2.0)
    assert float(found) == pytest.approx(0.5)
    far, near = np.float32([-1, -2]), np.float32([1, 1])
    found = losses.triplet_margin_loss(a * 0, far, near, norm_degree=3, eps=0.0)
    assert float(found) == pytest.approx(9 ** (1 / 3) - 2 ** (1 / 3) + 1)
