import pytest

from fxflow.distributed import clusters
from fxflow.distributed.clusters.base import ClusterEnvironment, job_port
from fxflow.errors import DistributedError

FXFLOW = {
    "FXFLOW_COORDINATOR_ADDRESS": "a:1",
    "FXFLOW_NUM_PROCESSES": "2",
    "FXFLOW_PROCESS_ID": "1",
}
SLURM = {
    "SLURM_JOB_ID": "5",
    "SLURM_STEP_NODELIST": "n1",
    "SLURM_PROCID": "3",
    "SLURM_NTASKS": "4",
}


def test_variables_are_read_as_integers() -> None:
    cluster = ClusterEnvironment({"A": "", "B": "3", "C": "x"})
    assert cluster.integer("A", "B") == 3
    with pytest.raises(DistributedError, match="variable C must be an integer, got"):
        cluster.integer("C")
    with pytest.raises(DistributedError, match="variable A or D is not set"):
        cluster.integer("A", "D")


def test_job_ports_differ_between_jobs() -> None:
    assert job_port(0) == job_port(4096) == 61440
    assert job_port(4095) == 65535


def test_the_managers_are_detected_in_order() -> None:
    assert clusters.detect(None, {}) is None
    assert clusters.detect("deactivate", FXFLOW) is None
    found = clusters.detect(None, {**SLURM, **FXFLOW})
    assert found is not None
    assert found[:3] == ("a:1", 2, 1)
    found = clusters.detect("slurm", {**SLURM, "FXFLOW_COORDINATOR_ADDRESS": "b:2"})
    assert found is not None
    assert found[:3] == ("b:2", 4, 3)
    assert found.source == "Slurm"


def test_a_missing_manager_is_reported() -> None:
    with pytest.raises(ValueError, match="'pbs' is unknown: it is one of fxflow"):
        clusters.detect("pbs", {})
    with pytest.raises(DistributedError, match="not set: SLURM_JOB_ID"):
        clusters.detect("slurm", {})


@pytest.mark.parametrize("cluster", clusters.CLUSTERS, ids=lambda c: c.name)
def test_every_manager_has_a_name_and_variables(
    cluster: type[ClusterEnvironment],
) -> None:
    assert cluster.name and cluster.variables and cluster.__doc__
    assert not cluster({"TPU_SKIP_MDS_QUERY": "1"}).is_present()
