"""Source locations: the user's line in the program, remembered cheaply.

A graph node keeps `(code, instruction offset)` of the innermost frame outside fxflow.
Text is made only when an error, a printed graph or a picture asks for it, because
formatting a stack for each operation is what makes tracing slow elsewhere.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar, cast

from fxflow._config import config
from fxflow.errors import FxflowError

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Source = tuple[CodeType, int]


class Backward(tuple[CodeType, int]):
    """The position of an operation whose backward pass another operation is in."""

    __slots__ = ()


_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_internal: dict[str, bool] = {}


def is_internal(filename: str) -> bool:
    """Whether `filename` is part of fxflow itself."""
    known = _internal.get(filename)
    if known is None:
        # Code that is generated (`eager.host_plan`) names itself `<fxflow ...>`.
        known = filename.startswith((_ROOT, "<fxflow"))
        _internal[filename] = known
    return known


def user_frame(depth: int = 1) -> FrameType | None:
    """Returns the innermost frame that is not fxflow's, at least `depth` frames up."""
    frame: FrameType | None = sys._getframe(depth)
    internal = _internal
    while frame is not None:
        filename = frame.f_code.co_filename
        try:
            if not internal[filename]:
                return frame
        except KeyError:
            if not is_internal(filename):
                return frame
        frame = frame.f_back
    return None


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the user's line that led here, once for each line and text by default.

    Args:
      message: the text.
      category: of the warning.
    """
    frame = user_frame(2)
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
        return
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__", "<string>"),  # None is silently ignored
        frame.f_globals.setdefault("__warningregistry__", {}),
    )


def here() -> Source | None:
    """Returns the user's position as `(code, instruction offset)`, not formatted."""
    # `user_frame` written out: this runs for each node that is recorded.
    frame: FrameType | None = sys._getframe(1)
    internal = _internal
    while frame is not None:
        code = frame.f_code
        try:
            if not internal[code.co_filename]:
                return code, frame.f_lasti
        except KeyError:
            if not is_internal(code.co_filename):
                return code, frame.f_lasti
        frame = frame.f_back
    return None


def line_number(source: Source) -> int:
    """Returns the line number of a remembered position."""
    code, offset = source
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= offset < end and number is not None:
            return number
    return line


def describe(source: Source | None) -> str:
    """Returns `file.py:12 (function)` for a remembered position, or `unknown line`."""
    if source is None:
        return "unknown line"
    code = source[0]
    return f"{code.co_filename}:{line_number(source)} ({code.co_name})"


def wraps(function: Any) -> Callable[[F], F]:
    """Returns a decorator like `functools.wraps`, for any callable object.

    An object's `__name__` may be not a string, and its annotations no dict: such are
    left out.
    """
    kinds = {"__name__": str, "__qualname__": str, "__annotations__": dict}
    given = [
        name
        for name in functools.WRAPPER_ASSIGNMENTS
        if isinstance(getattr(function, name, None), kinds.get(name, object))
    ]
    return cast(Callable[[F], F], functools.wraps(function, given))


def name_of(function: Any) -> str:
    """Returns what messages call a function: its name; of a lambda, also its line."""
    name = getattr(function, "__name__", None)
    if name is None:
        inner = getattr(function, "func", None) or getattr(
            function, "__wrapped__", None
        )
        return name_of(inner) if inner is not None else type(function).__name__
    code = getattr(inspect.unwrap(function), "__code__", None)
    if name != "<lambda>" or code is None:
        return str(name)
    return f"<lambda> at {code.co_filename}:{code.co_firstlineno}"


def located(function: Any) -> str:
    """Returns what messages call a function, with the line where it begins."""
    name = name_of(function)
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or name.startswith("<lambda> at"):
        return name
    return f"{name} at {code.co_filename}:{code.co_firstlineno}"


@contextlib.contextmanager
def telling(more: Callable[[], str]) -> Iterator[None]:
    """Adds to the message of an error of ours that is raised within.

    Args:
      more: gives the text.
    """
    try:
        yield
    except FxflowError as error:
        error.args = (f"{error}{more()}",)
        raise


def user_line() -> str:
    """Returns the user's current line as `file.py:12 (function)`."""
    frame = user_frame(2)
    if frame is None:
        return "unknown line"
    return describe((frame.f_code, frame.f_lasti))


def at_fault(value: Any = None) -> str:
    """Says which public function was called, and which argument holds a value.

    Errors raised deep inside begin with it. It costs nothing before there is an error.

    Args:
      value: what is wrong.

    Returns:
      `linspace: num: `, or `linspace: ` if no argument or more than one is `value`, or
      nothing if the user called an operator or a method of Python's.
    """
    name, arguments, _ = _public_call()
    if not name:
        return ""
    found = [key for key, given in arguments.items() if _holds(given, value)]
    named = len(found) == 1 and value is not None
    return f"{name}: {found[0]}: " if named else f"{name}: "


def of_rank(ndim: int) -> str:
    """Says which argument of the public function has `ndim` axes, and of what type.

    Args:
      ndim: the number of axes that an axis was out of range for.

    Returns:
      `; a is f32[2,3]`, or nothing unless it is exactly one.
    """
    found = []
    for name, value in _public_call()[1].items():
        if hasattr(value, "ndim") and hasattr(value, "shape") and value.ndim == ndim:
            dims = ",".join(map(str, value.shape))
            aval = getattr(value, "aval", None)
            found.append(f"; {name} is {aval or f'{value.dtype}[{dims}]'}")
    return found[0] if len(found) == 1 else ""


def combined_by_user(
    kinds: set[T], kind: Callable[[Any], T], packages: tuple[str, ...]
) -> bool:
    """Returns whether operands are those that the user passed to a public function.

    The strict settings of promotion refuse what the user combines, not what a function
    of fxflow combines on its way to a result.

    Args:
      kinds: of the operands.
      kind: returns that of an argument, or of an item of a list, tuple or dict.
      packages: whose functions combine their arguments as NumPy's do. Those of others
        document arguments of several ranks or dtypes.
    """
    # `jit(numpy.add)(x, y)` calls `numpy.add`.
    name, arguments, module = _public_call(("fxflow.transforms.", "fxflow.core."))
    if not name.isidentifier():  # an operator
        return True
    if not module.startswith(packages):
        return False
    found: set[T] = set()
    open_ = list(arguments.values())
    while open_:
        value = open_.pop()
        if isinstance(value, list | tuple):
            open_ += value
        elif isinstance(value, dict):
            open_ += value.values()
        else:
            found.add(kind(value))
    return kinds <= found


def _public_call(skipped: tuple[str, ...] = ()) -> tuple[str, dict[str, Any], str]:
    """Returns name, arguments and module of the function that the user called.

    Args:
      skipped: the beginnings of modules whose functions do not count.
    """
    frame: FrameType | None = sys._getframe(2)
    frames = []
    while frame is not None and is_internal(frame.f_code.co_filename):
        frames.append(frame)
        frame = frame.f_back
    # The outermost frame of ours is the function that the user called.
    for frame in reversed(frames):
        if skipped and frame.f_globals["__name__"].startswith(skipped):
            continue
        name, arguments = _call(frame)
        if name and not name.startswith("_"):
            function = frame.f_locals.get("function")  # a decorator's
            scope = getattr(function, "__globals__", frame.f_globals)
            return name, arguments, scope["__name__"]
        if name:
            break
    return "", {}, ""


def _call(frame: FrameType) -> tuple[str, dict[str, Any]]:
    """Returns the name and the arguments of the function that a frame runs."""
    code, values = frame.f_code, frame.f_locals
    if code.co_name == "call" and callable(values.get("function")):  # a decorator's
        function = values["function"]
        fixed = [values[n] for n in code.co_varnames[: code.co_argcount]]
        try:
            bound = inspect.signature(function).bind_partial(
                *fixed, *values.get("args", ()), **values.get("kwargs", {})
            )
        except (TypeError, ValueError):
            return function.__name__, {}
        return function.__name__, dict(bound.arguments)
    if "<locals>" in code.co_qualname:
        return str(values.get("symbol", "")), {}  # an operator has one
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS)
    # An argument whose name the function has deleted is not there.
    arguments = {n: values[n] for n in code.co_varnames[:count] if n in values}
    owner = arguments.pop("self", arguments.pop("cls", None))
    name = code.co_name
    if frame.f_globals.get("__name__") == "fxflow.numpy.array_methods":
        name = name.removeprefix("_")  # `_reshape` is `Array.reshape`
    if name == "getitem":
        name = "_getitem"  # the user wrote brackets
    if name in ("__call__", "__init__", "__new__"):
        kind = owner if isinstance(owner, type) else type(owner)
        name = str(getattr(owner, "__name__", kind.__name__))
    return name, arguments


def _holds(given: Any, value: Any) -> bool:
    return given is value or (
        type(given) in (list, tuple) and any(item is value for item in given)
    )


def without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Returns `traceback` without fxflow's own frames.

    Args:
      traceback: the traceback of an exception that leaves a public function.
    """
    if config.full_tracebacks:
        return traceback
    kept = []
    entry = traceback
    while entry is not None:
        if not is_internal(entry.tb_frame.f_code.co_filename):
            kept.append(entry)
        entry = entry.tb_next
    result: TracebackType | None = None
    for entry in reversed(kept):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


def leave(error: Exception) -> None:
    """Takes fxflow's frames off an error that is about to reach the user.

    For the function that the user called, in `except Exception as error:`, before a
    bare `raise`: entering a `try` costs nothing, and that `raise` adds no frame.
    Called further in, it does nothing: who is called from outside will do it.

    Args:
      error: what the function raises.
    """
    if not is_internal(sys._getframe(2).f_code.co_filename):
        shorten(error)


# Filled by the first message that shows a weak type: it is explained once.
_weak_explained: list[bool] = []


def shorten(error: BaseException) -> None:
    """Takes fxflow's frames off an error and off what it was raised from.

    What fxflow itself caught on the way, and no frame of the user's had to do with, is
    not shown at all.
    """
    if not _weak_explained and isinstance(error, FxflowError) and "]~" in str(error):
        _weak_explained.append(True)
        error.add_note(
            "(~ marks a weak type, that of Python's numbers: it takes the dtype of "
            "what it is combined with)"
        )
    if config.full_tracebacks:
        return
    error.__traceback__ = without_own_frames(error.__traceback__)
    seen = {id(error)}
    while True:
        cause, context = error.__cause__, error.__context__
        before = cause or (None if error.__suppress_context__ else context)
        if before is None or id(before) in seen:
            return
        kept = without_own_frames(before.__traceback__)
        if kept is None and before.__traceback__ is not None and cause is None:
            error.__suppress_context__ = True
            return
        before.__traceback__ = kept
        seen.add(id(before))
        error = before


_on_interrupt: list[Callable[[], None]] = []


def on_interrupt(callback: Callable[[], None]) -> None:
    """Calls `callback` when an interrupt has ended all that fxflow was doing."""
    _on_interrupt.append(callback)


def interrupted() -> None:
    """Puts things right after an interrupt, if no other call of fxflow is around.

    What a `with` block or a `finally` puts back stays undone if the interrupt comes
    when that is about to begin; and it may come at the start of any function.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if is_internal(frame.f_code.co_filename):
            return
        frame = frame.f_back
    for callback in _on_interrupt:
        callback()
