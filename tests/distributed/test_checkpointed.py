"""The state of a loop of steps, and its checkpoints."""

from pathlib import Path

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.distributed.checkpointed import CheckpointedLoop
from fxflow.errors import ArgumentError
from fxflow.train.checkpoint import Checkpointer

STATE = {"w": np.arange(3, dtype=np.float32), "n": 4}


def test_leaves_keep_their_structure() -> None:
    loop = CheckpointedLoop("loop", STATE, 3, None)
    host = loop.initial_leaves()
    assert [leaf.data.dtype for leaf in host] == [np.int32, np.float32]
    tree = loop.tree(host)
    np.testing.assert_array_equal(tree["w"], STATE["w"])
    assert loop.leaves({"w": 1, "n": 2}) == [2, 1]


@pytest.mark.parametrize("state", [{"w": 1}, [1, 2], 1])
def test_another_structure_is_refused(state: object) -> None:
    loop = CheckpointedLoop("loop", STATE, 3, None)
    with pytest.raises(ArgumentError, match="loop: step returned a state of structure"):
        loop.leaves(state)
    with pytest.raises(ArgumentError, match="loop: the state has 2 leaves, the state"):
        loop.tree(loop.initial_leaves()[:1])


def test_a_negative_number_of_steps_is_refused() -> None:
    with pytest.raises(ArgumentError, match="loop: num_steps must not be negative"):
        CheckpointedLoop("loop", STATE, -1, None)


def test_checkpoints_are_saved_and_restored(tmp_path: Path) -> None:
    with Checkpointer(str(tmp_path), every=2) as checkpointer:
        loop = CheckpointedLoop("loop", STATE, 5, checkpointer)
        assert loop.newest() is None
        assert [step for step in range(1, 6) if loop.is_due(step)] == [2, 4]
        for step in (2, 4, 6):
            loop.save(step, loop.leaves({"w": fnp.ones(3) * step, "n": step}))
        loop.close()
        # That of step 6 is from a longer run.
        assert loop.newest() == 4
        step, state = loop.restored(4, loop.initial_leaves())
        assert (step, int(state["n"]), state["w"].tolist()) == (4, 4, [4.0] * 3)


def test_without_a_checkpointer_nothing_is_due() -> None:
    loop = CheckpointedLoop("loop", STATE, 5, None)
    assert loop.newest() is None and not loop.is_due(2)
    loop.save(2, [1, 2])
    loop.close()
