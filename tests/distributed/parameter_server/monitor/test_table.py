import os
import shutil

import pytest

from fxflow.distributed.parameter_server.monitor.figures import (
    Figures,
    ServerFigures,
    WorkerFigures,
)
from fxflow.distributed.parameter_server.monitor.table import bins, redrawn, table

SHARD = {
    "serves": True,
    "version": 7,
    "bytes": 4_000_000,
    "holders": [0],
    "places": [0],
}
COUNTS = {
    ("pushes", ""): 100.0,
    ("staleness", "0"): 60.0,
    ("staleness", "3"): 40.0,
    ("dropped", "stale"): 3.0,
}
RATES = {
    ("pushes", ""): 12.5,
    ("staleness", "0"): 3.0,
    ("staleness", "3"): 1.0,
    ("busy", "push"): 0.25,
    ("received_bytes", "push"): 2e6,
    ("push", "int8(256)"): 1.9e6,
}
STATS = {"shards": {"0": SHARD}, "waiting": 2}
SERVERS = [
    ServerFigures(0, "a:1", "", COUNTS, RATES, STATS),
    ServerFigures(1, "b:1", "the connection was lost", {}, {}, {}),
]
WORKERS = [WorkerFigures("worker 0", 9, 2.5, 0.26), WorkerFigures("chief 0", 10, 0, 3)]
TABLE = """
server  load  pushes/s  updates/s  in/s  out/s  version  holds  waiting  shards
0        25%      12.5          0  2 MB    0 B        7   4 MB        2       0
1          -         -          -     -      -        -      -        -       -
server 1 at b:1 does not answer: the connection was lost
worker    clock  steps/s      heard
worker 0      9      2.5  0.3 s ago
chief 0      10        0  3.0 s ago
staleness  pushes  now
0           75.0%  ██████████████████
1            0.0%
2            0.0%
3-4         25.0%  ██████
dropped         stale 3 (0/s)
in by kind      push 2 MB/s
push by filter  int8(256) 1.9 MB/s
"""


def test_the_table_of_two_readings() -> None:
    text = table(Figures(2.0, SERVERS, WORKERS))
    first, rest = text.split("\n", 1)
    assert first.endswith("2 servers, 2 workers, over 2.0 s")
    assert "\n" + rest == TABLE


def test_shards_that_move_are_listed() -> None:
    moving = {**SHARD, "places": [2, 0]}
    stats = {**STATS, "shards": {"0": SHARD, "4": moving, "5": moving}}
    text = table(Figures(2.0, [SERVERS[0]._replace(stats=stats)], []))
    assert "moving shards: 4 to server 2, 5 to server 2" in text.splitlines()


def test_the_table_of_the_first_reading_has_no_rates() -> None:
    once = SERVERS[0]._replace(rates={})
    text = table(Figures(0.0, [once], WORKERS[:1]))
    assert "over" not in text
    assert "since the start" in text and "60.0%" in text
    assert text.splitlines()[2].split()[1:6] == ["-"] * 5


def test_staleness_is_counted_in_bins_of_powers_of_two() -> None:
    assert bins({}) == {"0": 0, "1": 0}
    found = bins({"0": 1, "2": 2, "3": 3, "4": 4, "5": 5, "9": 6, "99": 0})
    assert found == {"0": 1, "1": 0, "2": 2, "3-4": 7, "5-8": 5, "9-16": 6}


def test_text_is_cut_to_the_size_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = os.terminal_size((5, 4))
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: size)
    assert redrawn("1234567\n2\n3\n4\n5\n", 0) == ("\x1b[J12345\n2\n3\n", 3)
    assert redrawn("1\n", 3) == ("\x1b[3A\x1b[J1\n", 1)
