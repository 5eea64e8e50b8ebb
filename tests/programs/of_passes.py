"""Operations made of what graph passes look for: loops, scatters, picks, convolutions.

What an operation does is drawn as lists of numbers, each taken modulo what there is to
choose from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.programs.operations import Api, Rng, Type, add, full_rank

DTYPES = (
    "float64", "float64", "float32", "float32", "int32", "bfloat16", "float16",
    "complex64",
)  # fmt: skip
AROUND = (
    "nothing", "nothing", "jit", "checkpoint", "cond", "while", "vmap", "scan", "grad",
    "jvp", "custom_vjp",
)  # fmt: skip
WIDTH = 4
Plan = Sequence[Sequence[int]]


def _numbers(rng: Rng, count: int) -> list[int]:
    return [int(v) for v in rng.integers(1000, size=count)]


def _one(rng: Rng, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def _shaped(api: Api, x: Any, dtype: str, *shape: int, at: int = 0) -> Any:
    """An array of any shape with the elements of x, again and again."""
    places = (np.arange(int(np.prod(shape))) * 5 + at) % x.size
    values = x.ravel()[places].reshape(shape)
    if "int" in dtype:
        values = api.np.nan_to_num(values, posinf=5, neginf=-5) * 3 % 16
    values = values.astype(dtype)
    return values * (1 + 0.5j) if dtype.startswith("complex") else values


def _bounded(api: Api, v: Any) -> Any:
    if np.issubdtype(v.dtype, np.integer):
        return v % 7 - 3
    # Complex tangents have poles.
    return v / (1 + api.np.abs(v)).astype(v.dtype)


def _flat(api: Api, x: Any, leaves: Sequence[Any]) -> Any:
    """All results as one array of the dtype of x."""
    parts = []
    for leaf in leaves:
        if np.dtype(leaf.dtype).kind == "c":
            leaf = api.np.real(leaf) + 2 * api.np.imag(leaf)
        parts.append(leaf.astype(x.dtype).ravel())
    return api.np.concatenate([*parts, x.ravel()[:1]])


def _wrapped(api: Api, around: str, f: Callable[[Any], Any], x: Any) -> Any:
    """Calls a function of one array under something else."""
    real = api.np.mean
    if around == "jit":
        return api.jit(f)(x)
    if around == "checkpoint":
        return api.checkpoint(f)(x)
    if around == "cond":
        return api.lax.cond(real(x) > -9, f, lambda v: f(v) * 2, x)
    if around == "while":
        n = f(x).shape[0]
        body = lambda i, c: c * 0.5 + f(x + i)
        return api.lax.fori_loop(0, 2, body, api.np.zeros((n,), x.dtype))
    if around == "vmap":
        return api.vmap(f)(api.np.stack([x, x * 0.5])).sum(0)
    if around == "scan":
        rows = api.np.stack([x, x * 0.5])
        return api.lax.scan(lambda c, v: (c + 1, f(v) + c), 0, rows)[1].sum(0)
    if around == "grad":
        return api.grad(lambda v: api.np.sum(api.np.sin(f(v))))(x).ravel()
    if around == "jvp":
        slope = api.grad(lambda v: api.np.sum(api.np.sin(f(v))))
        return api.jvp(slope, (x,), (x * 0.5,))[1].ravel()
    if around == "custom_vjp":
        same = api.custom_vjp(f)
        same.defvjp(lambda v: (f(v), v), lambda v, g: (v * api.np.sum(g),))
        return same(x)
    return f(x)


# -- loops -----------------------------------------------------------------------------


def _steps(api: Api) -> list[Callable[..., Any]]:
    """What a step may do, with two values so far, weights, the counter and a number."""
    np_ = api.np

    def inner(v: Any, u: Any, w: Any, i: Any, n: int) -> Any:
        return api.lax.scan(lambda c, s: (_bounded(api, c @ w[0] + s), c), u, v[None])

    return [
        lambda v, u, w, i, n: v @ w[n % 2],
        lambda v, u, w, i, n: v @ w[n % 2] + u,
        lambda v, u, w, i, n: v @ w[n % 2].T,
        lambda v, u, w, i, n: (w[n % 2] @ v.T).T,
        lambda v, u, w, i, n: (v @ u.T) @ u,
        lambda v, u, w, i, n: v * u,
        lambda v, u, w, i, n: np_.concatenate([v, u], -1) @ np_.concatenate(w[:2]),
        lambda v, u, w, i, n: np_.concatenate([u, v, v], -1) @ w[2],
        lambda v, u, w, i, n: np_.multiply(*np_.split(v @ w[3], 2, axis=-1)),
        lambda v, u, w, i, n: np_.concatenate(np_.split(v @ w[3], 2, -1)[::-1], -1)[
            :, n % 4 : n % 4 + WIDTH
        ],
        lambda v, u, w, i, n: v @ (w[n % 2] * 2),
        lambda v, u, w, i, n: v - u,
        lambda v, u, w, i, n: v[::-1],
        lambda v, u, w, i, n: np_.roll(v, n % 3, axis=-1),
        lambda v, u, w, i, n: (
            np_.take(v, np_.array([n % 9, 0]), 0, mode="clip")[:1] + u
        ),
        lambda v, u, w, i, n: v.at[n % 2 - 1].add(u[0]).at[0].add(u[-1]),
        lambda v, u, w, i, n: api.jit(lambda a, b: a @ w[0] + b)(v, u),
        lambda v, u, w, i, n: api.lax.cond(i > 1, lambda a: a @ w[0], lambda a: a, v),
        lambda v, u, w, i, n: inner(v, u, w, i, n)[0],
        lambda v, u, w, i, n: np_.cumsum(v, axis=n % 2),
        lambda v, u, w, i, n: np_.where(i % 2 == 0, v, u),
        lambda v, u, w, i, n: v @ np_.stack(w[:2])[i % 2],
        lambda v, u, w, i, n: api.checkpoint(lambda a: _bounded(api, a @ w[n % 2]))(v),
        lambda v, u, w, i, n: np_.sum(v, axis=n % 2, keepdims=True) + u,
        lambda v, u, w, i, n: np_.einsum("ri,ij,rj->rj", v, w[0], u),
        lambda v, u, w, i, n: (
            v
            + api.random.randint(
                api.random.fold_in(api.random.key(n), i), v.shape, 0, 3
            ).astype(v.dtype)
        ),
        lambda v, u, w, i, n: v * (1 - v),
        lambda v, u, w, i, n: v + v.dtype.type(n % 3),
    ]


def _loop(
    api: Api,
    x: Any,
    plan: Plan,
    ends: Sequence[int],
    length: int,
    rows: int,
    dtype: str,
    reverse: bool,
    unroll: int,
    around: str,
) -> Any:
    steps = _steps(api)

    def run(x: Any) -> Any:
        w = [
            _shaped(api, x, dtype, a * WIDTH, b * WIDTH, at=i)
            for i, (a, b) in enumerate([(1, 1), (1, 1), (3, 1), (1, 2)])
        ]

        def body(carry: Any, slices: Any) -> Any:
            h, total, same, i = carry
            pool = [h, slices[0], same]
            for kind, a, b, n in plan:
                v, u = (pool[-1 - p % min(len(pool), 4)] for p in (a, b))
                value = steps[kind % len(steps)](v, u, w, i, n).astype(v.dtype)
                pool.append(_bounded(api, value) if n % 3 else value)
            first, second, third, fourth = (pool[-1 - e % len(pool)] for e in ends[:4])
            if ends[4] % 3:
                total = total + first.T @ second
            if ends[4] % 2:
                total = total + third[0] * slices[1]
            ys = [third, first, fourth, h, total, third * (1 - third)]
            return (_bounded(api, pool[-1]), total, same, i + 1), ys[: ends[5] % 7]

        first = _shaped(api, x, dtype, rows, WIDTH, at=1)
        total = _shaped(api, x, dtype, WIDTH, WIDTH, at=2)
        slices = (
            _shaped(api, x, dtype, length, rows, WIDTH, at=3),
            _shaped(api, x, dtype, length, at=2),
        )
        start = (first, total, first[::-1], 0)
        carry, ys = api.lax.scan(body, start, slices, reverse=reverse, unroll=unroll)
        return _flat(api, x, [*carry, *ys])

    return _wrapped(api, around, run, x)


def _loop_parameters(rng: Rng, x: Type) -> dict[str, Any]:
    return {
        "plan": [_numbers(rng, 4) for _ in range(int(rng.integers(1, 8)))],
        "ends": _numbers(rng, 6),
        "length": _one(rng, (0, 1, 2, 4, 5)),
        "rows": _one(rng, (1, 2, 3)),
        "dtype": _one(rng, DTYPES),
        "reverse": bool(rng.integers(2)),
        "unroll": _one(rng, (1, 1, 2)),
        "around": _one(rng, AROUND),
    }


add("loop", "passes", _loop, full_rank(1, "f"), _loop_parameters)


# -- scatters --------------------------------------------------------------------------

_KINDS = ("add", "add", "add", "add", "multiply", "min", "max", "set")
_MODES = ("drop", "clip", "promise_in_bounds", "fill")
_ROWS = 6


def _indices(drawn: Sequence[int], mode: str, dtype: str) -> Any:
    """Rows: some twice, and out of bounds where the mode lets them."""
    signed = not dtype.startswith("u")
    low, high = (-9 if signed else 0, 9) if mode in ("drop", "clip") else (0, _ROWS)
    return (np.array(drawn) % (high - low) + low).astype(dtype)


def _chain(
    api: Api, x: Any, table: Any, updates: Plan, dtype: str, start: int
) -> tuple[Any, Any]:
    """The table with updates one after the other; also what is read between."""
    kind_of_all = _KINDS[start % len(_KINDS)]
    read = table[0]
    for kind, mode, form, form_of_indices, *drawn in updates:
        name = _KINDS[kind % len(_KINDS)] if kind % 3 == 0 else kind_of_all
        mode = _MODES[mode % len(_MODES)]
        index_dtype = ("int32", "uint8", "int64")[form_of_indices % 3]
        at = _indices(drawn, mode, index_dtype)
        options: dict[str, Any] = {"mode": mode}
        if form % 5 == 0 or name == "set":  # which of two writes wins is not promised
            at, options = at[:1], options | {"unique_indices": True}
        elif form % 5 == 1:
            at, options = (
                np.sort(at),
                options | {"indices_are_sorted": bool((at >= 0).all())},
            )
        elif form % 5 == 2:
            at = at.reshape(-1, 1)
        new = _shaped(api, x, dtype, *at.shape, WIDTH, at=kind)
        if form % 7 == 3:
            at, new = (slice(None), at % WIDTH), new.ravel()[0]
            options = {"mode": mode}
        table = getattr(table.at[at], name)(new, **options)
        if form % 11 == 0:
            read = read + table[form % _ROWS]
    return table, read


def _scatters(
    api: Api,
    x: Any,
    first: Plan,
    second: Plan,
    end: int,
    number: float,
    dtype: str,
    around: str,
) -> Any:
    def run(x: Any) -> Any:
        table = _shaped(api, x, dtype, _ROWS, WIDTH)
        zeros = api.np.zeros_like(table)
        a, read = _chain(api, x, table if end % 2 else zeros, first, dtype, end)
        b, _ = _chain(api, x, zeros, second, dtype, 0)
        finite = number if np.isfinite(number) or "float" in dtype else 2
        c = table.dtype.type(abs(finite) if dtype == "uint8" else finite)
        out = [
            lambda: a,
            lambda: a + b,
            lambda: table + b,
            lambda: table - b * c,
            lambda: _bounded(api, table) - c * (-b),
            lambda: b * c + table * 2,
            lambda: (a + b) * c + table,
            lambda: api.np.where(table > 0, table, -table) + b,
        ][end % 8]()
        return _flat(api, x, [out, read])

    return _wrapped(api, around, run, x)


def _scatters_parameters(rng: Rng, x: Type) -> dict[str, Any]:
    def chain() -> list[list[int]]:
        counts = rng.integers(5, 9, size=int(rng.integers(1, 4)))
        return [_numbers(rng, int(n)) for n in counts]

    dtypes = (*DTYPES[:7], "uint8")  # complex numbers have no order
    return {
        "first": chain(),
        "second": chain(),
        "end": int(rng.integers(1000)),
        "number": _one(rng, (2, 3, -1, 0, float("inf"))),
        "dtype": _one(rng, dtypes),
        "around": _one(rng, AROUND),
    }


add("scatters", "passes", _scatters, full_rank(1, "f"), _scatters_parameters)


# -- products --------------------------------------------------------------------------


def _products(
    api: Api,
    x: Any,
    lines: Sequence[int],
    labels: Sequence[int],
    form: int,
    around: str,
) -> Any:
    """A loss of classes, with labels that may be invalid; and what is around it."""
    np_, dtype = api.np, "float32" if form % 3 else str(x.dtype)
    classes = 7

    def run(x: Any) -> Any:
        h = _shaped(api, x, dtype, *lines, 3)
        turned = bool(form % 2)
        w = _shaped(api, x, dtype, *((classes, 3) if turned else (3, classes)), at=1)
        logits = h @ (w.T if turned else w)
        count, axes = int(np.prod(lines)), tuple(range(len(lines)))
        at = np_.asarray(np.resize(labels, count).reshape(*lines) % 11 - 2)
        mode = (None, "clip", "fill")[form % 5 % 3]
        pick = np_.take_along_axis(logits, at[..., None], axis=-1, mode=mode)[..., 0]
        out = [
            lambda: [pick],
            lambda: [pick, logits],
            lambda: [api.nn.logsumexp(logits, axis=-1) - pick],
            lambda: [api.nn.softmax(logits + 1), pick],
            lambda: [api.nn.log_softmax(logits) * api.nn.one_hot(at, classes)],
            lambda: [
                api.vmap(lambda a, i: api.lax.dynamic_slice(a, (i,), (2,)))(
                    logits.reshape(-1, classes), at.ravel()
                )
            ],
            lambda: [np_.tanh(logits) @ np_.ones((classes, 2), logits.dtype)],
            lambda: [
                np_.take_along_axis(
                    logits, np_.argmax(logits, axis=-1)[..., None], axis=-1
                )[..., 0]
                == np_.max(logits, axis=-1)
            ],
            lambda: [np_.where(logits > 0, logits, 0.5).max(-1), np_.exp(logits[0])],
            lambda: [np_.tensordot(h, logits, (axes, axes)), logits * 2],
        ][form % 10]()
        return _flat(api, x, out)

    return _wrapped(api, around, run, x)


def _products_parameters(rng: Rng, x: Type) -> dict[str, Any]:
    return {
        "lines": _one(rng, ([5], [2, 3], [1, 4], [2, 1, 2])),
        "labels": _numbers(rng, 5),
        "form": int(rng.integers(1000)),
        "around": _one(rng, AROUND),
    }


add("products", "passes", _products, full_rank(1, "f"), _products_parameters)


# -- functions of rows -----------------------------------------------------------------


def _row_steps(api: Api) -> list[Callable[..., Any]]:
    """What a step may do, with a value, another one, a number for each row, and scales.

    The first give a value, the last three a number for each row.
    """
    np_ = api.np
    return [
        lambda v, u, r, s: _bounded(api, v) + u,
        lambda v, u, r, s: v - r,
        lambda v, u, r, s: v * r,
        lambda v, u, r, s: np_.exp(_bounded(api, v)) * s,
        lambda v, u, r, s: np_.where(v > r, u, v),
        lambda v, u, r, s: api.nn.softmax(v),
        lambda v, u, r, s: v * u + s,
        lambda v, u, r, s: np_.where(np_.arange(v.shape[-1]) == 1, r, v),
        lambda v, u, r, s: v[..., ::-1] + u,
        lambda v, u, r, s: v + np_.sum(v, axis=0, keepdims=True),
        lambda v, u, r, s: np_.tanh(v) + np_.sum(u),
        lambda v, u, r, s: np_.sort(v, axis=-1) * 2,
        lambda v, u, r, s: np_.sum(v * u, axis=-1, keepdims=True),
        lambda v, u, r, s: np_.max(v, axis=-1, keepdims=True) + r,
        lambda v, u, r, s: np_.min(v + u, axis=-1, keepdims=True) * 0.5,
    ]


def _rows(
    api: Api,
    x: Any,
    plan: Plan,
    ends: Sequence[int],
    lines: Sequence[int],
    columns: int,
    dtype: str,
    around: str,
) -> Any:
    """Elementwise operations around reductions of rows, in any order."""
    steps = _row_steps(api)

    def run(x: Any) -> Any:
        values = [_shaped(api, x, dtype, *lines, columns, at=i) for i in range(2)]
        numbers = [api.np.sum(values[0], axis=-1, keepdims=True) * 0.25]
        scale = _shaped(api, x, dtype, columns, at=3)
        for kind, a, b, c in plan:
            v, u = (values[-1 - i % min(len(values), 3)] for i in (a, b))
            step = kind % len(steps)
            made = steps[step](v, u, numbers[-1 - c % len(numbers)], scale)
            (numbers if step >= len(steps) - 3 else values).append(made.astype(v.dtype))
        found = [*values[2:], *numbers, api.np.sum(values[-1], axis=0)]
        return _flat(api, x, [found[e % len(found)] for e in ends])

    return _wrapped(api, around, run, x)


def _rows_parameters(rng: Rng, x: Type) -> dict[str, Any]:
    return {
        "plan": [_numbers(rng, 4) for _ in range(int(rng.integers(3, 10)))],
        "ends": _numbers(rng, int(rng.integers(1, 4))),
        "lines": _one(rng, ([5], [2, 3], [1], [2, 1, 2])),
        "columns": _one(rng, (1, 3, 4)),
        "dtype": _one(rng, ("float32", "float32", "float32", "bfloat16")),
        "around": _one(rng, AROUND),
    }


add("rows", "passes", _rows, full_rank(1, "f"), _rows_parameters)


# -- convolutions ----------------------------------------------------------------------

_LAYOUTS = (
    ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW"), ("HWNC", "IHWO", "CNHW"),
    ("HCNW", "HOIW", "WHNC"),
)  # fmt: skip


def _convolutions(
    api: Api,
    x: Any,
    sizes: Sequence[int],
    window: Sequence[int],
    padding: Sequence[Sequence[int]],
    dilations: Sequence[Sequence[int]],
    features: Sequence[int],
    groups: int,
    layout: int,
    dtype: str,
    around: str,
) -> Any:
    """A convolution of one axis or two, and what is computed of it."""
    image = "HW"[: len(sizes)]
    orders = [
        "".join(c for c in order if c not in "HW" or c in image)
        for order in _LAYOUTS[layout % len(_LAYOUTS)]
    ]
    strides, holes, apart = (tuple(d) for d in dilations)

    def run(x: Any) -> Any:
        lengths = dict(zip(image, sizes)) | {"N": 2, "C": features[0] * groups}
        taps = dict(zip(image, window)) | {"I": features[0], "O": features[1] * groups}
        left = _shaped(api, x, dtype, *(lengths[c] for c in orders[0]))
        right = _shaped(api, x, dtype, *(taps[c] for c in orders[1]), at=2)
        out = api.lax.conv_general_dilated(
            left,
            right,
            strides,
            [tuple(pair) for pair in padding],
            holes,
            apart,
            tuple(orders),
            groups,
        )
        return _flat(api, x, [_bounded(api, out), out[:1] * 2])

    return _wrapped(api, around, run, x)


def _convolutions_parameters(rng: Rng, x: Type) -> dict[str, Any]:
    count = int(rng.integers(1, 3))
    ones = [1] * count
    sizes, window = (
        [int(n) for n in rng.integers(low, high, count)]
        for low, high in ((2, 7), (1, 5))
    )
    steps = [[int(n) for n in rng.integers(1, 4, count)] for _ in range(3)]
    if rng.random() < 0.5:
        steps = [ones, steps[1], ones]  # the image alone is dilated
    elif rng.random() < 0.7:
        steps[1] = ones
    high = _one(rng, (3, 3, 9))
    padding = []
    for length, size, hole, apart in zip(sizes, window, steps[1], steps[2]):
        low, above = (int(n) for n in rng.integers(-1, high, 2))
        missing = (size - 1) * apart - (length - 1) * hole - low - above
        padding.append([low, above + max(missing, 0)])  # one result at least
    return {
        "sizes": sizes,
        "window": window,
        "padding": padding,
        "dilations": steps,
        "features": [int(rng.integers(1, 4)), _one(rng, (1, 4, 9))],
        "groups": _one(rng, (1, 1, 1, 2)),
        "layout": int(rng.integers(1000)),
        "dtype": _one(rng, ("float32", "float32", "float32", *DTYPES)),
        "around": _one(rng, AROUND),
    }


add(
    "convolutions", "passes", _convolutions, full_rank(1, "f"), _convolutions_parameters
)
