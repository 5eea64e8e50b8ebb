import json

import pytest

from fxflow.distributed.clusters.tensorflow import TFConfig
from fxflow.errors import DistributedError

CLUSTER = {"worker": ["b:1", "c:1"], "chief": ["a:1"], "ps": ["p:1"]}


def config(job: str, index: int, cluster: object = CLUSTER) -> TFConfig:
    text = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
    return TFConfig({"TF_CONFIG": text})


@pytest.mark.parametrize(
    ("job", "index", "number", "host"),
    [("chief", 0, 0, "a"), ("worker", 0, 1, "b"), ("worker", 1, 2, "c")],
)
def test_membership_is_read_from_the_configuration(
    job: str, index: int, number: int, host: str
) -> None:
    found = config(job, index).membership()
    assert (*found[:3], found.host) == ("a:1", 3, number, host)


def test_an_empty_cluster_is_one_process() -> None:
    assert config("worker", 0, {}).membership()[:3] == (None, 1, 0)


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        (config("ps", 0), "task type 'ps' does not compute"),
        (config("worker", 2), "worker 2 is not in the cluster"),
        (TFConfig({"TF_CONFIG": "{"}), "cannot read TF_CONFIG"),
        (TFConfig({"TF_CONFIG": "[1]"}), "cannot read TF_CONFIG"),
    ],
)
def test_invalid_configurations_are_refused(cluster: TFConfig, message: str) -> None:
    with pytest.raises(DistributedError, match=message):
        cluster.membership()
