"""A tracer that keeps its spans in memory; `None` without OpenTelemetry."""

try:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
        InMemorySpanExporter,
    )
except ImportError:
    SPANS = TRACER = None
else:
    SPANS = InMemorySpanExporter()
    _provider = TracerProvider(shutdown_on_exit=False)
    _provider.add_span_processor(SimpleSpanProcessor(SPANS))
    TRACER = _provider.get_tracer("test")
