"""Samples of `fxflow.lax.precision`."""

from __future__ import annotations

from tests.conformance.harness import Sample, uniform

INF, NAN = float("inf"), float("nan")


def _samples(rng):
    samples = []
    for exponent, mantissa in ((5, 10), (8, 7), (4, 3), (8, 23), (3, 0), (2, 4)):
        params = {"exponent_bits": exponent, "mantissa_bits": mantissa}
        value = (rng.normal(size=200) * 10.0 ** rng.integers(-8, 6, 200)).astype("f4")
        value[:5] = [0.0, -0.0, INF, -INF, NAN]
        name = f"e{exponent}m{mantissa}"
        samples.append(Sample((value,), params, name=name, diff=False, tol=0.0))
    params = {"exponent_bits": 5, "mantissa_bits": 3}
    for dtype in ("float64", "bfloat16", "float16"):
        value = uniform(rng, (2, 3), dtype)
        samples.append(Sample((value,), params, diff=False, tol=0.0))
    # As wide as the dtype itself, it is the identity and may be differentiated.
    whole = {"exponent_bits": 11, "mantissa_bits": 52}
    samples.append(Sample((uniform(rng, (2, 3), "float64"),), whole, name="whole"))
    return samples


SAMPLES = {"reduce_precision": _samples}
