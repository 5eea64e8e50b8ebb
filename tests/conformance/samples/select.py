"""Samples of `fxflow.lax.select`."""

from __future__ import annotations

import numpy as np

from tests.conformance.harness import (
    Sample,
    both,
    elementwise_samples,
    special_samples,
    uniform,
)

INF, NAN = float("inf"), float("nan")


def _select_n(rng):
    samples = []
    pred = uniform(rng, (2, 3), "bool")
    for dtype in ("float32", "bool", "int8", "uint32", "bfloat16", "complex64"):
        cases = [uniform(rng, (2, 3), dtype) for _ in range(2)]
        samples.append(Sample((pred, *cases)))
    cases = [uniform(rng, (2, 3)) for _ in range(5)]
    which = np.array([[0, 4, 2], [-3, 9, 1]], "i4")
    samples += [
        Sample((np.array(True), *cases[:2]), name="scalar-bool"),
        Sample((np.array(3, "i4"), *cases[:4]), name="scalar-int", batch=(0, 1, 3)),
        Sample((which, *cases), name="many", batch=(0, 2, 5)),
        Sample((which, cases[0]), name="one"),
        Sample((np.array(1, "i4"), cases[0], cases[1]), name="two-int"),
        Sample((pred, cases[0], np.array(0.5, "f4")), name="constant", constant=(2,)),
        Sample((pred, np.array(1, "f4"), np.array(2, "f4")), constant=(1, 2)),
        Sample((np.array(False), np.array(1, "f4"), np.array(2, "f4"))),
        Sample((pred[:, :0], cases[0][:, :0], cases[1][:, :0]), name="empty"),
    ]
    return samples


def _clamp(rng):
    low = uniform(rng, (2, 3), "float32", -1.0, -0.5)
    x = np.array([[-2.0, 0.1, 2.0], [0.2, 3.0, -0.1]], "f4")
    high = uniform(rng, (2, 3), "float32", 0.5, 1.0)
    samples = [Sample((low, x, high)), Sample((high, x, low), name="crossed")]
    for dtype in ("int32", "uint8", "float64", "bfloat16", "float16"):
        args = [np.abs(a * 5).astype(np.dtype("f4")) for a in (low, x, high)]
        samples.append(Sample(tuple(a.astype(_dtype(dtype)) for a in args)))
    zero, one = np.array(0, "f4"), np.array(1, "f4")
    samples.append(Sample((zero, x, one), name="constants"))
    samples.append(Sample((low, x, one), name="constant-high"))
    samples.append(Sample((zero, x[0, 1].reshape(()), one), name="0-d"))
    return samples


def _dtype(name):
    return uniform(np.random.default_rng(0), (), name).dtype


SAMPLES = {
    "select_n": _select_n,
    "clamp": both(
        _clamp,
        special_samples(3, -1.0, 0.5, INF, NAN),
        elementwise_samples(3, "f", batch=(0, 1, 2), diff=False),
    ),
}
