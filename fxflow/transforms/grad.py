"""`grad`, `value_and_grad`, Jacobians and Hessians."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Aval, dtypes, put_host, typeof
from fxflow.core.arrays.array import as_array, is_arraylike, not_an_array
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.docs import shared
from fxflow.core.interpreters.linearize import linearize_flat
from fxflow.core.interpreters.transpose import backward
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import Zero
from fxflow.core.labels import leaf_labels
from fxflow.core.sizes import is_symbolic, to_array
from fxflow.core.source import name_of
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.comparison import eq
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import broadcasted_iota
from fxflow.lax.elementwise import add
from fxflow.lax.reshaping import reshape
from fxflow.transforms.arguments import (
    FlatFunction,
    as_indices,
    normalize_indices,
    pick,
    transformed,
)
from fxflow.transforms.inspection import eval_shape
from fxflow.transforms.jvp import jvp
from fxflow.transforms.vjp import vjp
from fxflow.transforms.vmap import vmap

A = TypeVar("A")
P = ParamSpec("P")
R = TypeVar("R")
# The argument that is differentiated, whose type the gradient has. Were it not bound,
# pyright would report the operators in `grad(lambda x: x * 2)`.
T = TypeVar("T", bound=Any)


def _check_input(
    value: Any,
    label: str,
    what: str,
    holomorphic: bool,
    allow_int: bool,
    allow_complex: bool,
) -> bool:
    """Checks an argument; returns whether it has a tangent."""
    if not is_arraylike(value):
        raise not_an_array(value, f"{what} is", label)
    aval = typeof(value)
    dtype = aval.dtype
    if holomorphic:
        if not dtypes.is_complex(dtype):
            raise DtypeError(
                f"{what} is {aval}, but holomorphic=True needs a complex one: convert "
                "it with .astype(complex), or drop holomorphic=True"
            )
        return True
    if dtypes.is_floating(dtype):
        return True
    if dtypes.is_complex(dtype):
        if not allow_complex:
            raise DtypeError(
                f"{what} is {aval}: of a function of complex arguments the derivative "
                "along the real axis is not all there is: pass holomorphic=True for a "
                "holomorphic function, or use fxflow.jvp along 1 and along 1j"
            )
        return True
    if allow_int:
        return False
    raise DtypeError(
        f"{what} is {aval}, which has no derivative: pass a floating-point value "
        "(.astype(float)), differentiate another argument (argnums), or pass "
        "allow_int=True for a derivative of dtype float0"
    )


def _check_loss(value: Any, name: str, holomorphic: bool) -> None:
    aval = typeof(value)
    if aval.shape != ():
        raise ShapeError(
            f"grad needs a function with a scalar result, but {name} returned {aval}: "
            "reduce it (.sum(), .mean()), or use fxflow.jacrev, fxflow.vjp or "
            "fxflow.vmap(fxflow.grad(...))"
        )
    if holomorphic:
        if not dtypes.is_complex(aval.dtype):
            raise DtypeError(
                f"holomorphic=True needs a complex result, but {name} returned {aval}"
            )
    elif dtypes.is_complex(aval.dtype):
        raise DtypeError(
            f"grad needs a real result, but {name} returned {aval}: return its real "
            "part or its absolute value, or pass holomorphic=True for a holomorphic "
            "function"
        )
    elif not dtypes.is_floating(aval.dtype):
        raise DtypeError(
            f"grad needs a floating-point result, but {name} returned {aval}: it has "
            "no derivative; convert it with .astype(float)"
        )


_docs = shared("""
    Args:
      fun: function of arrays or pytrees of them, with a scalar real result.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether `fun` returns `(result, aux)`, `aux` not being differentiated;
        it may hold what is not an array.
      holomorphic: whether `fun` is a holomorphic function of complex arguments.
      allow_int: whether integer arguments are allowed; their gradient has dtype float0.

    Raises:
      ArgumentError: `argnums` is out of range or an argument is not an array.
      DtypeError: an argument or the result has no derivative.
      ShapeError: the result is not a scalar.
""")


def _both(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, Any]]:
    """Returns what gives the value and the gradient; see `value_and_grad`."""
    require_callable(fun, "grad")
    indices = as_indices(argnums, "argnums")
    single = not isinstance(argnums, Sequence)
    name = name_of(fun)

    def both(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        positions = normalize_indices(indices, len(args), "argnums", name)
        chosen, put_back = pick(args, positions)
        leaves, in_tree = tree.flatten(tuple(chosen))

        def labels() -> list[str]:
            return leaf_labels(fun, args, None, positions)

        active = []
        for i, leaf in enumerate(leaves):
            # Labels cost more than the check, so floats, the usual case, go without.
            floats = is_arraylike(leaf) and dtypes.is_floating(typeof(leaf).dtype)
            if floats and not holomorphic:
                active.append(True)
            else:
                label = labels()[i]
                what = f"grad: argument {label} of {name}"
                checked = _check_input(leaf, label, what, holomorphic, allow_int, True)
                active.append(checked)

        def call(*values: Any) -> Any:
            return fun(*put_back(values), **kwargs)

        flat = FlatFunction(call, in_tree, name, has_aux=has_aux, labels=labels)
        lin = linearize_flat(flat, leaves, active)
        if flat.count != 1 or flat.out_tree.num_nodes != 1:
            returned = tree.written(flat.out_tree)
            each = ", each * an array" if "*" in returned else ""
            raise ShapeError(
                f"grad needs a function with one scalar result, but {name} returned "
                f"{returned}{each}: return only the loss, or pass has_aux=True for "
                "(loss, aux)"
            )
        loss = lin.outs[0]
        _check_loss(loss, name, holomorphic)
        aval = typeof(loss)
        one = arith.constant(1, aval.dtype)
        # The first: `aux` comes behind the loss, and has no cotangent.
        found = backward(lin.nodes, lin.inputs, lin.tangents[:1], [one])
        given = iter(found)
        cotangents = [
            arith.handed_out(next(given) if a else Zero(typeof(p).tangent()), typeof(p))
            for p, a in zip(leaves, active, strict=True)
        ]
        gradient = in_tree.unflatten(cotangents)
        value: Any = as_array(loss)
        if has_aux:
            value = value, flat.aux(lin.outs)
        return value, (gradient[0] if single else gradient)

    return both


@overload
def value_and_grad(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[T, P], R],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[T, P], tuple[R, T]]: ...
@overload
def value_and_grad(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[T, P], tuple[R, A]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[T, P], tuple[tuple[R, A], T]]: ...
@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: int,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[R, Any]]: ...
@overload
def value_and_grad(
    fun: Callable[P, tuple[R, A]],
    argnums: int,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[tuple[R, A], Any]]: ...
@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: Sequence[int],
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[R, tuple[Any, ...]]]: ...
@overload
def value_and_grad(
    fun: Callable[P, tuple[R, A]],
    argnums: Sequence[int],
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[tuple[R, A], tuple[Any, ...]]]: ...
@overload
def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Any: ...
@_docs
def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Makes a function that returns the value of `fun` and its gradient.

    Returns:
      A function of the same arguments that returns `(value, gradient)`, or
      `((value, aux), gradient)`. The gradient has the structure, shapes and dtypes of
      the argument, or is a tuple if `argnums` is a sequence.

    Example:
      >>> value, slope = value_and_grad(lambda x: x * x)(3.0)
      >>> float(value), float(slope)
      (9.0, 6.0)
    """
    both = _both(fun, argnums, has_aux, holomorphic, allow_int)

    @boundary
    @transformed(fun, "value_and_grad")
    def value_and_grad_fun(*args: Any, **kwargs: Any) -> Any:
        return both(args, kwargs)

    return value_and_grad_fun


@overload
def grad(
    fun: Callable[Concatenate[T, P], Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[T, P], T]: ...
@overload
def grad(  # type: ignore[overload-overlap]
    fun: Callable[Concatenate[T, P], tuple[Any, A]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[T, P], tuple[T, A]]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: int,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]: ...
@overload
def grad(
    fun: Callable[P, tuple[Any, A]],
    argnums: int,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[Any, A]]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: Sequence[int],
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[Any, ...]]: ...
@overload
def grad(
    fun: Callable[P, tuple[Any, A]],
    argnums: Sequence[int],
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[tuple[Any, ...], A]]: ...
@overload
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Any: ...
@_docs
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Makes a function that returns the gradient of `fun`.

    Returns:
      A function of the same arguments that returns the gradient, or `(gradient, aux)`;
      see `value_and_grad`.

    Example:
      >>> float(grad(fnp.sin)(0.0))
      1.0

      The gradient of a loss with respect to a tree of parameters, for each example of a
      batch:

      >>> def loss(params, x, y):
      ...     return (x @ params["w"] + params["b"] - y) ** 2
      >>> params = {"w": fnp.ones(2), "b": fnp.zeros(())}
      >>> x, y = fnp.array([[1.0, 2.0], [3.0, 4.0]]), fnp.array([1.0, 0.0])
      >>> each = fxflow.vmap(grad(loss), in_axes=(None, 0, 0))(params, x, y)
      >>> each["w"].tolist(), each["b"].tolist()
      ([[4.0, 8.0], [42.0, 56.0]], [4.0, 14.0])

    `docs/guides/autodiff-cookbook.md` has recipes for derivatives.
    """
    both = _both(fun, argnums, has_aux, holomorphic, allow_int)

    @boundary
    @transformed(fun, "grad")
    def grad_fun(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(args, kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_fun


# -- Jacobians -------------------------------------------------------------------------


def _prepare(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    transform: str,
    holomorphic: bool,
    allow_int: bool,
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    name = name_of(fun)
    indices = normalize_indices(
        as_indices(argnums, "argnums"), len(args), "argnums", name
    )
    chosen, put_back = pick(args, indices)
    labels = leaf_labels(fun, args, None, indices)
    for leaf, label in zip(tree.leaves(chosen), labels, strict=True):
        what = f"{transform}: argument {label} of {name}"
        forward = transform == "jacfwd"
        _check_input(leaf, label, what, holomorphic, allow_int, not forward)
    return lambda *values: fun(*put_back(values), **kwargs), tuple(chosen)


def _basis(leaves: Sequence[Any]) -> list[Any]:
    """Returns for each leaf the stack of all unit tangents, as arrays."""
    total = sum(typeof(leaf).size for leaf in leaves)
    basis: list[Any] = []
    start = 0
    for leaf in leaves:
        aval = typeof(leaf)
        if is_symbolic((total,)):
            basis.append(_open_basis(aval, total, start))
            start += aval.size
            continue
        block = np.zeros((total, *aval.shape), aval.tangent().dtype)
        if block.dtype == dtypes.float0:
            basis.append(block)
        else:
            rows = block.reshape(total, aval.size)
            # Rows are numbered over all leaves, so each has an identity in its own
            # block.
            rows[np.arange(start, start + aval.size), np.arange(aval.size)] = 1
            like = Aval(block.shape, block.dtype, aval.weak_type)
            basis.append(put_host(block, like))
        start += aval.size
    return basis


def _open_basis(aval: Aval, total: Any, start: Any) -> Any:
    """Returns the unit tangents of a leaf where only a call says how many there are."""
    dtype = aval.tangent().dtype
    if dtype == dtypes.float0:
        raise DtypeError(
            f"jacrev: there are {total} unit tangents, known only when the exported "
            f"program is called, and none has an element for {aval}: return floats only"
        )
    rows = broadcasted_iota(np.int32, (total, aval.size), 0)
    columns = add(broadcasted_iota(np.int32, (total, aval.size), 1), to_array(start))
    return reshape(convert_element_type(eq(rows, columns), dtype), (total, *aval.shape))


def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """Makes a function that returns the Jacobian of `fun`, column by column.

    Cheaper than `jacrev` when there are fewer inputs than outputs.

    Args:
      fun: function of arrays or pytrees of them.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether `fun` returns `(result, aux)`.
      holomorphic: whether `fun` is a holomorphic function of complex arguments.

    Returns:
      A function of the same arguments that returns the Jacobian: for each leaf of the
      result, the structure of the argument with leaves of shape
      `result.shape + argument.shape`; or `(jacobian, aux)`.

    Raises:
      ArgumentError, DtypeError: as `grad`.

    Example:
      >>> jacfwd(lambda x: x * x)(fnp.array([1.0, 2.0])).tolist()
      [[2.0, 0.0], [0.0, 4.0]]

      How a point of an orbit depends on where it starts:

      >>> def orbit(start):
      ...     def step(state, _):
      ...         x, v = state
      ...         return fnp.stack([x + 0.1 * v, v - 0.1 * fnp.sin(x)]), None
      ...     return lax.scan(step, start, length=20)[0]
      >>> jacfwd(orbit)(fnp.array([0.1, 0.0])).shape
      (2, 2)
    """
    require_callable(fun, "jacfwd")

    @transformed(fun, "jacfwd")
    @boundary
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, chosen = _prepare(
            fun, argnums, args, kwargs, "jacfwd", holomorphic, allow_int=False
        )
        leaves, in_tree = tree.flatten(chosen)

        def push(*tangents: Any) -> Any:
            out = jvp(partial, chosen, in_tree.unflatten(tangents), has_aux=has_aux)
            return out[1:] if has_aux else (out[1], None)

        columns, aux = vmap(push, out_axes=(-1, None))(*_basis(leaves))
        for column in tree.leaves(columns):
            if holomorphic and not dtypes.is_complex(typeof(column).dtype):
                raise DtypeError(
                    f"jacfwd: holomorphic=True needs a complex result, but "
                    f"{name_of(fun)} returned one of a derivative {typeof(column)}"
                )

        def split(column: Any) -> Any:
            blocks = in_tree.unflatten(_pieces(column, leaves, -1))
            return blocks if isinstance(argnums, Sequence) else blocks[0]

        result = tree.map(split, columns)
        return (result, aux) if has_aux else result

    return jacobian


def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """Makes a function that returns the Jacobian of `fun`, row by row.

    Cheaper than `jacfwd` when there are fewer outputs than inputs.

    Args:
      fun: function of arrays or pytrees of them.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether `fun` returns `(result, aux)`.
      holomorphic: whether `fun` is a holomorphic function of complex arguments.
      allow_int: whether integer arguments are allowed.

    Returns:
      As `jacfwd`.

    Raises:
      ArgumentError, DtypeError: as `grad`.

    Example:
      >>> jacrev(lambda x: x * x)(fnp.array([1.0, 2.0])).tolist()
      [[2.0, 0.0], [0.0, 4.0]]

      A tree of arguments gives one block for each leaf:

      >>> def outputs(p):
      ...     return fnp.tanh(p["w"] @ fnp.ones(3) + p["b"])
      >>> blocks = jacrev(outputs)({"w": fnp.zeros((2, 3)), "b": fnp.zeros(2)})
      >>> blocks["w"].shape, blocks["b"].tolist()
      ((2, 2, 3), [[1.0, 0.0], [0.0, 1.0]])
    """
    require_callable(fun, "jacrev")

    @transformed(fun, "jacrev")
    @boundary
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, chosen = _prepare(
            fun, argnums, args, kwargs, "jacrev", holomorphic, allow_int
        )
        out = vjp(partial, *chosen, has_aux=has_aux)
        result, back = out[0], out[1]
        leaves, out_tree = tree.flatten(result)
        for leaf in leaves:
            if dtypes.is_complex(typeof(leaf).dtype) and not holomorphic:
                raise DtypeError(
                    f"jacrev: {name_of(fun)} returned {typeof(leaf)}: pass "
                    "holomorphic=True for a holomorphic function, or use jacfwd"
                )

        def pull(*cotangents: Any) -> Any:
            return back(out_tree.unflatten(cotangents))

        rows = vmap(pull)(*_basis(leaves))
        # rows: structure of the arguments, leaves [outputs, *argument.shape].
        flat_rows, row_tree = tree.flatten(rows)
        pieces = [_pieces(row, leaves, 0) for row in flat_rows]
        blocks = [
            row_tree.unflatten([p[i] for p in pieces]) for i in range(len(leaves))
        ]
        single = not isinstance(argnums, Sequence)
        jac = out_tree.unflatten([b[0] for b in blocks] if single else blocks)
        return (jac, out[2]) if has_aux else jac

    return jacobian


def _pieces(array: Any, leaves: Sequence[Any], axis: int) -> list[Any]:
    """Splits the axis that runs over all elements of `leaves` into their shapes."""
    out = []
    start = 0
    for leaf in leaves:
        shape, end = typeof(leaf).shape, start + typeof(leaf).size
        if axis == 0:
            out.append(array[start:end].reshape(shape + array.shape[1:]))
        else:
            out.append(array[..., start:end].reshape(array.shape[:-1] + shape))
        start = end
    return out


def jacobian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    sparse: bool = False,
    pattern: Any = None,
) -> Callable[P, Any]:
    """Makes a function that returns the Jacobian of `fun`, dense or sparse.

    A dense one is that of `jacfwd` or of `jacrev`, whichever takes fewer products. A
    sparse one takes as many products as its pattern needs colors: three for a
    tridiagonal Jacobian of any size. The pattern is found from the operations of `fun`
    when tracing (see `sparse.jacobian_pattern`), so call the result within `jit` if you
    call it more than once.

    Args:
      fun: function of arrays or pytrees of them.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether `fun` returns `(result, aux)`.
      holomorphic: whether `fun` is a holomorphic function of complex arguments.
      sparse: whether to return sparse arrays.
      pattern: where a sparse Jacobian may be nonzero: a `sparse.Pattern` or a sparse
        array (of fxflow or SciPy), or, if there are several results or arguments, a
        pytree of them, one for each. None: it is found.

    Returns:
      A function of the same arguments that returns the Jacobian, structured as that of
      `jacfwd`; sparse, each leaf is a `sparse.SparseArray` in csr format of shape
      [result.size, argument.size], elements in row-major order, [1, n] of a scalar:
      sparse arrays have two axes. Or `(jacobian, aux)`.

    Raises:
      ArgumentError, DtypeError: as `grad`; `pattern` without `sparse=True`.
      ShapeError: `pattern` has the wrong shape.

    Example:
      >>> matrix = jacobian(lambda x: x[1:] * x[:-1], sparse=True)(fnp.arange(4.0))
      >>> matrix.pattern
      Pattern(csr, [3,4], nnz=6)
      >>> matrix.todense().tolist()
      [[1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 1.0, 0.0], [0.0, 0.0, 3.0, 2.0]]

    Source: Curtis, Powell and Reid, "On the estimation of sparse Jacobian matrices",
    1974.
    """
    require_callable(fun, "jacobian")
    if pattern is not None and not sparse:
        raise ArgumentError("jacobian: pattern is for sparse=True")
    options = {"has_aux": has_aux, "holomorphic": holomorphic}

    @transformed(fun, "jacobian")
    @boundary
    def derivative(*args: Any, **kwargs: Any) -> Any:
        partial, chosen = _prepare(
            fun, argnums, args, kwargs, "jacobian", holomorphic, allow_int=False
        )
        if not sparse:
            result = eval_shape(
                lambda *x: partial(*x)[0] if has_aux else partial(*x), *chosen
            )
            forward = _size(tree.leaves(chosen)) <= _size(tree.leaves(result))
            way: Any = jacfwd if forward else jacrev
            return way(fun, argnums, **options)(*args, **kwargs)
        module: Any = importlib.import_module("fxflow.sparse.jacobians")
        single = not isinstance(argnums, Sequence)
        blocks, aux = module.sparse_jacobian(
            partial, chosen, name_of(fun), single, has_aux, pattern
        )
        return (blocks, aux) if has_aux else blocks

    return derivative


def _size(leaves: Sequence[Any]) -> int:
    return sum(typeof(leaf).size for leaf in leaves)


def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    sparse: bool = False,
    pattern: Any = None,
) -> Callable[P, Any]:
    """Makes a function that returns the matrix of second derivatives of `fun`.

    Args:
      fun: function of arrays or pytrees of them.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether `fun` returns `(result, aux)`.
      holomorphic: whether `fun` is a holomorphic function of complex arguments.
      sparse: whether to return sparse arrays; see `jacobian`.
      pattern: of a sparse Hessian; see `jacobian`. None: it is found.

    Returns:
      A function of the same arguments that returns the Jacobian of the gradient; or
      `(hessian, aux)`. A sparse one needs a scalar `fun`.

    Raises:
      ArgumentError, DtypeError: as `grad`, and as `jacobian`.

    Example:
      >>> hessian(lambda x: (x**3).sum())(fnp.array([1.0, 2.0])).tolist()
      [[6.0, 0.0], [0.0, 12.0]]

      A step of Newton's method reaches the minimum of a quadratic function at once:

      >>> def bowl(x):
      ...     return x @ fnp.array([[2.0, 1.0], [1.0, 3.0]]) @ x / 2 - x.sum()
      >>> x = fnp.zeros(2)
      >>> x = x - fnp.linalg.solve(hessian(bowl)(x), fxflow.grad(bowl)(x))
      >>> bool(fnp.allclose(fxflow.grad(bowl)(x), 0, atol=1e-6))
      True
    """
    if sparse:
        gradient = grad(fun, argnums, has_aux=has_aux, holomorphic=holomorphic)
        return jacobian(
            gradient, argnums, has_aux, holomorphic, sparse=True, pattern=pattern
        )
    if pattern is not None:
        raise ArgumentError("hessian: pattern is for sparse=True")
    inner = jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic)
    return jacfwd(inner, argnums, has_aux=has_aux, holomorphic=holomorphic)
