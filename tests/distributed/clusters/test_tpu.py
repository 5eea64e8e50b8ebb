import pytest

from fxflow.distributed.clusters.tpu import GceTPU, GkeTPU, read_metadata
from fxflow.errors import DistributedError

GKE = {"TPU_WORKER_HOSTNAMES": "t0.svc,t1.svc", "TPU_WORKER_ID": "1"}


def test_gke_reads_the_environment() -> None:
    assert GkeTPU(GKE).membership()[:3] == ("t0.svc:8476", 2, 1)
    several = {
        **GKE,
        "MEGASCALE_COORDINATOR_ADDRESS": "slice0-0.svc:8080",
        "MEGASCALE_NUM_SLICES": "3",
        "MEGASCALE_SLICE_ID": "2",
    }
    assert GkeTPU(several).membership()[:3] == ("slice0-0.svc:8476", 6, 5)
    with pytest.raises(DistributedError, match="TPU_WORKER_ID is 2, but"):
        GkeTPU({**GKE, "TPU_WORKER_ID": "2"}).membership()


def test_gce_reads_the_metadata() -> None:
    known = {
        "agent-worker-number": "1",
        "worker-network-endpoints": "unknown:unknown:10.0.0.2,unknown:unknown:10.0.0.3",
    }
    cluster = GceTPU({}, known.__getitem__)
    assert cluster.is_present()
    assert cluster.membership()[:3] == ("10.0.0.2:8476", 2, 1)
    known["agent-worker-number"] = "2"
    with pytest.raises(DistributedError, match="worker 2 is not among 2 endpoints"):
        cluster.membership()


def test_a_missing_metadata_server_is_not_gce(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(name: str) -> str:
        raise OSError("unreachable")

    assert not GceTPU({}, read).is_present()
    assert not GceTPU({"TPU_SKIP_MDS_QUERY": "1"}).is_present()
    monkeypatch.setattr(
        "fxflow.distributed.clusters.tpu._METADATA", "http://127.0.0.1:1/"
    )
    with pytest.raises(OSError):
        read_metadata("agent-worker-number")
