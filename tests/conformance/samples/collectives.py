"""Samples of `fxflow.lax.collectives`.

A collective cannot be bound by itself: it lives inside a transformation that owns the
named axis. So each sample is a `vmap` whose axis is named; what is checked is the
collective's rule for its own axis, for another axis, and its derivatives. Between
devices they are checked in `tests/lax/test_collectives_devices.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax, vjp, vmap
from fxflow.lax import collectives
from fxflow.lax.ragged_exchange import ragged_all_to_all
from tests.conformance.harness import Sample, uniform

Oracle = Callable[[Any], Any]
PAIRS = [[2, 0], [1, 3]]
UNEVEN = [[0, 3, 1], [2]]


def _grouped(x: Any, groups: list[list[int]], of_group: Callable[..., Any]) -> Any:
    """Stacks for each place what `of_group(slices, position)` gives."""
    out: list[Any] = [None] * len(x)
    for group in groups:
        for k, place in enumerate(group):
            out[place] = of_group(x[group], k)
    return np.stack(out)


def _over(function: Callable[..., Any], in_axes: Any = 0) -> Callable[..., Any]:
    return vmap(function, in_axes=in_axes, axis_name="i")


def _sample(
    rng: np.random.Generator,
    name: str,
    function: Callable[[Any], Any],
    oracle: Oracle,
    shape: tuple[int, ...] = (4, 3),
    dtype: str = "float32",
    **options: Any,
) -> Sample:
    return Sample(
        (uniform(rng, shape, dtype),),
        name=name,
        function=_over(function),
        oracle=oracle,
        **options,
    )


def _everywhere(value: Any, size: int) -> Any:
    return np.broadcast_to(value, (size, *value.shape))


def _psum(rng: np.random.Generator) -> list[Sample]:
    def both(x: Any) -> Any:
        inner = vmap(lambda y: collectives.psum(y, ("i", "j")), axis_name="j")
        return inner(x)

    def grad_inside(x: Any) -> Any:
        _, pull = vjp(lambda y: collectives.psum(lax.mul(y, y), "i"), x)
        return pull(x)[0]

    return [
        _sample(
            rng,
            f"{dtype}",
            lambda x: collectives.psum(x, "i"),
            lambda x: _everywhere(x.sum(0, dtype=x.dtype), 4),
            dtype=dtype,
        )
        for dtype in ("float32", "complex64", "int32", "float64")
    ] + [
        _sample(rng, "two", both, lambda x: _everywhere(x.sum(), 12).reshape(4, 3)),
        _sample(
            rng,
            "unmapped",
            lambda x: lax.add(x, collectives.psum(lax.full((3,), 2.0), "i")),
            lambda x: x + 8,
            diff=False,
        ),
        _sample(
            rng,
            "gradient-inside",
            grad_inside,
            lambda x: 2 * x * x.sum(0),
        ),
        _sample(
            rng,
            "groups",
            lambda x: collectives.psum(x, "i", axis_index_groups=UNEVEN),
            lambda x: _grouped(x, UNEVEN, lambda v, k: v.sum(0)),
        ),
    ]


def _extremum(what: str) -> Callable[[np.random.Generator], list[Sample]]:
    function = getattr(collectives, what)
    reduce = {"pmax": np.max, "pmin": np.min}[what]

    def make(rng: np.random.Generator) -> list[Sample]:
        return [
            _sample(
                rng,
                dtype,
                lambda x: function(x, "i"),
                lambda x: _everywhere(reduce(x, 0), 4),
                dtype=dtype,
                diff=False,
            )
            for dtype in ("float32", "int32", "complex64")
        ] + [
            _sample(
                rng,
                "groups",
                lambda x: function(x, "i", axis_index_groups=UNEVEN),
                lambda x: _grouped(x, UNEVEN, lambda v, k: reduce(v, 0)),
                diff=False,
            )
        ]

    return make


def _all_gather(rng: np.random.Generator) -> list[Sample]:
    return [
        _sample(
            rng,
            "front",
            lambda x: collectives.all_gather(x, "i"),
            lambda x: _everywhere(x, 4),
        ),
        _sample(
            rng,
            "last",
            lambda x: collectives.all_gather(x, "i", axis=-1),
            lambda x: _everywhere(x.T, 4),
        ),
        _sample(
            rng,
            "tiled",
            lambda x: collectives.all_gather(x, "i", tiled=True),
            lambda x: _everywhere(x.reshape(-1), 4),
            dtype="int32",
        ),
        _sample(
            rng,
            "groups",
            lambda x: collectives.all_gather(x, "i", axis_index_groups=PAIRS),
            lambda x: _grouped(x, PAIRS, lambda v, k: v),
        ),
    ]


def _psum_scatter(rng: np.random.Generator) -> list[Sample]:
    return [
        _sample(
            rng,
            "stacked",
            lambda x: collectives.psum_scatter(x, "i"),
            lambda x: x.sum(0),
            shape=(4, 4, 2),
        ),
        _sample(
            rng,
            "tiled",
            lambda x: collectives.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
            lambda x: np.moveaxis(x.sum(0).reshape(3, 4, 2), 1, 0),
            shape=(4, 3, 8),
        ),
        _sample(
            rng,
            "groups",
            lambda x: collectives.psum_scatter(x, "i", axis_index_groups=PAIRS),
            lambda x: _grouped(x, PAIRS, lambda v, k: v.sum(0)[k]),
            shape=(4, 2, 3),
        ),
    ]


def _ppermute(rng: np.random.Generator) -> list[Sample]:
    def ring(x: Any) -> Any:
        return collectives.ppermute(x, "i", [(i, (i + 1) % 4) for i in range(4)])

    def some(x: Any) -> Any:
        return collectives.ppermute(x, "i", [(0, 2), (3, 1)])

    def oracle(x: Any) -> Any:
        out = np.zeros_like(x)
        out[2], out[1] = x[0], x[3]
        return out

    return [
        _sample(rng, "ring", ring, lambda x: np.roll(x, 1, 0)),
        _sample(rng, "some", some, oracle),
        _sample(rng, "some", some, oracle, dtype="bool"),
    ]


def _all_to_all(rng: np.random.Generator) -> list[Sample]:
    return [
        _sample(
            rng,
            "stacked",
            lambda x: collectives.all_to_all(x, "i", 1, 0),
            lambda x: np.moveaxis(x, 2, 0),
            shape=(4, 3, 4),
        ),
        _sample(
            rng,
            "tiled",
            lambda x: collectives.all_to_all(x, "i", 0, 1, tiled=True),
            lambda x: np.stack(
                [
                    np.concatenate([x[j, 2 * i : 2 * i + 2] for j in range(4)], 1)
                    for i in range(4)
                ]
            ),
            shape=(4, 8, 3),
        ),
        _sample(
            rng,
            "groups",
            lambda x: collectives.all_to_all(x, "i", 0, 1, axis_index_groups=PAIRS),
            lambda x: _grouped(x, PAIRS, lambda v, k: v[:, k].T),
            shape=(4, 2, 3),
        ),
    ]


def _pbroadcast(rng: np.random.Generator) -> list[Sample]:
    def both(x: Any) -> Any:
        def one(y: Any) -> Any:
            return collectives.pbroadcast(y, ("i", "j"), 4)

        return vmap(one, axis_name="j")(x)

    def grad_inside(x: Any) -> Any:
        _, pull = vjp(lambda y: lax.mul(collectives.pbroadcast(y, "i", 1), y), x)
        return pull(x)[0]

    def grad_oracle(x: Any) -> Any:
        out = x * x[1]
        out[1] += (x * x).sum(0)
        return out

    return [
        *(
            _sample(
                rng,
                dtype,
                lambda x: collectives.pbroadcast(x, "i", 2),
                lambda x: _everywhere(x[2], 4),
                dtype=dtype,
            )
            for dtype in ("float32", "bool", "complex64")
        ),
        _sample(rng, "two", both, lambda x: np.full_like(x, x[1, 1])),
        _sample(rng, "gradient-inside", grad_inside, grad_oracle),
    ]


def _ragged_all_to_all(rng: np.random.Generator) -> list[Sample]:
    # Place 0 sends rows 0 and 1 … 2, place 1 rows 1 … 2 and 1: two of them twice.
    starts, sizes = [[0, 1], [1, 1]], [[1, 2], [2, 1]]
    targets, arriving = [[3, 0], [1, 2]], [[1, 2], [2, 1]]
    tables = [np.array(t, np.int32) for t in (starts, sizes, targets, arriving)]

    def exchange(x: Any, y: Any) -> Any:
        def one(a: Any, b: Any, *t: Any) -> Any:
            return ragged_all_to_all(a, b, *t, axis_name="i")

        return _over(one)(x, y, *tables)

    def oracle(x: Any, y: Any) -> Any:
        out = y.copy()
        out[0, 3], out[1, :2] = x[0, 0], x[0, 1:3]
        out[0, 1:3], out[1, 2] = x[1, 1:3], x[1, 1]
        return out

    return [
        Sample(
            (uniform(rng, (2, 3, 2), dtype), uniform(rng, (2, 5, 2), dtype)),
            name=dtype,
            function=exchange,
            oracle=oracle,
        )
        for dtype in ("float32", "int32")
    ]


def _axis_index(rng: np.random.Generator) -> list[Sample]:
    return [
        _sample(
            rng,
            "index",
            lambda x: lax.add(x, collectives.axis_index("i")),
            lambda x: x + np.arange(4, dtype=np.int32)[:, None],
            dtype="int32",
        )
    ]


SAMPLES = {
    "psum": _psum,
    "pmax": _extremum("pmax"),
    "pmin": _extremum("pmin"),
    "all_gather": _all_gather,
    "psum_scatter": _psum_scatter,
    "ppermute": _ppermute,
    "all_to_all": _all_to_all,
    "axis_index": _axis_index,
    "pbroadcast": _pbroadcast,
    "ragged_all_to_all": _ragged_all_to_all,
}
