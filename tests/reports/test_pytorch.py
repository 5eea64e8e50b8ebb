"""Programs after reports of PyTorch's and TensorFlow's users: gradients, losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
import fxflow.scipy.special as sp
from fxflow import nn, optim

MODES = pytest.mark.parametrize(
    "mode", [lambda f: f, fxflow.jit], ids=["eager", "compiled"]
)


@MODES
def test_gradient_of_a_norm_at_zero(mode: Any) -> None:
    """The gradient of a zero norm is 0, of a tiny one the unit vector
    (pytorch#2421, tensorflow#12071)."""
    slope = mode(fxflow.grad(fnp.linalg.norm))
    np.testing.assert_array_equal(slope(fnp.zeros(3)), np.zeros(3))
    for scale in 1e-16, 1e-19, 1e-30, 1e30:
        x = scale * np.float32([3, -4])
        np.testing.assert_allclose(slope(x), [0.6, -0.8], rtol=1e-6)


@MODES
def test_gradient_of_distances_between_equal_points(mode: Any) -> None:
    """A pair of equal points adds nothing to the gradient (pytorch#37154,
    pytorch#26076)."""
    a, b = np.float32([[0, 0], [3, 4]]), np.float32([[0, 0], [0, 8], [3, 4]])

    def total(a: Any, b: Any) -> Any:
        return fnp.sum(fnp.linalg.norm(a[:, None] - b[None], axis=-1))

    got = mode(fxflow.grad(total, (0, 1)))(a, b)
    for mine, points, others in zip(got, (a, b), (b, a), strict=True):
        steps = points[:, None].astype("d") - others[None]
        lengths = np.linalg.norm(steps, axis=-1, keepdims=True)
        units = np.divide(steps, lengths, out=np.zeros_like(steps), where=lengths > 0)
        np.testing.assert_allclose(mine, units.sum(1), rtol=1e-6, atol=1e-7)


@MODES
def test_gradient_of_a_product_with_zeros(mode: Any) -> None:
    """The derivative by a zero factor is the product of the others (pytorch#773,
    tensorflow#2641)."""
    slope = mode(fxflow.grad(fnp.prod))
    np.testing.assert_array_equal(slope(fnp.float32([0, 2, 5])), [10, 0, 0])
    np.testing.assert_array_equal(slope(fnp.float32([0, 2, 0])), [0, 0, 0])


@MODES
def test_second_derivatives_of_a_product_with_zeros(mode: Any) -> None:
    """The mixed derivative of x y at x = 0 is 1; the curvature of 0 · 2 x² is 0
    (tensorflow#61117, tensorflow#44556)."""
    for second in fxflow.hessian, lambda f: fxflow.jacrev(fxflow.grad(f)):
        got = mode(second(fnp.prod))(fnp.float32([0, 1]))
        np.testing.assert_array_equal(got, [[0, 1], [1, 0]])
        got = mode(second(fnp.prod))(fnp.float32([0, 0, 3]))
        np.testing.assert_array_equal(got, [[0, 3, 0], [3, 0, 0], [0, 0, 0]])
        curved = second(lambda x: fnp.prod(fnp.float32([2, 0]) * x * x))
        assert mode(curved)(0.0) == 0


@MODES
def test_gradient_of_running_products_with_zeros(mode: Any) -> None:
    """The partial products after a zero have derivatives by that zero alone
    (tensorflow#3862)."""
    slope = mode(fxflow.grad(lambda x: fnp.sum(fnp.cumprod(x))))
    # a + a b + a b c + a b c d with b = d = 0.
    np.testing.assert_array_equal(slope(fnp.float32([2, 0, 3, 0])), [1, 8, 0, 0])
    np.testing.assert_array_equal(slope(fnp.float32([0])), [1])


@MODES
@pytest.mark.parametrize(
    ("f", "slope"), [(sp.xlogy, np.log(2)), (sp.xlog1py, np.log(3))]
)
def test_gradient_of_x_log_y_at_zero(mode: Any, f: Any, slope: float) -> None:
    """The derivative of x log y by x is log y at x = 0, too (tensorflow#119476)."""
    got = mode(fxflow.grad(f, (0, 1)))(0.0, 2.0)
    np.testing.assert_allclose(got, [slope, 0], rtol=1e-6)
    assert mode(f)(0.0, 0.0) == 0


@MODES
@pytest.mark.parametrize("f", [fnp.max, fnp.min])
@pytest.mark.parametrize("size", [3, 8])
def test_gradient_of_an_extremum_of_nan(mode: Any, f: Any, size: int) -> None:
    """A NaN among the elements reaches the gradient, compiled or not
    (tensorflow#118673)."""
    x = np.arange(size, dtype=np.float32)
    x[1] = np.nan
    assert np.isnan(mode(f)(x))
    assert np.isnan(mode(fxflow.grad(f))(x)).any()


@MODES
def test_divergence_of_certain_targets(mode: Any) -> None:
    """Σ t (log t − log p) of targets 1 and 0 is 0 with finite gradients
    (pytorch#89558)."""
    logs, targets = np.float32([0, -700]), np.float32([1, 0])
    loss = optim.losses.kl_divergence
    assert mode(loss)(logs, targets) == 0
    by_logs, by_targets = mode(fxflow.grad(loss, (0, 1)))(logs, targets)
    np.testing.assert_array_equal(by_logs, [-1, 0])
    assert by_targets[0] == 1
    assert np.isfinite(by_targets).all()


@MODES
def test_divergence_of_negative_targets_is_not_a_number(mode: Any) -> None:
    """A negative target is not a probability: the loss says so (pytorch#69230)."""
    loss = mode(optim.losses.kl_divergence)(fnp.float32([-1]), fnp.float32([-1]))
    assert np.isnan(loss)


@MODES
def test_smoothed_labels_are_where_the_loss_is_least(mode: Any) -> None:
    """Smoothing by ε leaves 1 − ε + ε/K to the class (pytorch#148884)."""
    labels = optim.losses.smooth_labels(nn.one_hot(0, 4), 0.1)
    np.testing.assert_allclose(labels, [0.925, 0.025, 0.025, 0.025], rtol=1e-6)
    logits = fnp.log(labels) + 3
    loss = optim.losses.softmax_cross_entropy
    entropy = -np.sum(np.float64(labels) * np.log(np.float64(labels)))
    np.testing.assert_allclose(mode(loss)(logits, labels), entropy, rtol=1e-6)
    np.testing.assert_allclose(mode(fxflow.grad(loss))(logits, labels), 0, atol=1e-6)


@MODES
@pytest.mark.parametrize(
    ("name", "knots"),
    [
        ("hard_silu", {-3: (-0.5, 0), 3: (1, 1.5)}),
        ("hard_sigmoid", {-3: (0, 1 / 6), 3: (0, 1 / 6)}),
        ("hard_tanh", {-1: (0, 1), 1: (0, 1)}),
        ("relu6", {0: (0, 1), 6: (0, 1)}),
        ("relu", {0: (0, 1)}),
        ("leaky_relu", {0: (0.01, 1)}),
        ("celu", {0: (1, 1)}),
        ("elu", {0: (1, 1)}),
    ],
)
def test_slope_where_pieces_meet(mode: Any, name: str, knots: Any) -> None:
    """At a knot the derivative lies between those of the two pieces (pytorch#147801,
    pytorch#49922, pytorch#120258, pytorch#7002)."""
    slope = mode(fxflow.grad(getattr(nn, name)))
    for x, (low, high) in knots.items():
        got = float(slope(float(x)))
        assert low - 1e-7 <= got <= high + 1e-7
        sides = sorted(float(slope(x + h)) for h in (-1e-3, 1e-3))
        np.testing.assert_allclose(sides, [low, high], atol=2e-3)


@MODES
def test_masked_key_that_is_nan_has_no_part_in_attention(mode: Any) -> None:
    """A key that the mask leaves out may hold anything (pytorch#101967)."""
    q = fnp.arange(8.0).reshape(1, 2, 1, 4)
    mask = np.array([[[[True, False]] * 2]])
    for filler in 1e10, np.inf, np.nan:
        keys = q.at[0, 1, 0, 0].set(filler)
        got = mode(lambda k: nn.dot_product_attention(q, k, q, mask=mask))(keys)
        np.testing.assert_array_equal(got, fnp.stack([q[:, 0]] * 2, 1))


@MODES
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_fully_masked_row_of_attention_leaves_the_gradients(
    mode: Any, dtype: str
) -> None:
    """A query that sees no key spoils no gradient of the others (pytorch#41508)."""
    rng = np.random.default_rng(0)
    q, k, v = (fnp.asarray(rng.normal(size=(1, 3, 1, 2)), dtype) for _ in range(3))
    mask = np.array([[[[True, True, False], [False] * 3, [True] * 3]]])

    def loss(q: Any, k: Any, v: Any, rows: Any) -> Any:
        out = nn.dot_product_attention(q[:, rows], k, v, mask=mask[:, :, rows])
        return fnp.sum(out.astype("float32") ** 2)

    kept = np.array([0, 2])
    whole = mode(
        fxflow.grad(
            lambda q, k, v: fnp.sum(
                nn.dot_product_attention(q, k, v, mask=mask)[:, kept].astype("f") ** 2
            ),
            (0, 1, 2),
        )
    )(q, k, v)
    part = fxflow.grad(lambda q, k, v: loss(q, k, v, kept), (0, 1, 2))(q, k, v)
    for mine, other in zip(whole, part, strict=True):
        assert fnp.all(fnp.isfinite(mine))
        np.testing.assert_allclose(
            mine.astype("f"), other.astype("f"), rtol=2e-2, atol=1e-3
        )
