"""Dense layers with weights of one byte."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, random
from fxflow.errors import ArgumentError, DtypeError, ShapeError

RNG = np.random.default_rng(0)


def test_quantized_weights_are_near_the_trained_ones() -> None:
    params = nn.linear_init(random.key(0), 300, 280)
    params["b"] = fnp.arange(280.0)
    params["w"] = params["w"].at[:, 3].set(0)
    small = nn.quantized_linear_init(params)
    assert small["w"].dtype == "int8" and small["scale"].dtype == "float32"
    assert int(fnp.abs(small["w"]).max()) == 127
    assert float(small["scale"][3]) == 1
    w = np.asarray(small["w"], np.float32) * np.asarray(small["scale"])
    assert np.abs(w - params["w"]).max() <= float(small["scale"].max()) / 2 + 1e-6
    x = RNG.normal(size=(2, 3, 300)).astype(np.float32)
    for f in (nn.quantized_linear, fxflow.jit(nn.quantized_linear)):
        found = f(small, x)
        np.testing.assert_allclose(found, x @ w + np.arange(280), 1e-4, 1e-3)
        np.testing.assert_allclose(found, nn.linear(params, x), 0.1, 0.1)
    one = nn.quantized_linear(small, x[0, 0])
    np.testing.assert_allclose(one, found[0, 0], 1e-4, 1e-3)
    plain = nn.quantized_linear_init({"w": params["w"]})
    assert set(plain) == {"w", "scale"}
    assert nn.quantized_linear(plain, x.astype("float16")).dtype == "float16"


def test_wrong_arguments() -> None:
    params = nn.quantized_linear_init({"w": np.ones((4, 3), "f")})
    with pytest.raises(ArgumentError, match='"scale"'):
        nn.quantized_linear({"w": params["w"]}, np.ones(4))
    with pytest.raises(DtypeError, match="integers"):
        nn.quantized_linear({**params, "w": np.ones((4, 3))}, np.ones(4))
    with pytest.raises(ShapeError, match=r"float\[..., 4\]"):
        nn.quantized_linear(params, np.ones(3))
    with pytest.raises(ShapeError, match="scale"):
        nn.quantized_linear({**params, "scale": np.ones(2)}, np.ones(4))
    with pytest.raises(ShapeError, match=r"\[inputs, units\]"):
        nn.quantized_linear({**params, "w": np.ones(4, "i1")}, np.ones(4))
    with pytest.raises(DtypeError, match="floats"):
        nn.quantized_linear_init({"w": np.ones((4, 3), int)})
