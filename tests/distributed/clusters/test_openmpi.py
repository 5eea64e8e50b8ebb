import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from fxflow.distributed.clusters.openmpi import OpenMPI, is_here
from fxflow.errors import DistributedError

from ..conftest import ROOT, Run

RANK = {
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}

#: The variables of Open MPI 4.1.4 and 5.0.11 on the second of two machines. The server
#: that the latter names is on this machine, not on that of `mpirun`.
FOUR = {"OMPI_MCA_orte_hnp_uri": "1925513216.0;tcp://10.77.0.1,10.148.0.1:56129"}
FIVE = {
    "PMIX_NAMESPACE": "prterun-login-a-30327@1",
    "PMIX_SERVER_URI41": "prterun-login-a-30327@0.2;tcp4://127.0.0.1:60677",
}


@pytest.mark.parametrize(
    ("variables", "address"),
    [
        (FOUR, f"10.77.0.1:{61440 + (1925513216 >> 16) % 4096}"),
        (FIVE, f"login-a:{61440 + 30327 % 4096}"),
    ],
    ids=["4", "5"],
)
def test_membership_is_read_from_the_variables(
    variables: dict[str, str], address: str
) -> None:
    cluster = OpenMPI({**RANK, **variables})
    assert cluster.is_present()
    assert cluster.membership()[:4] == (address, 4, 2, 0)
    alone = {**RANK, **variables, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
    port = address.rpartition(":")[2]
    assert OpenMPI(alone).membership().coordinator_address == f"127.0.0.1:{port}"


def test_different_runs_have_different_ports() -> None:
    """In Open MPI 4, the lower half of a run's number is always 0."""
    other = {"OMPI_MCA_orte_hnp_uri": "1925578752.0;tcp://10.77.0.1:5"}
    addresses = {
        OpenMPI({**RANK, **given}).membership().coordinator_address
        for given in (FOUR, other)
    }
    assert len(addresses) == 2


def test_process_0_must_run_on_the_machine_of_mpirun() -> None:
    variables = {**RANK, "OMPI_COMM_WORLD_RANK": "0"}
    far = {"OMPI_MCA_orte_hnp_uri": "65536.0;tcp://192.0.2.7:5"}
    with pytest.raises(DistributedError, match=r"mpirun runs on 192\.0\.2\.7, but"):
        OpenMPI({**variables, **far}).membership()
    near = {"OMPI_MCA_orte_hnp_uri": "65536.0;tcp://127.0.0.1:5"}
    found = OpenMPI({**variables, **near}).membership()
    assert found.coordinator_address == "127.0.0.1:61441"


def test_names_of_this_machine_are_recognized() -> None:
    assert is_here(socket.gethostname()) and is_here("127.0.0.1")
    assert not is_here("192.0.2.7")
    assert is_here("no.such.name.invalid")  # True if unknown


def test_a_missing_head_address_is_an_error() -> None:
    with pytest.raises(DistributedError, match="set FXFLOW_COORDINATOR_ADDRESS"):
        OpenMPI(RANK).membership()
    env = {**RANK, "FXFLOW_COORDINATOR_ADDRESS": "h:9"}
    assert OpenMPI(env).membership().coordinator_address == "h:9"


def test_processes_of_a_real_mpirun_join(start: Callable[..., Run]) -> None:
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        pytest.skip("Open MPI is not installed (mpirun)")
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True)
    if "Open MPI" not in version.stdout:
        pytest.skip(f"mpirun is not Open MPI's: {version.stdout[:60]!r}")
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    hello = str(ROOT / "examples" / "multi_host" / "hello.py")
    run = start(mpirun, *root, "--oversubscribe", "-n", "2", sys.executable, hello)
    assert run.end() == 0, run.text
    # Lines of two processes may have no line end between them.
    for line in (
        "process 0 of 2: 1 of 2 devices",
        "process 1 of 2: 1 of 2 devices",
        "processes [0, 1] were here",
    ):
        assert run.text.count(line) == 1, run.text
