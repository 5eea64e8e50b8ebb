"""Checkpointers: when they save, what they keep, threads, and killed runs."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, CheckpointError
from fxflow.train.checkpoint import Checkpointer, saving
from fxflow.train.checkpoint.storage import storage_of


def at(step: int) -> dict[str, Any]:
    return {"w": np.full(4, step, np.int32), "step": step}


def test_every_and_keep_limit_the_checkpoints(tmp_path: Path) -> None:
    with Checkpointer(tmp_path, keep=2, every=5) as checkpoints:
        saved = [step for step in range(18) if checkpoints.save(step, at(step))]
        assert saved == [0, 5, 10, 15]
        assert checkpoints.save(17, at(17), force=True)
    assert (checkpoints.steps(), checkpoints.latest()) == ([15, 17], 17)
    assert checkpoints.restore(at(0))["step"] == 17
    assert checkpoints.restore(at(0), step=15)["step"] == 15


def test_checkpoints_are_due_by_time(tmp_path: Path) -> None:
    every = datetime.timedelta(seconds=0.2)
    with Checkpointer(tmp_path, every=every) as checkpoints:
        assert not checkpoints.save(0, at(0))
        time.sleep(0.25)
        assert checkpoints.save(1, at(1))
        assert not checkpoints.save(2, at(2))


def test_the_best_checkpoint_is_kept(tmp_path: Path) -> None:
    losses = [3.0, 1.0, 2.0, float("nan"), 4.0]
    with Checkpointer(tmp_path, keep=1, best="loss", mode="min") as checkpoints:
        for step, loss in enumerate(losses):
            metrics = {"loss": fnp.array(loss), "other": 1}
            checkpoints.save(step, at(step), metrics=metrics, metadata=[step])
    assert (checkpoints.steps(), checkpoints.best()) == ([1, 4], 1)
    assert checkpoints.metrics(1) == {"loss": 1.0, "other": 1.0}
    assert checkpoints.metadata(4) == [4]
    with pytest.raises(
        CheckpointError, match=r"chosen by 'loss', but metrics has \[\]"
    ):
        checkpoints.save(9, at(9))


def test_later_changes_of_the_state_are_not_saved(tmp_path: Path) -> None:
    state = at(1)
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(1, state)
        state["w"][:] = -1
    assert checkpoints.restore()["w"].tolist() == [1, 1, 1, 1]


def test_arrays_are_neither_copied_nor_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, stepped = saving.write, threading.Event()
    mesh = fxflow.make_mesh((8,), ("x",))
    divided = fxflow.NamedSharding(mesh, fxflow.P("x"))
    whole = np.arange(1 << 16, dtype=np.float32)
    state = {"one": fnp.array(whole), "many": fxflow.device_put(whole, divided)}

    def late(taken: saving.Snapshot, *given: Any) -> None:
        assert stepped.wait(60)
        write(taken, *given)

    monkeypatch.setattr(saving, "write", late)
    view = np.asarray(state["one"])
    taken = saving.snapshot(state, storage_of(tmp_path, 1), copy=True)
    assert any(
        parts and parts[0][1] is not view and np.shares_memory(parts[0][1], view)
        for parts in taken.parts
    )
    del view, taken
    step = fxflow.jit(lambda s: fxflow.tree.map(lambda x: -x, s), donate_argnums=0)
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(0, state)
        for _ in range(3):
            state = step(state)
        fxflow.block_until_ready(state)
        stepped.set()
    found = checkpoints.restore()
    np.testing.assert_array_equal(found["one"], whole)
    np.testing.assert_array_equal(found["many"], whole)


def test_errors_surface_at_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any) -> None:
        raise OSError("disk gone")

    checkpoints = Checkpointer(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(saving, "write", fails)
        checkpoints.save(0, at(0))
        with pytest.raises(OSError, match="disk gone"):
            checkpoints.save(1, at(1))
        checkpoints.save(2, at(2))
        with pytest.raises(OSError, match="disk gone"):
            checkpoints.close()
    checkpoints.save(3, at(3))
    checkpoints.close()
    assert checkpoints.steps() == [3]


def test_a_second_writer_of_a_folder_is_refused(tmp_path: Path) -> None:
    with Checkpointer(tmp_path) as first:
        first.save(0, at(0))
        first.wait()
        with pytest.raises(CheckpointError, match=f"another writer.*{os.getpid()}"):
            Checkpointer(tmp_path).save(1, at(1))
        # Reading needs no lock.
        assert Checkpointer(tmp_path).restore()["step"] == 0
    with Checkpointer(tmp_path) as second:
        second.save(1, at(1))


def test_damaged_checkpoints_are_skipped(tmp_path: Path) -> None:
    with Checkpointer(tmp_path) as checkpoints:
        for step in range(3):
            checkpoints.save(step, at(step))
    for step in (1, 2):
        folder = tmp_path / f"step_{step:010d}"
        (path,) = folder.glob("*.safetensors")
        path.write_bytes(path.read_bytes()[:-1] + b"\x77")
    with pytest.warns(UserWarning, match="restoring an older one"):
        assert checkpoints.restore(at(0))["step"] == 0
    with pytest.raises(CheckpointError, match="checksum"):
        checkpoints.restore(at(0), step=2)


def test_another_shape_is_an_error_without_trying_older_checkpoints(
    tmp_path: Path,
) -> None:
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(0, at(0))
        checkpoints.save(1, {"w": np.ones(9), "step": 1})
        with pytest.raises(
            CheckpointError, match=r"w: expected i32\[4\], found f64\[9\]"
        ):
            checkpoints.restore(at(0))


def test_a_step_passed_as_like_gets_a_hint(tmp_path: Path) -> None:
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(5, {"a": 1})
        with pytest.raises(CheckpointError, match=r"write restore\(step=5\)"):
            checkpoints.restore(5)
        checkpoints.save(6, 7)  # a state that is a number
        assert checkpoints.restore(0) == 7


def test_missing_steps_are_errors(tmp_path: Path) -> None:
    checkpoints = Checkpointer(tmp_path / "new")
    assert (checkpoints.steps(), checkpoints.latest()) == ([], None)
    with pytest.raises(CheckpointError, match="no checkpoint here yet"):
        checkpoints.restore()
    checkpoints.save(2, at(2))
    checkpoints.wait()
    with pytest.raises(CheckpointError, match=r"of step 1; .* of steps \[2\]"):
        checkpoints.metrics(1)
    checkpoints.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keep": 0}, "keep must be at least 1"),
        ({"every": 0}, "every must be positive"),
        ({"every": datetime.timedelta(0)}, "every must be positive"),
        ({"mode": "most"}, "mode must be max or min"),
    ],
)
def test_invalid_options_are_refused(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ArgumentError, match=words):
        Checkpointer(tmp_path, **options)


# -- killed runs -----------------------------------------------------------------------

_RUNS = """
import os, signal, sys, time
import numpy as np
from fxflow.train.checkpoint import Checkpointer

folder, rounds, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def run(ready):
    checkpoints = Checkpointer(folder, keep=2)
    newest = checkpoints.latest() or 0
    if newest:
        state = checkpoints.restore(step=newest)
        assert state["step"] == newest and (state["w"] == newest).all()
    for step in range(newest + 1, 10**6):
        checkpoints.save(step, {"w": np.full(20_000, step), "step": step})
        checkpoints.wait()
        if step == newest + 1:
            os.write(ready, str(step).encode())


rng, newest = np.random.default_rng(seed), 0
for _ in range(rounds):
    read, ready = os.pipe()
    child = os.fork()  # of what is imported and nothing else
    if not child:
        try:
            run(ready)
        except BaseException as error:
            os.write(ready, repr(error).encode())
            os._exit(1)
    os.close(ready)
    said = os.read(read, 1000).decode()
    assert said.isdigit() and int(said) > newest, said
    newest = int(said)
    time.sleep(rng.random() * 0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read)
"""


def killed_rounds(folder: Path, rounds: int, seed: int) -> None:
    """Kills runs that save constantly; each continues from a complete checkpoint."""
    command = [sys.executable, "-c", _RUNS, str(folder), str(rounds), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    checkpoints = Checkpointer(folder)
    latest = checkpoints.latest()
    assert latest is not None and latest >= rounds
    assert checkpoints.restore(step=latest)["step"] == latest


def test_a_killed_run_leaves_a_complete_checkpoint(tmp_path: Path) -> None:
    killed_rounds(tmp_path, 10, seed=0)


@pytest.mark.soak
def test_runs_killed_at_many_places_leave_a_complete_checkpoint(tmp_path: Path) -> None:
    killed_rounds(tmp_path, 1000, seed=1)


def test_at_most_restores_the_newest_earlier_step(tmp_path: Path) -> None:
    with Checkpointer(tmp_path, keep=None) as checkpoints:
        for step in (2, 4, 6):
            checkpoints.save(step, {"w": np.array(step)})
    assert checkpoints.restore(at_most=5)["w"] == 4
    assert checkpoints.restored_step == 4
    with pytest.raises(CheckpointError, match="no checkpoint of a step up to 1 here"):
        checkpoints.restore(at_most=1)


def test_mapped_files_are_not_copied(tmp_path: Path) -> None:
    np.arange(1000).tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", np.int64, "r")
    taken = saving.snapshot([mapped, np.arange(3)], storage_of(tmp_path, 1.0), True)
    (one,), (other,) = (parts or [] for parts in taken.parts)
    assert np.shares_memory(one[1], mapped)
    assert other[1].base is None
    with Checkpointer(tmp_path / "kept") as checkpoints:
        checkpoints.save(0, {"rows": mapped})
    assert np.array_equal(checkpoints.restore(mmap=True)["rows"], np.arange(1000))
