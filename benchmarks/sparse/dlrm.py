"""Trains a DLRM on servers and workers: fxflow, PyTorch's RPC and DDP, TorchRec, Ray.

    python benchmarks/sparse/dlrm.py --python VENV/bin/python

`VENV` is an environment with torch, torchrec, fbgemm-gpu-cpu and ray; for `--systems
fxflow` none is needed. All processes are on this machine and share its cores. fxflow,
PyTorch's RPC and Ray have two servers, which hold the rows, and two asynchronous
workers; DDP (all rows in each process) and TorchRec (a part of the rows in each) have
two processes that make steps together. They train for some seconds, after five steps
that do not count; the first worker evaluates 20,000 other examples every two seconds,
which do not count either. Systems take turns.

Columns: examples/s of all workers; seconds until the area under the curve (AUC) is
above `--auc`; the AUC at the end; megabytes of all processes; kilobytes of messages of
a step: fxflow counts its own, DDP's and TorchRec's are those of the loopback device,
and the others use shared memory.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
SYSTEMS = ("fxflow", "torch RPC", "torch DDP", "TorchRec", "Ray")
BATCH = 2048


def loopback() -> int:
    """Returns the bytes that the loopback device has sent."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "lo":
            return int(counts.split()[8])
    return 0


def descendants(root: int) -> set[int]:
    """Returns the process and all that it has started."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
    found = {root}
    while more := {p for p, up in parents.items() if up in found} - found:
        found |= more
    return found


def resident(processes: set[int]) -> float:
    """Returns the megabytes of processes; shared pages count once."""
    total = 0
    for process in processes:
        try:
            text = Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue
        [line] = [line for line in text.splitlines() if line.startswith("Pss:")]
        total += int(line.split()[1])
    return total / 1e3


def measured(
    system: str, python: str, given: argparse.Namespace
) -> dict[str, Any] | None:
    """Runs one system once; returns None if it failed."""
    settings = [str(given.seconds), str(given.servers), str(given.workers)]
    before = loopback()
    process = subprocess.Popen(
        [python, str(HERE / "dlrm_worker.py"), system, *settings],
        env={
            **os.environ,
            "PYTHONPATH": str(HERE.parents[1]),
            "PYTHONWARNINGS": "ignore",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    done, memory = threading.Event(), [0.0]

    def watch() -> None:
        while not done.wait(1.0):
            memory.append(resident(descendants(process.pid)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    output, _ = process.communicate()
    done.set()
    watcher.join()
    if process.returncode:
        print(f"{system} failed; run dlrm_worker.py to see how", file=sys.stderr)
        return None
    workers = json.loads(output.splitlines()[-1])
    pace = sum(worker["pace"] for worker in workers)
    steps = pace / BATCH * given.seconds
    sent = sum(worker.get("bytes", 0) for worker in workers)
    if system in ("torch DDP", "TorchRec"):
        sent = loopback() - before
    [curve] = [worker["curve"] for worker in workers if worker["curve"]]
    return {
        "pace": pace,
        "reached": next((s for s, auc in curve if auc > given.auc), np.inf),
        "auc": curve[-1][1],
        "memory": max(memory),
        "sent": sent / steps / 1e3 or np.nan,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="has the peers")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--auc", type=float, default=0.7)
    parser.add_argument("--rounds", type=int, default=3, help="medians are printed")
    given = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in given.systems}
    for _ in range(given.rounds):
        for name, runs in found.items():
            python = sys.executable if name == "fxflow" else given.python
            run = measured(name, python, given)
            runs += [] if run is None else [run]
    print(
        f"| system | examples/s | of fxflow | s to {given.auc} | AUC | MB | kB/step |"
    )
    print("| --- | --: | --: | --: | --: | --: | --: |")
    ours = None
    for name, runs in found.items():
        if not runs:
            print(f"| {name} | failed | | | | | |", flush=True)
            continue
        middle = {key: np.median([run[key] for run in runs]) for key in runs[0]}
        ours = middle["pace"] if ours is None else ours
        cells = [
            f"{middle['pace']:,.0f}",
            f"{middle['pace'] / ours:.2f}",
            f"{middle['reached']:.0f}" if np.isfinite(middle["reached"]) else "-",
            f"{middle['auc']:.3f}",
            f"{middle['memory']:,.0f}",
            f"{middle['sent']:,.0f}" if middle["sent"] == middle["sent"] else "-",
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
