"""`fxflow serve` from the command line: serving, draining, reloading."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from fxflow.errors import ServeError
from fxflow.serve.command import _parser, config_of, main
from tests.serve.server import ROOT, running

MODEL = "tests.serve.zoo:act"


def parsed(*arguments: str) -> Any:
    return config_of(_parser().parse_args(arguments))


def test_options_become_a_configuration() -> None:
    config = parsed("m.py:net.apply", "--slo", "20ms", "--input", "x=f32[b]")
    (model,) = config.models
    assert (model.name, model.slo) == ("apply", 0.02)
    assert model.source.inputs == {"x": "f32[b]"}
    assert (config.host, config.port, config.control) == ("127.0.0.1", 8000, False)


def test_options_replace_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('port = 1\n[models.a]\nsource = "m:a"\nslo = "5ms"\n')
    config = parsed(str(path), "--port", "2", "--replicas", "3", "--control")
    assert (config.port, config.control) == (2, True)
    assert (config.models[0].replicas, config.models[0].slo) == (3, 0.005)
    with pytest.raises(ServeError, match="are for a model"):
        parsed(str(path), "--factory")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.toml"], "No such file"),
        (["m:f", "--slo", "soon"], "a time must be"),
        (["m:f", "--input", "x"], "must be NAME=TYPE"),
        (["m:f", "--keys", "none"], "serve: none: No such file or directory\n"),
    ],
)
def test_invalid_arguments_exit_with_a_message(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    assert words in capsys.readouterr().err


def test_invalid_certificates_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("uvicorn", "starlette"):
        pytest.importorskip(name, reason="pip install 'fxflow[serve]'")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    arguments = ["m:f", f"--tls-cert={cert}", f"--tls-key={key}"]
    for words in ("key.pem: No such file", "are not a PEM certificate"):
        assert main(arguments) == 1
        assert words in capsys.readouterr().err
        cert.write_text("none")
        key.write_text("none")


@pytest.mark.parametrize("option", ["--port", "--grpc-port"])
def test_a_port_that_is_taken(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("uvicorn", "starlette", "grpc"):
        pytest.importorskip(name, reason="pip install 'fxflow[serve]'")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        # The last option wins.
        assert main([MODEL, "--port=0", f"{option}={port}"]) == 1
    said = capsys.readouterr().err
    assert f"cannot listen at 127.0.0.1:{port}: another process listens there" in said
    assert f"give another port by {option}, or 0" in said


@pytest.mark.parametrize(
    ("host", "words"),
    [("192.0.2.1", "does not have that address"), ("no.such.invalid", "not known")],
)
def test_hosts_that_cannot_be_bound_are_refused(
    host: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("uvicorn", "starlette"):
        pytest.importorskip(name, reason="pip install 'fxflow[serve]'")
    assert main([MODEL, "--port=0", f"--host={host}"]) == 1
    assert f"cannot listen at {host}:0: " in (said := capsys.readouterr().err)
    assert words in said or "resolution" in said


def test_serving_reloading_and_draining(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="pip install 'fxflow[serve]'")
    pytest.importorskip("starlette", reason="pip install 'fxflow[serve]'")
    pytest.importorskip("grpc", reason="pip install 'fxflow[serve]'")
    source = tmp_path / "served_scaled.py"
    source.write_text(
        "import time\ndef scaled(x):\n    time.sleep(float(x.max()) / 1e3)\n"
        "    return x * 2\n"
    )
    path = tmp_path / "serving.toml"
    path.write_text(
        f'log = "json"\nslo = "1s"\n[models.m]\nsource = "{source}:scaled"\n'
        'inputs = {x = "f32[b]"}\n'
    )
    with running(str(path), "--grpc-port", "0") as server:
        server.until(r"gRPC at 127\.0\.0\.1:\d+")
        assert server.ask("POST", "/predict/m", [3]) == (200, {"output": [6.0]})
        assert server.ask("GET", "/v2/health/ready") == (200, {"ready": True})

        source.write_text("def scaled(x):\n    return x * 5\n")
        server.process.send_signal(signal.SIGHUP)
        server.until("all models were reloaded")
        assert server.ask("POST", "/predict/m", [3]) == (200, {"output": [15.0]})
        source.write_text("def scaled(x) return x")
        server.process.send_signal(signal.SIGHUP)
        server.until("not reloaded")
        assert server.ask("POST", "/predict/m", [3]) == (200, {"output": [15.0]})

        source.write_text(
            "import time\ndef scaled(x):\n    time.sleep(float(x.max()) / 1e3)\n"
            "    return x * 7\n"
        )
        steps = tmp_path / "served_steps.py"
        steps.write_text(
            "import time\ndef steps(x):\n    for k in range(8):\n        yield x + k\n"
            "        time.sleep(float(x.max()) / 8e3)\n"
        )
        path.write_text(
            path.read_text()
            + f'[models.s]\nsource = "{steps}:steps"\ninputs = {{x = "f32[b]"}}\n'
        )
        server.process.send_signal(signal.SIGHUP)
        server.until("(?s)models were reloaded.*not reloaded.*models were reloaded")
        found: list[Any] = []
        thread = threading.Thread(
            target=lambda: found.append(server.ask("POST", "/predict/m", [800]))
        )
        thread.start()
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("POST", "/predict/s", "[800]")
        stream = connection.getresponse()
        assert json.loads(stream.readline()[6:]) == {"output": [800.0]}
        server.process.send_signal(signal.SIGTERM)
        # Draining also finishes streams.
        assert b"807.0" in stream.read() and stream.isclosed()
        connection.close()
        thread.join()
        assert found == [(200, {"output": [5600.0]})]
        assert server.process.wait(20) == 0
        server._thread.join()
        events = [json.loads(line) for line in server.lines if line[0] == "{"]
        requests = [e for e in events if e["message"] == "request"]
        assert {e["status"] for e in requests} == {200}
        assert requests[0]["path"] == "/predict/m" and requests[0]["seconds"] > 0


def test_only_failed_requests_are_logged() -> None:
    pytest.importorskip("uvicorn", reason="pip install 'fxflow[serve]'")
    pytest.importorskip("starlette", reason="pip install 'fxflow[serve]'")
    arguments = [MODEL, "--input", "x=f32[b,2]", "--log-requests", "failed"]
    with running(*arguments) as server:
        assert server.ask("POST", "/predict/act", [[10, 11]])[0] == 200
        assert server.ask("POST", "/predict/act", [[10]])[0] == 400
        server.until("status=400")
        assert "status=200" not in "".join(server.lines)


def test_a_missing_model_exits_with_a_message() -> None:
    pytest.importorskip("uvicorn", reason="pip install 'fxflow[serve]'")
    pytest.importorskip("starlette", reason="pip install 'fxflow[serve]'")
    done = subprocess.run(
        [sys.executable, "-m", "fxflow", "serve", "tests.serve.zoo:none", "--port=0"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 1
    assert "there is no 'none' in 'tests.serve.zoo'" in done.stderr
    assert "Traceback" not in done.stderr  # the message is enough
