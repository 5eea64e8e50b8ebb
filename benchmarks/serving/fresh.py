"""A model that learns from feedback while it is served: how fresh, and how fast.

    python benchmarks/serving/fresh.py

Two parameter servers, a program that trains, and `fxflow serve --servers` run as
separate processes on this machine. A request shows ads, its label comes back by its id,
the trainer follows the file of labels, and the serving process reads the rows again.
`fresh` is the time from sending a label to the first answer that it changed; `load` is
an open loop of requests (`load.py`) while the trainer trains.
"""

import argparse
import base64
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent.resolve()
sys.path.insert(0, str(HERE.parents[1]))

from fxflow import nn, optim, train  # noqa: E402
from fxflow import numpy as fnp  # noqa: E402
from fxflow.distributed.parameter_server import TableSpec, asynchronous  # noqa: E402
from fxflow.train import data  # noqa: E402

IDS = 1_000_000
SPECS = [
    TableSpec("site", 8, optim.adagrad(0.2), rows=IDS),
    TableSpec("ads", 8, optim.adagrad(0.2), rows=IDS),
]
FEATURES = data.Features(
    {"site": data.Hash("site", IDS), "ads": data.Hash("ads", IDS, width=8)}
).fit([{"site": ["a"], "ads": [["a"]]}])
PARAMS = {"w": np.ones(8, np.float32), "b": np.float32(0)}
#: Rows of a step: other batches are padded, so that no step compiles.
SIZES = (8, 64, 512)


def logits(params: Any, rows: Any, batch: Any) -> Any:
    shown = (batch["ads"] > 0)[..., None]
    total = fnp.sum(rows["ads"] * shown, 1) + rows["site"]
    return total @ params["w"] + params["b"]


def predict(params: Any, rows: Any, batch: Any) -> Any:
    return {"click": nn.sigmoid(logits(params, rows, batch))}


def loss(params: Any, rows: Any, batch: Any) -> Any:
    found = logits(params, rows, batch)
    losses = nn.softplus(found) - batch["clicked"] * found
    return fnp.sum(losses * batch["weight"]) / fnp.sum(batch["weight"])


def padded(batch: dict[str, Any]) -> dict[str, Any]:
    count = len(batch["weight"])
    size = next(s for s in SIZES if s >= count)
    return {
        name: np.concatenate([a, np.zeros((size - count, *a.shape[1:]), a.dtype)])
        for name, a in batch.items()
    }


def train_on(path: str, servers: str) -> None:
    """Trains on labels as they arrive, until it is stopped."""
    trainer = train.table_trainer(
        loss,
        optim.sgd(0.01),
        SPECS,
        consistency=asynchronous(),
        cluster={"ps": servers.split(",")},
    )
    state = trainer.init(PARAMS)
    for size in SIZES:  # compile before labels come
        zeros = FEATURES({"site": [None] * size, "ads": [None] * size})
        blank = {"clicked": np.zeros(size, "f4"), "weight": np.ones(size, "f4")}
        ids = {"site": zeros["site"], "ads": zeros["ads"]}
        state, _ = trainer.step(state, {**zeros, **blank}, ids=ids)
    print("it trains", flush=True)
    columns = ["site", "ads", "_label"]
    follow = data.Follow(linger=0.1, poll=0.02)
    for found in data.json_lines(path, size=SIZES[-1], columns=columns, follow=follow):
        lists = {name: column.to_pylist() for name, column in found.items()}
        batch = FEATURES(lists)
        clicked = np.array(lists["_label"], np.float32)
        weight = np.ones(len(clicked), np.float32)
        batch = padded({**batch, "clicked": clicked, "weight": weight})
        ids = {"site": batch["site"], "ads": batch["ads"]}
        state, _ = trainer.step(state, batch, ids=ids)


# -- the processes ---------------------------------------------------------------------


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextlib.contextmanager
def process(*command: str, until: str = "") -> Any:
    """Runs a process; yields it, and what `until` matched in its output."""
    log = tempfile.TemporaryFile("w+")  # noqa: SIM115
    child = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        end = time.monotonic() + 120
        match = None
        while until and not match:
            time.sleep(0.05)
            log.seek(0)
            text = log.read()
            match = re.search(until, text)
            if not match and (child.poll() is not None or time.monotonic() > end):
                raise SystemExit(f"{command}: {text[-2000:]}")
        yield child, match
    finally:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
        log.close()


class Client:
    """A client with one connection."""

    def __init__(self, port: int) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(self, path: str, value: Any) -> tuple[Any, Any]:
        while True:
            self._http.request("POST", path, json.dumps(value))
            response = self._http.getresponse()
            found = json.loads(response.read())
            if response.status == 200:
                return found, response.headers
            if response.status not in (503, 504):  # late on a loaded machine
                raise SystemExit(f"{path}: {response.status} {found}")


def freshness(port: int, trials: int) -> dict[str, Any]:
    """Seconds from a label to the first answer that it changed."""
    client, times, ages = Client(port), [], []
    for k in range(trials):
        row = [{"site": f"fresh-{k}-{time.time()}", "ads": [f"new-{k}"]}]
        found, headers = client.ask("/predict/clicks", row)
        before = found["click"][0]
        begun = time.monotonic()
        client.ask("/feedback/clicks", {"id": headers["Request-Id"], "label": [1]})
        while True:
            found, headers = client.ask("/predict/clicks", row)
            ages.append(float(headers["Table-Age"]))
            if abs(found["click"][0] - before) > 1e-3:
                break
            if time.monotonic() - begun > 60:
                raise SystemExit("the label has changed nothing in 60 s")
            time.sleep(0.01)
        times.append(time.monotonic() - begun)
    return {
        "median_s": round(float(np.median(times)), 3),
        "most_s": round(max(times), 3),
        "oldest_rows_s": round(max(ages), 3),
        "trials": trials,
    }


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and its children."""
    total = 0.0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            own = int(path.parent.name)
            if pid in (own, int(fields[1])):
                total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def load(
    port: int, pids: dict[str, list[int]], rate: float, seconds: float
) -> dict[str, Any]:
    """Latencies, and CPU times of processes, under an open loop with skewed ids."""
    rng = np.random.default_rng(0)
    bodies = []
    for _ in range(2000):
        ads = [f"ad-{i}" for i in rng.zipf(1.3, 5) % 100_000]
        row = {"site": f"site-{rng.zipf(1.3) % 10_000}", "ads": ads}
        bodies.append(base64.b64encode(json.dumps([row]).encode()).decode())
    plan = {
        "port": port,
        "path": "/predict/clicks",
        "bodies": bodies,
        "headers": {"Content-Type": "application/json"},
        "rate": rate,
        "seconds": seconds,
        "warm": seconds / 4,
        "connections": 64,
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(json.dumps(plan))
        file.flush()
        before = {name: sum(map(cpu_of, of)) for name, of in pids.items()}
        text = subprocess.check_output(
            [sys.executable, str(HERE / "load.py"), file.name]
        )
        used = {n: sum(map(cpu_of, of)) - before[n] for n, of in pids.items()}
    report = json.loads(text)
    kept = ("asked", "statuses", "p50", "p90", "p99", "generator_late_ms")
    found = {name: report[name] for name in kept}
    for name, cpu in used.items():
        found[f"{name}_cpu_us_per_request"] = round(cpu / (rate * seconds) * 1e6, 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", nargs=2, metavar=("FILE", "SERVERS"))
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--trials", type=int, default=15)
    parser.add_argument("--staleness", type=float, default=1.0)
    parser.add_argument("--delay", default="0ms", help="how long a batch waits")
    options = parser.parse_args()
    if options.train:
        train_on(*options.train)
        return
    from fxflow import serve

    folder = Path(tempfile.mkdtemp())
    state = train.TrainerState(PARAMS, (), {})
    serve.save_recommender(folder / "clicks", predict, state, SPECS, FEATURES)
    labels = folder / "labels.jsonl"
    servers = ",".join(f"127.0.0.1:{free_port()}" for _ in range(2))
    config = folder / "serving.toml"
    config.write_text(
        f"""
port = 0
log_requests = "failed"
slo = "20ms"
delay = "{options.delay}"
[models.clicks]
source = "{folder / "clicks"}"
feedback = "{labels}"
arguments = {{servers = "{servers}", staleness = {options.staleness}}}
"""
    )
    labels.touch()
    python = (sys.executable, "-m", "fxflow")
    with contextlib.ExitStack() as stack:
        pids = []
        for number in range(2):
            command = (*python, "parameter-server", "--number", str(number))
            one, _ = stack.enter_context(process(*command, "--servers", servers))
            pids.append(one.pid)
        trainer = (sys.executable, __file__, "--train", str(labels), servers)
        stack.enter_context(process(*trainer, until="it trains"))
        child, match = stack.enter_context(
            process(*python, "serve", str(config), until=r" at http://127.0.0.1:(\d+)")
        )
        port = int(match[1])
        fresh = freshness(port, options.trials)
        of = {"server": [child.pid], "parameter_servers": pids}
        under_load = load(port, of, options.rate, options.seconds)
    print(json.dumps({"fresh": fresh, "load": under_load, "cores": os.cpu_count()}))


if __name__ == "__main__":
    main()
