"""Calls of `fxflow.scipy.fft`, `.optimize` and `.sparse.linalg`."""

from __future__ import annotations

from tests.sweeps.catalogue import A, each, floating, like, positive_definite

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
]
