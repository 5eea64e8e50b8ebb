"""`vjp`, `linearize`, `linear_transpose`: derivatives as linear maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar, overload

from fxflow.core import tree
from fxflow.core.arrays import dtypes, is_arraylike, not_an_array, typeof
from fxflow.core.boundary import boundary, guard_methods, require_callable
from fxflow.core.interpreters.linearize import Linearized, linearize_flat, tape_to_graph
from fxflow.core.interpreters.transpose import backward, backward_with_values
from fxflow.core.ir import arith
from fxflow.core.ir.discharge import discharge
from fxflow.core.ir.graph import Graph, Var
from fxflow.core.ir.staging import trace_flat
from fxflow.core.labels import leaf_labels
from fxflow.core.source import name_of
from fxflow.errors import ArgumentError
from fxflow.transforms.arguments import FlatFunction
from fxflow.transforms.linearity import require_linear
from fxflow.transforms.tangents import checked_cotangent, checked_tangent

A = TypeVar("A")
R = TypeVar("R")


@guard_methods
class VJPFunction:
    """The function from cotangents of the results to cotangents of the arguments.

    A pytree: its leaves are the residuals, so it may be returned from transformed
    functions.
    """

    name: str

    def __init__(
        self,
        lin: Linearized,
        in_avals: Sequence[Any],
        avals: Sequence[Any],
        in_tree: Any,
        out_tree: Any,
        name: str,
    ) -> None:
        self._lin: Linearized | None = lin
        self._in_avals, self._avals = tuple(in_avals), tuple(avals)
        self._in_tree, self._out_tree, self.name = in_tree, out_tree, name
        self._graph: Graph | None = None
        self._residuals: list[Any] = []

    def __call__(self, cotangents: Any) -> tuple[Any, ...]:
        """Applies the transposed derivative.

        Args:
          cotangents: of the structure, shapes and (tangent) dtypes of the results.

        Returns:
          A tuple with the cotangent of each argument.

        Raises:
          ArgumentError: structure or types differ from the results'.
        """
        what = (
            f"the vjp function of {self.name} takes cotangents of the structure of its "
            "result,"
        )
        leaves = _leaves_like(cotangents, self._out_tree, what)
        cts = [
            checked_tangent(
                ct, aval, partial(_named, i, self._out_tree, self.name), integers=True
            )
            for i, (ct, aval) in enumerate(zip(leaves, self._avals, strict=True))
        ]
        if self._lin is not None:
            lin = self._lin
            out = backward(lin.nodes, lin.inputs, lin.tangents, cts)
        else:
            assert self._graph is not None
            count = self._graph.num_consts
            constants = dict(
                zip(self._graph.inputs[:count], self._residuals, strict=True)
            )
            out = backward_with_values(
                self._graph, constants, self._graph.inputs[count:], cts
            )
        found: tuple[Any, ...]
        found = self._in_tree.unflatten(map(arith.handed_out, out, self._in_avals))
        return found

    def _flatten(self) -> tuple[list[Any], tuple[Any, ...]]:
        if self._lin is not None:
            # A tape's nodes hold the residuals; as leaves they must be inputs of a
            # graph. Made only now: most vjp functions are called, not passed on.
            self._graph, self._residuals = tape_to_graph(self._lin, f"d_{self.name}")
            self._lin = None
        return self._residuals, (
            self._graph,
            self._in_avals,
            self._avals,
            self._in_tree,
            self._out_tree,
            self.name,
        )

    @classmethod
    def _unflatten(
        cls, parts: tuple[Any, ...], residuals: Sequence[Any]
    ) -> VJPFunction:
        self = object.__new__(cls)
        self._lin = None
        self._graph, self._in_avals, self._avals, *rest = parts
        self._in_tree, self._out_tree, self.name = rest
        self._residuals = list(residuals)
        return self


def _leaves_like(value: Any, structure: Any, what: str) -> list[Any]:
    """Returns the leaves of what is given to a derivative, which has its structure."""
    leaves, treedef = tree.flatten(value)
    if treedef != structure:
        raise ArgumentError(
            f"{what} {tree.written(structure)}, got {tree.written(treedef)}"
        )
    return leaves


def _named(index: int, structure: Any, name: str) -> str:
    """Returns what messages call the cotangent of a result."""
    results = structure.unflatten(range(structure.num_leaves))
    path, _ = tree.leaves_with_path(results)[index]
    where = f"result{tree.keystr(path)}" if path else "the result"
    return f"the cotangent of {where} of {name}"


tree.register_pytree_node(VJPFunction, VJPFunction._flatten, VJPFunction._unflatten)


@overload
def vjp(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, VJPFunction]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, VJPFunction, A]: ...
@overload
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool) -> tuple[Any, ...]: ...
@boundary
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Computes a function's value and its vector-Jacobian product there.

    Args:
      fun: function of arrays (or pytrees of them).
      *primals: where; arrays or pytrees of them.
      has_aux: whether `fun` returns `(result, aux)`, `aux` not being differentiated.

    Returns:
      `(result, vjp_fun)`, or `(result, vjp_fun, aux)`. `vjp_fun` takes cotangents of
      the structure of the result and returns a tuple of cotangents of the arguments.
      The cotangent of an integer argument has dtype float0. That of an integer result
      may have it too, or be any integers, which are ignored.

    Raises:
      ArgumentError: an argument or result is not an array.

    Example:
      >>> y, back = vjp(fnp.sin, 0.0)
      >>> float(back(1.0)[0])
      1.0

      Rows of a Jacobian, chosen by the cotangent, with one evaluation of the function:

      >>> def polar(xy):
      ...     return fnp.hypot(xy[0], xy[1]), fnp.arctan2(xy[1], xy[0])
      >>> (r, angle), back = vjp(polar, fnp.array([3.0, 4.0]))
      >>> print(*(back(pair)[0].round(2) for pair in ((1.0, 0.0), (0.0, 1.0))))
      [0.6 0.8] [-0.16  0.12]

    Source: reverse mode; Griewank & Walther, Evaluating Derivatives, 2008.
    """
    require_callable(fun, "vjp")
    name = name_of(fun)
    leaves, in_tree = tree.flatten(primals)
    for leaf, label in zip(leaves, leaf_labels(fun, primals), strict=True):
        if not is_arraylike(leaf):
            raise not_an_array(leaf, f"vjp: argument {label} of {name} is")
    flat = FlatFunction(fun, in_tree, name, has_aux=has_aux)
    lin, outs = linearize_leaves(flat, leaves)
    given, avals = map(typeof, leaves), map(typeof, lin.outs)
    back = VJPFunction(lin, tuple(given), tuple(avals), in_tree, flat.out_tree, name)
    result = flat.result(outs)
    return (result, back, flat.aux(outs)) if has_aux else (result, back)


def linearize_leaves(
    flat: FlatFunction, leaves: Sequence[Any]
) -> tuple[Linearized, list[Any]]:
    """Linearizes in all leaves that have tangents.

    Returns:
      The linearized function (`aux` left out; a variable for every leaf), and all its
      values, `aux` included.
    """
    active = [typeof(p).tangent().dtype != dtypes.float0 for p in leaves]
    lin = linearize_flat(flat, leaves, active)
    outs = lin.outs
    lin.outs, lin.tangents = outs[: flat.count], lin.tangents[: flat.count]
    # Callers take a cotangent for each leaf; nothing on the tape refers to these.
    if not all(active):
        given = iter(lin.inputs)
        lin.inputs = [
            next(given) if a else Var(typeof(p).tangent())
            for p, a in zip(leaves, active, strict=True)
        ]
    return lin, outs


@overload
def linearize(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[..., R], A]: ...
@overload
def linearize(
    fun: Callable[..., Any], *primals: Any, has_aux: bool
) -> tuple[Any, ...]: ...
@boundary
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Computes a function's value and its derivative there as a function.

    The derivative is recorded once and may be applied to many tangents.

    Args:
      fun: function of arrays (or pytrees of them).
      *primals: where.
      has_aux: whether `fun` returns `(result, aux)`.

    Returns:
      `(result, jvp_fun)` or `(result, jvp_fun, aux)`; `jvp_fun` takes one tangent for
      each argument, of its structure, shape and tangent dtype.

    Raises:
      ArgumentError: an argument is not an array, or a tangent does not fit.

    Example:
      >>> y, df = linearize(fnp.sin, 0.0)
      >>> float(df(2.0))
      2.0

      Many directions at one point: the function is evaluated once.

      >>> point = fnp.array([0.5, 1.0])
      >>> _, slope = linearize(lambda x: fnp.array([x[0] * x[1], x[1] ** 2]), point)
      >>> [slope(row).tolist() for row in fnp.eye(2)]
      [[1.0, 0.0], [0.5, 2.0]]
    """
    require_callable(fun, "linearize")
    name = name_of(fun)
    leaves, in_tree = tree.flatten(primals)
    flat = FlatFunction(fun, in_tree, name, has_aux=has_aux)
    lin, outs = linearize_leaves(flat, leaves)
    graph, residuals = tape_to_graph(lin, f"d_{name}")
    avals, out_avals = [typeof(p) for p in leaves], [typeof(o) for o in lin.outs]

    def label(index: int) -> str:
        return f"the tangent of argument {leaf_labels(fun, primals)[index]} of {name}"

    @boundary
    def derivative(*tangents: Any) -> Any:
        what = f"the derivative of {name} takes tangents of the structure of its"
        given = _leaves_like(tangents, in_tree, f"{what} arguments,")
        values = [
            arith.instantiate(checked_tangent(t, aval, partial(label, i)))
            for i, (t, aval) in enumerate(zip(given, avals, strict=True))
        ]
        found = graph.evaluate(*residuals, *values)
        return flat.out_tree.unflatten(map(arith.handed_out, found, out_avals))

    result = flat.result(outs)
    return (result, derivative, flat.aux(outs)) if has_aux else (result, derivative)


@boundary
def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[..., Any]:
    """Transposes a linear function.

    The function is not evaluated, but for what does not depend on its arguments.

    Args:
      fun: a function that is linear in all its arguments, which may be integers.
      *primals: arrays or `ShapeDtypeStruct`s: the types of the arguments.

    Returns:
      The function from cotangents of the result to a tuple of cotangents of the
      arguments.

    Raises:
      NotDifferentiableError: `fun` is not linear: it has a nonlinear operation, or adds
        a constant that is not zero. (Constants that are traced, under `jit` say, have
        no values yet: only nonlinear operations are found among those.)

    Example:
      >>> double = linear_transpose(lambda x: 2 * x, 1.0)
      >>> float(double(3.0)[0])
      6.0
    """
    require_callable(fun, "linear_transpose")
    name = name_of(fun)
    leaves, in_tree = tree.flatten(primals)
    flat = FlatFunction(fun, in_tree, name)
    avals = [typeof(p) for p in leaves]
    graph, consts = trace_flat(flat, avals, name=name)
    graph = discharge(graph).graph  # of references made inside
    require_linear(graph, consts, name)
    count = graph.num_consts

    def transposed(cotangents: Any) -> Any:
        what = f"the transpose of {name} takes cotangents of the structure"
        given = _leaves_like(cotangents, flat.out_tree, what)
        cts = [
            checked_cotangent(ct, aval, partial(_named, i, flat.out_tree, name))
            for i, (ct, aval) in enumerate(zip(given, graph.out_avals, strict=True))
        ]
        constants = dict(zip(graph.inputs[:count], consts, strict=True))
        out = backward_with_values(graph, constants, graph.inputs[count:], cts)
        return in_tree.unflatten(map(arith.handed_out, out, avals))

    return transposed
