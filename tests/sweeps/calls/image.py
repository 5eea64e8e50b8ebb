"""Calls of `fxflow.image`."""

from __future__ import annotations

from tests.sweeps.catalogue import A, call, floating, made

CALLS = [
    *[
        call("image.resize", A(3, 4), (5, 2), method, note=method)
        for method in ("linear", "cubic", "lanczos3", "cubic-pytorch", "area")
    ],
    call("image.resize", A(3, 4), (5, 2), "nearest", note="nearest"),
    call(
        "image.scale_and_translate",
        A(3, 4),
        (3, 5),
        (1,),
        made(lambda rng, s: rng.uniform(0.7, 0.8, s), 1),
        floating(1, low=0.1, high=0.3),
        "linear",
    ),
]
