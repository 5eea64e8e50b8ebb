import threading
import time

import numpy as np
import pytest

from fxflow.distributed.parameter_server.worker.tickets import Deadline, Pulled, Ticket
from fxflow.errors import DistributedError


def ticket(seconds: float = 10.0) -> Ticket:
    return Ticket([0, 1], Deadline(seconds, "parameters"))


def test_a_pull_ends_when_all_shards_have_answered() -> None:
    pull = ticket()
    one, two = (Pulled(n, [np.zeros(n)]) for n in (1, 2))
    pull.give(1, two)
    assert pull.missing == [0] and not pull.wait(0.0) and not pull.is_done
    pull.give(0, one)
    assert pull.missing == [] and pull.wait(0.0) and pull.is_done
    assert pull.result(str) == [one, two]


def test_waiting_threads_get_the_result() -> None:
    pull, found = ticket(60.0), []
    threads = [
        threading.Thread(target=lambda: found.append(pull.result(str))) for _ in "ab"
    ]
    for thread in threads:
        thread.start()
    answers = [Pulled(n, []) for n in range(2)]
    for shard, answer in enumerate(answers):
        pull.give(shard, answer)
    for thread in threads:
        thread.join()
    assert found == [answers, answers] and pull.result(str) == answers


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


# -- deadlines -------------------------------------------------------------------------


def test_a_passed_deadline_raises_an_error_with_the_late_processes() -> None:
    deadline = Deadline(0.01, "an answer to pull", "server 1")
    assert 0 < deadline.left <= 0.01
    time.sleep(0.02)
    assert deadline.passed and deadline.left == 0
    text = "an answer to pull from server 1 did not arrive within 0.01 s"
    with pytest.raises(DistributedError, match=text) as error:
        deadline.check()
    assert error.value.seconds == 0.01
    assert "from workers 2, 3" in str(deadline.error("workers 2, 3", (2, 3)))
    assert deadline.error("workers 2, 3", (2, 3)).processes == (2, 3)
    Deadline(60, "x").check()
