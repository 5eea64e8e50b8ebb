"""The training loop: hooks, logs, exact resumption and safe interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, NonFiniteError
from fxflow.train import loop
from fxflow.train.checkpoint import Checkpointer
from fxflow.train.loop import Progress
from tests.processes import in_two_processes
from tests.train.small_run import batches, bits, first_state, step

# -- runs ------------------------------------------------------------------------------


def test_a_run_equals_the_plain_loop() -> None:
    expected, count = first_state(), 0
    for epoch in range(2):
        for batch in batches().iterate(epoch=epoch):
            expected, _ = step(expected, batch)
            count += 1
    outcome = loop.run(step, first_state(), batches(), epochs=2)
    assert (outcome.step, outcome.reason) == (count, "finished") == (28, "finished")
    assert bits(outcome.state) == bits(expected)


@pytest.mark.parametrize(
    ("options", "steps", "epochs"),
    [
        ({}, 14, 1),
        ({"num_steps": 5}, 5, 0),
        ({"num_steps": 14}, 14, 1),
        ({"num_steps": 30}, 30, 2),
        ({"num_steps": 30, "epochs": 1}, 14, 1),
        ({"epochs": 3}, 42, 3),
        ({"num_steps": 0}, 0, 0),
        ({"epochs": 0}, 0, 0),
    ],
)
def test_steps_and_epochs_limit_a_run(
    options: dict[str, int], steps: int, epochs: int
) -> None:
    ended = []
    hook = loop.every(epochs=1)(lambda progress: ended.append(progress.epoch))
    outcome = loop.run(step, first_state(), batches(), hooks=[hook], **options)
    assert outcome.step == steps
    assert ended == list(range(1, epochs + 1))


def test_iterables_and_empty_data_are_accepted() -> None:
    add: Callable[[int, int], Any] = lambda total, n: (total + n, None)
    assert loop.run(add, 0, [1, 2, 3]).state == 6
    assert loop.run(add, 0, (n for n in range(4))).state == 6
    assert loop.run(add, 0, [1, 2], num_steps=5).state == 7
    empty: list[int] = []
    assert loop.run(add, 0, empty, num_steps=5) == (0, 0, "finished")


def test_scalars_are_logged_periodically() -> None:
    lines: list[Any] = []

    def outputs(state: int, batch: int) -> Any:
        return state, {"a": {"b": fnp.float32(batch)}, "n": batch, "v": fnp.ones(2)}

    loop.run(
        outputs, 0, range(7), log=lambda n, v: lines.append((n, dict(v))), log_every=3
    )
    assert lines == [(3, {"a/b": 2.0, "n": 2}), (6, {"a/b": 5.0, "n": 5})]


def test_hooks_read_the_progress_and_stop_the_run() -> None:
    seen: list[Any] = []

    def hook(progress: Progress[Any]) -> None:
        seen.append((progress.step, progress.state, progress.outputs, progress.batch))
        if progress.step == 3:
            progress.stop("enough")

    outcome = loop.run(lambda s, b: (s + b, -b), 0, range(9), hooks=[hook])
    assert (outcome.step, outcome.reason) == (3, "enough")
    assert seen == [(1, 0, 0, 0), (2, 1, -1, 1), (3, 3, -2, 2)]


def test_hooks_are_called_by_time() -> None:
    calls: list[int] = []
    hook = loop.every(seconds=0.05)(lambda progress: calls.append(progress.step))

    def slow(state: int, batch: int) -> Any:
        time.sleep(0.02)
        return state, None

    loop.run(slow, 0, range(12), hooks=[hook])
    assert 2 <= len(calls) <= 5


def test_early_stopping_ends_a_run() -> None:
    values = [3.0, 2.0, 2.5, float("nan"), 2.4, 1.0]
    stopping = loop.EarlyStopping(patience=3)

    @loop.every(steps=1)
    def evaluate(progress: Progress[Any]) -> None:
        stopping.look(progress, values[progress.step - 1])

    outcome = loop.run(lambda s, b: (s, None), 0, range(6), hooks=[evaluate, stopping])
    assert (outcome.step, outcome.reason) == (5, "not better than 2 for 3 values")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: loop.run(step, 0, [], num_steps=-1), "num_steps must be at least 0"),
        (lambda: loop.run(step, 0, [], log_every=0), "log_every must be at least 1"),
        (lambda: loop.run(lambda s, b: s, 0, [1]), r"must return \(state, outputs\)"),
        (lambda: loop.run(step, 0, 3), "iterable: expected an iterable"),
        (lambda: loop.every(), "give one of steps="),
        (lambda: loop.every(steps=1, epochs=1), "give one of steps="),
        (lambda: loop.EarlyStopping(0), "patience must be at least 1"),
        (
            lambda: loop.run(step, 0, [], on_nonfinite="rollback"),
            "needs a checkpointer",
        ),
        (lambda: loop.run(step, 0, [], on_nonfinite="no"), "on_nonfinite must be"),
        (lambda: Progress(0, 0, 0).save(), "has no checkpointer="),
    ],
)
def test_invalid_arguments_are_refused(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        call()


# -- nonfinite values ------------------------------------------------------------------


def divided(state: Any, batch: Any) -> tuple[Any, dict[str, Any]]:
    return state + batch, {"fine": fnp.ones(2), "loss": {"main": 1 / fnp.array(batch)}}


BATCHES = [np.float32(n) for n in (1, 2, 0, 4)]


def test_stop_names_the_leaf_and_the_batch() -> None:
    with pytest.raises(
        NonFiniteError, match=r"step 3 returned loss/main = inf; .*'read': 3"
    ):
        loop.run(divided, fnp.zeros(()), BATCHES, on_nonfinite="stop")
    with pytest.raises(NonFiniteError, match="step 3 returned"):  # the last one
        loop.run(divided, fnp.zeros(()), BATCHES[:3], on_nonfinite="stop")
    assert loop.run(divided, fnp.zeros(()), BATCHES).step == 4


def test_skip_keeps_the_state() -> None:
    state = fnp.array(10.0)
    batches = [np.float32(n) for n in (1, 0, np.inf, np.nan, 2)]
    # 1 / inf is finite: only the outputs show the failure.
    outcome = loop.run(divided, state, batches[:2], on_nonfinite="skip")
    assert float(outcome.state) == 11
    outcome = loop.run(divided, state, [*batches[3:]], on_nonfinite="skip")
    assert float(outcome.state) == 12


def test_rollback_restores_the_last_checkpoint(tmp_path: Path) -> None:
    batches = [np.float32(n) for n in (1, 2, np.nan, 4, 8)]

    def step(state: Any, batch: Any) -> Any:
        return state + batch, {"loss": state + batch}

    with Checkpointer(tmp_path, every=2) as checkpoints:
        outcome = loop.run(
            step,
            fnp.zeros(()),
            batches,
            checkpointer=checkpoints,
            on_nonfinite="rollback",
        )
    # Step 3's failure is detected after step 4, which is also lost: 1 + 2, then 8.
    assert float(outcome.state) == 11
    with (
        Checkpointer(tmp_path / "other", every=100) as checkpoints,
        pytest.raises(NonFiniteError, match="no checkpoint to restore"),
    ):
        loop.run(
            step,
            fnp.zeros(()),
            batches,
            checkpointer=checkpoints,
            on_nonfinite="rollback",
        )


def slipped(state: Any, batch: Any) -> tuple[Any, dict[str, Any]]:
    """Returns a finite loss and a nonfinite parameter, as after a nan gradient."""
    params, best = state
    params = {"w": params["w"] + fnp.sqrt(fnp.asarray(batch)), "n": params["n"] + 1}
    return (params, best), {"loss": fnp.abs(fnp.asarray(batch))}


def begun() -> Any:
    # A state may have infinities, as long as their number does not grow.
    return {"w": fnp.zeros(2), "n": 0}, fnp.array([fnp.inf, 1.0])


@pytest.mark.parametrize("run_step", [slipped, fxflow.jit(slipped, donate_argnums=0)])
def test_stop_at_a_nonfinite_state(run_step: Any) -> None:
    batches = [np.float32(n) for n in (1, 4, -1, 9)]
    words = r"step 3 returned a state in which 0/w has 2 elements .*'read': 3"
    with pytest.raises(NonFiniteError, match=words):
        loop.run(run_step, begun(), batches, on_nonfinite="stop")
    with pytest.raises(NonFiniteError, match="step 3 returned a state"):  # the last one
        loop.run(run_step, begun(), batches[:3], on_nonfinite="stop")
    assert loop.run(run_step, begun(), batches[:2], on_nonfinite="stop").step == 2


def test_skip_a_nonfinite_state() -> None:
    batches = [np.float32(n) for n in (1, -1, 4, np.nan, 9)]
    outcome = loop.run(slipped, begun(), batches, on_nonfinite="skip")
    params, best = outcome.state
    assert params["w"].tolist() == [6, 6] and int(params["n"]) == 3
    assert best.tolist() == [np.inf, 1]


def test_rollback_from_a_nonfinite_state(tmp_path: Path) -> None:
    saved = []

    def save(progress: Progress[Any]) -> None:
        progress.save()
        saved.append(np.asarray(progress.state[0]["w"]).tolist())

    batches = [np.float32(n) for n in (1, -1, 4, 9, 16)]
    with Checkpointer(tmp_path, every=100) as checkpoints:
        outcome = loop.run(
            slipped,
            begun(),
            batches,
            hooks=[save],
            checkpointer=checkpoints,
            on_nonfinite="rollback",
        )
    # A hook never saves a failed state, so only step 2 is lost.
    assert saved == [[1, 1], [1, 1], [3, 3], [6, 6], [10, 10]]
    assert outcome.state[0]["w"].tolist() == [10, 10]


def test_a_hook_may_replace_the_state() -> None:
    def put(progress: Progress[Any]) -> None:
        if progress.step == 2:
            params, _ = progress.state
            progress.state = params, fnp.array([fnp.inf, fnp.nan])

    batches = [np.float32(n) for n in (1, 4, 9)]
    for policy in ("stop", "skip"):
        outcome = loop.run(slipped, begun(), batches, hooks=[put], on_nonfinite=policy)
        assert outcome.state[0]["w"].tolist() == [6, 6]


def test_large_64_bit_host_data_are_finite() -> None:
    step = lambda state, batch: (state, {"loss": np.float64(1e300), "more": 1e300})
    assert loop.run(step, 1e300, [1, 2], on_nonfinite="stop").step == 2


def test_many_models_do_not_cause_retrace_warnings() -> None:
    for n in range(1, 12):  # RetraceWarning is an error in tests
        state = [fnp.zeros(n), fnp.zeros(2)]
        loop.run(lambda s, b: (s, None), state, [1], on_nonfinite="skip")


def test_states_on_separate_devices_are_checked() -> None:
    first, second = fxflow.devices()[:2]

    def step(state: Any, batch: Any) -> Any:
        a, b = state
        return (a + batch, b - fnp.log(batch)), {"loss": a}

    batches = [np.float32(n) for n in (1, 2, 0, 4)]
    state = (fxflow.device_put(1.0, first), fxflow.device_put(1.0, second))
    assert loop.run(step, state, batches[:2], on_nonfinite="stop").step == 2
    with pytest.raises(
        NonFiniteError, match="step 3 returned a state in which 1 has 1 el"
    ):
        loop.run(step, state, batches, on_nonfinite="stop")


# -- resumption ------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 4, 5, 13, 14, 15, 27])
def test_a_resumed_run_gives_the_same_result(tmp_path: Path, cut: int) -> None:
    whole = loop.run(step, first_state(), batches(), epochs=2)

    def die(progress: Progress[Any]) -> None:
        if progress.step == cut:
            raise InterruptedError("power cut")

    with (
        pytest.raises(InterruptedError),
        Checkpointer(tmp_path, every=5) as checkpoints,
    ):
        loop.run(
            step,
            first_state(),
            batches(),
            epochs=2,
            hooks=[die],
            checkpointer=checkpoints,
        )
    saved = checkpoints.latest()
    assert saved == (None if cut <= 5 else (cut - 1) // 5 * 5)
    ran: list[int] = []
    with Checkpointer(tmp_path, every=5) as checkpoints:
        outcome = loop.run(
            step,
            first_state(),
            batches(),
            epochs=2,
            hooks=[lambda progress: ran.append(progress.step)],
            checkpointer=checkpoints,
        )
    assert ran[0] == (saved or 0) + 1
    assert bits(outcome.state) == bits(whole.state) and outcome.step == 28


def test_states_of_hooks_are_restored(tmp_path: Path) -> None:
    values = [3.0, 2.0, 2.5, 2.6, 1.0]

    def run(last: int) -> Any:
        stopping = loop.EarlyStopping(patience=2)

        @loop.every(steps=1)
        def evaluate(progress: Progress[Any]) -> None:
            stopping.look(progress, values[progress.step - 1])

        with Checkpointer(tmp_path) as checkpoints:
            return loop.run(
                lambda s, b: (s + b, None),
                0,
                range(5),
                num_steps=last,
                hooks=[evaluate, stopping],
                checkpointer=checkpoints,
            )

    assert run(3).reason == "finished"
    assert run(5)[1:] == (4, "not better than 2 for 2 values")


class Counting:
    """A hook that counts steps."""

    def __init__(self, name: str) -> None:
        self.name, self.count = name, 0

    def __call__(self, progress: Progress[Any]) -> None:
        self.count += 1

    def get_state(self) -> int:
        return self.count

    def set_state(self, state: int) -> None:
        self.count = state


def counted(folder: Path, steps: int, *hooks: Any) -> list[int]:
    with Checkpointer(folder) as checkpoints:
        loop.run(
            lambda s, b: (s + b, None),
            0,
            range(9),
            num_steps=steps,
            hooks=hooks,
            checkpointer=checkpoints,
        )
    return [hook.count for hook in hooks if isinstance(hook, Counting)]


def test_a_resumed_run_may_have_other_hooks(tmp_path: Path) -> None:
    show = lambda progress: None
    assert counted(tmp_path, 2, Counting("a"), Counting("b")) == [2, 2]
    # Stateless hooks may differ; the others are found by name.
    assert counted(tmp_path, 3, show, Counting("b"), show, Counting("a")) == [3, 3]
    with pytest.warns(
        UserWarning, match=r"hook 'b' occurs 1 times in the checkpoint and 0"
    ):
        assert counted(tmp_path, 4, Counting("new"), Counting("a")) == [1, 4]
    with pytest.warns(
        UserWarning, match=r"hook 'a' occurs 1 .* and 2 .*a different name"
    ):
        counts = counted(tmp_path, 5, Counting("a"), Counting("a"), Counting("new"))
    assert counts == [1, 1, 2]
    assert counted(tmp_path, 6, Counting("a"), Counting("a"), Counting("new")) == [
        2,
        2,
        3,
    ]


def test_hook_states_of_older_checkpoints_are_restored(tmp_path: Path) -> None:
    said = {"epoch": 0, "hooks": [None, 5, None, 6]}
    said["positions"] = [json.dumps({"read": 1, "inner": None})]
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(1, 0, metadata=said)
    assert counted(tmp_path, 2, Counting("a"), Counting("b")) == [6, 7]


def test_an_outcome_is_a_tuple() -> None:
    outcome = loop.run(lambda s, b: (s + b, None), 0, [1, 2])
    state, steps, reason = outcome
    assert isinstance(outcome, tuple) and outcome == (3, 2, "finished")
    assert (state, steps, reason) == (3, 2, "finished")


def test_a_hook_saves_the_best_checkpoint(tmp_path: Path) -> None:
    def evaluate(progress: Progress[Any]) -> None:
        progress.save({"accuracy": [0.1, 0.9, 0.5, 0.4][progress.step - 1]})

    with Checkpointer(tmp_path, every=100, keep=1, best="accuracy") as checkpoints:
        loop.run(
            lambda s, b: (s + 1, None),
            0,
            range(4),
            hooks=[evaluate],
            checkpointer=checkpoints,
        )
    assert (checkpoints.steps(), checkpoints.best()) == ([2, 4], 2)


# -- signals ---------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_ends_the_run(tmp_path: Path, number: int) -> None:
    before = signal.getsignal(number)

    def tell(progress: Progress[Any]) -> None:
        if progress.step == 4:
            os.kill(os.getpid(), number)

    with Checkpointer(tmp_path, every=100) as checkpoints:
        outcome = loop.run(
            step,
            first_state(),
            batches(),
            hooks=[tell],
            checkpointer=checkpoints,
        )
    assert (outcome.step, outcome.reason) == (4, "interrupted")
    assert signal.getsignal(number) == before
    assert checkpoints.steps() == [4]


def test_a_second_interrupt_ends_the_run_at_once() -> None:
    def batches() -> Iterator[int]:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        time.sleep(10)
        yield 1

    # The second one is the handler's from before, which is Python's own here.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run(lambda s, b: (s, None), 0, batches)
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_is_handled_even_if_it_was_ignored() -> None:
    """`nohup`, or `&` in a script, makes a program ignore it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)

    def batches(count: int) -> Iterator[int]:
        for _ in range(count):
            signal.raise_signal(signal.SIGINT)
        yield from range(3)

    try:
        outcome = loop.run(lambda s, b: (s, None), 0, batches(1))
        assert outcome.reason == "interrupted" and outcome.step < 3
        with pytest.raises(KeyboardInterrupt):
            loop.run(lambda s, b: (s, None), 0, batches(2))
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


_RUN = """
import sys, time
from tests.train.small_run import batches, bits, first_state, step
from fxflow.train import loop
from fxflow.train.checkpoint import Checkpointer

def slowly(progress):
    print(progress.step, flush=True)

with Checkpointer(sys.argv[1], every=3) as checkpoints:
    outcome = loop.run(step, first_state(), batches(), epochs=3, hooks=[slowly],
                       checkpointer=checkpoints)
print("end", bits(outcome.state), flush=True)
"""


def killed(folder: Path, rng: np.random.Generator) -> str:
    """Runs to the end, with kills and restarts on the way; returns the outcome."""
    for _ in range(30):
        run = subprocess.Popen(
            [sys.executable, "-c", _RUN, str(folder)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        with run:
            assert run.stdout is not None
            lives = int(rng.integers(1, 30))
            for count, line in enumerate(run.stdout, 1):
                if line.startswith("end"):
                    return line.strip()
                if count == lives:
                    run.kill()
    raise AssertionError("it never ended")


@pytest.mark.slow
def test_runs_killed_at_random_steps_resume_exactly(tmp_path: Path) -> None:
    whole = loop.run(step, first_state(), batches(), epochs=3)
    for seed in range(2):
        found = killed(tmp_path / str(seed), np.random.default_rng(seed))
        assert found == f"end {bits(whole.state)}"


@pytest.mark.slow
def test_runs_of_two_processes_resume_exactly_after_kills(tmp_path: Path) -> None:
    pytest.importorskip("tensorstore", reason="pip install 'fxflow[checkpoint]'")

    def run(folder: str, dies: int) -> list[str]:
        arguments = str(tmp_path / folder), str(dies)
        found = in_two_processes("tests.train.together", *arguments, devices=1)
        lines = found.stdout.splitlines()
        ends = [line.split("end ")[1] for line in lines if "end " in line]
        assert bool(ends) == (found.returncode == 0), found.stdout + found.stderr
        return ends

    whole = run("whole", 0)
    assert len(set(whole)) == 1 and whole[0].startswith("20 ")
    dies = int(np.random.default_rng(0).integers(1, 20))
    assert run("killed", dies) == []
    assert run("killed", 0) == whole
