"""The example learns: on a small synthetic task always, on MNIST itself when slow."""

import signal
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.examples.programs import example

pytest.importorskip("tqdm", reason="pip install fxflow[examples]")


@pytest.fixture(scope="module")
def mnist() -> ModuleType:
    return example("mnist")


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
        # Where a stripe is says what it means.
        mnist.MODELS[name]._replace(shift=0),
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


class StopAfter:
    """Asks to stop after `steps` steps, as Ctrl-C does."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    @property
    def requested(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_a_stopped_run_keeps_what_there_is(mnist: ModuleType) -> None:
    settings = {"epochs": 3, "batch_size": 64, "learning_rate": 1e-3}
    params, curve = mnist.fit(
        mnist.MODELS["softmax"],
        stripes(mnist),
        progress=False,
        stop=StopAfter(5),
        **settings,
    )
    assert len(curve.losses) == 6 and len(curve.accuracies) == 1
    assert np.isfinite(np.asarray(params["out"]["w"])).all()


def test_ctrl_c_once_asks_and_twice_interrupts(mnist: ModuleType) -> None:
    before = signal.getsignal(signal.SIGINT)
    with mnist.Stop() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("missed", [0, 3, 30])
def test_the_picture_shows_mistakes(mnist: ModuleType, missed: int) -> None:
    labels = np.arange(40) % 10
    probabilities = np.full((40, 10), 0.05)
    probabilities[np.arange(40), (labels + (np.arange(40) < missed)) % 10] = 0.5
    probabilities[0] *= 1.5
    chosen = sys.modules["helpers.picture"].choose(labels, probabilities, 20)
    wrong = probabilities.argmax(-1)[chosen] != labels[chosen]
    assert wrong.sum() == min(missed, 10) and len(set(chosen)) == 20
    assert not missed or (chosen[-1] == 0 and wrong[-1])


def test_the_picture(mnist: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pip install fxflow[examples]")
    curve = mnist.Curve([2.0, 1.0, 0.5], [0.3, 0.8])
    images, labels, probabilities = np.zeros((9, 28, 28)), np.arange(9), np.eye(10)[1:]
    mnist.draw(curve, images, labels, probabilities, str(tmp_path / "run.png"))
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("softmax", 0.92),
        pytest.param("mlp", 0.98, marks=pytest.mark.soak),
        pytest.param("cnn", 0.992, marks=pytest.mark.soak),
    ],
)
def test_accuracy_on_the_complete_mnist(
    mnist: ModuleType, tmp_path: Path, name: str, least: float
) -> None:
    picture = str(tmp_path / "run.png")
    assert mnist.main(["--model", name, "--plot", picture]) >= least


def test_what_a_run_logs(mnist: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="pip install 'fxflow[tensorboard]'")
    data, name = stripes(mnist), "mlp"
    settings = {"model": name, "seed": 0}
    with mnist.training.logs.Logger(mnist.training.logs.tensorboard(tmp_path)) as log:
        mnist.log_run(log, name, settings, data)
        _, curve = mnist.fit(
            mnist.MODELS[name], data, epochs=2, batch_size=16, learning_rate=1e-3,
            progress=False, log=log,
        )  # fmt: skip
        probabilities = np.full((256, 10), 0.1)
        mnist.log_results(log, 64, settings, curve, probabilities, data)
    (events,) = tmp_path.glob("events*")
    written = events.read_bytes()
    for name in (b"train/loss", b"test/accuracy", b"params/out/w", b"hidden1/dot"):
        assert name in written
    assert (tmp_path / "projector_config.pbtxt").exists()


@pytest.mark.parametrize("shift", [0, 2])
def test_images_are_moved(mnist: ModuleType, shift: int) -> None:
    images = np.zeros((64, 28, 28), np.uint8)
    images[:, 14, 14] = 1
    labels = np.arange(64)
    key = mnist.random.key(0)
    ((found, order),) = mnist.batches(key, images, labels, 60, shift)
    assert len(set(order)) == 60
    places = np.argwhere(found)[:, 1:] - 14
    assert len(places) == 60 and np.abs(places).max() == shift
    assert len(set(map(tuple, places))) > 5 * shift
