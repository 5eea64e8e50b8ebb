import pytest

from fxflow.devices.cluster import DistributedError
from fxflow.distributed.clusters.openmpi import OpenMPI

RANK = {
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
}


@pytest.mark.parametrize(
    ("name", "uri", "address"),
    [
        (
            "OMPI_MCA_orte_hnp_uri",
            "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
            f"10.96.0.1:{61440 + 1531576320 % 4096}",
        ),
        (
            "PMIX_SERVER_URI41",
            "prterun-node1-5120@0.0;tcp4://10.0.0.7:34911",
            "10.0.0.7:62464",
        ),
    ],
)
def test_membership(name: str, uri: str, address: str) -> None:
    cluster = OpenMPI({**RANK, name: uri})
    assert cluster.is_present()
    assert cluster.membership()[:4] == (address, 4, 2, 0)


def test_no_head() -> None:
    with pytest.raises(DistributedError, match="set FXFLOW_COORDINATOR_ADDRESS"):
        OpenMPI(RANK).membership()
    env = {**RANK, "FXFLOW_COORDINATOR_ADDRESS": "h:9"}
    assert OpenMPI(env).membership().coordinator_address == "h:9"
