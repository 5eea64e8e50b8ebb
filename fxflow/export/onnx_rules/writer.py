"""Writes graphs as ONNX nodes.

`Writer` is the counterpart of StableHLO's `Context`: it walks the graph, applies each
operation's rule, and collects the nodes. An operation without a rule whose `lower` only
composes other operations is written as these; any other one raises an error.

Runtimes do not support every dtype of the standard. If ONNX Runtime's kernels lack one,
operands are converted to a wider one and the result is converted back, which rounds and
wraps like the narrow arithmetic.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, ModuleType
from typing import Any, cast

import numpy as np

from fxflow.core import source
from fxflow.core.arrays import Aval, dtypes
from fxflow.core.ir.graph import Graph, Literal, Node, Var
from fxflow.core.ir.primitive import Primitive
from fxflow.core.ir.staging import trace_flat
from fxflow.core.sizes import is_symbolic
from fxflow.errors import ExportError
from fxflow.export.onnx_rules.open_sizes import OpenSizes

#: The versions of ONNX 1.16 (2024), which ONNX Runtime 1.18 and later support,
#: including builds for phones.
OPSET, IR_VERSION = 21, 10


class Value(str):
    """A value of the model: its name, as in StableHLO's rules, with its dtype.

    Attributes:
      dtype: dtype of its elements.
    """

    __slots__ = ("dtype",)

    dtype: Any

    def __new__(cls, name: str, dtype: Any) -> Value:
        """Returns the value with a name."""
        made = super().__new__(cls, name)
        made.dtype = np.dtype(dtype)
        return made


Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Returns a decorator that registers a rule for the operations with these names."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


# -- dtypes ----------------------------------------------------------------------------

_FLOATS = frozenset({"float16", "float32", "float64"})
_SIGNED = frozenset({"int8", "int16", "int32", "int64"})
_UNSIGNED = frozenset({"uint8", "uint16", "uint32", "uint64"})
_INTEGERS = _SIGNED | _UNSIGNED
_WHOLE = frozenset({"int32", "int64"})
_ALL = _FLOATS | _INTEGERS | {"bool"}
_MOVED = _ALL | {"bfloat16"}
_NARROW = frozenset({"int8", "uint8"})

#: Dtypes that ONNX Runtime's CPU kernels support (1.32). `_FLOATS` includes float64
#: even for nodes without such a kernel: no wider dtype can replace it.
KERNELS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod"), _FLOATS | _INTEGERS),
        **dict.fromkeys(("Abs", "Sign"), _FLOATS | _INTEGERS),
        "Neg": _FLOATS | _SIGNED,
        "Pow": _FLOATS | _WHOLE,
        **dict.fromkeys(("Max", "Min"), _FLOATS | _INTEGERS - {"int16", "uint16"}),
        **dict.fromkeys(
            ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"), _INTEGERS
        ),
        "BitShift": _UNSIGNED,
        **dict.fromkeys(
            ("Less", "LessOrEqual", "Greater", "GreaterOrEqual"), _FLOATS | _INTEGERS
        ),
        "Equal": _ALL,
        **dict.fromkeys(("And", "Or", "Xor", "Not"), frozenset({"bool"})),
        **dict.fromkeys(("IsNaN", "IsInf"), _FLOATS | {"bfloat16"}),
        "MatMul": _FLOATS | _WHOLE | {"uint32", "uint64"},
        "Expand": _ALL,
        **dict.fromkeys(
            (
                *("Reshape", "Transpose", "Slice", "Concat", "Split", "Gather"),
                *("GatherElements", "ScatterElements"),
            ),
            _MOVED,
        ),
        **dict.fromkeys(("Identity", "Cast"), frozenset()),
        "Pad": _MOVED - {"int16", "uint16"},
        "Where": _FLOATS | _WHOLE | {"int8", "uint8", "uint32"},
        **dict.fromkeys(("ReduceSum", "ReduceProd", "CumSum"), _FLOATS | _WHOLE),
        **dict.fromkeys(
            ("ReduceMax", "ReduceMin", "ArgMax", "ArgMin"),
            _FLOATS | _WHOLE | _NARROW,
        ),
        "MaxPool": _FLOATS | _NARROW,
        "TopK": _FLOATS | _SIGNED | {"uint8"},
    }
)
#: Nodes that support every dtype.
_ANY = frozenset({"Identity", "Cast", "If", "Loop", "Scan", "DequantizeLinear"})
#: Nodes that give the same bits for uint64 as for int64.
_SAME_BITS = frozenset({"Where", "ReduceSum", "ReduceProd", "CumSum", "Expand"})


def _wider(kind: str, dtype: Any) -> Any:
    """Returns the dtype in which a node computes."""
    name = np.dtype(dtype).name
    if kind in _ANY or name in KERNELS.get(kind, _FLOATS):
        return dtype
    if dtypes.is_floating(dtype):
        return np.dtype(np.float32)
    if name == "uint64":
        return np.dtype(np.int64) if kind in _SAME_BITS else dtype
    return np.dtype(np.int64 if name in ("uint32", "int64") else np.int32)


# -- the writer ------------------------------------------------------------------------


class Writer:
    """Writes operations as nodes.

    Attributes:
      name: name of the function, for messages.
      initializers: constants of the whole model by name, visible to inner graphs.
      nodes: nodes of the graph being written.
      sizes: the symbolic sizes.
      avals_in: types of the current operation's operands.
      avals_out: types of its results.
      inputs: its operands in the graph.
      primitive: its name.
      stays_small: whether all users of its result broadcast it themselves.
    """

    sizes: OpenSizes
    primitive: str
    stays_small: bool

    #: The platform for rules that differ by platform; selects the default rule.
    platform = "onnx"

    def __init__(self, name: str) -> None:
        self.name = name
        self.helper: ModuleType = importlib.import_module("onnx.helper")
        self.numpy_helper: ModuleType = importlib.import_module("onnx.numpy_helper")
        self.initializers: dict[str, Any] = {}
        self.nodes: list[Any] = []
        self.sizes = OpenSizes(self)
        self.avals_in: Sequence[Aval] = ()
        self.avals_out: Sequence[Aval] = ()
        self.inputs: Sequence[Any] = ()
        self.primitive = ""
        self.stays_small = False
        self._node: Node | None = None
        self._composing = False
        self._names: dict[str, int] = {}
        self._constants: dict[Any, Value] = {}

    # -- names and constants -----------------------------------------------------------

    def unique(self, name: str) -> str:
        """Returns a name that no other value or node has."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return self.unique(f"{name}_{count}") if count else name

    def element_type(self, dtype: Any) -> int:
        """Returns the ONNX element type of a dtype.

        Raises:
          ExportError: ONNX does not support the dtype.
        """
        # ONNX has complex and 4-bit types, but hardly any node supports them.
        if dtypes.is_bool(dtype) or (
            not dtypes.is_complex(dtype) and dtypes.bits(dtype) >= 8
        ):
            try:
                return int(self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
            except (KeyError, ValueError, TypeError):
                pass
        raise ExportError(
            f"onnx: {self.name}: ONNX does not compute in {dtype}: convert it with "
            f".astype(...){self._where()}"
        )

    def initializer(self, name: str, array: np.ndarray[Any, Any]) -> Value:
        """Adds a named constant to the model."""
        self.element_type(array.dtype)
        name = self.unique(name)
        self.initializers[name] = self.numpy_helper.from_array(
            np.ascontiguousarray(array).reshape(array.shape), name
        )
        return Value(name, array.dtype)

    def constant(self, value: Any, aval: Aval | None = None) -> Value:
        """Returns a constant, broadcast to the shape of `aval`."""
        array = np.asarray(value, None if aval is None else aval.physical.dtype)
        key = (array.shape, array.dtype, array.tobytes())
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = self.initializer("constant", array)
        if aval is not None and aval.physical.shape != array.shape:
            return self.expand(known, aval.physical.shape)
        return known

    def ints(self, *values: Any) -> Value:
        """Returns sizes or positions as int64[n]; a constant if all are static."""
        if is_symbolic(values):
            return cast(Value, self.sizes.vector(values))
        return self.constant(np.asarray(values, np.int64))

    def size(self, value: Any) -> Value:
        """Returns a size or position as int64[]; a constant if it is static."""
        return cast(Value, self.sizes.value(value))

    def arange(self, count: Any, dtype: Any, step: Any = 1) -> Value:
        """Returns 0, step, 2 step, …; a constant if `count` and `step` are static."""
        if not is_symbolic((count, step)):
            return self.constant((np.arange(count) * step).astype(dtype))
        zero, one = (self.constant(np.int64(n)) for n in (0, 1))
        (row,) = self.ops("Range", [zero, self.size(count), one], [np.int64])
        if is_symbolic((step,)) or step != 1:
            row = self.op("Mul", row, self.size(step))
        return self.cast(row, dtype)

    # -- nodes -------------------------------------------------------------------------

    def op(
        self, kind: str, *inputs: Value, dtype: Any = None, **attributes: Any
    ) -> Value:
        """Writes a node with one result.

        Args:
          kind: ONNX operator.
          *inputs: operands.
          dtype: dtype of the result; None: that of the first operand.
          **attributes: attributes of the node.
        """
        # The first operand of `Where` is the condition.
        first = 1 if kind == "Where" else 0
        own = inputs[first].dtype
        wide = _wider(kind, own)
        if wide != own:
            # Convert only operands of this dtype: others are indices and similar.
            inputs = tuple(
                self.cast(x, wide) if x.dtype == own and i >= first else x
                for i, x in enumerate(inputs)
            )
        result = own if dtype is None else dtype
        made = wide if result == own else result
        (out,) = self.ops(kind, inputs, [made], **attributes)
        return self.cast(out, result)

    def ops(
        self, kind: str, inputs: Sequence[Value], made: Sequence[Any], **attributes: Any
    ) -> list[Value]:
        """Writes a node without conversions; returns results of the dtypes `made`."""
        label = self._node.primitive.name if self._node is not None else kind
        scope = "/".join(self._node.scope) + "/" if self._node is not None else ""
        outs = [Value(self.unique(label), dtype) for dtype in made]
        self.nodes.append(
            self.helper.make_node(
                kind,
                list(inputs),
                list(outs),
                name=self.unique(f"{scope.lstrip('/')}{label}:{kind}"),
                **attributes,
            )
        )
        return outs

    def cast(self, x: Value, dtype: Any) -> Value:
        """Converts a value to another dtype."""
        if x.dtype == dtype:
            return x
        return self.ops("Cast", [x], [dtype], to=self.element_type(dtype))[0]

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """Reshapes a value."""
        return self.op("Reshape", x, self.ints(*shape), allowzero=1)

    def expand(self, x: Value, shape: Sequence[int]) -> Value:
        """Broadcasts a value to a shape by NumPy's rules."""
        if 0 in shape:
            return self.constant(np.zeros(shape, x.dtype))
        return self.op("Expand", x, self.ints(*shape)) if shape else x

    def broadcast(self, x: Value, aval: Aval, shape: Sequence[int]) -> Value:
        """Broadcasts a 0-d operand to a shape; see `Context.broadcast`."""
        return self.expand(x, shape)

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        """Transposes a value."""
        if list(order) == list(range(len(order))):
            return x
        return self.op("Transpose", x, perm=list(order))

    # -- graphs ------------------------------------------------------------------------

    def graph(self, graph: Graph, operands: Sequence[Value]) -> list[Value]:
        """Writes the nodes of a graph inline; returns its results."""
        names: dict[Any, Value] = dict(zip(graph.inputs, operands, strict=True))
        saved = self._node, self.inputs, self.avals_in, self.avals_out

        def read(atom: Any) -> Value:
            if type(atom) is Literal:
                return self.constant(atom.value, atom.aval)
            return names[atom]

        small = _broadcast_by_users(graph)
        for node in graph.nodes:
            self.stays_small = node.outputs[0] in small if node.outputs else False
            self.inputs, self.primitive = node.inputs, node.primitive.name
            # Parts of a composed operation keep its name and line.
            if not self._composing:
                self._node = node
            self.avals_in = [a.aval.physical for a in node.inputs]
            self.avals_out = [v.aval.physical for v in node.outputs]
            given = list(map(read, node.inputs))
            out = self._written(node.primitive, given, node.params)
            results = out if node.primitive.multi else [out]
            names.update(zip(node.outputs, results, strict=True))
        results = list(map(read, graph.outputs))
        self._node, self.inputs, self.avals_in, self.avals_out = saved
        return results

    def _written(
        self, primitive: Primitive, given: list[Value], params: dict[str, Any]
    ) -> Any:
        own = RULES.get(primitive.name)
        if any(dtypes.is_key(a.aval.dtype) for a in self.inputs):
            raise self.refuse(
                "takes random keys, which ONNX lacks: pass random numbers as arguments"
            )
        if any(dtypes.is_complex(a.dtype) for a in (*self.avals_in, *self.avals_out)):
            raise self.refuse(
                "uses complex numbers, which ONNX nodes do not support: split them "
                "into two arrays"
            )
        if own is not None:
            return own(self, *given, **params)
        out = primitive.lower(self, *given, **params)
        # Some rules format names into strings, which are not `Value`s.
        for value in out if primitive.multi else [out]:
            if not isinstance(value, Value):
                raise self._no_rule()
        return out

    def call(self, graph: Graph, operands: Sequence[Value]) -> list[Value]:
        """Writes the nodes of a graph inline, for the rules of calls."""
        return self.graph(graph, operands)

    def compose(
        self,
        function: Callable[..., Any],
        operands: Sequence[Value],
        avals: Sequence[Aval] | None = None,
    ) -> list[Value]:
        """Traces a function of arrays and writes it; see `Context.compose`."""

        def flat(*values: Any) -> Sequence[Any]:
            out = function(*values)
            return out if isinstance(out, list | tuple) else [out]

        graph, consts = trace_flat(
            flat, list(self.avals_in if avals is None else avals)
        )
        constants = [self.constant(np.asarray(c)) for c in consts]
        outside, self._composing = self._composing, True
        try:
            return self.graph(graph, [*constants, *operands])
        finally:
            self._composing = outside

    def body(
        self,
        name: str,
        avals: Sequence[Aval],
        write: Callable[[list[Value]], Sequence[Value]],
        out_avals: Sequence[Aval],
    ) -> Any:
        """Returns a graph for an attribute of a node.

        Args:
          name: name of the graph.
          avals: types of its inputs.
          write: writes the graph from its inputs, and returns its results; it may use
            outer values.
          out_avals: types of its results.
        """
        outside, self.nodes = self.nodes, []
        inputs = [Value(self.unique(f"{name}_in"), a.physical.dtype) for a in avals]
        # Results must be computed inside the graph, under distinct names.
        results = [self.op("Identity", x) for x in write(inputs)]
        graph = self.helper.make_graph(
            self.nodes,
            self.unique(name),
            [self.info(x, a) for x, a in zip(inputs, avals, strict=True)],
            [self.info(x, a) for x, a in zip(results, out_avals, strict=True)],
        )
        self.nodes = outside
        return graph

    def info(self, value: Value, aval: Aval) -> Any:
        """Returns the declaration of an input or a result."""
        return self.helper.make_tensor_value_info(
            value,
            self.element_type(value.dtype),
            [str(n) if is_symbolic((n,)) else n for n in aval.physical.shape],
        )

    # -- refusals ----------------------------------------------------------------------

    def refuse(self, why: str) -> ExportError:
        """Returns the error for an operation that cannot be converted.

        Args:
          why: the reason, which follows the operation's name.
        """
        name = self._node.primitive.name if self._node is not None else "it"
        return ExportError(f"onnx: {self.name}: {name} {why}{self._where()}")

    def _where(self) -> str:
        if self._node is None or self._node.source is None:
            return ""
        return f", in {source.describe(self._node.source)}"

    def __getattr__(self, name: str) -> Any:
        """Raises an error for methods that only StableHLO's `Context` has."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._no_rule()

    def _no_rule(self) -> ExportError:
        return self.refuse(
            "has no counterpart in ONNX: export the parts before and after it, or use "
            "another runtime (export.iree)"
        )


#: Operations whose nodes broadcast operands by NumPy's rules.
_BROADCASTING = frozenset(
    (
        *("add", "sub", "mul", "div", "max", "min", "pow", "select_n"),
        *("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor"),
    )
)


def _broadcast_by_users(graph: Graph) -> set[Var]:
    """Returns results of broadcasts that need not be expanded.

    Their users broadcast them, next to an operand that has the full shape.
    """
    users: dict[Any, list[Node | None]] = {}
    for node in graph.nodes:
        for atom in node.inputs:
            users.setdefault(atom, []).append(node)
    for atom in graph.outputs:
        users.setdefault(atom, []).append(None)
    small: set[Var] = set()

    def broadcasts(node: Node | None, var: Var) -> bool:
        return (
            node is not None
            and node.primitive.name in _BROADCASTING
            and any(
                type(other) is Var
                and other is not var
                and other not in small
                and other.aval.shape == var.aval.shape
                for other in node.inputs
            )
        )

    for node in graph.nodes:
        if node.primitive.name == "broadcast_in_dim":
            (var,) = node.outputs
            if all(broadcasts(user, var) for user in users.get(var, ())):
                small.add(var)
    return small
