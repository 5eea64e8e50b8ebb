"""Operations on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.programs.operations import (
    Api,
    Rng,
    Type,
    add,
    an_axis,
    axes,
    both,
    broadcastable,
    full_rank,
    of_kind,
    some_axes,
)

# -- elementwise -----------------------------------------------------------------------


def _named(module: str, name: str) -> Callable[..., Any]:
    return lambda api, *args: getattr(getattr(api, module), name)(*args)


def _elementwise(module: str, names: str, kinds: str, arity: int = 1) -> None:
    for name in names.split():
        key = name if module == "np" else f"{module}.{name}"
        condition = (
            of_kind(kinds) if arity == 1 else both(of_kind(kinds), broadcastable)
        )
        add(key, "elementwise", _named(module, name), condition, arity=arity)


_elementwise("np", "abs square conj real imag angle sinc nan_to_num", "iufc")
_elementwise("np", "sin cos tanh arctan arcsinh exp2 expm1", "iufc")
_elementwise("np", "sinh cosh tan exp log log1p sqrt arcsin arccosh arctanh", "iufc")
_elementwise("np", "cbrt floor ceil trunc rint sign deg2rad", "iuf")
_elementwise("np", "isfinite isnan logical_not signbit", "f")
_elementwise("np", "invert", "biu")
_elementwise("np", "bitwise_count", "iu")
_elementwise("np", "negative positive", "iufc")
_elementwise("np", "reciprocal", "fc")
_elementwise("nn", "relu gelu silu softplus elu selu sigmoid log_sigmoid mish", "f")
_elementwise("nn", "relu6 hard_tanh soft_sign squareplus celu", "f")
_elementwise("special", "erf erfc expit ndtr i0e i1e gammaln digamma", "f")
_elementwise("special", "entr log_ndtr", "f")
_elementwise("np", "add multiply maximum minimum", "biufc", 2)
_elementwise("np", "subtract divide", "iufc", 2)
_elementwise("np", "fmax fmin", "biuf", 2)
_elementwise("np", "arctan2 hypot copysign logaddexp logaddexp2 heaviside", "iuf", 2)
_elementwise("np", "floor_divide remainder fmod", "iuf", 2)
_elementwise("np", "equal less greater_equal logical_xor logical_and", "biuf", 2)
_elementwise("np", "bitwise_and bitwise_or bitwise_xor", "biu", 2)
_elementwise("np", "gcd", "iu", 2)
_elementwise("special", "xlogy xlog1py rel_entr", "f", 2)
add(
    "power",
    "elementwise",
    lambda api, x, y: api.np.power(api.np.abs(x) + 0.5, api.np.clip(y, -3, 3)),
    both(of_kind("iuf"), broadcastable),
    arity=2,
)
add(
    "integer_power",
    "elementwise",
    lambda api, x, n: x**n,
    of_kind("iufc"),
    lambda rng, x: {"n": int(rng.integers(0, 4))},
)
add(
    "where",
    "elementwise",
    lambda api, p, x, y: api.np.where(p, x, y),
    broadcastable,
    arity=3,
)
add(
    "select",
    "elementwise",
    lambda api, x, y: api.np.select([x > 0, x < y], [x, y], 1),
    both(of_kind("iuf"), broadcastable),
    arity=2,
)
add(
    "clip",
    "elementwise",
    lambda api, x, low, high: api.np.clip(x, low, high),
    of_kind("if"),
    lambda rng, x: {"low": -1, "high": int(rng.integers(0, 3))},
)
add(
    "scalar",
    "elementwise",
    lambda api, x, c: x * c + c,
    of_kind("fc"),
    lambda rng, x: {"c": round(float(rng.normal()), 3)},
)
add(
    "astype",
    "elementwise",
    lambda api, x, dtype: x.astype(dtype),
    of_kind("biuf"),
    lambda rng, x: {
        "dtype": str(
            rng.choice(
                ["float32", "float64", "int32", "complex128", "bool", "int64"]
                if x.kind in "biu"
                else ["float32", "float64", "complex128", "bool"]
            )
        )
    },
)
add(
    "divmod",
    "elementwise",
    lambda api, x, y, i: api.np.divmod(x, y)[i],
    both(of_kind("iuf"), broadcastable),
    lambda rng, x, y: {"i": int(rng.integers(2))},
    2,
)
add(
    "frexp",
    "elementwise",
    lambda api, x, i: api.np.frexp(x)[i],
    of_kind("f"),
    lambda rng, x: {"i": int(rng.integers(2))},
)
add(
    "shift",
    "elementwise",
    lambda api, x, y: api.np.left_shift(x, y & 3),
    both(of_kind("iu"), broadcastable),
    arity=2,
)
add(
    "piecewise",
    "elementwise",
    lambda api, x: api.np.piecewise(x, [x < 0, x > 1], [lambda v: v * v, 2, 1]),
    of_kind("if"),
)

# -- reductions ------------------------------------------------------------------------


def _reduced(rng: Rng, x: Type) -> dict[str, Any]:
    return {"axis": some_axes(rng, x), "keepdims": bool(rng.random() < 0.4)}


def _reduction(names: str, kinds: str) -> None:
    for name in names.split():
        add(
            name,
            "reduction",
            lambda api, x, axis, keepdims, name=name: getattr(api.np, name)(
                x, axis=axes(axis), keepdims=keepdims
            ),
            full_rank(0, kinds),
            _reduced,
        )


_reduction("sum prod mean var std nansum nanmean count_nonzero all any", "biufc")
_reduction("max min nanmax ptp", "iuf")
_reduction("median", "f")
for _name in ("argmax", "argmin"):
    add(
        _name,
        "reduction",
        lambda api, x, axis, name=_name: getattr(api.np, name)(x, axis=axis),
        full_rank(1, "iuf"),
        lambda rng, x: {"axis": an_axis(rng, x)},
    )
for _name in ("cumsum", "cumprod"):
    add(
        _name,
        "reduction",
        lambda api, x, axis, name=_name: getattr(api.np, name)(x, axis=axis),
        full_rank(1),
        lambda rng, x: {"axis": an_axis(rng, x)},
    )
for _name in ("cummax", "cummin", "cumlogsumexp"):
    add(
        _name,
        "reduction",
        lambda api, x, axis, reverse, name=_name: getattr(api.lax, name)(
            x, axis=axis % x.ndim, reverse=reverse
        ),
        full_rank(1, "f"),
        lambda rng, x: {"axis": an_axis(rng, x), "reverse": bool(rng.integers(2))},
    )
add(
    "sum_where",
    "reduction",
    lambda api, x, axis: api.np.sum(x, axis=axis, where=x > 0),
    full_rank(1, "if"),
    lambda rng, x: {"axis": an_axis(rng, x)},
)
add(
    "max_where",
    "reduction",
    lambda api, x, axis: api.np.max(x, axis=axis, where=x < 1, initial=-5),
    full_rank(1, "if"),
    lambda rng, x: {"axis": an_axis(rng, x)},
)
add(
    "logsumexp",
    "reduction",
    lambda api, x, axis: api.nn.logsumexp(x, axis=axes(axis)),
    full_rank(0, "f"),
    lambda rng, x: {"axis": some_axes(rng, x)},
)
add(
    "softmax",
    "reduction",
    lambda api, x, axis: api.nn.softmax(x, axis=axis),
    full_rank(1, "f"),
    lambda rng, x: {"axis": an_axis(rng, x)},
)
add(
    "standardize",
    "reduction",
    lambda api, x, axis: api.nn.standardize(x, axis=axis),
    full_rank(1, "f"),
    lambda rng, x: {"axis": an_axis(rng, x)},
)
add(
    "quantile",
    "reduction",
    lambda api, x, q: api.np.quantile(x, q, axis=0),
    full_rank(1, "f"),
    lambda rng, x: {"q": round(float(rng.random()), 2)},
)
add(
    "average",
    "reduction",
    lambda api, x: api.np.average(
        x, axis=0, weights=api.np.arange(1.0, x.shape[0] + 1)
    ),
    full_rank(1, "iuf"),
)
add(
    "reduce_window",
    "reduction",
    lambda api, x: api.lax.reduce_window(
        x, x.dtype.type(0), api.lax.add, (2,) * x.ndim, (1,) * x.ndim, "SAME"
    ),
    full_rank(1, "f"),
)
add(
    "norm",
    "reduction",
    lambda api, x, o: api.np.linalg.norm(x, ord=o, axis=-1),
    full_rank(1, "f"),
    lambda rng, x: {"o": [None, 1, 2, 3][int(rng.integers(4))]},
)

# -- shapes ----------------------------------------------------------------------------

add(
    "transpose",
    "shape",
    lambda api, x, axes: api.np.transpose(x, axes),
    parameters=lambda rng, x: {"axes": [int(a) for a in rng.permutation(x.ndim)]},
)
add("ravel", "shape", lambda api, x: api.np.ravel(x))
add(
    "reshape",
    "shape",
    lambda api, x, shape: api.np.reshape(x, shape),
    full_rank(1),
    lambda rng, x: {"shape": [-1, x.shape[int(rng.integers(x.ndim))]]},
)
add(
    "expand_dims",
    "shape",
    lambda api, x, axis: api.np.expand_dims(x, axis),
    lambda x: x.ndim < 4,
    lambda rng, x: {"axis": int(rng.integers(-1, x.ndim + 1))},
)
add("squeeze", "shape", lambda api, x: api.np.squeeze(x))
add(
    "swapaxes",
    "shape",
    lambda api, x, a, b: api.np.swapaxes(x, a, b),
    lambda x: x.ndim > 0,
    lambda rng, x: {"a": an_axis(rng, x), "b": an_axis(rng, x)},
)
add(
    "flip",
    "shape",
    lambda api, x, axis: api.np.flip(x, axes(axis)),
    parameters=lambda rng, x: {"axis": some_axes(rng, x)},
)
add(
    "roll",
    "shape",
    lambda api, x, shift, axis: api.np.roll(x, shift, axes(axis)),
    parameters=lambda rng, x: {
        "shift": int(rng.integers(-3, 4)),
        "axis": an_axis(rng, x) if x.ndim else None,
    },
)
add(
    "tile",
    "shape",
    lambda api, x, reps: api.np.tile(x, reps),
    lambda x: x.size < 500,
    lambda rng, x: {"reps": [int(r) for r in rng.integers(1, 3, 2)]},
)
add(
    "repeat",
    "shape",
    lambda api, x, n, axis: api.np.repeat(x, n, axis=axis),
    lambda x: x.ndim > 0 and x.size < 500,
    lambda rng, x: {"n": int(rng.integers(1, 4)), "axis": an_axis(rng, x)},
)
add(
    "broadcast_to",
    "shape",
    lambda api, x: api.np.broadcast_to(x, (2, *x.shape)),
    lambda x: x.ndim < 4 and x.size < 1000,
)
add(
    "diag",
    "shape",
    lambda api, x, k: api.np.diag(x, k),
    lambda x: x.ndim in (1, 2) and x.size and min(x.shape) > 1 and x.size < 60,
    lambda rng, x: {"k": int(rng.integers(-1, 2))},
)
add(
    "tril",
    "shape",
    lambda api, x, k: api.np.tril(x, k),
    lambda x: x.ndim >= 2,
    lambda rng, x: {"k": int(rng.integers(-1, 2))},
)
add(
    "stack",
    "shape",
    lambda api, x, y, axis: api.np.stack([x, y], axis=axis),
    lambda x, y: x.shape == y.shape and x.ndim < 4 and x.size < 1000,
    lambda rng, x, y: {"axis": int(rng.integers(-1, x.ndim + 1))},
    2,
)
add(
    "concatenate",
    "shape",
    lambda api, x, y: api.np.concatenate([x, y], axis=0),
    lambda x, y: (
        x.ndim == y.ndim > 0 and x.shape[1:] == y.shape[1:] and x.size + y.size < 2000
    ),
    arity=2,
)
add(
    "concatenate_flat",
    "shape",
    lambda api, x, y: api.np.concatenate([x, y], axis=None),
    lambda x, y: x.size + y.size < 2000,
    arity=2,
)
add(
    "split",
    "shape",
    lambda api, x, i: api.np.array_split(x, 2)[i],
    lambda x: x.ndim > 0,
    lambda rng, x: {"i": int(rng.integers(2))},
)
for _mode in ("constant", "edge", "reflect", "symmetric", "wrap", "mean", "maximum"):
    add(
        f"pad_{_mode}",
        "shape",
        lambda api, x, width, mode=_mode: api.np.pad(x, width, mode=mode),
        full_rank(1, "biuf" if _mode != "mean" else "f"),
        lambda rng, x: {"width": [[int(v) for v in rng.integers(0, 2, 2)]] * x.ndim},
    )
add(
    "lax_pad",
    "shape",
    lambda api, x, config: api.lax.pad(x, x.dtype.type(1), [tuple(c) for c in config]),
    full_rank(1),
    lambda rng, x: {
        "config": [
            [
                int(rng.integers(-1, 2)) if n > 1 else 0,
                int(rng.integers(0, 2)),
                int(rng.integers(0, 2)),
            ]
            for n in x.shape
        ]
    },
)
add(
    "diff",
    "shape",
    lambda api, x, axis: api.np.diff(x, axis=axis),
    full_rank(1, "iufc"),
    lambda rng, x: {"axis": an_axis(rng, x)},
)
add(
    "gradient",
    "shape",
    lambda api, x: api.np.gradient(x, axis=0),
    lambda x: x.ndim > 0 and x.shape[0] > 2 and x.size and x.kind in "f",
)
add(
    "meshgrid",
    "shape",
    lambda api, x, y, i: api.np.meshgrid(x, y)[i],
    lambda x, y: x.ndim == y.ndim == 1 and x.size * y.size < 1000,
    lambda rng, x, y: {"i": int(rng.integers(2))},
    2,
)
add("trapezoid", "shape", lambda api, x: api.np.trapezoid(x), full_rank(1, "f"))
add(
    "interp",
    "shape",
    lambda api, x, y: api.np.interp(x, api.np.arange(y.shape[0]), y),
    lambda x, y: x.kind == y.kind == "f" and y.ndim == 1 and y.size > 1,
    arity=2,
)

# -- reading and writing by index ------------------------------------------------------

add(
    "slice",
    "indexing",
    lambda api, x, start, step: x[start::step],
    lambda x: x.ndim > 0,
    lambda rng, x: {
        "start": int(rng.integers(-3, 3)),
        "step": int(rng.choice([-2, -1, 1, 2])),
    },
)
add(
    "pick",
    "indexing",
    lambda api, x, i: x[..., i],
    full_rank(1),
    lambda rng, x: {"i": int(rng.integers(-x.shape[-1], x.shape[-1]))},
)
add("new_axis", "indexing", lambda api, x: x[:, None], lambda x: 0 < x.ndim < 4)
add(
    "mask",
    "indexing",
    lambda api, x: api.np.where(x > 0, x, 0).sum(-1),
    full_rank(1, "iuf"),
)
add(
    "gather",
    "indexing",
    lambda api, x, i: x[api.np.array(i)],
    full_rank(1),
    lambda rng, x: {"i": [int(v) for v in rng.integers(-x.shape[0], x.shape[0], 3)]},
)
add(
    "gather_2d",
    "indexing",
    lambda api, x, i, j: x[api.np.array(i)[:, None], api.np.array(j)],
    full_rank(2),
    lambda rng, x: {
        "i": [int(v) for v in rng.integers(0, x.shape[0], 2)],
        "j": [int(v) for v in rng.integers(0, x.shape[1], 3)],
    },
)
add(
    "take_traced",
    "indexing",
    lambda api, x, y: api.np.take(x, y, axis=0, mode="clip"),
    lambda x, y: x.ndim > 0 and x.size and y.kind in "iu" and y.size * x.size < 3000,
    arity=2,
)
add(
    "take_along_axis",
    "indexing",
    lambda api, x: api.np.take_along_axis(x, api.np.argsort(x, axis=-1), axis=-1),
    full_rank(1, "iuf"),
)
for _update in ("set", "add", "multiply", "max", "min"):
    add(
        f"at_{_update}",
        "indexing",
        lambda api, x, i, v, update=_update: getattr(x.at[api.np.array(i)], update)(v),
        full_rank(1, "if"),
        lambda rng, x: {
            "i": [int(v) for v in rng.permutation(x.shape[0])[:2]],
            "v": int(rng.integers(-3, 4)),
        },
    )
add(
    "at_slice",
    "indexing",
    lambda api, x, v: x.at[1::2].set(v),
    full_rank(1, "if"),
    lambda rng, x: {"v": int(rng.integers(-3, 4))},
)
add(
    "at_values",
    "indexing",
    lambda api, x, y: x.at[0].add(y[0]),
    lambda x, y: (
        x.shape == y.shape
        and x.ndim > 0
        and x.size > 0
        and x.dtype == y.dtype
        and x.kind in "iufc"
    ),
    arity=2,
)
add(
    "dynamic_slice",
    "indexing",
    lambda api, x, y: api.lax.dynamic_slice_in_dim(x, y.ravel()[0], 1, 0),
    lambda x, y: x.ndim > 0 and x.size and y.size and y.kind in "i",
    arity=2,
)
add(
    "dynamic_update",
    "indexing",
    lambda api, x, i: api.lax.dynamic_update_slice_in_dim(x, x[:1] * 2, i, 0),
    full_rank(1, "iufc"),
    lambda rng, x: {"i": int(rng.integers(-2, 9))},
)
add(
    "one_hot",
    "indexing",
    lambda api, x: api.nn.one_hot(x, 4),
    lambda x: x.kind == "i" and x.size < 500 and x.ndim < 4,
)

# -- sorting and searching -------------------------------------------------------------

add(
    "sort",
    "sorting",
    lambda api, x, axis: api.np.sort(x, axis=axis),
    full_rank(1),
    lambda rng, x: {"axis": an_axis(rng, x)},
)
add(
    "argsort",
    "sorting",
    lambda api, x, axis: api.np.argsort(x, axis=axis),
    full_rank(1),
    lambda rng, x: {"axis": an_axis(rng, x)},
)
add(
    "sort_abs", "sorting", lambda api, x: api.np.sort(api.np.abs(x)), full_rank(1, "fc")
)
add(
    "top_k",
    "sorting",
    lambda api, x, i: api.lax.top_k(x, 1)[i],
    full_rank(1, "iuf"),
    lambda rng, x: {"i": int(rng.integers(2))},
)
add(
    "searchsorted",
    "sorting",
    lambda api, x, y: api.np.searchsorted(api.np.sort(x), y),
    lambda x, y: x.ndim == 1 and x.size and x.kind in "if" and y.kind in "if",
    arity=2,
)
add(
    "isin",
    "sorting",
    lambda api, x, y: api.np.isin(x, y),
    lambda x, y: x.size * y.size < 4000,
    arity=2,
)
add(
    "unique",
    "sorting",
    lambda api, x: api.np.unique(x, size=4, fill_value=0),
    full_rank(1, "iuf"),
)
add(
    "histogram",
    "sorting",
    lambda api, x: api.np.histogram(x, bins=4, range=(-2.0, 2.0))[0],
    full_rank(1, "f"),
)

# -- linear algebra --------------------------------------------------------------------


def _square(x: Type) -> bool:
    return x.ndim == 2 and x.shape[0] == x.shape[1] and x.size > 0 and x.kind == "f"


def _safe(api: Api, x: Any) -> Any:
    """A matrix that is far from singular, with distinct eigenvalues."""
    x = api.np.where(api.np.isfinite(x), x, 0)
    return api.np.tanh(x) / x.shape[-1] + api.np.diag(
        api.np.arange(2.0, 2 + x.shape[-1])
    )


add(
    "matmul",
    "linalg",
    lambda api, x, y: api.np.matmul(x, y),
    lambda x, y: (
        x.ndim > 0
        and y.ndim > 0
        and x.size
        and y.size
        and x.ndim <= 2
        and y.ndim <= 2
        and x.shape[-1] == y.shape[-2 if y.ndim > 1 else 0]
    ),
    arity=2,
)
add(
    "gram",
    "linalg",
    lambda api, x: x @ api.np.swapaxes(x, -1, -2),
    lambda x: x.ndim >= 2 and x.size and x.size < 500,
)
add(
    "tensordot",
    "linalg",
    lambda api, x, y: api.np.tensordot(x, y, axes=0),
    lambda x, y: x.ndim + y.ndim <= 4 and x.size * y.size < 2000,
    arity=2,
)
add(
    "einsum",
    "linalg",
    lambda api, x: api.np.einsum("...i,...i->...", x, x),
    full_rank(1),
)
add(
    "outer",
    "linalg",
    lambda api, x, y: api.np.outer(x, y),
    lambda x, y: x.size * y.size < 1000,
    arity=2,
)
add(
    "convolve",
    "linalg",
    lambda api, x, y: api.np.convolve(x, y, mode="same"),
    lambda x, y: x.ndim == y.ndim == 1 and x.size and y.size,
    arity=2,
)
add("det", "linalg", lambda api, x: api.np.linalg.det(_safe(api, x)), _square)
add("inv", "linalg", lambda api, x: api.np.linalg.inv(_safe(api, x)), _square)
add("solve", "linalg", lambda api, x: api.np.linalg.solve(_safe(api, x), x), _square)
add(
    "eigvalsh",
    "linalg",
    lambda api, x: api.np.linalg.eigvalsh(_safe(api, x) + _safe(api, x).T),
    _square,
)
add(
    "svdvals",
    "linalg",
    lambda api, x: api.np.linalg.svd(_safe(api, x), compute_uv=False),
    _square,
)
add(
    "qr",
    "linalg",
    lambda api, x: api.np.abs(api.np.linalg.qr(_safe(api, x))[1]),
    _square,
)
add(
    "cholesky",
    "linalg",
    lambda api, x: api.np.linalg.cholesky(_safe(api, x) @ _safe(api, x).T),
    _square,
)
add("expm", "linalg", lambda api, x: api.linalg.expm(_safe(api, x) / 4), _square)
add(
    "eigvals",
    "linalg",
    lambda api, x: api.np.sort(api.np.abs(api.np.linalg.eigvals(_safe(api, x)))),
    _square,
)
add(
    "matrix_power",
    "linalg",
    lambda api, x: api.np.linalg.matrix_power(_safe(api, x), 3),
    _square,
)
add(
    "fft",
    "linalg",
    lambda api, x, axis: api.np.fft.fft(x, axis=axis),
    full_rank(1, "fc"),
    lambda rng, x: {"axis": an_axis(rng, x)},
)
add("rfft", "linalg", lambda api, x: api.np.fft.rfft(x), full_rank(1, "f"))
add("irfft", "linalg", lambda api, x: api.np.fft.irfft(x, n=5), full_rank(1, "c"))

# -- random numbers --------------------------------------------------------------------

add(
    "normal",
    "random",
    lambda api, x, seed: x + api.random.normal(api.random.key(seed), x.shape, x.dtype),
    of_kind("f"),
    lambda rng, x: {"seed": int(rng.integers(99))},
)
add(
    "permute",
    "random",
    lambda api, x, seed: api.random.permutation(api.random.key(seed), x),
    full_rank(1),
    lambda rng, x: {"seed": int(rng.integers(99))},
)
add(
    "dropout",
    "random",
    lambda api, x, seed: api.np.where(
        api.random.bernoulli(api.random.key(seed), 0.5, x.shape), x, 0
    ),
    parameters=lambda rng, x: {"seed": int(rng.integers(99))},
)
