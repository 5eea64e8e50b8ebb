"""Dense layers with weights of one byte and of 4 bits."""

from __future__ import annotations

from typing import Any

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


def unpacked(params: Any, inputs: int) -> np.ndarray:
    """Returns the weights of 4 bits as floats."""
    pairs = np.asarray(params["w"], np.int64)
    codes = np.stack([((pairs & 15) ^ 8) - 8, pairs >> 4], 1)
    scale = np.asarray(params["scale"], np.float64)
    codes = codes.reshape(len(scale), -1, pairs.shape[1])
    zero = np.asarray(params.get("zero", np.zeros(scale.shape)))
    w = (codes - zero[:, None]) * scale[:, None]
    return w.reshape(-1, pairs.shape[1])[:inputs]


@pytest.mark.parametrize("zero_points", [False, True])
@pytest.mark.parametrize(
    ("inputs", "group_size"), [(320, 32), (320, 2), (321, None), (1, None), (0, None)]
)
def test_weights_of_4_bits(
    inputs: int, group_size: int | None, zero_points: bool
) -> None:
    units = 500
    params = {
        "w": RNG.normal(size=(inputs, units)).astype(np.float32) * 0.1,
        "b": RNG.normal(size=units).astype(np.float32),
    }
    params["w"][:, 3] = 0
    small = nn.quantized_linear_init(
        params, bits=4, group_size=group_size, zero_points=zero_points
    )
    assert small["w"].dtype == "int8" and small["w"].shape == ((inputs + 1) // 2, units)
    assert ("zero" in small) == zero_points
    groups = inputs // group_size if group_size else 1
    assert small["scale"].shape == (groups, units)
    assert (np.asarray(small["scale"])[:, 3] == 1).all()
    w = unpacked(small, inputs)
    # Off by half a step; with zero points, which are rounded, too, by up to one.
    steps = np.repeat(np.asarray(small["scale"]), -(-inputs // groups), 0)
    assert (abs(w - params["w"]) <= steps * (1 if zero_points else 0.5) + 1e-6).all()
    x = RNG.normal(size=(2, 3, inputs)).astype(np.float32)
    for f in (nn.quantized_linear, fxflow.jit(lambda *a: nn.quantized_linear(*a))):
        found = f(small, x)
        np.testing.assert_allclose(found, x @ w + params["b"], 1e-4, 1e-4)
    half = nn.quantized_linear(small, x.astype("float16"))
    assert half.dtype == "float16"
    np.testing.assert_allclose(half, found, 2e-2, 2e-2)


def test_vmap_of_weights_of_4_bits() -> None:
    params = nn.linear_init(random.key(1), 64, 40)
    small = nn.quantized_linear_init(params, bits=4, group_size=8, zero_points=True)
    x = fnp.asarray(RNG.normal(size=(3, 64)).astype(np.float32))
    found = fxflow.vmap(lambda x: nn.quantized_linear(small, x))(x)
    np.testing.assert_allclose(found, nn.quantized_linear(small, x), 1e-5, 1e-5)


def test_wrong_arguments_with_4_bits() -> None:
    params = {"w": np.ones((6, 3), "f")}
    with pytest.raises(ArgumentError, match="bits must be 8 or 4, got 3"):
        nn.quantized_linear_init(params, bits=3)
    with pytest.raises(ArgumentError, match="need bits=4"):
        nn.quantized_linear_init(params, group_size=2)
    for size in (3, 0, -2, True, 2.0):
        with pytest.raises(ArgumentError, match="even integer above 0"):
            nn.quantized_linear_init(params, bits=4, group_size=size)
    with pytest.raises(ArgumentError, match=r"group_size=4 .*f32\[6,3\]"):
        nn.quantized_linear_init(params, bits=4, group_size=4)
    small = nn.quantized_linear_init(params, bits=4, group_size=2, zero_points=True)
    with pytest.raises(DtypeError, match=r"two axes, so .* must be int8"):
        nn.quantized_linear({**small, "w": np.ones((3, 3), "i4")}, np.ones(6))
    with pytest.raises(ShapeError, match="groups divides the 3 rows"):
        nn.quantized_linear({**small, "scale": np.ones((2, 3))}, np.ones(6))
    with pytest.raises(ShapeError, match="zero"):
        nn.quantized_linear({**small, "zero": np.ones((1, 3))}, np.ones(6))
    with pytest.raises(ShapeError, match=r"float\[..., 6\], two for each of the rows"):
        nn.quantized_linear(small, np.ones(3))


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
