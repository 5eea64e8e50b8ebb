"""Profiles in files, annotations, the server, memory."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow import profiler
from fxflow.errors import ArgumentError
from fxflow.profiler import tracing


def events(folder: Path) -> list[dict[str, Any]]:
    """What Perfetto reads."""
    (path,) = folder.glob("plugins/profile/*/[!p]*.trace.json.gz")
    found: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))[
        "traceEvents"
    ]
    return found


def test_steps_and_programs_are_in_the_trace(tmp_path: Path) -> None:
    step = fxflow.jit(lambda x: x @ x)
    x = fnp.ones((16, 16))
    step(x)
    load = profiler.annotate_function(lambda: None, name="load")
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        for i in range(2):
            load()
            with profiler.StepTraceAnnotation("train", step_num=i):
                step(x).block_until_ready()
    found = events(tmp_path)
    steps = [e for e in found if e.get("name") == "train"]
    assert [int(e["args"]["step_num"]) for e in steps] == [0, 1]
    assert sum(e.get("name") == "load" for e in found) == 2
    ran = [e for e in found if "hlo_op" in e.get("args", {})]
    assert ran and all(e["args"]["hlo_module"].startswith("jit_") for e in ran)
    (copied,) = tmp_path.glob("plugins/profile/*/perfetto_trace.json.gz")
    assert len(json.loads(gzip.decompress(copied.read_bytes()))["traceEvents"]) == len(
        found
    )
    (planes,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    assert profiler.ProfileData.from_file(str(planes)).find_plane_with_name("/host:CPU")


def test_one_profile_at_a_time(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no profile is being recorded"):
        profiler.stop_trace()
    profiler.start_trace(str(tmp_path))
    with pytest.raises(RuntimeError, match=f"recorded for {tmp_path}"):
        profiler.start_trace(tmp_path)
    with pytest.raises(RuntimeError, match="report: a profile"):
        profiler.report(fnp.sin, 1.0)
    profiler.stop_trace()
    with pytest.raises(ZeroDivisionError), profiler.trace(tmp_path):
        raise ZeroDivisionError
    with pytest.raises(RuntimeError, match="no profile"):
        profiler.stop_trace()


def test_a_link_to_perfetto(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(tracing, "_PERFETTO_PORT", port)
    answers = []

    def follow() -> None:
        at = f"http://127.0.0.1:{port}/perfetto_trace.json.gz"
        while True:
            try:
                with urllib.request.urlopen(at, timeout=10) as answer:
                    answers.append((answer.headers, answer.read()))
                return
            except OSError:
                pass

    visitor = threading.Thread(target=follow)
    visitor.start()
    with profiler.trace(tmp_path, create_perfetto_link=True):
        pass
    visitor.join()
    (headers, body), *_ = answers
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert "traceEvents" in json.loads(gzip.decompress(body))
    assert f"?url=http://127.0.0.1:{port}/perf" in capsys.readouterr().out


def test_a_client_that_stops_reading_does_not_delay_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "large.json.gz"
    file.write_bytes(bytes(20_000_000))  # more than sockets hold
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(tracing, "_PERFETTO_PORT", port)
    monkeypatch.setattr(tracing, "_PATIENCE", 0.2)
    serving = threading.Thread(target=tracing._serve_once, args=(file,), daemon=True)
    serving.start()
    with socket.socket() as silent:
        while silent.connect_ex(("127.0.0.1", port)):
            pass
        silent.sendall(f"GET /{file.name} HTTP/1.0\r\n\r\n".encode())
        at = f"http://127.0.0.1:{port}/{file.name}"
        with urllib.request.urlopen(at, timeout=30) as answer:
            assert len(answer.read()) == 20_000_000
    serving.join(30)
    assert not serving.is_alive()


def test_annotations() -> None:
    with pytest.raises(ArgumentError, match="the name is a text, got 3"):
        profiler.TraceAnnotation(3)
    assert profiler.annotate_function(lambda x, *, y: x + y)(1, y=2) == 3

    def named() -> None:
        """Says so."""

    assert profiler.annotate_function(named).__doc__ == "Says so."


def test_the_server() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(RuntimeError, match="there is none"):
        profiler.stop_server()
    profiler.start_server(port)
    with pytest.raises(RuntimeError, match="there is one"):
        profiler.start_server(port)
    socket.create_connection(("127.0.0.1", port), timeout=10).close()
    profiler.stop_server()


def test_memory(tmp_path: Path) -> None:
    large = fxflow.jit(lambda: fnp.ones((1 << 20,)))()
    profiler.save_device_memory_profile(tmp_path / "memory.prof", backend="cpu")
    text = gzip.decompress((tmp_path / "memory.prof").read_bytes())
    assert b"allocations" in text and b"cpu:0" in text
    assert large.nbytes == 4 << 20
