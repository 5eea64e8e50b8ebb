"""Loads twelve photographs and textures, downloaded once; see `packages.py`."""

import io
import zipfile

import numpy as np
from helpers.packages import Package, fetch
from PIL import Image

SCIKIT_IMAGE = Package(
    "scikit-image==0.26.0",
    "scikit_image-0.26.0-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl",
    "74aa5518ccea28121f57a95374581d3b979839adc25bb03f289b1bc9b99c58af",
    (
        *("--only-binary=:all:", "--implementation=cp", "--python-version=3.11"),
        "--platform=manylinux_2_28_x86_64",
    ),
)
NAMES = (
    "astronaut.png",
    "brick.png",
    "camera.png",
    "chelsea.png",
    "coffee.png",
    "grass.png",
    "gravel.png",
    "hubble_deep_field.jpg",
    "ihc.png",
    "motorcycle_left.png",
    "retina.jpg",
    "rocket.jpg",
)


def load_photographs() -> list[np.ndarray]:
    """Loads the images `u8[height, width, 3]`, fetching them the first time (14 MB).

    Raises:
        DatasetError: the package cannot be downloaded, or is not the known one.
    """
    found = []
    with zipfile.ZipFile(fetch(SCIKIT_IMAGE)) as archive:
        for name in NAMES:
            content = io.BytesIO(archive.read(f"skimage/data/{name}"))
            found.append(np.asarray(Image.open(content).convert("RGB")))
    return found
