"""The scripts of deploy/slurm, with stand-ins for `srun` and `scontrol`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fxflow.distributed.clusters.base import job_port

from .checkout import DEPLOY, check_program, known_variables, run

SCRIPTS = sorted((DEPLOY / "slurm").glob("*.sbatch"))
#: Options of sbatch (its manual, version 24.05) that scripts of ours may have.
DIRECTIVES = {
    "cpus-per-task", "gpus-per-node", "job-name", "mem", "mem-per-cpu", "no-kill",
    "nodes", "ntasks-per-node", "open-mode", "output", "requeue", "signal", "time",
}  # fmt: skip
#: Starts two tasks on this machine, as srun would on two.
SRUN = """#!/bin/bash
while [[ $1 == -* ]]; do shift; done
export SLURM_STEP_NODELIST=localhost SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0
tasks=() status=0
out=$(mktemp -d)
for k in 0 1; do SLURM_PROCID=$k "$@" > "$out/$k" & tasks+=($!); done
for task in "${tasks[@]}"; do wait "$task" || status=$?; done
cat "$out/0" "$out/1"; rm -r "$out"
exit $status
"""


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    """The variables of a job of two tasks."""
    for name, text in {
        "srun": SRUN,
        "scontrol": '#!/bin/bash\necho "scontrol $@"\n',
        "python": f'#!/bin/bash\nexec {sys.executable} "$@"\n',
    }.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        # Its port is not the one of a run beside this one.
        "SLURM_JOB_ID": str(os.getpid()),
        "SLURM_NTASKS": "2",
        "SLURMD_NODENAME": "localhost",
    }


def script(name: str) -> str:
    return str(DEPLOY / "slurm" / f"{name}.sbatch")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    checked = subprocess.run(["bash", "-n", path], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    text = path.read_text()
    head, _, body = text.partition("set -")
    given = re.findall(r"^#SBATCH --([a-z-]+)", text, re.MULTILINE)
    assert given and set(given) <= DIRECTIVES
    assert "#SBATCH" in head and "#SBATCH" not in body  # sbatch reads none after that
    assert set(re.findall(r"FXFLOW_[A-Z_]+", text)) <= known_variables()
    defaults = re.search(r"^    set -- (\S+)", text, re.MULTILINE)
    assert defaults
    if "mnist" in defaults[1]:
        pytest.importorskip("tqdm", reason="pip install fxflow[examples]")
    options = re.findall(r"^    set -- (.*)$", text, re.MULTILINE)[0].split()
    check_program(options)


def test_there_are_scripts() -> None:
    assert [path.stem for path in SCRIPTS] == ["cpu", "dataflow", "elastic", "gpu"]


def test_processes_meet(slurm: dict[str, str]) -> None:
    done = run(["bash", script("cpu"), "examples/multi_host/hello.py"], **slurm)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "process 0 of 2: 1 of 2 devices",
        "process 1 of 2: 1 of 2 devices",
        "processes [0, 1] were here",
    ]


def test_no_silent_cpu(slurm: dict[str, str]) -> None:
    """Where there is no GPU the script for GPUs fails."""
    from fxflow.devices import plugins

    if not plugins.missing_device("cuda"):
        pytest.skip("there is a GPU here")
    done = run(["bash", script("gpu"), "examples/multi_host/hello.py"], **slurm)
    assert done.returncode != 0
    assert "cuda" in done.stderr


@pytest.mark.soak  # one of the longest; fxflow launch --elastic is tested too
def test_elastic(slurm: dict[str, str], tmp_path: Path) -> None:
    folder = str(tmp_path / "state")
    command = ["bash", script("elastic"), "examples/multi_host/survive.py"]
    command += ["--checkpoints", folder, "--steps"]
    done = run([*command, "30"], **slurm)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done: 30 steps") == 2
    assert f"at port {job_port(os.getpid())}" in done.stderr
    assert "requeue" not in done.stdout
    # Workers end and the run is not done: the job is queued again, but not for ever.
    told = tmp_path / "told.py"
    told.write_text("raise SystemExit(75)\n")
    again = ["bash", script("elastic"), str(told)]
    done = run(again, **slurm)
    assert done.returncode == 0
    assert f"scontrol requeue {os.getpid()}" in done.stdout
    done = run(again, **slurm, SLURM_RESTART_COUNT="10")
    assert done.returncode == 1
    assert "giving up" in done.stderr and "requeue" not in done.stdout
    wrong = run([*command, "many"], **slurm)
    assert wrong.returncode == 2
    assert "invalid int value" in wrong.stderr and "requeue" not in wrong.stdout


@pytest.mark.slow
def test_tasks(slurm: dict[str, str]) -> None:
    command = ["bash", script("dataflow"), "examples/multi_host/stages.py"]
    done = run([*command, "--steps", "20"], 120, **slurm)
    assert done.returncode == 0, done.stderr
    assert "[controller 0] step 0: loss" in done.stdout
    assert re.search(r"done: 20 steps, norm of the weights \d", done.stdout)
