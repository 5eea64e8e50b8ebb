import numpy as np
import pytest

from fxflow.distributed.parameter_server.deadlines import Deadline
from fxflow.distributed.parameter_server.worker.tickets import Pulled, Ticket
from fxflow.errors import DistributedError


def ticket(seconds: float = 10.0) -> Ticket:
    return Ticket([0, 1], Deadline(seconds, "parameters"))


def test_a_pull_ends_when_all_shards_have_answered() -> None:
    pull = ticket()
    one, two = (Pulled(n, [np.zeros(n)]) for n in (1, 2))
    pull.give(1, two)
    assert pull.missing == [0] and pull.is_late(0.0)
    pull.give(0, one)
    assert pull.missing == [] and not pull.is_late(0.0)
    assert pull.result(str) == [one, two]


def test_result_raises_the_first_error() -> None:
    pull = ticket()
    pull.fail(DistributedError("lost"))
    pull.fail(DistributedError("closed"))
    with pytest.raises(DistributedError, match="lost"):
        pull.result(str)


def test_an_error_names_the_late_shards() -> None:
    pull = ticket(0.01)
    pull.give(0, Pulled(1, []))
    with pytest.raises(DistributedError, match=r"parameters from shards \[1\] did not"):
        pull.result(lambda shards: f"shards {shards}")
