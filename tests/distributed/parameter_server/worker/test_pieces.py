import numpy as np
import pytest

from fxflow.distributed.parameter_server.placement import place, tensors_of
from fxflow.distributed.parameter_server.worker.pieces import Cutter

PARAMS = {
    "number": np.float32(3.0),
    "small": np.arange(5, dtype=np.float32),
    "table": np.arange(1200, dtype=np.float32).reshape(300, 4),
    "empty": np.zeros((0, 3), np.float32),
}


@pytest.mark.parametrize("servers", [1, 2, 7])
def test_what_is_cut_is_joined_again(servers: int) -> None:
    plan = place(tensors_of(PARAMS), servers, split_above=100)
    cutter = Cutter(plan)
    parts = cutter.cut(PARAMS)
    assert len(parts) == servers
    assert sum(part.size for served in parts for part in served) == 1206
    for names in cutter.names:
        assert names == sorted(names)
    joined = cutter.join(parts)
    for name, value in PARAMS.items():
        np.testing.assert_array_equal(joined[name], value)
