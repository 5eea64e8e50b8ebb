"""Servers that are measured, each started as people start it, and load upon them."""

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
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent.resolve()
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

import run  # noqa: E402
from load import MARK  # noqa: E402
from weights import images  # noqa: E402

_UP = re.compile(r" at http://127\.0\.0\.1:(\d+)")


@dataclass
class Server:
    """One that runs.

    Attributes:
      port: on this machine.
      path: of the route for predictions.
      process: the first of its processes.
      lines: what it wrote.
    """

    port: int
    path: str
    process: subprocess.Popen
    lines: list[str] = field(default_factory=list)

    def pids(self) -> list[int]:
        """The numbers of its processes, its own first."""
        return descendants(self.process.pid)

    def cpu(self) -> dict[int, float]:
        """CPU seconds of each of its processes."""
        found = {}
        for pid in self.pids():
            with contextlib.suppress(OSError):
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks = int(stat[11]) + int(stat[12])
                found[pid] = ticks / os.sysconf("SC_CLK_TCK")
        return found

    def memory(self) -> int:
        """Resident bytes of its first process."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


def descendants(pid: int) -> list[int]:
    """A process and its children's children, those that there are."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in task.read_text().split():
                found += descendants(int(child))
    return found


@contextlib.contextmanager
def started(
    command: list[str], path: str, form: str, port: int = 0, **more: str
) -> Iterator[Server]:
    """A server, until the block ends.

    Args:
      command: that starts it.
      path: of the route for predictions.
      form: of the bodies: it is up when one is answered.
      port: at which it listens; 0: it says so.
      more: variables of its environment.
    """
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=HERE,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}", **more},
        start_new_session=True,
    )
    assert process.stderr is not None
    server = Server(port, path, process)

    def read() -> None:
        for line in process.stderr:
            # Thousands of requests may be logged; what is kept is bounded.
            server.lines[500:] = [line]
            if not server.port and (found := _UP.search(line)):
                server.port = int(found[1])

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        end = time.monotonic() + 180
        while not (server.port and _answers(server, form)):
            time.sleep(0.1)
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{command} does not start:\n{''.join(server.lines)}")
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with contextlib.suppress(ProcessLookupError):  # what it has left behind
            os.killpg(process.pid, signal.SIGKILL)
        thread.join(5)


def _answers(server: Server, form: str) -> bool:
    """Whether it predicts."""
    asked = bodies(form, 1)
    body = base64.b64decode(asked["bodies"][0])
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        connection.request("POST", server.path, body, asked["headers"])
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def free_port() -> int:
    """A port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def fxflow(
    model: str, *options: str, slo: str = "20ms"
) -> contextlib.AbstractContextManager[Server]:
    """``fxflow serve`` with one of the models, by the protocol's route."""
    command = [sys.executable, "-m", "fxflow", "serve", f"models.py:{model}"]
    command += ["--port", "0", "--slo", slo, "--log-requests", "failed", *options]
    return started(command, f"/v2/models/{model}/infer", "v2 json")


@contextlib.contextmanager
def streaming(streams: int) -> Iterator[Server]:
    """A generator of 100 small results, `streams` at once, as server-sent events."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml", dir=HERE) as file:
        file.write(f'[models.steps]\nsource = "models.py:steps"\nstreams = {streams}\n')
        file.flush()
        command = [sys.executable, "-m", "fxflow", "serve", file.name, "--port", "0"]
        command += ["--log-requests", "failed"]
        with started(command, "/predict/steps", "json") as server:
            yield server


#: Libraries that are called in handlers, each in several forms (`peers.FORMS`); "none":
#: the handler returns a part of its input, whatever the model.
LIBRARIES = ("none", "jax", "torch", "onnxruntime")
FASTAPI = ("fastapi", "uvicorn[standard]", "orjson")
#: A peer → the packages of its environment.
REQUIREMENTS = {
    "none": [*FASTAPI, "numpy"],
    "jax": [*FASTAPI, "jax==0.10.2", "jaxlib==0.10.2"],
    "torch": [*FASTAPI, "torch==2.13.0", "numpy"],
    "onnxruntime": [*FASTAPI, "onnx", "onnxruntime"],
    "mlserver": ["mlserver", "onnx", "onnxruntime"],
    "bentoml": ["bentoml", "onnx", "onnxruntime"],
    "ray": ["ray[serve]==2.60.0", "onnx", "onnxruntime"],
}


run.REQUIREMENTS |= {f"serving_{name}": what for name, what in REQUIREMENTS.items()}


@contextlib.contextmanager
def peer(name: str, model: str, form: str) -> Iterator[Server]:
    """Another server with the same model.

    Args:
      name: of `REQUIREMENTS`; the libraries are handlers under FastAPI, in the form of
        `peers.FORMS` that follows a slash, as in ``torch/threads`` (default: async).
      model: of `weights.MODELS`.
      form: of the bodies (see `bodies`).
    """
    name, _, handler = name.partition("/")
    python = Path(run.environment(f"serving_{name}"))
    port = free_port()
    shared = {"MODEL": model, "PORT": str(port)}
    if name in LIBRARIES:
        command = [str(python), "peers.py", "fastapi", name, model]
        command.append(handler or "async")
        with started(command, f"/{form}", form, port, **shared) as server:
            yield server
    elif name == "ray":
        command = [str(python), "peers.py", "ray", model]
        with started(command, "/json", form, port, **shared) as server:
            yield server
    elif name == "bentoml":
        command = [str(python.with_name("bentoml")), "serve", "peers:Bento"]
        with started(
            [*command, "--port", str(port)], "/json", form, port, **shared
        ) as server:
            yield server
    else:
        with tempfile.TemporaryDirectory() as folder:
            ports = {f"{kind}_port": free_port() for kind in ("grpc", "metrics")}
            settings = {
                "http_port": port,
                **ports,
                "debug": False,
                "parallel_workers": 0,
            }
            Path(folder, "settings.json").write_text(json.dumps(settings))
            batching = {"max_batch_size": 64, "max_batch_time": 0.002}
            of_model = {"name": model, "implementation": "peers.Served", **batching}
            Path(folder, "model-settings.json").write_text(json.dumps(of_model))
            command = [str(python.with_name("mlserver")), "start", folder]
            path = f"/v2/models/{model}/infer"
            with started(command, path, "v2 json", port, **shared) as server:
                yield server


# -- what is asked ---------------------------------------------------------------------


def bodies(form: str, count: int = 64, numbered: bool = False) -> dict[str, Any]:
    """Bodies and headers of requests of one row each, as a `Plan` has them.

    Args:
      form: ``v2 json``, ``v2 binary`` (the Open Inference Protocol), ``json`` (an
        object with `x`, a list of rows) or ``binary`` (the numbers' bytes).
      count: of different ones.
      numbered: whether they have an id, which answers have then, too (v2 only).
    """
    made = []
    headers = {"Content-Type": "application/json"}
    for row in images(count):
        x: dict[str, Any] = {"name": "x", "shape": [1, row.size], "datatype": "FP32"}
        head = {"id": MARK.decode()} if numbered else {}
        # As short as they are: seven digits say what a float32 is.
        numbers = [float(f"{v:.7g}") for v in row]
        match form:
            case "v2 json":
                text = json.dumps({**head, "inputs": [{**x, "data": numbers}]}).encode()
            case "v2 binary":
                x["parameters"] = {"binary_data_size": row.nbytes}
                binary = {"parameters": {"binary_data_output": True}}
                start = json.dumps({**head, "inputs": [x], **binary}).encode()
                text = start + row.tobytes()
                headers = {
                    "Content-Type": "application/octet-stream",
                    "Inference-Header-Content-Length": str(len(start)),
                }
            case "json":
                text = json.dumps({"x": [numbers]}).encode()
            case "binary":
                text = row.tobytes()
                headers = {"Content-Type": "application/octet-stream"}
            case _:
                raise KeyError(form)
        made.append(base64.b64encode(text).decode())
    return {"bodies": made, "headers": headers}


def load(server: Server, asked: dict[str, Any], **plan: Any) -> dict[str, Any]:
    """Runs the generator in a process of its own; its report and CPU times.

    Args:
      server: which is asked.
      asked: of `bodies`.
      plan: the other attributes of a `Plan`.

    Returns:
      The report; ``server_us`` and ``others_us``: CPU time for each request of the
      server's first process, and of all others (the models'); ``good_us``: of all of
      them for each answer of status 200.
    """
    whole = {"port": server.port, "path": server.path, **asked, **plan}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(whole, file)
        file.flush()
        before = server.cpu()
        done = subprocess.run(
            [sys.executable, str(HERE / "load.py"), file.name],
            capture_output=True,
            text=True,
        )
        after = server.cpu()
    if done.returncode:
        raise SystemExit(done.stderr)
    report: dict[str, Any] = json.loads(done.stdout)
    used = {pid: after[pid] - before.get(pid, 0.0) for pid in after}
    own = used.pop(server.process.pid, 0.0)
    # CPU time is that of the whole plan, with the seconds whose requests do not count.
    whole_plan = plan["seconds"] / (plan["seconds"] - plan.get("warm", 0.0))
    answered = sum(n for status, n in report["statuses"].items() if int(status) >= 0)
    each = 1e6 / max(1.0, answered * whole_plan)
    good = max(1.0, report["good_per_second"] * plan["seconds"])
    report["server_us"], report["others_us"] = own * each, sum(used.values()) * each
    report["good_us"] = (own + sum(used.values())) / good * 1e6
    return report
