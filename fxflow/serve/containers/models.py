"""What is served: a function with its parameters and the types of its inputs."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, closing
from typing import Any

import numpy as np

from fxflow.core.arrays import as_array, dtypes
from fxflow.errors import RetraceWarning, ServeError
from fxflow.lax.pytree_transfer import device_put
from fxflow.serve.batching.sizes import padded, sizes_up_to
from fxflow.serve.signatures import DATATYPES, Signature, TensorSpec
from fxflow.transforms.jit import jit as _jit

Arrays = list[np.ndarray[Any, Any]]
#: NumPy's dtype → datatype of the protocol.
DATATYPE_OF = {dtype: name for name, (_, dtype) in DATATYPES.items()}
#: Results of a generator that it is tried with: its first steps may differ, as a
#: language model's reading does from its writing, and each is compiled.
_TRIED = 4


class Model:
    """A function that is served.

    Args:
      function: takes the inputs in order, after the parameters if there are any;
        returns an array, a tuple of them, or a dict by name. A generator, or an
        asynchronous one, yields such results, and answers each request by a stream.
      params: a pytree for the first argument; None: there is no such argument.
      inputs: type of each input, such as ``{"x": "f32[batch,784]"}``.
      outputs: names of what comes out, unless the function returns a dict.
      batched: whether the first axis of all inputs and outputs is that of a batch,
        whose rows do not depend on each other.
      jit: whether the function is compiled, for few sizes of a batch; no other size
        of its inputs may then be open.
      example: one row of each input, by which the model is tried when it is loaded;
        zeros if there is none.
      sizes: the batches that it is run with, to which others are padded; empty: few
        up to the largest if it is compiled, else any.

    Raises:
      ServeError: types are not as they have to be.

    Example:
      >>> import fxflow.numpy as fnp
      >>> def linear(w, x):
      ...     return x @ w
      >>> model = Model(linear, fnp.eye(3) * 2, inputs={"x": "f32[batch,3]"})
      >>> signature = model.prepare(max_batch=4)
      >>> signature.sizes, str(signature.outputs[0])
      ((1, 2, 3, 4), 'f32[batch,3]')
      >>> model.run([np.ones((2, 3), np.float32)], rows=2)[0].tolist()
      [[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]
    """

    def __init__(
        self,
        function: Callable[..., Any],
        params: Any = None,
        *,
        inputs: Mapping[str, str],
        outputs: Sequence[str] = (),
        batched: bool = True,
        jit: bool = True,
        example: Mapping[str, Any] | None = None,
        sizes: Sequence[int] = (),
    ) -> None:
        self._inputs = tuple(TensorSpec.parse(*item) for item in inputs.items())
        if not self._inputs:
            raise ServeError("a model needs at least one input")
        for spec in self._inputs:
            if batched and not (spec.shape and isinstance(spec.shape[0], str)):
                raise ServeError(
                    f"the first axis of input {spec.name!r} is the batch's and must be "
                    f"open, such as 'batch'; got {spec} (or say batched=False)"
                )
            rest = spec.shape[1:] if batched else spec.shape
            if jit and any(isinstance(size, str) for size in rest):
                raise ServeError(
                    f"input {spec.name!r} is {spec}: a compiled function would be "
                    "compiled again for each size, so only the batch's may be open "
                    "(or say jit=False)"
                )
            if jit and spec.datatype == "BYTES":
                raise ServeError(f"input {spec.name!r}: strings need jit=False")
        if jit and (
            inspect.isgeneratorfunction(function)
            or inspect.isasyncgenfunction(function)
        ):
            raise ServeError(
                "a generator is called as it is: say jit=False, and jit what it does "
                "in a step"
            )
        self._names = tuple(outputs)
        self._batched, self._jit = batched, jit
        self._function = _jit(function) if jit else function
        self._params = () if params is None else (params,)
        self._example = dict(example or {})
        if sizes and (not batched or min(sizes) < 1):
            raise ServeError(f"sizes are those of batches, at least 1; got {sizes}")
        self._sizes = tuple(sorted(set(sizes)))
        self._outputs: tuple[TensorSpec, ...] = ()

    def prepare(
        self, max_batch: int, run: Callable[[Any], Any] = asyncio.run
    ) -> Signature:
        """Runs the model once for each size of a batch that it will be given.

        Args:
          max_batch: the most rows of a batch.
          run: runs a coroutine, in the event loop in which streams will be.

        Returns:
          What it takes and gives.

        Raises:
          ServeError: an output is not as it has to be.
        """
        if self._batched and self._jit and not self._sizes:
            self._sizes = sizes_up_to(max_batch)
        if self._jit:  # once, and not with each batch
            self._params = device_put(self._params)
        trials = self._sizes or (1, min(2, max_batch)) if self._batched else (1,)
        streamed = False
        for rows in trials:
            sample = [self._sample(spec, rows) for spec in self._inputs]
            with warnings.catch_warnings():
                # It is compiled for many sizes, as it is meant to be.
                warnings.simplefilter("ignore", RetraceWarning)
                found = self._called(sample)
            streamed = inspect.isgenerator(found) or inspect.isasyncgen(found)
            if streamed:
                found = run(_first(found))
            specs = []
            for name, value in self._arrays(found).items():
                if value.dtype not in DATATYPE_OF:
                    raise ServeError(f"output {name!r} has dtype {value.dtype}")
                shape: tuple[int | str, ...] = value.shape
                if self._batched:
                    if value.shape[:1] != (rows,):
                        raise ServeError(
                            f"output {name!r} has shape {value.shape} for {rows} rows: "
                            "its first axis has to be the batch's (or batched=False)"
                        )
                    shape = (self._inputs[0].shape[0], *shape[1:])
                specs.append(TensorSpec(name, DATATYPE_OF[value.dtype], shape))
            self._outputs = tuple(specs)
        return Signature(
            self._inputs, self._outputs, self._batched, self._sizes, streamed
        )

    def run(self, inputs: Arrays, rows: int) -> Arrays:
        """Returns the outputs for a batch, which is padded to a size compiled for.

        Args:
          inputs: arrays, in order.
          rows: how many rows they have.

        Returns:
          Arrays with so many rows, in order.

        Raises:
          ServeError: the model gave other outputs than when it was loaded.
        """
        size = padded(rows, self._sizes)
        if size != rows:
            # Rows that are there already: of zeros a model might not know what to say.
            inputs = [
                np.concatenate([x, np.repeat(x[-1:], size - rows, axis=0)])
                for x in inputs
            ]
        return self._checked(self._called(inputs), size, rows)

    async def stream(self, inputs: Arrays, rows: int) -> AsyncGenerator[Arrays, None]:
        """Yields one result of a generator after the other.

        Args:
          inputs: arrays, in order.
          rows: how many rows they have.

        Yields:
          Arrays with so many rows, in order.

        Raises:
          ServeError: the model gave other outputs than when it was loaded.
        """
        async with _asynchronous(self._called(inputs)) as results:
            async for found in results:
                yield self._checked(found, rows, rows)

    def _called(self, inputs: Arrays) -> Any:
        """The function's result; compiled, it is given each input's declared dtype."""
        return self._function(
            *self._params, *(declared(inputs) if self._jit else inputs)
        )

    def _checked(self, result: Any, size: int, rows: int) -> Arrays:
        """The outputs of a result that has `size` rows, of which `rows` are asked."""
        found = self._arrays(result)
        outputs = []
        for spec in self._outputs:
            value = found.get(spec.name)
            if value is None or value.dtype != spec.dtype:
                got = "nothing" if value is None else str(value.dtype)
                raise ServeError(f"output {spec.name!r} must be {spec}, got {got}")
            if self._batched and value.shape[:1] != (size,):
                raise ServeError(
                    f"output {spec.name!r} has shape {value.shape} for {size} rows"
                )
            outputs.append(value[:rows] if self._batched else value)
        return outputs

    def _sample(self, spec: TensorSpec, rows: int) -> np.ndarray[Any, Any]:
        shape = tuple(1 if isinstance(size, str) else size for size in spec.shape)
        if spec.name in self._example:
            value = np.asarray(self._example[spec.name], spec.dtype)
            value = value[None] if self._batched else value
        elif spec.datatype == "BYTES":
            value = np.full(shape, b"", object)
        else:
            value = np.zeros(shape, spec.dtype)
        return np.repeat(value, rows, axis=0) if self._batched else value

    def _arrays(self, found: Any) -> dict[str, np.ndarray[Any, Any]]:
        """What the function has given, by name."""
        if isinstance(found, Mapping):
            named = dict(found)
        else:
            values = found if isinstance(found, tuple | list) else (found,)
            names = self._names or tuple(
                f"output_{k}" if len(values) > 1 else "output"
                for k in range(len(values))
            )
            if len(names) != len(values):
                raise ServeError(
                    f"outputs names {len(names)}, and the function returns "
                    f"{len(values)}"
                )
            named = dict(zip(names, values, strict=True))
        arrays = {}
        for name, value in named.items():
            array = np.asarray(value)
            if array.dtype.kind in "US":
                array = np.char.encode(array) if array.dtype.kind == "U" else array
                array = array.astype(object)
            else:
                array = array.astype(array.dtype.newbyteorder("="), copy=False)
            arrays[str(name)] = array
        return arrays


def declared(inputs: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
    """Returns the inputs of a compiled function, with 64 bits where they have them."""
    return [as_array(x, x.dtype) if dtypes.is_wide(x.dtype) else x for x in inputs]


def _asynchronous(results: Any) -> aclosing[AsyncGenerator[Any, None]]:
    """A generator of either kind as an asynchronous one, which is closed at the end."""

    async def each() -> AsyncGenerator[Any, None]:
        with closing(results) as found:
            for result in found:
                yield result

    found: Any = results if inspect.isasyncgen(results) else each()
    return aclosing(found)


async def _first(results: Any) -> Any:
    """The last of the first results, by which a generator is tried."""
    found: list[Any] = []
    async with _asynchronous(results) as each:
        async for result in each:
            found.append(result)
            if len(found) == _TRIED:
                break
    if not found:
        raise ServeError(
            "the generator yields nothing for its example, which is to show what it "
            "yields: give another one (example=...)"
        )
    return found[-1]
