"""Programs that one process writes and another runs: StableHLO text, no Python.

A parameter server has no code of the user's model. A worker sends it what to do with a
gradient (decode it, take a step of the optimizer) as text, which the server compiles
for its own device; a task of a dataflow function gets its fragments so. Both refuse
text that calls anything but XLA's own libraries, so a program can reach neither Python
nor memory outside its arguments.
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

#: Custom calls to libraries that ship with XLA, and XLA's own annotations.
_LIBRARIES = re.compile(
    r"(lapack|cusolver|cublas|cu|hip|hipsolver)_\w+|Sharding|ApproxTopK|"
    r"annotate_device_placement|mhlo\.\w+|"
    # How a program's values are divided over a mesh, for the partitioner.
    r"xla\.sdy\.\w+|SPMDFullToShardShape|SPMDShardToFullShape"
)
_CALLS = re.compile(r'custom_call_target="([^"]*)"')


class ProgramText(NamedTuple):
    """A program in a form that can be sent.

    Attributes:
      name: name for error messages.
      text: the StableHLO module.
      constants: captured arrays that are too large for the text; they are the first
        arguments.
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
        """SHA-256 of the program, by which two programs are compared."""
        state = hashlib.sha256(self.text.encode())
        for leaf in self.constants:
            state.update(leaf.key.encode() + np.ascontiguousarray(leaf.data).tobytes())
        return state.hexdigest()


def write(
    function: Callable[..., Any], *args: Any, name: str, donated: int = 0
) -> tuple[ProgramText, Any]:
    """Writes a function as a program for CPUs, on which servers run.

    Args:
      function: pure function of pytrees of arrays.
      *args: pytrees of arrays or of types, like the arguments of later calls.
      name: name for error messages.
      donated: number of leading args that the program may overwrite.

    Returns:
      The program, with flat arguments and results, and the structure of the results.

    Raises:
      DistributedError: the function calls Python, or a library that is not XLA's.
    """
    given = tree.map(lambda x: struct_of(x) if isinstance(x, Aval) else x, args)
    argnums = tuple(range(donated))
    traced = jit(function, keep_unused=True, donate_argnums=argnums).trace(*given)
    lowered = traced.lower(platforms=("cpu",))
    constants = [to_host(c) for c in lowered.constants]
    found = ProgramText(
        name,
        lowered.as_text(),
        constants,
        list(traced.in_avals),
        list(traced.out_avals),
        len(tree.leaves(given[:donated])),
    )
    require_harmless(found.text, name)
    return found, traced.out_tree


def require_harmless(text: str, name: str) -> None:
    """Checks that a program calls nothing but XLA's libraries.

    Args:
      text: the StableHLO module.
      name: of the program, for the message.

    Raises:
      DistributedError: it calls something else.
    """
    # HLO text has one syntax for a call, where MLIR has many.
    hlo = hlo_computation(text).as_hlo_text()
    for target in _CALLS.findall(hlo):
        if not _LIBRARIES.fullmatch(target):
            raise DistributedError(
                f"the program {name!r} calls {target!r}: another process "
                "runs only XLA and its libraries, not callbacks or custom kernels; "
                "leave them out of it"
            )


def type_text(aval: Aval) -> list[Any]:
    """Returns a type as JSON: the name of its dtype, and its shape."""
    return [aval.dtype.name, list(aval.shape)]


def type_of_text(text: Any) -> Aval:
    """Returns the type that `type_text` wrote.

    Raises:
      ValueError: it is something else.
    """
    name, shape = text
    if not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"not a shape: {shape!r}")
    return Aval(tuple(shape), dtypes.dtype(name))


def adopted(value: Any) -> Array:
    """Returns an array, which takes over the memory of a read-only NumPy array.

    The arrays of received messages are read-only. 100 MB would otherwise be copied
    twice: by `as_array`, which cannot know that no code writes to them, and onto the
    device.

    Args:
      value: array-like; if read-only, no code may write to its memory any more.

    Example:
      >>> received = np.arange(3, dtype=np.float32)
      >>> received.flags.writeable = False
      >>> np.shares_memory(np.asarray(adopted(received)), received)
      True
    """
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        host = dtypes.host_array(value, value.dtype.newbyteorder("="))
        return put_host(host, Aval(host.shape, host.dtype))
    return as_array(value, getattr(value, "dtype", None))


class Runner:
    """A program compiled for the first device of this process.

    Args:
      program: a program that `write` returned.

    Raises:
      CompileError: XLA cannot compile it.
      DistributedError: it calls anything but XLA's libraries.
    """

    def __init__(self, program: ProgramText) -> None:
        require_harmless(program.text, program.name)
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
          arrays: arrays of the program's input types; read-only ones are `adopted`,
            donated ones are deleted.
        """
        own = [x if type(x) is Array else adopted(x) for x in arrays]
        donated = own[: self.program.donated]
        for array in donated:
            # The runtime rejects donated memory that NumPy can see.
            if hasattr(array, "_host"):
                release(array)
        outs = self._run([*self._constants, *own])
        for array in donated:
            forget(array)
        return outs
