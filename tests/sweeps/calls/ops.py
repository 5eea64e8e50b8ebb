"""Calls of `fxflow.ops`."""

from __future__ import annotations

from tests.sweeps.catalogue import A, each, index, real

CALLS = [
    *each(
        "ops", "segment_sum segment_prod", A(5, 2, kinds="iufc"), index(5, below=3), 3
    ),
    *each("ops", "segment_max segment_min", real(5, 2), index(5, below=3), 3),
    *each(
        "ops",
        "segment_sum segment_max",
        real(5, 2),
        index(5, below=3),
        3,
        bucket_size=2,
        note="buckets",
    ),
]
