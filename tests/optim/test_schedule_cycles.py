"""Warm-ups, cycles and restarts; their values are compared in `test_schedules`."""

import numpy as np
import pytest

from fxflow import optim
from fxflow.errors import ArgumentError


def test_no_warmup() -> None:
    schedule = optim.warmup_cosine_decay_schedule(0.0, 1.0, 0, 10)
    assert float(schedule(0)) == 1.0


def test_a_restart_begins_again() -> None:
    one = {"init_value": 0.1, "peak_value": 1.0, "warmup_steps": 3, "decay_steps": 8}
    once = optim.warmup_cosine_decay_schedule(**one)
    again = optim.sgdr_schedule([one, one])
    for count in range(8):
        np.testing.assert_allclose(again(count), once(count), rtol=1e-6)
        np.testing.assert_allclose(again(8 + count), once(count), rtol=1e-6)


def test_errors() -> None:
    with pytest.raises(ArgumentError, match="decay_steps includes the warm-up"):
        optim.warmup_cosine_decay_schedule(0.0, 1.0, 10, 10)
    with pytest.raises(ArgumentError, match="transition_steps must be positive"):
        optim.cosine_onecycle_schedule(0, 1.0)
