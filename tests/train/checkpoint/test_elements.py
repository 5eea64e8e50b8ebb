"""Arrays in a store with S3's protocol."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow import numpy as fnp
from fxflow.errors import CheckpointError
from fxflow.train import checkpoint
from fxflow.train.checkpoint.description import Description, Entry
from fxflow.train.checkpoint.elements import write_safetensors
from fxflow.train.checkpoint.storage import Local
from tests.train.checkpoint.states import assert_same, state

pytest.importorskip("tensorstore", reason="pip install 'fxflow[checkpoint]'")


def test_big_endian_elements_of_older_checkpoints_are_read(tmp_path: Path) -> None:
    host = np.array([1, 2**20], ">i4")
    entries = [Entry("state", ">i4", (2,))]
    in_bytes = host.view(np.uint8).reshape(2, 4)
    name, (checksum,) = write_safetensors(Local(tmp_path), entries, [in_bytes])
    entry = dataclasses.replace(entries[0], checksum=checksum)
    said = Description(name, 0, (entry,)).encode()
    (tmp_path / "tree.json").write_bytes(said)
    for options in ({}, {"mmap": True}, {"like": fnp.zeros(2, "int32")}):
        found = np.asarray(checkpoint.restore(tmp_path, **options))
        assert found.tolist() == host.tolist() and found.dtype == np.int32


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Yields TensorStore's specification of a bucket on an S3 server."""
    server_of = pytest.importorskip("moto.server", reason="pip install moto flask")
    import boto3

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    server = server_of.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    client.create_bucket(Bucket="runs")
    yield {
        "driver": "s3",
        "bucket": "runs",
        "path": "mine",
        "endpoint": endpoint,
        "aws_region": "us-east-1",
    }
    server.stop()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_states_are_saved_in_an_object_store(bucket: dict[str, Any]) -> None:
    checkpoint.save({**bucket, "path": "one"}, state())
    assert_same(checkpoint.restore({**bucket, "path": "one"}, state()), state())
    with checkpoint.Checkpointer(bucket, keep=2, best="loss", mode="min") as found:
        for step in range(4):
            found.save(step, {"w": fnp.full(3, step)}, metrics={"loss": step})
    assert found.steps() == [0, 2, 3]
    assert found.restore()["w"].tolist() == [3, 3, 3]
    with pytest.raises(CheckpointError, match=r"s3://runs/absent/: there is no check"):
        checkpoint.restore({**bucket, "path": "absent"})


def test_a_store_that_does_not_answer_times_out() -> None:
    nowhere = {
        "driver": "s3",
        "bucket": "runs",
        "endpoint": "http://127.0.0.1:9",
        "aws_region": "us-east-1",
        "aws_credentials": {"type": "anonymous"},
    }
    with pytest.raises((CheckpointError, TimeoutError), match=r"s3://runs"):
        checkpoint.save(nowhere, {"a": fnp.ones(2)}, timeout=2)
