from fxflow.distributed.clusters import ClusterMembership
from fxflow.distributed.clusters.fxflow import Environment


def test_all_variables_are_read() -> None:
    env = {
        "FXFLOW_COORDINATOR_ADDRESS": "h:1",
        "FXFLOW_NUM_PROCESSES": "4",
        "FXFLOW_PROCESS_ID": "0",
        "FXFLOW_LOCAL_PROCESS_ID": "1",
        "FXFLOW_COORDINATOR_HOSTED": "1",
        "FXFLOW_TOKEN": "secret",
    }
    cluster = Environment(env)
    assert cluster.is_present()
    found = cluster.membership()
    assert found[:6] == ("h:1", 4, 0, 1, True, "secret")


def test_the_variables_of_fxflow_take_precedence() -> None:
    other = ClusterMembership("a:1", 2, 1, 0, source="Slurm")
    assert Environment({}).over(other) == other
    # Number 0 counts as set.
    found = Environment({"FXFLOW_PROCESS_ID": "0"}).over(other)
    assert found == other._replace(process_id=0)
