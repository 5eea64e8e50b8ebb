"""What is served: a function with its parameters and the types of its inputs.

A model is named by a string, ``module:name``, ``path/to/file.py:name`` or ``model.fx``,
because its process loads it afresh (`load_model`). What the name stands for is a
`Model`, a function that makes one (`factory`), an exported program, or any callable
that takes arrays, whose types the configuration says.

An exported program is for arrays of one shape, unless its sizes are open. So several
files may be one model: `digits-*.fx`, exported for batches of 1, 8 and 64 rows, to
which others are padded. A part that several of them share is in memory once if it is in
a file beside them.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import sys
import warnings
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from glob import glob
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import as_array, dtypes
from fxflow.errors import RetraceWarning, ServeError
from fxflow.export.files import Bundle, load
from fxflow.lax.pytree_transfer import device_put
from fxflow.serve.batching.policies import padded, sizes_up_to
from fxflow.serve.signatures import DATATYPES, ModelSignature, TensorSpec
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
    ) -> ModelSignature:
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
        return ModelSignature(
            self._inputs, self._outputs, self._batched, self._sizes, streamed
        )

    def run(self, inputs: Arrays, rows: int) -> Arrays:
        """Returns the outputs for a batch, which is padded to a size compiled for.

        Args:
          inputs: arrays, in order.
          rows: how many rows they have.

        Returns:
          Arrays with `rows` rows, in order.

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
          Arrays with `rows` rows, in order.

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


# -- exported programs -----------------------------------------------------------------


def load_exported(
    pattern: str,
    *,
    inputs: Mapping[str, str] | None = None,
    outputs: Sequence[str] = (),
    batched: bool = True,
    compiled: bool = False,
) -> Model:
    """Returns the model that one or more `.fx` files hold.

    Args:
      pattern: the path, in which `*` stands for any text.
      inputs: names of the inputs, in order, and their types, which have to be the
        program's. Without them an input has the name of the function's parameter, or
        of its place in a parameter that is a dict; ``input`` in files that do not know.
      outputs: names of what comes out; likewise.
      batched: whether the first axis of all inputs and outputs is that of a batch.
      compiled: whether to run the machine code in the files; see `fxflow.export.load`.

    Returns:
      The model.

    Raises:
      ServeError: there is no such file, or their programs are not those of one model.
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
                f"{path} and {paths[0]} are not one model: it takes "
                f"{_listed(found[k])} in batches of {rows[k]}, the other "
                f"{_listed(found[0])} in batches of {rows[0]}; they have to differ in "
                "the batch's size, and in nothing else"
            )
    specs = found[0]
    if inputs:
        given = [TensorSpec.parse(*item) for item in inputs.items()]
        if [(g.datatype, _fixed(g)) for g in given] != [
            (s.datatype, _fixed(s)) for s in specs
        ]:
            raise ServeError(
                f"{pattern} takes {_listed(specs)}, and inputs says {_listed(given)}"
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

    # Machine code is called as it is; a program becomes part of a compiled function.
    programs = {
        size: run if bundle.is_compiled else _jit(run)
        for (size, run), bundle in zip(runners.items(), bundles, strict=True)
    }
    sizes = [size for size in rows if isinstance(size, int)]
    return Model(call, jit=False, sizes=sizes, **options)


def _arguments(bundle: Bundle) -> Any:
    """Returns the structure of the arguments that are not in the file."""
    positional, named = bundle.exported.in_tree.children()
    skipped = 0 if bundle.params is None else 1
    return positional.children()[skipped:], named


def _specs(bundle: Bundle, path: str) -> list[TensorSpec]:
    """Returns names and types of the arguments that are not in the file."""
    positional, named = _arguments(bundle)
    count = sum(part.num_leaves for part in positional) + named.num_leaves
    arguments = [*positional, named]
    inside, numbered = [], []
    for k, part in enumerate(arguments):
        for keys, _ in tree.leaves_with_path(part.unflatten(range(part.num_leaves))):
            inside.append(tree.keystr(keys, simple=True, separator="."))
            numbered.append("input" if len(arguments) == 2 else f"input_{k}")
    # Files of an earlier fxflow, and programs of JAX, do not know the parameters.
    known = bundle.exported.in_names[len(bundle.exported.in_avals) - count :]
    whole = list(known) or numbered
    names = [part or name for part, name in zip(inside, whole, strict=True)]
    if len(set(names)) < count:
        names = whole
    if not count or len(set(names)) < count:
        raise ServeError(f"{path}: its arguments have no names of their own: {names}")
    avals = bundle.exported.in_avals[len(bundle.exported.in_avals) - count :]
    specs = []
    for name, aval in zip(names, avals, strict=True):
        if aval.dtype not in DATATYPE_OF:
            raise ServeError(f"{path}: no request can have {aval} for {name!r}")
        shape = [size if isinstance(size, int) else str(size) for size in aval.shape]
        specs.append(TensorSpec(name, DATATYPE_OF[aval.dtype], tuple(shape)))
    return specs


def _rows(specs: Sequence[TensorSpec], path: str) -> int | str:
    """Returns the size of the batch that a program is for."""
    sizes = {spec.shape[0] if spec.shape else None for spec in specs}
    rows = sizes.pop()
    if sizes or rows is None:
        raise ServeError(
            f"{path} takes {_listed(specs)}: the first axis of all inputs has to be "
            "the batch's (or batched=False)"
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
    """Returns the type for a batch of any size."""
    return replace(spec, shape=("batch", *spec.shape[1:]))


def _fixed(spec: TensorSpec) -> tuple[int | None, ...]:
    return tuple(size if isinstance(size, int) else None for size in spec.shape)


def _listed(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(f"{spec.name}: {spec}" for spec in specs)


# -- models by name --------------------------------------------------------------------


def load_model(
    source: str,
    *,
    factory: bool = False,
    arguments: Mapping[str, Any] | None = None,
    inputs: Mapping[str, str] | None = None,
    outputs: Sequence[str] = (),
    batched: bool = True,
) -> Model:
    """Returns the model that a text names.

    Args:
      source: ``module:name``, ``path/to/file.py:name`` or ``path/to/model.fx``.
      factory: whether the name is a function that is called to get the model.
      arguments: keyword arguments for that function; of a `.fx` file, ``compiled``.
      inputs: types of the inputs of a plain callable, which is called as it is, not
        compiled; the names of the inputs of a `.fx` file.
      outputs: names of what comes out of such a callable or file.
      batched: whether such a callable or file takes batches.

    Returns:
      The model.

    Raises:
      ServeError: there is no such object, or it is not a model.

    Example:
      >>> load_model("numpy:negative", inputs={"x": "f32[batch]"}).prepare(8).batched
      True
    """
    if source.endswith(".fx"):
        if factory or (unknown := (arguments or {}).keys() - {"compiled"}):
            what = "factory" if factory else f"argument {min(unknown)!r}"
            raise ServeError(f"{source!r} is a program: it has no {what}")
        return load_exported(
            source,
            inputs=inputs,
            outputs=outputs,
            batched=batched,
            **(arguments or {}),
        )
    place, _, name = source.rpartition(":")
    if not place or not name:
        raise ServeError(
            "a model is named as 'module:name', 'file.py:name' or 'model.fx', got "
            f"{source!r}"
        )
    value: Any = _imported(place)
    for part in name.split("."):
        if not hasattr(value, part):
            raise ServeError(f"there is no {name!r} in {place!r}")
        value = getattr(value, part)
    if factory:
        value = value(**(arguments or {}))
    elif arguments:
        raise ServeError(f"arguments are for a factory, and {source!r} is not called")
    if isinstance(value, Model):
        return value
    if not callable(value):
        raise ServeError(f"{source!r} is not a model, but a {type(value).__name__}")
    if not inputs:
        raise ServeError(
            f"{source!r} is a {type(value).__name__}: say the types of its inputs, "
            "such as inputs = {x = 'f32[batch,784]'}, or make it a fxflow.serve.Model"
        )
    return Model(value, inputs=inputs, outputs=outputs, batched=batched, jit=False)


def _imported(place: str) -> ModuleType:
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = Path(place).resolve()
    if not path.is_file():
        raise ServeError(f"there is no file {place!r}")
    # Modules beside it are found, as if it were run.
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
