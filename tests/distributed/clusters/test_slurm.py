import pytest

from fxflow.devices.cluster import DistributedError
from fxflow.distributed.clusters.slurm import Slurm, first_host


@pytest.mark.parametrize(
    ("nodes", "host"),
    [
        ("n1", "n1"),
        ("n1,n2", "n1"),
        ("gpu[003-007,11],login", "gpu003"),
        ("gpu[11,13-15]", "gpu11"),
        ("rack[2-3]n[04-05]", "rack2n04"),
        ("a[1-2]-ib.example", "a1-ib.example"),
        ("node-1-2", "node-1-2"),
    ],
)
def test_first_host(nodes: str, host: str) -> None:
    assert first_host(nodes) == host


def test_no_host() -> None:
    with pytest.raises(DistributedError, match="cannot read the node list ''"):
        first_host("")


def test_membership() -> None:
    env = {
        "SLURM_JOB_ID": "4097",
        "SLURM_STEP_NODELIST": "n[7-9]",
        "SLURM_NTASKS": "12",
        "SLURM_PROCID": "5",
        "SLURM_LOCALID": "1",
    }
    assert Slurm(env).membership()[:4] == ("n7:61441", 12, 5, 1)
    # A step may have fewer tasks than its job.
    env["SLURM_STEP_NUM_TASKS"] = "6"
    del env["SLURM_LOCALID"]
    assert Slurm(env).membership()[:4] == ("n7:61441", 6, 5, None)
