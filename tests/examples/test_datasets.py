"""MNIST is checked and kept; what is damaged is fetched again."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.examples.programs import EXAMPLES


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """A fresh `examples/helpers/datasets.py` whose cache is empty."""
    monkeypatch.setenv("FXFLOW_DATA_DIR", str(tmp_path))
    monkeypatch.syspath_prepend(EXAMPLES)
    spec = importlib.util.spec_from_file_location(
        "datasets_under_test", EXAMPLES / "helpers" / "datasets.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def synthetic(module: ModuleType) -> object:
    """Arrays of MNIST's shapes which begin as MNIST does."""
    train = np.zeros(60_000, np.uint8)
    test = np.zeros(10_000, np.uint8)
    train[:5], test[:5] = module.MNIST_TRAIN_LABELS, module.MNIST_TEST_LABELS
    images = np.zeros((60_000, 28, 28), np.uint8)
    return module.Mnist(images, train, images[:10_000], test)


def test_kept_arrays_are_read_back(datasets: ModuleType, tmp_path: Path) -> None:
    mnist = synthetic(datasets)
    datasets._write(tmp_path / "mnist.npz", mnist)
    again = datasets.load_mnist()
    assert all(np.array_equal(a, b) for a, b in zip(mnist, again, strict=True))
    assert not again.train_images.flags.writeable
    assert [path.name for path in tmp_path.iterdir()] == ["mnist.npz"]


@pytest.mark.parametrize("damage", [b"", b"not a zip", b"PK\x03\x04 cut short"])
def test_damaged_file_is_replaced(
    datasets: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    damage: bytes,
) -> None:
    (tmp_path / "mnist.npz").write_bytes(damage)
    monkeypatch.setattr(datasets, "fetch", lambda package: tmp_path / package.file)
    monkeypatch.setattr(datasets, "_unpack", lambda _: synthetic(datasets))
    assert datasets.load_mnist().test_labels[0] == 7
    assert "is damaged" in capsys.readouterr().err
    assert datasets._read(tmp_path / "mnist.npz") is not None


def test_other_labels_are_refused(datasets: ModuleType) -> None:
    mnist = synthetic(datasets)
    mnist.train_labels[0] = 3
    with pytest.raises(datasets.DatasetError, match=r"first labels .* got .*\(3, 0"):
        datasets._check(mnist)
