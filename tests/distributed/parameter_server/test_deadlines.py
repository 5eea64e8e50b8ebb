import time

import pytest

from fxflow.distributed.parameter_server.deadlines import Deadline
from fxflow.errors import DistributedError


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
