"""Traces of requests, as OpenTelemetry has them (extra `telemetry`).

A request is a span, a child of the client's span that its `traceparent` names; the time
that it waited and the time of its batch are spans within it. Without a tracer nothing
is recorded, and OpenTelemetry need not be installed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from fxflow.errors import ServeError
from fxflow.serve.service import Prediction


class RequestSpan:
    """A request's span; this one is not recorded.

    Attributes:
      trace: number of the trace in hexadecimal; empty: there is none.
    """

    trace = ""

    def set(self, **attributes: str | int | float) -> None:
        """Sets attributes; ``__`` stands for a dot.

        Args:
          **attributes: by name.
        """

    def answered(self, answer: Prediction) -> None:
        """Adds where the time of an answer went, as spans that end now.

        Args:
          answer: what the model gave.
        """

    def failed(self, status: int, words: str) -> None:
        """Notes that the server could not answer.

        Args:
          status: of HTTP.
          words: why.
        """


_UNRECORDED = nullcontext(RequestSpan())


class _Recorded(RequestSpan):
    def __init__(self, tracer: Any, span: Any) -> None:
        self._tracer, self._span = tracer, span
        self.trace = format(span.get_span_context().trace_id, "032x")

    def set(self, **attributes: str | int | float) -> None:
        self._span.set_attributes(
            {name.replace("__", "."): value for name, value in attributes.items()}
        )

    def answered(self, answer: Prediction) -> None:
        if not answer.rows:
            self.set(fxflow__cached=True)
            return
        end = time.time_ns()
        begun = end - int(answer.ran * 1e9)
        came = begun - int(answer.queued * 1e9)
        for name, start, stop in (("queue", came, begun), ("batch", begun, end)):
            part = self._tracer.start_span(name, start_time=start)
            if name == "batch":
                part.set_attribute("fxflow.rows", answer.rows)
            part.end(stop)

    def failed(self, status: int, words: str) -> None:
        import opentelemetry.trace

        # By the conventions, a client's mistake is not an error of the server.
        if status >= 500:
            code = opentelemetry.trace.StatusCode.ERROR
            self._span.set_status(code, words)


class Tracing:
    """Makes the spans of requests.

    Args:
      tracer: of OpenTelemetry; None: nothing is recorded.

    Attributes:
      recording: whether there is a tracer.

    Raises:
      ServeError: there is a tracer, but not OpenTelemetry.

    Example:
      >>> with Tracing().request("POST /predict/digits", {}) as span:
      ...     span.set(fxflow__model="digits")
      >>> span.trace
      ''
    """

    def __init__(self, tracer: Any = None) -> None:
        self._tracer = tracer
        self.recording = tracer is not None
        if not self.recording:
            return
        try:
            import opentelemetry.trace
            from opentelemetry.trace.propagation import tracecontext
        except ImportError:
            raise _missing() from None
        self._server = opentelemetry.trace.SpanKind.SERVER
        self._parents = tracecontext.TraceContextTextMapPropagator()

    def request(
        self, name: str, carrier: Mapping[str, str], **attributes: str | int | float
    ) -> AbstractContextManager[RequestSpan]:
        """Records a request, from here to the end of the block.

        Args:
          name: of the span: method and route, without what differs by request.
          carrier: headers, of which ``traceparent`` may name the client's span.
          **attributes: what is known; ``__`` stands for a dot.

        Returns:
          A context manager that gives the span.
        """
        if self._tracer is None:
            return _UNRECORDED
        return self._recorded(name, carrier, attributes)

    @contextmanager
    def _recorded(
        self, name: str, carrier: Mapping[str, str], attributes: Mapping[str, Any]
    ) -> Iterator[RequestSpan]:
        with self._tracer.start_as_current_span(
            name, context=self._parents.extract(carrier), kind=self._server
        ) as span:
            found = _Recorded(self._tracer, span)
            found.set(**attributes)
            yield found


def exporting(endpoint: str, service: str = "fxflow-serve") -> tuple[Any, Any]:
    """Returns what sends spans to a collector, by OTLP over HTTP.

    Args:
      endpoint: such as ``http://127.0.0.1:4318/v1/traces``.
      service: how the server is called among others, unless the environment's
        ``OTEL_SERVICE_NAME`` says.

    Returns:
      OpenTelemetry's provider, which is to be shut down at the end, and its tracer.

    Raises:
      ServeError: OpenTelemetry is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http import trace_exporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise _missing() from None
    resource = Resource.create()
    if resource.attributes.get("service.name", "").startswith("unknown"):
        resource = resource.merge(Resource({"service.name": service}))
    # The server's own end tells the provider's; Python's would be a second one.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = trace_exporter.OTLPSpanExporter(endpoint=endpoint, timeout=5)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider, provider.get_tracer("fxflow.serve")


def _missing() -> ServeError:
    return ServeError("traces need OpenTelemetry: pip install 'fxflow[telemetry]'")
