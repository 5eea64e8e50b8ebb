"""What the last batches say of the next."""

import random

import pytest

from fxflow.serve.batching.pace import Lateness, Pace


def test_nothing_is_known_at_first() -> None:
    assert Pace().predict(10) == 0.0


def test_finds_the_line_and_follows_it() -> None:
    rng = random.Random(0)
    pace = Pace()
    for _ in range(300):
        rows = rng.randint(1, 32)
        pace = pace.after(rows, 0.002 + 0.0005 * rows)
    assert pace.predict(100) == pytest.approx(0.052, rel=0.01)
    for _ in range(300):  # the model became slower
        rows = rng.randint(1, 32)
        pace = pace.after(rows, 0.004 + 0.001 * rows)
    assert pace.predict(10) == pytest.approx(0.014, rel=0.02)


def test_one_size_only() -> None:
    pace = Pace()
    for _ in range(20):
        pace = pace.after(8, 0.01)
    assert pace.predict(8) == pytest.approx(0.01)
    assert pace.predict(1) >= 0


def test_noise_never_makes_it_fall_or_negative() -> None:
    rng = random.Random(1)
    pace = Pace()
    for _ in range(2000):
        pace = pace.after(rng.randint(1, 64), rng.expovariate(100))
        assert 0 <= pace.predict(1) <= pace.predict(2) <= pace.predict(64)


def test_lateness_follows_the_errors_and_forgets_them() -> None:
    rng = random.Random(2)
    late = Lateness()
    assert late.margin == 0
    for _ in range(200):
        late = late.after(rng.uniform(0.01, 0.03))
    assert 0.025 < late.margin < 0.05
    for _ in range(200):  # things come as foretold again, or before
        late = late.after(rng.uniform(-0.002, 0.0))
    assert 0 <= late.margin < 0.003


def test_one_pause_counts_little_and_lasting_lateness_is_learned() -> None:
    late = Lateness()
    for _ in range(50):
        late = late.after(0.001).after(0.002)
    before = late.margin
    assert late.after(0.2).margin < 2 * before + 0.002
    for _ in range(12):
        late = late.after(0.1)
    assert late.margin > 0.1
    # The first one is believed: it says of which size errors are.
    assert Lateness().after(0.1).margin > 0.05
