"""Arrays that are alive, by the line that made them."""

from __future__ import annotations

import gc
import sys

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import memory
from fxflow.transforms import tracking

FILE = "test_tracking.py"
KEPT = []


def inner(n):
    kept = fnp.ones((n, 7, 13))  # inner
    KEPT.append(kept * 2)  # second
    return fnp.asarray(np.zeros((3, 7, 13, n)))  # third


def rows_of(report):
    return {row.line.rpartition("/")[2]: row for row in report.rows}


def test_lines_of_arrays():
    KEPT.clear()
    start = inner.__code__.co_firstlineno
    step = fxflow.jit(lambda x: x + 1)
    before = sys.gettrace()
    with memory.tracking():
        x = inner(50)
        y = step(x)
        pair = [fnp.full((11, 13), float(i)) for i in range(3)]
    assert sys.gettrace() is before
    report = memory.live()
    rows = rows_of(report)
    assert rows[f"test_tracking.py:{start + 2} (inner)"].largest == "f32[50,7,13]"
    assert rows[f"test_tracking.py:{start + 3} (inner)"].largest == "f32[3,7,13,50]"
    counts = {row.largest: row.arrays for name, row in rows.items() if FILE in name}
    assert counts["f32[11,13]"] == 3 and counts["f32[3,7,13,50]"] == 1
    assert report.nbytes >= x.nbytes + y.nbytes + 3 * pair[0].nbytes
    assert "in arrays" in str(report) and "(inner)" in str(report)
    # What is freed is forgotten.
    del x
    gc.collect()
    assert f"test_tracking.py:{start + 3} (inner)" not in rows_of(memory.live())


def test_arrays_made_outside():
    x = fnp.ones((17, 19, 23))
    rows = rows_of(memory.live())
    assert rows[tracking.NOT_TRACKED].nbytes >= x.nbytes
