"""Models: a function with its parameters and the types of its inputs.

A model is named by a string, ``module:name``, ``path/to/file.py:name`` or ``model.fx``,
because each process loads it anew (`loading`). The name refers to a `Model`, a
function that returns one (`factory`), an exported program, or any callable that takes
arrays, whose types the configuration gives.

An exported program takes arrays of one shape, unless its sizes are open. So several
files may form one model: `digits-*.fx`, exported for batches of 1, 8 and 64 rows, to
which other batches are padded. Arrays that they share are in memory once if they are
stored in a separate file next to them.
"""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from glob import glob
from typing import Any

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import as_array, dtypes
from fxflow.errors import RetraceWarning, ServeError
from fxflow.export.files import Bundle, load
from fxflow.lax.pytree_transfer import device_put
from fxflow.serve.batching import padded, sizes_up_to, with_rows
from fxflow.serve.signatures import DATATYPES, ModelSignature, TensorSpec
from fxflow.transforms.jit import jit as _jit

Arrays = list[np.ndarray[Any, Any]]
#: NumPy's dtype → datatype of the protocol.
DATATYPE_OF = {dtype: name for name, (_, dtype) in DATATYPES.items()}
#: Results for which a generator runs when it is loaded: its first steps may differ, as
#: a language model's prefill differs from decoding, and each is compiled.
_TRIED = 4


class Model:
    """A function to serve, with its parameters and the types of its inputs.

    Args:
      function: takes the inputs in order, after the parameters if there are any;
        returns an array, a tuple of arrays, or a dict by name. A generator, or an
        asynchronous one, yields such results, and answers each request with a stream.
      params: a pytree for the first argument; None: there is no such argument.
      inputs: type of each input, such as ``{"x": "f32[batch,784]"}``.
      outputs: names of the outputs, unless the function returns a dict.
      batched: whether the first axis of all inputs and outputs is a batch axis, whose
        rows do not depend on each other.
      jit: whether to compile the function, for a few batch sizes; no other size of its
        inputs may then be open.
      example: one row of each input, on which the model runs when it is loaded; None:
        zeros.
      sizes: the batch sizes that it runs with, to which other batches are padded;
        empty: `sizes_up_to` the largest batch if it is compiled, else any size.

    Attributes:
      age: seconds since the data that the last batch used was read from where it
        changes; None: nothing changes.

    Raises:
      ServeError: an input's type is invalid.

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

    age: float | None

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
                    f"the first axis of input {spec.name!r} is the batch axis and must "
                    f"be open, such as 'batch'; got {spec} (or set batched=False)"
                )
            rest = spec.shape[1:] if batched else spec.shape
            if jit and any(isinstance(size, str) for size in rest):
                raise ServeError(
                    f"input {spec.name!r} is {spec}: a compiled function would be "
                    "compiled again for each size, so only the batch size may be open "
                    "(or set jit=False)"
                )
            if jit and spec.datatype == "BYTES":
                raise ServeError(f"input {spec.name!r}: strings need jit=False")
        if jit and (
            inspect.isgeneratorfunction(function)
            or inspect.isasyncgenfunction(function)
        ):
            raise ServeError(
                "a generator cannot be compiled: set jit=False, and jit the function "
                "of one step"
            )
        self._names = tuple(outputs)
        self._batched, self._jit = batched, jit
        self._function = _jit(function) if jit else function
        self._params = () if params is None else (params,)
        self._example = dict(example or {})
        if sizes and (not batched or min(sizes) < 1):
            raise ServeError(f"sizes must be batch sizes, at least 1; got {sizes}")
        self._sizes = tuple(sorted(set(sizes)))
        self._outputs: tuple[TensorSpec, ...] = ()
        self.age = None

    def prepare(
        self, max_batch: int, run: Callable[[Any], Any] = asyncio.run
    ) -> ModelSignature:
        """Runs the model once for each batch size, and returns its signature.

        Args:
          max_batch: the most rows of a batch.
          run: runs a coroutine, in the event loop that will run streams.

        Returns:
          The signature.

        Raises:
          ServeError: an output has an unsupported dtype or shape.
        """
        if self._batched and self._jit and not self._sizes:
            self._sizes = sizes_up_to(max_batch)
        if self._jit:  # transfer once, not with each batch
            self._params = device_put(self._params)
        trials = self._sizes or (1, min(2, max_batch)) if self._batched else (1,)
        streamed = False
        for rows in trials:
            sample = [self._sample(spec, rows) for spec in self._inputs]
            with warnings.catch_warnings():
                # Compiling for many sizes is intended.
                warnings.simplefilter("ignore", RetraceWarning)
                found = self._call(sample)
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
                            "its first axis must be the batch axis (or batched=False)"
                        )
                    shape = (self._inputs[0].shape[0], *shape[1:])
                specs.append(TensorSpec(name, DATATYPE_OF[value.dtype], shape))
            self._outputs = tuple(specs)
        return ModelSignature(
            self._inputs, self._outputs, self._batched, self._sizes, streamed
        )

    def run(self, inputs: Arrays, rows: int) -> Arrays:
        """Returns the outputs for a batch, after padding it to a compiled size.

        Args:
          inputs: arrays, in order.
          rows: number of rows.

        Returns:
          Arrays with `rows` rows, in order.

        Raises:
          ServeError: the outputs differ from those when the model was loaded.
        """
        size = padded(rows, self._sizes)
        if size != rows:
            inputs = [with_rows(x, size) for x in inputs]
        return self._checked(self._call(inputs), size, rows)

    async def stream(self, inputs: Arrays, rows: int) -> AsyncGenerator[Arrays, None]:
        """Yields the results of a generator.

        Args:
          inputs: arrays, in order.
          rows: number of rows.

        Yields:
          Arrays with `rows` rows, in order.

        Raises:
          ServeError: the outputs differ from those when the model was loaded.
        """
        async with _asynchronous(self._call(inputs)) as results:
            async for found in results:
                yield self._checked(found, rows, rows)

    def _call(self, inputs: Arrays) -> Any:
        """Calls the function; if compiled, with inputs of their declared dtypes."""
        return self._function(
            *self._params, *(declared(inputs) if self._jit else inputs)
        )

    def _checked(self, result: Any, size: int, rows: int) -> Arrays:
        """Checks a result of `size` rows, and returns its first `rows` rows."""
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
        """Returns the function's result as NumPy arrays by name."""
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
                    f"outputs has {len(names)} names, but the function returns "
                    f"{len(values)}"
                )
            named = dict(zip(names, values, strict=True))
        arrays = {}
        for name, value in named.items():
            array = np.asarray(value)
            if array.dtype.kind in "US":
                array = np.char.encode(array) if array.dtype.kind == "U" else array
                array = array.astype(object)
            elif not array.dtype.isnative:
                array = array.astype(array.dtype.newbyteorder("="))
            arrays[str(name)] = array
        return arrays


def declared(inputs: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
    """Converts 64-bit inputs to arrays that keep their dtype under `jit`."""
    return [as_array(x, x.dtype) if dtypes.is_wide(x.dtype) else x for x in inputs]


def _asynchronous(results: Any) -> aclosing[AsyncGenerator[Any, None]]:
    """Returns a generator of either kind as an asynchronous one, closed at the end."""

    async def each() -> AsyncGenerator[Any, None]:
        with closing(results) as found:
            for result in found:
                yield result

    found: Any = results if inspect.isasyncgen(results) else each()
    return aclosing(found)


async def _first(results: Any) -> Any:
    """Runs a generator for up to `_TRIED` results, and returns the last."""
    found: list[Any] = []
    async with _asynchronous(results) as each:
        async for result in each:
            found.append(result)
            if len(found) == _TRIED:
                break
    if not found:
        raise ServeError(
            "the generator yields nothing for its example, which must show its "
            "outputs: give another example (example=...)"
        )
    return found[-1]


# -- exported programs -----------------------------------------------------------------


def load_exported(
    pattern: str,
    *,
    inputs: Mapping[str, str] | None = None,
    outputs: Sequence[str] = (),
    batched: bool = True,
    compiled: bool = False,
) -> Model:
    """Returns the model in one or more `.fx` files.

    Args:
      pattern: the path, in which `*` matches any text.
      inputs: names of the inputs, in order, and their types, which must be the
        program's. By default an input is named after the function's parameter or the
        key in a dict; ``input`` in files without names.
      outputs: names of the outputs.
      batched: whether the first axis of all inputs and outputs is the batch axis.
      compiled: whether to run the machine code in the files; see `fxflow.export.load`.

    Returns:
      The model.

    Raises:
      ServeError: no file matches, or the programs do not form one model.
      ExportError: a file is damaged.
    """
    paths = sorted(glob(pattern))
    if not paths:
        raise ServeError(f"there is no file {pattern!r}")
    bundles = [load(path, compiled=compiled) for path in paths]
    found = [_specs(bundle, path) for bundle, path in zip(bundles, paths, strict=True)]
    if batched:
        rows = [_rows(specs, path) for specs, path in zip(found, paths, strict=True)]
        found = [[_of_any(spec) for spec in specs] for specs in found]
    else:
        rows = [1] * len(paths)
    for k, path in enumerate(paths):
        if found[k] != found[0] or rows[k] in rows[:k] or type(rows[k]) is not int:
            if len(paths) == 1:
                break
            raise ServeError(
                f"{path} and {paths[0]} do not form one model: the first takes "
                f"{_listed(found[k])} in batches of {rows[k]}, the second "
                f"{_listed(found[0])} in batches of {rows[0]}; they must differ in "
                "the batch size, and in nothing else"
            )
    specs = found[0]
    if inputs:
        given = [TensorSpec.parse(*item) for item in inputs.items()]
        if [(g.datatype, _fixed(g)) for g in given] != [
            (s.datatype, _fixed(s)) for s in specs
        ]:
            raise ServeError(
                f"{pattern} takes {_listed(specs)}, but inputs has {_listed(given)}"
            )
        specs = given
    options: dict[str, Any] = {
        "inputs": {spec.name: str(spec) for spec in specs},
        "outputs": outputs,
        "batched": batched,
    }
    runners = dict(zip(rows, map(_runner, bundles), strict=True))
    if not batched or not isinstance(rows[0], int):
        (run,) = runners.values()
        return Model(run, jit=not bundles[0].is_compiled, **options)

    def call(*arrays: Any) -> Any:
        return programs[arrays[0].shape[0]](*declared(arrays))

    # Machine code is called directly; a program becomes part of a compiled function.
    programs = {
        size: run if bundle.is_compiled else _jit(run)
        for (size, run), bundle in zip(runners.items(), bundles, strict=True)
    }
    sizes = [size for size in rows if isinstance(size, int)]
    return Model(call, jit=False, sizes=sizes, **options)


def _arguments(bundle: Bundle) -> Any:
    """Returns the structure of the arguments that the file does not contain."""
    positional, named = bundle.exported.in_tree.children()
    skipped = 0 if bundle.params is None else 1
    return positional.children()[skipped:], named


def _specs(bundle: Bundle, path: str) -> list[TensorSpec]:
    """Returns names and types of the arguments that the file does not contain."""
    positional, named = _arguments(bundle)
    count = sum(part.num_leaves for part in positional) + named.num_leaves
    arguments = [*positional, named]
    inside, numbered = [], []
    for k, part in enumerate(arguments):
        for keys, _ in tree.leaves_with_path(part.unflatten(range(part.num_leaves))):
            inside.append(tree.keystr(keys, simple=True, separator="."))
            numbered.append("input" if len(arguments) == 2 else f"input_{k}")
    # Files of earlier versions, and JAX programs, have no names of parameters.
    known = bundle.exported.in_names[len(bundle.exported.in_avals) - count :]
    whole = list(known) or numbered
    names = [part or name for part, name in zip(inside, whole, strict=True)]
    if len(set(names)) < count:
        names = whole
    if not count or len(set(names)) < count:
        raise ServeError(f"{path}: its arguments have no distinct names: {names}")
    avals = bundle.exported.in_avals[len(bundle.exported.in_avals) - count :]
    specs = []
    for name, aval in zip(names, avals, strict=True):
        if aval.dtype not in DATATYPE_OF:
            raise ServeError(f"{path}: requests do not support {aval}, of {name!r}")
        shape = [size if isinstance(size, int) else str(size) for size in aval.shape]
        specs.append(TensorSpec(name, DATATYPE_OF[aval.dtype], tuple(shape)))
    return specs


def _rows(specs: Sequence[TensorSpec], path: str) -> int | str:
    """Returns the batch size that a program takes."""
    sizes = {spec.shape[0] if spec.shape else None for spec in specs}
    rows = sizes.pop()
    if sizes or rows is None:
        raise ServeError(
            f"{path} takes {_listed(specs)}: the first axis of all inputs must be the "
            "batch axis, with one size (or batched=False)"
        )
    return rows


def _runner(bundle: Bundle) -> Callable[..., Any]:
    """Returns a function of the inputs, in order."""
    positional, named = _arguments(bundle)

    def run(*arrays: Any) -> Any:
        left = list(arrays)

        def built(structure: Any) -> Any:
            leaves = [left.pop(0) for _ in range(structure.num_leaves)]
            return structure.unflatten(leaves)

        in_order = [built(structure) for structure in positional]
        return bundle.call(*in_order, **built(named))

    return run


def _of_any(spec: TensorSpec) -> TensorSpec:
    """Returns the type with an open batch size."""
    return replace(spec, shape=("batch", *spec.shape[1:]))


def _fixed(spec: TensorSpec) -> tuple[int | None, ...]:
    return tuple(size if isinstance(size, int) else None for size in spec.shape)


def _listed(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(f"{spec.name}: {spec}" for spec in specs)
