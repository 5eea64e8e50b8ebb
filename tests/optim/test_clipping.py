"""Gradient clipping."""

import numpy as np
import pytest

from fxflow import optim
from fxflow.errors import ArgumentError
from tests.optim.golden import GRADIENTS


@pytest.mark.parametrize("max_norm", [0.1, 1.0, 100.0])
def test_gradients_are_clipped_to_a_global_norm(max_norm: float) -> None:
    tx = optim.clip_by_global_norm(max_norm)
    before = float(optim.global_norm(GRADIENTS[0]))
    clipped, _ = tx.update(GRADIENTS[0], tx.init(GRADIENTS[0]))
    after = float(optim.global_norm(clipped))
    np.testing.assert_allclose(after, min(before, max_norm), rtol=1e-6)
    ratio = np.asarray(clipped["w"]) / GRADIENTS[0]["w"]
    np.testing.assert_allclose(ratio, min(1.0, max_norm / before), rtol=1e-5)


def test_dtypes_are_preserved() -> None:
    x = {"w": np.ones((2, 2), np.float16)}
    for tx in (
        optim.clip(0.5),
        optim.clip_by_global_norm(0.5),
        optim.clip_by_block_rms(0.5),
        optim.adaptive_grad_clip(0.1),
    ):
        out, _ = tx.update(x, tx.init(x), x)
        assert out["w"].dtype == "float16"
        assert float(np.asarray(out["w"]).max()) < 1


def test_norms_of_units_by_number_of_axes() -> None:
    vector = np.array([3.0, 4.0], np.float32)
    assert float(optim.unitwise_norm(vector)) == 5.0
    assert optim.unitwise_norm(np.ones((4, 2))).shape == (1, 2)
    assert optim.unitwise_norm(np.ones((3, 4, 2))).shape == (1, 4, 2)
    assert optim.unitwise_norm(np.ones((3, 3, 4, 2))).shape == (1, 1, 1, 2)
    with pytest.raises(ArgumentError, match=r"at most four axes, got f32\[2,2,2,2,2\]"):
        optim.unitwise_norm(np.ones((2,) * 5, np.float32))


def test_units_are_clipped() -> None:
    grad = np.array([[3.0, 0.3], [4.0, 0.4]], np.float32)
    out = optim.unitwise_clip(optim.unitwise_norm(grad), np.float32(1), grad)
    np.testing.assert_allclose(out, [[0.6, 0.3], [0.8, 0.4]], rtol=1e-6)


def test_adaptive_grad_clip_needs_parameters() -> None:
    tx = optim.adaptive_grad_clip(0.1)
    with pytest.raises(ArgumentError, match="adaptive_grad_clip: needs the parameters"):
        tx.update(np.ones(2), tx.init(np.ones(2)))


def test_a_bound_of_zero_gives_zeros() -> None:
    x = {"w": np.zeros(2, np.float32), "s": np.zeros((2, 2), np.float32)}
    for tx in (optim.clip_by_global_norm(0.0), optim.clip_by_block_rms(0.0)):
        for gradients in (x, {name: leaf + 1 for name, leaf in x.items()}):
            out, _ = tx.update(gradients, ())
            assert not np.any(out["w"]), tx
    for clip in (optim.per_example_global_norm_clip, optim.per_example_layer_norm_clip):
        total, _ = clip([x["s"]], 0.0)
        assert total[0].tolist() == [0.0, 0.0]


def test_norms_beyond_float16_are_computed_in_float32() -> None:
    x = np.full(4, 3e4, np.float16)
    out, _ = optim.clip_by_global_norm(1.0).update(x, ())
    assert out.tolist() == [0.5] * 4
    assert float(optim.global_norm(x)) == 6e4
    assert float(optim.global_norm(np.full(400, 3e4, "e"))) == pytest.approx(6e5)
    total, _ = optim.per_example_global_norm_clip([x[None]], 1.0)
    assert total[0].tolist() == [0.5] * 4
