"""`sparsify`: functions of dense arrays, run on sparse ones."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import fxflow
from fxflow import numpy as fnp
from fxflow import tree
from fxflow.compat.jax.experimental.sparse import _bcoo as coo
from fxflow.compat.jax.experimental.sparse import _bcoo_shapes as shapes
from fxflow.compat.jax.experimental.sparse._base import JAXSparse, inside, masked
from fxflow.compat.jax.experimental.sparse._bcoo import BCOO
from fxflow.compat.jax.experimental.sparse._bcsr import BCSR
from fxflow.core.arrays import typeof
from fxflow.core.ir.graph import Graph, Literal
from fxflow.core.ir.trace import Tracer


def is_sparse(x: Any) -> bool:
    """Whether a value is a sparse array."""
    return isinstance(x, JAXSparse)


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """A function that takes sparse arrays in place of dense ones.

    It is traced as a function of dense arrays; each operation on a sparse array is
    then done by its rule.

    Args:
      f: a function of arrays.
      use_tracer: has no effect.

    Returns:
      The function.
    """

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, treedef = tree.flatten((args, kwargs), is_leaf=is_sparse)
        sparse = [is_sparse(x) for x in leaves]
        static = [
            not s and not isinstance(x, fxflow.Array) and not hasattr(x, "dtype")
            and not isinstance(x, bool | int | float | complex)
            for x, s in zip(leaves, sparse, strict=True)
        ]  # fmt: skip
        values = [
            x.to_bcoo() if isinstance(x, BCSR) else x
            for x, s in zip(leaves, static, strict=True)
            if not s
        ]
        structure: list[Any] = []

        def flat(*dense: Any) -> Any:
            given = iter(dense)
            full = [
                x if s else next(given) for x, s in zip(leaves, static, strict=True)
            ]
            inner, named = treedef.unflatten(full)
            out, out_tree = tree.flatten(f(*inner, **named))
            structure.append(out_tree)
            return out

        like = [
            fxflow.ShapeDtypeStruct(x.shape, x.dtype) if is_sparse(x) else x
            for x in values
        ]
        made = fxflow.make_graph(flat)(*like)
        outs = _run(made.graph, [*made.consts, *values])
        kinds = {type(x) for x in leaves if is_sparse(x)}
        if kinds == {BCSR}:
            outs = [
                BCSR.from_bcoo(x) if is_sparse(x) and x.n_sparse == 2 else x
                for x in outs
            ]
        return structure[0].unflatten(outs)

    return call


def _run(graph: Graph, values: Any) -> list[Any]:
    env: dict[Any, Any] = dict(zip(graph.inputs, values, strict=True))

    def read(x: Any) -> Any:
        return fnp.asarray(x.value) if isinstance(x, Literal) else env[x]

    for node in graph.nodes:
        inputs = [read(x) for x in node.inputs]
        name = node.primitive.name
        if not any(is_sparse(x) or isinstance(x, _AtZero) for x in inputs):
            found = node.primitive.bind(*inputs, **node.params)
            outs = found if node.primitive.multi else [found]
        elif "graph" in node.params and name in _CALLS:
            inner = node.params["graph"]
            outs = _run(inner, inputs[: len(inner.inputs)])
        elif name in _CONTROL:
            outs = _CONTROL[name](*inputs, **node.params)
        elif name in RULES:
            outs = [RULES[name](*inputs, **node.params)]
        else:
            raise NotImplementedError(f"sparse rule for {name} is not implemented.")
        env.update(zip(node.outputs, outs, strict=True))
    results = [read(x) for x in graph.outputs]
    if any(isinstance(x, _AtZero) for x in results):
        raise NotImplementedError("sparse rule for eq is not implemented.")
    return results


# Sparse arrays are pytrees: loops carry them as they are.


def _scan(
    *inputs: Any,
    graph: Graph,
    num_consts: int,
    num_carry: int,
    length: int,
    reverse: bool,
    unroll: int,
    **_: Any,
) -> list[Any]:
    consts, rest = inputs[:num_consts], inputs[num_consts:]
    if any(is_sparse(x) and not x.n_batch for x in rest[num_carry:]):
        raise NotImplementedError("scan over a sparse array needs a batch axis")

    def body(carry: Any, xs: Any) -> Any:
        outs = _run(graph, [*consts, *carry, *xs])
        return outs[:num_carry], outs[num_carry:]

    carry, ys = fxflow.lax.scan(
        body,
        list(rest[:num_carry]),
        list(rest[num_carry:]),
        length=length,
        reverse=reverse,
        unroll=unroll,
    )
    return [*carry, *ys]


def _while(
    *inputs: Any,
    condition: Graph,
    body: Graph,
    num_condition: int,
    num_body: int,
    **_: Any,
) -> list[Any]:
    of_condition = inputs[:num_condition]
    of_body = inputs[num_condition : num_condition + num_body]

    def more(carry: Any) -> Any:
        return _run(condition, [*of_condition, *carry])[0]

    def step(carry: Any) -> Any:
        return _run(body, [*of_body, *carry])

    start = list(inputs[num_condition + num_body :])
    return list(fxflow.lax.while_loop(more, step, start))


def _cond(index: Any, *inputs: Any, branches: Any, **_: Any) -> list[Any]:
    functions = [lambda *args, g=graph: _run(g, list(args)) for graph in branches]
    return list(fxflow.lax.switch(index, functions, *inputs))


_CONTROL: dict[str, Callable[..., list[Any]]] = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
}

_CALLS = (
    "jit",
    "custom_jvp",
    "custom_vjp",
    "custom_jvp_call",
    "custom_vjp_call",
    "checkpoint",
    "named_call",
)


def _single(x: BCOO) -> BCOO:
    """The array with one element for each place; the same one for each call."""
    if x.unique_indices:
        return x
    if not hasattr(x, "single"):
        x.single = coo.bcoo_sum_duplicates(x, nse=x.nse, remove_zeros=False)
    found: BCOO = x.single
    return found


def _on_data(function: Callable[..., Any], linear: bool = True) -> Any:
    def rule(x: BCOO, **params: Any) -> BCOO:
        x = x if linear else _single(x)
        return coo.with_data(x, function(x.data, **params))

    return rule


def _add(x: Any, y: Any, **_: Any) -> Any:
    if is_sparse(x) and is_sparse(y):
        if x.shape != y.shape:
            raise NotImplementedError("sparse addition of arrays of different shapes")
        if x.indices is y.indices:
            return coo.with_data(x, x.data + y.data)
        dtype = fnp.result_type(x.data, y.data)
        if (x.n_batch, x.n_dense) != (y.n_batch, y.n_dense):
            x, y = coo._flattened(x), coo._flattened(y)
        x, y = coo._full_batch(x.astype(dtype)), coo._full_batch(y.astype(dtype))
        b = x.n_batch
        data = fnp.concatenate([x.data, y.data], b)
        return BCOO((data, fnp.concatenate([x.indices, y.indices], b)), shape=x.shape)
    if typeof(y if is_sparse(x) else x).ndim == 0 and len(
        (x if is_sparse(x) else y).shape
    ):
        raise NotImplementedError("Addition between a sparse array X and a scalar")
    dense = [v.todense() if is_sparse(v) else v for v in (x, y)]
    return dense[0] + dense[1]


def _sub(x: Any, y: Any, **_: Any) -> Any:
    return _add(x, RULES["neg"](y) if is_sparse(y) else -y)


def _mul(x: Any, y: Any, **_: Any) -> Any:
    if is_sparse(x) and is_sparse(y):
        if x.indices is y.indices and x.unique_indices:
            return coo.with_data(x, x.data * y.data)
        return shapes.bcoo_multiply_sparse(x, y)
    if is_sparse(y):
        x, y = y, x
    return _scaled(x, coo.bcoo_multiply_dense(x, y))


def _scaled(x: BCOO, data: Any) -> BCOO:
    full = typeof(data).shape == typeof(x.data).shape
    return coo.with_data(x if full else coo._full_batch(x), data)


def _div(x: Any, y: Any, **_: Any) -> Any:
    if is_sparse(y):
        raise NotImplementedError("division by a sparse array")
    if typeof(y).ndim == 0:
        return coo.with_data(x, x.data / y)
    held = coo._full_batch(x)
    wide = coo.bcoo_extract(held, fnp.broadcast_to(y, x.shape), assume_unique=True).data
    fits = inside(held.indices, coo._sizes(held))
    return coo.with_data(held, masked(held.data / wide, fits))


def _dot(x: Any, y: Any, *, dimension_numbers: Any, **params: Any) -> Any:
    preferred = params.get("preferred_element_type")
    return coo.bcoo_dot_general(
        x, y, dimension_numbers=dimension_numbers, preferred_element_type=preferred
    )


def _transpose(x: BCOO, **params: Any) -> BCOO:
    order = tuple(params["permutation"])
    b, s = x.n_batch, x.n_sparse
    apart = sorted(order[:b]) == list(range(b))
    apart = apart and sorted(order[b : b + s]) == list(range(b, b + s))
    return coo.bcoo_transpose(x if apart else coo._flattened(x), permutation=order)


def _concatenate(*operands: Any, dimension: int, **_: Any) -> Any:
    held = [
        x if is_sparse(x) else coo.bcoo_fromdense(x, nse=typeof(x).size)
        for x in operands
    ]
    if len({(x.n_batch, x.n_dense) for x in held}) > 1:
        held = [coo._flattened(x) for x in held]
    return shapes.bcoo_concatenate(held, dimension=dimension)


class _AtZero:
    """Where a sparse array is 0: known to `select_n` only, as in the sign."""

    def __init__(self, array: BCOO) -> None:
        self.array = array


def _eq(x: Any, y: Any, **_: Any) -> Any:
    known = isinstance(y, fxflow.Array) and not isinstance(y, Tracer)
    if is_sparse(x) and known and not fnp.ndim(y) and bool(y == 0):
        return _AtZero(_single(x))
    raise NotImplementedError("sparse rule for eq is not implemented.")


def _select(which: Any, *cases: Any, **_: Any) -> Any:
    base, other = cases[0], cases[-1]
    alike = isinstance(which, _AtZero) and len(cases) == 2 and is_sparse(base)
    # Zeros that are not stored take the other case: it must be 0.
    if alike and not is_sparse(other) and base.indices is which.array.indices:
        known = isinstance(other, fxflow.Array) and not isinstance(other, Tracer)
        if known and not bool(fnp.any(other)):
            data = fnp.where(which.array.data == 0, 0, base.data)
            return coo.with_data(base, data)
    raise NotImplementedError("sparse rule for select_n is not implemented.")


def _named(function: Callable[..., Any], *names: str) -> Any:
    return lambda x, **params: function(x, **{n: params[n] for n in names})


def _reduce_sum(x: BCOO, **params: Any) -> Any:
    out = shapes.bcoo_reduce_sum(x, axes=params["axes"])
    return out if out.shape else out.todense()


def _reshape_rule(x: BCOO, **params: Any) -> BCOO:
    sizes = params["new_sizes"]
    try:
        return shapes.bcoo_reshape(x, new_sizes=sizes)
    except ValueError:  # it mixes kinds of axes
        return shapes.bcoo_reshape(coo._flattened(x), new_sizes=sizes)


def _dynamic_slice(x: BCOO, *starts: Any, **params: Any) -> BCOO:
    return shapes.bcoo_dynamic_slice(x, starts, params["slice_sizes"])


def _gather(x: Any, indices: Any, **params: Any) -> Any:
    if is_sparse(indices):
        raise NotImplementedError("sparse rule for gather is not implemented.")
    primitive = fxflow.core.ir.primitive.table["gather"]
    out = primitive.bind(x.todense(), indices, **params)
    return coo.bcoo_fromdense(out, nse=max(typeof(out).size, 1))


_LINEAR = "neg real imag conj copy reduce_precision"
_NONLINEAR = (
    "abs asin asinh atan atanh cbrt ceil expm1 floor is_finite log1p round sign sin "
    "sinh sqrt tan tanh square erf"
)


def _bound(name: str) -> Callable[..., Any]:
    def apply(data: Any, **params: Any) -> Any:
        primitive = fxflow.core.ir.primitive.table[name]
        return primitive.bind(data, **params)

    return apply


RULES: dict[str, Callable[..., Any]] = {
    **{name: _on_data(_bound(name)) for name in _LINEAR.split()},
    **{name: _on_data(_bound(name), linear=False) for name in _NONLINEAR.split()},
    "convert_element_type": _on_data(_bound("convert_element_type")),
    "integer_pow": _on_data(_bound("integer_pow"), linear=False),
    "add": _add,
    "add_any": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "dot_general": _dot,
    "transpose": _transpose,
    "concatenate": _concatenate,
    "reduce_sum": _reduce_sum,
    "reshape": _reshape_rule,
    "broadcast_in_dim": _named(
        shapes.bcoo_broadcast_in_dim, "shape", "broadcast_dimensions"
    ),
    "slice": _named(shapes.bcoo_slice, "start_indices", "limit_indices", "strides"),
    "rev": _named(shapes.bcoo_rev, "dimensions"),
    "squeeze": _named(shapes.bcoo_squeeze, "dimensions"),
    "dynamic_slice": _dynamic_slice,
    "eq": _eq,
    "gather": _gather,
    "select_n": _select,
}


# -- operators -------------------------------------------------------------------------


def _operator(function: Callable[..., Any], sums: bool = False) -> Any:
    run = sparsify(function)

    def method(self: Any, other: Any) -> Any:
        if not (is_sparse(other) or fxflow.core.arrays.is_arraylike(other)):
            return NotImplemented
        if sums and self.ndim and not is_sparse(other) and not fnp.ndim(other):
            raise NotImplementedError(
                "Addition between a sparse array X and a scalar: the result is dense"
            )
        return run(self, other)

    return method


def _reflected(function: Callable[..., Any], sums: bool = False) -> Any:
    return _operator(lambda x, y: function(y, x), sums)


def _getitem(self: Any, index: Any) -> Any:
    return sparsify(lambda x: x[index])(self)


def _iterate(self: Any) -> Any:
    return (self[i] for i in range(self.shape[0]))


def _sum(self: Any, axis: Any = None, dtype: Any = None, **_: Any) -> Any:
    return sparsify(lambda x: fnp.sum(x, axis, dtype))(self)


def _reshape(self: Any, *shape: Any, **_: Any) -> Any:
    return sparsify(lambda x: fnp.reshape(x, *shape if len(shape) == 1 else (shape,)))(
        self
    )


def _install(kind: Any) -> None:
    for name in ("add", "sub", "mul", "matmul", "truediv"):
        function = fnp.matmul if name == "matmul" else getattr(operator, name)
        sums = name in ("add", "sub")
        setattr(kind, f"__{name}__", _operator(function, sums))
        setattr(kind, f"__r{name}__", _reflected(function, sums))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(kind, f"__{name}__", _operator(getattr(operator, name)))
    kind.__pos__ = lambda self: self
    kind.__rpow__ = _reflected(operator.pow)
    kind.__neg__ = lambda self: sparsify(operator.neg)(self)
    kind.__abs__ = lambda self: sparsify(abs)(self)
    kind.__pow__ = lambda self, n: sparsify(lambda x: x**n)(self)
    kind.__getitem__, kind.__iter__ = _getitem, _iterate
    kind.sum, kind.reshape = _sum, _reshape


_install(BCOO)
_install(BCSR)
