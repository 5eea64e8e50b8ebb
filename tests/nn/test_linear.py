"""Dense and convolutional layers, embeddings."""

from typing import Any

import numpy as np
import pytest
import scipy.signal

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, random
from fxflow.errors import ArgumentError, DtypeError, ShapeError

KEY = random.key(0)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 6, 5, 4)).astype(np.float32)


def test_linear_multiplies_and_adds_the_bias() -> None:
    params = nn.linear_init(KEY, 4, 3)
    assert not np.asarray(params["b"]).any()
    params["b"] = fnp.arange(3.0)
    want = X @ np.asarray(params["w"]) + np.arange(3)
    np.testing.assert_allclose(nn.linear(params, X), want, 1e-5, 1e-6)
    plain = nn.linear_init(KEY, 4, 3, bias=False, dtype="bfloat16")
    assert set(plain) == {"w"} and nn.linear(plain, X).dtype == "float32"
    assert nn.linear(plain, fnp.ones(4, "bfloat16")).dtype == "bfloat16"
    wide = nn.linear_init(KEY, 1000, 50)
    assert abs(float(wide["w"].std()) * 1000**0.5 - 1) < 0.02


def conv_of_numpy(x: Any, w: Any) -> Any:
    """Windows of odd lengths, zeros around, step 1."""
    out = np.zeros((*x.shape[:-1], w.shape[-1]))
    flip = tuple(slice(None, None, -1) for _ in w.shape[:-2])
    for n in range(len(x)):
        for i in range(x.shape[-1]):
            for o in range(w.shape[-1]):
                kernel = w[..., i, o][flip]
                out[n, ..., o] += scipy.signal.convolve(x[n, ..., i], kernel, "same")
    return out


@pytest.mark.parametrize("window", [(3,), (3, 1), (1, 3, 3)])
def test_conv(window: Any) -> None:
    x = RNG.normal(size=(2, *(6, 5, 4)[: len(window)], 2)).astype("f")
    params = nn.conv_init(KEY, 2, 3, window)
    want = conv_of_numpy(x, np.asarray(params["w"]))
    np.testing.assert_allclose(nn.conv(params, x), want, 1e-4, 1e-5)
    far = nn.conv(params, x, strides=(2,) * len(window), padding="VALID")
    dense = nn.conv(params, x, padding=((0, 0),) * len(window))
    every = (slice(None), *(slice(None, None, 2),) * len(window))
    np.testing.assert_allclose(far, np.asarray(dense)[every], 1e-5, 1e-6)


def test_conv_groups_and_dilation() -> None:
    params = nn.conv_init(KEY, 4, 8, (3, 3), groups=4)
    assert params["w"].shape == (3, 3, 1, 8)
    each = [
        nn.conv({"w": params["w"][..., 2 * i : 2 * i + 2]}, X[..., i : i + 1])
        for i in range(4)
    ]
    np.testing.assert_allclose(
        nn.conv(params, X), fnp.concatenate(each, -1), 1e-5, 1e-6
    )
    wide = np.zeros((5, 5, 1, 8), "f")
    wide[::2, ::2] = params["w"]
    np.testing.assert_allclose(
        nn.conv(params, X, dilation=(2, 2)), nn.conv({"w": wide}, X), 1e-5, 1e-6
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_types(dtype: str) -> None:
    params = nn.conv_init(KEY, 4, 3, (3, 3), dtype=dtype)
    out = nn.conv(params, fnp.asarray(X, dtype))
    want = nn.conv({"w": params["w"].astype("float32")}, X)
    np.testing.assert_allclose(np.asarray(out, "f"), want, 0.05, 0.05)
    assert out.dtype == dtype and nn.conv(params, X).dtype == "float32"


def test_embedding() -> None:
    params = nn.embedding_init(KEY, 7, 4)
    table = np.asarray(params["w"])
    ids = np.array([[3, 0, 6], [3, 3, 1]])
    np.testing.assert_array_equal(nn.embedding(params, ids), table[ids])
    np.testing.assert_array_equal(nn.embedding(params, np.int32(-1)), table[-1])
    assert np.isnan(nn.embedding(params, np.int32(7))).all()
    out = np.array(nn.embedding(params, ids, padding_id=3))
    np.testing.assert_array_equal(out, table[ids] * (ids != 3)[..., None])
    loss = lambda p: nn.embedding(p, ids, padding_id=3).sum()
    slope = fxflow.jit(fxflow.grad(loss))(params)["w"]
    np.testing.assert_array_equal(slope[:, 0], [1, 1, 0, 0, 0, 0, 1])
    rows = fxflow.vmap(nn.embedding, (None, 0))(params, ids)
    np.testing.assert_array_equal(rows, table[ids])


def test_inputs_and_parameters_that_do_not_fit_are_refused() -> None:
    params = nn.linear_init(KEY, 4, 3)
    with pytest.raises(ShapeError, match=r"x must be float\[..., 4\], as w f32\[4,3\]"):
        nn.linear(params, X[..., :3])
    with pytest.raises(
        ArgumentError, match=r'params must be a dict with "w" \[inputs, '
    ):
        nn.linear(params["w"], X)
    with pytest.raises(ShapeError, match=r'params\["b"\] must be \[units\], got'):
        nn.linear({**params, "b": fnp.ones(2)}, X)
    with pytest.raises(
        ShapeError, match=r"conv: x must be float\[batch, 2 spatial axes"
    ):
        nn.conv(nn.conv_init(KEY, 3, 2, (3, 3)), X)
    with pytest.raises(
        ArgumentError, match="3 groups do not divide 4 inputs and 6 units"
    ):
        nn.conv_init(KEY, 4, 6, (3,), groups=3)
    with pytest.raises(ArgumentError, match="window must be one to three lengths"):
        nn.conv_init(KEY, 4, 6, ())
    with pytest.raises(DtypeError, match="embedding: ids must be integers, got f32"):
        nn.embedding(nn.embedding_init(KEY, 4, 6), fnp.ones(3))
    with pytest.raises(ArgumentError, match="linear_init: inputs must be at least 1"):
        nn.linear_init(KEY, 0, 3)
