import shutil
import sys
from collections.abc import Callable

import pytest

from fxflow.distributed.clusters.torchrun import Torchrun

from ..conftest import ROOT, Run

ENV = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "29500"}


def test_membership_is_read_from_the_variables() -> None:
    assert Torchrun(ENV).is_present()
    assert Torchrun(ENV).membership()[:4] == ("h:29500", 2, 1, None)
    found = Torchrun({**ENV, "LOCAL_RANK": "1"}).membership()
    assert found.local_process_id == 1


def test_the_port_next_to_the_agents_is_used() -> None:
    env = {**ENV, "TORCHELASTIC_USE_AGENT_STORE": "True"}
    assert Torchrun(env).membership().coordinator_address == "h:29501"


def test_processes_of_a_real_torchrun_join(start: Callable[..., Run]) -> None:
    torchrun = shutil.which("torchrun")
    if torchrun is None:
        pytest.skip("PyTorch is not installed (torchrun)")
    hello = str(ROOT / "examples" / "multi_host" / "hello.py")
    options = ["--standalone", "--nproc_per_node=2", "--no-python"]
    run = start(torchrun, *options, sys.executable, hello)
    assert run.end(90) == 0, run.text
    assert sorted(filter(None, run.out)) == [
        "process 0 of 2: 1 of 2 devices",
        "process 1 of 2: 1 of 2 devices",
        "processes [0, 1] were here",
    ], run.text
