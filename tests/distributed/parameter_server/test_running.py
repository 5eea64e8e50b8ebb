import json
import re
import threading
from pathlib import Path

import pytest

from fxflow.distributed.parameter_server.running import (
    Cluster,
    LocalServers,
    cluster_of,
)
from fxflow.errors import ArgumentError, DistributedError

PS = ["10.0.0.1:1", "10.0.0.2:1"]


def test_the_cluster_is_read_from_the_environment() -> None:
    assert cluster_of(None, {}) is None
    launched = {
        "FXFLOW_PS_SERVERS": ",".join(PS),
        "FXFLOW_PS_TASK": "worker:3",
    }
    found = cluster_of(None, launched)
    assert found == Cluster(tuple(PS), "worker", 3)
    launched |= {"FXFLOW_PS_WORKERS": "4", "FXFLOW_PS_CHIEF": "1"}
    launched |= {"FXFLOW_PS_SHARDS": "8"}
    found = cluster_of(None, launched)
    assert found == Cluster(tuple(PS), "worker", 3, workers=4, chief=True, shards=8)
    assert found is not None and (found.rank, len(found.trainers)) == (4, 5)
    assert (found.trainers[found.rank], found.trainers[0]) == (found.name, "chief 0")
    config = {"cluster": {"ps": PS}, "task": {"type": "chief", "index": 0}}
    found = cluster_of(None, {"TF_CONFIG": json.dumps(config)})
    assert found == Cluster(tuple(PS), "chief", 0, chief=True)
    assert found is not None and (found.rank, found.trainers) == (0, ("chief 0",))


def test_the_cluster_is_read_from_a_dictionary_or_a_file(tmp_path: Path) -> None:
    given = {"ps": PS, "worker": ["10.0.0.3:1"]}
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(given))
    found = cluster_of(given, {})
    assert found == cluster_of(str(path), {}) == Cluster(tuple(PS), workers=1)
    assert found is not None and (found.rank, found.trainers) == (0, ("worker 0",))


def tf_config(**task: object) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": {"ps": PS}, "task": task})}


@pytest.mark.parametrize(
    ("given", "environment", "message"),
    [
        ({"worker": PS}, {}, "a cluster names its servers"),
        ({"ps": PS, "boss": PS}, {}, "got 'boss'"),
        ({"ps": [PS[0], PS[0]]}, {}, "'10.0.0.1:1' twice"),
        ({"ps": [PS[0], ""]}, {}, "a gap at 1"),
        ({"ps": [PS[0], None]}, {}, "a gap at 1"),
        ({"ps": PS[0]}, {}, "each with a list of addresses; got 'ps': '10.0.0.1:1'"),
        ({"ps": {"0": PS[0], "2": PS[1]}}, {}, "each with a list of addresses"),
        ({"ps": PS, "worker": [PS[1]]}, {}, "have '10.0.0.2:1', as ps has"),
        ({"ps": [PS[0], "10.0.0.2"]}, {}, "ps 1: a parameter server's address"),
        ({"ps": ["10.0.0.2:99999"]}, {}, "from 1 to 65535; got '10.0.0.2:99999'"),
        ({"ps": [3]}, {}, "got '3'"),
        (None, {"TF_CONFIG": "{"}, "TF_CONFIG must read"),
        (None, {"TF_CONFIG": "[]"}, "TF_CONFIG must read"),
        (None, tf_config(type="ps", index=2), "this is ps 2, and the cluster has 2"),
        (None, tf_config(type="boss", index=0), "a task reads job:index"),
        ({"ps": PS}, {"FXFLOW_PS_TASK": "worker"}, "got 'worker'"),
        ({"ps": PS}, {"FXFLOW_PS_WORKERS": "-1"}, "a whole number, got '-1'"),
    ],
)
def test_invalid_clusters_are_rejected(
    given: dict[str, list[str]] | None, environment: dict[str, str], message: str
) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        cluster_of(given, environment)


def test_local_servers_leave_no_thread() -> None:
    pytest.importorskip("zmq")
    before = threading.active_count()
    servers = LocalServers(3)
    assert threading.active_count() == before + 3
    assert [s.view.primary(s.number) for s in servers.servers] == [0, 1, 2]
    servers.close()
    servers.close()
    assert threading.active_count() == before


def test_a_server_without_a_shard_to_hold_cannot_be_added() -> None:
    pytest.importorskip("zmq")
    servers = LocalServers(2)
    with pytest.raises(
        DistributedError, match="Restart the run with more --shards than"
    ):
        servers.add()
    servers.close()
