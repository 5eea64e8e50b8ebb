"""Comparisons of two measurements."""

from __future__ import annotations

import numpy as np
import pytest

from fxflow import numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.profiler import compare, report


def test_intervals_hold_what_they_say() -> None:
    draw = np.random.default_rng(3)
    held = 0
    for _ in range(100):
        before, after = draw.lognormal(0.0, 0.1, 15), 2 * draw.lognormal(0.0, 0.1, 15)
        found = compare(before, after, confidence=0.9)
        held += found.low <= 2 <= found.high
        assert found.verdict == "slower"
    assert 80 <= held <= 99


def test_verdicts() -> None:
    times = [1.0, 1.01, 0.99, 1.02, 0.98]
    assert compare(times, times).verdict == "no difference seen"
    faster = compare(times, [t / 2 for t in times])
    assert faster.verdict == "faster" and faster.ratio == pytest.approx(0.5)
    assert "0.500 times" in str(faster) and "95% confidence" in str(faster)
    outlier = compare(times, [*times, 50.0])
    assert outlier.verdict == "no difference seen"


def test_reports() -> None:
    found = [report(lambda x: fnp.sin(x @ x), fnp.ones((8, 8)), runs=3) for _ in "ab"]
    assert len(found[0].samples) == 3
    text = str(compare(*found))
    assert "by scope" in text and "(no scope)" in text


def test_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"at least 3 runs.* got 2 runs"):
        compare([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ArgumentError, match=r"after is .*got -2.0 s"):
        compare([1.0, 2.0, 3.0], [1.0, -2.0, 3.0])
    with pytest.raises(ArgumentError, match="confidence"):
        compare([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], confidence=1)
