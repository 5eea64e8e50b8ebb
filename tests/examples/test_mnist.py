"""The example learns: on a small synthetic task always, on MNIST itself when slow."""

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("tqdm", reason="pip install fxflow[examples]")
EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture(scope="module")
def mnist() -> ModuleType:
    sys.path.insert(0, str(EXAMPLES))
    try:
        import mnist
    finally:
        sys.path.remove(str(EXAMPLES))
    return mnist


def stripes(mnist: ModuleType, seed: int = 0) -> object:
    """Ten classes, each a bright bar at its own height, under noise."""
    rng = np.random.default_rng(seed)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(0, 10, n).astype(np.uint8)
        images = rng.integers(0, 100, (n, 28, 28)).astype(np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[2 * label + 4 : 2 * label + 6] += 120
        return images, labels

    return mnist.Mnist(*draw(512), *draw(256))


@pytest.mark.parametrize("name", ["softmax", "mlp", "cnn"])
def test_model_learns_stripes(mnist: ModuleType, name: str) -> None:
    _, curve = mnist.fit(
        mnist.MODELS[name],
        stripes(mnist),
        epochs=6,
        batch_size=32,
        learning_rate=3e-3,
        progress=False,
    )
    assert len(curve.losses) == 6 * 16
    assert curve.losses[-1] < 0.5 * curve.losses[0]
    assert curve.accuracies[-1] > 0.9


def test_equal_seeds_give_equal_runs(mnist: ModuleType) -> None:
    def run(seed: int) -> list[float]:
        settings = {"epochs": 1, "batch_size": 64, "learning_rate": 1e-3}
        data = stripes(mnist)
        return mnist.fit(
            mnist.MODELS["softmax"], data, seed=seed, progress=False, **settings
        )[1].losses

    assert run(1) == run(1) != run(2)


def test_plot_is_a_picture(mnist: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pip install fxflow[examples]")
    mnist.plot(mnist.Curve([2.0, 1.0, 0.5], [0.3, 0.8]), str(tmp_path / "curve.png"))
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("softmax", 0.92), ("mlp", 0.975)])
def test_accuracy_on_the_complete_mnist(
    mnist: ModuleType, tmp_path: Path, name: str, least: float
) -> None:
    picture = str(tmp_path / "curve.png")
    assert mnist.main(["--model", name, "--plot", picture]) >= least
