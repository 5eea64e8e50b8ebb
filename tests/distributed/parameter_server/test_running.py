import json
import threading
from pathlib import Path

import pytest

from fxflow.distributed.parameter_server.running import (
    Cluster,
    LocalServers,
    cluster_of,
)

PS = ["10.0.0.1:1", "10.0.0.2:1"]


def test_what_the_environment_says() -> None:
    assert cluster_of(None, {}) is None
    launched = {
        "FXFLOW_PS_SERVERS": ",".join(PS),
        "FXFLOW_PS_TASK": "worker:3",
    }
    found = cluster_of(None, launched)
    assert found == Cluster(tuple(PS), "worker", 3)
    config = {"cluster": {"ps": PS}, "task": {"type": "chief", "index": 0}}
    assert cluster_of(None, {"TF_CONFIG": json.dumps(config)}) == Cluster(
        tuple(PS), "chief", 0
    )


def test_a_dictionary_or_a_file(tmp_path: Path) -> None:
    given = {"ps": PS, "worker": ["10.0.0.3:1"]}
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(given))
    assert cluster_of(given, {}) == cluster_of(str(path), {}) == Cluster(tuple(PS))


def test_local_servers_leave_no_thread() -> None:
    pytest.importorskip("zmq")
    before = threading.active_count()
    servers = LocalServers(3)
    assert threading.active_count() == before + 3
    assert [s.view.primary(s.number) for s in servers.servers] == [0, 1, 2]
    servers.close()
    servers.close()
    assert threading.active_count() == before
