"""Helpers for tests of `devices`: types, small programs, fresh processes."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from fxflow._config import config
from fxflow.devices import buffers
from fxflow.devices.buffers import BufferType, Placement

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def place() -> Placement:
    return buffers.default_placement()


@pytest.fixture
def put(place: Placement) -> Callable[..., buffers.Buffer]:
    """Puts a copy of a NumPy array."""

    def put(value: object, dtype: object = None) -> buffers.Buffer:
        array = np.asarray(value, dtype)
        return buffers.put_copy(BufferType(array.shape, array.dtype), array, place)

    return put


@pytest.fixture
def cache_dir(tmp_path: Path) -> Iterator[Path]:
    """An empty compile cache."""
    with config.override(cache_dir=str(tmp_path / "cache"), cache=True):
        yield tmp_path / "cache"


@pytest.fixture
def no_cache() -> Iterator[None]:
    with config.override(cache=False):
        yield


@pytest.fixture
def run_python(tmp_path: Path) -> Callable[..., str]:
    """Runs code in a fresh process with its own cache; returns its output."""

    def run(code: str, **environment: str) -> str:
        env = {k: v for k, v in os.environ.items() if not k.startswith("FXFLOW_")}
        env.pop("XLA_FLAGS", None)
        env["PYTHONPATH"] = str(ROOT)
        env["FXFLOW_CACHE_DIR"] = str(tmp_path / "cache")
        env.update(environment)
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
