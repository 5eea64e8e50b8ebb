"""Profiles of some steps of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow import profiler, train
from fxflow.errors import ArgumentError

STEP = fxflow.jit(lambda state, batch: (state @ state + batch, {}))


def products(folder: Path) -> int:
    """Returns the number of matrix products in the profile in a folder."""
    (path,) = folder.glob("plugins/profile/*/*.xplane.pb")
    profile = profiler.ProfileData.from_file(str(path))
    events = (
        e for plane in profile.planes for line in plane.lines for e in line.events
    )
    names = (str(dict(event.stats).get("hlo_op", "")) for event in events)
    return sum("dot" in name or "ynn" in name for name in names)


def run(hook: Any, steps: int) -> None:
    train.loop.run(STEP, fnp.eye(64), [1.0] * steps, hooks=[hook])


def test_the_requested_steps_are_recorded(tmp_path: Path) -> None:
    run(train.logs.profile(tmp_path / "three", start=2, steps=3), 9)
    run(train.logs.profile(str(tmp_path / "six"), start=1, steps=6), 9)
    three = products(tmp_path / "three")
    assert three > 0 and products(tmp_path / "six") == 2 * three


def test_a_run_that_ends_early_has_its_profile(tmp_path: Path) -> None:
    hook = train.logs.profile(tmp_path, start=1, steps=50)
    run(hook, 4)
    del hook
    assert products(tmp_path) > 0
    with pytest.raises(RuntimeError, match="no profile"):
        profiler.stop_trace()


def test_invalid_steps_and_starts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="steps must be at least 1, got 0"):
        train.logs.profile(tmp_path, steps=0)
    with pytest.raises(ArgumentError, match="start must be at least 0, got -1"):
        train.logs.profile(tmp_path, start=-1)
