"""Programs that one process writes and another runs: StableHLO text, no Python.

A server knows nothing of its user's model. What it does with a gradient (decode it,
take a step of the optimizer) comes from a worker as text, which the server compiles for
its own device. Text that calls anything but XLA's own libraries is refused, so that a
program can neither reach Python nor memory that is not its arguments'.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Array, Aval, as_array, dtypes, type_on
from fxflow.core.arrays.array import forget, put_host, release
from fxflow.core.arrays.aval import struct_of
from fxflow.core.runtime.execute import Program
from fxflow.devices import buffers
from fxflow.devices.compile import compile as compile_text
from fxflow.devices.compile import hlo_computation
from fxflow.distributed.serialization import HostLeaf, from_host, to_host
from fxflow.errors import DistributedError
from fxflow.transforms.jit import jit

#: Custom calls into libraries that come with XLA, and XLA's own marks.
_LIBRARIES = re.compile(
    r"(lapack|cusolver|cublas|cu|hip|hipsolver)_\w+|Sharding|ApproxTopK|"
    r"annotate_device_placement|mhlo\.\w+"
)
_CALLS = re.compile(r'custom_call_target="([^"]*)"')


class ProgramText(NamedTuple):
    """A program, ready to travel.

    Attributes:
      name: for messages.
      text: the StableHLO module.
      constants: what the function had captured and is too large for the text; the
        first arguments.
      inputs: types of the other arguments.
      outputs: types of the results.
      donated: number of leading inputs that the program may overwrite with its
        results.
    """

    name: str
    text: str
    constants: list[HostLeaf]
    inputs: list[Aval]
    outputs: list[Aval]
    donated: int = 0

    @property
    def digest(self) -> str:
        """What two programs share if and only if they are the same."""
        state = hashlib.sha256(self.text.encode())
        for leaf in self.constants:
            state.update(leaf.key.encode() + np.ascontiguousarray(leaf.data).tobytes())
        return state.hexdigest()


def write(
    function: Callable[..., Any],
    *args: Any,
    name: str,
    platform: str = "cpu",
    donated: int = 0,
) -> tuple[ProgramText, Any]:
    """Writes a function as a program.

    Args:
      function: pure, of pytrees of arrays.
      *args: pytrees of arrays or of their types, as it will be called with.
      name: for messages.
      platform: of the server: "cpu", "gpu" or "tpu".
      donated: number of leading args that the program may overwrite.

    Returns:
      The program, of flat arguments and results, and the structure of the results.

    Raises:
      DistributedError: it calls Python, or a library that is not XLA's.
    """
    given = tree.map(lambda x: struct_of(x) if isinstance(x, Aval) else x, args)
    given_up = tuple(range(donated))
    traced = jit(function, keep_unused=True, donate_argnums=given_up).trace(*given)
    lowered = traced.lower(platforms=(platform,))
    constants = [to_host(c) for c in lowered.constants]
    found = ProgramText(
        name,
        lowered.as_text(),
        constants,
        list(traced.in_avals),
        list(traced.out_avals),
        len(tree.leaves(given[:donated])),
    )
    require_harmless(found)
    return found, traced.out_tree


def require_harmless(program: ProgramText) -> None:
    """Checks that a program calls nothing but XLA's libraries.

    Raises:
      DistributedError: it does.
    """
    # As XLA writes it: there is one way to write a call, not MLIR's many.
    hlo = hlo_computation(program.text).as_hlo_text()
    for target in _CALLS.findall(hlo):
        if not _LIBRARIES.fullmatch(target):
            raise DistributedError(
                f"the program {program.name!r} calls {target!r}: a parameter server "
                "runs what XLA and its libraries do, not callbacks or kernels of "
                "one's own; take them out of the optimizer"
            )


def type_text(aval: Aval) -> list[Any]:
    """Returns a type as JSON has it."""
    return [aval.dtype.name, list(aval.shape)]


def type_of_text(text: Any) -> Aval:
    """Returns the type that `type_text` wrote.

    Raises:
      ValueError: it is not that.
    """
    name, shape = text
    if not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"not a shape: {shape!r}")
    return Aval(tuple(shape), dtypes.dtype(name))


def adopted(value: Any) -> Array:
    """Returns an array; the memory of a NumPy array that is read-only is its own now.

    Such are the arrays of messages that came. 100 MB would otherwise be copied twice:
    by `as_array`, which cannot know that no code writes to them, and onto the device.

    Args:
      value: array-like; if read-only, no code may write to its memory any more.

    Example:
      >>> came = np.arange(3, dtype=np.float32)
      >>> came.flags.writeable = False
      >>> np.shares_memory(np.asarray(adopted(came)), came)
      True
    """
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        host = dtypes.host_array(value, value.dtype.newbyteorder("="))
        return put_host(host, Aval(host.shape, host.dtype))
    return as_array(value, getattr(value, "dtype", None))


class Runner:
    """A program, compiled for the first device of this process.

    Args:
      program: as `write` gave it.

    Raises:
      CompileError: XLA refuses it.
      DistributedError: it calls what it may not.
    """

    def __init__(self, program: ProgramText) -> None:
        require_harmless(program)
        placement = buffers.default_placement()
        self.program = program
        constants = [from_host(leaf) for leaf in program.constants]
        self._constants: list[Array] = [as_array(c, c.dtype) for c in constants]
        inputs = [placement] * (len(constants) + len(program.inputs))
        outputs = [type_on(aval, placement) for aval in program.outputs]
        executable = compile_text(program.text, placement, name=program.name)
        self._run = Program(executable, inputs, outputs, program.text)

    def __call__(self, arrays: Sequence[Any]) -> list[Array]:
        """Runs the program.

        Args:
          arrays: of the types it was written for; those that are read-only are
            `adopted`, donated arguments are deleted.
        """
        own = list(map(adopted, arrays))
        given = own[: self.program.donated]
        for array in given:
            # The runtime takes no memory that NumPy can see.
            if hasattr(array, "_host"):
                release(array)
        outs = self._run([*self._constants, *own])
        for array in given:
            forget(array)
        return outs
