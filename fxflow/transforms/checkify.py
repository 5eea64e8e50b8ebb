"""`checkify`: what may go wrong in a function, as one of its results.

The function's graph is run once more, operation by operation, beside an *error*: a code
that says which check failed first (0: none), and the values that its message shows.
Operations that hold graphs get checked graphs, whose last results are an error of their
own; loops carry theirs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import as_array, dtypes, typeof
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.interpreters.calls import GraphCall
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Graph, Node, interpret
from fxflow.core.ir.higher_order import split_at
from fxflow.core.ir.primitive import CHECK, table
from fxflow.core.ir.staging import trace_closed
from fxflow.core.ir.trace import Tracer
from fxflow.core.source import describe
from fxflow.devices.meshes import PartitionSpec
from fxflow.errors import ArgumentError, CheckError
from fxflow.lax.arg_extremum import argmax
from fxflow.lax.bitwise import bitwise_or
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.calls import JitCall
from fxflow.lax.checking import (
    Check,
    DivisionByZeroError,
    ErrorCategory,
    FailedCheckError,
    NaNError,
    OOBError,
    Site,
    message,
)
from fxflow.lax.comparison import eq, gt, lt, ne
from fxflow.lax.control_flow.cond import Branching
from fxflow.lax.control_flow.cond_rows import CondRows
from fxflow.lax.control_flow.scan import Scan, ScanParams
from fxflow.lax.control_flow.while_loop import While, WhileParams
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.custom_calls import CustomCall, CustomCallParams
from fxflow.lax.dynamic_slicing import dynamic_index_in_dim
from fxflow.lax.elementwise import add
from fxflow.lax.kernels.call import KernelCall
from fxflow.lax.kernels.params import KernelParams
from fxflow.lax.kernels.portable import portable
from fxflow.lax.reduction import reduce_or
from fxflow.lax.reshaping import reshape
from fxflow.lax.select import select
from fxflow.lax.shard_map import ShardMap, ShardMapParams
from fxflow.transforms.inspection import make_graph

P = ParamSpec("P")
R = TypeVar("R")
Categories = frozenset[type[ErrorCategory]]

user_checks: Categories = frozenset({FailedCheckError})
nan_checks: Categories = frozenset({NaNError})
index_checks: Categories = frozenset({OOBError})
div_checks: Categories = frozenset({DivisionByZeroError})
float_checks: Categories = nan_checks | div_checks
automatic_checks: Categories = float_checks | index_checks
all_checks: Categories = automatic_checks | user_checks

_ZERO = np.int32(0)
# `register` has made instances of these, which mypy does not see.
_call: Any = JitCall
_nan_from = frozenset(
    [
        "acos",
        "acosh",
        "add",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "bessel_i0e",
        "bessel_i1e",
        "betainc",
        "cbrt",
        "cos",
        "conv_general_dilated",
        "cosh",
        "cumlogsumexp",
        "cumprod",
        "cumsum",
        "digamma",
        "div",
        "dot_general",
        "erf",
        "erf_inv",
        "erfc",
        "exp",
        "exp2",
        "expm1",
        "fft",
        "igamma",
        "igammac",
        "integer_pow",
        "lgamma",
        "log",
        "log1p",
        "logistic",
        "logistic_slope",
        "mul",
        "nextafter",
        "polygamma",
        "pow",
        "random_gamma_grad",
        "reduce_prod",
        "reduce_sum",
        "rem",
        "rsqrt",
        "sin",
        "sinh",
        "sqrt",
        "sub",
        "tan",
        "tanh",
        "tanh_slope",
        "zeta",
    ]
)
_EMPTY = tree.structure(((), {}))


class Error:
    """What went wrong in a function that `checkify` transformed: a pytree.

    Attributes:
      code: i32[]: 0 if nothing did, else a number of `sites`; with an axis more for
        each `vmap` around `checkify`.
      values: what the messages show, for all sites.
      sites: where something may go wrong.
    """

    __slots__ = ("code", "sites", "values")

    code: Any
    sites: tuple[Site, ...]

    def __init__(
        self,
        code: Any = _ZERO,
        values: Sequence[Any] = (),
        sites: tuple[Site, ...] = (),
    ) -> None:
        self.code, self.sites = code, sites
        self.values: tuple[Any, ...] = tuple(values)

    def get(self) -> str | None:
        """Returns the message of the first check that failed; None: none did.

        For a batch, one line for each slice with an error.
        """
        return self._said(lambda text, line: text)

    def throw(self) -> None:
        """Raises the error, if there is one.

        Raises:
          CheckError: a check failed.
        """
        check_error(self)

    def _said(self, phrase: Callable[[str, str], str]) -> str | None:
        codes = np.asarray(self.code)
        lines = []
        for index in np.ndindex(codes.shape):
            code = int(codes[index])
            if not code:
                continue
            # A value that is the same for all slices may have no axis for them.
            values = [np.asarray(v)[index] for v in self.values]
            text = phrase(*message(self.sites, code, values))
            where = ", ".join(map(str, index))
            lines.append(f"at mapped index {where}: {text}" if index else text)
        return "\n".join(lines) or None

    def __repr__(self) -> str:
        if isinstance(self.code, Tracer):
            return f"Error({self.code})"
        return f"Error({self.get()})"


tree.register_pytree_node(
    Error,
    lambda e: ((e.code, e.values), e.sites),
    lambda sites, parts: Error(parts[0], parts[1], sites),
)
init_error: Error = Error()


def check_error(error: Error) -> None:
    """Raises the error that `checkify` gave, if there is one.

    Traced, it is itself a check, for another `checkify` around it.

    Args:
      error: the first result of a function that `checkify` transformed.

    Raises:
      CheckError: a check failed.
      ArgumentError: it is not an `Error`.

    Example:
      >>> error, y = checkify(fnp.sin)(0.0)
      >>> check_error(error)
    """
    if not isinstance(error, Error):
        raise ArgumentError(f"check_error: expected an Error, got {error!r}")
    if isinstance(error.code, Tracer):
        if typeof(error.code).shape:
            raise ArgumentError(
                "check_error: the error of a batch is raised outside of traced "
                "functions: use vmap inside of checkify"
            )
        if error.sites:
            Check.bind(error.code, *error.values, sites=error.sites, debug=False)
        return
    said = error._said(lambda text, line: f"{text} at {line}")
    if said is not None:
        raise CheckError(said)


def checkify(
    f: Callable[P, R], errors: frozenset[type[ErrorCategory]] = user_checks
) -> Callable[P, tuple[Error, R]]:
    """Makes a function that returns what went wrong beside its result.

    Checks in what is transformed (`jit`, `grad`, `vmap`, `scan`, `while_loop`, `cond`,
    `checkpoint`, `shard_map`, `pmap`) are found too; of several devices, the first one
    with an error tells it. A function with a derivative of its own that checks
    something is differentiated as its operations say, if the derivative is taken
    outside of `checkify`.

    Args:
      f: function of arrays or pytrees of them.
      errors: what to look for, a union of `user_checks` (conditions of `check`),
        `nan_checks` (an operation gives NaN), `index_checks` (an index is out of
        bounds) and `div_checks` (a division by zero); `float_checks` are both of
        numbers, `automatic_checks` all but those of `check`, `all_checks` all.

    Returns:
      A function of the same arguments that returns a pair `(error, result)`.

    Raises:
      ArgumentError: `f` is not callable, or `errors` are not a set of categories.

    Example:
      >>> error, y = checkify(fnp.log, errors=float_checks)(-1.0)
      >>> error.get()
      'nan generated by primitive: log.'

    Source: effects as results of a transformation; JAX's `checkify`.
    """
    require_callable(f, "checkify")
    if not isinstance(errors, frozenset | set) or not all_checks.issuperset(errors):
        raise ArgumentError(
            "checkify: errors must be a set of categories such as checkify.user_checks "
            f"| checkify.nan_checks, got {errors!r}"
        )
    wanted = frozenset(errors)

    @boundary
    @functools.wraps(f)
    def checked(*args: P.args, **kwargs: P.kwargs) -> tuple[Error, R]:
        traced = make_graph(f)(*args, **kwargs)
        leaves = [as_array(x) for x in tree.leaves((args, kwargs))]
        found = _Found(wanted)
        outs = found.run(traced.graph, [*traced.consts, *leaves])
        result: R = traced.out_tree.unflatten(outs)
        return Error(as_array(found.code), found.values, tuple(found.sites)), result

    return checked


class _Found:
    """What was found so far while a graph is run.

    Attributes:
      errors: what is looked for.
      code: see `Error`.
      values: likewise.
      sites: likewise.
    """

    def __init__(self, errors: Categories) -> None:
        self.errors = errors
        self.code: Any = _ZERO
        self.values: list[Any] = []
        self.sites: list[Site] = []

    def add(self, site: Site, failed: Any, values: Sequence[Any]) -> None:
        """Notes a check.

        Args:
          site: where it is.
          failed: bool[].
          values: that its message shows.
        """
        self.merge((site,), convert_element_type(failed, np.int32), values)

    def merge(self, sites: Sequence[Site], code: Any, values: Sequence[Any]) -> None:
        """Notes the error of a part; what was found before goes first."""
        if not sites:
            return
        if self.sites:
            count = np.int32(len(self.sites))
            moved = select(ne(code, _ZERO), add(code, count), arith.zeros(typeof(code)))
            code = select(ne(self.code, _ZERO), self.code, moved)
        self.code = code
        self.sites += sites
        self.values += values

    # -- operations --------------------------------------------------------------------

    def run(self, graph: Graph, values: Sequence[Any]) -> list[Any]:
        """Runs a graph and notes what may be wrong; returns its results."""
        return interpret(graph, values, self._step, lambda literal: literal.value)

    def _step(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        primitive = node.primitive
        if primitive is table["check"]:
            if FailedCheckError in self.errors:
                self.merge(node.params["sites"], operands[0], operands[1:])
            return []
        rule = _rule_of(primitive)
        if rule is not None:
            found: list[Any] | None = rule(self, node, operands)
            if found is not None:
                return found
        elif CHECK in node.effects:
            raise ArgumentError(
                f"checkify does not look into {primitive.name}: use checkify inside of "
                "the function that it calls, and return the error"
            )
        self._before(node, operands)
        out: Any = primitive.bind(*operands, **node.params)
        outs: list[Any] = out if primitive.multi else [out]
        self._after(node, outs)
        return outs

    def _before(self, node: Node, operands: list[Any]) -> None:
        if node.primitive.name == "div" and DivisionByZeroError in self.errors:
            divisor = operands[1]
            zero = arith.constant(0, typeof(divisor).dtype)
            site = _site(DivisionByZeroError, "division by zero", node)
            self.add(site, _any(eq(as_array(divisor), zero)), ())
        if OOBError in self.errors:
            bounds = _bounds(node, operands)
            if bounds is not None:
                self._index(node, *bounds)

    def _index(
        self, node: Node, indices: Any, axes: Sequence[int], last: Sequence[int]
    ) -> None:
        """Checks index vectors.

        Args:
          node: the operation.
          indices: integers `[..., n]`.
          axes: axes of the operand, for each component.
          last: the largest index of each.
        """
        aval = typeof(indices)
        if not aval.size:
            return
        dtype = aval.dtype
        bound = np.asarray(last).clip(max=dtypes.iinfo(dtype).max).astype(dtype)
        bounds = broadcast_in_dim(as_array(bound), aval.shape, (aval.ndim - 1,))
        zeros = arith.zeros(aval.strong())
        wrong = bitwise_or(lt(indices, zeros), gt(indices, bounds))
        flat = reshape(wrong, (aval.size,))
        first = argmax(flat, 0, np.int32)
        values = reshape(indices, (aval.size,))
        shape = node.inputs[0].aval.shape
        index = convert_element_type(
            dynamic_index_in_dim(values, first, 0, keepdims=False), np.int32
        )
        component = table["rem"].bind(first, np.int32(len(axes)))
        axis = dynamic_index_in_dim(
            as_array(np.asarray(axes, np.int32)), component, 0, keepdims=False
        )
        size = dynamic_index_in_dim(
            as_array(np.asarray([shape[a] for a in axes], np.int32)),
            component,
            0,
            keepdims=False,
        )
        shown = [index, axis, size]
        site = Site(
            OOBError,
            f"out-of-bounds indexing for array of shape {shape}: index {{}} is out of "
            "bounds for axis {} with size {}. ",
            tuple(typeof(v) for v in shown),
            tree.structure(((0, 0, 0), {})),
            describe(node.source),
        )
        self.add(site, _any(wrong), shown)

    def _after(self, node: Node, outs: Sequence[Any]) -> None:
        if NaNError not in self.errors or node.primitive.name not in _nan_from:
            return
        for out in outs:
            if dtypes.is_inexact(typeof(out).dtype):
                nan = ne(out, out)
                text = f"nan generated by primitive: {node.primitive.name}."
                self.add(_site(NaNError, text, node), _any(nan), ())


def _site(category: type[ErrorCategory], text: str, node: Node) -> Site:
    return Site(category, text, (), _EMPTY, describe(node.source))


def _any(flags: Any) -> Any:
    axes = range(typeof(flags).ndim)
    return reduce_or(flags, tuple(axes)) if axes else flags


def _bounds(node: Node, operands: list[Any]) -> tuple[Any, list[int], list[int]] | None:
    """Returns the index vectors of an operation, their axes, and the last indices."""
    name, params = node.primitive.name, node.params
    shape = node.inputs[0].aval.shape
    if name == "gather":
        axes = list(params["dimension_numbers"].start_index_map)
        sizes = params["slice_sizes"]
        indices = operands[1]
    elif name.startswith("scatter") and "dimension_numbers" in params:
        numbers = params["dimension_numbers"]
        axes = list(numbers.scatter_dims_to_operand_dims)
        sizes = numbers.window_sizes(len(shape), node.inputs[2].aval.shape)
        indices = operands[1]
    elif name in ("dynamic_slice", "dynamic_update_slice"):
        update = name == "dynamic_update_slice"
        starts = operands[2 if update else 1 :]
        if not starts:
            return None
        sizes = node.inputs[1].aval.shape if update else params["slice_sizes"]
        axes = list(range(len(shape)))
        rows = [reshape(as_array(s), (1,)) for s in starts]
        indices = table["concatenate"].bind(*rows, dimension=0)
    else:
        return None
    if not axes:
        return None
    return indices, axes, [shape[a] - sizes[a] for a in axes]


# -- operations that hold graphs -------------------------------------------------------


def _rule_of(primitive: Any) -> Callable[..., Any] | None:
    for kind, rule in _RULES:
        if isinstance(primitive, kind):
            return rule
    return None


def _checked(graph: Graph, errors: Categories) -> tuple[Graph, tuple[Site, ...]]:
    """Returns a graph whose last outputs are its error, and the sites of that."""
    key = ("checkify", errors)

    def derive() -> tuple[Graph, tuple[Site, ...]]:
        sites: list[Site] = []

        def run(*values: Any) -> list[Any]:
            found = _Found(errors)
            outs = found.run(graph, values)
            sites.extend(found.sites)
            return [*outs, as_array(found.code), *found.values]

        made = trace_closed(run, graph.in_avals, name=f"checked_{graph.name}")
        return made, tuple(sites)

    return graph.remembered(key, derive)


def _zeros(sites: Sequence[Site]) -> list[Any]:
    """Returns the values of an error without a mistake."""
    return [arith.zeros(aval.strong()) for site in sites for aval in site.avals]


def _take(found: _Found, sites: Sequence[Site], outs: Sequence[Any]) -> list[Any]:
    """Notes the error that ends a list of results; returns the others."""
    count = len(outs) - 1 - sum(len(site.avals) for site in sites)
    found.merge(sites, outs[count], outs[count + 1 :])
    return list(outs[:count])


def _in_call(found: _Found, node: Node, operands: list[Any]) -> Any:
    graph, sites = _checked(node.params["graph"], found.errors)
    if not sites and CHECK not in node.effects:
        return None
    return _take(found, sites, _call.bind(*operands, graph=graph))


def _in_rows(found: _Found, node: Node, operands: list[Any]) -> Any:
    if CHECK not in node.effects:
        return None
    # Not every NaN: rows that do not take a branch may have some in it.
    errors = found.errors & {FailedCheckError}
    graph, sites = _checked(node.params["graph"], errors)
    return _take(found, sites, _call.bind(*operands, graph=graph))


def _in_custom_call(found: _Found, node: Node, operands: list[Any]) -> Any:
    p = CustomCallParams(**node.params)
    graph, sites = _checked(p.graph, found.errors - nan_checks)
    if not sites and CHECK not in node.effects:
        return None
    graph, sites = _checked(p.graph, found.errors)
    return _take(found, sites, _call.bind(*p.used(operands), graph=graph))


def _in_branches(found: _Found, node: Node, operands: list[Any]) -> Any:
    branches: tuple[Graph, ...] = node.params["branches"]
    parts = [_checked(branch, found.errors) for branch in branches]
    sites = [site for _, own in parts for site in own]
    if not sites and CHECK not in node.effects:
        return None

    def padded(index: int) -> Graph:
        def run(*values: Any) -> list[Any]:
            graph, _ = parts[index]
            outs = graph.evaluate(*values)
            count = len(branches[index].outputs)
            before = [site for _, s in parts[:index] for site in s]
            after = [site for _, s in parts[index + 1 :] for site in s]
            code = outs[count]
            moved = add(code, np.int32(len(before)))
            code = select(ne(code, _ZERO), moved, code)
            return [
                *outs[:count],
                code,
                *_zeros(before),
                *map(_strong, outs[count + 1 :]),
                *_zeros(after),
            ]

        graph = branches[index]
        return trace_closed(run, graph.in_avals, name=f"checked_{graph.name}")

    derived = tuple(map(padded, range(len(branches))))
    outs: Any = node.primitive.bind(*operands, **{**node.params, "branches": derived})
    return _take(found, sites, outs)


def _strong(value: Any) -> Any:
    return as_array(arith.cast(value, typeof(value).dtype))


def _kept(
    code: Any, values: Sequence[Any], new: Any, others: Sequence[Any]
) -> list[Any]:
    """Returns the first of two errors of the same sites."""
    before = ne(code, _ZERO)

    def one(mine: Any, other: Any) -> Any:
        return select(before, mine, other)

    return [one(code, new), *map(one, values, map(_strong, others))]


def _in_scan(found: _Found, node: Node, operands: list[Any]) -> Any:
    p = ScanParams(**node.params)
    body, sites = _checked(p.graph, found.errors)
    if not sites and CHECK not in node.effects:
        return None
    consts, carry, xs = p.split(operands)
    error = [as_array(_ZERO), *_zeros(sites)]
    width = len(error)

    def run(*values: Any) -> list[Any]:
        first = p.num_consts + p.num_carry
        code, *shown = values[first : first + width]
        outs = body.evaluate(*values[:first], *values[first + width :])
        count = len(p.graph.outputs)
        error = _kept(code, shown, outs[count], outs[count + 1 :])
        return [*outs[: p.num_carry], *error, *outs[p.num_carry : count]]

    const_avals, carry_avals, x_avals = p.split(p.graph.in_avals)
    avals = [*const_avals, *carry_avals, *map(typeof, error), *x_avals]
    graph = trace_closed(run, avals, name=body.name)
    params = {**node.params, "graph": graph, "num_carry": p.num_carry + width}
    outs = Scan.bind(*consts, *carry, *error, *xs, **params)
    last = outs[p.num_carry : p.num_carry + width]
    rest = [*outs[: p.num_carry], *outs[p.num_carry + width :]]
    return _take(found, sites, [*rest, *last])


def _in_while(found: _Found, node: Node, operands: list[Any]) -> Any:
    p = WhileParams(**node.params)
    condition, of_condition = _checked(p.condition, found.errors)
    body, of_body = _checked(p.body, found.errors)
    sites = [*of_condition, *of_body]
    if not sites and CHECK not in node.effects:
        return None
    for_condition, for_body, carry = p.split(operands)
    # The condition is checked before the loop, and after each step.
    first = condition.evaluate(*for_condition, *carry)
    error = [first[1], *map(_strong, first[2:]), *_zeros(of_body)]
    width = len(error)
    fixed = [*for_condition, *for_body]

    def run(*values: Any) -> list[Any]:
        constants, rest = values[: len(fixed)], values[len(fixed) :]
        before, (code, *shown) = rest[: len(carry)], rest[len(carry) :]
        conditions, others = split_at(constants, len(for_condition))
        outs = body.evaluate(*others, *before)
        state, (new, *values_of_body) = outs[: len(carry)], outs[len(carry) :]
        moved = add(new, np.int32(len(of_condition)))
        after = condition.evaluate(*conditions, *state)
        code_now = select(ne(new, _ZERO), moved, after[1])
        error = _kept(code, shown, code_now, [*after[2:], *values_of_body])
        return [*state, *error]

    def still(*values: Any) -> list[Any]:
        return [condition.evaluate(*values[: len(values) - width])[0]]

    avals = [typeof(v) for v in error]
    fixed_avals = [
        *p.condition.in_avals[: p.num_condition],
        *p.body.in_avals[: p.num_body],
    ]
    carry_avals = p.body.in_avals[p.num_body :]
    graph = trace_closed(run, [*fixed_avals, *carry_avals, *avals], name=body.name)
    test = trace_closed(still, [*p.condition.in_avals, *avals], name=condition.name)
    outs = While.bind(
        *for_condition,
        *fixed,
        *carry,
        *error,
        condition=test,
        body=graph,
        num_condition=p.num_condition,
        num_body=len(fixed),
        bound=p.bound,
    )
    return _take(found, sites, outs)


def _in_shard_map(found: _Found, node: Node, operands: list[Any]) -> Any:
    p = ShardMapParams(**node.params)
    # Each device gives its error as one row of all devices' errors.
    by_device = PartitionSpec(p.axes)

    def run(*values: Any) -> list[Any]:
        outs = graph.evaluate(*values)
        count = len(p.out_specs)
        rows = [reshape(v, (1, *typeof(v).shape)) for v in outs[count:]]
        return [*outs[:count], *rows]

    with p.inside():
        graph, sites = _checked(p.graph, found.errors)
        if not sites and CHECK not in node.effects:
            return None
        graph = trace_closed(run, graph.in_avals, name=graph.name)
    width = len(graph.outputs) - len(p.out_specs)
    out_specs = (*p.out_specs, *[by_device] * width)
    params = {**node.params, "graph": graph, "out_specs": out_specs}
    outs: Any = node.primitive.bind(*operands, **params)
    rest, rows = split_at(outs, len(p.out_specs))
    first = argmax(ne(rows[0], _ZERO), 0, np.int32)
    error = [dynamic_index_in_dim(r, first, 0, keepdims=False) for r in rows]
    return _take(found, sites, [*rest, *error])


def _in_kernel(found: _Found, node: Node, operands: list[Any]) -> Any:
    p = KernelParams(**node.params)
    avals = [typeof(x) for x in operands]
    fits = all(
        n % length == 0
        for aval, block in zip((*avals, *p.outs), p.blocks, strict=True)
        for n, length in zip(aval.shape, block.lengths, strict=True)
    )
    # Not every NaN: blocks over the end of an array have zeros there.
    errors = found.errors if fits else found.errors & {FailedCheckError}
    graph, sites = _checked(portable(p, avals), errors)
    if not sites and CHECK not in node.effects:
        return None
    return _take(found, sites, _call.bind(*operands, graph=graph))


_RULES: tuple[tuple[Any, Callable[..., Any]], ...] = (
    (GraphCall, _in_call),
    (CustomCall, _in_custom_call),
    (Branching, _in_branches),
    (type(CondRows), _in_rows),
    (type(Scan), _in_scan),
    (type(While), _in_while),
    (type(ShardMap), _in_shard_map),
    (type(KernelCall), _in_kernel),
)
