"""Elastic runs: workers that are killed, stopped, terminated or new."""

import os
import random
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.devices import clients
from fxflow.distributed import DistributedError, elastic
from fxflow.distributed.elastic import World
from fxflow.errors import ArgumentError, CheckpointError
from fxflow.train.checkpoint import Checkpointer

from .conftest import Run

Launch = Callable[..., Run]

# The state after n steps does not depend on the members that computed it: each sums
# its part of a batch that depends on the step's number, and the parts are summed over
# all members. SCRIPT lists what workers do to themselves: "1:10:9": worker 1, step 10,
# signal 9; with signal "0", the worker hangs. While there are fewer
# members than FULL, steps are slow, so that new workers join before the last step.
PROGRAM = """
import os, time
import numpy as np
import fxflow, fxflow.numpy as fnp
from fxflow.distributed import elastic
from fxflow.train.checkpoint import Checkpointer

me = int(os.environ["FXFLOW_PROCESS_ID"])
script = [tuple(map(int, e.split(":"))) for e in os.environ.get("SCRIPT", "").split()]
programs = {}
last = time.monotonic()

def step(world, state, index):
    global last
    for worker, when, number in script:
        if (worker, when) == (me, index):
            os.kill(os.getpid(), number) if number else time.sleep(600)
    first = world.epoch not in programs
    if first:
        programs.clear()
        programs[world.epoch] = fxflow.pmap(
            lambda x: fxflow.lax.psum(x, "all"), axis_name="all"
        )
    batch = np.arange(12, dtype=np.float32) + index
    mine = batch[world.rank :: world.size].sum(keepdims=True)
    total = programs[world.epoch](mine)[0]
    if first and index:
        total.block_until_ready()
        print(f"BACK after {time.monotonic() - last:.3f} s", flush=True)
    is_full = world.size >= int(os.environ.get("FULL", "0"))
    time.sleep(float(os.environ.get("PAUSE", "0.002")) if is_full else 0.15)
    last = time.monotonic()
    return {"sum": state["sum"] * 0.5 + total, "count": state["count"] + 1}

start = {"sum": np.zeros((), np.float32), "count": np.zeros((), np.int32)}
checkpointer = None
if "FOLDER" in os.environ:
    from fxflow.train.checkpoint import Checkpointer
    every = int(os.environ.get("EVERY", "0")) or None
    # Not in the background: it is there when the workers are killed some steps later.
    checkpointer = Checkpointer(os.environ["FOLDER"], every=every, background=False)
result = elastic(step, start, int(os.environ["STEPS"]), checkpointer=checkpointer)
print(
    f"RESULT {float(result.state['sum'])!r} {int(result.state['count'])}"
    f" {result.step} {result.preempted}", flush=True,
)
"""


def expected(steps: int) -> float:
    total = np.float32(0)
    for index in range(steps):
        batch = np.arange(12, dtype=np.float32) + index
        total = np.float32(total * np.float32(0.5) + batch.sum())
    return float(total)


def results(run: Run) -> list[tuple[float, int, int, bool]]:
    return [
        (float(m[1]), int(m[2]), int(m[3]), m[4] == "True")
        for line in run.out
        if (m := re.search(r"RESULT (\S+) (\d+) (\d+) (\w+)", line))
    ]


def check(run: Run, steps: int, count: int | None = None) -> None:
    """Checks that every worker has the state of an undisturbed run."""
    found = results(run)
    assert found, run.text
    if count is not None:
        assert len(found) == count, run.text
    for total, applied, step, preempted in found:
        assert (applied, step, preempted) == (steps, steps, False), run.text
        assert total == pytest.approx(expected(steps), rel=1e-6)


# -- one process -----------------------------------------------------------------------


def test_a_process_alone_runs_all_steps() -> None:
    seen = []

    def step(world: World, state: fnp.ndarray, index: int) -> fnp.ndarray:
        seen.append((world, index))
        return state + index

    result = elastic(step, fnp.zeros(()), 4)
    assert result == (6.0, 4, False)
    assert seen == [(World(0, 1, 1, (0,)), i) for i in range(4)]


def test_one_process_saves_and_restores_checkpoints(tmp_path: Path) -> None:
    calls = []

    def step(world: World, state: fnp.ndarray, index: int) -> fnp.ndarray:
        calls.append(index)
        return state * 2

    def checkpointer() -> Checkpointer:
        return Checkpointer(tmp_path, keep=2, every=2)

    first = elastic(step, fnp.ones(3), 5, checkpointer=checkpointer())
    assert first.state.tolist() == [32.0] * 3
    assert checkpointer().steps() == [2, 4]
    calls.clear()
    again = elastic(step, fnp.ones(3), 6, checkpointer=checkpointer())
    assert (again.state.tolist(), calls) == ([64.0] * 3, [4, 5])
    assert checkpointer().steps() == [4, 6]
    # A truncated checkpoint is skipped.
    (arrays,) = (tmp_path / "step_0000000006").glob("arrays-*")
    arrays.write_bytes(arrays.read_bytes()[:-3])
    calls.clear()
    with pytest.warns(UserWarning, match="restoring an older one"):
        assert elastic(step, fnp.ones(3), 6, checkpointer=checkpointer()).step == 6
    assert calls == [4, 5]


def test_a_checkpoint_of_another_state_is_refused(tmp_path: Path) -> None:
    elastic(lambda w, s, i: s, fnp.ones(3), 1, checkpointer=Checkpointer(tmp_path))
    with pytest.raises(CheckpointError, match=r"expected f32\[2\], found f32\[3\]"):
        elastic(lambda w, s, i: s, fnp.ones(2), 2, checkpointer=Checkpointer(tmp_path))


def test_one_process_stops_after_sigterm(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)

    def step(world: World, state: int, index: int) -> int:
        if index == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return state + 1

    checkpointer = Checkpointer(tmp_path, every=None)
    result = elastic(step, 0, 10, checkpointer=checkpointer)
    assert (int(result.state), result.step, result.preempted) == (4, 4, True)
    assert signal.getsignal(signal.SIGTERM) is before
    rest = elastic(lambda w, s, i: s + 1, 0, 10, checkpointer=checkpointer)
    assert (int(rest.state), rest.preempted) == (10, False)


def test_negative_steps_are_refused() -> None:
    with pytest.raises(ArgumentError, match="num_steps must not be negative, got -1"):
        elastic(lambda w, s, i: s, 0, -1)


def test_a_state_of_another_structure_is_refused() -> None:
    with pytest.raises(ArgumentError, match="step returned a state of structure"):
        elastic(lambda w, s, i: (s, s), 0, 1)


def test_a_missing_launcher_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FXFLOW_ELASTIC_ADDRESS", "127.0.0.1:1")
    # `fxflow.distributed.elastic` is the function, not the module.
    module = sys.modules["fxflow.distributed.elastic"]
    monkeypatch.setattr(module, "_CONNECT", 0.2)
    monkeypatch.setattr(clients, "clear_backends", lambda: None)
    with pytest.raises(DistributedError, match="no launcher answers"):
        elastic(lambda w, s, i: s, 0, 1)


# -- workers that join and leave -------------------------------------------------------

ELASTIC = ("--elastic", "1:3", "--heartbeat-timeout", "1")


def test_an_undisturbed_run_finishes_all_steps(
    launch: Launch, write: Callable[..., str]
) -> None:
    run = launch(*ELASTIC, write(PROGRAM), STEPS="20")
    assert run.end() == 0, run.text
    check(run, 20, count=3)


def test_killed_workers_are_replaced(launch: Launch, write: Callable[..., str]) -> None:
    run = launch(
        *ELASTIC, write(PROGRAM), STEPS="200", SCRIPT="1:10:9 0:12:9", FULL="3"
    )
    assert run.end() == 0, run.text
    check(run, 200)
    epochs = re.findall(r"epoch \d+: workers ([\d, ]+) from", run.text)
    assert any({"3", "4"} <= {*found.split(", ")} for found in epochs), run.text


def test_the_seconds_of_a_recovery_are_reported(
    launch: Launch, write: Callable[..., str]
) -> None:
    run = launch(
        *ELASTIC, "--restarts", "0", write(PROGRAM), STEPS="40", SCRIPT="2:10:9"
    )
    assert run.end() == 0, run.text
    check(run, 40, count=2)
    times = [float(m[1]) for x in run.out if (m := re.search(r"BACK after (\S+)", x))]
    assert len(times) == 2, run.text
    assert max(times) < 20, run.text  # the design notes have the measured times


def test_a_run_continues_without_a_stopped_worker(
    launch: Launch, write: Callable[..., str]
) -> None:
    run = launch(
        *ELASTIC, "--restarts", "0", write(PROGRAM), STEPS="40", SCRIPT="0:10:19"
    )
    started = time.monotonic()
    assert run.end() == 0, run.text
    assert time.monotonic() - started < 40
    check(run, 40, count=2)
    assert "no heartbeat arrived for 1 s" in run.text


def test_sigterm_stops_all_workers_at_one_step(
    launch: Launch, write: Callable[..., str], tmp_path: Path
) -> None:
    folder = str(tmp_path / "checkpoints")
    options = {"STEPS": "50", "FOLDER": folder}
    run = launch(*ELASTIC, write(PROGRAM), SCRIPT="1:10:15", **options)
    assert run.end() == 0, run.text
    found = results(run)
    assert len(set(found)) == 1 and len(found) == 3, run.text
    _, count, step, preempted = found[0]
    assert (count, preempted) == (step, True)
    assert 11 <= step < 50
    assert Checkpointer(folder).steps() == [step]
    rest = launch(*ELASTIC, write(PROGRAM), **options)
    assert rest.end() == 0, rest.text
    check(rest, 50, count=3)
    assert f"from step {step}" in rest.text


def test_a_run_that_lost_all_workers_continues_from_the_checkpoint(
    launch: Launch, write: Callable[..., str], tmp_path: Path
) -> None:
    folder = str(tmp_path / "checkpoints")
    run = launch(
        "--elastic",
        "1:2",
        write(PROGRAM),
        STEPS="40",
        SCRIPT="0:25:9 1:25:9",
        FOLDER=folder,
        EVERY="10",
    )
    assert run.end() == 0, run.text
    check(run, 40)
    assert "from step 20" in run.text


def test_an_error_of_the_program_ends_all_workers(
    launch: Launch, write: Callable[..., str]
) -> None:
    run = launch(
        *ELASTIC,
        write(
            "from fxflow.distributed import elastic\n"
            "def step(world, state, index):\n"
            "    if index == 3 and world.rank == 1:\n"
            "        raise ValueError('bad batch')\n"
            "    return state\n"
            "elastic(step, 0, 10)\n"
        ),
    )
    assert run.end() == 1, run.text
    assert "in step 3: ValueError: bad batch" in run.text
    assert "the run has failed: worker 1" in run.text


def test_too_few_workers_end_the_run(launch: Launch, write: Callable[..., str]) -> None:
    run = launch(
        *("--elastic", "2:2", "--restarts", "0", write(PROGRAM)),
        STEPS="40",
        SCRIPT="1:10:9",
    )
    assert run.end() == 137, run.text  # the status of the first worker that failed
    assert "1 worker is left, but at least 2 are needed" in run.text
    assert "DistributedError: the run has failed" in run.text


def test_donated_and_sharded_states_survive_a_loss(
    launch: Launch, write: Callable[..., str]
) -> None:
    """Each worker has a part of the state, which is lost with the worker."""
    code = """
import os
import numpy as np
import fxflow, fxflow.numpy as fnp
from fxflow.distributed import elastic
from fxflow.train.checkpoint import Checkpointer

me = int(os.environ["FXFLOW_PROCESS_ID"])
jitted = {}

def place(world, state):
    mesh = world.mesh("x")
    where = fxflow.NamedSharding(mesh, fxflow.P("x"))
    jitted[world.epoch] = fxflow.jit(lambda v: v + v.sum() / 12, donate_argnums=0)
    return fxflow.make_array_from_callback((12,), where, lambda index: state[index])

def step(world, state, index):
    if (me, index) == (1, 7):
        os.kill(os.getpid(), 9)
    return jitted[world.epoch](state)

result = elastic(
    step, np.ones(12, np.float32), 10, place=place,
    checkpointer=Checkpointer(os.environ["FOLDER"], every=3, background=False),
)
print("RESULT", result.state.tolist() == [2.0**10] * 12, result.step, flush=True)
"""
    run = launch(
        "--elastic", "2:3", "--restarts", "0", write(code), FOLDER="checkpoints"
    )
    assert run.end() == 0, run.text
    assert sum("RESULT True 10" in line for line in run.out) == 2, run.text
    assert "from step 6" in run.text


# -- random faults ---------------------------------------------------------------------


@pytest.mark.slow
def test_a_stuck_worker_is_expelled(launch: Launch, write: Callable[..., str]) -> None:
    """It answers heartbeats, but does not become ready for the next epoch."""
    run = launch(
        *ELASTIC,
        *("--restarts", "0", write(PROGRAM)),
        STEPS="20",
        SCRIPT="1:10:0",
        FXFLOW_COLLECTIVE_TIMEOUT="2",
    )
    started = time.monotonic()
    assert run.end() == 0, run.text
    assert time.monotonic() - started < 40
    check(run, 20, count=2)
    assert "worker 1 is expelled: it did not return" in run.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [pytest.param(i, marks=pytest.mark.soak) for i in range(30)],
)
def test_runs_survive_random_kills_and_stops(
    seed: int, launch: Launch, write: Callable[..., str]
) -> None:
    draw = random.Random(seed)
    steps = 150
    run = launch(*ELASTIC, write(PROGRAM), STEPS=str(steps), PAUSE="0.01")
    started = time.monotonic()
    harmed: set[int] = set()

    def harm() -> None:
        run.wait_for("epoch 1:")
        for _ in range(draw.randint(1, 3)):
            time.sleep(draw.uniform(0.0, 0.8))
            found = re.findall(r"worker \d+ \([^:]*:(\d+)\) has joined", run.text)
            alive = [int(pid) for pid in found if int(pid) not in harmed]
            if len(alive) < 2:
                return
            victim = draw.choice(alive)
            harmed.add(victim)
            try:
                os.kill(victim, draw.choice([signal.SIGKILL, signal.SIGSTOP]))
            except ProcessLookupError:
                return

    thread = threading.Thread(target=harm)
    thread.start()
    status = run.end(60)
    thread.join()
    print(f"seed {seed}: {time.monotonic() - started:.1f} s, {len(harmed)} harmed")
    assert status == 0, f"seed {seed}\n{run.text}"
    check(run, steps)
    assert time.monotonic() - started < 25, f"seed {seed}\n{run.text}"
