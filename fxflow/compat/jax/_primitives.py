"""Primitives under JAX's names, and those that clients make.

A client's primitive has its rules in tables (`ad.primitive_jvps`,
`batching.primitive_batchers`, `mlir.register_lowering`); `_Client` is the primitive of
fxflow that asks them. fxflow's own primitives are wrapped, one object each, so that a
client can compare `eqn.primitive` and bind it again with JAX's parameters.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import fxflow
from fxflow import lax
from fxflow.compat.jax import _composed
from fxflow.core.arrays import Aval, typeof
from fxflow.core.ir import arith
from fxflow.core.ir import primitive as primitives
from fxflow.core.ir.graph import Var
from fxflow.core.ir.higher_order import move_axis
from fxflow.core.ir.primitive import Batched, Dual, Flags, Values, Zero

# -- the tables that clients write to --------------------------------------------------

primitive_jvps: dict[Any, Callable[..., Any]] = {}
primitive_transposes: dict[Any, Callable[..., Any]] = {}
primitive_batchers: dict[Any, Callable[..., Any]] = {}
axis_primitive_batchers: dict[Any, Callable[..., Any]] = {}
fancy_primitive_batchers: dict[Any, Callable[..., Any]] = {}
lowerings: dict[Any, dict[str | None, Callable[..., Any]]] = {}
jet_rules: dict[Any, Callable[..., Any]] = {}


class ZeroTerm:
    """A derivative that is zero, in a rule of `jet_rules`."""


class ZeroSeries:
    """Derivatives that are all zero, in a rule of `jet_rules`."""


class UndefinedPrimal:
    """What a transpose rule gets in place of a linear operand: its type."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval: Any = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


class AxisData:
    """The axis that is vectorized over, as batching rules see it."""

    def __init__(self, name: Any, size: int) -> None:
        self.name: Any = name
        self.size: int = size
        self.spmd_name: None = None
        self.explicit_mesh_axis: None = None


# -- primitives ------------------------------------------------------------------------


class Primitive:
    """An operation under JAX's name.

    Args:
      name: as printed in jaxprs.

    Attributes:
      multiple_results: whether it gives a list.
    """

    multiple_results = False
    call_primitive = False
    map_primitive = False
    is_effectful = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.impl: Callable[..., Any] | None = None
        self.abstract_eval: Callable[..., Any] | None = None
        self._own: primitives.Primitive = _Client(self)

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Sets what runs it on arrays; returns `impl`."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Sets what derives the types of its results; returns `rule`."""
        self.abstract_eval = rule
        return rule

    def def_effectful_abstract_eval(
        self, rule: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Sets the same where `rule` returns `(types, effects)`; returns `rule`."""
        self.abstract_eval = lambda *avals, **params: rule(*avals, **params)[0]
        return rule

    def bind(self, *args: Any, **params: Any) -> Any:
        """Interprets the operation under the current interpreter.

        Args:
          *args: arrays, tracers or scalars.
          **params: what is known when tracing.
        """
        return self._own.bind(*args, **self.own_params(params, lambda value: value))

    def params_of(
        self, params: dict[str, Any], convert: Callable[[Any], Any]
    ) -> dict[str, Any]:
        """Returns parameters as JAX names them, each converted."""
        return {name: convert(value) for name, value in params.items()}

    def own_params(
        self, params: dict[str, Any], convert: Callable[[Any], Any]
    ) -> dict[str, Any]:
        """Returns parameters as fxflow names them, each converted."""
        return {name: convert(value) for name, value in params.items()}

    def get_bind_params(self, params: dict[str, Any]) -> tuple[list[Any], Any]:
        """Returns what `bind` takes before the operands, and as parameters."""
        return [], params

    def __repr__(self) -> str:
        return self.name


class _Client(primitives.Primitive):
    """The operation of fxflow that asks the rules of a client's primitive."""

    host_kinds = frozenset()

    def __init__(self, owner: Primitive) -> None:
        self.owner = owner
        self.name = owner.name  # type: ignore[misc]

    @property
    def multi(self) -> bool:  # type: ignore[override]
        """Whether it gives a list, which is said after it was made."""
        return self.owner.multiple_results

    def _rule(self, table: dict[Any, Any], what: str) -> Any:
        rule = table.get(self.owner)
        if rule is None:
            raise NotImplementedError(f"{what} for '{self.name}' not implemented")
        return rule

    def abstract(self, *avals: Aval, **params: Any) -> Any:
        rule = self.owner.abstract_eval
        if rule is None:
            raise NotImplementedError(
                f"Abstract evaluation for '{self.name}' not implemented"
            )
        out = rule(*avals, **params)
        return list(out) if self.multi else out

    def plan(self, arg_types: Any, params: dict[str, Any]) -> Any:
        impl = self.owner.impl
        return None if impl is None else lambda *values: impl(*values, **params)

    def evaluate(self, *values: Any, **params: Any) -> Any:
        impl = self.owner.impl
        if impl is None:
            raise NotImplementedError(
                f"Evaluation rule for '{self.name}' not implemented"
            )
        return impl(*values, **params)

    def lower(self, ctx: Any, *operands: str, **params: Any) -> Any:
        rules = lowerings.get(self.owner, {})
        rule = rules.get(ctx.platform) or rules.get(None)
        function = getattr(rule, "fxflow_function", None)
        if function is None:
            what = "writes MLIR itself" if rule else "is missing"
            raise NotImplementedError(
                f"MLIR translation rule for primitive '{self.name}' {what}: "
                "fxflow.compat.jax takes mlir.lower_fun(...)"
            )
        names = ctx.compose(lambda *values: function(*values, **params), operands)
        return names if self.multi else names[0]

    def jvp(self, primals: Values, tangents: Values, /, **params: Any) -> Dual:
        rule = self._rule(primitive_jvps, "Differentiation rule")
        out: Dual = rule(tuple(primals), tuple(tangents), **params)
        return out

    def taylor(
        self, out: Any, operands: Sequence[Any], /, **params: Any
    ) -> Callable[[int], Any] | None:
        rule = jet_rules.get(self.owner)
        if rule is None or self.multi:
            return None

        def coefficient(k: int) -> Any:
            # A client's rule takes and gives derivatives, k! times a coefficient.
            given = [
                [arith.instantiate(s[j]) * math.factorial(j) for j in range(1, k + 1)]
                for s in operands
            ]
            _, terms = rule([s[0] for s in operands], given, **params)
            if isinstance(terms, ZeroSeries) or isinstance(terms[-1], ZeroTerm):
                return Zero(typeof(out[0]).tangent())
            return terms[-1] / math.factorial(k)

        return coefficient

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        rule = self._rule(primitive_transposes, "Transpose rule")
        given = [UndefinedPrimal(a.aval) if type(a) is Var else a for a in args]
        out = rule(cotangent, *given, **params)
        return [None] * len(args) if type(out) is Zero else list(out)

    def uses_axis(self, axis_name: Any, params: dict[str, Any]) -> bool:
        return axis_name in _names(params.get("axis_name", params.get("axes", ())))

    def batch(
        self, size: int, args: Values, mapped: Flags, /, **params: Any
    ) -> Batched:
        return self._batch(None, size, args, mapped, params)

    def batch_named(
        self, axis_name: Any, size: int, args: Values, mapped: Flags, /, **params: Any
    ) -> Batched:
        return self._batch(axis_name, size, args, mapped, params)

    def _batch(
        self, axis: Any, size: int, args: Values, mapped: Flags, params: Any
    ) -> Batched:
        dims = tuple(0 if m else None for m in mapped)
        fancy = fancy_primitive_batchers.get(self.owner)
        by_axis = axis_primitive_batchers.get(self.owner)
        if fancy is not None:
            out, out_dims = fancy(AxisData(axis, size), tuple(args), dims, **params)
        elif by_axis is not None:
            # The third is what `spmd_axis_name` makes of it in JAX.
            out, out_dims = by_axis(size, axis, None, tuple(args), dims, **params)
        else:
            rule = self._rule(primitive_batchers, "Batching rule")
            out, out_dims = rule(args, dims, **params)
        if not self.multi:
            return _front(out, out_dims), out_dims is not None
        outs = [_front(o, d) for o, d in zip(out, out_dims, strict=True)]
        return outs, [d is not None for d in out_dims]


def _front(value: Any, dim: int | None) -> Any:
    return value if dim in (0, None) else move_axis(value, dim % typeof(value).ndim, 0)


def _names(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


# -- fxflow's own under JAX's names ----------------------------------------------------

_JAX_NAMES = {
    "custom_jvp": "custom_jvp_call",
    "custom_vjp": "custom_vjp_call",
    "checkpoint": "remat2",
    "linear_solve": "custom_linear_solve",
    "scatter_add": "scatter-add",
    "scatter_max": "scatter-max",
    "scatter_min": "scatter-min",
    "scatter_mul": "scatter-mul",
}
# Parameters that hold graphs: fxflow's name -> JAX's.
_JAX_PARAMS = {
    "jit": {"graph": "jaxpr"},
    "scan": {"graph": "jaxpr"},
    "while": {
        "condition": "cond_jaxpr",
        "body": "body_jaxpr",
        "num_condition": "cond_nconsts",
        "num_body": "body_nconsts",
    },
    "checkpoint": {"graph": "jaxpr"},
    "custom_jvp": {"graph": "call_jaxpr"},
    "custom_vjp": {"graph": "call_jaxpr"},
}


class _Own(Primitive):
    """A primitive of fxflow."""

    def __init__(self, own: primitives.Primitive) -> None:
        self.name = _JAX_NAMES.get(own.name, own.name)
        self.multiple_results = own.multi
        self._own = own
        self._names = _JAX_PARAMS.get(own.name, {})
        self._back = {theirs: ours for ours, theirs in self._names.items()}
        self.impl = self.abstract_eval = None

    def bind(self, *args: Any, **params: Any) -> Any:
        convert = _graph_of[0] if _graph_of else _same
        return self._own.bind(*args, **self.own_params(params, convert))

    def params_of(
        self, params: dict[str, Any], convert: Callable[[Any], Any]
    ) -> dict[str, Any]:
        found = {self._names.get(k, k): convert(v) for k, v in params.items()}
        if self._own.name == "jit":
            found["name"] = params["graph"].name
        return found

    def own_params(
        self, params: dict[str, Any], convert: Callable[[Any], Any]
    ) -> dict[str, Any]:
        found = {self._back.get(k, k): convert(v) for k, v in params.items()}
        if self._own.name == "jit":
            return {"graph": found["graph"]}
        return found


def _same(value: Any) -> Any:
    return value


# `_jaxprs.graph_of`, which that module puts here: it is made of primitives.
_graph_of: list[Callable[[Any], Any]] = []
_wrapped: dict[primitives.Primitive, Primitive] = {}


def wrapped(primitive: primitives.Primitive) -> Primitive:
    """Returns a primitive of fxflow as JAX names it: always the same object."""
    if isinstance(primitive, _Client):
        return primitive.owner
    known = _wrapped.get(primitive)
    if known is None:
        known = _wrapped.setdefault(primitive, _Own(primitive))
    return known


class _Composed(Primitive):
    """A primitive of JAX whose `bind` calls a function of fxflow."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.impl = _composed.functions[name]
        self.multiple_results = name == "unstack"

    def bind(self, *args: Any, **params: Any) -> Any:
        """Calls the function; see `Primitive.bind`."""
        return _composed.functions[self.name](*args, **params)


_composed_of = functools.cache(_Composed)


def own(primitive: Primitive) -> primitives.Primitive:
    """Returns what fxflow runs for a primitive."""
    return primitive._own


@functools.cache
def _import_all() -> None:
    """Imports what registers primitives, which else comes when it is first used."""
    for module in (fxflow, lax, lax.linalg, fxflow.random):
        for name in module.__all__:
            getattr(module, name)


def by_name(name: str) -> Primitive | None:
    """Returns a primitive by JAX's name with its ending: `"add_p"`; or None."""
    short = name.removesuffix("_p")
    short = {
        "custom_jvp_call": "custom_jvp",
        "custom_vjp_call": "custom_vjp",
        "remat": "checkpoint",
        "closed_call": "jit",
        "call": "jit",
    }.get(short, short)
    if not name.endswith("_p"):
        return None
    _import_all()
    found = primitives.table.get(short)
    if found is not None:
        return wrapped(found)
    return _composed_of(short) if short in _composed.functions else None


__all__ = [
    "AxisData",
    "Primitive",
    "UndefinedPrimal",
    "axis_primitive_batchers",
    "by_name",
    "fancy_primitive_batchers",
    "lowerings",
    "own",
    "primitive_batchers",
    "primitive_jvps",
    "primitive_transposes",
    "wrapped",
]
