"""Two processes with two devices each save together, and restore onto other meshes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import fxflow
from fxflow import P, distributed, random
from fxflow.errors import CheckpointError
from fxflow.train import checkpoint
from tests.processes import check_two_processes

pytest.importorskip("tensorstore", reason="pip install 'fxflow[checkpoint]'")
WHOLE = np.arange(32, dtype=np.float32).reshape(8, 4)


def together() -> None:
    """Runs in each process."""
    distributed.initialize()
    folder = Path(os.environ["CHECKPOINT_FOLDER"])
    me = fxflow.process_index()
    mesh = fxflow.make_mesh((4,), ("x",))
    divided = fxflow.NamedSharding(mesh, P("x"))

    def over(sharding: fxflow.Sharding) -> fxflow.Array:
        return fxflow.make_array_from_callback(
            WHOLE.shape, sharding, lambda i: WHOLE[i]
        )

    def is_whole(array: fxflow.Array) -> bool:
        return all(
            np.array_equal(shard.data, WHOLE[shard.index])
            for shard in array.addressable_shards
        )

    state = {
        "x": over(divided),
        "same": over(fxflow.NamedSharding(mesh, P())),
        "key": random.key(7),
        "host": np.arange(3) + 0 * me,
        "step": 5,
    }
    # A folder that both share, in the background.
    with checkpoint.Checkpointer(folder, keep=1) as checkpoints:
        for step in range(3):
            checkpoints.save(step, {**state, "step": step}, metrics={"loss": step})
        checkpoints.wait()
        assert checkpoints.steps() == [2], checkpoints.steps()
        across = fxflow.NamedSharding(fxflow.make_mesh((2, 2), ("a", "b")), P("b", "a"))
        like = fxflow.ShapeDtypeStruct(WHOLE.shape, np.float32, sharding=across)
        found = checkpoints.restore({**state, "x": like})
        assert found["x"].sharding == across and is_whole(found["x"])
        assert is_whole(found["same"]) and found["step"] == 2
        assert found["host"].tolist() == [0, 1, 2]
        assert random.key_data(found["key"]).tolist() == [0, 7]
        try:
            checkpoints.restore({**state, "more": 1})
        except CheckpointError as error:
            assert "more: expected int, but it is missing" in str(error)
        else:
            raise AssertionError("no error")
    print("done")


@pytest.mark.slow
def test_two_processes_save_and_restore_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHECKPOINT_FOLDER", str(tmp_path))
    check_two_processes("tests.train.checkpoint.test_processes")
    # A single process reads what two have written.
    found = checkpoint.restore(tmp_path / "step_0000000002")
    np.testing.assert_array_equal(found["x"], WHOLE)


if __name__ == "__main__":
    together()
