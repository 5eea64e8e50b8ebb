"""The model's process: one call at a time, in this process."""

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.containers.loading import load_model
from fxflow.serve.containers.regions import Region
from fxflow.serve.containers.worker import run_call


def test_results_lie_behind_the_inputs() -> None:
    model = load_model("tests.serve.zoo:negative", inputs={"x": "f32[b]"})
    model.prepare(4)
    region = Region(limit=1 << 16)
    region.view(12)[:] = np.arange(3, dtype=np.float32).tobytes()
    call = {"call": 7, "rows": 3, "tensors": [["FP32", [3], 0, 12]]}
    answer = run_call(model, region, call)
    assert answer["done"] == 7 and answer["seconds"] >= 0
    assert answer["tensors"] == [[[3], 64, 12]]
    found = np.frombuffer(region.view(76)[64:], np.float32)
    assert found.tolist() == [0, -1, -2]
    region.close()


def test_results_that_do_not_fit() -> None:
    model = load_model("tests.serve.zoo:negative", inputs={"x": "f32[b]"})
    model.prepare(4)
    region = Region(limit=70)
    with pytest.raises(ServeError, match="70 are allowed"):
        run_call(
            model, region, {"call": 1, "rows": 3, "tensors": [["FP32", [3], 0, 12]]}
        )
    region.close()
