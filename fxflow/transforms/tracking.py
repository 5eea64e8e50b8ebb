"""Which line made the arrays that are alive: opt-in, and free of cost while off."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple

from fxflow.core.arrays import Array
from fxflow.core.boundary import guard_methods
from fxflow.core.source import is_internal
from fxflow.devices.memory import bytes_text
from fxflow.lax.pytree_transfer import live_arrays

#: What stands for arrays that were made while nothing was tracked.
NOT_TRACKED = "(not tracked)"
_lines: dict[int, tuple[weakref.ref[Array], str]] = {}


class LiveRow(NamedTuple):
    """The arrays of a line.

    Attributes:
      line: that made them, as `train.py:12 (step)`.
      nbytes: of all together.
      arrays: the number of arrays.
      largest: type of the largest, such as `f32[64,64]`.
    """

    line: str
    nbytes: int
    arrays: int
    largest: str


@guard_methods
@dataclass(frozen=True, repr=False)
class LiveArrays:
    """The arrays that are alive, by the line that made them; `live` makes it.

    Attributes:
      rows: the lines, those that hold most first.
    """

    rows: tuple[LiveRow, ...]

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays together."""
        return sum(row.nbytes for row in self.rows)

    def __str__(self) -> str:
        lines = [f"{bytes_text(self.nbytes)} in arrays"]
        for row in self.rows:
            many = f"{row.arrays} × up to {row.largest}"
            lines.append(f"{bytes_text(row.nbytes):>10}  {row.line}  {many}")
        return "\n".join(lines)

    __repr__ = __str__


def live(platform: str | None = None) -> LiveArrays:
    """Returns the arrays that are alive, grouped by the line that made them.

    Lines are known of arrays made within `tracking`. Python's garbage collector is
    asked for the arrays, so this takes as long as there are objects.

    Args:
      platform: on which devices: `"cpu"`, `"gpu"`, …; None is the default platform.

    Returns:
      A list of lines, to be printed.

    Raises:
      BackendError: there is no such platform.

    Example:
      >>> with fxflow.memory.tracking():
      ...     x = fnp.ones((256, 256)) + 1
      ...     y = fnp.sum(x)
      >>> any(row.largest == "f32[256,256]" for row in live().rows)
      True
    """
    groups: dict[str, list[Array]] = {}
    for array in live_arrays(platform):
        groups.setdefault(_line_of(array), []).append(array)
    rows = []
    for line, arrays in groups.items():
        largest = max(arrays, key=lambda array: array.nbytes)
        total = sum(array.nbytes for array in arrays)
        rows.append(LiveRow(line, total, len(arrays), str(largest.aval.strong())))
    return LiveArrays(tuple(sorted(rows, key=lambda row: -row.nbytes)))


def _line_of(array: Array) -> str:
    known = _lines.get(id(array))
    return known[1] if known is not None and known[0]() is array else NOT_TRACKED


@contextmanager
def tracking() -> Iterator[None]:
    """Remembers which line makes each array, in this thread within a `with` block.

    Python calls a function for each line of yours then, which looks for new arrays:
    such code runs many times slower. Compiled programs run as fast as before. Other
    debuggers and coverage, which use the same hook, see nothing within.

    Returns:
      A context manager; see `live`.

    Example:
      >>> with tracking():
      ...     x = fnp.arange(4) * 2
    """
    before = sys.gettrace()
    seen = _Seen()
    frame: FrameType | None = sys._getframe(2)
    frames = []
    while frame is not None:
        if not is_internal(frame.f_code.co_filename):
            frames.append((frame, frame.f_trace))
            frame.f_trace = seen.local
        frame = frame.f_back
    seen.look(NOT_TRACKED)
    sys.settrace(seen.called)
    try:
        yield
    finally:
        sys.settrace(before)
        here = next((f for f, _ in frames), None)
        seen.look(seen.place(here) if here is not None else NOT_TRACKED)
        for one, trace in frames:
            one.f_trace = trace


class _Seen:
    """Finds new arrays when the user's program goes from line to line."""

    def __init__(self) -> None:
        # For each frame the line that runs; what it makes is found when it is over.
        self._running: dict[int, str] = {}

    @staticmethod
    def place(frame: FrameType) -> str:
        """Returns the current line of a frame."""
        code = frame.f_code
        return f"{code.co_filename}:{frame.f_lineno} ({code.co_name})"

    def called(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Is called when a function begins; says whether its lines matter."""
        caller = frame.f_back
        while caller is not None and is_internal(caller.f_code.co_filename):
            caller = caller.f_back
        if is_internal(frame.f_code.co_filename):
            return None
        if caller is not None and id(caller) in self._running:
            self.look(self._running[id(caller)])
        self._running[id(frame)] = self.place(frame)
        return self.local

    def local(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        """Is called when a line begins, and when the function ends."""
        self.look(self._running.get(id(frame), NOT_TRACKED))
        if event == "return":
            self._running.pop(id(frame), None)
        else:
            self._running[id(frame)] = self.place(frame)
        return self.local

    def look(self, line: str) -> None:
        """Notes the arrays that are new as those of a line."""
        for young in gc.get_objects(0), gc.get_objects(1):
            for found in young:
                if type(found) is Array:
                    known = _lines.get(id(found))
                    if known is None or known[0]() is not found:
                        _note(found, line)


def _note(array: Array, line: str) -> None:
    key = id(array)
    lines = _lines  # the module's own name is None when the interpreter has ended

    def forget(ref: weakref.ref[Array]) -> None:
        known = lines.get(key)
        if known is not None and known[0] is ref:
            del lines[key]

    _lines[key] = weakref.ref(array, forget), line
