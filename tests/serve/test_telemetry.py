"""Spans of requests, in OpenTelemetry's in-memory exporter."""

from __future__ import annotations

from typing import Any

import pytest

from fxflow.serve.service import Prediction
from fxflow.serve.telemetry import Tracing, exporting

sdk = pytest.importorskip(
    "opentelemetry.sdk.trace", reason="pip install 'fxflow[telemetry]'"
)
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def traced() -> tuple[Any, Tracing]:
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
        InMemorySpanExporter,
    )

    exporter = InMemorySpanExporter()
    provider = sdk.TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter, Tracing(provider.get_tracer("test"))


def test_a_request_and_its_parts(traced: tuple[Any, Tracing]) -> None:
    exporter, tracing = traced
    with tracing.request("POST /x", {"traceparent": PARENT}, url__path="/x") as span:
        span.set(fxflow__model="m", fxflow__rows=3)
        span.answered(Prediction({}, queued=0.25, ran=0.5, rows=8))
    assert span.trace == "0af7651916cd43dd8448eb211c80319c"
    queue, batch, request = exporter.get_finished_spans()
    assert (queue.name, batch.name, request.name) == ("queue", "batch", "POST /x")
    assert request.attributes == {
        "url.path": "/x",
        "fxflow.model": "m",
        "fxflow.rows": 3,
    }
    assert request.kind.name == "SERVER" and request.status.status_code.name == "UNSET"
    assert format(request.parent.span_id, "016x") == "b7ad6b7169203331"
    for part, seconds in ((queue, 0.25), (batch, 0.5)):
        assert part.parent.span_id == request.context.span_id
        assert (part.end_time - part.start_time) / 1e9 == pytest.approx(seconds)
    assert queue.end_time == batch.start_time and batch.attributes["fxflow.rows"] == 8


def test_cached_answers_and_failures(traced: tuple[Any, Tracing]) -> None:
    exporter, tracing = traced
    with tracing.request("r", {"traceparent": "nonsense"}) as span:
        span.answered(Prediction({}, 0.0, 0.0, 0))
        span.failed(404, "no such model")
    with tracing.request("r", {}) as span:
        span.failed(503, "it would be late")
    known, failed = exporter.get_finished_spans()
    assert known.parent is None and known.attributes == {"fxflow.cached": True}
    # A client error is not an error of the server span.
    assert known.status.status_code.name == "UNSET"
    assert failed.status.status_code.name == "ERROR"
    assert failed.status.description == "it would be late"


def test_spans_reach_a_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """An HTTP server receives the spans by OTLP."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    got: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        provider, tracer = exporting(f"http://127.0.0.1:{server.server_port}/v1/traces")
        with Tracing(tracer).request("POST /x", {}, fxflow__model="digits"):
            pass
        provider.shutdown()
        server.shutdown()
        thread.join()
    assert len(got) == 1 and b"fxflow-serve" in got[0] and b"digits" in got[0]
