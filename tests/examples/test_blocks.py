"""The blocks of ResNet-50 and Inception-v3 learn."""

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("PIL", reason="pip install 'fxflow[examples]'")


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`examples/blocks.py`, its photographs being colours with noise."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    import blocks

    rng = np.random.default_rng(0)
    colours = rng.integers(60, 190, (12, 1, 1, 3))
    noise = rng.integers(-50, 50, (12, 210, 90, 3))
    images = list((colours + noise).astype(np.uint8))
    monkeypatch.setattr(blocks, "load_photographs", lambda: images)
    yield blocks
    sys.modules.pop("blocks")


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("model", ["resnet", "inception"])
def test_learns_colours(blocks: ModuleType, model: str) -> None:
    losses = []

    def log(step: int, values: dict[str, float]) -> None:
        losses.append(float(values["loss"]))

    reached = blocks.train(model, epochs=3, batch_size=16, part=96, log=log)
    # By chance: log(12) = 2.5, and one of twelve.
    assert losses[-1] < 2
    assert reached > 0.3


def test_patches_do_not_overlap(blocks: ModuleType) -> None:
    (learned, labels), (unseen, _) = blocks.patches()
    assert learned.shape == (12 * 120, 64, 64, 3) and unseen.shape[0] == 12 * 40
    assert np.bincount(labels).tolist() == [120] * 12
