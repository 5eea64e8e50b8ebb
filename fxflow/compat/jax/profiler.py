"""`jax.profiler`: names exist, fxflow records nothing yet."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from typing import Any

from fxflow.compat.jax._mirror import listen


def _nothing_is_recorded(what: str) -> None:
    warnings.warn(
        f"jax.profiler.{what}: fxflow has no profiler yet, so nothing is written",
        stacklevel=3,
    )


class TraceAnnotation(ContextDecorator):
    """Names a stretch of the host's time; nothing is recorded."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        self.name = name

    def __enter__(self) -> TraceAnnotation:
        return self

    def __exit__(self, *exc: object) -> None:
        return None


class StepTraceAnnotation(TraceAnnotation):
    """Names a step; nothing is recorded."""


def annotate_function(
    func: Callable[..., Any] | None = None, name: str | None = None, **kwargs: Any
) -> Any:
    """Returns the function as it is; nothing is recorded."""
    if func is None:
        return functools.partial(annotate_function, name=name, **kwargs)
    return func


def start_trace(log_dir: Any, *args: Any, **kwargs: Any) -> None:
    """Warns that nothing is recorded."""
    _nothing_is_recorded("start_trace")


def stop_trace() -> None:
    """Ends what `start_trace` began: nothing."""


@contextmanager
def trace(log_dir: Any, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Warns that nothing is recorded."""
    _nothing_is_recorded("trace")
    yield


listen(globals())
