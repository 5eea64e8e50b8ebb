"""`fxflow.memory`: the names of memories."""

import numpy as np

import fxflow
from fxflow import memory


def test_spaces_say_where_device_put_puts():
    assert [space.name for space in memory.Space] == ["Device", "Host"]
    assert repr(memory.Space.Host) == "Space.Host"
    there = fxflow.device_put(np.ones(2, np.float32), memory.Space.Host)
    assert there.sharding.memory_kind == "pinned_host"
