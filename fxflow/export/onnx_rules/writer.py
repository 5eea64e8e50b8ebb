"""Writes a graph of fxflow's as nodes of ONNX.

What `Context` is for StableHLO: it walks the graph, finds each operation's rule and
keeps what was written. An operation without a rule that is defined by others (its
`lower` only composes) is written as those; anything else is refused.

Runtimes do not compute in every dtype that the standard has. Where ONNX Runtime's
kernels lack one, operands are converted to a wider one and the result back, which
rounds and wraps as the narrow arithmetic does.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
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

#: The versions of ONNX 1.16 (2024): ONNX Runtime 1.18 and later read them, builds for
#: phones included.
OPSET, IR_VERSION = 21, 10


class Value(str):
    """A value of the model: its name, which is what StableHLO's rules know values by.

    Attributes:
      dtype: of its elements.
    """

    __slots__ = ("dtype",)

    dtype: Any

    def __new__(cls, name: str, dtype: Any) -> Value:
        """Returns the value of a name."""
        made = super().__new__(cls, name)
        made.dtype = np.dtype(dtype)
        return made


Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Returns a decorator: the function writes the operations of these names."""

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

#: Which dtypes ONNX Runtime's kernels for CPUs take (1.32; those of `_FLOATS` also
#: where it has no kernel for float64: there is nothing to compute it in instead).
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
#: Nodes that take every dtype.
_ANY = frozenset({"Identity", "Cast", "If", "Loop", "Scan", "DequantizeLinear"})
#: Nodes for which 64 bits without sign are 64 bits with one.
_SAME_BITS = frozenset({"Where", "ReduceSum", "ReduceProd", "CumSum", "Expand"})


def _wider(kind: str, dtype: Any) -> Any:
    """Returns the dtype that a node is to compute in."""
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
      name: of the function, for messages.
      initializers: constants of the whole model by name; graphs inside see them.
      nodes: of the graph being written.
      sizes: that only a call says.
      avals_in: types of the current operation's operands.
      avals_out: types of its results.
      inputs: its operands in the graph.
      primitive: its name.
      stays_small: whether all that use its result repeat it to its shape themselves.
    """

    #: The platform for rules that differ by platform: not one with rules of its own.
    platform = "onnx"

    def __init__(self, name: str) -> None:
        self.name = name
        self.helper = importlib.import_module("onnx.helper")
        self.numpy_helper = importlib.import_module("onnx.numpy_helper")
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
        """Returns a name that no value or node has yet."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return self.unique(f"{name}_{count}") if count else name

    def element_type(self, dtype: Any) -> int:
        """Returns ONNX's number of a dtype.

        Raises:
          ExportError: it has none.
        """
        # It has complex numbers and those of four bits, but hardly a node takes them.
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
        """Returns a constant; a 0-d one is repeated if `aval` is larger."""
        array = np.asarray(value, None if aval is None else aval.physical.dtype)
        key = (array.shape, array.dtype, array.tobytes())
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = self.initializer("constant", array)
        if aval is not None and aval.physical.shape != array.shape:
            return self.expand(known, aval.physical.shape)
        return known

    def ints(self, *values: Any) -> Value:
        """Returns sizes or positions: int64[n], a constant if all are known."""
        if is_symbolic(values):
            return cast(Value, self.sizes.vector(values))
        return self.constant(np.asarray(values, np.int64))

    def size(self, value: Any) -> Value:
        """Returns a size or position: int64[], a constant if it is known."""
        return cast(Value, self.sizes.value(value))

    def arange(self, count: Any, dtype: Any, step: Any = 1) -> Value:
        """Returns 0, step, 2 step, …: a constant if `count` and `step` are known."""
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
        """Writes a node of one result.

        Args:
          kind: of the node.
          *inputs: its operands.
          dtype: of the result; None: that of the first operand.
          **attributes: of the node.
        """
        # The first operand of `Where` chooses among the others.
        first = 1 if kind == "Where" else 0
        own = inputs[first].dtype
        wide = _wider(kind, own)
        if wide != own:
            # Only operands of its dtype: the others are indices and the like.
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
        """Writes a node as it is; returns its results, of the dtypes `made`."""
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
        """Returns a value of another dtype."""
        if x.dtype == dtype:
            return x
        return self.ops("Cast", [x], [dtype], to=self.element_type(dtype))[0]

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """Returns the elements in another shape."""
        return self.op("Reshape", x, self.ints(*shape), allowzero=1)

    def expand(self, x: Value, shape: Sequence[int]) -> Value:
        """Returns a value repeated to a shape, by NumPy's rules."""
        if 0 in shape:
            return self.constant(np.zeros(shape, x.dtype))
        return self.op("Expand", x, self.ints(*shape)) if shape else x

    def broadcast(self, x: Value, aval: Aval, shape: Sequence[int]) -> Value:
        """Returns a 0-d operand repeated to a shape; see `Context.broadcast`."""
        return self.expand(x, shape)

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        """Returns a value with its axes in another order."""
        if list(order) == list(range(len(order))):
            return x
        return self.op("Transpose", x, perm=list(order))

    # -- graphs ------------------------------------------------------------------------

    def graph(self, graph: Graph, operands: Sequence[Value]) -> list[Value]:
        """Writes a graph in place; returns its results."""
        names: dict[Any, Value] = dict(zip(graph.inputs, operands, strict=True))
        saved = self._node, self.inputs, self.avals_in, self.avals_out

        def read(atom: Any) -> Value:
            if type(atom) is Literal:
                return self.constant(atom.value, atom.aval)
            return names[atom]

        small = _repeated_by_users(graph)
        for node in graph.nodes:
            self.stays_small = node.outputs[0] in small if node.outputs else False
            self.inputs, self.primitive = node.inputs, node.primitive.name
            # What an operation is composed of has its name and line.
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
            raise self.refuse("takes random keys, which ONNX has not: draw before it")
        if any(dtypes.is_complex(a.dtype) for a in (*self.avals_in, *self.avals_out)):
            raise self.refuse(
                "is of complex numbers, which nodes of ONNX do not take: split them "
                "into two arrays"
            )
        if own is not None:
            return own(self, *given, **params)
        out = primitive.lower(self, *given, **params)
        # Some join names to texts before they write.
        for value in out if primitive.multi else [out]:
            if not isinstance(value, Value):
                raise self._no_rule()
        return out

    def call(self, graph: Graph, operands: Sequence[Value]) -> list[Value]:
        """Writes a graph in place: what the rules of calls ask for."""
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
        """Returns a graph that is an attribute of a node.

        Args:
          name: of it.
          avals: types of its inputs.
          write: returns its results from its inputs; what it writes may use values
            from outside.
          out_avals: types of its results.
        """
        outside, self.nodes = self.nodes, []
        inputs = [Value(self.unique(f"{name}_in"), a.physical.dtype) for a in avals]
        # A result has to be made inside, and each has a name of its own.
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
        """Returns the error that the current operation cannot be written.

        Args:
          why: in words that follow its name.
        """
        name = self._node.primitive.name if self._node is not None else "it"
        return ExportError(f"onnx: {self.name}: {name} {why}{self._where()}")

    def _where(self) -> str:
        if self._node is None or self._node.source is None:
            return ""
        return f", in {source.describe(self._node.source)}"

    def __getattr__(self, name: str) -> Any:
        """Refuses what only StableHLO's `Context` has: the operation has no rule."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._no_rule()

    def _no_rule(self) -> ExportError:
        return self.refuse(
            "has no counterpart in ONNX: export what is before and after it, or use "
            "another runtime (export.iree)"
        )


#: Operations whose nodes repeat operands along axes of length 1, as NumPy does.
_REPEATING = frozenset(
    (
        *("add", "sub", "mul", "div", "max", "min", "pow", "select_n"),
        *("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor"),
    )
)


def _repeated_by_users(graph: Graph) -> set[Var]:
    """Returns results of broadcasts that need not be written in full.

    Their users repeat them, beside an operand that has the full shape.
    """
    users: dict[Any, list[Node | None]] = {}
    for node in graph.nodes:
        for atom in node.inputs:
            users.setdefault(atom, []).append(node)
    for atom in graph.outputs:
        users.setdefault(atom, []).append(None)
    small: set[Var] = set()

    def repeats(node: Node | None, var: Var) -> bool:
        return (
            node is not None
            and node.primitive.name in _REPEATING
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
            if all(repeats(user, var) for user in users.get(var, ())):
                small.add(var)
    return small
