"""Descriptions, parameters and statistics of a shard without a run."""

import pytest

from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.server import reads
from fxflow.distributed.parameter_server.server.shard import Shard
from fxflow.distributed.parameter_server.views import first_view
from fxflow.errors import DistributedError


def test_a_shard_without_a_model() -> None:
    shard = Shard()
    assert reads.description(shard) == {}
    with pytest.raises(DistributedError, match="the run has not begun"):
        reads.current_params(shard, messages.ReadParams(0))
    view = first_view(["a:1", "b:2"])
    found = reads.statistics(1, shard, view, serves=True, load=0.25)
    assert (found["holders"], found["version"], found["serves"]) == ([1], 0, True)
    assert found["load"] == 0.25
