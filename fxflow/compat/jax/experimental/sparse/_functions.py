"""Making sparse arrays, and derivatives with respect to their data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import fxflow
from fxflow import numpy as fnp
from fxflow import random, tree
from fxflow.compat.jax.experimental.sparse._base import over_batch
from fxflow.compat.jax.experimental.sparse._bcoo import BCOO, with_data
from fxflow.compat.jax.experimental.sparse._bcsr import BCSR
from fxflow.compat.jax.experimental.sparse._plain import COO, CSC, CSR
from fxflow.compat.jax.experimental.sparse._sparsify import is_sparse

_PLAIN = {"coo": COO, "csr": CSR, "csc": CSC}
_FORMATS = {"bcoo": BCOO, "bcsr": BCSR, **_PLAIN}


def _made(sparse_format: str, mat: BCOO) -> Any:
    if sparse_format not in _FORMATS:
        raise ValueError(f"sparse_format={sparse_format!r} not recognized")
    return BCSR.from_bcoo(mat) if _FORMATS[sparse_format] is BCSR else mat


def empty(
    shape: Sequence[int],
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> Any:
    """An array without elements.

    Args:
      shape: shape of the result.
      dtype: dtype of the data.
      index_dtype: dtype of the indices.
      sparse_format: "bcoo" or "bcsr".
      **kwds: further options.

    Returns:
      A sparse array.
    """
    if sparse_format not in _FORMATS:
        raise ValueError(f"sparse_format={sparse_format!r} not recognized")
    if sparse_format in _PLAIN:
        plain = _PLAIN[sparse_format]
        return plain._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)
    if sparse_format == "bcsr":
        more = kwds.get("n_batch", 0) + kwds.get("n_dense", 0)
        if len(tuple(shape)) - more != 2:
            raise ValueError("BCSR sparse.empty: must have 2 sparse dimensions.")
    made = BCOO._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)
    return _made(sparse_format, made)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> Any:
    """Ones on a diagonal.

    Args:
      N: number of rows.
      M: number of columns; None is N.
      k: which diagonal.
      dtype: dtype of the data.
      index_dtype: dtype of the indices.
      sparse_format: "bcoo" or "bcsr".
      **kwds: further options.

    Returns:
      A sparse array.
    """
    M = N if M is None else M
    if sparse_format in _PLAIN:
        plain = _PLAIN[sparse_format]
        return plain._eye(N, M, k, dtype=dtype, index_dtype=index_dtype, **kwds)
    size = max(0, min(N, M - k) if k >= 0 else min(N + k, M))
    n_batch, n_dense = kwds.get("n_batch", 0), kwds.get("n_dense", 0)
    if n_batch or n_dense:
        dense = fnp.eye(N, M, k, dtype)
        held = BCOO.fromdense(dense, n_batch=n_batch, n_dense=n_dense)
        return _made(sparse_format, held)
    at = fnp.arange(size, dtype=index_dtype)
    indices = fnp.stack([at - min(k, 0), at + max(k, 0)], -1).astype(index_dtype)
    data = fnp.ones(size, dtype)
    options = {"indices_sorted": True, "unique_indices": True}
    return _made(sparse_format, BCOO((data, indices), shape=(N, M), **options))


def todense(arr: Any) -> Any:
    """The dense array, or the argument if it is dense.

    Args:
      arr: array.

    Returns:
      A dense array.
    """
    return arr.todense() if is_sparse(arr) else fnp.asarray(arr)


def random_bcoo(
    key: Any,
    shape: Sequence[int],
    *,
    dtype: Any = float,
    indices_dtype: Any = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Any] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """An array with random elements.

    Args:
      key: random key.
      shape: shape of the result.
      dtype: dtype of the data.
      indices_dtype: dtype of the indices.
      nse: number of stored elements; None: as many as there are.
      n_batch: number of batch axes.
      n_dense: number of dense axes.
      unique_indices: whether no place is there twice.
      sorted_indices: whether the places are in order.
      generator: makes the data.
      **kwds: further options.

    Returns:
      A sparse array.
    """
    shape = tuple(shape)
    stop = len(shape) - n_dense
    batch, mid, dense = shape[:n_batch], shape[n_batch:stop], shape[stop:]
    size = math.prod(mid)
    count = math.ceil(size * nse) if 0 <= nse < 1 else int(nse)
    kind = "int32" if indices_dtype is None else indices_dtype
    key_indices, key_data = random.split(key)

    def places(key: Any) -> Any:
        if not mid:
            return fnp.zeros((count, 0), kind)
        flat = random.choice(key, size, (count,), replace=not unique_indices)
        flat = fnp.sort(flat) if sorted_indices else flat
        found = fnp.unravel_index(flat, mid)
        return fnp.stack(found, -1).astype(kind)

    keys = random.split(key_indices, math.prod(batch)).reshape(batch)
    indices = over_batch(places, n_batch)(keys) if batch else places(keys)
    data = generator(key_data, shape=(*batch, count, *dense), dtype=dtype, **kwds)
    return BCOO(
        (data, indices),
        shape=shape,
        indices_sorted=sorted_indices,
        unique_indices=unique_indices,
    )


# -- derivatives -----------------------------------------------------------------------


def _by_data(transform: Any, unpack: Any) -> Any:
    def make(
        fun: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **more: Any
    ) -> Callable[..., Any]:
        """Differentiates with respect to the data of sparse arguments.

        Args:
          fun: a function of sparse and dense arrays.
          argnums: the arguments to differentiate with respect to.
          has_aux: whether the function returns `(result, auxiliary data)`.
          **more: options of the transform of dense arrays.

        Returns:
          The function; its derivatives have the sparsity patterns of the arguments.
        """
        single = not isinstance(argnums, tuple | list)
        numbers = (argnums,) if single else tuple(argnums)

        def call(*args: Any, **kwargs: Any) -> Any:
            chosen = [args[i] for i in numbers]
            leaves, treedef = tree.flatten(chosen, is_leaf=is_sparse)
            data = [x.data if is_sparse(x) else x for x in leaves]

            def inner(data: Any) -> Any:
                held = [
                    _with(x, d) if is_sparse(x) else d
                    for x, d in zip(leaves, data, strict=True)
                ]
                given = list(args)
                for i, x in zip(numbers, treedef.unflatten(held), strict=True):
                    given[i] = x
                return fun(*given, **kwargs)

            out = transform(inner, has_aux=has_aux, **more)(data)

            def rebuilt(found: Any) -> Any:
                held = [
                    _with(x, d) if is_sparse(x) else d
                    for x, d in zip(leaves, found, strict=True)
                ]
                slopes = treedef.unflatten(held)
                return slopes[0] if single else tuple(slopes)

            return unpack(out, rebuilt, has_aux)

        return call

    return make


def _with(x: Any, data: Any) -> Any:
    extra = data.ndim - x.data.ndim
    front = data.shape[: max(extra, 0)]
    if isinstance(x, BCSR):
        # A Jacobian: the axes of the result are batch axes.
        places = (
            fnp.broadcast_to(i, (*front, *i.shape)) for i in (x.indices, x.indptr)
        )
        return BCSR((data, *places), shape=(*front, *x.shape))
    if isinstance(x, COO | CSR | CSC):
        if extra > 0:
            raise NotImplementedError(
                f"a Jacobian with respect to a {type(x).__name__}: it has no batch "
                "axes; use BCOO"
            )
        parts, shape = x.tree_flatten()
        return type(x)((data, *parts[1:]), shape=shape)
    if extra <= 0:
        return with_data(x, data)
    indices = fnp.broadcast_to(x.indices, (*front, *x.indices.shape))
    return BCOO((data, indices), shape=(*front, *x.shape))


def _slopes(out: Any, rebuilt: Any, has_aux: bool) -> Any:
    return (rebuilt(out[0]), out[1]) if has_aux else rebuilt(out)


def _valued(out: Any, rebuilt: Any, has_aux: bool) -> Any:
    return out[0], rebuilt(out[1])


grad: Any = _by_data(fxflow.grad, _slopes)
value_and_grad: Any = _by_data(fxflow.value_and_grad, _valued)
jacfwd: Any = _by_data(fxflow.jacfwd, _slopes)
jacrev: Any = _by_data(fxflow.jacrev, _slopes)
jacobian = jacrev
