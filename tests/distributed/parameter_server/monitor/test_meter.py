import time

import numpy as np
import pytest

from fxflow.distributed.parameter_server.monitor.meter import Meter


def test_bytes_are_counted_by_filter_and_as_rows() -> None:
    meter = Meter()
    arrays = {"0": np.zeros(3, np.float32), "rows/t": np.zeros(5, np.float32)}
    meter.moved("push", {"int8(256)": 8, "f32": 4}, arrays, tables=True)
    meter.moved("push", {"int8(256)": 8}, {"0": np.zeros(2, np.float32)})
    meter.moved("push", {"int8(256)": 8}, {})  # a step without a gradient
    found = meter.to_dict()["filters"]
    assert found == {"push": {"int8(256)": 16, "f32": 4, "rows": 20}, "pull": {}}


def test_time_is_counted_by_kind() -> None:
    meter = Meter()
    meter.handled("push", time.monotonic_ns() - 2_000_000)
    meter.handled("push", time.monotonic_ns() - 1_000_000)
    assert meter.to_dict()["busy"]["push"] == pytest.approx(0.003, rel=0.1)
