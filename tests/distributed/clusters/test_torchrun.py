from fxflow.distributed.clusters.torchrun import Torchrun

ENV = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "29500"}


def test_membership() -> None:
    assert Torchrun(ENV).is_present()
    assert Torchrun(ENV).membership()[:4] == ("h:29500", 2, 1, None)
    found = Torchrun({**ENV, "LOCAL_RANK": "1"}).membership()
    assert found.local_process_id == 1


def test_the_agent_has_the_port() -> None:
    env = {**ENV, "TORCHELASTIC_USE_AGENT_STORE": "True"}
    assert Torchrun(env).membership().coordinator_address == "h:29501"
