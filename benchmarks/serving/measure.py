"""What `fxflow serve` does under load, beside other servers.

    python benchmarks/serving/measure.py batching [--models linear,cnn] [--json FILE]

Each section prints a table; `--json` adds what it found to a file, from which
`pictures.py` draws. *Throughput at a p99* is the highest rate of Poisson arrivals at
which 99 % of all requests are answered within the objective, counted from when they
were to be sent; a request that was refused counts as one that took forever. It is found
by bisection below what a closed loop of 64 requests gets.
"""

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peers import FORMS
from servers import (
    HERE,
    LIBRARIES,
    ROOT,
    Server,
    bodies,
    fxflow,
    load,
    peer,
    streaming,
)
from weights import MODELS

OBJECTIVE = 20.0  # ms
POINTS, SECONDS, WARM = 5, 2.5, 0.5
#: A rate is tried again where the objective is missed: the machine may have been away.
TRIES = 2


def throughput(server: Server, asked: dict[str, Any]) -> dict[str, Any]:
    """The highest rate at which the objective is kept, and what it looks like there.

    Args:
      server: which is asked.
      asked: of `bodies`.

    Returns:
      ``rate`` (0: none), ``closed`` (a second, of 64 in flight), and of the best point
      p50, p99 and CPU time.
    """
    load(server, asked, closed=16, seconds=0.7)
    closed = load(server, asked, closed=64, seconds=1.5, warm=0.3)
    low, high = 0.0, 1.1 * max(20.0, closed["good_per_second"])
    best: dict[str, Any] = {}
    rate = 0.75 * high
    for _ in range(POINTS):
        plan = {"rate": rate, "seconds": SECONDS, "warm": WARM, "grace": 1.0}
        tries = (load(server, asked, **plan) for _ in range(TRIES))
        kept = (one for one in tries if one["p99"] <= OBJECTIVE)
        if found := next(kept, None):
            low, best = rate, found
        else:
            high = rate
        rate = (low + high) / 2
    return {
        "rate": low,
        "closed": closed["good_per_second"],
        **{name: best.get(name) for name in ("p50", "p99")},
        "server_us": closed["server_us"],
        "others_us": closed["others_us"],
        "client_us": closed["cpu_us_per_request"],
    }


class Found(dict[str, Any]):
    """What a section has found so far, which is kept when it is ended early."""

    kept: Path | None = None

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        print(key, value, file=sys.stderr, flush=True)
        if self.kept is not None:
            old = json.loads(self.kept.read_text()) if self.kept.exists() else {}
            section = old.setdefault(sys.argv[1], {})
            section[key] = value
            self.kept.write_text(json.dumps(old, indent=1))


def capacities(
    servers: dict[str, tuple[Server, dict[str, Any]]], rounds: int
) -> dict[str, Any]:
    """What closed loops of 64 requests get of each server, in turns: the best of each.

    Where other work shares the machine this still compares, unlike a 99th percentile.
    """
    found: dict[str, Any] = {}
    for turn in range(rounds + 1):
        for key, (server, asked) in servers.items():
            one = load(server, asked, closed=64, seconds=1.2, warm=0.2)
            if turn:  # the first is for warming up
                best = found.setdefault(key, one)
                for name, pick in (
                    *(("good_per_second", max), ("good_p50", min), ("good_p99", min)),
                    *(("server_us", min), ("others_us", min), ("good_us", min)),
                ):
                    best[name] = pick(best[name], one[name])
    return found


def shown(value: Any) -> str:
    """A cell of a table."""
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(heads: list[str], rows: list[list[Any]]) -> None:
    """Prints a table."""
    print("| " + " | ".join(heads) + " |")
    print("| --- |" + " --: |" * (len(heads) - 1))
    for row in rows:
        print("| " + " | ".join(map(shown, row)) + " |", flush=True)


# -- sections --------------------------------------------------------------------------


def batching(models: list[str]) -> Any:
    """Throughput under each policy; 128 rows at the most."""
    found = Found()
    for model in models:
        for policy in ("none", "fixed", "aimd", "quantile"):
            options = ["--batching", policy, "--max-batch", "128"]
            with fxflow(model, *options) as server:
                found[f"{model} {policy}"] = throughput(server, bodies("v2 binary"))
    heads = ["model", "none", "fixed 128", "AIMD", "quantile", "AIMD / none"]
    rows = []
    for model in models:
        of = {p: found[f"{model} {p}"] for p in ("none", "fixed", "aimd", "quantile")}
        rates = [of[p]["rate"] for p in of]
        rows.append([model, *rates, rates[2] / rates[0] if rates[0] else None])
    table(heads, rows)
    return found


def sizes(models: list[str]) -> Any:
    """The most rows that a model computes in time, in a process of its own.

    The fastest of 15 calls, wall and CPU time: other work on the machine adds to both.
    """
    code = (
        "import json, sys, time, numpy as np, models\n"
        "model = getattr(models, sys.argv[1])\n"
        "model.prepare(1)\n"  # parameters on the device
        "run = model._function\n"
        "found = {}\n"
        "for n in [round(2 ** (k / 2)) for k in range(0, 29)]:\n"
        "    x = np.random.default_rng(0).random((n, 784), np.float32)\n"
        "    args = (*model._params, x)\n"
        "    taken, cpu = [], []\n"
        "    for _ in range(18):\n"
        "        begun = time.perf_counter(), time.process_time()\n"
        "        np.asarray(run(*args))\n"
        "        taken.append(time.perf_counter() - begun[0])\n"
        "        cpu.append(time.process_time() - begun[1])\n"
        "    found[n] = 1e3 * min(taken[3:]), 1e3 * min(cpu[3:])\n"
        "    if min(taken[3:]) > 0.15: break\n"
        "print(json.dumps(found))\n"
    )
    found = Found()
    for model in models:
        done = subprocess.run(
            [sys.executable, "-c", code, model],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}"},
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        times = {int(n): ms for n, ms in json.loads(done.stdout).items()}
        fits = max((n for n, (ms, _) in times.items() if ms <= OBJECTIVE), default=0)
        found[model] = {"most": fits, "times": times}
    rows = []
    for model, of in found.items():
        times, most = of["times"], of["most"]
        each = times[most][1] / most if most else None
        rows.append([model, most, *times[1], each, each and times[1][1] / each])
    heads = ["model", "most rows in 20 ms", "one row, ms", "its CPU, ms"]
    table([*heads, "CPU ms a row in the largest", "times less"], rows)
    return found


def variants(model: str, options: dict[str, list[str]], rounds: int) -> dict[str, Any]:
    """Servers of one model that differ in options, in turns."""
    with contextlib.ExitStack() as stack:
        running = {
            key: (stack.enter_context(fxflow(model, *more)), bodies("v2 binary"))
            for key, more in options.items()
        }
        for key, (server, _) in running.items():
            wait_for(server, int(key) if key.isdigit() else 1)
        return capacities(running, rounds)


def several(models: list[str], options: dict[str, list[str]], rounds: int) -> Found:
    """The same for each model, and a table."""
    found = Found()
    for model in models:
        for key, of in variants(model, options, rounds).items():
            found[f"{model}, {key}"] = of
    rows = [
        [key, of["good_per_second"], of["good_p50"], of["server_us"], of["others_us"]]
        for key, of in found.items()
    ]
    heads = ["model, option", "requests/s", "p50, ms", "server µs", "others µs"]
    table(heads, rows)
    return found


def delays(models: list[str], rounds: int) -> Any:
    """A batch that is not full waits for more."""
    waits = ("0ms", "1ms", "2ms", "4ms")
    return several(models, {w: ["--delay", w] for w in waits}, rounds)


def cache(models: list[str], rounds: int) -> Any:
    """All requests are known after the first 64, or none is kept."""
    options = {"no cache": [], "known": ["--cache", "64MiB"]}
    return several(models, options, rounds)


def replicas(models: list[str], rounds: int) -> Any:
    """Several processes of a model."""
    counts = ("1", "2", "3", "4")
    return several(models, {n: ["--replicas", n] for n in counts}, rounds)


#: Forms of a handler that differ for a kind of body: only JSON has a parser.
HANDLERS = {"json": tuple(FORMS), "binary": ("async", "threads", "workers")}


def peers(models: list[str], names: list[str], forms: list[str]) -> Any:
    """The same models behind other servers, libraries in each form of a handler.

    The best form of a library is shown as the library's, with its name.
    """
    found = Found()
    for model in models:
        for form in forms:
            key = f"{model}, {form}"
            with fxflow(model, "--max-batch", "128") as server:
                found[f"{key}, fxflow"] = throughput(server, bodies(f"v2 {form}"))
            for name in names:
                asked = bodies("v2 json" if name == "mlserver" else form)
                if name not in LIBRARIES:
                    with peer(name, model, form) as server:
                        found[f"{key}, {name}"] = throughput(server, asked)
                    continue
                tried = {}
                for handler in HANDLERS[form]:
                    with peer(f"{name}/{handler}", model, form) as server:
                        of = throughput(server, asked)
                    tried[handler] = found[f"{key}, {name}/{handler}"] = of
                best = best_of(tried)
                found[f"{key}, {name}"] = {**tried[best], "handler": best}
    rows = []
    for key, of in found.items():
        ours = found[f"{key.rpartition(', ')[0]}, fxflow"]
        ratio = ours["rate"] / of["rate"] if of["rate"] else None
        cpu, own = (one["server_us"] + one["others_us"] for one in (of, ours))
        what = FORMS.get(of.get("handler", key.rpartition("/")[2]), "")
        row = [key, what, of["rate"], of["closed"], of["p99"], cpu, ratio, cpu / own]
        rows.append(row)
    heads = ["model, body, server", "handler", "requests/s", "closed loop", "p99, ms"]
    table([*heads, "CPU µs", "fxflow / it", "its CPU / fxflow's"], rows)
    return found


def free(forms: list[str], rounds: int) -> Any:
    """A model that costs nothing, in turns with FastAPI's handlers: CPU time only."""
    found = Found()
    for form in forms:
        with contextlib.ExitStack() as stack:
            running = {}
            for name, options in (("fxflow --inline", ["--inline"]), ("fxflow", [])):
                server = stack.enter_context(fxflow("echo", *options))
                running[name] = server, bodies(f"v2 {form}")
            for handler in ("async", "lean"):
                server = stack.enter_context(peer(f"none/{handler}", "echo", form))
                running[f"FastAPI, {handler}"] = server, bodies(form)
            for name, of in capacities(running, rounds).items():
                found[f"{form}, {name}"] = of
    rows = []
    for key, of in found.items():
        ours = found[f"{key.partition(', ')[0]}, fxflow --inline"]
        row = [key, of["good_per_second"], of["good_p50"], of["good_us"]]
        rows.append([*row, of["good_us"] / ours["good_us"]])
    heads = ["body, server", "requests/s", "p50, ms", "CPU µs", "times --inline's"]
    table(heads, rows)
    return found


def best_of(tried: dict[str, dict[str, Any]]) -> str:
    """The form with the highest rate within the objective, or else of a closed loop."""
    return max(tried, key=lambda form: (tried[form]["rate"], tried[form]["closed"]))


def streams(models: list[str], rounds: int) -> Any:
    """Streams of 100 results that cost nothing: what a result takes."""
    found = Found()
    for count in (1, 4, 16):
        with streaming(count) as server:
            runs = [
                load(server, bodies("json"), closed=count, seconds=1.5, warm=0.3)
                for _ in range(rounds + 1)
            ]
            best = max(runs[1:], key=lambda one: one["good_per_second"])
            found[str(count)] = best
    rows = [
        [n, 100 * of["good_per_second"], of["server_us"] / 100, of["others_us"] / 100]
        for n, of in found.items()
    ]
    table(["streams", "results/s", "server µs a result", "others µs"], rows)
    return found


def watch(server: Server, over: threading.Event, memory: list[int]) -> None:
    """Notes the server's memory until it is over."""
    while not over.wait(0.2):
        memory.append(server.memory())


def turns(models: list[str], names: list[str], forms: list[str], rounds: int) -> Any:
    """Beside other servers, and the policies, in turns of a second."""
    found = Found()
    policies = ("none", "fixed", "aimd", "quantile")
    options = {p: ["--batching", p, "--max-batch", "128"] for p in policies}
    for model in models:
        for policy, of in variants(model, options, rounds).items():
            found[f"{model}, binary, {policy}"] = of
        for form in forms:
            with contextlib.ExitStack() as stack:
                ours = stack.enter_context(fxflow(model, "--max-batch", "128"))
                running = {"fxflow": (ours, bodies(f"v2 {form}"))}
                for name in names:
                    asked = bodies("v2 json" if name == "mlserver" else form)
                    server = stack.enter_context(peer(name, model, form))
                    running[name] = server, asked
                for name, of in capacities(running, rounds).items():
                    found[f"{model}, {form}, {name}"] = of
    rows = [
        [key, of["good_per_second"], of["good_p50"], of["server_us"], of["others_us"]]
        for key, of in found.items()
    ]
    heads = ["model, body, server", "requests/s", "p50, ms", "server µs", "others µs"]
    table(heads, rows)
    return found


def pinned(pids: list[int], cores: set[int]) -> None:
    """Lets all threads of processes run on these cores only."""
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), cores)


def recovery(series: list[list[float]]) -> float:
    """The end of the last tenth of a second in which less than 90 % were answered well.

    That is by status 200 within twice the objective.
    """
    asked: Counter[int] = Counter()
    well: Counter[int] = Counter()
    for due, taken, status in series:
        asked[int(10 * due)] += 1
        well[int(10 * due)] += status == 200 and taken <= 2 * OBJECTIVE / 1e3
    return max((w + 1 for w in asked if well[w] < 0.9 * asked[w]), default=0) / 10


def overload(models: list[str], seconds: float) -> Any:
    """Three times what it can do: goodput, memory, and how soon it is as before.

    The share by CPU is that of CPU time for each answer of status 200, refusals
    included: other work on the machine changes it little. The generator has a core of
    its own, the first, since generating that load would otherwise take time from the
    server; server and model have the others. It gives up requests that find none of its
    connections free within the deadline.
    """
    found = Found()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:1])
    for model in models:
        with fxflow(model, "--max-batch", "128") as server:
            wait_for(server, 1)
            pinned(server.pids(), set(cores[1:]))
            asked = bodies("v2 binary")
            load(server, asked, closed=16, seconds=1)
            closed = load(server, asked, closed=64, seconds=4)
            capacity = closed["good_per_second"]
            before = server.memory()
            memory: list[int] = []
            over = threading.Event()
            thread = threading.Thread(target=watch, args=(server, over, memory))
            thread.start()
            plan = {"rate": 3 * capacity, "seconds": seconds, "warm": 2}
            flood = load(server, asked, **plan, patience=5 * OBJECTIVE / 1e3)
            over.set()
            thread.join()
            after = load(server, asked, rate=capacity / 2, seconds=4, series=True)
            series = after.pop("series")
            found[model] = {
                "capacity": capacity,
                "goodput": flood["good_per_second"],
                "cpu_us": closed["good_us"],
                "flood_cpu_us": flood["good_us"],
                "good_p99": flood["good_p99"],
                "statuses": flood["statuses"],
                "before": before,
                "most": max(memory),
                "last": memory[-1],
                "recovered": recovery(series),
                "after_p99": after["p99"],
            }
    rows = [
        [
            m,
            of["capacity"],
            of["goodput"],
            of["goodput"] / of["capacity"],
            of["cpu_us"],
            of["flood_cpu_us"],
            of["cpu_us"] / of["flood_cpu_us"],
            of["good_p99"],
            of["before"] / 2**20,
            of["most"] / 2**20,
            of["recovered"],
        ]
        for m, of in found.items()
    ]
    heads = ["model", "capacity", "goodput at 3 ×", "share", "CPU µs an answer"]
    heads += ["at 3 ×", "share by CPU", "p99 of it, ms"]
    table([*heads, "MiB before", "MiB at most", "as before after, s"], rows)
    return found


def kill(server: Server, chosen: random.Random, killed: list[int]) -> None:
    """Kills one or two of the models' processes at some time of the next 2 s."""
    for _ in range(chosen.randint(1, 2)):
        time.sleep(chosen.uniform(0.2, 1.0))
        if victims := server.pids()[1:]:
            victim = chosen.choice(victims)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)


def wait_for(server: Server, replicas: int) -> None:
    """Returns when `replicas` processes of the model are ready."""
    for _ in range(600):
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics") as text:
            found = re.search(rb"replicas_ready{.*} ([0-9.]+)", text.read())
        if found and float(found[1]) >= replicas:
            return
        time.sleep(0.1)
    raise SystemExit("the model's processes do not come back")


def kills(models: list[str], rounds: int) -> Any:
    """`kill -9` of the model's processes under load: each request is answered once.

    Two replicas; in each round a seed chooses when each of them is killed.
    """
    found = Found()
    for model in models:
        options = ["--replicas", "2", "--deadline", "1s", "--slo", "100ms"]
        with fxflow(model, *options) as server:
            asked = bodies("v2 json", 16, numbered=True)
            for seed in range(rounds):
                killed: list[int] = []
                wait_for(server, 2)
                thread = threading.Thread(
                    target=kill, args=(server, random.Random(seed), killed)
                )
                thread.start()
                one = load(server, asked, rate=200, seconds=3, seed=seed)
                thread.join()
                found[f"{model} {seed}"] = {
                    **{
                        k: one[k] for k in ("asked", "statuses", "unanswered", "faults")
                    },
                    "killed": len(killed),
                    "p99": one["good_p99"],
                }
    rows = [
        [key, of["killed"], of["asked"], of["statuses"], of["unanswered"], of["faults"]]
        for key, of in found.items()
    ]
    table(["model, seed", "kills", "asked", "statuses", "unanswered", "faults"], rows)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sections: dict[str, Callable[..., Any]] = {
        f.__name__: f
        for f in (
            *(batching, sizes, delays, cache, replicas, peers),
            *(turns, overload, kills, streams, free),
        )
    }
    parser.add_argument("section", choices=sections)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--peers", default="jax,torch,onnxruntime")
    parser.add_argument("--forms", default="binary,json")
    parser.add_argument("--seconds", type=float, default=60.0, help="of overload")
    parser.add_argument("--rounds", type=int, default=20, help="of kills, turns")
    parser.add_argument("--json", type=Path, help="where the numbers go, too")
    given = parser.parse_args()
    more = {
        "peers": (given.peers.split(","), given.forms.split(",")),
        **dict.fromkeys(
            ("delays", "cache", "replicas", "kills", "streams"), (given.rounds,)
        ),
        "turns": (given.peers.split(","), given.forms.split(","), given.rounds),
        "overload": (given.seconds,),
    }
    section = given.section
    Found.kept = given.json
    if section == "free":
        free(given.forms.split(","), given.rounds)
        return
    sections[section](given.models.split(","), *more.get(section, ()))


if __name__ == "__main__":
    main()
