"""Calls of Python functions by compiled programs.

A program calls Python through a custom call that jaxlib implements. The call holds an
index into a list of functions that `compile` gets. The runtime checks nothing (a result
of the wrong size crashes the process), so a `HostCallback` wraps each function and
checks its results.

The runtime passes on only the text of an exception that a callback raises. The wrapper
therefore keeps the exception, and `original_error` returns it to the caller.
"""

from __future__ import annotations

import itertools
import re
import threading
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.devices.process import ending

_TARGETS = {
    "cpu": "xla_ffi_python_cpu_callback",
    "gpu": "xla_ffi_python_gpu_callback",
    "cuda": "xla_ffi_python_gpu_callback",
    "rocm": "xla_ffi_python_gpu_callback",
}
# jaxlib's variants of these calls that the partitioner keeps on every device.
_PLAIN, _PARTITIONED = "xla_ffi_python_", "xla_ffi_partitioned_python_"

# -- exceptions of callbacks -----------------------------------------------------------

#: Number of exceptions kept with their frames, which may hold large arrays.
_WITH_FRAMES = 16
#: Number of exceptions kept for their callers: programs that fail at the same time.
_KEPT = 4096
#: How many that callers retrieved are kept, for threads that fail at the same time.
_RETRIEVED = 64
_raised: OrderedDict[int, BaseException] = OrderedDict()
# The numbers of the exceptions that callers retrieved, and may retrieve again.
_retrieved: deque[int] = deque()
_numbers = itertools.count(1)
_lock = threading.Lock()
_MARK = r"fxflow callback exception (\d+)"
_INTERRUPTED = r"(?ms)error calling callback: .*^KeyboardInterrupt\b"


class _InCallback(Exception):
    """Replaces an exception of the user's function on the way through the runtime."""


def _keep(error: BaseException) -> _InCallback:
    number = next(_numbers)
    with _lock:
        _raised[number] = error
        older = number - _WITH_FRAMES
        if older in _raised and older not in _retrieved:
            _raised[older] = _without_frames(_raised[older])
        while len(_raised) > _KEPT:
            _raised.popitem(last=False)
    return _InCallback(
        f"fxflow callback exception {number}: {type(error).__name__}: {error}"
    )


def _without_frames(error: BaseException) -> BaseException:
    """Returns `error` with its traceback as a note in place of the frames."""
    lines = "".join(traceback.format_exception(error))
    error.add_note(f"Raised by a callback, one of many that failed:\n{lines}")
    part: BaseException | None = error
    while part is not None:
        following = part.__cause__ or part.__context__
        part.__traceback__ = part.__cause__ = part.__context__ = None
        part = following
    return error


def original_error(error: BaseException) -> BaseException | None:
    """Returns the exception of the callback that caused an error of the runtime.

    Args:
      error: the runtime's error, from running a program or waiting for its results.

    Returns:
      The callback's exception; None if the error did not come from a callback.
    """
    text = str(error)
    found = re.search(_MARK, text)
    if found:
        return _retrieve(int(found[1]))
    # Python may handle a signal between the runtime and `__call__`.
    return KeyboardInterrupt() if re.search(_INTERRUPTED, text) else None


def _retrieve(number: int) -> BaseException | None:
    with _lock:
        if number not in _retrieved:
            _retrieved.append(number)
            if len(_retrieved) > _RETRIEVED:
                _raised.pop(_retrieved.popleft(), None)
        return _raised.get(number)


_explainers: list[Callable[[BaseException], BaseException]] = []


def on_failure(explainer: Callable[[BaseException], BaseException]) -> None:
    """Registers a function that may explain failures of the runtime.

    Args:
      explainer: takes the runtime's exception and returns the one to raise.
    """
    _explainers.append(explainer)


def raise_original(error: BaseException) -> None:
    """Raises the cause of an error of the runtime, if it is known.

    Args:
      error: the runtime's exception.

    Raises:
      BaseException: the exception of a Python callback, or the one an explainer
        returns, for example because another process is lost.
    """
    original = original_error(error)
    if original is not None:
        raise original.with_traceback(original.__traceback__) from None
    for explainer in _explainers:
        better = explainer(error)
        if better is not error:
            raise better from error


# -- callbacks -------------------------------------------------------------------------


class _Running(threading.local):
    """How many callbacks the thread is in: one may run a program that calls another."""

    depth = 0


_running = _Running()


def in_callback() -> bool:
    """Returns whether this thread runs a callback, and so holds up a program."""
    return _running.depth > 0


class HostCallback:
    """A Python function that a compiled program may call.

    The function gets one read-only NumPy array for each operand (which it may keep) and
    returns a sequence of array-likes, one for each result; None is an empty sequence.
    Results must have the declared shape and dtype; Python scalars and lists are
    converted to the dtype.

    Args:
      function: the function to call.
      results: shape and dtype of each result.
      name: its name in error messages.
    """

    __slots__ = ("function", "name", "results")

    function: Callable[..., Any]
    results: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]
    name: str

    def __init__(
        self,
        function: Callable[..., Any],
        results: Sequence[tuple[Sequence[int], Any]] = (),
        name: str = "",
    ) -> None:
        self.function = function
        self.results = tuple((tuple(s), np.dtype(d)) for s, d in results)
        self.name = name or str(getattr(function, "__name__", function))

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """Calls the function and checks its results; called by the runtime.

        Args:
          *operands: an array for each operand and None for each token.

        Returns:
          The results, a tuple of C-contiguous arrays.

        Raises:
          Exception: any error, wrapped for `original_error`.
        """
        _running.depth += 1
        try:
            if ending():
                raise RuntimeError("the process is ending")
            return self.checked_call(*(x for x in operands if x is not None))
        except BaseException as error:  # also KeyboardInterrupt: it must reach the user
            raise _keep(error) from None
        finally:
            _running.depth -= 1

    def checked_call(self, *operands: Any) -> tuple[Any, ...]:
        """Calls the function and checks its results; does not wrap errors."""
        return self._checked(self.function(*operands))

    def _checked(self, values: Any) -> tuple[np.ndarray[Any, Any], ...]:
        if values is None:
            values = ()
        if not isinstance(values, (tuple, list)):
            raise TypeError(
                f"callback {self.name}: expected a tuple of {len(self.results)} "
                f"results, got {type(values).__name__}"
            )
        if len(values) != len(self.results):
            raise ValueError(
                f"callback {self.name}: expected {len(self.results)} results, "
                f"got {len(values)}"
            )
        return tuple(map(self._checked_result, range(len(values)), values))

    def _checked_result(self, index: int, value: Any) -> np.ndarray[Any, Any]:
        shape, dtype = self.results[index]
        if hasattr(value, "dtype"):
            array = np.asarray(value)
        else:
            array = np.asarray(value, dtype)
        if array.shape != shape or array.dtype.newbyteorder("=") != dtype:
            raise ValueError(
                f"callback {self.name}: result {index} was declared "
                f"{dtype}{list(shape)}, but the function returned "
                f"{array.dtype}{list(array.shape)}"
            )
        return np.ascontiguousarray(array, dtype).reshape(shape)


# -- custom calls ----------------------------------------------------------------------


def target(platform: str) -> str:
    """Returns the name of the custom call on a platform.

    Raises:
      ValueError: the platform cannot call Python.
    """
    name = _TARGETS.get(platform)
    if name is None:
        raise ValueError(
            f"programs on {platform!r} cannot call Python; "
            f"only those on {', '.join(sorted(_TARGETS))} can"
        )
    return name


def custom_call(
    index: int,
    operands: Sequence[str],
    operand_types: Sequence[str],
    result_types: Sequence[str],
    *,
    platform: str = "cpu",
    has_side_effect: bool = False,
    sharding: str = "",
    partitioned: bool = False,
) -> str:
    """Returns the StableHLO text of a call of callback number `index`.

    Args:
      index: position of the `HostCallback` in ``compile(..., callbacks=[...])``.
      operands: names of the values, such as ``"%3"``.
      operand_types: their types, such as ``"tensor<3x4xf32>"``;
        ``"!stablehlo.token"`` orders effects and is not passed to the function.
      result_types: types of the results.
      platform: the platform compiled for.
      has_side_effect: whether the call must happen exactly once even if nothing uses
        its results.
      sharding: in a program for several devices, the attribute that names the device
        that calls.
      partitioned: whether every device calls instead, with its parts of the operands;
        for calls without results.

    Returns:
      The operation, without the names of its results:
      ``stablehlo.custom_call @...(...) {...} : (...) -> (...)``.

    Example:
      >>> custom_call(0, ["%a"], ["tensor<2xf32>"], [], has_side_effect=True)
      ... # doctest: +ELLIPSIS
      'stablehlo.custom_call @xla_ffi_python_cpu_callback(%a) {...} : ...'
    """
    # Without layouts XLA may pass a transposed operand in the order of its memory.
    attributes = (
        "api_version = 4 : i32, "
        f"has_side_effect = {str(has_side_effect).lower()}, "
        f"backend_config = {{index = {index} : ui64}}, "
        f"operand_layouts = [{', '.join(map(_layout, operand_types))}], "
        f"result_layouts = [{', '.join(map(_layout, result_types))}]"
        + (f", {sharding}" if sharding else "")
    )
    results = ", ".join(result_types)
    name = target(platform)
    if partitioned:
        name = name.replace(_PLAIN, _PARTITIONED)
    return (
        f"stablehlo.custom_call @{name}({', '.join(operands)}) "
        f"{{{attributes}}} : ({', '.join(operand_types)}) -> ({results})"
    )


def _layout(type_text: str) -> str:
    """Returns the row-major layout attribute of ``tensor<3x4xf32>``: [1, 0]."""
    match = re.match(r"tensor<((?:\d+x)*)", type_text)
    rank = match[1].count("x") if match else 0
    order = ", ".join(str(axis) for axis in reversed(range(rank)))
    return f"dense<[{order}]> : tensor<{rank}xindex>"
