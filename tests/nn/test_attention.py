"""Scaled dot-product attention."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import nn
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from tests.nn import golden

_RNG = np.random.default_rng(0)
Q = _RNG.normal(size=(2, 3, 4, 5)).astype(np.float32)
K = _RNG.normal(size=(2, 6, 2, 5)).astype(np.float32)
V = _RNG.normal(size=(2, 6, 2, 5)).astype(np.float32)
BIAS = _RNG.normal(size=(1, 4, 3, 6)).astype(np.float32)
MASK = _RNG.random((2, 1, 3, 6)) < 0.7

CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"is_causal": True},
    "scale": {"scale": 0.3},
    "bias": {"bias": BIAS},
    "mask": {"mask": MASK},
    "lengths": {
        "query_seq_lengths": np.array([1, 3]),
        "key_value_seq_lengths": np.array([4, 2]),
    },
    "window": {"local_window_size": (1, 2)},
    "all": {
        "bias": BIAS,
        "mask": MASK,
        "is_causal": True,
        "query_seq_lengths": np.array([2, 3]),
        "key_value_seq_lengths": np.array([4, 5]),
        "local_window_size": 2,
    },
}


@pytest.mark.parametrize("name", CASES)
def test_as_jax(name: str) -> None:
    options = CASES[name]
    out, sums = nn.dot_product_attention(Q, K, V, return_residual=True, **options)
    golden.near(out, golden.array(f"attention_{name}"), 1e-5)
    seen = np.ones((2, 3, 4), bool)
    if "query_seq_lengths" in options:
        # What lies beyond the lengths has no meaning.
        seen &= (
            np.arange(3)[None, :, None] < options["query_seq_lengths"][:, None, None]
        )
    want = golden.array(f"attention_{name}", "residual").reshape(2, 3, 4)
    np.testing.assert_allclose(np.asarray(sums)[seen], want[seen], rtol=1e-5, atol=1e-5)

    def loss(q: Any) -> Any:
        return (nn.dot_product_attention(q, K, V, **options) ** 2).sum()

    slopes = fxflow.jit(fxflow.grad(loss))(Q)
    golden.near(slopes, golden.array(f"attention_{name}", "slopes"), 3e-5)


def _reference(q: Any, k: Any, v: Any) -> Any:
    k, v = (np.repeat(x, q.shape[2] // k.shape[2], 2) for x in (k, v))
    scores = np.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bnts,bsnh->btnh", weights, v)


def test_against_a_direct_formula() -> None:
    np.testing.assert_allclose(
        nn.dot_product_attention(Q, K, V), _reference(Q, K, V), rtol=1e-5, atol=1e-5
    )
    single = nn.dot_product_attention(Q[0], K[0], V[0])
    np.testing.assert_allclose(single, _reference(Q, K, V)[0], rtol=1e-5, atol=1e-5)


def test_causal_hides_the_future() -> None:
    q, k = Q[:, :, :2], K[:, :3]
    before = np.asarray(nn.dot_product_attention(q, k, k, is_causal=True))
    k = k.copy()
    k[:, 2] += 100
    after = np.asarray(nn.dot_product_attention(q, k, k, is_causal=True))
    np.testing.assert_array_equal(before[:, :2], after[:, :2])
    assert (before[:, 2] != after[:, 2]).any()


def test_low_precision() -> None:
    arrays = [fxflow.numpy.asarray(x, "bfloat16") for x in (Q, K, V)]
    out, sums = nn.dot_product_attention(*arrays, return_residual=True)
    assert out.dtype == "bfloat16"
    assert sums.dtype == "bfloat16"
    want = _reference(Q, K, V)
    np.testing.assert_allclose(np.asarray(out).astype(float), want, atol=0.05)


def test_masks_and_biases_of_lower_rank() -> None:
    full = nn.dot_product_attention(Q, K, V, np.tile(BIAS, (2, 1, 1, 1)))
    np.testing.assert_array_equal(nn.dot_product_attention(Q, K, V, BIAS[0]), full)
    seen = np.arange(K.shape[1]) < 4
    wide = np.broadcast_to(seen, (2, 1, 1, K.shape[1]))
    np.testing.assert_array_equal(
        nn.dot_product_attention(Q, K, V, mask=seen),
        nn.dot_product_attention(Q, K, V, mask=wide),
    )


def test_under_vmap() -> None:
    q, k = np.stack([Q, 2 * Q]), np.stack([K, -K])
    out = fxflow.vmap(nn.dot_product_attention)(q, k, k)
    want = [nn.dot_product_attention(*x) for x in zip(q, k, k, strict=True)]
    np.testing.assert_allclose(out, np.stack(want), rtol=1e-5, atol=1e-5)


def test_shapes_dtypes_and_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DtypeError, match="expected one float dtype, got query f32"):
        nn.dot_product_attention(Q, K, V.astype(np.float16))
    with pytest.raises(ShapeError, match=r"expected query \[B, T, N, H\] and key"):
        nn.dot_product_attention(Q, K[0], V[0])
    with pytest.raises(ShapeError, match="B and H of query and key differ"):
        nn.dot_product_attention(Q[:1], K, V)
    with pytest.raises(ShapeError, match="2 key heads do not divide 3 query heads"):
        nn.dot_product_attention(Q[:, :, :3], K, V)
    with pytest.raises(DtypeError, match=r"the mask must be bool, got f32"):
        nn.dot_product_attention(Q, K, V, mask=BIAS)
    with pytest.raises(ShapeError, match=r"bias must broadcast against \[B, N, T, S\]"):
        nn.dot_product_attention(Q, K, V, BIAS[:, :3])
    with pytest.raises(
        ShapeError, match=r"query_seq_lengths must be integers of shape"
    ):
        nn.dot_product_attention(Q, K, V, query_seq_lengths=np.array([1.0, 2.0]))
    with pytest.raises(ArgumentError, match="local_window_size must not be negative"):
        nn.dot_product_attention(Q, K, V, local_window_size=-1)
    with pytest.raises(
        ArgumentError, match='implementation must be None, "xla", "kernel"'
    ):
        nn.dot_product_attention(Q, K, V, implementation="fast")


@pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])
def test_a_bias_of_minus_infinity_is_a_mask(run: Any) -> None:
    """A row that sees nothing is the mean of the values, and slopes are finite."""
    seen = MASK.copy()
    seen[0, :, 1] = False

    def loss(q: Any, k: Any, v: Any, bias: Any, mask: Any) -> Any:
        out = nn.dot_product_attention(q, k, v, bias, mask)
        return (out * np.arange(5, dtype="f4")).sum(), out

    bias = np.broadcast_to(BIAS, (2, 4, 3, 6))
    shut = np.where(seen, bias, np.float32(-np.inf))
    slopes = fxflow.grad(loss, (0, 1, 2, 3), has_aux=True)
    want, by_mask = run(slopes)(Q, K, V, bias, seen)
    got, by_bias = run(slopes)(Q, K, V, shut, np.ones_like(seen))
    np.testing.assert_array_equal(by_bias, by_mask)
    for one, other in zip(got, want, strict=True):
        assert np.isfinite(one).all()
        np.testing.assert_allclose(one, other, 1e-6, 1e-7)
