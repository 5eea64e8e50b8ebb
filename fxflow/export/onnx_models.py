"""Converts functions to ONNX models, for ONNX Runtime and other tools.

The function's graph is converted one operation at a time (`onnx_rules/`). Bound
parameters become initializers, named after their place in the tree.
"""

from __future__ import annotations

import ctypes
import importlib
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fxflow._version import __version__
from fxflow.core import tree
from fxflow.core.arrays import Aval, dtypes, put_host
from fxflow.core.boundary import guard_methods
from fxflow.core.ir.graph import Graph, graph_name, prune
from fxflow.core.labels import dotted_names, dotted_path
from fxflow.devices.process import cores
from fxflow.errors import ArgumentError
from fxflow.export.onnx_rules.writer import IR_VERSION, OPSET, Value, Writer
from fxflow.export.programs import leaves_of, traced_of, words_of
from fxflow.export.quantization import is_weight
from fxflow.export.quantization import quantize as quantized
from fxflow.export.sizes import settled, solve

#: Protocol buffers are limited to 2 GiB; larger models need a separate file of weights.
_LARGEST = 2**31 - 2**20


@guard_methods
class OnnxModel:
    """A function as an ONNX model.

    `onnx` makes one. Calling it runs it with ONNX Runtime, if that is installed.

    Attributes:
      model: the `onnx.ModelProto`.
      name: name of the function.
      in_tree: structure of `(args, kwargs)`, without the bound parameters.
      in_avals: types of the leaves of the arguments.
      in_names: names of the model's inputs.
      out_tree: structure of the result.
      out_avals: types of its leaves.
      out_names: names of the model's outputs.
    """

    in_avals: tuple[Aval, ...]
    in_names: tuple[str, ...]
    in_tree: Any
    model: Any
    name: str
    out_avals: tuple[Aval, ...]
    out_names: tuple[str, ...]
    out_tree: Any

    def __init__(
        self,
        model: Any,
        *,
        name: str,
        in_tree: Any,
        in_avals: Sequence[Aval],
        in_names: Sequence[str],
        out_tree: Any,
        out_avals: Sequence[Aval],
        out_names: Sequence[str],
    ) -> None:
        self.model, self.name = model, name
        self.in_tree, self.in_avals = in_tree, tuple(in_avals)
        self.out_tree, self.out_avals = out_tree, tuple(out_avals)
        self.in_names, self.out_names = tuple(in_names), tuple(out_names)

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(str, a)) for a in (self.in_avals, self.out_avals))
        return (
            f"<OnnxModel {self.name}({ins}) -> ({outs}), {len(self.model.graph.node)} "
            f"nodes, {self.model.ByteSize():,} bytes>"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the model with ONNX Runtime on the CPU.

        Args:
          *args: positional arguments, of the structure and types of the conversion.
          **kwargs: keyword arguments, likewise.

        Returns:
          The function's result, with arrays as leaves.

        Raises:
          ArgumentError: structure or types differ, or ONNX Runtime rejects the model.
          ImportError: ONNX Runtime is not installed.
        """
        leaves = leaves_of(
            self.name, self.in_tree, self.in_avals, self.in_names, args, kwargs
        )
        shapes = [leaf.shape for leaf in leaves]
        known = solve(self.in_avals, shapes, self.name, self.in_names)
        outs_wanted = [settled(aval, known) for aval in self.out_avals]
        runtime, session = self._session
        given = {
            name: _value_of(runtime, leaf)
            for name, leaf in zip(self.in_names, leaves, strict=True)
        }
        outs = session.run_with_ort_values(list(self.out_names), given)
        return self.out_tree.unflatten(
            [
                put_host(_array_of(out, aval), aval)
                for out, aval in zip(outs, outs_wanted, strict=True)
            ]
        )

    @cached_property
    def _session(self) -> tuple[Any, Any]:
        try:
            runtime = importlib.import_module("onnxruntime")
        except ImportError:
            raise ImportError(
                "calling an OnnxModel needs ONNX Runtime: pip install onnxruntime"
            ) from None
        options = runtime.SessionOptions()
        # The error includes the log messages about the model.
        options.log_severity_level = 4
        options.intra_op_num_threads = cores()
        try:
            session = runtime.InferenceSession(
                self.model.SerializeToString(), options, ["CPUExecutionProvider"]
            )
        except Exception as error:  # its own classes derive from nothing narrower
            raise ArgumentError(f"{self.name}: ONNX Runtime: {error}") from None
        return runtime, session

    def save(self, path: str | os.PathLike[str], *, beside: str | None = None) -> None:
        """Writes the model.

        Args:
          path: path of the file, conventionally `.onnx`.
          beside: name of a file in the same folder for the weights; None: a single
            file, up to 2 GiB.

        Raises:
          ArgumentError: the model is larger than 2 GiB and `beside` is None.

        Example:
          >>> model.save("f.onnx")  # doctest: +SKIP
        """
        if beside is None:
            if self.model.ByteSize() > _LARGEST:
                raise ArgumentError(
                    f"{self.name}: save: {self.model.ByteSize():,} bytes do not fit "
                    "one file of ONNX (2 GiB): give beside='weights.bin'"
                )
            Path(path).write_bytes(self.model.SerializeToString())
            return
        model = type(self.model)()
        model.CopyFrom(self.model)
        # `save_model` appends to an existing file.
        Path(path).with_name(beside).unlink(missing_ok=True)
        importlib.import_module("onnx").save_model(
            model,
            os.fspath(path),
            save_as_external_data=True,
            location=beside,
            size_threshold=1024,
        )


def onnx(
    exported: Any, *, params: Any = None, quantize: str | None = None
) -> OnnxModel:
    """Converts a function to an ONNX model.

    The model includes the arrays that the function captures, and `params`. The other
    arguments are the model's inputs, named after the function's parameters and their
    tree (`x`, `state.0`); its outputs are `output`, or `output.0` and so on. Symbolic
    sizes become dynamic axes with their names; calls of the `OnnxModel` check their
    constraints, other runtimes do not. The model has opset 21 (ONNX 1.16), which ONNX
    Runtime 1.18 and later support.

    Args:
      exported: the result of `jit(f).lower(...)`, `jit(f).trace(...)` or
        `export(jit(f))(...)`; not a loaded function, which has only StableHLO.
      params: value of the function's first argument, which becomes initializers named
        after their tree (`params.w`). None: it stays an input.
      quantize: `"int8"` stores weights (captured or bound floats with at least two
        axes) in int8, with a scale for each channel; None: unchanged.

    Returns:
      The model, which can be saved, and called with ONNX Runtime.

    Raises:
      ArgumentError: `params` do not match the argument; the function has effects,
        references or several devices; `quantize` is unknown.
      ExportError: an operation or dtype has no counterpart in ONNX (the message has its
        name and line), or no input determines a symbolic size.
      ImportError: the package `onnx` is not installed (extra `onnx`).

    Example:
      >>> apply = lambda params, x: {"y": x @ params["w"]}
      >>> w = {"w": fnp.eye(2)}
      >>> model = onnx(fxflow.jit(apply).lower(w, fnp.ones((1, 2))), params=w)
      >>> model.in_names, model.out_names
      (('x',), ('output.y',))
      >>> model.save("apply.onnx")  # doctest: +SKIP

    Source: ONNX, opset 21.
    """
    if quantize not in (None, "int8"):
        raise ArgumentError(f"onnx: quantize must be 'int8' or None, got {quantize!r}")
    traced = traced_of(exported, "onnx")
    try:
        importlib.import_module("onnx")
    except ImportError:
        raise ImportError(
            "onnx needs the onnx package: pip install 'fxflow[onnx]'"
        ) from None
    w = Writer(traced.name)
    names = dotted_names(traced.in_tree, traced.labels)
    bound, in_tree = _bound(traced, params)
    values = [
        _initializer(w, f"captured.{i}", words_of(const), quantize)
        for i, const in enumerate(traced.consts)
    ]
    inputs = []
    for i, (name, aval) in enumerate(zip(names, traced.in_avals, strict=True)):
        if i < len(bound):
            values.append(_initializer(w, name, words_of(bound[i]), quantize))
            continue
        value = Value(w.unique(name), aval.physical.dtype)
        inputs.append((value, aval))
        values.append(value)
    out_names = [
        w.unique(f"output{dotted_path(path)}")
        for path, _ in tree.leaves_with_path(
            traced.out_tree.unflatten(range(traced.out_tree.num_leaves))
        )
    ]
    w.sizes.settle(inputs, traced.out_avals)
    outputs = _written(w, prune(traced.graph), values, out_names, traced.out_avals)
    return OnnxModel(
        _model(w, inputs, outputs),
        name=traced.name,
        in_tree=in_tree,
        in_avals=[aval for _, aval in inputs],
        in_names=[str(value) for value, _ in inputs],
        out_tree=traced.out_tree,
        out_avals=traced.out_avals,
        out_names=out_names,
    )


# -- names -----------------------------------------------------------------------------


def _bound(traced: Any, params: Any) -> tuple[list[Any], Any]:
    """Returns the leaves of `params`, and the structure of the other arguments."""
    if params is None:
        return [], traced.in_tree
    args, kwargs = traced.in_tree.unflatten(range(len(traced.in_avals)))
    if not args:
        raise ArgumentError(f"onnx: {traced.name} has no first argument to bind")
    leaves = leaves_of(
        f"onnx: params: {traced.name}",
        tree.structure(((args[0],), {})),
        traced.in_avals[: len(tree.leaves(args[0]))],
        traced.labels[: len(tree.leaves(args[0]))],
        (params,),
        {},
    )
    return list(leaves), tree.structure((tuple(args[1:]), kwargs))


# -- the model -------------------------------------------------------------------------


def _initializer(
    w: Writer, name: str, array: np.ndarray[Any, Any], quantize: str | None
) -> Value:
    if quantize is None or not is_weight(array):
        return w.initializer(name, array)
    small, scales = (np.asarray(part) for part in quantized(array))
    # Runtimes support only float32 scales.
    inputs = [
        w.initializer(f"{name}.int8", small),
        w.initializer(f"{name}.scales", scales.astype(np.float32)),
    ]
    made = [np.dtype(np.float32)]
    (wide,) = w.ops("DequantizeLinear", inputs, made, axis=array.ndim - 1)
    return w.cast(wide, array.dtype)


def _written(
    w: Writer,
    graph: Graph,
    values: Sequence[Value],
    out_names: Sequence[str],
    out_avals: Sequence[Aval],
) -> list[tuple[Value, Aval]]:
    """Writes the graph; returns the results under the given names."""
    outputs = []
    for value, name, aval in zip(
        w.graph(graph, values), out_names, out_avals, strict=True
    ):
        if dtypes.is_key(aval.dtype):
            raise ArgumentError(
                f"onnx: {w.name} returns keys ({aval}): return their key_data"
            )
        node = w.helper.make_node("Identity", [value], [name], name=f"to_{name}")
        w.nodes.append(node)
        outputs.append((Value(name, value.dtype), aval))
    return outputs


def _model(
    w: Writer,
    inputs: Sequence[tuple[Value, Aval]],
    outputs: Sequence[tuple[Value, Aval]],
) -> Any:
    graph = w.helper.make_graph(
        w.sizes.nodes + w.nodes,
        # The name without the location of a lambda on this machine.
        graph_name(w.name),
        [w.info(*given) for given in inputs],
        [w.info(*given) for given in outputs],
        initializer=list(w.initializers.values()),
    )
    return w.helper.make_model(
        graph,
        opset_imports=[w.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="fxflow",
        producer_version=__version__,
    )


# -- ONNX Runtime ----------------------------------------------------------------------


def _value_of(runtime: Any, array: np.ndarray[Any, Any]) -> Any:
    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.isbuiltin == 1:
        return runtime.OrtValue.ortvalue_from_numpy(array)
    # It takes `bfloat16` and similar dtypes as raw bits with their ONNX type.
    helper = importlib.import_module("onnx.helper")
    return runtime.OrtValue.ortvalue_from_numpy_with_onnx_type(
        array.view(f"uint{8 * array.dtype.itemsize}"),
        helper.np_dtype_to_tensor_dtype(array.dtype),
    )


def _array_of(value: Any, aval: Aval) -> np.ndarray[Any, Any]:
    dtype = np.dtype(aval.physical.dtype)
    if dtype.isbuiltin == 1:
        return np.asarray(value.numpy())
    bits = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return np.frombuffer(bits, dtype).reshape(aval.physical.shape)
