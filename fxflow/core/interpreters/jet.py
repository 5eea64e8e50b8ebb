"""Taylor-mode differentiation: each value travels with its Taylor coefficients.

Along a curve x(t) = x₀ + x₁ t + x₂ t² + … an operation gives y(t), and `JetTrace`
computes y₁, y₂, … as far as is asked. Three kinds of rules serve all operations:

- `Primitive.taylor` gives a coefficient of the result from those of the operands, where
  there is a formula: products (Leibniz), quotients, what is linear;
- `HigherOrder.jet` gives all at once: loops, branches and calls of derived graphs;
- for anything else y' = jvp(x, x'), so k yₖ is coefficient k - 1 of the derivative rule
  run on series. Coefficients are computed as they are asked for, and of the same
  operation on the same operands only once; so the rule may well refer to the result
  (`exp`, `tan`) or to an operation whose rule refers back (`sin`, `cos`), and the cost
  is a power of the order where derivatives of derivatives double at each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.arrays import Array, Aval, typeof, unwrapped
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.higher_order import HigherOrder, carries_tangent
from fxflow.core.ir.primitive import Primitive, Zero
from fxflow.core.ir.staging import trace_closed
from fxflow.core.ir.trace import Trace, Tracer, state
from fxflow.core.spmd.varying import cast


class Series:
    """Taylor coefficients, the value first: arrays or `Zero`s.

    Args:
      known: the first ones, at least one.
      rule: gives the next one from its index; None if all are known.
    """

    __slots__ = ("known", "rule")

    known: list[Any]
    rule: Callable[[int], Any] | None

    def __init__(self, known: list[Any], rule: Callable[[int], Any] | None) -> None:
        self.known, self.rule = known, rule

    def __getitem__(self, index: int) -> Any:
        known = self.known
        while len(known) <= index:
            assert self.rule is not None
            known.append(self.rule(len(known)))
        return known[index]


class Constant(Series):
    """The coefficients of a constant, which may be `Zero`."""

    __slots__ = ()

    def __init__(self, value: Any) -> None:
        zero = value if type(value) is Zero else Zero(typeof(value).tangent())
        super().__init__([value, zero], None)

    def __getitem__(self, index: int) -> Any:
        return self.known[index > 0]


class JetTracer(Tracer):
    """A value with its Taylor coefficients."""

    __slots__ = ("series",)

    series: Series

    def __init__(self, trace: JetTrace, series: Series) -> None:
        self._trace = trace
        self.series = series
        self.aval: Aval = typeof(series[0])

    def origin(self) -> str:
        """Says where the value comes from."""
        inner = self.series[0]
        if isinstance(inner, Tracer):
            return inner.origin()
        return "It is being expanded in a Taylor series (jet)."

    def depends_on(self) -> list[str]:
        """Says which arguments of which functions the value is computed from."""
        inner = self.series[0]
        return inner.depends_on() if isinstance(inner, Tracer) else []


class JetTrace(Trace):
    """Expands operations in Taylor series.

    Attributes:
      parent: the interpreter that runs values and coefficients.
      order: the number of coefficients behind the value.
      memo: while an operation is expanded, what its rules have applied to what.
    """

    __slots__ = ("memo", "order", "parent")

    parent: Trace
    order: int
    memo: dict[Any, Any] | None

    def __init__(self, parent: Trace, order: int) -> None:
        self.parent, self.order, self.memo = parent, order, None

    def series(self, value: Any) -> Series:
        """Returns the coefficients of a value or `Zero`."""
        if type(value) is JetTracer and value._trace is self:
            return value.series
        return Constant(value)

    def join(self, primal: Any, terms: Any) -> Any:
        """Returns the tracer of a value; of a constant (`Zero`), the value."""
        if type(terms) is Zero or all(type(t) is Zero for t in terms):
            return primal
        return JetTracer(self, Series([primal, *terms], None))

    def split(self, value: Any) -> tuple[Any, Any]:
        """Returns a value and its other coefficients (`Zero` for a constant)."""
        if not isinstance(value, Array):
            value = unwrapped(value)
        if type(value) is JetTracer and value._trace is self:
            primal, *terms = value.series.known
            return primal, terms
        return value, Zero(typeof(value).tangent())

    def process(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Expands one operation; see `Trace.process`."""
        args = tuple(a if isinstance(a, Array) else unwrapped(a) for a in args)
        previous, memo = state.trace, self.memo
        state.trace = self.parent
        new: dict[Any, Any] = {}
        try:
            if not any(type(a) is JetTracer and a._trace is self for a in args):
                return self.parent.process(primitive, args, params)
            if memo is not None:
                return self.once(memo, primitive, args, params)
            self.memo = new
            outs = self.once(new, primitive, args, params)
            if primitive.multi:
                return list(map(self.completed, outs))
            return self.completed(outs)
        finally:
            state.trace, self.memo = previous, memo
            # Rules refer to what they are rules of: the arrays shall go at once.
            for outs, *_ in new.values():
                for made in outs:
                    if type(made) is JetTracer:
                        made.series.rule = None

    def once(
        self,
        memo: dict[Any, Any],
        primitive: Primitive,
        args: tuple[Any, ...],
        params: dict[str, Any],
    ) -> Any:
        """Expands an operation of a rule, unless it has been applied to the same."""
        key = (primitive, *map(id, args), *params.values())
        try:
            known = memo.get(key)
        except TypeError:  # a parameter that cannot be a key
            known, key = None, (primitive, *map(id, args), id(params))
        if known is None:
            # The operands are kept as well, so that their ids stay theirs.
            known = memo[key] = self.expanded(primitive, args, params), args, params
        outs: list[Any] = known[0]
        return outs if primitive.multi else outs[0]

    def completed(self, value: Any) -> Any:
        """Returns a result with all its coefficients computed."""
        if not (type(value) is JetTracer and value._trace is self):
            return value
        series = value.series
        terms = [series[k] for k in range(1, self.order + 1)]
        if state.tracked:
            vma = typeof(series[0]).vma
            terms = [t if type(t) is Zero else cast(t, vma) for t in terms]
        return self.join(series[0], terms)

    def expanded(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> list[Any]:
        """Returns the results, coefficients still to be computed."""
        operands = [self.series(a) for a in args]
        if isinstance(primitive, HigherOrder) and primitive.has_jet:
            return self.whole(primitive, operands, params)
        out = primitive.bind(*(s[0] for s in operands), **params)
        outs = list(out) if primitive.multi else [out]
        made = [Series([value], None) for value in outs]
        rule = primitive.taylor(made[0], operands, **params)
        if primitive.linear or primitive.linear_in_inexact:
            rule = _linear(primitive, operands, params)
        terms: dict[int, list[Any]] = {}
        slopes: list[Series] = []

        def term(i: int, k: int) -> Any:
            if rule is None:
                if not slopes:
                    slopes.extend(self.slopes(primitive, args, operands, params))
                return _over(slopes[i][k - 1], k)
            if k not in terms:
                terms[k] = rule(k) if primitive.multi else [rule(k)]
            return terms[k][i]

        for i, series in enumerate(made):
            series.rule = functools.partial(term, i)
        return [self.traced(series) for series in made]

    def traced(self, series: Series) -> Any:
        """Returns the tracer of a series; what has no derivative is a constant."""
        if not carries_tangent(typeof(series[0])):
            return series[0]
        return JetTracer(self, series)

    def slopes(
        self,
        primitive: Primitive,
        args: Sequence[Any],
        operands: Sequence[Series],
        params: dict[str, Any],
    ) -> list[Series]:
        """Returns the series of the results' derivatives, by the rule for those."""
        tangents = [
            self.slope(s)
            if type(a) is JetTracer and a._trace is self
            else Zero(typeof(a).tangent())
            for a, s in zip(args, operands, strict=True)
        ]
        previous = state.trace
        state.trace = self
        try:
            _, out = primitive.jvp(list(args), tangents, **params)
        finally:
            state.trace = previous
        return [self.series(t) for t in (out if primitive.multi else [out])]

    def slope(self, series: Series) -> Any:
        """Returns the derivative of a value: x₁ + 2 x₂ t + 3 x₃ t² + …."""
        assert self.memo is not None
        known = self.memo.get(id(series))
        if known is None:

            def term(k: int) -> Any:
                return _times(series[k + 1], k + 1)

            made = Series([arith.instantiate(series[1])], term)
            if series.rule is None:
                made.known += map(term, range(1, len(series.known) - 1))
                made.rule = None
            known = self.memo[id(series)] = [JetTracer(self, made)], series
        return known[0][0]

    def whole(
        self, primitive: HigherOrder, operands: Sequence[Series], params: dict[str, Any]
    ) -> list[Any]:
        """Returns the results of an operation that computes all coefficients at once.

        In the rule of another operation some may depend on others: no more of the
        operands' are asked for than there are, or are needed.
        """
        primals = [s[0] for s in operands]
        moving = [s for s in operands if type(s) is not Constant]
        count = 0
        found: list[Any] = []

        def expand(wanted: int) -> list[Any]:
            nonlocal count
            count = max(wanted, min(len(s.known) - 1 for s in moving))
            if not count:
                return list(primitive.bind(*primals, **params))
            given = [
                s[1] if type(s) is Constant else [s[k] for k in range(1, count + 1)]
                for s in operands
            ]
            outs, found[:] = primitive.jet(primals, given, count, **params)
            return list(outs)

        def term(i: int, k: int) -> Any:
            if count < k:
                expand(k)
            return found[i] if type(found[i]) is Zero else found[i][k - 1]

        return [
            self.traced(Series([out], functools.partial(term, i)))
            for i, out in enumerate(expand(0))
        ]


def jet_flat(
    function: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    series: Sequence[Any],
    order: int,
) -> tuple[list[Any], list[Any]]:
    """Returns the results of a flat function and their Taylor coefficients.

    Args:
      function: of flat values.
      primals: the values.
      series: for each the coefficients behind it, a list of arrays and `Zero`s, or
        `Zero`.
      order: length of the lists.
    """
    parent = state.trace
    trace = JetTrace(parent, order)
    state.trace = trace
    try:
        outs = function(*map(trace.join, primals, series))
        pairs = [trace.split(out) for out in outs]
    finally:
        state.trace = parent
    return [p for p, _ in pairs], [t for _, t in pairs]


def jet_graph(
    graph: Graph,
    order: int,
    nonzero: Sequence[bool],
    instantiated: Sequence[bool] | bool = False,
) -> tuple[Graph, list[bool]]:
    """Returns the graph of a graph's Taylor coefficients; compare `jvp_graph`.

    Args:
      graph: with inputs `x…`.
      order: the number of coefficients behind a value.
      nonzero: which inputs have coefficients.
      instantiated: which outputs must have them even where they are zero.

    Returns:
      A graph of inputs `x…` and then, where `nonzero`, `order` coefficients of each;
      its outputs are alike. And for each output whether it has coefficients.
    """
    if isinstance(instantiated, bool):
        instantiated = (instantiated,) * len(graph.outputs)
    key = ("jet", order, tuple(nonzero), tuple(instantiated))

    def derive() -> tuple[Graph, list[bool]]:
        has: list[bool] = []
        count = len(graph.inputs)

        def derivative(*values: Any) -> list[Any]:
            series = spread_terms(
                values[count:], nonzero, [a.tangent() for a in graph.in_avals], order
            )
            outs, terms = jet_flat(graph.evaluate, values[:count], series, order)
            has[:] = [
                type(t) is not Zero or bool(wanted)
                for t, wanted in zip(terms, instantiated, strict=True)
            ]
            return [*outs, *listed_terms(terms, has, order)]

        avals = [
            a.tangent()
            for a, live in zip(graph.in_avals, nonzero, strict=True)
            if live
            for _ in range(order)
        ]
        derived = trace_closed(
            derivative, [*graph.in_avals, *avals], name=f"jet_{graph.name}"
        )
        return derived, has

    return graph.remembered(key, derive)


def listed_terms(series: Sequence[Any], flags: Sequence[bool], order: int) -> list[Any]:
    """Returns the coefficients of the values whose flag is set, as arrays.

    Args:
      series: for each value a list of `order` arrays and `Zero`s, or `Zero`.
      flags: which values.
      order: how many coefficients each has.
    """
    return [
        arith.instantiate(term)
        for terms, flag in zip(series, flags, strict=True)
        if flag
        for term in ([terms] * order if type(terms) is Zero else terms)
    ]


def spread_terms(
    values: Sequence[Any], flags: Sequence[bool], avals: Sequence[Aval], order: int
) -> list[Any]:
    """Returns for each flag `order` of the values, or `Zero`; see `listed_terms`."""
    rest = iter(values)
    return [
        [next(rest) for _ in range(order)] if flag else Zero(aval)
        for flag, aval in zip(flags, avals, strict=True)
    ]


# -- coefficients ----------------------------------------------------------------------


def leibniz(
    product: Callable[[Any, Any], Any], out: Series, x: Series, y: Series
) -> Callable[[int], Any]:
    """Returns the rule of a product: coefficient k is the sum of xⱼ · yₖ₋ⱼ.

    Args:
      product: linear in each of two operands.
      out: of the result.
      x: of the one operand.
      y: of the other.
    """

    def rule(k: int) -> Any:
        total: Any = Zero(typeof(out[0]).tangent())
        for j in range(k + 1):
            a, b = x[j], y[k - j]
            if type(a) is not Zero and type(b) is not Zero:
                total = arith.add(total, product(a, b))
        return total

    return rule


def _linear(
    primitive: Primitive, operands: Sequence[Series], params: dict[str, Any]
) -> Callable[[int], Any]:
    """Returns the rule of what is linear in all operands that have derivatives."""
    inexact = [carries_tangent(typeof(s[0])) for s in operands]
    outs = primitive.out_avals([typeof(s[0]) for s in operands], params)
    zeros = [Zero(a.tangent()) for a in outs]

    def rule(k: int) -> Any:
        terms = [s[k] for s in operands]
        if all(type(t) is Zero for t in terms):
            return zeros if primitive.multi else zeros[0]
        return primitive.bind(
            *(
                arith.instantiate(t) if f else s[0]
                for t, s, f in zip(terms, operands, inexact, strict=True)
            ),
            **params,
        )

    return rule


def _times(term: Any, number: int) -> Any:
    if type(term) is Zero or number == 1:
        return term
    return arith.mul(term, arith.constant(number, typeof(term).dtype))


def _over(term: Any, number: int) -> Any:
    if type(term) is Zero or number == 1:
        return term
    return arith.div(term, arith.constant(number, typeof(term).dtype))
