"""Calls of the smaller modules of `fxflow.scipy`."""

from __future__ import annotations

from tests.sweeps.catalogue import (
    A,
    ascending,
    call,
    each,
    floating,
    like,
    made,
    positive_definite,
    real,
)

EXEMPT = {"scipy.optimize.minimize": "takes a function"}

CALLS = [
    *like(
        "scipy.fft",
        [
            *each("scipy.fft", "dct idct", A(3, 4), axis=0),
            *each("scipy.fft", "dctn idctn", A(3, 4), s=(2, 5)),
        ],
    ),
    *each(
        "scipy.sparse.linalg",
        "cg bicgstab gmres",
        positive_definite(3, 3, kinds="f"),
        floating(3),
        tol=1e-12,
        differentiable=False,
    ),
    call(
        "scipy.ndimage.map_coordinates",
        A(3, 4, kinds="iufc"),
        [made(lambda rng, s: rng.uniform(0.1, 1.9, s), 5)] * 2,
        1,
    ),
    call("scipy.integrate.trapezoid", A(3, 5), ascending(5)),
    call("scipy.cluster.vq.vq", real(5, 2), real(3, 2)),
]
