"""How a compiled program calls Python.

A program on the CPU reaches Python through a custom call that jaxlib implements; which
function is called stands in the call as an index into a list that is given when the
program is compiled. The runtime checks nothing (a result of a wrong size crashes the
process), so each function is wrapped in a `HostCallback` that does.

An exception inside a callback cannot cross the runtime as itself: only its text does.
The wrapper therefore keeps it, and `original_error` finds it again at the caller.
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
# jaxlib has the same calls once more, for the partitioner to leave on every device.
_PLAIN, _PARTITIONED = "xla_ffi_python_", "xla_ffi_partitioned_python_"

# -- exceptions on their way through the runtime ---------------------------------------

#: Exceptions kept with the frames that they went through, which may hold much.
_WITH_FRAMES = 16
#: Exceptions kept at most until their callers ask: programs that fail at one time.
_KEPT = 4096
_raised: OrderedDict[int, BaseException] = OrderedDict()
# The numbers of those that callers have asked for, and may ask for again.
_told: deque[int] = deque()
_numbers = itertools.count(1)
_lock = threading.Lock()
_MARK = r"fxflow callback exception (\d+)"
_INTERRUPTED = r"(?ms)error calling callback: .*^KeyboardInterrupt\b"


class _InCallback(Exception):
    """What the runtime sees in place of an exception of the user's function."""


def _keep(error: BaseException) -> _InCallback:
    number = next(_numbers)
    with _lock:
        _raised[number] = error
        older = number - _WITH_FRAMES
        if older in _raised and older not in _told:
            _raised[older] = _without_frames(_raised[older])
        while len(_raised) > _KEPT:
            _raised.popitem(last=False)
    return _InCallback(
        f"fxflow callback exception {number}: {type(error).__name__}: {error}"
    )


def _without_frames(error: BaseException) -> BaseException:
    """Returns an exception that says where it was raised in a note."""
    lines = "".join(traceback.format_exception(error))
    error.add_note(f"Raised by a callback, one of many that failed:\n{lines}")
    part: BaseException | None = error
    while part is not None:
        following = part.__cause__ or part.__context__
        part.__traceback__ = part.__cause__ = part.__context__ = None
        part = following
    return error


def original_error(error: BaseException) -> BaseException | None:
    """Returns the exception that a callback raised, given what the runtime made of it.

    Args:
      error: the runtime's error, from running a program or waiting for its results.

    Returns:
      The exception itself; None if the error did not come from a callback.
    """
    text = str(error)
    found = re.search(_MARK, text)
    if found:
        return _asked_for(int(found[1]))
    # A signal is handled wherever Python is: also between the runtime and `__call__`.
    return KeyboardInterrupt() if re.search(_INTERRUPTED, text) else None


def _asked_for(number: int) -> BaseException | None:
    with _lock:
        if number not in _told:
            _told.append(number)
            if len(_told) > _WITH_FRAMES:
                _raised.pop(_told.popleft(), None)
        return _raised.get(number)


_explainers: list[Callable[[BaseException], BaseException]] = []


def on_failure(explainer: Callable[[BaseException], BaseException]) -> None:
    """Asks a function about each failure of the runtime.

    Args:
      explainer: from what the runtime raised to what shall be raised.
    """
    _explainers.append(explainer)


def raise_original(error: BaseException) -> None:
    """Raises what led to `error`, if that is known.

    Args:
      error: what the runtime raised.

    Raises:
      BaseException: what a Python callback raised, or what an explainer makes of it:
        that another process is lost.
    """
    original = original_error(error)
    if original is not None:
        raise original.with_traceback(original.__traceback__) from None
    for explainer in _explainers:
        better = explainer(error)
        if better is not error:
            raise better from error


# -- the function that is called -------------------------------------------------------


class HostCallback:
    """A Python function as a compiled program may call it.

    The function is given one read-only NumPy array for each operand (its memory may be
    kept) and returns a sequence of array-likes, one for each result; None is an empty
    sequence. Results must have the declared shape. Their dtype must be the declared one
    too, except that Python scalars and lists take it on.

    Args:
      function: what to call.
      results: shape and dtype of each result.
      name: for messages.
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
        """Calls the function and checks what it returns; for the runtime.

        Args:
          *operands: an array for each operand and None for each token.

        Returns:
          The results, a tuple of C-contiguous arrays.

        Raises:
          Exception: whatever went wrong, wrapped for `original_error`.
        """
        try:
            if ending():
                raise RuntimeError("the process is ending")
            return self.checked_call(*(x for x in operands if x is not None))
        except BaseException as error:  # also KeyboardInterrupt: it must reach the user
            raise _keep(error) from None

    def checked_call(self, *operands: Any) -> tuple[Any, ...]:
        """Calls the function and checks what it returns; errors come as they are."""
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


# -- the call in the program's text ----------------------------------------------------


def target(platform: str) -> str:
    """Returns the custom call's name on a platform.

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
    """Returns the StableHLO text of a call of the callback number `index`.

    Args:
      index: position of the `HostCallback` in ``compile(..., callbacks=[...])``.
      operands: names of the values, such as ``"%3"``.
      operand_types: their types, such as ``"tensor<3x4xf32>"``;
        ``"!stablehlo.token"`` is passed by and orders effects.
      result_types: types of the results.
      platform: the platform compiled for.
      has_side_effect: whether the call must happen exactly once even if nothing uses
        its results.
      sharding: in a program for several devices, an attribute that says which of
        them calls.
      partitioned: whether each of them calls instead, with its parts of the operands;
        for calls without results.

    Returns:
      The operation, without the names of its results:
      ``stablehlo.custom_call @...(...) {...} : (...) -> (...)``.

    Example:
      >>> custom_call(0, ["%a"], ["tensor<2xf32>"], [], has_side_effect=True)
      ... # doctest: +ELLIPSIS
      'stablehlo.custom_call @xla_ffi_python_cpu_callback(%a) {...} : ...'
    """
    # Without layouts XLA may hand over a transposed operand as it lies in memory.
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
