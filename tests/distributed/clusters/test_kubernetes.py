from pathlib import Path

import pytest

from fxflow.distributed.clusters.kubernetes import Kubernetes
from fxflow.errors import DistributedError

ENV = {
    "KUBERNETES_SERVICE_HOST": "127.0.0.1",
    "KUBERNETES_SERVICE_PORT": "1",
    "JOB_COMPLETION_INDEX": "2",
    "HOSTNAME": "train-2",
}


class InPod(Kubernetes):
    def full_name(self, host: str) -> str:
        return f"{host}.train.default.svc.cluster.local"


def test_membership_is_read_from_the_pod() -> None:
    cluster = InPod({**ENV, "FXFLOW_NUM_PROCESSES": "4"})
    assert cluster.is_present()
    address = "train-0.train.default.svc.cluster.local:8476"
    assert cluster.membership()[:3] == (address, 4, 2)
    assert cluster.membership().host == "train-2.train.default.svc.cluster.local"


def test_the_coordinator_address_can_be_set() -> None:
    env = {
        **ENV,
        "FXFLOW_NUM_PROCESSES": "4",
        "FXFLOW_COORDINATOR_ADDRESS": "coordinator:8476",
    }
    assert Kubernetes(env).membership()[:3] == ("coordinator:8476", 4, 2)


def test_a_pod_without_a_subdomain_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kubernetes, "full_name", lambda self, host: host)
    with pytest.raises(DistributedError, match="subdomain of a headless service"):
        Kubernetes({**ENV, "FXFLOW_NUM_PROCESSES": "4"}).membership()


def test_an_api_server_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DistributedError, match="set FXFLOW_NUM_PROCESSES in the pod"):
        InPod(ENV, tmp_path).membership()
