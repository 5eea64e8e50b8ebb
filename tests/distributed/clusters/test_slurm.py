import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fxflow.distributed.clusters.slurm import Slurm, first_host
from fxflow.errors import DistributedError

from ..conftest import ROOT, Run


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
def test_the_first_host_of_a_node_list(nodes: str, host: str) -> None:
    assert first_host(nodes) == host


def test_an_empty_node_list_is_an_error() -> None:
    with pytest.raises(DistributedError, match="cannot read the node list ''"):
        first_host("")


def test_membership_is_read_from_the_job() -> None:
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


# -- a real Slurm with one node, which runs during the test ----------------------------

CONFIGURATION = """
ClusterName=test
SlurmctldHost={name}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={folder}/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SchedulerType=sched/builtin
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
NodeName={name} NodeAddr=127.0.0.1 CPUs=8 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES State=UP
"""
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo")


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yields the variables with which the commands find it."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    found = {name: shutil.which(name, path=path) for name in PROGRAMS}
    absent = [name for name, place in found.items() if place is None]
    if absent:
        pytest.skip(f"Slurm is not installed: {', '.join(absent)}")
    if os.geteuid() != 0:
        pytest.skip("slurmd runs as root only")
    folder = tmp_path / "slurm"
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    (folder / "key").write_bytes(os.urandom(128))
    (folder / "key").chmod(0o600)
    name = socket.gethostname().partition(".")[0]
    with socket.socket() as one, socket.socket() as two:
        for probe in (one, two):
            probe.bind(("127.0.0.1", 0))
        ports = [probe.getsockname()[1] for probe in (one, two)]
    configuration = folder / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(name=name, folder=folder, ports=ports)
    )
    munge = [f"--{what}={folder}/munge.{what}" for what in ("pid-file", "log-file")]
    munge += [f"--key-file={folder}/key", f"--socket={folder}/munge"]
    munge += [f"--seed-file={folder}/seed", "--foreground", "--force"]
    variables = {"SLURM_CONF": str(configuration)}
    env = {**os.environ, **variables}
    with (folder / "log").open("wb") as log:
        servers = [
            subprocess.Popen(
                [found[program], *options], env=env, stdout=log, stderr=log
            )
            for program, options in (
                ("munged", munge),
                ("slurmctld", ["-D", "-f", configuration]),
                ("slurmd", ["-D", "-f", configuration, "-N", name]),
            )
        ]
    end = time.monotonic() + 15
    while "idle" not in (
        subprocess.run(
            ["sinfo", "-h", "-o", "%T"], env=env, capture_output=True, text=True
        ).stdout
    ):
        if time.monotonic() > end:
            break
        time.sleep(0.1)
    try:
        if time.monotonic() > end:
            pytest.skip(f"Slurm does not start: {(folder / 'log').read_text()[-2000:]}")
        yield variables
    finally:
        for server in reversed(servers):
            server.terminate()
        for server in reversed(servers):
            server.wait(20)


def test_tasks_of_a_real_slurm_join(
    start: Callable[..., Run], slurm: dict[str, str], tmp_path: Path
) -> None:
    expected = [
        "0: process 0 of 2: 1 of 2 devices",
        "0: processes [0, 1] were here",
        "1: process 1 of 2: 1 of 2 devices",
    ]
    hello = str(ROOT / "examples" / "multi_host" / "hello.py")
    run = start("srun", "-n", "2", "--label", sys.executable, hello, **slurm)
    assert run.end() == 0, run.text
    assert sorted(run.out) == expected, run.text
    # The script in deploy/, with both tasks on the only node.
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (commands / "python").chmod(0o755)
    output = tmp_path / "output"
    run = start(
        *("sbatch", "--wait", "--nodes=1", "--ntasks-per-node=2"),
        *("--cpus-per-task=1", "--mem-per-cpu=0", f"--output={output}"),
        str(ROOT / "deploy" / "slurm" / "cpu.sbatch"),
        hello,
        **slurm,
        PATH=f"{commands}:{os.environ['PATH']}",
    )
    assert run.end() == 0, run.text + output.read_text()
    assert sorted(output.read_text().splitlines()) == expected
