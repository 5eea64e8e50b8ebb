"""`jax.monitoring`: events of the program; fxflow itself records none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow.compat.jax._mirror import listen

_listeners: dict[str, list[Callable[..., None]]] = {}


def _channel(kind: str) -> tuple[Any, Any, Any]:
    def record(event: str, *values: Any, **kwargs: Any) -> None:
        """Tells the listeners of an event."""
        for listener in tuple(_listeners.get(kind, ())):
            listener(event, *values, **kwargs)

    def register(callback: Callable[..., None]) -> None:
        """Adds a listener."""
        _listeners.setdefault(kind, []).append(callback)

    def unregister(callback: Callable[..., None]) -> None:
        """Removes a listener."""
        _listeners.get(kind, []).remove(callback)

    return record, register, unregister


record_event: Any
register_event_listener: Any
unregister_event_listener: Any
record_event_duration_secs: Any
register_event_duration_secs_listener: Any
unregister_event_duration_listener: Any
record_event_time_span: Any
register_event_time_span_listener: Any
unregister_event_time_span_listener: Any
record_scalar: Any
register_scalar_listener: Any
unregister_scalar_listener: Any
record_event, register_event_listener, unregister_event_listener = _channel("event")
(
    record_event_duration_secs,
    register_event_duration_secs_listener,
    unregister_event_duration_listener,
) = _channel("duration")
(
    record_event_time_span,
    register_event_time_span_listener,
    unregister_event_time_span_listener,
) = _channel("span")
record_scalar, register_scalar_listener, unregister_scalar_listener = _channel("scalar")


def clear_event_listeners() -> None:
    """Removes all listeners."""
    _listeners.clear()


listen(globals())
