"""OpenTelemetry traces of requests (extra `telemetry`).

Each request is a span, the child of the client's span in its `traceparent` header, and
has child spans for its time in the queue and in a batch. Without a tracer nothing is
recorded, and OpenTelemetry need not be installed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from fxflow.errors import ServeError
from fxflow.serve.service import Prediction


class RequestSpan:
    """A request's span; this class records nothing.

    Attributes:
      trace: trace id in hexadecimal; empty if the request is not traced.
    """

    trace = ""

    def set(self, **attributes: str | int | float) -> None:
        """Sets attributes.

        Args:
          **attributes: values by name, with ``__`` for a dot.
        """

    def answered(self, answer: Prediction) -> None:
        """Adds child spans for the queue and the batch, the latter ending now.

        Args:
          answer: the model's prediction.
        """

    def failed(self, status: int, words: str) -> None:
        """Records that the request failed.

        Args:
          status: HTTP status.
          words: the reason.
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
        arrived = begun - int(answer.queued * 1e9)
        for name, start, stop in (("queue", arrived, begun), ("batch", begun, end)):
            child = self._tracer.start_span(name, start_time=start)
            if name == "batch":
                child.set_attribute("fxflow.rows", answer.rows)
            child.end(stop)

    def failed(self, status: int, words: str) -> None:
        import opentelemetry.trace

        # By OpenTelemetry's conventions, only 5xx are errors of a server span.
        if status >= 500:
            code = opentelemetry.trace.StatusCode.ERROR
            self._span.set_status(code, words)


class Tracing:
    """Creates the spans of requests.

    Args:
      tracer: an OpenTelemetry tracer; None: nothing is recorded.

    Attributes:
      recording: whether there is a tracer.

    Raises:
      ServeError: a tracer is given, but OpenTelemetry is not installed.

    Example:
      >>> with Tracing().request("POST /predict/digits", {}) as span:
      ...     span.set(fxflow__model="digits")
      >>> span.trace
      ''
    """

    recording: bool

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
        """Records a span that lasts until the end of the block.

        Args:
          name: name of the span: method and route, without variable parts.
          carrier: headers; ``traceparent`` names the client's span.
          **attributes: initial attributes, with ``__`` for a dot.

        Returns:
          A context manager that yields the span.
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


def exporting(endpoint: str) -> tuple[Any, Any]:
    """Returns a provider and a tracer that export spans by OTLP over HTTP.

    The service is ``fxflow-serve`` unless ``OTEL_SERVICE_NAME`` gives another name.

    Args:
      endpoint: URL of the collector, such as ``http://127.0.0.1:4318/v1/traces``.

    Returns:
      The OpenTelemetry provider, which the caller shuts down, and its tracer.

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
        resource = resource.merge(Resource({"service.name": "fxflow-serve"}))
    # The server shuts the provider down; a hook at exit would do so twice.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = trace_exporter.OTLPSpanExporter(endpoint=endpoint, timeout=5)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider, provider.get_tracer("fxflow.serve")


def _missing() -> ServeError:
    return ServeError("traces need OpenTelemetry: pip install 'fxflow[telemetry]'")
