"""The benchmark of time to quality finds when an AUC is reached."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "sparse" / "quality.py"


@pytest.fixture(scope="module")
def quality() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sparse_quality", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_auc_is_reached_between_two_measurements(quality: ModuleType) -> None:
    points = [[100, 0.0, 0.6], [200, 2.0, 0.7], [300, 5.0, 0.8]]
    assert quality.reached(points, 0.75) == pytest.approx((250, 3.5))
    assert quality.reached(points, 0.8) == pytest.approx((300, 5))
    assert quality.reached(points, 0.81) is None
    assert quality.reached(points, 0.5) is None  # before the first one: unknown
