"""Wrong types and values for each argument of each public function: a clear error.

They run in child processes, whose memory and patience have bounds: a crash or a call
that does not end is a finding like any other.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.sweeps import sampling
from tests.sweeps.bad_arguments import cases

ROOT = Path(__file__).parents[2]
# For one call; the longest compile a gamma distribution's program.
PATIENCE = 240


def lines(numbers: Sequence[int]) -> Iterator[str]:
    """What a process prints that runs the cases; the last may be `stopped: ...`."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.sweeps.bad_arguments"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "FXFLOW_NUM_CPU_DEVICES": "1"},
    )
    assert child.stdin is not None and child.stdout is not None
    printed: queue.Queue[str] = queue.Queue()

    def read(stream: Iterator[str]) -> None:
        for line in stream:
            printed.put(line)
        printed.put("")

    reader = threading.Thread(target=read, args=(child.stdout,))
    reader.start()
    try:
        child.stdin.write(" ".join(map(str, numbers)))
        child.stdin.close()
        while line := printed.get(timeout=PATIENCE):
            yield line
        if child.wait():
            yield f"stopped: exit status {child.returncode}"
    except queue.Empty:
        yield f"stopped: no answer within {PATIENCE} s"
    finally:
        child.kill()
        child.wait()
        reader.join()
        child.stdout.close()


def faults(numbers: Sequence[int]) -> dict[int, str]:
    """The cases that end as none may, and how."""
    found: dict[int, str] = {}
    todo = list(numbers)
    while todo:
        last = None
        for line in lines(todo):
            kind, _, rest = line.partition(" ")
            if kind == "begin":
                last = int(rest)
            elif kind == "fault":
                number, _, text = rest.partition(" ")
                found[int(number)] = json.loads(text)
            elif kind == "stopped:":
                assert last is not None, f"the process did not start: {rest}"
                found[last] = rest
                todo = todo[todo.index(last) + 1 :]
            else:
                todo = []
    return found


def test_wrong_arguments_are_refused_in_words() -> None:
    known = cases()
    numbers = sampling.sample(range(len(known)), 700, of="bad arguments")
    found = faults(numbers)
    told = "\n".join(f"{known[n]}: {text}" for n, text in sorted(found.items()))
    assert not found, f"seed {sampling.seed}, {len(found)} of {len(numbers)}:\n{told}"


def test_a_crash_names_its_case() -> None:
    assert faults([]) == {}
    assert list(lines([10**9]))[-1].startswith("stopped: exit status")
