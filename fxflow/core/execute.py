"""Compiled graphs, ready to be called with arrays.

A `Program` is a graph compiled for a place. Calling it moves what lies elsewhere, hands
the runtime its buffers and wraps the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from fxflow._config import config
from fxflow.core import dtypes
from fxflow.core.array import Array, buffer_of, host_of
from fxflow.core.errors import ArgumentError, NonFiniteError
from fxflow.core.graph import Graph
from fxflow.core.lowering import lower_graph
from fxflow.core.placed import Placed, placed_on
from fxflow.devices import buffers
from fxflow.devices.callbacks import raise_original
from fxflow.devices.compile import Executable
from fxflow.devices.compile import compile as compile_text

_get_buffer = attrgetter("_buffer")


def common_place(placeds: Sequence[Placed], name: str) -> tuple[Any, bool]:
    """Returns where an operation on arrays of these places runs.

    Args:
      placeds: of the arguments.
      name: of the operation, for the message.

    Returns:
      The placement, and whether any argument insists on it.

    Raises:
      ArgumentError: two arguments insist on different devices.
    """
    chosen: Placed | None = None
    for placed in placeds:
        if not placed.committed:
            continue
        if chosen is None:
            chosen = placed
        elif placed.placement is not chosen.placement:
            raise ArgumentError(
                f"{name}: arguments are committed to different devices: "
                f"{chosen.aval} to {chosen.placement}, {placed.aval} to "
                f"{placed.placement}; move one with fxflow.device_put"
            )
    if chosen is not None:
        return chosen.placement, True
    return buffers.default_placement(), False


class Program:
    """A graph compiled for a place.

    Attributes:
      executable: the runtime's.
      placement: where it runs.
      calls_python: whether it does; then a call waits for its end.
      out_placeds: types and places of the results.
      text: the StableHLO module.
    """

    __slots__ = (
        "calls_python",
        "executable",
        "out_placeds",
        "placement",
        "run",
        "text",
    )

    def __init__(
        self,
        executable: Executable,
        placement: Any,
        out_placeds: Sequence[Placed],
        text: str,
        calls_python: bool = False,
    ) -> None:
        self.executable = executable
        self.placement = placement
        self.out_placeds = tuple(out_placeds)
        self.text = text
        self.calls_python = calls_python
        self.run = self._waiting_runner() if calls_python else self._runner()

    def _runner(self) -> Callable[[list[Any]], list[Array]]:
        """Returns the cheapest function from buffers to arrays."""
        start = self.executable.launch
        placeds = self.out_placeds
        handlers = [placed.handler for placed in placeds]
        if len(placeds) == 1:
            (placed,) = placeds

            def run_one(raw: list[Any]) -> list[Array]:
                return [Array(start(raw).consume_with_handlers(handlers)[0], placed)]

            return run_one

        def run(raw: list[Any]) -> list[Array]:
            outs = start(raw).consume_with_handlers(handlers)
            return list(map(Array, outs, placeds))

        return run

    def _waiting_runner(self) -> Callable[[list[Any]], list[Array]]:
        """Returns the function for a program that calls Python.

        It waits for the end, and raises what the Python function raised.
        """
        start = self.executable.launch
        placeds = self.out_placeds
        handlers = [placed.handler for placed in placeds]

        def run(raw: list[Any]) -> list[Array]:
            try:
                results = start(raw, with_tokens=True)
                token = results.consume_token()
                outs = results.consume_with_handlers(handlers)
                token.block_until_ready()
            except Exception as error:
                raise_original(error)
                raise
            return list(map(Array, outs, placeds))

        return run

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """Runs the program.

        Args:
          arrays: one for each input; they may lie elsewhere.
        """
        placement = self.placement
        raw = []
        for array in arrays:
            if array._placed.placement is placement:
                raw.append(buffer_of(array))
            else:
                raw.append(buffer_at(array, placement))
        return self.run(raw)


def buffer_at(array: Array, placement: Any) -> Any:
    """Returns a buffer of the array's elements at a place, copied there if need be."""
    if array._placed.placement is placement:
        return buffer_of(array)
    aval = array.aval.physical
    if hasattr(array, "_buffer"):
        return buffers.copy_to(aval, array._buffer, placement)
    return buffers.put(aval, host_of(array), placement)


def compile_graph(
    graph: Graph,
    placeds: Sequence[Placed],
    *,
    name: str,
    attributes: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> Program:
    """Compiles a graph for arguments of given types and places.

    Args:
      graph: to compile.
      placeds: types and places of the arguments.
      name: of the program.
      attributes: of the arguments (see `lowering.function_text`).
      options: the compiler's, by name.
    """
    placement, committed = common_place(placeds, name)
    text, module = lower_graph(
        graph, name=name, platform=placement.platform, attributes=attributes
    )
    return load_text(
        text, module, graph, placement, committed, name=name, options=options
    )


def load_text(
    text: str,
    module: Any,
    graph: Graph,
    placement: Any,
    committed: bool,
    *,
    name: str,
    options: Mapping[str, Any] | None = None,
) -> Program:
    """Compiles the text of a lowered graph; see `compile_graph`."""
    executable = compile_text(
        text, placement, options=options, name=name, callbacks=module.callbacks
    )
    outs = [placed_on(aval, placement, committed) for aval in graph.out_avals]
    return Program(executable, placement, outs, text, bool(module.callbacks))


def check_finite(name: str, arrays: Sequence[Array]) -> None:
    """Looks for NaN and infinity in results, as the configuration asks.

    Raises:
      NonFiniteError: it found one.
    """
    for array in arrays:
        if not dtypes.is_inexact(array.aval.dtype):
            continue
        value = host_of(array)
        if config.debug_nans and np.isnan(value).any():
            raise NonFiniteError(f"{name} gave nan in {array.aval}: {value}")
        if config.debug_infs and np.isinf(value).any():
            raise NonFiniteError(f"{name} gave inf in {array.aval}: {value}")
