"""A cluster of two tasks for all tests of a process."""

from collections.abc import Iterator

import pytest

from fxflow import dataflow
from fxflow.dataflow import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Two tasks with two devices each."""
    with dataflow.local_cluster(2, devices_per_task=2) as made:
        yield made
